// SPDX-License-Identifier: MIT
//
// Deadlines and load sizes of the live tests. A build with sanitizers is several times slower, so
// every upper time bound goes through scaled() and every load size through load().

#pragma once

#include <chrono>

#if defined(HELLO_SANITIZED) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HELLO_LIVE_SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HELLO_LIVE_SLOW_BUILD 1
#endif
#endif
#ifndef HELLO_LIVE_SLOW_BUILD
#define HELLO_LIVE_SLOW_BUILD 0
#endif

namespace hello::test {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

inline constexpr bool kSlowBuild = HELLO_LIVE_SLOW_BUILD != 0;

/// An upper time bound, stretched for slow builds.
constexpr Milliseconds scaled(Milliseconds bound) {
    return kSlowBuild ? bound * 5 : bound;
}

/// How many requests or connections a load test uses: fewer in slow builds.
constexpr int load(int count) {
    return kSlowBuild ? count / 4 : count;
}

/// Time that passed since `start`.
inline Milliseconds since(Clock::time_point start) {
    return std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// ClockShift: what a test and the clock library in the server share by a file.

#pragma once

#include <atomic>
#include <cstdint>

namespace hello::test {

struct ClockShift {
    static constexpr const char* kFileVariable = "HELLO_TEST_CLOCK_SHIFT";

    std::atomic<std::int64_t> seconds;
    std::atomic<std::int64_t> times_asked;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace hello::test

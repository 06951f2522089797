// SPDX-License-Identifier: MIT
//
// wait_until: polls a condition until it holds or a deadline passes. Tests wait for what they need
// to see instead of sleeping for a guessed time.

#pragma once

#include <thread>

#include "support/time_scale.h"

namespace hello::test {

/// True as soon as `condition()` holds; false when it still doesn't after `limit`.
template <typename Condition>
[[nodiscard]] bool wait_until(Condition condition,
                              Milliseconds limit,
                              Milliseconds pause = Milliseconds(10)) {
    const auto deadline = Clock::now() + limit;
    while (!condition()) {
        if (Clock::now() >= deadline) {
            return false;
        }
        std::this_thread::sleep_for(pause);
    }
    return true;
}

}  // namespace hello::test

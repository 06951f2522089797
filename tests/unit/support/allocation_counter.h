// SPDX-License-Identifier: MIT
//
// AllocationCounter: how much this process has taken from operator new and not given back, so that
// tests can check claims such as "no allocation per request" and "memory is given back".

#pragma once

#include <cstddef>

namespace hello::test {

struct AllocationCounter {
    /// Calls of operator new since the process started.
    [[nodiscard]] static std::size_t calls() noexcept;
    /// Octets not given back yet.
    [[nodiscard]] static std::size_t bytes_in_use() noexcept;
};

}  // namespace hello::test

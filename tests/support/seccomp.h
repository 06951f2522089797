// SPDX-License-Identifier: MIT
//
// Seccomp filters that make system calls of this process fail with a chosen errno, as the default
// profiles of container runtimes do. They need no privileges and can't be undone; setting them up
// is async-signal-safe, so it can be done between fork and exec.

#pragma once

#include <cstdint>

namespace hello::test {

/// System calls by their numbers, which are the same on every architecture (asm-generic).
struct CallRange {
    std::uint32_t first = 425;  ///< io_uring_setup
    std::uint32_t last = 427;   ///< io_uring_register
};
inline constexpr CallRange kIoUringEnter{426, 426};
inline constexpr CallRange kIoUringRegister{427, 427};

// False when the kernel offers no seccomp filters.
[[nodiscard]] bool refuse_io_uring(int error_number, CallRange calls = {});
/// No IPv6 socket can be made, as with the kernel's ipv6.disable=1.
[[nodiscard]] bool refuse_ipv6();

}  // namespace hello::test

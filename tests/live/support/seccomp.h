// SPDX-License-Identifier: MIT
//
// Filters that make system calls of this process fail. They need no privileges; async-signal-safe,
// so they can be installed between fork and exec. False when the kernel offers no seccomp filters.

#pragma once

namespace hello::test {

/// The io_uring calls fail with that errno, as with the default profiles of container runtimes.
bool refuse_io_uring(int error_number);
/// No IPv6 socket can be made, as with the kernel's ipv6.disable=1.
bool refuse_ipv6();

}  // namespace hello::test

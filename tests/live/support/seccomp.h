// SPDX-License-Identifier: MIT
//
// refuse_io_uring: makes the io_uring system calls of this process fail with a chosen errno, as the
// default seccomp profiles of container runtimes do. Needs no privileges; async-signal-safe, so it
// can run between fork and exec.

#pragma once

namespace hello::test {

/// False when the kernel offers no seccomp filters.
bool refuse_io_uring(int error_number);

}  // namespace hello::test

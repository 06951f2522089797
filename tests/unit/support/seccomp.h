// SPDX-License-Identifier: MIT
//
// refuse_io_uring: makes the io_uring system calls of this process fail with an error of choice,
// as the default profiles of container runtimes do. Needs no privileges, and cannot be undone.

#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace hello::test {

/// Returns false where the kernel offers no filters.
[[nodiscard]] inline bool refuse_io_uring(int error) {
    const auto refusal = SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
    // io_uring_setup, io_uring_enter and io_uring_register have numbers in a row.
    std::array<sock_filter, 5> program{{
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JGE | BPF_K, 0, 2, SYS_io_uring_setup},
        {BPF_JMP | BPF_JGT | BPF_K, 1, 0, SYS_io_uring_register},
        {BPF_RET | BPF_K, 0, 0, refusal},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    }};
    const sock_fprog filter{program.size(), program.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// A seccomp filter over the three io_uring system calls.

#include "support/seccomp.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace hello::test {
namespace {

// The numbers are the same on every architecture (asm-generic).
constexpr std::uint32_t kFirstCall = 425;  // io_uring_setup; then io_uring_enter
constexpr std::uint32_t kLastCall = 427;   // io_uring_register

}  // namespace

bool refuse_io_uring(int error_number) {
    const std::uint32_t refusal =
        SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error_number) & SECCOMP_RET_DATA);
    std::array<sock_filter, 5> code{{
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JGE | BPF_K, 0, 2, kFirstCall},
        {BPF_JMP | BPF_JGT | BPF_K, 1, 0, kLastCall},
        {BPF_RET | BPF_K, 0, 0, refusal},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    }};
    const sock_fprog program{code.size(), code.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace hello::test

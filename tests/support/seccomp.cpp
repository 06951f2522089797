// SPDX-License-Identifier: MIT
//
// Seccomp filters over a few system calls: see seccomp.h.

#include "seccomp.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>

namespace hello::test {
namespace {

constexpr std::uint32_t refusal(int error_number) {
    return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error_number) & SECCOMP_RET_DATA);
}

/// Where the lower half of the first argument is.
constexpr std::uint32_t kFirstArgument =
    offsetof(seccomp_data, args) + (std::endian::native == std::endian::big ? 4 : 0);

template <std::size_t Size>
bool install(std::array<sock_filter, Size> code) {
    const sock_fprog program{code.size(), code.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

bool refuse_io_uring(int error_number, CallRange calls) {
    return install(std::array<sock_filter, 5>{{
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JGE | BPF_K, 0, 2, calls.first},
        {BPF_JMP | BPF_JGT | BPF_K, 1, 0, calls.last},
        {BPF_RET | BPF_K, 0, 0, refusal(error_number)},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    }});
}

bool refuse_ipv6() {
    return install(std::array<sock_filter, 6>{{
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_socket},
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, kFirstArgument},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, AF_INET6},
        {BPF_RET | BPF_K, 0, 0, refusal(EAFNOSUPPORT)},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    }});
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Calls of liburing that fail on demand: see scripted_kernel.h.

#include "support/scripted_kernel.h"

#include <atomic>
#include <cerrno>

#include <liburing.h>

namespace {

std::atomic<int> g_enter_result{0};
std::atomic<int> g_failures_left{0};
std::atomic<int> g_failed{0};
std::atomic<unsigned> g_unknown_flags{0};

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names
int __real_io_uring_enter2(
    unsigned fd, unsigned submit, unsigned wait, unsigned flags, void* arg, std::size_t size);
int __real_io_uring_queue_init_params(unsigned entries, io_uring* ring, io_uring_params* params);

int __wrap_io_uring_enter2(
    unsigned fd, unsigned submit, unsigned wait, unsigned flags, void* arg, std::size_t size) {
    if (g_failures_left > 0) {
        --g_failures_left;
        ++g_failed;
        return g_enter_result;
    }
    return __real_io_uring_enter2(fd, submit, wait, flags, arg, size);
}

int __wrap_io_uring_queue_init_params(unsigned entries, io_uring* ring, io_uring_params* params) {
    return (params->flags & g_unknown_flags) != 0
               ? -EINVAL
               : __real_io_uring_queue_init_params(entries, ring, params);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"

namespace hello::test {

FailingEnter::FailingEnter(int result, int count) {
    g_enter_result = result;
    g_failed = 0;
    g_failures_left = count;
}
FailingEnter::~FailingEnter() {
    g_failures_left = 0;
}
int FailingEnter::failed() const {
    return g_failed;
}

OlderSetup::OlderSetup(unsigned unknown) {
    g_unknown_flags = unknown;
}
OlderSetup::~OlderSetup() {
    g_unknown_flags = 0;
}

}  // namespace hello::test

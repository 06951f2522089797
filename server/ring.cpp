// SPDX-License-Identifier: MIT
//
// io_uring set-up and entering: see ring.h.

#include "ring.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "error.h"

namespace hello {
namespace {

// Since 6.15; liburing 2.9 does not name them yet (io_uring_enter(2)).
constexpr unsigned kFeatureNoIowait = 1U << 17;
constexpr unsigned kEnterNoIowait = 1U << 7;

/// Tried in this order; a kernel answers EINVAL to what it does not know.
/// - SUBMIT_ALL (5.18): one bad entry does not strand those behind it.
/// - CQSIZE, CLAMP: a completion queue far larger than the default 2 x submissions, for multishot
///   operations complete without being submitted again.
/// - SINGLE_ISSUER (6.0) with DEFER_TASKRUN (6.1): completions are made only when we enter, in
///   batches and on our own time. COOP_TASKRUN (5.19) is the next best: no interruptions.
/// No further: multishot receives came with SINGLE_ISSUER, and no flag tells of them.
constexpr unsigned kAlways =
    IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER;
constexpr std::array kFlagLadder{kAlways | IORING_SETUP_DEFER_TASKRUN,
                                 kAlways | IORING_SETUP_COOP_TASKRUN};

/// NODROP (5.5): completions are never lost. FAST_POLL (5.7): sockets without worker threads.
/// EXT_ARG (5.11), CQE_SKIP (5.17): successful sends and closes need no completion.
constexpr unsigned kRequiredFeatures =
    IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;

int try_flags(io_uring* ring, UringSizes sizes) noexcept {
    int result = -EINVAL;
    for (const unsigned flags : kFlagLadder) {
        io_uring_params params{};
        params.flags = flags;
        params.cq_entries = sizes.completions;
        result = io_uring_queue_init_params(sizes.submissions, ring, &params);
        if (result != -EINVAL) {
            break;
        }
    }
    return result;
}

int read_number(const char* path, int otherwise) {
    std::ifstream file(path);
    int number = 0;
    return file >> number ? number : otherwise;
}

bool under_seccomp_filter() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("Seccomp:", 0) == 0) {
            return line.find('2') != std::string::npos;
        }
    }
    return false;
}

std::string explain_permission() {
    const int disabled = read_number("/proc/sys/kernel/io_uring_disabled", 0);
    if (disabled != 0) {
        return "it is disabled on this host (kernel.io_uring_disabled=" + std::to_string(disabled) +
               "); cure: sysctl -w kernel.io_uring_disabled=0" +
               (disabled == 1 ? ", or join the group kernel.io_uring_group" : "");
    }
    if (under_seccomp_filter()) {
        return "a seccomp filter forbids it, as the default profiles of Docker and Kubernetes do; "
               "cure: a profile that allows io_uring_setup, io_uring_enter and "
               "io_uring_register (docker run --security-opt seccomp=PROFILE.json)";
    }
    return "a security module or sandbox forbids it; cure: allow io_uring_setup, "
           "io_uring_enter and io_uring_register";
}

std::string explain_memory() {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return "the limit of locked memory (" + std::to_string(limit.rlim_cur / 1024) +
           " KiB for all processes of this user) is too low; cure: ulimit -l unlimited, "
           "docker run --ulimit memlock=-1, or LimitMEMLOCK=infinity in the systemd unit; "
           "fewer --threads need less (about 200 KiB each)";
}

}  // namespace

std::string explain_refusal(int error) {
    std::string cause;
    utsname kernel{};
    uname(&kernel);
    switch (error) {
        case EPERM:
        case EACCES: cause = explain_permission(); break;
        case ENOMEM: cause = explain_memory(); break;
        case ENOSYS:
            cause = std::string{"this kernel ("} + kernel.release +
                    ") does not offer it: built without CONFIG_IO_URING, a seccomp filter that "
                    "says so, gVisor or an emulator; cure: Linux 6.1 or newer without these";
            break;
        case EINVAL:
            cause = std::string{"this kernel ("} + kernel.release +
                    ") does not know the features that are needed; cure: Linux 6.1 or newer";
            break;
        case EMFILE:
        case ENFILE: cause = "no descriptor is left; cure: raise ulimit -n"; break;
        default: cause = "the reason is unknown; cure: --engine epoll does without";
    }
    return "io_uring is not available (" + std::string{std::strerror(error)} + "): " + cause;
}

Ring::Ring(UringSizes sizes) {
    int result = try_flags(&ring_, sizes);
    if (result >= 0) {  // a filter may allow this call and not the next
        result = (ring_.features & kRequiredFeatures) == kRequiredFeatures ? enter(0) : -EINVAL;
        if (result < 0) {
            io_uring_queue_exit(&ring_);
        }
    }
    if (result < 0) {
        throw EngineRefused(explain_refusal(-result), -result);
    }
    // Spares a descriptor look-up per system call (5.18); works without.
    if (io_uring_register_ring_fd(&ring_) == 1) {
        enter_flags_ |= IORING_ENTER_REGISTERED_RING;
    }
    // Waiting for a client is not waiting for a disk: without this, an idle server shows up as
    // 100 % iowait.
    if ((ring_.features & kFeatureNoIowait) != 0) {
        enter_flags_ |= kEnterNoIowait;
    }
}

io_uring_sqe* Ring::sqe() noexcept {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (entry == nullptr) {
        if (submit_and_wait(0) < 0) {
            ring_.sq.sqe_tail = *ring_.sq.khead;  // all that is queued is for nothing
        }
        entry = io_uring_get_sqe(&ring_);
    }
    return entry;
}

/// liburing's own submit has no way to pass NO_IOWAIT before 2.10, hence the enter by hand.
int Ring::enter(unsigned wait_count) noexcept {
    io_uring_smp_store_release(ring_.sq.ktail, ring_.sq.sqe_tail);
    const unsigned to_submit = ring_.sq.sqe_tail - io_uring_smp_load_acquire(ring_.sq.khead);
    return io_uring_enter2(static_cast<unsigned>(ring_.enter_ring_fd), to_submit, wait_count,
                           enter_flags_ | IORING_ENTER_GETEVENTS, nullptr, 0);
}

int Ring::submit_and_wait(unsigned count) noexcept {
    const int result = failure_ == 0 ? enter(count) : failure_;
    switch (result) {
        case -EINTR:  // a signal
        case -ETIME:
        case -EBUSY:   // completions must be read first
        case -EAGAIN:  // no memory at the moment; what was not submitted stays queued
            return 0;
        default: failure_ = std::min(result, 0); return failure_;
    }
}

bool Ring::fetch_overflow() noexcept {
    if ((IO_URING_READ_ONCE(*ring_.sq.kflags) & IORING_SQ_CQ_OVERFLOW) == 0) {
        return false;
    }
    return io_uring_get_events(&ring_) >= 0;
}

std::string Ring::describe() const {
    const bool deferred = (ring_.flags & IORING_SETUP_DEFER_TASKRUN) != 0;
    return std::string{deferred ? "DEFER_TASKRUN" : "COOP_TASKRUN"} +
           " sq=" + std::to_string(ring_.sq.ring_entries) +
           " cq=" + std::to_string(ring_.cq.ring_entries);
}

}  // namespace hello

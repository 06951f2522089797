// SPDX-License-Identifier: MIT
//
// Ring: sole owner of an io_uring instance, created and used by one thread. A submission entry
// can always be had, every completion is seen exactly once, and what the kernel lacks is found
// out by trying, never by its version.

#pragma once

#include <cstdint>
#include <string>

#include <liburing.h>

#include "engine.h"

namespace hello {

class Ring {
public:
    /// Throws EngineRefused with cause and cure where io_uring is refused or too old.
    explicit Ring(UringSizes sizes);
    ~Ring() { io_uring_queue_exit(&ring_); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    /// A submission entry to prepare. Where the queue is full it is submitted first.
    [[nodiscard]] io_uring_sqe* sqe() noexcept;

    /// Submits what is queued and waits until `count` completions are there (0: does not wait).
    /// Returns 0, or -errno where the ring is beyond use; short of memory, a full completion
    /// queue and signals are dealt with by the next call.
    [[nodiscard]] int submit_and_wait(unsigned count) noexcept;

    /// Calls `handle(const io_uring_cqe&)` for each completion there is, in order. Returns how
    /// many there were.
    template <typename Handle>
    unsigned for_each_cqe(Handle handle) {
        unsigned head = 0;
        unsigned count = 0;
        io_uring_cqe* cqe = nullptr;
        io_uring_for_each_cqe(&ring_, head, cqe) {
            handle(*cqe);
            ++count;
        }
        io_uring_cq_advance(&ring_, count);
        return count;
    }

    /// Whether completions wait in the kernel because the queue was full; fetches them if so.
    [[nodiscard]] bool fetch_overflow() noexcept;

    /// Completions that are there now.
    [[nodiscard]] unsigned ready() const noexcept { return io_uring_cq_ready(&ring_); }

    /// Whether the kernel has taken all that was queued. What a queued send refers to must stay
    /// until then.
    [[nodiscard]] bool is_submitted() const noexcept { return io_uring_sq_ready(&ring_) == 0; }

    [[nodiscard]] io_uring* get() noexcept { return &ring_; }
    [[nodiscard]] int fd() const noexcept { return ring_.ring_fd; }

    /// "DEFER_TASKRUN sq=1024 cq=8192": for the log.
    [[nodiscard]] std::string describe() const;

private:
    [[nodiscard]] int enter(unsigned wait_count) noexcept;

    io_uring ring_{};
    unsigned enter_flags_ = 0;
    int failure_ = 0;  ///< -errno, for good
};

/// Why io_uring_setup(2) failed with `error` (positive errno) here, and what to do about it.
[[nodiscard]] std::string explain_refusal(int error);

}  // namespace hello

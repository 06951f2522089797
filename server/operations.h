// SPDX-License-Identifier: MIT
//
// Operations: each io_uring operation of this server, with its flags and the reason for them.
// Each function queues one submission; nothing is submitted before the ring is entered.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "connection.h"
#include "ring.h"
#include "user_data.h"

namespace hello {

/// MSG_MORE: FIN follows in the same segment, for close comes next in the same submission.
enum class ThenClose : bool { No, Yes };

/// Where input is likely to be waiting, receiving at once is cheaper than asking first.
enum class Readiness : bool { Unlikely, Likely };

class Operations {
public:
    explicit Operations(Ring& ring) noexcept : ring_(ring) {}

    // Those that always complete, and whose completions the caller must await:
    void accept(int listener) noexcept;
    void receive_once(Connection& connection, Readiness readiness) noexcept;
    void receive_many(Connection& connection) noexcept;
    /// Takes what is there and never waits: completes with -EAGAIN where nothing is.
    void receive_now(Connection& connection) noexcept;
    /// Completes when all of connection.unsent was taken by the socket.
    void send_patiently(Connection& connection, ThenClose then_close) noexcept;
    /// Completes with the tag {HandOff, worker, fd}.
    void hand_off(int fd, std::size_t worker, int ring_fd) noexcept;
    void tick() noexcept;
    void wake(int event_fd, std::uint64_t* value) noexcept;

    // Those that complete only where they did not succeed:
    void send_now(Connection& connection, std::string_view octets, ThenClose then_close) noexcept;
    void cancel(Connection& connection, Op op) noexcept;
    void cancel_accept() noexcept;
    void close(const Connection& connection) noexcept;

private:
    [[nodiscard]] io_uring_sqe* receive(Connection& connection) noexcept;

    Ring& ring_;
    __kernel_timespec next_tick_{};  ///< the kernel reads it when it is submitted
};

}  // namespace hello

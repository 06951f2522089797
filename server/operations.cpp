// SPDX-License-Identifier: MIT
//
// io_uring submissions: see operations.h.

#include "operations.h"

#include <sys/socket.h>

#include <ctime>

#include "buffer_ring.h"

namespace hello {
namespace {

std::uint64_t tag(Op op, const Connection& connection) noexcept {
    return UserData{op, connection.generation, connection.slot}.encode();
}

std::uint64_t tag(Op op) noexcept {
    return UserData{op, 0, 0}.encode();
}

}  // namespace

/// Multishot (5.19): one submission accepts until it is cancelled or fails.
void Operations::accept(int listener) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_multishot_accept(sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
    io_uring_sqe_set_data64(sqe, tag(Op::Accept));
}

/// The buffer is chosen when there is something to put into it: idle connections hold none.
io_uring_sqe* Operations::receive(Connection& connection) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_recv(sqe, connection.fd, nullptr, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BufferRing::kGroup;
    io_uring_sqe_set_data64(sqe, tag(Op::Receive, connection));
    ++connection.in_flight;
    return sqe;
}

/// A pending receive holds the socket open beyond close(2), so a connection that may end with
/// its first request gets a receive that is over when the request is there.
void Operations::receive_once(Connection& connection, Readiness readiness) noexcept {
    io_uring_sqe* sqe = receive(connection);
    if (readiness == Readiness::Unlikely) {
        sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
    }
    connection.receiving = Connection::Receiving::Once;
}

/// Multishot (6.0): one submission for the rest of the connection. POLL_FIRST (5.19): the input
/// was just read, so an attempt before waiting would be for nothing.
void Operations::receive_many(Connection& connection) noexcept {
    io_uring_sqe* sqe = receive(connection);
    sqe->ioprio |= IORING_RECV_MULTISHOT | IORING_RECVSEND_POLL_FIRST;
    connection.receiving = Connection::Receiving::Multishot;
}

void Operations::receive_now(Connection& connection) noexcept {
    io_uring_sqe* sqe = receive(connection);
    sqe->msg_flags = MSG_DONTWAIT;
    connection.receiving = Connection::Receiving::Once;
}

/// MSG_WAITALL | MSG_DONTWAIT: either all is taken at once, which needs no completion, or one
/// comes with -EAGAIN or the exact count, and nothing is sent behind our back (measured: half
/// the system calls of a send that always completes).
void Operations::send_now(Connection& connection,
                          std::string_view octets,
                          ThenClose then_close) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    const int more = then_close == ThenClose::Yes ? MSG_MORE : 0;
    io_uring_prep_send(sqe, connection.fd, octets.data(), octets.size(),
                       MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL | more);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, tag(Op::SendNow, connection));
    connection.sending = octets;
    connection.answered = true;
}

void Operations::send_patiently(Connection& connection, ThenClose then_close) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    const int more = then_close == ThenClose::Yes ? MSG_MORE : 0;
    io_uring_prep_send(sqe, connection.fd, connection.unsent.octets.get(), connection.unsent.size,
                       MSG_WAITALL | MSG_NOSIGNAL | more);
    io_uring_sqe_set_data64(sqe, tag(Op::Send, connection));
    connection.answered = true;
    ++connection.in_flight;
}

/// The message's number is the descriptor: threads share the descriptor table (5.18).
void Operations::hand_off(int fd, std::size_t worker, int ring_fd) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_msg_ring(sqe, ring_fd, static_cast<unsigned>(fd), tag(Op::Adopt), 0);
    const UserData tag{Op::HandOff, static_cast<std::uint32_t>(worker),
                       static_cast<std::uint32_t>(fd)};
    io_uring_sqe_set_data64(sqe, tag.encode());
}

void Operations::cancel(Connection& connection, Op op) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_cancel64(sqe, tag(op, connection), 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, tag(Op::Cancel, connection));
}

void Operations::cancel_accept() noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_cancel64(sqe, tag(Op::Accept), 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, tag(Op::Cancel));
}

/// Never shutdown first: IORING_OP_SHUTDOWN always goes to a worker thread of the kernel.
void Operations::close(const Connection& connection) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_close(sqe, connection.fd);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, tag(Op::Close, connection));
}

/// At the begin of the next second of the clock that deadlines are counted in, so that none is
/// late by more than it was rounded up. The margin is what the coarse clock may lag. Once, for
/// multishot timeouts came only with 6.4.
void Operations::tick() noexcept {
    constexpr long kMarginNs = 10'000'000;
    timespec now{};
    static_cast<void>(clock_gettime(CLOCK_MONOTONIC, &now));  // can't fail: it exists
    next_tick_ = {now.tv_nsec < kMarginNs ? now.tv_sec : now.tv_sec + 1, kMarginNs};
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_timeout(sqe, &next_tick_, 0, IORING_TIMEOUT_ABS);
    io_uring_sqe_set_data64(sqe, tag(Op::Tick));
}

void Operations::wake(int event_fd, std::uint64_t* value) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_read(sqe, event_fd, value, sizeof *value, 0);
    io_uring_sqe_set_data64(sqe, tag(Op::Wake));
}

}  // namespace hello

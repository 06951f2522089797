// SPDX-License-Identifier: MIT
//
// What connections do: see connections.h.

#include "connections.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace hello {
namespace {

/// A first send of this size is always taken whole: the send buffer of a new socket is empty,
/// and the kernel grants as much (tcp_wmem's minimum) even when it is short of memory. So the
/// close, or the hand-off, need not wait for it.
constexpr std::size_t kSafeSendBytes = 4096;
constexpr unsigned kGraceTicks = 2;  ///< for the request of who has just connected, when draining
constexpr std::size_t kDiscardedBytesMax = 8 * 1024 * 1024;  ///< while lingering

}  // namespace

Connections::Connections(
    const ServerConfig& config, Crew& crew, std::size_t index, Engine& engine, WorkerStats& stats)
    : config_(config),
      crew_(crew),
      index_(index),
      stats_(stats),
      engine_(engine),
      pool_(config.connections_max, config.limits),
      exchange_(config, pool_, stats) {}

void Connections::admit(int fd) {
    stats_.connections_accepted.add();
    crew_.connections.fetch_add(1, std::memory_order_relaxed);
    static_cast<void>(open(fd));
}

void Connections::adopt(int fd) {
    if (Connection* connection = open(fd); connection != nullptr) {
        connection->answered = true;
        connection->placed = true;
    } else {
        crew_.balancer.remove(index_);
    }
}

/// Null, and `fd` closed, where memory is short or all shall end.
Connection* Connections::open(int fd) {
    Connection* connection = aborting_ ? nullptr : pool_.open(fd);
    stats_.connections_open.add();
    if (connection != nullptr) {
        if (draining_) {
            connection->session.finish_soon();
        }
        touch(*connection);
        return connection;
    }
    stats_.accept_errors.add();
    count_closed();
    ::close(fd);
    return nullptr;
}

void Connections::on_completion(const Completion& completion) {
    const Op op = completion.tag.op;
    Connection* connection = pool_.find(completion.tag.slot, completion.tag.generation);
    if (connection == nullptr) {
        stats_.stale_completions.add();
        stats_.send_errors.add(op == Op::SendNow ? 1 : 0);  // closed after it: the answer is lost
    } else if (op == Op::Receive) {
        on_received(*connection, completion);
    } else if (op == Op::SendNow) {
        on_send_now_failed(*connection, completion.result);
    } else {
        on_sent(*connection, completion.result);
    }
}

void Connections::on_received(Connection& connection, const Completion& completion) {
    if (!completion.goes_on) {
        connection.receiving = ReceiveMode::None;
        --connection.in_flight;
    }
    touch(connection);
    if (connection.state == State::Closed) {
        return;
    }
    if (completion.result < 0) {
        on_receive_error(connection, -completion.result);
    } else if (completion.result == 0) {
        exchange_.end_input(connection);
    } else if (connection.state == State::Lingering) {
        connection.discarded_bytes += completion.input.size();
    } else {
        connection.input_left = completion.input_left;
        connection.flooding |= completion.input.size() == Engine::kBufferSize;
        exchange_.feed(connection, completion.input);
        if (completion.goes_on && connection.answers.empty()) {
            look_for_reset(connection);
        }
    }
}

/// A multishot receive that finds input and a reset together reports the input, then waits for an
/// event that has been (6.18; liburing issue 1549). Answering would notice it.
void Connections::look_for_reset(Connection& connection) {
    char octet = 0;
    if (recv(connection.fd, &octet, 1, MSG_PEEK | MSG_DONTWAIT) == -1 && errno != EAGAIN) {
        on_receive_error(connection, ECONNRESET);
    }
}

void Connections::on_receive_error(Connection& connection, int error) {
    switch (error) {
        case ENOBUFS:  // the kernel found no buffer; at the end of this turn all are given back
            connection.input_left = true;
            break;
        case ECANCELED: break;
        case EAGAIN:  // the last search before closing found nothing
            exchange_.end_input(connection);
            break;
        default: stats_.receive_errors.add(); close(connection);
    }
}

/// `result`: how many octets were sent, or -errno; in any case not all.
void Connections::on_send_now_failed(Connection& connection, int result) {
    const std::size_t sent = result > 0 ? static_cast<std::size_t>(result) : 0;
    stats_.bytes_sent.subtract(connection.sending.size() - sent);
    if (connection.state != State::Open) {
        return;
    }
    if (result < 0 && result != -EAGAIN) {
        stats_.send_errors.add();
        return close(connection);
    }
    stats_.sends_blocked.add();
    send_patiently(connection, connection.sending.substr(sent));
    touch(connection);
}

void Connections::on_sent(Connection& connection, int result) {
    --connection.in_flight;
    const bool whole = result >= 0 && static_cast<std::size_t>(result) == connection.unsent.size;
    stats_.bytes_sent.add(result > 0 ? static_cast<std::size_t>(result) : 0);
    connection.unsent = {};
    touch(connection);
    if (!whole && connection.state != State::Closed) {  // it was to go on until all is sent
        stats_.send_errors.add();
        close(connection);
    }
}

/// `tag`: {HandOff, worker, fd}.
void Connections::on_handed_off(UserData tag, int result) {
    --handing_off_;
    if (result < 0) {  // the other worker can't be reached: the connection stays
        crew_.balancer.take_back(tag.generation, index_);
        adopt(static_cast<int>(tag.slot));
    } else {
        stats_.handoffs.add();
    }
}

void Connections::expire() {
    exchange_.expire([this](Connection& connection) {
        if (connection.state == State::Lingering || connection.is_sending()) {
            return close(connection);
        }
        connection.verdict = connection.session.expire(connection.answers);
        touch(connection);
    });
    if (draining_ && ++drain_ticks_ == kGraceTicks) {
        drain();
    }
}

void Connections::drain() {
    draining_ = true;
    pool_.for_each([this](Connection& connection) {
        connection.session.finish_soon();
        touch(connection);
    });
}

void Connections::abort() {
    aborting_ = true;
    pool_.for_each([this](Connection& connection) { close(connection); });
}

void Connections::advance_touched() {
    exchange_.begin_sends();
    advancing_.swap(touched_);
    for (const std::uint32_t slot : advancing_) {
        advance(pool_[slot]);
    }
    advancing_.clear();
}

void Connections::advance(Connection& connection) {
    connection.touched = false;
    switch (connection.state) {
        case State::Open: advance_open(connection); break;
        case State::Lingering:
            if (connection.input_ended || connection.discarded_bytes > kDiscardedBytesMax) {
                close(connection);
            } else {
                manage_receiving(connection);
            }
            break;
        case State::Closed:
            if (connection.in_flight == 0) {
                pool_.release(connection);
            }
            break;
    }
}

void Connections::advance_open(Connection& connection) {
    if (!connection.is_sending()) {
        if (!connection.answers.empty()) {
            if (!send(connection)) {
                return;
            }
        } else if (connection.verdict != Verdict::Read) {
            return finish(connection);
        } else if (draining_ && connection.session.awaits_request() &&
                   (connection.answered || drain_ticks_ >= kGraceTicks)) {
            return search_once_more(connection);
        }
    }
    manage_receiving(connection);
    exchange_.update_deadline(connection);
}

/// Returns whether the connection is still open and here.
bool Connections::send(Connection& connection) {
    const std::string_view octets = exchange_.compose(connection);
    if (connection.answers.empty() && connection.verdict != Verdict::Read) {
        return send_last(connection, octets);
    }
    send_now(connection, octets);
    if (!connection.answers.empty() || draining_) {
        touch(connection);  // the rest in the next turn, or what a client that stays means
        return true;
    }
    return connection.placed || settle_in(connection, octets.size());
}

/// Nothing follows: data and FIN leave together. On a fresh socket that needs no waiting.
bool Connections::send_last(Connection& connection, std::string_view octets) {
    const bool at_once = connection.verdict == Verdict::Close && !connection.answered &&
                         connection.in_flight == 0 && octets.size() <= kSafeSendBytes;
    if (!at_once) {
        send_patiently(connection, octets);
        return true;
    }
    stats_.bytes_sent.add(octets.size());
    engine_.send_last(connection.fd, octets);
    engine_.close(connection.fd, connection.tag(Op::Close));
    forget(connection);
    pool_.release(connection);
    return false;
}

void Connections::send_now(Connection& connection, std::string_view octets) {
    connection.sending = octets;
    connection.answered = true;
    stats_.bytes_sent.add(octets.size());
    engine_.send_now(connection.fd, connection.tag(Op::SendNow), octets);
}

/// Keeps a copy, for what it was composed from will change, and sends until all is taken.
void Connections::send_patiently(Connection& connection, std::string_view octets) {
    connection.unsent = {std::make_unique<char[]>(octets.size()), octets.size()};
    octets.copy(connection.unsent.octets.get(), octets.size());
    connection.progressed = true;
    connection.answered = true;
    ++connection.in_flight;
    engine_.send(connection.fd, connection.tag(Op::Send),
                 {connection.unsent.octets.get(), octets.size()});
}

/// All is sent. Where input may be left, closing would reset the connection and might destroy
/// the answer on its way, so FIN goes first (RFC 9112 section 9.6).
void Connections::finish(Connection& connection) {
    const bool linger = connection.verdict == Verdict::Linger && !connection.input_ended;
    if (!linger || shutdown(connection.fd, SHUT_WR) == -1) {
        return close(connection);
    }
    connection.state = State::Lingering;
    manage_receiving(connection);
    exchange_.update_deadline(connection);
}

void Connections::manage_receiving(Connection& connection) {
    const bool reads = connection.verdict == Verdict::Read && !Exchange::owes_too_much(connection);
    const bool wanted = reads || connection.state == State::Lingering;
    if (wanted && connection.receiving == ReceiveMode::None && !connection.input_ended) {
        receive(connection);
    } else if (connection.receiving == ReceiveMode::Many && (!wanted || connection.flooding) &&
               connection.verdict == Verdict::Read) {
        engine_.cancel(connection.fd, connection.tag(Op::Receive));
    }
}

/// A pending receive holds the socket open beyond close(2), so a connection that may end with its
/// first request gets a receive that is over when the request is there. A client that lasts gets
/// one for the rest of its life; one that floods gets one buffer a turn, so that
/// the others get their turn too.
void Connections::receive(Connection& connection) {
    const bool lasts = connection.answered && connection.state == State::Open && !draining_;
    if (lasts && !connection.flooding) {
        return receive(connection, ReceiveMode::Many, Readiness::Unlikely);
    }
    const bool fresh =
        !connection.answered && connection.session.phase() == HttpSession::Phase::Idle;
    receive(connection, ReceiveMode::Once,
            fresh || connection.input_left ? Readiness::Likely : Readiness::Unlikely);
}

void Connections::receive(Connection& connection, ReceiveMode mode, Readiness readiness) {
    connection.receiving = mode;
    ++connection.in_flight;
    engine_.receive(connection.fd, connection.tag(Op::Receive), mode, readiness);
}

/// The connection turned out to last: it goes to the worker that has the fewest. Returns whether
/// it stays here. What was just sent goes ahead of it: it is queued first, and taken whole.
bool Connections::settle_in(Connection& connection, std::size_t sent_bytes) {
    connection.placed = true;
    const bool movable = connection.session.phase() == HttpSession::Phase::Idle &&
                         connection.in_flight == 0 && !draining_ && sent_bytes <= kSafeSendBytes;
    if (!movable) {
        crew_.balancer.add(index_);
        return true;
    }
    const std::size_t worker = crew_.balancer.place(index_);
    if (worker == index_) {
        return true;
    }
    const UserData tag{Op::HandOff, static_cast<std::uint32_t>(worker),
                       static_cast<std::uint32_t>(connection.fd)};
    engine_.hand_off(connection.fd, tag, crew_.members[worker].inbox);
    ++handing_off_;
    stats_.connections_open.subtract(1);
    exchange_.forget_deadline(connection);
    pool_.release(connection);
    return false;
}

/// The server stops and the client has asked nothing, as far as we know: its socket is looked
/// into a last time, so that a request that has come in does not go unanswered.
void Connections::search_once_more(Connection& connection) {
    if (connection.receiving != ReceiveMode::None) {
        engine_.cancel(connection.fd, connection.tag(Op::Receive));
    } else if (!connection.input_ended) {
        receive(connection, ReceiveMode::Now, Readiness::Likely);
    }
}

void Connections::close(Connection& connection) {
    if (connection.state == State::Closed) {
        return;
    }
    if (connection.receiving != ReceiveMode::None) {
        engine_.cancel(connection.fd, connection.tag(Op::Receive));
    }
    if (connection.is_sending()) {
        engine_.cancel(connection.fd, connection.tag(Op::Send));
    }
    engine_.close(connection.fd, connection.tag(Op::Close));
    forget(connection);
    connection.state = State::Closed;
    touch(connection);
}

void Connections::forget(Connection& connection) {
    exchange_.forget_deadline(connection);
    if (connection.placed) {
        crew_.balancer.remove(index_);
    }
    count_closed();
}

void Connections::count_closed() {
    crew_.connections.fetch_sub(1, std::memory_order_relaxed);
    stats_.connections_closed.add();
    stats_.connections_open.subtract(1);
    if (crew_.anyone_waits.load(std::memory_order_relaxed)) {
        crew_.wake_waiting();
    }
}

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// Following a plan.

#include "support/conversation.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace hello::test {
namespace {

/// The Date is patched once per turn of the server's loop from a clock that lags by one tick.
constexpr std::time_t kDateLagSeconds = 1;

ClientOptions client_options(const ConversationPlan& plan) {
    ClientOptions options;
    options.receive_buffer_bytes = plan.receive_buffer_bytes;
    return options;
}

}  // namespace

Conversation::Conversation(std::uint16_t port, ConversationPlan plan)
    : plan_(std::move(plan)), client_(port, client_options(plan_)) {}

short Conversation::events() const {
    const bool sends = may_send() && Clock::now() >= next_piece_;
    return static_cast<short>(fin_seen_ ? 0 : (sends ? POLLIN | POLLOUT : POLLIN));
}

Clock::time_point Conversation::wakes_at() const {
    Clock::time_point at = start_ + RawClient::kLimit;
    if (plan_.ending == Ending::Abandon) {
        at = std::min(at, std::max(start_ + plan_.stay, Clock::now() + Milliseconds(1)));
    }
    if (complete_at_ != Clock::time_point::max()) {
        at = std::min(at, complete_at_ + plan_.stay);
    }
    return may_send() ? std::min(at, std::max(next_piece_, Clock::now())) : at;
}

bool Conversation::may_send() const {
    return !gone_ && step_ < plan_.steps.size() &&
           plan_.steps[step_].answers_before <= next_answer_;
}

bool Conversation::must_abandon() const {
    const bool sent = octets_sent_ >= plan_.abandon_after_sent || gone_ || fin_seen_;
    return plan_.ending == Ending::Abandon && sent && Clock::now() >= start_ + plan_.stay;
}

bool Conversation::advance() {
    if (must_abandon()) {
        leave();
        return false;
    }
    while (may_send() && Clock::now() >= next_piece_) {
        const std::size_t before = octets_sent_;
        send_more();
        if (octets_sent_ == before || must_abandon()) {
            break;
        }
    }
    if (plan_.ending == Ending::HalfClose && step_ == plan_.steps.size() && !half_closed_) {
        client_.shutdown_write();
        half_closed_ = true;
    }
    receive();
    if (!over_ && is_complete()) {
        complete_at_ = std::min(complete_at_, Clock::now());
        if (plan_.ending != Ending::Idle || Clock::now() >= complete_at_ + plan_.stay) {
            leave();
        }
    }
    if (!over_ && Clock::now() >= start_ + RawClient::kLimit) {
        fail("no end in time");
    }
    return !over_;
}

/// One piece, or what the socket takes of it.
void Conversation::send_more() {
    const ConversationPlan::Step& step = plan_.steps[step_];
    const std::string_view rest = std::string_view(step.octets).substr(step_sent_);
    const std::string_view piece = rest.substr(0, plan_.piece_bytes);
    const ssize_t count = ::send(client_.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (count < 0) {
        gone_ = errno != EAGAIN && errno != EINTR;
        return;
    }
    octets_sent_ += static_cast<std::size_t>(count);
    step_sent_ += static_cast<std::size_t>(count);
    if (step_sent_ == step.octets.size()) {
        ++step_;
        step_sent_ = 0;
    } else if (plan_.piece_pause.count() > 0) {
        next_piece_ = Clock::now() + plan_.piece_pause;
    }
}

void Conversation::receive() {
    std::array<char, 16384> octets;
    while (!over_ && !fin_seen_) {
        const ssize_t count = recv(client_.fd(), octets.data(), octets.size(), 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (count < 0) {
            return fail(std::string("receiving: ") + std::strerror(errno));
        }
        if (count == 0) {
            fin_seen_ = true;
            return check_end();
        }
        octets_received_ += static_cast<std::size_t>(count);
        received_.append(octets.data(), static_cast<std::size_t>(count));
        check_received();
    }
}

/// Takes whole answers off what was received; what is left must be the beginning of the next.
void Conversation::check_received() {
    using Match = AnswerPattern::Match;
    std::string_view rest = received_;
    while (!rest.empty()) {
        if (next_answer_ == plan_.answers.size()) {
            return fail("octets that nobody asked for");
        }
        const ConversationPlan::Expected& due = plan_.answers[next_answer_];
        const Match match = due.pattern->match(rest);
        if (match == Match::Partly) {
            break;
        }
        if (match == Match::No && !due.optional) {
            return fail("not the answer that is due, [" + due.pattern->name() + "]");
        }
        ++next_answer_;
        if (match == Match::No) {
            continue;
        }
        if (!due.pattern->interim()) {
            ++answered_;
            if (!due.pattern->is_dated_within(rest, start_second_ - kDateLagSeconds,
                                              std::time(nullptr))) {
                return fail("an answer of another time");
            }
        }
        rest.remove_prefix(due.pattern->size());
    }
    received_.erase(0, received_.size() - rest.size());
}

/// The server's FIN: only after everything that was due, and only where one is due.
void Conversation::check_end() {
    if (next_answer_ != plan_.answers.size() || !received_.empty()) {
        fail("FIN before all answers");
    } else if (!plan_.server_closes && !half_closed_) {
        fail("FIN though the connection persists");
    }
}

bool Conversation::is_complete() const {
    if (plan_.server_closes || half_closed_) {
        return fin_seen_;
    }
    return plan_.ending != Ending::Abandon && step_ == plan_.steps.size() &&
           next_answer_ == plan_.answers.size();
}

void Conversation::leave() {
    over_ = true;
    if (plan_.leaving == Leaving::Reset) {
        client_.reset();
    } else {
        client_.close();
    }
}

void Conversation::fail(const std::string& what) {
    fault_ = what + " after " + std::to_string(next_answer_) + " answers and " +
             std::to_string(octets_sent_) + " octets sent; " + plan_.summary().substr(0, 1000) +
             "; received: " + received_.substr(0, 500);
    over_ = true;
    client_.close();
}

}  // namespace hello::test

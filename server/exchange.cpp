// SPDX-License-Identifier: MIT
//
// Octets in, octets out: see exchange.h.

#include "exchange.h"

#include <algorithm>
#include <ctime>

namespace hello {
namespace {

/// The coarse clocks cost a few nanoseconds and lag by at most one kernel tick (4 ms).
std::int64_t read_clock_s(clockid_t clock) noexcept {
    timespec now{};
    static_cast<void>(clock_gettime(clock, &now));  // can't fail: the clock exists
    return now.tv_sec;
}

}  // namespace

Exchange::Exchange(const ServerConfig& config, ConnectionPool& pool, WorkerStats& stats)
    : pool_(pool),
      stats_(stats),
      images_(config.body, config.server_header),
      outbox_(kOutboxSize),
      timeouts_s_{0,
                  config.timeouts.idle_s,
                  config.timeouts.header_s,
                  config.timeouts.body_s,
                  config.timeouts.write_s,
                  kLingerSeconds},
      queues_{Queue{Links{&pool}}, Queue{Links{&pool}}, Queue{Links{&pool}},
              Queue{Links{&pool}}, Queue{Links{&pool}}, Queue{Links{&pool}}} {
    begin_sends();
}

void Exchange::begin_sends() noexcept {
    images_.refresh(read_clock_s(CLOCK_REALTIME_COARSE));
    now_s_ = static_cast<std::uint32_t>(read_clock_s(CLOCK_MONOTONIC_COARSE));
    outbox_used_ = 0;
}

void Exchange::feed(Connection& connection, std::string_view octets) noexcept {
    using Verdict = HttpSession::Verdict;
    stats_.bytes_received.add(octets.size());
    if (connection.verdict != Verdict::Read) {  // nothing may follow a request that says close
        connection.verdict = Verdict::Linger;
        return;
    }
    const std::size_t owed = connection.answers.size();
    connection.verdict = connection.session.feed(octets, connection.answers);
    if (connection.verdict == Verdict::Close && connection.input_left) {
        connection.verdict = Verdict::Linger;  // closing now would reset the client
    }
    connection.progressed = connection.progressed || connection.answers.size() != owed;
}

void Exchange::end_input(Connection& connection) noexcept {
    connection.input_ended = true;
    connection.input_left = false;
    connection.verdict = HttpSession::Verdict::Close;
}

std::string_view Exchange::compose(Connection& connection) noexcept {
    AnswerQueue& answers = connection.answers;
    if (answers.size() > 1) {
        const std::string_view several = gather(answers);
        if (!several.empty()) {
            return several;
        }
    }
    const Answer answer = answers.front();
    answers.pop();
    count(answer);
    return images_.image(answer);
}

/// Copies as many responses as go into one send; none where the outbox of this turn is full.
std::string_view Exchange::gather(AnswerQueue& answers) noexcept {
    char* const begin = outbox_.data() + outbox_used_;
    const std::size_t room = std::min(kSendSizeMax, kOutboxSize - outbox_used_);
    std::size_t size = 0;
    while (!answers.empty()) {
        const Answer answer = answers.front();
        const std::string_view image = images_.image(answer);
        if (size + image.size() > room) {
            break;
        }
        image.copy(begin + size, image.size());
        size += image.size();
        answers.pop();
        count(answer);
    }
    outbox_used_ += size;
    return {begin, size};
}

void Exchange::count(Answer answer) noexcept {
    if (answer.status == Status::Continue) {
        return;
    }
    stats_.requests.add();
    if (answer.status == Status::Ok) {
        stats_.responses_200.add();
    } else if (answer.status < Status::NotImplemented) {
        stats_.responses_4xx.add();
    } else {
        stats_.responses_5xx.add();
    }
}

Waiting Exchange::what_it_waits_for(const Connection& connection) noexcept {
    switch (connection.state) {
        case Connection::State::Lingering: return Waiting::ForLinger;
        case Connection::State::Closed: return Waiting::Forever;
        case Connection::State::Open: break;
    }
    if (connection.is_sending()) {
        return Waiting::ForWrite;
    }
    switch (connection.session.phase()) {
        case HttpSession::Phase::Head: return Waiting::ForHead;
        case HttpSession::Phase::Body: return Waiting::ForBody;
        case HttpSession::Phase::Idle:
        case HttpSession::Phase::Finished: break;
    }
    return Waiting::ForRequest;
}

/// A timeout runs from the moment the wait began: octets that complete nothing don't extend it.
void Exchange::update_deadline(Connection& connection) noexcept {
    const Waiting waiting = what_it_waits_for(connection);
    const std::uint32_t timeout_s = timeouts_s_[static_cast<std::size_t>(waiting)];
    const std::uint32_t due_s = now_s_ + timeout_s + 1;  // now_s_ is rounded down
    const bool restarts = connection.progressed && connection.deadline.due_s != due_s;
    connection.progressed = false;
    if (waiting == connection.waiting && !restarts) {
        return;
    }
    forget_deadline(connection);
    if (timeout_s != 0) {
        connection.waiting = waiting;
        queues_[static_cast<std::size_t>(waiting)].append(connection.slot, due_s);
    }
}

void Exchange::forget_deadline(Connection& connection) noexcept {
    if (connection.waiting != Waiting::Forever) {
        queues_[static_cast<std::size_t>(connection.waiting)].remove(connection.slot);
        connection.waiting = Waiting::Forever;
    }
}

/// What happened since the deadline was set, in the same batch of completions even, counts.
Connection* Exchange::next_due(Waiting kind) noexcept {
    std::uint32_t slot = queues_[static_cast<std::size_t>(kind)].due(now_s_);
    while (slot != kNoSlot && (pool_[slot].progressed || what_it_waits_for(pool_[slot]) != kind)) {
        update_deadline(pool_[slot]);
        slot = queues_[static_cast<std::size_t>(kind)].due(now_s_);
    }
    if (slot == kNoSlot) {
        return nullptr;
    }
    switch (kind) {
        case Waiting::ForRequest: stats_.timeouts_idle.add(); break;
        case Waiting::ForHead: stats_.timeouts_header.add(); break;
        case Waiting::ForBody: stats_.timeouts_body.add(); break;
        case Waiting::ForWrite: stats_.timeouts_write.add(); break;
        case Waiting::ForLinger: stats_.timeouts_linger.add(); break;
        case Waiting::Forever: break;
    }
    forget_deadline(pool_[slot]);
    return &pool_[slot];
}

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// Exchange: what happens between a connection's octets in and its octets out, whatever engine
// moves them: parsing, owing, composing, deadlines, counting. It makes no system call but to
// read the clock.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "config.h"
#include "connection.h"
#include "deadline_queue.h"
#include "response.h"
#include "stats.h"

namespace hello {

class Exchange {
public:
    /// All must outlive this.
    Exchange(const ServerConfig& config, ConnectionPool& pool, WorkerStats& stats);

    /// Reads the clocks and brings Date up to date; once per turn, after the turn's completions
    /// and before its sends, so that no response changes under a send that is half done.
    void begin_sends() noexcept;

    /// Octets that the client sent.
    void feed(Connection& connection, std::string_view octets) noexcept;

    /// The client's FIN: what is owed is still sent, then the connection closes.
    void end_input(Connection& connection) noexcept;

    /// Takes answers off what is owed, as many as go into one send, and returns their octets.
    /// They are valid until begin_sends(). Precondition: something is owed.
    [[nodiscard]] std::string_view compose(Connection& connection) noexcept;

    /// Whether the client owes us the reading of so much that we stop reading from it.
    [[nodiscard]] static bool owes_too_much(const Connection& connection) noexcept {
        return connection.answers.size() > kAnswersOwedMax;
    }

    /// Starts, keeps or ends the timeout that fits what `connection` waits for now.
    void update_deadline(Connection& connection) noexcept;
    void forget_deadline(Connection& connection) noexcept;

    /// Calls `on_due(Connection&)` for each connection whose time is over, having counted it.
    /// `on_due` must see to it that the connection waits for something else.
    template <typename OnDue>
    void expire(OnDue on_due) {
        for (std::size_t kind = 1; kind < kWaitingCount; ++kind) {
            while (Connection* connection = next_due(static_cast<Waiting>(kind))) {
                on_due(*connection);
            }
        }
    }

private:
    struct Links {
        ConnectionPool* pool;
        DeadlineLink& operator()(std::uint32_t slot) const noexcept {
            return (*pool)[slot].deadline;
        }
    };
    using Queue = DeadlineQueue<Links>;

    /// "Answers owed to a client that doesn't read": what it may pipeline beyond that waits.
    static constexpr std::size_t kAnswersOwedMax = 1024;
    static constexpr std::size_t kOutboxSize = 256 * 1024;
    static constexpr std::size_t kSendSizeMax = 64 * 1024;
    static constexpr std::uint32_t kLingerSeconds = 1;  ///< at least; at most one more

    [[nodiscard]] Connection* next_due(Waiting kind) noexcept;
    [[nodiscard]] static Waiting what_it_waits_for(const Connection& connection) noexcept;
    [[nodiscard]] std::string_view gather(AnswerQueue& answers) noexcept;
    void count(Answer answer) noexcept;

    ConnectionPool& pool_;
    WorkerStats& stats_;
    ResponseImages images_;
    std::vector<char> outbox_;  ///< pipelined responses, put together for one send
    std::size_t outbox_used_ = 0;
    std::uint32_t now_s_ = 0;  ///< monotonic
    std::array<std::uint32_t, kWaitingCount> timeouts_s_;
    std::array<Queue, kWaitingCount> queues_;
};

}  // namespace hello

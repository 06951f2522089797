// SPDX-License-Identifier: MIT
//
// Conversation: one client that follows a plan on a socket of its own and never blocks, so that one
// thread leads many. Whatever comes is compared with what is due at once; the first difference is
// the fault, and ends it.

#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "support/conversation_plan.h"
#include "support/raw_client.h"
#include "support/time_scale.h"

namespace hello::test {

class Conversation {
public:
    /// Throws std::system_error when it can't connect.
    Conversation(std::uint16_t port, ConversationPlan plan);

    /// Does what can be done now; false once it is over.
    bool advance();

    [[nodiscard]] int fd() const { return client_.fd(); }
    /// For poll().
    [[nodiscard]] short events() const;
    /// When to call advance() though nothing happens on the socket.
    [[nodiscard]] Clock::time_point wakes_at() const;

    /// What went wrong; empty when nothing did.
    [[nodiscard]] const std::string& fault() const { return fault_; }
    [[nodiscard]] const ConversationPlan& plan() const { return plan_; }
    /// Final answers that came and were right.
    [[nodiscard]] std::size_t answered() const { return answered_; }
    [[nodiscard]] std::size_t octets_received() const { return octets_received_; }

private:
    [[nodiscard]] bool may_send() const;
    [[nodiscard]] bool must_abandon() const;
    [[nodiscard]] bool is_complete() const;
    void send_more();
    void receive();
    void check_received();
    void check_end();
    void leave();
    void fail(const std::string& what);

    ConversationPlan plan_;
    RawClient client_;
    Clock::time_point start_ = Clock::now();
    std::time_t start_second_ = std::time(nullptr);
    Clock::time_point next_piece_ = start_;
    Clock::time_point complete_at_ = Clock::time_point::max();

    std::size_t step_ = 0;         // the one that is being sent
    std::size_t step_sent_ = 0;    // octets of it
    std::size_t octets_sent_ = 0;  // of all steps
    bool half_closed_ = false;
    bool gone_ = false;  // the server, as seen by a failed send

    std::string received_;  // not yet compared in full
    std::size_t next_answer_ = 0;
    std::size_t answered_ = 0;
    std::size_t octets_received_ = 0;
    bool fin_seen_ = false;
    bool over_ = false;
    std::string fault_;
};

}  // namespace hello::test

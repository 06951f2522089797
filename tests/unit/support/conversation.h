// SPDX-License-Identifier: MIT
//
// Conversation: one HttpSession fed in pieces, each ending at a guard page, and everything that
// came out of it. What a test compares is a plain value: answers and the state at the end.

#pragma once

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "answer.h"
#include "answer_text.h"
#include "guard_page.h"
#include "http_session.h"

namespace hello::test {

/// Everything that must not depend on how the octets were split.
struct Outcome {
    std::vector<Answer> answers;
    HttpSession::Phase phase = HttpSession::Phase::Idle;

    bool operator==(const Outcome&) const = default;
};

/// The same without interim answers, which may be spared.
[[nodiscard]] inline Outcome without_interim(Outcome outcome) {
    std::erase_if(outcome.answers,
                  [](const Answer& answer) { return answer.status == Status::Continue; });
    return outcome;
}

class Conversation {
public:
    using Phase = HttpSession::Phase;
    using Verdict = HttpSession::Verdict;

    Conversation(GuardedCopy& memory, const HttpLimits& limits)
        : memory_(memory), session_(limits) {}

    Verdict feed(std::string_view octets) {
        return take(session_.feed(memory_.place(octets), queue_));
    }
    Verdict expire() { return take(session_.expire(queue_)); }
    void finish_soon() { session_.finish_soon(); }

    /// Feeds `octets` in pieces of `size`.
    void feed_pieces(std::string_view octets, std::size_t size) {
        for (std::size_t at = 0; at < octets.size(); at += size) {
            feed(octets.substr(at, size));
        }
    }

    [[nodiscard]] Phase phase() const { return session_.phase(); }
    [[nodiscard]] const std::vector<Answer>& answers() const { return answers_; }
    [[nodiscard]] Outcome outcome() const { return {answers_, session_.phase()}; }
    /// What the session broke of its own rules; empty where nothing.
    [[nodiscard]] const std::string& broken_rule() const { return broken_rule_; }

private:
    Verdict take(Verdict verdict) {
        for (; !queue_.empty(); queue_.pop()) {
            if (closed_) {
                broken_rule_ = "an answer follows the last one";
            }
            answers_.push_back(queue_.front());
            closed_ = queue_.front().persistence == Persistence::Close;
        }
        const bool finished = session_.phase() == Phase::Finished;
        if (finished != (verdict != Verdict::Read)) {
            broken_rule_ = "verdict and phase disagree";
        }
        if (closed_ && !finished) {
            broken_rule_ = "the last answer is given, the session not finished";
        }
        return verdict;
    }

    GuardedCopy& memory_;
    HttpSession session_;
    AnswerQueue queue_;
    std::vector<Answer> answers_;
    bool closed_ = false;
    std::string broken_rule_;
};

[[nodiscard]] inline std::string to_string(const Outcome& outcome) {
    static constexpr std::array<std::string_view, 4> kPhases{"Idle", "Head", "Body", "Finished"};
    std::string text = "[";
    for (const Answer& answer : outcome.answers) {
        text += (text.size() > 1 ? ", " : "") + to_string(answer);
    }
    return text + "] " + std::string(kPhases.at(static_cast<std::size_t>(outcome.phase)));
}

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
    return out << to_string(outcome);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// AnswerPattern: what a request must get from a server with default options, octet for octet; only
// the Date is free, and it must be the current second. Written down here, not taken from the
// server, so that a change of a single octet is noticed.

#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

namespace hello::test {

enum class AnswerContent { Full, HeadOnly };

class AnswerPattern {
public:
    enum class Match { No, Partly, Whole };

    /// `connection`: the value of the Connection field; empty when there must be none.
    AnswerPattern(int status, std::string_view connection, AnswerContent content);

    /// Whether the octets begin with this answer, or are a beginning of it.
    [[nodiscard]] Match match(std::string_view octets) const;
    /// Whether the Date of a whole answer is a second within these bounds, both included.
    [[nodiscard]] bool is_dated_within(std::string_view octets,
                                       std::time_t earliest,
                                       std::time_t latest) const;

    [[nodiscard]] std::size_t size() const { return text_.size(); }
    [[nodiscard]] bool interim() const { return interim_; }
    /// "200 close head": for messages.
    [[nodiscard]] const std::string& name() const { return name_; }

private:
    std::string text_;  // with a placeholder for the date
    std::size_t date_begin_ = 0;
    std::size_t date_end_ = 0;
    bool interim_ = false;
    std::string name_;
};

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// HttpSession: the protocol of one connection. Octets in, answers and a verdict out; no I/O, no
// clock, no allocation per request. However the octets are split into calls, the answers and the
// final verdict are the same (only an interim 100 may be spared where the content came along).
// Nothing follows an answer that says Connection: close.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "answer.h"
#include "request_parser.h"

namespace hello {

class HttpSession {
public:
    /// Where in a request the connection stands; decides which timeout runs.
    enum class Phase : std::uint8_t {
        Idle,      ///< no octet of the next request yet
        Head,      ///< empty lines, request line or fields: incomplete
        Body,      ///< content incomplete
        Finished,  ///< the last answer was given; further input means nothing
    };

    enum class Verdict : std::uint8_t {
        Read,    ///< go on reading
        Close,   ///< send what is owed, then close: all input was used
        Linger,  ///< send what is owed, FIN, discard what still comes (RFC 9112 section 9.6)
    };

    /// `limits` must outlive the session.
    explicit HttpSession(const HttpLimits& limits) noexcept : parser_(limits), limits_(limits) {}
    explicit HttpSession(const HttpLimits&&) = delete;

    /// Takes the next octets of the connection and appends the answers that became due.
    /// After a verdict other than Read, further octets are ignored.
    [[nodiscard]] Verdict feed(std::string_view octets, AnswerQueue& answers) noexcept;

    /// The time for the current phase is over. A request that has begun is answered 408
    /// (RFC 9110 section 15.5.9); an idle connection gets nothing, for it asked nothing.
    [[nodiscard]] Verdict expire(AnswerQueue& answers) noexcept;

    /// From now on the next answer says Connection: close and is the last.
    void finish_soon() noexcept { finishing_ = true; }

    [[nodiscard]] Phase phase() const noexcept { return phase_; }

    /// Whether nothing of a request is there, empty lines before it aside.
    [[nodiscard]] bool awaits_request() const noexcept {
        return !in_request_ && phase_ != Phase::Finished;
    }

private:
    [[nodiscard]] std::string_view skip_blank_lines(std::string_view octets) noexcept;
    [[nodiscard]] std::string_view read_request(std::string_view octets,
                                                AnswerQueue& answers) noexcept;
    void answer_request(AnswerQueue& answers) noexcept;
    void refuse(AnswerQueue& answers) noexcept;
    void expect_content(AnswerQueue& answers) noexcept;

    RequestParser parser_;
    const HttpLimits& limits_;
    std::size_t blank_bytes_ = 0;  ///< of empty lines before the request
    Phase phase_ = Phase::Idle;
    bool in_request_ = false;  ///< from the first octet that is not of an empty line
    bool continued_ = false;   ///< 100 was said, or spared, for this request
    bool finishing_ = false;
};

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// HttpSession: see http_session.h.

#include "http_session.h"

namespace hello {

HttpSession::Verdict HttpSession::feed(std::string_view octets, AnswerQueue& answers) noexcept {
    while (!octets.empty() && phase_ != Phase::Finished) {
        octets = in_request_ ? read_request(octets, answers) : skip_blank_lines(octets);
        if (parser_.request().rejected != Status::Ok) {
            refuse(answers);
            return Verdict::Linger;
        }
    }
    if (phase_ == Phase::Finished) {
        return octets.empty() ? Verdict::Close : Verdict::Linger;
    }
    if (phase_ == Phase::Body && !continued_) {
        expect_content(answers);
    }
    return Verdict::Read;
}

HttpSession::Verdict HttpSession::expire(AnswerQueue& answers) noexcept {
    if (in_request_ && phase_ != Phase::Finished) {
        parser_.reject(Status::RequestTimeout);
        refuse(answers);
        return Verdict::Linger;
    }
    phase_ = Phase::Finished;
    return Verdict::Close;
}

/// Empty lines before a request, CRLF each, are ignored within reason (RFC 9112 section 2.2).
std::string_view HttpSession::skip_blank_lines(std::string_view octets) noexcept {
    for (; !octets.empty() && octets.front() == "\r\n"[blank_bytes_ % 2]; ++blank_bytes_) {
        octets.remove_prefix(1);
    }
    if (phase_ == Phase::Idle) {
        parser_.begin();
        continued_ = false;
        phase_ = Phase::Head;
    }
    const bool bare = !octets.empty() && (blank_bytes_ % 2 != 0 || octets.front() == '\n');
    if (bare || blank_bytes_ > limits_.blank_bytes_max) {
        parser_.reject(Status::BadRequest);
    } else if (!octets.empty()) {
        blank_bytes_ = 0;
        in_request_ = true;
    }
    return octets;
}

std::string_view HttpSession::read_request(std::string_view octets, AnswerQueue& answers) noexcept {
    octets = parser_.read(octets);
    const Request& request = parser_.request();
    if (request.head_complete) {
        phase_ = Phase::Body;
    }
    if (request.complete && request.rejected == Status::Ok) {
        answer_request(answers);
    }
    return octets;
}

/// RFC 9112 section 9.3: close wins; 1.1 persists by default, 1.0 where it was asked.
void HttpSession::answer_request(AnswerQueue& answers) noexcept {
    const Request& request = parser_.request();
    const bool old = parser_.is_http_1_0();
    const bool persists = !request.close_asked && !finishing_ && (!old || request.keep_alive_asked);
    Persistence persistence = Persistence::Close;
    if (persists) {
        persistence = old ? Persistence::KeepAlive : Persistence::Implied;
    }
    const bool head_only = parser_.is_head_request();
    answers.push({Status::Ok, persistence, head_only ? Content::HeadOnly : Content::Full});
    in_request_ = false;
    phase_ = persists ? Phase::Idle : Phase::Finished;
}

void HttpSession::refuse(AnswerQueue& answers) noexcept {
    const bool head_only = parser_.is_head_request();
    answers.push({parser_.request().rejected, Persistence::Close,
                  head_only ? Content::HeadOnly : Content::Full});
    phase_ = Phase::Finished;
}

/// RFC 9110 section 10.1.1: say so at once, but not where the content has come along.
void HttpSession::expect_content(AnswerQueue& answers) noexcept {
    continued_ = true;
    if (parser_.request().continue_expected && !parser_.request().content_begun) {
        answers.push({Status::Continue, Persistence::Implied, Content::Full});
    }
}

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// HttpSession: the protocol of one connection. Octets in, answers and a verdict out; no I/O, no
// clock, no allocation per request. However the octets are split into calls, the answers and the
// final verdict are the same (only an interim 100 may be spared where the content came along).
//
// llhttp parses; what it leaves to its user is decided here, each decision with its section of
// RFC 9110 or RFC 9112: Host, limits, versions, transfer codings, persistence, expectations.
// Nothing follows an answer that says Connection: close.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <llhttp.h>

#include "answer.h"

namespace hello {

/// Octets, except where a member says otherwise.
struct HttpLimits {
    std::size_t head_bytes_max = 16 * 1024;   ///< request line and fields; beyond: 431
    std::size_t target_bytes_max = 8 * 1024;  ///< request target; beyond: 414
    std::size_t field_count_max = 128;        ///< header fields; beyond: 431
    std::size_t chunk_bytes_max = 16 * 1024;  ///< chunk extensions and trailers; beyond: 431
    std::size_t blank_bytes_max = 1024;       ///< empty lines before a request; beyond: 400
};

class HttpSession {
public:
    /// Where in a message the connection stands; decides which timeout runs.
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
    explicit HttpSession(const HttpLimits& limits) noexcept;
    HttpSession(const HttpSession&) = delete;  // llhttp points back at the session
    HttpSession& operator=(const HttpSession&) = delete;

    /// Takes the next octets of the connection and appends the answers that became due.
    /// After a verdict other than Read, further octets are ignored.
    [[nodiscard]] Verdict feed(std::string_view octets, AnswerQueue& answers) noexcept;

    /// The time for the current phase is over. A request that has begun is answered 408
    /// (RFC 9110 section 15.5.9); an idle connection gets nothing, for it asked nothing.
    [[nodiscard]] Verdict expire(AnswerQueue& answers) noexcept;

    /// From now on the next answer says Connection: close and is the last.
    void finish_soon() noexcept { finishing_ = true; }

    [[nodiscard]] Phase phase() const noexcept { return phase_; }

private:
    struct Callbacks;  // the functions that llhttp calls

    enum class Field : std::uint8_t { Other, Host, Connection, Expect, TransferEncoding };
    static constexpr std::size_t kProtocolSize = 5;  // "HTTP/"

    [[nodiscard]] std::string_view skip_blank_lines(std::string_view octets) noexcept;
    void begin_message() noexcept;
    [[nodiscard]] std::size_t allowance() const noexcept;
    [[nodiscard]] std::string_view parse(std::string_view octets) noexcept;
    void remember_tail(std::string_view octets) noexcept;
    void check_limits() noexcept;
    void answer_request(AnswerQueue& answers) noexcept;
    [[nodiscard]] Verdict refuse(AnswerQueue& answers) noexcept;

    int reject(Status status) noexcept;
    void reject_error(llhttp_errno_t error) noexcept;
    [[nodiscard]] std::string_view judge_method(std::string_view octets) noexcept;
    [[nodiscard]] bool is_http(const char* version) const noexcept;
    [[nodiscard]] int check_head() noexcept;
    [[nodiscard]] int check_transfer_encoding() noexcept;
    void classify_field() noexcept;
    void take_value() noexcept;

    /// What is known of the request being read; a new one starts from these defaults.
    struct Message {
        std::size_t bytes = 0;         ///< of the message so far
        std::size_t target_bytes = 0;  ///< of the request target so far
        std::size_t chunk_bytes = 0;   ///< of chunk extensions and trailers so far
        std::uint16_t field_count = 0;
        std::uint16_t host_count = 0;
        std::uint16_t coding_count = 0;  ///< transfer codings named
        Status rejected = Status::Ok;    ///< not Ok: the request is refused with this
        bool method_unknown = false;     ///< llhttp gave up; the rest of the method is judged here
        bool target_begun = false;
        bool target_complete = false;
        bool target_is_asterisk = false;
        bool version_begun = false;
        bool host_valid = true;
        bool close_asked = false;
        bool keep_alive_asked = false;
        bool continue_expected = false;
        bool transfer_encoding_given = false;
        bool foreign_coding = false;  ///< a transfer coding other than chunked
        bool chunked_is_last = false;
        bool content_begun = false;
        bool complete = false;
        bool persistent = false;  ///< the connection stays open after the answer
    };

    llhttp_t parser_;
    const HttpLimits* limits_;
    const char* piece_ = nullptr;  ///< what llhttp is looking at
    Message message_;
    std::size_t blank_bytes_ = 0;  ///< of empty lines before the message
    Phase phase_ = Phase::Idle;
    bool in_message_ = false;  ///< from the first octet that is not of an empty line
    bool finishing_ = false;
    std::array<char, kProtocolSize> tail_{};  ///< the last octets before piece_

    Field field_ = Field::Other;  ///< whose value comes
    std::string name_;            ///< of the field, as far as it may matter
    std::string value_;           ///< of the field, if it matters
};

}  // namespace hello

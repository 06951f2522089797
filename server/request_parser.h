// SPDX-License-Identifier: MIT
//
// RequestParser: one HTTP/1.x request at a time, by llhttp and by the rules that llhttp leaves to
// its user, each with its section of RFC 9110 or RFC 9112. What it finds does not depend on how
// the octets are split into calls: not even where a limit is met.

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

/// What is known of a request, from its first octet on.
struct Request {
    Status rejected = Status::Ok;    ///< not Ok: it is refused with this, and nothing follows
    bool complete = false;           ///< head and content
    bool head_complete = false;      ///< and content follows, where it is not complete
    bool method_known = false;       ///< the parser's method is this request's
    bool close_asked = false;        ///< by Connection
    bool keep_alive_asked = false;   ///< by Connection
    bool continue_expected = false;  ///< by Expect, from HTTP/1.1
    bool content_begun = false;
};

class RequestParser {
public:
    /// `limits` must outlive this.
    explicit RequestParser(const HttpLimits& limits) noexcept;
    RequestParser(const RequestParser&) = delete;  // llhttp points back at it
    RequestParser& operator=(const RequestParser&) = delete;

    /// Forgets the request, which is complete, and expects the next one.
    void begin() noexcept;

    /// Reads up to the end of the request, or to where it is rejected; returns the octets that
    /// are not needed for it. The first octet of a request is no CR or LF.
    [[nodiscard]] std::string_view read(std::string_view octets) noexcept;

    [[nodiscard]] const Request& request() const noexcept { return request_; }
    [[nodiscard]] bool is_http_1_0() const noexcept { return llhttp_.http_minor == 0; }
    [[nodiscard]] bool is_head_request() const noexcept {
        return request_.method_known && !progress_.method_unknown && llhttp_.method == HTTP_HEAD;
    }

    /// Ends the request with `status`. Returns what makes llhttp stop.
    int reject(Status status) noexcept;

private:
    enum class Field : std::uint8_t { Other, Host, Connection, Expect, TransferEncoding };
    static constexpr std::size_t kProtocolSize = 5;  // "HTTP/"

    /// How far the request has come, in octets unless said otherwise.
    struct Progress {
        std::size_t bytes = 0;         ///< of the request
        std::size_t target_bytes = 0;  ///< of the request target
        std::size_t head_bytes = 0;    ///< of the whole head, once it is complete
        std::size_t plain_bytes = 0;   ///< of content and of the least framing it needs
        std::uint16_t field_count = 0;
        std::uint16_t host_count = 0;
        std::uint16_t coding_count = 0;  ///< transfer codings
        bool method_unknown = false;     ///< to llhttp; the rest of the method is judged here
        bool target_complete = false;
        bool target_is_asterisk = false;
        bool version_begun = false;
        bool host_valid = true;
        bool transfer_encoding_given = false;
        bool foreign_coding = false;  ///< a transfer coding other than chunked
        bool chunked_is_last = false;
    };

    // What llhttp calls; each returns 0 to go on.
    int on_method_complete() noexcept;
    int on_url(std::string_view octets) noexcept;
    int on_url_complete() noexcept;
    int on_version(std::string_view octets) noexcept;
    int on_header_field(std::string_view octets) noexcept;
    int on_header_field_complete() noexcept;
    int on_header_value(std::string_view octets) noexcept;
    int on_header_value_complete() noexcept;
    int on_headers_complete() noexcept;
    int on_body(std::string_view octets) noexcept;
    int on_chunk_header() noexcept;
    int on_message_complete() noexcept;
    template <auto Handler>
    static int event(llhttp_t* llhttp) noexcept {
        return (static_cast<RequestParser*>(llhttp->data)->*Handler)();
    }
    template <auto Handler>
    static int span(llhttp_t* llhttp, const char* at, std::size_t size) noexcept {
        return (static_cast<RequestParser*>(llhttp->data)->*Handler)({at, size});
    }
    static const llhttp_settings_t kSettings;
    static llhttp_settings_t make_settings() noexcept;

    [[nodiscard]] std::size_t allowance() const noexcept;
    void check_limits(std::string_view octets) noexcept;
    void remember_tail(std::string_view octets) noexcept;
    [[nodiscard]] std::string_view judge_method(std::string_view octets) noexcept;
    [[nodiscard]] std::size_t method_size() const noexcept;
    [[nodiscard]] std::size_t offset(std::string_view octets) const noexcept;
    [[nodiscard]] bool is_http(std::string_view version) const noexcept;
    [[nodiscard]] Status status_of(llhttp_errno_t error) const noexcept;
    int check_transfer_encoding() noexcept;

    llhttp_t llhttp_;
    const HttpLimits& limits_;
    Request request_;
    Progress progress_;
    const char* piece_ = nullptr;             ///< what llhttp is looking at
    std::array<char, kProtocolSize> tail_{};  ///< the last octets before it
    Field field_ = Field::Other;              ///< whose value comes
    std::string name_;                        ///< of the field, as far as it may matter
    std::string value_;                       ///< of the field, if it matters
};

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// HttpSession: see http_session.h. Each request is one stretch of llhttp_execute() calls: llhttp
// is paused when a message is complete, so the answer is decided between messages, never inside.

#include "http_session.h"

#include <algorithm>
#include <cstring>

#include "field.h"

namespace hello {
namespace {

/// One more than the longest name that decides something: "transfer-encoding".
constexpr std::size_t kNameBytesKept = 18;

}  // namespace

/// The only way llhttp talks to us. Each returns 0 to go on; a rejection is stored first.
struct HttpSession::Callbacks {
    static HttpSession& session(llhttp_t* parser) noexcept {
        return *static_cast<HttpSession*>(parser->data);
    }

    static int on_url(llhttp_t* parser, const char* at, std::size_t size) noexcept {
        HttpSession& self = session(parser);
        Message& message = self.message_;
        if (!message.target_begun) {
            message.target_begun = true;
            message.target_is_asterisk = *at == '*';
        }
        message.target_bytes += size;
        // A fragment is never sent (RFC 9110 section 4.2.5; RFC 9112 section 3.2).
        return std::memchr(at, '#', size) != nullptr ? self.reject(Status::BadRequest) : 0;
    }

    static int on_url_complete(llhttp_t* parser) noexcept {
        HttpSession& self = session(parser);
        self.message_.target_complete = true;
        // "*" stands alone and belongs to OPTIONS (RFC 9112 section 3.2.4), but for the HTTP/2
        // preface, whose version is refused in a moment.
        const bool wrong = self.message_.target_is_asterisk &&
                           (self.message_.target_bytes != 1 ||
                            (parser->method != HTTP_OPTIONS && parser->method != HTTP_PRI));
        return wrong ? self.reject(Status::BadRequest) : 0;
    }

    static int on_version(llhttp_t* parser, const char* at, std::size_t) noexcept {
        HttpSession& self = session(parser);
        if (self.message_.version_begun) {
            return 0;
        }
        self.message_.version_begun = true;
        return self.is_http(at) ? 0 : self.reject(Status::BadRequest);
    }

    static int on_header_field(llhttp_t* parser, const char* at, std::size_t size) noexcept {
        HttpSession& self = session(parser);
        if (self.phase_ == Phase::Body) {  // a trailer: bounded, else ignored
            self.message_.chunk_bytes += size;
        } else {
            self.name_.append(at, std::min(size, kNameBytesKept - self.name_.size()));
        }
        return 0;
    }

    static int on_header_field_complete(llhttp_t* parser) noexcept {
        HttpSession& self = session(parser);
        if (self.phase_ == Phase::Body) {
            return 0;
        }
        if (++self.message_.field_count > self.limits_->field_count_max) {
            return self.reject(Status::HeaderFieldsTooLarge);
        }
        self.classify_field();
        return 0;
    }

    static int on_header_value(llhttp_t* parser, const char* at, std::size_t size) noexcept {
        HttpSession& self = session(parser);
        if (self.phase_ == Phase::Body) {
            self.message_.chunk_bytes += size;
        } else if (self.field_ != Field::Other) {
            self.value_.append(at, size);
        }
        return 0;
    }

    static int on_header_value_complete(llhttp_t* parser) noexcept {
        HttpSession& self = session(parser);
        if (self.phase_ != Phase::Body && self.field_ != Field::Other) {
            self.take_value();
        }
        self.name_.clear();
        return 0;
    }

    static int on_headers_complete(llhttp_t* parser) noexcept {
        HttpSession& self = session(parser);
        if (const int failed = self.check_head(); failed != 0) {
            return failed;
        }
        // No protocol is ever switched: Upgrade is ignored (RFC 9110 section 7.8).
        parser->upgrade = 0;
        if (self.message_.coding_count != 0 || parser->content_length != 0) {
            self.phase_ = Phase::Body;
        }
        return 0;
    }

    static int on_body(llhttp_t* parser, const char*, std::size_t) noexcept {
        session(parser).message_.content_begun = true;
        return 0;
    }

    static int on_chunk_extension(llhttp_t* parser, const char*, std::size_t size) noexcept {
        session(parser).message_.chunk_bytes += size;
        return 0;
    }

    static int on_message_complete(llhttp_t* parser) noexcept {
        HttpSession& self = session(parser);
        Message& message = self.message_;
        message.complete = true;
        // RFC 9112 section 9.3: close wins; 1.1 persists by default, 1.0 where it was asked.
        message.persistent = !message.close_asked && !self.finishing_ &&
                             (parser->http_minor != 0 || message.keep_alive_asked);
        return HPE_PAUSED;
    }

    static llhttp_settings_t make_settings() noexcept {
        llhttp_settings_t settings;
        llhttp_settings_init(&settings);
        settings.on_url = on_url;
        settings.on_url_complete = on_url_complete;
        settings.on_version = on_version;
        settings.on_header_field = on_header_field;
        settings.on_header_field_complete = on_header_field_complete;
        settings.on_header_value = on_header_value;
        settings.on_header_value_complete = on_header_value_complete;
        settings.on_headers_complete = on_headers_complete;
        settings.on_body = on_body;
        settings.on_chunk_extension_name = on_chunk_extension;
        settings.on_chunk_extension_value = on_chunk_extension;
        settings.on_message_complete = on_message_complete;
        return settings;
    }

    static const llhttp_settings_t kSettings;
};

const llhttp_settings_t HttpSession::Callbacks::kSettings = make_settings();

HttpSession::HttpSession(const HttpLimits& limits) noexcept : limits_(&limits) {
    llhttp_init(&parser_, HTTP_REQUEST, &Callbacks::kSettings);
    parser_.data = this;
}

HttpSession::Verdict HttpSession::feed(std::string_view octets, AnswerQueue& answers) noexcept {
    if (phase_ == Phase::Finished) {
        return Verdict::Linger;
    }
    while (!octets.empty()) {
        if (!in_message_) {
            octets = skip_blank_lines(octets);
        }
        if (in_message_) {
            octets = parse(octets);
        }
        if (message_.rejected != Status::Ok) {
            return refuse(answers);
        }
        if (message_.complete) {
            answer_request(answers);
        }
        if (phase_ == Phase::Finished) {
            return octets.empty() ? Verdict::Close : Verdict::Linger;
        }
    }
    // RFC 9110 section 10.1.1: say so at once, but not where the content has come along.
    if (phase_ == Phase::Body && message_.continue_expected) {
        message_.continue_expected = false;
        if (!message_.content_begun) {
            answers.push({Status::Continue, Persistence::Implied, Content::Full});
        }
    }
    return Verdict::Read;
}

HttpSession::Verdict HttpSession::expire(AnswerQueue& answers) noexcept {
    if (!in_message_) {
        phase_ = Phase::Finished;
        return Verdict::Close;
    }
    message_.rejected = Status::RequestTimeout;
    return refuse(answers);
}

/// Empty lines before a request are ignored (RFC 9112 section 2.2), within reason.
std::string_view HttpSession::skip_blank_lines(std::string_view octets) noexcept {
    const std::size_t size = std::min(octets.find_first_not_of("\r\n"), octets.size());
    blank_bytes_ += size;
    if (blank_bytes_ > limits_->blank_bytes_max) {
        begin_message();
        reject(Status::BadRequest);
    } else if (size != octets.size()) {
        begin_message();
    } else {
        phase_ = Phase::Head;
    }
    return octets.substr(size);
}

void HttpSession::begin_message() noexcept {
    message_ = Message{};
    blank_bytes_ = 0;
    in_message_ = true;
    phase_ = Phase::Head;
    name_.clear();
}

/// How many octets llhttp may see at once. It reports a span when the octets end, so by never
/// handing over more than may still fit, a limit is met at the same octet however input is split.
std::size_t HttpSession::allowance() const noexcept {
    if (phase_ == Phase::Body) {
        return limits_->chunk_bytes_max + 1 - message_.chunk_bytes;
    }
    const std::size_t head = limits_->head_bytes_max - message_.bytes;
    if (message_.target_complete) {
        return head;
    }
    return std::min(head, limits_->target_bytes_max + 1 - message_.target_bytes);
}

/// Lets llhttp read up to the end of the message; returns what it did not need.
std::string_view HttpSession::parse(std::string_view octets) noexcept {
    if (message_.method_unknown) {
        return judge_method(octets);
    }
    const std::string_view piece = octets.substr(0, allowance());
    piece_ = piece.data();
    const llhttp_errno_t error = llhttp_execute(&parser_, piece.data(), piece.size());
    const std::size_t used =
        error == HPE_OK ? piece.size()
                        : static_cast<std::size_t>(llhttp_get_error_pos(&parser_) - piece.data());
    message_.bytes += used;
    octets.remove_prefix(used);
    if (error == HPE_INVALID_METHOD) {
        message_.method_unknown = true;
        return judge_method(octets);
    }
    if (error != HPE_OK && error != HPE_PAUSED) {
        reject_error(error);
    } else {
        remember_tail(piece.substr(0, used));
        check_limits();
    }
    return octets;
}

void HttpSession::remember_tail(std::string_view octets) noexcept {
    if (message_.version_begun) {
        return;
    }
    const std::size_t fresh = std::min(octets.size(), kProtocolSize);
    std::memmove(tail_.data(), tail_.data() + fresh, kProtocolSize - fresh);
    octets.copy(tail_.data() + kProtocolSize - fresh, fresh, octets.size() - fresh);
}

void HttpSession::check_limits() noexcept {
    if (message_.target_bytes > limits_->target_bytes_max) {
        reject(Status::UriTooLong);
    } else if (phase_ == Phase::Head && !message_.complete &&
               message_.bytes >= limits_->head_bytes_max) {
        reject(message_.target_complete ? Status::HeaderFieldsTooLarge : Status::UriTooLong);
    } else if (message_.chunk_bytes > limits_->chunk_bytes_max) {
        reject(Status::HeaderFieldsTooLarge);
    } else if (message_.target_begun && !message_.version_begun && tail_.back() == '\n') {
        reject(Status::BadRequest);  // HTTP/0.9, to which llhttp would grant header fields
    }
}

void HttpSession::answer_request(AnswerQueue& answers) noexcept {
    Persistence persistence = Persistence::Close;
    if (message_.persistent) {
        persistence = parser_.http_minor == 0 ? Persistence::KeepAlive : Persistence::Implied;
    }
    answers.push(
        {Status::Ok, persistence, parser_.method == HTTP_HEAD ? Content::HeadOnly : Content::Full});
    in_message_ = false;
    message_.complete = false;
    phase_ = message_.persistent ? Phase::Idle : Phase::Finished;
    // Also where llhttp itself would have closed (for example "keep-alive" followed by HTAB,
    // which 9.2 does not recognise): the decision is the one above.
    llhttp_resume(&parser_);
    if (message_.persistent && llhttp_should_keep_alive(&parser_) == 0) {
        llhttp_reset(&parser_);
    }
}

HttpSession::Verdict HttpSession::refuse(AnswerQueue& answers) noexcept {
    const bool head_only = message_.target_begun && parser_.method == HTTP_HEAD;
    answers.push(
        {message_.rejected, Persistence::Close, head_only ? Content::HeadOnly : Content::Full});
    phase_ = Phase::Finished;
    return Verdict::Linger;
}

/// Returns what makes llhttp stop.
int HttpSession::reject(Status status) noexcept {
    if (message_.rejected == Status::Ok) {
        message_.rejected = status;
    }
    return -1;
}

void HttpSession::reject_error(llhttp_errno_t error) noexcept {
    const std::string_view reason = llhttp_get_error_reason(&parser_);
    const bool foreign_method = parser_.method > HTTP_SOURCE && parser_.method != HTTP_QUERY;
    if (error == HPE_PAUSED_H2_UPGRADE ||
        (error == HPE_INVALID_VERSION && reason == "Invalid HTTP version")) {
        reject(Status::HttpVersionNotSupported);
    } else if (error == HPE_INVALID_CONSTANT && message_.target_begun && foreign_method) {
        reject(Status::NotImplemented);  // RTSP's methods, which llhttp knows, over HTTP
    } else {
        reject(Status::BadRequest);
    }
}

/// What llhttp has matched so far is a token. The octet that ends it decides between a method
/// we don't know (RFC 9110 section 9.1: 501) and something that is no request line.
std::string_view HttpSession::judge_method(std::string_view octets) noexcept {
    const auto* end = std::find_if_not(octets.begin(), octets.end(),
                                       [](char octet) { return is_in(octet, kTokenOctet); });
    const auto size = static_cast<std::size_t>(end - octets.begin());
    message_.bytes += size;
    if (message_.bytes > limits_->head_bytes_max) {
        reject(Status::HeaderFieldsTooLarge);
    } else if (size != octets.size()) {
        reject(*end == ' ' ? Status::NotImplemented : Status::BadRequest);
    }
    return octets.substr(size);
}

/// Whether the version belongs to HTTP: llhttp also takes "RTSP/1.0" and "ICE/1.0" for 1.0.
bool HttpSession::is_http(const char* version) const noexcept {
    const auto before = static_cast<std::size_t>(version - piece_);
    const std::size_t here = std::min(before, kProtocolSize);
    std::array<char, kProtocolSize> protocol{};
    std::memcpy(protocol.data(), tail_.data() + here, kProtocolSize - here);
    std::memcpy(protocol.data() + kProtocolSize - here, version - here, here);
    return std::string_view{protocol.data(), kProtocolSize} == "HTTP/";
}

int HttpSession::check_head() noexcept {
    if (parser_.http_major == 0) {
        return reject(Status::BadRequest);  // HTTP/0.9: no version in the request line
    }
    if (parser_.http_major > 1) {
        return reject(Status::HttpVersionNotSupported);
    }
    if (parser_.method == HTTP_CONNECT || parser_.method == HTTP_TRACE) {
        return reject(Status::MethodNotAllowed);
    }
    // RFC 9112 section 3.2: exactly one Host, which HTTP/1.0 may leave out.
    const bool host_missing = message_.host_count == 0 && parser_.http_minor != 0;
    if (host_missing || message_.host_count > 1 || !message_.host_valid) {
        return reject(Status::BadRequest);
    }
    return message_.transfer_encoding_given ? check_transfer_encoding() : 0;
}

/// RFC 9112 sections 6.1 and 6.3: chunked comes last and once, never beside Content-Length, never
/// in HTTP/1.0; a coding we don't know in front of it is 501.
int HttpSession::check_transfer_encoding() noexcept {
    const bool ambiguous = parser_.http_minor == 0 || (parser_.flags & F_CONTENT_LENGTH) != 0;
    if (ambiguous || !message_.chunked_is_last) {
        return reject(Status::BadRequest);
    }
    if (message_.coding_count > 1) {
        return reject(message_.foreign_coding ? Status::NotImplemented : Status::BadRequest);
    }
    return 0;
}

void HttpSession::classify_field() noexcept {
    field_ = Field::Other;
    if (equals(name_, "host")) {
        field_ = Field::Host;
    } else if (equals(name_, "connection")) {
        field_ = Field::Connection;
    } else if (equals(name_, "expect")) {
        field_ = Field::Expect;
    } else if (equals(name_, "transfer-encoding")) {
        field_ = Field::TransferEncoding;
        message_.transfer_encoding_given = true;
    }
    value_.clear();
}

void HttpSession::take_value() noexcept {
    if (field_ == Field::Host) {
        ++message_.host_count;
        message_.host_valid = message_.host_valid && is_valid_host(trim(value_));
        return;
    }
    for_each_element(value_, [this](std::string_view element) {
        if (field_ == Field::Connection) {
            message_.close_asked = message_.close_asked || equals(element, "close");
            message_.keep_alive_asked = message_.keep_alive_asked || equals(element, "keep-alive");
        } else if (field_ == Field::Expect) {
            // Never to HTTP/1.0 (RFC 9110 section 10.1.1); other expectations are ignored.
            message_.continue_expected =
                message_.continue_expected ||
                (parser_.http_minor != 0 && equals(element, "100-continue"));
        } else {
            ++message_.coding_count;
            message_.chunked_is_last = equals(element, "chunked");
            message_.foreign_coding = message_.foreign_coding || !message_.chunked_is_last;
        }
    });
}

}  // namespace hello

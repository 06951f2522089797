// SPDX-License-Identifier: MIT
//
// RequestParser: see request_parser.h. llhttp is paused when a head with content, and when a
// request, is complete, so that we know where they end.

#include "request_parser.h"

#include <algorithm>
#include <cstring>

#include "field.h"

namespace hello {
namespace {

/// One more than the longest name that decides something: "transfer-encoding".
constexpr std::size_t kNameBytesKept = 18;
constexpr std::size_t kValueBytesKept = 256;
constexpr std::size_t kBodyStride = 1024;     ///< octets of content between looks at the limits
constexpr std::size_t kChunkFramingMax = 20;  ///< 16 hexadecimal digits, two line ends

}  // namespace

const llhttp_settings_t RequestParser::kSettings = make_settings();

llhttp_settings_t RequestParser::make_settings() noexcept {
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_method_complete = event<&RequestParser::on_method_complete>;
    settings.on_url = span<&RequestParser::on_url>;
    settings.on_url_complete = event<&RequestParser::on_url_complete>;
    settings.on_version = span<&RequestParser::on_version>;
    settings.on_header_field = span<&RequestParser::on_header_field>;
    settings.on_header_field_complete = event<&RequestParser::on_header_field_complete>;
    settings.on_header_value = span<&RequestParser::on_header_value>;
    settings.on_header_value_complete = event<&RequestParser::on_header_value_complete>;
    settings.on_headers_complete = event<&RequestParser::on_headers_complete>;
    settings.on_body = span<&RequestParser::on_body>;
    settings.on_chunk_header = event<&RequestParser::on_chunk_header>;
    settings.on_message_complete = event<&RequestParser::on_message_complete>;
    return settings;
}

RequestParser::RequestParser(const HttpLimits& limits) noexcept : limits_(limits) {
    llhttp_init(&llhttp_, HTTP_REQUEST, &kSettings);
    llhttp_.data = this;
}

void RequestParser::begin() noexcept {
    if (request_.complete) {
        llhttp_resume(&llhttp_);
        // llhttp may have another opinion on whether requests may follow ("keep-alive" and HTAB,
        // which 9.2 does not recognise); that is for us to decide.
        if (llhttp_should_keep_alive(&llhttp_) == 0) {
            llhttp_reset(&llhttp_);
        }
    }
    request_ = {};
    progress_ = {};
    name_.clear();
}

std::string_view RequestParser::read(std::string_view octets) noexcept {
    while (!octets.empty() && !request_.complete && request_.rejected == Status::Ok) {
        if (progress_.method_unknown) {
            return judge_method(octets);
        }
        const std::string_view piece = octets.substr(0, allowance());
        piece_ = piece.data();
        const llhttp_errno_t error = llhttp_execute(&llhttp_, piece.data(), piece.size());
        const char* end =
            error == HPE_OK ? piece.data() + piece.size() : llhttp_get_error_pos(&llhttp_);
        const auto used = static_cast<std::size_t>(end - piece.data());
        progress_.bytes += used;
        octets.remove_prefix(used);
        if (error == HPE_INVALID_METHOD) {
            progress_.method_unknown = true;
            return judge_method(octets);
        }
        if (error != HPE_OK && error != HPE_PAUSED) {
            reject(status_of(error));
            break;
        }
        if (request_.head_complete && progress_.head_bytes == 0) {
            progress_.head_bytes = progress_.bytes;
            llhttp_resume(&llhttp_);
        }
        check_limits(piece.substr(0, used));
        remember_tail(piece.substr(0, used));
    }
    return octets;
}

/// How many octets llhttp may see at once. Limits are checked where it stops, and it stops at the
/// same octets however input is split: where a limit is reached, and regularly within content.
std::size_t RequestParser::allowance() const noexcept {
    if (request_.head_complete) {
        return kBodyStride - (progress_.bytes - progress_.head_bytes) % kBodyStride;
    }
    const std::size_t head = limits_.head_bytes_max - progress_.bytes;
    return progress_.target_complete
               ? head
               : std::min(head, limits_.target_bytes_max + 1 - progress_.target_bytes);
}

/// `octets`: what llhttp has read last.
void RequestParser::check_limits(std::string_view octets) noexcept {
    if (request_.head_complete) {
        const std::size_t bytes = progress_.bytes - progress_.head_bytes;
        const bool looks = bytes % kBodyStride == 0 || request_.complete;
        // While a chunk's size is being read, it is not in plain_bytes yet.
        const std::size_t unread = request_.complete ? 0 : kChunkFramingMax;
        if (looks && progress_.coding_count != 0 &&
            bytes > progress_.plain_bytes + unread + limits_.chunk_bytes_max) {
            reject(Status::HeaderFieldsTooLarge);
        }
    } else if (progress_.target_bytes > limits_.target_bytes_max) {
        reject(Status::UriTooLong);
    } else if (!request_.complete && progress_.bytes >= limits_.head_bytes_max) {
        reject(progress_.target_complete ? Status::HeaderFieldsTooLarge : Status::UriTooLong);
    } else if (!progress_.version_begun && octets.find('\n') != std::string_view::npos) {
        reject(Status::BadRequest);  // HTTP/0.9: no version in the request line
    }
}

void RequestParser::remember_tail(std::string_view octets) noexcept {
    if (!progress_.version_begun) {
        const std::size_t fresh = std::min(octets.size(), kProtocolSize);
        std::memmove(tail_.data(), tail_.data() + fresh, kProtocolSize - fresh);
        octets.copy(tail_.data() + kProtocolSize - fresh, fresh, octets.size() - fresh);
    }
}

int RequestParser::reject(Status status) noexcept {
    if (request_.rejected == Status::Ok) {
        request_.rejected = status;
    }
    return -1;
}

Status RequestParser::status_of(llhttp_errno_t error) const noexcept {
    const std::string_view reason = llhttp_get_error_reason(&llhttp_);
    const bool foreign_method = llhttp_.method > HTTP_SOURCE && llhttp_.method != HTTP_QUERY;
    if (error == HPE_INVALID_VERSION && reason == "Invalid HTTP version") {
        return Status::HttpVersionNotSupported;
    }
    // RTSP's methods, which llhttp knows, over HTTP.
    return error == HPE_INVALID_CONSTANT && request_.method_known && foreign_method
               ? Status::NotImplemented
               : Status::BadRequest;
}

/// What llhttp has matched so far is a token. The octet that ends it decides between a method
/// we don't know (RFC 9110 section 9.1: 501) and something that is no request line.
std::string_view RequestParser::judge_method(std::string_view octets) noexcept {
    const auto* end = std::find_if_not(octets.begin(), octets.end(),
                                       [](char octet) { return is_in(octet, kTokenOctet); });
    const auto size = static_cast<std::size_t>(end - octets.begin());
    progress_.bytes += size;
    if (progress_.bytes > limits_.head_bytes_max) {
        reject(Status::HeaderFieldsTooLarge);
    } else if (size != octets.size()) {
        reject(*end == ' ' && progress_.bytes != 0 ? Status::NotImplemented : Status::BadRequest);
    }
    return octets.substr(size);
}

int RequestParser::on_method_complete() noexcept {
    request_.method_known = true;
    // HTTP/2 (RFC 9113 section 3.4): llhttp would wait for the rest of its preface.
    return llhttp_.method == HTTP_PRI ? reject(Status::HttpVersionNotSupported) : 0;
}

int RequestParser::on_url(std::string_view octets) noexcept {
    if (progress_.target_bytes == 0 && !octets.empty()) {
        progress_.target_is_asterisk = octets.front() == '*';
        // A single space before, though llhttp takes several (RFC 9112 section 3).
        if (offset(octets) != method_size() + 1) {
            return reject(Status::BadRequest);
        }
    }
    progress_.target_bytes += octets.size();
    // A fragment is never sent (RFC 9112 section 3.2).
    return octets.find('#') != std::string_view::npos ? reject(Status::BadRequest) : 0;
}

int RequestParser::on_url_complete() noexcept {
    progress_.target_complete = true;
    // "*" stands alone and belongs to OPTIONS (RFC 9112 section 3.2.4).
    const bool wrong = progress_.target_is_asterisk &&
                       (progress_.target_bytes != 1 || llhttp_.method != HTTP_OPTIONS);
    return wrong ? reject(Status::BadRequest) : 0;
}

int RequestParser::on_version(std::string_view octets) noexcept {
    if (progress_.version_begun) {
        return 0;
    }
    progress_.version_begun = true;
    const std::size_t expected = method_size() + 1 + progress_.target_bytes + 1 + kProtocolSize;
    const bool right = offset(octets) == expected && is_http(octets);
    return right ? 0 : reject(Status::BadRequest);
}

/// Of the first of `octets`, which llhttp is looking at, within the request.
std::size_t RequestParser::offset(std::string_view octets) const noexcept {
    return progress_.bytes + static_cast<std::size_t>(octets.data() - piece_);
}

std::size_t RequestParser::method_size() const noexcept {
    return std::strlen(llhttp_method_name(static_cast<llhttp_method_t>(llhttp_.method)));
}

/// Whether the version belongs to HTTP: llhttp also takes "RTSP/1.0" and "ICE/1.0" for 1.0.
bool RequestParser::is_http(std::string_view version) const noexcept {
    const std::size_t here = std::min(offset(version) - progress_.bytes, kProtocolSize);
    const std::string_view before{tail_.data() + here, kProtocolSize - here};
    constexpr std::string_view kProtocol = "HTTP/";
    return kProtocol.starts_with(before) && kProtocol.ends_with({version.data() - here, here});
}

/// Of the header, and of the trailers, which are ignored (RFC 9110 section 6.5.1).
int RequestParser::on_header_field(std::string_view octets) noexcept {
    if (!progress_.version_begun) {  // HTTP/0.9, to which llhttp grants fields
        return reject(Status::BadRequest);
    }
    name_.append(octets.substr(0, kNameBytesKept - name_.size()));
    return 0;
}

int RequestParser::on_header_field_complete() noexcept {
    value_.clear();
    field_ = Field::Other;
    if (request_.head_complete) {
        // Framing never comes in trailers (RFC 9110 section 6.5.1); llhttp lets it pass if empty.
        return equals(name_, "transfer-encoding") ? reject(Status::BadRequest) : 0;
    }
    if (++progress_.field_count > limits_.field_count_max) {
        return reject(Status::HeaderFieldsTooLarge);
    }
    if (equals(name_, "host")) {
        field_ = Field::Host;
    } else if (equals(name_, "connection")) {
        field_ = Field::Connection;
    } else if (equals(name_, "expect")) {
        field_ = Field::Expect;
    } else if (equals(name_, "transfer-encoding")) {
        field_ = Field::TransferEncoding;
        progress_.transfer_encoding_given = true;
    }
    return 0;
}

int RequestParser::on_header_value(std::string_view octets) noexcept {
    if (field_ != Field::Other) {
        value_.append(octets);
    }
    return 0;
}

int RequestParser::on_header_value_complete() noexcept {
    name_.clear();
    if (field_ == Field::Host) {
        ++progress_.host_count;
        progress_.host_valid = progress_.host_valid && is_valid_host(trim(value_));
        return 0;
    }
    for_each_element(value_, [this](std::string_view element) {
        if (field_ == Field::Connection) {
            request_.close_asked = request_.close_asked || equals(element, "close");
            request_.keep_alive_asked = request_.keep_alive_asked || equals(element, "keep-alive");
        } else if (field_ == Field::Expect) {
            // Never to HTTP/1.0 (RFC 9110 section 10.1.1); other expectations are ignored.
            request_.continue_expected =
                request_.continue_expected || (!is_http_1_0() && equals(element, "100-continue"));
        } else {
            ++progress_.coding_count;
            progress_.chunked_is_last = equals(element, "chunked");
            progress_.foreign_coding = progress_.foreign_coding || !progress_.chunked_is_last;
        }
    });
    return 0;
}

int RequestParser::on_headers_complete() noexcept {
    if (value_.capacity() > kValueBytesKept) {  // an idle connection holds no long value
        value_ = {};
    }
    if (!progress_.version_begun) {
        return reject(Status::BadRequest);
    }
    if (llhttp_.http_major != 1) {
        return reject(Status::HttpVersionNotSupported);
    }
    if (llhttp_.method == HTTP_CONNECT || llhttp_.method == HTTP_TRACE) {
        return reject(Status::MethodNotAllowed);
    }
    // RFC 9112 section 3.2: exactly one Host, which HTTP/1.0 may leave out.
    const bool host_missing = progress_.host_count == 0 && !is_http_1_0();
    if (host_missing || progress_.host_count > 1 || !progress_.host_valid) {
        return reject(Status::BadRequest);
    }
    if (progress_.transfer_encoding_given && check_transfer_encoding() != 0) {
        return -1;
    }
    // No protocol is ever switched: Upgrade is ignored (RFC 9110 section 7.8).
    llhttp_.upgrade = 0;
    request_.head_complete = progress_.coding_count != 0 || llhttp_.content_length != 0;
    return request_.head_complete ? HPE_PAUSED : 0;
}

/// RFC 9112 sections 6.1 and 6.3: chunked comes last and once, never beside Content-Length, never
/// in HTTP/1.0; a coding we don't know in front of it is 501.
int RequestParser::check_transfer_encoding() noexcept {
    const bool ambiguous = is_http_1_0() || (llhttp_.flags & F_CONTENT_LENGTH) != 0;
    if (ambiguous || !progress_.chunked_is_last) {
        return reject(Status::BadRequest);
    }
    if (progress_.coding_count > 1) {
        return reject(progress_.foreign_coding ? Status::NotImplemented : Status::BadRequest);
    }
    return 0;
}

int RequestParser::on_body(std::string_view octets) noexcept {
    request_.content_begun = true;
    progress_.plain_bytes += octets.size();
    return 0;
}

/// A chunk needs its size in hexadecimal and two line ends (RFC 9112 section 7.1).
int RequestParser::on_chunk_header() noexcept {
    std::size_t digits = 1;
    for (std::uint64_t size = llhttp_.content_length; size > 0xF; size >>= 4) {
        ++digits;
    }
    progress_.plain_bytes += digits + 4;
    return 0;
}

int RequestParser::on_message_complete() noexcept {
    request_.complete = true;
    return HPE_PAUSED;
}

}  // namespace hello

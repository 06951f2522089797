// SPDX-License-Identifier: MIT
//
// Ready-made responses: see response.h.

#include "response.h"

#include <cstring>

#include "http_date.h"

namespace hello {
namespace {

struct StatusText {
    std::string_view code_and_reason;
    std::string_view content;
};

/// Indexed by Status. Reason phrases: RFC 9110 section 15, RFC 6585 section 5.
constexpr std::array<StatusText, kStatusCount> kStatusTexts{{
    {"100 Continue", ""},
    {"200 OK", ""},
    {"400 Bad Request", "Bad Request\n"},
    {"405 Method Not Allowed", "Method Not Allowed\n"},
    {"408 Request Timeout", "Request Timeout\n"},
    {"414 URI Too Long", "URI Too Long\n"},
    {"431 Request Header Fields Too Large", "Request Header Fields Too Large\n"},
    {"501 Not Implemented", "Not Implemented\n"},
    {"505 HTTP Version Not Supported", "HTTP Version Not Supported\n"},
}};

/// Every method llhttp knows but those that a hello-world resource must refuse.
constexpr std::string_view kAllow = "Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n";

std::string_view connection_field(Persistence persistence) noexcept {
    switch (persistence) {
        case Persistence::KeepAlive: return "Connection: keep-alive\r\n";
        case Persistence::Close: return "Connection: close\r\n";
        case Persistence::Implied: break;
    }
    return "";
}

}  // namespace

ResponseImages::ResponseImages(std::string_view body, std::string_view server) {
    for (std::size_t status = 0; status < kStatusCount; ++status) {
        for (std::size_t persistence = 0; persistence < kPersistenceCount; ++persistence) {
            for (std::size_t content = 0; content < kContentCount; ++content) {
                append({static_cast<Status>(status), static_cast<Persistence>(persistence),
                        static_cast<Content>(content)},
                       body, server);
            }
        }
    }
    patch(0);
}

void ResponseImages::append(Answer answer, std::string_view body, std::string_view server) {
    const StatusText& text = kStatusTexts[static_cast<std::size_t>(answer.status)];
    const std::string_view content = answer.status == Status::Ok ? body : text.content;
    const std::size_t begin = octets_.size();

    octets_.append("HTTP/1.1 ").append(text.code_and_reason).append("\r\n");
    if (answer.status == Status::Continue) {  // 1xx: no content, no fields needed
        octets_.append("\r\n");
    } else {
        if (!server.empty()) {
            octets_.append("Server: ").append(server).append("\r\n");
        }
        octets_.append("Date: ");
        date_offsets_.push_back(static_cast<std::uint32_t>(octets_.size()));
        octets_.append(kHttpDateSize, ' ').append("\r\n");
        octets_.append("Content-Type: text/plain\r\nContent-Length: ");
        octets_.append(std::to_string(content.size())).append("\r\n");
        if (answer.status == Status::MethodNotAllowed) {
            octets_.append(kAllow);
        }
        octets_.append(connection_field(answer.persistence)).append("\r\n");
        if (answer.content == Content::Full) {
            octets_.append(content);
        }
    }
    extents_[answer.index()] = {static_cast<std::uint32_t>(begin),
                                static_cast<std::uint32_t>(octets_.size() - begin)};
}

void ResponseImages::patch(std::int64_t seconds) noexcept {
    const HttpDate date = format_http_date(seconds);
    for (const std::uint32_t offset : date_offsets_) {
        std::memcpy(octets_.data() + offset, date.data(), date.size());
    }
    date_seconds_ = seconds;
}

}  // namespace hello

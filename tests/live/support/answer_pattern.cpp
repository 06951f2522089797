// SPDX-License-Identifier: MIT
//
// Comparing octets with the answer that is due.

#include "support/answer_pattern.h"

#include <algorithm>
#include <map>

namespace hello::test {
namespace {

constexpr std::string_view kDatePlaceholder = "Mon, 30 Nov 2026 18:10:08 GMT";

struct StatusText {
    std::string_view reason;
    std::string_view content;
};

const std::map<int, StatusText>& status_texts() {
    static const std::map<int, StatusText> texts{
        {200, {"OK", "Hello World!"}},
        {400, {"Bad Request", "Bad Request\n"}},
        {405, {"Method Not Allowed", "Method Not Allowed\n"}},
        {414, {"URI Too Long", "URI Too Long\n"}},
        {431, {"Request Header Fields Too Large", "Request Header Fields Too Large\n"}},
        {501, {"Not Implemented", "Not Implemented\n"}},
        {505, {"HTTP Version Not Supported", "HTTP Version Not Supported\n"}},
    };
    return texts;
}

}  // namespace

AnswerPattern::AnswerPattern(int status, std::string_view connection, AnswerContent content)
    : interim_(status == 100), name_(std::to_string(status)) {
    if (interim_) {
        text_ = "HTTP/1.1 100 Continue\r\n\r\n";
        return;
    }
    const StatusText& text = status_texts().at(status);
    text_ = "HTTP/1.1 " + std::to_string(status) + " ";
    text_.append(text.reason).append("\r\nServer: hello-uring\r\nDate: ");
    date_begin_ = text_.size();
    text_.append(kDatePlaceholder);
    date_end_ = text_.size();
    text_ +=
        "\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(text.content.size()) +
        "\r\n";
    if (status == 405) {
        text_ += "Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n";
    }
    if (!connection.empty()) {
        text_.append("Connection: ").append(connection).append("\r\n");
        name_.append(" ").append(connection);
    }
    text_ += "\r\n";
    if (content == AnswerContent::Full) {
        text_ += text.content;
    } else {
        name_ += " head";
    }
}

AnswerPattern::Match AnswerPattern::match(std::string_view octets) const {
    const std::size_t size = std::min(octets.size(), text_.size());
    const std::string_view expected = std::string_view(text_).substr(0, size);
    const std::string_view before = expected.substr(0, date_begin_);
    const std::string_view after = expected.substr(std::min(date_end_, size));
    const bool equal = octets.substr(0, before.size()) == before &&
                       octets.substr(size - after.size(), after.size()) == after;
    if (!equal) {
        return Match::No;
    }
    return size == text_.size() ? Match::Whole : Match::Partly;
}

bool AnswerPattern::is_dated_within(std::string_view octets,
                                    std::time_t earliest,
                                    std::time_t latest) const {
    const std::string date(octets.substr(date_begin_, date_end_ - date_begin_));
    std::tm fields{};
    const char* end = strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &fields);
    if (end != date.c_str() + date.size()) {
        return false;
    }
    const std::time_t second = timegm(&fields);
    return earliest <= second && second <= latest;
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Reads a response image strictly, by the grammar of RFC 9112: whatever is not exactly as it must
// be is an error with a name.

#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../support/case_file.h"

namespace hello::test {

struct Image {
    int status = 0;
    std::string reason;
    std::vector<std::pair<std::string, std::string>> fields;
    std::string content;

    /// The only field of that name; an error where there are two.
    [[nodiscard]] std::optional<std::string> field(std::string_view name) const {
        std::optional<std::string> value;
        for (const auto& [field_name, field_value] : fields) {
            if (field_name == name) {
                if (value) {
                    throw std::runtime_error("two fields " + field_name);
                }
                value = field_value;
            }
        }
        return value;
    }
};

/// Takes a line off the front of `octets`, without its CRLF.
inline std::string_view take_line(std::string_view& octets) {
    const std::size_t end = octets.find("\r\n");
    if (end == std::string_view::npos) {
        throw std::runtime_error("a line without CRLF");
    }
    const std::string_view line = octets.substr(0, end);
    octets.remove_prefix(end + 2);
    if (line.find_first_of("\r\n") != std::string_view::npos) {
        throw std::runtime_error("a bare CR or LF");
    }
    return line;
}

inline std::size_t to_number(std::string_view digits) {
    std::size_t number = 0;
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, number);
    if (result.ec != std::errc{} || result.ptr != end) {
        throw std::runtime_error("not a number: " + std::string(digits));
    }
    return number;
}

inline Image read_image(std::string_view octets) {
    Image image;
    const std::string_view status_line = take_line(octets);
    if (!status_line.starts_with("HTTP/1.1 ") || status_line.size() < 14 ||
        status_line[12] != ' ') {
        throw std::runtime_error("bad status line");
    }
    image.status = static_cast<int>(to_number(status_line.substr(9, 3)));
    image.reason = status_line.substr(13);
    for (std::string_view line = take_line(octets); !line.empty(); line = take_line(octets)) {
        const std::size_t colon = line.find(": ");
        if (colon == std::string_view::npos) {
            throw std::runtime_error("bad field line");
        }
        image.fields.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    }
    image.content = octets;
    return image;
}

/// Checks what every response must have, and says it in the notation of the case files.
inline CaseResponse describe(const Image& image) {
    CaseResponse response;
    response.status = image.status;
    if (response.is_interim()) {
        if (!image.fields.empty() || !image.content.empty()) {
            throw std::runtime_error("an interim response with fields or content");
        }
        return response;
    }
    const std::size_t length = to_number(image.field("Content-Length").value_or(""));
    response.head_only = image.content.empty() && length != 0;
    if (!response.head_only && image.content.size() != length) {
        throw std::runtime_error("Content-Length is not the length of the content");
    }
    if (image.field("Date").value_or("").size() != 29) {
        throw std::runtime_error("no Date");
    }
    if (image.field("Allow").has_value() != (image.status == 405)) {
        throw std::runtime_error("Allow belongs to 405, and only there");
    }
    const std::optional<std::string> connection = image.field("Connection");
    if (connection == "close") {
        response.connection = ConnectionField::Close;
    } else if (connection == "keep-alive") {
        response.connection = ConnectionField::KeepAlive;
    } else if (connection) {
        throw std::runtime_error("unknown Connection: " + *connection);
    }
    return response;
}

}  // namespace hello::test

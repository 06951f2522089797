// SPDX-License-Identifier: MIT
//
// Reader of Date: see date.h.

#include "support/date.h"

#include <array>
#include <string_view>

namespace hello::test {

/// Written again by strftime, in the C locale that this program runs in, a date must be the same
/// text, weekday included.
std::time_t parse_date(const std::string& text) {
    constexpr const char* kForm = "%a, %d %b %Y %H:%M:%S GMT";
    std::tm date{};
    const char* end = strptime(text.c_str(), kForm, &date);
    if (end == nullptr || *end != '\0') {
        return -1;
    }
    const std::time_t seconds = timegm(&date);
    std::array<char, 64> again{};
    const std::size_t size = std::strftime(again.data(), again.size(), kForm, &date);
    return text == std::string_view(again.data(), size) ? seconds : -1;
}

}  // namespace hello::test

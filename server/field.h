// SPDX-License-Identifier: MIT
//
// The few header fields that decide something: their names, lists and values (RFC 9110
// section 5).

#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace hello {

/// Sets of octets, as bits.
inline constexpr unsigned char kTokenOctet = 1;  ///< tchar, RFC 9110 section 5.6.2
inline constexpr unsigned char kHostOctet = 2;   ///< of reg-name, RFC 3986 section 3.2.2
inline constexpr unsigned char kHexDigit = 4;
inline constexpr unsigned char kDigit = 8;

inline constexpr auto kOctetSets = [] {
    std::array<unsigned char, 256> sets{};
    const auto add = [&sets](std::string_view octets, unsigned char set) {
        for (const char octet : octets) {
            sets[static_cast<unsigned char>(octet)] |= set;
        }
    };
    add("0123456789", kTokenOctet | kHostOctet | kHexDigit | kDigit);
    add("abcdefABCDEF", kTokenOctet | kHostOctet | kHexDigit);
    add("ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ", kTokenOctet | kHostOctet);
    add("!#$%&'*+-.^_`|~", kTokenOctet);
    add("-._~!$&'()*+,;=%", kHostOctet);
    return sets;
}();

[[nodiscard]] inline bool is_in(char octet, unsigned char set) noexcept {
    return (kOctetSets[static_cast<unsigned char>(octet)] & set) != 0;
}

[[nodiscard]] inline bool all_in(std::string_view octets, unsigned char set) noexcept {
    return std::all_of(octets.begin(), octets.end(), [set](char o) { return is_in(o, set); });
}

/// `lower`: in lower case.
[[nodiscard]] inline bool equals(std::string_view text, std::string_view lower) noexcept {
    return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
    });
}

/// Without optional white space around (RFC 9110 section 5.6.3: SP and HTAB).
[[nodiscard]] inline std::string_view trim(std::string_view text) noexcept {
    const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// Calls `visit(element)` for each element of a comma-separated list (RFC 9110 section 5.6.1).
template <typename Visit>
void for_each_element(std::string_view list, Visit visit) {
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        if (const std::string_view element = trim(list.substr(0, end)); !element.empty()) {
            visit(element);
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
}

/// IPv6address or IPvFuture, without the brackets (RFC 3986 section 3.2.2), by their octets.
[[nodiscard]] inline bool is_valid_literal(std::string_view address) noexcept {
    const bool future = !address.empty() && (address.front() == 'v' || address.front() == 'V');
    const bool shaped = address.find(future ? '.' : ':') != std::string_view::npos;
    return shaped && std::all_of(address.begin(), address.end(), [future](char o) {
               return o == ':' ||
                      (future ? o != '%' && is_in(o, kHostOctet) : o == '.' || is_in(o, kHexDigit));
           });
}

/// Host = uri-host [ ":" port ], which may be empty (RFC 9110 section 7.2).
[[nodiscard]] inline bool is_valid_host(std::string_view host) noexcept {
    const bool literal = !host.empty() && host.front() == '[';
    const std::size_t end = literal ? host.find(']') : std::min(host.find(':'), host.size());
    if (end == std::string_view::npos) {
        return false;
    }
    const std::string_view name = host.substr(literal ? 1 : 0, literal ? end - 1 : end);
    const std::string_view port = host.substr(literal ? end + 1 : end);
    if (!(literal ? is_valid_literal(name) : all_in(name, kHostOctet))) {
        return false;
    }
    for (std::size_t at = name.find('%'); at < name.size(); at = name.find('%', at + 1)) {
        const std::string_view digits = name.substr(at + 1, 2);
        if (digits.size() != 2 || !all_in(digits, kHexDigit)) {
            return false;
        }
    }
    return port.empty() || (port.front() == ':' && all_in(port.substr(1), kDigit));
}

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// HTTP-date in its preferred form, IMF-fixdate (RFC 9110 section 5.6.7), for example
// "Sun, 06 Nov 1994 08:49:37 GMT": always 29 octets, independent of the locale, no allocation.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hello {

inline constexpr std::size_t kHttpDateSize = 29;
using HttpDate = std::array<char, kHttpDateSize>;

/// `seconds`: Unix time, 0 (1970) to 253402300799 (end of the year 9999); clamped to that range.
[[nodiscard]] HttpDate format_http_date(std::int64_t seconds) noexcept;

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// parse_date: reads the value of a Date field, strictly.

#pragma once

#include <ctime>
#include <string>

namespace hello::test {

/// Seconds since 1970 of an IMF-fixdate (RFC 9110 section 5.6.7), -1 for anything else.
[[nodiscard]] std::time_t parse_date(const std::string& text);

}  // namespace hello::test

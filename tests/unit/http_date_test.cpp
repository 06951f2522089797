// SPDX-License-Identifier: MIT
//
// Tests of http_date.h: RFC 9110 section 5.6.7.

#include "http_date.h"

#include <array>
#include <cstdint>
#include <ctime>
#include <limits>
#include <random>
#include <string>

#include <catch2/catch_test_macros.hpp>

namespace hello::test {
namespace {

constexpr std::int64_t kSecondsPerDay = 86400;
constexpr std::int64_t kLastSecond = 253402300799;  // of the year 9999

std::string date_text(std::int64_t seconds) {
    const HttpDate date = format_http_date(seconds);
    return {date.data(), date.size()};
}

/// The same by the C library, whose "C" locale has the English names.
std::string c_library_text(std::int64_t seconds) {
    const std::time_t time = seconds;
    std::tm parts{};
    gmtime_r(&time, &parts);
    std::array<char, 64> text{};
    const std::size_t size =
        std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return {text.data(), size};
}

}  // namespace

TEST_CASE("HttpDate writes the example of RFC 9110", "[http_date]") {
    CHECK(date_text(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST_CASE("HttpDate writes the first second of 1970", "[http_date]") {
    CHECK(date_text(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST_CASE("HttpDate writes the last second of 9999", "[http_date]") {
    CHECK(date_text(kLastSecond) == "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST_CASE("HttpDate clamps what is out of range", "[http_date]") {
    CHECK(date_text(-1) == date_text(0));
    CHECK(date_text(std::numeric_limits<std::int64_t>::min()) == date_text(0));
    CHECK(date_text(kLastSecond + 1) == date_text(kLastSecond));
    CHECK(date_text(std::numeric_limits<std::int64_t>::max()) == date_text(kLastSecond));
}

TEST_CASE("HttpDate knows leap years", "[http_date]") {
    CHECK(date_text(951782400) == "Tue, 29 Feb 2000 00:00:00 GMT");
    CHECK(date_text(951782400 + kSecondsPerDay) == "Wed, 01 Mar 2000 00:00:00 GMT");
    CHECK(date_text(1709164800) == "Thu, 29 Feb 2024 00:00:00 GMT");
    CHECK(date_text(1677542400) == "Tue, 28 Feb 2023 00:00:00 GMT");
    CHECK(date_text(1677542400 + kSecondsPerDay) == "Wed, 01 Mar 2023 00:00:00 GMT");
    CHECK(date_text(4107456000) == "Sun, 28 Feb 2100 00:00:00 GMT");
    CHECK(date_text(4107456000 + kSecondsPerDay) == "Mon, 01 Mar 2100 00:00:00 GMT");
}

TEST_CASE("HttpDate passes the ends of 32 bits", "[http_date]") {
    CHECK(date_text(2147483647) == "Tue, 19 Jan 2038 03:14:07 GMT");
    CHECK(date_text(2147483648) == "Tue, 19 Jan 2038 03:14:08 GMT");
    CHECK(date_text(4294967296) == "Sun, 07 Feb 2106 06:28:16 GMT");
}

TEST_CASE("HttpDate turns at midnight and at the end of the year", "[http_date]") {
    CHECK(date_text(946684799) == "Fri, 31 Dec 1999 23:59:59 GMT");
    CHECK(date_text(946684800) == "Sat, 01 Jan 2000 00:00:00 GMT");
}

TEST_CASE("HttpDate agrees with the C library on every day of 400 years", "[http_date]") {
    // 400 years are one period of the calendar: every month, weekday and kind of leap year.
    constexpr std::int64_t kDays = 146097;
    std::int64_t wrong = 0;
    for (std::int64_t day = 0; day < kDays; ++day) {
        const std::int64_t seconds = day * kSecondsPerDay + day % kSecondsPerDay;
        wrong += date_text(seconds) != c_library_text(seconds) ? 1 : 0;
    }
    CHECK(wrong == 0);
}

TEST_CASE("HttpDate agrees with the C library on every second of a day", "[http_date]") {
    std::int64_t wrong = 0;
    for (std::int64_t second = 1700000000; second < 1700000000 + kSecondsPerDay; ++second) {
        wrong += date_text(second) != c_library_text(second) ? 1 : 0;
    }
    CHECK(wrong == 0);
}

TEST_CASE("HttpDate agrees with the C library on random seconds", "[http_date]") {
    std::mt19937_64 random(20240229);
    for (int count = 0; count < 10000; ++count) {
        const auto seconds =
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kLastSecond + 1));
        REQUIRE(date_text(seconds) == c_library_text(seconds));
    }
}

}  // namespace hello::test

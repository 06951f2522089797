// SPDX-License-Identifier: MIT
//
// HTTP-date: see http_date.h. The calendar is std::chrono's, which is proleptic Gregorian and UTC.

#include "http_date.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace hello {
namespace {

constexpr std::int64_t kLastSecondOf9999 = 253402300799;
constexpr const char* kDays = "SunMonTueWedThuFriSat";
constexpr const char* kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

void put_two_digits(char* at, unsigned value) noexcept {
    at[0] = static_cast<char>('0' + value / 10);
    at[1] = static_cast<char>('0' + value % 10);
}

}  // namespace

HttpDate format_http_date(std::int64_t seconds) noexcept {
    using namespace std::chrono;
    const sys_seconds time{
        std::chrono::seconds{std::clamp<std::int64_t>(seconds, 0, kLastSecondOf9999)}};
    const auto midnight = floor<days>(time);
    const year_month_day date{midnight};
    const hh_mm_ss clock{time - midnight};
    const unsigned year = static_cast<unsigned>(static_cast<int>(date.year()));

    HttpDate text;
    std::memcpy(text.data(), "Thu, 01 Jan 1970 00:00:00 GMT", kHttpDateSize);
    std::memcpy(text.data(), kDays + 3 * std::size_t{weekday{midnight}.c_encoding()}, 3);
    put_two_digits(text.data() + 5, static_cast<unsigned>(date.day()));
    std::memcpy(text.data() + 8, kMonths + 3 * (static_cast<unsigned>(date.month()) - 1), 3);
    put_two_digits(text.data() + 12, year / 100);
    put_two_digits(text.data() + 14, year % 100);
    put_two_digits(text.data() + 17, static_cast<unsigned>(clock.hours().count()));
    put_two_digits(text.data() + 20, static_cast<unsigned>(clock.minutes().count()));
    put_two_digits(text.data() + 23, static_cast<unsigned>(clock.seconds().count()));
    return text;
}

}  // namespace hello

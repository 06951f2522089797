// SPDX-License-Identifier: MIT
//
// Tests of field.h: names, lists and values of header fields.

#include "field.h"

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

namespace hello::test {
namespace {

using namespace std::string_view_literals;

std::vector<std::string> elements_of(std::string_view list) {
    std::vector<std::string> elements;
    for_each_element(list, [&](std::string_view element) { elements.emplace_back(element); });
    return elements;
}

/// The octets of a set, in order.
std::string octets_in(unsigned char set) {
    std::string octets;
    for (int value = 0; value < 256; ++value) {
        const char octet = static_cast<char>(static_cast<unsigned char>(value));
        if (is_in(octet, set)) {
            octets += octet;
        }
    }
    return octets;
}

}  // namespace

TEST_CASE("Token octets are the visible ones but the delimiters", "[field]") {
    constexpr std::string_view kDelimiters = "\"(),/:;<=>?@[\\]{}";  // RFC 9110 section 5.6.2
    std::string expected;
    for (char octet = '!'; octet <= '~'; ++octet) {
        if (kDelimiters.find(octet) == std::string_view::npos) {
            expected += octet;
        }
    }
    CHECK(octets_in(kTokenOctet) == expected);
}

TEST_CASE("Digits are those of ASCII", "[field]") {
    CHECK(octets_in(kDigit) == "0123456789");
    CHECK(octets_in(kHexDigit) == "0123456789ABCDEFabcdef");
}

TEST_CASE("Host octets are those of a registered name", "[field]") {
    // RFC 3986 section 3.2.2: unreserved, percent-encoded and sub-delims.
    CHECK(octets_in(kHostOctet) ==
          "!$%&'()*+,-.0123456789;=ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~");
}

TEST_CASE("all_in asks every octet", "[field]") {
    CHECK(all_in("", kDigit));
    CHECK(all_in("0189", kDigit));
    CHECK_FALSE(all_in("018a", kDigit));
    CHECK_FALSE(all_in("x189", kDigit));
    CHECK_FALSE(all_in("\x80\xFF"sv, kTokenOctet));
}

TEST_CASE("equals ignores the case of letters", "[field]") {
    CHECK(equals("close", "close"));
    CHECK(equals("CLOSE", "close"));
    CHECK(equals("kEEP-aLIVE", "keep-alive"));
    CHECK(equals("", ""));
}

TEST_CASE("equals compares the whole text", "[field]") {
    CHECK_FALSE(equals("clos", "close"));
    CHECK_FALSE(equals("closed", "close"));
    CHECK_FALSE(equals("", "close"));
    CHECK_FALSE(equals("close", ""));
    CHECK_FALSE(equals("close\0"sv, "close"));
}

TEST_CASE("equals changes nothing but letters", "[field]") {
    // The neighbours of A and Z, and the octets that differ from others in bit 5 only.
    CHECK_FALSE(equals("@", "`"));
    CHECK_FALSE(equals("[", "{"));
    CHECK_FALSE(equals("keep\ralive", "keep-alive"));
    CHECK_FALSE(equals("\xC4"sv, "\xE4"sv));
}

TEST_CASE("trim removes SP and HTAB around a text", "[field]") {
    CHECK(trim("") == "");
    CHECK(trim(" ") == "");
    CHECK(trim("\t \t") == "");
    CHECK(trim("a") == "a");
    CHECK(trim(" a") == "a");
    CHECK(trim("a\t") == "a");
    CHECK(trim(" \ta b\t ") == "a b");
}

TEST_CASE("trim leaves all else", "[field]") {
    CHECK(trim("\ra\n") == "\ra\n");
    CHECK(trim("\x0b"sv) == "\x0b"sv);
    CHECK(trim("\0"sv) == "\0"sv);
}

TEST_CASE("for_each_element takes lists apart", "[field]") {
    using List = std::vector<std::string>;
    CHECK(elements_of("close") == List{"close"});
    CHECK(elements_of(" close\t") == List{"close"});
    CHECK(elements_of("a,b") == List{"a", "b"});
    CHECK(elements_of("a , b\t,\tc") == List{"a", "b", "c"});
    CHECK(elements_of("a b, c") == List{"a b", "c"});
    CHECK(elements_of("keep-alive, Close") == List{"keep-alive", "Close"});
    CHECK(elements_of("\"a;b\"") == List{"\"a;b\""});
}

TEST_CASE("for_each_element skips empty elements", "[field]") {
    using List = std::vector<std::string>;
    CHECK(elements_of("").empty());
    CHECK(elements_of(" \t").empty());
    CHECK(elements_of(",").empty());
    CHECK(elements_of(" ,\t, ,").empty());
    CHECK(elements_of("a,") == List{"a"});
    CHECK(elements_of(",a") == List{"a"});
    CHECK(elements_of("a,, ,b") == List{"a", "b"});
}

TEST_CASE("is_valid_host accepts names, addresses and ports", "[field]") {
    for (const std::string_view host : {""sv,
                                        "a"sv,
                                        "A.b-c_d~e"sv,
                                        "www.example.org"sv,
                                        "localhost:8080"sv,
                                        "a:"sv,
                                        "a:0"sv,
                                        "a:00080"sv,
                                        "a:99999"sv,
                                        "127.0.0.1"sv,
                                        "127.0.0.1:80"sv,
                                        "1.2.3.4.5"sv,
                                        "[::1]"sv,
                                        "[::1]:80"sv,
                                        "[::1]:"sv,
                                        "[::]"sv,
                                        "[2001:db8::192.0.2.1]"sv,
                                        "[fe80::ABCD]"sv,
                                        "[v1.x:y]"sv,
                                        "[vF.a]"sv,
                                        "a%41"sv,
                                        "%e4%C4"sv,
                                        "a!$&'()*+,;=b"sv,
                                        "a."sv}) {
        INFO('"' << host << '"');
        CHECK(is_valid_host(host));
    }
}

TEST_CASE("is_valid_host refuses what is no host", "[field]") {
    for (const std::string_view host :
         {" "sv,   "a "sv,  "a b"sv,      "a\tb"sv, "a, b"sv, "user@a"sv, "user:password@a"sv,
          "a/b"sv, "/"sv,   "http://a"sv, "a?b"sv,  "a#b"sv,  "a\\b"sv,   "\"a\""sv,
          "<a>"sv, "a|b"sv, "a^b"sv,      "{a}"sv,  "\xe4"sv, "a\x7f"sv,  "a\0b"sv,
          "\x01"sv}) {
        INFO('"' << host << '"');
        CHECK_FALSE(is_valid_host(host));
    }
}

TEST_CASE("is_valid_host refuses bad ports", "[field]") {
    for (const std::string_view host : {"a:b", "a:8o", "a:80:80", "a:-1", "a:+1", "a: 80",
                                        "a:80 80", "a:%38", "::1", "a:80x", "[::1]:a"}) {
        INFO('"' << host << '"');
        CHECK_FALSE(is_valid_host(host));
    }
}

TEST_CASE("is_valid_host refuses bad brackets", "[field]") {
    for (const std::string_view host :
         {"[", "[]", "[]:80", "[::1", "[::1:80", "[::1]a", "[::1]80", "[::1]]", "[[::1]]", "]",
          "::1]", "a[::1]", "[::1 ]", "[ ::1]", "[::1%25eth0]", "[%41]", "[@]"}) {
        INFO('"' << host << '"');
        CHECK_FALSE(is_valid_host(host));
    }
}

TEST_CASE("is_valid_host refuses a name in brackets", "[field]") {
    // RFC 3986 section 3.2.2: brackets hold an IPv6 address or "v" and a version.
    CHECK_FALSE(is_valid_host("[example.org]"));
    CHECK_FALSE(is_valid_host("[:g]"));
}

TEST_CASE("is_valid_host refuses bad percent-encodings", "[field]") {
    for (const std::string_view host :
         {"%", "a%", "a%4", "a%g0", "a%0g", "a% 41", "%%41", "%4:80", "a%41%"}) {
        INFO('"' << host << '"');
        CHECK_FALSE(is_valid_host(host));
    }
}

}  // namespace hello::test

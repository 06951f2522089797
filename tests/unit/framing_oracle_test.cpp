// SPDX-License-Identifier: MIT
//
// HttpSession against a second reading of RFC 9112: both must see every message end at the same
// octet, for two readers that don't are what request smuggling is made of.

#include "../support/framing_oracle.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include "../support/case_file.h"
#include "http_session.h"
#include "support/conversation.h"
#include "support/framing_check.h"
#include "support/guard_page.h"
#include "support/mutator.h"

namespace hello::test {
namespace {

std::string disagreement(std::string_view octets) {
    static GuardedCopy memory(std::size_t{512} * 1024);
    static const HttpLimits kLimits;
    Conversation conversation(memory, kLimits);
    return find_framing_disagreement(octets, conversation);
}

std::string framing_of(std::string_view octets) {
    return to_string(read_framing(octets));
}

}  // namespace

TEST_CASE("The framing oracle finds the end of each message", "[framing]") {
    CHECK(framing_of("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n") == "42 Waiting");
    CHECK(framing_of("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n") == "18 Closed");
    CHECK(framing_of("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET") == "29 Undecided");
    CHECK(framing_of("GET / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhell") == "Waiting");
    CHECK(framing_of("GET / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello!") == "42 Closed");
    CHECK(framing_of("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "1;a\r\nx\r\n0\r\nX: y\r\n\r\nG") == "74 Undecided");
}

TEST_CASE("The framing oracle refuses what two readers may read differently", "[framing]") {
    const std::string_view length = "Content-Length: 1\r\n";
    const std::string_view coding = "Transfer-Encoding: chunked\r\n";
    const auto with = [](std::string fields) {
        return framing_of("GET / HTTP/1.1\r\nHost: a\r\n" + std::move(fields) + "\r\n");
    };
    REQUIRE(with(std::string(length)) == "Waiting");
    CHECK(with(std::string(length).append(length)) == "Refused");
    CHECK(with(std::string(length).append(coding)) == "Refused");
    CHECK(with("X: y\n" + std::string(length)) == "Refused");
    CHECK(with(" " + std::string(length)) == "Refused");
    CHECK(with("Content-Length : 1\r\n") == "Refused");
    CHECK(with("Transfer-Encoding: chunked, x\r\n") == "Refused");
    CHECK(framing_of("GET / HTTP/1.0\r\n" + std::string(coding) + "\r\n") == "Refused");
}

TEST_CASE("HttpSession and the framing oracle agree on every case", "[framing][cases]") {
    for (const std::string& name : list_case_files(HELLO_CASES_DIR)) {
        for (const Case& tested : load_cases(std::string(HELLO_CASES_DIR "/") + name)) {
            INFO(tested.label());
            INFO(printable(tested.input));
            CHECK(disagreement(tested.input) == "");
        }
    }
}

TEST_CASE("HttpSession and the framing oracle agree on random input", "[framing]") {
    Mutator random(short_inputs(), 9112);
    std::string octets;
    std::string failure;
    for (int iteration = 0; iteration < 200'000 && failure.empty(); ++iteration) {
        octets = random.next();
        failure = disagreement(octets);
    }
    INFO(printable(octets));
    CHECK(failure == "");
}

}  // namespace hello::test

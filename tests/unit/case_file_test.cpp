// SPDX-License-Identifier: MIT
//
// Tests of tests/support/case_file.h: the notation of tests/cases/README.md.

#include "../support/case_file.h"

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace hello::test {
namespace {

using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;

std::string file_with(std::string_view input, std::string_view expectation) {
    return "# Title\n\n## It works (RFC 9112 section 3)\n\n```http\n" + std::string(input) +
           "\n```\n\n```expect\n" + std::string(expectation) + "\n```\n";
}

Case only_case(std::string_view input, std::string_view expectation = "200\nopen") {
    const std::vector<Case> cases = parse_cases(file_with(input, expectation), "x.md");
    REQUIRE(cases.size() == 1);
    return cases.front();
}

std::string input_of(std::string_view block) {
    return only_case(block).input;
}

/// Parses a file that must be refused.
void parse(const std::string& text) {
    static_cast<void>(parse_cases(text, "x.md"));
}

}  // namespace

TEST_CASE("A case file gives name, place, input and expectation", "[case_file]") {
    const Case read = only_case("GET / HTTP/1.1\nHost: a\n");
    CHECK(read.name == "It works (RFC 9112 section 3)");
    CHECK(read.line == 3);
    CHECK(read.label() == "x.md:3: It works (RFC 9112 section 3)");
    CHECK(read.input == "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(read.responses == std::vector{CaseResponse{200}});
    CHECK(read.end == CaseEnd::Open);
    CHECK(read.breaks.empty());
}

TEST_CASE("A case file holds several cases", "[case_file]") {
    const std::string first = file_with("a", "waiting head");
    const std::string second =
        "## Another one (design 4)\nWhy.\n```http\nb\n```\n"
        "```expect\n400 close\nclosed\n```\n";
    const std::vector<Case> cases = parse_cases(first + second, "x.md");
    REQUIRE(cases.size() == 2);
    CHECK(cases[1].input == "b\r\n");
    CHECK(cases[1].end == CaseEnd::Closed);
}

TEST_CASE("A line of input ends in CRLF unless a backslash ends it", "[case_file]") {
    CHECK(input_of("a\nb") == "a\r\nb\r\n");
    CHECK(input_of("a\\\nb\\") == "ab");
    CHECK(input_of("a\n\n") == "a\r\n\r\n\r\n");
}

TEST_CASE("Escapes stand for octets", "[case_file]") {
    using namespace std::string_literals;
    CHECK(input_of("a\\r\\n\\t\\0\\\\\\{\\}\\") == "a\r\n\t\0\\{}"s);
    CHECK(input_of("\\x00\\x7f\\xFf\\x20\\") == "\0\x7f\xff "s);
    CHECK(input_of("\\\\") == "\\\r\n");
}

TEST_CASE("A repetition stands for many octets", "[case_file]") {
    CHECK(input_of("{3*a}b\\") == "aaab");
    CHECK(input_of("{0*a}b\\") == "b");
    CHECK(input_of("{2*X: y\\r\\n}\\") == "X: y\r\nX: y\r\n");
    CHECK(input_of("{2*\\}}{1*\\{}\\") == "}}{");
    CHECK(input_of("{8192*a}\\") == std::string(8192, 'a'));
}

TEST_CASE("The client can stop", "[case_file]") {
    const Case read = only_case("ab\n{wait}\ncd\\\n{pause}\ne", "100\n200\nopen");
    CHECK(read.input == "ab\r\ncde\r\n");
    REQUIRE(read.breaks.size() == 2);
    CHECK(read.breaks[0].offset == 4);
    CHECK(read.breaks[0].kind == CaseBreak::Kind::Wait);
    CHECK(read.breaks[1].offset == 6);
    CHECK(read.breaks[1].kind == CaseBreak::Kind::Pause);
}

TEST_CASE("An expectation lists responses", "[case_file]") {
    const Case read = only_case("a", "200 x2\n200 keep-alive\n100?\n400 close head\nclosed");
    CHECK(to_string(read.responses) == "[200, 200, 200 keep-alive, 100?, 400 close head]");
    CHECK(read.responses[2].connection == ConnectionField::KeepAlive);
    CHECK(read.responses[3].optional);
    CHECK(read.responses[4].head_only);
}

TEST_CASE("An expectation ends in a state", "[case_file]") {
    for (const std::string_view state : {"open", "waiting head", "waiting body"}) {
        CHECK(to_string(only_case("a", state).end) == state);
    }
    CHECK(only_case("a", "400 close\nclosed").end == CaseEnd::Closed);
}

TEST_CASE("An optional interim response may be missing, nothing else may", "[case_file]") {
    const CaseResponse interim{100};
    const CaseResponse maybe{100, ConnectionField::Absent, false, true};
    const CaseResponse okay{200};
    const CaseResponse last{200, ConnectionField::Close};
    CHECK(matches({okay, last}, {okay, last}));
    CHECK(matches({maybe, okay}, {interim, okay}));
    CHECK(matches({maybe, okay}, {okay}));
    CHECK(matches({}, {}));
    CHECK_FALSE(matches({interim, okay}, {okay}));
    CHECK_FALSE(matches({okay}, {interim, okay}));
    CHECK_FALSE(matches({maybe, okay}, {interim, interim, okay}));
    CHECK_FALSE(matches({okay}, {last}));
    CHECK_FALSE(matches({okay}, {}));
    CHECK_FALSE(matches({okay}, {okay, okay}));
}

TEST_CASE("Octets are shown so that they can be read", "[case_file]") {
    using namespace std::string_view_literals;
    CHECK(printable("a b\r\n\t\0\x80\\"sv) == "a b\\r\\n\\x09\\x00\\x80\\x5c");
    CHECK(printable(std::string(1000, 'a')).size() < 500);
}

TEST_CASE("A case file that is wrong is refused with its line", "[case_file]") {
    struct Row {
        std::string text;
        std::string error;
    };
    const std::vector<Row> rows{
        {"# Title\n", "x.md:2: no case"},
        {"```http\n", "x.md:1: a block before the first case"},
        {"## No section\n", "x.md:1: the heading names no section"},
        {"## A (RFC 1)\n", "x.md:1: the case has no ```expect block"},
        {"## A (RFC 1)\n```expect\n", "x.md:2: the ```http block comes first"},
        {"## A (RFC 1)\n```http\na\n", "x.md:4: the block has no end"},
        {"## A (RFC 1)\n```http\n```\n", "x.md:3: empty input"},
        {"## A (RFC 1)\n```http\na\n## B (RFC 1)\n", "x.md:3: the block has no end"},
        {"## A (RFC 1)\n```http\na\n```\n```http\n", "x.md:5: a second ```http block"},
        {"## A (RFC 1)\n```sh\n", "x.md:2: unknown block '```sh'"},
        {"## A (RFC 1)\n```http\na \n```\n", "x.md:3: white space nobody can see"},
        {"## A (RFC 1)\n```http\na\tb\n```\n", "x.md:3: white space nobody can see"},
        {"## A (RFC 1)\n```http\n\xc3\xa4\n```\n", "x.md:3: only printable ASCII"},
        {"## A (RFC 1)\n```http\na\r\n```\n", "x.md:3: only printable ASCII"},
        {"## A (RFC 1)\n```http\n\\q\n```\n", "x.md:3: unknown escape '\\q'"},
        {"## A (RFC 1)\n```http\n\\xg0\n```\n", "x.md:3: \\x needs two hexadecimal digits"},
        {"## A (RFC 1)\n```http\n\\x1\n```\n", "x.md:3: \\x needs two hexadecimal digits"},
        {"## A (RFC 1)\n```http\n{3*a\n```\n", "x.md:3: a repetition without '}'"},
        {"## A (RFC 1)\n```http\n{a}\n```\n", "x.md:3: '{' begins a repetition"},
        {"## A (RFC 1)\n```http\n{9999999*a}\n```\n", "x.md:3: '{' begins a repetition"},
        {"## A (RFC 1)\n```http\n a {wait}\n```\n", "x.md:3: '{' begins a repetition"},
        {file_with("a", "200") + "## B", "x.md:11: the last line is the state"},
        {file_with("a", "open\n200"), "x.md:11: nothing comes after the state"},
        {file_with("a", "maybe\nopen"), "x.md:10: 'maybe' is neither a response nor a state"},
        {file_with("a", "99\nopen"), "x.md:10: '99' is neither a response nor a state"},
        {file_with("a", "200 often\nopen"), "x.md:10: unknown word 'often'"},
        {file_with("a", "200 2\nopen"), "x.md:10: unknown word '2'"},
        {file_with("a", "200\nclosed"), "x.md:12: 'closed' needs a response that says 'close'"},
        {file_with("a", "200 close\nopen"), "x.md:12: after a response that says 'close'"},
        {file_with("a", "200 close x2\nclosed"), "x.md:12: after a response that says 'close'"},
        {file_with("a", "100\n200\nopen"), "x.md:13: a '100' is certain only where"},
        {file_with("a", "open") + file_with("a", "open"), "x.md:14: a case of this name"},
        {file_with("a", "open") + "```expect\n", "x.md:12: a second ```expect block"},
    };
    for (const Row& row : rows) {
        INFO(row.text);
        CHECK_THROWS_WITH(parse(row.text), StartsWith(row.error));
    }
}

TEST_CASE("A case file that isn't there is refused", "[case_file]") {
    CHECK_THROWS_WITH(load_cases("/nonexistent/x.md"),
                      Equals("/nonexistent/x.md:0: can't be opened"));
}

}  // namespace hello::test

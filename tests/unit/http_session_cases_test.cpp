// SPDX-License-Identifier: MIT
//
// Every case of tests/cases through HttpSession: as the client of the case sends it, whole, cut in
// two at every place, and one octet at a time, each piece ending at an inaccessible page.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "../support/case_file.h"
#include "answer.h"
#include "http_session.h"
#include "response.h"
#include "support/conversation.h"
#include "support/guard_page.h"
#include "support/image_reader.h"

namespace hello::test {
namespace {

constexpr std::size_t kInputMax = 512 * 1024;
constexpr std::size_t kShortInput = 2048;  // is cut in two everywhere; a longer one at samples
constexpr std::size_t kSamplesMax = 300;

const ResponseImages& images() {
    static const ResponseImages kImages("Hello World!", "hello-uring");
    return kImages;
}

GuardedCopy& guarded_memory() {
    static GuardedCopy memory(kInputMax);
    return memory;
}

/// A session that keeps the default limits.
Conversation converse() {
    static const HttpLimits kLimits;
    return Conversation(guarded_memory(), kLimits);
}

CaseEnd end_of(HttpSession::Phase phase) {
    switch (phase) {
        case HttpSession::Phase::Idle: return CaseEnd::Open;
        case HttpSession::Phase::Head: return CaseEnd::WaitingHead;
        case HttpSession::Phase::Body: return CaseEnd::WaitingBody;
        case HttpSession::Phase::Finished: break;
    }
    return CaseEnd::Closed;
}

/// The responses as a client sees them. Each kind of answer is read once only.
std::vector<CaseResponse> render(const std::vector<Answer>& answers) {
    static std::array<std::optional<CaseResponse>, kAnswerCount> cache;
    std::vector<CaseResponse> responses;
    responses.reserve(answers.size());
    for (const Answer& answer : answers) {
        std::optional<CaseResponse>& response = cache.at(answer.index());
        if (!response) {
            response = describe(read_image(images().image(answer)));
        }
        responses.push_back(*response);
    }
    return responses;
}

/// What is wrong with how a conversation ended; empty where nothing is.
std::string judge(const Case& tested,
                  const std::vector<CaseResponse>& expected,
                  const Conversation& conversation) {
    const std::vector<CaseResponse> seen = render(conversation.answers());
    const CaseEnd end = end_of(conversation.phase());
    if (!matches(expected, seen) || end != tested.end) {
        return "expected " + to_string(expected) + " " + to_string(tested.end) + ", seen " +
               to_string(seen) + " " + to_string(end);
    }
    return conversation.broken_rule();
}

std::vector<CaseResponse> with_optional_interim(std::vector<CaseResponse> responses) {
    for (CaseResponse& response : responses) {
        response.optional = response.is_interim();
    }
    return responses;
}

/// As the client of the case sends it: an interim response is certain, and so is silence.
std::string run_as_sent(const Case& tested) {
    Conversation conversation = converse();
    std::string_view rest = tested.input;
    std::size_t begin = 0;
    for (const CaseBreak& stop : tested.breaks) {
        const std::size_t count = conversation.answers().size();
        if (stop.offset != begin) {
            conversation.feed(rest.substr(0, stop.offset - begin));
            rest.remove_prefix(stop.offset - begin);
            begin = stop.offset;
        }
        const bool answered = conversation.answers().size() != count;
        if (answered != (stop.kind == CaseBreak::Kind::Wait)) {
            return answered ? "an answer at {pause}" : "no answer at {wait}";
        }
    }
    if (!rest.empty()) {
        conversation.feed(rest);
    }
    return judge(tested, tested.responses, conversation);
}

/// Places to cut the input: all of them where it is short, else those near line ends, colons and
/// changes of octet, thinned out, and the ends.
std::vector<std::size_t> cut_places(std::string_view input) {
    std::set<std::size_t> places;
    const std::size_t last = input.size() - 1;
    for (std::size_t at = 1; at <= last; ++at) {
        if (input.size() <= kShortInput || input[at] != input[at - 1]) {
            places.insert({std::max<std::size_t>(at - 1, 1), at, std::min(at + 1, last)});
        }
    }
    for (std::size_t index = 1; index < 20; ++index) {
        places.insert(std::max<std::size_t>(input.size() * index / 20, 1));
    }
    std::vector<std::size_t> all(places.begin(), places.end());
    if (input.size() <= kShortInput || all.size() <= kSamplesMax) {
        return all;
    }
    std::vector<std::size_t> samples;
    for (std::size_t index = 0; index < kSamplesMax; ++index) {
        samples.push_back(all[index * all.size() / kSamplesMax]);
    }
    return samples;
}

std::string run_pieces(const Case& tested, std::size_t piece_size) {
    Conversation conversation = converse();
    conversation.feed_pieces(tested.input, piece_size);
    return judge(tested, with_optional_interim(tested.responses), conversation);
}

std::string run_cut(const Case& tested, std::size_t place) {
    Conversation conversation = converse();
    const std::string_view input = tested.input;
    conversation.feed(input.substr(0, place));
    conversation.feed(input.substr(place));
    return judge(tested, with_optional_interim(tested.responses), conversation);
}

/// All ways of sending; the first failure, empty where there is none.
std::string run_all_ways(const Case& tested) {
    if (std::string failure = run_as_sent(tested); !failure.empty()) {
        return "as sent: " + failure;
    }
    for (const std::size_t size : {kInputMax, std::size_t{1}, std::size_t{7}}) {
        if (std::string failure = run_pieces(tested, size); !failure.empty()) {
            return "in pieces of " + std::to_string(size) + ": " + failure;
        }
    }
    for (const std::size_t place : cut_places(tested.input)) {
        if (std::string failure = run_cut(tested, place); !failure.empty()) {
            return "cut at " + std::to_string(place) + ": " + failure;
        }
    }
    return "";
}

void check_file(const std::string& name) {
    for (const Case& tested : load_cases(std::string(HELLO_CASES_DIR "/") + name)) {
        INFO(tested.label());
        INFO(printable(tested.input));
        CHECK(run_all_ways(tested) == "");
    }
}

}  // namespace

TEST_CASE("HttpSession judges the request line", "[http_session][cases]") {
    check_file("request_line.md");
}

TEST_CASE("HttpSession judges Host", "[http_session][cases]") {
    check_file("host.md");
}

TEST_CASE("HttpSession judges fields", "[http_session][cases]") {
    check_file("fields.md");
}

TEST_CASE("HttpSession knows its methods", "[http_session][cases]") {
    check_file("method.md");
}

TEST_CASE("HttpSession reads content by its length", "[http_session][cases]") {
    check_file("content_length.md");
}

TEST_CASE("HttpSession reads chunked content", "[http_session][cases]") {
    check_file("transfer_encoding.md");
}

TEST_CASE("HttpSession keeps or closes the connection as asked", "[http_session][cases]") {
    check_file("connection.md");
}

TEST_CASE("HttpSession serves HTTP/1.0", "[http_session][cases]") {
    check_file("http10.md");
}

TEST_CASE("HttpSession answers pipelined requests in order", "[http_session][cases]") {
    check_file("pipelining.md");
}

TEST_CASE("HttpSession meets expectations", "[http_session][cases]") {
    check_file("expect.md");
}

TEST_CASE("HttpSession ignores upgrades", "[http_session][cases]") {
    check_file("upgrade.md");
}

TEST_CASE("HttpSession refuses what could be read in two ways", "[http_session][cases]") {
    check_file("smuggling.md");
}

TEST_CASE("HttpSession keeps its limits", "[http_session][cases]") {
    check_file("limits.md");
}

TEST_CASE("Every case file has its test", "[http_session][cases]") {
    const std::vector<std::string> tested{
        "connection.md", "content_length.md", "expect.md",    "fields.md",
        "host.md",       "http10.md",         "limits.md",    "method.md",
        "pipelining.md", "request_line.md",   "smuggling.md", "transfer_encoding.md",
        "upgrade.md",
    };
    CHECK(list_case_files(HELLO_CASES_DIR) == tested);
}

TEST_CASE("There are at least 120 protocol cases", "[http_session][cases]") {
    std::size_t count = 0;
    for (const std::string& name : list_case_files(HELLO_CASES_DIR)) {
        count += load_cases(std::string(HELLO_CASES_DIR "/") + name).size();
    }
    CHECK(count >= 120);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Tests of http_session.h beyond the protocol cases: phases, time, limits of one's own, closing,
// and that random input gives the same answers however it is split.

#include "http_session.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "../support/case_file.h"
#include "answer.h"
#include "support/allocation_counter.h"
#include "support/conversation.h"
#include "support/guard_page.h"
#include "support/mutator.h"
#include "support/small_limits.h"

namespace hello::test {
namespace {

using Phase = HttpSession::Phase;
using Verdict = HttpSession::Verdict;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kGetClose = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
constexpr std::string_view kHead = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kPostHead = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
constexpr std::string_view kChunkedHead =
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kExpectHead =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";

constexpr Answer kOk{Status::Ok, Persistence::Implied, Content::Full};
constexpr Answer kOkClose{Status::Ok, Persistence::Close, Content::Full};
constexpr Answer kContinue{Status::Continue, Persistence::Implied, Content::Full};

constexpr Answer refusal(Status status, Content content = Content::Full) {
    return {status, Persistence::Close, content};
}

GuardedCopy& guarded_memory() {
    static GuardedCopy memory(std::size_t{64} * 1024);
    return memory;
}

const HttpLimits& default_limits() {
    static const HttpLimits kLimits;
    return kLimits;
}

Conversation converse() {
    return Conversation(guarded_memory(), default_limits());
}

Outcome outcome_of(std::string_view octets, const HttpLimits& limits = default_limits()) {
    Conversation conversation(guarded_memory(), limits);
    conversation.feed(octets);
    return conversation.outcome();
}

/// The phase after each octet: I(dle), H(ead), B(ody), F(inished).
std::string phases_of(std::string_view octets) {
    Conversation conversation = converse();
    std::string phases;
    for (std::size_t at = 0; at < octets.size(); ++at) {
        conversation.feed(octets.substr(at, 1));
        phases += "IHBF"[static_cast<std::size_t>(conversation.phase())];
    }
    return phases;
}

std::string repeated(std::string_view text, std::size_t count) {
    std::string result;
    for (std::size_t index = 0; index < count; ++index) {
        result += text;
    }
    return result;
}

std::string get_with_fields(std::size_t count) {
    return "GET / HTTP/1.1\r\nHost: a\r\n" + repeated("X: y\r\n", count - 1) + "\r\n";
}

}  // namespace

TEST_CASE("HttpSession is idle at first and owes nothing", "[http_session]") {
    Conversation conversation = converse();
    CHECK(conversation.phase() == Phase::Idle);
    CHECK(conversation.feed("") == Verdict::Read);
    CHECK(conversation.outcome() == Outcome{{}, Phase::Idle});
}

TEST_CASE("HttpSession is in the head from the first octet on", "[http_session]") {
    CHECK(phases_of(kGet) == std::string(kGet.size() - 1, 'H') + "I");
}

TEST_CASE("HttpSession is in the body until the content is complete", "[http_session]") {
    CHECK(phases_of(std::string(kPostHead) + "hello") ==
          std::string(kPostHead.size() - 1, 'H') + "BBBBBI");
}

TEST_CASE("HttpSession is in the body until the trailers are complete", "[http_session]") {
    constexpr std::string_view kContent = "5\r\nhello\r\n0\r\nX: y\r\n\r\n";
    CHECK(phases_of(std::string(kChunkedHead) + std::string(kContent)) ==
          std::string(kChunkedHead.size() - 1, 'H') + std::string(kContent.size(), 'B') + "I");
}

TEST_CASE("HttpSession is in the head while empty lines come", "[http_session]") {
    // The header timer starts at the first octet, whatever it is.
    CHECK(phases_of("\r\n\r\nG") == "HHHHH");
    CHECK(phases_of(std::string(kGet) + "\r\n").ends_with("IHH"));
}

TEST_CASE("HttpSession is finished after the last answer", "[http_session]") {
    CHECK(phases_of(kGetClose).ends_with("HF"));
    CHECK(phases_of("GET /\r\nab").ends_with("HFFF"));
}

TEST_CASE("HttpSession closes where all input was used", "[http_session]") {
    Conversation conversation = converse();
    CHECK(conversation.feed(kGetClose) == Verdict::Close);
}

TEST_CASE("HttpSession lingers where input is left over", "[http_session]") {
    Conversation conversation = converse();
    CHECK(conversation.feed(std::string(kGetClose) + "x") == Verdict::Linger);
    CHECK(conversation.answers() == std::vector{kOkClose});
}

TEST_CASE("HttpSession lingers after an error", "[http_session]") {
    // More input is likely to be on its way; closing at once would reset the connection.
    Conversation conversation = converse();
    CHECK(conversation.feed("GET / HTTP/1.1\r\n\r\n") == Verdict::Linger);
}

TEST_CASE("HttpSession takes no notice of what follows the last answer", "[http_session]") {
    for (const std::string_view last : {kGetClose, std::string_view("BAD\r\n")}) {
        Conversation conversation = converse();
        conversation.feed(last);
        const Outcome before = conversation.outcome();
        CHECK(conversation.feed(kGet) == Verdict::Linger);
        CHECK(conversation.feed(std::string(1, '\0')) == Verdict::Linger);
        CHECK(conversation.feed("") != Verdict::Read);
        CHECK(conversation.outcome() == before);
    }
}

TEST_CASE("HttpSession goes on reading after an ordinary request", "[http_session]") {
    Conversation conversation = converse();
    for (int count = 0; count < 100; ++count) {
        CHECK(conversation.feed(kGet) == Verdict::Read);
    }
    CHECK(conversation.answers() == std::vector<Answer>(100, kOk));
}

TEST_CASE("HttpSession answers a request that took too long with 408", "[http_session]") {
    for (const std::string_view begun :
         {std::string_view("G"), kGet.substr(0, kGet.size() - 1), kPostHead, kChunkedHead,
          std::string_view("\r\nG"), std::string_view("FROBNICA")}) {
        INFO(begun);
        Conversation conversation = converse();
        conversation.feed(begun);
        CHECK(conversation.expire() == Verdict::Linger);
        CHECK(conversation.outcome() ==
              Outcome{{refusal(Status::RequestTimeout)}, Phase::Finished});
    }
}

TEST_CASE("HttpSession answers 408 to HEAD without content", "[http_session]") {
    Conversation conversation = converse();
    conversation.feed("HEAD / HTTP/1.1\r\nHo");
    CHECK(conversation.expire() == Verdict::Linger);
    CHECK(conversation.answers() ==
          std::vector{refusal(Status::RequestTimeout, Content::HeadOnly)});
}

TEST_CASE("HttpSession closes an idle connection without a word", "[http_session]") {
    Conversation conversation = converse();
    CHECK(conversation.expire() == Verdict::Close);
    CHECK(conversation.outcome() == Outcome{{}, Phase::Finished});
}

TEST_CASE("HttpSession closes without a word after requests, too", "[http_session]") {
    for (const std::string_view before : {kGet, kHead}) {
        Conversation conversation = converse();
        conversation.feed(before);
        CHECK(conversation.expire() == Verdict::Close);
        CHECK(conversation.answers().size() == 1);
        CHECK(conversation.phase() == Phase::Finished);
    }
}

TEST_CASE("HttpSession takes empty lines for no request when time is over", "[http_session]") {
    Conversation conversation = converse();
    conversation.feed("\r\n\r\n");
    CHECK(conversation.expire() == Verdict::Close);
    CHECK(conversation.outcome() == Outcome{{}, Phase::Finished});
}

TEST_CASE("HttpSession answers nothing when time is over after the last answer", "[http_session]") {
    for (const std::string_view last : {kGetClose, std::string_view("BAD\r\n")}) {
        Conversation conversation = converse();
        conversation.feed(last);
        const Outcome before = conversation.outcome();
        CHECK(conversation.expire() != Verdict::Read);
        CHECK(conversation.expire() != Verdict::Read);
        CHECK(conversation.outcome() == before);
    }
}

TEST_CASE("HttpSession closes with the answer to the request being read", "[http_session]") {
    for (const std::size_t place : {std::size_t{0}, std::size_t{1}, kGet.size() - 1}) {
        Conversation conversation = converse();
        conversation.feed(kGet.substr(0, place));
        conversation.finish_soon();
        CHECK(conversation.feed(kGet.substr(place)) == Verdict::Close);
        CHECK(conversation.outcome() == Outcome{{kOkClose}, Phase::Finished});
    }
}

TEST_CASE("HttpSession closes with the answer to the content being read", "[http_session]") {
    Conversation conversation = converse();
    conversation.feed(std::string(kPostHead) + "hel");
    conversation.finish_soon();
    CHECK(conversation.feed("lo" + std::string(kGet)) == Verdict::Linger);
    CHECK(conversation.outcome() == Outcome{{kOkClose}, Phase::Finished});
}

TEST_CASE("HttpSession says close to HTTP/1.0 when it finishes", "[http_session]") {
    Conversation conversation = converse();
    conversation.finish_soon();
    conversation.feed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK(conversation.answers() == std::vector{kOkClose});
}

TEST_CASE("HttpSession still owes what it owed when it finishes", "[http_session]") {
    Conversation conversation = converse();
    conversation.feed(std::string(kGet) + std::string(kGet));
    conversation.finish_soon();
    CHECK(conversation.phase() == Phase::Idle);
    CHECK(conversation.answers() == std::vector{kOk, kOk});
}

TEST_CASE("HttpSession sends 100 at the end of the head", "[http_session]") {
    Conversation conversation = converse();
    conversation.feed(kExpectHead.substr(0, kExpectHead.size() - 1));
    CHECK(conversation.answers().empty());
    conversation.feed(kExpectHead.substr(kExpectHead.size() - 1));
    CHECK(conversation.answers() == std::vector{kContinue});
    conversation.feed("");
    conversation.feed("he");
    conversation.feed("llo");
    CHECK(conversation.answers() == std::vector{kContinue, kOk});
}

TEST_CASE("HttpSession spares 100 where content came along", "[http_session]") {
    Conversation conversation = converse();
    conversation.feed(std::string(kExpectHead) + "h");
    conversation.feed("ello");
    CHECK(conversation.answers() == std::vector{kOk});
}

TEST_CASE("HttpSession keeps the limits it is given", "[http_session]") {
    HttpLimits limits;
    limits.head_bytes_max = 100;
    limits.target_bytes_max = 20;
    limits.field_count_max = 3;
    limits.chunk_bytes_max = 10;
    limits.blank_bytes_max = 4;
    const auto status = [&](const std::string& octets) {
        const Outcome outcome = outcome_of(octets, limits);
        REQUIRE(outcome.answers.size() == 1);
        return outcome.answers.front().status;
    };
    const auto target = [](std::size_t size) {
        return "GET /" + std::string(size - 1, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
    };
    const auto head = [](std::size_t size) {
        return "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(size - 32, 'x') + "\r\n\r\n";
    };
    const auto extension = [](std::size_t size) {
        return std::string(kChunkedHead) + "1;" + std::string(size - 1, 'a') + "\r\nx\r\n0\r\n\r\n";
    };
    CHECK(status(target(20)) == Status::Ok);
    CHECK(status(target(21)) == Status::UriTooLong);
    CHECK(head(100).size() == 100);
    CHECK(status(head(100)) == Status::Ok);
    CHECK(status(head(101)) == Status::HeaderFieldsTooLarge);
    CHECK(status(get_with_fields(3)) == Status::Ok);
    CHECK(status(get_with_fields(4)) == Status::HeaderFieldsTooLarge);
    CHECK(status(extension(10)) == Status::Ok);
    CHECK(status(extension(11)) == Status::HeaderFieldsTooLarge);
    CHECK(status("\r\n\r\n" + std::string(kGet)) == Status::Ok);
    CHECK(status("\r\n\r\n\r\n" + std::string(kGet)) == Status::BadRequest);
}

TEST_CASE("HttpSession refuses a head at the octet that is too many", "[http_session]") {
    Conversation conversation = converse();
    const std::string begin = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    conversation.feed(begin + std::string(16 * 1024 - 1 - begin.size(), 'x'));
    CHECK(conversation.phase() == Phase::Head);
    conversation.feed("x");
    CHECK(conversation.answers() == std::vector{refusal(Status::HeaderFieldsTooLarge)});
}

TEST_CASE("HttpSession refuses a target at the octet that is too many", "[http_session]") {
    Conversation conversation = converse();
    conversation.feed("GET /" + std::string(8 * 1024 - 1, 'a'));
    CHECK(conversation.phase() == Phase::Head);
    conversation.feed("a");
    CHECK(conversation.answers() == std::vector{refusal(Status::UriTooLong)});
}

TEST_CASE("HttpSession refuses empty lines at the octet that is too many", "[http_session]") {
    Conversation conversation = converse();
    conversation.feed(repeated("\r\n", 512));
    CHECK(conversation.phase() == Phase::Head);
    conversation.feed("\r");
    CHECK(conversation.answers() == std::vector{refusal(Status::BadRequest)});
}

TEST_CASE("HttpSession counts anew for each message", "[http_session]") {
    HttpLimits limits;
    limits.head_bytes_max = 100;
    limits.target_bytes_max = 20;
    limits.field_count_max = 3;
    limits.chunk_bytes_max = 10;
    limits.blank_bytes_max = 4;
    const std::string round = get_with_fields(3) + "\r\n\r\n" + "GET /" + std::string(19, 'a') +
                              " HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(kChunkedHead) +
                              "1;abcdefghi\r\nx\r\n0\r\n\r\n\r\n";
    const Outcome outcome = outcome_of(repeated(round, 50), limits);
    CHECK(outcome.answers == std::vector<Answer>(150, kOk));
}

TEST_CASE("HttpSession allocates nothing for ordinary requests", "[http_session]") {
    HttpSession session(default_limits());
    AnswerQueue answers;
    const std::string requests =
        repeated(kGet, 100) + std::string(kPostHead) + "hello" + repeated(get_with_fields(50), 3);
    const Verdict first = session.feed(kGet, answers);  // finds its memory, once per connection
    const std::size_t before = AllocationCounter::calls();
    const Verdict verdict = session.feed(requests, answers);
    const std::size_t calls = AllocationCounter::calls() - before;
    CHECK(first == Verdict::Read);
    CHECK(verdict == Verdict::Read);
    CHECK(answers.size() == 105);
    CHECK(calls == 0);
}

TEST_CASE("HttpSession is small, for there is one per connection", "[http_session]") {
    CHECK(sizeof(HttpSession) <= 320);
}

TEST_CASE("HttpSession answers with the status the error calls for", "[http_session]") {
    struct Row {
        std::string_view request;
        Status status;
    };
    constexpr std::string_view kHost = "Host: a\r\n\r\n";
    const std::vector<Row> rows{
        {"G\x01T / HTTP/1.1\r\n", Status::BadRequest},    // HPE_INVALID_METHOD
        {"GOT / HTTP/1.1\r\n", Status::NotImplemented},   // HPE_INVALID_METHOD
        {"GET  \x01 HTTP/1.1\r\n", Status::BadRequest},   // HPE_INVALID_URL
        {"GET / XTTP/1.1\r\n", Status::BadRequest},       // HPE_INVALID_CONSTANT
        {"PLAY / HTTP/1.1\r\n", Status::NotImplemented},  // HPE_INVALID_CONSTANT
        {"GET / HTTP/x.1\r\n", Status::BadRequest},       // HPE_INVALID_VERSION
        {"GET / HTTP/1.9\r\n", Status::HttpVersionNotSupported},
        {"GET / HTTP/1.1\r\nA B: c\r\n", Status::BadRequest},   // HPE_INVALID_HEADER_TOKEN
        {"GET / HTTP/1.1\r\nA: b\rc\r\n", Status::BadRequest},  // HPE_LF_EXPECTED
        {"GET / HTTP/1.1\r\nA: b\nc\r\n", Status::BadRequest},  // HPE_CR_EXPECTED
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Status::HttpVersionNotSupported},
        {"PRI / HTTP/1.0\r\n\r\n", Status::HttpVersionNotSupported},
    };
    for (const Row& row : rows) {
        INFO(printable(row.request));
        CHECK(outcome_of(std::string(row.request) + std::string(kHost)) ==
              Outcome{{refusal(row.status)}, Phase::Finished});
    }
}

namespace {

struct SplitResult {
    Outcome outcome;
    std::string broken_rule;
};

/// Feeds pieces of random size up to `size_max`.
SplitResult feed_randomly(std::string_view octets,
                          std::size_t size_max,
                          const HttpLimits& limits,
                          Mutator& random) {
    Conversation conversation(guarded_memory(), limits);
    while (!octets.empty()) {
        const std::size_t size =
            std::min(octets.size(), size_max == 1 ? 1 : 1 + random.below(size_max));
        conversation.feed(octets.substr(0, size));
        octets.remove_prefix(size);
    }
    return {without_interim(conversation.outcome()), conversation.broken_rule()};
}

/// Input on which two ways of splitting disagree or a rule is broken; empty where there is none.
std::string find_disagreement(const HttpLimits& limits, unsigned seed, int iterations) {
    Mutator random(short_inputs(), seed);
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const std::string octets = random.next();
        Conversation whole(guarded_memory(), limits);
        whole.feed(octets);
        const Outcome expected = without_interim(whole.outcome());
        for (const std::size_t size_max : {1U, 8U, 100U}) {
            const SplitResult result = feed_randomly(octets, size_max, limits, random);
            if (result.outcome != expected || !result.broken_rule.empty()) {
                return "iteration " + std::to_string(iteration) + ": " + printable(octets) +
                       ": whole " + to_string(expected) + ", in pieces of at most " +
                       std::to_string(size_max) + " " + to_string(result.outcome) + " " +
                       result.broken_rule;
            }
        }
    }
    return "";
}

}  // namespace

TEST_CASE("HttpSession gives the same answers however random input is split", "[http_session]") {
    CHECK(find_disagreement(default_limits(), 9112, 20000) == "");
}

TEST_CASE("HttpSession keeps small limits however random input is split", "[http_session]") {
    CHECK(find_disagreement(small_limits(), 9110, 20000) == "");
}

TEST_CASE("HttpSession survives octets that are nothing at all", "[http_session]") {
    std::mt19937 random(1);
    for (int iteration = 0; iteration < 2000; ++iteration) {
        std::string octets(random() % 200, '\0');
        std::ranges::generate(
            octets, [&] { return static_cast<char>(static_cast<unsigned char>(random() % 256)); });
        Conversation conversation = converse();
        conversation.feed_pieces(octets, 1 + random() % 20);
        REQUIRE(conversation.broken_rule().empty());
        REQUIRE(conversation.answers().size() <= 1);
    }
}

}  // namespace hello::test

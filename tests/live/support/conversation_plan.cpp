// SPDX-License-Identifier: MIT
//
// The requests that conversations are made of, and the dice.

#include "support/conversation_plan.h"

#include <algorithm>
#include <span>

#include "support/raw_client.h"

namespace hello::test {
namespace {

struct Request {
    std::string octets;
    AnswerPattern answer;
};

constexpr AnswerContent kFull = AnswerContent::Full;
constexpr AnswerContent kHeadOnly = AnswerContent::HeadOnly;

/// Requests after which the connection stays open.
std::span<const Request> lasting_requests() {
    static const std::vector<Request> requests{
        {std::string(kGet), {200, "", kFull}},
        {std::string(kHead), {200, "", kHeadOnly}},
        {std::string(kPost), {200, "", kFull}},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", {200, "keep-alive", kFull}},
        {"HEAD / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", {200, "keep-alive", kHeadOnly}},
        {"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc",
         {200, "keep-alive", kFull}},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
         "5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: z\r\n\r\n",
         {200, "", kFull}},
        {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" + std::string(20000, 'b'),
         {200, "", kFull}},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", {200, "", kFull}},
        {"\r\nGET http://a/b?c HTTP/1.1\r\nHost: a\r\n\r\n", {200, "", kFull}},
    };
    return requests;
}

/// Requests that end the connection in order.
std::span<const Request> last_requests() {
    static const std::vector<Request> requests{
        {std::string(kGetClose), {200, "close", kFull}},
        {std::string(kGet10), {200, "close", kFull}},
        {"HEAD / HTTP/1.0\r\n\r\n", {200, "close", kHeadOnly}},
        {"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", {200, "close", kHeadOnly}},
        {"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
         {200, "close", kFull}},
    };
    return requests;
}

/// Requests that are refused.
std::span<const Request> refused_requests() {
    static const std::vector<Request> requests{
        {"GET / HTTP/1.1\r\n\r\n", {400, "close", kFull}},
        {"HEAD / HTTP/1.1\r\n\r\n", {400, "close", kHeadOnly}},
        {"\x16\x03\x01 not http\r\n\r\n", {400, "close", kFull}},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
         {400, "close", kFull}},
        {"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", {405, "close", kFull}},
        {"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", {405, "close", kFull}},
        {"GET /" + std::string(9000, 'u') + " HTTP/1.1\r\nHost: a\r\n\r\n", {414, "close", kFull}},
        {"GET / HTTP/1.1\r\nHost: a\r\n" + repeat("X: y\r\n", 200) + "\r\n", {431, "close", kFull}},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'x') + "\r\n\r\n",
         {431, "close", kFull}},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
         {501, "close", kFull}},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", {505, "close", kFull}},
    };
    return requests;
}

const AnswerPattern kContinue(100, "", kFull);
const AnswerPattern kOk(200, "", kFull);

constexpr std::string_view kExpectHead =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";

class Dice {
public:
    explicit Dice(std::mt19937_64& source) : source_(source) {}

    /// low to high, both included
    [[nodiscard]] std::size_t between(std::size_t low, std::size_t high) {
        return std::uniform_int_distribution<std::size_t>(low, high)(source_);
    }
    [[nodiscard]] bool percent(std::size_t chance) { return between(1, 100) <= chance; }
    [[nodiscard]] Milliseconds up_to(Milliseconds longest) {
        return Milliseconds(between(0, static_cast<std::size_t>(longest.count())));
    }
    [[nodiscard]] const Request& one_of(std::span<const Request> requests) {
        return requests[between(0, requests.size() - 1)];
    }

private:
    std::mt19937_64& source_;
};

void add(ConversationPlan& plan, const Request& request) {
    plan.steps.back().octets += request.octets;
    plan.answers.push_back({&request.answer, false});
    ++plan.requests;
}

/// The client waits for the interim response, or sends the content along and may be spared it.
void add_expecting(ConversationPlan& plan, Dice& dice) {
    const bool waits = dice.percent(70);
    plan.steps.back().octets += kExpectHead;
    plan.answers.push_back({&kContinue, !waits});
    if (waits) {
        plan.steps.push_back({"", plan.answers.size()});
    }
    plan.steps.back().octets += "hello";
    plan.answers.push_back({&kOk, false});
    ++plan.requests;
}

void add_requests(ConversationPlan& plan, Dice& dice) {
    for (std::size_t left = dice.between(0, 6); left > 0; --left) {
        if (dice.percent(10)) {
            add_expecting(plan, dice);
        } else {
            add(plan, dice.one_of(lasting_requests()));
        }
        if (dice.percent(30)) {  // no pipelining here
            plan.steps.push_back({"", plan.answers.size()});
        }
    }
}

/// More than a socket or the server takes at once, to a client that may be slow to read.
void add_flood(ConversationPlan& plan, Dice& dice) {
    const Request& request = dice.one_of(lasting_requests().first(2));
    for (std::size_t left = dice.between(200, 1500); left > 0; --left) {
        add(plan, request);
    }
    plan.receive_buffer_bytes = dice.percent(50) ? 4096 : 0;
}

enum class AfterEnd { Stops, GoesOn };

/// What the client sends after its last request, in the same moment, must not harm the answer.
/// What it sends later may find the connection closed, so there must be no pieces then.
AfterEnd add_end(ConversationPlan& plan, Dice& dice) {
    constexpr std::size_t kSentInOneMoment = 2000;
    std::string& octets = plan.steps.back().octets;
    if (dice.percent(60)) {
        add(plan,
            dice.percent(60) ? dice.one_of(last_requests()) : dice.one_of(refused_requests()));
        plan.server_closes = true;
        if (dice.percent(15) && octets.size() < kSentInOneMoment) {
            octets += repeat(kGet, dice.between(1, 5));
            return AfterEnd::GoesOn;
        }
    } else if (dice.percent(20)) {
        octets += kPost.substr(0, dice.between(1, kPost.size() - 1));
    }
    return AfterEnd::Stops;
}

std::size_t octets_of(const ConversationPlan& plan) {
    std::size_t result = 0;
    for (const ConversationPlan::Step& step : plan.steps) {
        result += step.octets.size();
    }
    return result;
}

/// Sends in pieces, but not in so many that it takes longer than a client's patience.
void choose_pieces(ConversationPlan& plan, Dice& dice) {
    constexpr std::size_t kPiecesMax = 30;
    plan.piece_bytes = std::max(dice.between(1, 300), octets_of(plan) / kPiecesMax);
    plan.piece_pause = dice.up_to(Milliseconds(1));
}

void choose_manner(ConversationPlan& plan, Dice& dice) {
    const std::size_t manner = dice.between(1, 100);
    plan.leaving = dice.percent(80) ? Leaving::Reset : Leaving::Close;
    if (manner <= 35) {
        plan.ending = Ending::Read;
    } else if (manner <= 55) {
        plan.ending = Ending::HalfClose;
    } else if (manner <= 65) {
        plan.ending = Ending::Idle;
        plan.stay = dice.up_to(Milliseconds(20));
    } else {
        plan.ending = Ending::Abandon;
        plan.stay = dice.percent(50) ? Milliseconds(0) : dice.up_to(Milliseconds(5));
        std::size_t total = 0;
        for (const ConversationPlan::Step& step : plan.steps) {
            total += step.answers_before == 0 ? step.octets.size() : 0;
        }
        plan.abandon_after_sent = dice.percent(50) ? total : dice.between(0, total);
    }
}

}  // namespace

ConversationPlan ConversationPlan::random(std::mt19937_64& source) {
    Dice dice(source);
    ConversationPlan plan;
    plan.steps.emplace_back();
    const bool silent = dice.percent(5);
    if (!silent && dice.percent(3)) {
        add_flood(plan, dice);
    } else if (!silent) {
        add_requests(plan, dice);
        const bool goes_on = add_end(plan, dice) == AfterEnd::GoesOn;
        if (!goes_on && dice.percent(20)) {
            choose_pieces(plan, dice);
        }
    }
    choose_manner(plan, dice);
    if (silent && plan.ending == Ending::Read) {
        plan.ending = Ending::Idle;
        plan.stay = dice.up_to(Milliseconds(20));
    }
    return plan;
}

std::string ConversationPlan::summary() const {
    std::string result = "answers due:";
    for (const Expected& answer : answers) {
        result += " [" + answer.pattern->name() + (answer.optional ? " perhaps" : "") + "]";
    }
    result += server_closes ? " FIN;" : ";";
    switch (ending) {
        case Ending::Read: result += " read"; break;
        case Ending::Idle: result += " idle"; break;
        case Ending::HalfClose: result += " half-close"; break;
        case Ending::Abandon: result += " abandon"; break;
    }
    return result + (leaving == Leaving::Reset ? ", reset" : ", close");
}

}  // namespace hello::test

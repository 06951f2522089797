// SPDX-License-Identifier: MIT
//
// Tests of exchange.h. The clock stands still but where a test sets it.

#include "exchange.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/allocation_counter.h"
#include "support/answer_text.h"
#include "support/coarse_clock.h"

namespace hello::test {
namespace {

using State = Connection::State;
using Verdict = HttpSession::Verdict;
using Numbers = std::vector<std::uint32_t>;

constexpr std::int64_t kStart = 1'000'000;
constexpr std::size_t kSendSizeMax = 64 * 1024;
constexpr std::size_t kOutboxSize = 256 * 1024;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kHead = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kOldKeepAlive = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
constexpr std::string_view kGetClose = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
constexpr std::string_view kPost = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";

constexpr Answer kOk{Status::Ok, Persistence::Implied, Content::Full};
constexpr Answer kOkHead{Status::Ok, Persistence::Implied, Content::HeadOnly};
constexpr Answer kOkOld{Status::Ok, Persistence::KeepAlive, Content::Full};
constexpr Answer kOkClose{Status::Ok, Persistence::Close, Content::Full};

ServerConfig config_with_body(std::string body) {
    ServerConfig config;
    config.body = std::move(body);
    return config;
}

/// An exchange and all that it needs.
class Desk {
public:
    explicit Desk(ServerConfig server_config = {})
        : config_(std::move(server_config)), images_(config_.body, config_.server_header) {
        images_.refresh(kStart);
    }

    Connection& open() { return *pool_.open(3); }
    Exchange* operator->() { return &exchange_; }
    [[nodiscard]] const WorkerStats& stats() const { return stats_; }

    /// A new turn of the worker, `seconds` after the start.
    void at(std::int64_t seconds) {
        clock_.set(kStart + seconds);
        exchange_.begin_sends();
    }

    /// What the octets of `answers` should be.
    [[nodiscard]] std::string octets_of(const std::vector<Answer>& answers) const {
        std::string octets;
        for (const Answer& answer : answers) {
            octets += images_.image(answer);
        }
        return octets;
    }
    [[nodiscard]] std::size_t size_of(Answer answer) const { return images_.image(answer).size(); }

    /// The slots of those whose time is over.
    Numbers expired() {
        Numbers slots;
        exchange_.expire([&](Connection& connection) { slots.push_back(connection.slot); });
        return slots;
    }

    /// Header, body, idle, write, linger.
    [[nodiscard]] std::array<std::uint64_t, 5> timeouts() const {
        return {stats_.timeouts_header.get(), stats_.timeouts_body.get(),
                stats_.timeouts_idle.get(), stats_.timeouts_write.get(),
                stats_.timeouts_linger.get()};
    }

private:
    CoarseClock clock_{kStart};
    ServerConfig config_;
    ConnectionPool pool_{16, config_.limits};
    WorkerStats stats_;
    Exchange exchange_{config_, pool_, stats_};
    ResponseImages images_;
};

void owe(Connection& connection, std::size_t count, Answer answer = kOk) {
    for (std::size_t i = 0; i < count; ++i) {
        connection.answers.push(answer);
    }
}

std::string repeat(std::string_view text, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
        all += text;
    }
    return all;
}

/// Puts a connection into each kind of waiting.
void begin_head(Desk& desk, Connection& connection) {
    desk->feed(connection, "GET / HT");
}
void begin_body(Desk& desk, Connection& connection) {
    desk->feed(connection, kPost);
}
void begin_write(Connection& connection) {
    connection.unsent = {std::make_unique<char[]>(1), 1};
}

}  // namespace

TEST_CASE("Exchange answers a request with the image of the moment", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->feed(connection, kGet);
    CHECK(connection.verdict == Verdict::Read);
    REQUIRE(connection.answers.size() == 1);
    CHECK(desk->compose(connection) == desk.octets_of({kOk}));
    CHECK(connection.answers.empty());
}

TEST_CASE("Exchange copies nothing for one answer", "[exchange]") {
    Desk desk;
    Connection& first = desk.open();
    Connection& second = desk.open();
    owe(first, 1);
    owe(second, 1);
    CHECK(desk->compose(first).data() == desk->compose(second).data());
}

TEST_CASE("Exchange brings the Date up to date at the begin of a turn", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    owe(connection, 2);
    desk.at(1);
    const std::string octets(desk->compose(connection));
    ResponseImages images("Hello World!", "hello-uring");
    images.refresh(kStart + 1);
    CHECK(octets == repeat(images.image(kOk), 2));
}

TEST_CASE("Exchange answers a pipelined batch with one send", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->feed(connection, repeat(kGet, 16));
    CHECK(desk->compose(connection) == repeat(desk.octets_of({kOk}), 16));
    CHECK(connection.answers.empty());
}

TEST_CASE("Exchange keeps mixed answers in order", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    std::string requests;
    for (const std::string_view request :
         {kGet, kHead, kGet, kGet, kOldKeepAlive, kHead, kHead, kOldKeepAlive, kGetClose}) {
        requests += request;
    }
    desk->feed(connection, requests);
    CHECK(desk->compose(connection) ==
          desk.octets_of({kOk, kOkHead, kOk, kOk, kOkOld, kOkHead, kOkHead, kOkOld, kOkClose}));
    CHECK(connection.answers.empty());
    CHECK(connection.verdict == Verdict::Close);
}

TEST_CASE("Exchange says 100 before the answer to the request", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->feed(connection,
               "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    CHECK(desk->compose(connection) == "HTTP/1.1 100 Continue\r\n\r\n");
    desk->feed(connection, "x");
    CHECK(desk->compose(connection) == desk.octets_of({kOk}));
    CHECK(desk.stats().requests.get() == 1);
}

TEST_CASE("Exchange puts as many answers into one send as fit", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    const std::size_t fit = kSendSizeMax / desk.size_of(kOk);
    owe(connection, fit + 2);
    CHECK(desk->compose(connection) == repeat(desk.octets_of({kOk}), fit));
    CHECK(connection.answers.size() == 2);
    CHECK(desk->compose(connection) == desk.octets_of({kOk, kOk}));
    CHECK(connection.answers.empty());
}

TEST_CASE("Exchange fills a send to the last octet", "[exchange]") {
    const std::size_t fields =
        Desk(config_with_body(std::string(10'000, 'b'))).size_of(kOk) - 10'000;
    Desk desk(config_with_body(std::string(kSendSizeMax / 2 - fields, 'b')));
    Connection& connection = desk.open();
    owe(connection, 2);
    CHECK(desk->compose(connection).size() == kSendSizeMax);
    CHECK(connection.answers.empty());
}

TEST_CASE("Exchange splits what is one octet too much for a send", "[exchange]") {
    const std::size_t fields =
        Desk(config_with_body(std::string(10'000, 'b'))).size_of(kOk) - 10'000;
    Desk desk(config_with_body(std::string(kSendSizeMax / 2 - fields + 1, 'b')));
    Connection& connection = desk.open();
    owe(connection, 2);
    CHECK(desk->compose(connection) == desk.octets_of({kOk}));
    CHECK(connection.answers.size() == 1);
}

TEST_CASE("Exchange sends answers one by one that are larger than a send", "[exchange]") {
    Desk desk(config_with_body(std::string(kSendSizeMax, 'b')));
    Connection& connection = desk.open();
    owe(connection, 3);
    for (std::size_t left = 3; left > 0; --left) {
        CHECK(connection.answers.size() == left);
        CHECK(desk->compose(connection) == desk.octets_of({kOk}));
    }
    CHECK(connection.answers.empty());
}

TEST_CASE("Exchange keeps the order where small and large answers follow each other",
          "[exchange]") {
    Desk desk(config_with_body(std::string(kSendSizeMax, 'b')));
    Connection& connection = desk.open();
    const std::vector<Answer> answers{kOkHead, kOkHead, kOk, kOk, kOkHead, kOk, kOkHead};
    for (const Answer& answer : answers) {
        connection.answers.push(answer);
    }
    std::string octets;
    while (!connection.answers.empty()) {
        octets += desk->compose(connection);
    }
    CHECK(octets == desk.octets_of(answers));
}

TEST_CASE("Exchange goes on with single answers where the outbox of the turn is full",
          "[exchange]") {
    Desk desk(config_with_body(std::string(20'000, 'b')));
    Connection& connection = desk.open();
    owe(connection, 100);
    const std::size_t sends = kOutboxSize / (3 * desk.size_of(kOk));
    for (std::size_t send = 0; send < sends; ++send) {
        CHECK(desk->compose(connection).size() == 3 * desk.size_of(kOk));
    }
    for (int send = 0; send < 5; ++send) {
        CHECK(desk->compose(connection) == desk.octets_of({kOk}));
    }
    CHECK(connection.answers.size() == 100 - 3 * sends - 5);
}

TEST_CASE("Exchange has an empty outbox in each turn", "[exchange]") {
    Desk desk(config_with_body(std::string(20'000, 'b')));
    Connection& connection = desk.open();
    for (int turn = 0; turn < 3; ++turn) {
        owe(connection, 100);
        CHECK(desk->compose(connection).size() == 3 * desk.size_of(kOk));
        while (!connection.answers.empty()) {
            static_cast<void>(desk->compose(connection));
        }
        desk->begin_sends();
    }
}

TEST_CASE("Exchange keeps composed octets until the next turn", "[exchange]") {
    Desk desk;
    std::vector<std::pair<std::string_view, std::string>> sends;
    for (const Answer& answer : {kOk, kOkHead, kOkOld, kOkClose}) {
        Connection& connection = desk.open();
        for (const std::size_t count : {2U, 1U, 5U}) {
            owe(connection, count, answer);
            sends.emplace_back(desk->compose(connection), repeat(desk.octets_of({answer}), count));
        }
    }
    for (const auto& [octets, expected] : sends) {
        CHECK(octets == expected);
    }
}

TEST_CASE("Exchange allocates nothing for a request", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    const std::string batch = repeat(kGet, 16);
    std::size_t calls = 0;
    for (int turn = 0; turn < 3; ++turn) {
        const std::size_t before = AllocationCounter::calls();
        desk->feed(connection, batch);
        static_cast<void>(desk->compose(connection));
        desk->update_deadline(connection);
        desk->begin_sends();
        calls = AllocationCounter::calls() - before;  // the first turn may
    }
    CHECK(calls == 0);
}

TEST_CASE("Exchange counts what was received, answered and refused", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->feed(connection, kGet);
    desk->feed(connection, kHead.substr(0, 10));
    CHECK(desk.stats().bytes_received.get() == kGet.size() + 10);
    CHECK(desk.stats().requests.get() == 0);  // counts once it is composed
    for (const Status status :
         {Status::Continue, Status::BadRequest, Status::MethodNotAllowed, Status::RequestTimeout,
          Status::UriTooLong, Status::HeaderFieldsTooLarge, Status::NotImplemented,
          Status::HttpVersionNotSupported}) {
        owe(connection, 1, {status, Persistence::Close, Content::Full});
    }
    while (!connection.answers.empty()) {
        static_cast<void>(desk->compose(connection));
    }
    CHECK(desk.stats().requests.get() == 8);
    CHECK(desk.stats().responses_200.get() == 1);
    CHECK(desk.stats().responses_4xx.get() == 5);
    CHECK(desk.stats().responses_5xx.get() == 2);
}

TEST_CASE("Exchange closes after the last answer where nothing is left to read", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->feed(connection, kGetClose);
    CHECK(connection.verdict == Verdict::Close);
}

TEST_CASE("Exchange lingers where the socket holds more than was received", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    connection.input_left = true;
    desk->feed(connection, kGetClose);
    CHECK(connection.verdict == Verdict::Linger);
}

TEST_CASE("Exchange goes on reading where more is left and the connection stays", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    connection.input_left = true;
    desk->feed(connection, kGet);
    CHECK(connection.verdict == Verdict::Read);
}

TEST_CASE("Exchange lingers where octets follow a closing request", "[exchange]") {
    Desk together;
    Connection& connection = together.open();
    together->feed(connection, std::string(kGetClose) + std::string(kGet));
    CHECK(connection.verdict == Verdict::Linger);
    CHECK(connection.answers.size() == 1);

    Desk apart;
    Connection& other = apart.open();
    apart->feed(other, kGetClose);
    apart->feed(other, kGet);
    CHECK(other.verdict == Verdict::Linger);
    CHECK(other.answers.size() == 1);
    CHECK(apart.stats().bytes_received.get() == kGetClose.size() + kGet.size());
}

TEST_CASE("Exchange lingers after it refused a request", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->feed(connection, "GET / HTTP/1.1\r\n\r\n");  // no Host
    CHECK(connection.verdict == Verdict::Linger);
    REQUIRE(connection.answers.size() == 1);
    CHECK(connection.answers.front() ==
          Answer{Status::BadRequest, Persistence::Close, Content::Full});
}

TEST_CASE("Exchange closes at the client's FIN, when all it owes is sent", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    connection.input_left = true;
    desk->feed(connection, repeat(kGet, 2) + "GET / HT");
    desk->end_input(connection);
    CHECK(connection.verdict == Verdict::Close);
    CHECK(connection.input_ended);
    CHECK_FALSE(connection.input_left);
    CHECK(desk->compose(connection) == desk.octets_of({kOk, kOk}));
    CHECK(connection.answers.empty());
}

TEST_CASE("Exchange need not linger once the client's FIN is there", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->feed(connection, "rubbish\r\n\r\n");
    REQUIRE(connection.verdict == Verdict::Linger);
    desk->end_input(connection);
    CHECK(connection.verdict == Verdict::Close);
}

TEST_CASE("Exchange owes too much from the 1025th answer on", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    owe(connection, 1'024);
    CHECK_FALSE(Exchange::owes_too_much(connection));
    owe(connection, 1);
    CHECK(Exchange::owes_too_much(connection));
    static_cast<void>(desk->compose(connection));
    CHECK_FALSE(Exchange::owes_too_much(connection));
}

TEST_CASE("Exchange lets a new connection wait for its request", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->update_deadline(connection);
    CHECK(connection.waiting == Waiting::ForRequest);
    desk.at(75);
    CHECK(desk.expired().empty());
    desk.at(76);
    CHECK(desk.expired() == Numbers{connection.slot});
    CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{0, 0, 1, 0, 0});
}

TEST_CASE("Exchange lets an incomplete head wait for its rest", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    begin_head(desk, connection);
    desk->update_deadline(connection);
    CHECK(connection.waiting == Waiting::ForHead);
    desk.at(10);
    CHECK(desk.expired().empty());
    desk.at(11);
    CHECK(desk.expired() == Numbers{connection.slot});
    CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{1, 0, 0, 0, 0});
}

TEST_CASE("Exchange lets incomplete content wait for its rest", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    begin_body(desk, connection);
    desk->update_deadline(connection);
    CHECK(connection.waiting == Waiting::ForBody);
    desk.at(30);
    CHECK(desk.expired().empty());
    desk.at(31);
    CHECK(desk.expired() == Numbers{connection.slot});
    CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{0, 1, 0, 0, 0});
}

TEST_CASE("Exchange waits for a client to read, whatever it sends meanwhile", "[exchange]") {
    for (const std::string_view octets : {std::string_view{""}, kGet.substr(0, 9), kPost}) {
        Desk desk;
        Connection& connection = desk.open();
        desk->feed(connection, octets);
        begin_write(connection);
        desk->update_deadline(connection);
        CHECK(connection.waiting == Waiting::ForWrite);
        desk.at(30);
        CHECK(desk.expired().empty());
        desk.at(31);
        CHECK(desk.expired() == Numbers{connection.slot});
        CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{0, 0, 0, 1, 0});
    }
}

TEST_CASE("Exchange lingers for one second at least, two at most", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    connection.state = State::Lingering;
    desk->update_deadline(connection);
    CHECK(connection.waiting == Waiting::ForLinger);
    desk.at(1);
    CHECK(desk.expired().empty());
    desk.at(2);
    CHECK(desk.expired() == Numbers{connection.slot});
    CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{0, 0, 0, 0, 1});
}

TEST_CASE("Exchange has no timeout for a closed connection", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->update_deadline(connection);
    connection.state = State::Closed;
    desk->update_deadline(connection);
    CHECK(connection.waiting == Waiting::Forever);
    desk.at(1'000'000);
    CHECK(desk.expired().empty());
}

TEST_CASE("Exchange spares a connection whose request came in the turn that would end it",
          "[exchange]") {
    // Tick and request may complete in one batch: the connection was ended as idle nevertheless.
    Desk desk;
    Connection& connection = desk.open();
    desk->update_deadline(connection);
    desk.at(100);
    desk->feed(connection, kGet);
    CHECK(desk.expired().empty());
    CHECK(desk.stats().timeouts_idle.get() == 0);
    desk.at(100 + 76);
    CHECK(desk.expired() == Numbers{connection.slot});
}

TEST_CASE("Exchange spares a connection that meanwhile waits for something else", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->update_deadline(connection);
    desk.at(100);
    begin_head(desk, connection);
    CHECK(desk.expired().empty());
    CHECK(connection.waiting == Waiting::ForHead);
    desk.at(100 + 11);
    CHECK(desk.expired() == Numbers{connection.slot});
    CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{1, 0, 0, 0, 0});
}

TEST_CASE("Exchange starts a timeout anew when the connection waits for something else",
          "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->update_deadline(connection);
    desk.at(70);
    desk->feed(connection, kPost.substr(0, 20));
    desk->update_deadline(connection);
    CHECK(connection.waiting == Waiting::ForHead);
    desk.at(79);
    CHECK(desk.expired().empty());
    desk->feed(connection, kPost.substr(20));
    desk->update_deadline(connection);
    CHECK(connection.waiting == Waiting::ForBody);
    desk.at(79 + 30);
    CHECK(desk.expired().empty());
    desk.at(79 + 31);
    CHECK(desk.expired() == Numbers{connection.slot});
    CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{0, 1, 0, 0, 0});
}

TEST_CASE("Exchange starts the idle timeout anew with each request", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->update_deadline(connection);
    for (int second = 50; second <= 500; second += 50) {
        desk.at(second);
        CHECK(desk.expired().empty());
        desk->feed(connection, kGet);
        static_cast<void>(desk->compose(connection));
        desk->update_deadline(connection);
    }
    desk.at(500 + 75);
    CHECK(desk.expired().empty());
    desk.at(500 + 76);
    CHECK(desk.expired() == Numbers{connection.slot});
}

TEST_CASE("Exchange does not extend a timeout for octets that complete nothing", "[exchange]") {
    // Slowloris: one octet a second kept a connection for ever.
    Desk desk;
    Connection& connection = desk.open();
    for (std::size_t second = 0; second <= 10; ++second) {
        desk.at(static_cast<std::int64_t>(second));
        CHECK(desk.expired().empty());
        desk->feed(connection, kGet.substr(second, 1));
        desk->update_deadline(connection);
    }
    desk.at(11);
    CHECK(desk.expired() == Numbers{connection.slot});
}

TEST_CASE("Exchange starts the header timeout anew for the next of pipelined requests",
          "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    begin_head(desk, connection);
    desk->update_deadline(connection);
    desk.at(8);
    desk->feed(connection, "TP/1.1\r\nHost: a\r\n\r\nGET");
    static_cast<void>(desk->compose(connection));
    desk->update_deadline(connection);
    CHECK(connection.waiting == Waiting::ForHead);
    desk.at(18);
    CHECK(desk.expired().empty());
    desk.at(19);
    CHECK(desk.expired() == Numbers{connection.slot});
}

TEST_CASE("Exchange never ends a wait whose timeout is 0", "[exchange]") {
    ServerConfig config;
    config.timeouts = {0, 0, 0, 0, 0};
    Desk desk(config);
    Connection& idle = desk.open();
    Connection& head = desk.open();
    Connection& body = desk.open();
    Connection& write = desk.open();
    begin_head(desk, head);
    begin_body(desk, body);
    begin_write(write);
    for (Connection* connection : {&idle, &head, &body, &write}) {
        desk->update_deadline(*connection);
        CHECK(connection->waiting == Waiting::Forever);
    }
    desk.at(1'000'000'000);
    CHECK(desk.expired().empty());
    CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{0, 0, 0, 0, 0});
}

TEST_CASE("Exchange ends a running timeout when the next wait has none", "[exchange]") {
    ServerConfig config;
    config.timeouts.body_s = 0;
    Desk desk(config);
    Connection& connection = desk.open();
    desk->feed(connection, kPost.substr(0, 20));
    desk->update_deadline(connection);
    desk->feed(connection, kPost.substr(20));
    desk->update_deadline(connection);
    desk.at(1'000'000);
    CHECK(desk.expired().empty());
    desk->feed(connection, "12345");
    desk->update_deadline(connection);
    desk.at(1'000'000 + 76);
    CHECK(desk.expired() == Numbers{connection.slot});
}

TEST_CASE("Exchange keeps a timeout of one second for at least one second", "[exchange]") {
    ServerConfig config;
    config.timeouts.header_s = 1;
    Desk desk(config);
    Connection& connection = desk.open();
    begin_head(desk, connection);
    desk->update_deadline(connection);
    desk.at(1);  // the wait may have begun just before the second did
    CHECK(desk.expired().empty());
    desk.at(2);
    CHECK(desk.expired() == Numbers{connection.slot});
}

TEST_CASE("Exchange tells a timeout once", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->update_deadline(connection);
    desk.at(100);
    CHECK(desk.expired() == Numbers{connection.slot});
    CHECK(connection.waiting == Waiting::Forever);
    CHECK(desk.expired().empty());
    CHECK(desk.stats().timeouts_idle.get() == 1);
}

TEST_CASE("Exchange forgets a timeout when it is told to", "[exchange]") {
    Desk desk;
    Connection& connection = desk.open();
    desk->update_deadline(connection);
    desk->forget_deadline(connection);
    CHECK(connection.waiting == Waiting::Forever);
    desk->forget_deadline(connection);  // twice is no harm
    desk.at(1'000);
    CHECK(desk.expired().empty());
}

TEST_CASE("Exchange tells each of many whose time is over, and counts them by kind", "[exchange]") {
    Desk desk;
    Numbers all;
    for (int i = 0; i < 3; ++i) {
        Connection& idle = desk.open();
        Connection& head = desk.open();
        Connection& body = desk.open();
        Connection& write = desk.open();
        Connection& linger = desk.open();
        begin_head(desk, head);
        begin_body(desk, body);
        begin_write(write);
        linger.state = State::Lingering;
        for (Connection* connection : {&idle, &head, &body, &write, &linger}) {
            desk->update_deadline(*connection);
            all.push_back(connection->slot);
        }
    }
    desk.at(100);
    Numbers expired = desk.expired();
    std::sort(expired.begin(), expired.end());
    CHECK(expired == all);
    CHECK(desk.timeouts() == std::array<std::uint64_t, 5>{3, 3, 3, 3, 3});
}

TEST_CASE("Exchange leaves alone those whose time is not over", "[exchange]") {
    Desk desk;
    Numbers expected;
    for (int second = 0; second < 6; ++second) {
        desk.at(second);
        Connection& connection = desk.open();
        desk->update_deadline(connection);
        if (second < 3) {
            expected.push_back(connection.slot);
        }
    }
    desk.at(2 + 76);
    CHECK(desk.expired() == expected);
}

TEST_CASE("Exchange lets whoever is told of a timeout end others", "[exchange]") {
    Desk desk;
    Connection& first = desk.open();
    Connection& second = desk.open();
    desk->update_deadline(first);
    desk->update_deadline(second);
    desk.at(100);
    int told = 0;
    desk->expire([&](const Connection&) {
        ++told;
        desk->forget_deadline(second);
    });
    CHECK(told == 1);
    CHECK(desk.stats().timeouts_idle.get() == 1);
}

}  // namespace hello::test

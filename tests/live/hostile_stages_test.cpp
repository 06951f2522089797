// SPDX-License-Identifier: MIT
//
// Clients that half-close or reset at every stage of an exchange. After a half-close the answers
// that are due arrive, then a FIN; after a reset nothing is left behind; and who leaves without a
// word costs nothing.

#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/latencies.h"
#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"

namespace hello::test {
namespace {

constexpr std::string_view kHalfHead = "GET / HTTP/1.1\r\nHost: a\r\nX-Ha";
constexpr std::string_view kHalfBody =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello";
constexpr std::string_view kHalfChunk =
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhe";
constexpr std::string_view kExpect =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n";
constexpr std::string_view kBad = "GET / HTTP/1.1\r\n\r\n";

/// How far a client comes before it leaves.
struct Stage {
    std::string name;
    std::string sends;
    std::size_t reads;    ///< how many answers it takes before it leaves
    std::string answers;  ///< what it still gets when it leaves by a half-close
};

std::vector<Stage> stages() {
    const std::string get(kGet);
    return {
        {"connected", "", 0, ""},
        {"one octet", "G", 0, ""},
        {"part of the request line", "GET / HT", 0, ""},
        {"a head without its end", std::string(kHalfHead), 0, ""},
        {"a head but its last octet", get.substr(0, get.size() - 1), 0, ""},
        {"half of a body", std::string(kHalfBody), 0, ""},
        {"half of a chunk", std::string(kHalfChunk), 0, ""},
        {"before the body it asked about", std::string(kExpect), 0, "100"},
        {"a request", get, 0, "200"},
        {"a request with content", std::string(kPost), 0, "200"},
        {"the last request", std::string(kGetClose), 0, "200"},
        {"two requests and a half", get + get + std::string(kHalfHead), 0, "200 200"},
        {"a request and half of a body", get + std::string(kHalfBody), 0, "200"},
        {"five hundred requests", repeat(kGet, 500), 0, repeat("200 ", 499) + "200"},
        {"the answer was read", get, 1, ""},
        {"one answer of three was read", get + get + get, 1, "200 200"},
        {"half of a second request", get + std::string(kHalfHead), 1, ""},
        {"a bad request", std::string(kBad), 0, "400"},
        {"the refusal was read", std::string(kBad), 1, ""},
        {"requests before a bad one", get + get + std::string(kBad), 0, "200 200 400"},
    };
}

/// A client that went as far as the stage says.
RawClient at_stage(ServerProcess& server, const Stage& stage) {
    RawClient client(server.port());
    client.send(stage.sends);
    if (stage.reads > 0) {
        CHECK(client.read(stage.reads).responses.size() == stage.reads);
    }
    return client;
}

/// A client that takes nothing, so that the server is in the middle of an answer; it has sent
/// `count` requests.
RawClient blocking_client(ServerProcess& server, std::size_t count) {
    const std::int64_t blocked = server.counters()["sends_blocked"];
    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    RawClient client(server.port(), small);
    CHECK(client.send(repeat(kGet, count)) == count * kGet.size());
    CHECK(server.wait_counters([&](const Counters& now) {
        return now["sends_blocked"] > blocked;
    })["sends_blocked"] > blocked);
    return client;
}

void check_nothing_left(ServerProcess& server, std::size_t descriptors) {
    const Counters counters = server.wait_quiet();
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
    CHECK(counters["connections_closed"] == counters["connections_accepted"]);
    CHECK(open_descriptors(server.pid()) == descriptors);
    CHECK(probe(server.port()).failures() == 0);
}

/// Lines of the log; the snapshots of counters that a test asked for don't count.
std::size_t log_lines(ServerProcess& server) {
    const std::vector<std::string> lines = server.stderr_lines();
    return static_cast<std::size_t>(
        std::ranges::count_if(lines, [](const std::string& line) { return line[0] != '{'; }));
}

/// Descriptors once everything is there that comes with a first request.
std::size_t descriptors_at_rest(ServerProcess& server) {
    CHECK(probe(server.port()).failures() == 0);
    static_cast<void>(server.wait_quiet());
    return open_descriptors(server.pid());
}

}  // namespace

TEST_CASE("a half-close at any stage gets the answers that are due, then a FIN",
          "[live][hostile]") {
    for (const char* defer : {"on", "off"}) {
        ServerProcess server({"--threads", "1", "--defer-accept", defer});
        const std::size_t descriptors = descriptors_at_rest(server);
        for (const Stage& stage : stages()) {
            INFO(stage.name << ", --defer-accept " << defer);
            RawClient client = at_stage(server, stage);
            client.shutdown_write();
            const Replies replies = client.read_to_end();
            CHECK(replies.statuses() == stage.answers);
            CHECK(replies.leftover.empty());
            CHECK(replies.end == End::Fin);
            CHECK(replies.elapsed < scaled(Milliseconds(1500)));
        }
        check_nothing_left(server, descriptors);
    }
}

TEST_CASE("a half-close while the server waits to send gets all answers, then a FIN",
          "[live][hostile]") {
    ServerProcess server({"--threads", "1", "--body", std::string(20000, 'x')});
    const std::size_t descriptors = descriptors_at_rest(server);
    constexpr std::size_t kCount = 800;
    RawClient client = blocking_client(server, kCount);
    client.shutdown_write();
    const Replies replies = client.read_to_end();
    CHECK(replies.responses.size() == kCount);
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
    check_nothing_left(server, descriptors);
}

TEST_CASE("a half-close behind more requests than may be owed gets all answers, then a FIN",
          "[live][hostile]") {
    // The server has not read all requests when the FIN comes.
    ServerProcess server({"--threads", "1", "--body", std::string(20000, 'x')});
    constexpr std::size_t kCount = 3000;
    RawClient client = blocking_client(server, kCount);
    client.shutdown_write();
    const Replies replies = client.read_to_end("G", scaled(Milliseconds(20000)));
    CHECK(replies.responses.size() == kCount);
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
}

TEST_CASE("a reset at any stage leaves nothing behind", "[live][hostile]") {
    for (const char* defer : {"on", "off"}) {
        INFO("--defer-accept " << defer);
        ServerProcess server({"--threads", "2", "--defer-accept", defer});
        const std::size_t descriptors = descriptors_at_rest(server);
        for (int round = 0; round < load(40); ++round) {
            for (const Stage& stage : stages()) {
                at_stage(server, stage).reset();
            }
        }
        check_nothing_left(server, descriptors);
        CHECK(server.counters()["responses_5xx"] == 0);
        CHECK(log_lines(server) < 10);
    }
}

TEST_CASE("resets of a hundred clients at the same stage leave nothing behind", "[live][hostile]") {
    // All together, so that one turn of the server's loop sees many of them.
    ServerProcess server({"--threads", "1", "--defer-accept", "off"});
    const std::size_t descriptors = descriptors_at_rest(server);
    for (const Stage& stage : stages()) {
        INFO(stage.name);
        std::vector<RawClient> clients;
        for (int index = 0; index < 100; ++index) {
            clients.push_back(at_stage(server, stage));
        }
        for (RawClient& client : clients) {
            client.reset();
        }
    }
    check_nothing_left(server, descriptors);
    CHECK(log_lines(server) < 10);
}

TEST_CASE("a reset while the server waits to send leaves nothing behind", "[live][hostile]") {
    ServerProcess server({"--threads", "1", "--body", std::string(20000, 'x')});
    const std::size_t descriptors = descriptors_at_rest(server);
    for (int index = 0; index < 20; ++index) {
        RawClient client = blocking_client(server, 500);
        if (index % 2 == 0) {
            client.shutdown_write();  // the FIN is seen first, then the reset
        }
        client.reset();
    }
    check_nothing_left(server, descriptors);
    CHECK(log_lines(server) < 10);
}

TEST_CASE("two thousand clients that connect and leave cost nothing", "[live][hostile]") {
    for (const char* defer : {"on", "off"}) {
        ServerProcess server({"--threads", "1", "--defer-accept", defer});
        const std::size_t descriptors = descriptors_at_rest(server);
        const std::size_t lines = log_lines(server);
        const int count = load(2000);
        const auto start = Clock::now();
        Latencies others;
        std::int64_t polite = 2;  // those before and after
        for (int index = 0; index < count; ++index) {
            RawClient client(server.port());
            if (index % 2 == 0) {
                client.reset();
            } else {
                client.close();
            }
            if (index % 50 == 0) {
                others.add(probe(server.port()));
                ++polite;
            }
        }
        const Milliseconds elapsed = since(start);
        INFO(figures(std::string("connect and leave, --defer-accept ") + defer + ": " +
                     std::to_string(count) + " in " + std::to_string(elapsed.count()) +
                     " ms; others: " + others.summary()));
        check_served_at_once(others);
        check_nothing_left(server, descriptors);
        CHECK(server.counters()["requests"] == polite);
        CHECK(log_lines(server) - lines < 10);
    }
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Few connections on several threads: the kernel's hash of the address may put them all on one
// thread, so the server hands connections over until no thread has more than one above the others.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/raw_client.h"
#include "support/server_process.h"

namespace hello::test {
namespace {

/// Connections that each made one request and stay open.
std::vector<RawClient> open_clients(const ServerProcess& server, int count) {
    std::vector<RawClient> clients;
    for (int index = 0; index < count; ++index) {
        clients.emplace_back(server.port());
        REQUIRE(clients.back().exchange(kGet, 1).statuses() == "200");
    }
    return clients;
}

std::int64_t spread(const std::vector<std::int64_t>& values) {
    const auto [lowest, highest] = std::ranges::minmax(values);
    return highest - lowest;
}

std::string as_text(const std::vector<std::int64_t>& values) {
    std::string text;
    for (const std::int64_t value : values) {
        text += std::to_string(value) + " ";
    }
    return text;
}

void check_balanced(ServerProcess& server, int count) {
    const Counters counters = server.wait_counters(
        [&](const Counters& now) {
            return now["connections_open"] == count &&
                   spread(now.per_thread("connections_open")) <= 1;
        },
        scaled(Milliseconds(2000)));
    const std::vector<std::int64_t> open = counters.per_thread("connections_open");
    INFO(count << " connections: " << as_text(open));
    CHECK(spread(open) <= 1);
    CHECK(std::accumulate(open.begin(), open.end(), std::int64_t{0}) == count);
}

}  // namespace

TEST_CASE("keep-alive connections are spread evenly over two threads", "[live][balance]") {
    ServerProcess server({"--threads", "2"});
    for (const int count : {2, 3, 4, 8, 16, 64}) {
        for (int round = 0; round < 3; ++round) {
            std::vector<RawClient> clients = open_clients(server, count);
            check_balanced(server, count);
            // Wherever they are now, all of them are served.
            for (RawClient& client : clients) {
                CHECK(client.exchange(kGet, 1).statuses() == "200");
            }
            clients.clear();
            static_cast<void>(server.wait_quiet());
        }
    }
}

TEST_CASE("keep-alive connections are spread evenly over four threads", "[live][balance]") {
    ServerProcess server({"--threads", "4"});
    for (const int count : {4, 6, 16, 64}) {
        std::vector<RawClient> clients = open_clients(server, count);
        check_balanced(server, count);
        clients.clear();
        static_cast<void>(server.wait_quiet());
    }
}

TEST_CASE("connections that come all at once are spread evenly", "[live][balance]") {
    ServerProcess server({"--threads", "2"});
    for (const int count : {2, 8, 64}) {
        std::vector<RawClient> clients;
        for (int index = 0; index < count; ++index) {
            clients.emplace_back(server.port());
        }
        for (RawClient& client : clients) {
            client.send(kGet);
        }
        for (RawClient& client : clients) {
            CHECK(client.read(1).statuses() == "200");
        }
        check_balanced(server, count);
        clients.clear();
        static_cast<void>(server.wait_quiet());
    }
}

TEST_CASE("a connection that is handed over loses no byte", "[live][balance]") {
    // Pipelines that arrive with the first request and while the connection may be moving.
    ServerProcess server({"--threads", "4"});
    for (int round = 0; round < 5; ++round) {
        std::vector<RawClient> clients;
        for (int index = 0; index < 20; ++index) {
            clients.emplace_back(server.port());
            clients.back().send(repeat(kGet, 20) + "GET / HTTP/1.1\r\nHo");
        }
        for (RawClient& client : clients) {
            client.send("st: a\r\n\r\n" + repeat(kGet, 20));
        }
        for (RawClient& client : clients) {
            const Replies replies = client.read(41);
            CHECK(replies.responses.size() == 41);
            CHECK(replies.leftover.empty());
            CHECK(client.silent_for(Milliseconds(1)));
        }
    }
    const Counters counters = server.wait_quiet();
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["requests"] == std::int64_t{5} * 20 * 41);
    CHECK(counters["slots_in_use"] == 0);
}

TEST_CASE("connections that close after one request need no hand-over to be served",
          "[live][balance]") {
    ServerProcess server({"--threads", "2"});
    for (int index = 0; index < 200; ++index) {
        RawClient client(server.port());
        CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
    }
    CHECK(server.wait_quiet()["requests"] == 200);
}

TEST_CASE("half an empty line before the next request is not lost when a connection moves",
          "[live][balance]") {
    // A connection used to move with the CR read here, and the LF then met a thread that knew of
    // none: 400.
    ServerProcess server({"--threads", "2"});
    std::vector<RawClient> clients;
    for (int index = 0; index < 20; ++index) {
        RawClient& client = clients.emplace_back(server.port());
        client.send(std::string(kGet) + "\r");
        CHECK(client.read(1).statuses() == "200");
        client.send("\n" + std::string(kGet));
        CHECK(client.read(1).statuses() == "200");
    }
}

}  // namespace hello::test

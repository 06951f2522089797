// SPDX-License-Identifier: MIT
//
// What load leaves behind: nothing. No slot, buffer, descriptor or kernel thread, and no processor
// time once it is quiet again.

#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/tool.h"
#include "support/wait.h"

namespace hello::test {
namespace {

constexpr Milliseconds kIdlePeriod(3000);

/// Everything that a connection borrows is back.
void check_nothing_left(ServerProcess& server) {
    const Counters counters = server.wait_quiet();
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
    CHECK(counters["buffers_available"] == counters["buffers_total"]);
    CHECK(counters["connections_closed"] == counters["connections_accepted"]);
}

/// One request, so that whatever the server creates lazily is there; then its descriptors.
std::size_t descriptors_at_rest(ServerProcess& server) {
    RawClient client(server.port());
    CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
    static_cast<void>(server.wait_quiet());
    return open_descriptors(server.pid());
}

void check_serves(ServerProcess& server) {
    RawClient client(server.port());
    const Replies replies = client.exchange(kGet, 1);
    CHECK(replies.statuses() == "200");
}

/// At most two clock ticks per thread: the one-second tick, and rounding.
void check_idle_costs_nothing(ServerProcess& server) {
    const long before = cpu_ticks(server.pid());
    std::this_thread::sleep_for(kIdlePeriod);
    const long used = cpu_ticks(server.pid()) - before;
    const auto threads = static_cast<long>(thread_ids(server.pid()).size());
    INFO(used << " ticks by " << threads << " threads");
    CHECK(used <= 2 * threads);
}

std::vector<RawClient> open_idle_connections(ServerProcess& server, int count) {
    std::vector<RawClient> clients;
    clients.reserve(static_cast<std::size_t>(count));
    for (int index = 0; index < count; ++index) {
        clients.emplace_back(server.port());
        clients.back().send(kGet);
    }
    for (RawClient& client : clients) {
        CHECK(client.read(1).statuses() == "200");
    }
    return clients;
}

}  // namespace

TEST_CASE("twenty thousand connections leave nothing behind and use no kernel worker",
          "[live][churn]") {
    require_tool("ab");
    ServerProcess server({"--threads", "2"});
    const std::size_t descriptors = descriptors_at_rest(server);
    const int requests = load(20000);

    ChildOptions options;
    options.argv = {"ab", "-q", "-n", std::to_string(requests), "-c", "500", server.url()};
    ChildProcess ab(options);
    int samples = 0;
    int samples_with_worker = 0;
    const auto deadline = Clock::now() + scaled(Milliseconds(20000));
    while (ab.running() && Clock::now() < deadline) {
        ++samples;
        samples_with_worker += has_io_worker(server.pid()) ? 1 : 0;
        std::this_thread::sleep_for(Milliseconds(10));
    }
    CHECK(ab.wait_exit(scaled(Milliseconds(5000))) == 0);

    CHECK(samples > 5);
    CHECK(samples_with_worker == 0);
    CHECK_FALSE(has_io_worker(server.pid()));
    check_nothing_left(server);
    CHECK(open_descriptors(server.pid()) == descriptors);
    CHECK(server.counters()["requests"] == requests + 1);
    check_serves(server);
    CHECK(server.stop() == 0);
}

TEST_CASE("an idle server uses no processor time after a load", "[live][churn]") {
    require_tool("ab");
    ServerProcess server({"--threads", "2"});
    const ToolResult result =
        run_tool({"ab", "-q", "-n", std::to_string(load(10000)), "-c", "200", server.url()});
    REQUIRE(result.exit_code == 0);
    check_nothing_left(server);
    check_idle_costs_nothing(server);
}

TEST_CASE("a thousand idle connections cost no processor time and leave nothing behind",
          "[live][churn]") {
    ServerProcess server({"--threads", "2"});
    const std::size_t descriptors = descriptors_at_rest(server);
    {
        const std::vector<RawClient> clients = open_idle_connections(server, 1000);
        // Those that are on their way from one thread to another are counted by neither.
        CHECK(wait_until([&] { return server.counters()["connections_open"] == 1000; },
                         scaled(Milliseconds(5000))));
        check_idle_costs_nothing(server);
    }
    check_nothing_left(server);
    CHECK(open_descriptors(server.pid()) == descriptors);
    check_serves(server);
}

TEST_CASE("idle half-closed clients are let go and cost no processor time", "[live][churn]") {
    ServerProcess server({"--threads", "1"});
    std::vector<RawClient> clients = open_idle_connections(server, 100);
    for (RawClient& client : clients) {
        client.shutdown_write();
    }
    for (RawClient& client : clients) {
        CHECK(client.read_to_end().end == End::Fin);
    }
    check_nothing_left(server);
    check_idle_costs_nothing(server);
}

TEST_CASE("three thousand connections that send in one burst are all answered", "[live][churn]") {
    // More than a ring has entries: a full submission queue must not lose anybody.
    ServerProcess server({"--threads", "1"});
    const int count = load(3000);
    std::vector<RawClient> clients = open_idle_connections(server, count);
    for (int round = 0; round < 2; ++round) {
        for (RawClient& client : clients) {
            client.send(kGet);
        }
        int answered = 0;
        for (RawClient& client : clients) {
            answered += client.read(1).statuses() == "200" ? 1 : 0;
        }
        CHECK(answered == count);
    }
    clients.clear();
    check_nothing_left(server);
}

TEST_CASE("clients that reset right after connecting leave nothing behind", "[live][churn]") {
    // With and without deferred accept: only without does the server see them all.
    for (const char* defer : {"on", "off"}) {
        INFO("--defer-accept " << defer);
        ServerProcess server({"--threads", "1", "--defer-accept", defer});
        const std::size_t descriptors = descriptors_at_rest(server);
        for (int index = 0; index < 300; ++index) {
            RawClient(server.port()).reset();
        }
        check_serves(server);
        check_nothing_left(server);
        CHECK(open_descriptors(server.pid()) == descriptors);
    }
}

TEST_CASE("clients that reset after their request leave nothing behind", "[live][churn]") {
    ServerProcess server({"--threads", "1"});
    const std::size_t descriptors = descriptors_at_rest(server);
    for (int index = 0; index < 500; ++index) {
        RawClient client(server.port());
        client.send(index % 2 == 0 ? kGet : kGetClose);
        client.reset();
    }
    check_serves(server);
    check_nothing_left(server);
    CHECK(open_descriptors(server.pid()) == descriptors);
    CHECK(server.stderr_lines().size() < 30);
}

TEST_CASE("clients that reset in the middle of their second request are noticed at once",
          "[live][churn]") {
    // With connections that move, the reset is often there before the new thread's first receive,
    // and what came before it completes no request, so no send runs into it.
    ServerProcess server({"--threads", "2", "--header-timeout", "0"});
    for (int round = 0; round < 100; ++round) {
        std::vector<RawClient> clients;
        for (int index = 0; index < 8; ++index) {
            clients.emplace_back(server.port());
            CHECK(clients.back().exchange(kGet, 1).statuses() == "200");
            clients.back().send("GET / HT");
            if (index % 2 == 0) {
                clients.back().reset();
                clients.pop_back();
            }
        }
        for (RawClient& client : clients) {
            client.reset();
        }
    }
    check_nothing_left(server);
}

TEST_CASE("clients that reset during a long response leave nothing behind", "[live][churn]") {
    ServerProcess server({"--threads", "1"});
    const std::size_t descriptors = descriptors_at_rest(server);
    const std::string pipeline = repeat(kGet, 1000);
    for (int index = 0; index < 200; ++index) {
        ClientOptions small;
        small.receive_buffer_bytes = index % 2 == 0 ? 4096 : 0;
        RawClient client(server.port(), small);
        client.send(pipeline);
        CHECK(client.read(1).statuses() == "200");
        client.reset();
    }
    check_serves(server);
    check_nothing_left(server);
    CHECK(open_descriptors(server.pid()) == descriptors);
    CHECK(server.running());
    CHECK(server.stderr_lines().size() < 30);
}

TEST_CASE("clients that go away in the middle of a request leave nothing behind", "[live][churn]") {
    ServerProcess server({"--threads", "1"});
    const std::size_t descriptors = descriptors_at_rest(server);
    for (const std::string_view part :
         {"G", "GET / HTTP/1.1\r\nHo", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
        for (int index = 0; index < 50; ++index) {
            RawClient client(server.port());
            client.send(part);
            if (index % 2 == 0) {
                client.reset();
            }
        }
    }
    check_serves(server);
    check_nothing_left(server);
    CHECK(open_descriptors(server.pid()) == descriptors);
    CHECK(server.counters()["responses_5xx"] == 0);
}

TEST_CASE("64 requests at the very moment of the ready line are all answered", "[live][churn]") {
    for (int start = 0; start < 10; ++start) {
        ServerProcess server({"--threads", "2"});
        std::vector<RawClient> clients;
        for (int index = 0; index < 64; ++index) {
            clients.emplace_back(server.port());
            clients.back().send(kGetClose);
        }
        for (RawClient& client : clients) {
            const Replies replies = client.read_to_end();
            CHECK(replies.statuses() == "200");
            CHECK(replies.end == End::Fin);
        }
    }
}

}  // namespace hello::test

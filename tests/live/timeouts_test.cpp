// SPDX-License-Identifier: MIT
//
// The five limits in time: request head, request body, idle, write and linger. Each test uses one
// second; the server looks once a second, so up to two more may pass.

#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/wait.h"

namespace hello::test {
namespace {

constexpr Milliseconds kEarliest(700);  // of a one-second timeout
constexpr Milliseconds kLatest = Milliseconds(3000) + scaled(Milliseconds(700));
constexpr Milliseconds kPatience = kLatest + Milliseconds(5000);

constexpr std::string_view kPartialHead = "GET / HTTP/1.1\r\nHost: a\r\nX-Part";

/// Ends with a 408 and a FIN between the earliest and the latest moment.
void check_times_out(RawClient& client, Clock::time_point start) {
    const Replies replies = client.read_to_end("G", kPatience);
    const Milliseconds elapsed = since(start);
    CHECK(replies.statuses() == "408");
    if (!replies.responses.empty()) {
        CHECK(replies.responses[0].header("Connection") == "close");
    }
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
    CHECK(elapsed >= kEarliest);
    CHECK(elapsed <= kLatest);
}

void check_serves_quickly(ServerProcess& server) {
    const auto start = Clock::now();
    RawClient client(server.port());
    client.send(kGetClose);
    CHECK(client.read_to_end().statuses() == "200");
    CHECK(since(start) < scaled(Milliseconds(500)));
}

}  // namespace

TEST_CASE("a head that stays incomplete is answered with 408", "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--header-timeout", "1"});
    const auto start = Clock::now();
    RawClient client(server.port());
    client.send(kPartialHead);
    check_times_out(client, start);
    client.close();
    CHECK(server.wait_quiet()["timeouts_header"] == 1);
    CHECK(server.counters()["responses_4xx"] == 1);
}

TEST_CASE("more bytes don't extend the time for a head", "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--header-timeout", "1"});
    const auto start = Clock::now();
    RawClient client(server.port());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX: ");
    while (client.silent_for(Milliseconds(50)) && since(start) < kPatience) {
        client.send("x");
    }
    check_times_out(client, start);
    client.close();
    CHECK(server.wait_quiet()["timeouts_header"] == 1);
}

TEST_CASE("the second head on a connection has a time limit too", "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--header-timeout", "1"});
    RawClient client(server.port());
    const auto start = Clock::now();
    client.send(std::string(kGet) + std::string(kPartialHead));
    CHECK(client.read(1).statuses() == "200");
    check_times_out(client, start);
    client.close();
    CHECK(server.wait_quiet()["timeouts_header"] == 1);
}

TEST_CASE("empty lines alone hold no connection", "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--header-timeout", "1", "--idle-timeout", "1"});
    const auto start = Clock::now();
    RawClient client(server.port());
    client.send("\r\n\r\n");
    const Replies replies = client.read_to_end("G", kPatience);
    CHECK((replies.statuses().empty() || replies.statuses() == "408"));
    CHECK(replies.end == End::Fin);
    CHECK(since(start) <= kLatest);
}

TEST_CASE("a body that stays incomplete is answered with 408", "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--body-timeout", "1"});
    const auto start = Clock::now();
    RawClient with_length(server.port());
    with_length.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    RawClient chunked(server.port());
    chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
    check_times_out(with_length, start);
    check_times_out(chunked, start);
    with_length.close();
    chunked.close();
    CHECK(server.wait_quiet()["timeouts_body"] == 2);
}

TEST_CASE("an idle connection is closed with a bare FIN", "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--idle-timeout", "1"});
    const auto start = Clock::now();
    RawClient client(server.port());
    client.send(kGet);
    CHECK(client.read(1).statuses() == "200");
    const Replies replies = client.read_to_end("G", kPatience);
    CHECK(replies.responses.empty());
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
    CHECK(since(start) >= kEarliest);
    CHECK(since(start) <= kLatest);
    CHECK(server.wait_quiet()["timeouts_idle"] == 1);
}

TEST_CASE("a connection that never sends anything is closed with a bare FIN",
          "[waits][live][timeouts]") {
    // Without deferred accept: with it the kernel doesn't even show such a client to the server.
    ServerProcess server({"--threads", "1", "--idle-timeout", "1", "--header-timeout", "1",
                          "--defer-accept", "off"});
    const auto start = Clock::now();
    RawClient client(server.port());
    const Replies replies = client.read_to_end("G", kPatience);
    CHECK(replies.responses.empty());
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
    CHECK(since(start) >= kEarliest);
    CHECK(since(start) <= kLatest);
    CHECK(server.wait_quiet()["connections_open"] == 0);
}

TEST_CASE("requests keep a connection from being idle", "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--idle-timeout", "2"});
    RawClient client(server.port());
    for (int round = 0; round < 6; ++round) {
        client.send(kGet);
        CHECK(client.read(1).statuses() == "200");
        CHECK(client.silent_for(Milliseconds(600)));
    }
}

TEST_CASE("an idle timeout of 0 keeps connections for ever", "[waits][live][timeouts]") {
    // Header timeout 1 beside it: between requests no head is begun, so it must not count.
    ServerProcess server({"--threads", "1", "--idle-timeout", "0", "--header-timeout", "1"});
    RawClient client(server.port());
    client.send(kGet);
    CHECK(client.read(1).statuses() == "200");
    CHECK(client.silent_for(Milliseconds(3500)));
    client.send(kGet);
    CHECK(client.read(1).statuses() == "200");
    CHECK(server.counters()["timeouts_idle"] == 0);
}

TEST_CASE("a client that never reads is closed in time and with flat memory",
          "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--write-timeout", "1"});
    check_serves_quickly(server);
    static_cast<void>(server.wait_quiet());
    const long before = pss_kib(server.pid());

    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    std::vector<RawClient> clients;
    const auto start = Clock::now();
    for (int index = 0; index < 5; ++index) {
        clients.emplace_back(server.port(), small);
        clients.back().send(repeat(kGet, 100000), Milliseconds(50));
    }
    long highest = 0;
    int served = 0;
    const bool all_closed = wait_until(
        [&] {
            highest = std::max(highest, pss_kib(server.pid()));
            check_serves_quickly(server);
            ++served;
            return server.counters()["timeouts_write"] == 5;
        },
        kPatience, Milliseconds(20));
    CHECK(all_closed);
    CHECK(since(start) >= kEarliest);
    CHECK(since(start) <= kLatest + Milliseconds(1000));
    CHECK(served > 5);
    INFO("PSS " << before << " KiB before, " << highest << " KiB at most");
    CHECK(highest - before < (kSlowBuild ? 40960 : 10240));
    CHECK(server.wait_quiet()["connections_open"] == 0);
    CHECK(server.counters()["sends_blocked"] >= 5);
}

TEST_CASE("a slow but steady reader is not cut off", "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1", "--write-timeout", "2"});
    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    RawClient client(server.port(), small);
    client.send(repeat(kGet, 20000), Milliseconds(300));
    const auto start = Clock::now();
    std::size_t taken = 0;
    while (since(start) < Milliseconds(4500)) {
        taken += client.take_slowly(2000);
        std::this_thread::sleep_for(Milliseconds(10));
    }
    INFO(taken << " bytes taken");
    CHECK(server.counters()["timeouts_write"] == 0);
    CHECK(server.counters()["connections_open"] == 1);
}

TEST_CASE("a client that ignores our FIN is let go after the linger time",
          "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    const auto start = Clock::now();
    client.send("GET / HTTP/1.1\r\n\r\n");
    const Replies replies = client.read_to_end();
    CHECK(replies.statuses() == "400");
    CHECK(replies.end == End::Fin);
    CHECK(since(start) < scaled(Milliseconds(1000)));
    // The client keeps its side open.
    const Counters counters = server.wait_quiet(Milliseconds(4000) + scaled(Milliseconds(500)));
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
    CHECK(since(start) < Milliseconds(4000) + scaled(Milliseconds(500)));
    CHECK(counters["timeouts_linger"] == 1);
}

TEST_CASE("a client that sends for ever after an error is let go as well",
          "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    const auto start = Clock::now();
    client.send("GET / HTTP/1.1\r\n\r\n");
    CHECK(client.read(1).statuses() == "400");
    // A trickle: far from the limit in bytes, so only the limit in time can end it.
    const bool let_go = wait_until(
        [&] {
            client.send("x");
            return server.counters()["connections_open"] == 0;
        },
        kPatience, Milliseconds(50));
    CHECK(let_go);
    CHECK(since(start) < Milliseconds(4000) + scaled(Milliseconds(500)));
}

TEST_CASE("two hundred slow clients are dropped in time while others are served",
          "[waits][live][timeouts]") {
    ServerProcess server({"--threads", "2", "--header-timeout", "1"});
    std::vector<RawClient> clients;
    const auto start = Clock::now();
    for (int index = 0; index < 200; ++index) {
        clients.emplace_back(server.port());
        clients.back().send(kPartialHead);
    }
    while (server.counters()["timeouts_header"] < 200 && since(start) < kPatience) {
        for (RawClient& client : clients) {
            client.send("x");
        }
        check_serves_quickly(server);
        std::this_thread::sleep_for(Milliseconds(50));
    }
    CHECK(since(start) <= kLatest + Milliseconds(500));
    int answered = 0;
    for (RawClient& client : clients) {
        answered += client.read_to_end().statuses() == "408" ? 1 : 0;
    }
    CHECK(answered == 200);
    clients.clear();
    CHECK(server.wait_quiet()["connections_open"] == 0);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Date: an IMF-fixdate (RFC 9110 section 5.6.7), current to the second, in every response, on every
// thread, also right after a time without traffic.

#include "support/date.h"

#include <algorithm>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/raw_client.h"
#include "support/server_process.h"

namespace hello::test {
namespace {

/// The Date of the answer, checked to lie between one second before the request and the answer.
std::string current_date(RawClient& client, std::string_view request) {
    const std::time_t before = std::time(nullptr);
    client.send(request);
    const Replies replies = client.read(1);
    const std::time_t after = std::time(nullptr);
    REQUIRE(replies.responses.size() == 1);
    CHECK(replies.responses[0].count("Date") == 1);
    std::string text = replies.responses[0].header("Date");
    INFO(text);
    const std::time_t date = parse_date(text);
    CHECK(date >= before - 1);
    CHECK(date <= after);
    return text;
}

/// Opens connections until each thread has answered on at least one of them.
std::vector<RawClient> clients_on_every_thread(ServerProcess& server) {
    std::vector<RawClient> clients;
    for (int index = 0; index < 64; ++index) {
        clients.emplace_back(server.port());
        current_date(clients.back(), kGet);
        const auto open = server.counters().per_thread("connections_open");
        if (std::ranges::min(open) > 0) {
            return clients;
        }
    }
    FAIL("a thread gets no connection");
    return clients;
}

}  // namespace

TEST_CASE("Date is current and moves on with the second", "[waits][live][date]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    const std::string first = current_date(client, kGet);
    std::this_thread::sleep_for(Milliseconds(1100));
    CHECK(current_date(client, kGet) != first);
}

TEST_CASE("Date is current under steady traffic", "[waits][live][date]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    const auto start = Clock::now();
    while (since(start) < Milliseconds(2200)) {
        current_date(client, kGet);
        std::this_thread::sleep_for(Milliseconds(20));
    }
}

TEST_CASE("Date is current right after three idle seconds, on every thread",
          "[waits][live][date]") {
    ServerProcess server({"--threads", "3"});
    std::vector<RawClient> clients = clients_on_every_thread(server);
    std::this_thread::sleep_for(Milliseconds(3000));
    for (RawClient& client : clients) {
        current_date(client, kGet);
    }
    RawClient fresh(server.port());
    current_date(fresh, kGet);
}

TEST_CASE("Date is in every kind of answer", "[waits][live][date]") {
    ServerProcess server({"--threads", "1", "--header-timeout", "1"});
    std::this_thread::sleep_for(Milliseconds(1500));
    for (const std::string& request :
         {std::string(kGet), std::string(kGetClose), std::string(kGet10), std::string(kPost),
          std::string("GET / HTTP/1.1\r\n\r\n"), std::string("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"),
          "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'x') + "\r\n\r\n",
          "GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n",
          std::string("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), std::string("GET / HTTP/1.1\r\n")}) {
        INFO(request.substr(0, 80));
        RawClient client(server.port());
        current_date(client, request);
    }
}

TEST_CASE("Date is in English and GMT whatever the locale and the time zone", "[live][date]") {
    ServerOptions options;
    options.arguments = {"--threads", "1"};
    options.environment = {
        {"TZ", "Asia/Tokyo"}, {"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}};
    ServerProcess server(options);
    RawClient client(server.port());
    current_date(client, kGet);
}

}  // namespace hello::test

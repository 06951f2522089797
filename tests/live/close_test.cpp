// SPDX-License-Identifier: MIT
//
// How connections end: the response first, then a FIN, never a RST that could take the response
// away, whatever the client still sends (RFC 9112 section 9.6).

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include <catch2/catch_test_macros.hpp>

#include "support/raw_client.h"
#include "support/server_process.h"

namespace hello::test {
namespace {

constexpr Milliseconds kAtOnce = scaled(Milliseconds(500));

struct Fault {
    std::string request;
    int status;
};

/// Requests that end the connection with an error.
std::vector<Fault> faults() {
    return {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
        {"\x16\x03\x01 not http\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'x') + "\r\n\r\n", 431},
        {"GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
        {"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 405},
        {"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
    };
}

}  // namespace

TEST_CASE("HTTP/1.0 gets its FIN although the client keeps its side open", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    for (int index = 0; index < 10; ++index) {
        RawClient client(server.port());
        client.send(kGet10);
        const Replies replies = client.read_to_end();
        CHECK(replies.statuses() == "200");
        CHECK(replies.end == End::Fin);
        CHECK(replies.elapsed < kAtOnce);
    }
    // The fastest of some tries is within the promised tenth of a second.
    Milliseconds fastest(1000);
    for (int index = 0; index < 5; ++index) {
        RawClient client(server.port());
        client.send(kGet10);
        fastest = std::min(fastest, client.read_to_end().elapsed);
    }
    CHECK(fastest < Milliseconds(100));
}

TEST_CASE("an error is answered with its status, a close and a FIN", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    for (const Fault& fault : faults()) {
        INFO(fault.request.substr(0, 100));
        RawClient client(server.port());
        client.send(fault.request);
        const Replies replies = client.read_to_end();
        REQUIRE(replies.responses.size() == 1);
        CHECK(replies.responses[0].status == fault.status);
        CHECK(replies.responses[0].header("Connection") == "close");
        CHECK(replies.responses[0].has("Date"));
        CHECK(replies.responses[0].has("Content-Length"));
        CHECK(replies.leftover.empty());
        CHECK(replies.end == End::Fin);
        CHECK(replies.elapsed < scaled(Milliseconds(1500)));
    }
}

TEST_CASE("an error reaches a client that still sends a megabyte", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    const std::string garbage = repeat("garbage\r\n", 120000);
    for (const Fault& fault : faults()) {
        INFO(fault.request.substr(0, 100));
        RawClient client(server.port());
        // All of it is sent before the first read: a RST would overtake the answer.
        client.send(fault.request + garbage);
        const Replies replies = client.read_to_end();
        REQUIRE(replies.responses.size() == 1);
        CHECK(replies.responses[0].status == fault.status);
        CHECK(replies.leftover.empty());
        CHECK(replies.end == End::Fin);
    }
}

TEST_CASE("the refusal of a huge upload reaches its sender", "[live][close]") {
    // More than the server reads after its answer: the connection may end in a reset, but only
    // after the answer was there to read.
    ServerProcess server({"--threads", "1"});
    const std::string upload =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\nX: " + std::string(20000, 'x') +
        "\r\n\r\n" + repeat("body", 12500000);
    for (int index = 0; index < 5; ++index) {
        RawClient client(server.port());
        const Replies replies = client.exchange_to_end(upload);
        CHECK(replies.statuses() == "431");
        CHECK(replies.end != End::Timeout);
    }
    static_cast<void>(server.wait_quiet());
    CHECK(server.counters()["connections_open"] == 0);
}

TEST_CASE("bytes after the last request don't take its answer away", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    for (const std::string_view last : {kGetClose, kGet10}) {
        for (const std::size_t extra : {std::size_t{1}, std::size_t{100}, std::size_t{5000}}) {
            INFO(last << extra << " more requests");
            RawClient client(server.port());
            client.send(std::string(last) + repeat(kGet, extra));
            const Replies replies = client.read_to_end();
            CHECK(replies.statuses() == "200");
            CHECK(replies.leftover.empty());
            CHECK(replies.end == End::Fin);
        }
    }
}

TEST_CASE("bytes that come just after the last answer don't take it away", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    int answered = 0;
    for (int index = 0; index < 100; ++index) {
        RawClient client(server.port());
        client.send_split(std::string(kGetClose) + std::string(kGet), kGetClose.size(),
                          Milliseconds(index % 3));
        answered += client.read_to_end().statuses() == "200" ? 1 : 0;
    }
    CHECK(answered == 100);
}

TEST_CASE("bytes that come while the server closes don't take the last answer away",
          "[live][close]") {
    // Between the last receive and the close there are some 50 us: each of 2,000 tries another.
    ServerProcess server({"--threads", "1"});
    int answered = 0;
    for (int index = 0; index < 2000; ++index) {
        RawClient client(server.port());
        client.send(kGetClose);
        const auto then = std::chrono::steady_clock::now() + std::chrono::microseconds(index % 200);
        while (std::chrono::steady_clock::now() < then) {
        }
        client.send(kGet);
        answered += client.read_to_end().statuses() == "200" ? 1 : 0;
    }
    CHECK(answered == 2000);
}

TEST_CASE("an unread body after an early end doesn't take the answer away", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 500000\r\n\r\n" +
        std::string(500000, 'b') + std::string(100000, 'c'));
    const Replies replies = client.read_to_end();
    CHECK(replies.statuses() == "200");
    CHECK(replies.end == End::Fin);
}

TEST_CASE("CONNECT and TRACE are not allowed and end the connection", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    for (const std::string& head : {std::string("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"),
                                    std::string("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n")}) {
        INFO(head);
        RawClient client(server.port());
        client.send(head + std::string(kGet));
        const Replies replies = client.read_to_end();
        REQUIRE(replies.statuses() == "405");
        const std::string allow = replies.responses[0].header("Allow");
        CHECK(allow.find("GET") != std::string::npos);
        CHECK(allow.find("HEAD") != std::string::npos);
        CHECK(allow.find("CONNECT") == std::string::npos);
        CHECK(allow.find("TRACE") == std::string::npos);
        CHECK(replies.responses[0].header("Connection") == "close");
        CHECK(replies.end == End::Fin);
    }
}

TEST_CASE("the error answer to a HEAD has no body", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    client.send("HEAD / HTTP/1.1\r\n\r\n");
    const Replies replies = client.read_to_end("H");
    CHECK(replies.statuses() == "400");
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
}

TEST_CASE("an HTTP/2 preface is refused", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9));
    const Replies replies = client.read_to_end();
    CHECK(replies.statuses() == "505");
    CHECK(replies.end == End::Fin);
}

TEST_CASE("an error is answered to a client that already half-closed", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    for (const Fault& fault : faults()) {
        INFO(fault.request.substr(0, 100));
        RawClient client(server.port());
        client.send(fault.request);
        client.shutdown_write();
        const Replies replies = client.read_to_end();
        CHECK(replies.statuses() == std::to_string(fault.status));
        CHECK(replies.end == End::Fin);
        CHECK(replies.elapsed < scaled(Milliseconds(1500)));
    }
}

TEST_CASE("every way to end a connection gives everything back", "[live][close]") {
    ServerProcess server({"--threads", "1"});
    for (int round = 0; round < 20; ++round) {
        for (const Fault& fault : faults()) {
            RawClient client(server.port());
            client.send(fault.request);
            static_cast<void>(client.read_to_end());
        }
    }
    const Counters counters = server.wait_quiet();
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
    CHECK(counters["buffers_available"] == counters["buffers_total"]);
    CHECK(counters["responses_4xx"] + counters["responses_5xx"] ==
          static_cast<std::int64_t>(20 * faults().size()));
}

}  // namespace hello::test

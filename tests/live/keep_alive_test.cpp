// SPDX-License-Identifier: MIT
//
// Which connections stay open and what they say about it (RFC 9112 section 9), pipelining and its
// order, and requests that arrive in any fragmentation.

#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/raw_client.h"
#include "support/server_process.h"

namespace hello::test {
namespace {

// An orderly close follows the response at once; what could delay it (linger, idle timeout) takes
// two seconds or more, so this bound tells them apart on a busy machine too.
constexpr Milliseconds kAtOnce = scaled(Milliseconds(500));

std::string request(std::string_view version, const std::vector<std::string>& connection_lines) {
    std::string text = "GET / HTTP/" + std::string(version) + "\r\nHost: a\r\n";
    for (const std::string& line : connection_lines) {
        text += line + "\r\n";
    }
    return text + "\r\n";
}

/// One 200 that announces the close, then FIN at once.
void check_closes(ServerProcess& server, const std::string& bytes) {
    INFO(bytes);
    RawClient client(server.port());
    client.send(bytes);
    const Replies replies = client.read_to_end();
    REQUIRE(replies.statuses() == "200");
    CHECK(replies.responses[0].header("Connection") == "close");
    CHECK(replies.responses[0].count("Connection") == 1);
    CHECK(replies.responses[0].body == kBody);
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
    CHECK(replies.elapsed < kAtOnce);
}

/// The same request is answered three times on one connection, each time with that Connection.
void check_stays_open(ServerProcess& server, const std::string& bytes, std::string_view announced) {
    INFO(bytes);
    RawClient client(server.port());
    for (int round = 0; round < 3; ++round) {
        client.send(bytes);
        const Replies replies = client.read(1);
        REQUIRE(replies.statuses() == "200");
        CHECK(replies.responses[0].header("Connection") == announced);
        CHECK(replies.responses[0].body == kBody);
        CHECK(replies.leftover.empty());
    }
    CHECK(client.silent_for(Milliseconds(20)));
}

void check_all_ok(const Replies& replies, std::size_t count) {
    REQUIRE(replies.responses.size() == count);
    for (const Response& response : replies.responses) {
        // A plain comparison first: Catch2 is slow with ten thousand assertions.
        if (response.status != 200 || response.body != kBody) {
            FAIL(response.head + response.body);
        }
    }
    CHECK(replies.leftover.empty());
}

}  // namespace

TEST_CASE("HTTP/1.0 without keep-alive gets a close and a FIN", "[live][keep_alive]") {
    ServerProcess server({"--threads", "1"});
    check_closes(server, std::string(kGet10));
    check_closes(server, request("1.0", {}));
    check_closes(server, request("1.0", {"Connection: close"}));
    check_closes(server, request("1.0", {"Connection: foo"}));
    check_closes(server, request("1.0", {"Connection:"}));
    check_closes(server, request("1.0", {"Connection: keep-alive-not"}));
    check_closes(server, request("1.0", {"Keep-Alive: timeout=5"}));
}

TEST_CASE("HTTP/1.0 with keep-alive in any spelling stays open and is told so",
          "[live][keep_alive]") {
    ServerProcess server({"--threads", "1"});
    for (const char* value :
         {"Keep-Alive", "keep-alive", "KEEP-ALIVE", "foo , Keep-Alive", "keep-alive, foo",
          "\tkeep-alive\t", "   keep-alive  ", ",keep-alive,", "foo,keep-alive\t,bar"}) {
        check_stays_open(server, request("1.0", {std::string("Connection: ") + value}),
                         "keep-alive");
    }
    check_stays_open(server, request("1.0", {"Connection: foo", "connection: keep-alive"}),
                     "keep-alive");
}

TEST_CASE("HTTP/1.0 with keep-alive and close is closed", "[live][keep_alive]") {
    ServerProcess server({"--threads", "1"});
    check_closes(server, request("1.0", {"Connection: keep-alive, close"}));
    check_closes(server, request("1.0", {"Connection: close", "Connection: keep-alive"}));
}

TEST_CASE("HTTP/1.1 stays open and says nothing about it", "[live][keep_alive]") {
    ServerProcess server({"--threads", "1"});
    check_stays_open(server, std::string(kGet), "");
    check_stays_open(server, request("1.1", {"Connection: keep-alive"}), "");
    check_stays_open(server, request("1.1", {"Connection: foo"}), "");
    check_stays_open(server, request("1.1", {"Connection: closed, not-close"}), "");
    check_stays_open(server, request("1.1", {"X-Connection: close"}), "");
}

TEST_CASE("HTTP/1.1 with close in any spelling gets one answer and a FIN", "[live][keep_alive]") {
    ServerProcess server({"--threads", "1"});
    for (const char* value : {"close", "Close", "CLOSE", "keep-alive, close", "close, keep-alive",
                              "    close", "close ", "close\t", "\tclose", "foo,close", "close,foo",
                              "foo ,\tclose\t, bar", ",,close,,"}) {
        check_closes(server, request("1.1", {std::string("Connection: ") + value}));
    }
    check_closes(server, request("1.1", {"Connection: keep-alive", "Connection: close"}));
    check_closes(server, request("1.1", {"Connection: close", "Connection: keep-alive"}));
    check_closes(server, request("1.1", {"CONNECTION: foo", "connection: Close"}));
}

TEST_CASE("the response head is small and its names are in canonical spelling",
          "[live][keep_alive]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    const Replies replies = client.exchange(kGet, 1);
    REQUIRE(replies.statuses() == "200");
    const Response& response = replies.responses[0];
    CHECK(response.head.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(response.head.find("\r\nContent-Length: 12\r\n") != std::string::npos);
    CHECK(response.head.find("\r\nContent-Type: text/plain\r\n") != std::string::npos);
    CHECK(response.head.find("\r\nServer: hello-uring\r\n") != std::string::npos);
    CHECK(response.head.find("\r\nDate: ") != std::string::npos);
    for (const auto& [name, value] : response.headers) {
        INFO(name);
        CHECK(response.count(name) == 1);
    }
    CHECK(response.head.size() < 256);
}

TEST_CASE("HEAD gets the head of a GET and no body", "[live][keep_alive]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    Replies replies = client.exchange(std::string(kHead) + std::string(kGet), 2, "HG");
    REQUIRE(replies.statuses() == "200 200");
    CHECK(replies.leftover.empty());
    CHECK(replies.responses[0].header("Content-Length") == "12");
    CHECK(replies.responses[0].has("Date"));
    CHECK(replies.responses[1].body == kBody);
    // The same fields in the same order; only the second may have moved on.
    for (Response& response : replies.responses) {
        std::erase_if(response.headers, [](const auto& field) { return field.first == "Date"; });
    }
    CHECK(replies.responses[0].headers == replies.responses[1].headers);

    RawClient old(server.port());
    old.send("HEAD / HTTP/1.0\r\n\r\n");
    const Replies last = old.read_to_end("H");
    CHECK(last.statuses() == "200");
    CHECK(last.leftover.empty());
    CHECK(last.end == End::Fin);
}

TEST_CASE("sixteen pipelined requests in one segment get sixteen answers", "[live][pipelining]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    for (int round = 0; round < 3; ++round) {
        client.send(repeat(kGet, 16));
        check_all_ok(client.read(16), 16);
    }
    CHECK(server.counters()["requests"] == 48);
}

TEST_CASE("five thousand pipelined requests are all answered", "[live][pipelining]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    check_all_ok(client.exchange(repeat(kGet, 5000), 5000), 5000);
    CHECK(client.silent_for(Milliseconds(50)));
    CHECK(server.counters()["requests"] == 5000);
}

TEST_CASE("a connection has no limit on the number of its requests", "[live][pipelining]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    const auto count = static_cast<std::size_t>(load(100000));
    check_all_ok(client.exchange(repeat(kGet, count), count), count);
    CHECK(client.silent_for(Milliseconds(20)));
}

TEST_CASE("twenty thousand answers reach a slow reader complete", "[live][pipelining]") {
    // Short sends: what the kernel didn't take is sent before anything else.
    ServerProcess server({"--threads", "1"});
    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    RawClient client(server.port(), small);
    constexpr std::size_t kCount = 20000;
    const std::string pipeline = repeat(kGet, kCount);
    const std::size_t sent = client.send(pipeline, Milliseconds(700));
    std::this_thread::sleep_for(Milliseconds(300));
    const Replies replies = client.exchange(std::string_view(pipeline).substr(sent), kCount, "G",
                                            scaled(Milliseconds(30000)));
    check_all_ok(replies, kCount);
}

TEST_CASE("answers keep the order of their requests under back-pressure", "[live][pipelining]") {
    // Two sends in flight on one socket would swap answers. HEAD answers have no body, so any swap
    // with another method breaks the framing from there on.
    ServerProcess server({"--threads", "1"});
    std::mt19937 random(1);
    std::string methods;
    std::string pipeline;
    for (int index = 0; index < 5000; ++index) {
        methods += "GHP"[random() % 3];
        pipeline += methods.back() == 'G' ? kGet : methods.back() == 'H' ? kHead : kPost;
    }
    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    RawClient client(server.port(), small);
    std::size_t sent = client.send(pipeline, Milliseconds(300));
    for (int index = 0; index < 200; ++index) {
        static_cast<void>(client.take_slowly(700));
        std::this_thread::sleep_for(Milliseconds(1));
    }
    const Replies replies = client.exchange(std::string_view(pipeline).substr(sent), 5000, methods,
                                            scaled(Milliseconds(30000)));
    REQUIRE(replies.responses.size() == 5000);
    CHECK(replies.leftover.empty());
    std::size_t wrong = 0;
    for (std::size_t index = 0; index < methods.size(); ++index) {
        const std::string_view expected = methods[index] == 'H' ? "" : kBody;
        wrong += replies.responses[index].body == expected ? 0U : 1U;
    }
    CHECK(wrong == 0);
    CHECK(client.silent_for(Milliseconds(20)));
}

TEST_CASE("large bodies keep their order and length under back-pressure", "[live][pipelining]") {
    ServerProcess server({"--threads", "1", "--body", std::string(30000, 'x')});
    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    RawClient client(server.port(), small);
    std::string pipeline = repeat(kGet, 300);
    client.send(pipeline);
    std::this_thread::sleep_for(Milliseconds(100));
    const Replies replies = client.read(300, "G", scaled(Milliseconds(30000)));
    REQUIRE(replies.responses.size() == 300);
    for (const Response& response : replies.responses) {
        if (response.body != std::string(30000, 'x')) {
            FAIL("a body of " << response.body.size() << " bytes");
        }
    }
    CHECK(replies.leftover.empty());
}

TEST_CASE("a request that arrives byte by byte is answered", "[live][fragments]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    for (const std::string_view text : {kGet, kPost, kGet}) {
        client.send_bytewise(text, Milliseconds(1));
        const Replies replies = client.read(1);
        CHECK(replies.statuses() == "200");
        CHECK(replies.leftover.empty());
    }
}

TEST_CASE("two pipelined requests are answered wherever they are split", "[live][fragments]") {
    ServerProcess server({"--threads", "1"});
    const std::string pipeline =
        "POST /path?query=1 HTTP/1.1\r\nHost: example.org\r\nUser-Agent: a test\r\n"
        "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"
        "5;name=value\r\nhello\r\n0\r\nTrailer: x\r\n\r\n"
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n";
    int wrong = 0;
    for (std::size_t offset = 1; offset < pipeline.size(); ++offset) {
        RawClient client(server.port());
        client.send_split(pipeline, offset);
        const Replies replies = client.read_to_end();
        if (replies.statuses() != "200 200" || replies.end != End::Fin ||
            !replies.leftover.empty() || replies.responses[1].header("Connection") != "close") {
            ++wrong;
            UNSCOPED_INFO("split at " << offset << ": " << replies.statuses() << ", "
                                      << to_string(replies.end));
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("requests split at random bytes of one connection are all answered",
          "[live][fragments]") {
    // A lost re-arm of the receive would show as one answer that never comes.
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    std::mt19937 random(7);
    const int count = load(10000);
    int answered = 0;
    for (int index = 0; index < count; ++index) {
        const std::size_t offset = random() % (kGet.size() + 1);
        client.send(kGet.substr(0, offset));
        if (index % 16 == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        }
        client.send(kGet.substr(offset));
        const Replies replies = client.read(1, "G", scaled(Milliseconds(2000)));
        if (replies.statuses() != "200") {
            break;
        }
        ++answered;
    }
    CHECK(answered == count);
}

TEST_CASE("a second request whose end comes later is not delayed by 40 ms", "[live][fragments]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    Milliseconds fastest(1000);
    for (int round = 0; round < 5; ++round) {
        client.send(std::string(kGet) + "GET / HT");
        CHECK(client.read(1).statuses() == "200");
        std::this_thread::sleep_for(Milliseconds(5));
        const auto start = Clock::now();
        client.send("TP/1.1\r\nHost: a\r\n\r\n");
        CHECK(client.read(1).statuses() == "200");
        fastest = std::min(fastest, since(start));
    }
    CHECK(fastest < scaled(Milliseconds(20)));
}

TEST_CASE("a client that half-closes after its request gets the answer", "[live][half_close]") {
    ServerProcess server({"--threads", "1"});
    for (const std::string_view text : {kGet, kGetClose, kGet10, kPost}) {
        RawClient client(server.port());
        client.send(text);
        client.shutdown_write();
        const Replies replies = client.read_to_end();
        INFO(text);
        CHECK(replies.statuses() == "200");
        CHECK(replies.leftover.empty());
        CHECK(replies.end == End::Fin);
        CHECK(replies.elapsed < kAtOnce);
    }
}

TEST_CASE("a client that half-closes after a pipeline gets all answers", "[live][half_close]") {
    ServerProcess server({"--threads", "1"});
    for (const std::size_t count : {std::size_t{2}, std::size_t{100}, std::size_t{5000}}) {
        ClientOptions small;
        small.receive_buffer_bytes = 4096;
        RawClient client(server.port(), small);
        client.send(repeat(kGet, count));
        client.shutdown_write();
        const Replies replies = client.read_to_end("G", scaled(Milliseconds(20000)));
        check_all_ok(replies, count);
        CHECK(replies.end == End::Fin);
    }
}

TEST_CASE("a half-close in the middle of a request gets no 200", "[live][half_close]") {
    ServerProcess server({"--threads", "1"});
    for (const std::string_view text :
         {std::string_view("GET / HTTP/1.1\r\nHost: a\r\n"),
          std::string_view("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")}) {
        RawClient client(server.port());
        client.send(std::string(kGet) + std::string(text));
        client.shutdown_write();
        const Replies replies = client.read_to_end();
        INFO(text);
        REQUIRE_FALSE(replies.responses.empty());
        CHECK(replies.responses[0].status == 200);
        CHECK(replies.responses.size() <= 2);
        CHECK((replies.responses.size() == 1 || replies.responses[1].status == 400));
        CHECK(replies.end == End::Fin);
        CHECK(replies.elapsed < scaled(Milliseconds(3000)));
    }
}

TEST_CASE("requests before a faulty one are answered first", "[live][pipelining]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    client.send(repeat(kGet, 3) + "GET / HTTP/1.1\r\nno colon here\r\n\r\n" + std::string(kGet));
    const Replies replies = client.read_to_end();
    CHECK(replies.statuses() == "200 200 200 400");
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
    REQUIRE(replies.responses.size() == 4);
    CHECK(replies.responses[2].header("Connection").empty());
    CHECK(replies.responses[3].header("Connection") == "close");
}

TEST_CASE("a thousand answers precede the error that follows them", "[live][pipelining]") {
    ServerProcess server({"--threads", "1"});
    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    RawClient client(server.port(), small);
    client.send(repeat(kGet, 1000) + "garbage\r\n\r\n");
    const Replies replies = client.read_to_end("G", scaled(Milliseconds(20000)));
    REQUIRE(replies.responses.size() == 1001);
    CHECK(replies.responses[999].status == 200);
    CHECK(replies.responses[1000].status == 400);
    CHECK(replies.end == End::Fin);
}

TEST_CASE("body bytes never become a request", "[live][bodies]") {
    ServerProcess server({"--threads", "1"});
    const std::string inner = "GET /s HTTP/1.1\r\nHost: b\r\n\r\n";
    const std::string with_length =
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(inner.size()) +
        "\r\n\r\n" + inner;
    const std::string chunked =
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1b\r\n" +
        inner.substr(0, 27) + "\r\n0\r\n\r\n";
    const std::string get_with_body =
        "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(inner.size()) +
        "\r\n\r\n" + inner;
    for (const std::string& first : {with_length, chunked, get_with_body}) {
        INFO(first);
        RawClient client(server.port());
        client.send(first + std::string(kGetClose));
        const Replies replies = client.read_to_end();
        CHECK(replies.statuses() == "200 200");
        CHECK(replies.leftover.empty());
        CHECK(replies.end == End::Fin);
    }
}

TEST_CASE("an upgrade to an unknown protocol is ignored", "[live][upgrade]") {
    ServerProcess server({"--threads", "1"});
    for (const std::string_view version : {"1.1", "1.0"}) {
        RawClient client(server.port());
        client.send("GET / HTTP/" + std::string(version) +
                    "\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, keep-alive\r\n"
                    "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" +
                    std::string(kGetClose));
        const Replies replies = client.read_to_end();
        INFO(version);
        CHECK(replies.statuses() == "200 200");
        CHECK(replies.leftover.empty());
        CHECK(replies.end == End::Fin);
    }
}

TEST_CASE("100 Continue comes at once and the answer after the body", "[waits][live][expect]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    const Replies interim = client.read(1, "P", scaled(Milliseconds(300)));
    CHECK(interim.statuses() == "100");
    CHECK(interim.end == End::Timeout);
    CHECK(interim.first_byte < scaled(Milliseconds(150)));
    client.send("abc");
    CHECK(client.read(1).statuses() == "200");

    // The body is already there: no interim response is due. Nor ever for HTTP/1.0.
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc");
    const Replies with_body = client.read(1);
    CHECK((with_body.statuses() == "200" || with_body.statuses() == "100 200"));
    RawClient old(server.port());
    old.send("POST / HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    CHECK(old.silent_for(Milliseconds(100)));
    old.send("abc");
    CHECK(old.read_to_end().statuses() == "200");
}

TEST_CASE("a pipeline that never pauses leaves the other clients served", "[live][fairness]") {
    ServerProcess server({"--threads", "1"});
    std::vector<std::thread> flooders;
    const auto until = Clock::now() + Milliseconds(1500);
    std::vector<std::size_t> answers(2, 0);
    for (std::size_t& count : answers) {
        flooders.emplace_back([&] {
            RawClient client(server.port());
            const std::string pipeline = repeat(kGet, 2000);
            while (Clock::now() < until) {
                count += client.exchange(pipeline, 2000).responses.size();
            }
        });
    }
    int served = 0;
    int late = 0;
    while (Clock::now() < until) {
        RawClient client(server.port());
        client.send(kGetClose);
        const Replies replies = client.read_to_end();
        served += replies.statuses() == "200" ? 1 : 0;
        late += replies.elapsed > scaled(Milliseconds(200)) ? 1 : 0;
    }
    for (std::thread& flooder : flooders) {
        flooder.join();
    }
    INFO(served << " served, " << late << " of them late");
    CHECK(served >= 20);
    CHECK(late * 50 <= served);
    for (const std::size_t count : answers) {
        CHECK(count > 2000);
        CHECK(count % 2000 == 0);
    }
}

}  // namespace hello::test

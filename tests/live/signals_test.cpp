// SPDX-License-Identifier: MIT
//
// Stopping, counters on demand, and life as a service: signals, PID 1, systemd's notification, and
// a log that nobody reads.

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
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

constexpr std::string_view kBodyBegun = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe";

/// True once new connections are refused: the signal has been seen.
bool wait_refusing(const ServerProcess& server) {
    return wait_until([&] { return !RawClient::try_connect(server.port()); },
                      scaled(Milliseconds(2000)));
}

/// The last log line is the summary, with that many requests and at least so many connections:
/// wait_refusing() may have got through once more.
void check_summary(const ServerProcess& server, int requests, int connections) {
    const std::vector<std::string> lines = server.stderr_lines();
    REQUIRE_FALSE(lines.empty());
    INFO(lines.back());
    CHECK(lines.back().find("stopped") != std::string::npos);
    CHECK(number_after(lines.back(), "requests=") == requests);
    CHECK(number_after(lines.back(), "connections=") >= connections);
    CHECK(number_after(lines.back(), "connections=") <= connections + 3);
}

/// Clients of every awkward kind, all of which a stop has to deal with.
struct AwkwardClients {
    std::vector<RawClient> idle;
    std::vector<RawClient> half_sent;
    std::vector<RawClient> never_reading;

    explicit AwkwardClients(const ServerProcess& server) {
        for (int index = 0; index < 100; ++index) {
            idle.emplace_back(server.port());
            CHECK(idle.back().exchange(kGet, 1).statuses() == "200");
        }
        ClientOptions small;
        small.receive_buffer_bytes = 4096;
        const std::string pipeline = repeat(kGet, 50000);
        for (int index = 0; index < 10; ++index) {
            half_sent.emplace_back(server.port());
            half_sent.back().send(index % 2 == 0 ? "GET / HTTP/1.1\r\nHo" : kBodyBegun);
            never_reading.emplace_back(server.port(), small);
            never_reading.back().send(pipeline, Milliseconds(20));
        }
    }
};

/// Asks on one connection after the other until none can be opened. Returns what was left of an
/// answer that was cut; to be closed without an answer is right for a connection that is idle.
std::string ask_until_refused(std::uint16_t port) {
    for (;;) {
        std::optional<RawClient> client = RawClient::try_connect(port);
        if (!client) {
            return "";
        }
        for (bool open = true; open;) {
            const Replies replies = client->exchange(kGet, 1);
            if (!replies.leftover.empty()) {
                return "cut: " + replies.leftover;
            }
            open =
                !replies.responses.empty() && replies.responses[0].header("Connection") != "close";
        }
    }
}

}  // namespace

TEST_CASE("an idle server stops within a second of SIGTERM or SIGINT", "[live][signals]") {
    for (const int number : {SIGTERM, SIGINT}) {
        ServerProcess server;
        {
            RawClient client(server.port());
            CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
        }
        static_cast<void>(server.wait_quiet());
        const auto start = Clock::now();
        server.signal(number);
        CHECK(server.wait_exit() == 0);
        CHECK(since(start) < scaled(Milliseconds(1000)));
        check_summary(server, 1, 1);
    }
}

TEST_CASE("idle, half-sent and never-reading clients don't keep the server from stopping",
          "[waits][live][signals]") {
    for (const int number : {SIGTERM, SIGINT}) {
        ServerProcess server({"--threads", "2", "--drain-timeout", "2"});
        AwkwardClients clients(server);
        const auto start = Clock::now();
        server.signal(number);
        CHECK(server.wait_exit() == 0);
        CHECK(since(start) < Milliseconds(2000) + scaled(Milliseconds(1500)));
        for (RawClient& client : clients.idle) {
            const Replies replies = client.read_to_end();
            CHECK(replies.responses.empty());
            CHECK(replies.end == End::Fin);
        }
    }
}

TEST_CASE("idle connections alone make no stop wait for the drain timeout", "[live][signals]") {
    ServerProcess server({"--threads", "2", "--drain-timeout", "10"});
    std::vector<RawClient> clients;
    for (int index = 0; index < 50; ++index) {
        clients.emplace_back(server.port());
        CHECK(clients.back().exchange(kGet, 1).statuses() == "200");
    }
    const auto start = Clock::now();
    CHECK(server.stop() == 0);
    CHECK(since(start) < scaled(Milliseconds(1500)));
    check_summary(server, 50, 50);
}

TEST_CASE("the last request of a stopping worker is answered", "[live][signals]") {
    // The answer and the close used to be queued when the worker left its loop, and stay queued.
    for (const char* threads : {"1", "2"}) {
        INFO(threads << " threads");
        ServerProcess server({"--threads", threads});
        RawClient client(server.port());
        client.send("GET / HTTP/1.1\r\n");
        static_cast<void>(
            server.wait_counters([](const Counters& now) { return now["bytes_received"] > 0; }));
        server.signal(SIGTERM);
        CHECK(wait_refusing(server));
        client.send("Host: a\r\n\r\n");
        const Replies replies = client.read_to_end();
        CHECK(replies.statuses() == "200");
        CHECK(replies.end == End::Fin);
        CHECK(server.wait_exit() == 0);
    }
}

TEST_CASE("an empty line after a request makes no stop wait", "[live][signals]") {
    ServerProcess server({"--threads", "1", "--drain-timeout", "10"});
    RawClient client(server.port());
    CHECK(client.exchange(std::string(kGet) + "\r\n", 1).statuses() == "200");
    const auto start = Clock::now();
    CHECK(server.stop() == 0);
    CHECK(since(start) < scaled(Milliseconds(1500)));
}

TEST_CASE("a second signal ends the server at once", "[live][signals]") {
    ServerProcess server({"--threads", "2", "--drain-timeout", "30"});
    AwkwardClients clients(server);
    server.signal(SIGTERM);
    CHECK(wait_refusing(server));
    CHECK(server.running());
    const auto start = Clock::now();
    server.signal(SIGTERM);
    CHECK(server.wait_exit() != ServerProcess::kStillRunning);
    CHECK(since(start) < scaled(Milliseconds(1000)));
}

TEST_CASE("a request in flight at SIGTERM is finished and its answer says close",
          "[live][signals]") {
    ServerProcess server({"--threads", "1", "--drain-timeout", "10"});
    RawClient body(server.port());
    body.send(kBodyBegun);
    RawClient head(server.port());
    head.send("GET / HTTP/1.1\r\nHo");
    RawClient second(server.port());
    second.send(std::string(kGet) + "GET / HTT");
    CHECK(second.read(1).statuses() == "200");
    static_cast<void>(
        server.wait_counters([](const Counters& now) { return now["connections_open"] == 3; }));
    server.signal(SIGTERM);
    CHECK(wait_refusing(server));
    body.send("llo");
    head.send("st: a\r\n\r\n");
    second.send("P/1.1\r\nHost: a\r\n\r\n");
    for (RawClient* client : {&body, &head, &second}) {
        const Replies replies = client->read_to_end();
        REQUIRE(replies.statuses() == "200");
        CHECK(replies.responses[0].header("Connection") == "close");
        CHECK(replies.responses[0].body == kBody);
        CHECK(replies.end == End::Fin);
    }
    CHECK(server.wait_exit() == 0);
    check_summary(server, 4, 3);
}

TEST_CASE("answers that a slow reader still waits for are delivered after SIGTERM",
          "[live][signals]") {
    ServerProcess server({"--threads", "1", "--drain-timeout", "10"});
    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    RawClient client(server.port(), small);
    client.send(repeat(kGet, 900));
    static_cast<void>(
        server.wait_counters([](const Counters& now) { return now["requests"] == 900; }));
    server.signal(SIGTERM);
    CHECK(wait_refusing(server));
    const Replies replies = client.read_to_end("G", scaled(Milliseconds(8000)));
    CHECK(replies.responses.size() == 900);
    CHECK(replies.leftover.empty());
    CHECK(replies.end == End::Fin);
    CHECK(server.wait_exit() == 0);
}

TEST_CASE("requests that arrive together with SIGTERM are answered", "[live][signals]") {
    // While the server stands still, requests come on open connections and on new ones, and then
    // the signal: it finds them all at once.
    for (const char* threads : {"1", "2"}) {
        INFO(threads << " threads");
        ServerProcess server({"--threads", threads});
        std::vector<RawClient> clients;
        for (int index = 0; index < 20; ++index) {
            clients.emplace_back(server.port());
            CHECK(clients.back().exchange(kGet, 1).statuses() == "200");
        }
        server.signal(SIGSTOP);
        for (int index = 0; index < 20; ++index) {
            clients.emplace_back(server.port());
        }
        for (RawClient& client : clients) {
            client.send(kGet);
        }
        server.signal(SIGTERM);
        server.signal(SIGCONT);
        std::size_t answered = 0;
        for (std::size_t index = 0; index < clients.size(); ++index) {
            const Replies replies = clients[index].read_to_end();
            const bool whole = replies.statuses() == "200" && replies.leftover.empty();
            answered += whole && replies.end == End::Fin ? 1U : 0U;
        }
        CHECK(answered == clients.size());
        const auto start = Clock::now();
        CHECK(server.wait_exit() == 0);
        CHECK(since(start) < scaled(Milliseconds(1500)));
    }
}

TEST_CASE("no answer is cut when the server stops under load", "[live][signals]") {
    for (int round = 0; round < 5; ++round) {
        ServerProcess server({"--threads", "2"});
        std::vector<std::thread> threads;
        std::vector<std::string> faults(4);
        for (std::string& fault : faults) {
            threads.emplace_back([&] { fault = ask_until_refused(server.port()); });
        }
        std::this_thread::sleep_for(Milliseconds(100));
        const auto start = Clock::now();
        CHECK(server.stop() == 0);
        CHECK(since(start) < scaled(Milliseconds(2500)));
        for (std::thread& thread : threads) {
            thread.join();
        }
        CHECK(faults == std::vector<std::string>(4));
        const std::vector<std::string> lines = server.stderr_lines();
        REQUIRE_FALSE(lines.empty());
        CHECK(lines.back().find("stopped") != std::string::npos);
    }
}

TEST_CASE("many quick starts and stops leave a short log and exit 0", "[live][signals]") {
    for (int round = 0; round < 20; ++round) {
        ServerProcess server({"--threads", "2"});
        CHECK(server.stop() == 0);
        CHECK(server.stderr_lines().size() < 10);
        const std::string text = server.stderr_text();
        CHECK(text.find("stopped") != std::string::npos);
        CHECK(text.find("Bad file descriptor") == std::string::npos);
    }
}

TEST_CASE("SIGUSR1 prints one JSON line with every counter", "[live][signals]") {
    ServerProcess server({"--threads", "2"});
    {
        RawClient client(server.port());
        CHECK(client.exchange(repeat(kGet, 3), 3).statuses() == "200 200 200");
        RawClient faulty(server.port());
        CHECK(faulty.exchange_to_end("garbage\r\n\r\n").statuses() == "400");
    }
    const Counters counters = server.wait_quiet();
    const std::vector<std::string> lines = server.stderr_lines();
    CHECK(std::ranges::any_of(lines, [](const std::string& line) {
        return line.starts_with("{\"engine\":\"" + engine_under_test() + "\"");
    }));
    for (const char* name : {"threads",
                             "requests",
                             "responses_200",
                             "responses_4xx",
                             "responses_5xx",
                             "connections_accepted",
                             "connections_closed",
                             "connections_open",
                             "bytes_received",
                             "bytes_sent",
                             "accept_errors",
                             "receive_errors",
                             "send_errors",
                             "sends_blocked",
                             "timeouts_header",
                             "timeouts_body",
                             "timeouts_idle",
                             "timeouts_write",
                             "timeouts_linger",
                             "buffers_exhausted",
                             "buffers_available",
                             "buffers_total",
                             "slots_in_use",
                             "completions_overflowed",
                             "stale_completions",
                             "accepts_paused",
                             "handoffs",
                             "log_lines_dropped"}) {
        INFO(name);
        CHECK(counters[name] >= 0);
    }
    CHECK(counters.json().at("uptime_s").number >= 0);
    CHECK(counters.json().at("cpu_s").number >= 0);
    CHECK(counters.json().at("engine").text == engine_under_test());
    CHECK(counters["requests"] == 4);
    CHECK(counters["responses_200"] == 3);
    CHECK(counters["responses_4xx"] == 1);
    CHECK(counters["connections_accepted"] == 2);
    CHECK(counters["connections_closed"] == 2);
    CHECK(counters["bytes_received"] ==
          static_cast<std::int64_t>(3 * kGet.size() + std::strlen("garbage\r\n\r\n")));
    CHECK(counters["bytes_sent"] > 0);
    for (const char* name : {"requests", "connections_accepted", "connections_open"}) {
        const std::vector<std::int64_t> each = counters.per_thread(name);
        CHECK(each.size() == 2);
        std::int64_t sum = 0;
        for (const std::int64_t value : each) {
            sum += value;
        }
        CHECK(sum == counters[name]);
    }
}

TEST_CASE("bytes_sent counts exactly what the clients receive", "[live][signals]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    const Replies replies = client.exchange(repeat(kGet, 2000), 2000);
    REQUIRE(replies.responses.size() == 2000);
    std::size_t received = 0;
    for (const Response& response : replies.responses) {
        received += response.head.size() + response.body.size();
    }
    const auto wanted = static_cast<std::int64_t>(received);
    CHECK(server.wait_counters([&](const Counters& now) {
        return now["bytes_sent"] == wanted;
    })["bytes_sent"] == wanted);
}

TEST_CASE("the server works as process 1 of a container", "[live][signals]") {
    require_tool("unshare");
    const std::vector<std::string> wrapper{"unshare", "-p", "-f", "--mount-proc", "--kill-child"};
    std::vector<std::string> probe = wrapper;
    probe.emplace_back("true");
    const ToolResult permitted = run_tool(probe);
    if (permitted.exit_code != 0) {
        SKIP("no new PID namespace: " << permitted.err);
    }
    ServerOptions options;
    options.wrapper = wrapper;
    ServerProcess server(options);
    CHECK(status_field(server.pid(), "NSpid").ends_with("\t1"));
    RawClient client(server.port());
    CHECK(client.exchange(kGet, 1).statuses() == "200");
    CHECK(server.counters()["requests"] == 1);
    const auto start = Clock::now();
    CHECK(server.stop() == 0);
    CHECK(since(start) < scaled(Milliseconds(2000)));
    CHECK(server.stderr_lines().back().find("stopped") != std::string::npos);
}

TEST_CASE("systemd is told when the server is ready", "[live][signals]") {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("hello-notify-" + std::to_string(getpid()));
    for (const bool abstract : {false, true}) {
        INFO((abstract ? "abstract" : "path") << " socket");
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string name = path.string();
        name.copy(static_cast<char*>(address.sun_path) + (abstract ? 1 : 0), name.size());
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
        const FileDescriptor receiver(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        REQUIRE(bind(receiver.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
        const timeval limit{5, 0};
        setsockopt(receiver.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);

        ServerOptions options;
        options.environment = {{"NOTIFY_SOCKET", (abstract ? "@" : "") + name}};
        ServerProcess server(options);
        std::array<char, 1000> message{};
        const ssize_t count = recv(receiver.get(), message.data(), message.size(), 0);
        REQUIRE(count > 0);
        const std::string text(message.data(), static_cast<std::size_t>(count));
        CHECK(text.find("READY=1") != std::string::npos);
        CHECK(server.stop() == 0);
        std::filesystem::remove(path);
    }
}

TEST_CASE("a log that nobody reads never stops the server", "[live][signals][log]") {
    ServerOptions options;
    options.arguments = {"--threads", "1", "--log-level", "debug"};
    options.standard_error = StandardError::Blocked;
    ServerProcess server(options);  // gets ready although its first line can't be written
    for (int index = 0; index < 500; ++index) {
        RawClient client(server.port());
        const auto start = Clock::now();
        CHECK(client.exchange_to_end("garbage\r\n\r\n").statuses() == "400");
        REQUIRE(since(start) < scaled(Milliseconds(1000)));
    }
    server.signal(SIGUSR1);  // these can't be written either
    RawClient client(server.port());
    CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
    CHECK(server.stop(scaled(Milliseconds(4000))) == 0);
}

TEST_CASE("ten thousand protocol errors don't flood the log", "[live][signals][log]") {
    ServerProcess server({"--threads", "2"});
    const int count = load(10000);
    int answered = 0;
    for (int index = 0; index < count; ++index) {
        RawClient client(server.port());
        client.send("garbage\r\n\r\n");
        answered += client.read(1).statuses() == "400" ? 1 : 0;
        client.reset();
    }
    CHECK(answered == count);
    CHECK(server.wait_quiet()["responses_4xx"] == count);
    CHECK(server.stderr_lines().size() < 60);
}

TEST_CASE("SIGPIPE is ignored", "[live][signals]") {
    ServerProcess server;
    const std::string ignored = status_field(server.pid(), "SigIgn");
    const unsigned long mask = std::stoul(ignored, nullptr, 16);
    CHECK((mask >> (SIGPIPE - 1) & 1) == 1);
    server.signal(SIGPIPE);
    RawClient client(server.port());
    CHECK(client.exchange(kGet, 1).statuses() == "200");
}

TEST_CASE("the soft limit of descriptors is raised to the hard one", "[live][signals]") {
    ServerOptions options;
    options.arguments = {"--threads", "2"};
    options.limits = {{RLIMIT_NOFILE, 64, 4096}};
    ServerProcess server(options);
    rlimit limit{};
    REQUIRE(prlimit(server.pid(), RLIMIT_NOFILE, nullptr, &limit) == 0);
    CHECK(limit.rlim_cur == 4096);
    std::vector<RawClient> clients;
    for (int index = 0; index < 500; ++index) {
        clients.emplace_back(server.port());
        clients.back().send(kGet);
    }
    int served = 0;
    for (RawClient& client : clients) {
        served += client.read(1).statuses() == "200" ? 1 : 0;
    }
    CHECK(served == 500);
}

TEST_CASE("a low hard limit of descriptors lets the surplus wait", "[live][signals]") {
    ServerOptions options;
    options.arguments = {"--threads", "1"};
    options.limits = {{RLIMIT_NOFILE, 64, 64}};
    ServerProcess server(options);
    std::vector<RawClient> clients;
    for (int index = 0; index < 100; ++index) {
        clients.emplace_back(server.port());
        clients.back().send(kGetClose);
    }
    int served = 0;
    for (RawClient& client : clients) {
        served += client.read_to_end().statuses() == "200" ? 1 : 0;
    }
    CHECK(served == 100);
    CHECK(server.stderr_lines().size() < 20);
}

TEST_CASE("a client that had just connected at SIGTERM may still ask", "[waits][live][signals]") {
    // It was closed at once, and a request on its way was lost.
    ServerProcess server({"--threads", "1", "--defer-accept", "off"});
    RawClient asks(server.port());
    RawClient says_nothing(server.port());
    REQUIRE(server.wait_counters([](const Counters& now) {
        return now["connections_open"] == 2;
    })["connections_open"] == 2);
    server.signal(SIGTERM);
    REQUIRE(wait_until([&] { return server.stderr_text().find("stopping") != std::string::npos; },
                       scaled(Milliseconds(2000))));
    CHECK(asks.exchange_to_end(kGet).responses.at(0).header("Connection") == "close");
    CHECK(says_nothing.read_to_end().end == End::Fin);
    CHECK(server.wait_exit(scaled(Milliseconds(4000))) == 0);
}

TEST_CASE("too few descriptors for the threads end the start with the cure", "[live][signals]") {
    ToolOptions options;
    options.limits = {{RLIMIT_NOFILE, 100, 100}};
    const ToolResult result = run_server({"--threads", "30", "--port", "0"}, std::move(options));
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK(lines_of(result.err).size() == 1);
    CHECK(result.err.find("ulimit -Hn") != std::string::npos);
    CHECK(result.out.empty());
}

}  // namespace hello::test

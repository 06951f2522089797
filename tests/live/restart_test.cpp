// SPDX-License-Identifier: MIT
//
// Stop and restart under real load: what the server counts as a request, its client has got the
// answer to; and servers that take over a port from each other lose nobody.

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/child_process.h"
#include "support/namespaces.h"
#include "support/proc.h"
#include "support/server_process.h"
#include "support/tool.h"
#include "support/wait.h"

namespace hello::test {
namespace {

constexpr auto kEndLimit = scaled(Milliseconds(20000));

struct Summary {
    std::int64_t requests = kMissing;
    std::int64_t connections = kMissing;
};

/// Stops the server and returns what the last line of its log tells.
Summary stop_and_count(ServerProcess& server) {
    CHECK(server.stop() == 0);
    const std::vector<std::string> lines = server.stderr_lines();
    REQUIRE_FALSE(lines.empty());
    INFO(lines.back());
    CHECK(lines.back().find("stopped") != std::string::npos);
    return {number_after(lines.back(), "requests="), number_after(lines.back(), "connections=")};
}

/// Waits until the server has counted that many requests.
void wait_requests(ServerProcess& server, std::int64_t count) {
    const Counters counters =
        server.wait_counters([&](const Counters& now) { return now["requests"] >= count; });
    REQUIRE(counters["requests"] >= count);
}

/// A load generator at work; its report once it ends by itself, or on SIGINT.
class Load {
public:
    explicit Load(const ChildOptions& options) : child_(options) {}
    explicit Load(std::vector<std::string> argv) : Load(options_of(std::move(argv))) {}

    [[nodiscard]] bool running() { return child_.running(); }

    std::string interrupt() {
        child_.signal(SIGINT);
        return report();
    }

    std::string report() {
        CHECK(child_.wait_exit(kEndLimit) == 0);
        return child_.stdout_text();
    }

private:
    static ChildOptions options_of(std::vector<std::string> argv) {
        ChildOptions options;
        options.argv = std::move(argv);
        return options;
    }

    ChildProcess child_;
};

std::vector<std::string> hey(int requests, int connections, const std::string& url) {
    return {"hey", "-n", std::to_string(requests), "-c", std::to_string(connections), url};
}

std::vector<std::string> hey_without_keep_alive(int requests,
                                                int connections,
                                                const std::string& url) {
    std::vector<std::string> argv = hey(requests, connections, url);
    argv.insert(argv.begin() + 1, "-disable-keepalive");
    return argv;
}

constexpr int kConnections = 300;
constexpr int kRequestsBefore = load(3000);
constexpr int kForEver = 10'000'000;

}  // namespace

TEST_CASE("wrk gets an answer to every request that a stopping server counts",
          "[live][restart][wrk]") {
    require_tool("wrk");
    for (int round = 0; round < 5; ++round) {
        ServerProcess server({"--threads", "2"});
        Load wrk({"wrk", "-t1", "-c" + std::to_string(kConnections), "-d60s", server.url()});
        wait_requests(server, kRequestsBefore);
        const std::int64_t requests = stop_and_count(server).requests;
        // It counts an answer when it reads it, which may be after the server's end.
        CHECK(wait_until([&] { return sockets_connected_to(server.port()) == 0; }, kEndLimit));
        const WrkReport report = parse_wrk(wrk.interrupt());
        CHECK(report.requests == requests);
        CHECK_FALSE(report.non_2xx);
    }
}

TEST_CASE("hey gets an answer to every request that a stopping server counts",
          "[live][restart][hey]") {
    require_tool("hey");
    for (int round = 0; round < 3; ++round) {
        ServerProcess server({"--threads", "2"});
        Load load(hey(kForEver, kConnections, server.url()));
        wait_requests(server, kRequestsBefore);
        const std::int64_t requests = stop_and_count(server).requests;
        const HeyReport report = parse_hey(load.interrupt());
        CHECK(report.statuses == std::map<int, std::int64_t>{{200, requests}});
    }
}

TEST_CASE("hey gets an answer on every connection that a stopping server accepts",
          "[live][restart][hey]") {
    // Accepts are deferred, so every connection comes with its request.
    require_tool("hey");
    for (int round = 0; round < 3; ++round) {
        ServerProcess server({"--threads", "2"});
        Load load(hey_without_keep_alive(kForEver, kConnections, server.url()));
        wait_requests(server, kRequestsBefore);
        const Summary summary = stop_and_count(server);
        const HeyReport report = parse_hey(load.interrupt());
        CHECK(report.statuses == std::map<int, std::int64_t>{{200, summary.connections}});
        CHECK(summary.requests == summary.connections);
    }
}

TEST_CASE("a rolling restart loses no request that a server has seen, and the kernel hardly any",
          "[live][restart][hey]") {
    // Without the setting the kernel resets who has connected but not yet sent a request to the
    // server that stops: about ten clients of 50 with each restart.
    require_tool("hey");
    const NetworkNamespace network;
    network.set("ipv4/tcp_migrate_req", "1");
    ServerOptions options;
    options.before_exec = network.enter();
    options.arguments = {"--threads", "2", "--share-port", "--port", "8080"};
    auto current = std::make_unique<ServerProcess>(options);

    constexpr int kWanted = 40000;  // enough to outlast the restarts
    ChildOptions client;
    client.argv = hey_without_keep_alive(kWanted, 50, current->url());
    client.before_exec = network.enter();
    Load load(client);
    std::int64_t requests = 0;
    for (int restart = 0; restart < 4; ++restart) {
        auto next = std::make_unique<ServerProcess>(options);
        wait_requests(*next, 1000);
        CHECK(load.running());
        requests += stop_and_count(*current).requests;
        current = std::move(next);
    }
    const HeyReport report = parse_hey(load.report());
    requests += stop_and_count(*current).requests;
    // A connection that the kernel completes on one CPU while the listener closes on another is
    // reset, before any server has seen it: one in 8 of 517 runs.
    CHECK(report.statuses == std::map<int, std::int64_t>{{200, requests}});
    CHECK(requests <= kWanted);
    CHECK(requests >= kWanted - 1);
}

}  // namespace hello::test

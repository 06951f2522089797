// SPDX-License-Identifier: MIT
//
// slowhttptest, the tool that people attack servers with to see whether they stand it: its four
// modes at the same time.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/latencies.h"
#include "support/server_process.h"
#include "support/tool.h"

namespace hello::test {
namespace {

constexpr const char* kConnections = "200";
/// Longer than it takes the server to end them all: the tool ends when it has no connection left.
constexpr const char* kSeconds = "15";

std::unique_ptr<ChildProcess> attack(ServerProcess& server, std::vector<std::string> mode) {
    ChildOptions options;
    options.argv = {"slowhttptest", "-u", server.url(), "-c", kConnections, "-r",
                    kConnections,   "-l", kSeconds,     "-p", "3"};
    options.argv.insert(options.argv.end(), mode.begin(), mode.end());
    return std::make_unique<ChildProcess>(options);
}

}  // namespace

TEST_CASE("the four attacks of slowhttptest are ended in time, and others are served",
          "[live][hostile]") {
    require_tool("slowhttptest");
    ServerProcess server({"--threads", "2", "--body", std::string(60000, 'x'), "--header-timeout",
                          "1", "--body-timeout", "1", "--write-timeout", "1", "--idle-timeout",
                          "1"});
    std::vector<std::unique_ptr<ChildProcess>> attacks;
    attacks.push_back(attack(server, {"-H", "-i", "1", "-x", "24"}));
    attacks.push_back(attack(server, {"-B", "-i", "1", "-s", "8192", "-x", "10"}));
    attacks.push_back(attack(server, {"-R", "-a", "10", "-b", "3000", "-t", "HEAD"}));
    // Its 600 KB of answers fit into the kernel. So the server is done with it soon, but the tool
    // has something to read for as long as it likes.
    const std::unique_ptr<ChildProcess> slow_read =
        attack(server, {"-X", "-w", "10", "-y", "20", "-n", "1", "-z", "32", "-k", "10"});
    const auto are_over = [&] {
        return std::ranges::none_of(attacks, [](const auto& each) { return each->running(); });
    };
    const Latencies others = probe_until(server.port(), are_over, scaled(Milliseconds(12000)));
    const Counters counters = server.wait_quiet();
    INFO(figures("slowhttptest: " + std::to_string(counters["timeouts_header"]) + " heads and " +
                 std::to_string(counters["timeouts_body"]) + " bodies too slow, " +
                 std::to_string(counters["responses_4xx"]) +
                 " refused in all; others: " + others.summary()));
    check_served_at_once(others);
    CHECK(slow_read->running());
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
    // Of 200 each; the tool does not promise that all its connections succeed. The third attack
    // has more ranges than fit into a head.
    CHECK(counters["timeouts_header"] >= 180);
    CHECK(counters["timeouts_body"] >= 180);
    CHECK(counters["responses_4xx"] >= 540);
    for (const auto& each : attacks) {
        CHECK(each->wait_exit(scaled(Milliseconds(2000))) == 0);
        const std::string report = each->stdout_text() + each->stderr_text();
        INFO(report);
        CHECK(report.find("No open connections left") != std::string::npos);
    }
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// The load generators that people aim at the server: no failure, no status but 200, and the
// client's own count equals the server's counters.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/server_process.h"
#include "support/tool.h"

namespace hello::test {
namespace {

constexpr int kBodyBytes = 12;  // "Hello World!"

struct AbRun {
    int requests;
    int concurrency;
    bool keep_alive = false;
    bool head = false;
};

/// Runs ab and compares everything that both sides count.
void check_ab(const AbRun& run) {
    require_tool("ab");
    ServerProcess server;
    std::vector<std::string> argv{"ab", "-q",
                                  "-s", "10",
                                  "-n", std::to_string(run.requests),
                                  "-c", std::to_string(run.concurrency)};
    if (run.keep_alive) {
        argv.emplace_back("-k");
    }
    if (run.head) {
        argv.emplace_back("-i");
    }
    argv.push_back(server.url());

    const ToolResult result = run_tool(argv);
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const AbReport report = parse_ab(result.out);
    CHECK(report.complete == run.requests);
    CHECK(report.failed == 0);
    CHECK(report.non_2xx == 0);
    CHECK(report.keep_alive == (run.keep_alive ? run.requests : 0));
    CHECK(report.html_bytes == (run.head ? 0 : std::int64_t{kBodyBytes} * run.requests));

    const Counters counters = server.wait_quiet();
    CHECK(counters["requests"] == run.requests);
    CHECK(counters["responses_200"] == run.requests);
    CHECK(counters["responses_4xx"] == 0);
    CHECK(counters["responses_5xx"] == 0);
    // At its end ab opens up to one more connection for each that was busy, and sends nothing.
    const int connections = run.keep_alive ? run.concurrency : run.requests;
    CHECK(counters["connections_accepted"] >= connections);
    CHECK(counters["connections_accepted"] <= connections + run.concurrency);
    CHECK(counters["connections_open"] == 0);
    CHECK(server.stop() == 0);
}

/// What both curl and the test need: the values that `-w` printed, one line each.
std::vector<std::vector<std::string>> words_of_lines(const std::string& text) {
    std::vector<std::vector<std::string>> result;
    for (const std::string& line : lines_of(text)) {
        std::istringstream words(line);
        std::vector<std::string> row;
        for (std::string word; words >> word;) {
            row.push_back(word);
        }
        result.push_back(row);
    }
    return result;
}

}  // namespace

TEST_CASE("ab without keep-alive succeeds with 100 connections at a time", "[live][ab]") {
    check_ab({.requests = load(20000), .concurrency = 100});
}

TEST_CASE("ab without keep-alive succeeds with 500 connections at a time", "[live][ab]") {
    check_ab({.requests = load(20000), .concurrency = 500});
}

TEST_CASE("ab with keep-alive succeeds with 100 connections", "[live][ab]") {
    check_ab({.requests = load(40000), .concurrency = 100, .keep_alive = true});
}

TEST_CASE("ab with keep-alive succeeds with 500 connections", "[live][ab]") {
    check_ab({.requests = load(40000), .concurrency = 500, .keep_alive = true});
}

TEST_CASE("one connection is kept alive for as many requests as ab sends", "[live][ab]") {
    check_ab({.requests = load(20000), .concurrency = 1, .keep_alive = true});
}

TEST_CASE("every step of the published ab ladder succeeds", "[live][ab]") {
    check_ab({.requests = 10, .concurrency = 1});
    check_ab({.requests = 100, .concurrency = 1});
    check_ab({.requests = 100, .concurrency = 10});
    check_ab({.requests = 1000, .concurrency = 20});
    check_ab({.requests = load(5000), .concurrency = 200});
}

TEST_CASE("ab -i gets heads without bodies", "[live][ab]") {
    check_ab({.requests = load(5000), .concurrency = 50, .head = true});
    check_ab({.requests = load(5000), .concurrency = 50, .keep_alive = true, .head = true});
}

TEST_CASE("ab at 1,000 connections at a time never sees a reset", "[live][ab]") {
    // ab quits at the first reset unless -r is given: exit code 0 proves there was none.
    check_ab({.requests = load(20000), .concurrency = 1000});
}

TEST_CASE("hey with keep-alive gets a 200 for every request", "[live][hey]") {
    require_tool("hey");
    ServerProcess server;
    const int requests = load(20000);
    const ToolResult result =
        run_tool({"hey", "-n", std::to_string(requests), "-c", "100", server.url()});
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const HeyReport report = parse_hey(result.out);
    CHECK_FALSE(report.errors);
    CHECK(report.statuses == std::map<int, std::int64_t>{{200, requests}});

    const Counters counters = server.wait_quiet();
    CHECK(counters["requests"] == requests);
    CHECK(counters["responses_200"] == requests);
    // Go dials when no connection is idle, and may find one idle before the new one is ready.
    CHECK(counters["connections_accepted"] >= 1);
    CHECK(counters["connections_accepted"] <= requests / 10);
}

TEST_CASE("hey -disable-keepalive gets a 200 for every connection", "[live][hey]") {
    require_tool("hey");
    ServerProcess server;
    const int requests = load(8000);
    const ToolResult result = run_tool(
        {"hey", "-n", std::to_string(requests), "-c", "50", "-disable-keepalive", server.url()});
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const HeyReport report = parse_hey(result.out);
    CHECK_FALSE(report.errors);
    CHECK(report.statuses == std::map<int, std::int64_t>{{200, requests}});

    const Counters counters = server.wait_quiet();
    CHECK(counters["requests"] == requests);
    CHECK(counters["responses_200"] == requests);
    CHECK(counters["connections_accepted"] == requests);
}

namespace {

constexpr int kWrkConnections = 64;

/// Runs wrk for two seconds: it stops in the middle of requests, so the server may have answered
/// up to one more per connection.
Counters check_wrk(ServerProcess& server, const std::vector<std::string>& extra) {
    std::vector<std::string> argv{"wrk", "-t1", "-c" + std::to_string(kWrkConnections), "-d2s"};
    argv.insert(argv.end(), extra.begin(), extra.end());
    argv.push_back(server.url());
    const ToolResult result = run_tool(argv);
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const WrkReport report = parse_wrk(result.out);
    CHECK(report.requests > 0);
    CHECK_FALSE(report.socket_errors);
    CHECK_FALSE(report.non_2xx);

    Counters counters = server.wait_quiet();
    CHECK(counters["requests"] >= report.requests);
    CHECK(counters["requests"] <= report.requests + kWrkConnections);
    CHECK(counters["responses_200"] == counters["requests"]);
    return counters;
}

}  // namespace

TEST_CASE("wrk with keep-alive sees no socket error", "[live][wrk]") {
    require_tool("wrk");
    ServerProcess server;
    const Counters counters = check_wrk(server, {});
    // wrk opens one more connection to find out whether the address works.
    CHECK(counters["connections_accepted"] >= kWrkConnections);
    CHECK(counters["connections_accepted"] <= kWrkConnections + 2);
}

TEST_CASE("wrk with Connection: close sees no socket error", "[live][wrk]") {
    require_tool("wrk");
    ServerProcess server;
    const Counters counters = check_wrk(server, {"-H", "Connection: close"});
    CHECK(counters["connections_accepted"] >= counters["requests"]);
    CHECK(counters["connections_accepted"] <= counters["requests"] + kWrkConnections + 2);
}

TEST_CASE("h2load pipelines eight deep without a failure", "[live][h2load]") {
    require_tool("h2load");
    ServerProcess server;
    const int requests = load(40000);
    const ToolResult result = run_tool(
        {"h2load", "--h1", "-n", std::to_string(requests), "-c", "50", "-m", "8", server.url()});
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const H2loadReport report = parse_h2load(result.out);
    CHECK(report.succeeded == requests);
    CHECK(report.failed == 0);
    CHECK(report.errored == 0);
    CHECK(report.timeout == 0);
    CHECK(report.status_2xx == requests);

    const Counters counters = server.wait_quiet();
    CHECK(counters["requests"] == requests);
    CHECK(counters["responses_200"] == requests);
    CHECK(counters["connections_accepted"] == 50);
}

TEST_CASE("curl fetches several URLs over one connection, none delayed by 40 ms", "[live][curl]") {
    require_tool("curl");
    ServerProcess server;
    std::vector<std::string> argv{"curl", "-s", "-w",
                                  "%{http_code} %{num_connects} %{time_total}\n"};
    constexpr std::size_t kUrls = 6;
    for (std::size_t index = 0; index < kUrls; ++index) {
        argv.insert(argv.end(), {"-o", "/dev/null", server.url("/" + std::to_string(index))});
    }
    const ToolResult result = run_tool(argv);
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const auto rows = words_of_lines(result.out);
    REQUIRE(rows.size() == kUrls);
    int connects = 0;
    std::vector<double> seconds;
    for (const std::vector<std::string>& row : rows) {
        CHECK(row.at(0) == "200");
        connects += std::stoi(row.at(1));
        seconds.push_back(std::stod(row.at(2)));
    }
    CHECK(connects == 1);
    // Nagle and delayed acknowledgement would make all but the first take 40 ms.
    std::ranges::nth_element(seconds, seconds.begin() + kUrls / 2);
    CHECK(seconds[kUrls / 2] < (kSlowBuild ? 0.15 : 0.03));
    CHECK(server.wait_quiet()["connections_accepted"] == 1);
}

TEST_CASE("curl -I gets the head and reuses the connection", "[live][curl]") {
    require_tool("curl");
    ServerProcess server;
    const ToolResult result =
        run_tool({"curl", "-s", "-I", server.url(), server.url("/a"), server.url("/b?c=d")});
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const std::vector<std::string> lines = lines_of(result.out);
    CHECK(std::ranges::count(lines, "HTTP/1.1 200 OK\r") == 3);
    CHECK(std::ranges::count(lines, "Content-Length: 12\r") == 3);
    CHECK(server.wait_quiet()["connections_accepted"] == 1);
}

TEST_CASE("curl posts with Expect: 100-continue without waiting a second", "[live][curl]") {
    require_tool("curl");
    ServerProcess server;
    const ToolResult result =
        run_tool({"curl", "-s", "-v", "-o", "/dev/null", "-w", "%{http_code} %{time_total}\n", "-H",
                  "Expect: 100-continue", "-d", "a=1", server.url()});
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const auto rows = words_of_lines(result.out);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].at(0) == "200");
    // curl waits one second for the interim response before it sends the body anyway.
    CHECK(std::stod(rows[0].at(1)) < (kSlowBuild ? 0.9 : 0.3));
    CHECK(result.err.find("< HTTP/1.1 100 Continue") != std::string::npos);
    CHECK(server.wait_quiet()["requests"] == 1);
}

TEST_CASE("curl --http1.0 is answered and not kept waiting", "[live][curl]") {
    require_tool("curl");
    ServerProcess server;
    const ToolResult result =
        run_tool({"curl", "-s", "--http1.0", "-w", "\n%{http_code} %{time_total}\n", server.url()});
    INFO(result.all());
    REQUIRE(result.exit_code == 0);
    const auto rows = words_of_lines(result.out);
    REQUIRE(rows.size() == 2);
    CHECK(lines_of(result.out)[0] == "Hello World!");
    CHECK(rows[1].at(0) == "200");
    CHECK(std::stod(rows[1].at(1)) < (kSlowBuild ? 2.0 : 0.5));
}

TEST_CASE("curl uploads 50 MB, every time with an answer", "[live][curl]") {
    require_tool("curl");
    ServerProcess server;
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / ("hello-upload-" + std::to_string(server.pid()));
    std::ofstream(file).close();
    std::filesystem::resize_file(file, 50'000'000);  // sparse: costs no disk
    for (const char* coding : {"Expect:", "Transfer-Encoding: chunked"}) {
        for (int round = 0; round < 3; ++round) {
            const ToolResult result =
                run_tool({"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", coding, "-T",
                          file.string(), server.url()});
            INFO(coding << ": " << result.all());
            CHECK(result.exit_code == 0);
            CHECK(result.out == "200");
        }
    }
    std::filesystem::remove(file);
    CHECK(server.wait_quiet()["bytes_received"] >= 300'000'000);
}

}  // namespace hello::test

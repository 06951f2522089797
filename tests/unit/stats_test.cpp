// SPDX-License-Identifier: MIT
//
// Tests of stats.h.

#include "stats.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/json_text.h"

namespace hello::test {
namespace {

using CounterOfStats = decltype(&WorkerStats::requests);

struct NamedCounter {
    std::string name;
    CounterOfStats counter;
};

std::vector<NamedCounter> all_counters() {
    std::vector<NamedCounter> counters;
#define HELLO_LIST(name) counters.push_back({#name, &WorkerStats::name});
    HELLO_COUNTERS(HELLO_LIST)
#undef HELLO_LIST
    return counters;
}

/// Trouble for the one who reads the summary: what was not answered, or not with a 200.
const std::vector<std::string_view> kTroubles{
    "responses_4xx",   "responses_5xx", "accept_errors",  "receive_errors", "send_errors",
    "timeouts_header", "timeouts_body", "timeouts_write", "timeouts_linger"};

bool is_listed(const std::string& summary, const std::string& name) {
    return (" " + summary).find(" " + name + "=") != std::string::npos;
}

}  // namespace

TEST_CASE("Counter adds, subtracts and is set", "[stats]") {
    Counter counter;
    CHECK(counter.get() == 0);
    counter.add();
    counter.add(41);
    CHECK(counter.get() == 42);
    counter.subtract(2);
    CHECK(counter.get() == 40);
    counter.set(7);
    CHECK(counter.get() == 7);
}

TEST_CASE("Counter counts beyond 32 bits", "[stats]") {
    Counter counter;
    counter.set(0xFFFF'FFFF);
    counter.add();
    CHECK(counter.get() == 0x1'0000'0000);
    counter.subtract(1);
    CHECK(counter.get() == 0xFFFF'FFFF);
}

TEST_CASE("Counter may be read while it is written", "[stats]") {
    constexpr std::uint64_t kEvents = 200'000;
    Counter counter;
    std::atomic<bool> reading{false};
    std::thread writer([&] {
        while (!reading) {
        }
        for (std::uint64_t event = 0; event < kEvents; ++event) {
            counter.add();
        }
    });
    std::uint64_t last = 0;
    bool went_back = false;
    reading = true;
    while (last < kEvents) {
        const std::uint64_t now = counter.get();
        went_back = went_back || now < last;
        last = now;
    }
    writer.join();
    CHECK_FALSE(went_back);
    CHECK(counter.get() == kEvents);
}

TEST_CASE("WorkerStats of two workers share no cache line", "[stats]") {
    const std::vector<WorkerStats> stats(2);
    const auto first = reinterpret_cast<std::uintptr_t>(&stats[0]);
    const auto second = reinterpret_cast<std::uintptr_t>(&stats[1]);
    CHECK(first % 64 == 0);
    CHECK((second - first) % 64 == 0);
}

TEST_CASE("stats_to_json has every counter as the sum over the workers", "[stats]") {
    WorkerStats first;
    WorkerStats second;
    std::uint64_t value = 0;
    for (const NamedCounter& named : all_counters()) {
        (first.*named.counter).set(++value);
        (second.*named.counter).set(1000 * value);
    }
    const JsonText::Members json = JsonText::members(stats_to_json({&first, &second}, {}));
    value = 0;
    for (const NamedCounter& named : all_counters()) {
        INFO(named.name);
        REQUIRE(json.contains(named.name));
        CHECK(json.at(named.name) == std::to_string(1001 * ++value));
    }
}

TEST_CASE("stats_to_json has nothing but counters, facts and threads", "[stats]") {
    const WorkerStats stats;
    const JsonText::Members json = JsonText::members(stats_to_json({&stats}, {}));
    CHECK(json.size() == all_counters().size() + 6);
}

TEST_CASE("stats_to_json tells the facts of the process", "[stats]") {
    const std::vector<WorkerStats> stats(2);
    const ProcessFacts facts{"io_uring", 12.3456, 0.5, 9};
    const JsonText::Members json = JsonText::members(stats_to_json({&stats[0], &stats[1]}, facts));
    CHECK(json.at("engine") == "\"io_uring\"");
    CHECK(json.at("uptime_s") == "12.346");
    CHECK(json.at("cpu_s") == "0.500");
    CHECK(json.at("threads") == "2");
    CHECK(json.at("log_lines_dropped") == "9");
}

TEST_CASE("stats_to_json tells the threads apart, in order", "[stats]") {
    WorkerStats first;
    WorkerStats second;
    first.requests.set(5);
    first.connections_open.set(2);
    second.connections_accepted.set(7);
    const JsonText::Members json = JsonText::members(stats_to_json({&first, &second}, {}));
    const std::vector<std::string> threads = JsonText::elements(json.at("per_thread"));
    REQUIRE(threads.size() == 2);
    using Members = JsonText::Members;
    CHECK(JsonText::members(threads[0]) ==
          Members{{"requests", "5"}, {"connections_open", "2"}, {"connections_accepted", "0"}});
    CHECK(JsonText::members(threads[1]) ==
          Members{{"requests", "0"}, {"connections_open", "0"}, {"connections_accepted", "7"}});
}

TEST_CASE("stats_to_json is valid without workers", "[stats]") {
    const JsonText::Members json = JsonText::members(stats_to_json({}, {}));
    CHECK(json.at("threads") == "0");
    CHECK(json.at("requests") == "0");
    CHECK(JsonText::elements(json.at("per_thread")).empty());
}

TEST_CASE("stats_to_json is one line", "[stats]") {
    const std::vector<WorkerStats> stats(2);
    CHECK(stats_to_json({&stats[0], &stats[1]}, {}).find('\n') == std::string::npos);
}

TEST_CASE("stats_to_summary tells what was served, and how long it took", "[stats]") {
    WorkerStats first;
    WorkerStats second;
    first.requests.set(3);
    second.requests.set(4);
    second.connections_accepted.set(2);
    first.bytes_sent.set(1000);
    const ProcessFacts facts{"io_uring", 1.26, 0.128, 0};
    CHECK(stats_to_summary({&first, &second}, facts) ==
          "requests=7 connections=2 bytes_sent=1000 uptime_s=1.3 cpu_s=0.13");
}

TEST_CASE("stats_to_summary shows each trouble that happened, and no other", "[stats]") {
    for (const std::string_view happened : kTroubles) {
        WorkerStats stats;
        for (const NamedCounter& named : all_counters()) {
            (stats.*named.counter).set(named.name == happened ? 3 : 0);
        }
        const std::string summary = stats_to_summary({&stats}, {});
        INFO(summary);
        CHECK(summary.find(" " + std::string(happened) + "=3 ") != std::string::npos);
        for (const std::string_view trouble : kTroubles) {
            CHECK(is_listed(summary, std::string(trouble)) == (trouble == happened));
        }
    }
}

TEST_CASE("stats_to_summary shows nothing that is no trouble", "[stats]") {
    WorkerStats stats;
    for (const NamedCounter& named : all_counters()) {
        const bool trouble =
            std::find(kTroubles.begin(), kTroubles.end(), named.name) != kTroubles.end();
        (stats.*named.counter).set(trouble ? 0 : 1);
    }
    CHECK(stats_to_summary({&stats}, {}) ==
          "requests=1 connections=1 bytes_sent=1 uptime_s=0.0 cpu_s=0.00");
}

}  // namespace hello::test

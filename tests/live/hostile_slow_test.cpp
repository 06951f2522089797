// SPDX-License-Identifier: MIT
//
// Thousands of clients that take their time: heads in drops, bodies in drops, nothing at all, heads
// as large as they may be. They are let go when their time is over, cost next to no memory, and
// nobody else notices them.

#include <algorithm>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "support/latencies.h"
#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/swarm.h"

namespace hello::test {
namespace {

using Ends = std::map<std::string, std::size_t>;

constexpr Milliseconds kEarliest(700);  // of a one-second timeout; the server looks once a second
/// The latest end of a one-second timeout: two more seconds, and a second for so many.
constexpr Milliseconds kLatest = Milliseconds(4000) + scaled(Milliseconds(1000));
constexpr Milliseconds kPatience = kLatest + scaled(Milliseconds(10000));

/// What there was to see while a swarm was at a server.
struct Scene {
    SwarmReport swarm;
    Latencies others;         ///< while the hostile clients were there
    Latencies others_at_end;  ///< while their connections ended
    long memory_kib = 0;      ///< by how much PSS grew at most

    [[nodiscard]] std::string summary() const {
        return swarm.summary() + "; others: " + others.summary() +
               "; at the end: " + others_at_end.summary() + "; PSS +" + std::to_string(memory_kib) +
               " KiB";
    }
};

SwarmPlan plan_of(int count, std::vector<std::string> openings) {
    SwarmPlan plan;
    plan.count = affordable_connections(static_cast<std::size_t>(load(count)));
    plan.openings = std::move(openings);
    return plan;
}

/// Until the server has ended all connections of the swarm. Whoever was served while the first of
/// them ended belongs to the end.
Scene watch(ServerProcess& server, const SwarmPlan& plan) {
    Scene scene;
    CHECK(probe(server.port()).failures() == 0);
    const long before = pss_kib(server.pid());
    const auto deadline = Clock::now() + kPatience;
    Swarm swarm(server.port(), plan);
    while (!swarm.all_ended() && Clock::now() < deadline) {
        const Latencies other = probe(server.port());
        (swarm.any_ended() ? scene.others_at_end : scene.others).add(other);
        scene.memory_kib = std::max(scene.memory_kib, pss_kib(server.pid()) - before);
    }
    scene.swarm = swarm.finish();
    return scene;
}

/// All the same end, within the time for a timeout of one second.
void check_ends(const SwarmReport& report, const SwarmPlan& plan, const char* end) {
    CHECK(report.ends == Ends{{end, plan.count}});
    CHECK(report.shortest >= kEarliest);
    CHECK(report.longest <= kLatest);
}

void check_nothing_left(ServerProcess& server) {
    const Counters counters = server.wait_quiet();
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
    CHECK(counters["connections_closed"] == counters["connections_accepted"]);
}

/// Sanitizers keep what was freed, and add to each object.
constexpr long memory_bound_kib(long bound) {
    return kSlowBuild ? bound + 65536 : bound;
}

/// All were dropped in time, disturbed nobody and left nothing behind.
void check_scene(ServerProcess& server,
                 const Scene& scene,
                 const SwarmPlan& plan,
                 const char* end,
                 long memory_max_kib) {
    check_ends(scene.swarm, plan, end);
    check_served_at_once(scene.others);
    check_served(scene.others_at_end);
    CHECK(scene.memory_kib < memory_bound_kib(memory_max_kib));
    check_nothing_left(server);
}

}  // namespace

TEST_CASE("ten thousand clients that drip their heads are dropped in time and disturb nobody",
          "[live][hostile]") {
    SwarmPlan plan = plan_of(10000, {"GET / HTTP/1.1\r\nHost: a\r\nX: "});
    plan.drip = "x";
    plan.drip_pause = Milliseconds(500);
    ServerProcess server({"--threads", "2", "--header-timeout", "1"});
    static_cast<void>(server.wait_quiet());
    const std::size_t descriptors = open_descriptors(server.pid());
    const Scene scene = watch(server, plan);
    INFO(figures("dripped heads: " + scene.summary()));
    check_scene(server, scene, plan, "408 FIN", 16384);
    CHECK(scene.swarm.drips > 0);
    CHECK(server.counters()["timeouts_header"] == static_cast<std::int64_t>(plan.count));
    CHECK(open_descriptors(server.pid()) == descriptors);
}

TEST_CASE("two thousand clients that drip their bodies are dropped in time and disturb nobody",
          "[live][hostile]") {
    const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
    SwarmPlan plan = plan_of(2000, {post + "Content-Length: 100000\r\n\r\n11",
                                    post + "Transfer-Encoding: chunked\r\n\r\nffff\r\n11",
                                    post + "Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n"});
    plan.drip = "1";  // content for two of them, the size of a chunk for one
    plan.drip_pause = Milliseconds(500);
    ServerProcess server({"--threads", "2", "--body-timeout", "1"});
    const Scene scene = watch(server, plan);
    INFO(figures("dripped bodies: " + scene.summary()));
    check_scene(server, scene, plan, "408 FIN", 6144);
    CHECK(scene.swarm.drips > 0);
    CHECK(server.counters()["timeouts_body"] == static_cast<std::int64_t>(plan.count));
}

TEST_CASE("four thousand clients that connect and say nothing are let go and disturb nobody",
          "[live][hostile]") {
    const SwarmPlan plan = plan_of(4000, {""});
    ServerProcess server({"--threads", "2", "--idle-timeout", "1", "--defer-accept", "off"});
    const Scene scene = watch(server, plan);
    INFO(figures("silent: " + scene.summary()));
    check_scene(server, scene, plan, "FIN", 8192);
    CHECK(server.counters()["timeouts_idle"] == static_cast<std::int64_t>(plan.count));
}

TEST_CASE("with deferred accept clients that say nothing don't reach the server at all",
          "[live][hostile]") {
    const SwarmPlan plan = plan_of(2000, {""});
    ServerProcess server({"--threads", "2", "--defer-accept", "on"});
    static_cast<void>(server.wait_quiet());
    const std::size_t descriptors = open_descriptors(server.pid());
    Swarm swarm(server.port(), plan);
    const auto all_opened = [&] { return swarm.all_opened(); };
    const Latencies others = probe_until(server.port(), all_opened, kPatience);
    CHECK(server.wait_quiet()["connections_accepted"] == server.counters()["requests"]);
    CHECK(open_descriptors(server.pid()) == descriptors);
    const SwarmReport report = swarm.finish();
    INFO(figures("silent, deferred: " + report.summary() + "; others: " + others.summary()));
    CHECK(report.ends == Ends{{"open", plan.count}});
    check_served_at_once(others);
    check_nothing_left(server);
}

TEST_CASE("two thousand heads that stop one octet before the limit hold no memory",
          "[live][hostile]") {
    constexpr std::size_t kHeadLimit = 16384;  // 32 MB in all
    std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    head += std::string(kHeadLimit - 1 - head.size(), 'x');
    const SwarmPlan plan = plan_of(2000, {head});
    ServerProcess server({"--threads", "2", "--header-timeout", "1"});
    const Scene scene = watch(server, plan);
    INFO(figures("large heads: " + scene.summary()));
    check_scene(server, scene, plan, "408 FIN", 6144);
}

TEST_CASE("five hundred heads that are too large at the same time are all refused",
          "[live][hostile]") {
    const std::string start = "GET / HTTP/1.1\r\nHost: a\r\n";
    const std::string large(100'000, 'x');
    const SwarmPlan plan =
        plan_of(500, {start + "X: " + large, start + large, start + repeat("X: y\r\n", 5000)});
    ServerProcess server({"--threads", "2"});
    const Scene scene = watch(server, plan);
    INFO(figures("too large heads: " + scene.summary()));
    CHECK(scene.swarm.ends == Ends{{"431 FIN", plan.count}});
    check_served(scene.others);
    check_served(scene.others_at_end);
    CHECK(scene.memory_kib < memory_bound_kib(6144));
    check_nothing_left(server);
}

TEST_CASE("five hundred clients that send a megabyte after a bad request all get their 400",
          "[live][hostile]") {
    std::string garbage = "GET / HTTP/1.1\r\nno colon here\r\n\r\n";
    for (std::uint32_t noise = 1; garbage.size() < 1'000'000;) {
        noise = noise * 1664525 + 1013904223;  // every octet there is, and always the same ones
        garbage += static_cast<char>(noise >> 24);
    }
    const SwarmPlan plan = plan_of(500, {garbage});
    ServerProcess server({"--threads", "2"});
    const Scene scene = watch(server, plan);
    INFO(figures("garbage: " + scene.summary()));
    CHECK(scene.swarm.ends == Ends{{"400 FIN", plan.count}});
    check_served(scene.others);
    check_served(scene.others_at_end);
    CHECK(scene.memory_kib < memory_bound_kib(6144));
    check_nothing_left(server);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// No answer ever goes to the wrong connection. A server with room for 16 connections is used by 64
// clients at a time, so slots, generations and descriptor numbers are used again all the time,
// while operations of the connections before may still complete. Each client knows what it must
// get, octet for octet (conversation_plan.h).
//
// HELLO_STRESS_SECONDS: how long these tests take together (4); HELLO_STRESS_SEED: other plans (1).

#include <cstdio>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/crowd.h"
#include "support/proc.h"
#include "support/server_process.h"
#include "support/settings.h"
#include "support/wait.h"

namespace hello::test {
namespace {

constexpr std::uint64_t kTests = 2;

// Far above what these clients need, even in slow builds; near enough to wait for. A multishot
// receive of io_uring can miss a reset that it finds together with data (seen on Linux 6.18), so
// a client that reset in the middle of a request may be noticed by its timeout only.
constexpr int kRequestTimeoutSeconds = kSlowBuild ? 15 : 8;
constexpr Milliseconds kQuietLimit = scaled(Milliseconds(3000 + 1000 * kRequestTimeoutSeconds));

Milliseconds share_of_time() {
    return Milliseconds(1000 * number_from_environment("HELLO_STRESS_SECONDS", 4) / kTests);
}

void print_figures(const char* what, const CrowdTotals& totals, const Counters& counters) {
    if (figures_wanted()) {
        std::printf(
            "%s: %zu conversations (%zu abandoned, %zu half-closed), %zu answers checked; "
            "%lld accepted, %lld stale completions, %lld handoffs, %lld pauses of accept\n",
            what, totals.conversations, totals.abandoned, totals.half_closed, totals.answers,
            static_cast<long long>(counters["connections_accepted"]),
            static_cast<long long>(counters["stale_completions"]),
            static_cast<long long>(counters["handoffs"]),
            static_cast<long long>(counters["accepts_paused"]));
    }
}

/// What the server counted agrees with what the clients saw, and everything is back.
void check_counters(const Counters& counters, const CrowdTotals& totals) {
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
    CHECK(counters["buffers_available"] == counters["buffers_total"]);
    CHECK(counters["connections_closed"] == counters["connections_accepted"]);
    const std::int64_t requests = counters["requests"];
    CHECK(requests >= static_cast<std::int64_t>(totals.answers));
    CHECK(requests <= static_cast<std::int64_t>(totals.requests));
    CHECK(requests ==
          counters["responses_200"] + counters["responses_4xx"] + counters["responses_5xx"]);
    CHECK(counters["bytes_sent"] >= static_cast<std::int64_t>(totals.octets));
    CHECK(counters["completions_overflowed"] == 0);
}

/// After a first connection, for what the server creates when it is needed.
std::size_t descriptors_at_rest(ServerProcess& server) {
    RawClient client(server.port());
    CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
    static_cast<void>(server.wait_quiet());
    return open_descriptors(server.pid());
}

void check_answers(const char* what, std::vector<std::string> arguments) {
    const std::string timeout = std::to_string(kRequestTimeoutSeconds);
    arguments.insert(arguments.end(), {"--max-connections", "16", "--header-timeout", timeout,
                                       "--body-timeout", timeout});
    ServerProcess server(arguments);
    const std::size_t descriptors = descriptors_at_rest(server);
    const Counters before = server.counters();
    CrowdOptions options;
    options.seed = number_from_environment("HELLO_STRESS_SEED", 1);
    INFO("HELLO_STRESS_SEED=" << options.seed);
    Crowd crowd(server.port(), options);
    const bool faulty = wait_until([&] { return crowd.has_faults() || !server.running(); },
                                   share_of_time(), Milliseconds(50));
    crowd.stop();
    for (const std::string& fault : crowd.faults()) {
        FAIL_CHECK(fault);
    }
    REQUIRE_FALSE(faulty);

    const Counters counters = server.wait_quiet(kQuietLimit);
    print_figures(what, crowd.totals(), counters);
    CrowdTotals totals = crowd.totals();
    const CrowdTotals first{.conversations = 1, .requests = 1, .answers = 1};
    totals += first;
    CHECK(before["requests"] == 1);
    check_counters(counters, totals);
    CHECK(totals.answers > 100);
    CHECK(totals.abandoned > 10);
    CHECK(totals.half_closed > 10);
    CHECK(open_descriptors(server.pid()) == descriptors);
    CHECK(server.stop() == 0);
}

}  // namespace

TEST_CASE("no answer goes to the wrong connection when 16 slots are fought for",
          "[live][stale][stress]") {
    check_answers("1 thread", {"--threads", "1"});
}

TEST_CASE("no answer goes to the wrong connection when connections also move between threads",
          "[live][stale][stress]") {
    // Without deferred accept, silent clients take slots as well.
    check_answers("2 threads", {"--threads", "2", "--defer-accept", "off"});
}

}  // namespace hello::test

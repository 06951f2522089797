// SPDX-License-Identifier: MIT
//
// Time that does not run as usual: the time of day is set forward or back, or the server itself is
// stopped for a while and continued.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/date.h"
#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/shifted_clock.h"
#include "support/wait.h"

namespace hello::test {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kYear = 365 * kDay;

ServerOptions with_clock(const ShiftedClock& clock, std::vector<std::string> arguments) {
    ServerOptions options;
    options.arguments = std::move(arguments);
    options.environment = clock.environment();
    return options;
}

std::vector<RawClient> clients_that_asked(const ServerProcess& server, int count) {
    std::vector<RawClient> clients;
    for (int index = 0; index < count; ++index) {
        clients.emplace_back(server.port());
        CHECK(clients.back().exchange(kGet, 1).statuses() == "200");
    }
    return clients;
}

/// Stops the server, and returns once none of its threads does anything any more.
void stand_still(const ServerProcess& server) {
    server.signal(SIGSTOP);
    const auto stands = [](pid_t thread) { return status_field(thread, "State").starts_with("T"); };
    REQUIRE(wait_until([&] { return std::ranges::all_of(thread_ids(server.pid()), stands); },
                       scaled(Milliseconds(2000))));
}

/// A server whose time of day is set while two of its clients are about to be timed out.
class TimedServer {
public:
    explicit TimedServer(std::int64_t shift_s)
        : server_(with_clock(clock_,
                             {"--threads", "1", "--idle-timeout", "2", "--header-timeout", "2"})),
          idle_(server_.port()),
          half_sent_(server_.port()) {
        CHECK(idle_.exchange(kGet, 1).statuses() == "200");
        CHECK(half_sent_.exchange(std::string(kGet) + "GET / HT", 1).statuses() == "200");
        clock_.require_use();
        clock_.shift(shift_s);
        // Whatever it does makes it look at the clock; what is due then ends within a second.
        CHECK(RawClient(server_.port()).exchange_to_end(kGetClose).statuses() == "200");
    }

    [[nodiscard]] bool keeps_clients() {
        return idle_.silent_for(Milliseconds(1)) && half_sent_.silent_for(Milliseconds(1));
    }
    void check_ended() {
        const Replies bare = idle_.read_to_end();
        CHECK(bare.statuses().empty());
        CHECK(bare.end == End::Fin);
        const Replies refusal = half_sent_.read_to_end();
        CHECK(refusal.statuses() == "408");
        CHECK(refusal.end == End::Fin);
    }

private:
    ShiftedClock clock_;
    ServerProcess server_;
    RawClient idle_;
    RawClient half_sent_;
};

}  // namespace

TEST_CASE("Date follows the time of day when it is set forward and back", "[live][clock]") {
    ShiftedClock clock;
    ServerProcess server(with_clock(clock, {"--threads", "1"}));
    RawClient client(server.port());
    CHECK(client.exchange(kGet, 1).statuses() == "200");
    clock.require_use();
    for (const std::int64_t shift_s : {3 * kDay, -2 * kYear, 30 * kYear, std::int64_t{0}}) {
        INFO("shifted by " << shift_s << " s");
        clock.shift(shift_s);
        const std::time_t before = std::time(nullptr) + shift_s;
        const Replies replies = client.exchange(kGet, 1);
        const std::time_t after = std::time(nullptr) + shift_s;
        REQUIRE(replies.statuses() == "200");
        const std::time_t date = parse_date(replies.responses[0].header("Date"));
        CHECK(date >= before - 1);
        CHECK(date <= after);
    }
}

TEST_CASE("timeouts take no notice of the time of day", "[live][clock]") {
    const auto start = Clock::now();
    TimedServer ahead(kDay);
    TimedServer back(-kDay);
    std::this_thread::sleep_for(Milliseconds(1200));
    const bool kept = ahead.keeps_clients() && back.keeps_clients();
    const bool too_late_to_tell = since(start) >= Milliseconds(2000);
    CHECK((kept || too_late_to_tell));
    ahead.check_ended();
    back.check_ended();
    CHECK(since(start) < scaled(Milliseconds(6000)));
}

TEST_CASE("a server that stood still answers what came meanwhile and ends what is overdue",
          "[live][clock]") {
    ServerProcess server({"--threads", "2", "--idle-timeout", "2", "--header-timeout", "1"});
    std::vector<RawClient> asking = clients_that_asked(server, 20);
    std::vector<RawClient> idle = clients_that_asked(server, 20);
    RawClient half_sent(server.port());
    CHECK(half_sent.exchange(std::string(kGet) + "GET / HT", 1).statuses() == "200");

    stand_still(server);
    for (int index = 0; index < 5; ++index) {
        asking.emplace_back(server.port());
    }
    for (RawClient& client : asking) {
        client.send(kGet);
    }
    std::this_thread::sleep_for(Milliseconds(3000));
    server.signal(SIGCONT);

    const auto start = Clock::now();
    for (RawClient& client : asking) {
        CHECK(client.read(1).statuses() == "200");
        CHECK(client.exchange(kGet, 1).statuses() == "200");
    }
    for (RawClient& client : idle) {
        const Replies replies = client.read_to_end();
        CHECK(replies.statuses().empty());
        CHECK(replies.end == End::Fin);
    }
    CHECK(half_sent.read_to_end().statuses() == "408");
    CHECK(since(start) < scaled(Milliseconds(6000)));
}

}  // namespace hello::test

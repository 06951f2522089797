// SPDX-License-Identifier: MIT
//
// Soak: every load generator, two at a time in changing pairs, together with clients that send
// garbage, reset and half-close, again and again. After each round, at rest, the server must hold
// exactly what it held before, and its memory must not have grown.
//
// HELLO_SOAK_SECONDS: rounds begin until so much time has passed (5), at least two.
// HELLO_FIGURES=1 prints a line per sample.

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/crowd.h"
#include "support/proc.h"
#include "support/server_process.h"
#include "support/settings.h"
#include "support/tool.h"

namespace hello::test {
namespace {

// Slots and their sessions stay where they are once there was a use for them, and which thread
// gets how many connections differs from round to round (up to 300 of about 1 KiB each); the rest
// is for the heap's own bookkeeping. Only memory that no other process shares is compared: the
// share of the libraries varies with who else uses them. A leak of one octet per request would
// exceed the margin in a minute.
constexpr long kPssMarginKib = 512;

// See stale_stress_test.cpp: some resets in the middle of a request are noticed that late.
constexpr const char* kRequestTimeoutSeconds = kSlowBuild ? "15" : "8";

constexpr std::size_t kLanes = 2;
constexpr std::array<const char*, 4> kToolNames{"ab", "hey", "wrk", "h2load"};

struct Tool {
    std::vector<std::string> argv;
    /// How many requests it reports as answered by 200; kMissing when it reports any trouble.
    std::function<std::int64_t(const std::string& output)> successes;
};

Tool ab(int requests, bool keep_alive) {
    Tool tool{{"ab", "-q", "-n", std::to_string(requests), "-c", "100"}, {}};
    if (keep_alive) {
        tool.argv.emplace_back("-k");
    }
    tool.successes = [=](const std::string& output) {
        const AbReport report = parse_ab(output);
        const bool good = report.complete == requests && report.failed == 0 && report.non_2xx == 0;
        return good ? report.complete : kMissing;
    };
    return tool;
}

/// Each of its 100 workers makes the same number of requests, so there must be a multiple of 100.
Tool hey(int requests, bool keep_alive) {
    Tool tool{{"hey", "-n", std::to_string(requests), "-c", "100"}, {}};
    if (!keep_alive) {
        tool.argv.emplace_back("-disable-keepalive");
    }
    tool.successes = [=](const std::string& output) {
        const HeyReport report = parse_hey(output);
        const std::map<int, std::int64_t> all_good{{200, requests}};
        return !report.errors && report.statuses == all_good ? requests : kMissing;
    };
    return tool;
}

/// Its patience is for a busy machine: two seconds by default.
Tool wrk(const char* connection) {
    Tool tool{{"wrk", "-t1", "-c64", "-d1s", "--timeout", "20s", "-H"}, {}};
    tool.argv.push_back(std::string("Connection: ") + connection);
    tool.successes = [](const std::string& output) {
        const WrkReport report = parse_wrk(output);
        return report.socket_errors || report.non_2xx ? kMissing : report.requests;
    };
    return tool;
}

Tool h2load(int requests) {
    Tool tool{{"h2load", "--h1", "-n", std::to_string(requests), "-c", "50", "-m", "16"}, {}};
    tool.successes = [=](const std::string& output) {
        const H2loadReport report = parse_h2load(output);
        return report.status_2xx == requests && report.failed == 0 && report.errored == 0 &&
                       report.timeout == 0
                   ? report.status_2xx
                   : kMissing;
    };
    return tool;
}

/// What one lane has yet to run in this round.
struct Lane {
    std::vector<const Tool*> left;
    const Tool* tool = nullptr;
    std::unique_ptr<ChildProcess> process;
    Clock::time_point deadline;
};

class Soak {
public:
    Soak();
    void run();

private:
    void round();
    bool advance(Lane& lane);
    void finish(Lane& lane);
    void check_rest();
    void check_totals();
    void sample(const char* when, const Counters& counters);

    const std::vector<Tool> tools_;
    ServerProcess server_;
    const Clock::time_point start_ = Clock::now();
    std::size_t descriptors_ = 0;
    long pss_kib_ = 0;
    std::size_t rounds_ = 0;
    std::int64_t tool_requests_ = 0;
    CrowdTotals crowd_totals_;
};

Soak::Soak()
    : tools_{ab(load(8000), false), h2load(load(40000)),    hey(load(4000), true), wrk("close"),
             ab(load(12000), true), hey(load(3200), false), wrk("keep-alive")},
      server_(std::vector<std::string>{"--threads", "2", "--header-timeout", kRequestTimeoutSeconds,
                                       "--body-timeout", kRequestTimeoutSeconds}) {}

void Soak::run() {
    RawClient first(server_.port());
    REQUIRE(first.exchange_to_end(kGetClose).statuses() == "200");
    sample("begin", server_.wait_quiet());
    descriptors_ = open_descriptors(server_.pid());

    const Milliseconds duration(1000 * number_from_environment("HELLO_SOAK_SECONDS", 5));
    while (rounds_ < 2 || since(start_) < duration) {
        round();
        check_rest();
    }
    check_totals();
    CHECK(server_.stop() == 0);
}

/// Each tool once, distributed over the lanes from another start each time, so that other pairs
/// run side by side.
void Soak::round() {
    std::array<Lane, kLanes> lanes;
    for (std::size_t index = 0; index < tools_.size(); ++index) {
        const std::size_t tool = (index * (rounds_ % 3 + 1) + rounds_) % tools_.size();
        lanes[index % kLanes].left.push_back(&tools_[tool]);
    }
    CrowdOptions options;
    options.threads = 1;
    options.seed = 1000 + rounds_;
    Crowd crowd(server_.port(), options);

    Clock::time_point next_sample = Clock::now() + Milliseconds(2000);
    bool busy = true;
    while (busy) {
        std::this_thread::sleep_for(Milliseconds(10));
        busy = false;
        for (Lane& lane : lanes) {
            busy = advance(lane) || busy;
        }
        if (Clock::now() >= next_sample) {
            sample("load", server_.counters());
            next_sample += Milliseconds(2000);
        }
    }
    crowd.stop();
    for (const std::string& fault : crowd.faults()) {
        FAIL_CHECK("HELLO_STRESS_SEED=" << options.seed << ": " << fault);
    }
    crowd_totals_ += crowd.totals();
    ++rounds_;
}

/// Starts the next tool once the one before is done; false when none is left.
bool Soak::advance(Lane& lane) {
    if (lane.process != nullptr) {
        if (lane.process->running() && Clock::now() < lane.deadline) {
            return true;
        }
        finish(lane);
    }
    if (lane.left.empty()) {
        return false;
    }
    lane.tool = lane.left.back();
    lane.left.pop_back();
    ChildOptions options;
    options.argv = lane.tool->argv;
    options.argv.push_back(server_.url());
    lane.process = std::make_unique<ChildProcess>(options);
    lane.deadline = Clock::now() + scaled(Milliseconds(30000));
    return true;
}

void Soak::finish(Lane& lane) {
    // Waiting for a process that is gone collects what it wrote last.
    CHECK(lane.process->wait_exit(Milliseconds(0)) == 0);
    const std::string output = lane.process->stdout_text();
    INFO(lane.tool->argv[0] << " in round " << rounds_ << ":\n"
                            << output << lane.process->stderr_text());
    const std::int64_t successes = lane.tool->successes(output);
    CHECK(successes != kMissing);
    tool_requests_ += std::max<std::int64_t>(successes, 0);
    lane.process.reset();
}

void Soak::check_rest() {
    const Counters counters = server_.wait_quiet(scaled(Milliseconds(11000)));
    INFO("after round " << rounds_);
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
    CHECK(counters["buffers_available"] == counters["buffers_total"]);
    CHECK(counters["connections_closed"] == counters["connections_accepted"]);
    CHECK(open_descriptors(server_.pid()) == descriptors_);
    sample("rest", counters);
    const long pss_now = anonymous_pss_kib(server_.pid());
    CHECK(pss_now > 0);
    if (rounds_ == 1) {
        pss_kib_ = pss_now;    // the first round warms up: memory that stays is there now
    } else if (!kSlowBuild) {  // a sanitizer's own memory grows
        CHECK(pss_now <= pss_kib_ + kPssMarginKib);
    }
}

void Soak::check_totals() {
    const Counters counters = server_.counters();
    const std::int64_t requests = counters["requests"];
    // The crowd may go before it gets an answer, and wrk stops in the middle of some.
    CHECK(requests >= tool_requests_ + static_cast<std::int64_t>(crowd_totals_.answers) + 1);
    CHECK(requests ==
          counters["responses_200"] + counters["responses_4xx"] + counters["responses_5xx"]);
    CHECK(counters["accept_errors"] == 0);
    CHECK(counters["completions_overflowed"] == 0);
    CHECK(crowd_totals_.answers > 100);
}

void Soak::sample(const char* when, const Counters& counters) {
    if (!figures_wanted()) {
        return;
    }
    std::printf(
        "%7.1f s  round %3zu %-5s  %3zu descriptors  %6ld KiB (%ld its own)  %4lld slots  "
        "%5lld of %lld buffers  %10lld requests  %9lld connections\n",
        static_cast<double>(since(start_).count()) / 1000, rounds_, when,
        open_descriptors(server_.pid()), pss_kib(server_.pid()), anonymous_pss_kib(server_.pid()),
        static_cast<long long>(counters["slots_in_use"]),
        static_cast<long long>(counters["buffers_available"]),
        static_cast<long long>(counters["buffers_total"]),
        static_cast<long long>(counters["requests"]),
        static_cast<long long>(counters["connections_accepted"]));
    std::fflush(stdout);
}

}  // namespace

TEST_CASE("mixed load leaves nothing behind, round after round", "[live][soak]") {
    for (const char* tool : kToolNames) {
        require_tool(tool);
    }
    Soak().run();
}

}  // namespace hello::test

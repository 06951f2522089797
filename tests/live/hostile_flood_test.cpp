// SPDX-License-Identifier: MIT
//
// One client that pipelines as fast as the server answers, beside a hundred that ask now and then:
// all on one thread of the server, so that only its fairness keeps the hundred served.

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/latencies.h"
#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"

namespace hello::test {
namespace {

constexpr std::size_t kPolite = 100;
constexpr int kRounds = 3;
constexpr Milliseconds kQuietPeriod(300);
constexpr Milliseconds kFloodPeriod(600);

/// What the polite clients had to wait.
struct Waits {
    Latencies all;
    /// Without the time in which the server, or the test, could have gone on but had no processor:
    /// beside two threads that never sleep that is much on two of them, and the machine's fault.
    Latencies of_server;

    [[nodiscard]] std::string summary() const {
        return of_server.summary() + "; with waiting for processors " + all.summary();
    }
};

/// Clients with lasting connections. Every millisecond the next of them asks, unless it still
/// waits for its last answer; so a standstill is seen by all that ask meanwhile.
class PoliteClients {
public:
    explicit PoliteClients(const ServerProcess& server) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
        cpu_waits_.watch_all(server.pid());
        cpu_waits_.watch(getpid(), gettid());
        for (std::size_t index = 0; index < kPolite; ++index) {
            clients_.emplace_back(server.port());
            CHECK(clients_.back().exchange(kGet, 1).statuses() == "200");
            epoll_event interest{};
            interest.events = EPOLLIN;
            interest.data.u64 = index;
            epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, clients_.back().fd(), &interest);
        }
    }

    Waits ask_for(Milliseconds period) {
        Waits waits;
        const auto start = Clock::now();
        auto next = start;
        for (std::size_t turn = 0; since(start) < period;) {
            if (Clock::now() >= next) {
                ask(turn++ % kPolite);
                next += Milliseconds(1);
            }
            take(waits, 1);
        }
        const auto deadline = Clock::now() + RawClient::kLimit;
        while (waiting_ > 0 && Clock::now() < deadline) {
            take(waits, 10);
        }
        for (; waiting_ > 0; --waiting_) {
            waits.all.add_failure();
        }
        return waits;
    }

private:
    struct Question {
        bool open = false;
        Clock::time_point asked_at;
        Microseconds cpu_waits{0};  // at that time
    };

    void ask(std::size_t index) {
        if (!questions_[index].open) {
            questions_[index] = {true, Clock::now(), cpu_waits_.total()};
            clients_[index].send(kGet);
            ++waiting_;
        }
    }

    void take(Waits& waits, int patience_ms) {
        std::array<epoll_event, kPolite> events{};
        const int count = epoll_wait(epoll_.get(), events.data(), kPolite, patience_ms);
        for (int event = 0; event < count; ++event) {
            const std::size_t index = events[static_cast<std::size_t>(event)].data.u64;
            Question& question = questions_[index];
            if (clients_[index].read(1).statuses() == "200") {
                const auto time =
                    std::chrono::duration_cast<Microseconds>(Clock::now() - question.asked_at);
                const Microseconds no_cpu = cpu_waits_.total() - question.cpu_waits;
                waits.all.add(time);
                waits.of_server.add(std::max(time - no_cpu, Microseconds(0)));
            } else {
                waits.all.add_failure();
            }
            question.open = false;
            --waiting_;
        }
    }

    FileDescriptor epoll_;
    CpuWaits cpu_waits_;
    std::vector<RawClient> clients_;
    std::array<Question, kPolite> questions_{};
    std::size_t waiting_ = 0;
};

/// Sends requests and throws answers away, both as fast as the kernel takes and gives them.
class Flooder {
public:
    explicit Flooder(std::uint16_t port) : client_(port), thread_([this] { run(); }) {}
    ~Flooder() {
        stop_ = true;
        thread_.join();
    }
    Flooder(const Flooder&) = delete;
    Flooder& operator=(const Flooder&) = delete;

private:
    void run() {
        const std::string pipeline = repeat(kGet, 10000);
        std::size_t sent = 0;
        while (!stop_) {
            // MSG_TRUNC: a TCP socket drops what it would have copied (tcp(7)).
            while (recv(client_.fd(), nullptr, 1 << 20, MSG_TRUNC | MSG_DONTWAIT) > 0) {
            }
            const std::string_view rest = std::string_view(pipeline).substr(sent);
            sent += client_.send(rest, Milliseconds(1));
            sent = sent < pipeline.size() ? sent : 0;
        }
    }

    RawClient client_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace

TEST_CASE("one client that floods leaves a hundred polite ones a p99 within 5 times the quiet one",
          "[live][hostile]") {
    ServerProcess server({"--threads", "1"});
    PoliteClients polite(server);
    Microseconds quiet_p99 = Microseconds::max();
    Microseconds flooded_p99 = Microseconds::max();
    std::string shown = "flood";
    // The best of some rounds: whatever else the machine does can only make it worse.
    for (int round = 0; round < kRounds; ++round) {
        const Waits quiet = polite.ask_for(kQuietPeriod);
        const std::int64_t before = server.counters()["requests"];
        Waits flooded;
        {
            const Flooder flooder(server.port());
            flooded = polite.ask_for(kFloodPeriod);
        }
        const std::int64_t flood = server.counters()["requests"] - before;
        shown += "\nquiet: " + quiet.summary() + "\nbeside " + std::to_string(flood) +
                 " requests in a flood: " + flooded.summary();
        CHECK(flood > load(10000));
        CHECK(quiet.all.failures() + flooded.all.failures() == 0);
        quiet_p99 = std::min(quiet_p99, quiet.of_server.percentile(99));
        flooded_p99 = std::min(flooded_p99, flooded.of_server.percentile(99));
    }
    INFO(figures(shown));
    // Two buffer loads of a multishot receive, in a build that is not optimised.
    const Microseconds floor = scaled(Milliseconds(10));
    CHECK(flooded_p99 <= std::max(5 * quiet_p99, floor));
}

}  // namespace hello::test

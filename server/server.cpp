// SPDX-License-Identifier: MIT
//
// Start, signals, stop: see server.h.

#include "server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "cpu.h"
#include "error.h"
#include "log.h"
#include "notify.h"
#include "worker.h"

namespace hello {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kDescriptorsPerThread = 6;  ///< that are not connections, at most
constexpr unsigned kDescriptorsReserved = 16;  ///< for the process
constexpr int kSmallBacklog = 1024;
constexpr int kSendTimeoutMarginMs = 5000;  ///< our own timeout comes first, and counts
constexpr auto kAbortPatience = std::chrono::seconds(1);

/// Raises the soft limit of open files to the hard one; returns the descriptors we may have.
rlim_t raise_descriptor_limit() {
    rlimit limit{};
    check_errno(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? limit.rlim_max : limit.rlim_cur;
}

std::size_t choose_connections_max(std::size_t asked, int threads) {
    const rlim_t descriptors = raise_descriptor_limit();
    const rlim_t reserved =
        kDescriptorsReserved + kDescriptorsPerThread * static_cast<rlim_t>(threads);
    if (descriptors <= reserved) {
        throw StartError("the limit of open files (" + std::to_string(descriptors) +
                         ") is too low; cure: fewer --threads, or raise ulimit -Hn");
    }
    const std::size_t possible =
        std::min<std::size_t>(descriptors - reserved, ServerConfig::kConnectionsLimit);
    if (asked > possible) {
        spdlog::warn(
            "--max-connections {} is more than the limit of open files allows ({}); "
            "cure: raise ulimit -n",
            asked, possible);
    }
    return asked == 0 ? possible : asked;
}

/// User and system time of all threads.
double cpu_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// SIGUSR2 is how a worker that has ended says so.
sigset_t awaited_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
        sigaddset(&signals, signal);
    }
    return signals;
}

class Server {
public:
    explicit Server(const Options& options)
        : options_(options), crew_(static_cast<std::size_t>(options.threads)) {}

    /// Throws EngineRefused, among others: then nothing is left of this start.
    int run() {
        start();
        announce();
        while (running_ != 0) {
            on_signal(next_signal());
        }
        join();
        spdlog::info("stopped: {}", stats_to_summary(stats(), facts()));
        return failed_ ? 1 : 0;
    }

private:
    void start();
    void serve(std::size_t index, std::promise<void> ready);
    void pin(std::size_t index) const;
    void announce() const;
    [[nodiscard]] int next_signal() const;
    void on_signal(int signal);
    void drain();
    void abort();
    void join();
    [[nodiscard]] std::vector<const WorkerStats*> stats() const;
    [[nodiscard]] ProcessFacts facts() const;

    const Options& options_;
    Crew crew_;
    const sigset_t signals_ = awaited_signals();
    Clock::time_point started_ = Clock::now();
    std::optional<Clock::time_point> deadline_;  ///< while stopping: when patience ends
    bool aborting_ = false;
    Listeners listeners_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;
    std::atomic<std::size_t> running_{0};
    std::atomic<bool> failed_{false};
};

void Server::start() {
    listeners_ = open_listeners(options_.listen, options_.threads);
    for (UniqueFd& socket : listeners_.sockets) {
        workers_.push_back(
            std::make_unique<Worker>(options_.server, crew_, workers_.size(), std::move(socket)));
    }
    std::exception_ptr error;
    std::vector<std::future<void>> ready;
    try {
        for (std::size_t index = 0; index < workers_.size(); ++index) {
            std::promise<void> promise;
            ready.push_back(promise.get_future());
            threads_.emplace_back(&Server::serve, this, index, std::move(promise));
        }
    } catch (const std::system_error&) {
        ready.pop_back();
        error = std::make_exception_ptr(
            StartError("cannot start thread " + std::to_string(ready.size() + 1) +
                       "; cure: fewer --threads, or a higher limit of processes (ulimit -u)"));
    }
    for (std::future<void>& future : ready) {
        try {
            future.get();
        } catch (...) {
            error = std::current_exception();
        }
    }
    if (error != nullptr) {
        abort();
        join();
        std::rethrow_exception(error);
    }
}

/// A worker's thread.
void Server::serve(std::size_t index, std::promise<void> ready) {
    ++running_;
    try {
        pin(index);
        workers_[index]->prepare();
        ready.set_value();
    } catch (...) {
        ready.set_exception(std::current_exception());
        return;
    }
    try {
        failed_ = !workers_[index]->run() || failed_;
    } catch (const std::exception& error) {
        spdlog::critical("thread {} failed: {}", index, error.what());
        failed_ = true;
    }
    --running_;
    kill(getpid(), SIGUSR2);
}

void Server::pin(std::size_t index) const {
    const std::vector<int> cpus = allowed_cpus();
    const int error = options_.pin ? pin_to_cpu(cpus[index % cpus.size()]) : 0;
    if (error != 0) {
        spdlog::warn("cannot pin thread {}: {}", index, std::strerror(error));
    }
}

void Server::announce() const {
    spdlog::info("hello-uring {} serves {} with {} threads: {}, backlog {}, at most {} connections",
                 HELLO_VERSION, listeners_.address, workers_.size(),
                 workers_.front()->describe_engine(), listeners_.backlog,
                 options_.server.connections_max);
    if (listeners_.backlog < kSmallBacklog) {
        spdlog::warn(
            "the backlog is only {}: bursts of connections will wait or fail; cure: "
            "sysctl -w net.core.somaxconn=65535",
            listeners_.backlog);
    }
    std::cout << "listening on http://" << listeners_.address << '\n' << std::flush;
    notify_service_manager("READY=1");
}

int Server::next_signal() const {
    if (!deadline_) {
        return sigwaitinfo(&signals_, nullptr);
    }
    const auto left = std::max(*deadline_ - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec wait{seconds.count(), (left - seconds).count()};
    return sigtimedwait(&signals_, nullptr, &wait);
}

void Server::on_signal(int signal) {
    if (signal == SIGUSR1) {
        log_raw_line(stats_to_json(stats(), facts()));
    } else if (signal == SIGTERM || signal == SIGINT) {
        deadline_ ? std::_Exit(1) : drain();
    } else if (signal == SIGUSR2 && failed_ && !deadline_) {
        drain();
    } else if (signal == -1 && errno == EAGAIN) {  // the deadline has passed
        aborting_ ? std::_Exit(1) : abort();
    }
}

void Server::drain() {
    notify_service_manager("STOPPING=1");
    spdlog::info("stopping: {} connections, at most {} s", crew_.connections.load(),
                 options_.server.timeouts.drain_s);
    deadline_ = Clock::now() + std::chrono::seconds(options_.server.timeouts.drain_s);
    for (const auto& worker : workers_) {
        worker->drain();
    }
}

void Server::abort() {
    aborting_ = true;
    deadline_ = Clock::now() + kAbortPatience;
    for (const auto& worker : workers_) {
        worker->abort();
    }
}

void Server::join() {
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

std::vector<const WorkerStats*> Server::stats() const {
    std::vector<const WorkerStats*> stats;
    stats.reserve(workers_.size());
    for (const auto& worker : workers_) {
        stats.push_back(&worker->stats());
    }
    return stats;
}

ProcessFacts Server::facts() const {
    const bool epoll = options_.server.engine == EngineKind::Epoll;
    return {epoll ? "epoll" : "io_uring",
            std::chrono::duration<double>(Clock::now() - started_).count(), cpu_seconds(),
            dropped_log_lines()};
}

}  // namespace

void block_signals() {
    check_errno(std::signal(SIGPIPE, SIG_IGN) == SIG_ERR ? -1 : 0, "signal");
    const sigset_t signals = awaited_signals();
    check_negative(-pthread_sigmask(SIG_BLOCK, &signals, nullptr), "pthread_sigmask");
}

int run_server(Options options) {
    if (options.threads == 0) {
        options.threads = usable_cpu_count();
    }
    options.server.connections_max =
        choose_connections_max(options.server.connections_max, options.threads);
    if (const auto seconds = static_cast<int>(options.server.timeouts.write_s); seconds != 0) {
        options.listen.send_timeout_ms = 1000 * seconds + kSendTimeoutMarginMs;
    }
    if (options.engine == "epoll") {
        options.server.engine = EngineKind::Epoll;
    }
    try {
        return Server(options).run();
    } catch (const EngineRefused& refusal) {
        if (options.engine != "auto") {
            throw;
        }
        spdlog::warn("{}; meanwhile epoll serves, at a higher cost per request", refusal.what());
    }
    options.server.engine = EngineKind::Epoll;
    return Server(options).run();
}

}  // namespace hello

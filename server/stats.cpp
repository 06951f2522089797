// SPDX-License-Identifier: MIT
//
// Counters as text: see stats.h.

#include "stats.h"

#include <string_view>

#include <spdlog/fmt/fmt.h>

namespace hello {
namespace {

using Workers = std::vector<const WorkerStats*>;
using CounterMember = Counter WorkerStats::*;

std::uint64_t sum(const Workers& workers, CounterMember counter) {
    std::uint64_t total = 0;
    for (const WorkerStats* worker : workers) {
        total += (worker->*counter).get();
    }
    return total;
}

/// Calls `visit(name, sum)` for each counter.
template <typename Visit>
void for_each_sum(const Workers& workers, Visit visit) {
#define HELLO_VISIT(name) visit(std::string_view{#name}, sum(workers, &WorkerStats::name));
    HELLO_COUNTERS(HELLO_VISIT)
#undef HELLO_VISIT
}

/// Whether a counter tells of what did not go as the client or the operator wished.
bool is_trouble(std::string_view name) {
    return name.ends_with("_errors") || name.ends_with("xx") ||
           (name.starts_with("timeouts_") && name != "timeouts_idle");
}

}  // namespace

std::string stats_to_json(const Workers& workers, const ProcessFacts& facts) {
    std::string json = fmt::format(
        R"({{"engine":"{}","uptime_s":{:.3f},"cpu_s":{:.3f},"threads":{},"log_lines_dropped":{})",
        facts.engine, facts.uptime_s, facts.cpu_s, workers.size(), facts.log_lines_dropped);
    for_each_sum(workers, [&json](std::string_view name, std::uint64_t total) {
        json += fmt::format(R"(,"{}":{})", name, total);
    });
    json += R"(,"per_thread":[)";
    for (const WorkerStats* worker : workers) {
        json +=
            fmt::format(R"({}{{"requests":{},"connections_open":{},"connections_accepted":{}}})",
                        worker == workers.front() ? "" : ",", worker->requests.get(),
                        worker->connections_open.get(), worker->connections_accepted.get());
    }
    return json + "]}";
}

std::string stats_to_summary(const Workers& workers, const ProcessFacts& facts) {
    std::string text = fmt::format(
        "requests={} connections={} bytes_sent={}", sum(workers, &WorkerStats::requests),
        sum(workers, &WorkerStats::connections_accepted), sum(workers, &WorkerStats::bytes_sent));
    for_each_sum(workers, [&text](std::string_view name, std::uint64_t total) {
        if (total != 0 && is_trouble(name)) {
            text += fmt::format(" {}={}", name, total);
        }
    });
    return text + fmt::format(" uptime_s={:.1f} cpu_s={:.2f}", facts.uptime_s, facts.cpu_s);
}

}  // namespace hello

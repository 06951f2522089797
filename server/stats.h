// SPDX-License-Identifier: MIT
//
// Counter, WorkerStats: what a worker counts. One writer (the worker), any number of readers, no
// lock: each counter is a relaxed atomic that the writer loads and stores without a bus lock.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace hello {

class Counter {
public:
    void add(std::uint64_t amount = 1) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    void subtract(std::uint64_t amount) noexcept { add(std::uint64_t{0} - amount); }
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t get() const noexcept {
        return value_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t> value_{0};
};

/// Every counter, by the name it has everywhere. Events since the start; *_open, *_in_use and
/// *_available are as of now.
#define HELLO_COUNTERS(COUNTER)                                                          \
    COUNTER(requests) /* that were given a final answer */                               \
    COUNTER(responses_200)                                                               \
    COUNTER(responses_4xx)                                                               \
    COUNTER(responses_5xx)                                                               \
    COUNTER(connections_accepted)                                                        \
    COUNTER(connections_closed)                                                          \
    COUNTER(connections_open)                                                            \
    COUNTER(bytes_received)                                                              \
    COUNTER(bytes_sent)                                                                  \
    COUNTER(accept_errors)                                                               \
    COUNTER(receive_errors) /* resets and the like */                                    \
    COUNTER(send_errors)                                                                 \
    COUNTER(sends_blocked) /* did not fit into the socket at once */                     \
    COUNTER(timeouts_header)                                                             \
    COUNTER(timeouts_body)                                                               \
    COUNTER(timeouts_idle)                                                               \
    COUNTER(timeouts_write)                                                              \
    COUNTER(timeouts_linger)                                                             \
    COUNTER(buffers_exhausted) /* receives that found no buffer */                       \
    COUNTER(buffers_available)                                                           \
    COUNTER(buffers_total)                                                               \
    COUNTER(slots_in_use) /* connections, and operations in flight of closed ones */     \
    COUNTER(completions_overflowed)                                                      \
    COUNTER(stale_completions) /* came after their connection was gone */                \
    COUNTER(accepts_paused)    /* for want of descriptors or of room for a connection */ \
    COUNTER(handoffs)          /* connections given to another worker */

struct alignas(64) WorkerStats {
#define HELLO_DECLARE(name) Counter name;
    HELLO_COUNTERS(HELLO_DECLARE)
#undef HELLO_DECLARE
};

/// What the process as a whole adds to the workers' counters.
struct ProcessFacts {
    std::string engine;
    double uptime_s = 0;
    double cpu_s = 0;  ///< user + system time of the whole process
    std::uint64_t log_lines_dropped = 0;
};

/// One line of JSON (RFC 8259): the facts, the sum of each counter, and some per thread.
[[nodiscard]] std::string stats_to_json(const std::vector<const WorkerStats*>& workers,
                                        const ProcessFacts& facts);

/// "requests=5 connections=2 ...": the line at exit. Errors appear where there were any.
[[nodiscard]] std::string stats_to_summary(const std::vector<const WorkerStats*>& workers,
                                           const ProcessFacts& facts);

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// Latencies: how long others had to wait while somebody was hostile, and how a test shows it. Times
// are in microseconds; a request that was not answered with 200 counts as a failure, not a time.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/time_scale.h"

namespace hello::test {

using Microseconds = std::chrono::microseconds;

class Latencies {
public:
    void add(Microseconds time) { times_.push_back(time); }
    void add_failure() { ++failures_; }
    void add(const Latencies& others);

    [[nodiscard]] std::size_t size() const { return times_.size(); }
    [[nodiscard]] std::size_t failures() const { return failures_; }
    /// The smallest time that `percent` of all don't exceed; 0 when there are none.
    [[nodiscard]] Microseconds percentile(int percent) const;
    /// How many took longer.
    [[nodiscard]] std::size_t above(Microseconds bound) const;
    /// "500 served, p50 0.21 ms, p99 1.10 ms, max 3.00 ms"
    [[nodiscard]] std::string summary() const;

private:
    std::vector<Microseconds> times_;
    std::size_t failures_ = 0;
};

/// A polite client with a connection of its own: connect, GET, read to the end; then 5 ms pause.
/// Those who would have come while it had to wait are counted with what is left of its time:
/// otherwise a standstill of a second would be one slow answer among hundreds.
[[nodiscard]] Latencies probe(std::uint16_t port);
/// Such clients until the condition holds or the limit passes; at least 20 of them.
[[nodiscard]] Latencies probe_until(std::uint16_t port,
                                    const std::function<bool()>& condition,
                                    Milliseconds limit);

/// None fails, and three in four are done within 50 ms. (The fourth is for a busy machine, where a
/// process waits for a processor.)
void check_served_at_once(const Latencies& others);
/// None fails, and none waits long: for the moment in which thousands of connections end together,
/// which costs both sides some tenths of a second of processor time.
void check_served(const Latencies& others);

/// Returns the text; with HELLO_FIGURES in the environment it is printed too, passed or failed:
/// INFO(figures("p99 " + ...)).
[[nodiscard]] std::string figures(const std::string& text);

}  // namespace hello::test

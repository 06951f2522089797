// SPDX-License-Identifier: MIT
//
// Latencies: see latencies.h.

#include "support/latencies.h"

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <thread>

#include <catch2/catch_test_macros.hpp>

#include "support/raw_client.h"

namespace hello::test {
namespace {

constexpr std::size_t kProbesMin = 20;
constexpr Milliseconds kBetweenProbes(5);

double milliseconds(Microseconds time) {
    return static_cast<double>(time.count()) / 1000;
}

}  // namespace

void Latencies::add(const Latencies& others) {
    times_.insert(times_.end(), others.times_.begin(), others.times_.end());
    failures_ += others.failures_;
}

Microseconds Latencies::percentile(int percent) const {
    if (times_.empty()) {
        return Microseconds(0);
    }
    std::vector<Microseconds> sorted = times_;
    std::ranges::sort(sorted);
    const std::size_t rank = (sorted.size() * static_cast<std::size_t>(percent) + 99) / 100;
    return sorted[std::max<std::size_t>(rank, 1) - 1];
}

std::size_t Latencies::above(Microseconds bound) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(times_, [&](Microseconds time) { return time > bound; }));
}

std::string Latencies::summary() const {
    std::ostringstream text;
    text << size() << " served, " << std::fixed << std::setprecision(2);
    text << "p50 " << milliseconds(percentile(50)) << " ms, p99 " << milliseconds(percentile(99))
         << " ms, max " << milliseconds(percentile(100)) << " ms";
    if (failures_ > 0) {
        text << ", " << failures_ << " FAILED";
    }
    return text.str();
}

Latencies probe(std::uint16_t port) {
    Latencies latencies;
    const auto start = Clock::now();
    RawClient client(port);
    client.send(kGetClose);
    const bool answered = client.read_to_end().statuses() == "200";
    const auto time = std::chrono::duration_cast<Microseconds>(Clock::now() - start);
    if (!answered) {
        latencies.add_failure();
    }
    for (Microseconds left = time; answered && left.count() > 0; left -= kBetweenProbes) {
        latencies.add(left);
    }
    std::this_thread::sleep_for(kBetweenProbes);
    return latencies;
}

Latencies probe_until(std::uint16_t port,
                      const std::function<bool()>& condition,
                      Milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    Latencies latencies;
    while (latencies.size() + latencies.failures() < kProbesMin ||
           (!condition() && Clock::now() < deadline)) {
        latencies.add(probe(port));
    }
    return latencies;
}

void check_served_at_once(const Latencies& others) {
    INFO("others: " << others.summary());
    CHECK(others.failures() == 0);
    CHECK(others.above(scaled(Milliseconds(50))) * 4 <= others.size());
}

void check_served(const Latencies& others) {
    INFO("others: " << others.summary());
    CHECK(others.failures() == 0);
    CHECK(others.percentile(100) < scaled(Milliseconds(2000)));
}

std::string figures(const std::string& text) {
    if (std::getenv("HELLO_FIGURES") != nullptr) {
        WARN(text);
    }
    return text;
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Crowd: many clients at a time that connect, follow random plans and leave, from a few threads,
// until stopped. The plans follow from the seed; what the scheduler makes of them does not.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/conversation.h"

namespace hello::test {

struct CrowdOptions {
    std::size_t threads = 4;
    std::size_t clients_per_thread = 16;
    std::uint64_t seed = 1;
};

struct CrowdTotals {
    std::size_t conversations = 0;
    std::size_t abandoned = 0;  ///< left at a random moment
    std::size_t half_closed = 0;
    std::size_t requests = 0;  ///< planned; abandoned conversations made fewer
    std::size_t answers = 0;   ///< final ones that came, all of them right
    std::size_t octets = 0;    ///< received

    CrowdTotals& operator+=(const CrowdTotals& other);
};

class Crowd {
public:
    Crowd(std::uint16_t port, const CrowdOptions& options);
    ~Crowd();
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    /// True as soon as any client got what it must not get.
    [[nodiscard]] bool has_faults() const { return has_faults_.load(); }
    /// No new conversations; returns when those that run are over.
    void stop();

    /// After stop().
    [[nodiscard]] const CrowdTotals& totals() const { return totals_; }
    [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }

private:
    void run(std::uint64_t seed);
    [[nodiscard]] bool add(std::vector<Conversation>& conversations, std::mt19937_64& source) const;
    void lead(std::vector<Conversation>& conversations, CrowdTotals& totals);
    void report(const std::string& fault);

    const std::uint16_t port_;
    const CrowdOptions options_;
    std::atomic<bool> stopping_ = false;
    std::atomic<bool> has_faults_ = false;
    std::mutex mutex_;
    CrowdTotals totals_;
    std::vector<std::string> faults_;
    std::vector<std::thread> threads_;
};

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Balancer: how many lasting (keep-alive) connections each worker has. SO_REUSEPORT spreads
// connections by a hash, which with few of them is a lottery: two connections on two threads
// share one thread half of the time. A connection that turns out to last is therefore given to
// the emptiest worker. As each placement is one step under a lock, no worker ever gets more than
// one above another by placements; short connections never come here.

#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

namespace hello {

class Balancer {
public:
    explicit Balancer(std::size_t worker_count) : counts_(worker_count, 0) {}

    /// Counts a lasting connection for the emptiest worker, for `self` among equals, and returns
    /// that worker.
    [[nodiscard]] std::size_t place(std::size_t self) {
        const std::scoped_lock lock(mutex_);
        const auto emptiest = std::min_element(counts_.begin(), counts_.end());
        const auto chosen =
            *emptiest < counts_[self] ? static_cast<std::size_t>(emptiest - counts_.begin()) : self;
        ++counts_[chosen];
        return chosen;
    }

    /// Counts one that has to stay with its worker.
    void add(std::size_t worker) {
        const std::scoped_lock lock(mutex_);
        ++counts_[worker];
    }

    /// Moves one from a worker that could not be reached.
    void take_back(std::size_t from, std::size_t self) {
        const std::scoped_lock lock(mutex_);
        --counts_[from];
        ++counts_[self];
    }

    /// `worker` ends, unless a connection is on its way to it: returns whether nothing comes any
    /// more.
    [[nodiscard]] bool leave(std::size_t worker) {
        const std::scoped_lock lock(mutex_);
        if (counts_[worker] == 0) {
            counts_[worker] = kGone;
        }
        return counts_[worker] == kGone;
    }

    void remove(std::size_t worker) {
        const std::scoped_lock lock(mutex_);
        --counts_[worker];
    }

private:
    static constexpr std::size_t kGone = ~std::size_t{0};

    std::mutex mutex_;
    std::vector<std::size_t> counts_;  ///< lasting connections, those on their way included
};

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// EngineDriver: an engine of either kind in the test's own thread, and all that comes out of it.

#pragma once

#include <sys/eventfd.h>

#include <chrono>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine.h"
#include "error.h"
#include "stats.h"
#include "support/need_io_uring.h"
#include "unique_fd.h"

namespace hello::test {

/// A completion that lasts.
struct EngineOutcome {
    UserData tag{};
    int result = 0;
    bool goes_on = false;
    bool input_left = false;
    std::string input;
};

class EngineDriver {
public:
    explicit EngineDriver(EngineKind kind, UringSizes sizes = {}) {
        if (kind == EngineKind::IoUring) {
            need_io_uring();
            engine_ = make_uring_engine(stats_, sizes);
        } else {
            engine_ = make_epoll_engine();
        }
        engine_->wake(wake_.get());
    }

    Engine* operator->() { return engine_.get(); }
    Engine& operator*() { return *engine_; }
    [[nodiscard]] WorkerStats& stats() { return stats_; }

    /// The next completion. Throws when none comes in ten seconds.
    EngineOutcome next() {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (outcomes_.empty()) {
            if (std::chrono::steady_clock::now() > deadline) {
                throw std::runtime_error("no completion");
            }
            turn();
        }
        EngineOutcome outcome = std::move(outcomes_.front());
        outcomes_.pop_front();
        return outcome;
    }

    /// All that comes, up to what was on its way when this was called: wakes tell. The first may
    /// overtake others, for only what completes in different turns is in order.
    std::vector<EngineOutcome> rest() {
        std::vector<EngineOutcome> rest;
        for (int round = 0; round < 2; ++round) {
            eventfd_write(wake_.get(), 1);
            for (EngineOutcome one = next(); one.tag.op != Op::Wake; one = next()) {
                rest.push_back(std::move(one));
            }
            engine_->wake(wake_.get());
        }
        for (; !outcomes_.empty(); outcomes_.pop_front()) {
            rest.push_back(std::move(outcomes_.front()));
        }
        return rest;
    }

private:
    void turn() {
        check_negative(engine_->turn(false), "turn");
        for (auto batch = engine_->take(); !batch.empty(); batch = engine_->take()) {
            for (const Completion& one : batch) {
                outcomes_.push_back(
                    {one.tag, one.result, one.goes_on, one.input_left, std::string(one.input)});
            }
        }
    }

    UniqueFd wake_{check_errno(eventfd(0, EFD_CLOEXEC), "eventfd")};
    WorkerStats stats_;
    std::unique_ptr<Engine> engine_;
    std::deque<EngineOutcome> outcomes_;
};

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Acceptor: the listener of a worker and the multishot accept on it. Whatever ends the accept (a
// full completion queue, no descriptors, the limit of connections), it is armed again as soon as
// that makes sense, never in a busy loop, and no connection that came in is lost.

#pragma once

#include <cstdint>
#include <vector>

#include "engine.h"
#include "stats.h"
#include "unique_fd.h"

namespace hello {

class Acceptor {
public:
    /// Owns `listener`; `stats` must outlive this.
    Acceptor(UniqueFd listener, WorkerStats& stats) noexcept;

    /// What came of the accept: a descriptor, now the caller's, or -1.
    [[nodiscard]] int on_completion(const Completion& completion);

    /// Keeps an accepted descriptor until there is room for it.
    void postpone(int fd) { surplus_.emplace_back(fd); }

    /// A descriptor to serve now, or -1: those that were postponed, then, when stopping, what
    /// clients had connected before the listener closes.
    [[nodiscard]] int next_waiting();

    /// A descriptor was closed, or a second has passed: accepting may work again.
    void retry() noexcept { exhausted_ = false; }

    /// Arms or cancels the accept as things stand. `room`: another connection may be opened.
    void manage(Engine& engine, bool room);

    [[nodiscard]] bool is_exhausted() const noexcept { return exhausted_; }

    /// No more connections than those that clients have opened already.
    void stop() noexcept { stopping_ = true; }

    /// Not even those.
    void close() noexcept {
        surplus_.clear();
        listener_.reset();
    }
    [[nodiscard]] bool is_stopped() const noexcept {
        return !listener_.is_open() && surplus_.empty();
    }

private:
    enum class Accept : std::uint8_t { Idle, Armed, Cancelled };

    void on_error(int error);
    [[nodiscard]] int take_from_backlog();

    UniqueFd listener_;
    WorkerStats& stats_;
    std::vector<UniqueFd> surplus_;
    Accept accept_ = Accept::Idle;
    bool exhausted_ = false;  ///< out of descriptors or memory
    bool warned_ = false;
    bool stopping_ = false;
};

}  // namespace hello

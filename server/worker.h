// SPDX-License-Identifier: MIT
//
// Worker: one thread, one engine, one listener, and the connections that came in by it.
//
// Each turn of the loop:
//   1. submit what the last turn queued; sleep until something completes
//   2. take every completion: what it means is noted in its connection, which is touched
//   3. advance each touched connection once: send what it owes, close it, or go on receiving
// Sends are queued only in step 3, so pipelined requests are answered by one send, and a send
// that did not fit is known before the next one is made.

#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "acceptor.h"
#include "config.h"
#include "connections.h"
#include "engine.h"
#include "stats.h"
#include "unique_fd.h"

namespace hello {

class Worker {
public:
    /// The part of the set-up that any thread may do. Owns `listener`; the rest must outlive this.
    Worker(const ServerConfig& config, Crew& crew, std::size_t index, UniqueFd listener);

    /// The part that the worker's own thread must do, for an engine belongs to one thread: up to
    /// the armed accept. Throws StartError, EngineRefused, std::system_error.
    void prepare();

    /// Serves until drained. Returns false where the engine failed for good.
    [[nodiscard]] bool run();

    /// From any thread: stop accepting, answer what was asked, close. Returns at once.
    void drain() noexcept;

    /// From any thread: close all connections. Returns at once.
    void abort() noexcept;

    [[nodiscard]] const WorkerStats& stats() const noexcept { return stats_; }
    [[nodiscard]] const std::string& describe_engine() const noexcept { return engine_text_; }

private:
    [[nodiscard]] bool turn();
    [[nodiscard]] int wait_for_completions();
    void dispatch(const Completion& completion);
    void accept(int fd);
    void accept_waiting();
    void on_wake();

    const ServerConfig& config_;
    Crew& crew_;
    std::size_t index_;
    UniqueFd wake_fd_;
    std::atomic<bool> drain_asked_{false};
    std::atomic<bool> abort_asked_{false};

    WorkerStats stats_;
    std::string engine_text_;
    Acceptor acceptor_;
    std::unique_ptr<Engine> engine_;
    std::optional<Connections> connections_;
};

}  // namespace hello

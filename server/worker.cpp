// SPDX-License-Identifier: MIT
//
// The event loop: see worker.h.

#include "worker.h"

#include <sys/eventfd.h>

#include <chrono>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

#include "error.h"

namespace hello {

Worker::Worker(const ServerConfig& config, Crew& crew, std::size_t index, UniqueFd listener)
    : config_(config),
      crew_(crew),
      index_(index),
      wake_fd_(check_errno(eventfd(0, EFD_CLOEXEC), "eventfd")),
      acceptor_(std::move(listener), stats_) {}

void Worker::prepare() {
    engine_ = config_.engine == EngineKind::Epoll ? make_epoll_engine() : make_uring_engine(stats_);
    engine_text_ = engine_->describe();
    connections_.emplace(config_, crew_, index_, *engine_, stats_);
    crew_.members[index_].inbox = engine_->inbox();
    crew_.members[index_].wake_fd = wake_fd_.get();

    engine_->wake(wake_fd_.get());
    engine_->tick();
    acceptor_.manage(*engine_, true);
    check_negative(engine_->turn(false), engine_text_);
}

bool Worker::run() {
    bool works = true;
    while (works && !(acceptor_.is_stopped() && connections_->are_gone())) {
        works = turn();
    }
    while (works && !engine_->is_submitted()) {  // the last answers and closes
        works = engine_->turn(false) == 0;
    }
    engine_.reset();  // in the thread that it belongs to, and before what it refers to
    if (!works) {
        acceptor_.close();
        connections_->let_go();
    }
    connections_.reset();
    return works;
}

bool Worker::turn() {
    if (const int result = wait_for_completions(); result < 0) {
        spdlog::critical("{} failed: {}", engine_text_, std::strerror(-result));
        return false;
    }
    // If not, the kernel was short of memory, and what the queued sends refer to has to stay.
    const bool submitted = engine_->is_submitted();
    for (auto batch = engine_->take(); !batch.empty(); batch = engine_->take()) {
        for (const Completion& completion : batch) {
            dispatch(completion);
        }
    }
    if (submitted) {
        connections_->advance_touched();
        accept_waiting();
    }
    connections_->update_gauges();
    return true;
}

int Worker::wait_for_completions() {
    using Clock = std::chrono::steady_clock;
    if (connections_->in_haste()) {
        return engine_->turn(false);
    }
    if (config_.busy_poll_us != 0) {
        const auto end = Clock::now() + std::chrono::microseconds(config_.busy_poll_us);
        do {
            const int result = engine_->turn(false);
            if (result < 0 || engine_->has_completions()) {
                return result;
            }
        } while (Clock::now() < end);
    }
    return engine_->turn(true);
}

void Worker::dispatch(const Completion& completion) {
    const UserData tag = completion.tag;
    switch (tag.op) {
        case Op::Accept:
            if (const int fd = acceptor_.on_completion(completion); fd >= 0) {
                accept(fd);
            }
            break;
        case Op::Receive:
        case Op::SendNow:
        case Op::Send: connections_->on_completion(completion); break;
        case Op::HandOff: connections_->on_handed_off(tag, completion.result); break;
        case Op::Adopt: connections_->adopt(completion.result); break;
        case Op::Cancel: break;  // what was to be cancelled says itself how it ended
        case Op::Close: spdlog::error("close: {}", std::strerror(-completion.result)); break;
        case Op::Tick:
            engine_->tick();
            acceptor_.retry();
            connections_->expire();
            break;
        case Op::Wake: on_wake(); break;
    }
}

void Worker::accept(int fd) {
    if (connections_->has_room()) {
        connections_->admit(fd);
    } else {
        acceptor_.postpone(fd);
    }
}

/// Serves who had to wait, and keeps the accept armed as long as there is room.
void Worker::accept_waiting() {
    while (connections_->has_room()) {
        const int fd = acceptor_.next_waiting();
        if (fd < 0) {
            break;
        }
        connections_->admit(fd);
    }
    if (!connections_->has_room() || acceptor_.is_exhausted()) {
        crew_.members[index_].waits = true;  // first this, then another look: none is missed
        crew_.anyone_waits = true;
    }
    acceptor_.manage(*engine_, connections_->has_room());
}

void Worker::on_wake() {
    engine_->wake(wake_fd_.get());
    acceptor_.retry();
    const bool aborts = abort_asked_.exchange(false);
    if (drain_asked_.exchange(false) || aborts) {
        acceptor_.stop();
        connections_->drain();
    }
    if (aborts) {
        acceptor_.close();
        connections_->abort();
    }
}

void Worker::drain() noexcept {
    drain_asked_ = true;
    eventfd_write(wake_fd_.get(), 1);
}

void Worker::abort() noexcept {
    abort_asked_ = true;
    eventfd_write(wake_fd_.get(), 1);
}

}  // namespace hello

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
    ring_.emplace(RingSizes{});
    operations_.emplace(*ring_);
    ring_text_ = ring_->describe();
    connections_.emplace(config_, crew_, index_, *ring_, stats_);
    crew_.members[index_].ring_fd = ring_->fd();
    crew_.members[index_].wake_fd = wake_fd_.get();

    operations_->wake(wake_fd_.get(), &wake_value_);
    operations_->tick();
    acceptor_.manage(*operations_, true);
    check_negative(ring_->submit_and_wait(0), "io_uring_enter");
}

bool Worker::run() {
    bool works = true;
    while (works && !(acceptor_.is_stopped() && connections_->are_gone())) {
        works = turn();
    }
    while (works && !ring_->is_submitted()) {  // the last answers and closes
        works = ring_->submit_and_wait(0) == 0;
    }
    connections_.reset();
    ring_.reset();  // in the thread that it belongs to
    return works;
}

bool Worker::turn() {
    if (const int result = wait_for_completions(); result < 0) {
        spdlog::critical("io_uring_enter failed: {}", std::strerror(-result));
        return false;
    }
    // If not, the kernel was short of memory, and what the queued sends refer to has to stay.
    const bool submitted = ring_->is_submitted();
    ring_->for_each_cqe([this](const io_uring_cqe& cqe) { dispatch(cqe); });
    while (ring_->fetch_overflow()) {
        stats_.completions_overflowed.add();
        ring_->for_each_cqe([this](const io_uring_cqe& cqe) { dispatch(cqe); });
    }
    connections_->publish_buffers();
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
        return ring_->submit_and_wait(0);
    }
    if (config_.busy_poll_us != 0) {
        const auto end = Clock::now() + std::chrono::microseconds(config_.busy_poll_us);
        do {
            const int result = ring_->submit_and_wait(0);
            if (result < 0 || ring_->ready() != 0) {
                return result;
            }
        } while (Clock::now() < end);
    }
    return ring_->submit_and_wait(1);
}

void Worker::dispatch(const io_uring_cqe& cqe) {
    const UserData tag = UserData::decode(cqe.user_data);
    switch (tag.op) {
        case Op::Accept:
            if (const int fd = acceptor_.on_completion(cqe); fd >= 0) {
                accept(fd);
            }
            break;
        case Op::Receive:
        case Op::SendNow:
        case Op::Send: connections_->on_completion(tag, cqe); break;
        case Op::HandOff: connections_->on_handed_off(tag, cqe.res); break;
        case Op::Adopt: connections_->adopt(cqe.res); break;
        case Op::Cancel: break;  // what was to be cancelled says itself how it ended
        case Op::Close: spdlog::error("close: {}", std::strerror(-cqe.res)); break;
        case Op::Tick:
            operations_->tick();
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
    acceptor_.manage(*operations_, connections_->has_room());
}

void Worker::on_wake() {
    operations_->wake(wake_fd_.get(), &wake_value_);
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

// SPDX-License-Identifier: MIT
//
// FakeEngine: an engine that does nothing but remember what it was asked for. A test reads that,
// and completes the operations itself, with any result that a kernel might give.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine.h"

namespace hello::test {

struct Asked {
    std::string what;  ///< "receive once", "send_now", "cancel", ...
    int fd = -1;
    UserData tag{};
    std::string octets;
    int inbox = -1;
};

class FakeEngine final : public Engine {
public:
    /// All that was asked for since the last call.
    [[nodiscard]] std::vector<Asked> take_asked() { return std::exchange(asked_, {}); }

    /// The same, without the details.
    [[nodiscard]] std::vector<std::string> take_names() {
        std::vector<std::string> names;
        for (const Asked& asked : take_asked()) {
            names.push_back(asked.what);
        }
        return names;
    }

    void accept(int listener) noexcept override { ask("accept", listener, {Op::Accept, 0, 0}); }
    void receive(int fd, UserData tag, ReceiveMode mode, Readiness readiness) noexcept override {
        const std::string hurry = readiness == Readiness::Likely ? " likely" : "";
        switch (mode) {
            case ReceiveMode::Once: ask("receive once" + hurry, fd, tag); break;
            case ReceiveMode::Many: ask("receive many" + hurry, fd, tag); break;
            case ReceiveMode::Now: ask("receive now" + hurry, fd, tag); break;
            case ReceiveMode::None: ask("receive none", fd, tag); break;
        }
    }
    void send(int fd, UserData tag, std::string_view octets) noexcept override {
        ask("send", fd, tag, octets);
    }
    void hand_off(int fd, UserData tag, int inbox) noexcept override {
        ask("hand_off", fd, tag);
        asked_.back().inbox = inbox;
    }
    void tick() noexcept override { ask("tick", -1, {Op::Tick, 0, 0}); }
    void wake(int event_fd) noexcept override { ask("wake", event_fd, {Op::Wake, 0, 0}); }
    void send_now(int fd, UserData tag, std::string_view octets) noexcept override {
        ask("send_now", fd, tag, octets);
    }
    void send_last(int fd, std::string_view octets) noexcept override {
        ask("send_now last", fd, {}, octets);
    }
    void cancel(int fd, UserData tag) noexcept override { ask("cancel", fd, tag); }
    void close(int fd, UserData tag) noexcept override { ask("close", fd, tag); }

    [[nodiscard]] int turn(bool /*sleeps*/) noexcept override { return 0; }
    [[nodiscard]] std::span<const Completion> take() noexcept override { return {}; }
    [[nodiscard]] bool has_completions() const noexcept override { return false; }
    [[nodiscard]] bool is_submitted() const noexcept override { return true; }
    [[nodiscard]] int inbox() const noexcept override { return -1; }
    [[nodiscard]] std::string describe() const override { return "fake"; }

private:
    void ask(std::string what, int fd, UserData tag, std::string_view octets = {}) {
        asked_.push_back({std::move(what), fd, tag, std::string(octets), -1});
    }

    std::vector<Asked> asked_;
};

}  // namespace hello::test

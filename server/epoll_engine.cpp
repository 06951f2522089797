// SPDX-License-Identifier: MIT
//
// EpollEngine: does with readiness and plain system calls what io_uring does, for hosts that
// forbid io_uring, and as the fair comparison: same parser, same connections. A descriptor is
// registered only when there is something to wait for: a connection whose request is there when it
// is accepted never meets epoll. Sends and closes happen when they are asked for.

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "engine.h"
#include "error.h"
#include "unique_fd.h"

namespace hello {
namespace {

constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

class EpollEngine final : public Engine {
public:
    EpollEngine() {
        std::array<int, 2> ends{};
        check_errno(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), "pipe2");
        inbox_read_ = UniqueFd(ends[0]);
        inbox_write_ = UniqueFd(ends[1]);
        watch(Op::Adopt, inbox_read_.get(), EPOLLIN);
        watch(Op::Tick, timer_.get(), EPOLLIN);
    }

    void accept(int listener) noexcept override {
        // A connection that was reset since the event must not make accept4() wait.
        static_cast<void>(fcntl(listener, F_SETFL, O_NONBLOCK));  // can't fail: it is a socket
        watch(Op::Accept, listener, EPOLLIN);
    }

    /// Between two receives a descriptor stays registered: giving it up is for when input comes
    /// that nobody asks for.
    void receive(int fd, UserData tag, ReceiveMode mode, Readiness readiness) noexcept override {
        Watch& watch = watch_of(fd);
        watch.receiving = mode;
        watch.receive_tag = tag;
        if (mode == ReceiveMode::Now ||
            (mode == ReceiveMode::Once && readiness == Readiness::Likely)) {
            likely_.push_back(fd);
        } else if ((watch.events & EPOLLIN) == 0) {
            watch_connection(fd);
        }
    }

    void send(int fd, UserData tag, std::string_view octets) noexcept override {
        Watch& watch = watch_of(fd);
        watch.send_tag = tag;
        watch.unsent = octets;
        watch.send_size = octets.size();
        go_on_sending(fd);
    }

    /// The number is enough, for threads share the descriptor table. A write of 4 octets is whole
    /// or not at all (pipe(7)).
    void hand_off(int fd, UserData tag, int inbox) noexcept override {
        watch(Op::Receive, fd, 0);
        watch_of(fd) = {};
        complete(tag, write(inbox, &fd, sizeof fd) == sizeof fd ? 0 : -errno);
    }

    void tick() noexcept override {
        const itimerspec next{{}, next_tick()};
        static_cast<void>(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &next, nullptr));
    }

    void wake(int event_fd) noexcept override { watch(Op::Wake, event_fd, EPOLLIN); }

    void send_now(int fd, UserData tag, std::string_view octets) noexcept override {
        const ssize_t size = ::send(fd, octets.data(), octets.size(), kSendFlags);
        if (size != static_cast<ssize_t>(octets.size())) {
            complete(tag, size == -1 ? -errno : static_cast<int>(size));
        }
    }

    void cancel(int fd, UserData tag) noexcept override {
        Watch& asked = watch_of(fd);
        bool cancelled = tag.op == Op::Accept;
        if (tag.op == Op::Accept) {
            watch(Op::Accept, fd, 0);
        } else if (tag.op == Op::Receive) {
            cancelled = std::exchange(asked.receiving, ReceiveMode::None) != ReceiveMode::None;
        } else if (tag.op == Op::Send) {
            cancelled = !std::exchange(asked.unsent, {}).empty();
        }
        if (cancelled) {
            complete(tag, -ECANCELED);
        }
    }

    /// Closing takes the descriptor out of epoll as well, for no other one refers to its socket.
    void close(int fd, UserData tag) noexcept override {
        watch_of(fd) = {};
        if (::close(fd) == -1) {
            complete(tag, -errno);
        }
    }

    [[nodiscard]] int turn(bool sleeps) noexcept override {
        buffers_used_ = 0;
        const std::size_t likely_count = likely_.size();
        for (std::size_t i = 0; i < likely_count; ++i) {
            receive_from(likely_[i]);
        }
        likely_.erase(likely_.begin(), likely_.begin() + static_cast<std::ptrdiff_t>(likely_count));

        std::array<epoll_event, kEventsMax> events;
        const bool waits = sleeps && completed_.empty() && likely_.empty();
        const int count = epoll_wait(epoll_.get(), events.data(), kEventsMax, waits ? -1 : 0);
        for (int i = 0; i < count; ++i) {
            const UserData what = UserData::decode(events[static_cast<std::size_t>(i)].data.u64);
            on_event(what.op, static_cast<int>(what.slot));
        }
        return count == -1 && errno != EINTR ? -errno : 0;
    }

    [[nodiscard]] std::span<const Completion> take() noexcept override {
        taken_.clear();
        taken_.swap(completed_);
        return taken_;
    }
    [[nodiscard]] bool has_completions() const noexcept override { return !completed_.empty(); }
    [[nodiscard]] bool is_submitted() const noexcept override { return true; }
    [[nodiscard]] int inbox() const noexcept override { return inbox_write_.get(); }
    [[nodiscard]] std::string describe() const override { return "epoll"; }

private:
    /// What is asked of a descriptor.
    struct Watch {
        std::uint32_t events = 0;  ///< what it is registered for; 0: not at all
        ReceiveMode receiving = ReceiveMode::None;
        UserData receive_tag{};
        UserData send_tag{};
        std::string_view unsent;  ///< not empty while a send waits
        std::size_t send_size = 0;
    };
    static constexpr std::size_t kReceivesMax = 128;  ///< per turn, each with a buffer
    static constexpr int kEventsMax = 64;             ///< per turn, and connections accepted

    [[nodiscard]] Watch& watch_of(int fd) {
        const auto index = static_cast<std::size_t>(fd);
        if (index >= watches_.size()) {
            watches_.resize(std::max(index + 1, 2 * watches_.size()));
        }
        return watches_[index];
    }

    /// Level-triggered: what is not dealt with in one turn is reported again in the next one.
    void watch(Op op, int fd, std::uint32_t events) noexcept {
        Watch& watch = watch_of(fd);
        if (events == watch.events) {
            return;
        }
        epoll_event event{};
        event.events = events;
        event.data.u64 = UserData{op, 0, static_cast<std::uint32_t>(fd)}.encode();
        const int add_or_modify = watch.events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
        const int action = events == 0 ? EPOLL_CTL_DEL : add_or_modify;
        if (epoll_ctl(epoll_.get(), action, fd, &event) == 0) {
            watch.events = events;
            return;
        }
        const int error = errno;  // short of memory, or of watches
        if (op == Op::Accept) {
            complete({op, 0, 0}, -error);
        }
        if (std::exchange(watch.receiving, ReceiveMode::None) != ReceiveMode::None) {
            complete(watch.receive_tag, -error);
        }
        if (!std::exchange(watch.unsent, {}).empty()) {
            complete(watch.send_tag, -error);
        }
    }

    void watch_connection(int fd) noexcept {
        const Watch& asked = watch_of(fd);
        const std::uint32_t in = asked.receiving == ReceiveMode::None ? 0 : std::uint32_t{EPOLLIN};
        const std::uint32_t out = asked.unsent.empty() ? 0 : std::uint32_t{EPOLLOUT};
        watch(Op::Receive, fd, in | out);
    }

    void on_event(Op op, int fd) {
        std::uint64_t value = 0;  // of the timer or the eventfd: how often; once is enough
        switch (op) {
            case Op::Accept: accept_from(fd); break;
            case Op::Adopt: adopt(); break;
            case Op::Tick:
            case Op::Wake:
                if (read(fd, &value, sizeof value) > 0) {
                    complete({op, 0, 0}, 0);
                }
                break;
            default:
                if (!watch_of(fd).unsent.empty()) {
                    go_on_sending(fd);
                }
                receive_from(fd);
        }
    }

    void receive_from(int fd) {
        Watch& watch = watch_of(fd);
        if (watch.receiving == ReceiveMode::None) {
            watch_connection(fd);
            return;
        }
        if (buffers_used_ == kReceivesMax) {
            likely_.push_back(fd);
            return;
        }
        char* const buffer = buffers_[buffers_used_].data();
        const ssize_t size = recv(fd, buffer, kBufferSize, MSG_DONTWAIT);
        if (size == -1 && errno == EAGAIN && watch.receiving != ReceiveMode::Now) {
            watch_connection(fd);
            return;
        }
        const bool goes_on = watch.receiving == ReceiveMode::Many && size > 0;
        watch.receiving = goes_on ? ReceiveMode::Many : ReceiveMode::None;
        complete(watch.receive_tag, size == -1 ? -errno : static_cast<int>(size), goes_on);
        if (size > 0) {
            completed_.back().input_left = size == kBufferSize;  // as far as we know
            completed_.back().input = {buffer, static_cast<std::size_t>(size)};
            ++buffers_used_;
        }
    }

    void go_on_sending(int fd) {
        Watch& watch = watch_of(fd);
        const ssize_t size = ::send(fd, watch.unsent.data(), watch.unsent.size(), kSendFlags);
        const int error = size == -1 && errno != EAGAIN ? errno : 0;
        watch.unsent.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        if (watch.unsent.empty() || error != 0) {
            watch.unsent = {};
            complete(watch.send_tag, error != 0 ? -error : static_cast<int>(watch.send_size));
        } else {
            watch_connection(fd);
        }
    }

    void accept_from(int listener) {
        for (int count = 0; count < kEventsMax; ++count) {
            const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd == -1 && errno == EAGAIN) {
                return;
            }
            complete({Op::Accept, 0, 0}, fd == -1 ? -errno : fd, fd != -1);
            if (fd == -1) {
                return watch(Op::Accept, listener, 0);
            }
        }
    }

    void adopt() {
        int fd = -1;
        if (read(inbox_read_.get(), &fd, sizeof fd) == sizeof fd) {
            complete({Op::Adopt, 0, 0}, fd);
        }
    }

    void complete(UserData tag, int result, bool goes_on = false) {
        completed_.push_back({tag, result, goes_on, false, {}});
    }

    UniqueFd epoll_{check_errno(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
    UniqueFd timer_{check_errno(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), "timerfd_create")};
    UniqueFd inbox_read_;  ///< a pipe of descriptors
    UniqueFd inbox_write_;
    std::vector<Watch> watches_;  ///< by descriptor
    std::vector<int> likely_;     ///< to receive from without waiting
    std::vector<Completion> completed_;
    std::vector<Completion> taken_;
    std::vector<std::array<char, kBufferSize>> buffers_{kReceivesMax};
    std::size_t buffers_used_ = 0;  ///< in this turn
};

}  // namespace

std::unique_ptr<Engine> make_epoll_engine() {
    return std::make_unique<EpollEngine>();
}

}  // namespace hello

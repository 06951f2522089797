// SPDX-License-Identifier: MIT
//
// Engine: how a worker gets octets in and out. What is asked for completes later: by io_uring, or
// by an epoll loop that does as io_uring does. Everything above is the same for both.

#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "stats.h"
#include "user_data.h"

namespace hello {

/// What became of something that was asked for.
struct Completion {
    UserData tag;
    int result = 0;           ///< octets, a descriptor, 0, or -errno
    bool goes_on = false;     ///< more completions of the same request will come
    bool input_left = false;  ///< the socket held more than was received
    std::string_view input;   ///< what was received; valid until the next take()
};

enum class EngineKind : std::uint8_t { IoUring, Epoll };

/// Once; until it is cancelled or fails; or only what is there already, -EAGAIN if nothing is.
enum class ReceiveMode : std::uint8_t { None, Once, Many, Now };

/// Where input is likely to be waiting, receiving at once is cheaper than asking first.
enum class Readiness : bool { Unlikely, Likely };

/// When the next tick is due, by CLOCK_MONOTONIC: as the next second begins. The margin is what the
/// coarse clock, in which deadlines are counted, may lag.
[[nodiscard]] inline timespec next_tick() noexcept {
    constexpr long kMarginNs = 10'000'000;
    timespec now{};
    static_cast<void>(clock_gettime(CLOCK_MONOTONIC, &now));  // can't fail: it exists
    return {now.tv_nsec < kMarginNs ? now.tv_sec : now.tv_sec + 1, kMarginNs};
}

class Engine {
public:
    /// What one receive takes at most, and so one client in one turn.
    static constexpr std::size_t kBufferSize = 4096;

    virtual ~Engine() = default;

    // Each of these completes, with its tag:
    /// Connections that come in by `listener`: {Accept}, as many as there are.
    virtual void accept(int listener) noexcept = 0;
    virtual void receive(int fd, UserData tag, ReceiveMode mode, Readiness readiness) noexcept = 0;
    /// Completes when the socket has taken all octets, which must stay until then, or has failed.
    virtual void send(int fd, UserData tag, std::string_view octets) noexcept = 0;
    /// Gives `fd` to the engine that has that inbox, where {Adopt} completes with it; here `tag`.
    virtual void hand_off(int fd, UserData tag, int inbox) noexcept = 0;
    /// {Tick}, once, soon after the next second of the monotonic clock has begun.
    virtual void tick() noexcept = 0;
    /// {Wake}, once, when somebody writes to the eventfd.
    virtual void wake(int event_fd) noexcept = 0;

    // These complete only where they fail:
    /// What does not fit into the socket at once is not sent: -EAGAIN, or how much was taken. The
    /// octets must stay until is_submitted().
    virtual void send_now(int fd, UserData tag, std::string_view octets) noexcept = 0;
    /// Ends the receive, send or accept of this tag, which then completes with -ECANCELED if it
    /// has not completed in another way.
    virtual void cancel(int fd, UserData tag) noexcept = 0;
    virtual void close(int fd, UserData tag) noexcept = 0;

    /// At once, in one segment: the octets, as few as a new socket always takes, and FIN. Never
    /// completes. Both are gone before a close can meet unread input, for which the kernel would
    /// reset and drop them. Not by the ring: IORING_OP_SHUTDOWN always goes to a worker thread.
    virtual void send_last(int fd, std::string_view octets) noexcept {
        constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE;
        static_cast<void>(::send(fd, octets.data(), octets.size(), kFlags));  // or the client left
        static_cast<void>(shutdown(fd, SHUT_WR));
    }

    /// Starts what was asked for and, if `sleeps`, waits until something has completed. Returns 0,
    /// or -errno where the engine is beyond use.
    [[nodiscard]] virtual int turn(bool sleeps) noexcept = 0;
    /// Takes completions, in order; none when all were taken. They are valid until the next call.
    [[nodiscard]] virtual std::span<const Completion> take() noexcept = 0;
    /// Whether something has completed that take() would give.
    [[nodiscard]] virtual bool has_completions() const noexcept = 0;
    /// Whether all that was asked for has been started.
    [[nodiscard]] virtual bool is_submitted() const noexcept = 0;

    [[nodiscard]] virtual int inbox() const noexcept = 0;
    /// For the log: "io_uring DEFER_TASKRUN sq=1024 cq=8192".
    [[nodiscard]] virtual std::string describe() const = 0;
};

/// Entries; powers of two.
struct UringSizes {
    unsigned submissions = 1024;
    unsigned completions = 8192;  ///< also holds what multishot operations complete unasked
    unsigned buffers = 256;
};

// Each to be made, like everything else here to be called, by the thread that will use it.
/// Throws EngineRefused. Settles for less where locked memory is short. `stats` must outlive it.
[[nodiscard]] std::unique_ptr<Engine> make_uring_engine(WorkerStats& stats, UringSizes sizes = {});
/// Throws std::system_error.
[[nodiscard]] std::unique_ptr<Engine> make_epoll_engine();

}  // namespace hello

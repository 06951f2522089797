// SPDX-License-Identifier: MIT
//
// UringEngine: the engine that this server is about. Each operation is one submission, with its
// flags and the reason for them; nothing is submitted before the ring is entered. A pending
// receive holds a buffer only while it holds octets, so idle connections cost none.

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "buffer_ring.h"
#include "engine.h"
#include "error.h"
#include "ring.h"

namespace hello {
namespace {

class UringEngine final : public Engine {
public:
    UringEngine(WorkerStats& stats, UringSizes sizes);

    void accept(int listener) noexcept override;
    void receive(int fd, UserData tag, ReceiveMode mode, Readiness readiness) noexcept override;
    void send(int fd, UserData tag, std::string_view octets) noexcept override;
    void hand_off(int fd, UserData tag, int inbox) noexcept override;
    void tick() noexcept override;
    void wake(int event_fd) noexcept override;
    void send_now(int fd, UserData tag, std::string_view octets) noexcept override;
    void cancel(int fd, UserData tag) noexcept override;
    void close(int fd, UserData tag) noexcept override;

    [[nodiscard]] int turn(bool sleeps) noexcept override {
        return ring_.submit_and_wait(sleeps ? 1 : 0);
    }
    [[nodiscard]] std::span<const Completion> take() noexcept override;
    [[nodiscard]] bool has_completions() const noexcept override { return ring_.ready() != 0; }
    [[nodiscard]] bool is_submitted() const noexcept override { return ring_.is_submitted(); }
    [[nodiscard]] int inbox() const noexcept override { return ring_.fd(); }
    [[nodiscard]] std::string describe() const override { return "io_uring " + ring_.describe(); }

private:
    void note(const io_uring_cqe& cqe);

    WorkerStats& stats_;
    Ring ring_;
    BufferRing buffers_;
    std::vector<Completion> taken_;
    std::vector<std::uint16_t> borrowed_;  ///< buffers that the taken completions refer to
    __kernel_timespec next_tick_{};        ///< the kernel reads it when it is submitted
    std::uint64_t wake_value_ = 0;
};

UringEngine::UringEngine(WorkerStats& stats, UringSizes sizes)
    : stats_(stats), ring_(sizes), buffers_(ring_, sizes.buffers) {
    stats_.buffers_total.set(buffers_.count());
    stats_.buffers_available.set(buffers_.available());
}

/// Multishot (5.19): one submission accepts until it is cancelled or fails.
void UringEngine::accept(int listener) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_multishot_accept(sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
    io_uring_sqe_set_data64(sqe, UserData{Op::Accept, 0, 0}.encode());
}

/// The buffer is chosen when there is something to put into it. Many is a multishot receive
/// (6.0): one submission for the rest of the connection. POLL_FIRST (5.19): where no input is
/// likely, an attempt before waiting would be for nothing.
void UringEngine::receive(int fd, UserData tag, ReceiveMode mode, Readiness readiness) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_recv(sqe, fd, nullptr, 0, mode == ReceiveMode::Now ? MSG_DONTWAIT : 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BufferRing::kGroup;
    if (mode == ReceiveMode::Many) {
        sqe->ioprio |= IORING_RECV_MULTISHOT;
    }
    if (readiness == Readiness::Unlikely) {
        sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
    }
    io_uring_sqe_set_data64(sqe, tag.encode());
}

/// MSG_WAITALL: the kernel goes on by itself until all is sent.
void UringEngine::send(int fd, UserData tag, std::string_view octets) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_send(sqe, fd, octets.data(), octets.size(), MSG_WAITALL | MSG_NOSIGNAL);
    io_uring_sqe_set_data64(sqe, tag.encode());
}

/// MSG_WAITALL | MSG_DONTWAIT: either all is taken at once, which needs no completion, or one
/// comes with -EAGAIN or the exact count, and nothing is sent behind our back (measured: half
/// the system calls of a send that always completes).
void UringEngine::send_now(int fd, UserData tag, std::string_view octets) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_send(sqe, fd, octets.data(), octets.size(),
                       MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, tag.encode());
}

/// The message's number is the descriptor: threads share the descriptor table (5.18).
void UringEngine::hand_off(int fd, UserData tag, int inbox) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_msg_ring(sqe, inbox, static_cast<unsigned>(fd),
                           UserData{Op::Adopt, 0, 0}.encode(), 0);
    io_uring_sqe_set_data64(sqe, tag.encode());
}

/// Once, for multishot timeouts came only with 6.4.
void UringEngine::tick() noexcept {
    const timespec next = next_tick();
    next_tick_ = {next.tv_sec, next.tv_nsec};
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_timeout(sqe, &next_tick_, 0, IORING_TIMEOUT_ABS);
    io_uring_sqe_set_data64(sqe, UserData{Op::Tick, 0, 0}.encode());
}

void UringEngine::wake(int event_fd) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_read(sqe, event_fd, &wake_value_, sizeof wake_value_, 0);
    io_uring_sqe_set_data64(sqe, UserData{Op::Wake, 0, 0}.encode());
}

/// By tag, for the descriptor may be another connection's by the time the kernel looks.
void UringEngine::cancel(int /*fd*/, UserData tag) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_cancel64(sqe, tag.encode(), 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, UserData{Op::Cancel, tag.generation, tag.slot}.encode());
}

void UringEngine::close(int fd, UserData tag) noexcept {
    io_uring_sqe* sqe = ring_.sqe();
    io_uring_prep_close(sqe, fd);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, tag.encode());
}

/// Every completion that came with a buffer gives it back, whatever its result and whoever it is
/// for; the kernel sees them all at once.
std::span<const Completion> UringEngine::take() noexcept {
    taken_.clear();
    for (const std::uint16_t id : borrowed_) {
        buffers_.give_back(id);
    }
    borrowed_.clear();
    buffers_.publish();
    const auto note_ready = [this] {
        return ring_.for_each_cqe([this](const io_uring_cqe& cqe) { note(cqe); });
    };
    if (note_ready() == 0 && ring_.fetch_overflow()) {
        stats_.completions_overflowed.add();
        note_ready();
    }
    stats_.buffers_available.set(buffers_.available());
    return taken_;
}

void UringEngine::note(const io_uring_cqe& cqe) {
    Completion& completion = taken_.emplace_back();
    completion.tag = UserData::decode(cqe.user_data);
    completion.result = cqe.res;
    completion.goes_on = (cqe.flags & IORING_CQE_F_MORE) != 0;
    completion.input_left = (cqe.flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    if ((cqe.flags & IORING_CQE_F_BUFFER) != 0) {
        const auto id = static_cast<std::uint16_t>(cqe.flags >> IORING_CQE_BUFFER_SHIFT);
        completion.input = buffers_.borrow(id, cqe.res > 0 ? static_cast<std::size_t>(cqe.res) : 0);
        borrowed_.push_back(id);
    }
    if (cqe.res == -ENOBUFS && completion.tag.op == Op::Receive) {
        stats_.buffers_exhausted.add();
    }
}

}  // namespace

/// Since 6.13 rings and what is registered with them count against RLIMIT_MEMLOCK again, per user.
/// The memory of the ring that was too large is given back a little later, hence the pause.
std::unique_ptr<Engine> make_uring_engine(WorkerStats& stats, UringSizes sizes) {
    constexpr unsigned kSubmissionsMin = 64;
    for (;; sizes.submissions /= 2, sizes.completions /= 2) {
        try {
            return std::make_unique<UringEngine>(stats, sizes);
        } catch (const EngineRefused& refusal) {
            if (refusal.error != ENOMEM || sizes.submissions <= kSubmissionsMin) {
                throw;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
    }
}

}  // namespace hello

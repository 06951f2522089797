// SPDX-License-Identifier: MIT
//
// Accepting connections: see acceptor.h.

#include "acceptor.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

namespace hello {

Acceptor::Acceptor(UniqueFd listener, WorkerStats& stats) noexcept
    : listener_(std::move(listener)), stats_(stats) {}

int Acceptor::on_completion(const io_uring_cqe& cqe) {
    if ((cqe.flags & IORING_CQE_F_MORE) == 0) {
        accept_ = Accept::Idle;
    }
    if (cqe.res < 0) {
        on_error(-cqe.res);
    }
    return cqe.res;
}

/// accept(2): out of descriptors or memory, the connection stays in the backlog and accepting
/// again at once would fail again; all else concerns one connection that is gone already.
void Acceptor::on_error(int error) {
    switch (error) {
        case ECANCELED: return;
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            exhausted_ = true;
            stats_.accepts_paused.add();
            break;
        default: break;
    }
    stats_.accept_errors.add();
    if (exhausted_ && !std::exchange(warned_, true)) {
        spdlog::warn(
            "cannot accept: {}; clients wait in the backlog; cure: raise the limit of "
            "open files (ulimit -n)",
            std::strerror(error));
    }
}

int Acceptor::next_waiting() {
    if (!surplus_.empty()) {
        UniqueFd fd = std::move(surplus_.front());
        surplus_.erase(surplus_.begin());
        return fd.release();
    }
    return stopping_ && accept_ == Accept::Idle && listener_.is_open() ? take_from_backlog() : -1;
}

/// Closing the listener resets whoever is in its queue, so the queue is emptied first.
int Acceptor::take_from_backlog() {
    fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
    int fd = -1;
    do {
        fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    } while (fd == -1 && (errno == EINTR || errno == ECONNABORTED));
    if (fd == -1) {
        listener_.reset();
    }
    return fd;
}

void Acceptor::manage(Operations& operations, bool room) {
    const bool wanted = !stopping_ && room && surplus_.empty() && !exhausted_;
    if (wanted && accept_ == Accept::Idle) {
        operations.accept(listener_.get());
        accept_ = Accept::Armed;
    } else if (!wanted && accept_ == Accept::Armed) {
        operations.cancel_accept();
        accept_ = Accept::Cancelled;
        if (!stopping_) {
            stats_.accepts_paused.add();
        }
    }
}

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// Accepting connections: see acceptor.h.

#include "acceptor.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

#include "error.h"

namespace hello {

Acceptor::Acceptor(UniqueFd listener, WorkerStats& stats) noexcept
    : listener_(std::move(listener)), stats_(stats) {}

int Acceptor::on_completion(const Completion& completion) {
    if (!completion.goes_on) {
        accept_ = Accept::Idle;
    }
    if (completion.result < 0 && completion.result != -ECANCELED) {
        on_error(-completion.result);
    }
    return completion.result;
}

/// accept(2): some errors are the fate of one connection, which is gone. After any other, above
/// all where descriptors are short, accepting again at once would fail again.
void Acceptor::on_error(int error) {
    constexpr std::array kOfOneConnection{ECONNABORTED, EAGAIN,   EINTR,       EPROTO,
                                          ENOPROTOOPT,  ENETDOWN, ENETUNREACH, EHOSTDOWN,
                                          EHOSTUNREACH, ENONET,   EOPNOTSUPP};
    stats_.accept_errors.add();
    if (error == EBADF || error == ENOTSOCK || error == EINVAL) {  // for ever: a broken invariant
        check_negative(-error, "accept");
    }
    if (std::find(kOfOneConnection.begin(), kOfOneConnection.end(), error) !=
        kOfOneConnection.end()) {
        return;
    }
    exhausted_ = true;
    stats_.accepts_paused.add();
    if (!std::exchange(warned_, true)) {
        spdlog::warn(
            "cannot accept: {}; clients wait in the backlog; cure where files are short: "
            "raise ulimit -n",
            std::strerror(error));
    }
}

int Acceptor::next_waiting() {
    if (!surplus_.empty()) {
        UniqueFd fd = std::move(surplus_.front());
        surplus_.erase(surplus_.begin());
        return fd.release();
    }
    const bool ends = stopping_ && !exhausted_ && accept_ == Accept::Idle;
    return ends && listener_.is_open() ? take_from_backlog() : -1;
}

/// Closing the listener resets whoever is in its queue, so the queue is emptied first.
int Acceptor::take_from_backlog() {
    check_errno(fcntl(listener_.get(), F_SETFL, O_NONBLOCK), "fcntl");
    for (;;) {
        const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0) {
            return fd;
        }
        if (errno == EAGAIN || errno == EINVAL) {  // the queue is empty, or was shut down
            listener_.reset();
            return -1;
        }
        on_error(errno);
        if (exhausted_) {
            return -1;
        }
    }
}

void Acceptor::manage(Engine& engine, bool room) {
    const bool wanted = !stopping_ && room && surplus_.empty() && !exhausted_;
    if (wanted && accept_ == Accept::Idle) {
        engine.accept(listener_.get());
        accept_ = Accept::Armed;
    } else if (!wanted && accept_ == Accept::Armed && listener_.is_open()) {
        engine.cancel(listener_.get(), {Op::Accept, 0, 0});
        accept_ = Accept::Cancelled;
        if (!stopping_) {
            stats_.accepts_paused.add();
        }
    }
}

}  // namespace hello

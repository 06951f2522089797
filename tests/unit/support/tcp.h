// SPDX-License-Identifier: MIT
//
// TCP over loopback: a listener, clients of it, and pairs of connected sockets.

#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "error.h"
#include "unique_fd.h"

namespace hello::test {

/// A listening socket on a port of its own.
class TcpListener {
public:
    TcpListener() : fd_(check_errno(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")) {
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address_;
        check_errno(bind(fd_.get(), any(), size), "bind");
        check_errno(listen(fd_.get(), 1024), "listen");
        check_errno(getsockname(fd_.get(), any(), &size), "getsockname");
    }

    [[nodiscard]] int fd() const { return fd_.get(); }
    /// Gives the socket away; connect() goes on working.
    [[nodiscard]] UniqueFd release() { return std::move(fd_); }
    /// A client, connected.
    [[nodiscard]] UniqueFd connect() {
        UniqueFd client(check_errno(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
        check_errno(::connect(client.get(), any(), sizeof address_), "connect");
        return client;
    }
    [[nodiscard]] UniqueFd accept() {
        return UniqueFd(check_errno(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept"));
    }

private:
    [[nodiscard]] sockaddr* any() { return reinterpret_cast<sockaddr*>(&address_); }

    UniqueFd fd_;
    sockaddr_in address_{};
};

/// Two ends of a connection.
struct TcpPair {
    TcpPair() {
        TcpListener listener;
        far = listener.connect();
        near = listener.accept();
    }
    UniqueFd near;
    UniqueFd far;
};

/// Closes with a RST.
inline void reset(UniqueFd& socket) {
    const linger none{1, 0};
    check_errno(setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none), "setsockopt");
    socket.reset();
}

/// All octets up to the end, or up to `count`; and why it ended if not with a FIN.
[[nodiscard]] inline std::string receive_all(int fd,
                                             std::size_t count = static_cast<std::size_t>(-1)) {
    std::string text;
    std::string piece(64 * 1024, '\0');
    while (text.size() < count) {
        const ssize_t size = recv(fd, piece.data(), std::min(piece.size(), count - text.size()), 0);
        if (size == 0 || (size == -1 && errno != EINTR)) {
            return size == 0 ? text : text + " " + std::strerror(errno);
        }
        text.append(piece, 0, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
    return text;
}

}  // namespace hello::test

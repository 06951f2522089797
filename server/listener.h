// SPDX-License-Identifier: MIT
//
// Listeners: one listening TCP socket per worker, all on one address by SO_REUSEPORT. Accepted
// connections inherit TCP_NODELAY and TCP_USER_TIMEOUT from them.

#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "unique_fd.h"

namespace hello {

struct ListenOptions {
    std::string host;          ///< address or name; empty: all addresses, IPv6 and IPv4
    std::uint16_t port = 0;    ///< 0: any free port, the same for all listeners
    int backlog = 0;           ///< of each listener
    bool defer_accept = true;  ///< TCP_DEFER_ACCEPT: accept once the request is there (tcp(7))
    bool share_port = false;   ///< another process may already serve the port
    /// For a client to acknowledge what was sent, even after we closed; 0: as the kernel likes.
    int send_timeout_ms = 0;
};

struct Listeners {
    std::vector<UniqueFd> sockets;
    std::string address;  ///< "127.0.0.1:8080", "[::]:8080": as in a URL, the port resolved
    int backlog = 0;      ///< the one in force: no more than net.core.somaxconn
};

/// Opens `count` listening sockets. Throws StartError with cause and cure, among others where the
/// port is in use, which SO_REUSEPORT alone would hide.
[[nodiscard]] Listeners open_listeners(const ListenOptions& options, int count);

}  // namespace hello

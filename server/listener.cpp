// SPDX-License-Identifier: MIT
//
// Listening sockets: see listener.h.

#include "listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "error.h"

namespace hello {
namespace {

/// How long the kernel waits for the request before it accepts without: it rounds up to its
/// SYN-ACK retransmissions, and a late request is served all the same.
constexpr int kDeferAcceptSeconds = 1;

struct Endpoint {
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_storage);

    [[nodiscard]] sockaddr* address() { return reinterpret_cast<sockaddr*>(&storage); }
    [[nodiscard]] std::string text() {
        char host[NI_MAXHOST] = "?";
        char port[NI_MAXSERV] = "?";
        getnameinfo(address(), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
        const bool ipv6 = storage.ss_family == AF_INET6;
        return (ipv6 ? "[" : "") + std::string{host} + (ipv6 ? "]:" : ":") + port;
    }
};

[[noreturn]] void fail(int error, Endpoint& endpoint) {
    std::string why = std::strerror(error);
    if (error == EADDRINUSE) {
        why =
            "the port is in use; cure: stop the other server, choose another --port, or join "
            "it with --share-port";
    } else if (error == EACCES) {
        why = "low ports need CAP_NET_BIND_SERVICE; cure: choose a --port of 1024 or more";
    } else if (error == EADDRNOTAVAIL) {
        why = "this host has no such address; cure: another --host, or none for all addresses";
    }
    throw StartError("cannot listen on " + endpoint.text() + ": " + why);
}

void set_option(const UniqueFd& socket, int level, int name, int value) {
    check_errno(setsockopt(socket.get(), level, name, &value, sizeof value), "setsockopt");
}

UniqueFd open_socket(Endpoint& endpoint) {
    UniqueFd socket(::socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    check_errno(socket.get(), "socket");
    // A restart must not wait for connections in TIME_WAIT, of which we leave many.
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    if (endpoint.storage.ss_family == AF_INET6) {
        set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    }
    return socket;
}

/// Binds and listens without SO_REUSEPORT, which fails where anyone else does: with it the kernel
/// would silently split the clients between them and us.
void require_unused(Endpoint& endpoint) {
    const UniqueFd probe = open_socket(endpoint);
    if (bind(probe.get(), endpoint.address(), endpoint.size) == -1 ||
        listen(probe.get(), 1) == -1) {
        fail(errno, endpoint);
    }
}

UniqueFd open_bound(Endpoint& endpoint, const ListenOptions& options) {
    UniqueFd socket = open_socket(endpoint);
    set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1);
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    // Without it a client that reads nothing holds kernel memory long after we closed.
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, options.send_timeout_ms);
    if (options.defer_accept) {
        set_option(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, kDeferAcceptSeconds);
    }
    if (bind(socket.get(), endpoint.address(), endpoint.size) == -1) {
        fail(errno, endpoint);
    }
    return socket;
}

/// IPv6 may be missing. Where it is only switched off (disable_ipv6), "::" still takes IPv4.
bool has_ipv6() {
    const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    return socket.is_open() &&
           bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
}

Endpoint resolve(const std::string& host, std::uint16_t port) {
    const std::string name = host.empty() ? (has_ipv6() ? "::" : "0.0.0.0") : host;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error != 0) {
        throw StartError("cannot resolve --host " + name + ": " + gai_strerror(error) +
                         "; cure: a numeric address");
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, &freeaddrinfo);
    Endpoint endpoint;
    endpoint.size = found->ai_addrlen;
    std::memcpy(&endpoint.storage, found->ai_addr, found->ai_addrlen);
    return endpoint;
}

int effective_backlog(int asked) {
    std::ifstream file("/proc/sys/net/core/somaxconn");
    int most = 0;
    return file >> most ? std::min(asked, most) : asked;
}

}  // namespace

Listeners open_listeners(const ListenOptions& options, int count) {
    Endpoint endpoint = resolve(options.host, options.port);
    if (!options.share_port) {
        require_unused(endpoint);
    }
    Listeners result;
    for (int i = 0; i < count; ++i) {
        result.sockets.push_back(open_bound(endpoint, options));
        // The others get the port that the first one found.
        check_errno(getsockname(result.sockets.front().get(), endpoint.address(), &endpoint.size),
                    "getsockname");
    }
    for (const UniqueFd& socket : result.sockets) {
        if (listen(socket.get(), options.backlog) == -1) {
            fail(errno, endpoint);
        }
    }
    result.address = endpoint.text();
    result.backlog = effective_backlog(options.backlog);
    return result;
}

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// Tests of listener.h, on ports of loopback that the kernel chooses.

#include "listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "error.h"
#include "support/forked_child.h"
#include "unique_fd.h"

namespace hello::test {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kLoopback = "127.0.0.1";

ListenOptions on_loopback(std::uint16_t port = 0) {
    return {.host = kLoopback, .port = port, .backlog = 16};
}

std::uint16_t port_of(const UniqueFd& socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    check_errno(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size),
                "getsockname");
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    if (address.ss_family == AF_INET6) {
        std::memcpy(&v6, &address, sizeof v6);
        return ntohs(v6.sin6_port);
    }
    std::memcpy(&v4, &address, sizeof v4);
    return ntohs(v4.sin_port);
}

int option_of(const UniqueFd& socket, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    check_errno(getsockopt(socket.get(), level, name, &value, &size), "getsockopt");
    return value;
}

/// A listener as another program would open it.
UniqueFd open_foreign(bool reuse_port) {
    UniqueFd socket(check_errno(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    const int on = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (reuse_port) {
        setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check_errno(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
                "bind");
    check_errno(listen(socket.get(), 1), "listen");
    return socket;
}

/// A connection from 127.0.0.1 to `port`.
UniqueFd connect_to(std::uint16_t port) {
    UniqueFd socket(check_errno(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check_errno(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
                "connect");
    return socket;
}

/// The connection that comes to any of the listeners within two seconds.
UniqueFd accept_any(const Listeners& listeners) {
    std::vector<pollfd> waiting;
    for (const UniqueFd& socket : listeners.sockets) {
        waiting.push_back({socket.get(), POLLIN, 0});
    }
    int ready = -1;
    do {
        ready = poll(waiting.data(), waiting.size(), 2'000);
    } while (ready == -1 && errno == EINTR);  // a ring of another test that is being closed
    REQUIRE(ready == 1);
    for (const pollfd& one : waiting) {
        if (one.revents != 0) {
            return UniqueFd(check_errno(accept(one.fd, nullptr, nullptr), "accept"));
        }
    }
    return UniqueFd();
}

bool has_ipv6_loopback() {
    const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    return socket.is_open() &&
           bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

int read_sysctl(const char* path) {
    std::ifstream file(path);
    int value = -1;
    file >> value;
    return value;
}

/// What refuses `options`, or "" where nothing does.
std::string refusal_of(const ListenOptions& options, int count = 2) {
    try {
        static_cast<void>(open_listeners(options, count));
        return "";
    } catch (const StartError& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("open_listeners opens one listening socket for each worker", "[listener]") {
    for (const int count : {1, 2, 7}) {
        const Listeners listeners = open_listeners(on_loopback(), count);
        REQUIRE(listeners.sockets.size() == static_cast<std::size_t>(count));
        for (const UniqueFd& socket : listeners.sockets) {
            CHECK(option_of(socket, SOL_SOCKET, SO_ACCEPTCONN) == 1);
        }
    }
}

TEST_CASE("open_listeners gives all listeners the one port that was free", "[listener]") {
    const Listeners listeners = open_listeners(on_loopback(), 4);
    std::set<std::uint16_t> ports;
    for (const UniqueFd& socket : listeners.sockets) {
        ports.insert(port_of(socket));
    }
    CHECK(ports.size() == 1);
    CHECK(*ports.begin() != 0);
    CHECK(listeners.address == "127.0.0.1:" + std::to_string(*ports.begin()));
}

TEST_CASE("open_listeners opens the port that was asked for", "[listener]") {
    const std::uint16_t port = port_of(open_foreign(false));  // free again by now
    const Listeners listeners = open_listeners(on_loopback(port), 2);
    CHECK(port_of(listeners.sockets[0]) == port);
    CHECK(port_of(listeners.sockets[1]) == port);
}

TEST_CASE("open_listeners sets the options that serving needs", "[listener]") {
    const Listeners listeners = open_listeners(on_loopback(), 2);
    for (const UniqueFd& socket : listeners.sockets) {
        CHECK(option_of(socket, SOL_SOCKET, SO_REUSEPORT) == 1);
        CHECK(option_of(socket, SOL_SOCKET, SO_REUSEADDR) == 1);
        CHECK(option_of(socket, IPPROTO_TCP, TCP_NODELAY) == 1);
        CHECK((fcntl(socket.get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
}

TEST_CASE("open_listeners defers the accept where that is wanted, and only there", "[listener]") {
    ListenOptions options = on_loopback();
    CHECK(option_of(open_listeners(options, 1).sockets[0], IPPROTO_TCP, TCP_DEFER_ACCEPT) > 0);
    options.defer_accept = false;
    CHECK(option_of(open_listeners(options, 1).sockets[0], IPPROTO_TCP, TCP_DEFER_ACCEPT) == 0);
}

TEST_CASE("open_listeners lets connections inherit TCP_NODELAY", "[listener]") {
    ListenOptions options = on_loopback();
    options.defer_accept = false;
    const Listeners listeners = open_listeners(options, 2);
    const UniqueFd client = connect_to(port_of(listeners.sockets[0]));
    const UniqueFd accepted = accept_any(listeners);
    REQUIRE(accepted.is_open());
    CHECK(option_of(accepted, IPPROTO_TCP, TCP_NODELAY) == 1);
}

TEST_CASE("open_listeners lets connections inherit the time that a client has to acknowledge",
          "[listener]") {
    ListenOptions options = on_loopback();
    options.send_timeout_ms = 7'000;
    options.defer_accept = false;
    const Listeners listeners = open_listeners(options, 2);
    const UniqueFd client = connect_to(port_of(listeners.sockets[0]));
    const UniqueFd accepted = accept_any(listeners);
    REQUIRE(accepted.is_open());
    CHECK(option_of(accepted, IPPROTO_TCP, TCP_USER_TIMEOUT) == 7'000);
}

TEST_CASE("open_listeners accepts a deferred connection once the request is there", "[listener]") {
    const Listeners listeners = open_listeners(on_loopback(), 2);
    const UniqueFd client = connect_to(port_of(listeners.sockets[0]));
    REQUIRE(send(client.get(), "GET", 3, 0) == 3);
    CHECK(accept_any(listeners).is_open());
}

TEST_CASE("open_listeners refuses a port that another program serves", "[listener]") {
    const UniqueFd foreign = open_foreign(false);
    const std::string port = std::to_string(port_of(foreign));
    CHECK_THAT(refusal_of(on_loopback(port_of(foreign))),
               ContainsSubstring("127.0.0.1:" + port) && ContainsSubstring("the port is in use") &&
                   ContainsSubstring("cure: ") && ContainsSubstring("--port") &&
                   ContainsSubstring("--share-port"));
}

TEST_CASE("open_listeners refuses a port that is served with SO_REUSEPORT", "[listener]") {
    // The kernel would allow it, and give each of the two servers a part of the clients.
    const UniqueFd foreign = open_foreign(true);
    CHECK_THAT(refusal_of(on_loopback(port_of(foreign))),
               ContainsSubstring(":" + std::to_string(port_of(foreign)) + ": the port is in use"));
    const Listeners own = open_listeners(on_loopback(), 2);
    CHECK_THAT(refusal_of(on_loopback(port_of(own.sockets[0]))),
               ContainsSubstring(own.address + ": the port is in use"));
}

TEST_CASE("open_listeners refuses all addresses where one is served", "[listener]") {
    const UniqueFd foreign = open_foreign(true);
    ListenOptions options = on_loopback(port_of(foreign));
    for (const char* const host : {"", "0.0.0.0"}) {
        options.host = host;
        CHECK_THAT(refusal_of(options), ContainsSubstring("the port is in use"));
    }
}

TEST_CASE("open_listeners leaves the server alone whose port it refused", "[listener]") {
    ListenOptions options = on_loopback();
    options.defer_accept = false;
    const Listeners listeners = open_listeners(options, 1);
    const std::uint16_t port = port_of(listeners.sockets[0]);
    CHECK(refusal_of(on_loopback(port)) != "");
    for (int i = 0; i < 8; ++i) {
        const UniqueFd client = connect_to(port);
        CHECK(accept_any(listeners).is_open());
    }
}

TEST_CASE("open_listeners joins a port that is shared", "[listener]") {
    const Listeners old_server = open_listeners(on_loopback(), 2);
    ListenOptions options = on_loopback(port_of(old_server.sockets[0]));
    options.share_port = true;
    const Listeners new_server = open_listeners(options, 2);
    CHECK(new_server.address == old_server.address);
}

TEST_CASE("open_listeners cannot join who does not share", "[listener]") {
    const UniqueFd foreign = open_foreign(false);
    ListenOptions options = on_loopback(port_of(foreign));
    options.share_port = true;
    CHECK_THAT(refusal_of(options), ContainsSubstring("the port is in use"));
}

TEST_CASE("open_listeners needs no other server to share a port with", "[listener]") {
    ListenOptions options = on_loopback();
    options.share_port = true;
    CHECK(open_listeners(options, 2).sockets.size() == 2);
}

TEST_CASE("open_listeners opens a port again at once, for all its old connections", "[listener]") {
    ListenOptions options = on_loopback();
    options.defer_accept = false;
    {
        const Listeners listeners = open_listeners(options, 1);
        options.port = port_of(listeners.sockets[0]);
        const UniqueFd client = connect_to(options.port);
        UniqueFd server = accept_any(listeners);
        server.reset();  // who closes first is left in TIME_WAIT
        char octet = 0;
        CHECK(recv(client.get(), &octet, 1, 0) == 0);
    }
    CHECK(refusal_of(options) == "");
}

TEST_CASE("open_listeners keeps no descriptor of a port it refused", "[listener]") {
    const UniqueFd foreign = open_foreign(true);
    const int before = dup(foreign.get());
    close(before);
    CHECK(refusal_of(on_loopback(port_of(foreign)), 3) != "");
    const int after = dup(foreign.get());
    close(after);
    CHECK(after == before);
}

TEST_CASE("open_listeners listens on an IPv6 address", "[listener]") {
    if (!has_ipv6_loopback()) {
        SKIP("this host has no ::1");
    }
    ListenOptions options = on_loopback();
    options.host = "::1";
    const Listeners listeners = open_listeners(options, 2);
    CHECK(listeners.address == "[::1]:" + std::to_string(port_of(listeners.sockets[0])));
    CHECK(port_of(listeners.sockets[0]) == port_of(listeners.sockets[1]));
}

TEST_CASE("open_listeners without a host serves IPv4, and IPv6 where it is there", "[listener]") {
    ListenOptions options = on_loopback();
    options.host = "";
    options.defer_accept = false;
    const Listeners listeners = open_listeners(options, 2);
    const std::string port = std::to_string(port_of(listeners.sockets[0]));
    CHECK((listeners.address == "[::]:" + port || listeners.address == "0.0.0.0:" + port));
    CHECK((listeners.address.front() == '[') == has_ipv6_loopback());
    const UniqueFd client = connect_to(port_of(listeners.sockets[0]));
    CHECK(accept_any(listeners).is_open());
}

TEST_CASE("open_listeners takes a name for a host", "[listener]") {
    ListenOptions options = on_loopback();
    options.host = "localhost";
    const Listeners listeners = open_listeners(options, 1);
    const std::string port = ":" + std::to_string(port_of(listeners.sockets[0]));
    CHECK((listeners.address == "127.0.0.1" + port || listeners.address == "[::1]" + port));
}

TEST_CASE("open_listeners refuses a host that is neither a name nor an address", "[listener]") {
    for (const char* const host : {"256.1.1.1.", "a b", "[::1]", "127.0.0.1:80", ":::"}) {
        ListenOptions options = on_loopback();
        options.host = host;
        INFO(host);
        CHECK_THAT(refusal_of(options),
                   ContainsSubstring("cannot resolve --host " + options.host) &&
                       ContainsSubstring("cure: a numeric address"));
    }
}

TEST_CASE("open_listeners refuses an address that is not one of this host", "[listener]") {
    if (read_sysctl("/proc/sys/net/ipv4/ip_nonlocal_bind") == 1) {
        SKIP("net.ipv4.ip_nonlocal_bind allows any address");
    }
    ListenOptions options = on_loopback(8080);
    options.host = "192.0.2.1";  // RFC 5737: nobody's
    CHECK_THAT(refusal_of(options), ContainsSubstring("192.0.2.1:8080") &&
                                        ContainsSubstring("no such address") &&
                                        ContainsSubstring("cure: another --host"));
    options.share_port = true;
    CHECK_THAT(refusal_of(options), ContainsSubstring("no such address"));
}

TEST_CASE("open_listeners says that low ports need a privilege", "[listener]") {
    if (read_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start") <= 1) {
        SKIP("net.ipv4.ip_unprivileged_port_start allows any port");
    }
    const ChildResult child = run_in_child([] {
        if (geteuid() == 0) {
            check_errno(setgid(65534), "setgid");
            check_errno(setuid(65534), "setuid");
        }
        return refusal_of(on_loopback(1));
    });
    REQUIRE(child.ended_well());
    CHECK_THAT(child.text, ContainsSubstring("127.0.0.1:1: ") &&
                               ContainsSubstring("CAP_NET_BIND_SERVICE") &&
                               ContainsSubstring("1024 or more"));
}

TEST_CASE("open_listeners tells the backlog that is in force", "[listener]") {
    const int most = read_sysctl("/proc/sys/net/core/somaxconn");
    REQUIRE(most > 16);
    ListenOptions options = on_loopback();
    CHECK(open_listeners(options, 1).backlog == 16);
    options.backlog = most;
    CHECK(open_listeners(options, 1).backlog == most);
    options.backlog = most + 1;
    CHECK(open_listeners(options, 1).backlog == most);
}

TEST_CASE("open_listeners gives each listener the backlog", "[listener]") {
    ListenOptions options = on_loopback();
    options.backlog = 5;
    const Listeners listeners = open_listeners(options, 2);
    for (const UniqueFd& socket : listeners.sockets) {
        tcp_info info{};
        socklen_t size = sizeof info;
        REQUIRE(getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
        CHECK(info.tcpi_sacked == 5);  // of a listener: the backlog (tcp_get_info())
    }
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Swarm: see swarm.h.

#include "support/swarm.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <catch2/catch_test_macros.hpp>

namespace hello::test {
namespace {

constexpr std::size_t kConnectsAtATime = 128;  // fewer than the smallest usual backlog
constexpr std::size_t kDripsAtATime = 512;
constexpr std::size_t kReceivedMax = 4096;
constexpr std::uint32_t kFirstSource = 0x7f000101;  // 127.0.1.1
constexpr std::uint32_t kSources = 8;
constexpr rlim_t kDescriptorsForOthers = 200;

[[noreturn]] void throw_errno(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in address_of(std::uint32_t host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host);
    address.sin_port = htons(port);
    return address;
}

/// The statuses of all status lines: "200 408 ". Bodies of the tests hold none.
std::string statuses_of(const std::string& received) {
    constexpr std::string_view kVersion = "HTTP/1.1 ";
    std::string statuses;
    for (std::size_t at = received.find(kVersion); at != std::string::npos;
         at = received.find(kVersion, at + 1)) {
        statuses += received.substr(at + kVersion.size(), 3) + " ";
    }
    return statuses;
}

}  // namespace

std::string SwarmReport::summary() const {
    std::ostringstream text;
    for (const auto& [how, count] : ends) {
        text << count << " x \"" << how << "\", ";
    }
    text << "after " << shortest.count() << " to " << longest.count() << " ms, " << drips
         << " drips";
    return text.str();
}

Swarm::Swarm(std::uint16_t port, SwarmPlan plan)
    : port_(port), plan_(std::move(plan)), clients_(plan_.count) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) {
        throw_errno("epoll_create1");
    }
    thread_ = std::thread([this] { run(); });
}

Swarm::~Swarm() {
    static_cast<void>(finish());
    ::close(epoll_);
}

SwarmReport Swarm::finish() {
    stop_ = true;
    if (thread_.joinable()) {
        thread_.join();
        close_all();
    }
    return report_;
}

void Swarm::run() {
    while (!stop_ && !all_ended()) {
        if (opened_ == connected_ && connected_ < plan_.count) {
            connect_some();
            drips_start_ = Clock::now();
        } else if (!plan_.drip.empty() && all_opened()) {
            drip();
        }
        wait_and_take();
    }
}

void Swarm::connect_some() {
    const std::size_t until = std::min(connected_ + kConnectsAtATime, plan_.count);
    for (; connected_ < until; ++connected_) {
        connect_one(clients_[connected_], connected_);
    }
}

void Swarm::connect_one(Client& client, std::size_t index) {
    client.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (plan_.receive_buffer_bytes > 0) {
        setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &plan_.receive_buffer_bytes,
                   sizeof plan_.receive_buffer_bytes);
    }
    // The port is chosen when the other end is known: so each may serve several connections.
    setsockopt(client.fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    const auto host = kFirstSource + static_cast<std::uint32_t>(index) % kSources;
    const sockaddr_in source = address_of(host, 0);
    const sockaddr_in server = address_of(INADDR_LOOPBACK, port_);
    const auto* from = reinterpret_cast<const sockaddr*>(&source);
    const auto* to = reinterpret_cast<const sockaddr*>(&server);
    epoll_event interest{};
    interest.events = EPOLLOUT;
    interest.data.u64 = index;
    const bool begun = client.fd >= 0 && bind(client.fd, from, sizeof source) == 0 &&
                       (connect(client.fd, to, sizeof server) == 0 || errno == EINPROGRESS) &&
                       epoll_ctl(epoll_, EPOLL_CTL_ADD, client.fd, &interest) == 0;
    if (!begun) {
        open(client);
        end(client, "not connected");
    }
}

void Swarm::send_opening(Client& client, std::size_t index) {
    const std::string& opening = plan_.openings[index % plan_.openings.size()];
    const std::string_view rest = std::string_view(opening).substr(client.sent);
    const ssize_t count = ::send(client.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    client.sent += count > 0 ? static_cast<std::size_t>(count) : 0;
    open(client);  // what the peer does not take now is sent later
    epoll_event interest{};
    interest.events = (plan_.reads ? static_cast<unsigned>(EPOLLIN) : 0U) |
                      (client.sent < opening.size() ? static_cast<unsigned>(EPOLLOUT) : 0U);
    interest.data.u64 = index;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, client.fd, &interest);
}

/// The drips of a round are spread evenly over the pause.
void Swarm::drip() {
    const auto passed = std::chrono::duration<double>(Clock::now() - drips_start_);
    const auto pause = std::chrono::duration<double>(plan_.drip_pause);
    const auto due = static_cast<std::uint64_t>(passed / pause * static_cast<double>(plan_.count));
    const std::uint64_t until = std::min(due, drips_begun_ + kDripsAtATime);
    for (; drips_begun_ < until; ++drips_begun_) {
        drip_one(clients_[drips_begun_ % plan_.count]);
    }
}

void Swarm::drip_one(Client& client) {
    if (client.end.empty() &&
        ::send(client.fd, plan_.drip.data(), plan_.drip.size(), MSG_NOSIGNAL) > 0) {
        ++report_.drips;
    }
}

void Swarm::wait_and_take() {
    std::array<epoll_event, 256> events{};
    const int count = epoll_wait(epoll_, events.data(), events.size(), 1);
    for (int index = 0; index < count; ++index) {
        const epoll_event& event = events[static_cast<std::size_t>(index)];
        Client& client = clients_[event.data.u64];
        const bool failed = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
        if ((event.events & EPOLLIN) != 0 || failed) {
            take(client);
        }
        if ((event.events & EPOLLOUT) != 0 && client.end.empty()) {
            send_opening(client, event.data.u64);
        }
    }
}

void Swarm::take(Client& client) {
    std::array<char, 16384> bytes{};
    const ssize_t count = recv(client.fd, bytes.data(), bytes.size(), 0);
    if (count > 0) {
        const auto size = static_cast<std::size_t>(count);
        client.received.append(bytes.data(), std::min(size, kReceivedMax - client.received.size()));
    } else if (count == 0) {
        end(client, "FIN");
    } else if (errno != EAGAIN && errno != EINTR) {
        open(client);
        end(client, "RST");
    }
}

void Swarm::open(Client& client) {
    if (!client.opened) {
        client.opened = true;
        client.opened_at = Clock::now();
        ++opened_;
    }
}

void Swarm::end(Client& client, const char* how) {
    const Milliseconds lasted = since(client.opened_at);
    report_.longest = std::max(report_.longest, lasted);
    report_.shortest = ended_ == 0 ? lasted : std::min(report_.shortest, lasted);
    client.end = how;
    ::close(client.fd);
    ++ended_;
}

void Swarm::close_all() {
    for (Client& client : clients_) {
        if (client.end.empty()) {
            client.end = client.opened ? "open" : "never connected";
            if (client.fd >= 0) {
                ::close(client.fd);
            }
        }
        ++report_.ends[statuses_of(client.received) + client.end];
    }
}

std::size_t affordable_connections(std::size_t wanted) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t all = limit.rlim_max - std::min(limit.rlim_max, kDescriptorsForOthers);
    if (all < wanted / 10) {
        SKIP("at most " << limit.rlim_max << " descriptors for " << wanted << " connections");
    }
    if (all < wanted) {
        WARN("at most " << limit.rlim_max << " descriptors: " << all << " connections, not "
                        << wanted);
        return static_cast<std::size_t>(all);
    }
    return wanted;
}

}  // namespace hello::test

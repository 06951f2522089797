// SPDX-License-Identifier: MIT
//
// Tests of health_check.h, against servers of a few lines.

#include "health_check.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "error.h"
#include "support/captured_stream.h"
#include "support/forked_child.h"
#include "unique_fd.h"

namespace hello::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kGood =
    "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 2\r\n"
    "Connection: close\r\n\r\nHi";

/// A socket that listens on loopback, on a port that was free.
class Port {
public:
    explicit Port(int family = AF_INET)
        : socket_(check_errno(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")) {
        sockaddr_storage address{};
        socklen_t size = sizeof address;
        if (family == AF_INET6) {
            sockaddr_in6 v6{};
            v6.sin6_family = AF_INET6;
            v6.sin6_addr = in6addr_loopback;
            std::memcpy(&address, &v6, size = sizeof v6);
        } else {
            sockaddr_in v4{};
            v4.sin_family = AF_INET;
            v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            std::memcpy(&address, &v4, size = sizeof v4);
        }
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        check_errno(bind(socket_.get(), any, size), "bind");
        check_errno(listen(socket_.get(), 4), "listen");
        check_errno(getsockname(socket_.get(), any, &size), "getsockname");
        sockaddr_in same_place{};  // in both families the port is in the same place
        std::memcpy(&same_place, &address, sizeof same_place);
        number_ = ntohs(same_place.sin_port);
    }

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] std::uint16_t number() const { return number_; }
    [[nodiscard]] std::string url(const std::string& host = "127.0.0.1",
                                  const std::string& path = "") const {
        return "http://" + host + ":" + std::to_string(number_) + path;
    }

private:
    UniqueFd socket_;
    std::uint16_t number_ = 0;
};

/// Accepts one connection, reads a request's head, answers and closes.
class OneAnswer {
public:
    explicit OneAnswer(std::string_view answer, int family = AF_INET)
        : port_(family), thread_([this, answer] { serve(answer); }) {}
    OneAnswer(const OneAnswer&) = delete;
    OneAnswer& operator=(const OneAnswer&) = delete;
    ~OneAnswer() {
        if (thread_.joinable()) {
            shutdown(port_.fd(), SHUT_RDWR);  // ends the wait for a connection that never came
            thread_.join();
        }
    }

    [[nodiscard]] const Port& port() const { return port_; }

    /// What was asked, once it was answered.
    [[nodiscard]] std::string request() {
        thread_.join();
        return request_;
    }

private:
    void serve(std::string_view answer) {
        pollfd waiting{port_.fd(), POLLIN, 0};
        if (poll(&waiting, 1, 2'000) != 1) {
            return;
        }
        const UniqueFd client(accept(port_.fd(), nullptr, nullptr));
        if (!client.is_open()) {
            return;
        }
        std::array<char, 512> piece{};
        while (request_.find("\r\n\r\n") == std::string::npos) {
            const ssize_t size = recv(client.get(), piece.data(), piece.size(), 0);
            if (size <= 0) {
                return;
            }
            request_.append(piece.data(), static_cast<std::size_t>(size));
        }
        send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }

    Port port_;
    std::string request_;
    std::thread thread_;
};

struct Health {
    bool good = false;
    std::string err;
};

/// In a process of its own, as it is used, and where no other test's signals or rings interrupt it.
Health check(const std::string& url) {
    const ChildResult child = run_in_child([&url] {
        const CapturedStream err(std::cerr);
        const bool good = check_health(url);
        return (good ? "+" : "-") + err.text();
    });
    REQUIRE(child.ended_well());
    REQUIRE(child.text.size() > 0);
    return {child.text.front() == '+', child.text.substr(1)};
}

/// The family of the address that a name has first.
int family_of(const char* name) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    REQUIRE(getaddrinfo(name, nullptr, &hints, &found) == 0);
    const int family = found->ai_family;
    freeaddrinfo(found);
    return family;
}

bool has_ipv6_loopback() {
    try {
        const Port port(AF_INET6);
        return true;
    } catch (const std::system_error&) {
        return false;
    }
}

}  // namespace

TEST_CASE("check_health is true where the answer is 200, and says nothing", "[health_check]") {
    const OneAnswer server(kGood);
    const Health health = check(server.port().url());
    CHECK(health.good);
    CHECK(health.err.empty());
}

TEST_CASE("check_health asks as HTTP/1.1 wants it", "[health_check]") {
    OneAnswer server(kGood);
    REQUIRE(check(server.port().url("127.0.0.1", "/a/b?c=d")).good);
    const std::string request = server.request();
    CHECK(request.starts_with("GET /a/b?c=d HTTP/1.1\r\nHost: 127.0.0.1"));
    CHECK_THAT(request, ContainsSubstring("\r\nConnection: close\r\n"));
    CHECK(request.ends_with("\r\n\r\n"));
}

TEST_CASE("check_health asks for / where the URL has no path", "[health_check]") {
    OneAnswer server(kGood);
    REQUIRE(check(server.port().url()).good);
    CHECK(server.request().starts_with("GET / HTTP/1.1\r\n"));
}

TEST_CASE("check_health is false where the answer is another, and says so", "[health_check]") {
    for (const std::string_view answer :
         {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n200",
          "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
          "SSH-2.0-OpenSSH_9.2 HTTP/1.1 200 OK\r\n", "HTTP/1.1", "", "\r\n\r\n"}) {
        const OneAnswer server(answer);
        const Health health = check(server.port().url());
        INFO(answer);
        CHECK_FALSE(health.good);
        CHECK(health.err == "hello-uring: check of " + server.port().url() +
                                " failed: the answer is not HTTP/1.1 200\n");
    }
}

TEST_CASE("check_health is true where the answer is short", "[health_check]") {
    const OneAnswer server("HTTP/1.1 200 OK\r\n\r\n");
    CHECK(check(server.port().url()).good);
}

TEST_CASE("check_health is false where nobody listens, and says so", "[health_check]") {
    const std::string url = Port().url();  // the port is closed again
    const auto begin = Clock::now();
    const Health health = check(url);
    CHECK_FALSE(health.good);
    CHECK_THAT(health.err, ContainsSubstring(url) && ContainsSubstring("Connection refused"));
    CHECK(Clock::now() - begin < std::chrono::seconds(2));
}

TEST_CASE("check_health waits three seconds for a server that says nothing", "[health_check]") {
    const Port silent;  // the kernel accepts, and nobody ever answers
    const auto begin = Clock::now();
    const Health health = check(silent.url());
    const auto took = Clock::now() - begin;
    CHECK_FALSE(health.good);
    CHECK_THAT(health.err, ContainsSubstring(silent.url() + " failed: "));
    CHECK(took > std::chrono::milliseconds(2'500));
    CHECK(took < std::chrono::seconds(5));
}

TEST_CASE("check_health takes an IPv6 address in brackets", "[health_check]") {
    if (!has_ipv6_loopback()) {
        SKIP("this host has no ::1");
    }
    OneAnswer server(kGood, AF_INET6);
    REQUIRE(check(server.port().url("[::1]", "/x")).good);
    CHECK(server.request().starts_with("GET /x HTTP/1.1\r\nHost: [::1]"));
}

TEST_CASE("check_health takes a name", "[health_check]") {
    const OneAnswer server(kGood, family_of("localhost"));
    CHECK(check(server.port().url("localhost", "/")).good);
}

TEST_CASE("check_health without a port asks port 80", "[health_check]") {
    // Whoever listens there or not: the form of the URL is not what is refused.
    const Health health = check("http://127.0.0.2/");
    CHECK(health.err.find("not a URL") == std::string::npos);
}

TEST_CASE("check_health refuses what is no URL of its form", "[health_check]") {
    for (const char* const url :
         {"", "127.0.0.1:80", "http://", "http:///path", "https://127.0.0.1/", "ttp://a/",
          "http://::1/", "http://[]:80/", "http://a/x y", "http://a/x\r\nEvil: 1"}) {
        const Health health = check(url);
        INFO(url);
        CHECK_FALSE(health.good);
        CHECK_THAT(health.err, ContainsSubstring("not a URL of the form http://HOST"));
    }
}

TEST_CASE("check_health refuses a port that is no number", "[health_check]") {
    for (const char* const url : {"http://127.0.0.1:port/", "http://127.0.0.1:-1/",
                                  "http://127.0.0.1:80path", "http://[::1]x:80/"}) {
        const Health health = check(url);
        INFO(url);
        CHECK_FALSE(health.good);
        CHECK(health.err.starts_with("hello-uring: check of " + std::string(url) + " failed: "));
    }
}

TEST_CASE("check_health says that a name cannot be resolved", "[health_check]") {
    const Health health = check("http://256.1.1.1./");
    CHECK_FALSE(health.good);
    CHECK_THAT(health.err, ContainsSubstring("cannot resolve 256.1.1.1."));
}

TEST_CASE("check_health names the port in Host, where it is not 80", "[health_check]") {
    // RFC 9110 section 7.2: Host holds the authority of the target, the port included.
    OneAnswer server(kGood);
    REQUIRE(check(server.port().url()).good);
    CHECK_THAT(
        server.request(),
        ContainsSubstring("Host: 127.0.0.1:" + std::to_string(server.port().number()) + "\r\n"));
}

// getaddrinfo(3) takes the port modulo 65536, so check_health used to ask another server.
TEST_CASE("check_health refuses a port that does not exist", "[health_check]") {
    const OneAnswer server(kGood);
    const std::string beyond = std::to_string(65'536 + server.port().number());
    CHECK_FALSE(check("http://127.0.0.1:" + beyond + "/").good);
}

}  // namespace hello::test

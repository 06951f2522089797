// SPDX-License-Identifier: MIT
//
// Tests of worker.h: a worker in its thread, with either engine, when things go wrong that no
// client can bring about.

#include "worker.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "support/captured_log.h"
#include "support/need_io_uring.h"
#include "support/scripted_kernel.h"
#include "support/tcp.h"

namespace hello::test {
namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A worker that serves as long as this lives.
class Served {
public:
    explicit Served(EngineKind engine) {
        if (engine == EngineKind::IoUring) {
            need_io_uring();
        }
        config_.engine = engine;
        config_.connections_max = 100;
        worker_.emplace(config_, crew_, 0, listener_.release());
        std::promise<void> prepared;
        thread_ = std::thread([&] {
            worker_->prepare();
            prepared.set_value();
            works_ = worker_->run();
        });
        prepared.get_future().get();
    }
    Served(const Served&) = delete;
    Served& operator=(const Served&) = delete;
    ~Served() { stop(); }

    /// A client; a receive that takes longer than it should fails.
    [[nodiscard]] UniqueFd connect() {
        UniqueFd client = listener_.connect();
        const timeval patience{10, 0};
        check_errno(setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience),
                    "setsockopt");
        return client;
    }
    [[nodiscard]] TcpListener& listener() { return listener_; }
    [[nodiscard]] const WorkerStats& stats() const { return worker_->stats(); }

    /// Returns what run() did.
    bool stop() {
        if (thread_.joinable()) {
            worker_->drain();
            thread_.join();
        }
        return works_;
    }
    /// Waits for run() to return by itself.
    bool wait() {
        thread_.join();
        return works_;
    }
    [[nodiscard]] std::string log() const { return log_.text(); }

private:
    CapturedLog log_;
    TcpListener listener_;
    ServerConfig config_;
    Crew crew_{1};
    std::optional<Worker> worker_;
    bool works_ = false;
    std::thread thread_;
};

/// Asks once; the status of the answer.
std::string ask(const UniqueFd& client) {
    if (send(client.get(), kGet.data(), kGet.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(kGet.size())) {
        return "not sent";
    }
    std::string answer(4096, '\0');
    const ssize_t size = recv(client.get(), answer.data(), answer.size(), 0);
    return size < 12 ? "no answer" : answer.substr(9, 3);
}

/// Whether in the end nobody can connect: the kernel takes a ring apart in its own time.
bool comes_to_refuse(Served& served) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
        try {
            static_cast<void>(served.connect());
        } catch (const std::system_error&) {
            return true;
        }
    }
    return false;
}

/// The descriptor at the other end of `client`, in this process.
int other_end(const UniqueFd& client) {
    sockaddr_in wanted{};
    socklen_t size = sizeof wanted;
    check_errno(getsockname(client.get(), reinterpret_cast<sockaddr*>(&wanted), &size),
                "getsockname");
    for (int fd = 3; fd < 1000; ++fd) {
        sockaddr_in peer{};
        size = sizeof peer;
        if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
            peer.sin_family == AF_INET && peer.sin_port == wanted.sin_port) {
            return fd;
        }
    }
    return -1;
}

}  // namespace

TEST_CASE("Worker answers, and ends when it is drained", "[worker]") {
    Served served(GENERATE(EngineKind::IoUring, EngineKind::Epoll));
    const UniqueFd client = served.connect();
    CHECK(ask(client) == "200");
    CHECK(ask(client) == "200");
    CHECK(served.stop());
    CHECK(receive_all(client.get()).empty());
    CHECK(served.log().empty());
}

TEST_CASE("Worker serves on where entering the ring fails for the moment", "[worker][kernel]") {
    Served served(EngineKind::IoUring);
    const UniqueFd client = served.connect();
    CHECK(ask(client) == "200");
    for (const int result : {-EINTR, -EAGAIN, -EBUSY, -ETIME}) {
        INFO(std::strerror(-result));
        const FailingEnter failing(result, 50);
        CHECK(ask(client) == "200");
        const UniqueFd other = served.connect();
        CHECK(ask(other) == "200");
        CHECK(failing.failed() > 0);
    }
    CHECK(served.stats().send_errors.get() == 0);
    CHECK(served.stop());
    CHECK(served.log().empty());
}

// Its clients used to wait for as long as the other workers took to drain.
TEST_CASE("Worker whose ring is beyond use says so, lets its clients go and ends",
          "[worker][kernel]") {
    for (const int result : {-EBADR, -EEXIST}) {
        INFO(std::strerror(-result));
        Served served(EngineKind::IoUring);
        const UniqueFd idle = served.connect();
        CHECK(ask(idle) == "200");
        const UniqueFd client = served.connect();
        CHECK(ask(client) == "200");
        const FailingEnter failing(result);
        CHECK(send(client.get(), kGet.data(), kGet.size(), MSG_NOSIGNAL) > 0);
        CHECK_FALSE(served.wait());
        CHECK(served.log().find("[critical] io_uring") == 0);
        CHECK(served.log().find(std::strerror(-result)) != std::string::npos);
        CHECK(receive_all(idle.get()).empty());
        CHECK(receive_all(client.get()).empty());
        CHECK(comes_to_refuse(served));
    }
}

TEST_CASE("Worker reports a descriptor that was closed behind its back", "[worker]") {
    const EngineKind engine = GENERATE(EngineKind::IoUring, EngineKind::Epoll);
    Served served(engine);
    const UniqueFd client = served.connect();
    CHECK(ask(client) == "200");
    const UniqueFd other = served.connect();
    CHECK(ask(other) == "200");
    const int fd = other_end(client);
    REQUIRE(fd >= 0);
    REQUIRE(close(fd) == 0);  // from here on nothing is opened, for it would get that number
    if (engine == EngineKind::IoUring) {  // whose receive keeps the socket, and hears the FIN
        shutdown(client.get(), SHUT_WR);
        while (served.stats().connections_closed.get() == 0) {
            REQUIRE(ask(other) == "200");
        }
        CHECK(ask(other) == "200");
    }
    CHECK(served.stop());
    CHECK(served.log() == "[error] close: Bad file descriptor\n");
}

}  // namespace hello::test

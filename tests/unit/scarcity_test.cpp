// SPDX-License-Identifier: MIT
//
// Tests of connections.h on real engines that are short of everything: a ring with two buffers, a
// completion queue for 16. Nobody is lost, and nobody waits for long.

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "acceptor.h"
#include "connections.h"
#include "support/engine_driver.h"
#include "support/tcp.h"

namespace hello::test {
namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// What a worker does, in the test's own thread.
class Counter {
public:
    Counter(EngineKind kind, UringSizes sizes) : engine_(kind, sizes) {
        acceptor_.manage(*engine_, true);
    }

    [[nodiscard]] UniqueFd connect() { return listener_.connect(); }
    [[nodiscard]] const WorkerStats& stats() { return engine_.stats(); }

    void turn() {
        REQUIRE(engine_->turn(false) == 0);
        for (auto batch = engine_->take(); !batch.empty(); batch = engine_->take()) {
            for (const Completion& completion : batch) {
                dispatch(completion);
            }
        }
        connections_.advance_touched();
        acceptor_.manage(*engine_, true);
    }

private:
    void dispatch(const Completion& completion) {
        if (completion.tag.op == Op::Accept) {
            if (const int fd = acceptor_.on_completion(completion); fd >= 0) {
                connections_.admit(fd);
            }
        } else if (completion.tag.op != Op::Wake) {
            connections_.on_completion(completion);
        }
    }

    static ServerConfig make_config() {
        ServerConfig config;
        config.connections_max = 1000;
        return config;
    }

    ServerConfig config_ = make_config();
    Crew crew_{1};
    TcpListener listener_;
    EngineDriver engine_;
    Connections connections_{config_, crew_, 0, *engine_, engine_.stats()};
    Acceptor acceptor_{listener_.release(), engine_.stats()};
};

/// How many answers have come to `client`, without waiting.
std::size_t take_answers(const UniqueFd& client) {
    std::string text(64 * 1024, '\0');
    const ssize_t size = recv(client.get(), text.data(), text.size(), MSG_DONTWAIT);
    std::size_t count = 0;
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    for (std::size_t at = 0; (at = text.find("HTTP/1.1 200 OK", at)) != std::string::npos; ++at) {
        ++count;
    }
    return count;
}

/// All clients ask at the same moment, `rounds` times. Returns how many turns the slowest round
/// took; fails where somebody gets no answer.
int serve_all(Counter& counter, const std::vector<UniqueFd>& clients, int rounds) {
    int slowest = 0;
    for (int round = 0; round < rounds; ++round) {
        for (const UniqueFd& client : clients) {
            REQUIRE(send(client.get(), kGet.data(), kGet.size(), 0) > 0);
        }
        std::size_t answers = 0;
        int turns = 0;
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (answers < clients.size()) {
            REQUIRE(std::chrono::steady_clock::now() < deadline);
            counter.turn();
            ++turns;
            for (const UniqueFd& client : clients) {
                answers += take_answers(client);
            }
        }
        REQUIRE(answers == clients.size());
        slowest = turns > slowest ? turns : slowest;
    }
    return slowest;
}

std::vector<UniqueFd> connect_many(Counter& counter, int count) {
    std::vector<UniqueFd> clients;
    for (int i = 0; i < count; ++i) {
        clients.push_back(counter.connect());
    }
    return clients;
}

}  // namespace

TEST_CASE("Connections lose and delay nobody where there are two buffers", "[scarcity][kernel]") {
    Counter counter(EngineKind::IoUring, {64, 1024, 2});
    const std::vector<UniqueFd> clients = connect_many(counter, 100);
    const int turns = serve_all(counter, clients, 10);
    CHECK(turns <= 100);  // at least one is served in each turn
    CHECK(counter.stats().buffers_exhausted.get() > 0);
    CHECK(counter.stats().requests.get() == 1000);
    CHECK(counter.stats().connections_closed.get() == 0);
    CHECK(counter.stats().receive_errors.get() == 0);
    CHECK(counter.stats().buffers_available.get() == 2);
}

TEST_CASE("Connections lose nobody where the completion queue overflows", "[scarcity][kernel]") {
    Counter counter(EngineKind::IoUring, {8, 16, 256});
    const std::vector<UniqueFd> clients = connect_many(counter, 200);
    static_cast<void>(serve_all(counter, clients, 10));
    CHECK(counter.stats().completions_overflowed.get() > 0);
    CHECK(counter.stats().connections_accepted.get() == 200);
    CHECK(counter.stats().requests.get() == 2000);
    CHECK(counter.stats().connections_closed.get() == 0);
    CHECK(counter.stats().send_errors.get() == 0);
    CHECK(counter.stats().buffers_available.get() == 256);
}

TEST_CASE("Connections lose nobody where everything is short at once", "[scarcity][kernel]") {
    Counter counter(EngineKind::IoUring, {8, 16, 1});
    const std::vector<UniqueFd> clients = connect_many(counter, 50);
    static_cast<void>(serve_all(counter, clients, 5));
    CHECK(counter.stats().requests.get() == 250);
    CHECK(counter.stats().connections_closed.get() == 0);
    CHECK(counter.stats().buffers_available.get() == 1);
}

TEST_CASE("Connections of more clients than one turn has buffers are all served", "[scarcity]") {
    Counter counter(GENERATE(EngineKind::IoUring, EngineKind::Epoll), {});
    const std::vector<UniqueFd> clients = connect_many(counter, 400);
    CHECK(serve_all(counter, clients, 5) <= 40);
    CHECK(counter.stats().requests.get() == 2000);
    CHECK(counter.stats().connections_closed.get() == 0);
}

}  // namespace hello::test

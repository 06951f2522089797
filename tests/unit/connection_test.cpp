// SPDX-License-Identifier: MIT
//
// Tests of connection.h: the pool; what connections do is tested with whatever does it.

#include "connection.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/allocation_counter.h"

namespace hello::test {
namespace {

const HttpLimits kLimits;

/// What a completion remembers of a connection.
struct Name {
    explicit Name(const Connection& connection)
        : slot(connection.slot), generation(connection.generation) {}
    [[nodiscard]] Connection* in(ConnectionPool& pool) const { return pool.find(slot, generation); }
    std::uint32_t slot;
    std::uint32_t generation;
};

std::multiset<const Connection*> visited(ConnectionPool& pool) {
    std::multiset<const Connection*> connections;
    pool.for_each([&](const Connection& connection) { connections.insert(&connection); });
    return connections;
}

/// Opens connections until the pool refuses, but no more than `most`.
std::vector<Connection*> fill(ConnectionPool& pool, std::size_t most) {
    std::vector<Connection*> connections;
    while (connections.size() < most) {
        Connection* const connection = pool.open(static_cast<int>(connections.size()));
        if (connection == nullptr) {
            break;
        }
        connections.push_back(connection);
    }
    return connections;
}

/// Opens and releases at random, beside a map of what should be there.
class PoolAndModel {
public:
    static constexpr std::size_t kOpenMax = 16;

    void step() {
        const bool opens = open_.empty() || (open_.size() < kOpenMax && random_() % 2 == 0);
        opens ? open() : release();
        check();
    }

private:
    void open() {
        Connection* const connection = pool_.open(next_fd_);
        REQUIRE(connection != nullptr);
        const Name name(*connection);
        REQUIRE(connection->fd == next_fd_++);
        REQUIRE(names_.insert({name.slot, name.generation}).second);
        if (free_.empty()) {
            REQUIRE_FALSE(slots_.contains(name.slot));
        } else {
            REQUIRE(name.slot == free_.back());  // last released, first used
            REQUIRE(slots_.at(name.slot) == connection);
            free_.pop_back();
        }
        slots_[name.slot] = connection;
        open_.push_back(name);
    }

    void release() {
        const auto chosen = open_.begin() + static_cast<std::ptrdiff_t>(random_() % open_.size());
        Connection* const connection = chosen->in(pool_);
        REQUIRE(connection != nullptr);
        pool_.release(*connection);
        free_.push_back(chosen->slot);
        gone_.push_back(*chosen);
        open_.erase(chosen);
    }

    void check() {
        REQUIRE(pool_.size() == open_.size());
        std::multiset<const Connection*> expected;
        for (const Name& name : open_) {
            Connection* const found = name.in(pool_);
            REQUIRE(found == slots_.at(name.slot));
            REQUIRE(found == &pool_[name.slot]);
            expected.insert(found);
        }
        REQUIRE(visited(pool_) == expected);
        const auto found = std::find_if(gone_.begin(), gone_.end(), [this](const Name& name) {
            return name.in(pool_) != nullptr;
        });
        REQUIRE(found == gone_.end());
    }

    ConnectionPool pool_{kOpenMax, kLimits};
    std::mt19937 random_{1};  // the same sequence in every run
    int next_fd_ = 3;
    std::vector<Name> open_;
    std::vector<Name> gone_;
    std::vector<std::uint32_t> free_;
    std::map<std::uint32_t, Connection*> slots_;
    std::set<std::pair<std::uint32_t, std::uint32_t>> names_;
};

}  // namespace

TEST_CASE("ConnectionPool opens connections that are as new", "[connection]") {
    ConnectionPool pool(4, kLimits);
    Connection* const connection = pool.open(7);
    REQUIRE(connection != nullptr);
    CHECK(connection->fd == 7);
    CHECK(connection->state == Connection::State::Open);
    CHECK(connection->receiving == ReceiveMode::None);
    CHECK(connection->verdict == HttpSession::Verdict::Read);
    CHECK(connection->waiting == Waiting::Forever);
    CHECK(connection->session.phase() == HttpSession::Phase::Idle);
    CHECK(connection->answers.empty());
    CHECK(connection->in_flight == 0);
    CHECK_FALSE(connection->is_sending());
}

TEST_CASE("ConnectionPool forgets the connection before in a slot", "[connection]") {
    ConnectionPool pool(4, kLimits);
    Connection* const before = pool.open(7);
    static_cast<void>(before->session.feed("GET / HT", before->answers));
    before->answers.push({});
    before->touched = true;
    before->unsent.size = 1;
    pool.release(*before);
    Connection* const after = pool.open(8);
    REQUIRE(after == before);  // the same slot
    CHECK(after->fd == 8);
    CHECK(after->session.phase() == HttpSession::Phase::Idle);
    CHECK(after->answers.empty());
    CHECK_FALSE(after->touched);
    CHECK_FALSE(after->is_sending());
}

TEST_CASE("ConnectionPool finds an open connection by slot and generation", "[connection]") {
    ConnectionPool pool(4, kLimits);
    Connection* const first = pool.open(7);
    Connection* const second = pool.open(8);
    CHECK(first->slot != second->slot);
    CHECK(Name(*first).in(pool) == first);
    CHECK(Name(*second).in(pool) == second);
    CHECK(&pool[first->slot] == first);
    CHECK(&pool[second->slot] == second);
}

TEST_CASE("ConnectionPool finds nothing in a released slot", "[connection]") {
    ConnectionPool pool(4, kLimits);
    Connection* const connection = pool.open(7);
    const Name name(*connection);
    pool.release(*connection);
    CHECK(name.in(pool) == nullptr);
}

TEST_CASE("ConnectionPool finds nothing in a slot that was never used", "[connection]") {
    ConnectionPool pool(4, kLimits);
    const Connection* const connection = pool.open(7);
    for (std::uint32_t generation = 0; generation < 3; ++generation) {
        CHECK(pool.find(connection->slot + 1, generation) == nullptr);
    }
}

TEST_CASE("ConnectionPool finds nothing by the name of a connection before", "[connection]") {
    ConnectionPool pool(4, kLimits);
    std::vector<Name> gone;
    for (int i = 0; i < 100; ++i) {
        Connection* const connection = pool.open(7);
        for (const Name& name : gone) {
            REQUIRE(name.slot == connection->slot);
            REQUIRE(name.in(pool) == nullptr);
        }
        gone.emplace_back(*connection);
        pool.release(*connection);
    }
}

TEST_CASE("ConnectionPool finds nothing by a generation to come", "[connection]") {
    ConnectionPool pool(4, kLimits);
    const Connection* const connection = pool.open(7);
    CHECK(pool.find(connection->slot, connection->generation + 1) == nullptr);
}

TEST_CASE("ConnectionPool uses the slot first that was released last", "[connection]") {
    ConnectionPool pool(8, kLimits);
    const std::vector<Connection*> connections = fill(pool, 4);
    const std::uint32_t first = connections[1]->slot;
    const std::uint32_t second = connections[3]->slot;
    pool.release(*connections[1]);
    pool.release(*connections[3]);
    CHECK(pool.open(9)->slot == second);
    CHECK(pool.open(9)->slot == first);
    CHECK(pool.open(9)->slot == 4);  // only then a new one
}

TEST_CASE("ConnectionPool knows its size", "[connection]") {
    ConnectionPool pool(8, kLimits);
    CHECK(pool.size() == 0);
    const std::vector<Connection*> connections = fill(pool, 3);
    CHECK(pool.size() == 3);
    pool.release(*connections[1]);
    CHECK(pool.size() == 2);
    static_cast<void>(pool.open(9));
    CHECK(pool.size() == 3);
}

TEST_CASE("ConnectionPool keeps connections where they are when it grows", "[connection]") {
    constexpr std::size_t kCount = 1'000;
    ConnectionPool pool(kCount, kLimits);
    const std::vector<Connection*> connections = fill(pool, kCount);
    REQUIRE(connections.size() == kCount);
    CHECK(std::set<Connection*>(connections.begin(), connections.end()).size() == kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
        REQUIRE(connections[i]->fd == static_cast<int>(i));
        REQUIRE(Name(*connections[i]).in(pool) == connections[i]);
    }
}

TEST_CASE("ConnectionPool holds as many connections as it promised", "[connection]") {
    for (const std::size_t count : {1U, 63U, 64U, 65U, 128U, 129U}) {
        ConnectionPool pool(count, kLimits);
        CHECK(fill(pool, count).size() == count);
    }
}

TEST_CASE("ConnectionPool refuses when it is full, until one is released", "[connection]") {
    ConnectionPool pool(100, kLimits);
    const std::vector<Connection*> connections = fill(pool, 100'000);
    REQUIRE(connections.size() < 100'000);
    CHECK(pool.open(9) == nullptr);
    CHECK(pool.size() == connections.size());
    pool.release(*connections[50]);
    CHECK(pool.open(9) == connections[50]);
    CHECK(pool.open(9) == nullptr);
}

TEST_CASE("ConnectionPool takes no memory for connections to come", "[connection]") {
    const std::size_t before = AllocationCounter::bytes_in_use();
    const ConnectionPool pool(65'536, kLimits);
    CHECK(AllocationCounter::bytes_in_use() - before < 64 * 1024);
}

TEST_CASE("ConnectionPool takes no memory for a slot that it has", "[connection]") {
    ConnectionPool pool(4, kLimits);
    pool.release(*pool.open(7));
    const std::size_t before = AllocationCounter::calls();
    pool.release(*pool.open(7));
    const std::size_t calls = AllocationCounter::calls() - before;
    CHECK(calls == 0);
}

TEST_CASE("ConnectionPool visits exactly the open connections", "[connection]") {
    ConnectionPool pool(200, kLimits);
    CHECK(visited(pool).empty());
    const std::vector<Connection*> connections = fill(pool, 130);
    std::multiset<const Connection*> expected;
    for (std::size_t i = 0; i < connections.size(); ++i) {
        if (i % 3 == 0) {
            pool.release(*connections[i]);
        } else {
            expected.insert(connections[i]);
        }
    }
    CHECK(visited(pool) == expected);
}

TEST_CASE("ConnectionPool lets go of a connection while it is visited", "[connection]") {
    ConnectionPool pool(8, kLimits);
    static_cast<void>(fill(pool, 5));
    pool.for_each([&](const Connection& connection) { pool.release(connection); });
    CHECK(pool.size() == 0);
    CHECK(visited(pool).empty());
}

TEST_CASE("ConnectionPool keeps its promises whatever is opened and released", "[connection]") {
    PoolAndModel both;
    for (int step = 0; step < 3'000; ++step) {
        both.step();
    }
}

TEST_CASE("Connection is sending as long as something is unsent", "[connection]") {
    Connection connection(7, 0, kLimits);
    CHECK_FALSE(connection.is_sending());
    connection.unsent = {std::make_unique<char[]>(3), 3};
    CHECK(connection.is_sending());
    connection.unsent = {};
    CHECK_FALSE(connection.is_sending());
}

}  // namespace hello::test

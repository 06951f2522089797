// SPDX-License-Identifier: MIT
//
// Tests of balancer.h. What a balancer counts shows in where it places, and in who may leave.

#include "balancer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <random>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

namespace hello::test {
namespace {

using Workers = std::vector<std::size_t>;
using Counts = std::vector<std::size_t>;

/// Where `count` connections of `self` go.
Workers place_some(Balancer& balancer, std::size_t self, int count) {
    Workers workers;
    for (int i = 0; i < count; ++i) {
        workers.push_back(balancer.place(self));
    }
    return workers;
}

std::size_t spread_of(const Counts& counts) {
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    return *most - *least;
}

/// The emptiest, `self` among equals.
std::size_t expected_place(const Counts& counts, std::size_t self) {
    const auto emptiest = std::min_element(counts.begin(), counts.end());
    return *emptiest < counts[self] ? static_cast<std::size_t>(emptiest - counts.begin()) : self;
}

/// Calls `work(worker)` in one thread for each worker, all at once.
template <typename Work>
void in_threads(std::size_t workers, Work work) {
    std::atomic<std::size_t> waiting{workers};
    std::vector<std::thread> threads;
    for (std::size_t worker = 0; worker < workers; ++worker) {
        threads.emplace_back([&, worker] {
            --waiting;
            while (waiting != 0) {
                std::this_thread::yield();
            }
            work(worker);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace

TEST_CASE("Balancer leaves a connection where it is among equals", "[balancer]") {
    for (std::size_t self = 0; self < 3; ++self) {
        Balancer balancer(3);
        CHECK(balancer.place(self) == self);
    }
}

TEST_CASE("Balancer gives a connection to the emptiest worker", "[balancer]") {
    Balancer balancer(3);
    balancer.add(0);
    balancer.add(0);
    balancer.add(1);
    CHECK(place_some(balancer, 0, 1) == Workers{2});
    CHECK(place_some(balancer, 1, 1) == Workers{1});
    CHECK(place_some(balancer, 0, 1) == Workers{2});
}

TEST_CASE("Balancer puts two connections on two workers, whoever got them", "[balancer]") {
    for (std::size_t first = 0; first < 2; ++first) {
        for (std::size_t second = 0; second < 2; ++second) {
            Balancer balancer(2);
            CHECK(balancer.place(first) != balancer.place(second));
        }
    }
}

TEST_CASE("Balancer places everything with the only worker", "[balancer]") {
    Balancer balancer(1);
    CHECK(place_some(balancer, 0, 5) == Workers{0, 0, 0, 0, 0});
}

TEST_CASE("Balancer fills the worker that lost connections", "[balancer]") {
    Balancer balancer(2);
    static_cast<void>(place_some(balancer, 0, 10));
    balancer.remove(1);
    balancer.remove(1);
    CHECK(place_some(balancer, 0, 3) == Workers{1, 1, 0});
}

TEST_CASE("Balancer counts what comes back from a worker that was not reached", "[balancer]") {
    Balancer balancer(2);
    balancer.add(0);
    REQUIRE(balancer.place(0) == 1);
    balancer.take_back(1, 0);
    CHECK(place_some(balancer, 0, 3) == Workers{1, 1, 0});
}

TEST_CASE("Balancer lets a worker leave that has nothing, and nothing comes any more",
          "[balancer]") {
    Balancer balancer(2);
    CHECK(balancer.leave(1));
    CHECK(balancer.leave(1));
    CHECK(place_some(balancer, 0, 100) == Workers(100, 0));
}

TEST_CASE("Balancer lets no worker leave that a connection may be on its way to", "[balancer]") {
    Balancer balancer(2);
    balancer.add(0);
    REQUIRE(balancer.place(0) == 1);
    CHECK_FALSE(balancer.leave(1));
    CHECK_FALSE(balancer.leave(1));
    balancer.remove(1);
    CHECK(balancer.leave(1));
}

TEST_CASE("Balancer never places one above another by more than one", "[balancer]") {
    std::mt19937 random(1);  // the same sequence in every run
    for (std::size_t workers = 1; workers <= 9; ++workers) {
        Balancer balancer(workers);
        Counts counts(workers);
        std::uniform_int_distribution<std::size_t> any(0, workers - 1);
        for (int placed = 0; placed < 200; ++placed) {
            ++counts.at(balancer.place(any(random)));
            REQUIRE(spread_of(counts) <= 1);
        }
    }
}

TEST_CASE("Balancer places with the emptiest, whatever came and went before", "[balancer]") {
    constexpr std::size_t kWorkers = 4;
    std::mt19937 random(1);  // the same sequence in every run
    std::uniform_int_distribution<std::size_t> any(0, kWorkers - 1);
    Balancer balancer(kWorkers);
    Counts counts(kWorkers);
    for (int step = 0; step < 5'000; ++step) {
        const std::size_t self = any(random);
        const std::size_t other = any(random);
        switch (any(random)) {
            case 0:
                balancer.add(self);
                ++counts[self];
                break;
            case 1:
                if (counts[self] != 0) {
                    balancer.remove(self);
                    --counts[self];
                }
                break;
            case 2:
                if (counts[other] != 0) {
                    balancer.take_back(other, self);
                    --counts[other];
                    ++counts[self];
                }
                break;
            default:
                const std::size_t expected = expected_place(counts, self);
                REQUIRE(balancer.place(self) == expected);
                ++counts[expected];
        }
    }
}

TEST_CASE("Balancer places as evenly when all workers ask at once", "[balancer]") {
    constexpr std::size_t kWorkers = 4;
    constexpr std::size_t kEach = 2'001;
    Balancer balancer(kWorkers);
    std::array<std::atomic<std::size_t>, kWorkers> placed{};
    in_threads(kWorkers, [&](std::size_t self) {
        for (std::size_t i = 0; i < kEach * (self + 1); ++i) {
            ++placed.at(balancer.place(self));
        }
    });
    const Counts counts(placed.begin(), placed.end());
    CHECK(counts[0] + counts[1] + counts[2] + counts[3] == kEach * (1 + 2 + 3 + 4));
    CHECK(spread_of(counts) <= 1);
}

TEST_CASE("Balancer loses no count when all workers come and go at once", "[balancer]") {
    constexpr std::size_t kWorkers = 4;
    Balancer balancer(kWorkers);
    in_threads(kWorkers, [&](std::size_t self) {
        for (int i = 0; i < 1'000; ++i) {
            balancer.add(self);
            balancer.take_back(balancer.place(self), self);
            balancer.remove(self);
            balancer.remove(self);
        }
    });
    for (std::size_t worker = 0; worker < kWorkers; ++worker) {
        CHECK(balancer.leave(worker));  // only who has nothing
    }
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Tests of answer.h.

#include "answer.h"

#include <cstddef>
#include <deque>
#include <random>
#include <set>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/all_answers.h"
#include "support/allocation_counter.h"

namespace hello::test {
namespace {

constexpr Answer kOk{Status::Ok, Persistence::Implied, Content::Full};
constexpr Answer kHead{Status::Ok, Persistence::Implied, Content::HeadOnly};
constexpr Answer kBad{Status::BadRequest, Persistence::Close, Content::Full};

/// Empties the queue; what was in it, in order.
std::vector<Answer> drain(AnswerQueue& queue) {
    std::vector<Answer> answers;
    for (; !queue.empty(); queue.pop()) {
        answers.push_back(queue.front());
    }
    return answers;
}

}  // namespace

TEST_CASE("Answer has an index of its own", "[answer]") {
    std::set<std::size_t> indices;
    for (const Answer& answer : all_answers()) {
        CHECK(answer.index() < kAnswerCount);
        indices.insert(answer.index());
    }
    CHECK(indices.size() == kAnswerCount);
}

TEST_CASE("Answer differs in each of its members", "[answer]") {
    CHECK(kOk == Answer{});
    CHECK_FALSE(kOk == kHead);
    CHECK_FALSE(kOk == Answer{Status::Ok, Persistence::Close, Content::Full});
    CHECK_FALSE(kOk == Answer{Status::Continue, Persistence::Implied, Content::Full});
}

TEST_CASE("AnswerQueue is empty at first", "[answer]") {
    const AnswerQueue queue;
    CHECK(queue.empty());
    CHECK(queue.size() == 0);
}

TEST_CASE("AnswerQueue gives answers back in their order", "[answer]") {
    AnswerQueue queue;
    const std::vector<Answer> answers{kOk, kOk, kHead, kOk, kHead, kHead, kBad};
    for (const Answer& answer : answers) {
        queue.push(answer);
    }
    CHECK(queue.size() == answers.size());
    CHECK(drain(queue) == answers);
    CHECK(queue.empty());
}

TEST_CASE("AnswerQueue can be used again after it was empty", "[answer]") {
    AnswerQueue queue;
    for (int round = 0; round < 3; ++round) {
        queue.push(kHead);
        queue.push(kOk);
        CHECK(drain(queue) == std::vector{kHead, kOk});
    }
}

TEST_CASE("AnswerQueue goes on with a run after part of it was taken", "[answer]") {
    AnswerQueue queue;
    queue.push(kOk);
    queue.push(kHead);
    queue.push(kHead);
    queue.pop();
    queue.pop();
    queue.push(kHead);
    queue.push(kOk);
    CHECK(drain(queue) == std::vector{kHead, kHead, kOk});
}

TEST_CASE("AnswerQueue needs no more memory for many equal answers than for one", "[answer]") {
    AnswerQueue queue;
    queue.push(kOk);
    const std::size_t before = AllocationCounter::calls();
    for (int count = 1; count < 100000; ++count) {
        queue.push(kOk);
    }
    const std::size_t size = queue.size();
    while (!queue.empty()) {
        queue.pop();
    }
    const std::size_t calls = AllocationCounter::calls() - before;
    CHECK(size == 100000);
    CHECK(calls == 0);
}

TEST_CASE("AnswerQueue gives all memory back at its end", "[answer]") {
    const std::size_t before = AllocationCounter::bytes_in_use();
    {
        AnswerQueue queue;
        for (int count = 0; count < 1000; ++count) {
            queue.push(count % 2 == 0 ? kOk : kHead);
        }
    }
    const std::size_t after = AllocationCounter::bytes_in_use();
    CHECK(after == before);
}

TEST_CASE("AnswerQueue stays small when it is never empty", "[answer]") {
    // A client that mixes GET and HEAD and always lags one answer behind, for a long time.
    AnswerQueue queue;
    const std::size_t before = AllocationCounter::bytes_in_use();
    queue.push(kOk);
    for (int count = 0; count < 100000; ++count) {
        queue.push(count % 2 == 0 ? kHead : kOk);
        queue.pop();
    }
    const std::size_t growth = AllocationCounter::bytes_in_use() - before;
    CHECK(queue.size() == 1);
    CHECK(growth <= std::size_t{64} * 1024);
}

TEST_CASE("AnswerQueue behaves like a deque", "[answer]") {
    const std::vector<Answer> kinds{kOk, kHead, kBad};
    std::mt19937 random(9112);
    AnswerQueue queue;
    std::deque<Answer> model;
    for (int step = 0; step < 200000; ++step) {
        const auto dice = random();
        const bool grows = (step / 500) % 2 == 0;  // waves: deep queues, then empty ones
        if (dice % 10 < (grows ? 6U : 4U)) {
            const Answer answer = kinds[random() % (dice % 7 == 0 ? 3 : 1)];
            queue.push(answer);
            model.push_back(answer);
        } else if (!model.empty()) {
            queue.pop();
            model.pop_front();
        }
        REQUIRE(queue.size() == model.size());
        REQUIRE(queue.empty() == model.empty());
        if (!model.empty()) {
            REQUIRE(queue.front() == model.front());
        }
    }
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Tests of deadline_queue.h.

#include "deadline_queue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

namespace hello::test {
namespace {

/// A queue and the entries it links.
class Entries {
public:
    struct Links {
        std::vector<DeadlineLink>* links;
        DeadlineLink& operator()(std::uint32_t slot) const { return (*links)[slot]; }
    };

    explicit Entries(std::size_t count) : links_(count), queue_(Links{&links_}) {}
    Entries(const Entries&) = delete;
    Entries& operator=(const Entries&) = delete;

    DeadlineQueue<Links>& operator*() { return queue_; }
    DeadlineQueue<Links>* operator->() { return &queue_; }

    /// Removes and returns all that are due, in the order in which they are told.
    std::vector<std::uint32_t> take_due(std::uint32_t now_s) {
        std::vector<std::uint32_t> slots;
        for (std::uint32_t slot = queue_.due(now_s); slot != kNoSlot; slot = queue_.due(now_s)) {
            queue_.remove(slot);
            slots.push_back(slot);
        }
        return slots;
    }

private:
    std::vector<DeadlineLink> links_;
    DeadlineQueue<Links> queue_;
};

using Slots = std::vector<std::uint32_t>;
constexpr std::uint32_t kEndOfTime = 0xFFFF'FFFF;

/// The same as a sorted list, the obvious way.
class Model {
public:
    void append(std::uint32_t slot, std::uint32_t due_s) { entries_.emplace_back(slot, due_s); }
    void remove(std::uint32_t slot) {
        entries_.remove_if([slot](const auto& entry) { return entry.first == slot; });
    }
    [[nodiscard]] bool has(std::uint32_t slot) const {
        return std::any_of(entries_.begin(), entries_.end(),
                           [slot](const auto& entry) { return entry.first == slot; });
    }
    [[nodiscard]] std::uint32_t due(std::uint32_t now_s) const {
        return entries_.empty() || entries_.front().second > now_s ? kNoSlot
                                                                   : entries_.front().first;
    }
    [[nodiscard]] Slots slots() const {
        Slots slots;
        std::transform(entries_.begin(), entries_.end(), std::back_inserter(slots),
                       [](const auto& entry) { return entry.first; });
        return slots;
    }

private:
    std::list<std::pair<std::uint32_t, std::uint32_t>> entries_;
};

}  // namespace

TEST_CASE("DeadlineQueue has nothing due while it is empty", "[deadline_queue]") {
    Entries entries(1);
    CHECK(entries->due(0) == kNoSlot);
    CHECK(entries->due(kEndOfTime) == kNoSlot);
}

TEST_CASE("DeadlineQueue tells an entry from its second on", "[deadline_queue]") {
    Entries entries(1);
    entries->append(0, 10);
    CHECK(entries->due(9) == kNoSlot);
    CHECK(entries->due(10) == 0);
    CHECK(entries->due(11) == 0);
}

TEST_CASE("DeadlineQueue keeps a due entry until it is removed", "[deadline_queue]") {
    Entries entries(1);
    entries->append(0, 10);
    CHECK(entries->due(10) == 0);
    CHECK(entries->due(10) == 0);
    entries->remove(0);
    CHECK(entries->due(10) == kNoSlot);
}

TEST_CASE("DeadlineQueue tells those of one second in order of arrival", "[deadline_queue]") {
    Entries entries(3);
    entries->append(2, 5);
    entries->append(0, 5);
    entries->append(1, 5);
    CHECK(entries.take_due(5) == Slots{2, 0, 1});
}

TEST_CASE("DeadlineQueue tells only those that are due", "[deadline_queue]") {
    Entries entries(3);
    entries->append(0, 1);
    entries->append(1, 2);
    entries->append(2, 3);
    CHECK(entries.take_due(0) == Slots{});
    CHECK(entries.take_due(2) == Slots{0, 1});
    CHECK(entries.take_due(2) == Slots{});
    CHECK(entries.take_due(3) == Slots{2});
}

TEST_CASE("DeadlineQueue removes the first, one between, the last and the only",
          "[deadline_queue]") {
    for (std::uint32_t gone = 0; gone < 3; ++gone) {
        Entries entries(3);
        Slots left;
        for (std::uint32_t slot = 0; slot < 3; ++slot) {
            entries->append(slot, slot);
            if (slot != gone) {
                left.push_back(slot);
            }
        }
        entries->remove(gone);
        CHECK(entries.take_due(kEndOfTime) == left);
        entries->append(gone, 3);
        entries->remove(gone);
        CHECK(entries->due(kEndOfTime) == kNoSlot);
    }
}

TEST_CASE("DeadlineQueue takes an entry again behind the others", "[deadline_queue]") {
    Entries entries(3);
    entries->append(0, 1);
    entries->append(1, 2);
    entries->remove(0);
    entries->append(0, 3);
    entries->append(2, 4);
    CHECK(entries.take_due(kEndOfTime) == Slots{1, 0, 2});
}

TEST_CASE("DeadlineQueue is like a sorted list, whatever is done with it", "[deadline_queue]") {
    constexpr std::uint32_t kSlots = 16;
    constexpr int kSteps = 20'000;
    std::mt19937 random(1);  // the same sequence in every run
    const auto below = [&random](std::uint32_t limit) {
        return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random);
    };
    Entries entries(kSlots);
    Model model;
    std::uint32_t last_due_s = 0;
    for (int step = 0; step < kSteps; ++step) {
        const std::uint32_t slot = below(kSlots);
        if (model.has(slot)) {
            entries->remove(slot);
            model.remove(slot);
        } else {
            last_due_s += below(3);
            entries->append(slot, last_due_s);
            model.append(slot, last_due_s);
        }
        const std::uint32_t now_s = last_due_s - std::min(last_due_s, below(30));
        REQUIRE(entries->due(now_s) == model.due(now_s));
        REQUIRE(entries->due(kEndOfTime) == model.due(kEndOfTime));
    }
    CHECK(entries.take_due(kEndOfTime) == model.slots());
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Tests of user_data.h.

#include "user_data.h"

#include <cstdint>
#include <set>
#include <vector>

#include <catch2/catch_test_macros.hpp>

namespace hello::test {
namespace {

constexpr std::uint32_t kLastGeneration = 0xFFFFFF;
constexpr std::uint32_t kLastSlot = 0xFFFFFFFF;

const std::vector<Op>& operations() {
    static const std::vector<Op> kOperations{Op::Accept, Op::Receive, Op::SendNow, Op::Send,
                                             Op::Cancel, Op::Close,   Op::HandOff, Op::Adopt,
                                             Op::Tick,   Op::Wake};
    return kOperations;
}

}  // namespace

TEST_CASE("UserData comes back as it was sent", "[user_data]") {
    for (const Op op : operations()) {
        for (const std::uint32_t generation : {0U, 1U, 0x800000U, kLastGeneration}) {
            for (const std::uint32_t slot : {0U, 1U, 0x80000000U, kLastSlot}) {
                const UserData data{op, generation, slot};
                CHECK(UserData::decode(data.encode()) == data);
            }
        }
    }
}

TEST_CASE("UserData has its parts where the header draws them", "[user_data]") {
    const std::uint64_t bits = UserData{Op::Wake, 0xABCDEF, 0x12345678}.encode();
    CHECK(bits >> 56U == static_cast<std::uint64_t>(Op::Wake));
    CHECK((bits >> 32U & 0xFFFFFFU) == 0xABCDEF);
    CHECK((bits & 0xFFFFFFFFU) == 0x12345678);
}

TEST_CASE("UserData keeps a generation beyond 24 bits out of the operation", "[user_data]") {
    const UserData data = UserData::decode(UserData{Op::Accept, kLastGeneration + 2, 7}.encode());
    CHECK(data == UserData{Op::Accept, 1, 7});
}

TEST_CASE("UserData of different things differ", "[user_data]") {
    std::set<std::uint64_t> seen;
    for (const Op op : operations()) {
        for (std::uint32_t generation = 0; generation < 10; ++generation) {
            for (std::uint32_t slot = 0; slot < 10; ++slot) {
                seen.insert(UserData{op, generation, slot}.encode());
            }
        }
    }
    CHECK(seen.size() == operations().size() * 100);
}

TEST_CASE("UserData tells a stale completion from a fresh one", "[user_data]") {
    const UserData stale{Op::Receive, 41, 5};
    const UserData fresh{Op::Receive, 42, 5};
    CHECK(stale.encode() != fresh.encode());
    CHECK(UserData::decode(stale.encode()).slot == UserData::decode(fresh.encode()).slot);
    CHECK(UserData::decode(stale.encode()).generation !=
          UserData::decode(fresh.encode()).generation);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Slots for connections: see connection.h.

#include "connection.h"

#include <new>

#include "user_data.h"

namespace hello {

ConnectionPool::ConnectionPool(std::size_t count_max, const HttpLimits& limits) : limits_(limits) {
    chunks_.reserve((count_max >> kChunkBits) + 1);  // growing never moves or throws later
}

Connection* ConnectionPool::open(int fd) noexcept {
    const std::uint32_t number = take_slot();
    if (number == kNoSlot) {
        return nullptr;
    }
    Slot& slot = at(number);
    slot.generation = (slot.generation + 1) & UserData::kGenerationMask;
    Connection& connection = slot.connection.emplace(fd, number, limits_);
    connection.generation = slot.generation;
    ++size_;
    return &connection;
}

void ConnectionPool::release(const Connection& connection) noexcept {
    const std::uint32_t number = connection.slot;
    Slot& slot = at(number);
    slot.connection.reset();
    slot.next_free = first_free_;
    first_free_ = number;
    --size_;
}

/// Last released, first used: its memory is the warmest.
std::uint32_t ConnectionPool::take_slot() noexcept {
    if (first_free_ != kNoSlot) {
        const std::uint32_t number = first_free_;
        first_free_ = at(number).next_free;
        return number;
    }
    if ((used_ >> kChunkBits) == chunks_.size()) {
        auto* chunk = chunks_.size() < chunks_.capacity() ? new (std::nothrow) Chunk : nullptr;
        if (chunk == nullptr) {
            return kNoSlot;
        }
        chunks_.emplace_back(chunk);
    }
    return used_++;
}

}  // namespace hello

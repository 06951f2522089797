// SPDX-License-Identifier: MIT
//
// UserData: what a submission carries and its completion brings back.
//
//     63      56 55                     32 31                              0
//     +---------+-------------------------+--------------------------------+
//     |   op    |       generation        |              slot              |
//     +---------+-------------------------+--------------------------------+
//
// The generation changes each time a slot gets a new connection, so a completion that comes too
// late never meets the wrong one: it would take 16,777,216 uses while one operation is in flight.

#pragma once

#include <cstdint>

namespace hello {

/// What a completion is about.
enum class Op : std::uint8_t {
    Accept,   ///< multishot accept on the listener
    Receive,  ///< one-shot or multishot receive
    SendNow,  ///< optimistic send: completes only where it was not sent in full at once
    Send,     ///< patient send: always completes
    Cancel,   ///< cancels a receive or the accept; completes only on failure
    Close,    ///< close(2); completes only on failure
    HandOff,  ///< message to another worker's ring: a descriptor moves there
    Adopt,    ///< message from another worker's ring: a descriptor arrives
    Tick,     ///< timeout, once a second
    Wake,     ///< the eventfd that other threads write to
};

struct UserData {
    Op op;
    std::uint32_t generation;  ///< 24 bits
    std::uint32_t slot;

    [[nodiscard]] constexpr std::uint64_t encode() const noexcept {
        return (std::uint64_t{static_cast<std::uint8_t>(op)} << 56) |
               (std::uint64_t{generation & kGenerationMask} << 32) | slot;
    }
    [[nodiscard]] static constexpr UserData decode(std::uint64_t bits) noexcept {
        return {static_cast<Op>(bits >> 56),
                static_cast<std::uint32_t>(bits >> 32) & kGenerationMask,
                static_cast<std::uint32_t>(bits)};
    }
    constexpr bool operator==(const UserData&) const noexcept = default;

    static constexpr std::uint32_t kGenerationMask = 0xFF'FFFF;
};

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// CoarseClock: while it lives, the coarse clocks of this process stand still and show what the
// test says, so that tests of timeouts need no sleeping. The other clocks go on.

#pragma once

#include <cstdint>

namespace hello::test {

class CoarseClock {
public:
    explicit CoarseClock(std::int64_t seconds) noexcept { set(seconds); }
    CoarseClock(const CoarseClock&) = delete;
    CoarseClock& operator=(const CoarseClock&) = delete;
    ~CoarseClock();

    void set(std::int64_t seconds) noexcept;
    [[nodiscard]] std::int64_t seconds() const noexcept;
};

}  // namespace hello::test

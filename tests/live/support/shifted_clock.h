// SPDX-License-Identifier: MIT
//
// ShiftedClock: the time of day of one server, which a test can set forward and back as an
// administrator would; the machine's own clock stays as it is. A library that the server loads in
// front of the C library adds the shift, which it reads from a file shared with the test.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../support/temp_folder.h"

namespace hello::test {

struct ClockShift;

class ShiftedClock {
public:
    ShiftedClock();
    ~ShiftedClock();
    ShiftedClock(const ShiftedClock&) = delete;
    ShiftedClock& operator=(const ShiftedClock&) = delete;

    /// For the environment of the server.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const;
    /// Skips the test where the server never asked: it is linked statically, say.
    void require_use() const;
    /// From now on the server's time of day is that many seconds ahead of ours.
    void shift(std::int64_t seconds);

private:
    TempFolder folder_;
    std::string path_;
    ClockShift* shared_ = nullptr;
};

}  // namespace hello::test

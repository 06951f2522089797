// SPDX-License-Identifier: MIT
//
// What the fuzz targets share: each defines run_once(), and tells what it finds by report().

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace hello::test {

/// The input of one run, taken from the front.
class FuzzInput {
public:
    FuzzInput(const std::uint8_t* data, std::size_t size)
        : octets_(reinterpret_cast<const char*>(data), size) {}

    /// A number from one octet; 0 where none is left.
    std::uint8_t take_number() {
        if (octets_.empty()) {
            return 0;
        }
        const auto number = static_cast<std::uint8_t>(octets_.front());
        octets_.remove_prefix(1);
        return number;
    }

    /// `size` octets, or as many as are left.
    std::string_view take(std::size_t size) {
        const std::string_view taken = octets_.substr(0, size);
        octets_.remove_prefix(taken.size());
        return taken;
    }

    [[nodiscard]] std::string_view rest() const { return octets_; }

private:
    std::string_view octets_;
};

/// One run. Any octets will do; nothing is kept that would change the next run.
void run_once(FuzzInput input);

/// Ends the run as a crash, unless `finding` is empty; libFuzzer keeps the input.
inline void report(const std::string& finding) {
    if (!finding.empty()) {
        static_cast<void>(std::fprintf(stderr, "found: %s\n", finding.c_str()));
        std::abort();
    }
}

}  // namespace hello::test

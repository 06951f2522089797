// SPDX-License-Identifier: MIT
//
// The function that libFuzzer calls, in every fuzz target.

#include <cstddef>
#include <cstdint>

#include "fuzz_target.h"

// The name is libFuzzer's. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    hello::test::run_once({data, size});
    return 0;
}

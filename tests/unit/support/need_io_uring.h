// SPDX-License-Identifier: MIT
//
// need_io_uring: skips the test where this kernel, or who guards it, offers no io_uring.

#pragma once

#include <catch2/catch_test_macros.hpp>

#include "error.h"
#include "ring.h"

namespace hello::test {

inline void need_io_uring() {
    try {
        const Ring ring(UringSizes{8, 16});
    } catch (const StartError& error) {
        SKIP(error.what());
    }
}

}  // namespace hello::test

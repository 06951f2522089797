// SPDX-License-Identifier: MIT
//
// Limits so small that random input meets them.

#pragma once

#include "request_parser.h"

namespace hello::test {

[[nodiscard]] inline HttpLimits small_limits() {
    HttpLimits limits;
    limits.head_bytes_max = 120;
    limits.target_bytes_max = 24;
    limits.field_count_max = 5;
    limits.chunk_bytes_max = 12;
    limits.blank_bytes_max = 6;
    return limits;
}

}  // namespace hello::test

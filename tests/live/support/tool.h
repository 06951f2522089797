// SPDX-License-Identifier: MIT
//
// Running a program to its end, and reading what the load generators print. A missing tool skips
// the test with the reason. A figure that a tool did not print is kMissing, never a silent 0.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/child_process.h"
#include "support/time_scale.h"

namespace hello::test {

struct ToolOptions {
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<ResourceLimit> limits;
    std::function<void()> before_exec;  ///< see ChildOptions
    Milliseconds limit = scaled(Milliseconds(20000));
};

struct ToolResult {
    int exit_code = -1;
    bool timed_out = false;
    std::string out;
    std::string err;
    Milliseconds elapsed{0};

    [[nodiscard]] std::string all() const { return out + err; }
};

/// Skips the current test when the program is not installed.
void require_tool(const std::string& name);
/// Runs it to its end; past the limit it is killed and `timed_out` is set.
[[nodiscard]] ToolResult run_tool(std::vector<std::string> argv, ToolOptions options = {});

inline constexpr std::int64_t kMissing = -1;

/// The first whole number after a label, kMissing without one: number_after(out, "Complete
/// requests:").
[[nodiscard]] std::int64_t number_after(std::string_view text, std::string_view label);
/// The last whole number before a label: number_before(out, " requests in").
[[nodiscard]] std::int64_t number_before(std::string_view text, std::string_view label);

struct AbReport {
    std::int64_t complete = kMissing;
    std::int64_t failed = kMissing;
    std::int64_t non_2xx = 0;  ///< ab prints the line only when there are some
    std::int64_t keep_alive = 0;
    std::int64_t html_bytes = kMissing;
    std::int64_t document_bytes = kMissing;
};
[[nodiscard]] AbReport parse_ab(std::string_view output);

struct HeyReport {
    std::map<int, std::int64_t> statuses;
    bool errors = false;  ///< there is an "Error distribution"
};
[[nodiscard]] HeyReport parse_hey(std::string_view output);

struct WrkReport {
    std::int64_t requests = kMissing;
    bool socket_errors = false;
    bool non_2xx = false;
};
[[nodiscard]] WrkReport parse_wrk(std::string_view output);

struct H2loadReport {
    std::int64_t succeeded = kMissing;
    std::int64_t failed = kMissing;
    std::int64_t errored = kMissing;
    std::int64_t timeout = kMissing;
    std::int64_t status_2xx = kMissing;
};
[[nodiscard]] H2loadReport parse_h2load(std::string_view output);

}  // namespace hello::test

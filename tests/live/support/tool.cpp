// SPDX-License-Identifier: MIT
//
// Running tools, and small readers of their reports.

#include "support/tool.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include <catch2/catch_test_macros.hpp>

namespace hello::test {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::int64_t to_number(std::string_view digits) {
    std::int64_t value = kMissing;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

bool installed(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
    std::string folder;
    while (std::getline(folders, folder, ':')) {
        folder += "/" + name;
        if (access(folder.c_str(), X_OK) == 0) {
            return true;
        }
    }
    return false;
}

}  // namespace

void require_tool(const std::string& name) {
    if (!installed(name)) {
        SKIP(name << " is not installed");
    }
}

ToolResult run_tool(std::vector<std::string> argv, ToolOptions options) {
    const auto start = Clock::now();
    ChildOptions child_options;
    child_options.argv = std::move(argv);
    child_options.environment = std::move(options.environment);
    child_options.limits = std::move(options.limits);
    child_options.before_exec = std::move(options.before_exec);
    ChildProcess child(child_options);
    std::optional<int> code = child.wait_exit(options.limit);
    ToolResult result;
    result.timed_out = !code;
    if (!code) {
        child.signal(SIGKILL);
        code = child.wait_exit(scaled(Milliseconds(2000)));
    }
    result.exit_code = code.value_or(-1);
    result.out = child.stdout_text();
    result.err = child.stderr_text();
    result.elapsed = since(start);
    return result;
}

std::int64_t number_after(std::string_view text, std::string_view label) {
    const std::size_t found = text.find(label);
    if (found == std::string_view::npos) {
        return kMissing;
    }
    const std::string_view rest = text.substr(found + label.size());
    const std::size_t begin = rest.find_first_of(kDigits);
    return begin == std::string_view::npos ? kMissing : to_number(rest.substr(begin));
}

std::int64_t number_before(std::string_view text, std::string_view label) {
    const std::size_t found = text.find(label);
    if (found == std::string_view::npos || found == 0) {
        return kMissing;
    }
    const std::string_view head = text.substr(0, found);
    const std::size_t last_other = head.find_last_not_of(kDigits);
    const std::size_t begin = last_other == std::string_view::npos ? 0 : last_other + 1;
    return begin == head.size() ? kMissing : to_number(head.substr(begin));
}

AbReport parse_ab(std::string_view output) {
    AbReport report;
    report.complete = number_after(output, "Complete requests:");
    report.failed = number_after(output, "Failed requests:");
    report.html_bytes = number_after(output, "HTML transferred:");
    report.document_bytes = number_after(output, "Document Length:");
    if (output.find("Non-2xx responses:") != std::string_view::npos) {
        report.non_2xx = number_after(output, "Non-2xx responses:");
    }
    if (output.find("Keep-Alive requests:") != std::string_view::npos) {
        report.keep_alive = number_after(output, "Keep-Alive requests:");
    }
    return report;
}

HeyReport parse_hey(std::string_view output) {
    HeyReport report;
    report.errors = output.find("Error distribution") != std::string_view::npos;
    std::istringstream lines{std::string(output)};
    std::string line;
    while (std::getline(lines, line)) {
        // "  [200]\t20 responses"
        if (line.find("] ") == std::string::npos && line.find("]\t") == std::string::npos) {
            continue;
        }
        const std::int64_t count = number_before(line, " responses");
        const std::int64_t status = number_after(line, "[");
        if (count != kMissing && status != kMissing) {
            report.statuses[static_cast<int>(status)] += count;
        }
    }
    return report;
}

WrkReport parse_wrk(std::string_view output) {
    WrkReport report;
    report.requests = number_before(output, " requests in");
    report.socket_errors = output.find("Socket errors") != std::string_view::npos;
    report.non_2xx = output.find("Non-2xx") != std::string_view::npos;
    return report;
}

H2loadReport parse_h2load(std::string_view output) {
    H2loadReport report;
    report.succeeded = number_before(output, " succeeded");
    report.failed = number_before(output, " failed");
    report.errored = number_before(output, " errored");
    report.timeout = number_before(output, " timeout");
    report.status_2xx = number_before(output, " 2xx");
    return report;
}

}  // namespace hello::test

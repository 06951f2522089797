// SPDX-License-Identifier: MIT
//
// The log: spdlog on standard error, asynchronous. Nobody who logs ever waits for whoever reads:
// where standard error is a pipe that nobody empties, lines are dropped and counted.

#pragma once

#include <cstdint>
#include <string>

namespace hello {

/// Installs the default logger. `level`: trace, debug, info, warn, error, critical, off;
/// `format`: text, json.
void start_log(const std::string& level, const std::string& format);

/// Writes one line as it is, whatever the level: the answer to SIGUSR1.
void log_raw_line(const std::string& line);

/// Lines lost so far.
[[nodiscard]] std::uint64_t dropped_log_lines() noexcept;

/// Writes what is still queued, as far as standard error takes it, and stops the log's thread.
void stop_log();

}  // namespace hello

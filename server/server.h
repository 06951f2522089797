// SPDX-License-Identifier: MIT
//
// Server: the process's life. Starts the workers, says when all of them accept, waits for
// signals, drains, reports.

#pragma once

#include "options.h"

namespace hello {

/// Blocks the signals that run_server() waits for, in this thread and in those it will start: to
/// be called before there is another thread, the log's included.
void block_signals();

/// Serves until SIGTERM or SIGINT. Returns the exit code: 0 stopped cleanly, 1 failed while
/// running. Throws StartError, std::system_error where it can't start.
[[nodiscard]] int run_server(Options options);

}  // namespace hello

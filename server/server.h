// SPDX-License-Identifier: MIT
//
// Server: the process's life. Starts the workers, says when all of them accept, waits for
// signals, drains, reports.

#pragma once

#include "options.h"

namespace hello {

/// Serves until SIGTERM or SIGINT. Returns the exit code: 0 stopped cleanly, 1 failed while
/// running. Throws StartError, std::system_error where it can't start. To be called from the main
/// thread, before any other thread exists: it blocks the signals for all of them.
[[nodiscard]] int run_server(Options options);

}  // namespace hello

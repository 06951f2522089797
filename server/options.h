// SPDX-License-Identifier: MIT
//
// Options: the command line, the environment (HELLO_URING_*) and a configuration file, in this
// order of precedence.

#pragma once

#include <optional>
#include <string>

#include "config.h"
#include "listener.h"

namespace hello {

struct Options {
    ServerConfig server;
    ListenOptions listen{.host = "", .port = 8080, .backlog = 65535};
    int threads = 0;  ///< 0: as many as CPUs that this process may use
    bool pin = false;
    std::string engine = "auto";
    std::string log_level = "info";
    std::string log_format = "text";
    std::optional<std::string> check_url;  ///< set: be a health check instead of a server
};

struct ParsedOptions {
    Options options;
    std::optional<int> exit_code;  ///< set: all is done (--help), or the usage was wrong (2)
};
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace hello

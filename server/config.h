// SPDX-License-Identifier: MIT
//
// ServerConfig: what every worker needs to know, fixed before the first one starts.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine.h"
#include "request_parser.h"

namespace hello {

/// Seconds, each at most a day; 0 = never (but the drain timeout: at once).
struct Timeouts {
    std::uint32_t header_s = 10;  ///< from the first octet of a request to the end of its head
    std::uint32_t body_s = 30;    ///< from there to the end of the content
    std::uint32_t idle_s = 75;    ///< between requests
    std::uint32_t write_s = 30;   ///< for a client to take what was sent
    std::uint32_t drain_s = 10;   ///< from SIGTERM to the end
};

struct ServerConfig {
    static constexpr std::size_t kConnectionsLimit = 65536;

    std::string body = "Hello World!";
    std::string server_header = "hello-uring";
    HttpLimits limits;
    Timeouts timeouts;
    std::size_t connections_max = 0;  ///< of the process; 0: as descriptors allow
    std::uint32_t busy_poll_us = 0;   ///< spin this long before sleeping
    EngineKind engine = EngineKind::IoUring;
};

}  // namespace hello

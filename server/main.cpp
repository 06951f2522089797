// SPDX-License-Identifier: MIT
//
// hello-uring: options, log, server, exit code. The only place where exceptions end: 0 stopped
// cleanly, 1 failed, 2 bad usage.

#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include "health_check.h"
#include "log.h"
#include "options.h"
#include "server.h"

namespace {

/// Where the server of these options would be found; numeric, for an image may lack /etc/hosts.
std::string own_url(const hello::ListenOptions& listen) {
    const bool ipv6 = listen.host.find(':') != std::string::npos;
    const std::string host = listen.host.empty() ? "127.0.0.1" : listen.host;
    return "http://" + (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(listen.port);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        auto [options, exit_code] = hello::parse_options(argc, argv);
        if (exit_code) {
            return *exit_code;
        }
        if (options.check_url) {
            const bool healthy = hello::check_health(
                options.check_url->empty() ? own_url(options.listen) : *options.check_url);
            return healthy ? 0 : 1;
        }
        hello::block_signals();
        hello::start_log(options.log_level, options.log_format);
        const int result = hello::run_server(std::move(options));
        hello::stop_log();
        return result;
    } catch (const std::exception& error) {
        hello::stop_log();
        std::cerr << "hello-uring: " << error.what() << '\n';
        return 1;
    }
}

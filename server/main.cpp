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

int main(int argc, char** argv) {
    try {
        auto [options, exit_code] = hello::parse_options(argc, argv);
        if (exit_code) {
            return *exit_code;
        }
        if (options.check_url) {
            const std::string port = std::to_string(options.listen.port);
            const bool healthy = hello::check_health(
                options.check_url->empty() ? "http://localhost:" + port : *options.check_url);
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

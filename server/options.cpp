// SPDX-License-Identifier: MIT
//
// Options by CLI11: see options.h.

#include "options.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

#include <CLI/CLI.hpp>
#include <liburing.h>
#include <llhttp.h>
#include <spdlog/version.h>

namespace hello {
namespace {

constexpr std::size_t kBodyBytesMax = 64 * 1024;
constexpr std::uint32_t kSecondsMax = 86400;

std::string version_text() {
    std::ostringstream text;
    text << "hello-uring " << HELLO_VERSION << "\nliburing " << io_uring_major_version() << '.'
         << io_uring_minor_version() << "\nllhttp " << LLHTTP_VERSION_MAJOR << '.'
         << LLHTTP_VERSION_MINOR << '.' << LLHTTP_VERSION_PATCH << "\nspdlog " << SPDLOG_VER_MAJOR
         << '.' << SPDLOG_VER_MINOR << '.' << SPDLOG_VER_PATCH;
    return text.str();
}

/// "idle-timeout" is HELLO_URING_IDLE_TIMEOUT in the environment.
std::string environment_name(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char letter) {
        return letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
    });
    return "HELLO_URING_" + name;
}

std::string check_body(const std::string& body) {
    return body.size() <= kBodyBytesMax ? "" : "is longer than 64 KiB";
}

/// Refuses what would break out of the field (RFC 9110 section 5.5).
std::string check_field_value(const std::string& value) {
    const bool clean = std::all_of(value.begin(), value.end(), [](unsigned char octet) {
        return octet >= 0x20 && octet != 0x7F;
    });
    return clean ? "" : "must not contain control characters";
}

void add_listen_options(CLI::App& app, Options& options) {
    ListenOptions& listen = options.listen;
    app.add_option("--host", listen.host, "address to listen on; default: all, IPv6 and IPv4");
    app.add_option("-p,--port", listen.port, "port; 0: any free one");
    app.add_flag("--share-port", listen.share_port, "join a port that is already served");
    app.add_option("--backlog", listen.backlog, "connections that may wait to be accepted")
        ->check(CLI::Range(1, 1 << 30));
    app.add_option("--defer-accept", listen.defer_accept, "accept once the request is there")
        ->transform(
            CLI::CheckedTransformer(std::map<std::string, bool>{{"on", true}, {"off", false}}))
        ->default_str("on");
}

void add_server_options(CLI::App& app, Options& options) {
    ServerConfig& server = options.server;
    app.add_option("-t,--threads", options.threads, "default: the CPUs that we may use")
        ->check(CLI::Range(1, 1024))
        ->default_str("");
    app.add_flag("--pin", options.pin, "pin thread i to the i-th allowed CPU");
    app.add_option("--engine", options.engine, "auto: io_uring, or epoll where that is refused")
        ->check(CLI::IsMember({"auto", "io_uring", "epoll"}));
    app.add_option("--busy-poll", server.busy_poll_us, "microseconds to spin before sleeping")
        ->check(CLI::Range(0, 1'000'000));
    app.add_option("--max-connections", server.connections_max, "at a time")
        ->check(CLI::Range(1, static_cast<int>(ServerConfig::kConnectionsLimit)))
        ->default_str("from the limit of open files");
    app.add_option("--body", server.body, "content of a 200")->check(check_body);
    app.add_option("--server-header", server.server_header, "Server field; empty: none")
        ->check(check_field_value);
    app.add_option("--max-header-bytes", server.limits.head_bytes_max, "request line and fields")
        ->check(CLI::Range(1024, 1 << 20));
    app.add_option("--log-level", options.log_level)
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "critical", "off"}));
    app.add_option("--log-format", options.log_format)->check(CLI::IsMember({"text", "json"}));
}

void add_timeouts(CLI::App& app, Timeouts& timeouts) {
    const auto add = [&app](const char* name, std::uint32_t& seconds, const char* meaning) {
        app.add_option(name, seconds, meaning)->check(CLI::Range(0U, kSecondsMax));
    };
    add("--header-timeout", timeouts.header_s, "seconds for a request's head; 0: never");
    add("--body-timeout", timeouts.body_s, "seconds for a request's content; 0: never");
    add("--idle-timeout", timeouts.idle_s, "seconds between requests; 0: never");
    add("--write-timeout", timeouts.write_s, "seconds for a client to read; 0: never");
    add("--drain-timeout", timeouts.drain_s, "seconds from SIGTERM to the end");
}

/// The command line behind what the environment says, in the reverse order that CLI11 takes: the
/// last of equal options counts, and both beat the configuration file.
std::vector<std::string> arguments_after_environment(const CLI::App& app,
                                                     int argc,
                                                     const char* const* argv) {
    std::vector<std::string> arguments;
    for (const CLI::Option* option : app.get_options()) {
        const std::string name = option->get_lnames().empty() ? "" : option->get_lnames().front();
        const char* value = std::getenv(environment_name(name).c_str());
        if (value == nullptr || name == "help" || name == "version" || name == "check") {
            continue;
        }
        const bool is_flag = option->get_expected_max() == 0;
        const bool may_be_empty = name == "server-header" || name == "body" || name == "host";
        if (is_flag) {
            arguments.push_back("--" + name + "=" + value);
        } else if (*value != '\0' || may_be_empty) {
            arguments.insert(arguments.end(), {"--" + name, value});
        }
    }
    for (const std::string& argument : std::vector<std::string>(argv + 1, argv + argc)) {
        // CLI11 takes "--server-header=" for an option whose value comes next.
        if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
            arguments.insert(arguments.end(), {argument.substr(0, argument.size() - 1), ""});
        } else {
            arguments.push_back(argument);
        }
    }
    std::reverse(arguments.begin(), arguments.end());
    return arguments;
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
    ParsedOptions parsed;
    Options& options = parsed.options;
    CLI::App app{"The fastest honest hello-world HTTP/1.1 server: io_uring, one thread per core.",
                 "hello-uring"};
    app.option_defaults()->always_capture_default()->multi_option_policy(
        CLI::MultiOptionPolicy::TakeLast);
    app.allow_config_extras(CLI::config_extras_mode::error);
    app.set_version_flag("--version", version_text());
    app.set_config("--config", "", "read options from this file (TOML or INI: port=8080)");
    // No option takes a list, and CLI11 dies of an empty one: nothing begins with a line end.
    if (const auto format = app.get_config_formatter_base()) {
        format->arrayBounds('\n', '\n');
    }
    add_listen_options(app, options);
    add_server_options(app, options);
    add_timeouts(app, options.server.timeouts);
    std::string check_url;
    CLI::Option* check = app.add_option("--check", check_url, "health check: GET, exit 0 or 1")
                             ->expected(0, 1)
                             ->configurable(false);
    try {
        app.parse(arguments_after_environment(app, argc, argv));
        if (check->count() != 0) {
            options.check_url = check_url;
        }
    } catch (const CLI::Success& success) {  // --help, --version
        parsed.exit_code = app.exit(success);
    } catch (const CLI::ParseError& error) {
        std::cerr << "hello-uring: " << error.what() << "; see --help\n";
        parsed.exit_code = 2;
    }
    return parsed;
}

}  // namespace hello

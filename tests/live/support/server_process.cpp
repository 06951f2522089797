// SPDX-License-Identifier: MIT
//
// ServerProcess: start, readiness, counters and stop of the server under test.

#include "support/server_process.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "support/proc.h"
#include "support/wait.h"

namespace hello::test {
namespace {

constexpr std::string_view kReadyPrefix = "listening on http://";
constexpr std::string_view kCountersPrefix = "{\"engine\":";
constexpr Milliseconds kReadyLimit(15000);

bool names(const std::vector<std::string>& arguments, std::string_view option) {
    return std::ranges::any_of(arguments, [&](const std::string& argument) {
        return argument == option || argument.starts_with(std::string(option) + "=");
    });
}

using Environment = std::vector<std::pair<std::string, std::string>>;

/// With the engine under test, where the test does not choose one. Options beat it.
Environment with_engine(Environment environment) {
    environment.insert(environment.begin(), {"HELLO_URING_ENGINE", engine_under_test()});
    return environment;
}

ChildOptions child_options(const ServerOptions& options) {
    ChildOptions child;
    child.argv = options.wrapper;
    child.argv.push_back(server_binary());
    child.argv.insert(child.argv.end(), options.arguments.begin(), options.arguments.end());
    if (options.add_address && !names(options.arguments, "--port")) {
        child.argv.insert(child.argv.end(), {"--port", "0"});
    }
    if (options.add_address && !names(options.arguments, "--host")) {
        child.argv.insert(child.argv.end(), {"--host", "127.0.0.1"});
    }
    child.environment = with_engine(options.environment);
    child.limits = options.limits;
    child.before_exec = options.before_exec;
    child.standard_error = options.standard_error;
    return child;
}

/// The complete lines of counters in a log.
std::vector<std::string> counter_lines(const std::string& log) {
    std::vector<std::string> result;
    const std::string_view complete = std::string_view(log).substr(0, log.rfind('\n') + 1);
    for (std::string& line : lines_of(complete)) {
        if (line.starts_with(kCountersPrefix)) {
            result.push_back(std::move(line));
        }
    }
    return result;
}

}  // namespace

std::int64_t Counters::operator[](const std::string& name) const {
    const Json& value = json_.at(name);
    if (value.kind != Json::Kind::Number) {
        throw std::runtime_error("counter " + name + " is not a number");
    }
    return std::llround(value.number);
}

std::vector<std::int64_t> Counters::per_thread(const std::string& name) const {
    std::vector<std::int64_t> result;
    for (const Json& thread : json_.at("per_thread").items) {
        result.push_back(std::llround(thread.at(name).number));
    }
    return result;
}

ServerProcess::ServerProcess(std::vector<std::string> arguments)
    : ServerProcess(ServerOptions{.arguments = std::move(arguments),
                                  .environment = {},
                                  .limits = {},
                                  .before_exec = {},
                                  .wrapper = {}}) {}

ServerProcess::ServerProcess(const ServerOptions& options)
    : child_(child_options(options)), pid_(child_.pid()) {
    wait_ready();
    if (!options.wrapper.empty()) {
        pid_ = first_child(child_.pid());
    }
}

void ServerProcess::wait_ready() {
    const auto first_line_is_there = [](const std::string& out, const std::string&) {
        return out.find('\n') != std::string::npos;
    };
    const auto deadline = Clock::now() + kReadyLimit;
    while (!child_.wait_output(first_line_is_there, Milliseconds(20))) {
        const bool gone = !child_.running();
        if (gone || Clock::now() > deadline) {
            // Waiting for the end of a dead child also collects what it wrote last.
            const std::optional<int> code = child_.wait_exit(Milliseconds(0));
            throw std::runtime_error(
                (gone ? "server exited with " + std::to_string(code.value_or(-1))
                      : std::string("server is not ready")) +
                "; stderr: " + child_.stderr_text());
        }
    }
    const std::string out = child_.stdout_text();
    ready_line_ = out.substr(0, out.find('\n'));
    const std::size_t colon = ready_line_.rfind(':');
    if (!ready_line_.starts_with(kReadyPrefix) || colon == std::string::npos) {
        throw std::runtime_error("not the ready line: " + ready_line_);
    }
    const char* end = ready_line_.data() + ready_line_.size();
    const auto parsed = std::from_chars(ready_line_.data() + colon + 1, end, port_);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
        throw std::runtime_error("no port at the end of: " + ready_line_);
    }
}

std::string ServerProcess::url(std::string_view path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
}

Counters ServerProcess::counters() {
    const std::size_t before = counter_lines(child_.stderr_text()).size();
    signal(SIGUSR1);
    const bool printed = child_.wait_output(
        [&](const std::string&, const std::string& err) {
            return counter_lines(err).size() > before;
        },
        scaled(Milliseconds(5000)));
    if (!printed) {
        throw std::runtime_error("no counters after SIGUSR1; stderr: " + child_.stderr_text());
    }
    return Counters(Json::parse(counter_lines(child_.stderr_text()).back()));
}

Counters ServerProcess::wait_counters(const std::function<bool(const Counters&)>& condition,
                                      Milliseconds limit) {
    Counters latest;
    // The verdict is the caller's: it checks the snapshot it gets.
    static_cast<void>(wait_until(
        [&] {
            latest = counters();
            return condition(latest);
        },
        limit, Milliseconds(20)));
    return latest;
}

Counters ServerProcess::wait_quiet(Milliseconds limit) {
    return wait_counters(
        [](const Counters& now) {
            return now["connections_open"] == 0 && now["slots_in_use"] == 0 &&
                   now["buffers_available"] == now["buffers_total"];
        },
        limit);
}

void ServerProcess::signal(int number) const {
    if (pid_ == child_.pid()) {
        child_.signal(number);
    } else if (pid_ > 0) {
        kill(pid_, number);
    }
}

int ServerProcess::wait_exit(Milliseconds limit) {
    return child_.wait_exit(limit).value_or(kStillRunning);
}

int ServerProcess::stop(Milliseconds limit) {
    signal(SIGTERM);
    return wait_exit(limit);
}

std::vector<std::string> ServerProcess::stderr_lines() const {
    return lines_of(child_.stderr_text());
}

std::string server_binary() {
    const char* chosen = std::getenv("HELLO_BIN");
    return chosen != nullptr && *chosen != '\0' ? chosen : HELLO_BIN_DEFAULT;
}

std::string engine_under_test() {
    const char* chosen = std::getenv("HELLO_TEST_ENGINE");
    return chosen != nullptr && *chosen != '\0' ? chosen : "io_uring";
}

ToolResult run_server(std::vector<std::string> arguments, ToolOptions options) {
    arguments.insert(arguments.begin(), server_binary());
    options.environment = with_engine(std::move(options.environment));
    return run_tool(std::move(arguments), std::move(options));
}

std::uint16_t free_port() {
    const FileDescriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(probe.get(), generic, size) != 0 || getsockname(probe.get(), generic, &size) != 0) {
        throw std::system_error(errno, std::generic_category(), "free_port");
    }
    return ntohs(address.sin_port);
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> result;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (end != 0) {
            result.emplace_back(text.substr(0, end));
        }
        text = end == std::string_view::npos ? "" : text.substr(end + 1);
    }
    return result;
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// ServerProcess: hello-uring started by a test on a free loopback port and ready when the
// constructor returns. The binary is HELLO_BIN from the environment, else the one of this build.
// Its engine is HELLO_TEST_ENGINE, else io_uring, where the test does not choose one.
//
//     ServerProcess server({"--threads", "1"});
//     RawClient client(server.port());
//     ...
//     CHECK(server.counters()["requests"] == 1);
//     CHECK(server.stop() == 0);

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.h"
#include "support/json.h"
#include "support/tool.h"

namespace hello::test {

/// The counters that SIGUSR1 prints, one snapshot.
class Counters {
public:
    Counters() = default;
    explicit Counters(Json json) : json_(std::move(json)) {}

    /// A number at top level; throws when there is none of that name.
    [[nodiscard]] std::int64_t operator[](const std::string& name) const;
    /// The same number of each thread.
    [[nodiscard]] std::vector<std::int64_t> per_thread(const std::string& name) const;
    [[nodiscard]] const Json& json() const { return json_; }

private:
    Json json_;
};

struct ServerOptions {
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<ResourceLimit> limits;
    std::function<void()> before_exec;  ///< see ChildOptions
    StandardError standard_error = StandardError::Drained;
    /// Adds `--port 0` and `--host 127.0.0.1` where the arguments don't name them.
    bool add_address = true;
    std::vector<std::string> wrapper;  ///< put before the binary, e.g. {"unshare", "-p"}
};

class ServerProcess {
public:
    explicit ServerProcess(std::vector<std::string> arguments = {});
    /// Throws std::runtime_error with the server's standard error when it doesn't get ready.
    explicit ServerProcess(const ServerOptions& options);

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] const std::string& ready_line() const { return ready_line_; }
    [[nodiscard]] std::string url(std::string_view path = "/") const;

    [[nodiscard]] Counters counters();
    /// Takes snapshots until the condition holds or the limit passes; returns the last one.
    [[nodiscard]] Counters wait_counters(const std::function<bool(const Counters&)>& condition,
                                         Milliseconds limit = scaled(Milliseconds(5000)));
    /// Waits until every connection is closed and everything borrowed was given back.
    [[nodiscard]] Counters wait_quiet(Milliseconds limit = scaled(Milliseconds(5000)));

    void signal(int number) const;
    [[nodiscard]] bool running() { return child_.running(); }
    /// Exit code within the limit, or kStillRunning.
    [[nodiscard]] int wait_exit(Milliseconds limit = scaled(Milliseconds(15000)));
    /// SIGTERM, then wait_exit().
    [[nodiscard]] int stop(Milliseconds limit = scaled(Milliseconds(15000)));
    void close_stdout() { child_.close_stdout(); }

    [[nodiscard]] std::string stdout_text() const { return child_.stdout_text(); }
    [[nodiscard]] std::string stderr_text() const { return child_.stderr_text(); }
    /// Non-empty lines of standard error.
    [[nodiscard]] std::vector<std::string> stderr_lines() const;

    static constexpr int kStillRunning = -1;

private:
    void wait_ready();

    ChildProcess child_;
    pid_t pid_ = -1;  // the server's own, also behind a wrapper
    std::uint16_t port_ = 0;
    std::string ready_line_;
};

/// Path of the binary under test.
[[nodiscard]] std::string server_binary();
/// HELLO_TEST_ENGINE from the environment, else "io_uring".
[[nodiscard]] std::string engine_under_test();
/// Runs the binary to its end: for --help, --check and for starts that must fail.
[[nodiscard]] ToolResult run_server(std::vector<std::string> arguments, ToolOptions options = {});
/// A loopback port that was free a moment ago.
[[nodiscard]] std::uint16_t free_port();
/// Splits a text into its non-empty lines.
[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);

}  // namespace hello::test

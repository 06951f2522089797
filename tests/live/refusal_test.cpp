// SPDX-License-Identifier: MIT
//
// Machines that forbid io_uring: the message tells what was refused, why and the likely cure, and
// `--engine auto` serves by epoll.

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "../support/seccomp.h"
#include "support/raw_client.h"
#include "support/server_process.h"

namespace hello::test {
namespace {

struct Refusal {
    int error_number;
    std::vector<std::string> words;  ///< of which the message names at least one
};

const std::vector<Refusal>& refusals() {
    static const std::vector<Refusal> kAll{
        {EPERM, {"seccomp"}},
        {ENOSYS, {"kernel"}},
        {ENOMEM, {"memlock", "ulimit -l"}},
        {EINVAL, {"Invalid argument", "kernel"}},
    };
    return kAll;
}

std::function<void()> refuse_with(int error_number) {
    return [error_number] {
        if (!refuse_io_uring(error_number)) {
            _exit(126);
        }
    };
}

bool names_one(const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        if (text.find(word) != std::string::npos) {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("The option --engine io_uring ends with a clear line when io_uring is refused",
          "[live][refusal]") {
    for (const Refusal& refusal : refusals()) {
        ToolOptions options;
        options.before_exec = refuse_with(refusal.error_number);
        const ToolResult result = run_server(
            {"--engine", "io_uring", "--port", "0", "--host", "127.0.0.1"}, std::move(options));
        INFO("errno " << refusal.error_number << ": " << result.err);
        CHECK_FALSE(result.timed_out);
        CHECK(result.exit_code == 1);
        CHECK(result.out.empty());
        CHECK(lines_of(result.err).size() == 1);
        CHECK(result.err.find("io_uring") != std::string::npos);
        CHECK(names_one(result.err, refusal.words));
        CHECK(result.err.find("Success") == std::string::npos);
        CHECK(result.elapsed < scaled(Milliseconds(2000)));
    }
}

TEST_CASE("The option --engine auto serves by epoll where io_uring is refused, and says why",
          "[live][refusal]") {
    for (const Refusal& refusal : refusals()) {
        ServerOptions options;
        options.arguments = {"--engine", "auto", "--threads", "2"};
        options.before_exec = refuse_with(refusal.error_number);
        ServerProcess server(options);
        INFO("errno " << refusal.error_number << ": " << server.stderr_text());
        RawClient client(server.port());
        CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
        CHECK(server.counters().json().at("engine").text == "epoll");
        const std::vector<std::string> lines = server.stderr_lines();
        const auto warnings = std::ranges::count_if(
            lines, [](const std::string& line) { return line.find("[warn") != std::string::npos; });
        CHECK(warnings == 1);
        CHECK(names_one(lines.at(0), refusal.words));
        CHECK(lines.at(0).find("epoll") != std::string::npos);
        CHECK(server.stop() == 0);
    }
}

TEST_CASE("The option --engine epoll needs no io_uring and doesn't mention it", "[live][refusal]") {
    ServerOptions options;
    options.arguments = {"--engine", "epoll"};
    options.before_exec = refuse_with(EPERM);
    ServerProcess server(options);
    RawClient client(server.port());
    CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
    CHECK(server.stderr_text().find("io_uring") == std::string::npos);
    CHECK(server.stop() == 0);
}

}  // namespace hello::test

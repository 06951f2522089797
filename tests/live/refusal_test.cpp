// SPDX-License-Identifier: MIT
//
// Machines that forbid io_uring: the message tells what was refused, why and the likely cure, and
// `--engine auto` serves by epoll.

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "../support/seccomp.h"
#include "support/file_descriptor.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/tool.h"

namespace hello::test {
namespace {

constexpr int kNotPossible = 99;  ///< the exit code of a child that could not be prepared

/// How a machine refuses io_uring, and what a message must then name.
struct Refusal {
    std::string name;
    std::vector<std::string> words;  ///< each of them
    std::function<void()> before_exec;
};

Refusal by_seccomp(int error_number, std::vector<std::string> words, CallRange calls = {}) {
    return {"errno " + std::to_string(error_number) + " from call " + std::to_string(calls.first),
            std::move(words), [error_number, calls] {
                if (!refuse_io_uring(error_number, calls)) {
                    _exit(kNotPossible);
                }
            }};
}

bool has_io_uring() {
    io_uring_params params{};
    const FileDescriptor ring(static_cast<int>(syscall(SYS_io_uring_setup, 1, &params)));
    return ring.open();
}

std::vector<Refusal> refusals_by_seccomp() {
    std::vector<Refusal> refusals{
        by_seccomp(EPERM, {"seccomp", "cure"}),
        by_seccomp(EACCES, {"Permission denied", "io_uring_setup", "cure"}),
        by_seccomp(ENOSYS, {"kernel", "CONFIG_IO_URING", "seccomp", "cure"}),
        by_seccomp(ENOMEM, {"locked memory", "memlock", "ulimit -l"}),
        by_seccomp(EINVAL, {"Invalid argument", "kernel", "6.1"}),
        by_seccomp(EMFILE, {"ulimit -n"}),
        by_seccomp(EOPNOTSUPP, {"Operation not supported", "unknown", "--engine epoll"}),
        by_seccomp(EXDEV, {"Invalid cross-device link", "unknown", "--engine epoll"}),
    };
    if (has_io_uring()) {  // or setting it up is refused before
        refusals.push_back(by_seccomp(EPERM, {"seccomp", "io_uring_enter"}, kIoUringEnter));
        refusals.push_back(by_seccomp(EPERM, {"seccomp", "io_uring_register"}, kIoUringRegister));
        refusals.push_back(by_seccomp(ENOSYS, {"kernel", "CONFIG_IO_URING"}, kIoUringEnter));
    }
    return refusals;
}

void need_other_users() {
    if (geteuid() != 0 || !has_io_uring()) {
        SKIP("no io_uring, or not root, who can be one user after the other");
    }
}

/// What a process sees where kernel.io_uring_disabled is `value`: the setting itself would change
/// the whole machine, so it gets a /proc/sys/kernel of its own, and the answer by seccomp.
void pretend_disabled(char value) {
    const bool apart = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!apart || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/proc/sys/kernel", "tmpfs", 0, nullptr) != 0) {
        _exit(kNotPossible);
    }
    const int file = open("/proc/sys/kernel/io_uring_disabled", O_CREAT | O_WRONLY, 0444);
    if (write(file, &value, 1) != 1 || close(file) != 0 || !refuse_io_uring(EPERM)) {
        _exit(kNotPossible);
    }
}

/// A user without privileges who may lock `kib` KiB of memory: each call is another user, for the
/// kernel counts what one user has locked in all processes, and gives it back late.
std::function<void()> lock_at_most(rlim_t kib) {
    static uid_t last_user = 62'000;
    return [kib, user = ++last_user] {
        const rlimit limit{kib * 1024, kib * 1024};
        if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
            (geteuid() == 0 && (setgid(user) != 0 || setuid(user) != 0)) ||
            access(server_binary().c_str(), X_OK) != 0) {
            _exit(kNotPossible);
        }
    };
}

/// "sq=N" in the line that the server starts with; 0 without one.
std::int64_t submissions_of(ServerProcess& server) {
    static_cast<void>(server.counters());  // comes after that line
    const std::string text = server.stderr_text();
    const std::size_t at = text.find(" sq=");
    return at == std::string::npos ? 0 : number_after(text.substr(at), " sq=");
}

std::vector<std::string> words_missing(const std::string& text, const Refusal& refusal) {
    std::vector<std::string> missing;
    std::ranges::copy_if(refusal.words, std::back_inserter(missing), [&](const std::string& word) {
        return text.find(word) == std::string::npos;
    });
    return missing;
}

/// `--engine io_uring` ends with one line that names cause and cure.
void check_that_io_uring_is_refused(const Refusal& refusal) {
    ToolOptions options;
    options.before_exec = refusal.before_exec;
    const ToolResult result = run_server(
        {"--engine", "io_uring", "--port", "0", "--host", "127.0.0.1"}, std::move(options));
    if (result.exit_code == kNotPossible) {
        SKIP("not possible here: " << refusal.name);
    }
    INFO(refusal.name << ": " << result.err);
    CHECK_FALSE(result.timed_out);
    CHECK(result.exit_code == 1);
    CHECK(result.out.empty());
    CHECK(lines_of(result.err).size() == 1);
    CHECK(result.err.find("io_uring") != std::string::npos);
    CHECK(words_missing(result.err, refusal) == std::vector<std::string>{});
    CHECK(result.err.find("Success") == std::string::npos);
    CHECK(result.elapsed < scaled(Milliseconds(2000)));
}

/// `--engine auto` serves by epoll, with one warning that names cause and cure.
void check_that_epoll_serves(const Refusal& refusal) {
    ServerOptions options;
    options.arguments = {"--engine", "auto", "--threads", "2"};
    options.before_exec = refusal.before_exec;
    ServerProcess server(options);
    INFO(refusal.name << ": " << server.stderr_text());
    RawClient client(server.port());
    CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
    CHECK(server.counters().json().at("engine").text == "epoll");
    const std::vector<std::string> lines = server.stderr_lines();
    const auto warnings = std::ranges::count_if(
        lines, [](const std::string& line) { return line.find("[warn") != std::string::npos; });
    CHECK(warnings == 1);
    CHECK(words_missing(lines.at(0), refusal) == std::vector<std::string>{});
    CHECK(lines.at(0).find("epoll serves") != std::string::npos);
    CHECK(server.stop() == 0);
}

}  // namespace

TEST_CASE("The option --engine io_uring ends with a clear line when io_uring is refused",
          "[live][refusal]") {
    for (const Refusal& refusal : refusals_by_seccomp()) {
        check_that_io_uring_is_refused(refusal);
    }
}

TEST_CASE("The option --engine auto serves by epoll where io_uring is refused, and says why",
          "[live][refusal]") {
    for (const Refusal& refusal : refusals_by_seccomp()) {
        check_that_epoll_serves(refusal);
    }
}

TEST_CASE("kernel.io_uring_disabled is blamed, not a filter that may be there as well",
          "[live][refusal]") {
    const Refusal for_the_group{"kernel.io_uring_disabled=1",
                                {"kernel.io_uring_disabled=1", "sysctl -w", "io_uring_group"},
                                [] { pretend_disabled('1'); }};
    const Refusal for_all{"kernel.io_uring_disabled=2",
                          {"kernel.io_uring_disabled=2", "sysctl -w kernel.io_uring_disabled=0"},
                          [] { pretend_disabled('2'); }};
    for (const Refusal& refusal : {for_the_group, for_all}) {
        check_that_io_uring_is_refused(refusal);
        check_that_epoll_serves(refusal);
    }
}

TEST_CASE("a locked-memory limit that is too low is named with its size and cures",
          "[live][refusal][memlock]") {
    need_other_users();
    const std::vector<std::string> words{"locked memory", "(0 KiB",        "ulimit -l",
                                         "memlock=-1",    "LimitMEMLOCK=", "KiB each"};
    ToolOptions options;
    options.before_exec = lock_at_most(0);
    if (run_server({"--engine", "io_uring", "--port", "0", "--threads", "1"}, std::move(options))
            .exit_code != 1) {
        SKIP("this kernel does not count rings as locked memory, or this user has privileges");
    }
    check_that_io_uring_is_refused({"no locked memory", words, lock_at_most(0)});
    check_that_epoll_serves({"no locked memory", words, lock_at_most(0)});
}

TEST_CASE("a low locked-memory limit makes the rings smaller before io_uring is given up",
          "[live][refusal][memlock]") {
    need_other_users();
    ServerOptions options;
    options.arguments = {"--engine", "auto", "--threads", "1"};
    options.before_exec = lock_at_most(8192);
    ServerProcess roomy(options);
    if (submissions_of(roomy) != 1024) {
        SKIP("no ring of full size here");
    }
    options.before_exec = lock_at_most(100);
    ServerProcess server(options);
    CHECK(server.counters().json().at("engine").text == "io_uring");
    INFO(server.stderr_text());
    CHECK(submissions_of(server) >= 64);
    if (submissions_of(server) == 1024) {
        SKIP("this kernel does not count rings as locked memory");
    }
    std::vector<RawClient> clients;
    for (int index = 0; index < 300; ++index) {  // more than a small ring has entries
        clients.emplace_back(server.port());
        clients.back().send(kGet);
    }
    for (RawClient& client : clients) {
        REQUIRE(client.read(1).statuses() == "200");
    }
    CHECK(server.stop() == 0);
}

TEST_CASE("The option --engine epoll needs no io_uring and doesn't mention it", "[live][refusal]") {
    ServerOptions options;
    options.arguments = {"--engine", "epoll"};
    options.before_exec = by_seccomp(EPERM, {}).before_exec;
    ServerProcess server(options);
    RawClient client(server.port());
    CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
    CHECK(server.stderr_text().find("io_uring") == std::string::npos);
    CHECK(server.stop() == 0);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// What the server takes from the machine, and what it makes of a machine that offers less: memory
// with many connections, or with many that might come, and no IPv6.

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "../support/seccomp.h"
#include "support/namespaces.h"
#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/time_scale.h"
#include "support/tool.h"

namespace hello::test {
namespace {

constexpr rlim_t kFewFiles = 1024;
constexpr rlim_t kManyFiles = 1'000'000;

/// Raises the limit of open files of this process as long as the object lives.
class OpenFiles {
public:
    /// Skips the test where `wanted` is more than we may have.
    explicit OpenFiles(rlim_t wanted) {
        REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
        const rlimit raised{wanted, std::max(wanted, before_.rlim_max)};
        if (setrlimit(RLIMIT_NOFILE, &raised) != 0) {
            SKIP("no " << wanted << " open files: the hard limit is " << before_.rlim_max);
        }
    }
    ~OpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
    OpenFiles(const OpenFiles&) = delete;
    OpenFiles& operator=(const OpenFiles&) = delete;

private:
    rlimit before_{};
};

ToolOptions with_open_files(rlim_t files) {
    ToolOptions options;
    options.limits = {{RLIMIT_NOFILE, files, files}};
    return options;
}

/// The memory of a server that has served one request, in KiB.
long memory_with_open_files(rlim_t files) {
    ServerOptions options;
    options.arguments = {"--threads", "2"};
    options.limits = {{RLIMIT_NOFILE, kFewFiles, files}};
    ServerProcess server(options);
    CHECK(RawClient(server.port()).exchange_to_end(kGetClose).statuses() == "200");
    rlimit limit{};
    REQUIRE(prlimit(server.pid(), RLIMIT_NOFILE, nullptr, &limit) == 0);
    CHECK(limit.rlim_cur == files);
    return pss_kib(server.pid());
}

}  // namespace

TEST_CASE("nine thousand idle connections take at most 16 MiB", "[live][memory]") {
    if (kSlowBuild) {
        SKIP("sanitizers take memory of their own");
    }
    constexpr int kCount = 9000;
    const OpenFiles enough(kCount + 200);
    ServerProcess server({"--threads", "2", "--host", "0.0.0.0"});
    const long before = pss_kib(server.pid());
    std::vector<RawClient> clients;
    clients.reserve(kCount);
    for (int index = 0; index < kCount; ++index) {
        // Several addresses, for one has not always 9,000 ports left.
        clients.emplace_back(server.port(),
                             ClientOptions{.address = "127.0.0." + std::to_string(1 + index % 9)});
        clients.back().send(kGet);
    }
    int served = 0;
    for (RawClient& client : clients) {
        served += client.read(1).statuses() == "200" ? 1 : 0;
    }
    CHECK(served == kCount);
    CHECK(server.counters()["connections_open"] == kCount);
    const long after = pss_kib(server.pid());
    INFO("PSS: " << before << " KiB without connections, " << after << " KiB with " << kCount);
    CHECK(after <= 16 * 1024);
    for (int index = 0; index < kCount; index += 500) {
        CHECK(clients.at(static_cast<std::size_t>(index)).exchange(kGet, 1).statuses() == "200");
    }
}

TEST_CASE("a high limit of open files takes no more memory than a low one", "[live][memory]") {
    rlim_t many = kManyFiles;
    if (run_tool({"true"}, with_open_files(many)).exit_code != 0) {
        rlimit ours{};
        REQUIRE(getrlimit(RLIMIT_NOFILE, &ours) == 0);
        many = ours.rlim_max;
    }
    if (many < 8 * kFewFiles) {
        SKIP("the hard limit of open files is only " << many);
    }
    const long with_few = memory_with_open_files(kFewFiles);
    const long with_many = memory_with_open_files(many);
    INFO("PSS: " << with_few << " KiB with " << kFewFiles << " open files, " << with_many
                 << " KiB with " << many);
    CHECK(with_many <= with_few + (kSlowBuild ? 4096 : 1024));
}

TEST_CASE("where IPv6 is switched off, IPv4 is served", "[live][host]") {
    const NetworkNamespace network;
    network.set("ipv6/conf/all/disable_ipv6", "1");
    ServerOptions options;
    options.add_address = false;
    options.arguments = {"--port", "0"};
    options.before_exec = network.enter();
    ServerProcess server(options);
    ToolOptions client;
    client.before_exec = network.enter();
    const ToolResult check = run_server({"--check", server.url()}, client);
    INFO(check.all());
    CHECK(check.exit_code == 0);
    CHECK(server.stop() == 0);
}

TEST_CASE("where the kernel has no IPv6, the server listens on all addresses of IPv4",
          "[live][host]") {
    ServerOptions options;
    options.add_address = false;
    options.arguments = {"--port", "0"};
    options.before_exec = [] {
        if (!refuse_ipv6()) {
            _exit(kNotAllowed);
        }
    };
    ServerProcess server(options);
    CHECK(server.ready_line() == "listening on http://0.0.0.0:" + std::to_string(server.port()));
    CHECK(RawClient(server.port()).exchange_to_end(kGetClose).statuses() == "200");
    CHECK(server.stop() == 0);
}

}  // namespace hello::test

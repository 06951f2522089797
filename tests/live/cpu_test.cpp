// SPDX-License-Identifier: MIT
//
// The number of threads by default: no more than the CPUs that the process may use, and no more
// than its control group lets it use up.

#include <sched.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include "support/control_group.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/tool.h"

namespace hello::test {
namespace {

/// Skips the test where one thread would be no more news than the number of CPUs.
void require_two_cpus() {
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
    if (CPU_COUNT(&set) < 2) {
        SKIP("there is one CPU only");
    }
}

/// The threads of a server that is started there, which it also tells in its log.
std::int64_t threads_of_server(std::function<void()> before_exec) {
    ServerOptions options;
    options.before_exec = std::move(before_exec);
    ServerProcess server(options);
    CHECK(RawClient(server.port()).exchange_to_end(kGetClose).statuses() == "200");
    const std::int64_t threads = server.counters()["threads"];
    CHECK(number_before(server.stderr_text(), " threads") == threads);
    return threads;
}

}  // namespace

TEST_CASE("a quota of cgroup v1 limits the threads", "[live][cpu]") {
    require_two_cpus();
    const ControlGroup group(CgroupVersion::One, "cpu");
    group.set("cpu.cfs_period_us", "100000");
    group.set("cpu.cfs_quota_us", "90000");
    CHECK(threads_of_server(group.enter()) == 1);
    group.set("cpu.cfs_quota_us", "110000");
    CHECK(threads_of_server(group.enter()) == std::min<std::int64_t>(2, threads_of_server({})));
}

TEST_CASE("a quota of cgroup v2 limits the threads", "[live][cpu]") {
    require_two_cpus();
    const ControlGroup group(CgroupVersion::Two, "cpu");
    group.set("cpu.max", "90000 100000");
    CHECK(threads_of_server(group.enter()) == 1);
    group.set("cpu.max", "110000 100000");
    CHECK(threads_of_server(group.enter()) == std::min<std::int64_t>(2, threads_of_server({})));
}

TEST_CASE("a quota that files in /sys/fs/cgroup tell limits the threads", "[live][cpu]") {
    // For the version of cgroups that this machine does not have.
    require_two_cpus();
    SECTION("version 1") {
        const FakeControlGroups groups("4:cpu,cpuacct:/pod\n0::/\n");
        CHECK(threads_of_server(groups.enter()) >= 2);
        groups.set("cpu/pod/cpu.cfs_quota_us", "90000");
        groups.set("cpu/pod/cpu.cfs_period_us", "100000");
        CHECK(threads_of_server(groups.enter()) == 1);
    }
    SECTION("version 2") {
        const FakeControlGroups groups("0::/pod/server\n");
        CHECK(threads_of_server(groups.enter()) >= 2);
        groups.set("pod/cpu.max", "90000 100000");
        groups.set("pod/server/cpu.max", "max 100000");
        CHECK(threads_of_server(groups.enter()) == 1);
    }
}

TEST_CASE("a CPU set of a control group limits the threads", "[live][cpu]") {
    require_two_cpus();
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
    std::size_t first = 0;
    while (!CPU_ISSET(first, &set)) {
        ++first;
    }
    const ControlGroup group(CgroupVersion::One, "cpuset");
    group.set("cpuset.mems", group.inherited("cpuset.mems"));
    group.set("cpuset.cpus", std::to_string(first));
    CHECK(threads_of_server(group.enter()) == 1);
}

}  // namespace hello::test

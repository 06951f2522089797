// SPDX-License-Identifier: MIT
//
// Tests of cpu.h: the quota from made-up cgroup trees, the affinity mask of this very process.

#include "cpu.h"

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "../support/temp_folder.h"

namespace hello::test {
namespace {

/// A file system of control groups, and where in it a process is.
class FakeCgroups {
public:
    explicit FakeCgroups(const std::string& membership)
        : membership_(folder_.write("membership", membership)) {}

    /// `group`: below the root, "" is the root itself.
    FakeCgroups& v2(const std::string& group, const std::string& cpu_max) {
        folder_.write(std::filesystem::path("root") / group / "cpu.max", cpu_max + "\n");
        return *this;
    }
    FakeCgroups& v1(const std::string& group, const std::string& quota, const std::string& period) {
        const auto folder = std::filesystem::path("root/cpu") / group;
        folder_.write(folder / "cpu.cfs_quota_us", quota + "\n");
        folder_.write(folder / "cpu.cfs_period_us", period + "\n");
        return *this;
    }

    [[nodiscard]] int quota() const { return cpu_quota(folder_.path() / "root", membership_); }

private:
    TempFolder folder_;
    std::filesystem::path membership_;
};

FakeCgroups version_2() {
    return FakeCgroups("0::/a/b\n");
}

FakeCgroups version_1() {
    return FakeCgroups("7:memory:/m\n4:cpu,cpuacct:/a/b\n1:name=systemd:/s\n");
}

/// The affinity mask as the C library tells it.
std::vector<int> cpus_of_mask() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
    std::vector<int> cpus;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &mask)) {
            cpus.push_back(static_cast<int>(cpu));
        }
    }
    return cpus;
}

/// What `ask` returns in a thread that may run on `cpu` only.
template <typename Ask>
auto ask_on(int cpu, Ask ask) {
    decltype(ask()) answer{};
    std::thread([&] {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(static_cast<std::size_t>(cpu), &mask);
        sched_setaffinity(0, sizeof mask, &mask);
        answer = ask();
    }).join();
    return answer;
}

}  // namespace

TEST_CASE("cpu_quota reads quota and period of cgroup v2", "[cpu]") {
    CHECK(version_2().v2("a/b", "200000 100000").quota() == 2);
    CHECK(version_2().v2("a/b", "100000 50000").quota() == 2);
}

TEST_CASE("cpu_quota reads quota and period of cgroup v1", "[cpu]") {
    CHECK(version_1().v1("a/b", "300000", "100000").quota() == 3);
}

TEST_CASE("cpu_quota is 0 where cgroup v2 says max", "[cpu]") {
    CHECK(version_2().v2("", "max 100000").v2("a/b", "max 100000").quota() == 0);
}

TEST_CASE("cpu_quota is 0 where cgroup v1 says -1", "[cpu]") {
    CHECK(version_1().v1("", "-1", "100000").v1("a/b", "-1", "100000").quota() == 0);
}

TEST_CASE("cpu_quota is 0 without any file", "[cpu]") {
    CHECK(version_2().quota() == 0);
    CHECK(version_1().quota() == 0);
    CHECK(FakeCgroups("").quota() == 0);
    CHECK(cpu_quota("/nonexistent", "/nonexistent/cgroup") == 0);
}

TEST_CASE("cpu_quota is 0 where only half of cgroup v1 is there", "[cpu]") {
    const TempFolder folder;
    const auto membership = folder.write("membership", "4:cpu:/a\n");
    folder.write("cpu/a/cpu.cfs_quota_us", "100000\n");
    CHECK(cpu_quota(folder.path(), membership) == 0);
}

TEST_CASE("cpu_quota is 0 where a file holds no numbers", "[cpu]") {
    CHECK(version_2().v2("a/b", "").quota() == 0);
    CHECK(version_2().v2("a/b", "many of them").quota() == 0);
    CHECK(version_2().v2("a/b", "100000").quota() == 0);
    CHECK(version_2().v2("a/b", "100000 0").quota() == 0);
}

TEST_CASE("cpu_quota rounds a part of a CPU up", "[cpu]") {
    CHECK(version_2().v2("a/b", "1000 100000").quota() == 1);
    CHECK(version_2().v2("a/b", "99999 100000").quota() == 1);
    CHECK(version_2().v2("a/b", "100000 100000").quota() == 1);
    CHECK(version_2().v2("a/b", "100001 100000").quota() == 2);
    CHECK(version_2().v2("a/b", "250000 100000").quota() == 3);
    CHECK(version_1().v1("a/b", "50000", "100000").quota() == 1);
    CHECK(version_1().v1("a/b", "150000", "100000").quota() == 2);
}

TEST_CASE("cpu_quota is that of the tightest group above us", "[cpu]") {
    CHECK(version_2().v2("a", "200000 100000").v2("a/b", "400000 100000").quota() == 2);
    CHECK(version_2().v2("a", "400000 100000").v2("a/b", "200000 100000").quota() == 2);
    CHECK(version_2().v2("a", "200000 100000").v2("a/b", "max 100000").quota() == 2);
    CHECK(version_1().v1("a", "200000", "100000").v1("a/b", "-1", "100000").quota() == 2);
    CHECK(version_1().v1("a", "-1", "100000").v1("a/b", "300000", "100000").quota() == 3);
}

TEST_CASE("cpu_quota heeds the root, which in a container is the container's group", "[cpu]") {
    CHECK(version_2().v2("", "300000 100000").quota() == 3);
    CHECK(version_1().v1("", "300000", "100000").quota() == 3);
    CHECK(FakeCgroups("0::/\n").v2("", "100000 100000").quota() == 1);
    CHECK(FakeCgroups("2:cpu:/\n").v1("", "100000", "100000").quota() == 1);
}

TEST_CASE("cpu_quota ignores groups that we are not in", "[cpu]") {
    CHECK(version_2().v2("c", "100000 100000").v2("a/b/c", "100000 100000").quota() == 0);
    CHECK(version_1().v1("m", "100000", "100000").v1("s", "100000", "100000").quota() == 0);
}

TEST_CASE("cpu_quota takes the tighter of both versions where both are mounted", "[cpu]") {
    FakeCgroups cgroups("3:cpu,cpuacct:/a\n0::/b\n");
    cgroups.v1("a", "400000", "100000");
    CHECK(cgroups.quota() == 4);
    cgroups.v2("b", "300000 100000");
    CHECK(cgroups.quota() == 3);
    cgroups.v1("a", "200000", "100000");
    CHECK(cgroups.quota() == 2);
}

TEST_CASE("cpu_quota finds the cpu controller wherever it is in the list", "[cpu]") {
    for (const char* const controllers : {"cpu", "cpu,cpuacct", "cpuacct,cpu", "a,cpu,b"}) {
        INFO(controllers);
        FakeCgroups cgroups("3:" + std::string(controllers) + ":/a\n");
        CHECK(cgroups.v1("a", "200000", "100000").quota() == 2);
    }
}

TEST_CASE("cpu_quota takes no other controller for cpu", "[cpu]") {
    for (const char* const controllers : {"cpuset", "cpuacct", "name=cpu", "xcpu", "cpuset,mcpu"}) {
        INFO(controllers);
        FakeCgroups cgroups("3:" + std::string(controllers) + ":/a\n");
        CHECK(cgroups.v1("a", "200000", "100000").quota() == 0);
    }
}

TEST_CASE("cpu_quota skips lines that are no membership", "[cpu]") {
    CHECK(FakeCgroups("\nrubbish\n1:2\n0::/a\n").v2("a", "200000 100000").quota() == 2);
}

TEST_CASE("cpu_quota reads a last line without a line end", "[cpu]") {
    CHECK(FakeCgroups("0::/a").v2("a", "200000 100000").quota() == 2);
}

TEST_CASE("cpu_quota reads group names with colons", "[cpu]") {
    CHECK(FakeCgroups("0::/a:b\n").v2("a:b", "200000 100000").quota() == 2);
}

TEST_CASE("allowed_cpus are those of the affinity mask", "[cpu]") {
    CHECK_FALSE(allowed_cpus().empty());
    CHECK(allowed_cpus() == cpus_of_mask());
}

TEST_CASE("allowed_cpus follow a narrowed mask", "[cpu]") {
    for (const int cpu : cpus_of_mask()) {
        CHECK(ask_on(cpu, allowed_cpus) == std::vector<int>{cpu});
    }
}

TEST_CASE("usable_cpu_count is 1 where one CPU is allowed", "[cpu]") {
    CHECK(ask_on(cpus_of_mask().back(), usable_cpu_count) == 1);
}

TEST_CASE("usable_cpu_count is at least 1, and no more than the allowed CPUs", "[cpu]") {
    CHECK(usable_cpu_count() >= 1);
    CHECK(usable_cpu_count() <= static_cast<int>(cpus_of_mask().size()));
}

TEST_CASE("pin_to_cpu leaves the calling thread one CPU", "[cpu]") {
    for (const int cpu : cpus_of_mask()) {
        int error = -1;
        std::vector<int> cpus;
        std::thread([&] {
            error = pin_to_cpu(cpu);
            cpus = cpus_of_mask();
        }).join();
        CHECK(error == 0);
        CHECK(cpus == std::vector<int>{cpu});
    }
}

TEST_CASE("pin_to_cpu leaves the other threads alone", "[cpu]") {
    const std::vector<int> before = cpus_of_mask();
    std::thread([&] { static_cast<void>(pin_to_cpu(before.front())); }).join();
    CHECK(cpus_of_mask() == before);
}

TEST_CASE("pin_to_cpu refuses a CPU that does not exist", "[cpu]") {
    const std::vector<int> before = cpus_of_mask();
    CHECK(pin_to_cpu(-1) == EINVAL);
    CHECK(pin_to_cpu(16'383) == EINVAL);
    CHECK(pin_to_cpu(16'384) == EINVAL);
    CHECK(cpus_of_mask() == before);
}

}  // namespace hello::test

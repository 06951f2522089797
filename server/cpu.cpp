// SPDX-License-Identifier: MIT
//
// CPU affinity and quota: see cpu.h.

#include "cpu.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <utility>

#include "error.h"

namespace hello {
namespace {

/// Room for 16,384 CPUs; cpu_set_t alone has room for 1,024.
using CpuMask = std::array<cpu_set_t, 16>;

int round_up(double quota, double period) {
    return quota > 0 && period > 0 ? std::max(1, static_cast<int>((quota + period - 1) / period))
                                   : 0;
}

int tighter(int a, int b) {
    return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

/// Numbers at the begin of a file; "max", -1 and a missing file count as 0, no quota.
std::pair<double, double> read_numbers(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::pair<double, double> numbers{0, 0};
    file >> numbers.first >> numbers.second;
    return numbers;
}

/// cgroup v2: "QUOTA PERIOD" in one file; v1: two files.
int read_quota(const std::filesystem::path& group) {
    const auto [quota, period] = read_numbers(group / "cpu.max");
    return tighter(round_up(quota, period),
                   round_up(read_numbers(group / "cpu.cfs_quota_us").first,
                            read_numbers(group / "cpu.cfs_period_us").first));
}

}  // namespace

std::vector<int> allowed_cpus() {
    CpuMask mask{};
    check_errno(sched_getaffinity(0, sizeof mask, mask.data()), "sched_getaffinity");
    std::vector<int> cpus;
    for (int cpu = 0; cpu < static_cast<int>(8 * sizeof mask); ++cpu) {
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), sizeof mask, mask.data())) {
            cpus.push_back(cpu);
        }
    }
    return cpus;
}

int cpu_quota(const std::filesystem::path& cgroup_root, const std::filesystem::path& membership) {
    std::ifstream file(membership);
    int quota = 0;
    // Each line: hierarchy-ID:controller-list:path; cgroup v2 is "0::path".
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        if (controllers != ",," && controllers.find(",cpu,") == std::string::npos) {
            continue;
        }
        const auto hierarchy = controllers == ",," ? cgroup_root : cgroup_root / "cpu";
        quota = tighter(quota, read_quota(hierarchy));
        for (std::string path = line.substr(second + 1); path.size() > 1;) {
            quota = tighter(quota, read_quota(hierarchy / path.substr(1)));
            path.resize(path.find_last_of('/'));
        }
    }
    return quota;
}

int usable_cpu_count() {
    const int allowed = std::max(1, static_cast<int>(allowed_cpus().size()));
    const int quota = cpu_quota();
    return quota == 0 ? allowed : std::min(allowed, quota);
}

int pin_to_cpu(int cpu) noexcept {
    CpuMask mask{};
    CPU_SET_S(static_cast<std::size_t>(cpu), sizeof mask, mask.data());
    return pthread_setaffinity_np(pthread_self(), sizeof mask, mask.data());
}

}  // namespace hello

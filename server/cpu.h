// SPDX-License-Identifier: MIT
//
// Which CPUs, and how much of them, this process may use: never what the machine has.

#pragma once

#include <filesystem>
#include <vector>

namespace hello {

/// CPU numbers of the affinity mask (sched_getaffinity(2)), ascending; works beyond 1024 CPUs.
[[nodiscard]] std::vector<int> allowed_cpus();

/// CPUs that the cgroup quota grants, the tightest of all levels, rounded up; 0 = no quota.
/// Reads cpu.max (cgroup v2) or cpu.cfs_quota_us (v1) below `cgroup_root`, for the groups named
/// in `membership`, a file in the form of /proc/self/cgroup (cgroups(7)).
[[nodiscard]] int cpu_quota(const std::filesystem::path& cgroup_root = "/sys/fs/cgroup",
                            const std::filesystem::path& membership = "/proc/self/cgroup");

/// Threads worth starting: the allowed CPUs, but no more than the quota.
[[nodiscard]] int usable_cpu_count();

/// Pins the calling thread. Returns 0 or an error number.
[[nodiscard]] int pin_to_cpu(int cpu) noexcept;

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// What /proc tells about a process: descriptors, threads, processor time, memory, and about
// sockets. Functions return a snapshot; a process or thread that vanishes while it is read is
// simply left out.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "support/file_descriptor.h"

namespace hello::test {

/// Number of open descriptors.
[[nodiscard]] std::size_t open_descriptors(pid_t pid);
/// Name (comm) of every thread, kernel io workers ("iou-wrk-N") included.
[[nodiscard]] std::vector<std::string> thread_names(pid_t pid);
/// Ids of all threads.
[[nodiscard]] std::vector<pid_t> thread_ids(pid_t pid);
/// Processor time of all threads, user and system, in clock ticks (1/100 s).
[[nodiscard]] long cpu_ticks(pid_t pid);
/// Proportional memory use in KiB, from smaps_rollup.
[[nodiscard]] long pss_kib(pid_t pid);
/// The part of it that is the process's own: no file, no library, whoever else has them mapped.
[[nodiscard]] long anonymous_pss_kib(pid_t pid);
/// The first child of a process, or -1.
[[nodiscard]] pid_t first_child(pid_t pid);
/// A field of /proc/PID/status such as "SigIgn"; empty when there is none.
[[nodiscard]] std::string status_field(pid_t pid, const std::string& name);
/// True when any thread is a kernel io worker: something was punted to io-wq.
[[nodiscard]] bool has_io_worker(pid_t pid);
/// IPv4 sockets of this network that are connected to that port, also where the peer has closed.
[[nodiscard]] std::size_t sockets_connected_to(std::uint16_t port);

/// How long threads were ready to run and had no processor, from /proc/PID/task/TID/schedstat. Its
/// files stay open, so that it can be asked for each of a thousand requests in a second.
class CpuWaits {
public:
    void watch(pid_t pid, pid_t thread);
    void watch_all(pid_t pid);
    /// The sum of all since they began; 0 where the kernel does not count it.
    [[nodiscard]] std::chrono::microseconds total() const;

private:
    std::vector<FileDescriptor> files_;
};

}  // namespace hello::test

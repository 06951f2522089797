// SPDX-License-Identifier: MIT
//
// Readers of /proc.

#include "support/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hello::test {
namespace {

namespace fs = std::filesystem;

fs::path directory(pid_t pid) {
    return fs::path("/proc") / std::to_string(pid);
}

std::string first_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::vector<fs::path> entries(const fs::path& path) {
    std::vector<fs::path> result;
    std::error_code error;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
        result.push_back(entry->path());
    }
    return result;
}

/// The value after "Name:" in a file of such lines.
std::string field(const fs::path& path, const std::string& name) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        if (line.starts_with(name + ":")) {
            const std::size_t begin = line.find_first_not_of(" \t", name.size() + 1);
            return begin == std::string::npos ? "" : line.substr(begin);
        }
    }
    return "";
}

/// Hexadecimal digits at a place in a line, 0 where there are none.
unsigned hex_at(const std::string& line, std::size_t offset, std::size_t size) {
    unsigned value = 0;
    if (offset + size <= line.size()) {
        std::from_chars(line.data() + offset, line.data() + offset + size, value, 16);
    }
    return value;
}

long kib_of_smaps(pid_t pid, const std::string& name) {
    const std::string value = field(directory(pid) / "smaps_rollup", name);
    return value.empty() ? 0 : std::stol(value);
}

}  // namespace

std::size_t open_descriptors(pid_t pid) {
    return entries(directory(pid) / "fd").size();
}

std::vector<std::string> thread_names(pid_t pid) {
    std::vector<std::string> result;
    for (const fs::path& task : entries(directory(pid) / "task")) {
        result.push_back(first_line(task / "comm"));
    }
    return result;
}

std::vector<pid_t> thread_ids(pid_t pid) {
    std::vector<pid_t> result;
    for (const fs::path& task : entries(directory(pid) / "task")) {
        result.push_back(std::stoi(task.filename().string()));
    }
    return result;
}

long cpu_ticks(pid_t pid) {
    // Fields 14 and 15; the name in field 2 may hold spaces, so count from its closing bracket.
    const std::string line = first_line(directory(pid) / "stat");
    const std::size_t bracket = line.rfind(')');
    if (bracket == std::string::npos) {
        return 0;
    }
    std::istringstream fields(line.substr(bracket + 1));
    std::string skipped;
    for (int index = 3; index < 14; ++index) {
        fields >> skipped;
    }
    long user = 0;
    long system = 0;
    fields >> user >> system;
    return user + system;
}

long pss_kib(pid_t pid) {
    return kib_of_smaps(pid, "Pss");
}

long anonymous_pss_kib(pid_t pid) {
    return kib_of_smaps(pid, "Pss_Anon");
}

pid_t first_child(pid_t pid) {
    const std::string children =
        first_line(directory(pid) / "task" / std::to_string(pid) / "children");
    return children.empty() ? -1 : std::stoi(children);
}

std::string status_field(pid_t pid, const std::string& name) {
    return field(directory(pid) / "status", name);
}

bool has_io_worker(pid_t pid) {
    return std::ranges::any_of(thread_names(pid),
                               [](const std::string& name) { return name.starts_with("iou-wrk"); });
}

std::size_t sockets_connected_to(std::uint16_t port) {
    constexpr unsigned kEstablished = 1;
    constexpr unsigned kCloseWait = 8;
    std::ifstream file("/proc/net/tcp");
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) {
        // "  12: 0100007F:1F90 0100007F:C350 01 ...": local and remote address, state
        const std::size_t local = line.find(": ") + 2;
        const unsigned state = hex_at(line, local + 28, 2);
        if (hex_at(line, local + 23, 4) == port && (state == kEstablished || state == kCloseWait)) {
            ++count;
        }
    }
    return count;
}

void CpuWaits::watch(pid_t pid, pid_t thread) {
    const fs::path path = directory(pid) / "task" / std::to_string(thread) / "schedstat";
    files_.emplace_back(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

void CpuWaits::watch_all(pid_t pid) {
    for (const pid_t thread : thread_ids(pid)) {
        watch(pid, thread);
    }
}

std::chrono::microseconds CpuWaits::total() const {
    std::chrono::nanoseconds waited(0);
    for (const FileDescriptor& file : files_) {
        // "RAN WAITED SLICES", in nanoseconds.
        std::array<char, 128> text{};
        if (pread(file.get(), text.data(), text.size() - 1, 0) > 0) {
            char* rest = text.data();
            std::strtoll(rest, &rest, 10);
            waited += std::chrono::nanoseconds(std::strtoll(rest, nullptr, 10));
        }
    }
    return std::chrono::duration_cast<std::chrono::microseconds>(waited);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Control groups, real and made up: see control_group.h.

#include "support/control_group.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

#include <catch2/catch_test_macros.hpp>

#include "support/namespaces.h"
#include "support/tool.h"

namespace hello::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRoot = "/sys/fs/cgroup";
constexpr const char* kMembership = "/proc/self/cgroup";

std::string first_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Our path in the hierarchy of that controller, "" being cgroup v2's; empty where there is none.
std::string own_path(const std::string& controller) {
    std::ifstream file(kMembership);
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (("," + controllers + ",").find("," + controller + ",") != std::string::npos) {
            return line.substr(second + 1);
        }
    }
    return "";
}

bool contains_word(const std::string& text, const std::string& word) {
    return (" " + text + " ").find(" " + word + " ") != std::string::npos;
}

/// The folder of our own group, which `controller` governs.
fs::path own_group(CgroupVersion version, const std::string& controller) {
    const bool two = version == CgroupVersion::Two;
    const std::string path = own_path(two ? "" : controller);
    fs::path group =
        fs::path(two ? kRoot : kRoot + ("/" + controller)) / path.substr(path.empty() ? 0 : 1);
    const bool governed =
        !two || contains_word(first_line(group / "cgroup.subtree_control"), controller);
    if (path.empty() || !governed || !fs::exists(group / "cgroup.procs")) {
        SKIP("cgroup v" << (two ? 2 : 1) << " does not govern " << controller << " here");
    }
    return group;
}

}  // namespace

ControlGroup::ControlGroup(CgroupVersion version, const std::string& controller)
    : path_(own_group(version, controller) / ("hello-live-" + std::to_string(getpid()))) {
    std::error_code error;
    if (!fs::create_directory(path_, error)) {
        SKIP("no new control group " << path_.string() << ": " << error.message());
    }
}

ControlGroup::~ControlGroup() {
    rmdir(path_.c_str());
}

void ControlGroup::set(const std::string& setting, const std::string& value) const {
    std::ofstream file(path_ / setting);
    file << value << std::flush;
    if (!file) {  // the group above may allow no more
        SKIP("the kernel refuses " << setting << " = " << value);
    }
}

std::string ControlGroup::inherited(const std::string& setting) const {
    return first_line(path_.parent_path() / setting);
}

std::function<void()> ControlGroup::enter() const {
    return [procs = (path_ / "cgroup.procs").string()] {
        const int fd = open(procs.c_str(), O_WRONLY | O_CLOEXEC);
        if (write(fd, "0", 1) != 1) {
            _exit(kNotAllowed);
        }
    };
}

FakeControlGroups::FakeControlGroups(const std::string& membership) {
    folder_.write("membership", membership);
    fs::create_directory(folder_.path() / "root");
    ToolOptions options;
    options.before_exec = enter();
    if (run_tool({"true"}, options).exit_code != 0) {
        SKIP("can't mount anything over " << kRoot << " and " << kMembership);
    }
}

void FakeControlGroups::set(const std::string& file, const std::string& value) const {
    folder_.write(fs::path("root") / file, value + "\n");
}

std::function<void()> FakeControlGroups::enter() const {
    return [root = (folder_.path() / "root").string(),
            membership = (folder_.path() / "membership").string()] {
        if (!leave_common_mounts() || mount(root.c_str(), kRoot, nullptr, MS_BIND, nullptr) != 0 ||
            mount(membership.c_str(), kMembership, nullptr, MS_BIND, nullptr) != 0) {
            _exit(kNotAllowed);
        }
    };
}

}  // namespace hello::test

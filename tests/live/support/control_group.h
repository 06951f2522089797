// SPDX-License-Identifier: MIT
//
// ControlGroup: a group of the kernel's own, below that of this process, gone with the object; and
// FakeControlGroups: files that look like groups to one child alone, for what a machine lacks.
// Where they can't be made, the test is skipped with the reason.

#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "../support/temp_folder.h"

namespace hello::test {

enum class CgroupVersion { One, Two };

class ControlGroup {
public:
    /// One that `controller` governs.
    ControlGroup(CgroupVersion version, const std::string& controller);
    ~ControlGroup();
    ControlGroup(const ControlGroup&) = delete;
    ControlGroup& operator=(const ControlGroup&) = delete;

    /// Settings are files such as "cpu.max". The test is skipped where the kernel refuses one.
    void set(const std::string& setting, const std::string& value) const;
    /// The value that the group above has.
    [[nodiscard]] std::string inherited(const std::string& setting) const;
    /// For before_exec of a child that is to be in the group.
    [[nodiscard]] std::function<void()> enter() const;

private:
    std::filesystem::path path_;
};

class FakeControlGroups {
public:
    /// `membership`: what /proc/self/cgroup says.
    explicit FakeControlGroups(const std::string& membership);

    /// `file`: a path below /sys/fs/cgroup.
    void set(const std::string& file, const std::string& value) const;
    /// For before_exec of a child that is to see them.
    [[nodiscard]] std::function<void()> enter() const;

private:
    TempFolder folder_;
};

}  // namespace hello::test

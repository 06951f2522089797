// SPDX-License-Identifier: MIT
//
// Namespaces for children of a test: a network, or mounts, that nobody else sees, so that a test
// may change kernel settings and files of the system. As root, else in a user namespace of its own;
// where neither is allowed, the test is skipped with the reason.

#pragma once

#include <functional>
#include <string>

#include "support/file_descriptor.h"

namespace hello::test {

/// A network with a loopback interface of its own, which all children that enter() share.
class NetworkNamespace {
public:
    NetworkNamespace();

    /// For before_exec of every child that is to live in it.
    [[nodiscard]] std::function<void()> enter() const;
    /// Writes /proc/sys/net/NAME; the test is skipped where there is no such setting.
    void set(const std::string& name, const std::string& value) const;

private:
    FileDescriptor user_;  // only where we are not root
    FileDescriptor network_;
};

/// Lets this process see mounts of its own from now on, which nobody else does. Returns false where
/// that is not allowed. Async-signal-safe.
[[nodiscard]] bool leave_common_mounts();

/// The code a child ends with when its before_exec could not do what it should.
inline constexpr int kNotAllowed = 77;

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// What the kernel does on a bad day, or an old one: calls of liburing that the linker diverts
// (--wrap, see CMakeLists.txt) fail as a test wants; otherwise they are what they always are.

#pragma once

namespace hello::test {

/// While it lives, the next `count` calls of io_uring_enter return `result` and do nothing.
class FailingEnter {
public:
    explicit FailingEnter(int result, int count = kAll);
    FailingEnter(const FailingEnter&) = delete;
    FailingEnter& operator=(const FailingEnter&) = delete;
    ~FailingEnter();

    /// How many have failed.
    [[nodiscard]] int failed() const;

    static constexpr int kAll = 1'000'000;
};

/// While it lives, io_uring_setup knows none of the flags in `unknown`, as an older kernel.
class OlderSetup {
public:
    explicit OlderSetup(unsigned unknown);
    OlderSetup(const OlderSetup&) = delete;
    OlderSetup& operator=(const OlderSetup&) = delete;
    ~OlderSetup();
};

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// run_in_child: for what a process can do only once or cannot take back: limits, users, filters, a
// standard error that nobody reads. The child ends without destructors and without Catch2; what it
// found out comes back as text, and a child that hangs is ended by SIGALRM.

#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "error.h"
#include "unique_fd.h"

namespace hello::test {

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        check_errno(pipe2(ends.data(), O_CLOEXEC), "pipe2");
        reader.reset(ends[0]);
        writer.reset(ends[1]);
    }
    UniqueFd reader;
    UniqueFd writer;
};

/// Everything up to the end of what `fd` gives.
[[nodiscard]] inline std::string read_all(int fd) {
    std::string text;
    std::array<char, 4096> piece{};
    for (;;) {
        const ssize_t size = read(fd, piece.data(), piece.size());
        if (size > 0) {
            text.append(piece.data(), static_cast<std::size_t>(size));
        } else if (size == 0 || errno != EINTR) {
            return text;
        }
    }
}

inline void write_all(int fd, std::string_view octets) {
    while (!octets.empty()) {
        const ssize_t size = write(fd, octets.data(), octets.size());
        if (size < 0 && errno != EINTR) {
            return;
        }
        octets.remove_prefix(size > 0 ? static_cast<std::size_t>(size) : 0);
    }
}

struct ChildResult {
    int wait_status = 0;
    std::string text;

    [[nodiscard]] bool ended_well() const {
        return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    }
};

/// Calls `body`, which returns a std::string, in a child. What it throws counts as text, too.
template <typename Body>
[[nodiscard]] ChildResult run_in_child(Body body) {
    constexpr unsigned kSecondsMax = 20;
    Pipe pipe;
    std::cout.flush();  // or the child would write it, too
    const pid_t child = check_errno(fork(), "fork");
    if (child == 0) {
        std::signal(SIGALRM, SIG_DFL);
        alarm(kSecondsMax);
        std::string text;
        try {
            text = body();
        } catch (const std::exception& error) {
            text = error.what();
        }
        write_all(pipe.writer.get(), text);
        _exit(0);
    }
    pipe.writer.reset();
    ChildResult result;
    result.text = read_all(pipe.reader.get());
    while (waitpid(child, &result.wait_status, 0) == -1 && errno == EINTR) {
    }
    return result;
}

}  // namespace hello::test

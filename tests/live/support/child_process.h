// SPDX-License-Identifier: MIT
//
// ChildProcess: one program started by a test, with its own pipes for standard output and standard
// error, both drained all the time by a thread. The child never outlives the object (nor the test
// process: it asks for SIGKILL on its parent's death), and only its own pid is ever signalled.

#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/file_descriptor.h"
#include "support/time_scale.h"

namespace hello::test {

struct ResourceLimit {
    int resource = RLIMIT_NOFILE;
    rlim_t soft = 0;
    rlim_t hard = 0;
};

/// What happens to the child's standard error.
enum class StandardError {
    Drained,  ///< read continuously, see stderr_text()
    Blocked,  ///< a pipe that is full before the child starts and that nobody reads
};

struct ChildOptions {
    std::vector<std::string> argv;                                 ///< argv[0] is looked up in PATH
    std::vector<std::pair<std::string, std::string>> environment;  ///< added or replaced
    std::vector<ResourceLimit> limits;
    /// Runs in the child just before exec: async-signal-safe calls only.
    std::function<void()> before_exec;
    StandardError standard_error = StandardError::Drained;
};

class ChildProcess {
public:
    explicit ChildProcess(const ChildOptions& options);
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    void signal(int number) const;
    /// Exit code, 128 + number for a death by signal, nothing when it still runs after `limit`.
    [[nodiscard]] std::optional<int> wait_exit(Milliseconds limit);
    /// Waits for the condition on (standard output, standard error); re-checked on new output.
    [[nodiscard]] bool wait_output(
        const std::function<bool(const std::string&, const std::string&)>& condition,
        Milliseconds limit) const;
    /// Closes our end of the child's standard output, as `program | head -1` does.
    void close_stdout();

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool running();
    [[nodiscard]] std::string stdout_text() const;
    [[nodiscard]] std::string stderr_text() const;

private:
    struct Stream {
        FileDescriptor fd;
        std::string text;
    };

    void drain();
    void read_some(Stream& stream);
    void reap(int options);

    pid_t pid_ = -1;
    FileDescriptor exited_;  // a pidfd: readable once the child is gone
    FileDescriptor wake_;    // an eventfd: tells the draining thread to look again
    std::optional<int> exit_code_;

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    Stream stdout_;
    Stream stderr_;
    FileDescriptor blocked_stderr_;  // the unread pipe of StandardError::Blocked
    bool stdout_closing_ = false;
    bool stopping_ = false;
    std::thread drainer_;
};

/// For before_exec: the child may use this CPU only.
[[nodiscard]] std::function<void()> confined_to(std::size_t cpu);

}  // namespace hello::test

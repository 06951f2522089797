// SPDX-License-Identifier: MIT
//
// ChildProcess: everything that allocates happens before fork(); between fork() and exec() the
// child makes system calls only, because other threads of the test may hold the allocator's lock.

#include "support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <system_error>

extern char** environ;

namespace hello::test {
namespace {

constexpr int kSmallestPipe = 4096;

struct Pipe {
    FileDescriptor read_end;
    FileDescriptor write_end;
};

[[noreturn]] void throw_errno(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

Pipe make_pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw_errno("pipe2");
    }
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void fill(const Pipe& pipe) {
    fcntl(pipe.write_end.get(), F_SETPIPE_SZ, kSmallestPipe);
    fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
    while (write(pipe.write_end.get(), "x", 1) == 1) {
    }
    fcntl(pipe.write_end.get(), F_SETFL, 0);
}

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return name;
    }
    const char* path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
    while (!rest.empty()) {
        const std::size_t colon = rest.find(':');
        std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
        if (access(candidate.c_str(), X_OK) == 0) {
            return candidate;
        }
        rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
    }
    throw std::runtime_error(name + " is not in PATH");
}

/// Our environment without the server's own variables, plus what the test asks for.
std::vector<std::string> child_environment(const ChildOptions& options) {
    std::vector<std::string> result;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        bool replaced = name.starts_with("HELLO_URING_") || name == "NOTIFY_SOCKET";
        for (const auto& [added, value] : options.environment) {
            replaced = replaced || name == added;
        }
        if (!replaced) {
            result.emplace_back(text);
        }
    }
    for (const auto& [name, value] : options.environment) {
        result.push_back(std::string(name).append("=").append(value));
    }
    return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) {
        result.push_back(text.data());
    }
    result.push_back(nullptr);
    return result;
}

struct Start {
    const char* program;
    char* const* argv;
    char* const* environment;
    int stdout_fd;
    int stderr_fd;
    const ChildOptions* options;
};

[[noreturn]] void run_child(const Start& start) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(start.stdout_fd, STDOUT_FILENO);
    dup2(start.stderr_fd, STDERR_FILENO);
    for (const ResourceLimit& limit : start.options->limits) {
        const rlimit value{limit.soft, limit.hard};
        if (setrlimit(static_cast<__rlimit_resource_t>(limit.resource), &value) != 0) {
            _exit(126);
        }
    }
    if (start.options->before_exec) {
        start.options->before_exec();
    }
    execve(start.program, start.argv, start.environment);
    _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const ChildOptions& options) : wake_(eventfd(0, EFD_CLOEXEC)) {
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    if (options.standard_error == StandardError::Blocked) {
        fill(err);
    }
    const std::string program = find_program(options.argv.at(0));
    std::vector<std::string> arguments = options.argv;
    std::vector<std::string> variables = child_environment(options);
    const std::vector<char*> argv = pointers(arguments);
    const std::vector<char*> environment = pointers(variables);
    const Start start{program.c_str(),     argv.data(),         environment.data(),
                      out.write_end.get(), err.write_end.get(), &options};
    pid_ = fork();
    if (pid_ < 0) {
        throw_errno("fork");
    }
    if (pid_ == 0) {
        run_child(start);
    }
    exited_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    stdout_.fd = std::move(out.read_end);
    const bool drained = options.standard_error == StandardError::Drained;
    (drained ? stderr_.fd : blocked_stderr_) = std::move(err.read_end);
    drainer_ = std::thread([this] { drain(); });
}

ChildProcess::~ChildProcess() {
    if (running()) {
        signal(SIGKILL);
        reap(0);
    }
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    eventfd_write(wake_.get(), 1);
    drainer_.join();
}

void ChildProcess::signal(int number) const {
    if (!exit_code_) {
        kill(pid_, number);
    }
}

void ChildProcess::reap(int options) {
    int status = 0;
    if (!exit_code_ && waitpid(pid_, &status, options) == pid_) {
        exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

bool ChildProcess::running() {
    reap(WNOHANG);
    return !exit_code_;
}

std::optional<int> ChildProcess::wait_exit(Milliseconds limit) {
    pollfd event{exited_.get(), POLLIN, 0};
    const auto deadline = Clock::now() + limit;
    while (running() && Clock::now() < deadline) {
        const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
        poll(&event, 1, static_cast<int>(left.count()));
    }
    if (exit_code_) {
        // What it wrote last may still be in the pipes: they end right after the process.
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, scaled(Milliseconds(2000)),
                          [this] { return !stdout_.fd.open() && !stderr_.fd.open(); });
    }
    return exit_code_;
}

bool ChildProcess::wait_output(
    const std::function<bool(const std::string&, const std::string&)>& condition,
    Milliseconds limit) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return condition(stdout_.text, stderr_.text); });
}

void ChildProcess::close_stdout() {
    std::unique_lock lock(mutex_);
    stdout_closing_ = true;
    eventfd_write(wake_.get(), 1);
    changed_.wait(lock, [this] { return !stdout_.fd.open(); });
}

std::string ChildProcess::stdout_text() const {
    const std::lock_guard lock(mutex_);
    return stdout_.text;
}

std::string ChildProcess::stderr_text() const {
    const std::lock_guard lock(mutex_);
    return stderr_.text;
}

void ChildProcess::drain() {
    for (;;) {
        // poll() skips negative descriptors, so a closed stream needs no special case.
        std::array<pollfd, 3> events{};
        {
            const std::lock_guard lock(mutex_);
            if (stdout_closing_) {
                stdout_.fd.close();
                changed_.notify_all();
            }
            if (stopping_) {
                return;
            }
            events = {{{stdout_.fd.get(), POLLIN, 0},
                       {stderr_.fd.get(), POLLIN, 0},
                       {wake_.get(), POLLIN, 0}}};
        }
        poll(events.data(), events.size(), -1);
        if (events[2].revents != 0) {
            eventfd_t ignored = 0;
            eventfd_read(wake_.get(), &ignored);
        }
        for (std::size_t index = 0; index < 2; ++index) {
            if (events.at(index).revents != 0) {
                read_some(index == 0 ? stdout_ : stderr_);
            }
        }
    }
}

void ChildProcess::read_some(Stream& stream) {
    std::array<char, 65536> bytes{};
    const ssize_t count = read(stream.fd.get(), bytes.data(), bytes.size());
    const std::lock_guard lock(mutex_);
    if (count > 0) {
        stream.text.append(bytes.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
        stream.fd.close();
    }
    changed_.notify_all();
}

std::function<void()> confined_to(std::size_t cpu) {
    return [cpu] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
    };
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Namespaces are made by a child that then ends: the descriptors that we hold keep them alive.

#include "support/namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include "support/child_process.h"
#include "support/tool.h"
#include "support/wait.h"

namespace hello::test {
namespace {

namespace fs = std::filesystem;

bool write_file(const char* path, const char* text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const auto size = static_cast<ssize_t>(std::strlen(text));
    const bool written = fd >= 0 && write(fd, text, std::strlen(text)) == size;
    close(fd);
    return written;
}

/// One line of a map of users or groups: `id` is 0 inside.
std::string root_is(unsigned id) {
    return "0 " + std::to_string(id) + " 1";
}

bool unshare_network(const char* user_map, const char* group_map) {
    if (unshare(CLONE_NEWNET) == 0) {
        return true;
    }
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
           write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", user_map) &&
           write_file("/proc/self/gid_map", group_map);
}

bool bring_loopback_up() {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::strcpy(static_cast<char*>(request.ifr_name), "lo");
    request.ifr_flags = IFF_UP;
    const bool up = ioctl(socket, SIOCSIFFLAGS, &request) == 0;
    close(socket);
    return up;
}

std::string namespaces_of(const std::string& process) {
    return "/proc/" + process + "/ns/";
}

FileDescriptor open_namespace(const std::string& path) {
    return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

NetworkNamespace::NetworkNamespace() {
    const std::string users = root_is(getuid());
    const std::string groups = root_is(getgid());
    ChildOptions options;
    options.argv = {"sh", "-c", "echo made; exec sleep 60"};
    options.before_exec = [&] {
        if (!unshare_network(users.c_str(), groups.c_str()) || !bring_loopback_up()) {
            _exit(kNotAllowed);
        }
    };
    ChildProcess maker(options);
    static_cast<void>(
        wait_until([&] { return maker.stdout_text() == "made\n" || !maker.running(); },
                   scaled(Milliseconds(5000))));
    if (maker.stdout_text() != "made\n") {
        SKIP("no new network namespace: it takes root, or user namespaces");
    }
    const std::string of_maker = namespaces_of(std::to_string(maker.pid()));
    network_ = open_namespace(of_maker + "net");
    if (fs::read_symlink(of_maker + "user") != fs::read_symlink(namespaces_of("self") + "user")) {
        user_ = open_namespace(of_maker + "user");
    }
}

std::function<void()> NetworkNamespace::enter() const {
    return [user = user_.get(), network = network_.get()] {
        // Joining a user namespace resets what was asked for on the parent's death.
        const bool joined = user < 0 || setns(user, CLONE_NEWUSER) == 0;
        if (!joined || setns(network, CLONE_NEWNET) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
            _exit(kNotAllowed);
        }
    };
}

void NetworkNamespace::set(const std::string& name, const std::string& value) const {
    ToolOptions options;
    options.before_exec = enter();
    const std::string path = "/proc/sys/net/" + name;
    const ToolResult result =
        run_tool({"sh", "-c", "echo \"$1\" > \"$0\"", path, value}, std::move(options));
    if (result.exit_code != 0) {
        SKIP("can't set " << path << ": " << result.err);
    }
}

bool leave_common_mounts() {
    // What is mounted from now on must not show up where we came from.
    return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Tests of notify.h.

#include "notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <catch2/catch_test_macros.hpp>

#include "../support/temp_folder.h"
#include "error.h"
#include "support/environment.h"
#include "unique_fd.h"

namespace hello::test {
namespace {

constexpr std::size_t kPathMax = sizeof(sockaddr_un::sun_path) - 1;

/// The end that a service manager listens at.
class Manager {
public:
    /// `name`: a path, or an abstract name that begins with '@'.
    explicit Manager(std::string_view name)
        : socket_(check_errno(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket")) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        name.copy(address.sun_path, kPathMax);
        if (name.front() == '@') {
            address.sun_path[0] = '\0';
        }
        const auto size = offsetof(sockaddr_un, sun_path) + name.size();
        check_errno(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                         static_cast<socklen_t>(size)),
                    "bind");
    }

    /// The next datagram, if one has come.
    [[nodiscard]] std::optional<std::string> receive() const {
        std::array<char, 256> octets{};
        const ssize_t size = recv(socket_.get(), octets.data(), octets.size(), MSG_DONTWAIT);
        if (size < 0) {
            return std::nullopt;
        }
        return std::string(octets.data(), static_cast<std::size_t>(size));
    }

private:
    UniqueFd socket_;
};

/// A path in `folder` of exactly `size` octets.
std::string path_of_size(const TempFolder& folder, std::size_t size) {
    std::string path = folder.path().string() + "/";
    REQUIRE(path.size() < size);
    return path.append(size - path.size(), 'n');
}

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

}  // namespace

TEST_CASE("notify_service_manager sends one datagram to the socket's path", "[notify]") {
    const TempFolder folder;
    const std::string path = folder.path().string() + "/notify";
    const Manager manager(path);
    const Environment variable("NOTIFY_SOCKET", path);
    notify_service_manager("READY=1");
    CHECK(manager.receive() == "READY=1");
    CHECK_FALSE(manager.receive());
    notify_service_manager("STOPPING=1");
    CHECK(manager.receive() == "STOPPING=1");
}

TEST_CASE("notify_service_manager sends to an abstract name", "[notify]") {
    const std::string name = "@hello-uring-test-" + std::to_string(getpid());
    const Manager manager(name);
    const Environment variable("NOTIFY_SOCKET", name);
    notify_service_manager("READY=1");
    CHECK(manager.receive() == "READY=1");
}

TEST_CASE("notify_service_manager sends to the longest path there is", "[notify]") {
    const TempFolder folder;
    const std::string path = path_of_size(folder, kPathMax);
    const Manager manager(path);
    const Environment variable("NOTIFY_SOCKET", path);
    notify_service_manager("READY=1");
    CHECK(manager.receive() == "READY=1");
}

TEST_CASE("notify_service_manager ignores a path that is too long", "[notify]") {
    const TempFolder folder;
    const std::string path = path_of_size(folder, kPathMax);
    const Manager cut_off(path);
    for (const std::size_t surplus : {1U, 2U, 5'000U}) {
        const Environment variable("NOTIFY_SOCKET", path + std::string(surplus, 'x'));
        notify_service_manager("READY=1");
        CHECK_FALSE(cut_off.receive());
    }
}

TEST_CASE("notify_service_manager does nothing without a manager", "[notify]") {
    for (const std::optional<std::string>& name : {std::optional<std::string>{}, {""}}) {
        const Environment variable("NOTIFY_SOCKET", name);
        const std::ptrdiff_t before = open_descriptors();
        errno = 0;
        notify_service_manager("READY=1");
        CHECK(errno == 0);  // it made no system call that failed
        CHECK(open_descriptors() == before);
    }
}

TEST_CASE("notify_service_manager survives a manager that is gone", "[notify]") {
    const TempFolder folder;
    const std::string path = folder.path().string() + "/notify";
    std::make_unique<Manager>(path).reset();
    const Environment variable("NOTIFY_SOCKET", path);
    const std::ptrdiff_t before = open_descriptors();
    notify_service_manager("READY=1");
    CHECK(open_descriptors() == before);
}

}  // namespace hello::test

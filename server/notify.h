// SPDX-License-Identifier: MIT
//
// Tells a service manager how we are (sd_notify(3)), where there is one: a datagram to the socket
// that NOTIFY_SOCKET names. Failing is not our problem: the manager will notice.

#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "unique_fd.h"

namespace hello {

/// `state`: "READY=1", "STOPPING=1".
inline void notify_service_manager(std::string_view state) noexcept {
    const char* name = std::getenv("NOTIFY_SOCKET");
    sockaddr_un address{};
    const std::string_view path = name == nullptr ? "" : name;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        return;
    }
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    if (path.front() == '@') {  // an abstract name (unix(7))
        address.sun_path[0] = '\0';
    }
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace hello

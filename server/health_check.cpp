// SPDX-License-Identifier: MIT
//
// Health check: see health_check.h.

#include "health_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string_view>

#include "error.h"
#include "unique_fd.h"

namespace hello {
namespace {

constexpr timeval kPatience{3, 0};
constexpr int kPortMax = 65535;

struct Url {
    std::string authority;  ///< as in the URL
    std::string host;       ///< without brackets
    std::string port = "80";
    std::string path = "/";
};

Url parse(const std::string& text) {
    constexpr std::string_view kScheme = "http://";
    Url url;
    const std::size_t end = std::min(text.find('/', kScheme.size()), text.size());
    if (text.starts_with(kScheme)) {
        url.authority = text.substr(kScheme.size(), end - kScheme.size());
    }
    const std::size_t colon = url.authority.find(':', url.authority.find(']') + 1);
    url.host = url.authority.substr(0, colon);
    if (url.host.starts_with('[') && url.host.ends_with(']')) {
        url.host = url.host.substr(1, url.host.size() - 2);
    }
    if (colon != std::string::npos) {
        url.port = url.authority.substr(colon + 1);
    }
    if (end != text.size()) {
        url.path = text.substr(end);
    }
    const bool numeric = !url.port.empty() && url.port.size() <= 5 &&
                         url.port.find_first_not_of("0123456789") == std::string::npos &&
                         std::stoi(url.port) <= kPortMax;
    if (!numeric || url.host.empty() || text.find_first_of(" \r\n") != std::string::npos) {
        throw StartError("not a URL of the form http://HOST[:PORT][/PATH]");
    }
    return url;
}

/// A socket connected to the first address of the host that takes the connection.
UniqueFd connect_to(const Url& url) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
    if (error != 0) {
        throw StartError("cannot resolve " + url.authority + ": " + gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, &freeaddrinfo);
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
        UniqueFd fd(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {  // connect(2) heeds the second
            setsockopt(fd.get(), SOL_SOCKET, option, &kPatience, sizeof kPatience);
        }
        if (connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0) {
            return fd;
        }
    }
    check_errno(-1, "connect");
    return UniqueFd{};
}

}  // namespace

bool check_health(const std::string& text) {
    try {
        const Url url = parse(text);
        const UniqueFd fd = connect_to(url);
        const std::string request = "GET " + url.path + " HTTP/1.1\r\nHost: " + url.authority +
                                    "\r\nConnection: close\r\n\r\n";
        check_errno(static_cast<int>(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL)),
                    "send");
        char answer[64] = {};
        check_errno(static_cast<int>(recv(fd.get(), answer, sizeof answer, MSG_WAITALL)), "recv");
        if (std::string_view(answer, sizeof answer).substr(0, 12) != "HTTP/1.1 200") {
            throw StartError("the answer is not HTTP/1.1 200");
        }
        return true;
    } catch (const std::exception& error) {
        std::cerr << "hello-uring: check of " << text << " failed: " << error.what() << '\n';
        return false;
    }
}

}  // namespace hello

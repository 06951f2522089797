// SPDX-License-Identifier: MIT
//
// Health check: see health_check.h.

#include "health_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstring>
#include <iostream>
#include <memory>
#include <regex>
#include <string_view>

#include "error.h"
#include "unique_fd.h"

namespace hello {
namespace {

constexpr timeval kPatience{3, 0};

UniqueFd connect_to(const std::string& host, const std::string& port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
        throw StartError("cannot resolve " + host + ": " + gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, &freeaddrinfo);
    UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    check_errno(fd.get(), "socket");
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {  // connect(2) heeds the second
        setsockopt(fd.get(), SOL_SOCKET, option, &kPatience, sizeof kPatience);
    }
    check_errno(connect(fd.get(), found->ai_addr, found->ai_addrlen), "connect");
    return fd;
}

}  // namespace

bool check_health(const std::string& url) {
    static const std::regex kForm(R"(http://(\[([^\]]+)\]|[^/:\[]+)(:([0-9]+))?(/[^\s]*)?)");
    std::smatch part;
    try {
        if (!std::regex_match(url, part, kForm)) {
            throw StartError("not a URL of the form http://HOST[:PORT][/PATH]");
        }
        const std::string host = part[2].matched ? part[2] : part[1];
        const UniqueFd fd = connect_to(host, part[4].matched ? part[4].str() : "80");
        const std::string request = "GET " + (part[5].matched ? part[5].str() : "/") +
                                    " HTTP/1.1\r\nHost: " + part[1].str() +
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
        std::cerr << "hello-uring: check of " << url << " failed: " << error.what() << '\n';
        return false;
    }
}

}  // namespace hello

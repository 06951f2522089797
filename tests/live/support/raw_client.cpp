// SPDX-License-Identifier: MIT
//
// RawClient: non-blocking socket plus poll(), so that every call has a deadline.

#include "support/raw_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ostream>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace hello::test {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

[[noreturn]] void throw_errno(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

bool same_name(std::string_view left, std::string_view right) {
    return left.size() == right.size() && strncasecmp(left.data(), right.data(), left.size()) == 0;
}

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;

    [[nodiscard]] const sockaddr* generic() const {
        return reinterpret_cast<const sockaddr*>(&storage);
    }
};

Address make_address(const std::string& text, std::uint16_t port) {
    Address result;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&result.storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
    if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        result.size = sizeof *v4;
    } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        result.size = sizeof *v6;
    } else {
        throw std::invalid_argument("not an address: " + text);
    }
    return result;
}

/// Milliseconds until the deadline, for poll(); 0 when it passed.
int left_until(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(left, 0));
}

/// Waits for `events`; false at the deadline.
bool wait_for(int fd, short events, Clock::time_point deadline) {
    pollfd event{fd, events, 0};
    return poll(&event, 1, left_until(deadline)) > 0;
}

/// A connected socket; without one, errno tells why.
FileDescriptor connect_socket(std::uint16_t port, const ClientOptions& options) {
    const Address address = make_address(options.address, port);
    FileDescriptor socket(
        ::socket(address.generic()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.open()) {
        throw_errno("socket");
    }
    if (options.receive_buffer_bytes > 0) {
        setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &options.receive_buffer_bytes,
                   sizeof options.receive_buffer_bytes);
    }
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(socket.get(), address.generic(), address.size) == 0) {
        return socket;
    }
    int error = errno;
    if (error == EINPROGRESS) {
        socklen_t size = sizeof error;
        error = ETIMEDOUT;
        if (wait_for(socket.get(), POLLOUT, Clock::now() + RawClient::kLimit)) {
            getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        }
    }
    if (error != 0) {
        socket.close();
        errno = error;
    }
    return socket;
}

/// Splits a raw head; false when it isn't one.
bool parse_head(std::string_view head, Response& response) {
    const std::size_t line_end = head.find("\r\n");
    const std::string_view status_line = head.substr(0, line_end);
    if (!status_line.starts_with("HTTP/1.") || status_line.size() < 12) {
        return false;
    }
    response.head = head;
    response.version = status_line.substr(0, 8);
    response.reason = status_line.size() > 13 ? status_line.substr(13) : "";
    const char* digits = status_line.data() + 9;
    if (std::from_chars(digits, digits + 3, response.status).ptr != digits + 3) {
        return false;
    }
    std::string_view rest = head.substr(line_end + 2);
    while (!rest.starts_with("\r\n")) {
        const std::string_view line = rest.substr(0, rest.find("\r\n"));
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) {
            return false;
        }
        const std::size_t value = line.find_first_not_of(" \t", colon + 1);
        response.headers.emplace_back(line.substr(0, colon),
                                      value == std::string_view::npos ? "" : line.substr(value));
        rest.remove_prefix(line.size() + 2);
    }
    return true;
}

std::size_t body_size(const Response& response, char method) {
    const bool interim = response.status < 200;
    if (interim || method == 'H' || response.status == 204 || response.status == 304) {
        return 0;
    }
    const std::string text = response.header("Content-Length");
    std::size_t size = 0;
    std::from_chars(text.data(), text.data() + text.size(), size);
    return size;
}

}  // namespace

bool Response::has(std::string_view name) const {
    return count(name) > 0;
}

std::size_t Response::count(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        headers, [&](const auto& field) { return same_name(field.first, name); }));
}

std::string Response::header(std::string_view name) const {
    for (const auto& [field, value] : headers) {
        if (same_name(field, name)) {
            return value;
        }
    }
    return "";
}

const char* to_string(End end) {
    switch (end) {
        case End::Open: return "open";
        case End::Fin: return "FIN";
        case End::Reset: return "RST";
        case End::Timeout: return "timeout";
    }
    return "?";
}

std::ostream& operator<<(std::ostream& out, End end) {
    return out << to_string(end);
}

std::string Replies::statuses() const {
    std::string result;
    for (const Response& response : responses) {
        result += (result.empty() ? "" : " ") + std::to_string(response.status);
    }
    return result;
}

RawClient::RawClient(std::uint16_t port, const ClientOptions& options)
    : socket_(connect_socket(port, options)) {
    if (!socket_.open()) {
        throw_errno("connect to " + options.address + " port " + std::to_string(port));
    }
}

std::optional<RawClient> RawClient::try_connect(std::uint16_t port, const ClientOptions& options) {
    FileDescriptor socket = connect_socket(port, options);
    if (!socket.open()) {
        return std::nullopt;
    }
    return RawClient(std::move(socket));
}

std::size_t RawClient::send(std::string_view bytes, Milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    std::size_t sent = 0;
    while (sent < bytes.size() && !reset_seen_ && wait_for(socket_.get(), POLLOUT, deadline)) {
        sent += send_some(bytes.substr(sent));
    }
    return reset_seen_ ? 0 : sent;
}

/// What the kernel takes now. A peer that is gone "takes" everything, so that callers stop sending
/// and read: its last answer may still be there.
std::size_t RawClient::send_some(std::string_view bytes) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
        return static_cast<std::size_t>(count);
    }
    if (errno == EAGAIN || errno == EINTR) {
        return 0;
    }
    reset_seen_ = true;
    return bytes.size();
}

void RawClient::send_split(std::string_view bytes, std::size_t offset, Milliseconds pause) {
    send(bytes.substr(0, offset));
    std::this_thread::sleep_for(pause);
    send(bytes.substr(offset));
}

void RawClient::send_bytewise(std::string_view bytes, Milliseconds pause) {
    for (std::size_t index = 0; index < bytes.size(); ++index) {
        send(bytes.substr(index, 1));
        if (pause.count() > 0) {
            std::this_thread::sleep_for(pause);
        }
    }
}

void RawClient::shutdown_write() {
    ::shutdown(socket_.get(), SHUT_WR);
}

void RawClient::reset() {
    const linger at_once{1, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_.close();
}

std::uint16_t RawClient::local_port() const {
    Address address;
    address.size = sizeof address.storage;
    if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.size) !=
        0) {
        throw_errno("getsockname");
    }
    // sin_port and sin6_port are at the same place.
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

/// Takes what is there; the end of the connection when that is what is there.
std::optional<End> RawClient::receive() {
    std::array<char, 65536> bytes{};
    const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) {
        buffer_.append(bytes.data(), static_cast<std::size_t>(count));
        return std::nullopt;
    }
    if (count == 0) {
        return reset_seen_ ? End::Reset : End::Fin;
    }
    if (errno == EAGAIN || errno == EINTR) {
        return std::nullopt;
    }
    return End::Reset;
}

/// Moves up to `wanted` final responses, and the interim ones before them, out of the buffer.
std::size_t RawClient::parse(Replies& replies, std::size_t wanted, Methods methods) {
    std::size_t position = 0;
    std::size_t finals = 0;
    while (finals < wanted) {
        const std::string_view rest = std::string_view(buffer_).substr(position);
        const std::size_t head_end = rest.find(kHeadEnd);
        Response response;
        if (head_end == std::string_view::npos ||
            !parse_head(rest.substr(0, head_end + kHeadEnd.size()), response)) {
            break;
        }
        const std::size_t body = body_size(response, methods[method_index_ % methods.size()]);
        if (rest.size() < response.head.size() + body) {
            break;
        }
        response.body = rest.substr(response.head.size(), body);
        position += response.head.size() + body;
        if (response.status >= 200) {
            ++finals;
            ++method_index_;
        }
        replies.responses.push_back(std::move(response));
    }
    buffer_.erase(0, position);
    return finals;
}

Replies RawClient::read(std::size_t count, Methods methods, Milliseconds limit) {
    return exchange("", count, methods, limit);
}

Replies RawClient::read_to_end(Methods methods, Milliseconds limit) {
    return exchange("", kUntilEnd, methods, limit);
}

Replies RawClient::exchange_to_end(std::string_view bytes, Methods methods, Milliseconds limit) {
    return exchange(bytes, kUntilEnd, methods, limit);
}

Replies RawClient::exchange(std::string_view bytes,
                            std::size_t count,
                            Methods methods,
                            Milliseconds limit) {
    const auto start = Clock::now();
    const auto deadline = start + limit;
    Replies replies;
    std::size_t wanted = count - parse(replies, count, methods);
    replies.end = End::Open;
    while (wanted > 0) {
        pollfd event{socket_.get(), POLLIN, 0};
        event.events = static_cast<short>(bytes.empty() ? POLLIN : POLLIN | POLLOUT);
        if (Clock::now() >= deadline || poll(&event, 1, left_until(deadline)) <= 0) {
            replies.end = End::Timeout;
            break;
        }
        if ((event.revents & POLLOUT) != 0) {
            bytes.remove_prefix(send_some(bytes));
        }
        if ((event.revents & (POLLIN | POLLHUP | POLLERR)) == 0) {
            continue;
        }
        const std::optional<End> end = receive();
        if (!buffer_.empty() && replies.first_byte.count() < 0) {
            replies.first_byte = since(start);
        }
        wanted -= parse(replies, wanted, methods);
        if (end) {
            replies.end = *end;
            break;
        }
    }
    replies.leftover = buffer_;
    replies.elapsed = since(start);
    return replies;
}

bool RawClient::silent_for(Milliseconds duration) {
    return buffer_.empty() && !wait_for(socket_.get(), POLLIN, Clock::now() + duration);
}

std::size_t RawClient::take_slowly(std::size_t bytes_max) {
    std::string bytes(bytes_max, '\0');
    const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) {
        return 0;
    }
    buffer_.append(bytes, 0, static_cast<std::size_t>(count));
    return static_cast<std::size_t>(count);
}

std::string repeat(std::string_view text, std::size_t count) {
    std::string result;
    result.reserve(text.size() * count);
    for (std::size_t index = 0; index < count; ++index) {
        result += text;
    }
    return result;
}

}  // namespace hello::test

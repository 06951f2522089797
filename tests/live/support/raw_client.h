// SPDX-License-Identifier: MIT
//
// RawClient: a TCP client that sends exactly the bytes it is told to and reports exactly what came
// back: every response, what is left over, how the connection ended and when. It never retries,
// never repairs, and every read has a deadline.
//
//     RawClient client(server.port());
//     client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
//     const Replies replies = client.read(1);
//     CHECK(replies.responses.at(0).status == 200);

#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/file_descriptor.h"
#include "support/time_scale.h"

namespace hello::test {

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
inline constexpr std::string_view kGetClose =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
inline constexpr std::string_view kHead = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
inline constexpr std::string_view kPost =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
inline constexpr std::string_view kGet10 = "GET / HTTP/1.0\r\n\r\n";
inline constexpr std::string_view kBody = "Hello World!";

struct Response {
    int status = 0;
    std::string reason;
    std::string version;                                       ///< "HTTP/1.1"
    std::vector<std::pair<std::string, std::string>> headers;  ///< as spelled, in order
    std::string body;
    std::string head;  ///< raw bytes, status line up to and including the empty line

    [[nodiscard]] bool has(std::string_view name) const;
    [[nodiscard]] std::size_t count(std::string_view name) const;
    /// The first field of that name in any case; empty when there is none.
    [[nodiscard]] std::string header(std::string_view name) const;
};

/// How reading ended.
enum class End {
    Open,     ///< the wanted number of responses is there, the connection was not waited for
    Fin,      ///< the peer closed its side in order
    Reset,    ///< the peer reset the connection
    Timeout,  ///< the deadline passed
};
[[nodiscard]] const char* to_string(End end);
std::ostream& operator<<(std::ostream& out, End end);  // for the messages of Catch2

struct Replies {
    std::vector<Response> responses;  ///< complete ones, interim (1xx) included
    std::string leftover;             ///< bytes after the last complete response
    End end = End::Timeout;
    Milliseconds first_byte{-1};  ///< since the call; -1 when nothing came
    Milliseconds elapsed{0};

    /// "200 200 400": for comparing a whole conversation at once.
    [[nodiscard]] std::string statuses() const;
};

struct ClientOptions {
    std::string address = "127.0.0.1";  ///< IPv4 or IPv6
    int receive_buffer_bytes = 0;       ///< SO_RCVBUF, set before connect; 0 leaves the default
};

/// Which responses have no body although they announce one: letter i, repeated for ever, belongs
/// to request i; 'H' is HEAD, every other letter a method with a body in the answer.
using Methods = std::string_view;

class RawClient {
public:
    /// Throws std::system_error when the server can't be reached within 10 s.
    explicit RawClient(std::uint16_t port, const ClientOptions& options = {});
    /// The same, but nothing when the connection is refused.
    [[nodiscard]] static std::optional<RawClient> try_connect(std::uint16_t port,
                                                              const ClientOptions& options = {});

    /// Sends everything; returns fewer bytes when the peer takes no more until the limit, 0 when
    /// the peer is gone.
    std::size_t send(std::string_view bytes, Milliseconds limit = kLimit);
    /// Two sends, cut at `offset`, with a pause that lets the first arrive alone.
    void send_split(std::string_view bytes,
                    std::size_t offset,
                    Milliseconds pause = Milliseconds(1));
    void send_bytewise(std::string_view bytes, Milliseconds pause = Milliseconds(0));
    /// Half-close: the peer reads an end of file, we can still read.
    void shutdown_write();
    /// Closes with a RST instead of a FIN.
    void reset();
    void close() { socket_.close(); }

    /// Reads until `count` final responses are complete (then End::Open), or the end comes first.
    Replies read(std::size_t count, Methods methods = "G", Milliseconds limit = kLimit);
    /// Reads until FIN, RST or the limit.
    Replies read_to_end(Methods methods = "G", Milliseconds limit = kLimit);
    /// Sends and reads at the same time, as a client of a large pipeline must.
    Replies exchange(std::string_view bytes,
                     std::size_t count,
                     Methods methods = "G",
                     Milliseconds limit = kLimit);
    /// Like exchange(), but until FIN, RST or the limit.
    Replies exchange_to_end(std::string_view bytes,
                            Methods methods = "G",
                            Milliseconds limit = kLimit);
    /// True when the connection is still open and no byte arrives for that long.
    [[nodiscard]] bool silent_for(Milliseconds duration);
    /// Takes at most that many bytes as they are, so that a test can be a slow reader.
    [[nodiscard]] std::size_t take_slowly(std::size_t bytes_max);

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] std::uint16_t local_port() const;

    static constexpr Milliseconds kLimit = scaled(Milliseconds(10000));
    static constexpr std::size_t kUntilEnd = static_cast<std::size_t>(-1);

private:
    explicit RawClient(FileDescriptor socket) : socket_(std::move(socket)) {}
    [[nodiscard]] std::optional<End> receive();
    [[nodiscard]] std::size_t parse(Replies& replies, std::size_t wanted, Methods methods);
    [[nodiscard]] std::size_t send_some(std::string_view bytes);

    FileDescriptor socket_;
    std::string buffer_;            // received, not yet part of a returned response
    std::size_t method_index_ = 0;  // of the next final response, over all reads
    bool reset_seen_ = false;       // by a failed send, which hides it from the next recv
};

/// `text` repeated `count` times.
[[nodiscard]] std::string repeat(std::string_view text, std::size_t count);

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Swarm: thousands of hostile clients in one thread. Each connects, sends its opening, goes on
// dripping octets if the plan says so, and never closes first. What became of each is told at the
// end. The addresses 127.0.1.1 to 127.0.1.8 share them, so that no address runs out of ports.
//
//     Swarm swarm(server.port(), {.count = 10000, .openings = {"GET / HTTP/1.1\r\nX: "},
//                                 .drip = "x", .drip_pause = Milliseconds(1000)});
//     ... what others see, until swarm.all_ended() ...
//     CHECK(swarm.finish().ends["408 FIN"] == 10000);

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/time_scale.h"

namespace hello::test {

struct SwarmPlan {
    std::size_t count = 0;
    /// Client i sends the one with number i modulo their number; an empty one is nothing at all.
    std::vector<std::string> openings = {""};
    /// Sent again and again by each client, at most once per pause; empty: nothing more.
    std::string drip;
    Milliseconds drip_pause{1000};
    /// Whether answers are taken from the sockets. Without that the end of a connection is seen
    /// only where it is a reset.
    bool reads = true;
    int receive_buffer_bytes = 0;  ///< SO_RCVBUF; 0 leaves the default
};

struct SwarmReport {
    /// "408 FIN", "RST", "200 200 open": the answers of a client and the end of its connection, and
    /// how many had just that.
    std::map<std::string, std::size_t> ends;
    /// From a client's opening to the end of its connection; 0 where none ended.
    Milliseconds shortest{0};
    Milliseconds longest{0};
    std::size_t drips = 0;

    [[nodiscard]] std::string summary() const;
};

class Swarm {
public:
    Swarm(std::uint16_t port, SwarmPlan plan);
    ~Swarm();
    Swarm(const Swarm&) = delete;
    Swarm& operator=(const Swarm&) = delete;

    /// Clients that are connected and have sent their opening, now ended or not.
    [[nodiscard]] std::size_t opened() const { return opened_; }
    [[nodiscard]] bool all_opened() const { return opened_ == plan_.count; }
    /// The server has ended connections: the first, all of them.
    [[nodiscard]] bool any_ended() const { return ended_ > 0; }
    [[nodiscard]] bool all_ended() const { return ended_ == plan_.count; }
    /// Ends what is still open, by FIN, and reports.
    [[nodiscard]] SwarmReport finish();

private:
    struct Client {
        int fd = -1;
        bool opened = false;
        Clock::time_point opened_at;
        std::size_t sent = 0;  // of the opening
        std::string received;  // its beginning
        std::string end;       // empty while the connection is open
    };

    void run();
    void connect_some();
    void connect_one(Client& client, std::size_t index);
    void send_opening(Client& client, std::size_t index);
    void drip();
    void drip_one(Client& client);
    void wait_and_take();
    void take(Client& client);
    void open(Client& client);
    void end(Client& client, const char* how);
    void close_all();

    const std::uint16_t port_;
    const SwarmPlan plan_;
    std::vector<Client> clients_;
    SwarmReport report_;
    int epoll_ = -1;
    std::size_t connected_ = 0;      // clients that have a socket
    std::uint64_t drips_begun_ = 0;  // places in the endless round of drips
    Clock::time_point drips_start_;
    std::atomic<std::size_t> opened_{0};
    std::atomic<std::size_t> ended_{0};
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

/// How many connections of `wanted` a test can have: it raises its own limit of descriptors, and
/// with it the one of the servers that it starts, as far as it may. Says so when that is fewer, and
/// skips the test when it is less than a tenth.
[[nodiscard]] std::size_t affordable_connections(std::size_t wanted);

}  // namespace hello::test

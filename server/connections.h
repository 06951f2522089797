// SPDX-License-Identifier: MIT
//
// Connections: what the connections of a worker do. Completions only note what happened and
// touch the connection; advance() then decides, in one place, what comes next: send what is
// owed, close, linger, hand over to another worker, or go on receiving. At any time a connection
// has at most one receive and one send in flight, and its slot is free for another only when it
// has none.

#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "config.h"
#include "connection.h"
#include "crew.h"
#include "engine.h"
#include "exchange.h"
#include "stats.h"

namespace hello {

class Connections {
public:
    /// `index`: the worker's in the crew. All must outlive this.
    Connections(const ServerConfig& config,
                Crew& crew,
                std::size_t index,
                Engine& engine,
                WorkerStats& stats);

    /// Whether the process may have one connection more.
    [[nodiscard]] bool has_room() const noexcept {
        return crew_.connections.load(std::memory_order_relaxed) < config_.connections_max;
    }

    /// A connection that was accepted here; owns `fd`.
    void admit(int fd);

    /// A lasting connection that another worker hands over, and counted as ours; owns `fd`.
    void adopt(int fd);

    /// A completion of a connection's operation.
    void on_completion(const Completion& completion);

    /// Once per turn, after all completions: what each touched connection does next.
    void advance_touched();

    /// Some are to be advanced in the next turn, which must therefore not wait.
    [[nodiscard]] bool in_haste() const noexcept { return !touched_.empty(); }

    /// A second has passed: ends what took too long.
    void expire();

    /// Answer what was asked, with Connection: close; close whoever asks nothing, those that have
    /// never asked after a second or two: their request may be on its way.
    void drain();

    /// Close all now.
    void abort();

    /// The engine is gone, and with it all that was in flight.
    void let_go() {
        pool_.for_each([](const Connection& left) {
            if (left.state != State::Closed) {
                ::close(left.fd);
            }
        });
    }

    /// None is left, none is on its way, and none will come from another worker.
    [[nodiscard]] bool are_gone() {
        return pool_.size() == 0 && handing_off_ == 0 && crew_.balancer.leave(index_);
    }

    /// The other end of hand_off, and what became of it here.
    void on_handed_off(UserData tag, int result);

    void update_gauges() noexcept { stats_.slots_in_use.set(pool_.size()); }

private:
    using State = Connection::State;
    using Verdict = HttpSession::Verdict;

    [[nodiscard]] Connection* open(int fd);

    // What completions mean:
    void on_received(Connection& connection, const Completion& completion);
    void on_receive_error(Connection& connection, int error);
    void look_for_reset(Connection& connection);
    void on_send_now_failed(Connection& connection, int result);
    void on_sent(Connection& connection, int result);

    // What comes next:
    void touch(Connection& connection) {
        if (!connection.touched) {
            connection.touched = true;
            touched_.push_back(connection.slot);
        }
    }
    void advance(Connection& connection);
    void advance_open(Connection& connection);
    [[nodiscard]] bool send(Connection& connection);
    [[nodiscard]] bool send_last(Connection& connection, std::string_view octets);
    void send_now(Connection& connection, std::string_view octets);
    void send_patiently(Connection& connection, std::string_view octets);
    void finish(Connection& connection);
    void manage_receiving(Connection& connection);
    void receive(Connection& connection);
    void receive(Connection& connection, ReceiveMode mode, Readiness readiness);
    [[nodiscard]] bool settle_in(Connection& connection, std::size_t sent_bytes);
    void search_once_more(Connection& connection);
    void close(Connection& connection);
    void forget(Connection& connection);
    void count_closed();

    const ServerConfig& config_;
    Crew& crew_;
    std::size_t index_;
    WorkerStats& stats_;
    Engine& engine_;
    ConnectionPool pool_;
    Exchange exchange_;
    std::vector<std::uint32_t> touched_;    ///< slots to advance
    std::vector<std::uint32_t> advancing_;  ///< those of this turn, while the next are noted
    std::size_t handing_off_ = 0;           ///< hand-offs that have not completed
    unsigned drain_ticks_ = 0;              ///< seconds since the drain began
    bool draining_ = false;
    bool aborting_ = false;
};

}  // namespace hello

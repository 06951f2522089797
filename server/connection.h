// SPDX-License-Identifier: MIT
//
// Connection: one client, from accept to close. ConnectionPool: the slots they live in. A slot
// gets a new generation with each connection, so that whoever comes too late (a completion of the
// connection before) finds nothing. Memory grows with the largest number of connections at a
// time and stays where it is.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "answer.h"
#include "deadline_queue.h"
#include "engine.h"
#include "http_session.h"

namespace hello {

/// Which timeout runs for a connection.
enum class Waiting : std::uint8_t { Forever, ForRequest, ForHead, ForBody, ForWrite, ForLinger };
inline constexpr std::size_t kWaitingCount = 6;

struct Connection {
    enum class State : std::uint8_t {
        Open,       ///< requests are read and answered
        Lingering,  ///< all is sent, FIN too; input is discarded until the client's FIN
        Closed,     ///< close is submitted; operations may still be in flight
    };

    Connection(int socket, std::uint32_t slot_number, const HttpLimits& limits) noexcept
        : session(limits), fd(socket), slot(slot_number) {}

    /// The rest of a send that did not fit, kept until the socket takes it.
    struct Unsent {
        std::unique_ptr<char[]> octets;
        std::size_t size = 0;
    };

    [[nodiscard]] bool is_sending() const noexcept { return unsent.size != 0; }
    [[nodiscard]] UserData tag(Op op) const noexcept { return {op, generation, slot}; }

    HttpSession session;
    AnswerQueue answers;       ///< owed to the client
    std::string_view sending;  ///< of the optimistic send in this turn
    Unsent unsent;
    std::size_t discarded_bytes = 0;  ///< while lingering
    DeadlineLink deadline;
    int fd;
    std::uint32_t slot;
    std::uint32_t generation = 0;
    State state = State::Open;
    ReceiveMode receiving = ReceiveMode::None;
    HttpSession::Verdict verdict = HttpSession::Verdict::Read;
    Waiting waiting = Waiting::Forever;
    std::uint8_t in_flight = 0;  ///< operations that will complete for certain
    bool touched = false;        ///< is in the list of those to advance
    bool answered = false;       ///< something was sent already
    bool progressed = false;     ///< requests were completed since the deadline was last set
    bool input_ended = false;    ///< the client's FIN came
    bool input_left = false;     ///< the socket held more than was received
    bool flooding = false;       ///< a receive filled its buffer: from then on one per turn
    bool placed = false;         ///< counts as a lasting connection of this worker
};

class ConnectionPool {
public:
    /// `count_max`: connections at a time; `limits` must outlive the pool.
    ConnectionPool(std::size_t count_max, const HttpLimits& limits);

    /// A new connection, owner of `fd`; null where memory is short or the pool is full.
    [[nodiscard]] Connection* open(int fd) noexcept;

    /// Ends a connection's life. Its descriptor is no concern of the pool.
    void release(const Connection& connection) noexcept;

    /// The connection, or null where its time is over.
    [[nodiscard]] Connection* find(std::uint32_t slot, std::uint32_t generation) noexcept {
        Slot& found = at(slot);
        return found.generation == generation && found.connection ? &*found.connection : nullptr;
    }
    [[nodiscard]] Connection& operator[](std::uint32_t slot) noexcept {
        return *at(slot).connection;
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    template <typename Visit>
    void for_each(Visit visit) {
        for (std::uint32_t slot = 0; slot < used_; ++slot) {
            if (at(slot).connection) {
                visit(*at(slot).connection);
            }
        }
    }

private:
    struct Slot {
        std::uint32_t generation = 0;
        std::uint32_t next_free = kNoSlot;
        std::optional<Connection> connection;
    };
    static constexpr std::uint32_t kChunkBits = 6;
    using Chunk = std::array<Slot, 1U << kChunkBits>;

    [[nodiscard]] Slot& at(std::uint32_t slot) noexcept {
        return (*chunks_[slot >> kChunkBits])[slot & ((1U << kChunkBits) - 1)];
    }
    [[nodiscard]] std::uint32_t take_slot() noexcept;

    const HttpLimits& limits_;
    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::uint32_t used_ = 0;  ///< slots that ever had a connection
    std::uint32_t first_free_ = kNoSlot;
    std::size_t size_ = 0;
};

}  // namespace hello

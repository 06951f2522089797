// SPDX-License-Identifier: MIT
//
// Tests of connections.h: what each result of an operation leads to. The engine is a fake, the
// descriptors are sockets of which nothing is sent or received.

#include "connections.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/captured_log.h"
#include "support/fake_engine.h"
#include "support/tcp.h"

namespace hello::test {
namespace {

using Names = std::vector<std::string>;

const Names kNothing;
constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kGetClose = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

std::string repeat(std::string_view text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) {
        all += text;
    }
    return all;
}

/// The connections of worker 0 and one client of theirs.
class Room {
public:
    explicit Room(std::size_t workers = 1, std::string body = "Hello World!")
        : config_(config_of(std::move(body))), crew_(workers) {
        connections_.admit(socket_.near.release());
        const std::vector<Asked> asked = turn();
        REQUIRE(asked.size() == 1);
        REQUIRE(asked[0].what == "receive once likely");
        receive_ = asked[0].tag;
        fd_ = asked[0].fd;
    }

    Connections& operator*() { return connections_; }
    Connections* operator->() { return &connections_; }

    /// The second half of a turn; what it asks for.
    std::vector<Asked> turn() {
        connections_.advance_touched();
        connections_.update_gauges();
        return engine_.take_asked();
    }
    Names turn_names() {
        connections_.advance_touched();
        connections_.update_gauges();
        return engine_.take_names();
    }

    void received(std::string_view octets, bool goes_on = false) {
        connections_.on_completion(
            {receive_, static_cast<int>(octets.size()), goes_on, false, octets});
    }
    void failed(UserData tag, int result) {
        connections_.on_completion({tag, result, false, false, {}});
    }
    void receive_failed(int result) { failed(receive_, result); }
    [[nodiscard]] UserData tag(Op op) const { return {op, receive_.generation, receive_.slot}; }
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] const WorkerStats& stats() const { return stats_; }
    [[nodiscard]] Crew& crew() { return crew_; }
    [[nodiscard]] const std::string& log() {
        log_text_ = log_.text();
        return log_text_;
    }

    /// A request was answered, and the connection lasts.
    void settle() {
        received(kGet);
        REQUIRE(turn_names() == Names{"send_now", "receive many"});
    }

private:
    static ServerConfig config_of(std::string body) {
        ServerConfig config;
        config.body = std::move(body);
        config.connections_max = 100;
        return config;
    }

    CapturedLog log_;
    std::string log_text_;
    ServerConfig config_;
    Crew crew_;
    WorkerStats stats_;
    FakeEngine engine_;
    TcpPair socket_;
    Connections connections_{config_, crew_, 0, engine_, stats_};
    UserData receive_{};
    int fd_ = -1;
};

}  // namespace

TEST_CASE("Connections go on receiving after a multishot receive that ended by itself",
          "[connections]") {
    Room room;
    room.settle();
    room.received(kGet, true);
    CHECK(room.turn_names() == Names{"send_now"});
    room.received(kGet, false);
    CHECK(room.turn_names() == Names{"send_now", "receive many"});
    CHECK(room.stats().requests.get() == 3);
}

TEST_CASE("Connections lose nothing when no buffer was there: they receive again",
          "[connections]") {
    Room fresh;
    fresh.receive_failed(-ENOBUFS);
    CHECK(fresh.turn_names() == Names{"receive once likely"});
    fresh.received(kGetClose);
    CHECK(fresh.turn_names() == Names{"send_now last", "close"});

    Room lasting;
    lasting.settle();
    for (int round = 0; round < 5; ++round) {
        lasting.receive_failed(-ENOBUFS);
        CHECK(lasting.turn_names() == Names{"receive many"});
    }
    lasting.received(kGet, true);
    CHECK(lasting.turn_names() == Names{"send_now"});
    CHECK(lasting.stats().receive_errors.get() == 0);
}

TEST_CASE("Connections receive again after a receive that was cancelled by somebody else",
          "[connections]") {
    Room room;
    room.settle();
    room.receive_failed(-ECANCELED);
    CHECK(room.turn_names() == Names{"receive many"});
    CHECK(room.stats().receive_errors.get() == 0);
}

TEST_CASE("Connections close on a receive that failed, count it and log nothing", "[connections]") {
    for (const int error : {ECONNRESET, ETIMEDOUT, EPIPE, EHOSTUNREACH, ENETUNREACH, ENOMEM}) {
        INFO(std::strerror(error));
        Room room;
        room.settle();
        room.receive_failed(-error);
        CHECK(room.turn_names() == Names{"close"});
        CHECK(room.stats().receive_errors.get() == 1);
        CHECK(room.stats().connections_open.get() == 0);
        CHECK(room.stats().slots_in_use.get() == 0);
        CHECK(room->are_gone());
        CHECK(room.log().empty());
    }
}

TEST_CASE("Connections send in patience what did not fit at once", "[connections]") {
    for (const int taken : {-EAGAIN, 0, 1, 100}) {
        Room room;
        room.received(kGet);
        const std::vector<Asked> asked = room.turn();
        REQUIRE(asked.size() == 2);
        const std::string whole = asked[0].octets;
        room.failed(room.tag(Op::SendNow), taken);
        const std::vector<Asked> rest = room.turn();
        REQUIRE(rest.size() == 1);
        CHECK(rest[0].what == "send");
        CHECK(rest[0].octets == whole.substr(taken > 0 ? static_cast<std::size_t>(taken) : 0));
        room.received(kGet, true);
        CHECK(room.turn_names() == kNothing);  // one send at a time
        room.failed(rest[0].tag, static_cast<int>(rest[0].octets.size()));
        CHECK(room.turn_names() == Names{"send_now"});
        CHECK(room.stats().bytes_sent.get() == 2 * whole.size());
        CHECK(room.stats().send_errors.get() == 0);
    }
}

TEST_CASE("Connections close on a send that failed, count it and log nothing", "[connections]") {
    for (const int error : {EPIPE, ECONNRESET, ETIMEDOUT, ENOMEM}) {
        INFO(std::strerror(error));
        Room at_once;
        at_once.settle();
        at_once.failed(at_once.tag(Op::SendNow), -error);
        CHECK(at_once.turn_names() == Names{"cancel", "close"});
        CHECK(at_once.stats().send_errors.get() == 1);
        CHECK(at_once.stats().bytes_sent.get() == 0);
        CHECK(at_once.stats().slots_in_use.get() == 1);  // until the receive has ended
        at_once.receive_failed(-ECANCELED);
        CHECK(at_once.turn_names() == kNothing);
        CHECK(at_once.stats().slots_in_use.get() == 0);

        Room patient;
        patient.settle();
        patient.failed(patient.tag(Op::SendNow), -EAGAIN);
        CHECK(patient.turn_names() == Names{"send"});
        patient.failed(patient.tag(Op::Send), -error);
        CHECK(patient.turn_names() == Names{"cancel", "close"});
        CHECK(patient.stats().send_errors.get() == 1);
        CHECK(patient.log().empty());
    }
}

TEST_CASE("Connections take a patient send that stopped half way for a broken connection",
          "[connections]") {
    Room room;
    room.settle();
    room.failed(room.tag(Op::SendNow), -EAGAIN);
    REQUIRE(room.turn_names() == Names{"send"});
    room.failed(room.tag(Op::Send), 5);
    CHECK(room.turn_names() == Names{"cancel", "close"});
    CHECK(room.stats().bytes_sent.get() == 5);
}

TEST_CASE("Connections whose cancel came too late go by what the operation says", "[connections]") {
    Room room;
    room.settle();
    room->abort();
    REQUIRE(room.turn_names() == Names{"cancel", "close"});
    room.received(kGet, true);  // the kernel was faster: -EALREADY for the cancel
    CHECK(room.turn_names() == kNothing);
    CHECK(room.stats().slots_in_use.get() == 1);
    room.receive_failed(-ECANCELED);
    CHECK(room.turn_names() == kNothing);
    CHECK(room.stats().slots_in_use.get() == 0);
    CHECK(room.stats().requests.get() == 1);
}

TEST_CASE("Connections have no part in what comes for a connection before", "[connections]") {
    Room room;
    room.received(kGetClose);
    REQUIRE(room.turn_names() == Names{"send_now last", "close"});
    TcpPair next;
    room->admit(next.near.release());
    const std::vector<Asked> asked = room.turn();
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].tag.slot == room.tag(Op::Receive).slot);
    CHECK(asked[0].tag.generation != room.tag(Op::Receive).generation);
    room.received(kGet);
    room.failed(room.tag(Op::SendNow), -EPIPE);
    room.failed(room.tag(Op::Send), -EPIPE);
    CHECK(room.turn_names() == kNothing);
    CHECK(room.stats().stale_completions.get() == 3);
    CHECK(room.stats().send_errors.get() == 1);  // the answer that was lost
    CHECK(room.stats().requests.get() == 1);
    CHECK(room.stats().connections_open.get() == 1);
}

TEST_CASE("Connections keep who can't be handed over", "[connections]") {
    for (const int error : {EBADFD, EOVERFLOW, ENOMEM, EAGAIN}) {
        INFO(std::strerror(error));
        Room room(2);
        room.crew().members[1].inbox = 77;
        room.crew().balancer.add(0);
        room.received(kGet);
        const std::vector<Asked> asked = room.turn();
        REQUIRE(asked.size() == 2);
        CHECK(asked[0].what == "send_now");
        REQUIRE(asked[1].what == "hand_off");
        CHECK(asked[1].fd == room.fd());
        CHECK(asked[1].inbox == 77);
        CHECK(room.stats().connections_open.get() == 0);
        CHECK_FALSE(room->are_gone());  // it may come back
        room->on_handed_off(asked[1].tag, -error);
        CHECK(room.turn_names() == Names{"receive many"});
        CHECK(room.stats().connections_open.get() == 1);
        CHECK(room.stats().handoffs.get() == 0);
        CHECK(room.crew().balancer.place(0) == 1);  // two here, none there
    }
}

// The second send may meet a full socket. By then the connection would be somebody else's, and the
// answers in it lost.
TEST_CASE("Connections hand nobody over whose answers did not fit into one send", "[connections]") {
    Room room(2, std::string(3000, 'b'));
    room.crew().balancer.add(0);
    room.received(repeat(kGet, 21));
    REQUIRE(room.turn_names() == Names{"send_now", "receive many"});
    const std::vector<Asked> rest = room.turn();
    REQUIRE(rest.size() == 1);
    CHECK(rest[0].what == "send_now");
    CHECK(rest[0].octets.size() < 4096);
}

}  // namespace hello::test

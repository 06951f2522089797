// SPDX-License-Identifier: MIT
//
// Tests of acceptor.h: what each end of an accept leads to. The engine is a fake.

#include "acceptor.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/captured_log.h"
#include "support/fake_engine.h"
#include "support/tcp.h"

namespace hello::test {
namespace {

using Names = std::vector<std::string>;

const Names kNothing;
const Names kArmed{"accept"};

/// An acceptor whose accept is armed.
struct Door {
    Door() {
        manage();
        REQUIRE(engine.take_names() == kArmed);
    }

    void manage(bool room = true) { acceptor.manage(engine, room); }
    int complete(int result, bool goes_on = false) {
        return acceptor.on_completion({{Op::Accept, 0, 0}, result, goes_on, false, {}});
    }

    CapturedLog log;
    TcpListener listener;
    WorkerStats stats;
    FakeEngine engine;
    Acceptor acceptor{listener.release(), stats};
};

}  // namespace

TEST_CASE("Acceptor arms its accept once", "[acceptor]") {
    Door door;
    CHECK(door.complete(7, true) == 7);
    CHECK(door.complete(8, true) == 8);
    door.manage();
    CHECK(door.engine.take_names() == kNothing);
}

TEST_CASE("Acceptor keeps the connection that an accept ends with, and arms another",
          "[acceptor]") {
    Door door;
    CHECK(door.complete(7) == 7);
    door.manage();
    CHECK(door.engine.take_names() == kArmed);
    CHECK(door.stats.accept_errors.get() == 0);
}

TEST_CASE("Acceptor counts a connection that failed, and goes on at once", "[acceptor]") {
    for (const int error : {ECONNABORTED, EPROTO, ENETDOWN, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH,
                            ENOPROTOOPT, ENONET, EOPNOTSUPP, EAGAIN, EINTR}) {
        INFO(std::strerror(error));
        Door door;
        CHECK(door.complete(-error) < 0);
        door.manage();
        CHECK(door.engine.take_names() == kArmed);
        CHECK(door.stats.accept_errors.get() == 1);
        CHECK(door.log.text().empty());
    }
}

TEST_CASE("Acceptor without descriptors or memory waits until it may work again", "[acceptor]") {
    for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EACCES, EIO}) {
        INFO(std::strerror(error));
        Door door;
        for (int round = 1; round <= 3; ++round) {
            CHECK(door.complete(-error) < 0);
            CHECK(door.acceptor.is_exhausted());
            for (int turn = 0; turn < 5; ++turn) {
                door.manage();
            }
            CHECK(door.engine.take_names() == kNothing);
            door.acceptor.retry();
            door.manage();
            CHECK(door.engine.take_names() == kArmed);
        }
        CHECK(door.stats.accept_errors.get() == 3);
        CHECK(door.stats.accepts_paused.get() == 3);
    }
}

TEST_CASE("Acceptor warns of a lack of descriptors once, with the cure", "[acceptor]") {
    Door door;
    for (int round = 0; round < 10; ++round) {
        CHECK(door.complete(-EMFILE) < 0);
        door.acceptor.retry();
        door.manage();
    }
    CHECK(door.log.text() ==
          "[warning] cannot accept: Too many open files; clients wait in the "
          "backlog; cure where files are short: raise ulimit -n\n");
}

TEST_CASE("Acceptor goes on after an accept that was cancelled by somebody else", "[acceptor]") {
    Door door;
    CHECK(door.complete(-ECANCELED) < 0);
    door.manage();
    CHECK(door.engine.take_names() == kArmed);
    CHECK(door.stats.accept_errors.get() == 0);
}

// It used to try again each second, and a server that could never accept looked healthy.
TEST_CASE("Acceptor gives up where the listener is none", "[acceptor]") {
    for (const int error : {EBADF, ENOTSOCK, EINVAL}) {
        Door door;
        CHECK_THROWS_AS(door.complete(-error), std::system_error);
    }
}

TEST_CASE("Acceptor without room cancels its accept once, and arms it when that has ended",
          "[acceptor]") {
    Door door;
    door.manage(false);
    door.manage(false);
    const std::vector<Asked> asked = door.engine.take_asked();
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].what == "cancel");
    CHECK(asked[0].tag == UserData{Op::Accept, 0, 0});
    door.manage(true);
    CHECK(door.engine.take_names() == kNothing);
    CHECK(door.complete(9, true) == 9);  // it came first
    door.manage(true);
    CHECK(door.engine.take_names() == kNothing);
    CHECK(door.complete(-ECANCELED) < 0);
    door.manage(true);
    CHECK(door.engine.take_names() == kArmed);
    CHECK(door.stats.accept_errors.get() == 0);
}

TEST_CASE("Acceptor gives out who was postponed, in order, before it accepts others",
          "[acceptor]") {
    Door door;
    const TcpPair one;
    const TcpPair two;
    const int first = dup(one.near.get());
    const int second = dup(two.near.get());
    door.acceptor.postpone(first);
    door.acceptor.postpone(second);
    CHECK(door.complete(-ECANCELED) < 0);
    door.manage();
    CHECK(door.engine.take_names() == kNothing);
    CHECK(UniqueFd(door.acceptor.next_waiting()).get() == first);
    CHECK(UniqueFd(door.acceptor.next_waiting()).get() == second);
    CHECK(door.acceptor.next_waiting() == -1);
    door.manage();
    CHECK(door.engine.take_names() == kArmed);
}

TEST_CASE("Acceptor that stops serves who has connected already, then closes", "[acceptor]") {
    Door door;
    const UniqueFd client = door.listener.connect();
    door.acceptor.stop();
    CHECK(door.acceptor.next_waiting() == -1);  // the accept is still armed
    door.manage();
    CHECK(door.engine.take_names() == Names{"cancel"});
    CHECK_FALSE(door.acceptor.is_stopped());
    CHECK(door.complete(-ECANCELED) < 0);
    const UniqueFd accepted(door.acceptor.next_waiting());
    CHECK(accepted.is_open());
    CHECK_FALSE(door.acceptor.is_stopped());
    CHECK(door.acceptor.next_waiting() == -1);
    CHECK(door.acceptor.is_stopped());
    CHECK_THROWS_AS(door.listener.connect(), std::system_error);
    door.manage();
    CHECK(door.engine.take_names() == kNothing);
}

// It used to cancel the accept of descriptor -1, by which the epoll engine read and wrote where
// nothing of its was. A start that failed in one thread did that in all others.
TEST_CASE("Acceptor asks nothing of the engine once it is closed", "[acceptor]") {
    Door door;
    door.acceptor.stop();
    door.acceptor.close();
    CHECK(door.acceptor.is_stopped());
    door.manage();
    CHECK(door.engine.take_names() == kNothing);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Tests of engine.h: what either engine promises to those above, over TCP.

#include "engine.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "support/engine_driver.h"
#include "support/tcp.h"

namespace hello::test {
namespace {

constexpr UserData kReceive{Op::Receive, 1, 7};
constexpr UserData kSend{Op::Send, 1, 7};
constexpr UserData kSendNow{Op::SendNow, 1, 7};
constexpr UserData kClose{Op::Close, 1, 7};
constexpr UserData kAccept{Op::Accept, 0, 0};

EngineKind either_engine() {
    return GENERATE(EngineKind::IoUring, EngineKind::Epoll);
}

void send_text(const UniqueFd& socket, std::string_view text) {
    REQUIRE(send(socket.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
}

/// Makes a receive or send of the test fail rather than wait for ever.
void have_patience(const UniqueFd& socket) {
    const timeval ten_s{10, 0};
    REQUIRE(setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &ten_s, sizeof ten_s) == 0);
}

/// Octets that differ from place to place.
std::string long_text(std::size_t size) {
    std::string text;
    for (int i = 0; text.size() < size; ++i) {
        text += std::to_string(i) + ' ';
    }
    text.resize(size);
    return text;
}

/// Sends at once until the socket is full, which must say so: first by a count, then by EAGAIN.
std::size_t fill(EngineDriver& engine, const UniqueFd& socket, const std::string& text) {
    std::size_t taken = 0;
    for (;;) {
        engine->send_now(socket.get(), kSendNow, text);
        const std::vector<EngineOutcome> rest = engine.rest();
        if (rest.empty()) {
            taken += text.size();
            continue;
        }
        REQUIRE(rest.size() == 1);
        CHECK(rest[0].tag == kSendNow);
        if (rest[0].result < 0) {
            CHECK(rest[0].result == -EAGAIN);
            return taken;
        }
        CHECK(static_cast<std::size_t>(rest[0].result) < text.size());
        taken += static_cast<std::size_t>(rest[0].result);
    }
}

}  // namespace

TEST_CASE("Engine accepts all who come, until it is cancelled", "[engine]") {
    EngineDriver engine(either_engine());
    TcpListener listener;
    engine->accept(listener.fd());
    for (int i = 0; i < 100; ++i) {
        const UniqueFd client = listener.connect();
        const EngineOutcome outcome = engine.next();
        CHECK(outcome.tag == kAccept);
        CHECK(outcome.goes_on);
        const UniqueFd accepted(outcome.result);
        CHECK((fcntl(accepted.get(), F_GETFD) & FD_CLOEXEC) != 0);
        send_text(client, "x");
        char octet = 0;
        CHECK(recv(accepted.get(), &octet, 1, 0) == 1);
    }
    engine->cancel(listener.fd(), kAccept);
    const std::vector<EngineOutcome> end = engine.rest();
    REQUIRE(end.size() == 1);
    CHECK(end[0].tag == kAccept);
    CHECK(end[0].result == -ECANCELED);
    CHECK_FALSE(end[0].goes_on);
    const UniqueFd late = listener.connect();
    CHECK(engine.rest().empty());
    engine->accept(listener.fd());
    CHECK(UniqueFd(engine.next().result).is_open());
}

TEST_CASE("Engine accepts who connected before it was asked to", "[engine]") {
    EngineDriver engine(either_engine());
    TcpListener listener;
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 200; ++i) {
        clients.push_back(listener.connect());
    }
    engine->accept(listener.fd());
    for (int i = 0; i < 200; ++i) {
        CHECK(UniqueFd(engine.next().result).is_open());
    }
    CHECK(engine.rest().empty());
}

TEST_CASE("Engine receives once, whether the octets are there or come later", "[engine]") {
    EngineDriver engine(either_engine());
    const Readiness readiness = GENERATE(Readiness::Likely, Readiness::Unlikely);
    const bool early = GENERATE(true, false);
    const TcpPair pair;
    if (early) {
        send_text(pair.far, "one");
    }
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Once, readiness);
    if (!early) {
        CHECK(engine.rest().empty());
        send_text(pair.far, "one");
    }
    const EngineOutcome outcome = engine.next();
    CHECK(outcome.tag == kReceive);
    CHECK(outcome.result == 3);
    CHECK(outcome.input == "one");
    CHECK_FALSE(outcome.goes_on);
    send_text(pair.far, "two");
    CHECK(engine.rest().empty());
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Once, readiness);
    CHECK(engine.next().input == "two");
}

TEST_CASE("Engine goes on receiving many, up to the end of input", "[engine]") {
    EngineDriver engine(either_engine());
    TcpPair pair;
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Many, Readiness::Unlikely);
    for (const std::string text : {"one", "two", "three"}) {
        send_text(pair.far, text);
        const EngineOutcome outcome = engine.next();
        CHECK(outcome.input == text);
        CHECK(outcome.goes_on);
    }
    pair.far.reset();
    const EngineOutcome end = engine.next();
    CHECK(end.tag == kReceive);
    CHECK(end.result == 0);
    CHECK_FALSE(end.goes_on);
    CHECK(engine.rest().empty());
}

TEST_CASE("Engine receives what is there now, and waits for nothing", "[engine]") {
    EngineDriver engine(either_engine());
    const TcpPair pair;
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Now, Readiness::Likely);
    const EngineOutcome nothing = engine.next();
    CHECK(nothing.result == -EAGAIN);
    CHECK_FALSE(nothing.goes_on);
    send_text(pair.far, "one");
    CHECK(engine.rest().empty());
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Now, Readiness::Likely);
    CHECK(engine.next().input == "one");
}

TEST_CASE("Engine gives a long input in pieces, none larger than a buffer", "[engine]") {
    EngineDriver engine(either_engine());
    const ReceiveMode mode = GENERATE(ReceiveMode::Once, ReceiveMode::Many);
    const TcpPair pair;
    const std::string sent = long_text(50'000);
    send_text(pair.far, sent);
    std::string received;
    bool asked = false;
    while (received.size() < sent.size()) {
        if (!std::exchange(asked, true)) {
            engine->receive(pair.near.get(), kReceive, mode, Readiness::Likely);
        }
        const EngineOutcome outcome = engine.next();
        REQUIRE(outcome.result == static_cast<int>(outcome.input.size()));
        REQUIRE(outcome.input.size() <= Engine::kBufferSize);
        received += outcome.input;
        asked = outcome.goes_on;
        if (mode == ReceiveMode::Once && received.size() < sent.size()) {
            CHECK(outcome.input_left);
        }
    }
    CHECK(received == sent);
}

TEST_CASE("Engine tells of a reset", "[engine]") {
    EngineDriver engine(either_engine());
    const ReceiveMode mode = GENERATE(ReceiveMode::Once, ReceiveMode::Many);
    TcpPair pair;
    engine->receive(pair.near.get(), kReceive, mode, Readiness::Unlikely);
    CHECK(engine.rest().empty());
    reset(pair.far);
    const EngineOutcome outcome = engine.next();
    CHECK(outcome.tag == kReceive);
    CHECK(outcome.result == -ECONNRESET);
    CHECK_FALSE(outcome.goes_on);
    CHECK(engine.rest().empty());
}

TEST_CASE("Engine ends a receive that is cancelled, once, and takes nothing more", "[engine]") {
    EngineDriver engine(either_engine());
    const ReceiveMode mode = GENERATE(ReceiveMode::Once, ReceiveMode::Many);
    const TcpPair pair;
    engine->receive(pair.near.get(), kReceive, mode, Readiness::Unlikely);
    CHECK(engine.rest().empty());
    engine->cancel(pair.near.get(), kReceive);
    const std::vector<EngineOutcome> end = engine.rest();
    REQUIRE(end.size() == 1);
    CHECK(end[0].tag == kReceive);
    CHECK(end[0].result == -ECANCELED);
    CHECK_FALSE(end[0].goes_on);
    send_text(pair.far, "kept");
    CHECK(engine.rest().empty());
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Once, Readiness::Likely);
    CHECK(engine.next().input == "kept");
}

TEST_CASE("Engine may be asked to cancel what is not there", "[engine]") {
    EngineDriver engine(either_engine());
    const TcpPair pair;
    engine->cancel(pair.near.get(), kReceive);
    engine->cancel(pair.near.get(), kSend);
    for (const EngineOutcome& outcome : engine.rest()) {
        CHECK(outcome.tag.op == Op::Cancel);
        CHECK(outcome.result == -ENOENT);
    }
    send_text(pair.far, "one");
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Once, Readiness::Likely);
    CHECK(engine.next().input == "one");
}

TEST_CASE("Engine sends at once without a completion, or says how much was taken", "[engine]") {
    EngineDriver engine(either_engine());
    TcpPair pair;
    const std::string text = long_text(300'000);
    engine->send_now(pair.near.get(), kSendNow, "first");
    CHECK(engine.rest().empty());
    CHECK(receive_all(pair.far.get(), 5) == "first");
    const std::size_t taken = fill(engine, pair.near, text);
    have_patience(pair.far);
    CHECK(receive_all(pair.far.get(), taken).size() == taken);
    pair.near.reset();
    CHECK(receive_all(pair.far.get()).empty());  // nothing was sent behind our back
}

TEST_CASE("Engine completes a patient send when all is taken, and not before", "[engine]") {
    EngineDriver engine(either_engine());
    const TcpPair pair;
    have_patience(pair.far);
    const std::string text = long_text(16'000'000);
    engine->send(pair.near.get(), kSend, text);
    CHECK(engine.rest().empty());
    std::string received;
    std::thread reader([&] { received = receive_all(pair.far.get(), text.size()); });
    const EngineOutcome outcome = engine.next();
    reader.join();
    CHECK(outcome.tag == kSend);
    CHECK(outcome.result == static_cast<int>(text.size()));
    CHECK(received == text);
    CHECK(engine.rest().empty());
}

TEST_CASE("Engine ends a patient send that is cancelled", "[engine]") {
    EngineDriver engine(either_engine());
    const TcpPair pair;
    const std::string text = long_text(16'000'000);
    engine->send(pair.near.get(), kSend, text);
    CHECK(engine.rest().empty());
    engine->cancel(pair.near.get(), kSend);
    const std::vector<EngineOutcome> end = engine.rest();
    REQUIRE(end.size() == 1);
    CHECK(end[0].tag == kSend);
    CHECK(end[0].result < static_cast<int>(text.size()));  // what was taken, or ECANCELED
}

TEST_CASE("Engine receives while a patient send waits", "[engine]") {
    EngineDriver engine(either_engine());
    const TcpPair pair;
    have_patience(pair.far);
    const std::string text = long_text(16'000'000);
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Many, Readiness::Unlikely);
    engine->send(pair.near.get(), kSend, text);
    CHECK(engine.rest().empty());
    send_text(pair.far, "one");
    CHECK(engine.next().input == "one");
    std::thread reader([&] { static_cast<void>(receive_all(pair.far.get(), text.size())); });
    CHECK(engine.next().tag == kSend);
    reader.join();
    send_text(pair.far, "two");
    CHECK(engine.next().input == "two");
}

TEST_CASE("Engine tells of a client that is gone by an error, not by a signal", "[engine]") {
    EngineDriver engine(either_engine());
    TcpPair pair;
    reset(pair.far);
    engine->send_now(pair.near.get(), kSendNow, "one");
    const EngineOutcome at_once = engine.next();
    CHECK(at_once.tag == kSendNow);
    CHECK((at_once.result == -ECONNRESET || at_once.result == -EPIPE));
    engine->send(pair.near.get(), kSend, "two");
    const EngineOutcome patient = engine.next();
    CHECK(patient.tag == kSend);
    CHECK(patient.result == -EPIPE);
}

TEST_CASE("Engine ends a patient send whose client resets", "[engine]") {
    EngineDriver engine(either_engine());
    TcpPair pair;
    const std::string text = long_text(16'000'000);
    engine->send(pair.near.get(), kSend, text);
    CHECK(engine.rest().empty());
    reset(pair.far);
    const EngineOutcome outcome = engine.next();
    CHECK(outcome.tag == kSend);
    CHECK(outcome.result < static_cast<int>(text.size()));
    CHECK(engine.rest().empty());
}

TEST_CASE("Engine sends data and FIN when it closes, even if asked in one breath", "[engine]") {
    EngineDriver engine(either_engine());
    TcpPair pair;
    have_patience(pair.far);
    const int fd = pair.near.release();
    engine->send_last(fd, "last");
    engine->close(fd, kClose);
    CHECK(engine.rest().empty());
    CHECK(receive_all(pair.far.get()) == "last");
    CHECK(fcntl(fd, F_GETFD) == -1);
    engine->close(fd, kClose);
    const EngineOutcome twice = engine.next();
    CHECK(twice.tag == kClose);
    CHECK(twice.result == -EBADF);
}

TEST_CASE("Engine closes in the end what has a receive, once that is cancelled", "[engine]") {
    EngineDriver engine(either_engine());
    TcpPair pair;
    have_patience(pair.far);
    const int fd = pair.near.release();
    engine->receive(fd, kReceive, ReceiveMode::Many, Readiness::Unlikely);
    CHECK(engine.rest().empty());
    engine->cancel(fd, kReceive);
    engine->close(fd, kClose);
    const std::vector<EngineOutcome> end = engine.rest();
    REQUIRE(end.size() == 1);
    CHECK(end[0].result == -ECANCELED);
    CHECK(receive_all(pair.far.get()).empty());
}

TEST_CASE("Engine gives a connection nothing of one that had its number before", "[engine]") {
    EngineDriver engine(either_engine());
    for (std::uint32_t round = 0; round < 100; ++round) {
        const UserData old_tag{Op::Receive, 2 * round, 1};
        const UserData new_tag{Op::Receive, 2 * round + 1, 1};
        TcpListener listener;
        const UniqueFd old_client = listener.connect();
        const UniqueFd new_client = listener.connect();
        const int old_fd = listener.accept().release();
        engine->receive(old_fd, old_tag, ReceiveMode::Many, Readiness::Likely);
        CHECK(engine.rest().empty());
        send_text(old_client, "old");
        engine->cancel(old_fd, old_tag);
        engine->close(old_fd, kClose);
        const std::vector<EngineOutcome> first = engine.rest();
        UniqueFd new_socket = listener.accept();
        REQUIRE(new_socket.get() == old_fd);
        engine->receive(new_socket.get(), new_tag, ReceiveMode::Many, Readiness::Likely);
        send_text(new_client, "new");
        for (const EngineOutcome& outcome : first) {
            CHECK(outcome.tag == old_tag);
        }
        const EngineOutcome outcome = engine.next();
        CHECK(outcome.tag == new_tag);
        CHECK(outcome.input == "new");
        engine->cancel(new_socket.get(), new_tag);
        const int fd = new_socket.release();
        engine->close(fd, kClose);
        CHECK(engine.rest().size() == 1);
    }
}

TEST_CASE("Engine hands a connection to another engine", "[engine]") {
    const EngineKind kind = either_engine();
    EngineDriver from(kind);
    EngineDriver to(kind);
    constexpr UserData kHandOff{Op::HandOff, 1, 99};
    const TcpPair pair;
    from->receive(pair.near.get(), kReceive, ReceiveMode::Once, Readiness::Unlikely);
    send_text(pair.far, "one");
    CHECK(from.next().input == "one");
    from->hand_off(pair.near.get(), kHandOff, to->inbox());
    const EngineOutcome given = from.next();
    CHECK(given.tag == kHandOff);
    CHECK(given.result == 0);
    const EngineOutcome adopted = to.next();
    CHECK(adopted.tag.op == Op::Adopt);
    CHECK(adopted.result == pair.near.get());
    to->receive(pair.near.get(), kReceive, ReceiveMode::Many, Readiness::Unlikely);
    send_text(pair.far, "two");
    CHECK(to.next().input == "two");
    CHECK(from.rest().empty());
}

TEST_CASE("Engine says so when the other engine can't be reached, and the connection stays",
          "[engine]") {
    EngineDriver engine(either_engine());
    const TcpPair pair;
    engine->hand_off(pair.near.get(), {Op::HandOff, 1, 99}, 1'000'000);
    const EngineOutcome refused = engine.next();
    CHECK(refused.tag == UserData{Op::HandOff, 1, 99});
    CHECK(refused.result < 0);
    engine->receive(pair.near.get(), kReceive, ReceiveMode::Many, Readiness::Unlikely);
    send_text(pair.far, "one");
    CHECK(engine.next().input == "one");
}

TEST_CASE("Engine ticks once, just after the second has begun", "[engine]") {
    EngineDriver engine(either_engine());
    engine->tick();
    timespec before{};
    clock_gettime(CLOCK_MONOTONIC, &before);
    const EngineOutcome outcome = engine.next();
    timespec after{};
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK(outcome.tag.op == Op::Tick);
    CHECK(after.tv_sec > before.tv_sec - (before.tv_nsec < 11'000'000 ? 1 : 0));
    CHECK(engine.rest().empty());
}

TEST_CASE("Engine sleeps until another thread wakes it", "[engine]") {
    EngineDriver engine(either_engine());
    const UniqueFd event(check_errno(eventfd(0, EFD_CLOEXEC), "eventfd"));
    CHECK(engine.rest().empty());  // which arms the driver's own wake
    engine->wake(event.get());
    std::thread other([&] { eventfd_write(event.get(), 3); });
    CHECK(engine->turn(true) == 0);
    other.join();
    CHECK(engine.next().tag.op == Op::Wake);
}

TEST_CASE("Engine serves all who send at once, though its buffers are fewer", "[engine]") {
    EngineDriver engine(either_engine());
    constexpr std::uint32_t kCount = 320;  // io_uring has 256 buffers, epoll 128
    std::vector<TcpPair> pairs(kCount);
    std::map<std::uint32_t, std::string> inputs;
    const std::string text = long_text(3 * Engine::kBufferSize);
    const auto receive = [&](std::uint32_t slot) {
        engine->receive(pairs[slot].near.get(), {Op::Receive, 1, slot}, ReceiveMode::Once,
                        Readiness::Likely);
    };
    for (std::uint32_t slot = 0; slot < kCount; ++slot) {
        send_text(pairs[slot].far, text);
        receive(slot);
    }
    std::size_t complete = 0;
    while (complete < kCount) {
        const EngineOutcome outcome = engine.next();
        std::string& input = inputs[outcome.tag.slot];
        REQUIRE((outcome.result > 0 || outcome.result == -ENOBUFS));
        input += outcome.input;
        REQUIRE(input == text.substr(0, input.size()));
        if (input.size() == text.size()) {
            ++complete;
        } else {
            receive(outcome.tag.slot);
        }
    }
    CHECK(engine.rest().empty());
}

}  // namespace hello::test

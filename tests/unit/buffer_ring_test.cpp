// SPDX-License-Identifier: MIT
//
// Tests of buffer_ring.h: where each buffer is, whatever is received and given back.

#include "buffer_ring.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "error.h"
#include "support/need_io_uring.h"
#include "support/tcp.h"
#include "unique_fd.h"

namespace hello::test {
namespace {

using Ids = std::set<std::uint16_t>;
constexpr UringSizes kSizes{64, 256};

struct SocketPair {
    /// SOCK_SEQPACKET keeps messages apart, so that each receive gets one.
    explicit SocketPair(int type = SOCK_SEQPACKET) {
        std::array<int, 2> ends{};
        check_errno(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
        near.reset(ends[0]);
        far.reset(ends[1]);
    }
    UniqueFd near;
    UniqueFd far;
};

void send_text(const UniqueFd& socket, std::string_view text) {
    REQUIRE(send(socket.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
}

void queue_receive(Ring& ring, int fd, std::uint64_t tag, std::uint16_t flags = 0) {
    io_uring_sqe* const sqe = ring.sqe();
    io_uring_prep_recv(sqe, fd, nullptr, 0, 0);
    sqe->ioprio = flags;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BufferRing::kGroup;
    io_uring_sqe_set_data64(sqe, tag);
}

/// What came of a receive.
struct Received {
    std::uint64_t tag = 0;
    int result = 0;
    std::optional<std::uint16_t> id;
    bool more = false;
};

std::vector<Received> take_received(Ring& ring) {
    std::vector<Received> received;
    ring.for_each_cqe([&](const io_uring_cqe& cqe) {
        Received one{cqe.user_data, cqe.res, std::nullopt, (cqe.flags & IORING_CQE_F_MORE) != 0};
        if ((cqe.flags & IORING_CQE_F_BUFFER) != 0) {
            one.id = static_cast<std::uint16_t>(cqe.flags >> IORING_CQE_BUFFER_SHIFT);
        }
        received.push_back(one);
    });
    return received;
}

/// Sends `text` through `pair` and receives it at the other end.
Received receive_one(Ring& ring, const SocketPair& pair, std::string_view text) {
    send_text(pair.far, text);
    queue_receive(ring, pair.near.get(), 1);
    REQUIRE(ring.submit_and_wait(1) == 0);
    const std::vector<Received> received = take_received(ring);
    REQUIRE(received.size() == 1);
    return received.front();
}

Ids all_ids(unsigned count) {
    Ids ids;
    for (unsigned id = 0; id < count; ++id) {
        ids.insert(static_cast<std::uint16_t>(id));
    }
    return ids;
}

/// Takes a message of one octet that found no buffer off `pair`.
void discard_one(const SocketPair& pair) {
    char octet = 0;
    REQUIRE(recv(pair.near.get(), &octet, 1, MSG_DONTWAIT) == 1);
}

/// Receives until no buffer is left. Returns the ids in the order in which they came.
std::vector<std::uint16_t> borrow_all(Ring& ring, BufferRing& buffers, const SocketPair& pair) {
    std::vector<std::uint16_t> ids;
    Received received = receive_one(ring, pair, "x");
    for (; received.id; received = receive_one(ring, pair, "x")) {
        static_cast<void>(buffers.borrow(*received.id, 1));
        ids.push_back(*received.id);
    }
    REQUIRE(received.result == -ENOBUFS);
    discard_one(pair);
    return ids;
}

/// Receives, gives back and publishes at random, and knows where each buffer should be.
class BuffersAndModel {
public:
    explicit BuffersAndModel(unsigned seed) : random_(seed) {}

    void step() {
        const auto action = random_() % 8;
        if (action < 4) {
            receive(1 + random_() % pairs_.size());
        } else if (action < 7) {
            give_back();
        } else {
            publish();
        }
        REQUIRE(buffers_.available() + borrowed_.size() == kBuffers);
    }

    /// Every buffer is either borrowed or comes out of the ring, and none twice.
    void finish() {
        publish();
        Ids ids;
        for (const auto& [id, text] : borrowed_) {
            ids.insert(id);
        }
        const std::vector<std::uint16_t> rest = borrow_all(ring_, buffers_, pairs_.front());
        ids.insert(rest.begin(), rest.end());
        CHECK(borrowed_.size() + rest.size() == kBuffers);
        CHECK(ids == all_ids(kBuffers));
        CHECK(buffers_.available() == 0);
    }

    [[nodiscard]] bool ran_out() const { return ran_out_; }

private:
    static constexpr unsigned kBuffers = 8;

    struct Borrowed {
        std::string_view octets;
        std::string expected;
    };

    void receive(std::size_t count) {
        std::vector<std::string> texts;
        for (std::size_t pair = 0; pair < count; ++pair) {
            const auto size = 1 + random_() % BufferRing::kBufferSize;
            texts.emplace_back(size, static_cast<char>('!' + random_() % 90));
            send_text(pairs_[pair].far, texts.back());
            queue_receive(ring_, pairs_[pair].near.get(), pair);
        }
        REQUIRE(ring_.submit_and_wait(static_cast<unsigned>(count)) == 0);
        const std::vector<Received> all = take_received(ring_);
        REQUIRE(all.size() == count);
        const std::size_t in_ring = in_ring_;
        std::size_t with_buffer = 0;
        for (const Received& received : all) {
            with_buffer += received.id ? 1U : 0U;
            take(received, texts[received.tag]);
        }
        REQUIRE(with_buffer == std::min(count, in_ring));
    }

    void take(const Received& received, const std::string& text) {
        if (!received.id) {
            ran_out_ = true;
            REQUIRE(received.result == -ENOBUFS);
            std::string rest(text.size(), '\0');  // the message is still there
            REQUIRE(recv(pairs_[received.tag].near.get(), rest.data(), rest.size(), MSG_DONTWAIT) ==
                    static_cast<ssize_t>(text.size()));
            REQUIRE(rest == text);
            return;
        }
        REQUIRE(*received.id < kBuffers);
        REQUIRE_FALSE(borrowed_.contains(*received.id));
        REQUIRE(received.result == static_cast<int>(text.size()));
        borrowed_[*received.id] = {buffers_.borrow(*received.id, text.size()), text};
        --in_ring_;
    }

    void give_back() {
        if (borrowed_.empty()) {
            return;
        }
        const auto chosen =
            std::next(borrowed_.begin(), static_cast<std::ptrdiff_t>(random_() % borrowed_.size()));
        REQUIRE(chosen->second.octets == chosen->second.expected);  // nobody wrote into it since
        buffers_.give_back(chosen->first);
        borrowed_.erase(chosen);
        ++unpublished_;
    }

    void publish() {
        buffers_.publish();
        in_ring_ += std::exchange(unpublished_, 0);
    }

    Ring ring_{kSizes};
    BufferRing buffers_{ring_, kBuffers};
    std::array<SocketPair, 4> pairs_;
    std::mt19937 random_;
    std::map<std::uint16_t, Borrowed> borrowed_;
    std::size_t in_ring_ = kBuffers;
    std::size_t unpublished_ = 0;
    bool ran_out_ = false;
};

}  // namespace

TEST_CASE("BufferRing begins with all buffers in the ring", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 16);
    CHECK(buffers.count() == 16);
    CHECK(buffers.available() == 16);
    const std::vector<std::uint16_t> ids = borrow_all(ring, buffers, SocketPair());
    CHECK(ids.size() == 16);
    CHECK(Ids(ids.begin(), ids.end()) == all_ids(16));
}

TEST_CASE("BufferRing has its usual number of buffers", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    constexpr unsigned kUsual = UringSizes{}.buffers;
    BufferRing buffers(ring, kUsual);
    CHECK(buffers.count() == kUsual);
    CHECK(borrow_all(ring, buffers, SocketPair()).size() == kUsual);
}

TEST_CASE("BufferRing shows the octets that were received", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 4);
    const Received received = receive_one(ring, SocketPair(), "Hello World!");
    REQUIRE(received.id);
    CHECK(buffers.borrow(*received.id, static_cast<std::size_t>(received.result)) ==
          "Hello World!");
    CHECK(buffers.available() == 3);
    buffers.give_back(*received.id);
    CHECK(buffers.available() == 4);
}

TEST_CASE("BufferRing fills a buffer to the last octet, and no further", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 4);
    const SocketPair pair(SOCK_STREAM);
    std::string text(BufferRing::kBufferSize, 'a');
    text.front() = 'A';
    text.back() = 'Z';
    const Received whole = receive_one(ring, pair, text + "rest");
    REQUIRE(whole.id);
    REQUIRE(whole.result == static_cast<int>(BufferRing::kBufferSize));
    CHECK(buffers.borrow(*whole.id, text.size()) == text);
    const Received rest = receive_one(ring, pair, "!");
    REQUIRE(rest.id);
    CHECK(buffers.borrow(*rest.id, 5) == "rest!");
}

TEST_CASE("BufferRing keeps its buffers apart", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 16);
    std::vector<const char*> begins;
    for (std::uint16_t id = 0; id < 16; ++id) {
        begins.push_back(buffers.borrow(id, 0).data());
    }
    std::sort(begins.begin(), begins.end());
    for (std::size_t i = 1; i < begins.size(); ++i) {
        CHECK(begins[i] - begins[i - 1] >= static_cast<std::ptrdiff_t>(BufferRing::kBufferSize));
    }
}

TEST_CASE("BufferRing has none when all are borrowed, and again what is given back",
          "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 4);
    const SocketPair pair;
    const std::vector<std::uint16_t> ids = borrow_all(ring, buffers, pair);
    REQUIRE(ids.size() == 4);
    CHECK(buffers.available() == 0);
    CHECK(borrow_all(ring, buffers, pair).empty());
    buffers.give_back(ids[2]);
    buffers.publish();
    CHECK(borrow_all(ring, buffers, pair) == std::vector<std::uint16_t>{ids[2]});
}

TEST_CASE("BufferRing shows the kernel nothing before it is published", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 4);
    const SocketPair pair;
    const std::vector<std::uint16_t> ids = borrow_all(ring, buffers, pair);
    for (const std::uint16_t id : ids) {
        buffers.give_back(id);
    }
    CHECK(buffers.available() == 4);
    CHECK(borrow_all(ring, buffers, pair).empty());
    buffers.publish();
    CHECK(borrow_all(ring, buffers, pair).size() == 4);
}

TEST_CASE("BufferRing may be published with nothing new", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 4);
    buffers.publish();
    buffers.publish();
    CHECK(borrow_all(ring, buffers, SocketPair()).size() == 4);
}

TEST_CASE("BufferRing goes round more often than an index of 16 bits", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 2);
    const SocketPair pair;
    std::array<unsigned, 2> uses{};
    for (unsigned i = 0; i < 66'000; ++i) {
        const char octet = static_cast<char>('a' + i % 26);
        const Received received = receive_one(ring, pair, {&octet, 1});
        if (!received.id || *received.id > 1 || buffers.borrow(*received.id, 1)[0] != octet) {
            FAIL("wrong at " << i);
        }
        ++uses[*received.id];
        buffers.give_back(*received.id);
        buffers.publish();
    }
    CHECK(uses == std::array<unsigned, 2>{33'000, 33'000});
}

TEST_CASE("BufferRing has every buffer in one place, whatever happened", "[buffer_ring][kernel]") {
    need_io_uring();
    bool ran_out = false;
    for (unsigned seed = 1; seed <= 10; ++seed) {
        BuffersAndModel both(seed);
        for (int step = 0; step < 400; ++step) {
            both.step();
        }
        both.finish();
        ran_out = ran_out || both.ran_out();
    }
    CHECK(ran_out);
}

TEST_CASE("BufferRing lets a multishot receive that ran out go on without loss",
          "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing buffers(ring, 4);
    const TcpPair pair;
    std::string sent;
    for (int i = 0; sent.size() < 10 * BufferRing::kBufferSize; ++i) {
        sent += std::to_string(i) + ' ';
    }
    send_text(pair.far, sent);
    std::string received;
    int exhaustions = 0;
    bool armed = false;
    while (received.size() < sent.size()) {
        if (!std::exchange(armed, true)) {
            queue_receive(ring, pair.near.get(), 1, IORING_RECV_MULTISHOT);
        }
        REQUIRE(ring.submit_and_wait(1) == 0);
        for (const Received& one : take_received(ring)) {
            armed = armed && one.more;
            if (!one.id) {
                REQUIRE(one.result == -ENOBUFS);
                ++exhaustions;
                continue;
            }
            received += buffers.borrow(*one.id, static_cast<std::size_t>(one.result));
            buffers.give_back(*one.id);
        }
        buffers.publish();
    }
    CHECK(received == sent);
    CHECK(exhaustions > 0);
    CHECK(buffers.available() == 4);
}

TEST_CASE("BufferRing gives its group free at its end", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    for (unsigned count = 1; count <= 8; count *= 2) {
        BufferRing buffers(ring, count);
        CHECK(borrow_all(ring, buffers, SocketPair()).size() == count);
    }
}

TEST_CASE("BufferRing refuses to be the second of a ring", "[buffer_ring][kernel]") {
    need_io_uring();
    Ring ring(kSizes);
    BufferRing first(ring, 4);
    CHECK_THROWS_AS(BufferRing(ring, 4), StartError);
    CHECK(borrow_all(ring, first, SocketPair()).size() == 4);
}

}  // namespace hello::test

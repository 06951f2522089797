// SPDX-License-Identifier: MIT
//
// Tests of ring.h, with operations that need no server: no-ops, timeouts, reads of a pipe.

#include "ring.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "../support/seccomp.h"
#include "error.h"
#include "support/forked_child.h"
#include "support/need_io_uring.h"
#include "support/scripted_kernel.h"

namespace hello::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Clock = std::chrono::steady_clock;
using Tags = std::vector<std::uint64_t>;

constexpr UringSizes kSmall{8, 64};
constexpr UringSizes kTiny{8, 16};

void queue_nop(Ring& ring, std::uint64_t tag) {
    io_uring_sqe* const sqe = ring.sqe();
    REQUIRE(sqe != nullptr);
    io_uring_prep_nop(sqe);
    io_uring_sqe_set_data64(sqe, tag);
}

void queue_nops(Ring& ring, std::uint64_t count) {
    for (std::uint64_t tag = 0; tag < count; ++tag) {
        queue_nop(ring, tag);
    }
}

/// The tags of the completions that are there.
Tags take_tags(Ring& ring) {
    Tags tags;
    const unsigned count =
        ring.for_each_cqe([&](const io_uring_cqe& cqe) { tags.push_back(cqe.user_data); });
    REQUIRE(count == tags.size());
    return tags;
}

/// The same with those that wait in the kernel, as the worker takes them.
Tags take_all_tags(Ring& ring) {
    Tags tags = take_tags(ring);
    while (ring.fetch_overflow()) {
        const Tags more = take_tags(ring);
        tags.insert(tags.end(), more.begin(), more.end());
    }
    return tags;
}

/// 0, 1, 2, ...
Tags tags_up_to(std::uint64_t count) {
    Tags tags(count);
    std::iota(tags.begin(), tags.end(), 0);
    return tags;
}

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

std::string throw_refusal() {
    throw EngineRefused("met", EMFILE);
}

std::string make_ring() {
    return Ring(UringSizes{}).describe();
}

/// What `make` makes, or why there is none.
std::string try_to(std::string (*make)()) {
    try {
        return make();
    } catch (const StartError& error) {
        return std::string{"StartError: "} + error.what();
    }
}

/// What became of a ring of the usual sizes: its description, or why there is none.
std::string try_ring() {
    return try_to(make_ring);
}

/// The same where the kernel answers `error`.
std::string try_refused_ring(int error, CallRange calls = {}) {
    const ChildResult child = run_in_child([error, calls] {
        return refuse_io_uring(error, calls) ? try_ring() : std::string{"no seccomp"};
    });
    REQUIRE(child.ended_well());
    if (child.text == "no seccomp") {
        SKIP("this kernel has no seccomp filters");
    }
    return child.text;
}

int io_uring_disabled() {
    std::ifstream file("/proc/sys/kernel/io_uring_disabled");
    int disabled = 0;
    file >> disabled;
    return disabled;
}

/// Interrupts this process by SIGALRM every 20 ms.
class Interruptions {
public:
    Interruptions() {
        struct sigaction action = {};
        action.sa_handler = [](int) {};
        sigaction(SIGALRM, &action, &before_);
        set_interval(20'000);
    }
    Interruptions(const Interruptions&) = delete;
    Interruptions& operator=(const Interruptions&) = delete;
    ~Interruptions() {
        set_interval(0);
        sigaction(SIGALRM, &before_, nullptr);
    }

private:
    static void set_interval(suseconds_t microseconds) {
        const itimerval timer{{0, microseconds}, {0, microseconds}};
        setitimer(ITIMER_REAL, &timer, nullptr);
    }
    struct sigaction before_ = {};
};

}  // namespace

TEST_CASE("Ring brings back what was submitted", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    queue_nop(ring, 0x0123'4567'89AB'CDEF);
    CHECK(ring.ready() == 0);
    REQUIRE(ring.submit_and_wait(1) == 0);
    CHECK(ring.ready() == 1);
    CHECK(take_tags(ring) == Tags{0x0123'4567'89AB'CDEF});
    CHECK(ring.ready() == 0);
}

TEST_CASE("Ring brings back what an operation came to", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    io_uring_prep_close(ring.sqe(), 1'000'000);  // no such descriptor
    REQUIRE(ring.submit_and_wait(1) == 0);
    std::vector<int> results;
    ring.for_each_cqe([&](const io_uring_cqe& cqe) { results.push_back(cqe.res); });
    CHECK(results == std::vector<int>{-EBADF});
}

TEST_CASE("Ring shows each completion once", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    queue_nops(ring, 3);
    REQUIRE(ring.submit_and_wait(3) == 0);
    CHECK(take_tags(ring) == tags_up_to(3));
    CHECK(take_tags(ring).empty());
    REQUIRE(ring.submit_and_wait(0) == 0);
    CHECK(take_tags(ring).empty());
}

TEST_CASE("Ring submits nothing before it is asked to", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    queue_nop(ring, 1);
    CHECK(take_tags(ring).empty());
}

TEST_CASE("Ring knows whether the kernel has taken all that was queued", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    CHECK(ring.is_submitted());
    queue_nop(ring, 1);
    CHECK_FALSE(ring.is_submitted());
    REQUIRE(ring.submit_and_wait(0) == 0);
    CHECK(ring.is_submitted());
}

TEST_CASE("Ring gives entries without the flags of their last use", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kTiny);
    for (int i = 0; i < 20; ++i) {  // each entry of the queue more than once
        io_uring_sqe* const sqe = ring.sqe();
        CHECK(sqe->flags == 0);
        CHECK(sqe->ioprio == 0);
        CHECK(sqe->msg_flags == 0);
        CHECK(sqe->buf_group == 0);
        io_uring_prep_recv(sqe, -1, nullptr, 0, MSG_DONTWAIT);
        sqe->flags = IOSQE_BUFFER_SELECT;
        sqe->ioprio = IORING_RECVSEND_POLL_FIRST;
        sqe->buf_group = 7;
        REQUIRE(ring.submit_and_wait(1) == 0);
        REQUIRE(take_tags(ring).size() == 1);
    }
}

TEST_CASE("Ring always has an entry, however many are queued", "[ring][kernel]") {
    need_io_uring();
    constexpr std::uint64_t kCount = 61;  // the queue holds 8
    Ring ring(kSmall);
    queue_nops(ring, kCount);
    REQUIRE(ring.submit_and_wait(static_cast<unsigned>(kCount)) == 0);
    CHECK(take_tags(ring) == tags_up_to(kCount));
}

TEST_CASE("Ring does not wait where it is not asked to", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    const Pipe pipe;
    char octet = 0;
    io_uring_prep_read(ring.sqe(), pipe.reader.get(), &octet, 1, 0);
    const auto begin = Clock::now();
    REQUIRE(ring.submit_and_wait(0) == 0);
    REQUIRE(ring.submit_and_wait(0) == 0);
    CHECK(Clock::now() - begin < std::chrono::seconds(1));
    CHECK(ring.ready() == 0);
    write_all(pipe.writer.get(), "x");
    REQUIRE(ring.submit_and_wait(1) == 0);
    CHECK(octet == 'x');
}

TEST_CASE("Ring waits for as many completions as it is asked to", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    __kernel_timespec soon{0, 30'000'000};
    io_uring_prep_timeout(ring.sqe(), &soon, 0, 0);
    queue_nop(ring, 1);
    const auto begin = Clock::now();
    REQUIRE(ring.submit_and_wait(2) == 0);
    CHECK(Clock::now() - begin >= std::chrono::milliseconds(25));
    CHECK(take_tags(ring) == Tags{1, 0});
}

TEST_CASE("Ring returns from waiting when a signal comes", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    const Pipe pipe;
    char octet = 0;
    io_uring_prep_read(ring.sqe(), pipe.reader.get(), &octet, 1, 0);
    {
        const Interruptions interruptions;
        CHECK(ring.submit_and_wait(1) == 0);
    }
    CHECK(take_tags(ring).empty());
    write_all(pipe.writer.get(), "x");
    REQUIRE(ring.submit_and_wait(1) == 0);
    CHECK(octet == 'x');
}

TEST_CASE("Ring tells when completions did not fit into the queue", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kTiny);
    queue_nops(ring, 16);
    REQUIRE(ring.submit_and_wait(16) == 0);
    CHECK_FALSE(ring.fetch_overflow());
    queue_nop(ring, 16);
    REQUIRE(ring.submit_and_wait(0) == 0);
    CHECK(take_tags(ring) == tags_up_to(16));
    CHECK(ring.fetch_overflow());
    CHECK(take_tags(ring) == Tags{16});
    CHECK_FALSE(ring.fetch_overflow());
}

TEST_CASE("Ring loses no completion where far more come than fit", "[ring][kernel]") {
    need_io_uring();
    constexpr std::uint64_t kCount = 500;
    Ring ring(kTiny);
    queue_nops(ring, kCount);
    Tags tags;
    for (int turn = 0; turn < 1'000 && tags.size() < kCount; ++turn) {
        REQUIRE(ring.submit_and_wait(0) == 0);
        const Tags more = take_all_tags(ring);
        tags.insert(tags.end(), more.begin(), more.end());
    }
    CHECK(tags == tags_up_to(kCount));
}

TEST_CASE("Ring goes on after an overflow", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kTiny);
    for (int round = 0; round < 3; ++round) {
        queue_nops(ring, 40);
        REQUIRE(ring.submit_and_wait(1) == 0);
        CHECK(take_all_tags(ring) == tags_up_to(40));
    }
}

TEST_CASE("Ring refuses to be entered by another thread", "[ring][kernel]") {
    need_io_uring();
    Ring ring(kSmall);
    if (ring.describe().find("DEFER_TASKRUN") == std::string::npos) {
        SKIP("before Linux 6.1 a ring may change hands");
    }
    int result = 0;
    std::thread([&] {
        io_uring_prep_nop(ring.sqe());
        result = ring.submit_and_wait(0);
    }).join();
    CHECK(result < 0);
}

TEST_CASE("Ring describes itself", "[ring][kernel]") {
    need_io_uring();
    CHECK_THAT(Ring(kTiny).describe(), ContainsSubstring(" sq=8 cq=16"));
    CHECK_THAT(Ring(kSmall).describe(), ContainsSubstring(" sq=8 cq=64"));
}

TEST_CASE("Ring takes less than it is asked for where the kernel has a limit", "[ring][kernel]") {
    need_io_uring();
    if (geteuid() != 0) {
        SKIP("the largest ring may need more locked memory than this user has");
    }
    CHECK_THAT(Ring(UringSizes{1U << 20, 1U << 20}).describe(), ContainsSubstring(" sq=32768 "));
}

TEST_CASE("Ring leaves no descriptor behind", "[ring][kernel]") {
    need_io_uring();
    const std::ptrdiff_t before = open_descriptors();
    {
        const Ring ring(kSmall);
        CHECK(open_descriptors() == before + 1);
    }
    CHECK(open_descriptors() == before);
}

TEST_CASE("Ring makes do without DEFER_TASKRUN", "[ring][kernel]") {
    need_io_uring();
    const OlderSetup linux_6_0(IORING_SETUP_DEFER_TASKRUN);
    Ring ring(kSmall);
    CHECK_THAT(ring.describe(), ContainsSubstring("COOP_TASKRUN"));
    queue_nops(ring, 3);
    REQUIRE(ring.submit_and_wait(3) == 0);
    CHECK(take_tags(ring) == tags_up_to(3));
}

// Where SINGLE_ISSUER is unknown, so is the multishot receive that each lasting connection gets.
// Such a kernel used to be accepted, and failed connection by connection.
TEST_CASE("Ring refuses a kernel without SINGLE_ISSUER", "[ring][kernel]") {
    need_io_uring();
    const OlderSetup linux_5_19(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    CHECK_THROWS_WITH(Ring(kSmall), ContainsSubstring("Linux 6.1 or newer"));
}

TEST_CASE("Ring goes on where entering fails for the moment, and loses nothing", "[ring][kernel]") {
    need_io_uring();
    for (const int result : {-EINTR, -ETIME, -EBUSY, -EAGAIN}) {
        INFO(strerrorname_np(-result));
        Ring ring(kSmall);
        queue_nops(ring, 5);
        {
            const FailingEnter failing(result, 2);
            CHECK(ring.submit_and_wait(1) == 0);
            CHECK_FALSE(ring.is_submitted());
            CHECK(ring.submit_and_wait(1) == 0);
            CHECK(take_tags(ring).empty());
            CHECK(ring.submit_and_wait(5) == 0);
        }
        CHECK(ring.is_submitted());
        CHECK(take_tags(ring) == tags_up_to(5));
    }
}

TEST_CASE("Ring gets its entries when the queue is full and entering fails for the moment",
          "[ring][kernel]") {
    need_io_uring();
    for (const int result : {-EINTR, -EBUSY, -EAGAIN}) {
        Ring ring(kSmall);
        queue_nops(ring, 8);
        const FailingEnter failing(result, 3);
        queue_nop(ring, 8);
        CHECK(failing.failed() == 3);
        REQUIRE(ring.submit_and_wait(9) == 0);
        CHECK(take_tags(ring) == tags_up_to(9));
    }
}

TEST_CASE("Ring says so when it is beyond use", "[ring][kernel]") {
    need_io_uring();
    for (const int result : {-EBADR, -EEXIST, -EBADF, -EPERM}) {
        Ring ring(kSmall);
        queue_nops(ring, 2);
        const FailingEnter failing(result);
        CHECK(ring.submit_and_wait(1) == result);
    }
}

// A failure that came while a full queue was submitted used to be lost, or met again for ever.
TEST_CASE("Ring that is beyond use says so even if its queue is full", "[ring][kernel]") {
    need_io_uring();
    for (const int result : {-EBADR, -EEXIST}) {
        Ring ring(kSmall);
        {
            const FailingEnter failing(result, 1);  // the kernel tells of lost completions once
            queue_nops(ring, 20);
        }
        CHECK(ring.submit_and_wait(0) == result);
        CHECK(ring.submit_and_wait(0) == result);
    }
}

TEST_CASE("explain_refusal always says what failed, and why", "[ring]") {
    for (const int error : {EPERM, EACCES, ENOMEM, ENOSYS, EINVAL, EMFILE, ENFILE, EIO}) {
        const std::string text = explain_refusal(error);
        INFO(text);
        CHECK(text.starts_with("io_uring is not available ("));
        CHECK(text.find(std::strerror(error)) != std::string::npos);
        CHECK(text.find('\n') == std::string::npos);
    }
}

TEST_CASE("explain_refusal names who forbids it, and the system calls to allow", "[ring]") {
    if (io_uring_disabled() != 0) {
        CHECK_THAT(explain_refusal(EPERM), ContainsSubstring("kernel.io_uring_disabled=0"));
        return;
    }
    for (const int error : {EPERM, EACCES}) {
        CHECK_THAT(explain_refusal(error), ContainsSubstring("io_uring_setup") &&
                                               ContainsSubstring("io_uring_enter") &&
                                               ContainsSubstring("io_uring_register"));
    }
}

TEST_CASE("explain_refusal names the limit of locked memory, and three cures", "[ring]") {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    const std::string kib = std::to_string(limit.rlim_cur / 1024) + " KiB";
    CHECK_THAT(explain_refusal(ENOMEM),
               ContainsSubstring("locked memory") && ContainsSubstring(kib) &&
                   ContainsSubstring("ulimit -l") && ContainsSubstring("--ulimit memlock=-1") &&
                   ContainsSubstring("LimitMEMLOCK=infinity"));
}

TEST_CASE("explain_refusal names the kernel that is too old or lacks io_uring", "[ring]") {
    utsname kernel{};
    uname(&kernel);
    CHECK_THAT(explain_refusal(ENOSYS), ContainsSubstring(kernel.release) &&
                                            ContainsSubstring("CONFIG_IO_URING") &&
                                            ContainsSubstring("gVisor"));
    CHECK_THAT(explain_refusal(EINVAL),
               ContainsSubstring(kernel.release) && ContainsSubstring("Linux 6.1 or newer"));
}

TEST_CASE("explain_refusal names the limit of open files", "[ring]") {
    CHECK_THAT(explain_refusal(EMFILE), ContainsSubstring("ulimit -n"));
    CHECK_THAT(explain_refusal(ENFILE), ContainsSubstring("ulimit -n"));
}

TEST_CASE("Ring blames the seccomp filter that forbids it", "[ring]") {
    if (io_uring_disabled() != 0) {
        SKIP("kernel.io_uring_disabled is the first to blame");
    }
    CHECK_THAT(try_refused_ring(EPERM), ContainsSubstring("StartError: io_uring is not") &&
                                            ContainsSubstring("seccomp filter forbids it") &&
                                            ContainsSubstring("--security-opt seccomp="));
}

TEST_CASE("Ring names a filter among the causes where io_uring seems unknown", "[ring]") {
    CHECK_THAT(try_refused_ring(ENOSYS), ContainsSubstring("StartError: io_uring is not") &&
                                             ContainsSubstring("does not offer it") &&
                                             ContainsSubstring("seccomp"));
}

TEST_CASE("Ring names the limit of locked memory where it is met", "[ring]") {
    CHECK_THAT(try_refused_ring(ENOMEM), ContainsSubstring("StartError: io_uring is not") &&
                                             ContainsSubstring("limit of locked memory"));
}

TEST_CASE("Ring notices that only entering it is forbidden", "[ring][kernel]") {
    need_io_uring();
    if (io_uring_disabled() != 0) {
        SKIP("kernel.io_uring_disabled is the first to blame");
    }
    CHECK_THAT(try_refused_ring(EPERM, kIoUringEnter),
               ContainsSubstring("StartError: io_uring is not") &&
                   ContainsSubstring("seccomp filter forbids it"));
}

TEST_CASE("Ring calls the kernel too old where it knows none of the flags", "[ring]") {
    CHECK_THAT(try_refused_ring(EINVAL), ContainsSubstring("StartError: io_uring is not") &&
                                             ContainsSubstring("Linux 6.1 or newer"));
}

TEST_CASE("Ring names the limit of open files where it is met", "[ring][kernel]") {
    need_io_uring();
    const ChildResult child = run_in_child([] {
        // UBSan opens a pipe to look at an object of a class that it has not met, and takes it for
        // a broken one where it can't.
        static_cast<void>(try_to(throw_refusal));
        const rlimit limit{16, 32};
        check_errno(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
        while (dup(STDERR_FILENO) != -1) {
        }
        return try_ring();
    });
    REQUIRE(child.ended_well());
    CHECK_THAT(child.text,
               ContainsSubstring("StartError: io_uring is not") && ContainsSubstring("ulimit -n"));
}

}  // namespace hello::test

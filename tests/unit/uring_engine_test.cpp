// SPDX-License-Identifier: MIT
//
// Tests of uring_engine.cpp beyond what every engine does: how much locked memory it takes.

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "engine.h"
#include "error.h"
#include "stats.h"
#include "support/forked_child.h"
#include "support/need_io_uring.h"

namespace hello::test {
namespace {

unsigned submissions_of(const std::string& description) {
    const std::size_t at = description.find("sq=");
    return at == std::string::npos
               ? 0
               : static_cast<unsigned>(std::strtoul(description.c_str() + at + 3, nullptr, 10));
}

/// What became of an engine of the usual sizes, its description or why there is none, for a user
/// without privileges who may lock `kib` KiB of memory. Each time it is another user, for the
/// kernel takes a moment to give back what a user had locked.
std::string try_with_locked_memory(rlim_t kib) {
    static uid_t user = 61'000;
    ++user;
    const ChildResult child = run_in_child([kib]() -> std::string {
        const rlimit limit{kib * 1024, kib * 1024};
        check_errno(setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit");
        if (geteuid() == 0) {
            check_errno(setgid(user), "setgid");
            check_errno(setuid(user), "setuid");
        }
        try {
            WorkerStats stats;
            return make_uring_engine(stats)->describe();
        } catch (const EngineRefused& error) {
            return std::string{"refused: "} + error.what();
        }
    });
    REQUIRE(child.ended_well());
    return child.text;
}

void need_counted_memory() {
    need_io_uring();
    if (geteuid() != 0) {
        SKIP("only root can be one user after the other");
    }
    if (!try_with_locked_memory(0).starts_with("refused")) {
        SKIP("this kernel does not count rings as locked memory");
    }
}

}  // namespace

TEST_CASE("UringEngine has its full size with 8 MiB of locked memory", "[uring_engine][kernel]") {
    need_io_uring();
    CHECK(submissions_of(try_with_locked_memory(8 * 1024)) == UringSizes{}.submissions);
}

TEST_CASE("UringEngine names the limit of locked memory that not even the smallest size keeps",
          "[uring_engine][kernel]") {
    need_counted_memory();
    const std::string text = try_with_locked_memory(4);
    INFO(text);
    CHECK(text.starts_with("refused: io_uring is not available"));
    CHECK(text.find("locked memory (4 KiB") != std::string::npos);
}

// The ring used to take what there was, and then its buffers were refused: with 100 KiB, say,
// where half the size would have been enough for both.
TEST_CASE("UringEngine settles for less, ring and buffers, where locked memory is short",
          "[uring_engine][kernel]") {
    need_counted_memory();
    for (const rlim_t kib : {32U, 52U, 64U, 100U, 128U, 196U, 200U}) {
        const std::string text = try_with_locked_memory(kib);
        INFO(kib << " KiB: " << text);
        CHECK(submissions_of(text) >= 64);
    }
    CHECK(submissions_of(try_with_locked_memory(100)) < UringSizes{}.submissions);
    CHECK(submissions_of(try_with_locked_memory(256)) == UringSizes{}.submissions);
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// Tests of unique_fd.h.

#include "unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <type_traits>
#include <utility>

#include <catch2/catch_test_macros.hpp>

namespace hello::test {
namespace {

int open_something() {
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) != -1;
}

}  // namespace

TEST_CASE("UniqueFd holds nothing at first", "[unique_fd]") {
    const UniqueFd owner;
    CHECK_FALSE(owner.is_open());
    CHECK(owner.get() == -1);
}

TEST_CASE("UniqueFd takes descriptor 0 for a descriptor", "[unique_fd]") {
    UniqueFd owner(0);
    CHECK(owner.is_open());
    CHECK(owner.release() == 0);  // which is not ours to close
}

TEST_CASE("UniqueFd closes what it holds", "[unique_fd]") {
    const int fd = open_something();
    {
        const UniqueFd owner(fd);
        CHECK(owner.is_open());
        CHECK(owner.get() == fd);
        CHECK(is_open(fd));
    }
    CHECK_FALSE(is_open(fd));
}

TEST_CASE("UniqueFd gives its descriptor away without closing it", "[unique_fd]") {
    const int fd = open_something();
    {
        UniqueFd owner(fd);
        CHECK(owner.release() == fd);
        CHECK_FALSE(owner.is_open());
    }
    CHECK(is_open(fd));
    ::close(fd);
}

TEST_CASE("UniqueFd closes the old descriptor when it gets a new one", "[unique_fd]") {
    const int first = open_something();
    const int second = open_something();
    UniqueFd owner(first);
    owner.reset(second);
    CHECK_FALSE(is_open(first));
    CHECK(owner.get() == second);
    owner.reset();
    CHECK_FALSE(is_open(second));
    CHECK_FALSE(owner.is_open());
}

TEST_CASE("UniqueFd moves the descriptor by construction", "[unique_fd]") {
    const int fd = open_something();
    UniqueFd from(fd);
    const UniqueFd to(std::move(from));
    CHECK(to.get() == fd);
    CHECK(from.get() == -1);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
    CHECK(is_open(fd));
}

TEST_CASE("UniqueFd moves the descriptor by assignment and closes the old one", "[unique_fd]") {
    const int first = open_something();
    const int second = open_something();
    UniqueFd to(first);
    UniqueFd from(second);
    to = std::move(from);
    CHECK(to.get() == second);
    CHECK_FALSE(is_open(first));
    CHECK(is_open(second));
}

TEST_CASE("UniqueFd survives an assignment to itself", "[unique_fd]") {
    const int fd = open_something();
    UniqueFd owner(fd);
    UniqueFd& same = owner;
    owner = std::move(same);
    CHECK(owner.get() == fd);
    CHECK(is_open(fd));
}

TEST_CASE("UniqueFd can't be copied", "[unique_fd]") {
    STATIC_CHECK_FALSE(std::is_copy_constructible_v<UniqueFd>);
    STATIC_CHECK_FALSE(std::is_copy_assignable_v<UniqueFd>);
    STATIC_CHECK(std::is_nothrow_move_constructible_v<UniqueFd>);
}

}  // namespace hello::test

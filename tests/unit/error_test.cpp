// SPDX-License-Identifier: MIT
//
// Tests of error.h.

#include "error.h"

#include <cerrno>
#include <functional>
#include <system_error>
#include <type_traits>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace hello::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// The code of the std::system_error that `action` throws; an empty one where it throws none.
std::error_code code_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const std::system_error& error) {
        return error.code();
    }
    return {};
}

}  // namespace

TEST_CASE("check_errno passes a result on", "[error]") {
    errno = EIO;  // left over from another call
    CHECK(check_errno(0, "socket") == 0);
    CHECK(check_errno(7, "socket") == 7);
}

TEST_CASE("check_errno throws what errno says", "[error]") {
    const auto fail = [] {
        errno = EADDRINUSE;
        check_errno(-1, "bind");
    };
    CHECK(code_of(fail) == std::errc::address_in_use);
    CHECK_THROWS_WITH(fail(), ContainsSubstring("bind"));
}

TEST_CASE("check_errno takes only -1 for a failure", "[error]") {
    // Other negative results are not of this convention; errno would be stale.
    errno = EIO;
    CHECK(check_errno(-2, "x") == -2);
}

TEST_CASE("check_negative passes a result on", "[error]") {
    CHECK(check_negative(0, "io_uring_submit") == 0);
    CHECK(check_negative(3, "io_uring_submit") == 3);
}

TEST_CASE("check_negative throws what the result says, not errno", "[error]") {
    const auto fail = [] {
        errno = EIO;
        check_negative(-ENOMEM, "io_uring_queue_init");
    };
    CHECK(code_of(fail) == std::errc::not_enough_memory);
    CHECK_THROWS_WITH(fail(), ContainsSubstring("io_uring_queue_init"));
}

TEST_CASE("check_negative takes -1 for EPERM", "[error]") {
    CHECK(code_of([] { check_negative(-1, "x"); }) == std::errc::operation_not_permitted);
}

TEST_CASE("StartError keeps its text", "[error]") {
    CHECK(std::string(StartError("port 80 is in use").what()) == "port 80 is in use");
}

}  // namespace hello::test

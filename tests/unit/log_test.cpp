// SPDX-License-Identifier: MIT
//
// Tests of log.h. Each logs in a child, whose standard error is a pipe of the test's.

#include "log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <spdlog/spdlog.h>

#include "support/forked_child.h"
#include "support/json_text.h"

namespace hello::test {
namespace {

using Clock = std::chrono::steady_clock;
using Lines = std::vector<std::string>;

std::int64_t milliseconds_since(Clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
}

/// Whether `text` is of the form of `example`: any digit stands for any other.
bool has_form(std::string text, std::string example) {
    for (std::string* const one : {&text, &example}) {
        std::replace_if(
            one->begin(), one->end(), [](char octet) { return octet >= '0' && octet <= '9'; }, '0');
    }
    return text == example;
}

Lines lines_of(const std::string& text) {
    Lines lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

/// All loggers, to be kept until their thread is gone: ThreadSanitizer does not see how libspdlog
/// counts references, for that is not instrumented, and takes their end for a race.
std::vector<std::shared_ptr<spdlog::logger>> all_loggers() {
    std::vector<std::shared_ptr<spdlog::logger>> loggers;
    spdlog::apply_all(
        [&](const std::shared_ptr<spdlog::logger>& logger) { loggers.push_back(logger); });
    return loggers;
}

/// What `body` writes to the log. It must be less than a pipe holds.
template <typename Body>
Lines logged_by(const std::string& level, const std::string& format, Body body) {
    const ChildResult child = run_in_child([&] {
        Pipe err;
        check_errno(dup2(err.writer.get(), STDERR_FILENO), "dup2");
        start_log(level, format);
        const auto kept = all_loggers();
        body();
        stop_log();
        err.writer.reset();
        close(STDERR_FILENO);
        return read_all(err.reader.get());
    });
    REQUIRE(child.ended_well());
    if (!child.text.empty()) {
        CHECK(child.text.back() == '\n');
    }
    return lines_of(child.text);
}

void log_each_level() {
    spdlog::trace("one");
    spdlog::debug("two");
    spdlog::info("three");
    spdlog::warn("four");
    spdlog::error("five");
    spdlog::critical("six");
}

/// Figures that a child found out: "name=number ...".
std::int64_t figure(const std::string& text, const std::string& name) {
    const std::size_t at = (" " + text).find(" " + name + "=");
    REQUIRE(at != std::string::npos);
    return std::strtoll(text.c_str() + at + name.size() + 1, nullptr, 10);
}

/// Runs `body` in a child whose standard error is a pipe that nobody reads and that is full.
template <typename Body>
std::string with_full_pipe(Body body) {
    const ChildResult child = run_in_child([&] {
        const Pipe err;
        check_errno(dup2(err.writer.get(), STDERR_FILENO), "dup2");
        const int size = check_errno(fcntl(err.writer.get(), F_GETPIPE_SZ), "F_GETPIPE_SZ");
        write_all(err.writer.get(), std::string(static_cast<std::size_t>(size), '.'));
        start_log("info", "text");
        const auto kept = all_loggers();
        return body(err);
    });
    REQUIRE(child.ended_well());
    return child.text;
}

}  // namespace

TEST_CASE("The log writes a line of text with time and level", "[log]") {
    const Lines lines = logged_by("info", "text", [] { spdlog::info("Hello {}!", "log"); });
    REQUIRE(lines.size() == 1);
    INFO(lines.front());
    CHECK(has_form(lines.front(), "[1994-11-06T08:49:37.123Z] [info] Hello log!"));
}

TEST_CASE("The log writes each line as JSON where that is wanted", "[log]") {
    const Lines lines = logged_by("trace", "json", log_each_level);
    REQUIRE(lines.size() == 6);
    const Lines levels{"trace", "debug", "info", "warning", "error", "critical"};
    const Lines messages{"one", "two", "three", "four", "five", "six"};
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const JsonText::Members json = JsonText::members(lines[i]);
        CHECK(json.size() == 3);
        CHECK(has_form(json.at("time"), "\"1994-11-06T08:49:37.123Z\""));
        CHECK(json.at("level") == '"' + levels[i] + '"');
        CHECK(json.at("message") == '"' + messages[i] + '"');
    }
}

TEST_CASE("The log tells the time of day in UTC", "[log]") {
    const Lines lines = logged_by("info", "text", [] {
        setenv("TZ", "Asia/Tokyo", 1);
        tzset();
        spdlog::info("now");
    });
    REQUIRE(lines.size() == 1);
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 32> hour{};
    REQUIRE(std::strftime(hour.data(), hour.size(), "[%Y-%m-%dT%H:", &utc) != 0);
    INFO(lines.front() << " is not of " << hour.data());
    CHECK((lines.front().starts_with(hour.data()) || utc.tm_min == 0));
}

TEST_CASE("The log leaves out what is below its level", "[log]") {
    const std::vector<std::pair<std::string, std::size_t>> counts{
        {"trace", 6}, {"debug", 5},    {"info", 4}, {"warn", 3},
        {"error", 2}, {"critical", 1}, {"off", 0}};
    for (const auto& [level, count] : counts) {
        INFO(level);
        CHECK(logged_by(level, "text", log_each_level).size() == count);
    }
}

TEST_CASE("The log writes a raw line as it is, whatever level and format", "[log]") {
    const std::string line = R"({"requests":5,"braces":"{}"})";
    const auto log_line = [&line] { log_raw_line(line); };
    CHECK(logged_by("info", "text", log_line) == Lines{line});
    CHECK(logged_by("info", "json", log_line) == Lines{line});
    CHECK(logged_by("off", "text", log_line) == Lines{line});
    CHECK(logged_by("off", "json", log_line) == Lines{line});
}

TEST_CASE("The log keeps lines in order", "[log]") {
    const Lines lines = logged_by("info", "text", [] {
        for (int i = 0; i < 200; ++i) {
            i % 2 == 0 ? spdlog::info("line {}", i) : log_raw_line("line " + std::to_string(i));
        }
    });
    REQUIRE(lines.size() == 200);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        CHECK(lines[i].ends_with("line " + std::to_string(i)));
    }
}

TEST_CASE("The log writes a long line in full", "[log]") {
    const std::string line = std::string(20'000, 'x') + "end";
    CHECK(logged_by("info", "text", [&] { log_raw_line(line); }) == Lines{line});
}

TEST_CASE("The log drops nothing where somebody reads", "[log]") {
    const ChildResult child = run_in_child([] {
        Pipe err;
        check_errno(dup2(err.writer.get(), STDERR_FILENO), "dup2");
        start_log("info", "text");
        std::string text;
        for (int i = 0; i < 100; ++i) {
            log_raw_line(std::to_string(i) + std::string(1'000, '.'));
            std::array<char, 1'100> piece{};
            for (std::size_t size = 0; size < 1'000;) {
                size += static_cast<std::size_t>(read(err.reader.get(), piece.data(), 1'001));
            }
        }
        return "dropped=" + std::to_string(dropped_log_lines());
    });
    REQUIRE(child.ended_well());
    CHECK(figure(child.text, "dropped") == 0);
}

TEST_CASE("The log never blocks where standard error is full", "[log]") {
    // A server whose log nobody read stood still once the pipe was full.
    const std::string text = with_full_pipe([](const Pipe&) {
        const auto begin = Clock::now();
        for (int i = 0; i < 10'000; ++i) {
            spdlog::info("line {} that nobody reads", i);
        }
        return "logging_ms=" + std::to_string(milliseconds_since(begin));
    });
    CHECK(figure(text, "logging_ms") < 2'000);
}

TEST_CASE("The log counts the lines that were dropped", "[log]") {
    const std::string text = with_full_pipe([](const Pipe&) {
        for (int i = 0; i < 10'000; ++i) {
            spdlog::info("line {} that nobody reads", i);
        }
        const auto begin = Clock::now();
        while (dropped_log_lines() < 10'000 && milliseconds_since(begin) < 3'000) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return "dropped=" + std::to_string(dropped_log_lines());
    });
    CHECK(figure(text, "dropped") == 10'000);
}

TEST_CASE("stop_log returns soon where standard error is full", "[log]") {
    const std::string text = with_full_pipe([](const Pipe&) {
        for (int i = 0; i < 10'000; ++i) {
            spdlog::info("line {} that nobody reads", i);
        }
        const auto begin = Clock::now();
        stop_log();
        return "stopping_ms=" + std::to_string(milliseconds_since(begin));
    });
    CHECK(figure(text, "stopping_ms") < 2'000);
}

TEST_CASE("The log goes on when the reader is back", "[log]") {
    const std::string text = with_full_pipe([](const Pipe& err) {
        spdlog::info("lost");
        while (dropped_log_lines() == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        std::string filling(65'536, '\0');
        static_cast<void>(read(err.reader.get(), filling.data(), filling.size()));
        log_raw_line("back");
        std::array<char, 16> octets{};
        const ssize_t size = read(err.reader.get(), octets.data(), octets.size());
        return std::string(octets.data(), static_cast<std::size_t>(size < 0 ? 0 : size));
    });
    CHECK(text == "back\n");
}

TEST_CASE("The log takes a closed standard error for lines that are lost", "[log]") {
    const ChildResult child = run_in_child([] {
        close(STDERR_FILENO);
        start_log("info", "text");
        const auto kept = all_loggers();
        const auto begin = Clock::now();
        for (int i = 0; i < 100; ++i) {
            spdlog::info("to nobody");
        }
        while (dropped_log_lines() < 100 && milliseconds_since(begin) < 3'000) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        const std::string dropped = std::to_string(dropped_log_lines());
        stop_log();
        return "dropped=" + dropped + " took_ms=" + std::to_string(milliseconds_since(begin));
    });
    REQUIRE(child.ended_well());
    CHECK(figure(child.text, "dropped") == 100);
    CHECK(figure(child.text, "took_ms") < 2'000);
}

TEST_CASE("log_raw_line before the log is started does nothing", "[log]") {
    const ChildResult child = run_in_child([] {
        log_raw_line("too early");
        return "dropped=" + std::to_string(dropped_log_lines());
    });
    REQUIRE(child.ended_well());
    CHECK(figure(child.text, "dropped") == 0);
}

}  // namespace hello::test

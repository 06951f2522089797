// SPDX-License-Identifier: MIT
//
// Logging that never blocks the server: see log.h.

#include "log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <string_view>

#include <spdlog/async.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

namespace hello {
namespace {

constexpr std::size_t kQueueLines = 512;
constexpr int kPatienceMs = 100;  ///< how long a line waits for a reader who is slow
constexpr const char* kRawLoggerName = "raw";

std::atomic<std::uint64_t> lines_dropped{0};

/// Writes to standard error if it takes the line soon. The descriptor may be shared with other
/// processes, so it is not made non-blocking; after poll(2) says so, a pipe takes a line of up
/// to PIPE_BUF (4096) octets without blocking (pipe(7)).
class PatientSink final : public spdlog::sinks::base_sink<std::mutex> {
protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        std::string_view rest(line.data(), line.size());
        while (!rest.empty() && takes_more()) {
            const ssize_t written =
                write(STDERR_FILENO, rest.data(), std::min(rest.size(), kPiece));
            if (written < 0 && errno != EINTR && errno != EAGAIN) {
                break;
            }
            rest.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
        }
        patient_ = rest.empty();
        if (!patient_) {
            lines_dropped.fetch_add(1, std::memory_order_relaxed);
        }
    }
    void flush_() override {}

private:
    static constexpr std::size_t kPiece = 4096;

    /// Once a line was dropped, those behind it don't wait until the reader is back.
    [[nodiscard]] bool takes_more() const noexcept {
        pollfd descriptor{STDERR_FILENO, POLLOUT, 0};
        return poll(&descriptor, 1, patient_ ? kPatienceMs : 0) == 1 &&
               (descriptor.revents & POLLOUT) != 0;
    }

    bool patient_ = true;
};

std::shared_ptr<spdlog::logger> make_logger(const std::string& name) {
    return std::make_shared<spdlog::async_logger>(name, std::make_shared<PatientSink>(),
                                                  spdlog::thread_pool(),
                                                  spdlog::async_overflow_policy::overrun_oldest);
}

}  // namespace

void start_log(const std::string& level, const std::string& format) {
    spdlog::init_thread_pool(kQueueLines, 1);
    auto log = make_logger("hello-uring");
    // No message of ours holds a quote, a backslash or a control character, and none holds what a
    // client sent, so JSON needs no escaping.
    log->set_pattern(format == "json"
                         ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":"%v"})"
                         : "[%Y-%m-%dT%H:%M:%S.%eZ] [%l] %v",
                     spdlog::pattern_time_type::utc);
    log->set_level(spdlog::level::from_str(level));
    spdlog::set_default_logger(log);

    auto raw = make_logger(kRawLoggerName);
    raw->set_pattern("%v");
    spdlog::register_logger(raw);
}

void log_raw_line(const std::string& line) {
    if (const auto raw = spdlog::get(kRawLoggerName)) {
        raw->info(line);
    }
}

std::uint64_t dropped_log_lines() noexcept {
    const auto pool = spdlog::thread_pool();
    return lines_dropped.load(std::memory_order_relaxed) +
           (pool == nullptr ? 0 : pool->overrun_counter());
}

void stop_log() {
    spdlog::shutdown();
}

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// CapturedLog: what is logged while it lives, from info on, instead of anywhere else. "[warning]
// ..."

#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

namespace hello::test {

class CapturedLog {
public:
    CapturedLog() : before_(spdlog::default_logger()) {
        auto logger = std::make_shared<spdlog::logger>(
            "captured", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
        logger->set_pattern("[%l] %v");
        spdlog::set_default_logger(std::move(logger));
    }
    CapturedLog(const CapturedLog&) = delete;
    CapturedLog& operator=(const CapturedLog&) = delete;
    ~CapturedLog() { spdlog::set_default_logger(before_); }

    [[nodiscard]] std::string text() const { return text_.str(); }

private:
    std::ostringstream text_;
    std::shared_ptr<spdlog::logger> before_;
};

}  // namespace hello::test

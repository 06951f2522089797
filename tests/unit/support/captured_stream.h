// SPDX-License-Identifier: MIT
//
// CapturedStream: what is written to std::cout or std::cerr while it lives, instead of there.

#pragma once

#include <ostream>
#include <sstream>
#include <string>

namespace hello::test {

class CapturedStream {
public:
    explicit CapturedStream(std::ostream& stream)
        : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
    CapturedStream(const CapturedStream&) = delete;
    CapturedStream& operator=(const CapturedStream&) = delete;
    ~CapturedStream() { stream_.rdbuf(before_); }

    [[nodiscard]] std::string text() const { return text_.str(); }

private:
    std::ostringstream text_;
    std::ostream& stream_;
    std::streambuf* before_;
};

}  // namespace hello::test

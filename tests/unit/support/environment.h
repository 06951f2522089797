// SPDX-License-Identifier: MIT
//
// Environment: sets or unsets one environment variable, and puts it back at the end.

#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace hello::test {

class Environment {
public:
    Environment(std::string name, const std::optional<std::string>& value)
        : name_(std::move(name)) {
        if (const char* const before = std::getenv(name_.c_str()); before != nullptr) {
            before_ = before;
        }
        set(value);
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() { set(before_); }

private:
    void set(const std::optional<std::string>& value) const {
        if (value) {
            setenv(name_.c_str(), value->c_str(), 1);
        } else {
            unsetenv(name_.c_str());
        }
    }

    std::string name_;
    std::optional<std::string> before_;
};

}  // namespace hello::test

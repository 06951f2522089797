// SPDX-License-Identifier: MIT
//
// Errors of start-up and control paths. The kernel reports failure in two conventions; each has
// its own check, so that neither can be mistaken for the other. Nothing else throws
// std::system_error.

#pragma once

#include <cassert>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace hello {

/// For calls that return -1 and set errno (socket(2), bind(2), ...). Returns `result` otherwise.
inline int check_errno(int result, const std::string& what) {
    if (result == -1) {
        throw std::system_error(errno, std::generic_category(), what);
    }
    return result;
}

/// For calls that return -errno (liburing) or an error number (pthread_*(3), negated by the
/// caller). Returns `result` otherwise.
inline int check_negative(int result, const std::string& what) {
    if (result < 0) {
        throw std::system_error(-result, std::generic_category(), what);
    }
    return result;
}

/// Start-up failed for a reason the operator can cure; the text names both: exit code 1.
class StartError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// io_uring can't be had here, as the text explains; another engine may do.
class EngineRefused : public StartError {
public:
    EngineRefused(const std::string& text, int number) : StartError(text), error(number) {}
    int error;  ///< as errno has it
};

}  // namespace hello

// SPDX-License-Identifier: MIT
//
// Numbers that the environment may set for a test, such as for how long it shall go on.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace hello::test {

/// Throws when the variable is set to anything but a number: a typing error must not go unnoticed.
[[nodiscard]] inline std::uint64_t number_from_environment(const char* name,
                                                           std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0') {
        return otherwise;
    }
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text, &end, 10);
    if (*end != '\0') {
        throw std::invalid_argument(std::string(name) + "=" + text + " is not a number");
    }
    return value;
}

/// HELLO_FIGURES=1: tests that measure print what they measured.
[[nodiscard]] inline bool figures_wanted() {
    return number_from_environment("HELLO_FIGURES", 0) != 0;
}

}  // namespace hello::test

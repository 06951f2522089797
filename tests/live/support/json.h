// SPDX-License-Identifier: MIT
//
// Json: a small strict JSON reader for the server's counters and its JSON log lines. Anything that
// is not exactly one JSON value throws, so parsing a line also proves that the line is JSON.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hello::test {

struct Json {
    enum class Kind { Null, Boolean, Number, String, Array, Object };

    Kind kind = Kind::Null;
    double number = 0;  ///< also 0 or 1 for a boolean
    std::string text;
    std::vector<Json> items;
    std::map<std::string, Json> members;

    /// The whole text as one value; throws std::runtime_error when it is anything else.
    [[nodiscard]] static Json parse(std::string_view text);

    [[nodiscard]] bool has(const std::string& key) const { return members.contains(key); }
    /// The member; throws std::runtime_error naming the key when there is none.
    [[nodiscard]] const Json& at(const std::string& key) const;
};

}  // namespace hello::test

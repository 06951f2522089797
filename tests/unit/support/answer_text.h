// SPDX-License-Identifier: MIT
//
// Answers in words, for messages. Whatever test compares answers includes this, so that all agree.

#pragma once

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

#include "answer.h"

namespace hello::test {

/// Short enough for a message: "UriTooLong close head".
[[nodiscard]] inline std::string to_string(const Answer& answer) {
    static constexpr std::array<std::string_view, kStatusCount> kNames{"Continue",
                                                                       "Ok",
                                                                       "BadRequest",
                                                                       "MethodNotAllowed",
                                                                       "RequestTimeout",
                                                                       "UriTooLong",
                                                                       "HeaderFieldsTooLarge",
                                                                       "NotImplemented",
                                                                       "HttpVersionNotSupported"};
    std::string text(kNames.at(static_cast<std::size_t>(answer.status)));
    text += answer.persistence == Persistence::Close ? " close" : "";
    text += answer.persistence == Persistence::KeepAlive ? " keep-alive" : "";
    return text + (answer.content == Content::HeadOnly ? " head" : "");
}

}  // namespace hello::test

namespace hello {

/// Found by argument-dependent lookup, hence in the namespace of Answer.
inline std::ostream& operator<<(std::ostream& out, const Answer& answer) {
    return out << test::to_string(answer);
}

}  // namespace hello

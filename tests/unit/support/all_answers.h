// SPDX-License-Identifier: MIT
//
// Every answer there is, for tests that try them all.

#pragma once

#include <cstddef>
#include <vector>

#include "answer.h"
#include "answer_text.h"

namespace hello::test {

[[nodiscard]] inline std::vector<Answer> all_answers() {
    std::vector<Answer> answers;
    for (std::size_t status = 0; status < kStatusCount; ++status) {
        for (std::size_t persistence = 0; persistence < kPersistenceCount; ++persistence) {
            for (std::size_t content = 0; content < kContentCount; ++content) {
                answers.push_back({static_cast<Status>(status),
                                   static_cast<Persistence>(persistence),
                                   static_cast<Content>(content)});
            }
        }
    }
    return answers;
}

}  // namespace hello::test

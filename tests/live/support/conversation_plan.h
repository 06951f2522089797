// SPDX-License-Identifier: MIT
//
// ConversationPlan: what one client says, what it must get, and how it leaves. The server's answers
// don't name their request, so a random sequence of requests with different answers is the tag: an
// answer that belongs to another connection is almost always the wrong one at its place, and on a
// connection that asked nothing it always is.

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/answer_pattern.h"
#include "support/time_scale.h"

namespace hello::test {

enum class Ending {
    Read,       ///< read every answer, and the FIN where the server closes; then leave
    Idle,       ///< the same, then stay for a moment in which nothing may come
    HalfClose,  ///< send all, FIN at once, then read every answer and the server's FIN
    Abandon,    ///< leave at a random moment
};

/// How the client closes its socket at last.
enum class Leaving { Close, Reset };

struct ConversationPlan {
    struct Step {
        std::string octets;
        std::size_t answers_before = 0;  ///< sent once so many of `answers` are done with
    };
    struct Expected {
        const AnswerPattern* pattern;
        bool optional;  ///< an interim response that may be spared
    };

    std::vector<Step> steps;
    std::vector<Expected> answers;
    bool server_closes = false;  ///< a FIN follows the last answer
    std::size_t requests = 0;    ///< answered ones, interim responses don't count

    std::size_t piece_bytes = SIZE_MAX;  ///< sent at a time
    Milliseconds piece_pause{0};
    int receive_buffer_bytes = 0;  ///< SO_RCVBUF; 0 leaves the default

    Ending ending = Ending::Read;
    Leaving leaving = Leaving::Close;
    Milliseconds stay{0};                ///< of Idle: how long; of Abandon: from connect on ...
    std::size_t abandon_after_sent = 0;  ///< ... and only once so much is sent

    [[nodiscard]] static ConversationPlan random(std::mt19937_64& source);
    /// "200, 200 head, 400 close; half-close": for messages.
    [[nodiscard]] std::string summary() const;
};

}  // namespace hello::test

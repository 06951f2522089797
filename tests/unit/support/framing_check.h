// SPDX-License-Identifier: MIT
//
// Whether HttpSession and the framing oracle see the same messages in some octets.

#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "../../support/framing_oracle.h"
#include "conversation.h"

namespace hello::test {

/// Feeds `octets` so that each message's last octet comes alone: the answer must come with it, not
/// before. Returns what differs; empty where nothing does.
[[nodiscard]] inline std::string find_framing_disagreement(std::string_view octets,
                                                           Conversation& conversation) {
    const Framing framing = read_framing(octets);
    const auto count = [&conversation](bool refusals) {
        return static_cast<std::size_t>(
            std::ranges::count_if(conversation.answers(), [refusals](const Answer& answer) {
                return answer.status != Status::Continue &&
                       (answer.status != Status::Ok) == refusals;
            }));
    };
    const auto differs = [&](const std::string& what) {
        return what + ": expected " + to_string(framing) + ", seen " +
               to_string(conversation.outcome());
    };
    std::size_t begin = 0;
    for (std::size_t index = 0; index < framing.messages.size(); ++index) {
        const auto [end, may_be_refused] = framing.messages[index];
        conversation.feed(octets.substr(begin, end - 1 - begin));
        if (count(false) != index) {
            return differs("answered before octet " + std::to_string(end));
        }
        conversation.feed(octets.substr(end - 1, 1));
        if (count(true) != 0) {
            return may_be_refused ? "" : differs("refused before " + std::to_string(end));
        }
        if (count(false) != index + 1) {
            return differs("not answered at octet " + std::to_string(end));
        }
        begin = end;
    }
    conversation.feed(octets.substr(begin));
    const bool refused = count(true) != 0;
    const bool closed = !refused && conversation.phase() == HttpSession::Phase::Finished;
    if (count(false) != framing.messages.size()) {
        return differs("answered a request that is not there");
    }
    if (closed != (framing.rest == FramingRest::Closed)) {
        return differs("closed or not");
    }
    const bool must = framing.rest == FramingRest::Refused;
    const bool may = must || framing.rest == FramingRest::Undecided;
    return (must && !refused) || (!may && refused) ? differs("refused or not") : "";
}

}  // namespace hello::test

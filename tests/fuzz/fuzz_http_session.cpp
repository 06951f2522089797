// SPDX-License-Identifier: MIT
//
// fuzz_http_session: whatever comes, HttpSession keeps its own rules. Input: an octet whose bit 0
// asks for small limits, bit 1 for finish_soon() and bit 2 for expire() before the second part; an
// octet that says where the second part begins, in sixteenths; and what is sent.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_target.h"
#include "http_session.h"
#include "unit/support/conversation.h"
#include "unit/support/guard_page.h"
#include "unit/support/small_limits.h"

namespace hello::test {
namespace {

using Phase = HttpSession::Phase;

constexpr std::size_t kRequestSizeMin = std::string_view("GET / HTTP/1.0\r\n\r\n").size();

/// What is wrong with the answers to `size` octets; empty where nothing is.
std::string judge_answers(const std::vector<Answer>& answers, std::size_t size) {
    std::size_t answered = 0;
    bool interim = false;
    for (const Answer& answer : answers) {
        const bool is_interim = answer.status == Status::Continue;
        if (is_interim && interim) {
            return "two interim answers to one request";
        }
        if (is_interim && answer.persistence != Persistence::Implied) {
            return "an interim answer that says something about the connection";
        }
        if (!is_interim && answer.status != Status::Ok &&
            answer.persistence != Persistence::Close) {
            return "a refusal that does not close";
        }
        interim = is_interim;
        answered += answer.status == Status::Ok ? 1 : 0;
    }
    return answered * kRequestSizeMin > size ? "more answers than requests" : "";
}

}  // namespace

void run_once(FuzzInput input) {
    static const HttpLimits kDefaultLimits;
    static const HttpLimits kSmallLimits = small_limits();
    static GuardedCopy memory(std::size_t{1024} * 1024);
    const std::uint8_t choice = input.take_number();
    const std::size_t place = input.take_number() % 16;
    Conversation conversation(memory, (choice & 1) != 0 ? kSmallLimits : kDefaultLimits);

    const std::string_view octets = input.rest();
    const std::string_view second = octets.substr(octets.size() * place / 16);
    conversation.feed(octets.substr(0, octets.size() - second.size()));
    const std::size_t count = conversation.answers().size();
    if ((choice & 2) != 0) {
        conversation.finish_soon();
    }
    if ((choice & 4) != 0) {
        conversation.expire();
    }
    conversation.feed(second);

    const std::vector<Answer>& answers = conversation.answers();
    report(conversation.broken_rule());
    report(judge_answers(answers, octets.size()));
    const auto later = answers.begin() + static_cast<std::ptrdiff_t>(count);
    if ((choice & 2) != 0 && std::any_of(later, answers.end(), [](const Answer& answer) {
            return answer.status != Status::Continue && answer.persistence != Persistence::Close;
        })) {
        report("a connection that finishes is kept");
    }
    if ((choice & 4) != 0 &&
        (conversation.phase() != Phase::Finished || answers.size() > count + 1)) {
        report("it goes on although the time is over");
    }
    conversation.expire();
    conversation.feed("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    report(conversation.broken_rule());
    report(judge_answers(conversation.answers(), octets.size()));
}

}  // namespace hello::test

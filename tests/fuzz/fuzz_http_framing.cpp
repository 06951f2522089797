// SPDX-License-Identifier: MIT
//
// fuzz_http_framing: HttpSession and the framing oracle must see each message end at the same
// octet.

#include <cstddef>

#include "fuzz_target.h"
#include "http_session.h"
#include "unit/support/conversation.h"
#include "unit/support/framing_check.h"
#include "unit/support/guard_page.h"

namespace hello::test {

void run_once(FuzzInput input) {
    static const HttpLimits kLimits;
    static GuardedCopy memory(std::size_t{1024} * 1024);
    Conversation conversation(memory, kLimits);
    report(find_framing_disagreement(input.rest(), conversation));
    report(conversation.broken_rule());
}

}  // namespace hello::test

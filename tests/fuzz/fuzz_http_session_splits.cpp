// SPDX-License-Identifier: MIT
//
// fuzz_http_session_splits: the same octets whole, one by one, and in pieces that the fuzzer
// chooses must give the same answers, the same verdict and the same phase. Input: an octet whose
// bit 0 asks for small limits and whose other bits are a count, as many sizes of pieces, and what
// is sent.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_target.h"
#include "http_session.h"
#include "unit/support/conversation.h"
#include "unit/support/guard_page.h"
#include "unit/support/small_limits.h"

namespace hello::test {
namespace {

constexpr std::size_t kPiecesMax = 15;

/// Pieces of the sizes that are the octets of `sizes`, over and over.
std::string converse(std::string_view octets, std::string_view sizes, const HttpLimits& limits) {
    static GuardedCopy memory(std::size_t{1024} * 1024);
    Conversation conversation(memory, limits);
    for (std::size_t index = 0; !octets.empty(); ++index) {
        const std::size_t size =
            sizes.empty()
                ? octets.size()
                : std::max<std::size_t>(static_cast<std::uint8_t>(sizes[index % sizes.size()]), 1);
        conversation.feed(octets.substr(0, size));
        octets.remove_prefix(std::min(size, octets.size()));
    }
    report(conversation.broken_rule());
    return to_string(without_interim(conversation.outcome()));
}

}  // namespace

void run_once(FuzzInput input) {
    static const HttpLimits kDefaultLimits;
    static const HttpLimits kSmallLimits = small_limits();
    const std::uint8_t choice = input.take_number();
    const HttpLimits& limits = (choice & 1) != 0 ? kSmallLimits : kDefaultLimits;
    const std::string_view sizes = input.take((choice >> 1) % (kPiecesMax + 1));
    const std::string whole = converse(input.rest(), "", limits);
    for (const std::string_view others : {std::string_view("\1"), sizes}) {
        const std::string pieces = converse(input.rest(), others, limits);
        if (pieces != whole) {
            report(std::string("whole: ").append(whole).append(", in pieces: ").append(pieces));
        }
    }
}

}  // namespace hello::test

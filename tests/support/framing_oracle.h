// SPDX-License-Identifier: MIT
//
// Framing oracle: where each request in some octets ends, read from RFC 9112 and from nothing else:
// it shares no code with the server, so both would have to be wrong in the same way. Slow and
// simple: it looks at a head when all of it is there. Sections without an RFC are those of RFC
// 9112.
//
// Where the RFC lets a server choose between refusing and repairing, refusing is expected: two
// readers that repair differently see different requests. So these are errors, although a MAY
// allows them: bare LF (2.2), other than single spaces between words (3), obs-fold (5.2), CTLs in a
// value (RFC 9110 section 5.5), several Content-Lengths that agree (6.3), Transfer-Encoding beside
// Content-Length or in HTTP/1.0 (6.1), framing fields in trailers (RFC 9110 section 6.5.1), a
// version other than 1.0 and 1.1 (RFC 9110 section 2.5).
//
// What is left to the server, because it moves no end of a message:
//   size         the first k...Certain octets and fields must be accepted (3, RFC 9110 section 5.4)
//   method       a token that is not one of RFC 9110's, nor PATCH (RFC 9110 section 9.1: 501)
//   target       the grammar of a URI, once it has the shape of one (3.2)
//   host         the grammar of Host, once its octets are right (3.2)
//   white space  HTAB around a framing value, empty elements in Transfer-Encoding (RFC 9110 section
//                5.6.1): some readers know them, and who doesn't, refuses
//   extension    the grammar of a chunk extension, once its quotation marks are in pairs and it has
//                no CTL but DEL (7.1.1)

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hello::test {

/// A complete request that gets a 2xx.
struct FramedMessage {
    std::size_t end = 0;          ///< offset behind its last octet
    bool may_be_refused = false;  ///< in which case nothing behind it is answered
};

/// What comes of the octets behind the last complete request.
enum class FramingRest {
    Waiting,    ///< nothing, or content that is not complete: no answer, no refusal
    Undecided,  ///< an incomplete head or line: no answer; perhaps refused already
    Refused,    ///< a 4xx or 5xx
    Closed,     ///< the last request ended the connection (9.3); all behind it means nothing
};

struct Framing {
    std::vector<FramedMessage> messages;
    FramingRest rest = FramingRest::Waiting;
};

[[nodiscard]] Framing read_framing(std::string_view octets);

/// "18 36? Refused": the ends, "?" where it may be refused, and the rest.
[[nodiscard]] std::string to_string(const Framing& framing);

}  // namespace hello::test

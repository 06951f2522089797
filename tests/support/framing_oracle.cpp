// SPDX-License-Identifier: MIT
//
// Framing oracle: see framing_oracle.h.

#include "framing_oracle.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <system_error>

namespace hello::test {
namespace {

using Octets = std::string_view;
constexpr std::size_t kHeadCertain = 8000;
constexpr std::size_t kFieldsCertain = 100;
constexpr std::size_t kChunkedCertain = 8000;  // with the data
constexpr std::size_t kBlankCertain = 1000;
constexpr Octets kLineEnd = "\r\n";

/// From bad to good, so that the worst of several is the least.
enum class Opinion { Refuse, Undecided, MayRefuse, Accept };

bool consists_of(Octets octets, Octets marks) {
    return std::ranges::all_of(octets, [marks](char octet) {
        return (octet >= '0' && octet <= '9') || (octet >= 'a' && octet <= 'z') ||
               (octet >= 'A' && octet <= 'Z') || marks.find(octet) != Octets::npos;
    });
}

bool is_token(Octets octets) {
    return !octets.empty() && consists_of(octets, "!#$%&'*+-.^_`|~");
}

/// VCHAR, obs-text, SP and HTAB (RFC 9110 section 5.5): no CTL, so no bare CR or LF.
bool is_text(Octets octets) {
    return std::ranges::none_of(octets, [](unsigned char octet) {
        return (octet < 0x20 && octet != '\t') || octet == 0x7F;
    });
}

std::string lower(Octets octets) {
    std::string text(octets);
    for (char& octet : text) {
        octet = octet >= 'A' && octet <= 'Z' ? static_cast<char>(octet + ('a' - 'A')) : octet;
    }
    return text;
}

Octets trimmed(Octets octets) {
    const std::size_t begin = std::min(octets.find_first_not_of(" \t"), octets.size());
    return octets.substr(begin, octets.find_last_not_of(" \t") + 1 - begin);
}

std::vector<Octets> split(Octets octets, Octets separator) {
    std::vector<Octets> parts;
    for (std::size_t at = 0; (at = octets.find(separator)) != Octets::npos;) {
        parts.push_back(octets.substr(0, at));
        octets.remove_prefix(at + separator.size());
    }
    parts.push_back(octets);
    return parts;
}

/// Nothing: no number, or one that no counter holds.
std::optional<std::uint64_t> read_number(Octets digits, int base) {
    std::uint64_t number = 0;
    const char* const end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, number, base);
    const bool right = result.ec == std::errc{} && result.ptr == end;
    return right ? std::optional(number) : std::nullopt;
}

/// 5: field-name ":" OWS field-value OWS. The name in lower case; empty if it is no such line.
std::string field_name(Octets line) {
    const Octets name = line.substr(0, std::min(line.find(':'), line.size()));
    return name != line && is_token(name) && is_text(line) ? lower(name) : "";
}

/// One request, from its first octet on.
class RequestReader {
public:
    /// `octets`: all there is. `head_size`: without the CRLF before the empty line.
    RequestReader(Octets octets, std::size_t head_size) : rest_(octets) {
        const std::vector<Octets> lines = split(octets.substr(0, head_size), kLineEnd);
        rest_.remove_prefix(head_size + 2 * kLineEnd.size());
        may_refuse_if(head_size > kHeadCertain || lines.size() > kFieldsCertain);
        read_request_line(lines.front());
        std::for_each(lines.begin() + 1, lines.end(), [this](Octets line) { read_field(line); });
        judge_framing();
        if (opinion_ >= Opinion::MayRefuse) {
            complete_ = codings_.empty() ? skip_content() : skip_chunks();
        }
    }

    void may_refuse_if(bool doubtful) { judge(doubtful ? Opinion::MayRefuse : Opinion::Accept); }

    [[nodiscard]] Opinion opinion() const { return opinion_; }
    [[nodiscard]] bool complete() const { return complete_; }
    [[nodiscard]] Octets rest() const { return rest_; }
    [[nodiscard]] bool closes() const { return close_asked_ || (old_ && !keep_alive_asked_); }

private:
    void judge(Opinion opinion) { opinion_ = std::min(opinion_, opinion); }
    void refuse_unless(bool right) { judge(right ? Opinion::Accept : Opinion::Refuse); }

    /// 3: method SP request-target SP HTTP-version.
    void read_request_line(Octets line) {
        const std::vector<Octets> words = split(line, " ");
        if (words.size() != 3) {
            return judge(Opinion::Refuse);
        }
        const Octets method = words[0];
        const std::vector<Octets> certain = split("GET HEAD POST PUT DELETE OPTIONS PATCH", " ");
        judge_target(words[1], method == "OPTIONS");
        refuse_unless(is_token(method) && method != "CONNECT" && method != "TRACE");
        may_refuse_if(std::ranges::count(certain, method) == 0);
        old_ = words[2] == "HTTP/1.0";
        refuse_unless(old_ || words[2] == "HTTP/1.1");
    }

    /// 3.2.
    void judge_target(Octets target, bool may_be_asterisk) {
        const Octets scheme = target.substr(0, std::min(target.find(':'), target.size()));
        const bool path = target.starts_with('/');
        const bool uri = scheme != target && is_token(scheme);
        refuse_unless(path || uri || (target == "*" && may_be_asterisk));
        refuse_unless(std::ranges::all_of(target, [](unsigned char octet) {
            return octet > 0x20 && octet < 0x7F && octet != '#';
        }));
        may_refuse_if(!consists_of(target, "-._~!$&'()*+,;=:@/?") || uri);
    }

    void read_field(Octets line) {
        const std::string name = field_name(line);
        if (name.empty()) {
            return judge(Opinion::Refuse);
        }
        const Octets raw = line.substr(name.size() + 1);
        const Octets value = trimmed(raw);
        if (name == "host") {
            ++hosts_;
            refuse_unless(consists_of(value, "-._~!$&'()*+,;=%:[]"));
            may_refuse_if(!consists_of(value, "-."));
        } else if (name == "content-length") {
            lengths_.push_back(value);
            may_refuse_if(raw.find('\t') != Octets::npos);
        } else if (name == "transfer-encoding") {
            std::ranges::copy(split(value, ","), std::back_inserter(codings_));
            may_refuse_if(raw.find('\t') != Octets::npos);
        } else if (name == "connection") {
            for (const Octets option : split(value, ",")) {
                close_asked_ = close_asked_ || lower(trimmed(option)) == "close";
                keep_alive_asked_ = keep_alive_asked_ || lower(trimmed(option)) == "keep-alive";
            }
        }
    }

    /// 6.1, 6.2, 6.3, and 3.2 for Host.
    void judge_framing() {
        refuse_unless(hosts_ == 1 || (hosts_ == 0 && old_));
        if (!lengths_.empty()) {
            const bool digits = lengths_[0].find_first_not_of("0123456789") == Octets::npos;
            refuse_unless(lengths_.size() == 1 && digits && !lengths_[0].empty());
            // So much never arrives: whether it is refused or waited for, nothing is answered.
            judge(read_number(lengths_[0], 10) ? Opinion::Accept : Opinion::Undecided);
        }
        if (!codings_.empty()) {
            refuse_unless(lengths_.empty() && !old_);
            may_refuse_if(codings_.size() > 1);
            std::erase_if(codings_, [](Octets coding) { return trimmed(coding).empty(); });
            refuse_unless(codings_.size() == 1 && lower(trimmed(codings_[0])) == "chunked");
        }
    }

    /// 6.3. Whether all of it is there.
    bool skip_content() {
        const std::uint64_t size = lengths_.empty() ? 0 : *read_number(lengths_[0], 10);
        const bool complete = size <= rest_.size();
        rest_.remove_prefix(complete ? size : rest_.size());
        return complete;
    }

    /// 7.1: chunk-size [ chunk-ext ] CRLF chunk-data CRLF. Whether all of it is there.
    bool skip_chunks() {
        const std::size_t begin = rest_.size();
        while (const std::optional<Octets> line = take_line()) {
            const std::size_t digits =
                std::min(line->find_first_not_of("0123456789abcdefABCDEF"), line->size());
            const std::optional<std::uint64_t> size = read_number(line->substr(0, digits), 16);
            judge_extension(line->substr(digits));
            refuse_unless(size.has_value());
            may_refuse_if(begin - rest_.size() > kChunkedCertain);
            if (!size || *size == 0) {
                return size && skip_trailers();
            }
            rest_.remove_prefix(std::min<std::uint64_t>(*size, rest_.size()));
            const Octets line_end = rest_.substr(0, kLineEnd.size());
            refuse_unless(kLineEnd.starts_with(line_end));
            if (line_end != kLineEnd) {
                return false;
            }
            rest_.remove_prefix(kLineEnd.size());
        }
        judge(Opinion::Undecided);
        return false;
    }

    /// 7.1.1. `octets`: all between the chunk size and CRLF.
    void judge_extension(Octets octets) {
        bool quoted = false;
        for (std::size_t at = 0; at < octets.size(); ++at) {
            if (quoted && octets[at] == '\\') {
                ++at;
            } else if (octets[at] == '"') {
                quoted = !quoted;
            }
        }
        refuse_unless(octets.empty() || trimmed(octets).starts_with(';'));
        std::string text(octets);
        std::erase(text, '\x7F');  // the one CTL that is no part of a line end and ends no string
        refuse_unless(!quoted && is_text(text));
        const std::vector<Octets> parts = split(octets, ";");
        may_refuse_if(!parts[0].empty() || !std::all_of(parts.begin() + 1, parts.end(), is_token));
    }

    /// 7.1.2. Whether all of them are there.
    bool skip_trailers() {
        const std::size_t begin = rest_.size();
        while (const std::optional<Octets> line = take_line()) {
            if (line->empty()) {
                may_refuse_if(begin - rest_.size() > kChunkedCertain);
                return true;
            }
            const std::string name = field_name(*line);
            refuse_unless(!name.empty() && name != "content-length" && name != "transfer-encoding");
        }
        judge(Opinion::Undecided);
        return false;
    }

    /// The next line, without its CRLF; nothing while it is not complete.
    std::optional<Octets> take_line() {
        const std::size_t end = rest_.find(kLineEnd);
        if (end == Octets::npos) {
            return std::nullopt;
        }
        const Octets line = rest_.substr(0, end);
        rest_.remove_prefix(end + kLineEnd.size());
        return line;
    }

    Octets rest_;  ///< what is not read yet
    Opinion opinion_ = Opinion::Accept;
    bool complete_ = false;
    bool old_ = false;  ///< HTTP/1.0
    bool close_asked_ = false;
    bool keep_alive_asked_ = false;
    std::size_t hosts_ = 0;
    std::vector<Octets> lengths_;
    std::vector<Octets> codings_;
};

}  // namespace

Framing read_framing(std::string_view octets) {
    Framing framing;
    Octets rest = octets;
    while (framing.rest == FramingRest::Waiting) {
        const std::size_t begin = rest.size();
        while (rest.starts_with(kLineEnd)) {  // 2.2: empty lines before a request are ignored
            rest.remove_prefix(kLineEnd.size());
        }
        const bool many_blank = begin - rest.size() > kBlankCertain;
        const std::size_t head_size = rest.find("\r\n\r\n");
        const bool complete = head_size != Octets::npos;
        if (!complete) {
            const bool blank = rest.empty() || rest == "\r";
            framing.rest = blank && !many_blank ? FramingRest::Waiting : FramingRest::Undecided;
            break;
        }
        RequestReader request(rest, head_size);
        request.may_refuse_if(many_blank);
        const Opinion opinion = request.opinion();
        if (opinion == Opinion::Refuse) {
            framing.rest = FramingRest::Refused;
        } else if (!request.complete()) {
            framing.rest =
                opinion == Opinion::Accept ? FramingRest::Waiting : FramingRest::Undecided;
            break;
        } else {
            rest = request.rest();
            framing.messages.push_back(
                {octets.size() - rest.size(), opinion == Opinion::MayRefuse});
            framing.rest = request.closes() ? FramingRest::Closed : FramingRest::Waiting;
        }
    }
    return framing;
}

std::string to_string(const Framing& framing) {
    constexpr std::array<Octets, 4> kRests{"Waiting", "Undecided", "Refused", "Closed"};
    std::string text;
    for (const FramedMessage& message : framing.messages) {
        text += std::to_string(message.end) + (message.may_be_refused ? "? " : " ");
    }
    return text.append(kRests.at(static_cast<std::size_t>(framing.rest)));
}

}  // namespace hello::test

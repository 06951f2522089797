// SPDX-License-Identifier: MIT
//
// Reader of protocol case files: see case_file.h.

#include "case_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <utility>

namespace hello::test {
namespace {

constexpr std::size_t kRepeatMax = 1'000'000;  // a larger count is a typing error

struct StateWord {
    std::string_view text;
    CaseEnd end;
};
constexpr std::array<StateWord, 4> kStateWords{{
    {"open", CaseEnd::Open},
    {"waiting head", CaseEnd::WaitingHead},
    {"waiting body", CaseEnd::WaitingBody},
    {"closed", CaseEnd::Closed},
}};

std::optional<std::size_t> parse_number(std::string_view digits, int base = 10) {
    std::size_t number = 0;
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, number, base);
    if (digits.empty() || result.ec != std::errc{} || result.ptr != end) {
        return std::nullopt;
    }
    return number;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(at + 1);
    }
}

/// Reads one file, line by line.
class Reader {
public:
    Reader(std::string_view text, std::string file)
        : lines_(split(text, '\n')), file_(std::move(file)) {}

    std::vector<Case> read() {
        while (next_line()) {
            if (line_.starts_with("## ")) {
                begin_case();
            } else if (line_ == "```http") {
                read_input();
            } else if (line_ == "```expect") {
                read_expectation();
            } else if (line_.starts_with("```")) {
                fail("unknown block '" + std::string(line_) + "': ```http or ```expect");
            }
        }
        end_case();
        if (cases_.empty()) {
            fail("no case: each begins with a line '## Sentence (RFC ... section ...)'");
        }
        return std::move(cases_);
    }

private:
    [[noreturn]] void fail(const std::string& what) const { fail_at(number_, what); }
    [[noreturn]] void fail_at(std::size_t line, const std::string& what) const {
        throw CaseFileError(file_, line, what);
    }

    bool next_line() {
        if (number_ == lines_.size()) {
            return false;
        }
        line_ = lines_[number_++];
        const auto foreign = [](char octet) {
            return octet != '\t' && (octet < ' ' || octet > '~');
        };
        if (std::ranges::any_of(line_, foreign)) {
            fail("only printable ASCII; in a block write \\xHH");
        }
        return true;
    }

    void next_line_of_block() {
        const std::size_t begin = number_;
        if (!next_line() || line_.starts_with("## ")) {
            fail_at(begin, "the block has no end: ```");
        }
    }

    Case& current_case() {
        if (cases_.empty()) {
            fail("a block before the first case");
        }
        return cases_.back();
    }

    void begin_case() {
        end_case();
        const std::string name(line_.substr(3));
        if (name.find("(RFC ") == std::string::npos && name.find("(design ") == std::string::npos) {
            fail("the heading names no section: '(RFC ... section ...)' or '(design ...)'");
        }
        if (!names_.insert(name).second) {
            fail("a case of this name exists already");
        }
        cases_.push_back({});
        cases_.back().file = file_;
        cases_.back().line = number_;
        cases_.back().name = name;
        has_input_ = false;
        has_expectation_ = false;
    }

    void end_case() const {
        if (!cases_.empty() && !has_expectation_) {
            fail_at(cases_.back().line, "the case has no ```expect block");
        }
    }

    void read_input() {
        Case& input_case = current_case();
        if (has_input_) {
            fail("a second ```http block");
        }
        has_input_ = true;
        for (next_line_of_block(); line_ != "```"; next_line_of_block()) {
            if (line_ == "{wait}" || line_ == "{pause}") {
                const auto kind =
                    line_ == "{wait}" ? CaseBreak::Kind::Wait : CaseBreak::Kind::Pause;
                input_case.breaks.push_back({input_case.input.size(), kind});
            } else {
                input_case.input += decode_line(line_);
            }
        }
        if (input_case.input.empty()) {
            fail("empty input");
        }
    }

    std::string decode_line(std::string_view text) const {
        if (text.ends_with(' ') || text.find('\t') != std::string_view::npos) {
            fail("white space nobody can see: write \\x20 or \\t");
        }
        std::string octets;
        while (!text.empty()) {
            if (text == "\\") {
                return octets;  // no end of line
            }
            if (text.front() == '{') {
                octets += take_repetition(text);
            } else {
                octets += take_octet(text);
            }
        }
        return octets + "\r\n";
    }

    /// Takes one octet, plain or escaped, off the front of `text`.
    char take_octet(std::string_view& text) const {
        const char first = text.front();
        text.remove_prefix(1);
        if (first != '\\') {
            return first;
        }
        if (text.empty()) {
            fail("a '\\' with nothing behind it");
        }
        const char escape = text.front();
        text.remove_prefix(1);
        switch (escape) {
            case 'r': return '\r';
            case 'n': return '\n';
            case 't': return '\t';
            case '0': return '\0';
            case '\\':
            case '{':
            case '}': return escape;
            case 'x':
                if (const auto octet = parse_number(text.substr(0, 2), 16);
                    octet && text.size() >= 2) {
                    text.remove_prefix(2);
                    return static_cast<char>(static_cast<unsigned char>(*octet));
                }
                fail("\\x needs two hexadecimal digits");
            default: fail(std::string("unknown escape '\\") + escape + "'");
        }
    }

    /// Takes "{8192*text}" off the front of `text`.
    std::string take_repetition(std::string_view& text) const {
        const std::size_t star = text.find('*');
        const auto count =
            star == std::string_view::npos ? std::nullopt : parse_number(text.substr(1, star - 1));
        if (!count || *count > kRepeatMax) {
            fail("'{' begins a repetition such as {100*a}; a brace itself is '\\{'");
        }
        text.remove_prefix(star + 1);
        std::string unit;
        while (!text.starts_with('}')) {
            if (text.empty()) {
                fail("a repetition without '}'");
            }
            unit += take_octet(text);
        }
        text.remove_prefix(1);
        std::string octets;
        octets.reserve(unit.size() * *count);
        for (std::size_t index = 0; index < *count; ++index) {
            octets += unit;
        }
        return octets;
    }

    void read_expectation() {
        Case& expected_case = current_case();
        if (!has_input_) {
            fail("the ```http block comes first");
        }
        if (has_expectation_) {
            fail("a second ```expect block");
        }
        has_expectation_ = true;
        bool ended = false;
        for (next_line_of_block(); line_ != "```"; next_line_of_block()) {
            if (ended) {
                fail("nothing comes after the state of the connection");
            }
            const auto* word = std::ranges::find(kStateWords, line_, &StateWord::text);
            if (word != kStateWords.end()) {
                expected_case.end = word->end;
                ended = true;
            } else {
                take_response(expected_case);
            }
        }
        if (!ended) {
            fail("the last line is the state: open, waiting head, waiting body or closed");
        }
        check_consistency(expected_case);
    }

    /// Reads a line such as "400 close head" or "200 x16".
    void take_response(Case& expected_case) const {
        const std::vector<std::string_view> words = split(line_, ' ');
        CaseResponse response;
        response.optional = words.front() == "100?";
        const auto status = parse_number(response.optional ? "100" : words.front());
        if (!status || *status < 100 || *status > 599) {
            fail("'" + std::string(line_) + "' is neither a response nor a state");
        }
        response.status = static_cast<int>(*status);
        std::size_t count = 1;
        for (const std::string_view word : std::vector(words.begin() + 1, words.end())) {
            if (word == "close") {
                response.connection = ConnectionField::Close;
            } else if (word == "keep-alive") {
                response.connection = ConnectionField::KeepAlive;
            } else if (word == "head") {
                response.head_only = true;
            } else if (const auto number = parse_number(word.substr(std::min<std::size_t>(
                           word.size(), word.starts_with('x') ? 1 : word.size())))) {
                count = *number;
            } else {
                fail("unknown word '" + std::string(word) + "': close, keep-alive, head or xN");
            }
        }
        expected_case.responses.insert(expected_case.responses.end(), count, response);
    }

    void check_consistency(const Case& checked) const {
        const std::vector<CaseResponse>& responses = checked.responses;
        const auto is_last = [](const CaseResponse& response) {
            return response.connection == ConnectionField::Close;
        };
        const auto last = std::ranges::find_if(responses, is_last);
        if (checked.end == CaseEnd::Closed && last == responses.end()) {
            fail("'closed' needs a response that says 'close'");
        }
        if (last != responses.end() &&
            (checked.end != CaseEnd::Closed || std::next(last) != responses.end())) {
            fail("after a response that says 'close' comes 'closed', nothing else");
        }
        const auto waits =
            std::ranges::count(checked.breaks, CaseBreak::Kind::Wait, &CaseBreak::kind);
        const auto is_due = [](const CaseResponse& response) {
            return response.is_interim() && !response.optional;
        };
        if (std::ranges::count_if(responses, is_due) > waits) {
            fail("a '100' is certain only where the client stops: {wait} in the input");
        }
    }

    std::vector<std::string_view> lines_;
    std::string file_;
    std::string_view line_;
    std::size_t number_ = 0;  // of line_, from 1
    std::vector<Case> cases_;
    std::set<std::string> names_;
    bool has_input_ = false;
    bool has_expectation_ = false;
};

}  // namespace

std::string Case::label() const {
    return file + ":" + std::to_string(line) + ": " + name;
}

std::vector<Case> parse_cases(std::string_view text, const std::string& file) {
    return Reader(text, file).read();
}

std::vector<Case> load_cases(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        throw CaseFileError(path.string(), 0, "can't be opened");
    }
    std::ostringstream text;
    text << stream.rdbuf();
    return parse_cases(text.str(), path.filename().string());
}

std::vector<std::string> list_case_files(const std::filesystem::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        const std::filesystem::path name = entry.path().filename();
        if (name.extension() == ".md" && name != "README.md") {
            names.push_back(name.string());
        }
    }
    std::ranges::sort(names);
    return names;
}

bool matches(const std::vector<CaseResponse>& expected, const std::vector<CaseResponse>& seen) {
    auto next = seen.begin();
    for (CaseResponse wanted : expected) {
        const bool may_be_missing = std::exchange(wanted.optional, false);
        if (next != seen.end() && *next == wanted) {
            ++next;
        } else if (!may_be_missing) {
            return false;
        }
    }
    return next == seen.end();
}

std::string to_string(const CaseResponse& response) {
    std::string text = std::to_string(response.status);
    text += response.optional ? "?" : "";
    text += response.connection == ConnectionField::Close ? " close" : "";
    text += response.connection == ConnectionField::KeepAlive ? " keep-alive" : "";
    text += response.head_only ? " head" : "";
    return text;
}

std::string to_string(const std::vector<CaseResponse>& responses) {
    std::string text = "[";
    for (const CaseResponse& response : responses) {
        text += (text.size() > 1 ? ", " : "") + to_string(response);
    }
    return text + "]";
}

std::string to_string(CaseEnd end) {
    return std::string(std::ranges::find(kStateWords, end, &StateWord::end)->text);
}

std::ostream& operator<<(std::ostream& out, const CaseResponse& response) {
    return out << to_string(response);
}

std::ostream& operator<<(std::ostream& out, CaseEnd end) {
    return out << to_string(end);
}

std::string printable(std::string_view octets) {
    constexpr std::size_t kShownMax = 400;
    constexpr std::string_view kHexDigits = "0123456789abcdef";
    if (octets.size() > kShownMax) {
        return printable(octets.substr(0, kShownMax / 2)) + " ... (" +
               std::to_string(octets.size()) + " octets) ... " +
               printable(octets.substr(octets.size() - kShownMax / 2));
    }
    std::string text;
    for (const char octet : octets) {
        const auto value = static_cast<unsigned char>(octet);
        if (octet == '\r') {
            text += "\\r";
        } else if (octet == '\n') {
            text += "\\n";
        } else if (value >= ' ' && value <= '~' && octet != '\\') {
            text += octet;
        } else {
            text += {'\\', 'x', kHexDigits[value >> 4U], kHexDigits[value & 15U]};
        }
    }
    return text;
}

}  // namespace hello::test

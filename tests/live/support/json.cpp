// SPDX-License-Identifier: MIT
//
// Json: recursive descent over the text; the depth is that of our own output (two levels).

#include "support/json.h"

#include <charconv>
#include <stdexcept>

namespace hello::test {
namespace {

class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    Json document() {
        Json value = read_value();
        skip_space();
        if (position_ != text_.size()) {
            fail("text after the value");
        }
        return value;
    }

private:
    [[noreturn]] void fail(const std::string& why) const {
        throw std::runtime_error("not JSON (" + why + " at byte " + std::to_string(position_) +
                                 "): " + std::string(text_.substr(0, 200)));
    }

    void skip_space() {
        while (position_ < text_.size() &&
               std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos) {
            ++position_;
        }
    }

    bool take(char wanted) {
        skip_space();
        if (position_ < text_.size() && text_[position_] == wanted) {
            ++position_;
            return true;
        }
        return false;
    }

    void need(char wanted) {
        if (!take(wanted)) {
            fail(std::string("expected ") + wanted);
        }
    }

    bool take_word(std::string_view word) {
        if (text_.substr(position_, word.size()) != word) {
            return false;
        }
        position_ += word.size();
        return true;
    }

    Json read_value() {
        skip_space();
        if (position_ >= text_.size()) {
            fail("it ends early");
        }
        Json value;
        switch (text_[position_]) {
            case '{': read_object(value); return value;
            case '[': read_array(value); return value;
            case '"':
                value.kind = Json::Kind::String;
                value.text = read_string();
                return value;
            default: read_literal(value); return value;
        }
    }

    void read_object(Json& value) {
        value.kind = Json::Kind::Object;
        need('{');
        if (take('}')) {
            return;
        }
        do {
            skip_space();
            const std::string key = read_string();
            need(':');
            if (!value.members.emplace(key, read_value()).second) {
                fail("repeated key " + key);
            }
        } while (take(','));
        need('}');
    }

    void read_array(Json& value) {
        value.kind = Json::Kind::Array;
        need('[');
        if (take(']')) {
            return;
        }
        do {
            value.items.push_back(read_value());
        } while (take(','));
        need(']');
    }

    std::string read_string() {
        need('"');
        std::string result;
        while (position_ < text_.size() && text_[position_] != '"') {
            const char letter = text_[position_++];
            if (static_cast<unsigned char>(letter) < 0x20) {
                fail("control character in a string");
            }
            result += letter == '\\' ? read_escape() : letter;
        }
        if (position_ >= text_.size()) {
            fail("string without end");
        }
        ++position_;
        return result;
    }

    char read_escape() {
        if (position_ >= text_.size()) {
            fail("escape without end");
        }
        const char letter = text_[position_++];
        switch (letter) {
            case '"':
            case '\\':
            case '/': return letter;
            case 'n': return '\n';
            case 't': return '\t';
            case 'r': return '\r';
            case 'b': return '\b';
            case 'f': return '\f';
            case 'u': return read_code_unit();
            default: fail("unknown escape");
        }
    }

    /// Only what one byte can hold is told apart: the tests compare no other text.
    char read_code_unit() {
        const std::string_view digits = text_.substr(position_, 4);
        unsigned code = 0;
        const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (digits.size() != 4 || result.ptr != digits.data() + 4) {
            fail("bad \\u escape");
        }
        position_ += 4;
        return code < 0x80 ? static_cast<char>(code) : '?';
    }

    void read_literal(Json& value) {
        if (take_word("null")) {
            return;
        }
        for (const std::string_view word : {"true", "false"}) {
            if (take_word(word)) {
                value.kind = Json::Kind::Boolean;
                value.number = word == "true" ? 1 : 0;
                return;
            }
        }
        value.kind = Json::Kind::Number;
        const auto result =
            std::from_chars(text_.data() + position_, text_.data() + text_.size(), value.number);
        if (result.ec != std::errc()) {
            fail("no value");
        }
        position_ = static_cast<std::size_t>(result.ptr - text_.data());
    }

    std::string_view text_;
    std::size_t position_ = 0;
};

}  // namespace

Json Json::parse(std::string_view text) {
    return Reader(text).document();
}

const Json& Json::at(const std::string& key) const {
    const auto found = members.find(key);
    if (found == members.end()) {
        throw std::runtime_error("no member \"" + key + "\" in the JSON object");
    }
    return found->second;
}

}  // namespace hello::test

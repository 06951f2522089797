// SPDX-License-Identifier: MIT
//
// JsonText: takes one JSON object or array apart. Whatever is not exactly RFC 8259 (a bare word, a
// control character in a string, anything behind the end) throws, so that reading a line also
// proves that it is JSON. Values stay as they were written: strings keep their quotes.

#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hello::test {

class JsonText {
public:
    using Members = std::map<std::string, std::string>;

    [[nodiscard]] static Members members(std::string_view text) {
        JsonText json(text);
        Members members = json.read_members();
        json.expect_end();
        return members;
    }
    [[nodiscard]] static std::vector<std::string> elements(std::string_view text) {
        JsonText json(text);
        std::vector<std::string> elements = json.read_elements();
        json.expect_end();
        return elements;
    }

private:
    explicit JsonText(std::string_view text) : rest_(text) {}

    Members read_members() {
        Members members;
        expect('{');
        if (take('}')) {
            return members;
        }
        do {
            const std::string name = read_string();
            expect(':');
            if (!members.emplace(name.substr(1, name.size() - 2), read_value()).second) {
                throw std::runtime_error("the name " + name + " is there twice");
            }
        } while (take(','));
        expect('}');
        return members;
    }

    std::vector<std::string> read_elements() {
        std::vector<std::string> elements;
        expect('[');
        if (take(']')) {
            return elements;
        }
        do {
            elements.push_back(read_value());
        } while (take(','));
        expect(']');
        return elements;
    }

    std::string read_value() {
        skip_blanks();
        const std::string_view begin = rest_;
        switch (peek()) {
            case '{': static_cast<void>(read_members()); break;
            case '[': static_cast<void>(read_elements()); break;
            case '"': return read_string();
            case 't': expect_word("true"); break;
            case 'f': expect_word("false"); break;
            case 'n': expect_word("null"); break;
            default: read_number();
        }
        return std::string(begin.substr(0, begin.size() - rest_.size()));
    }

    std::string read_string() {
        expect('"');
        std::string text = "\"";
        while (peek() != '"') {
            if (static_cast<unsigned char>(peek()) < 0x20) {
                throw std::runtime_error("a control character in a string");
            }
            if (peek() == '\\') {
                text += take_escape();
            } else {
                text += next();
            }
        }
        return text + next();
    }

    std::string take_escape() {
        std::string text{next()};
        text += next();
        if (std::string_view("\"\\/bfnrtu").find(text.back()) == std::string_view::npos) {
            throw std::runtime_error("a bad escape");
        }
        for (int digits = text.back() == 'u' ? 4 : 0; digits > 0; --digits) {
            text += next();
            if (std::string_view("0123456789abcdefABCDEF").find(text.back()) ==
                std::string_view::npos) {
                throw std::runtime_error("a bad escape");
            }
        }
        return text;
    }

    void read_number() {
        static_cast<void>(rest_.starts_with('-') ? next() : '-');
        if (peek() == '0') {
            static_cast<void>(next());
        } else {
            read_digits();
        }
        if (rest_.starts_with('.')) {
            static_cast<void>(next());
            read_digits();
        }
        if (rest_.starts_with('e') || rest_.starts_with('E')) {
            static_cast<void>(next());
            static_cast<void>(rest_.starts_with('-') || rest_.starts_with('+') ? next() : '+');
            read_digits();
        }
    }

    void read_digits() {
        const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
        if (end == 0) {
            throw std::runtime_error("not a value: " + std::string(rest_.substr(0, 20)));
        }
        rest_.remove_prefix(end);
    }

    void expect_word(std::string_view word) {
        if (!rest_.starts_with(word)) {
            throw std::runtime_error("not a value: " + std::string(rest_.substr(0, 20)));
        }
        rest_.remove_prefix(word.size());
    }

    void expect(char octet) {
        if (!take(octet)) {
            throw std::runtime_error(std::string{"expected "} + octet + " at \"" +
                                     std::string(rest_.substr(0, 20)) + '"');
        }
    }
    [[nodiscard]] bool take(char octet) {
        skip_blanks();
        const bool there = rest_.starts_with(octet);
        rest_.remove_prefix(there ? 1 : 0);
        if (octet != '"') {  // within a string, blanks count
            skip_blanks();
        }
        return there;
    }
    void expect_end() const {
        if (!rest_.empty()) {
            throw std::runtime_error("something follows the end: " + std::string(rest_));
        }
    }

    [[nodiscard]] char peek() const {
        if (rest_.empty()) {
            throw std::runtime_error("the text ends too early");
        }
        return rest_.front();
    }
    char next() {
        const char octet = peek();
        rest_.remove_prefix(1);
        return octet;
    }
    void skip_blanks() {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    }

    std::string_view rest_;
};

}  // namespace hello::test

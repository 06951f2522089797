// SPDX-License-Identifier: MIT
//
// Protocol cases as data: reads tests/cases/*.md, whose notation tests/cases/README.md describes.
// A file that breaks the notation is refused with its name and line, never half read, so a case
// can't be lost by a typing error.

#pragma once

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hello::test {

enum class ConnectionField { Absent, KeepAlive, Close };

/// One response, expected or seen.
struct CaseResponse {
    int status = 0;
    ConnectionField connection = ConnectionField::Absent;
    bool head_only = false;  ///< no content, although Content-Length announces some
    bool optional = false;   ///< an interim response that depends on how the octets arrive

    bool operator==(const CaseResponse&) const = default;
    [[nodiscard]] bool is_interim() const { return status < 200; }
};

/// What the connection is like when all input was taken.
enum class CaseEnd {
    Open,         ///< between requests: the next one is answered
    WaitingHead,  ///< empty lines or an incomplete head
    WaitingBody,  ///< incomplete content
    Closed,       ///< the last response was given
};

/// A place in the input where the client stops sending.
struct CaseBreak {
    enum class Kind {
        Wait,   ///< until the next response has come
        Pause,  ///< for a moment, in which nothing may come
    };
    std::size_t offset = 0;
    Kind kind = Kind::Pause;
};

struct Case {
    std::string file;
    std::size_t line = 0;  ///< of its heading
    std::string name;
    std::string input;
    std::vector<CaseBreak> breaks;
    std::vector<CaseResponse> responses;
    CaseEnd end = CaseEnd::Open;

    /// "host.md:12: A request without Host is refused (RFC 9112 section 3.2)".
    [[nodiscard]] std::string label() const;
};

/// "file:line: what is wrong".
class CaseFileError : public std::runtime_error {
public:
    CaseFileError(const std::string& file, std::size_t line, const std::string& what)
        : std::runtime_error(file + ":" + std::to_string(line) + ": " + what) {}
};

[[nodiscard]] std::vector<Case> parse_cases(std::string_view text, const std::string& file);
[[nodiscard]] std::vector<Case> load_cases(const std::filesystem::path& path);

/// Names of the case files in `directory` in alphabetical order, without README.md.
[[nodiscard]] std::vector<std::string> list_case_files(const std::filesystem::path& directory);

/// Whether the responses seen are the expected ones. An optional interim response may be missing.
[[nodiscard]] bool matches(const std::vector<CaseResponse>& expected,
                           const std::vector<CaseResponse>& seen);

/// In the notation of the files: "400 close"; for messages.
[[nodiscard]] std::string to_string(const CaseResponse& response);
[[nodiscard]] std::string to_string(const std::vector<CaseResponse>& responses);
[[nodiscard]] std::string to_string(CaseEnd end);
std::ostream& operator<<(std::ostream& out, const CaseResponse& response);
std::ostream& operator<<(std::ostream& out, CaseEnd end);

/// `octets` with all that isn't printable ASCII escaped, and shortened in the middle.
[[nodiscard]] std::string printable(std::string_view octets);

}  // namespace hello::test

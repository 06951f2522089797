// SPDX-License-Identifier: MIT
//
// fuzz_options: whatever the command line, the environment and the configuration file say,
// parse_options returns options within their limits, or an exit code with a message. Input: lines,
// each a word of the command line or a variable (HELLO_URING_PORT=1); behind an empty line the
// file. Nothing but that file is ever read: words that name another one are left out.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "fuzz_target.h"
#include "options.h"
#include "support/temp_folder.h"
#include "unit/support/captured_stream.h"

namespace hello::test {
namespace {

/// One file, whose content is replaced for each run.
class ConfigFile {
public:
    ConfigFile()
        : path_(folder_.write("hello.toml", "").string()),
          fd_(::open(path_.c_str(), O_WRONLY | O_CLOEXEC)) {
        check(fd_ >= 0);
    }
    ConfigFile(const ConfigFile&) = delete;
    ConfigFile& operator=(const ConfigFile&) = delete;
    ~ConfigFile() { ::close(fd_); }

    void fill(std::string_view text) const {
        check(::ftruncate(fd_, 0) == 0);
        check(::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    static void check(bool done) {
        if (!done) {
            throw std::system_error(errno, std::generic_category(), "the configuration file");
        }
    }

    TempFolder folder_;
    std::string path_;
    int fd_;
};

/// A variable of the environment while it lives. putenv, for setenv never gives memory back.
class Variable {
public:
    explicit Variable(std::string line) : line_(std::move(line)) { ::putenv(line_.data()); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    ~Variable() { ::unsetenv(line_.substr(0, line_.find('=')).c_str()); }

private:
    std::string line_;
};

/// What the input says, taken apart.
struct Sources {
    std::vector<std::string> words{"hello-uring"};
    std::deque<Variable> variables;
};

void add_line(const std::string& line, Sources& sources) {
    const bool is_variable =
        line.starts_with("HELLO_URING_") && line.find('=') != std::string::npos;
    if (line.starts_with("--config") || line.starts_with("HELLO_URING_CONFIG=")) {
        return;
    }
    if (is_variable) {
        sources.variables.emplace_back(line);
    } else {
        sources.words.push_back(line);
    }
}

Sources read_sources(std::string_view text) {
    static const ConfigFile kConfig;
    Sources sources;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string line(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty()) {
            kConfig.fill(text);
            sources.words.insert(sources.words.end(), {"--config", kConfig.path()});
            break;
        }
        add_line(line, sources);
    }
    return sources;
}

bool is_one_of(const std::string& value, const std::vector<std::string_view>& values) {
    return std::ranges::find(values, value) != values.end();
}

std::string judge(const Options& options) {
    constexpr std::uint32_t kDay = 86400;
    const ServerConfig& server = options.server;
    const Timeouts& times = server.timeouts;
    const bool timeouts_right = std::max({times.header_s, times.body_s, times.idle_s, times.write_s,
                                          times.drain_s}) <= kDay;
    const bool header_right = std::ranges::none_of(
        server.server_header, [](unsigned char octet) { return octet < 0x20 || octet == 0x7F; });
    const std::array<std::pair<bool, const char*>, 10> checks{{
        {timeouts_right, "timeouts"},
        {header_right, "server-header"},
        {options.threads >= 0 && options.threads <= 1024, "threads"},
        {server.connections_max <= ServerConfig::kConnectionsLimit, "max-connections"},
        {server.busy_poll_us <= 1'000'000, "busy-poll"},
        {server.body.size() <= std::size_t{64} * 1024, "body"},
        {server.limits.head_bytes_max >= 1024 && server.limits.head_bytes_max <= 1 << 20,
         "max-header-bytes"},
        {options.listen.backlog >= 1, "backlog"},
        {is_one_of(options.log_format, {"text", "json"}), "log-format"},
        {is_one_of(options.log_level,
                   {"trace", "debug", "info", "warn", "error", "critical", "off"}),
         "log-level"},
    }};
    for (const auto& [right, name] : checks) {
        if (!right) {
            return std::string(name) + " is out of its limits";
        }
    }
    return "";
}

}  // namespace

void run_once(FuzzInput input) {
    const Sources sources = read_sources(input.rest());
    std::vector<const char*> arguments;
    for (const std::string& word : sources.words) {
        arguments.push_back(word.c_str());
    }
    const CapturedStream out(std::cout);
    const CapturedStream err(std::cerr);
    const ParsedOptions parsed =
        parse_options(static_cast<int>(arguments.size()), arguments.data());
    if (!parsed.exit_code) {
        report(out.text().empty() && err.text().empty() ? "" : "a message, though all is well");
        report(judge(parsed.options));
    } else {
        const bool usage = *parsed.exit_code == 2 && out.text().empty() && !err.text().empty();
        const bool shown = *parsed.exit_code == 0 && !out.text().empty() && err.text().empty();
        report(usage || shown ? "" : "exit code and message don't belong together");
    }
}

}  // namespace hello::test

// SPDX-License-Identifier: MIT
//
// make_corpus FOLDER: what the fuzz targets begin with, made from tests/cases and from a few
// configurations, into a folder per target.

#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/case_file.h"

namespace hello::test {
namespace {

/// Longer ones are slow; limits are met by small ones, too, where the target asks for it.
constexpr std::size_t kInputMax = 4096;

constexpr std::string_view kConfigurations[] = {
    "--port\n8080\n",
    "-p\n0\n-t\n2\n--pin\n--share-port\n",
    "--host\n::1\n--body=Hi there\n--server-header=\n--backlog=7\n",
    "--threads=0\n",
    "--defer-accept\noff\n--engine\nio_uring\n--busy-poll\n50\n",
    "--max-connections\n9\n--max-header-bytes\n2048\n",
    "--log-level\ndebug\n--log-format\njson\n",
    "--check\n",
    "--check\nhttp://localhost:8080/\n",
    "--help\n",
    "--version\n",
    "--\nstray\n",
    "HELLO_URING_PORT=1\nHELLO_URING_PIN=true\n--port\n2\n",
    "HELLO_URING_SERVER_HEADER=\nHELLO_URING_BODY=\nHELLO_URING_IDLE_TIMEOUT=\n",
    "\nport=8080\n",
    "--port=1\n\nport = 8080\nthreads = 2\npin = true\n# comment\n",
    "\n[hello-uring]\nbody = \"Hi\\n there\"\nserver-header = 'x'\n",
    "\nheader-timeout=1\nbody-timeout=2\nidle-timeout=3\nwrite-timeout=4\ndrain-timeout=5\n",
    "\nport=[1, 2, 3]\nno-such=1\n",
    "\nbody=[]\nserver-header=[1\n2]\n",
    "\n; comment\nlog-level=trace\nlog-format=text\n",
};

void write(const std::filesystem::path& path, const std::string& octets) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file << octets;
    if (!file.flush()) {
        throw std::runtime_error("cannot write " + path.string());
    }
}

void write_all(const std::filesystem::path& folder) {
    std::size_t index = 0;
    for (const std::string& name : list_case_files(HELLO_CASES_DIR)) {
        for (const Case& seed : load_cases(std::string(HELLO_CASES_DIR "/") + name)) {
            if (seed.input.size() > kInputMax) {
                continue;
            }
            const std::string file = std::to_string(index);
            const char choice = static_cast<char>(index % 8);
            ++index;
            write(folder / "fuzz_http_framing" / file, seed.input);
            write(folder / "fuzz_http_session" / file, choice + ("\7" + seed.input));
            // Bit 0 as above, and two sizes of pieces.
            const char splits = static_cast<char>(4 | (choice & 1));
            write(folder / "fuzz_http_session_splits" / file, splits + ("\5\1" + seed.input));
        }
    }
    for (const std::string_view configuration : kConfigurations) {
        write(folder / "fuzz_options" / std::to_string(index++), std::string(configuration));
    }
}

}  // namespace
}  // namespace hello::test

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: make_corpus FOLDER\n";
        return 2;
    }
    try {
        hello::test::write_all(argv[1]);
    } catch (const std::exception& error) {
        std::cerr << "make_corpus: " << error.what() << '\n';
        return 1;
    }
    return 0;
}

// SPDX-License-Identifier: MIT
//
// Mutator: input that is nearly right, from a seed, so that a failure comes again.

#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../support/case_file.h"

namespace hello::test {

/// Input that is nearly right: cases with a few octets changed.
class Mutator {
public:
    Mutator(std::vector<std::string> seeds, unsigned seed)
        : seeds_(std::move(seeds)), random_(seed) {}

    std::string next() {
        std::string octets = pick_seed();
        const std::size_t count = below(4);
        for (std::size_t index = 0; index < count && !octets.empty(); ++index) {
            mutate(octets);
        }
        return octets;
    }

    /// 0 to `bound` - 1.
    std::size_t below(std::size_t bound) { return random_() % bound; }

private:
    const std::string& pick_seed() { return seeds_[below(seeds_.size())]; }

    void mutate(std::string& octets) {
        static const std::vector<std::string> kWords{"\r\n",
                                                     "\n",
                                                     "\r",
                                                     " ",
                                                     "\t",
                                                     ":",
                                                     ",",
                                                     ";",
                                                     "\"",
                                                     "0",
                                                     "#",
                                                     "*",
                                                     "\r\n\r\n",
                                                     std::string(1, '\0'),
                                                     "\x80",
                                                     "\r\nHost: b",
                                                     "\r\nConnection: close",
                                                     "\r\nContent-Length: 3",
                                                     "\r\nTransfer-Encoding: chunked",
                                                     "\r\nExpect: 100-continue",
                                                     "\r\nUpgrade: x",
                                                     "\r\nConnection: upgrade, keep-alive",
                                                     " HTTP/1.0",
                                                     " HTTP/2.0",
                                                     "HEAD / HTTP/1.1\r\n",
                                                     "GET /\n",
                                                     "0\r\n\r\n",
                                                     "PRI * HTTP/2.0\r\n\r\n"};
        const std::size_t at = below(octets.size());
        const std::size_t size = 1 + below(std::min<std::size_t>(octets.size() - at, 16));
        switch (below(6)) {
            case 0: octets[at] = static_cast<char>(static_cast<unsigned char>(below(256))); break;
            case 1: octets.erase(at, size); break;
            case 2: octets.insert(at, octets.substr(at, size)); break;
            case 3: octets = octets.substr(0, at) + pick_seed(); break;
            default: octets.insert(at, kWords[below(kWords.size())]); break;
        }
    }

    std::vector<std::string> seeds_;
    std::mt19937 random_;
};

/// What the cases send, but for the long ones.
[[nodiscard]] inline std::vector<std::string> short_inputs() {
    std::vector<std::string> inputs;
    for (const std::string& name : list_case_files(HELLO_CASES_DIR)) {
        for (const Case& read : load_cases(std::string(HELLO_CASES_DIR "/") + name)) {
            if (read.input.size() <= 1024) {
                inputs.push_back(read.input);
            }
        }
    }
    return inputs;
}

}  // namespace hello::test

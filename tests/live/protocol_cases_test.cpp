// SPDX-License-Identifier: MIT
//
// Every case of tests/cases over TCP against the real server: one server for all, a connection of
// its own for each. Several run at once, since some must wait to see that nothing comes.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "../support/case_file.h"
#include "support/raw_client.h"
#include "support/server_process.h"

namespace hello::test {
namespace {

constexpr std::size_t kClients = 8;
constexpr Milliseconds kAnswerLimit = scaled(Milliseconds(5000));
constexpr Milliseconds kSilence = Milliseconds(100);
constexpr Milliseconds kPoll = Milliseconds(20);
constexpr Milliseconds kApart = Milliseconds(5);  // so that a piece arrives alone

/// Checks what every response must have, and says it in the notation of the case files.
CaseResponse describe(const Response& response) {
    const auto demand = [&](bool kept, const char* rule) {
        if (!kept) {
            throw std::runtime_error(std::string(rule) + ": " + printable(response.head));
        }
    };
    CaseResponse seen;
    seen.status = response.status;
    demand(response.version == "HTTP/1.1", "the version is HTTP/1.1");
    if (seen.is_interim()) {
        demand(response.headers.empty() && response.body.empty(), "100 has no fields");
        return seen;
    }
    demand(response.count("Date") == 1 && response.header("Date").size() == 29, "one Date");
    demand(response.count("Content-Length") == 1, "one Content-Length");
    demand(response.has("Allow") == (response.status == 405), "Allow belongs to 405");
    demand(response.count("Connection") <= 1, "at most one Connection");
    seen.head_only = response.body.empty() && response.header("Content-Length") != "0";
    demand(response.status != 200 || seen.head_only || response.body == kBody, "the body");
    const std::string connection = response.header("Connection");
    demand(connection.empty() || connection == "close" || connection == "keep-alive",
           "Connection says close or keep-alive");
    if (!connection.empty()) {
        seen.connection =
            connection == "close" ? ConnectionField::Close : ConnectionField::KeepAlive;
    }
    return seen;
}

/// One case on one connection.
class CaseRun {
public:
    CaseRun(std::uint16_t port, const Case& tested) : case_(tested), client_(port) {
        for (const CaseResponse& response : tested.responses) {
            if (!response.is_interim()) {
                methods_ += response.head_only ? 'H' : 'G';
            }
        }
        finals_left_ = methods_.size();
        methods_ += 'G';  // of the request that shows the connection to be open
    }

    /// What went wrong; empty where nothing did.
    std::string run(std::size_t cut_at) {
        if (cut_at != 0) {
            client_.send(std::string_view(case_.input).substr(0, cut_at));
            std::this_thread::sleep_for(kApart);
            sent_ = cut_at;
        }
        std::string failure = send_up_to_last_break();
        if (failure.empty()) {
            failure = finish();
        }
        if (failure.empty() && !matches(case_.responses, seen_)) {
            failure = "other responses";
        }
        return failure.empty() ? ""
                               : failure + "; expected " + to_string(case_.responses) + ", seen " +
                                     to_string(seen_);
    }

private:
    std::string send_up_to_last_break() {
        for (const CaseBreak& stop : case_.breaks) {
            client_.send(std::string_view(case_.input).substr(sent_, stop.offset - sent_));
            sent_ = stop.offset;
            if (stop.kind == CaseBreak::Kind::Wait) {
                if (!wait_for_response()) {
                    return "no response at {wait}";
                }
            } else if (!client_.silent_for(kSilence)) {
                return "a response at {pause}";
            }
        }
        return "";
    }

    /// An interim response is not what RawClient waits for, hence the short reads.
    bool wait_for_response() {
        const auto start = Clock::now();
        const std::size_t before = seen_.size();
        while (seen_.size() == before && since(start) < kAnswerLimit) {
            const Replies replies = client_.read(1, methods_, kPoll);
            take(replies);
            if (replies.end == End::Fin || replies.end == End::Reset) {
                break;
            }
        }
        return seen_.size() != before;
    }

    /// Sends the rest and sees how it ends.
    std::string finish() {
        const std::string_view rest = std::string_view(case_.input).substr(sent_);
        if (case_.end == CaseEnd::Closed) {
            const Replies replies = client_.exchange_to_end(rest, methods_, kAnswerLimit);
            take(replies);
            return judge_end(replies, End::Fin);
        }
        if (finals_left_ == 0) {
            client_.send(rest);
        } else {
            const Replies replies = client_.exchange(rest, finals_left_, methods_, kAnswerLimit);
            take(replies);
            if (std::string failure = judge_end(replies, End::Open); !failure.empty()) {
                return failure;
            }
        }
        return case_.end == CaseEnd::Open ? probe() : judge_silence();
    }

    /// The connection is open when a further request is answered as usual.
    std::string probe() {
        const Replies replies = client_.exchange(kGet, 1, methods_, kAnswerLimit);
        const bool usual = replies.responses.size() == 1 &&
                           describe(replies.responses.front()) == CaseResponse{200};
        return usual ? judge_end(replies, End::Open) : "a further request is not answered with 200";
    }

    std::string judge_silence() {
        return client_.silent_for(kSilence) ? "" : "something comes before the message is complete";
    }

    static std::string judge_end(const Replies& replies, End expected) {
        if (replies.end != expected) {
            return std::string("the connection ended with ") + to_string(replies.end) + ", not " +
                   to_string(expected);
        }
        return replies.leftover.empty() ? "" : "octets left over: " + printable(replies.leftover);
    }

    void take(const Replies& replies) {
        for (const Response& response : replies.responses) {
            seen_.push_back(describe(response));
            finals_left_ -= response.status >= 200 && finals_left_ > 0 ? 1 : 0;
        }
    }

    const Case& case_;
    RawClient client_;
    std::string methods_;  ///< see Methods: which responses have no content
    std::size_t finals_left_ = 0;
    std::size_t sent_ = 0;
    std::vector<CaseResponse> seen_;
};

/// Where to cut the input in two: before the empty line of its first head, else in the middle.
std::size_t cut_place(std::string_view input) {
    const std::size_t head_end = input.find("\r\n\r\n");
    return head_end == std::string_view::npos ? input.size() / 2 : head_end + 2;
}

/// `cut_at`: the octets before it are sent alone first.
std::string run_case(std::uint16_t port, const Case& tested, std::size_t cut_at = 0) {
    try {
        return CaseRun(port, tested).run(cut_at);
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::vector<Case> load_all_cases() {
    std::vector<Case> cases;
    for (const std::string& name : list_case_files(HELLO_CASES_DIR_DEFAULT)) {
        std::vector<Case> more = load_cases(std::string(HELLO_CASES_DIR_DEFAULT "/") + name);
        std::ranges::move(more, std::back_inserter(cases));
    }
    return cases;
}

/// Calls `run(case)` for all of them, several at once; the failures in the order of the cases.
template <typename Run>
std::vector<std::string> run_all(const std::vector<Case>& cases, Run run) {
    std::vector<std::string> failures(cases.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t index = next++; index < cases.size(); index = next++) {
            failures[index] = run(cases[index]);
        }
    };
    {
        std::vector<std::jthread> clients;
        for (std::size_t count = 0; count < kClients; ++count) {
            clients.emplace_back(work);
        }
    }
    return failures;
}

void check(const std::vector<Case>& cases, const std::vector<std::string>& failures) {
    for (std::size_t index = 0; index < cases.size(); ++index) {
        INFO(cases[index].label());
        INFO(printable(cases[index].input));
        CHECK(failures[index] == "");
    }
}

}  // namespace

TEST_CASE("The server answers every protocol case as it must", "[protocol]") {
    ServerProcess server;
    const std::vector<Case> cases = load_all_cases();
    REQUIRE(cases.size() >= 120);
    check(cases,
          run_all(cases, [&](const Case& tested) { return run_case(server.port(), tested); }));
    CHECK(server.stop() == 0);
}

TEST_CASE("The server answers protocol cases that come in two pieces", "[protocol]") {
    ServerProcess server;
    std::vector<Case> cases = load_all_cases();
    std::erase_if(cases, [](const Case& tested) {
        return !tested.breaks.empty() || tested.end == CaseEnd::WaitingHead ||
               tested.end == CaseEnd::WaitingBody;
    });
    check(cases, run_all(cases, [&](const Case& tested) {
              return run_case(server.port(), tested, cut_place(tested.input));
          }));
    CHECK(server.stop() == 0);
}

}  // namespace hello::test

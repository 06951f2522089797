// SPDX-License-Identifier: MIT
//
// Clients that ask and don't read. The server stops reading from them, so they cost it a bounded
// amount of memory and nobody else any time; and when they read at last, they get every answer.

#include <algorithm>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "support/latencies.h"
#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/swarm.h"

namespace hello::test {
namespace {

constexpr std::int64_t kAnswersOwedMax = 1024;
/// What may be read before the server can stop: io_uring's multishot receive fills 32 buffers of
/// 4 KiB without asking, and does so again before it learns that it is cancelled. Seen: 64.
constexpr std::int64_t kRequestsInBuffers = 128 * 4096 / static_cast<std::int64_t>(kGet.size());

/// The answers to all requests must be more than a socket can hold: that is 4 MB by default, and
/// some systems allow 16.
const std::string kLargeBody(1000, 'x');

std::int64_t owed(const Counters& counters, std::int64_t others) {
    const auto request_size = static_cast<std::int64_t>(kGet.size());
    const auto close_size = static_cast<std::int64_t>(kGetClose.size());
    return (counters["bytes_received"] - others * close_size) / request_size -
           (counters["requests"] - others);
}

/// How many of so many answers come. They are taken in parts, for all of them are 100 MB.
std::size_t read_answers(RawClient& client, std::size_t count) {
    std::size_t answered = 0;
    while (answered < count) {
        const std::size_t part = std::min<std::size_t>(count - answered, 1000);
        const Replies replies = client.read(part);
        answered += replies.responses.size();
        if (replies.responses.size() != part) {
            break;
        }
    }
    return answered;
}

}  // namespace

TEST_CASE("a client that pipelines a hundred thousand requests and reads nothing is not read from",
          "[live][hostile]") {
    ServerProcess server({"--threads", "1", "--body", kLargeBody});
    std::int64_t polite = 1;
    CHECK(probe(server.port()).failures() == 0);
    const long before = pss_kib(server.pid());
    long memory_kib = 0;

    ClientOptions small;
    small.receive_buffer_bytes = 4096;
    RawClient client(server.port(), small);
    const auto count = static_cast<std::size_t>(load(100000));
    const std::string pipeline = repeat(kGet, count);
    std::size_t sent = 0;
    Latencies others;
    // Until the kernel has taken nothing for 300 ms.
    for (auto taken_at = Clock::now(); since(taken_at) < Milliseconds(300);) {
        const std::size_t taken =
            client.send(std::string_view(pipeline).substr(sent), Milliseconds(1));
        taken_at = taken > 0 ? Clock::now() : taken_at;
        sent += taken;
        others.add(probe(server.port()));
        ++polite;
        memory_kib = std::max(memory_kib, pss_kib(server.pid()) - before);
    }
    const Counters stopped = server.counters();
    const std::int64_t answers_owed = owed(stopped, polite);
    INFO(figures("slow reader: " + std::to_string(sent / kGet.size()) + " of " +
                 std::to_string(count) + " requests sent, " + std::to_string(answers_owed) +
                 " answers owed, PSS +" + std::to_string(memory_kib) +
                 " KiB; others: " + others.summary()));
    // The rest is in the buffers of the kernel.
    CHECK(stopped["bytes_received"] < static_cast<std::int64_t>(sent));
    CHECK(answers_owed > kAnswersOwedMax);
    CHECK(answers_owed < kAnswersOwedMax + kRequestsInBuffers);
    CHECK(memory_kib < (kSlowBuild ? 16384 : 2048));
    check_served_at_once(others);

    // What was sent is answered, no more and no less; then the rest is, too.
    const std::size_t complete = sent / kGet.size();
    CHECK(read_answers(client, complete) == complete);
    CHECK(client.silent_for(Milliseconds(50)));
    const std::string_view rest = std::string_view(pipeline).substr(sent);
    CHECK(client.exchange(rest, count - complete).responses.size() == count - complete);
    client.close();
    CHECK(server.wait_quiet()["requests"] == static_cast<std::int64_t>(count) + polite);
}

TEST_CASE("twenty clients that pipeline and read nothing cost little memory and nobody's time",
          "[live][hostile]") {
    // HEAD and GET in turns: what is owed can't be kept as one number of equal answers.
    const std::string pipeline = repeat(std::string(kGet) + std::string(kHead), 50000);
    SwarmPlan plan;
    plan.count = 20;  // the kernel keeps 4 MB of answers for each
    plan.openings = {pipeline};
    plan.reads = false;
    plan.receive_buffer_bytes = 4096;
    ServerProcess server({"--threads", "2", "--write-timeout", "1", "--body", kLargeBody});
    CHECK(probe(server.port()).failures() == 0);
    const long before = pss_kib(server.pid());
    long memory_kib = 0;
    Latencies others;
    const auto deadline = Clock::now() + scaled(Milliseconds(10000));
    Swarm swarm(server.port(), plan);
    while (!swarm.all_ended() && Clock::now() < deadline) {
        others.add(probe(server.port()));
        memory_kib = std::max(memory_kib, pss_kib(server.pid()) - before);
    }
    const SwarmReport report = swarm.finish();
    INFO(figures("slow readers: " + report.summary() + ", PSS +" + std::to_string(memory_kib) +
                 " KiB; others: " + others.summary()));
    CHECK(swarm.all_ended());
    // 64 KiB for the rest of a send, and some octets for each answer owed.
    CHECK(memory_kib < static_cast<long>(plan.count) * 192 + (kSlowBuild ? 65536 : 2048));
    check_served(others);
    const Counters counters = server.wait_quiet();
    CHECK(counters["timeouts_write"] == static_cast<std::int64_t>(plan.count));
    CHECK(counters["connections_open"] == 0);
    CHECK(counters["slots_in_use"] == 0);
}

}  // namespace hello::test

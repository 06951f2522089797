// SPDX-License-Identifier: MIT
//
// The limits in size and number: below and at them a request is served, above them the right
// status is, and nothing a client sends costs more than the stated memory.

#include <sys/resource.h>

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/wait.h"

namespace hello::test {
namespace {

constexpr std::size_t kHeadLimit = 16384;
constexpr std::size_t kTargetLimit = 8192;
constexpr std::size_t kFieldLimit = 128;
constexpr std::size_t kChunkMetaLimit = 16384;

/// The status of the only answer; 0 when there is none or more than one.
int status_of(ServerProcess& server, const std::string& bytes) {
    RawClient client(server.port());
    const Replies replies = client.exchange(bytes, 1);
    const bool kept = replies.end == End::Open && replies.leftover.empty();
    return kept && replies.responses.size() == 1 ? replies.responses[0].status : 0;
}

/// A head of exactly that many bytes, empty line included, in fields of about 1,000 bytes.
std::string head_of(std::size_t size) {
    std::string head(kGet.substr(0, kGet.size() - 2));
    const std::size_t wanted = size - 2;
    while (head.size() < wanted) {
        const std::size_t left = wanted - head.size();
        // A field takes at least 5 bytes ("X: " and the line end), so never leave fewer.
        const std::size_t field = left > 1010 ? 1000 : left;
        head += "X: " + std::string(field - 5, 'x') + "\r\n";
    }
    return head + "\r\n";
}

std::string target_of(std::size_t size) {
    return "GET /" + std::string(size - 1, 'u') + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

/// A head with that many fields, Host included.
std::string fields_of(std::size_t count) {
    std::string head(kGet.substr(0, kGet.size() - 2));
    for (std::size_t index = 1; index < count; ++index) {
        head += "X" + std::to_string(index) + ": y\r\n";
    }
    return head + "\r\n";
}

std::string chunked_with_extension(std::size_t size) {
    return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;n=" +
           std::string(size, 'e') + "\r\nhello\r\n0\r\n\r\n";
}

std::string chunked_with_trailer(std::size_t size) {
    return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
           "T: " +
           std::string(size, 't') + "\r\n\r\n";
}

/// Served up to `below`, refused with `refusal` from `above` on, and in between changes only once.
void check_edge(ServerProcess& server,
                const std::function<std::string(std::size_t)>& make,
                std::size_t below,
                std::size_t above,
                int refusal) {
    bool refused = false;
    for (std::size_t size = below; size <= above; ++size) {
        const int status = status_of(server, make(size));
        refused = refused || status == refusal;
        INFO("size " << size << ": status " << status);
        REQUIRE(status == (refused ? refusal : 200));
        REQUIRE((size != below || !refused));
    }
    CHECK(refused);
}

}  // namespace

TEST_CASE("a head up to the default limit is served and a larger one gets 431", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    CHECK(status_of(server, head_of(8000)) == 200);
    CHECK(status_of(server, head_of(kHeadLimit / 2)) == 200);
    check_edge(server, head_of, kHeadLimit - 4, kHeadLimit + 4, 431);
    CHECK(status_of(server, head_of(kHeadLimit * 2)) == 431);
}

TEST_CASE("The option --max-header-bytes moves the limit of the head", "[live][limits]") {
    ServerProcess server({"--threads", "1", "--max-header-bytes", "2048"});
    check_edge(server, head_of, 2048 - 4, 2048 + 4, 431);
    CHECK(status_of(server, head_of(kHeadLimit)) == 431);
    ServerProcess large({"--threads", "1", "--max-header-bytes", "65536"});
    CHECK(status_of(large, head_of(60000)) == 200);
    CHECK(status_of(large, head_of(70000)) == 431);
}

TEST_CASE("a target up to 8 KiB is served and a longer one gets 414", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    CHECK(status_of(server, target_of(8000)) == 200);
    check_edge(server, target_of, kTargetLimit - 2, kTargetLimit + 2, 414);
    CHECK(status_of(server, target_of(kTargetLimit)) == 200);
    CHECK(status_of(server, target_of(kTargetLimit + 1)) == 414);
}

TEST_CASE("128 fields are served and 129 get 431", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    CHECK(status_of(server, fields_of(100)) == 200);
    CHECK(status_of(server, fields_of(kFieldLimit - 1)) == 200);
    CHECK(status_of(server, fields_of(kFieldLimit)) == 200);
    CHECK(status_of(server, fields_of(kFieldLimit + 1)) == 431);
    CHECK(status_of(server, fields_of(1000)) == 431);
}

TEST_CASE("a single field of 7 KiB is served", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    CHECK(status_of(server, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(7168, 'v') +
                                "\r\n\r\n") == 200);
    CHECK(status_of(server, "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(7168, 'n') +
                                ": v\r\n\r\n") == 200);
}

TEST_CASE("a megabyte in any place of the head is refused", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    const std::string megabyte(1'000'000, 'x');
    CHECK(status_of(server, "GET / HTTP/1.1\r\nHost: a\r\nX: " + megabyte + "\r\n\r\n") == 431);
    CHECK(status_of(server, "GET / HTTP/1.1\r\nHost: a\r\n" + megabyte + ": x\r\n\r\n") == 431);
    CHECK(status_of(server, "GET /" + megabyte + " HTTP/1.1\r\nHost: a\r\n\r\n") == 414);
    const int method = status_of(server, megabyte + " / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK((method == 400 || method == 431 || method == 501));
}

TEST_CASE("endless heads cost no memory", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    CHECK(status_of(server, std::string(kGet)) == 200);
    const long before = pss_kib(server.pid());
    const std::string endless = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(4'000'000, 'x');
    for (int index = 0; index < 5; ++index) {
        RawClient client(server.port());
        CHECK(client.exchange_to_end(endless).statuses() == "431");
    }
    const long growth = pss_kib(server.pid()) - before;
    INFO("PSS grew by " << growth << " KiB");
    CHECK(growth < (kSlowBuild ? 8192 : 2048));
}

TEST_CASE("chunk extensions and trailers are limited in sum", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    CHECK(status_of(server, chunked_with_extension(1000)) == 200);
    CHECK(status_of(server, chunked_with_extension(kChunkMetaLimit - 100)) == 200);
    CHECK(status_of(server, chunked_with_trailer(kChunkMetaLimit - 100)) == 200);
    for (const std::string& request :
         {chunked_with_extension(kChunkMetaLimit + 100),
          chunked_with_trailer(kChunkMetaLimit + 100), chunked_with_extension(1'000'000),
          chunked_with_trailer(1'000'000)}) {
        const int status = status_of(server, request);
        CHECK((status == 400 || status == 431));
    }

    // Many small ones count like a large one.
    const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string chunk = "1;n=" + std::string(100, 'e') + "\r\nx\r\n";
    CHECK(status_of(server, head + repeat(chunk, 100) + "0\r\n\r\n") == 200);
    const int status = status_of(server, head + repeat(chunk, 200) + "0\r\n\r\n");
    CHECK((status == 400 || status == 431));
    const std::string trailers = repeat("T: " + std::string(1000, 't') + "\r\n", 20);
    const int trailer_status = status_of(server, head + "0\r\n" + trailers + "\r\n");
    CHECK((trailer_status == 400 || trailer_status == 431));

    // Each message starts anew.
    RawClient client(server.port());
    for (int round = 0; round < 3; ++round) {
        const Replies replies = client.exchange(chunked_with_extension(10000), 1);
        CHECK(replies.statuses() == "200");
    }
}

TEST_CASE("many chunks without extensions are no reason to refuse", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    CHECK(status_of(server, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
                                repeat("1\r\nx\r\n", 100000) + "0\r\n\r\n") == 200);
}

TEST_CASE("empty lines before a request are skipped up to about a KiB", "[live][limits]") {
    ServerProcess server({"--threads", "1"});
    RawClient client(server.port());
    client.send("\r\n\r\n" + std::string(kGet) + "\r\n" + std::string(kGet));
    CHECK(client.read(2).statuses() == "200 200");
    CHECK(status_of(server, repeat("\r\n", 450) + std::string(kGet)) == 200);

    RawClient flooder(server.port());
    const Replies replies = flooder.exchange_to_end(repeat("\r\n", 500000));
    CHECK((replies.statuses() == "400" || replies.statuses().empty()));
    CHECK(replies.end != End::Timeout);
    CHECK(replies.elapsed < scaled(Milliseconds(3000)));
}

TEST_CASE("a client above --max-connections waits and is served when another leaves",
          "[live][limits]") {
    for (const char* threads : {"1", "2"}) {
        INFO(threads << " threads");
        ServerProcess server({"--threads", threads, "--max-connections", "4"});
        std::vector<RawClient> clients;
        for (int index = 0; index < 4; ++index) {
            clients.emplace_back(server.port());
            clients.back().send(kGet);
            REQUIRE(clients.back().read(1).statuses() == "200");
        }
        RawClient surplus(server.port());
        surplus.send(kGet);
        CHECK(surplus.silent_for(Milliseconds(400)));
        CHECK(server.counters()["connections_open"] <= 4);
        // Those who are in are served all the time.
        for (RawClient& client : clients) {
            client.send(kGet);
            CHECK(client.read(1).statuses() == "200");
        }
        clients.pop_back();
        CHECK(surplus.read(1, "G", scaled(Milliseconds(4000))).statuses() == "200");
        CHECK(server.wait_counters([](const Counters& now) {
            return now["connections_open"] == 4;
        })["connections_open"] == 4);
    }
}

TEST_CASE("clients above --max-connections are all served one after the other", "[live][limits]") {
    ServerProcess server({"--threads", "2", "--max-connections", "8"});
    std::vector<std::thread> threads;
    std::vector<int> served(50, 0);
    for (int& status : served) {
        threads.emplace_back([&] {
            RawClient client(server.port());
            client.send(kGetClose);
            const Replies replies = client.read_to_end();
            status = replies.responses.empty() ? 0 : replies.responses[0].status;
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(served == std::vector<int>(50, 200));
    CHECK(server.wait_quiet()["connections_accepted"] == 50);
}

TEST_CASE("a worker at --max-connections hears at once of room that another makes",
          "[live][limits]") {
    // It used to look again only once a second, so 12 clients waited a second for each answer.
    ServerProcess server({"--threads", "2", "--max-connections", "2"});
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    std::atomic<int> served{0};
    for (int thread = 0; thread < 12; ++thread) {
        threads.emplace_back([&] {
            for (int request = 0; request < 20; ++request) {
                RawClient client(server.port());
                client.send(kGetClose);
                served += client.read_to_end().statuses() == "200" ? 1 : 0;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(served == 240);
    CHECK(since(start) < scaled(Milliseconds(4000)));
}

TEST_CASE("out of descriptors the server neither spins nor floods the log, and recovers",
          "[live][limits]") {
    ServerProcess server({"--threads", "1", "--max-connections", "4"});
    std::vector<RawClient> clients;
    for (int index = 0; index < 4; ++index) {
        clients.emplace_back(server.port());
        REQUIRE(clients.back().exchange(kGet, 1).statuses() == "200");
    }
    CHECK(server.wait_counters(
              [](const Counters& now) { return now["accepts_paused"] > 0; })["accepts_paused"] > 0);
    for (int index = 4; index < 8; ++index) {
        clients.emplace_back(server.port());
        clients.back().send(kGet);
    }
    // The kernel looks at the limit when an accept is armed, and that happens after one of the four
    // ends. Below 3 there is no free descriptor, so that accept fails with EMFILE.
    rlimit before{};
    REQUIRE(prlimit(server.pid(), RLIMIT_NOFILE, nullptr, &before) == 0);
    const rlimit none{3, before.rlim_max};
    REQUIRE(prlimit(server.pid(), RLIMIT_NOFILE, &none, nullptr) == 0);
    clients[0].close();
    CHECK(server.wait_counters(
              [](const Counters& now) { return now["accept_errors"] > 0; })["accept_errors"] > 0);
    CHECK(clients[7].silent_for(Milliseconds(50)));

    const std::size_t lines_before = server.stderr_lines().size();
    const long ticks_before = cpu_ticks(server.pid());
    std::this_thread::sleep_for(Milliseconds(2000));
    const long ticks = cpu_ticks(server.pid()) - ticks_before;
    INFO(ticks << " ticks in two seconds");
    CHECK(ticks < 20);
    CHECK(server.stderr_lines().size() - lines_before < 5);
    clients[3].send(kGet);
    CHECK(clients[3].read(1).statuses() == "200");

    REQUIRE(prlimit(server.pid(), RLIMIT_NOFILE, &before, nullptr) == 0);
    for (std::size_t index = 4; index < 8; ++index) {
        CHECK(clients[index].read(1, "G", scaled(Milliseconds(4000))).statuses() == "200");
        clients[index - 3].close();
    }
    clients.clear();
    CHECK(server.wait_quiet()["connections_open"] == 0);
    CHECK(status_of(server, std::string(kGet)) == 200);
}

}  // namespace hello::test

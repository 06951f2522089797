// SPDX-License-Identifier: MIT
//
// What people met with other servers, and no other file shows: queues of the kernel that overflow
// or are forgotten after a burst, rings filled to the last entry, a FIN held back by a pending
// receive, CPUs that seem to wait for a disk.

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/file_descriptor.h"
#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/tool.h"
#include "support/wait.h"

namespace hello::test {
namespace {

constexpr Milliseconds kAtOnce = scaled(Milliseconds(500));

/// While it lives, this thread and the children it starts have a network of their own, whose
/// counters and tables show nothing of others.
class OwnNetwork {
public:
    OwnNetwork() : before_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
        REQUIRE(before_.open());
        if (unshare(CLONE_NEWNET) != 0) {
            SKIP("no network of its own for the test: that needs CAP_SYS_ADMIN");
        }
        const FileDescriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ifreq loopback{};
        std::string_view("lo").copy(static_cast<char*>(loopback.ifr_name), IFNAMSIZ - 1);
        loopback.ifr_flags = IFF_UP;
        REQUIRE(ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0);
    }
    ~OwnNetwork() { static_cast<void>(setns(before_.get(), CLONE_NEWNET)); }
    OwnNetwork(const OwnNetwork&) = delete;
    OwnNetwork& operator=(const OwnNetwork&) = delete;

private:
    FileDescriptor before_;
};

/// The counters "TcpExt:" of this network: a line of names, then one of values.
std::map<std::string, long> tcp_counters() {
    std::ifstream file("/proc/thread-self/net/netstat");
    std::map<std::string, long> result;
    for (std::string names, values; std::getline(file, names) && std::getline(file, values);) {
        std::istringstream name_words(names);
        std::istringstream value_words(values);
        std::string name;
        std::string value;
        name_words >> name;
        value_words >> value;
        while (name == "TcpExt:" && value_words >> value) {
            std::string counter;
            name_words >> counter;
            result[counter] = std::stol(value);
        }
    }
    return result;
}

/// For each IPv4 listener of this network, how many connections wait to be accepted.
std::vector<unsigned long> accept_queues() {
    constexpr const char* kListening = "0A";
    std::ifstream file("/proc/thread-self/net/tcp");
    std::vector<unsigned long> result;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string serial;
        std::string local;
        std::string remote;
        std::string state;
        std::string queues;
        words >> serial >> local >> remote >> state >> queues;
        if (state == kListening) {
            result.push_back(std::stoul(queues.substr(queues.find(':') + 1), nullptr, 16));
        }
    }
    return result;
}

void run_ab(const ServerProcess& server, int requests) {
    const ToolResult result = run_tool(
        {"ab", "-q", "-s", "20", "-n", std::to_string(requests), "-c", "1000", server.url()});
    INFO(result.all());
    CHECK(result.exit_code == 0);  // ab gives up at the first reset
}

/// How many threads of this machine count at this moment as waiting for a disk.
int threads_in_iowait() {
    std::ifstream file("/proc/stat");
    int count = 0;
    for (std::string word; file >> word;) {
        if (word == "procs_blocked") {
            file >> count;
        }
    }
    return count;
}

bool kernel_is_at_least(int major, int minor) {
    utsname kernel{};
    uname(&kernel);
    std::istringstream release(static_cast<const char*>(kernel.release));
    int seen_major = 0;
    int seen_minor = 0;
    char point = 0;
    release >> seen_major >> point >> seen_minor;
    return std::pair(seen_major, seen_minor) >= std::pair(major, minor);
}

std::vector<RawClient> connect_many(const ServerProcess& server, int count) {
    std::vector<RawClient> clients;
    clients.reserve(static_cast<std::size_t>(count));
    for (int index = 0; index < count; ++index) {
        clients.emplace_back(server.port());
    }
    return clients;
}

/// Each sends a request, then each reads; returns how many got a 200 and nothing else.
int ask_all(std::vector<RawClient>& clients) {
    for (RawClient& client : clients) {
        client.send(kGet);
    }
    int answered = 0;
    for (RawClient& client : clients) {
        const Replies replies = client.read(1);
        answered += replies.statuses() == "200" && replies.leftover.empty() ? 1 : 0;
    }
    return answered;
}

}  // namespace

TEST_CASE("a thousand connections at a time overflow no queue and are never aborted",
          "[live][field]") {
    require_tool("ab");
    const OwnNetwork network;
    ServerProcess server({"--threads", "2"});
    std::map<std::string, long> before = tcp_counters();
    run_ab(server, load(10000));
    static_cast<void>(server.wait_quiet());
    std::map<std::string, long> after = tcp_counters();
    // The last two: the server closed a socket that held unread octets.
    for (const char* name :
         {"ListenOverflows", "ListenDrops", "TCPAbortOnData", "TCPAbortOnClose"}) {
        INFO(name);
        REQUIRE(after.contains(name));
        CHECK(after[name] - before[name] == 0);
    }
}

TEST_CASE("after bursts of connections nobody waits in the queue of any listener",
          "[live][field]") {
    require_tool("ab");
    const OwnNetwork network;
    ServerProcess server({"--threads", "2"});
    for (int burst = 0; burst < 3; ++burst) {
        run_ab(server, load(4000));
    }
    REQUIRE(accept_queues().size() == 2);
    CHECK(wait_until([] { return std::ranges::max(accept_queues()) == 0; },
                     scaled(Milliseconds(2000))));
    std::vector<Milliseconds> times;
    for (int index = 0; index < 200; ++index) {
        RawClient client(server.port());
        const Replies replies = client.exchange_to_end(kGetClose);
        REQUIRE(replies.statuses() == "200");
        times.push_back(replies.elapsed);
    }
    std::ranges::nth_element(times, times.begin() + 100);
    CHECK(times[100] < scaled(Milliseconds(50)));
}

TEST_CASE("as many clients at once as a ring has entries, one less or more, are all answered",
          "[live][field]") {
    ServerProcess server({"--threads", "1"});
    for (const int count : {1023, 1024, 1025}) {
        INFO(count << " clients");
        std::vector<RawClient> clients = connect_many(server, count);
        CHECK(ask_all(clients) == count);
        server.signal(SIGSTOP);  // so that one turn of its loop finds the requests of all
        for (RawClient& client : clients) {
            client.send(kGet);
        }
        server.signal(SIGCONT);
        int answered = 0;
        for (RawClient& client : clients) {
            answered += client.read(1).statuses() == "200" ? 1 : 0;
        }
        CHECK(answered == count);
        clients.clear();
        static_cast<void>(server.wait_quiet());
    }
}

TEST_CASE("every thread serves, be there 1, 2, 16 or very many", "[live][field]") {
    // Each ring locks about 200 KiB, and who is not root may often lock 8 MiB only.
    const int many = geteuid() == 0 && !kSlowBuild ? 200 : 30;
    for (const int threads : {1, 2, 16, many}) {
        INFO(threads << " threads");
        ServerProcess server({"--threads", std::to_string(threads)});
        std::vector<RawClient> clients = connect_many(server, 2 * threads);
        int asked = 0;
        int answered = 0;
        while (asked < 1000) {
            answered += ask_all(clients);
            asked += 2 * threads;
        }
        CHECK(answered == asked);
        const std::vector<std::int64_t> each = server.counters().per_thread("requests");
        CHECK(each.size() == static_cast<std::size_t>(threads));
        CHECK(std::ranges::min(each) > 0);
        CHECK(server.stop() == 0);
    }
}

TEST_CASE("a connection that lasted gets its FIN with the last answer", "[live][field]") {
    // A pending receive holds a socket open beyond close(2). The clients keep their side open.
    ServerProcess server({"--threads", "1"});
    const std::size_t descriptors = open_descriptors(server.pid());
    std::vector<RawClient> clients = connect_many(server, 200);
    CHECK(ask_all(clients) == 200);
    CHECK(ask_all(clients) == 200);
    CHECK(open_descriptors(server.pid()) == descriptors + 200);
    int ended = 0;
    for (RawClient& client : clients) {
        const Replies replies = client.exchange_to_end(kGetClose);
        const bool well = replies.statuses() == "200" && replies.leftover.empty();
        ended += well && replies.end == End::Fin && replies.elapsed < kAtOnce ? 1 : 0;
    }
    CHECK(ended == 200);
    CHECK(server.wait_quiet()["connections_open"] == 0);
    CHECK(wait_until([&] { return open_descriptors(server.pid()) == descriptors; },
                     scaled(Milliseconds(2000))));
}

TEST_CASE("a server that waits for clients does not look as if it waited for a disk",
          "[live][field]") {
    if (!kernel_is_at_least(6, 15)) {
        SKIP("before Linux 6.15 who waits in io_uring counts as waiting for a disk");
    }
    constexpr int kThreads = 16;  // far more than wait for a disk on a busy machine
    ServerProcess server({"--threads", std::to_string(kThreads)});
    int samples_with_all = 0;
    for (int sample = 0; sample < 20; ++sample) {
        std::this_thread::sleep_for(Milliseconds(20));
        samples_with_all += threads_in_iowait() >= kThreads ? 1 : 0;
    }
    CHECK(samples_with_all < 5);
}

TEST_CASE("the log says once what serves", "[live][field]") {
    ServerProcess server({"--threads", "2"});
    CHECK(server.stop() == 0);
    const std::vector<std::string> features =
        engine_under_test() == "epoll"
            ? std::vector<std::string>{"epoll"}
            : std::vector<std::string>{"DEFER_TASKRUN", "COOP_TASKRUN", "interrupting"};
    std::int64_t lines = 0;
    for (const std::string& feature : features) {
        lines += std::ranges::count_if(server.stderr_lines(), [&](const std::string& line) {
            return line.find(feature) != std::string::npos &&
                   line.find("2 threads") != std::string::npos;
        });
    }
    INFO(server.stderr_text());
    CHECK(lines == 1);
}

TEST_CASE("The option --pin keeps to the allowed CPUs where these don't begin with 0",
          "[live][field]") {
    cpu_set_t allowed;
    REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    std::size_t last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &allowed)) {
        --last;
    }
    if (last == 0) {
        SKIP("there is no CPU but 0");
    }
    ServerOptions options;
    options.arguments = {"--pin", "--threads", "3"};
    options.before_exec = confined_to(last);
    ServerProcess server(options);
    for (const pid_t thread : thread_ids(server.pid())) {
        CHECK(status_field(thread, "Cpus_allowed_list") == std::to_string(last));
    }
    CHECK(server.stderr_text().find("cannot pin") == std::string::npos);
    std::vector<RawClient> clients = connect_many(server, 12);
    CHECK(ask_all(clients) == 12);
}

TEST_CASE("no request behind a head that is ambiguous or malformed is answered", "[live][field]") {
    ServerProcess server({"--threads", "1"});
    const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
    for (const std::string& head :
         {post + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          post + "Content-Length: 0\r\nContent-Length: 6\r\n\r\n",
          post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
          post + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
          post + "Content-Length: +5\r\n\r\nhello", post + "Content-Length: 5,5\r\n\r\nhello",
          post + "Content-Length: 0x5\r\n\r\nhello", post + "Content-Length:\r\n\r\n",
          std::string("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
          std::string("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
          std::string("GET / HTTP/1.1 X\r\nHost: a\r\n\r\n"),
          std::string("GET / HTTP/1.1\r\nHost: a\r\nName : v\r\n\r\n"),
          std::string("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"),
          std::string("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n"),
          std::string("GET / HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n", 35),
          std::string("GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n")}) {
        INFO(head);
        RawClient client(server.port());
        client.send(head + std::string(kGet));
        const Replies replies = client.read_to_end();
        CHECK(replies.statuses() == "400");
        CHECK(replies.leftover.empty());
        CHECK(replies.end == End::Fin);
    }
}

}  // namespace hello::test

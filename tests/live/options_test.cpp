// SPDX-License-Identifier: MIT
//
// The command line, the environment and the configuration file: what each option does, how mistakes
// are answered, and how the server deals with the port it is to listen on.

#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/proc.h"
#include "support/raw_client.h"
#include "support/server_process.h"
#include "support/tool.h"
#include "support/wait.h"

namespace hello::test {
namespace {

/// A file with that content, gone with the object.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& content) {
        static int serial = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("hello-live-" + std::to_string(getpid()) + "-" + std::to_string(++serial));
        std::ofstream(path_) << content;
    }
    ~TemporaryFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    [[nodiscard]] std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

/// A listener of the test on a loopback port, with or without SO_REUSEPORT.
struct Listener {
    FileDescriptor socket;
    std::uint16_t port = 0;
};

enum class PortSharing { No, Yes };

Listener make_listener(PortSharing sharing) {
    Listener listener{FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
    const int on = 1;
    if (sharing == PortSharing::Yes) {
        setsockopt(listener.socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(listener.socket.get(), generic, size) == 0);
    REQUIRE(listen(listener.socket.get(), 16) == 0);
    REQUIRE(getsockname(listener.socket.get(), generic, &size) == 0);
    listener.port = ntohs(address.sin_port);
    return listener;
}

Response get(std::uint16_t port, const std::string& address = "127.0.0.1") {
    ClientOptions options;
    options.address = address;
    RawClient client(port, options);
    Replies replies = client.exchange_to_end(kGetClose);
    REQUIRE(replies.statuses() == "200");
    CHECK(replies.leftover.empty());
    return replies.responses[0];
}

bool has_ipv6() {
    const FileDescriptor probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = IN6ADDR_LOOPBACK_INIT;
    return probe.open() &&
           bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// The CPUs that this process may use.
std::vector<std::size_t> allowed_cpus() {
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
    std::vector<std::size_t> result;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
            result.push_back(cpu);
        }
    }
    return result;
}

/// Fails with that exit code, one line on standard error that names `word`, nothing on stdout.
void check_refused(const ToolResult& result, int exit_code, const std::string& word) {
    INFO("stderr: " << result.err << "stdout: " << result.out);
    CHECK_FALSE(result.timed_out);
    CHECK(result.exit_code == exit_code);
    CHECK(lines_of(result.err).size() == 1);
    CHECK(result.err.find(word) != std::string::npos);
    CHECK(result.err.find("Success") == std::string::npos);
    CHECK(result.out.empty());
    CHECK(result.elapsed < scaled(Milliseconds(2000)));
}

ToolOptions with_environment(std::vector<std::pair<std::string, std::string>> environment) {
    ToolOptions options;
    options.environment = std::move(environment);
    return options;
}

}  // namespace

TEST_CASE("The option --help lists every option and exits 0", "[live][options]") {
    const ToolResult result = run_server({"--help"});
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    for (const char* option : {"--host",
                               "--port",
                               "--threads",
                               "--share-port",
                               "--pin",
                               "--body",
                               "--server-header",
                               "--backlog",
                               "--max-connections",
                               "--max-header-bytes",
                               "--header-timeout",
                               "--body-timeout",
                               "--idle-timeout",
                               "--write-timeout",
                               "--drain-timeout",
                               "--defer-accept",
                               "--busy-poll",
                               "--engine",
                               "--log-level",
                               "--log-format",
                               "--check",
                               "--version",
                               "--config"}) {
        INFO(option);
        CHECK(result.out.find(option) != std::string::npos);
    }
}

TEST_CASE("The option --version names the versions of everything and exits 0", "[live][options]") {
    const ToolResult result = run_server({"--version"});
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    for (const char* name : {"hello-uring", "liburing", "llhttp", "spdlog"}) {
        INFO(result.out);
        CHECK(result.out.find(name) != std::string::npos);
    }
}

TEST_CASE("bad usage exits 2 with one line that names the option", "[live][options]") {
    const std::vector<std::vector<std::string>> mistakes{
        {"--port", "70000"},
        {"--port", "abc"},
        {"--port", "-1"},
        {"--threads", "0"},
        {"--threads", "-1"},
        {"--threads", "two"},
        {"--threads", "100000"},
        {"--nonsense"},
        {"--engine", "kqueue"},
        {"--log-format", "xml"},
        {"--log-level", "loud"},
        {"--defer-accept", "maybe"},
        {"--header-timeout", "-1"},
        {"--body-timeout", "soon"},
        {"--idle-timeout", "-0.5"},
        {"--drain-timeout", "-1"},
        {"--max-header-bytes", "many"},
        {"--max-connections", "0"},
        {"--backlog", "0"},
        {"--busy-poll", "-1"},
        {"--body", std::string(65537, 'x')},
        {"--server-header", "a\r\nSet-Cookie: b"},
        {"--port"},
    };
    for (const std::vector<std::string>& mistake : mistakes) {
        INFO(mistake.front() << " " << mistake.back().substr(0, 40));
        check_refused(run_server(mistake), 2, mistake.front());
    }
    check_refused(run_server({"surplus"}), 2, "surplus");
}

TEST_CASE("a bad value in the environment exits 2 and is named", "[live][options]") {
    const ToolResult result = run_server({}, with_environment({{"HELLO_URING_PORT", "abc"}}));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(lines_of(result.err).size() == 1);
    const bool named = result.err.find("HELLO_URING_PORT") != std::string::npos ||
                       result.err.find("--port") != std::string::npos;
    CHECK(named);
}

TEST_CASE("an unresolvable host is one clear line", "[live][options]") {
    const ToolResult result = run_server({"--host", "no.such.host.invalid", "--port", "0"});
    INFO(result.err);
    CHECK((result.exit_code == 1 || result.exit_code == 2));
    CHECK(lines_of(result.err).size() == 1);
    CHECK(result.err.find("no.such.host.invalid") != std::string::npos);
}

TEST_CASE("options can be set by environment variables", "[live][options]") {
    const std::uint16_t port = free_port();
    ServerOptions options;
    options.add_address = false;
    options.environment = {{"HELLO_URING_PORT", std::to_string(port)},
                           {"HELLO_URING_HOST", "127.0.0.1"},
                           {"HELLO_URING_BODY", "from the environment"},
                           {"HELLO_URING_SERVER_HEADER", "env"},
                           {"HELLO_URING_THREADS", "3"}};
    ServerProcess server(options);
    CHECK(server.port() == port);
    const Response response = get(port);
    CHECK(response.body == "from the environment");
    CHECK(response.header("Server") == "env");
    CHECK(server.counters()["threads"] == 3);
}

TEST_CASE("options can be set by a configuration file", "[live][options]") {
    const std::uint16_t port = free_port();
    const TemporaryFile file("# a comment\nport=" + std::to_string(port) +
                             "\nthreads=2\nbody=\"from the file\"\nidle-timeout=5\n");
    ServerOptions options;
    options.add_address = false;
    options.arguments = {"--config", file.path(), "--host", "127.0.0.1"};
    ServerProcess server(options);
    CHECK(server.port() == port);
    CHECK(get(port).body == "from the file");
    CHECK(server.counters()["threads"] == 2);
}

TEST_CASE("a flag beats the environment and the environment beats the file", "[live][options]") {
    const TemporaryFile file("body=file\nserver-header=file\nthreads=3\n");
    ServerOptions options;
    options.arguments = {"--config", file.path(), "--body", "flag"};
    options.environment = {{"HELLO_URING_BODY", "environment"},
                           {"HELLO_URING_SERVER_HEADER", "environment"}};
    ServerProcess server(options);
    const Response response = get(server.port());
    CHECK(response.body == "flag");
    CHECK(response.header("Server") == "environment");
    CHECK(server.counters()["threads"] == 3);
}

TEST_CASE("an empty value in the environment means what an empty argument means",
          "[live][options]") {
    // CLI11 takes "--server-header=" for an option whose value is the next argument.
    ServerOptions options;
    options.arguments = {"--server-header=", "--threads", "1"};
    options.environment = {{"HELLO_URING_SERVER_HEADER", ""}, {"HELLO_URING_BACKLOG", ""}};
    ServerProcess server(options);
    CHECK_FALSE(get(server.port()).has("Server"));
    CHECK(server.counters()["threads"] == 1);
}

TEST_CASE("the environment can name the configuration file", "[live][options]") {
    const TemporaryFile file("body=\"from the file\"\n");
    ServerOptions options;
    options.environment = {{"HELLO_URING_CONFIG", file.path()}};
    ServerProcess server(options);
    CHECK(get(server.port()).body == "from the file");
}

TEST_CASE("threads that can't be started are an error that says so", "[live][options]") {
    // It used to end in std::terminate.
    ToolOptions options;
    options.before_exec = [] {
        const rlimit few{3, 3};
        const bool limited =
            setrlimit(RLIMIT_NPROC, &few) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
        if (!limited) {
            _exit(77);
        }
    };
    const ToolResult result = run_server({"--port", "0", "--threads", "30"}, options);
    if (result.exit_code == 77 || result.err.find("exec") != std::string::npos) {
        SKIP("the test may not become another user here, or that user may not run the server");
    }
    check_refused(result, 1, "thread");
}

TEST_CASE("a configuration file that is missing or wrong is refused and named", "[live][options]") {
    const ToolResult missing = run_server({"--config", "/no/such/file.conf"});
    check_refused(missing, 2, "/no/such/file.conf");
    const TemporaryFile unknown("nonsense=1\n");
    check_refused(run_server({"--config", unknown.path()}), 2, "nonsense");
    const TemporaryFile bad_value("port=abc\n");
    check_refused(run_server({"--config", bad_value.path()}), 2, "port");
}

TEST_CASE("The option --body sets the body, its length and that of HEAD", "[live][options]") {
    for (const std::string& body :
         {std::string("Hi"), std::string("Hello, World!\n"),
          std::string("\xC3\xA4\xF0\x9F\x98\x80 %s {} \\n"), std::string(65536, 'x')}) {
        INFO(body.substr(0, 20));
        ServerProcess server({"--threads", "1", "--body", body});
        const Response response = get(server.port());
        CHECK(response.body == body);
        CHECK(response.header("Content-Length") == std::to_string(body.size()));
        RawClient client(server.port());
        const Replies replies = client.exchange(std::string(kHead) + std::string(kGet), 2, "HG");
        REQUIRE(replies.statuses() == "200 200");
        CHECK(replies.responses[0].header("Content-Length") == std::to_string(body.size()));
        CHECK(replies.responses[1].body == body);
    }
}

TEST_CASE("an empty --body is an empty body", "[live][options]") {
    ServerProcess server({"--threads", "1", "--body", ""});
    const Response response = get(server.port());
    CHECK(response.header("Content-Length") == "0");
    CHECK(response.body.empty());
}

TEST_CASE("The option --server-header changes the Server field and empty leaves it out",
          "[live][options]") {
    ServerProcess changed({"--threads", "1", "--server-header", "another name/1.0"});
    CHECK(get(changed.port()).header("Server") == "another name/1.0");
    ServerProcess without({"--threads", "1", "--server-header", ""});
    CHECK_FALSE(get(without.port()).has("Server"));
    RawClient client(without.port());
    client.send("garbage\r\n\r\n");
    const Replies replies = client.read_to_end();
    REQUIRE(replies.statuses() == "400");
    CHECK_FALSE(replies.responses[0].has("Server"));
}

TEST_CASE("The option --threads gives that many worker threads", "[live][options]") {
    std::vector<std::size_t> totals;
    for (const int threads : {1, 3, 8}) {
        ServerProcess server({"--threads", std::to_string(threads)});
        const Counters counters = server.counters();
        CHECK(counters["threads"] == threads);
        CHECK(counters.per_thread("requests").size() == static_cast<std::size_t>(threads));
        totals.push_back(thread_ids(server.pid()).size());
        CHECK(get(server.port()).body == kBody);
        CHECK(server.stop() == 0);
    }
    CHECK(totals[1] - totals[0] == 2);
    CHECK(totals[2] - totals[0] == 7);
}

TEST_CASE("by default there is one thread per allowed CPU", "[live][options]") {
    const std::vector<std::size_t> cpus = allowed_cpus();
    ServerProcess all;
    CHECK(all.counters()["threads"] <= static_cast<std::int64_t>(cpus.size()));
    CHECK(all.counters()["threads"] >= 1);

    const std::size_t first = cpus.front();
    ServerOptions options;
    options.before_exec = confined_to(first);
    ServerProcess confined(options);
    CHECK(confined.counters()["threads"] == 1);
    CHECK(get(confined.port()).body == kBody);
}

TEST_CASE("The option --pin binds each worker to one allowed CPU", "[live][options]") {
    const std::size_t cpus = allowed_cpus().size();
    ServerProcess server({"--pin", "--threads", std::to_string(cpus)});
    std::set<std::string> lists;
    for (const pid_t thread : thread_ids(server.pid())) {
        const std::string list = status_field(thread, "Cpus_allowed_list");
        if (list.find_first_of(",-") == std::string::npos) {
            lists.insert(list);
        }
    }
    CHECK(lists.size() == cpus);
    CHECK(get(server.port()).body == kBody);
    // More threads than CPUs is no error.
    ServerProcess crowded({"--pin", "--threads", std::to_string(cpus + 3)});
    CHECK(get(crowded.port()).body == kBody);
}

TEST_CASE("the server serves with every switch of the accept and wait paths", "[live][options]") {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--defer-accept", "off"},
                                               {"--defer-accept", "on"},
                                               {"--busy-poll", "50"},
                                               {"--backlog", "16"},
                                               {"--engine", "io_uring"},
                                               {"--engine", "auto"},
                                               {"--log-level", "off"},
                                               {"--log-level", "debug"}}) {
        INFO(arguments[0] << " " << arguments[1]);
        ServerProcess server(arguments);
        CHECK(get(server.port()).body == kBody);
        CHECK(server.stop() == 0);
    }
}

TEST_CASE("a client that waits before it sends is served with either --defer-accept",
          "[waits][live][options]") {
    for (const char* defer : {"on", "off"}) {
        ServerProcess server({"--threads", "1", "--defer-accept", defer});
        RawClient client(server.port());
        CHECK(client.silent_for(Milliseconds(1500)));
        CHECK(client.exchange_to_end(kGetClose).statuses() == "200");
    }
}

TEST_CASE("The option --log-format json writes one JSON object per line",
          "[waits][live][options]") {
    ServerProcess server({"--threads", "1", "--log-format", "json", "--log-level", "debug"});
    RawClient client(server.port());
    client.send("\"garbage\" \\ \x01\x02 {}\r\n\r\n");
    CHECK(client.read_to_end().statuses() == "400");
    CHECK(server.counters()["responses_4xx"] == 1);
    CHECK(server.stop() == 0);
    std::size_t log_lines = 0;
    bool stopped = false;
    for (const std::string& line : server.stderr_lines()) {
        INFO(line);
        const Json json = Json::parse(line);
        if (json.has("engine")) {
            continue;  // the counters: one JSON object too, but no log line
        }
        ++log_lines;
        CHECK_FALSE(json.at("time").text.empty());
        CHECK_FALSE(json.at("level").text.empty());
        CHECK(json.at("message").kind == Json::Kind::String);
        stopped = stopped || json.at("message").text.find("stopped") != std::string::npos;
    }
    CHECK(log_lines >= 2);
    CHECK(stopped);
}

TEST_CASE("text log lines carry time and level", "[live][options]") {
    ServerProcess server({"--threads", "1"});
    CHECK(server.stop() == 0);
    const std::vector<std::string> lines = server.stderr_lines();
    REQUIRE(lines.size() >= 2);
    for (const std::string& line : lines) {
        INFO(line);
        CHECK(line.starts_with("["));
        CHECK(line.find("] [") != std::string::npos);
    }
    CHECK(lines.size() < 15);
}

TEST_CASE("The option --log-level error keeps a normal run silent", "[live][options]") {
    ServerProcess server({"--threads", "1", "--log-level", "error"});
    CHECK(get(server.port()).body == kBody);
    CHECK(server.stop() == 0);
    CHECK(server.stderr_text().empty());
}

TEST_CASE("the ready line is the only output on stdout", "[live][options]") {
    ServerProcess server;
    CHECK(get(server.port()).body == kBody);
    static_cast<void>(server.counters());
    CHECK(server.stop() == 0);
    CHECK(server.ready_line() == "listening on http://127.0.0.1:" + std::to_string(server.port()));
    CHECK(server.stdout_text() == server.ready_line() + "\n");
}

TEST_CASE("a closed stdout doesn't matter", "[live][options]") {
    ServerProcess server;
    server.close_stdout();
    CHECK(get(server.port()).body == kBody);
    CHECK(server.stop() == 0);
}

TEST_CASE("a port in use is an error that names it and leaves the other server alone",
          "[live][options][port]") {
    ServerProcess first;
    const std::string port = std::to_string(first.port());
    check_refused(run_server({"--host", "127.0.0.1", "--port", port}), 1, port);
    CHECK(get(first.port()).body == kBody);
    // The wildcard address overlaps too.
    check_refused(run_server({"--port", port}), 1, port);
    CHECK(get(first.port()).body == kBody);
    CHECK(first.stop() == 0);
}

TEST_CASE("a port in use is noticed whatever the other listener's options",
          "[live][options][port]") {
    for (const PortSharing sharing : {PortSharing::No, PortSharing::Yes}) {
        INFO((sharing == PortSharing::Yes ? "with" : "without") << " SO_REUSEPORT");
        const Listener other = make_listener(sharing);
        const std::string port = std::to_string(other.port);
        check_refused(run_server({"--host", "127.0.0.1", "--port", port}), 1, port);
    }
    // Even with the option, a listener that doesn't share its port can't be joined.
    const Listener exclusive = make_listener(PortSharing::No);
    const std::string port = std::to_string(exclusive.port);
    check_refused(run_server({"--host", "127.0.0.1", "--share-port", "--port", port}), 1, port);
}

TEST_CASE("The option --share-port joins a port, and the second server goes on alone",
          "[live][options][port]") {
    ServerProcess first({"--threads", "1", "--share-port", "--body", "first"});
    const std::string port = std::to_string(first.port());
    ServerProcess second({"--threads", "1", "--share-port", "--body", "second", "--port", port});
    CHECK(second.port() == first.port());
    std::set<std::string> bodies;
    for (int index = 0; index < 100 && bodies.size() < 2; ++index) {
        bodies.insert(get(first.port()).body);
    }
    CHECK(bodies == std::set<std::string>{"first", "second"});
    CHECK(first.stop() == 0);
    for (int index = 0; index < 20; ++index) {
        CHECK(get(second.port()).body == "second");
    }
    CHECK(second.stop() == 0);
}

TEST_CASE("a restart on the same port works at once", "[live][options][port]") {
    // Connections that the server closed first leave TIME_WAIT on its port.
    const std::string port = std::to_string(free_port());
    for (int start = 0; start < 4; ++start) {
        ServerProcess server({"--threads", "2", "--port", port});
        RawClient idle(server.port());
        CHECK(idle.exchange(kGet, 1).statuses() == "200");
        for (int index = 0; index < 20; ++index) {
            CHECK(get(server.port()).body == kBody);
        }
        CHECK(server.stop() == 0);
    }
}

TEST_CASE("The option --check tells by its exit code whether a server answers",
          "[live][options][check]") {
    ServerProcess server;
    const std::string port = std::to_string(server.port());
    const ToolResult good = run_server({"--check", server.url()});
    INFO(good.all());
    CHECK(good.exit_code == 0);
    const ToolResult by_port = run_server({"--host", "127.0.0.1", "--port", port, "--check"});
    INFO(by_port.all());
    CHECK(by_port.exit_code == 0);
    CHECK(server.stop() == 0);

    const ToolResult nobody = run_server({"--check", server.url()});
    INFO(nobody.all());
    CHECK(nobody.exit_code == 1);
    CHECK(lines_of(nobody.err).size() == 1);
    CHECK(nobody.elapsed < scaled(Milliseconds(2000)));
}

TEST_CASE("The option --check fails when nobody answers the connection",
          "[waits][live][options][check]") {
    const Listener silent = make_listener(PortSharing::No);
    const ToolResult result =
        run_server({"--check", "http://127.0.0.1:" + std::to_string(silent.port) + "/"});
    INFO(result.all());
    CHECK_FALSE(result.timed_out);
    CHECK(result.exit_code == 1);
}

TEST_CASE("by default both address families are served", "[live][options][host]") {
    if (!has_ipv6()) {
        SKIP("no IPv6 on this machine");
    }
    ServerOptions options;
    options.add_address = false;
    options.arguments = {"--port", "0"};
    ServerProcess server(options);
    CHECK(get(server.port(), "127.0.0.1").body == kBody);
    CHECK(get(server.port(), "::1").body == kBody);
}

TEST_CASE("The option --host limits the server to that address", "[live][options][host]") {
    ServerProcess v4({"--host", "127.0.0.1"});
    CHECK(get(v4.port()).body == kBody);
    CHECK(v4.ready_line().find("http://127.0.0.1:") != std::string::npos);
    CHECK_FALSE(RawClient::try_connect(v4.port(), {.address = "127.0.0.2"}));
    if (!has_ipv6()) {
        SKIP("no IPv6 on this machine");
    }
    CHECK_FALSE(RawClient::try_connect(v4.port(), {.address = "::1"}));
    ServerProcess v6({"--host", "::1"});
    CHECK(v6.ready_line().find("http://[::1]:") != std::string::npos);
    CHECK(get(v6.port(), "::1").body == kBody);
    CHECK_FALSE(RawClient::try_connect(v6.port(), {.address = "127.0.0.1"}));
}

TEST_CASE("The option --host takes a name", "[live][options][host]") {
    require_tool("curl");
    ServerProcess server({"--host", "localhost"});
    const ToolResult result =
        run_tool({"curl", "-s", "http://localhost:" + std::to_string(server.port()) + "/"});
    INFO(result.all());
    CHECK(result.exit_code == 0);
    CHECK(result.out == kBody);
}

}  // namespace hello::test

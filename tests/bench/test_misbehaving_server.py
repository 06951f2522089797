# SPDX-License-Identifier: MIT
"""The real ab, hey, wrk and h2load against a server that misbehaves: the problem gets its name,
and there is no number."""

import concurrent.futures
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from hellobench import invariants, parsers

SERVER = pathlib.Path(__file__).parent / "misbehaving_server.py"
REPORT = pathlib.Path(invariants.__file__).parent / "report.lua"
BODY = b"Hello World!"
LIMIT_S = 20

CONNECTIONS = 5
# -s and -t 1: seconds that the tool waits for an answer. h2load's -N is its time without traffic.
COMMANDS = {
    "ab": ["ab", "-s", "1", "-n", "100", "-c", "5"],
    "ab -k": ["ab", "-k", "-s", "1", "-n", "100", "-c", "5"],
    "ab -r": ["ab", "-r", "-s", "1", "-n", "100", "-c", "5"],
    "hey once": ["hey", "-t", "1", "-n", "5", "-c", "5"],
    "hey": ["hey", "-t", "1", "-n", "400", "-c", "5"],
    "wrk": ["wrk", "-t1", "-c5", "-d1s", "--timeout", "1s", "-s", str(REPORT)],
    "h2load": ["h2load", "--h1", "-t1", "-n", "100", "-c", "5", "-N", "1"],
}
LATE, KEPT, STATUS = "TIMEOUT_DISTORTED", "KEEPALIVE_MISMATCH", "WRONG_STATUS"
SIZE, SILENT, FAILED = "WRONG_SIZE", "NO_RESPONSE", "TOOL_FAILED"
# By mode: the problem that each tool has to be given, among others. None: no problem, or not tried.
TOOLS = ("ab", "ab -k", "hey", "wrk", "h2load")
EXPECTED = {
    "hang": (LATE, None, None, "HUNG", LATE),
    "hangsome": (LATE, None, LATE, "HUNG", LATE),
    "reset": (FAILED, None, KEPT, "ERRORS", "INCOMPLETE"),
    "reset_accept": (FAILED, None, "ERRORS", SILENT, "ERRORS"),
    "wrong_body": (SIZE, SIZE, SIZE, SIZE, SIZE),
    "short_body": (SIZE, SIZE, KEPT, "ERRORS", "ERRORS"),
    "503": (STATUS, STATUS, STATUS, STATUS, STATUS),
    "mixed": (STATUS, STATUS, STATUS, STATUS, STATUS),
    "no_response": (SILENT, SILENT, SILENT, SILENT, SILENT),
    "no_keepalive": (None, KEPT, KEPT, KEPT, KEPT),
    "dies": (FAILED, FAILED, "ERRORS", "ERRORS", "INCOMPLETE"),
    "slow_start": (FAILED, FAILED, "ERRORS", FAILED, "ERRORS"),
    "garbage": (STATUS, STATUS, SILENT, SILENT, SILENT),
    "chunked": (SIZE, SIZE, "SIZE_UNKNOWN", SIZE, SIZE),
    "nolen": (None, KEPT, "SIZE_UNKNOWN", "ERRORS", "ERRORS"),
    "closeN": (None, KEPT, KEPT, KEPT, KEPT),
    "var": (SIZE, SIZE, SIZE, SIZE, SIZE),
    "redirect": (STATUS, STATUS, STATUS, SIZE, STATUS),
}


class Misbehaving:
    """The server in a mode; `connections` is known once it has ended."""

    def __init__(self, mode, *options):
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER), mode, "0", *options], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.connections = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        rest, _ = self.process.communicate(timeout=LIMIT_S)
        self.connections = int(rest.split()[1]) if rest else None


def run(name, mode):
    """One command against one mode: (count of good answers, problems, parsed)."""
    argv = COMMANDS[name]
    keepalive = name not in ("ab", "ab -r")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with Misbehaving(mode, "--delay", "30" if mode == "slow_start" else "0") as server:
            url = f"http://127.0.0.1:{server.port}/"
            rc = subprocess.run([*argv, url], stdout=out, stderr=err, timeout=LIMIT_S).returncode
        out.seek(0), err.seek(0)
        parsed = parsers.parse(argv[0], out.read(), err.read(), rc)
    ok, problems = invariants.check(
        parsed, asked=parsers.expected_requests([*argv, url]), concurrency=CONNECTIONS,
        expected_body=BODY, response_bytes=112, keepalive=keepalive, min_seconds=0, rc=rc,
        passive_opens=server.connections, tool_timeout_s=1)
    return ok, problems, parsed


class RealTools(unittest.TestCase):
    def setUp(self):
        for tool in ("ab", "hey", "wrk", "h2load"):
            if shutil.which(tool) is None:
                self.skipTest(f"{tool} is not installed")

    def test_each_misbehaviour_gets_its_name_and_no_number(self):
        wanted = [(mode, name, code) for mode, expected in EXPECTED.items()
                  for name, code in zip(TOOLS, expected) if code is not None]
        # Most of the time passes in waiting: a few at once do not get in each other's way.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = pool.map(lambda case: run(case[1], case[0]), wanted)
            for (mode, name, code), (ok, problems, parsed) in zip(wanted, results):
                with self.subTest(mode=mode, tool=name):
                    self.assertIn(code, [problem.code for problem in problems])
                    self.assertIsNone(invariants.rate(parsed, ok, problems))

    def test_each_tool_has_a_number_with_a_server_that_behaves(self):
        for name in COMMANDS:
            with self.subTest(tool=name):
                self.assert_good(name, "ok")

    def test_what_is_no_misbehaviour_without_keep_alive_has_a_number(self):
        for mode in ("no_keepalive", "nolen", "closeN"):
            with self.subTest(mode=mode):
                self.assert_good("ab", mode)

    def assert_good(self, name, mode):
        ok, problems, parsed = run(name, mode)
        self.assertEqual([problem for problem in problems if problem.fatal], [])
        self.assertEqual(ok, parsed.requests.done)
        self.assertGreater(invariants.rate(parsed, ok, problems), 0)

    def test_ab_that_goes_on_after_resets_counts_each_once(self):
        ok, problems, parsed = run("ab -r", "reset")
        self.assertEqual((ok, parsed.requests.errors["read"]), (98, 2))
        self.assertIsNone(invariants.rate(parsed, ok, problems))

    def test_a_hang_of_all_requests_is_told_from_the_tools_own_time_limit(self):
        for name in ("ab -r", "hey once"):
            with self.subTest(tool=name):
                ok, problems, parsed = run(name, "hang")
                self.assertIn(LATE, [problem.code for problem in problems])
                self.assertIsNone(invariants.rate(parsed, ok, problems))


class TheServerItself(unittest.TestCase):
    def ask(self, server, request=b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as connection:
            connection.sendall(request)
            return connection.recv(4096)

    def test_it_counts_what_it_was_asked(self):
        with Misbehaving("ok") as server:
            self.assertIn(b"200 OK", self.ask(server))
            self.assertIn(b"200 OK", self.ask(server))
        self.assertEqual(server.connections, 2)

    def test_it_dies_after_the_answers_that_it_was_allowed(self):
        with Misbehaving("dies", "--after", "1") as server:
            self.assertIn(b"200 OK", self.ask(server))
            try:
                self.assertEqual(self.ask(server), b"")
            except ConnectionError:
                pass
            self.assertEqual(server.process.wait(LIMIT_S), 1)

    def test_slow_start_refuses_and_then_answers_503_and_then_200(self):
        with Misbehaving("slow_start", "--delay", "0.3") as server:
            seen = []
            while b"200" not in seen:
                try:
                    answer = self.ask(server).split()[1]
                except ConnectionRefusedError:
                    answer = b"refused"
                if answer not in seen:
                    seen.append(answer)
        self.assertEqual(seen, [b"refused", b"503", b"200"])


if __name__ == "__main__":
    unittest.main()

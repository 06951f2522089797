# SPDX-License-Identifier: MIT
"""The examination of the machine, on a made-up one and on this one."""

import contextlib
import io
import json
import os
import pathlib
import platform
import re
import socket
import tempfile
import types
import unittest
from unittest import mock

from hellobench import doctor

QUIET = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast 9000\nflags\t\t: fpu hypervisor sse\n",
    "proc/loadavg": "0.01 0.02 0.03 1/99 123\n",
    "proc/meminfo": "MemTotal:        4005392 kB\nMemFree: 1 kB\n",
    "proc/net/sockstat": "sockets: used 9\nTCP: inuse 5 orphan 0 tw 12 alloc 9 mem 1\n",
    "proc/pressure/cpu": "some avg10=0.50 avg60=0.00 avg300=0.00 total=1\n",
    "proc/stat": "cpu  100 0 100 1000 0 0 0 10 0 0\ncpu0 1\ncpu1 1\nintr 1\n",
    "proc/sys/net/core/somaxconn": "4096\n",
    "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    "proc/sys/net/ipv4/tcp_max_tw_buckets": "16384\n",
    "proc/sys/net/ipv4/tcp_tw_reuse": "2\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/cpu/smt/active": "0\n",
}
LATER = "cpu  100 0 110 1190 0 0 0 10 0 0\ncpu0 1\ncpu1 1\n"


class MadeUp(unittest.TestCase):
    def findings(self, strict=False, later=LATER, **changed):
        """{name: Finding} of the quiet machine with some files changed; None: not there."""
        with self.machine(later, changed) as machine:
            return {finding.name: finding for finding in doctor.examine(strict, machine)}

    @contextlib.contextmanager
    def machine(self, later, changed):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in (QUIET | changed).items():
                if text is not None:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text)
            machine = doctor.Machine(root, lambda _: (root / "proc/stat").write_text(later))
            machine.cgroup_method = lambda: "cgroup2"
            machine.io_uring = lambda: None
            machine.tuning = lambda: []
            machine.tool_versions = lambda: {"ab": "2.3", "wrk": None}
            yield machine

    def test_a_quiet_machine_lacks_only_what_is_not_installed(self):
        found = self.findings()
        machine_only = ("processors", "open files", "disk")  # Of the machine that runs the test.
        self.assertEqual([finding.name for finding in found.values()
                          if finding.verdict != "ok" and finding.name not in machine_only], ["wrk"])
        self.assertEqual(found["wrk"].advice, "sudo apt install wrk")
        self.assertEqual(found["busy now"].value, "0.1 cores, 0 % stolen")
        self.assertTrue(found["processors"].value.startswith("Fast 9000, "))

    def test_each_fault_is_found_with_an_advice(self):
        cpu = "sys/devices/system/cpu/"
        for name, path, text, words in (
                ("frequency governor", cpu + "cpu0/cpufreq/scaling_governor", "powersave", "cpupo"),
                ("turbo", cpu + "intel_pstate/no_turbo", "0", "heat"),
                ("SMT", cpu + "smt/active", "1", "--server-cpus"),
                ("CPU pressure", "proc/pressure/cpu", "some avg10=30.0 avg60=0", "stop what else"),
                ("load", "proc/loadavg", "64.0 1 1 1/9 9", "quiet"),
                ("ports of a client", "proc/sys/net/ipv4/ip_local_port_range", "50000 60000",
                 "sysctl -w net.ipv4.ip_local_port_range"),
                ("somaxconn", "proc/sys/net/core/somaxconn", "128", "sysctl -w net.core.somaxconn"),
                ("TIME_WAIT limit", "proc/sys/net/ipv4/tcp_max_tw_buckets", "512", "cut short"),
                ("tcp_tw_reuse", "proc/sys/net/ipv4/tcp_tw_reuse", "0", "tcp_tw_reuse=1"),
                ("in TIME_WAIT", "proc/net/sockstat", "TCP: inuse 1 tw 25000 alloc 1", "waits")):
            finding = self.findings(**{path: text})[name]
            self.assertEqual(finding.verdict, "warn", name)
            self.assertIn(words, finding.advice)

    def test_stolen_time_and_other_programs_are_seen_as_they_happen(self):
        stolen = self.findings(later="cpu  100 0 100 1150 0 0 0 60 0 0\ncpu0\ncpu1\n")["busy now"]
        self.assertEqual((stolen.verdict, stolen.value), ("warn", "0 cores, 25 % stolen"))
        busy = self.findings(later="cpu  200 0 100 1100 0 0 0 10 0 0\ncpu0\ncpu1\n")["busy now"]
        self.assertEqual((busy.verdict, busy.value), ("warn", "1 cores, 0 % stolen"))

    def test_what_is_not_there_is_never_a_fault(self):
        found = self.findings(**dict.fromkeys(QUIET))
        for name in ("frequency governor", "turbo", "SMT", "CPU pressure", "busy now", "load",
                     "ports of a client", "somaxconn", "in TIME_WAIT"):
            self.assertIn(found[name].value, ("unknown", "not visible"))
            self.assertEqual(found[name].verdict, "ok")

    def test_what_tune_verify_complains_of_is_a_finding_with_the_command_that_explains_it(self):
        with self.machine(QUIET["proc/stat"], {}) as machine:
            machine.tuning = lambda: [
                types.SimpleNamespace(key="net.core.somaxconn", current="128", compare="min",
                                      wanted="65535", good=False),
                types.SimpleNamespace(key="net.ipv4.tcp_syncookies", current="1", compare="exact",
                                      wanted="1", good=True)]
            found = {each.name: each for each in doctor.examine(machine=machine)}
        self.assertEqual(found["net.core.somaxconn"].value, "128")
        self.assertIn("at least 65535", found["net.core.somaxconn"].advice)
        self.assertIn("scripts/tune explain", found["net.core.somaxconn"].advice)
        self.assertNotIn("net.ipv4.tcp_syncookies", found)

    def test_garbage_is_unknown_and_never_an_exception(self):
        for garbage in ("", "\0 garbage %s", "1", "cpu  1\n"):
            found = self.findings(later=garbage, **dict.fromkeys(QUIET, garbage))
            self.assertEqual(found["in TIME_WAIT"].value, "unknown")
            with self.machine(garbage, dict.fromkeys(QUIET, garbage)) as machine:
                self.assertIsNone(doctor.environment(machine)["before"]["busy_cores"])

    def test_strict_makes_every_fault_bad(self):
        found = self.findings(strict=True, **{"proc/loadavg": "64.0 1 1 1/9 9"})
        self.assertEqual((found["load"].verdict, found["wrk"].verdict), ("bad", "bad"))

    def test_a_refused_io_uring_is_told_with_its_reason(self):
        machine = doctor.Machine()
        machine.io_uring = lambda: "Operation not permitted"
        value, verdict, advice = doctor.look_io_uring(machine)
        self.assertEqual((value, verdict), ("refused: Operation not permitted", "warn"))
        self.assertIn("io_uring_disabled", advice)


class ThisMachine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.machine = doctor.Machine()
        cls.machine._sleep = lambda _: None

    def test_it_can_be_examined_and_shown(self):
        findings = doctor.examine(machine=self.machine)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            doctor.show(findings)
        lines = out.getvalue().splitlines()
        self.assertTrue(all(finding.verdict in ("ok", "warn", "bad") for finding in findings))
        self.assertEqual(sum(line.startswith(("ok ", "warn ", "bad ")) for line in lines),
                         len(findings))

    def test_its_record_is_json_and_names_no_host_user_or_folder(self):
        record = doctor.environment(self.machine)
        text = json.dumps(record)
        for private in (socket.gethostname(), os.getcwd(), str(pathlib.Path.home())):
            if len(private) > 3 and private not in platform.version() + "docker debian linux":
                self.assertIsNone(re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text), private)
        self.assertNotIn("/", json.dumps(record["versions"]))
        self.assertEqual(record["ncpu"], os.cpu_count())
        self.assertEqual(set(record["sysctl"]), set(doctor.SYSCTLS))

    def test_a_tool_that_is_not_in_path_has_no_version(self):
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            self.assertEqual(doctor.Machine.tool_versions(), dict.fromkeys(doctor.TOOLS))

    def test_the_versions_are_read_from_what_the_tools_print(self):
        printed = {"ab": "This is ApacheBench, Version 2.3 <$Revision$>", "hey": "0.1.4-2+b4",
                   "wrk": "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer",
                   "h2load": "h2load nghttp2/1.52.0", "curl": "curl 7.88.1 (x86_64-pc-linux-gnu)"}
        for (tool, (_, pattern, _)), version in zip(
                doctor.TOOLS.items(), ("2.3", "0.1.4-2+b4", "4.1.0-3+b2", "1.52.0", "7.88.1")):
            self.assertEqual(re.search(pattern, printed[tool])[1], version)
        self.assertEqual(re.search(doctor.TOOLS["wrk"][1], "wrk 4.2.0 [epoll]")[1], "4.2.0")


if __name__ == "__main__":
    unittest.main()

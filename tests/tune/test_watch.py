# SPDX-License-Identifier: MIT
"""watch: counters read from files as the kernel writes them, and what is said about them."""

import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import unshared
from fake_machine import TUNE, Machine, machine
from hellotune import watch
from hellotune.watch import Snapshot, explain, load_table

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETSTAT = ("TcpExt: SyncookiesSent ListenOverflows TW\nTcpExt: 0 {0} 7\n"
           "IpExt: InOctets\nIpExt: 99\n")
OVERFLOW = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0), backlog=0)
clients = []
for _ in range(4):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(listener.getsockname())
    clients.append(client)
time.sleep(0.3)
"""


class Reading(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def take(self, **files):
        names = {"conntrack": "stat/nf_conntrack"}
        for name, text in files.items():
            Machine.put(self.root / "proc/self/net" / names.get(name, name), text)
        return Snapshot.take(root=self.root)

    def test_counters_have_the_names_that_nstat_gives_them(self):
        values = self.take(netstat=NETSTAT.format(3), snmp="Tcp: RtoMin ActiveOpens\nTcp: 200 5\n")
        self.assertEqual(values.values, {
            "TcpExtSyncookiesSent": 0, "TcpExtListenOverflows": 3, "TcpExtTW": 7,
            "IpExtInOctets": 99, "TcpRtoMin": 200, "TcpActiveOpens": 5})

    def test_all_cpus_are_added_up_and_read_as_hexadecimal(self):
        line = "0000000a 00000001 00000002 0 0 0 0 0 0 00000003 00000010 0 0 0 0\n"
        values = self.take(softnet_stat=line * 2).values
        self.assertEqual(values["SoftnetProcessed"], 20)
        self.assertEqual(values["SoftnetDropped"], 2)
        self.assertEqual(values["SoftnetFlowLimit"], 32)

    def test_conntrack_s_entries_stand_in_every_line_but_count_once(self):
        text = ("entries  clashres insert_failed drop\n00000010 00000001 00000000 00000002\n"
                "00000010 00000000 00000001 00000002\n")
        values = self.take(conntrack=text).values
        self.assertEqual((values["ConntrackEntries"], values["ConntrackDrop"],
                          values["ConntrackInsertFailed"]), (16, 4, 1))

    def test_sockets_are_gauges_by_protocol(self):
        values = self.take(sockstat="sockets: used 5\nTCP: inuse 1 orphan 0 tw 9 alloc 2 mem 3\n")
        self.assertEqual(values.values["SockTcpTw"], 9)

    def test_a_file_this_kernel_does_not_have_is_no_error(self):
        self.assertEqual(self.take().values, {})

    def test_a_difference_has_only_what_moved(self):
        before = self.take(netstat=NETSTAT.format(3))
        after = self.take(netstat=NETSTAT.format(10))
        self.assertEqual(after - before, {"TcpExtListenOverflows": 7})

    def test_the_namespace_of_another_process_can_be_read(self):
        Machine.put(self.root / "proc/123/net/netstat", NETSTAT.format(4))
        self.assertEqual(Snapshot.take(pid=123, root=self.root).values["TcpExtListenOverflows"], 4)


class Table(unittest.TestCase):
    def test_every_counter_of_the_table_exists_or_is_newer_than_this_kernel(self):
        rules = load_table(ROOT / "sysctl/watch.tsv")
        unknown = set(rules) - set(Snapshot.take().values)
        # Without connection tracking, and before 5.14, these are not there.
        unknown = {name for name in unknown
                   if not name.startswith(("Conntrack", "TcpExtTCPMigrate"))}
        self.assertEqual(unknown, set())

    def test_losses_come_first_and_small_movements_below_the_threshold_are_left_out(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write("# head\nA\tnote\t-\ta\nB\tloss\tx.y\tb\nC\tloss>10\t-\tc\n")
            file.flush()
            rules = load_table(file.name)
        found = explain({"A": 1, "B": 2, "C": 10, "D": 5}, rules)
        self.assertEqual([(m.counter, m.delta, m.is_loss) for m in found],
                         [("B", 2, True), ("A", 1, False)])
        self.assertEqual(len(explain({"C": 11, "A": -3}, rules)), 1)

    def test_a_bad_line_is_named(self):
        for line in ("A\tloss\tx\n", "A\tmaybe\tx\ty\n", "A\tloss>x\tx\ty\n",
                     "A\tloss\t-\ta\nA\tloss\t-\ta\n"):
            with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
                file.write(line)
                file.flush()
                with self.assertRaisesRegex(ValueError, ".tsv:[12]: expected counter"):
                    load_table(file.name)


class Running(unittest.TestCase):
    def setUp(self):
        self.machine = self.enterContext(machine())

    def watch(self, *arguments, prefix=()):
        return subprocess.run([*prefix, TUNE, "watch", *arguments], text=True, timeout=60,
                              env=self.machine.environment(), capture_output=True)

    def test_the_status_and_the_output_are_the_commands(self):
        done = self.watch("--", "sh", "-c", "echo said; exit 7")
        self.assertEqual((done.returncode, done.stdout), (7, "said\n"))

    def test_a_command_s_own_options_stay_its_own(self):
        done = self.watch("--strict", "--", "echo", "--strict", "--", "-n")
        self.assertEqual(done.stdout, "--strict -- -n\n")
        self.assertEqual(self.watch("echo", "--all").stdout, "--all\n")

    def test_a_signal_that_ends_the_command_shows_in_the_status(self):
        done = self.watch("--", "sh", "-c", "kill -TERM $$")
        self.assertEqual(done.returncode, 128 + signal.SIGTERM)

    def test_without_counters_it_does_not_say_that_none_moved(self):
        with mock.patch.object(watch, "read_lines", lambda path: []):
            said = self.machine.tune("watch", "--strict", "--", "true")
        self.assertEqual(said[0], 3, said)
        self.assertIn("is /proc mounted", said[1])

    def test_a_command_that_is_not_there(self):
        self.assertEqual(self.watch("--", "/no/such/command").returncode, 127)
        self.assertEqual(self.watch("--", "/").returncode, 126)

    def test_a_signal_to_us_reaches_the_command(self):
        running = self.machine.start("watch", "--", "sh", "-c",
                                     "trap 'echo got it; exit 3' TERM; echo ready; "
                                     "while :; do sleep 0.05; done")
        self.addCleanup(running.stdout.close)
        self.assertEqual(running.stdout.readline(), "ready\n")
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(30), 3)
        self.assertIn("got it", running.stdout.read())

    def test_a_full_accept_queue_is_a_loss_and_explained(self):
        if not shutil.which("ip"):
            self.skipTest("ip (iproute2) is not here")
        prefix = (*unshared.prefix("n", "self"), "sh", "-c",
                  "ip link set lo up && exec \"$@\"", "sh")
        command = ("--", sys.executable, "-c", OVERFLOW)
        done = self.watch("--strict", *command, prefix=prefix)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(done.stderr, r"LOSS TcpExtListenOverflows \+[0-9]+ \[net.core.somaxconn\]")
        self.assertEqual(self.watch(*command, prefix=prefix).returncode, 0)
        self.assertEqual(self.watch("--strict", "--", "true", prefix=prefix).returncode, 0)


if __name__ == "__main__":
    unittest.main()

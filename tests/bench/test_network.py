# SPDX-License-Identifier: MIT
"""The readers of the kernel's account of TCP: captured text, and sockets of our own."""

import os
import socket
import struct
import subprocess
import sys
import unittest
from unittest import mock

from hellobench import network
from waiting import wait_until

SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens InSegs
Tcp: 1 -1 25 53186971 751835187
"""
SOCKSTAT = """\
sockets: used 18
TCP: inuse 3 orphan 0 tw 636 alloc 3 mem 159
UDP: inuse 0 mem 0
"""
TCP = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "89 1 00000000788422ee 100 0 0 10 0\n"
    "   1: 0100007F:D1D1 0100007F:1F90 06 00000000:00000000 03:00001318 00000000     0        0 "
    "0 3 00000000d4ea5820\n"
    "   2: 0100007F:1F90 0100007F:D1D2 01 0000")
TCP6 = (
    "  sl  local_address                         remote_address                        st tx_queue "
    "rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000  1000        0 4711 1 00000000788422ee 100 0 0 10 0\n")


class Parsing(unittest.TestCase):
    def test_counters_have_the_name_of_their_protocol(self):
        found = network.parse_counters(SNMP)
        self.assertEqual(found["Tcp.PassiveOpens"], 53186971)
        self.assertEqual(found["Tcp.MaxConn"], -1)
        self.assertEqual(found["Ip.DefaultTTL"], 64)

    def test_sockstat_tells_sockets_in_time_wait_and_pages(self):
        found = network.parse_sockstat(SOCKSTAT)
        self.assertEqual((found["TCP.tw"], found["TCP.mem"]), (636, 159))

    def test_sockets_of_both_families_are_read_and_a_cut_line_is_not(self):
        self.assertEqual(network.parse_sockets(TCP), [(8080, 0, network.LISTEN, 89),
                                                      (53713, 8080, 6, 0)])
        self.assertEqual(network.parse_sockets(TCP6), [(80, 0, network.LISTEN, 4711)])

    def test_every_prefix_of_every_file_is_read_without_an_exception(self):
        for parse, text in ((network.parse_counters, SNMP), (network.parse_sockstat, SOCKSTAT),
                            (network.parse_sockets, TCP6)):
            for line_end in (end for end, char in enumerate(text) if char == "\n"):
                parse(text[:line_end])

    def test_messages_of_a_dump_are_counted_up_to_its_end(self):
        one = struct.pack("=IHHII", 18, 20, 2, 0, 0) + bytes(4)  # Padded to a multiple of four.
        end = struct.pack("=IHHIIi", 20, 3, 2, 0, 0, 0)
        self.assertEqual(network.count_messages(one * 3), (3, False))
        self.assertEqual(network.count_messages(one * 2 + end), (2, True))

    def test_an_error_in_a_dump_is_raised(self):
        with self.assertRaises(FileNotFoundError):
            network.count_messages(struct.pack("=IHHIIi", 36, 2, 0, 0, 0, -2) + bytes(16))


class OwnSockets(unittest.TestCase):
    def setUp(self):
        self.server = self.listen(socket.AF_INET, "127.0.0.1")
        self.port = self.server.getsockname()[1]

    def listen(self, family, host):
        try:
            server = socket.create_server((host, 0), family=family)
        except OSError as error:
            self.skipTest(f"{host}: {error}")
        self.addCleanup(server.close)
        return server

    def connect(self, server, count):
        for _ in range(count):
            client = socket.create_connection(server.getsockname()[:2], timeout=30)
            accepted, _ = server.accept()
            self.addCleanup(client.close)
            self.addCleanup(accepted.close)
        return client, accepted

    def test_a_listener_is_named(self):
        self.assertEqual([pid for pid, _ in network.listeners(self.port)], [os.getpid()])
        self.assertTrue(all(name for _, name in network.listeners(self.port)))

    def test_a_listener_of_another_process_and_of_ipv6_is_named(self):
        server = self.listen(socket.AF_INET6, "::1")
        with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE,
                              pass_fds=[server.fileno()]) as other:
            found = network.listeners(server.getsockname()[1])
            other.communicate(b"\n")
        self.assertEqual({pid for pid, _ in found}, {os.getpid(), other.pid})

    def test_a_listener_whose_process_cannot_be_seen_is_not_passed_over(self):
        with mock.patch.object(network, "descriptors", return_value=iter(())):
            self.assertEqual(network.listeners(self.port), [(None, "a process of another user")])

    def test_nobody_listens_on_a_port_that_is_only_connected_to(self):
        client, _ = self.connect(self.server, 1)
        self.assertEqual(network.listeners(client.getsockname()[1]), [])

    def test_connections_are_counted_once_and_at_the_server(self):
        self.connect(self.server, 30)
        self.assertEqual(network.established(self.port), 30)

    def test_connections_of_ipv6_are_counted(self):
        server = self.listen(socket.AF_INET6, "::1")
        self.connect(server, 3)
        self.assertEqual(network.established(server.getsockname()[1]), 3)

    def test_how_long_a_client_has_sent_nothing_is_told_for_each_connection(self):
        client, accepted = self.connect(self.server, 3)
        if not network.silences(self.port):
            self.skipTest("the kernel does not tell")
        wait_until(lambda: min(network.silences(self.port)) > 300)
        client.sendall(b"x")
        accepted.recv(1)
        ages = sorted(network.silences(self.port))
        self.assertEqual(len(ages), 3)
        self.assertLess(ages[0] + 200, ages[1])

    def test_without_sock_diag_the_files_are_counted(self):
        self.connect(self.server, 3)
        with mock.patch.object(network, "diag_count", side_effect=FileNotFoundError):
            self.assertEqual(network.established(self.port), 3)

    def test_accepting_and_time_wait_show_in_the_counters(self):
        before = network.counters()["Tcp.PassiveOpens"]
        client, accepted = self.connect(self.server, 5)
        self.assertGreaterEqual(network.counters()["Tcp.PassiveOpens"] - before, 5)
        client.close()
        accepted.close()
        wait_until(lambda: network.time_wait_count() >= 1)

    def test_settling_waits_for_a_connection_that_is_half_closed(self):
        client, accepted = self.connect(self.server, 1)
        client.close()  # FIN_WAIT2 here, CLOSE_WAIT there.
        waiting = {network.FIN_WAIT2, network.CLOSE_WAIT}
        wait_until(lambda: network.count(waiting, self.port) == 1)
        seconds, left = network.settle(0, timeout_s=0.1)
        self.assertGreaterEqual(seconds, 0.1)
        self.assertGreaterEqual(left, 1)

    def test_what_the_server_closed_is_not_waited_for_where_its_port_is_named(self):
        before = network.waiting(self.port)  # An earlier client may have had this number.
        client, accepted = self.connect(self.server, 1)
        accepted.close()
        client.close()
        wait_until(lambda: network.count({network.TIME_WAIT}, self.port) == 1)
        self.assertLessEqual(network.waiting(self.port), before)

    def test_what_the_client_closed_is_waited_for_where_its_server_s_port_is_named(self):
        before = network.waiting(self.port)
        client, accepted = self.connect(self.server, 1)
        client.close()
        accepted.close()
        wait_until(lambda: network.waiting(self.port) > before)

    def test_settling_takes_no_time_where_nothing_waits(self):
        seconds, _ = network.settle(10_000_000)
        self.assertLess(seconds, 5)


if __name__ == "__main__":
    unittest.main()

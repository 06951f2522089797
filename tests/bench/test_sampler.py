# SPDX-License-Identifier: MIT
"""What is seen of a run: costs, memory, connections and pauses; and what seeing costs."""

import math
import mmap
import os
import pathlib
import socket
import sys
import tempfile
import threading
import unittest
from unittest import mock

from hellobench import group, sampler
from waiting import wait_until

MB = 1 << 20
# Waits for a line, uses that many milliseconds of CPU, and says so.
WORKER = """
import sys, time
print("ready", flush=True)
while True:
    with open(sys.argv[1]) as orders:
        until = time.process_time() + int(orders.read()) / 1000
    while time.process_time() < until:
        sum(range(1000))
    print("done", flush=True)
"""
SHARING = f"""
import mmap, os, time
shared = mmap.mmap(-1, {50 * MB})
for page in range(0, len(shared), {mmap.PAGESIZE}):
    shared[page] = 1
if os.fork() == 0:
    sum(shared[page] for page in range(0, len(shared), {mmap.PAGESIZE}))
    print("ready", flush=True)
time.sleep(600)
"""


class Nobody:
    """A server whose processes are not known."""

    method = "tree"

    def pids(self):
        return []

    def usage(self):
        return group.Usage()


class SamplerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name, "out")
        self.orders = pathlib.Path(folder.name, "orders")
        os.mkfifo(self.orders)
        self.server, self.client = group.Group("server"), group.Group("client")
        for owner in (self.server, self.client):
            owner.__enter__()
            self.addCleanup(owner.close)

    def start(self, owner, program, *arguments):
        owner.start([sys.executable, "-S", "-E", "-c", program, *arguments], {}, None, self.out,
                    os.devnull)
        wait_until(lambda: self.out.read_text() == "ready\n")

    def work(self, milliseconds):
        done = self.out.read_text().count("done")
        self.orders.write_text(str(milliseconds))
        wait_until(lambda: self.out.read_text().count("done") > done)

    def watch(self, port=9, server=None):
        """A sampler that runs, and an event that is set each time it shows progress."""
        ticked = threading.Event()
        watch = sampler.Sampler(server or self.server, self.client, port, os.cpu_count(),
                                on_tick=lambda progress: ticked.set())
        watch.start()
        return watch, ticked

    def test_cost_per_request_is_what_the_server_used(self):
        self.start(self.server, WORKER, self.orders)
        watch, _ = self.watch()
        self.work(300)
        cpu, *_ = watch.stop(ok_requests=1000)
        self.assertAlmostEqual(cpu.server_us_per_req, 300, delta=30)
        self.assertLess(cpu.client_us_per_req, 10)
        self.assertGreater(cpu.server_cores, 0)
        self.assertLessEqual(cpu.server_cores, 1.05)
        self.assertAlmostEqual(cpu.max_thread, cpu.server_cores, delta=0.15)
        self.assertEqual(cpu.method, self.server.method)

    def test_costs_can_be_told_once_the_requests_were_counted(self):
        self.start(self.client, WORKER, self.orders)
        watch, _ = self.watch()
        self.work(200)
        cpu, *_ = watch.stop()
        self.assertIsNone(cpu.client_us_per_req)
        watch.per_request(100)
        self.assertAlmostEqual(cpu.client_us_per_req, 2000, delta=300)

    def test_an_idle_server_costs_nothing(self):
        self.start(self.server, WORKER, self.orders)
        watch, ticked = self.watch()
        ticked.wait(30)
        cpu, memory, _, noise = watch.stop()
        self.assertLess(cpu.server_cores, 0.005)
        self.assertEqual((memory.processes, memory.threads), (1, 1))
        self.assertIsNotNone(noise.harness_cores)

    def test_shared_memory_counts_once_in_pss_and_for_each_process_in_rss(self):
        self.start(self.server, SHARING)
        watch = sampler.Sampler(self.server, self.client, 9, os.cpu_count())
        rss, pss = watch.idle_memory()
        watch.start()
        _, memory, *_ = watch.stop()
        self.assertEqual((memory.rss_idle, memory.pss_idle), (rss, pss))
        for figure in (rss, memory.rss_peak):
            self.assertGreater(figure, 100 * MB)
        for figure in (pss, memory.pss_peak):
            self.assertGreater(figure, 50 * MB)
            self.assertLess(figure, 80 * MB)
        self.assertEqual(memory.processes, 2)

    def test_pss_is_unknown_where_one_process_may_not_be_read(self):
        self.start(self.server, SHARING)
        forbidden = f"/proc/{self.server.pids()[-1]}/smaps_rollup"

        def careful_open(path, *arguments, **options):
            if path == forbidden:
                raise PermissionError(path)
            return open(path, *arguments, **options)

        with mock.patch.object(sampler, "open", careful_open, create=True):
            watch, _ = self.watch()
            _, memory, *_ = watch.stop()
        self.assertIsNone(memory.pss_peak)
        self.assertGreater(memory.rss_peak, 100 * MB)

    def test_connections_to_the_port_are_seen(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            clients = [socket.create_connection(listener.getsockname(), timeout=30)
                       for _ in range(20)]
            watch, ticked = self.watch(port=listener.getsockname()[1])
            clients.append(socket.create_connection(listener.getsockname(), timeout=30))
            ticked.wait(30)
            _, _, network, _ = watch.stop(ok_requests=1)
            for client in clients:
                client.close()
        self.assertEqual(network.established_peak, 21)
        self.assertGreaterEqual(watch.passive_opens, 1)
        self.assertEqual(network.passive_opens_per_req, watch.passive_opens)

    def test_of_a_server_without_known_processes_nothing_is_made_up(self):
        watch, _ = self.watch(server=Nobody())
        cpu, memory, _, noise = watch.stop(ok_requests=1)
        unknown = (cpu.server_cores, cpu.server_us_per_req, cpu.max_thread, memory.rss_peak,
                   memory.pss_peak, memory.processes, noise.foreign_cores)
        self.assertEqual(set(unknown), {None})
        self.assertIsNotNone(cpu.system_us_per_req)

    def test_watching_costs_little(self):
        self.start(self.server, WORKER, self.orders)
        watch, ticked = self.watch()
        for _ in range(3):
            ticked.wait(30)
            ticked.clear()
        watch.stop()
        self.assertLess(watch.own_cores, 0.05)  # 0.004 was measured on a busy machine.


def looks(*busy_cores, step=0.2):
    """Looks at a machine with two processors that used that many of them from look to look."""
    found = [sampler.Look(0, 0, 0, 0, 0, 0, 0, 0, 0)]
    for cores in busy_cores:
        last = found[-1]
        found.append(sampler.Look(last.at + step, 0, 0, 0, 0, last.busy + cores * step, 0,
                                  last.all + 2 * step, 0))
    return found


def pause(*segments, step=0.2):
    totals = [sum(segments[:count]) for count in range(len(segments) + 1)]
    return sampler.longest_pause([(count * step, total) for count, total in enumerate(totals)])


class Figures(unittest.TestCase):
    def test_the_articles_figure_is_the_busiest_second_in_whole_per_cent(self):
        self.assertEqual(sampler.largest_share(looks(*[0.5] * 5, *[1.0] * 5, *[0.5] * 5)), 50)
        self.assertEqual(sampler.largest_share(looks(*[0] * 5, 2, *[0] * 5)), 20)
        self.assertIsInstance(sampler.largest_share(looks(*[0.333] * 6)), int)

    def test_a_run_of_less_than_a_second_has_no_such_figure(self):
        self.assertIsNone(sampler.largest_share(looks(1, 1, 1, 1)))

    def test_a_pause_in_mid_run_is_found_although_a_terminal_goes_on(self):
        self.assertAlmostEqual(pause(9000, 9000, *[3] * 8, 9000, 9000), 1.6)

    def test_a_pause_until_the_end_is_found(self):
        self.assertAlmostEqual(pause(9000, 9000, 9000, *[0] * 10), 2.0)

    def test_a_run_without_any_answer_is_one_pause(self):
        self.assertAlmostEqual(pause(*[0] * 10), 2.0)
        self.assertAlmostEqual(pause(600, *[0] * 10), 2.0)

    def test_a_slow_server_makes_no_pause_after_many_handshakes(self):
        self.assertAlmostEqual(pause(3000, *[12] * 20), 0.0)

    def test_a_pause_without_figures_is_unknown(self):
        self.assertIsNone(sampler.longest_pause([(0, 1), (1, None)]))
        self.assertIsNone(sampler.longest_pause([(0, 1)]))

    def test_steal_is_not_busy(self):
        busy, steal, total = sampler.parse_cpu_line("cpu  1 2 3 400 5 6 7 100 1 1\ncpu0 1\n")
        tick = sampler.TICK_SECONDS
        self.assertTrue(math.isclose(busy, 19 * tick))
        self.assertTrue(math.isclose(steal, 100 * tick))
        self.assertTrue(math.isclose(total, 524 * tick))

    def test_used_memory_leaves_out_the_kernels_caches(self):
        text = ("MemTotal:  1000 kB\nMemFree:  300 kB\nMemAvailable: 600 kB\nBuffers: 50 kB\n"
                "Cached: 200 kB\nSReclaimable: 30 kB\nHugePages_Total: 0\n")
        self.assertEqual(sampler.parse_used_memory(text), 420 * 1024)
        self.assertIsNone(sampler.parse_used_memory(""))

    def test_pss_is_read_in_bytes(self):
        self.assertEqual(sampler.parse_pss("55f-7ff ---p 0 00:00 0 [rollup]\nRss: 9 kB\n"
                                           "Pss:  7 kB\nPss_Anon: 1 kB\n"), 7168)


if __name__ == "__main__":
    unittest.main()

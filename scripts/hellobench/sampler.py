# SPDX-License-Identifier: MIT
"""Watches one measured run: what server, client and machine cost, hold and lose meanwhile.

A thread looks five times a second at what is cheap and once a second at what is not. Figures over
the window are differences of two looks at its ends, so they don't depend on the thread's luck; it
finds peaks and pauses. A figure that could not be read is None, never a part of a sum.
"""

import contextlib
import dataclasses
import os
import threading
import time

from hellobench import network
from hellobench.model import Cpu, Memory, Network, Noise

LOOK_SECONDS = 0.2
SLOW_EVERY = 5  # looks; from the first on, so that short runs have figures too
TICK_EVERY = 3  # looks; on_tick comes less than twice a second
ARTICLE_WINDOW_SECONDS = 1.0
# Of the usual traffic between two looks: below it nobody is answered. A terminal's own connection
# makes some segments too.
PAUSE_SHARE = 0.02
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Look:
    """Totals so far, in seconds, at one moment."""

    at: float
    server_user: float
    server_system: float
    client: float
    harness: float
    busy: float  # of all processors; without steal
    steal: float
    all: float
    segments: int | None  # TCP segments received, of the network namespace

    @property
    def server(self):
        return self.server_user + self.server_system


class Reader:
    """A file of /proc that is read again and again; "" once it can't be."""

    def __init__(self, path):
        self._fd = None
        with contextlib.suppress(OSError):
            self._fd = os.open(path, os.O_RDONLY)

    def read(self):
        if self._fd is not None:
            with contextlib.suppress(OSError):
                return os.pread(self._fd, 8192, 0).decode("ascii", "replace")
        return ""

    def close(self):
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class Processes:
    """Memory and threads of all processes of a group."""

    def __init__(self, group):
        self._group = group
        self._statm = {}
        self.pids = []

    def rss(self):
        """Bytes in RAM, shared ones once per process; looks which processes there are."""
        self.pids = self._group.pids()
        for pid in self._statm.keys() - set(self.pids):
            self._statm.pop(pid).close()
        for pid in set(self.pids) - self._statm.keys():
            self._statm[pid] = Reader(f"/proc/{pid}/statm")
        texts = [reader.read() for reader in self._statm.values()]
        return sum(int(text.split()[1]) for text in texts if text) * PAGE

    def pss(self):
        """Bytes in RAM, shared ones divided among those who share; None if one may not be read."""
        total = 0
        for pid in self.pids:
            try:
                with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
                    total += parse_pss(file.read())
            except (FileNotFoundError, ProcessLookupError):
                continue  # It has ended.
            except OSError:
                return None
        return total

    def thread_count(self):
        count = 0
        for pid in self.pids:
            with contextlib.suppress(OSError):
                count += os.stat(f"/proc/{pid}/task").st_nlink - 2
        return count

    def thread_seconds(self):
        """{(pid, tid): CPU time so far}"""
        found = {}
        for pid in self._group.pids():
            with contextlib.suppress(OSError):
                for tid in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
                        fields = file.read().rpartition(b")")[2].split()
                    found[pid, tid] = (int(fields[11]) + int(fields[12])) * TICK_SECONDS
        return found

    def close(self):
        while self._statm:
            self._statm.popitem()[1].close()


class Sampler:
    """start() and stop() enclose the window. After stop(), `passive_opens` is the count of
    connections that servers of the namespace accepted in it and `own_cores` what sampling took;
    `silences` has network.silences() of each slow look."""

    def __init__(self, server, client, port, ncpu, on_tick=None):
        self._server, self._client = server, client
        self._port, self._ncpu, self._on_tick = port, ncpu, on_tick
        self._processes = Processes(server)
        self._keepers = [Reader(f"/proc/{owner.keeper_pid}/schedstat")
                         for owner in (server, client) if hasattr(owner, "keeper_pid")]
        self._stat, self._snmp = Reader("/proc/stat"), Reader("/proc/net/snmp")
        self._sockstat, self._meminfo = Reader("/proc/net/sockstat"), Reader("/proc/meminfo")
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._stopping = threading.Event()
        self._looks, self._rss, self._pss = [], [], []
        self._process_counts, self._thread_counts = [], []
        self._established, self._tcp_pages, self._used = [], [], []
        self._idle = (None, None)
        self._window = None  # the looks at its ends
        self._cpu = self._network = None
        self.passive_opens = self.own_cores = None
        self.silences = []

    def idle_memory(self):
        """(RSS, PSS) of the server before the run; stop() has them in its Memory too."""
        rss = self._processes.rss()
        if self._processes.pids:
            self._idle = rss, self._processes.pss()
        return self._idle

    def start(self):
        self._load_before = os.getloadavg()[0]
        self._time_wait_before = network.time_wait_count()
        self._threads_before = self._processes.thread_seconds()
        self._counters_before = network.counters()
        self._psi_before = read_psi()
        self._looks.append(self._look())
        self._thread.start()

    def stop(self, ok_requests=None):
        """(Cpu, Memory, Network, Noise) of the window; without `ok_requests` per_request() may
        follow."""
        self._looks.append(last := self._look())
        self._stopping.set()
        psi, counters = read_psi(), network.counters()
        threads = self._processes.thread_seconds()
        self._thread.join()
        self._looks = sorted((look for look in self._looks if look.at <= last.at),
                             key=lambda look: look.at)
        self._look_at_memory()
        self._look_slowly(load=False)
        for reader in (*self._keepers, self._stat, self._snmp, self._sockstat, self._meminfo,
                       self._processes):
            reader.close()
        self._window = self._looks[0], last
        self._cpu = self._conclude_cpu(threads)
        self._network = self._conclude_network(counters)
        if ok_requests:
            self.per_request(ok_requests)
        return self._cpu, self._conclude_memory(), self._network, self._conclude_noise(psi)

    def per_request(self, ok_requests):
        """Fills in the costs per request of the Cpu and the Network that stop() returned."""
        first, last = self._window
        cpu = self._cpu
        cpu.client_us_per_req = (last.client - first.client) * 1e6 / ok_requests
        cpu.system_us_per_req = (last.busy - first.busy) * 1e6 / ok_requests
        if cpu.server_cores is not None:
            cpu.server_us_per_req = (last.server - first.server) * 1e6 / ok_requests
        if self.passive_opens is not None:
            self._network.passive_opens_per_req = self.passive_opens / ok_requests

    def _run(self):
        began = time.thread_time(), time.monotonic()
        count = 0
        while not self._stopping.wait(began[1] + (count + 1) * LOOK_SECONDS - time.monotonic()):
            self._looks.append(self._look())
            self._look_at_memory()
            if count % SLOW_EVERY == 0:
                self._look_slowly(load=True)
            count = max(count + 1, int((time.monotonic() - began[1]) / LOOK_SECONDS))
            if self._on_tick and count % TICK_EVERY == 0:
                self._on_tick(self._progress())
        self.own_cores = (time.thread_time() - began[0]) / (time.monotonic() - began[1])

    def _look(self):
        server, client = self._server.usage(), self._client.usage()
        busy, steal, all_ = parse_cpu_line(self._stat.read())
        keepers = sum(int((reader.read() or "0").split()[0]) for reader in self._keepers) / 1e9
        return Look(time.monotonic(), server.user_us / 1e6, server.system_us / 1e6,
                    (client.user_us + client.system_us) / 1e6, time.process_time() + keepers,
                    busy, steal, all_,
                    network.parse_counters(self._snmp.read()).get("Tcp.InSegs"))

    def _look_at_memory(self):
        self._rss.append(self._processes.rss())
        self._process_counts.append(len(self._processes.pids))

    def _look_slowly(self, load):
        """`load`: whether the client runs."""
        self._pss.append(self._processes.pss())
        self._thread_counts.append(self._processes.thread_count())
        if not load:
            return
        self.silences.append(network.silences(self._port))
        self._established.append(len(self.silences[-1]) or network.established(self._port))
        sockstat = network.parse_sockstat(self._sockstat.read())
        self._tcp_pages.append(sockstat.get("TCP.mem"))
        self._used.append(parse_used_memory(self._meminfo.read()))

    def _progress(self):
        before, now = self._looks[-1 - min(TICK_EVERY, len(self._looks) - 1)], self._looks[-1]
        seconds = now.at - before.at
        segments = None if None in (before.segments, now.segments) else (
            now.segments - before.segments) / seconds
        return {"seconds": now.at - self._looks[0].at, "segments_per_s": segments,
                "server_cores": (now.server - before.server) / seconds,
                "client_cores": (now.client - before.client) / seconds,
                "system_cores": (now.busy - before.busy) / seconds, "rss": self._rss[-1]}

    def _conclude_cpu(self, threads):
        first, last = self._window
        seconds = last.at - first.at
        cpu = Cpu(method=self._server.method, client_cores=(last.client - first.client) / seconds,
                  system_cores=(last.busy - first.busy) / seconds,
                  article_max_pct=largest_share(self._looks))
        if any(self._process_counts):
            used = last.server - first.server
            cpu.server_cores = used / seconds
            cpu.server_user_share = (last.server_user - first.server_user) / used if used else None
            cpu.max_thread = max((total - self._threads_before.get(thread, 0)
                                  for thread, total in threads.items()), default=0) / seconds
        return cpu

    def _conclude_memory(self):
        known = any(self._process_counts)
        return Memory(
            rss_idle=self._idle[0], pss_idle=self._idle[1],
            rss_peak=max(self._rss) if known else None,
            pss_peak=max(self._pss) if known and None not in self._pss else None,
            processes=max(self._process_counts) if known else None,
            threads=max(self._thread_counts) if known else None,
            tcp_pages_peak=largest(self._tcp_pages), article_used=largest(self._used))

    def _conclude_network(self, after):
        def grown(name):
            before = self._counters_before.get(name)
            return None if before is None or name not in after else after[name] - before

        self.passive_opens = grown("Tcp.PassiveOpens")
        return Network(
            established_peak=largest(self._established), retransmits=grown("Tcp.RetransSegs"),
            listen_overflows=grown("TcpExt.ListenOverflows"),
            listen_drops=grown("TcpExt.ListenDrops"),
            time_wait_overflows=grown("TcpExt.TCPTimeWaitOverflow"),
            estab_resets=grown("Tcp.EstabResets"), time_wait_before=self._time_wait_before,
            longest_pause_s=longest_pause([(look.at, look.segments) for look in self._looks]))

    def _conclude_noise(self, psi):
        first, last = self._window
        seconds = last.at - first.at
        harness = (last.harness - first.harness) / seconds
        noise = Noise(harness_cores=harness, load_before=self._load_before)
        if last.all > first.all:
            noise.steal_pct = 100 * (last.steal - first.steal) / (last.all - first.all)
        if None not in (psi, self._psi_before):
            noise.psi_cpu_pct = min(100, (psi - self._psi_before) / 1e6 / seconds * 100)
        if self._cpu.server_cores is not None:
            # Ticks against exact sums: a little less than nothing is nothing.
            noise.foreign_cores = max(0, self._cpu.system_cores - self._cpu.server_cores
                                      - self._cpu.client_cores - harness)
        return noise


def largest(values):
    return max((value for value in values if value is not None), default=None)


def largest_share(looks):
    """Whole per cent of the machine's time that were busy, in the busiest window of a second."""
    shares = []
    end = 0
    for look in looks:
        while end < len(looks) and looks[end].at < look.at + ARTICLE_WINDOW_SECONDS - 0.01:
            end += 1
        if end < len(looks) and looks[end].all > look.all:
            shares.append(100 * (looks[end].busy - look.busy) / (looks[end].all - look.all))
    return round(max(shares)) if shares else None


def longest_pause(progress):
    """The longest time, of (moment, segments so far) pairs, in which next to nothing came. A step
    counts as progress from PAUSE_SHARE of the usual step on. None without figures."""
    if len(progress) < 2 or any(total is None for _, total in progress):
        return None
    steps = [after[1] - before[1] for before, after in zip(progress, progress[1:], strict=False)]
    usual = sorted(steps)[int(0.9 * (len(steps) - 1))]  # Handshakes at the start are more.
    longest, since = 0.0, progress[0][0]
    for (at, _), step in zip(progress[1:], steps, strict=True):
        if step > 0 and step >= PAUSE_SHARE * usual:
            since = at
        longest = max(longest, at - since)
    return longest


def parse_cpu_line(stat):
    """(busy, steal, all) in seconds, of the first line of /proc/stat. Guests' time is in user."""
    values = [int(word) * TICK_SECONDS for word in stat.partition("\n")[0].split()[1:9]]
    user, nice, system, idle, iowait, irq, softirq, steal = values + [0] * (8 - len(values))
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + idle + iowait + steal


def parse_pss(smaps_rollup):
    for line in smaps_rollup.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0  # A process that is ending has no memory any more.


def parse_used_memory(meminfo):
    """Bytes in use as monitors show them: without the kernel's buffers and caches."""
    values = {}
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        values[name] = int(rest.split()[0]) * 1024
    if "MemTotal" not in values:
        return None
    return values["MemTotal"] - sum(values.get(name, 0) for name in
                                    ("MemFree", "Buffers", "Cached", "SReclaimable"))


def read_psi():
    """Microseconds in which some task waited for a processor, or None."""
    text = network.read("/proc/pressure/cpu")
    return int(text.partition("total=")[2].split()[0]) if "total=" in text else None

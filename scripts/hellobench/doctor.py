# SPDX-License-Identifier: MIT
"""What on this machine would spoil a measurement, and the record of the machine beside results.

It only looks: nothing is changed, nothing needs root, and what can't be seen is "unknown", never a
guess. The record has no name of the host, of a user or of a folder, so that it can be published.
"""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import time

from hellotune import compare, containers, kernel_keys, profiles

SAMPLE_SECONDS = 1.0
IO_URING_SETUP = 425  # The number of this system call on all architectures but Alpha.
NEEDED_NOFILE = 4096  # The largest profile opens 1024 connections; servers need some more.
TIME_WAIT_LIMIT = 2000
SYSCTLS = (
    "fs.file-max", "kernel.io_uring_disabled", "net.core.netdev_max_backlog", "net.core.somaxconn",
    "net.ipv4.ip_local_port_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets", "net.ipv4.tcp_rmem", "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_wmem")
# name: (command that tells the version, pattern, Debian package). hey can't tell it itself.
TOOLS = {
    "ab": (["ab", "-V"], r"Version (\S+)", "apache2-utils"),
    "hey": (["dpkg-query", "-W", "-f", "${Version}", "hey"], r"(\d\S*)", "hey"),
    "wrk": (["wrk", "-v"], r"wrk \S*?(\d\S*)", "wrk"),
    "h2load": (["h2load", "--version"], r"nghttp2/(\S+)", "nghttp2-client"),
    "curl": (["curl", "--version"], r"curl (\S+)", "curl")}


@dataclasses.dataclass(frozen=True)
class Finding:
    name: str
    value: str
    verdict: str  # "ok", "warn" (numbers may suffer) or "bad" (runs will fail)
    advice: str = ""


def examine(strict=False, machine=None):
    """A list of Finding. `strict`: whatever is not ok is bad."""
    machine = machine or Machine()
    found = []
    for name, look in EXAMINATIONS:
        finding = Finding(name, "unknown", "ok")
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            finding = Finding(name, *look(machine))
        if strict and finding.verdict == "warn":
            finding = dataclasses.replace(finding, verdict="bad")
        found.append(finding)
    missing = "bad" if strict else "warn"
    return found + tuning_findings(machine, missing) + tool_findings(machine, missing)


def show(findings):
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{finding.verdict:4}  {finding.name:{width}}  {finding.value}")
        if finding.advice and finding.verdict != "ok":
            print(f"{'':6}{'':{width}}    {finding.advice}")


def environment(machine=None):
    """The record of the machine for env.json."""
    machine = machine or Machine()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    busy, steal = machine.load_now() or (None, None)
    return {
        "kernel": platform.release(), "architecture": platform.machine(),
        "distribution": machine.distribution(), "python": platform.python_version(),
        "cpu": machine.cpu(), "ncpu": os.cpu_count(), "usable_cpus": len(os.sched_getaffinity(0)),
        "memory_kb": machine.memory_kb(), "virtualisation": machine.virtualisation(),
        "governor": machine.governor(), "turbo": machine.turbo(), "smt": machine.smt(),
        "cgroup_method": machine.cgroup_method(), "io_uring": machine.io_uring() or "allowed",
        "before": {"load_1m": machine.load(), "busy_cores": busy,
                   "steal_pct": steal, "psi_cpu_pct": machine.psi(),
                   "time_wait": machine.time_wait()},
        "limits": {"nofile_soft": soft, "nofile_hard": hard},
        "sysctl": {name: machine.sysctl(name) for name in SYSCTLS},
        "versions": machine.tool_versions()}


class Machine:
    """What /proc, /sys and a few commands say; None where they don't. `root` is for tests."""

    def __init__(self, root="/", sleep=time.sleep):
        self._root = pathlib.Path(root)
        self._sleep = sleep

    def text(self, path):
        try:
            return (self._root / path).read_text("utf-8", "replace").strip()
        except OSError:
            return None

    def after(self, path, pattern):
        """The group of `pattern` in the file."""
        match = re.search(pattern, self.text(path) or "", re.MULTILINE)
        return match and match[1]

    def sysctl(self, name):
        text = self.text("proc/sys/" + name.replace(".", "/"))
        return text and " ".join(text.split())

    def cpu(self):
        return self.after("proc/cpuinfo", r"^model name\s*: *(.+)$")

    def distribution(self):
        return self.after("etc/os-release", r'^PRETTY_NAME="?([^"\n]+)')

    def memory_kb(self):
        size = self.after("proc/meminfo", r"^MemTotal: +(\d+)")
        return size and int(size)

    def virtualisation(self):
        told = [output_of(["systemd-detect-virt", f"--{kind}"]) for kind in ("vm", "container")]
        if all(told):
            return " and ".join(word for word in told if word != "none") or "none"
        flags = self.after("proc/cpuinfo", r"^flags\s*: *(.+)$")
        return flags and ("a hypervisor" if "hypervisor" in flags.split() else "none")

    def governor(self):
        return self.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")

    def turbo(self):
        off = self.text("sys/devices/system/cpu/intel_pstate/no_turbo")
        if off is not None:
            return off == "0"
        boost = self.text("sys/devices/system/cpu/cpufreq/boost")
        return boost and boost == "1"

    def smt(self):
        active = self.text("sys/devices/system/cpu/smt/active")
        return active and active == "1"

    def load(self):
        load = self.after("proc/loadavg", r"^([\d.]+) ")
        return load and float(load)

    def psi(self):
        share = self.after("proc/pressure/cpu", r"^some avg10=([\d.]+)")
        return share and float(share)

    def time_wait(self):
        count = self.after("proc/net/sockstat", r"^TCP:.* tw (\d+)")
        return count and int(count)

    def load_now(self):
        """(busy cores, steal in % of all cores) over a second; None if it can't be told."""
        before = self._ticks()
        self._sleep(SAMPLE_SECONDS)
        spent = [now - then for now, then in zip(self._ticks(), before)]
        # user nice system idle iowait irq softirq steal; guests are in user already. proc(5)
        total = sum(spent[:8])
        if len(spent) < 8 or total <= 0:
            return None
        cores = sum(line.startswith("cpu") for line in self.text("proc/stat").splitlines()) - 1
        busy = total - spent[3] - spent[4] - spent[7]
        return round(busy / total * cores, 2), round(spent[7] / total * 100, 1)

    def _ticks(self):
        return [int(word) for word in (self.after("proc/stat", r"^cpu ([ \d]+)$") or "").split()]

    @staticmethod
    def cgroup_method():
        """How groups of processes are measured here."""
        try:
            from hellobench import group
            with group.Group("doctor", cpus=None, nofile=None) as probe:
                return probe.method
        except (ImportError, OSError, RuntimeError):
            return None

    @staticmethod
    def io_uring():
        """Why it is refused; None if it is allowed."""
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120))
        if fd < 0:
            return os.strerror(ctypes.get_errno())
        os.close(fd)
        return None

    @staticmethod
    def tuning():
        """What `scripts/tune verify server client verify` finds, a row per setting."""
        tree = kernel_keys.KeyTree.from_environment()
        settings = profiles.load_all(["server", "client", "verify"])
        return compare.rows(settings, tree, containers.Place.detect(tree))

    @staticmethod
    def tool_versions():
        """{tool: version}: None where it is not installed."""
        found = {}
        for tool, (argv, pattern, _) in TOOLS.items():
            found[tool] = None
            if shutil.which(tool):
                match = re.search(pattern, output_of(argv) or "")
                found[tool] = match[1] if match else "of unknown version"
        return found


def output_of(argv):
    """What a command prints, whatever its exit status: wrk -v has 1. None if it can't run."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=10,
                              check=False, env=os.environ | {"LC_ALL": "C"})
        return (done.stdout + done.stderr).strip()
    return None


def look_cpu(machine):
    count = len(os.sched_getaffinity(0))
    return (f"{machine.cpu() or platform.machine()}, {count} of {os.cpu_count()} usable",
            "ok" if count > 1 else "warn",
            "server and client share the only one: compare CPU time per request, not rates")


def look_governor(machine):
    governor = machine.governor()
    return (governor or "not visible", "ok" if governor in (None, "performance") else "warn",
            "the clock rate follows the load: sudo cpupower frequency-set -g performance")


def look_switch(machine, state, advice):
    state = getattr(machine, state)()
    return ("not visible" if state is None else "on" if state else "off",
            "warn" if state else "ok", advice)


def look_psi(machine):
    share = machine.psi()
    if share is None:
        return "not visible", "ok"
    return (f"{share:g} % of the last 10 s", "warn" if share > 5 else "ok",
            "tasks wait for a processor already: stop what else runs")


def look_busy(machine):
    busy, steal = machine.load_now() or (None, None)
    if busy is None:
        return ("unknown", "ok")
    return (f"{busy:g} cores, {steal:g} % stolen", "warn" if busy > 0.2 or steal > 1 else "ok",
            "other programs run (see `top`), or the host gives processor time to others")


def look_load(machine):
    load = machine.load()
    return (f"{load:g} in the last minute", "warn" if load > 0.2 * os.cpu_count() else "ok",
            "wait until the machine is quiet")


def look_nofile(_):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = hard == resource.RLIM_INFINITY or hard >= NEEDED_NOFILE
    verdict = "ok" if enough else "bad" if hard < 1024 else "warn"
    return (f"{soft}, may be raised to {hard}", verdict,
            f"many connections will fail: raise the hard limit to {NEEDED_NOFILE} or more in "
            "/etc/security/limits.d")


def look_ports(machine):
    first, last = map(int, machine.sysctl("net.ipv4.ip_local_port_range").split())
    return (f"{first} to {last}", "ok" if last - first >= 28000 else "warn",
            "profiles without keep-alive run out of ports: "
            "sudo sysctl -w net.ipv4.ip_local_port_range='1024 65535'")


def look_sysctl(machine, name, least, advice):
    value = int(machine.sysctl(name))
    return (str(value), "ok" if value >= least else "warn",
            f"{advice}: sudo sysctl -w {name}={least}")


def look_time_wait(machine):
    count = machine.time_wait()
    return (f"{count} sockets", "ok" if count <= TIME_WAIT_LIMIT else "warn",
            "they hold ports for a minute; a run waits for them")


def look_io_uring(machine):
    refused = machine.io_uring()
    return (f"refused: {refused}" if refused else "allowed", "warn" if refused else "ok",
            "hello-uring will use epoll; look at the sysctl kernel.io_uring_disabled and, in a "
            "container, at its seccomp profile")


def look_cgroup(machine):
    method = machine.cgroup_method()
    return (method or "unknown", "warn" if method == "tree" else "ok",
            "CPU time is summed over the process tree, in steps of 10 ms; as root a control group "
            "counts it exactly")


def look_disk(_):
    free = shutil.disk_usage(".").free
    return (f"{free / 1e9:.1f} GB free", "ok" if free > 1e9 else "bad" if free < 1e8 else "warn",
            "raw output of a run takes up to 100 MB")


EXAMINATIONS = (
    ("kernel", lambda _: (platform.release(), "ok")),
    ("processors", look_cpu),
    ("virtualisation", lambda machine: (machine.virtualisation() or "unknown", "ok")),
    ("frequency governor", look_governor),
    ("turbo", lambda machine: look_switch(
        machine, "turbo", "the clock rate depends on heat and on what other cores do")),
    ("SMT", lambda machine: look_switch(
        machine, "smt", "give server and client whole cores by --server-cpus and --client-cpus")),
    ("busy now", look_busy),
    ("CPU pressure", look_psi),
    ("load", look_load),
    ("open files", look_nofile),
    ("ports of a client", look_ports),
    ("somaxconn", lambda machine: look_sysctl(
        machine, "net.core.somaxconn", 1024, "bursts of connections overflow the listen queue")),
    ("TIME_WAIT limit", lambda machine: look_sysctl(
        machine, "net.ipv4.tcp_max_tw_buckets", 4096, "sockets are cut short in TIME_WAIT")),
    ("tcp_tw_reuse", lambda machine: look_sysctl(
        machine, "net.ipv4.tcp_tw_reuse", 1, "a client's port is blocked for a minute")),
    ("in TIME_WAIT", look_time_wait),
    ("io_uring", look_io_uring),
    ("CPU time counted by", look_cgroup),
    ("disk", look_disk))


def tuning_findings(machine, verdict):
    return [Finding(row.key, row.current or "absent", verdict,
                    f"wanted: {'at least ' if row.compare == 'min' else ''}{row.wanted}; "
                    f"scripts/tune explain {row.key}")
            for row in machine.tuning() if not row.good]


def tool_findings(machine, missing):
    return [Finding(tool, version or "not installed", "ok" if version else missing,
                    "" if version else f"sudo apt install {TOOLS[tool][2]}")
            for tool, version in machine.tool_versions().items()]

# SPDX-License-Identifier: MIT
"""Processes that are started together, measured together and ended together.

A Group is the harness's side of a keeper (see keeper.py). Whatever becomes of the harness, nothing
that was started in a group survives it, and nothing else is ever signalled. Its methods may be
called from several threads.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

KEEPER = pathlib.Path(__file__).with_name("keeper.py")
CLOSE_SECONDS = 15  # The keeper gives up on unkillable processes before that.
COUNTER_FILES = {"cgroup2": ("cpu.stat",), "cgroup1": ("cpuacct.usage", "cpuacct.stat")}


class StartError(RuntimeError):
    """A process could not be started; the text says why."""


@dataclasses.dataclass(frozen=True)
class Usage:
    """CPU time of all that ever ran in a group, in microseconds."""

    user_us: float = 0
    system_us: float = 0


class Group:
    """A context manager. `method` says how CPU time is counted; it is chosen unless it is given.
    `nofile` becomes what the processes get, which may be less than was asked for; `cgroup` is the
    folder of theirs or None."""

    def __init__(self, name, cpus=None, nofile=None, method=None):
        self.name, self.method, self.nofile = name, method, nofile
        self._cpus = cpus
        self._keeper = None
        self.cgroup = None
        self._counters = []
        self._last_usage = Usage()
        self._next_id = 0
        self._changed = threading.Condition()
        self._answers, self._exits = {}, {}
        self._gone = False

    def __enter__(self):
        safe_name = re.sub(r"[^\w.-]", "_", self.name, flags=re.ASCII)
        setup = json.dumps([safe_name, self._cpus, self.nofile, self.method])
        # A session of its own: Ctrl-C is for the harness, which then ends its groups.
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", "-S", "-E", str(KEEPER), setup], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, start_new_session=True)
        greeting = self._keeper.stdout.readline()
        if not greeting:
            self._keeper.wait()
            raise RuntimeError(f"the keeper of {self.name} did not start")
        greeting = json.loads(greeting)
        wanted, self.method = self.method, greeting["method"]
        self.nofile = greeting["nofile"]
        if greeting["cgroup"]:
            self.cgroup = pathlib.Path(greeting["cgroup"])
            self._counters = [os.open(self.cgroup / name, os.O_RDONLY)
                              for name in COUNTER_FILES[self.method]]
        threading.Thread(target=self._listen, daemon=True, name=f"group {self.name}").start()
        if wanted not in (None, self.method):
            self.close()
            raise RuntimeError(f"CPU time can't be counted by {wanted} here")
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Kills what is left; returns when it, the keeper and the cgroup are gone."""
        if self._keeper is None or self._keeper.returncode is not None:
            return
        self.usage()
        with contextlib.suppress(OSError):
            self._keeper.stdin.close()
        try:
            self._keeper.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        for fd in self._counters:
            os.close(fd)
        self._counters = []

    @property
    def keeper_pid(self):
        return self._keeper.pid

    def start(self, argv, env, cwd, stdout, stderr, user=None):
        """Starts a process and returns its pid. The output files are emptied the first time that
        this group opens them. Raises StartError."""
        return self._ask("start", argv=list(map(str, argv)), env=env, cwd=cwd and str(cwd),
                         stdout=str(stdout), stderr=str(stderr), user=user)

    def wait(self, pid, timeout_s=None):
        """The exit status of a process that was started here, negative for a signal's; None when
        it still runs after `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: pid in self._exits or self._gone, timeout_s)
            if self._gone and pid not in self._exits:
                raise RuntimeError(f"the keeper of {self.name} has ended")
            return self._exits.get(pid)

    def poll(self, pid):
        return self._exits.get(pid)

    def signal(self, pid, number):
        """Signals one process that was started here; returns whether it still ran."""
        return self._ask("signal", pid=pid, number=signal_number(number))

    def pids(self):
        """All live processes of the group."""
        if self.cgroup is None:
            return self._ask("pids")
        with contextlib.suppress(OSError):
            return [int(line) for line in (self.cgroup / "cgroup.procs").read_text().split()]
        return []

    def usage(self):
        with contextlib.suppress(OSError, RuntimeError):
            if self._counters:
                texts = [os.pread(fd, 4096, 0).decode() for fd in self._counters]
                self._last_usage = PARSERS[self.method](*texts)
            else:
                self._last_usage = Usage(*self._ask("usage"))
        return self._last_usage

    def stop(self, sig="TERM", grace_s=5):
        """Signals the processes and kills what runs after `grace_s`: [(pid, command)] of that."""
        left = self._ask("stop", number=signal_number(sig), grace_s=grace_s)
        return [tuple(process) for process in left]

    def _ask(self, verb, **arguments):
        with self._changed:
            self._next_id += 1
            number = self._next_id
            request = json.dumps({"id": number, "do": verb} | arguments).encode() + b"\n"
            with contextlib.suppress(OSError, ValueError):  # Then it is gone, as is noticed below.
                self._keeper.stdin.write(request)
                self._keeper.stdin.flush()
            self._changed.wait_for(lambda: number in self._answers or self._gone)
            if number not in self._answers:
                raise RuntimeError(f"the keeper of {self.name} has ended")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise StartError(answer["error"])
        return answer["value"]

    def _listen(self):
        with self._keeper.stdout as answers:
            for line in answers:
                message = json.loads(line)
                with self._changed:
                    if "exited" in message:
                        self._exits[message["exited"]] = message["rc"]
                    else:
                        self._answers[message["id"]] = message
                    self._changed.notify_all()
        with self._changed:
            self._gone = True
            self._changed.notify_all()


def signal_number(value):
    """Of a number or a name such as "TERM"."""
    return int(signal.Signals[f"SIG{value}"] if isinstance(value, str) else value)


def parse_cgroup2(cpu_stat):
    values = dict(line.split() for line in cpu_stat.splitlines())
    return Usage(int(values["user_usec"]), int(values["system_usec"]))


def parse_cgroup1(usage_ns, stat):
    """The sum is exact; only its division is told in ticks."""
    ticks = {name: int(value) for name, value in (line.split() for line in stat.splitlines())}
    total_us = int(usage_ns) / 1000
    user_share = ticks["user"] / ((ticks["user"] + ticks["system"]) or 1)
    return Usage(total_us * user_share, total_us * (1 - user_share))


PARSERS = {"cgroup2": parse_cgroup2, "cgroup1": parse_cgroup1}

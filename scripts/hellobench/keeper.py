# SPDX-License-Identifier: MIT
"""Starts processes, counts what they cost and ends them: a process of its own, for group.Group.

Everything that it starts, however often it forks, stays below it in the process tree: it is the
reaper of their orphans. When its standard input ends, for whatever reason, it kills all of that
and nothing else, removes its cgroup and ends. It speaks lines of JSON: requests on standard input,
{"id": 1, "do": "start", ...}; on standard output a greeting, an answer to each request with its id,
and {"exited": pid, "rc": status} for each process that was asked for.

Methods of counting CPU time: "cgroup2" and "cgroup1" are exact, ended processes included. "tree"
adds up the live processes and what has been waited for; of a parent that ignores SIGCHLD the
kernel forgets the ended children.

It runs alone (python3 -P -S -E keeper.py), so it imports nothing of this package.
"""

import contextlib
import ctypes
import json
import os
import pwd
import resource
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 10  # until processes that can't be killed are left alone
TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
CGROUP_ROOTS = {
    "cgroup2": ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
    "cgroup1": ("/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
}
ENDING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
# A process inherits what is ignored. (What we handle is the default's again for it.)
RESET_SIGNALS = (signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)

libc = ctypes.CDLL(None, use_errno=True)


def prctl(option, value):
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def stat_fields(pid):
    """Fields of /proc/PID/stat from the state on, or None: 0 state, 1 parent, 11-14 ticks of CPU
    (user, system, waited-for children's user, their system), 19 the time of its start."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def listed_children(parent):
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def scanned_children(parent):
    """The same for kernels without CONFIG_PROC_CHILDREN."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if (fields := stat_fields(pid)) and int(fields[1]) == parent]


children = (listed_children if os.path.exists(f"/proc/self/task/{os.getpid()}/children")
            else scanned_children)


def descendants(root):
    """Pids below `root`, parents before their children."""
    found = children(root)
    for pid in found:  # It grows while it is walked.
        found += children(pid)
    return found


def command(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8",
                                            errors="replace") as file:
        return file.read().strip()
    return "?"


def send(pid, number):
    """Signals a descendant; a process that has got the same pid meanwhile is not hit."""
    before = stat_fields(pid)
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        after = stat_fields(pid)
        if before and after and before[19] == after[19]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(fd, number)
    finally:
        os.close(fd)


class Cgroup:
    """A cgroup of our own, removed by remove(). Raises OSError where it can't be had."""

    def __init__(self, method, parent, name):
        self.method = method
        self.path = f"{parent}/{name}"
        os.mkdir(self.path)
        try:
            os.stat(f"{self.path}/{'cpu.stat' if method == 'cgroup2' else 'cpuacct.usage'}")
            self._try_to_enter()
        except OSError:
            self.remove()
            raise

    def enter(self):
        self._write("cgroup.procs", "0")

    def kill(self):
        with contextlib.suppress(OSError):  # Not in cgroup1, nor before Linux 5.14.
            self._write("cgroup.kill", "1")

    def remove(self):
        deadline = time.monotonic() + 2
        while os.path.isdir(self.path) and time.monotonic() < deadline:
            for folder, _, _ in os.walk(self.path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            time.sleep(0.002)  # The last process leaves some time after it was waited for.

    def _write(self, name, text):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    def _try_to_enter(self):
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(OSError):
                self.enter()
                os._exit(0)
            os._exit(1)
        if os.waitpid(pid, 0)[1] != 0:
            raise PermissionError(f"no process may enter {self.path}")


def own_cgroup(method):
    """The path of this process's cgroup, below the mount."""
    controller = "" if method == "cgroup2" else "cpuacct"
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(","):
                return path.rstrip("/")
    return ""


def make_cgroup(method, name):
    """A Cgroup, or None. First below our own: there a user may have been given the right to."""
    for root in CGROUP_ROOTS[method]:
        if method == "cgroup2" and not os.path.exists(f"{root}/cgroup.controllers"):
            continue
        for parent in dict.fromkeys((root + own_cgroup(method), root)):
            with contextlib.suppress(OSError):
                return Cgroup(method, parent, name)
    return None


class Keeper:
    """All that belongs to one group. end() leaves nothing of it."""

    def __init__(self, name, cpus, nofile, method):
        self.cpus, self.nofile = cpus, nofile_limits(nofile)
        self.cgroup = None
        for candidate in CGROUP_ROOTS if method is None else {method} & CGROUP_ROOTS.keys():
            self.cgroup = self.cgroup or make_cgroup(candidate, name)
        self.method = self.cgroup.method if self.cgroup else "tree"
        self.started = set()  # processes that were asked for and have not been waited for
        self.reaped_us = [0, 0]  # user and system time of those that have been
        self.counted_us = [0, 0]
        self._opened = set()
        self._signalled, writing_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # a byte a signal
        self.told_to_end = False
        for number in ENDING_SIGNALS:
            signal.signal(number, self._on_ending_signal)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(writing_end, warn_on_full_buffer=False)

    def _on_ending_signal(self, number, frame):
        self.told_to_end = True

    def serve(self):
        """Answers requests until standard input ends."""
        tell({"method": self.method, "cgroup": self.cgroup and self.cgroup.path,
              "nofile": self.nofile[0]})
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self._signalled, select.POLLIN)
        received = b""
        while not self.told_to_end:
            ready = dict(poll.poll())
            self.reap()
            if 0 not in ready:
                continue
            data = os.read(0, 65536)
            if not data:
                return
            *lines, received = (received + data).split(b"\n")
            for line in lines:
                self._answer(json.loads(line))

    def _answer(self, request):
        answer = {"id": request.pop("id")}
        verb = getattr(self, request.pop("do"))  # start, signal, stop, usage or pids
        try:
            answer["value"] = verb(**request)
        except StartError as error:
            answer["error"] = str(error)
        tell(answer)

    def start(self, argv, env, cwd, stdout, stderr, user):
        account = find_account(user)
        failed_read, failed_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become(argv, env, cwd, (stdout, stderr), account, failed_write)
        os.close(failed_write)
        with open(failed_read, encoding="utf-8") as file:
            failure = file.read()
        if failure:
            os.waitpid(pid, 0)
            raise StartError(failure)
        self._opened |= {stdout, stderr}
        self.started.add(pid)
        return pid

    def _become(self, argv, env, cwd, outputs, account, failed):
        """Turns this forked process into `argv`; does not return."""
        doing, running = "cannot prepare the process", f"cannot run {argv[0]}"
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_NOFILE, self.nofile)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for fd, path in enumerate(outputs, 1):
                doing = f"cannot write {path}"
                again = os.O_APPEND if path in self._opened else os.O_APPEND | os.O_TRUNC
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | again, 0o644), fd)
            doing = f"cannot run on processors {self.cpus}"
            os.sched_setaffinity(0, self.cpus or os.sched_getaffinity(0))
            doing = f"cannot change to the folder {cwd}"
            os.chdir(cwd or ".")
            for number in RESET_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            doing = "cannot enter the cgroup"
            if self.cgroup:
                self.cgroup.enter()
            if account:
                doing = f"cannot become the user {account.pw_name}"
                os.initgroups(account.pw_name, account.pw_gid)
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # Should this keeper itself be killed.
            doing = running
            os.execvpe(argv[0], argv, env)
        except BaseException as error:
            missing = doing == running and isinstance(error, FileNotFoundError)
            why = ["its interpreter"] if missing and os.path.exists(argv[0]) else []
            why.append(getattr(error, "strerror", None) or str(error))
            os.write(failed, ": ".join([doing, *why]).encode())
        os._exit(127)

    def signal(self, pid, number):
        """Whether the process still ran. Until it is waited for its pid is nobody else's."""
        self.reap()
        if pid in self.started:
            os.kill(pid, number)
        return pid in self.started

    def pids(self):
        self.reap()
        return [pid for pid in descendants(os.getpid())
                if (fields := stat_fields(pid)) and fields[0] != b"Z"]

    def usage(self):
        """Microseconds in user and system mode of all that ever ran. Never goes back: a process
        that is waited for while the tree is read may be missed once."""
        self.reap()
        total = list(self.reaped_us)
        for pid in descendants(os.getpid()):
            if fields := stat_fields(pid):
                total[0] += (int(fields[11]) + int(fields[13])) * TICK_US
                total[1] += (int(fields[12]) + int(fields[14])) * TICK_US
        self.counted_us = list(map(max, self.counted_us, total))
        return self.counted_us

    def stop(self, number, grace_s):
        """Signals our direct children, orphans that we inherited among them, and kills what is
        left after `grace_s`. Returns [pid, command] of what had to be killed."""
        deadline = time.monotonic() + grace_s
        for pid in children(os.getpid()):
            send(pid, number)
        poll = select.poll()
        poll.register(0, 0)  # Whether the harness has gone; requests can wait.
        poll.register(self._signalled, select.POLLIN)
        while self.reap() and (rest_s := deadline - time.monotonic()) > 0:
            if 0 in dict(poll.poll(rest_s * 1000)) or self.told_to_end:
                break
        left = [(pid, command(pid)) for pid in self.pids()]
        self.kill()
        return left

    def kill(self):
        deadline = time.monotonic() + KILL_SECONDS
        while self.reap() and time.monotonic() < deadline:
            if self.cgroup:
                self.cgroup.kill()
            for pid in descendants(os.getpid()):
                send(pid, signal.SIGKILL)
            select.select([self._signalled], [], [], 0.02)

    def reap(self):
        """Waits for what has ended; whether there are processes left."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._signalled, 4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return True
                self.reaped_us[0] += round(used.ru_utime * 1e6)
                self.reaped_us[1] += round(used.ru_stime * 1e6)
                if pid in self.started:
                    self.started.remove(pid)
                    tell({"exited": pid, "rc": os.waitstatus_to_exitcode(status)})
        return False

    def end(self):
        self.kill()
        if self.cgroup:
            self.cgroup.remove()


class StartError(Exception):
    pass


def nofile_limits(wanted):
    """(soft, hard) for RLIMIT_NOFILE: `wanted`, or as much of it as we may give."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted is None:
        return soft, hard
    with contextlib.suppress(ValueError, OSError):
        if wanted > hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, wanted))
            hard = wanted
    return min(wanted, hard), hard


def find_account(user):
    """Who to become, or None where we are that user already."""
    if user is None:
        return None
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise StartError(f"there is no user {user}") from None
    if account.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise StartError(f"only root can start a process as the user {user}")
    return account


def tell(message):
    """Errors are ignored: when the harness is gone, standard input says so too."""
    with contextlib.suppress(OSError):
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(1, data):]


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    name, cpus, nofile, method = json.loads(sys.argv[1])
    keeper = Keeper(f"hellobench-{os.getpid()}-{name}", cpus, nofile, method)
    try:
        keeper.serve()
    finally:
        keeper.end()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""One entrant's server, started, verified and ready to be measured; or one that the user started.

Whatever goes wrong on the way is a Refused with the problem's code: such a server gets no number.
"""

import contextlib
import pathlib
import socket
import tempfile
import time

from hellobench import attach, group, network, verify
from hellobench.model import Problem

LOOPBACK = "127.0.0.1"
NOFILE = 65536
RECOVER_SECONDS = 10  # after a run, for a server that still has a backlog of requests
LOG_BYTES = 16384  # kept of the beginning and of the end of what a server wrote


class Refused(Exception):
    def __init__(self, problems):
        super().__init__("; ".join(problem.text for problem in problems))
        self.problems = problems


class Server:
    """`group` has the processes, `verification` what a client sees; ended by stop()."""

    def __init__(self, profile, cpus, logs):
        self.profile, self.cpus, self.logs = profile, cpus, logs
        self.host, self.port = profile.host, profile.port
        self.bind = LOOPBACK if self.host == "localhost" else self.host
        self.group = self.verification = self.start_ms = None
        self.single_threaded, self.keepalive = False, True
        self._stop_signal = "TERM"
        self._pids = []
        self._cleanup = contextlib.ExitStack()

    def start(self, entrant, full=False):
        """Starts it, or finds it where it is attached, and verifies it, by all the checks if
        `full`. Raises Refused; nothing is left running then."""
        self.single_threaded, self.keepalive = entrant.single_threaded, entrant.keepalive
        try:
            if isinstance(entrant, attach.Attached):
                self.host, self.port = entrant.host, entrant.port
                self.group = attach.AttachedGroup(entrant.pid)
                self._pids = [entrant.pid] if entrant.pid else []
            else:
                self._launch(entrant)
            self._verify(full)
        except BaseException:
            self.stop()
            raise

    def _launch(self, entrant):
        self.port = self.port or free_port(self.bind)
        owners = network.listeners(self.port)
        if owners:
            who = ", ".join(f"{name} (pid {pid})" for pid, name in owners)
            raise Refused([Problem("PORT_BUSY", f"port {self.port} is served by {who}; "
                                   "stop it, or name another by --port")])
        run_folder = pathlib.Path(self._cleanup.enter_context(
            tempfile.TemporaryDirectory(prefix="hellobench-", ignore_cleanup_errors=True)))
        run_folder.chmod(0o755)  # Servers may drop to another user.
        launch = entrant.launch(host=self.bind, port=self.port, cores=len(self.cpus),
                                cpus=self.cpus, body=self.profile.body, run_folder=run_folder)
        self._stop_signal = launch.stop_signal
        self.group = self._cleanup.enter_context(
            group.Group(f"server-{entrant.id}", cpus=self.cpus, nofile=NOFILE))
        began = time.monotonic()
        try:
            for process in launch.processes:
                self._pids.append(self.group.start(
                    process.argv, process.env, process.cwd, self.logs.with_suffix(".server.out"),
                    self.logs.with_suffix(".server.err"), process.user))
            polling = time.monotonic()
            ready_s = verify.wait_ready(self.bind, self.port, self.profile.body, launch.ready,
                                        self.alive)
        except (OSError, group.StartError) as error:
            raise Refused([Problem("START_FAILED", str(error))]) from error
        except verify.NotReady as error:
            code = error.problem.code
            raise Refused([Problem(code, f"{error}{self._last_words()}")]) from error
        self.start_ms = (polling - began + ready_s) * 1000

    def _verify(self, full):
        self.verification = verify.verify(self.host, self.port, self.profile.body, full)
        if not self.verification.ok:
            raise Refused(self.verification.problems)

    def problems_after(self):
        """What is wrong with its answers after a run. No client sees another content of the same
        size, wrk no status below 400, hey no content that is cut."""
        try:
            verify.wait_ready(self.host, self.port, self.profile.body, RECOVER_SECONDS, self.alive)
        except verify.NotReady as error:
            found = [error.problem]
        else:
            found = verify.verify(self.host, self.port, self.profile.body).problems
        return [Problem("VERIFY_FAILED", f"after the run: {problem.text}") for problem in found]

    def alive(self):
        """Whether all processes that were started, or attached, still run."""
        return all(self.group.poll(pid) is None for pid in self._pids)

    def response_bytes(self, keepalive):
        """Octets of one response, head and content, as verified."""
        if keepalive:
            return self.verification.response_bytes_keepalive
        return self.verification.response_bytes_close

    def stop(self):
        if self.group is not None:
            self.group.stop(self._stop_signal)
        self._cleanup.close()
        for kind in (".server.out", ".server.err"):
            shorten(self.logs.with_suffix(kind))

    def _last_words(self):
        path = self.logs.with_suffix(".server.err")
        with contextlib.suppress(OSError):
            lines = path.read_text("utf-8", "replace").strip().splitlines()
            if lines:
                return f"; its last line: {lines[-1][:200]}"
        return ""


def shorten(path):
    """Removes a log that is empty, and the middle of a long one: some log every request."""
    with contextlib.suppress(FileNotFoundError):
        data = path.read_bytes()
        if not data:
            path.unlink()
        elif len(data) > 2 * LOG_BYTES:
            left_out = f"\n... {len(data) - 2 * LOG_BYTES} bytes left out ...\n".encode()
            path.write_bytes(data[:LOG_BYTES] + left_out + data[-LOG_BYTES:])


def free_port(address):
    with socket.create_server((address, 0)) as probe:
        return probe.getsockname()[1]

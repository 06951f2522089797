# SPDX-License-Identifier: MIT
"""Every entrant that is installed here starts, gives the right answer, and ends at its signal."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from hellobench import entrant, verify

ROOT = pathlib.Path(__file__).resolve().parents[2]
BODY = "Welcome to hello world benchmark."
CORES = 2
END_LIMIT_S = 15


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def end(processes, stop_signal):
    """Whether all of them ended at the signal in time; kills what did not, with its children."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(stop_signal)
    deadline = time.monotonic() + END_LIMIT_S
    in_time = True
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            in_time = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return in_time


class EveryEntrant(unittest.TestCase):
    def check(self, each):
        status = each.status()
        if not status.installed:
            self.skipTest(f"{status.reason}; {status.cure}")
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            launch = each.launch("127.0.0.1", port, CORES, list(range(CORES)), BODY, folder)
            with open(os.path.join(folder, "said"), "w+b") as said:
                processes = []
                self.addCleanup(lambda: end(processes, signal.SIGKILL))
                for spec in launch.processes:
                    processes.append(subprocess.Popen(
                        spec.argv, env=spec.env, cwd=spec.cwd, stdin=subprocess.DEVNULL,
                        stdout=said, stderr=said, start_new_session=True))
                try:
                    self.ask(port, launch, processes)
                except Exception as error:
                    said.seek(0)
                    raise AssertionError(f"{error}; it said: {said.read()[-2000:]!r}") from error
            self.assertTrue(end(processes, launch.stop_signal), "it did not end at its signal")

    def ask(self, port, launch, processes):
        def alive():
            return all(process.poll() is None for process in processes)

        verify.wait_ready("127.0.0.1", port, BODY, launch.ready, alive)
        result = verify.verify("127.0.0.1", port, BODY, full=True)
        self.assertEqual(result.problems, [])
        self.assertTrue(result.traits["any_path"], result.traits)
        self.assertTrue(alive(), "it ended while it was asked")


def add_tests():
    for each in entrant.load_all(ROOT / "scripts/entrants").values():
        name = "test_" + each.id.replace("-", "_") + "_starts_answers_and_ends"
        setattr(EveryEntrant, name, lambda self, each=each: self.check(each))


add_tests()

if __name__ == "__main__":
    unittest.main()

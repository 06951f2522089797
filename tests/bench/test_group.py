# SPDX-License-Identifier: MIT
"""Groups of processes: what they cost is counted whole, and nothing of them is left behind."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from hellobench import group, keeper
from waiting import wait_until

METHODS = ("cgroup2", "cgroup1", "tree")
PYTHON = [sys.executable, "-S", "-E"]

# Ignores SIGTERM and leaves a daemon, twice forked, that does so too; prints its and its own pid.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
read_end, write_end = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write_end, str(os.getpid()).encode())
        time.sleep(600)
    os._exit(0)
os.wait()
print(os.getpid(), os.read(read_end, 20).decode(), flush=True)
time.sleep(600)
"""

# Burns CPU in three grandchildren, one of them an orphan, and prints what all of them used.
BURNER = """
import os, resource, time
def used():
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime
def leave():
    os.write(write_end, f"{used()} ".encode())
    os._exit(0)
def burn():
    while used() < 0.1:
        sum(range(1000))
    leave()
read_end, write_end = os.pipe()
for orphan in (False, False, True):
    if os.fork() == 0:
        if os.fork() == 0:
            burn()
        if not orphan:
            os.wait()
        leave()
for _ in range(3):
    os.wait()
os.close(write_end)
with open(read_end) as file:
    print(sum(map(float, file.read().split())) + used(), flush=True)
os._exit(0)
"""

# A harness that is about to be killed.
HARNESS = """
import json, sys, time
from hellobench import group
with group.Group("doomed", method=sys.argv[1]) as doomed:
    argv = [sys.executable, "-S", "-E", "-c", sys.argv[2]]
    doomed.start(argv, {}, None, sys.argv[3], "/dev/null")
    print(json.dumps([doomed.keeper_pid, str(doomed.cgroup or "")]), flush=True)
    time.sleep(600)
"""


def runs(pid):
    fields = keeper.stat_fields(pid)
    return fields is not None and fields[0] != b"Z"


class GroupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name, "out")

    def group(self, method=None, **options):
        entered = group.Group("test", method=method, **options)
        try:
            entered.__enter__()
        except RuntimeError as error:
            self.skipTest(str(error))
        self.addCleanup(entered.close)
        return entered

    def start(self, owner, program, *arguments):
        return owner.start([*PYTHON, "-c", program, *arguments], {}, None, self.out, os.devnull)

    def start_stubborn(self, owner):
        """Pids of the server and of its daemon, both of which ignore SIGTERM by then."""
        self.start(owner, STUBBORN)
        return self.printed_pids()

    def printed_pids(self):
        text = wait_until(lambda: self.out.exists() and self.out.read_text().endswith("\n")
                          and self.out.read_text())
        return [int(word) for word in text.split()]


class Accounting(GroupTest):
    def check_grandchildren(self, method):
        owner = self.group(method)
        before = owner.usage()
        pid = self.start(owner, BURNER)
        self.assertEqual(owner.wait(pid, 60), 0)
        wait_until(lambda: not owner.pids())
        after = owner.usage()
        counted_ms = (after.user_us + after.system_us - before.user_us - before.system_us) / 1000
        used_ms = float(self.out.read_text()) * 1000
        # What the processes spend on ending comes after their own last look.
        self.assertGreater(counted_ms, used_ms - 5)
        self.assertLess(counted_ms, used_ms + 40)

    def test_grandchildren_that_ended_are_counted_by_cgroup2(self):
        self.check_grandchildren("cgroup2")

    def test_grandchildren_that_ended_are_counted_by_cgroup1(self):
        self.check_grandchildren("cgroup1")

    def test_grandchildren_that_ended_are_counted_by_tree(self):
        self.check_grandchildren("tree")

    def test_live_processes_and_their_threads_are_counted(self):
        program = ("import threading, time\n"
                   "def burn():\n"
                   "    while time.thread_time() < 0.2: sum(range(1000))\n"
                   "threads = [threading.Thread(target=burn) for _ in range(2)]\n"
                   "[thread.start() for thread in threads]\n"
                   "[thread.join() for thread in threads]\n"
                   "print(time.process_time(), flush=True)\n"
                   "time.sleep(600)\n")
        for method in METHODS:
            with self.subTest(method):
                self.out.unlink(missing_ok=True)
                owner = self.group(method)
                self.start(owner, program)
                wait_until(lambda: self.out.exists() and self.out.read_text().endswith("\n"))
                usage = owner.usage()
                used_us = float(self.out.read_text()) * 1e6
                self.assertAlmostEqual(usage.user_us + usage.system_us, used_us, delta=40_000)

    def test_usage_can_be_asked_for_after_the_end_and_has_not_gone_back(self):
        for method in METHODS:
            with self.subTest(method):
                owner = self.group(method)
                owner.wait(self.start(owner, "sum(range(1_000_000))"), 60)
                before = owner.usage()
                owner.close()
                self.assertGreaterEqual(owner.usage().user_us, before.user_us)

    def test_cgroup1_divides_an_exact_sum_by_ticks(self):
        self.assertEqual(group.parse_cgroup1("4000000\n", "user 3\nsystem 1\n"),
                         group.Usage(3000, 1000))


class Ending(GroupTest):
    def test_a_double_forking_server_that_ignores_sigterm_is_ended(self):
        for method in METHODS:
            with self.subTest(method):
                self.out.unlink(missing_ok=True)
                owner = self.group(method)
                pids = self.start_stubborn(owner)
                self.assertLessEqual(set(pids), set(owner.pids()))
                killed = owner.stop("TERM", grace_s=0.2)
                self.assertEqual({pid for pid, name in killed}, set(pids))
                self.assertTrue(all("python" in name for _, name in killed))
                self.assertFalse(any(map(runs, pids)))
                self.assertEqual(owner.pids(), [])

    def test_a_server_that_obeys_sigterm_is_not_killed(self):
        owner = self.group()
        pid = self.start(owner, "import time; print(1, flush=True); time.sleep(600)")
        self.printed_pids()
        self.assertEqual(owner.stop("TERM", grace_s=30), [])
        self.assertEqual(owner.poll(pid), -signal.SIGTERM)

    def test_a_daemon_whose_starter_has_ended_is_told_to_stop(self):
        owner = self.group()
        pid = self.start(owner, "import os, time\n"
                         "if os.fork(): os._exit(0)\n"
                         "os.setsid(); print(1, flush=True); time.sleep(600)")
        self.assertEqual(owner.wait(pid, 30), 0)
        self.printed_pids()
        self.assertEqual(owner.stop("TERM", grace_s=30), [])

    def test_closing_ends_everything_and_removes_the_cgroup(self):
        for method in METHODS:
            with self.subTest(method):
                self.out.unlink(missing_ok=True)
                owner = self.group(method)
                pids = self.start_stubborn(owner)
                owner.close()
                self.assertFalse(any(map(runs, pids)))
                self.assertFalse(owner.cgroup and owner.cgroup.exists())

    def test_a_process_of_somebody_else_is_untouched(self):
        foreign = subprocess.Popen([*PYTHON, "-c", "import time; time.sleep(600)"])
        self.addCleanup(foreign.wait)
        self.addCleanup(foreign.kill)
        for method in METHODS:
            with self.subTest(method):
                self.out.unlink(missing_ok=True)
                owner = self.group(method)
                self.start_stubborn(owner)
                self.assertNotIn(foreign.pid, owner.pids())
                owner.stop(grace_s=0)
                owner.close()
                self.assertIsNone(foreign.poll())

    def check_killed_harness(self, method, number):
        self.group(method).close()  # Skips where the method can't be had.
        scripts = pathlib.Path(group.__file__).parents[1]
        harness = subprocess.Popen(
            [sys.executable, "-c", HARNESS, method, STUBBORN, self.out],
            env={"PYTHONPATH": str(scripts)}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(harness.stdout.close)
        self.addCleanup(harness.wait)
        self.addCleanup(harness.kill)
        keeper_pid, cgroup = json.loads(harness.stdout.readline())
        pids = self.printed_pids()
        harness.send_signal(number)
        wait_until(lambda: not any(map(runs, [keeper_pid, *pids])))
        self.assertFalse(cgroup and os.path.exists(cgroup))

    def test_nothing_is_left_of_a_cgroup2_after_sigkill_of_the_harness(self):
        self.check_killed_harness("cgroup2", signal.SIGKILL)

    def test_nothing_is_left_of_a_cgroup1_after_sigkill_of_the_harness(self):
        self.check_killed_harness("cgroup1", signal.SIGKILL)

    def test_nothing_is_left_of_a_tree_after_sigkill_of_the_harness(self):
        self.check_killed_harness("tree", signal.SIGKILL)

    def test_nothing_is_left_after_sigint_of_the_harness(self):
        self.check_killed_harness("tree", signal.SIGINT)

    def test_a_keeper_that_is_terminated_ends_its_processes(self):
        owner = self.group("tree")
        pids = self.start_stubborn(owner)
        os.kill(owner.keeper_pid, signal.SIGTERM)
        wait_until(lambda: not any(map(runs, pids)))
        with self.assertRaisesRegex(RuntimeError, "has ended"):
            owner.pids()


class Starting(GroupTest):
    def assert_fails(self, message, argv, **options):
        values = {"env": {}, "cwd": None, "stdout": self.out, "stderr": os.devnull} | options
        owner = self.group()
        with self.assertRaisesRegex(group.StartError, message):
            owner.start(argv, **values)
        self.assertEqual(owner.pids(), [])

    def test_a_missing_program_is_named(self):
        self.assert_fails("cannot run /none/server: No such file", ["/none/server"])

    def test_a_missing_interpreter_is_named_as_such(self):
        self.out.write_text("#!/none/interpreter\n")
        self.out.chmod(0o755)
        self.assert_fails("its interpreter: No such file", [self.out], stdout=os.devnull)

    def test_a_missing_folder_is_named(self):
        self.assert_fails("cannot change to the folder /none/folder: No such", PYTHON,
                          cwd="/none/folder")

    def test_an_output_file_that_cannot_be_written_is_named(self):
        self.assert_fails("cannot write /none/out: No such", PYTHON, stdout="/none/out")

    def test_an_unknown_user_is_named(self):
        self.assert_fails("there is no user no-such-user", PYTHON, user="no-such-user")

    @unittest.skipUnless(os.geteuid() == 0, "only root can start a process as somebody else")
    def test_a_process_runs_as_the_user_that_was_asked_for(self):
        owner = self.group()
        pid = owner.start(["id", "-un"], {}, "/", self.out, os.devnull, user="nobody")
        self.assertEqual(owner.wait(pid, 30), 0)
        self.assertEqual(self.out.read_text(), "nobody\n")

    @unittest.skipIf(os.geteuid() == 0, "root can")
    def test_an_ordinary_user_is_told_that_only_root_can_change_users(self):
        self.assert_fails("only root can", PYTHON, user="root")

    def test_processors_and_descriptors_are_limited(self):
        cpu = max(os.sched_getaffinity(0))
        owner = self.group(cpus=[cpu], nofile=200)
        program = "import os, resource; print(*os.sched_getaffinity(0), *resource.getrlimit(7)[:1])"
        self.assertEqual(owner.wait(self.start(owner, program), 30), 0)
        self.assertEqual(self.out.read_text(), f"{cpu} 200\n")
        self.assertEqual(owner.nofile, 200)

    def test_a_process_obeys_sigint_although_the_harness_ignores_it(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
        owner = self.group()
        pid = owner.start(["sleep", "600"], {}, None, self.out, os.devnull)
        self.assertTrue(owner.signal(pid, "INT"))
        self.assertEqual(owner.wait(pid, 30), -signal.SIGINT)
        self.assertFalse(owner.signal(pid, "INT"))

    def test_a_process_is_ended_by_a_broken_pipe_although_python_ignores_it(self):
        owner = self.group()
        pid = owner.start(["sh", "-c", "kill -PIPE $$"], {"PATH": os.defpath}, None, self.out,
                          os.devnull)
        self.assertEqual(owner.wait(pid, 30), -signal.SIGPIPE)

    def test_waiting_ends_at_its_limit(self):
        owner = self.group()
        pid = owner.start(["sleep", "600"], {}, None, self.out, os.devnull)
        self.assertIsNone(owner.wait(pid, 0.01))
        self.assertIsNone(owner.poll(pid))

    def test_output_is_emptied_by_the_first_process_and_added_to_by_the_next(self):
        self.out.write_text("of an earlier run\n")
        owner = self.group()
        for word in ("one", "two"):
            owner.wait(owner.start(["echo", word], {}, None, self.out, os.devnull), 30)
        self.assertEqual(self.out.read_text(), "one\ntwo\n")


if __name__ == "__main__":
    unittest.main()

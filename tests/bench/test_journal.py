# SPDX-License-Identifier: MIT
"""The journal: cut anywhere, damaged anywhere, killed at any moment, written by two."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import tempfile
import unittest

import made_up_run
from hellobench import plan
from hellobench.errors import HarnessError
from hellobench.journal import Journal, JournalBusy


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "journal.jsonl"

    def write(self, *cells):
        with Journal(self.path) as journal:
            for cell in cells:
                journal.append(cell)
        return self.path.read_bytes()


class Lines(InFolder):
    def test_a_cell_comes_back_as_it_was_appended(self):
        cells = [made_up_run.cell(block=block, problems=[("NOISY", "steal 3 %")], argv=["ab"])
                 for block in range(3)]
        self.write(*cells)
        self.assertEqual(Journal(self.path).cells(), cells)

    def test_no_file_is_no_cells(self):
        self.assertEqual(Journal(self.path).cells(), [])

    def test_the_last_line_for_a_cell_counts(self):
        self.write(made_up_run.cell(rps=1.0), made_up_run.cell(block=1), made_up_run.cell(rps=2.0))
        self.assertEqual([(cell.block, cell.rps) for cell in Journal(self.path).cells()],
                         [(1, 1000.0), (0, 2.0)])

    def test_what_json_cannot_say_is_not_known(self):
        cell = made_up_run.cell(rps=float("nan"))
        cell.latency.histogram = [(1.0, 3), (float("inf"), 1)]
        self.write(cell)
        read, = Journal(self.path).cells()
        self.assertIsNone(read.rps)
        self.assertEqual(read.latency.histogram, [[1.0, 3], [None, 1]])

    def test_each_cell_is_on_the_disk_before_append_returns(self):
        synced = []
        fsync = os.fsync
        with Journal(self.path) as journal, patched("fsync", lambda fd: (
                synced.append(os.fstat(fd).st_size), fsync(fd))):
            journal.append(made_up_run.cell())
            journal.append(made_up_run.cell(block=1))
        sizes = [len(line) for line in self.path.read_bytes().splitlines(keepends=True)]
        self.assertEqual(synced, [sizes[0], sum(sizes)])


class Damage(InFolder):
    def test_a_last_line_cut_at_any_byte_is_absent_and_overwritten(self):
        first, second = made_up_run.cell(), made_up_run.cell(block=1, argv=["wrk", "-c64"])
        whole = self.write(first, second)
        kept = whole.index(b"\n") + 1
        for size in range(kept, len(whole)):
            self.path.write_bytes(whole[:size])
            journal = Journal(self.path)
            self.assertEqual(journal.cells(), [first])
            self.assertEqual(journal.problems, [])
            self.assertEqual(self.write(second), whole)

    def test_nothing_of_a_cut_line_stays_behind_a_shorter_one(self):
        whole = self.write(made_up_run.cell(argv=["wrk"] * 1000))
        self.path.write_bytes(whole[:-1])
        cell = made_up_run.cell()
        self.write(cell)
        self.assertEqual(Journal(self.path).cells(), [cell])
        self.assertTrue(self.path.read_bytes().endswith(b"}\n"))

    def test_reading_changes_nothing(self):
        whole = self.write(made_up_run.cell(), made_up_run.cell(block=1))
        self.path.write_bytes(whole[:-9])
        Journal(self.path).cells()
        self.assertEqual(self.path.read_bytes(), whole[:-9])

    def test_a_damaged_line_in_the_midst_is_named_and_costs_only_itself(self):
        lines = self.write(*(made_up_run.cell(block=block) for block in range(3))).splitlines()
        unknown = json.loads(lines[1])
        unknown["cell"]["problems"] = [{"code": "NO_SUCH", "text": ""}]
        unhashable = json.loads(lines[1])
        unhashable["cell"]["block"] = []
        for damage in (b"", b"\0" * 40, b"\xff\xfe{", lines[1][:50], b"[]", b"null", b"{}", b"7",
                       b'{"type":"cell"}', b'{"type":"cell","cell":{}}', b'{"type":"x"}',
                       b'{"type":"cell","cell":null}', b"[" * 100_000,
                       json.dumps(unknown).encode(), json.dumps(unhashable).encode()):
            self.path.write_bytes(b"\n".join([lines[0], damage, lines[2], b""]))
            journal = Journal(self.path)
            self.assertEqual([cell.block for cell in journal.cells()], [0, 2], damage[:60])
            self.assertEqual(len(journal.problems), 1)
            self.assertIn("line 2 is damaged", journal.problems[0])

    def test_damage_stays_in_the_file(self):
        whole = self.write(made_up_run.cell())
        self.path.write_bytes(b"garbage\n" + whole)
        self.write(made_up_run.cell(block=1))
        self.assertTrue(self.path.read_bytes().startswith(b"garbage\n" + whole))

    def test_a_full_disk_leaves_whole_lines_and_says_the_cure(self):
        whole = self.write(made_up_run.cell())
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        with Journal(self.path) as journal:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 100, limits[1]))
            with self.assertRaisesRegex(HarnessError, "can't write .* Make room"):
                journal.append(made_up_run.cell(block=1))
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual(self.path.read_bytes(), whole)
            journal.append(made_up_run.cell(block=1))
        self.assertEqual(len(Journal(self.path).cells()), 2)

    def test_a_folder_that_is_not_there_is_a_usage_error(self):
        with self.assertRaisesRegex(HarnessError, "can't write"):
            Journal(self.folder / "no" / "journal.jsonl").append(made_up_run.cell())


class TwoWriters(InFolder):
    def test_a_second_writer_is_refused_until_the_first_has_ended(self):
        with Journal(self.path):
            with self.assertRaisesRegex(JournalBusy, "another process is writing"):
                Journal(self.path).append(made_up_run.cell())
            self.assertEqual(Journal(self.path).cells(), [])
        Journal(self.path).open()

    def test_a_writer_that_was_killed_leaves_no_lock(self):
        def hold():
            Journal(self.path).append(made_up_run.cell())
            os.kill(os.getpid(), signal.SIGKILL)

        self.assertEqual(in_child(hold), -signal.SIGKILL)
        self.write(made_up_run.cell(block=1))
        self.assertEqual(len(Journal(self.path).cells()), 2)


class Killed(InFolder):
    """A run in a child process that kills itself at one of the system calls that change files."""

    def setUp(self):
        super().setUp()
        profile = made_up_run.Profile(blocks=2, steps=[made_up_run.Step("low"),
                                                       made_up_run.Step("high")])
        self.plan = made_up_run.make_plan(["alpha", "beta"], profile)

    def run_to_the_end(self):
        """What a run does, or its continuation; the order of its cells is on record."""
        try:
            made = plan.load(self.folder)
        except HarnessError:
            made = self.plan
            plan.save(made, self.folder)
        with Journal(self.path) as journal:
            for planned in plan.remaining(made, journal.cells()):
                journal.append(made_up_run.measured(planned, argv=["wrk", "-c64"]))

    def killed_at(self, call, partly):
        left = [call]

        def dying(real, name):
            def wrapper(*arguments):
                left[0] -= 1
                if left[0] < 0:
                    if partly and name == "pwrite":
                        real(arguments[0], arguments[1][:len(arguments[1]) // 2], arguments[2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments)
            return wrapper

        def child():
            for name in ("pwrite", "fsync", "replace", "ftruncate"):
                setattr(os, name, dying(getattr(os, name), name))
            self.run_to_the_end()

        return in_child(child)

    def start_again(self):
        for path in self.folder.iterdir():
            path.unlink()

    def test_a_run_killed_at_any_step_measures_what_an_unbroken_one_does(self):
        self.run_to_the_end()
        unbroken = self.path.read_bytes()
        for partly in (False, True):
            for call in range(1000):
                self.start_again()
                status = self.killed_at(call, partly)
                if status == 0:
                    break
                self.assertEqual(status, -signal.SIGKILL)
                self.run_to_the_end()
                self.assertEqual(plan.load(self.folder), self.plan)
                self.assertEqual(self.path.read_bytes(), unbroken)
            self.assertGreater(call, 2 * len(self.plan.cells))

    def test_a_run_killed_again_and_again_still_ends(self):
        kills = 0
        while self.killed_at(6, partly=True) != 0:
            kills += 1
            self.assertLess(kills, 100)
        self.assertEqual([(cell.block, cell.entrant, cell.step)
                          for cell in Journal(self.path).cells()],
                         [cell.key for cell in self.plan.cells])


def in_child(work):
    """The exit status of a forked process that does `work`; negative: the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        status = 70
        with contextlib.suppress(BaseException):
            work()
            status = 0
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextlib.contextmanager
def patched(name, replacement):
    real = getattr(os, name)
    setattr(os, name, replacement)
    try:
        yield
    finally:
        setattr(os, name, real)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""The journal of a run: one JSON line per finished cell, on the disk before the next cell starts.

Only the last line can be cut, by a crash while it was written: it counts as absent, and is cut off
before the next one is appended. Damage anywhere else is reported and left in the file. One process
at a time writes; anybody may read.
"""

import fcntl
import json
import math
import os
import pathlib

from hellobench import model, plan
from hellobench.errors import HarnessError, UsageError

FILE = "journal.jsonl"


class JournalBusy(UsageError):
    """Another process writes this journal."""


class Journal:
    """Locked for writing from the first append(), or `with`, to close(). Reading needs no lock."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.problems = []  # damaged lines, as sentences; of the last cells()
        self._fd = None
        self._end = 0  # behind the last whole line

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *_):
        self.close()

    def open(self):
        """Take the lock and cut off a line that was never finished. Raises UsageError."""
        if self._fd is not None:
            return
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(f"can't write {self.path}: {error.strerror}. Name a folder that is "
                             "yours by --out") from error
        try:
            self._lock(fd)
            self._end = _whole(self.path.read_bytes())
            os.ftruncate(fd, self._end)
            os.fsync(fd)
            plan.sync_folder(self.path.parent)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def _lock(self, fd):
        # The lock goes with the open file: the kernel gives it back whatever ends the process.
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalBusy(f"another process is writing {self.path}: wait for that run, or stop "
                              "it; it can be continued afterwards") from error

    def close(self):
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def append(self, cell):
        """Returns when the cell is on the disk. Raises HarnessError; the journal stays whole."""
        self.open()
        if not self._is_in_place():
            raise HarnessError(f"{self.path} was removed or replaced: this run can't go on")
        line = {"type": "cell", "cell": finite(model.to_json(cell))}
        data = json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._fd, data[written:], self._end + written)
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, self._end)
            raise HarnessError(f"can't write {self.path}: {error.strerror}. Make room and continue "
                               "the run; what it has so far is safe") from error
        self._end += len(data)

    def _is_in_place(self):
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except OSError:
            return False

    def cells(self):
        """The cells, in the order of their lines; of several lines for one cell the last counts."""
        found = {}
        self.problems = []
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                key, cell = _read(line)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                self.problems.append(f"{self.path.name}, line {number} is damaged and not used: "
                                     f"{type(error).__name__}: {error}")
            else:
                found.pop(key, None)
                found[key] = cell
        return list(found.values())


def _whole(data):
    """The size of those lines in `data` that have their end."""
    return data.rfind(b"\n") + 1


def _read(line):
    data = json.loads(line)
    if data["type"] != "cell":
        raise ValueError(f"a line of the type {data['type']!r}")
    cell = model.cell_from_json(data["cell"])
    hash(key := (cell.block, cell.entrant, cell.step))
    return key, cell


def finite(value):
    """`value` without what JSON can't say: not a number, and infinity, are not known."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value

# SPDX-License-Identifier: MIT
"""KeyTree: the keys below /proc/sys, read, judged and written one at a time.

Invariants: only write() changes anything; a write counts when the kernel shows the value
afterwards, never because write(2) returned; nothing outside the tree is touched, wherever a
symbolic link points. TUNE_ROOT puts another folder in the place of "/", for tests.
"""

import dataclasses
import enum
import errno
import os
import pathlib
import stat

from hellotune.sysctl_files import NUMBER, PORT_LIST, key_path, normalise


class Access(enum.Enum):
    OK = "ok"
    ABSENT = "absent"
    READ_ONLY_KEY = "read-only key"
    READ_ONLY_MOUNT = "read-only /proc/sys"
    DENIED = "not permitted"
    NOT_A_KEY = "not a key"


class WriteError(Exception):
    """The kernel did not take a value; the text says what it did instead."""


@dataclasses.dataclass(frozen=True)
class KeyTree:
    root: pathlib.Path = pathlib.Path("/")

    @classmethod
    def from_environment(cls):
        return cls(pathlib.Path(os.environ.get("TUNE_ROOT") or "/"))

    def path(self, key):
        return self.root / "proc/sys" / key_path(key)

    def access(self, key):
        """Whether key can be written, and if not, why; access(2) knows of namespaces and LSMs."""
        path = self.path(key)
        try:
            mode = path.stat().st_mode
        except PermissionError:
            return Access.DENIED
        except (OSError, ValueError):
            return Access.ABSENT
        tree = os.path.realpath(self.root / "proc/sys")
        if not os.path.realpath(path).startswith(tree + "/") or not stat.S_ISREG(mode):
            return Access.NOT_A_KEY
        # A key without write permission can't be written even by root: the kernel asks the mode.
        if not mode & 0o222:
            return Access.READ_ONLY_KEY
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            return Access.READ_ONLY_MOUNT
        if not os.access(path, os.W_OK, effective_ids=True):
            return Access.DENIED
        return Access.OK

    def read_raw(self, key):
        """The key's text as it is, or None where it can't be read."""
        if self.access(key) in (Access.ABSENT, Access.NOT_A_KEY):
            return None
        try:
            return self.path(key).read_bytes().decode("utf-8", "surrogateescape")
        except OSError:
            return None

    def read(self, key):
        """The key's words with one blank between, or None."""
        raw = self.read_raw(key)
        return None if raw is None else normalise(raw)

    def write(self, key, text):
        """Writes text in one write(2), as the kernel wants it, and reads it back."""
        data = (text if text.endswith("\n") else text + "\n").encode("utf-8", "surrogateescape")
        try:
            file = os.open(self.path(key), os.O_WRONLY | os.O_CLOEXEC)
            try:
                written = os.write(file, data)
                # A file of a test's tree has a size; the kernel's keys have none.
                if os.fstat(file).st_size > len(data):
                    os.ftruncate(file, len(data))
            finally:
                os.close(file)
        except OSError as error:
            raise WriteError(f"the kernel refused {normalise(text)!r}:"
                             f" {error.strerror} ({errno.errorcode.get(error.errno)})") from error
        now = self.read(key)
        if written != len(data) or now is None or not same(now, normalise(text)):
            raise WriteError(f"wrote {normalise(text)!r}, but the kernel shows {now!r}")


def same(one, other):
    """Equal as words, or as lists of ports: the kernel writes 80,81 as 80-81."""
    if one == other:
        return True
    if PORT_LIST.fullmatch(one) and PORT_LIST.fullmatch(other) and ("," in one + other):
        return ports(one) == ports(other)
    return False


def satisfied(setting, current):
    """Whether the key's current words are what the setting asks for."""
    if current is None:
        return False
    if setting.compare == "min":
        return bool(NUMBER.fullmatch(current)) and int(current) >= int(setting.value)
    if setting.compare == "merge":
        return mergeable(current) and ports(setting.value) <= ports(current)
    return current == setting.value


def target(setting, current):
    """What to write: the setting's value, or the list in the key with the setting's added."""
    if setting.compare == "merge" and mergeable(current):
        return port_list(ports(current) | ports(setting.value))
    return setting.value


def mergeable(current):
    return current == "" or bool(PORT_LIST.fullmatch(current))


def ports(text):
    found = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def port_list(numbers):
    """80-82,443: as the kernel prints a bitmap."""
    ranges = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in ranges)

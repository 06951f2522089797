# SPDX-License-Identifier: MIT
"""State: what apply has changed in this network namespace since this boot, and nowhere else.

Invariants: the file is complete or absent (temporary file, fsync, rename, fsync of the folder);
it is on the disk before the first key it names is written; it is believed only by the boot and
the namespace it was made in, which the kernel names by a number it never gives out twice
(SO_NETNS_COOKIE, Linux 5.14); an inode number alone is used again as soon as a namespace is gone.
Nobody's file is believed but root's and our own.

The file is text, for the day somebody has to read it by hand: key, value before, values written.
"""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import socket
import stat
import sys

SO_NETNS_COOKIE = 71  # asm-generic/socket.h; Python 3.11 has no name for it
TITLE = "# What scripts/tune changed: key, value before, values written. revert restores it."


class StateError(Exception):
    """No place for the state, or a state that can't be believed."""


class Busy(Exception):
    """Another apply or revert is at work."""


@dataclasses.dataclass(frozen=True)
class Identity:
    """This boot and this network namespace."""

    boot_id: str
    inode: int
    device: int
    cookie: str

    @classmethod
    def here(cls, root):
        try:
            boot_id = (root / "proc/sys/kernel/random/boot_id").read_text("ascii").strip()
            namespace = (root / "proc/self/ns/net").stat()
        except OSError as error:
            raise StateError(f"which boot and network namespace this is can't be read"
                             f" ({error}); is /proc mounted?") from error
        return cls(boot_id, namespace.st_ino, namespace.st_dev, netns_cookie())

    @property
    def name(self):
        return f"state.{self.boot_id}.{self.inode}"

    @property
    def lines(self):
        return f"#boot\t{self.boot_id}\n#netns\t{self.device}\t{self.inode}\t{self.cookie}\n"


def netns_cookie():
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            number = probe.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8)
    except OSError:
        return "-"
    return str(int.from_bytes(number, sys.byteorder))


@dataclasses.dataclass
class Change:
    """One key: its raw text before the first apply, and all texts that are ours.

    There are two of ours only while a second apply is at work: until the key is written the first
    one is in it, from then on the second.
    """

    original: str
    ours: list


@dataclasses.dataclass
class State:
    profiles: list = dataclasses.field(default_factory=list)
    changes: dict = dataclasses.field(default_factory=dict)  # in the order of the writes

    def copy(self):
        changes = {key: Change(c.original, list(c.ours)) for key, c in self.changes.items()}
        return State(list(self.profiles), changes)

    def text(self, identity):
        lines = [TITLE + "\n", identity.lines]
        lines += [f"#profile\t{escape(name)}\n" for name in self.profiles]
        for key, change in self.changes.items():
            lines.append("\t".join([key, *map(escape, [change.original, *change.ours])]) + "\n")
        return "".join(lines)

    @classmethod
    def parse(cls, text, identity):
        """The state, or None if another boot or namespace made it. ValueError: damaged."""
        head = f"{TITLE}\n{identity.lines}"
        if not text.startswith(f"{TITLE}\n#boot\t"):
            raise ValueError("not a state file of scripts/tune")
        if not text.startswith(head):
            return None
        state = cls()
        for line in text[len(head):].splitlines():
            name, *values = line.split("\t")
            if name == "#profile" and values:
                state.profiles.append(unescape(values[0]))
            elif len(values) >= 2:
                original, *ours = map(unescape, values)
                state.changes[name] = Change(original, ours)
            else:
                raise ValueError(f"can't be understood: {line!r}")
        return state


def escape(text):
    return text.encode("unicode_escape").decode("ascii")


def unescape(text):
    return text.encode("ascii").decode("unicode_escape")


class Store:
    """The folder of the states: $TUNE_STATE_DIR, or /run/tune (root), or $XDG_RUNTIME_DIR/tune."""

    def __init__(self, root, environment):
        self.identity = Identity.here(root)
        explicit = environment.get("TUNE_STATE_DIR")
        runtime = environment.get("XDG_RUNTIME_DIR")
        self.folders = [pathlib.Path(explicit)] if explicit else [root / "run/tune"]
        # After su it is still the other user's, and closed to us.
        if (runtime and not explicit and root == pathlib.Path("/")
                and os.access(runtime, os.X_OK, effective_ids=True)):
            self.folders.append(pathlib.Path(runtime) / "tune")

    def load(self):
        """The state of this boot and namespace; an empty one if nothing was applied."""
        folder = self.holder()
        return State() if folder is None else self._read(folder)

    def holder(self):
        """The folder this boot's and namespace's state is in, or None."""
        return next((folder for folder in self.folders if self._read(folder) is not None), None)

    def _read(self, folder):
        path = folder / self.identity.name
        text = read_trusted(path)
        try:
            return None if text is None else State.parse(text, self.identity)
        except ValueError as error:
            raise StateError(f"{path}: {error}; look at it, then remove it") from error

    def save(self, state, folder):
        """Replaces the file by state; with nothing in it, removes the file."""
        path = folder / self.identity.name
        if state.changes or state.profiles:
            write_atomically(path, state.text(self.identity), 0o644)
            return
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        sync_folder(folder)

    def leftovers(self):
        """What an apply that was killed did not get to rename."""
        return [path for folder in self.folders for path in folder.glob(".state.*.tmp")]

    def others(self):
        """State files of other boots and namespaces, to be mentioned, never used."""
        return sorted(path for folder in self.folders if folder.is_dir()
                      for path in folder.glob("state.*.*")
                      if path != folder / self.identity.name or self.holder() != folder)

    @contextlib.contextmanager
    def locked(self):
        """The folder to save in, while nobody else works with it."""
        holder = self.holder()
        usable = [folder for folder in ([holder] if holder else self.folders) if usable_as(folder)]
        if not usable:
            raise StateError(f"no place for the state, without which revert could restore nothing:"
                             f" {self.folders[0]} can't be made, or others may write to it. Name a"
                             " folder of yours: TUNE_STATE_DIR=DIR")
        path = usable[0] / "lock"
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"{path} can't be opened ({error.strerror}); nothing was changed."
                             " Remove it, make room, or name another folder: TUNE_STATE_DIR=DIR"
                             ) from error
        try:
            take(lock, usable[0])
            yield usable[0]
        finally:
            os.close(lock)


def take(lock, folder):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Busy(f"another tune is at work (it holds {folder}/lock)") from error


def usable_as(folder):
    """Whether folder is there now, nobody's but ours, and can be written."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True)
        folder.chmod(0o755)  # whatever the umask: verify by an ordinary user reads root's state
    try:
        return trusted(os.stat(folder)) and os.access(folder, os.W_OK, effective_ids=True)
    except OSError:
        return False


def trusted(status):
    """Owned by us or root, and nobody else may write: what stands there decides what we write."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read_trusted(path):
    try:
        with open(path, encoding="ascii", opener=open_no_follow) as file:
            if not trusted(os.fstat(file.fileno())) or not trusted(os.stat(path.parent)):
                raise StateError(f"{path}: somebody else could have written it; not used."
                                 " Look at it, then remove it")
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StateError(f"{path}: {error}") from error


def open_no_follow(path, flags):
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def temporary_of(path):
    return path.with_name(f".{path.name}.tmp")  # no name that anybody reads: sysctl.d wants .conf


def write_atomically(path, text, mode):
    """Either the old file or the new one is there, complete, whenever the machine stops."""
    temporary = temporary_of(path)
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(file, "wb") as stream:
            os.fchmod(stream.fileno(), mode)  # whatever the umask
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder):
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)

# SPDX-License-Identifier: MIT
"""What holds at boot: our one file in /etc/sysctl.d, and who else sets the same keys.

Invariants: of the machine's files only /etc/sysctl.d/60-hello-uring.conf is ever written, complete
or not at all, and only after the values are in force; it is replaced or removed only if it is the
one we wrote (its first lines hold the digest of the rest and the namespace it was written in).
"""

import contextlib
import dataclasses
import enum
import fnmatch
import hashlib
import os
import pathlib
import re

from hellotune.state import sync_folder, temporary_of, write_atomically
from hellotune.sysctl_files import canonical_key, normalise

FILE = "etc/sysctl.d/60-hello-uring.conf"
# The first folder with a file of some name is the one whose file counts: sysctl.d(5).
FOLDERS = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d",
           "lib/sysctl.d")
TITLE = "# Written by scripts/tune apply --persist of hello-uring; scripts/tune revert removes it."


class Owner(enum.Enum):
    NOBODY = "no file"
    OURS = "ours"
    EDITED = "ours, but edited since"
    OTHER_NAMESPACE = "from another network namespace"
    FOREIGN = "somebody else's"


class PersistError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Line:
    """An assignment in one of the machine's files."""

    path: str
    number: int
    pattern: str
    value: str


class BootFile:
    def __init__(self, root, identity):
        self.path = root / FILE
        self.identity = identity

    def owner(self):
        try:
            text = self.path.read_text("utf-8", "replace")
        except FileNotFoundError:
            return Owner.NOBODY
        except OSError:
            return Owner.FOREIGN
        match = re.match(re.escape(TITLE) + r"\n# sha256 ([0-9a-f]{64})\n", text)
        if not match:
            return Owner.FOREIGN
        if hashlib.sha256(text[match.end():].encode()).hexdigest() != match[1]:
            return Owner.EDITED
        same_boot = f"#boot\t{self.identity.boot_id}\n" in text
        if same_boot and self.identity.lines not in text:
            return Owner.OTHER_NAMESPACE
        return Owner.OURS

    def check_writable(self):
        """Raises PersistError unless write() can be expected to work."""
        owner = self.owner()
        if owner not in (Owner.NOBODY, Owner.OURS):
            raise PersistError(f"{self.path} is {owner.value}; it is not overwritten. Look at it,"
                               " then move it away")
        folder = next(f for f in self.path.parents if f.exists())
        if not os.access(folder, os.W_OK, effective_ids=True):
            raise PersistError(f"{folder} can't be written: --persist needs root")

    def write(self, values):
        """values: key -> words"""
        body = self.identity.lines + "".join(f"{key} = {value}\n" for key, value in values.items())
        digest = hashlib.sha256(body.encode()).hexdigest()
        self.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_atomically(self.path, f"{TITLE}\n# sha256 {digest}\n{body}", 0o644)

    def leftovers(self):
        return [path for path in [temporary_of(self.path)] if path.exists()]

    def removable(self, force):
        return self.owner() is Owner.OURS or (force and self.owner() is Owner.EDITED)

    def remove(self):
        self.path.unlink()
        sync_folder(self.path.parent)


def boot_files(root):
    """The machine's files in the order in which they are applied."""
    chosen = {}
    for folder in reversed(FOLDERS):
        for path in sorted((root / folder).glob("*.conf")):
            chosen[path.name] = path
    files = [chosen[name] for name in sorted(chosen)]
    # systemd reads it only through a link 99-sysctl.conf, sysctl --system always and last.
    last = root / "etc/sysctl.conf"
    if last.exists() and not any(path.resolve() == last.resolve() for path in files):
        files.append(last)
    return files


def boot_lines(root):
    return [line for path in boot_files(root) for line in lines_of(path)]


def lines_of(path):
    """The assignments of a file that isn't ours: what makes no sense to us is passed over."""
    try:
        text = pathlib.Path(path).read_text("utf-8", "replace")
    except OSError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = line.strip().lstrip("-").partition("=")
        if not equals or name.startswith(("#", ";")):
            continue
        with contextlib.suppress(ValueError):
            # A pattern such as net.ipv4.conf.*.rp_filter has the grammar of a key but for its *.
            key = canonical_key(name.strip().replace("*", "__any__")).replace("__any__", "*")
            yield Line(str(path), number, key, normalise(value))


def winner(lines, key):
    """The line that decides key at boot, or None; one that names it beats all patterns."""
    exact = [line for line in lines if line.pattern == key]
    globbed = [line for line in lines if fnmatch.fnmatchcase(key, line.pattern)]
    return (exact or globbed or [None])[-1]

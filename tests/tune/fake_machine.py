# SPDX-License-Identifier: MIT
"""A machine made of files, to put in the place of / by TUNE_ROOT, and tune run on it.

Its keys are ordinary files: they take every value, and a key can be made to refuse by its mode or
by what stands in its place.
"""

import contextlib
import io
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from hellotune import cli
from hellotune.kernel_keys import KeyTree, WriteError

TUNE = pathlib.Path(__file__).resolve().parents[2] / "scripts/tune"
BOOT = "11111111-2222-3333-4444-555555555555"
KEYS = {
    "kernel/random/boot_id": BOOT + "\n",
    "net/core/netdev_max_backlog": "1000\n",  # there: this is the initial network namespace
    "net/core/somaxconn": "4096\n",
    "net/ipv4/tcp_migrate_req": "0\n",
    "net/ipv4/ip_local_port_range": "32768\t60999\n",
    "net/ipv4/ip_local_reserved_ports": "\n",
    "net/ipv4/ip_unprivileged_port_start": "1024\n",
    "net/ipv4/tcp_tw_reuse": "2\n",
    "net/ipv4/tcp_syncookies": "1\n",
    "fs/file-max": "9223372036854775807\n",
    "vm/swappiness": "60\n",
}
PROFILES = {
    "10-server.conf": "#@ compare: min\n#@ why: a longer queue\nnet.core.somaxconn = 65535\n"
                      "#@ optional: yes\nnet.ipv4.tcp_migrate_req = 1\n",
    "20-client.conf": "net.ipv4.ip_local_port_range = 10240 65535\nnet.ipv4.tcp_tw_reuse = 1\n",
    "30-verify.conf": "#= net.ipv4.tcp_syncookies = 1\n#@ why: leave it\n#: net.ipv4.tcp_rfc1337\n",
    "90-published.conf": "net.core.somaxconn = 1024\nvm.swappiness = 0\n",
    "watch.tsv": "TcpExtListenOverflows\tloss\tnet.core.somaxconn\tfull queue\n",
}


class Machine:
    tree = KeyTree

    def __init__(self, base):
        self.root = pathlib.Path(base) / "root"
        self.profiles = pathlib.Path(base) / "sysctl"
        self.keys = self.root / "proc/sys"
        for name, text in KEYS.items():
            self.put(self.keys / name, text)
        self.put(self.root / "proc/self/ns/net", "")
        self.put(self.root / "etc/sysctl.conf", "# the administrator's\n")
        (self.root / "etc/sysctl.d").mkdir()
        for name, text in PROFILES.items():
            self.put(self.profiles / name, text)

    @staticmethod
    def put(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def profile(self, text, name="own.conf"):
        """A profile's file; its path is a name that tune takes."""
        self.put(self.profiles / name, text)
        return str(self.profiles / name)

    def key(self, name):
        return (self.keys / name).read_text()

    def everything(self):
        """All files but tune's lock, with their bytes."""
        return {str(path.relative_to(self.root)): path.read_bytes()
                for path in sorted(self.root.rglob("*")) if path.is_file() and path.name != "lock"}

    def environment(self):
        kept = {name: value for name, value in os.environ.items()
                if name not in ("TUNE_STATE_DIR", "XDG_RUNTIME_DIR")}
        return {**kept, "TUNE_ROOT": str(self.root), "TUNE_SYSCTL_DIR": str(self.profiles)}

    def state_file(self):
        found = list((self.root / "run/tune").glob("state.*"))
        return found[0] if found else None

    def tune(self, *arguments):
        """In this process: exit status, what it said."""
        said = io.StringIO()
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update(self.environment())
        try:
            with (mock.patch.object(cli, "KeyTree", self.tree),
                  contextlib.redirect_stdout(said), contextlib.redirect_stderr(said)):
                try:
                    status = cli.main(list(arguments))
                except SystemExit as stopped:
                    status = stopped.code
        finally:
            os.environ.clear()
            os.environ.update(before)
        return status, said.getvalue()

    def json(self, *arguments):
        status, said = self.tune(*arguments, "--json")
        return status, json.loads(said)

    def start(self, *arguments, **options):
        return subprocess.Popen([TUNE, *arguments], env=self.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


@contextlib.contextmanager
def machine():
    with tempfile.TemporaryDirectory() as base:
        yield Machine(base)


class OnAMachine(unittest.TestCase):
    def setUp(self):
        self.machine = self.enterContext(machine())
        self.before = self.machine.everything()

    def tune(self, *arguments, status=0):
        got, said = self.machine.tune(*arguments)
        self.assertEqual(got, status, said)
        return said

    def assert_as_before(self):
        self.assertEqual(self.machine.everything(), self.before)

    def use_tree(self, tree):
        """From now on tune meets a kernel of this kind."""
        real = self.machine.tree
        self.machine.tree = tree
        self.addCleanup(setattr, self.machine, "tree", real)

    def set(self, key, text):
        Machine.put(self.machine.keys / key, text)


class RefusingTree(KeyTree):
    """A kernel that refuses values, shows others than were written, or takes half a list."""

    def write(self, key, text):
        if text.strip() in ("7", "65535 2000"):
            raise WriteError("the kernel refused it: Invalid argument (EINVAL)")
        super().write(key, text)


def killed_at_every_call(action, take_whole):
    """Runs action in a child that is killed before its first call that changes a file, then in
    one that is killed before the second, ... until one comes through. Yields after each.

    take_whole says whether a path is a key: the kernel takes a key's value whole or not at all, so
    there are no points of death between a write and the cut that an ordinary file needs after it.
    """
    for number in itertools.count(1):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            # Nothing of the test runner may run here.
            try:
                die_before_call(number, take_whole)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(1, 2)
                action()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        yield number
        if not os.WIFSIGNALED(status):
            return


def die_before_call(number, take_whole):
    calls = itertools.count(1)

    def deadly(real):
        def call(*arguments, **options):
            if next(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return call

    real_write, real_cut = os.write, os.ftruncate

    def write(file, data):
        written = real_write(file, data)
        if take_whole(os.readlink(f"/proc/self/fd/{file}")):
            with contextlib.suppress(OSError):
                real_cut(file, len(data))
        return written

    for name in ("open", "rename", "fsync", "unlink", "mkdir", "fchmod"):
        setattr(os, name, deadly(getattr(os, name)))
    os.write = deadly(write)

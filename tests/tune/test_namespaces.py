# SPDX-License-Identifier: MIT
"""tune on the kernel's own keys, in network namespaces that die with the test.

As root and as an ordinary user (in a user namespace of its own); with the profiles of the checkout
or, where there are none yet, those of the fake machine.
"""

import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import fake_machine
import unshared
from hellotune import cli, state

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEADLINE = 120
# Keys that move by themselves, or that reading changes.
RESTLESS = ("nf_conntrack_count", "stable_secret", "netdev_rss_key", "random")

IN_NAMESPACE = """
import os, pathlib, sys
sys.path[:0] = [{scripts!r}, {here!r}]
sys.dont_write_bytecode = True
import test_namespaces
assert os.stat("/proc/self/ns/net").st_ino != {outside}, "not in a namespace of our own"
try:
    test_namespaces.{function}()
except test_namespaces.unittest.SkipTest as reason:
    sys.exit(print(reason) or {skipped})
"""
SKIPPED = 77


def snapshot():
    """All keys below net that can be read, with their bytes."""
    found = {}
    for path in sorted(pathlib.Path("/proc/sys/net").rglob("*")):
        if path.name in RESTLESS or not path.is_file() or not os.access(path, os.R_OK):
            continue
        try:
            found[str(path)] = path.read_bytes()
        except OSError:
            continue
    return found


def tune(*arguments, status=0):
    done = subprocess.run([sys.executable, "-B", ROOT / "scripts/tune", *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
    assert done.returncode == status, f"tune {arguments}: {done.returncode}\n{done.stdout}"
    return done.stdout


def check_same(before):
    now = snapshot()
    moved = {key: (before.get(key), now.get(key)) for key in {*before, *now}
             if before.get(key) != now.get(key)}
    assert not moved, moved


def all_verbs():
    before = snapshot()
    tune("diff", "server", "client", status=1)
    tune("show")
    tune("verify")
    tune("apply", "server", "client")
    tune("verify")
    tune("diff", "server", "client")
    tune("apply", "client", "server")
    tune("revert")
    check_same(before)
    assert "nothing was applied" in tune("revert")


def refused_values():
    """The kernel's own EINVAL, a list taken by half, and a number it takes as another one."""
    before = snapshot()
    for line in ("net.ipv4.ip_local_port_range = 65535 2000", "net.ipv4.tcp_tw_reuse = 7",
                 "net.ipv4.ip_local_port_range = 2001", "net.core.somaxconn = 0x400",
                 "net.core.somaxconn = 99999999999999999999"):
        path = pathlib.Path(os.environ["TUNE_STATE_DIR"]) / "bad.conf"
        path.write_text(f"net.ipv4.tcp_fin_timeout = 50\n{line}\n")
        said = tune("apply", str(path), status=1)
        assert "rolled back" in said and line.partition(" ")[0] in said, said
        check_same(before)
    path.write_text("net.ipv4.tcp_fin_timeout = 50\nnet.ipv4.tcp_tw_reuse = 7\n")
    tune("apply", str(path), "--keep-going", status=1)
    assert pathlib.Path("/proc/sys/net/ipv4/tcp_fin_timeout").read_text() == "50\n"
    tune("revert")
    check_same(before)


def missing_keys():
    """A key of the initial namespace only, and one that is read-only in all others."""
    before = snapshot()
    path = pathlib.Path(os.environ["TUNE_STATE_DIR"]) / "missing.conf"
    for line, words in (("net.core.netdev_max_backlog = 2000", "not in this network namespace"),
                        ("net.core.rmem_max = 1000000", "read-only here"),
                        ("vm.swappiness = 1", "not permitted|--global")):
        path.write_text(f"net.core.somaxconn = 1000\n{line}\n")
        said = tune("apply", str(path), status=3)
        assert any(word in said for word in words.split("|")), said
        check_same(before)
        path.write_text(f"net.core.somaxconn = 1000\n#@ optional: yes\n{line}\n")
        assert "skipped" in tune("apply", str(path))
        tune("revert")
        check_same(before)


def lists():
    before = snapshot()
    key = pathlib.Path("/proc/sys/net/ipv4/ip_local_reserved_ports")
    key.write_text("9000-9002\n")
    path = pathlib.Path(os.environ["TUNE_STATE_DIR"]) / "list.conf"
    path.write_text("#@ compare: merge\nnet.ipv4.ip_local_reserved_ports = 8080,8081\n")
    tune("apply", str(path))
    assert key.read_text() == "8080-8081,9000-9002\n"
    tune("revert")
    assert key.read_text() == "9000-9002\n"
    key.write_text("\n")
    tune("apply", str(path))
    tune("revert")
    check_same(before)


def quietly(*arguments):
    """tune in this process: there are a hundred points of death to try."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        status = cli.main(list(arguments))
    assert status == 0, said.getvalue()


def killed_at_every_call():
    before = snapshot()

    def is_key(path):
        return path.startswith("/proc/sys/")

    for verbs in (["apply", "server", "client"], ["revert"]):
        for _ in fake_machine.killed_at_every_call(lambda: cli.main(verbs), is_key):
            quietly("revert")
            check_same(before)
            if verbs == ["revert"]:
                quietly("apply", "server", "client")
        quietly("revert")
    check_same(before)


def read_only_keys():
    """As in a container without --privileged."""
    for command in (["mount", "--bind", "/proc/sys", "/proc/sys"],
                    ["mount", "-o", "remount,ro,bind", "/proc/sys"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
        if done.returncode:
            raise unittest.SkipTest(f"no mounts here: {done.stderr.strip()}")
    before = snapshot()
    said = tune("apply", "server", "client", status=3)
    assert "/proc/sys is mounted read-only" in said, said
    assert "docker run --sysctl net.core.somaxconn=65535" in said, said
    check_same(before)
    tune("verify")


def next_namespace():
    """A namespace made after one has gone gets its inode number, but not its state."""
    if state.netns_cookie() == "-":
        raise unittest.SkipTest("Linux before 5.14 gives namespaces no number of their own")
    inode = in_new_namespace("t.tune('apply', 'server')")
    check = f"if inode == {inode}: assert 'nothing was applied' in t.tune('revert')"
    deadline = time.monotonic() + 20
    while in_new_namespace(check) != inode:  # it takes the kernel a while to clear one away
        if time.monotonic() > deadline:
            raise unittest.SkipTest("the inode number was not given out again")


def in_new_namespace(text):
    script = f"""
import os, sys
sys.path[:0] = sys.argv[1:]
import test_namespaces as t
inode = os.stat("/proc/self/ns/net").st_ino
{text}
print(inode)
"""
    done = subprocess.run(["unshare", "-n", sys.executable, "-B", "-c", script, ROOT / "scripts",
                           HERE], check=True, timeout=DEADLINE, stdout=subprocess.PIPE, text=True)
    return int(done.stdout)


class InNamespaces(unittest.TestCase):
    def setUp(self):
        base = self.enterContext(tempfile.TemporaryDirectory())
        os.chmod(base, 0o755)
        self.copy = pathlib.Path(base) / "checkout"
        for part in ("scripts/tune", "scripts/hellotune", "tests/tune"):
            self.copy_readable(ROOT / part, self.copy / part)
        self.profiles = ROOT / "sysctl"
        if not (self.profiles / "10-server.conf").exists():
            self.profiles = fake_machine.Machine(base).profiles
        self.copy_readable(self.profiles, self.copy / "sysctl")
        self.state = pathlib.Path(base) / "state"

    @staticmethod
    def copy_readable(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)

    def run_as(self, user, function, flags="n"):
        unshare = unshared.prefix(flags, user)
        self.state.mkdir()
        if unshare[0] == unshared.NOBODY[0]:
            os.chown(self.state, 65534, 65534)
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("TUNE_ROOT", "TUNE_SYSCTL_DIR")}
        environment["TUNE_STATE_DIR"] = str(self.state)
        script = IN_NAMESPACE.format(
            scripts=str(self.copy / "scripts"), here=str(self.copy / "tests/tune"),
            outside=os.stat("/proc/self/ns/net").st_ino, function=function.__name__,
            skipped=SKIPPED)
        done = subprocess.run([*unshare, sys.executable, "-B", "-c", script], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=DEADLINE, env=environment, cwd="/")
        if done.returncode == SKIPPED:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_all_verbs_leave_every_key_as_it_was(self):
        self.run_as("self", all_verbs)

    def test_an_ordinary_user_can_do_the_same(self):
        self.run_as("nobody", all_verbs)

    def test_values_the_kernel_refuses_are_reported_and_taken_back(self):
        self.run_as("anybody", refused_values)

    def test_keys_that_are_not_to_be_had_here_are_named_with_the_reason(self):
        self.run_as("anybody", missing_keys)

    def test_the_list_of_reserved_ports_is_added_to_and_restored(self):
        self.run_as("anybody", lists)

    def test_killed_at_every_call_revert_restores_every_key(self):
        self.run_as("self", killed_at_every_call)

    def test_killed_at_every_call_as_an_ordinary_user_revert_restores_every_key(self):
        self.run_as("nobody", killed_at_every_call)

    def test_a_read_only_tree_is_recognised_and_docker_s_options_are_told(self):
        self.run_as("anybody", read_only_keys, "nm")

    def test_a_namespace_does_not_inherit_the_state_of_one_that_has_gone(self):
        self.run_as("self", next_namespace)


if __name__ == "__main__":
    unittest.main()

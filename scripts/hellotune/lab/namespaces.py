# SPDX-License-Identifier: MIT
"""Host: a network namespace of ours, its keys, counters and sockets.

Invariants: every namespace dies with the process that made it, and has no name; set() writes keys
of net.* alone, and only while the thread is inside a namespace made here. A thread enters one with
setns(2): its sockets and children stay there, other threads don't move.
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess

from hellotune.sysctl_files import key_path, normalise

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # linux/sched.h
SERVER_ADDRESS, CLIENT_ADDRESS = "10.77.0.1", "10.77.0.2"
# Of include/net/tcp_states.h, as /proc/net/tcp writes them.
STATES = {"01": "ESTAB", "02": "SYN-SENT", "03": "SYN-RECV", "04": "FIN-WAIT-1", "05": "FIN-WAIT-2",
          "06": "TIME-WAIT", "07": "CLOSE", "08": "CLOSE-WAIT", "09": "LAST-ACK", "0A": "LISTEN",
          "0B": "CLOSING"}
PACKAGES = {"ip": "iproute2", "ss": "iproute2", "ab": "apache2-utils"}

libc = ctypes.CDLL(None, use_errno=True)


class Skip(Exception):
    """The machine lacks what an experiment needs; the text says what."""


class Row:
    """A line of /proc/net/tcp: a socket, a half-open connection or one in TIME_WAIT."""

    def __init__(self, line):
        fields = line.split()
        self.local_port = int(fields[1].rpartition(":")[2], 16)
        self.remote_port = int(fields[2].rpartition(":")[2], 16)
        self.state = STATES.get(fields[3], "NEW-SYN-RECV")
        self.waiting = int(fields[4].partition(":")[2], 16)
        self.timer_seconds = int(fields[5].partition(":")[2], 16) / os.sysconf("SC_CLK_TCK")


class Host:
    def __init__(self, name, address):
        self.name, self.address = name, address
        self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    @contextlib.contextmanager
    def inside(self):
        """This thread, and what it starts, is on the host until the block ends."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            call("setns", self.fd, CLONE_NEWNET)
            yield self
        finally:
            call("setns", before, CLONE_NEWNET)
            os.close(before)

    def path(self):
        """Its namespace for `ip link ... netns`, which takes a path."""
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    def has(self, key):
        with self.inside():
            return self._key(key).exists()

    def get(self, key):
        with self.inside():
            return normalise(self._key(key).read_text())

    def set(self, key, value):
        with self.inside():
            self._key(key).write_text(f"{value}\n")

    def counters(self):
        """TcpExtListenDrops and so on: the names of nstat(8)."""
        found = {}
        with self.inside():
            for name in ("snmp", "netstat"):
                lines = pathlib.Path("/proc/thread-self/net", name).read_text().splitlines()
                for heads, values in zip(lines[::2], lines[1::2]):
                    prefix, *columns = heads.replace(":", "").split()
                    found.update({prefix + column: int(value) for column, value
                                  in zip(columns, values.split()[1:])})
        return found

    def rows(self, state=None, port=None):
        """TCP sockets of both families in a state, whose one end is port."""
        found = []
        with self.inside():
            for name in ("tcp", "tcp6"):
                path = pathlib.Path("/proc/thread-self/net", name)
                lines = path.read_text().splitlines()[1:] if path.exists() else []
                found += map(Row, lines)
        return [row for row in found if state in (None, row.state)
                and port in (None, row.local_port, row.remote_port)]

    def count(self, state, port=None):
        return len(self.rows(state, port))

    def run(self, *command, **options):
        """The finished process; the first word names a tool. Raises Skip, CalledProcessError."""
        command = [tool(command[0]), *command[1:]]
        with self.inside():
            return subprocess.run(command, check=True, capture_output=True, text=True,
                                  timeout=30, **options)

    @staticmethod
    def _key(key):
        if not key.startswith("net."):
            raise ValueError(f"{key} belongs to the whole machine")
        return pathlib.Path("/proc/sys", key_path(key))


def tool(name):
    """Its path, also where a user's PATH leaves out the administrator's folders. Raises Skip."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        raise Skip(f"no {name}: install {PACKAGES[name]}")
    return found


def call(name, *arguments):
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def leave():
    """This process leaves the machine's network for one of its own. Raises Skip."""
    uid, gid = os.geteuid(), os.getegid()
    if not os.path.exists("/proc/thread-self/ns/net"):
        raise Skip("no /proc here, or none with namespaces")
    try:
        # Root needs no user namespace, and in a chroot it gets none (user_namespaces(7)).
        if uid != 0 or libc.unshare(CLONE_NEWNET) != 0:
            call("unshare", CLONE_NEWUSER | CLONE_NEWNET)
            become_root(uid, gid)
    except OSError as error:
        raise Skip(f"no user namespace for us here ({error.strerror}): as root, or allow them"
                   " (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_"
                   "userns, user.max_user_namespaces, a container's seccomp profile)") from error


def become_root(uid, gid):
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        pathlib.Path("/proc/self", name).write_text(text)


def fresh(name, address=None):
    """Another namespace beside ours; the thread stays where it is."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        call("unshare", CLONE_NEWNET)
        host = Host(name, address)
    finally:
        call("setns", before, CLONE_NEWNET)
        os.close(before)
    bring_up(host, "lo")
    return host


def bring_up(host, link):
    host.run("ip", "link", "set", link, "up")


def pair():
    """(server, client), joined by a veth pair, in the network that leave() gave us."""
    server = Host("server", SERVER_ADDRESS)
    client = fresh("client", CLIENT_ADDRESS)
    try:
        server.run("ip", "link", "add", "v0", "type", "veth",
                   "peer", "name", "v1", "netns", client.path())
    except subprocess.CalledProcessError as error:
        raise Skip(f"no veth pair here: {error.stderr.strip()}") from error
    bring_up(server, "lo")
    for host, link in ((server, "v0"), (client, "v1")):
        # Without IPv6 on it the link sends nothing by itself, and counters stay ours.
        host.run("ip", "addr", "add", f"{host.address}/24", "dev", link)
        bring_up(host, link)
    if not os.access("/proc/sys/net/ipv4/tcp_fin_timeout", os.W_OK):
        raise Skip("/proc/sys is read-only here (a container?)")
    return server, client

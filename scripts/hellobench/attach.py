# SPDX-License-Identifier: MIT
"""Servers that the user started: measured like any other, never started, stopped or changed.

Only loopback addresses are accepted: a benchmark must not be something that can be aimed at
strangers.
"""

import dataclasses
import ipaddress
import os
import re
import socket
import urllib.parse

import psutil

from hellobench.errors import UsageError


@dataclasses.dataclass(frozen=True)
class Status:
    installed: bool = True
    version: str | None = None
    reason: str | None = None
    cure: str | None = None


@dataclasses.dataclass(frozen=True)
class Attached:
    """`--attach NAME=URL[,pid]`"""

    id: str
    host: str
    port: int
    pid: int | None
    # As an Entrant describes itself, as far as that is known:
    title: str
    language: str = "?"
    kind: str = "attached"
    variant: str = "as the user started it"
    workers: str = "unknown"
    single_threaded: bool = False
    keepalive: bool = True
    access_log: bool | None = None

    def status(self):
        return Status()


def parse(text):
    """The Attached that `text` names. Raises UsageError."""
    name, equals, rest = text.partition("=")
    url, _, pid = rest.partition(",")
    parts = urllib.parse.urlsplit(url)
    try:
        port = parts.port or 80
    except ValueError:
        port = None
    if not (name and equals and parts.scheme == "http" and parts.hostname and port
            and (not pid or pid.isdigit())):
        raise UsageError(f"--attach {text}: it takes NAME=http://HOST:PORT/[,pid]")
    if parts.path not in ("", "/") or parts.query:
        raise UsageError(f"--attach {text}: only the path / is measured")
    if not re.fullmatch(r"\w[\w.-]*", name, flags=re.ASCII):
        raise UsageError(f"--attach {text}: a name of letters, digits, '.', '_' and '-', for it is "
                         "part of file names")
    try:
        addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"--attach {text}: {parts.hostname}: {error.strerror}") from error
    for *_, address in addresses:
        if not ipaddress.ip_address(address[0]).is_loopback:
            raise UsageError(f"--attach {text}: {address[0]} is not this machine's loopback; "
                             "only loopback addresses are measured")
    return Attached(name, parts.hostname, port, int(pid) if pid else None, title=name)


@dataclasses.dataclass(frozen=True)
class Usage:
    user_us: float
    system_us: float


class AttachedGroup:
    """What group.Group is for servers of ours: its processes and their CPU time, read only."""

    method = "tree"

    def __init__(self, pid):
        self._pid = pid

    def pids(self):
        if self._pid is None:
            return []
        try:
            root = psutil.Process(self._pid)
            return [root.pid, *(child.pid for child in root.children(recursive=True))]
        except psutil.NoSuchProcess:
            return []

    def usage(self):
        """CPU time of the tree so far; children that ended count once their parent waited."""
        tick = 1e6 / os.sysconf("SC_CLK_TCK")
        user = system = 0
        for pid in self.pids():
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            user += int(fields[11]) + int(fields[13])
            system += int(fields[12]) + int(fields[14])
        return Usage(user * tick, system * tick)

    @staticmethod
    def poll(pid):
        """As Group.poll: None while it runs. How it ended is its own parent's to know."""
        return None if psutil.pid_exists(pid) else 0

    @staticmethod
    def stop(_):
        """What the user started is the user's to stop."""

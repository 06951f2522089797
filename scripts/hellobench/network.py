# SPDX-License-Identifier: MIT
"""The kernel's own account of TCP: counters, sockets and who listens. Reads only.

It is that of the network namespace of this process. The parse functions take the files' text. What
has to be cheap asks the kernel by sock_diag(7): /proc/net/tcp has a line for each of what can be
tens of thousands of sockets in TIME_WAIT.
"""

import contextlib
import os
import pathlib
import socket
import struct
import time

# TCP_*, net/tcp_states.h
ESTABLISHED, FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSE_WAIT, LISTEN = 1, 4, 5, 6, 8, 10
SETTLE_STEP_SECONDS = 0.25

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST, NLM_F_DUMP = 0x001, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
DIAG_MSG_BYTES = 72  # inet_diag_msg; attributes follow
INET_DIAG_INFO = 2  # the attribute with a tcp_info
LAST_DATA_RECV = 52  # where tcp_info has it, linux/tcp.h
HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, pid


def parse_counters(text):
    """Of /proc/net/snmp or netstat: pairs of lines, names and values, as {"Tcp.InSegs": 1}."""
    lines = text.splitlines()
    found = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        group, _, names = names.partition(":")
        found |= {f"{group}.{name}": int(value) for name, value
                  in zip(names.split(), values.split()[1:], strict=False)}
    return found


def counters():
    """All counters of the namespace, or as many as can be read."""
    found = {}
    for name in ("snmp", "netstat"):
        found |= parse_counters(read(f"/proc/net/{name}"))
    return found


def parse_sockstat(text):
    """Of /proc/net/sockstat: {"TCP.tw": sockets in TIME_WAIT, "TCP.mem": pages, ...}."""
    found = {}
    for line in text.splitlines():
        group, _, rest = line.partition(":")
        words = rest.split()
        found |= {f"{group}.{name}": int(value)
                  for name, value in zip(words[::2], words[1::2], strict=False)}
    return found


def parse_sockets(text):
    """Of /proc/net/tcp or tcp6: (local port, remote port, state, inode) of each socket."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) >= 10:  # A socket in TIME_WAIT has no more, and the inode 0.
            local, remote = (int(field.rpartition(":")[2], 16) for field in fields[1:3])
            found.append((local, remote, int(fields[3], 16), int(fields[9])))
    return found


def sockets():
    return parse_sockets(read("/proc/net/tcp")) + parse_sockets(read("/proc/net/tcp6"))


def listeners(port):
    """(pid, command) of those who listen on `port`; pid None where that is not for us to see."""
    inodes = {inode for local, _, state, inode in sockets() if local == port and state == LISTEN}
    if not inodes:
        return []
    names = {f"socket:[{inode}]" for inode in inodes}
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit() and not names.isdisjoint(descriptors(folder)):
            found.append((int(folder.name), read(folder / "comm").strip() or "?"))
    return sorted(found) or [(None, "a process of another user")]


def descriptors(folder):
    """What the descriptors of the process in this folder of /proc refer to, as far as we see."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder / "fd"):
            with contextlib.suppress(OSError):
                yield os.readlink(folder / "fd" / name)


def count(states, local_port=0, remote_port=0):
    """How many TCP sockets, of IPv4 and IPv6, are in one of `states` (and have the ports)."""
    try:
        return sum(diag_count(family, states, local_port, remote_port)
                   for family in (socket.AF_INET, socket.AF_INET6))
    except OSError:  # A kernel without INET_DIAG.
        return sum(state in states and local_port in (0, local) and remote_port in (0, remote)
                   for local, remote, state, _ in sockets())


def silences(port):
    """For each connection to `port` the milliseconds since its client last sent something; empty
    where the kernel does not tell."""
    found = []
    with contextlib.suppress(OSError):
        for family in (socket.AF_INET, socket.AF_INET6):
            for data in dump(family, {ESTABLISHED}, port, 1 << (INET_DIAG_INFO - 1)):
                found += parse_silences(data)
    return found


def parse_silences(data):
    found = []
    offset = 0
    while offset + HEADER.size <= len(data):
        length, kind, *_ = HEADER.unpack_from(data, offset)
        if kind in (NLMSG_ERROR, NLMSG_DONE):
            break
        at, end = offset + HEADER.size + DIAG_MSG_BYTES, offset + length
        while at + 4 <= end:
            size, name = struct.unpack_from("=HH", data, at)
            if name == INET_DIAG_INFO:
                found += struct.unpack_from("=I", data, at + 4 + LAST_DATA_RECV)
            at += max(4, (size + 3) & ~3)
        offset += (length + 3) & ~3
    return found


def diag_count(family, states, local_port, remote_port=0):
    return sum(count_messages(data)[0]
               for data in dump(family, states, local_port, remote_port=remote_port))


def dump(family, states, local_port, extensions=0, remote_port=0):
    """Yields the datagrams in which the kernel tells of the sockets. Raises OSError."""
    mask = sum(1 << state for state in states)
    # inet_diag_req_v2: family, protocol, extensions, padding, states, then inet_diag_sockid: ports
    # in network order, addresses, interface, cookie. A dump looks at the ports alone.
    request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, extensions, 0, mask)
    request += struct.pack("!HH", local_port, remote_port) + bytes(44)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as diag:
        diag.send(HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY,
                              NLM_F_REQUEST | NLM_F_DUMP, 0, 0) + request)
        while True:
            data = diag.recv(65536)
            yield data
            if count_messages(data)[1]:
                return


def count_messages(data):
    """(sockets that a datagram of a dump tells of, whether the dump ends in it)."""
    found = offset = 0
    while offset + HEADER.size <= len(data):
        length, kind, *_ = HEADER.unpack_from(data, offset)
        if kind == NLMSG_ERROR:
            number = -struct.unpack_from("=i", data, offset + HEADER.size)[0]
            raise OSError(number, f"sock_diag: {os.strerror(number)}")
        if kind == NLMSG_DONE:
            return found, True
        found += 1
        offset += (length + 3) & ~3
    return found, False


def established(port):
    """How many connections to `port` there are, as its server sees them."""
    return count({ESTABLISHED}, port)


def time_wait_count():
    """Sockets in TIME_WAIT."""
    return parse_sockstat(read("/proc/net/sockstat")).get("TCP.tw", 0)


def waiting(to_port=0):
    """The number of sockets in one of the WAIT states; with `to_port` those of its clients only:
    what a server closed first, this one or another, takes no port from its clients."""
    return count({TIME_WAIT, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT}, remote_port=to_port)


def settle(limit, timeout_s=75, to_port=0):
    """Waits until no more than `limit` sockets are `waiting`. Returns (seconds that it took, how
    many are left); after `timeout_s` it gives up."""
    began = time.monotonic()
    while (left := waiting(to_port)) > limit and time.monotonic() - began < timeout_s:
        time.sleep(SETTLE_STEP_SECONDS)
    return time.monotonic() - began, left


def read(path):
    """The text of a file in /proc, or "" where it can't be read."""
    try:
        return pathlib.Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""

# SPDX-License-Identifier: MIT
"""Sockets of a host, and what the kernel says of them."""

import collections
import contextlib
import errno
import resource
import select
import socket
import struct
import time

from hellotune.lab.namespaces import Skip

PORT = 8080
TCP_INFO_HEAD = struct.Struct("8B24I")  # struct tcp_info of linux/tcp.h, up to tcpi_total_retrans


def raise_file_limit(needed):
    """The soft limit of open files becomes the hard one. Raises Skip."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < needed:
        raise Skip(f"needs {needed} open files, the hard limit is {hard}")


def listener(host, backlog, port=PORT, address=None, options=()):
    with host.inside():
        made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for level, name, value in options:
        made.setsockopt(level, name, value)
    made.bind((host.address if address is None else address, port))
    made.listen(backlog)
    return made


def info(sock):
    """tcp_info's words by name. For a listener: waiting is Recv-Q and backlog is Send-Q of ss."""
    words = TCP_INFO_HEAD.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104))[8:]
    return {"waiting": words[4], "backlog": words[5], "cwnd": words[18]}


def start_connect(host, address, port=PORT):
    """A connect() that nobody waits for."""
    with host.inside():
        sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((address, port))
    return sock


def connect(host, address, port=PORT, timeout_seconds=5):
    with host.inside():
        sock = socket.socket()
    sock.settimeout(timeout_seconds)
    try:
        sock.connect((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def connect_many(host, address, count, port=PORT):
    """`count` connections, one after the other, kept open; errors by name."""
    sockets, errors = [], collections.Counter()
    for _ in range(count):
        try:
            sockets.append(connect(host, address, port))
        except OSError as error:
            errors[error_name(error)] += 1
    return sockets, errors


def error_name(error):
    return errno.errorcode.get(error.errno, type(error).__name__)


def wait_until(condition, seconds):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def readable(sock, seconds):
    return bool(select.select([sock], [], [], seconds)[0])


def read_all(sock):
    """Bytes up to the other side's end, or the name of the error."""
    received = b""
    try:
        while chunk := sock.recv(65536):
            received += chunk
    except OSError as error:
        return error_name(error)
    return received


def close_all(*groups):
    for group in groups:
        for sock in group:
            with contextlib.suppress(OSError):
                sock.close()

# SPDX-License-Identifier: MIT
"""What a connection sends: the timestamps option, and the window after a pause."""

import socket
import time

from hellotune.lab import sockets
from hellotune.lab.experiment import experiment
from hellotune.lab.namespaces import Skip
from hellotune.lab.sockets import PORT
from hellotune.lab.tap import Tap

PAUSE_SECONDS = 1.0  # Longer than the retransmission timeout of a short way: 200 ms.
AFTER_IDLE = "net.ipv4.tcp_slow_start_after_idle"


@experiment("timestamps")
def timestamps(lab):
    """tcp_timestamps costs 12 bytes in each segment, and only if both sides have it."""
    for server, client, header_bytes in ((1, 1, 32), (1, 0, 20), (0, 1, 20)):
        lab.set(lab.server, "net.ipv4.tcp_timestamps", server)
        lab.set(lab.client, "net.ipv4.tcp_timestamps", client)
        tap = Tap(lab.client)
        with sockets.listener(lab.server, 10) as listener, \
                sockets.connect(lab.client, lab.server.address) as sender:
            sender.sendall(b"hello")
            listener.accept()[0].close()
            heard = tap.hear(lambda segment: segment.data_bytes == 5, 1)
        lab.did("a request of 5 bytes")
        lab.check("bytes of its TCP header", [header_bytes], [one.header_bytes for one in heard])


@experiment("slow-start-idle")
def slow_start_idle(lab):
    """tcp_slow_start_after_idle takes the window back after a pause with reno, never with bbr.

    cubic behaves as reno does; a namespace may not choose it everywhere. bbr has a control of its
    own (cong_control in struct tcp_congestion_ops), and the kernel leaves its window alone.
    """
    for value, algorithm, falls in ((1, b"reno", True), (0, b"reno", False), (1, b"bbr", False)):
        lab.set(lab.server, AFTER_IDLE, value)
        sender, receiver = connected(lab)
        try:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm)
        except OSError as error:
            if algorithm == b"reno":
                raise Skip(f"no reno here ({error.strerror})") from error
            lab.note(f"no bbr here ({error.strerror})")
            sockets.close_all([sender, receiver])
            continue
        pump(sender, receiver, 1 << 20)
        before = sockets.info(sender)["cwnd"]
        time.sleep(PAUSE_SECONDS)
        pump(sender, receiver, 1)
        after = sockets.info(sender)["cwnd"]
        name = algorithm.decode()
        lab.did(f"{name}: 1 MiB, a pause of {PAUSE_SECONDS} s, one byte")
        lab.check(f"{name}: segments in the window before the pause", "more than 10", before,
                  before > 10)
        lab.check(f"{name}: after it", "less" if falls else "no less", after,
                  after < before if falls else after >= before)
        sockets.close_all([sender, receiver])


def connected(lab):
    """(server's end, client's end) of a new connection."""
    with sockets.listener(lab.server, 10, port=PORT) as listener:
        client = sockets.connect(lab.client, lab.server.address)
        return listener.accept()[0], client


def pump(sender, receiver, size):
    """Sends size bytes as the receiver takes them."""
    chunk, sent, received = b"x" * min(size, 65536), 0, 0
    sender.setblocking(False)
    receiver.settimeout(5)
    while received < size:
        try:
            if sent < size:
                sent += sender.send(chunk[:size - sent])
                continue
        except BlockingIOError:
            pass
        received += len(receiver.recv(65536))

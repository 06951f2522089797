# SPDX-License-Identifier: MIT
"""The queue of finished handshakes: who caps it, when, and what happens at its end."""

import select
import socket
import time

from hellotune.lab import sockets
from hellotune.lab.experiment import Moved, experiment

SOMAXCONN = "net.core.somaxconn"


@experiment("somaxconn", quick=True)
def somaxconn(lab):
    """listen(backlog) gets min(backlog, somaxconn), and the queue holds one more than that.

    A connection that meets a full queue is not refused: its SYN is dropped, and the client tries
    again after a second. Nobody sees an error; TcpExtListenOverflows counts them.
    """
    for limit, asked in ((128, 65535), (4096, 65535), (65535, 65535), (4096, 511)):
        lab.set(lab.server, SOMAXCONN, limit)
        with sockets.listener(lab.server, asked) as listener:
            lab.did(f"listen({asked})")
            lab.check("Send-Q", min(asked, limit), sockets.info(listener)["backlog"])
    for backlog, lost in ((50, True), (200, False)):
        moved, client_moved = Moved(lab.server), Moved(lab.client)
        with sockets.listener(lab.server, backlog) as listener:
            clients = [sockets.start_connect(lab.client, lab.server.address) for _ in range(120)]
            lab.did(f"120 connections to listen({backlog}), nobody accepts")
            wanted = min(120, backlog + 1)
            sockets.wait_until(lambda: sockets.info(listener)["waiting"] == wanted, 3)
            # The lost SYNs come again after a second, and are lost again.
            sockets.wait_until(lambda: client_moved["TcpExtTCPSynRetrans"] > 0, 3 if lost else 0)
            lab.check("connections in the queue", wanted, sockets.info(listener)["waiting"])
            lab.check("clients still in SYN-SENT", 120 - wanted, lab.client.count("SYN-SENT"))
            overflows = moved["TcpExtListenOverflows"]
            lab.check("ListenOverflows", "more than 68" if lost else 0, overflows,
                      overflows > 68 if lost else overflows == 0)
            sockets.close_all(clients)


@experiment("listen-late")
def listen_late(lab):
    """Raising somaxconn does nothing for a socket that listens already.

    The limit is applied when listen() is called, so the server has to be started again, or call
    listen() again.
    """
    lab.set(lab.server, SOMAXCONN, 128)
    with sockets.listener(lab.server, 4096) as listener:
        lab.did("listen(4096)")
        lab.check("Send-Q", 128, sockets.info(listener)["backlog"])
        lab.set(lab.server, SOMAXCONN, 65535)
        lab.check("Send-Q", 128, sockets.info(listener)["backlog"])
        listener.listen(4096)
        lab.did("listen(4096) again")
        lab.check("Send-Q", 4096, sockets.info(listener)["backlog"])


@experiment("migrate", quick=True)
def migrate(lab):
    """With tcp_migrate_req, connections that wait at a closing listener go to its neighbour.

    Two SO_REUSEPORT listeners share the waiting connections by their hash. One closes: by default
    its clients, who believe to be connected, get a reset.
    """
    for value in (0, 1):
        lab.set(lab.server, "net.ipv4.tcp_migrate_req", value)
        share = [(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)]
        first, second = (sockets.listener(lab.server, 200, options=share) for _ in range(2))
        clients, _ = sockets.connect_many(lab.client, lab.server.address, 100)
        sockets.wait_until(lambda: queued(first) + queued(second) == 100, 3)
        there, moved = queued(first), Moved(lab.server)
        first.close()
        lab.did("100 clients at two listeners, one of which closes")
        served = serve(second, 100 if value else 100 - there, b"hello")
        answers = [sockets.read_all(client) for client in clients]
        expected_resets = 0 if value else there
        lab.check("clients in the closed queue", "more than 0", there, there > 0)
        lab.check("clients reset", expected_resets, answers.count("ECONNRESET"))
        lab.check("clients served", 100 - expected_resets, answers.count(b"hello"))
        lab.check("accepted by the other", 100 - expected_resets, served)
        lab.check("TCPMigrateReqSuccess", there if value else 0,
                  moved["TcpExtTCPMigrateReqSuccess"])
        sockets.close_all(clients, [second])


def queued(listener):
    return sockets.info(listener)["waiting"]


def serve(listener, count, text):
    """Accepts up to count connections, sends text to each, closes it; how many there were."""
    served, deadline = 0, time.monotonic() + 3
    listener.setblocking(False)
    while served < count and time.monotonic() < deadline:
        if not select.select([listener], [], [], 0.1)[0]:
            continue
        with listener.accept()[0] as connection:
            connection.sendall(text)
        served += 1
    return served

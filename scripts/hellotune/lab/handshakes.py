# SPDX-License-Identifier: MIT
"""Half-open connections: how many, for how long, and what a full queue does to them."""

import socket
import time

from hellotune.lab import sockets
from hellotune.lab.experiment import Moved, experiment
from hellotune.lab.sockets import PORT
from hellotune.lab.tap import ACK, RST, STRANGER, SYN, Tap, Writer

FLOOD = 600
SYN_RETRIES_OPTION = (socket.IPPROTO_TCP, socket.TCP_SYNCNT, 5)


@experiment("synqueue")
def synqueue(lab):
    """listen()'s backlog limits half-open connections; tcp_max_syn_backlog only without cookies.

    600 SYNs come from an address that never answers. Without SYN cookies three quarters of
    tcp_max_syn_backlog (and one more) stay, or backlog + 1 if that is less; the rest is dropped.
    With cookies the key is ignored, and what the backlog can't hold is answered with a cookie.
    """
    lab.set(lab.server, "net.core.somaxconn", 4096)
    writer = Writer(lab)
    for cookies, limit, backlog, kept, counter in (
            (0, 128, 4096, 128 - 128 // 4 + 1, "TcpExtListenDrops"),
            (0, 1024, 4096, FLOOD, "TcpExtListenDrops"),
            (0, 1024, 100, 101, "TcpExtTCPReqQFullDrop"),
            (1, 128, 4096, FLOOD, "TcpExtSyncookiesSent"),
            (1, 4096, 100, 101, "TcpExtSyncookiesSent"),
            (2, 4096, 4096, 0, "TcpExtSyncookiesSent")):
        lab.set(lab.server, "net.ipv4.tcp_syncookies", cookies)
        lab.set(lab.server, "net.ipv4.tcp_max_syn_backlog", limit)
        with sockets.listener(lab.server, backlog):
            moved = Moved(lab.server)
            for source_port in range(20000, 20000 + FLOOD):
                writer.send((STRANGER, source_port), (lab.server.address, PORT), SYN)
            sockets.wait_until(lambda: moved["TcpInSegs"] >= FLOOD, 2)
            lab.did(f"{FLOOD} SYNs to listen({backlog})")
            lab.check("half-open connections", kept, lab.server.count("SYN-RECV"))
            lab.check(counter.removeprefix("TcpExt"), FLOOD - kept, moved[counter])


@experiment("synack-retries")
def synack_retries(lab):
    """A half-open connection lives 2^(tcp_synack_retries + 1) - 1 seconds.

    The SYN-ACK is sent again after 1, 2, 4 seconds and so on, tcp_synack_retries times; after one
    more such pause the connection is forgotten. A listener's TCP_SYNCNT goes before the key.
    """
    lab.set(lab.server, "net.ipv4.tcp_synack_retries", 1)
    writer, moved = Writer(lab), Moved(lab.server)
    other = PORT + 1
    with sockets.listener(lab.server, 100), \
            sockets.listener(lab.server, 100, port=other, options=[SYN_RETRIES_OPTION]):
        started = time.monotonic()
        for source_port in range(20000, 20020):
            for port in (PORT, other):
                writer.send((STRANGER, source_port), (lab.server.address, port), SYN)
        lab.did("20 SYNs to a plain listener, 20 to one with TCP_SYNCNT 5; nobody answers")
        sockets.wait_until(lambda: lab.server.count("SYN-RECV") == 40, 1)
        at_first = halves(lab, other)
        late = time.monotonic() - started > 2.9  # on a machine too busy to look in time
        lab.check("half-open at first", (20, 20), at_first, at_first == (20, 20) or late)
        sockets.wait_until(lambda: lab.server.count("SYN-RECV", PORT) == 0, 6)
        seconds = time.monotonic() - started
        lab.check("half-open in the end", (0, 20), halves(lab, other))
        lab.check("seconds until the plain ones were gone", "3, not 1 or 7", round(seconds, 1),
                  2.5 < seconds < 7 or late)
        lab.check("TCPSynRetrans", "20 and more", moved["TcpExtTCPSynRetrans"],
                  moved["TcpExtTCPSynRetrans"] >= 20)


def halves(lab, other):
    return lab.server.count("SYN-RECV", PORT), lab.server.count("SYN-RECV", other)


@experiment("abort-overflow")
def abort_overflow(lab):
    """tcp_abort_on_overflow resets whose last ACK meets a full queue; SYNs are dropped either way.

    Handshakes begin while there is room, the queue fills up, then their last segments arrive.
    """
    strangers = range(20000, 20008)
    writer = Writer(lab)
    server = (lab.server.address, PORT)
    for value, resets in ((0, 0), (1, len(strangers))):
        lab.set(lab.server, "net.ipv4.tcp_abort_on_overflow", value)
        tap = Tap(lab.client)
        with sockets.listener(lab.server, 20) as listener:
            for port in strangers:
                writer.send((STRANGER, port), server, SYN, sequence=1000)
            synacks = tap.hear(lambda heard: heard.flags == SYN | ACK
                               and heard.target[0] == STRANGER, len(strangers))
            fillers = [sockets.start_connect(lab.client, lab.server.address) for _ in range(40)]
            sockets.wait_until(lambda: sockets.info(listener)["waiting"] == 21, 2)
            moved = Moved(lab.server)
            for synack in synacks:
                writer.send(synack.target, server, ACK, 1001, synack.sequence + 1 & 0xFFFFFFFF)
            seen = tap.hear(lambda heard: heard.flags & RST and heard.target[0] == STRANGER,
                            len(strangers), 0.5)
            lab.did(f"{len(strangers)} handshakes end at the full queue of listen(20)")
            lab.check("handshakes begun", len(strangers), len(synacks))
            lab.check("resets", resets, len(seen))
            lab.check("EmbryonicRsts", resets, moved["TcpExtEmbryonicRsts"])
            lab.check("still half-open", len(strangers) - resets, lab.server.count("SYN-RECV"))
            lab.check("other clients, whose SYNs were dropped", 40 - 21,
                      lab.client.count("SYN-SENT"))
            sockets.close_all(fillers)

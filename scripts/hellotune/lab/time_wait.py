# SPDX-License-Identifier: MIT
"""TIME_WAIT: which side has it, who may take such a port over, and what ends it early."""

import collections
import contextlib
import time

from hellotune.lab import sockets
from hellotune.lab.experiment import Moved, experiment
from hellotune.lab.sockets import PORT
from hellotune.lab.tap import FIN, RST, Tap, Writer

RANGE = "net.ipv4.ip_local_port_range"
TW_REUSE, TW_DELAY = "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_tw_reuse_delay"


def exchange(lab, listener, count, first_to_close, host=None):
    """count connections, one after the other, each closed by both sides; a Counter of results."""
    results = collections.Counter()
    address, port = listener.getsockname()
    for _ in range(count):
        try:
            client = sockets.connect(host or lab.client, address, port)
        except OSError as error:
            results[sockets.error_name(error)] += 1
            continue
        server = listener.accept()[0]
        one, other = (server, client) if first_to_close == "server" else (client, server)
        one.close()
        other.settimeout(5)
        results["ok" if other.recv(1) == b"" else "data"] += 1
        other.close()
    return dict(results)


@experiment("tw-side", quick=True)
def tw_side(lab):
    """TIME_WAIT stays with the side that closes first; only a client's uses up the client's ports.

    A server that closes first (as hello-uring does after HTTP/1.0 and "Connection: close") lets a
    client with 200 ports make as many connections as it likes: a SYN that meets TIME_WAIT on the
    server begins a new connection. A client that closes first is out of ports after 200.
    """
    lab.set(lab.client, RANGE, "40000 40199")
    lab.set(lab.client, TW_REUSE, 0)
    with sockets.listener(lab.server, 100) as listener:
        results = exchange(lab, listener, 1000, "server")
        lab.did("1000 connections from 200 ports, the server closes first")
        lab.check("results", {"ok": 1000}, results)
        server, client = sides(lab, PORT)
        lab.check("TIME_WAIT on the server", "1 to 200", server, 1 <= server <= 200)
        lab.check("TIME_WAIT on the client", 0, client)
    with sockets.listener(lab.server, 100, port=PORT + 1) as listener:
        results = exchange(lab, listener, 300, "client")
        lab.did("300 connections from 200 ports, the client closes first")
        lab.check("results", {"ok": 200, "EADDRNOTAVAIL": 100}, results)
        server, client = sides(lab, PORT + 1)
        lab.check("TIME_WAIT on the server", 0, server)
        lab.check("TIME_WAIT on the client", 200, client)


def sides(lab, port):
    return lab.server.count("TIME-WAIT", port), lab.client.count("TIME-WAIT", port)


@experiment("tw-reuse", quick=True)
def tw_reuse(lab):
    """tcp_tw_reuse = 1 lets connect() take over its own TIME_WAIT, after a while, with timestamps.

    2, the default, does so on loopback alone. The while is a second, or tcp_tw_reuse_delay
    milliseconds since Linux 6.14. In each row 100 connections that the client closed first use up
    its 100 ports; after a pause 50 more are tried.
    """
    lab.set(lab.client, RANGE, "40000 40099")
    pause_seconds = 2.1  # In whole seconds, and more than one, before 6.14.
    if lab.client.has(TW_DELAY):
        lab.set(lab.client, TW_DELAY, 100)
        pause_seconds = 0.3
    # Where, with timestamps at first, then tcp_tw_reuse, and whether the ports are taken over.
    rows = [("veth", 1, 0, False), ("veth", 1, 2, False), ("veth", 1, 1, True),
            ("veth", 0, 1, False), ("lo", 1, 0, False), ("lo", 1, 2, True)]
    with contextlib.ExitStack() as opened:
        # Each row has a port of the server to itself: the tuples of others don't count.
        listeners = [opened.enter_context(tw_listener(lab, row[0], PORT + number))
                     for number, row in enumerate(rows)]
        for (path, stamped, _, _), listener in zip(rows, listeners):
            lab.set(lab.client, "net.ipv4.tcp_timestamps", stamped)
            lab.did(f"{path}: 100 connections to port {listener.getsockname()[1]}")
            lab.check("results", {"ok": 100}, exchange(lab, listener, 100, "client"))
        lab.set(lab.client, "net.ipv4.tcp_timestamps", 1)
        lab.did(f"a pause of {pause_seconds} s")
        time.sleep(pause_seconds)
        for (path, _, value, reused), listener in zip(rows, listeners):
            lab.set(lab.client, TW_REUSE, value)
            try_again(lab, path, listener, reused)
        if lab.client.has(TW_DELAY):
            lab.set(lab.client, TW_REUSE, 1)
            lab.set(lab.client, TW_DELAY, 60000)
            try_again(lab, "veth", listeners[0], False)


def tw_listener(lab, path, port):
    host, address = (lab.client, "127.0.0.1") if path == "lo" else (lab.server, None)
    return sockets.listener(host, 100, port=port, address=address)


def try_again(lab, path, listener, reused):
    moved = Moved(lab.client)
    results = exchange(lab, listener, 50, "client")
    lab.did(f"{path}: 50 more to port {listener.getsockname()[1]}")
    lab.check("results", {"ok": 50} if reused else {"EADDRNOTAVAIL": 50}, results)
    lab.check("TWRecycled", 50 if reused else 0, moved["TcpExtTWRecycled"])


@experiment("fin-timeout", quick=True)
def fin_timeout(lab):
    """tcp_fin_timeout ends FIN_WAIT_2, whose peer never closes; TIME_WAIT lasts a minute anyway."""
    for value, last in ((60, False), (2, True)):
        lab.set(lab.server, "net.ipv4.tcp_fin_timeout", value)
        port = PORT + value
        with sockets.listener(lab.server, 10, port=port) as listener:
            exchange(lab, listener, 1, "server")
            client = sockets.connect(lab.client, lab.server.address, port)
            listener.accept()[0].close()
            closed = time.monotonic()
            lab.did("the server closes a connection that the client closes too, and one that not")
            sockets.wait_until(lambda: lab.server.count("FIN-WAIT-2", port) == 1, 2)
            for state, expected in (("TIME-WAIT", 60), ("FIN-WAIT-2", value)):
                timers = [row.timer_seconds for row in lab.server.rows(state, port)]
                # Ten seconds are for a busy machine, on which it may be over before we look.
                over = not timers and time.monotonic() - closed > expected
                lab.check(f"seconds left in {state}", f"{expected}, or a little less", timers, over
                          or len(timers) == 1 and expected - 10 < timers[0] <= expected + 0.1)
        if last:
            gone = sockets.wait_until(lambda: lab.server.count("FIN-WAIT-2", port) == 0, value + 10)
            lab.check(f"FIN-WAIT-2 gone after {value} s", True, gone)
            lab.check("TIME-WAIT still there", 1, lab.server.count("TIME-WAIT", port))
        client.close()


@experiment("tw-buckets")
def tw_buckets(lab):
    """Beyond tcp_max_tw_buckets connections end without TIME_WAIT; nobody gets an error."""
    for value, kept in ((4096, 100), (0, 0)):
        lab.set(lab.server, "net.ipv4.tcp_max_tw_buckets", value)
        port = PORT + (value > 0)
        moved = Moved(lab.server)
        with sockets.listener(lab.server, 10, port=port) as listener:
            results = exchange(lab, listener, 100, "server")
        lab.did("100 connections, the server closes first")
        lab.check("results", {"ok": 100}, results)
        lab.check("TIME_WAIT on the server", kept, lab.server.count("TIME-WAIT", port))
        lab.check("TCPTimeWaitOverflow", 100 - kept, moved["TcpExtTCPTimeWaitOverflow"])


@experiment("rfc1337")
def rfc1337(lab):
    """tcp_rfc1337 = 0 lets a reset end TIME_WAIT; 1 ignores it."""
    writer = Writer(lab)
    for value in (0, 1):
        lab.set(lab.server, "net.ipv4.tcp_rfc1337", value)
        port = PORT + value
        tap = Tap(lab.client)
        with sockets.listener(lab.server, 10, port=port) as listener:
            exchange(lab, listener, 1, "server")
        last, = tap.hear(lambda heard: heard.flags & FIN and heard.target[1] == port, 1)
        before = lab.server.count("TIME-WAIT", port)
        writer.send(last.source, last.target, RST, last.sequence + last.data_bytes + 1 & 0xFFFFFFFF)
        # The segment is taken in before sendto() returns, or by another CPU soon after.
        sockets.wait_until(lambda: lab.server.count("TIME-WAIT", port) == value, 0.5)
        lab.did("a reset with the right number to a connection in TIME_WAIT")
        lab.check("TIME_WAIT before and after", (1, value),
                  (before, lab.server.count("TIME-WAIT", port)))

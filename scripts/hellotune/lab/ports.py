# SPDX-License-Identifier: MIT
"""The client's ports: in which order they are taken, and what happens if one is the server's."""

import statistics
import time

from hellotune.lab import sockets
from hellotune.lab.experiment import experiment
from hellotune.lab.sockets import PORT

RANGE = "net.ipv4.ip_local_port_range"
LOOPBACK = "127.0.0.1"
ATTEMPTS = 500


@experiment("port-parity")
def port_parity(lab):
    """connect() takes every second port first; once those are in use each call searches them all.

    The lower end of the range decides the parity. The search is why a range is widened long before
    it is used up.
    """
    count = 10000
    lab.set(lab.server, "net.core.somaxconn", 65535)
    lab.set(lab.client, RANGE, f"40000 {40000 + count - 1}")
    sockets.raise_file_limit(count // 2 + 400)
    clients, costs = [], []
    with sockets.listener(lab.server, 65535):
        for _ in range(count // 2 + 200):
            started = time.thread_time()
            clients.append(sockets.connect(lab.client, lab.server.address))
            costs.append(time.thread_time() - started)
    odd = [client.getsockname()[1] % 2 for client in clients]
    lab.did(f"{len(clients)} connections from {count} ports, kept open")
    lab.check("first odd port at connection", count // 2, odd.index(1) if 1 in odd else None)
    early = 1e6 * statistics.median(costs[:500])
    late = 1e6 * statistics.median(costs[count // 2:])
    lab.check("CPU microseconds per connection, first 500 and last 200", "twice as many at least",
              f"{early:.0f}, {late:.0f}", late > 2 * early)
    sockets.close_all(clients)


@experiment("self-connect", quick=True)
def self_connect(lab):
    """A loop that waits for the server may connect to itself, and then the server can't start.

    It happens when the port waited for is in the range: connect() chooses it as its own, both SYNs
    cross, and the connection is made of one socket. Reserving the port, or a range without it,
    prevents this.
    """
    host, other = lab.server, PORT + 10
    lab.set(host, RANGE, "8000 8099")
    attempts, sock = poll(host, PORT)
    lab.did("connect() to a port of that range, on which nobody listens, until it succeeds")
    lab.check("connected", "to itself", sock and sock.getsockname(),
              sock and sock.getsockname() == sock.getpeername())
    lab.note(f"after {attempts} attempts")
    lab.check("the server's bind()", "EADDRINUSE", bind_result(host, PORT))
    if sock:
        sock.close()
    lab.did("closing it")
    lab.check("the server's bind(), with SO_REUSEADDR", "EADDRINUSE", bind_result(host, PORT))

    lab.set(host, "net.ipv4.ip_local_reserved_ports", other)
    _, sock = poll(host, other)
    lab.did("the same with the reserved port")
    lab.check(f"connected in {ATTEMPTS} attempts", None, sock)
    lab.check("the server's bind()", "ok", bind_result(host, other))

    lab.set(host, RANGE, f"{other} {other}")
    lab.did("connect() with no port but the reserved one")
    lab.check("connect()", "EADDRNOTAVAIL", connect_result(host, other))

    lab.set(host, "net.ipv4.ip_local_reserved_ports", "")
    lab.set(host, RANGE, "10240 65535")
    lab.did("connect() with our range")
    lab.check(f"connected in {ATTEMPTS} attempts", None, poll(host, other)[1])
    lab.check("connect()", "ECONNREFUSED", connect_result(host, other))


def poll(host, port):
    """(attempts, socket or None)"""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return attempt, sockets.connect(host, LOOPBACK, port)
        except OSError:
            continue
    return ATTEMPTS, None


def connect_result(host, port):
    try:
        sockets.connect(host, LOOPBACK, port).close()
    except OSError as error:
        return sockets.error_name(error)
    return "ok"


def bind_result(host, port):
    try:
        sockets.listener(host, 10, port=port, address="0.0.0.0").close()
    except OSError as error:
        return sockets.error_name(error)
    return "ok"

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""misbehaving_server.py MODE PORT [--body TEXT] [--after N] [--delay S] [--sound N] [--label X]

A small HTTP server that misbehaves in the one way that MODE says, for tests of load generators'
parsers and of the harness. It prints "ready PORT" once it has its port (0: any), and at the end
(SIGTERM) "connections N requests M", so that a test knows what really happened. Loopback only.
"""

import argparse
import os
import signal
import socket
import struct
import sys
import threading
import time

REASONS = {200: "OK", 203: "OK", 302: "Found", 404: "Not Found", 503: "Service Unavailable"}


class Counter:
    def __init__(self):
        self.value = 0
        self._lock = threading.Lock()

    def next(self):
        with self._lock:
            self.value += 1
            return self.value


class Server:
    """What the modes need to know: the right body, and how often they were asked."""

    def __init__(self, body, after, delay_s, sound):
        self.body, self.after, self.delay_s, self.sound = body, after, delay_s, sound
        self.connections, self.requests = Counter(), Counter()
        self.good_from = 0.0  # slow_start: when it begins to answer well


class Exchange:
    """One request, and the ways to answer it. `open` says whether the connection stays."""

    def __init__(self, server, connection, head, nth_here):
        self.server, self.connection = server, connection
        self.nth = server.requests.next()  # of all, from 1
        self.nth_here = nth_here  # of its connection, from 1
        words = head.lower()
        self.open = (b"\r\nconnection: keep-alive" in words if b" http/1.0\r\n" in words
                     else b"\r\nconnection: close" not in words)

    def answer(self, status=200, body=None, length=None, extra=""):
        body = self.server.body if body is None else body
        length = len(body) if length is None else length
        self.send(f"HTTP/1.1 {status} {REASONS[status]}\r\nServer: t\r\n"
                  f"Content-Type: text/plain\r\nContent-Length: {length}\r\n{extra}"
                  f"Connection: {'keep-alive' if self.open else 'close'}\r\n\r\n".encode() + body)

    def send(self, data):
        self.connection.sendall(data)


def ok(exchange):
    exchange.answer()


def hang(exchange):
    # Holds the connection until the client gives up.
    exchange.connection.settimeout(None)
    while exchange.connection.recv(4096):
        pass
    exchange.open = False


def hangsome(exchange):
    (hang if exchange.nth % 40 == 0 else ok)(exchange)


def stalls(exchange):
    # Each other connection waits for ever for its tenth answer; new ones are served.
    is_odd = exchange.connection.fileno() % 2 == 1
    (hang if is_odd and exchange.nth_here == 10 else ok)(exchange)


def reset_now(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset(exchange):
    if exchange.nth % 50 == 0:
        reset_now(exchange.connection)
        exchange.open = False
    else:
        exchange.answer()


def wrong_body(exchange):
    exchange.answer(body=exchange.server.body + b"?!")


def same_size(exchange):
    exchange.answer(body=bytes(reversed(exchange.server.body)))


def status_203(exchange):
    exchange.answer(203)


def short_body(exchange):
    body = exchange.server.body
    exchange.answer(body=body[:5], length=len(body))
    exchange.open = False


def always_503(exchange):
    exchange.answer(503)


def mixed(exchange):
    exchange.answer((200, 404, 503)[exchange.nth % 3])


def no_response(exchange):
    exchange.open = False


def no_keepalive(exchange):
    exchange.open = False
    exchange.answer()


def dies(exchange):
    if exchange.nth > exchange.server.after:
        os._exit(1)
    exchange.answer()


def slow_start(exchange):
    exchange.answer(200 if time.monotonic() >= exchange.server.good_from else 503)


def garbage(exchange):
    exchange.send(b"THIS IS NOT HTTP\r\n\r\n")
    exchange.open = False


def chunked(exchange):
    exchange.send(b"HTTP/1.1 200 OK\r\nServer: t\r\nTransfer-Encoding: chunked\r\nConnection: "
                  + (b"keep-alive" if exchange.open else b"close")
                  + b"\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(exchange.server.body),
                                                       exchange.server.body))


def nolen(exchange):
    exchange.send(b"HTTP/1.1 200 OK\r\nServer: t\r\nConnection: close\r\n\r\n"
                  + exchange.server.body)
    exchange.open = False


def close_n(exchange):
    exchange.open = exchange.open and exchange.nth_here < 10
    exchange.answer()


def var(exchange):
    body = exchange.server.body
    exchange.answer(body=body[:len(body) - exchange.nth % 3])


def redirect(exchange):
    exchange.answer(302, extra="Location: /\r\n")


MODES = {"ok": ok, "hang": hang, "hangsome": hangsome, "reset": reset, "reset_accept": ok,
         "wrong_body": wrong_body, "same_size": same_size, "status_203": status_203,
         "short_body": short_body, "503": always_503, "mixed": mixed,
         "no_response": no_response, "no_keepalive": no_keepalive, "dies": dies,
         "slow_start": slow_start, "garbage": garbage, "chunked": chunked, "nolen": nolen,
         "stalls": stalls, "closeN": close_n, "var": var, "redirect": redirect}


def serve(server, mode, connection):
    pending, nth, is_open = b"", 0, True
    with connection:
        while is_open:
            while b"\r\n\r\n" not in pending:
                data = connection.recv(65536)
                if not data:
                    return
                pending += data
            head, _, pending = pending.partition(b"\r\n\r\n")
            nth += 1
            exchange = Exchange(server, connection, head + b"\r\n", nth)
            (ok if exchange.nth <= server.sound else MODES[mode])(exchange)
            is_open = exchange.open


def serve_quietly(server, mode, connection):
    try:
        serve(server, mode, connection)
    except OSError:
        pass  # the client has gone, which many of the modes make it do


def accept_all(server, mode, listener):
    while True:
        connection, _ = listener.accept()
        server.connections.next()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if mode == "reset_accept":
            reset_now(connection)
            connection.close()
            continue
        threading.Thread(target=serve_quietly, args=(server, mode, connection),
                         daemon=True).start()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("mode", choices=sorted(MODES))
    parser.add_argument("port", type=int)
    parser.add_argument("--body", default="Hello World!")
    parser.add_argument("--after", type=int, default=50, help="dies: answers before the end")
    parser.add_argument("--delay", type=float, default=1.0,
                        help="slow_start: seconds without listening, then seconds of 503")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--sound", type=int, default=0, help="good answers before it begins")
    parser.add_argument("--label", help="only there to be seen in /proc")
    options = parser.parse_args()
    server = Server(options.body.encode(), options.after, options.delay, options.sound)
    listener = socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((options.host, options.port))

    def stop(*_):
        print("connections", server.connections.value, "requests", server.requests.value,
              flush=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    if options.mode != "slow_start":
        listener.listen(1024)
    print("ready", listener.getsockname()[1], flush=True)
    if options.mode == "slow_start":
        time.sleep(server.delay_s)  # a port that is bound and refuses
        server.good_from = time.monotonic() + server.delay_s
        listener.listen(1024)
    accept_all(server, options.mode, listener)


if __name__ == "__main__":
    sys.exit(main())

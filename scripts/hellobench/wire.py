# SPDX-License-Identifier: MIT
"""HTTP/1 answers as they are on the wire: no client library that would repair or retry anything.

A Connection reads one answer after the other and keeps what came after it, so nothing that a server
sends is lost or made up. Every wait has a deadline.
"""

import dataclasses
import re
import socket
import time

RECEIVE_BYTES = 65536
HEAD_BYTES_MAX = 65536
STATUS_LINE = re.compile(r"HTTP/(1\.[01]) (\d{3})(?: .*)?")


class BadAnswer(Exception):
    """What came is not the answer that it should be; the text says what came."""


@dataclasses.dataclass
class Answer:
    status: int
    version: str  # "1.0" or "1.1"
    fields: list[tuple[str, str]]  # names in lower case
    head: str  # as received, the empty line included
    body: bytes
    raw: bytes  # all of it, as received
    framing: str  # "length", "chunked", "close" or "none" (an answer to HEAD)

    def field(self, name):
        return next((value for key, value in self.fields if key == name), None)

    def announces(self, option):
        """Whether `option` is in Connection."""
        return any(key == "connection" and option in re.split(r"[ ,\t]+", value.lower())
                   for key, value in self.fields)


class Connection:
    def __init__(self, host, port, limit_s):
        self.limit_s = limit_s
        self.received = b""  # and not yet read as part of an answer
        self.ended = False
        self.socket = socket.create_connection((host, port), timeout=limit_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.settimeout(self.limit_s)
        self.socket.sendall(data)

    def answer(self, method="GET"):
        """The next answer. Raises BadAnswer or OSError."""
        deadline = time.monotonic() + self.limit_s
        self.receive_until(lambda: b"\r\n\r\n" in self.received, deadline, 0, "of a head")
        end = self.received.index(b"\r\n\r\n") + 4
        head = self.received[:end].decode("latin-1")
        status_line, *lines = head[:-4].split("\r\n")
        found = STATUS_LINE.fullmatch(status_line)
        if not found:
            raise BadAnswer(f"no HTTP/1 status line but {status_line[:80]!r}")
        fields = [field_of(line) for line in lines]
        framing, length = framing_of(fields, method)
        start, body = end, b""
        if framing == "length":
            self.receive_until(lambda: len(self.received) >= start + length, deadline, start,
                               f"of a body of {length}")
            end = start + length
            body = self.received[start:end]
        elif framing == "chunked":
            body, end = self.chunks(start, deadline)
        elif framing == "close":
            self.receive_until(lambda: self.ended, deadline, start, "of a body that a close ends")
            end = len(self.received)
            body = self.received[start:]
        raw, self.received = self.received[:end], self.received[end:]
        return Answer(int(found[2]), found[1], fields, head, body, raw, framing)

    def chunks(self, at, deadline):
        """(the content, where it ends) of a chunked body that starts at `at`."""
        content = b""
        while True:
            line, at = self.line(at, deadline)
            try:
                size = int(line.split(b";")[0], 16)
            except ValueError:
                raise BadAnswer(f"no chunk size but {line[:40]!r}") from None
            if size == 0:
                break
            end = at + size
            self.receive_until(lambda end=end: len(self.received) >= end + 2, deadline, at,
                               f"of a chunk of {size}")
            content += self.received[at:end]
            at = end + 2
        while line:  # Trailers, then the empty line.
            line, at = self.line(at, deadline)
        return content, at

    def line(self, at, deadline):
        self.receive_until(lambda: b"\r\n" in self.received[at:], deadline, at,
                           "of a line between chunks")
        end = self.received.index(b"\r\n", at)
        return self.received[at:end], end + 2

    def receive_until(self, enough, deadline, start, part):
        """Receives until `enough` says so; `part` is what is read from `start` on, for errors."""
        while not enough():
            seen = self.received[start:]
            got = f"{len(seen)} bytes {part}: {seen[:80]!r}"
            if self.ended:
                raise BadAnswer(f"the connection ended after {got}")
            if len(self.received) > HEAD_BYTES_MAX:
                raise BadAnswer(f"no end in sight after {got}")
            left = deadline - time.monotonic()
            if left <= 0:
                raise BadAnswer(f"nothing more within {self.limit_s:g} s after {got}")
            self.receive(left)

    def receive(self, limit_s):
        """Adds what comes within the time; False if nothing did."""
        self.socket.settimeout(limit_s)
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except TimeoutError:
            return False
        except ConnectionResetError:
            data = b""
        self.ended = not data
        self.received += data
        return True

    def closes_within(self, limit_s):
        """Whether the server closes, having sent nothing more."""
        if not self.ended:
            self.receive(limit_s)
        return self.ended and not self.received


def field_of(line):
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip():
        raise BadAnswer(f"no header field but {line[:80]!r}")
    return name.lower(), value.strip()


def framing_of(fields, method):
    """How the end of the body is told, and its length if that is how."""
    lengths = {value for name, value in fields if name == "content-length"}
    if method == "HEAD":
        return "none", 0
    if any(name == "transfer-encoding" and value.lower() == "chunked" for name, value in fields):
        if lengths:
            raise BadAnswer("both Content-Length and chunked")
        return "chunked", None
    if not lengths:
        return "close", None
    if len(lengths) > 1 or not all(re.fullmatch(r"\d{1,9}", value) for value in lengths):
        raise BadAnswer(f"Content-Length is {', '.join(sorted(lengths))}")
    return "length", int(lengths.pop())

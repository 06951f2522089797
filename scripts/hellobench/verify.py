# SPDX-License-Identifier: MIT
"""Is it the right answer? Asked over raw sockets before a server is measured, and in `verify`.

A wrong status, a wrong body or framing that can't be read disqualify: the server gets no number.
All else (keep-alive, Date, HEAD ...) is a trait: it is reported, and nobody is shut out for it.
The short check is what every cell begins with and takes milliseconds; `full` takes seconds.
"""

import dataclasses
import email.utils
import re
import time

from hellobench.errors import HarnessError
from hellobench.model import Problem
from hellobench.wire import BadAnswer, Connection

ANSWER_LIMIT_S = 2.0
# How long a server may take to close a connection that it should close.
CLOSE_LIMIT_S = 0.5
GOOD_ANSWERS = 5
POLL_FIRST_S, POLL_LAST_S = 0.001, 0.05
SPLIT_GAP_S = 0.03
DATE_LIMIT_S = 3.0
PIPELINED = 16
LONG_HEADER_BYTES = 8192
IMF_FIXDATE = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d "
                         r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} "
                         r"\d\d:\d\d:\d\d GMT")


@dataclasses.dataclass
class Verification:
    ok: bool = True
    problems: list[Problem] = dataclasses.field(default_factory=list)
    traits: dict = dataclasses.field(default_factory=dict)
    response_bytes_keepalive: int | None = None  # head and body, to a GET of HTTP/1.1
    response_bytes_close: int | None = None  # to a GET of HTTP/1.0, as ab sends it
    head: str = ""  # of the first answer, as received


class NotReady(HarnessError):
    """The server ended, or gave no good answer in time; `problem` says which."""

    def __init__(self, code, text):
        super().__init__(text)
        self.problem = Problem(code, text)


class Target:
    """A server, and the answer that it should give."""

    def __init__(self, host, port, body):
        self.host, self.port, self.body = host, port, body.encode()

    def connect(self, limit_s=None):
        return Connection(self.host, self.port, limit_s or ANSWER_LIMIT_S)

    def request(self, version="1.1", method="GET", path="/", *fields):
        name = f"[{self.host}]" if ":" in self.host else self.host
        lines = [f"{method} {path} HTTP/{version}", f"Host: {name}:{self.port}", *fields, "", ""]
        return "\r\n".join(lines).encode()

    def good(self, answer):
        """`answer`, if it is the right one. Raises BadAnswer that says what was got."""
        if answer.status != 200:
            raise BadAnswer(f"status {answer.status} instead of 200; the answer began with "
                            f"{answer.raw[:80]!r}")
        if answer.body != self.body:
            raise BadAnswer(f"body of {len(answer.body)} bytes {answer.body[:60]!r} instead of "
                            f"{len(self.body)} bytes {self.body[:60]!r}")
        return answer


def wait_ready(host, port, body, limit_s, alive):
    """Asks until several good answers came in a row, each on a connection of its own.

    Returns the seconds until the first of them. `alive` says whether the server still runs.
    Raises NotReady.
    """
    target = Target(host, port, body)
    started = time.monotonic()
    good, first, pause, seen = 0, None, POLL_FIRST_S, "nothing was tried"
    while True:
        left = started + limit_s - time.monotonic()
        if not alive():
            raise NotReady("START_FAILED", f"the server ended before it was ready ({seen})")
        if left <= 0:
            raise NotReady("NOT_READY", f"no good answer within {limit_s:g} s ({seen})")
        try:
            with target.connect(min(left, ANSWER_LIMIT_S)) as connection:
                connection.send(target.request("1.1", "GET", "/", "Connection: close"))
                target.good(connection.answer())
        except (OSError, BadAnswer) as error:
            good, first, seen = 0, None, str(error)
            time.sleep(min(pause, max(left, 0)))
            pause = min(pause * 1.2, POLL_LAST_S)
            continue
        good += 1
        first = first if first is not None else time.monotonic() - started
        if good == GOOD_ANSWERS:
            return first


def verify(host, port, body, full=False):
    """A Verification of the server on host:port. Never raises for what the server does."""
    target = Target(host, port, body)
    result = Verification()
    checks = [("keepalive", check_two_on_one_connection), ("http10", check_http10)]
    if full:
        checks.append(("close", check_close))
    for name, check in checks:
        try:
            check(target, result)
        except (OSError, BadAnswer) as error:
            result.ok = False
            result.problems.append(Problem("VERIFY_FAILED", f"{LABELS[name]}: {error}"))
    if full and result.ok:
        for name, probe in PROBES.items():
            result.traits[name] = outcome(probe, target)
    return result


LABELS = {"keepalive": "GET of HTTP/1.1", "http10": "GET of HTTP/1.0",
          "close": "GET with Connection: close"}


def check_two_on_one_connection(target, result):
    with target.connect() as connection:
        connection.send(target.request())
        first = target.good(connection.answer())
        result.head = first.head
        result.response_bytes_keepalive = len(first.raw)
        result.traits["framing"] = first.framing
        result.traits["content_type"] = first.field("content-type")
        result.traits["server"] = first.field("server")
        if first.framing == "close":
            raise BadAnswer("neither Content-Length nor chunked; only the end of the connection "
                            "ends the answer")
        result.traits["keepalive_11"] = False
        if first.announces("close"):
            return
        try:
            connection.send(target.request())
            second = connection.answer()
        except (OSError, BadAnswer) as error:
            # Closed without a word: no keep-alive. Silence, or bytes that are no answer, is worse.
            if isinstance(error, BadAnswer) and (connection.received or not connection.ended):
                raise BadAnswer(f"the second request of the connection: {error}") from error
            return
        target.good(second)
        result.traits["keepalive_11"] = True


def check_http10(target, result):
    with target.connect() as connection:
        connection.send(target.request("1.0"))
        answer = target.good(connection.answer())
        if connection.received:
            raise BadAnswer(f"{len(connection.received)} bytes more than its Content-Length says: "
                            f"{connection.received[:40]!r}")
        result.response_bytes_close = len(answer.raw)


def check_close(target, result):
    with target.connect() as connection:
        connection.send(target.request("1.1", "GET", "/", "Connection: close"))
        target.good(connection.answer())
        result.traits["honours_close"] = connection.closes_within(CLOSE_LIMIT_S)


def outcome(probe, target):
    """What a probe found; False if the server gave no good answer to it."""
    try:
        return probe(target)
    except (OSError, BadAnswer):
        return False


def probe_http10_closes(target):
    with target.connect() as connection:
        connection.send(target.request("1.0"))
        target.good(connection.answer())
        return connection.closes_within(CLOSE_LIMIT_S)


def probe_http10_keepalive(target):
    """As `ab -k` needs it: it says keep-alive, gives the length and does stay open."""
    request = target.request("1.0", "GET", "/", "Connection: Keep-Alive")
    with target.connect() as connection:
        connection.send(request)
        first = target.good(connection.answer())
        if not first.announces("keep-alive") or first.framing != "length":
            return False
        connection.send(request)
        target.good(connection.answer())
        return True


def probe_head(target):
    """Whether HEAD has no body: what follows its head is the answer to the next request."""
    with target.connect() as connection:
        connection.send(target.request("1.1", "HEAD"))
        status = connection.answer(method="HEAD").status
        if status != 200:
            return f"status {status}"
        connection.send(target.request())
        target.good(connection.answer())
        return True


def probe_any_path(target):
    with target.connect() as connection:
        connection.send(target.request("1.1", "GET", "/some/other/path?with=a&query=x"))
        target.good(connection.answer())
        return True


def probe_pipelined(target):
    """How many of 16 requests sent at once are answered, in order and whole."""
    answered = 0
    with target.connect() as connection:
        connection.send(target.request() * PIPELINED)
        try:
            for _ in range(PIPELINED):
                target.good(connection.answer())
                answered += 1
        except (OSError, BadAnswer):
            pass
    return answered


def probe_split(target):
    """Whether a request may arrive in two pieces, split at any byte."""
    request = target.request()
    connections = []
    try:
        for cut in range(1, len(request)):
            connections.append((cut, target.connect()))
            connections[-1][1].send(request[:cut])
        # A server takes a piece that comes later than the first for more of the same request.
        time.sleep(SPLIT_GAP_S)
        for cut, connection in connections:
            connection.send(request[cut:])
        for _, connection in connections:
            target.good(connection.answer())
        return True
    finally:
        for _, connection in connections:
            connection.close()


def probe_long_header(target):
    with target.connect() as connection:
        fill = "a" * (LONG_HEADER_BYTES - len("X-Fill: \r\n"))
        connection.send(target.request("1.1", "GET", "/", f"X-Fill: {fill}"))
        target.good(connection.answer())
        return True


def probe_date(target):
    """"fresh" if there is a right Date that moves on; else what is wrong with it."""
    deadline = time.monotonic() + DATE_LIMIT_S
    first = None
    while time.monotonic() < deadline:
        with target.connect() as connection:
            connection.send(target.request("1.1", "GET", "/", "Connection: close"))
            date = target.good(connection.answer()).field("date")
        if date is None:
            return "missing"
        if not IMF_FIXDATE.fullmatch(date):
            return "invalid"
        seconds = email.utils.parsedate_to_datetime(date).timestamp()
        if abs(seconds - time.time()) > DATE_LIMIT_S:
            return "wrong"
        first = seconds if first is None else first
        if seconds > first:
            return "fresh"
        time.sleep(POLL_LAST_S)
    return "stands still"


def probe_family(address):
    def probe(target):
        with Connection(address, target.port, ANSWER_LIMIT_S) as connection:
            connection.send(target.request())
            target.good(connection.answer())
            return True
    return probe


PROBES = {
    "http10_closes": probe_http10_closes,
    "http10_keepalive": probe_http10_keepalive,
    "head_without_body": probe_head,
    "any_path": probe_any_path,
    "pipelined": probe_pipelined,
    "split_requests": probe_split,
    "header_8k": probe_long_header,
    "date": probe_date,
    "ipv4": probe_family("127.0.0.1"),
    "ipv6": probe_family("::1"),
}

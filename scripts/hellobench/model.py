# SPDX-License-Identifier: MIT
"""The words that all of hellobench shares: problems, what a load generator said, and a cell.

A cell is one measured run: one entrant, one client command, one repeat. It is what the journal
stores a line of and what every report is made from, so each of its fields has its unit here.
A figure that is not known is None, never 0.
"""

import dataclasses
import enum
import typing

SCHEMA = 1


class Severity(enum.Enum):
    """FATAL: the run has no number. WARNING: it has one, and a mark."""

    FATAL = "fatal"
    WARNING = "warning"


# Every problem a run can have: its code, how bad it is, and what it means to a reader.
# The I-numbers are the invariants that are checked on every run (see invariants.py).
PROBLEMS = {
    "NOT_INSTALLED": (Severity.FATAL, "the entrant is not installed here"),
    "TOOL_MISSING": (Severity.FATAL, "the load generator is not installed here"),
    "PORT_BUSY": (Severity.FATAL, "something else listens on the port"),
    "START_FAILED": (Severity.FATAL, "the server ended before it was ready"),
    "NOT_READY": (Severity.FATAL, "the server gave no good answer in the time allowed"),
    "VERIFY_FAILED": (Severity.FATAL, "before or after the run: wrong status, body or framing"),
    "SERVER_DIED": (Severity.FATAL, "the server ended during the run"),
    "NO_RESPONSE": (Severity.FATAL, "connections were closed without an answer"),
    "WRONG_STATUS": (Severity.FATAL, "answers with another status than 200"),
    "WRONG_SIZE": (Severity.FATAL, "I1: answers of another size than the right one"),
    "SIZE_UNKNOWN": (Severity.FATAL, "I1: the client cannot tell the size of the answers"),
    "INCOMPLETE": (Severity.FATAL, "I2: fewer requests were done than were asked for"),
    "ERRORS": (Severity.FATAL, "I3: the client met errors"),
    "TOOL_FAILED": (Severity.FATAL, "I4: the load generator gave up"),
    "BAD_OUTPUT": (Severity.FATAL, "the load generator's output has no result, or a cut one"),
    "LITTLES_LAW": (Severity.WARNING, "I5: latency x rate does not give the concurrency"),
    "HUNG": (Severity.FATAL, "I6: for more than a second no request was answered"),
    "TIMEOUT_DISTORTED": (Severity.FATAL, "I7: requests ran into the client's time limit"),
    "TOO_SHORT": (Severity.WARNING, "I8: too short to say much"),
    "CLOSES": (Severity.WARNING, "it closes every connection: each request pays for a new one"),
    "FEWER_CONNECTIONS": (Severity.FATAL, "I9: fewer connections than asked for"),
    "KEEPALIVE_MISMATCH": (Severity.FATAL, "connections were kept, or not kept, against the plan"),
    "RATE_MISSED": (Severity.FATAL, "the offered rate was not reached"),
    "RATE_DIFFERS": (Severity.WARNING, "the tool's own rate differs from the recomputed one"),
    "TIME_LIMIT": (Severity.WARNING, "stopped at the profile's limit: fewer requests, same rate"),
    "NOISY": (Severity.WARNING, "the machine did other work as well"),
    "LISTEN_OVERFLOWS": (Severity.WARNING, "a full queue dropped connections; clients tried again "
                                           "after a second or more"),
    "TIME_WAIT": (Severity.WARNING, "sockets of earlier runs had not settled"),
    "INTERRUPTED": (Severity.FATAL, "the run was broken off"),
}


@dataclasses.dataclass(frozen=True)
class Problem:
    code: str  # a key of PROBLEMS
    text: str  # what was seen in this run, with its figures

    def __post_init__(self):
        if self.code not in PROBLEMS:
            raise ValueError(f"no such problem: {self.code}")

    @property
    def fatal(self):
        return PROBLEMS[self.code][0] is Severity.FATAL


ERROR_KINDS = ("connect", "read", "write", "timeout", "status", "length", "other")


@dataclasses.dataclass
class Requests:
    """Counts of requests. `ok` is ours: status 200 and the right size, not the tool's word."""

    asked: int | None = None  # what the command line makes the tool send; None: as many as it can
    done: int = 0  # what the tool calls done or complete, errors included
    ok: int | None = None
    errors: dict[str, int] = dataclasses.field(
        default_factory=lambda: dict.fromkeys(ERROR_KINDS, 0))


@dataclasses.dataclass
class Latency:
    """Microseconds, as the load generator saw them."""

    kind: str = "closed-loop"  # "closed-loop", "closed-loop,wrk-corrected" or "fixed-rate"
    resolution: float | None = None  # the step of the tool's figures
    min: float | None = None
    mean: float | None = None
    p50: float | None = None
    p75: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None
    synthetic_share: float | None = None  # of wrk's samples, those that wrk made up
    histogram: list[tuple[float, int]] | None = None  # (value, count), ascending; can be merged


@dataclasses.dataclass
class Parsed:
    """What one run of a load generator printed. Made by the parsers from any bytes at all."""

    tool: str  # "ab", "hey", "wrk", "h2load", "oha", "bombardier", "autocannon", "gcannon", "zrk"
    version: str | None = None
    complete: bool = False  # the result section was there and whole
    duration_s: float | None = None
    rps: float | None = None  # the tool's own figure
    requests: Requests = dataclasses.field(default_factory=Requests)
    statuses: dict[str, int] = dataclasses.field(default_factory=dict)  # "200" or "2xx": count
    body_bytes: int | None = None  # sum of the contents that the tool says it received
    document_bytes: int | None = None  # ab: the size of the first content
    total_bytes: int | None = None  # heads and contents
    kept_alive: int | None = None  # ab -k: requests on kept connections
    latency: Latency = dataclasses.field(default_factory=Latency)
    problems: list[Problem] = dataclasses.field(default_factory=list)
    extra: dict[str, typing.Any] = dataclasses.field(default_factory=dict)  # of one tool only


@dataclasses.dataclass
class Cpu:
    """Processor time over the measured window. Cores: CPU seconds per second."""

    method: str | None = None  # "cgroup2", "cgroup1" or "tree"
    server_us_per_req: float | None = None
    client_us_per_req: float | None = None
    system_us_per_req: float | None = None  # the whole machine's busy time, steal not counted
    server_cores: float | None = None
    client_cores: float | None = None
    system_cores: float | None = None
    server_user_share: float | None = None  # of the server's time, 0..1
    max_thread: float | None = None  # cores of the busiest server thread
    article_max_pct: int | None = None  # largest 1 s window, 100 = all cores, as articles print it


@dataclasses.dataclass
class Memory:
    """Bytes, of the server's whole process tree unless the name says otherwise."""

    rss_idle: int | None = None
    rss_peak: int | None = None
    pss_idle: int | None = None
    pss_peak: int | None = None
    processes: int | None = None
    threads: int | None = None
    tcp_pages_peak: int | None = None  # of the kernel, all sockets of the machine
    article_used: int | None = None  # of the machine: total - free - buffers - cached


@dataclasses.dataclass
class Network:
    """Kernel counters over the measured window, of the network namespace."""

    passive_opens_per_req: float | None = None
    established_peak: int | None = None  # connections to the server's port
    retransmits: int | None = None
    listen_overflows: int | None = None
    listen_drops: int | None = None
    time_wait_overflows: int | None = None
    estab_resets: int | None = None
    time_wait_before: int | None = None
    longest_pause_s: float | None = None  # longest time without a TCP segment to the port


@dataclasses.dataclass
class Noise:
    """What else the machine did during the measured window."""

    steal_pct: float | None = None
    psi_cpu_pct: float | None = None  # /proc/pressure/cpu "some"
    foreign_cores: float | None = None  # busy - server - client - harness
    harness_cores: float | None = None
    load_before: float | None = None


@dataclasses.dataclass
class Cell:
    entrant: str
    profile: str
    step: str  # of the profile: "main", or a rung such as "n100-c10", or "r5000"
    block: int  # from 0; for articles' profiles the repeat
    order: int  # position in its block, from 0
    started: str = ""  # ISO 8601, UTC
    argv: list[str] = dataclasses.field(default_factory=list)
    tool: str | None = None
    tool_version: str | None = None
    entrant_version: str | None = None
    concurrency: int | None = None
    offered_rps: float | None = None  # of fixed-rate steps
    duration_s: float | None = None  # as the tool measured it
    wall_s: float | None = None  # as we did
    valid: bool = False  # no fatal problem
    problems: list[Problem] = dataclasses.field(default_factory=list)
    verdict: str | None = None  # see verdict.py
    rps: float | None = None  # ok responses per second; None unless valid
    tool_rps: float | None = None
    requests: Requests = dataclasses.field(default_factory=Requests)
    statuses: dict[str, int] = dataclasses.field(default_factory=dict)
    bytes_per_response: float | None = None
    latency: Latency = dataclasses.field(default_factory=Latency)
    cpu: Cpu = dataclasses.field(default_factory=Cpu)
    memory: Memory = dataclasses.field(default_factory=Memory)
    network: Network = dataclasses.field(default_factory=Network)
    noise: Noise = dataclasses.field(default_factory=Noise)
    settle_s: float | None = None  # waited for sockets of earlier runs
    warm_up_s: float | None = None
    start_ms: float | None = None  # exec to the first good answer
    server_cpus: list[int] = dataclasses.field(default_factory=list)
    client_cpus: list[int] = dataclasses.field(default_factory=list)
    raw: list[str] = dataclasses.field(default_factory=list)  # files, relative to the results


def to_json(value):
    """A dataclass of this file as what json.dumps takes."""
    return dataclasses.asdict(value)


def cell_from_json(data):
    """The inverse of to_json for a Cell. Raises KeyError, TypeError or ValueError."""
    fields = dict(data)
    fields["problems"] = [Problem(**problem) for problem in fields["problems"]]
    for name, kind in (("requests", Requests), ("latency", Latency), ("cpu", Cpu),
                       ("memory", Memory), ("network", Network), ("noise", Noise)):
        fields[name] = kind(**fields[name])
    return Cell(**fields)

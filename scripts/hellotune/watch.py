# SPDX-License-Identifier: MIT
"""watch: which of the network's counters moved while something ran, and what that means.

    before = Snapshot.take()
    ...
    for movement in explain(Snapshot.take() - before, load_table()): ...

A Snapshot is of one network namespace: ours, or that of the process whose id take() is given.
Counters only grow; a gauge (sockstat, conntrack's entries) is compared like one, and its fall is
not reported. Invariant: reading never fails for a file or column that this kernel doesn't have.
"""

import dataclasses
import pathlib
import re
import signal
import subprocess
import sys

from hellotune import profiles

LOSS = "loss"  # something was dropped, refused or sent again: the run is not to be trusted
NOTE = "note"  # nothing was lost, but the figures depend on it
# Columns of /proc/net/softnet_stat (net/core/net-procfs.c), one line per CPU, hexadecimal.
# It counts for the machine, not for a namespace.
SOFTNET = {0: "Processed", 1: "Dropped", 2: "TimeSqueeze", 9: "ReceivedRps", 10: "FlowLimit"}


@dataclasses.dataclass(frozen=True)
class Rule:
    counter: str
    kind: str
    above: int
    key: str
    meaning: str


@dataclasses.dataclass(frozen=True)
class Movement:
    counter: str
    delta: int
    kind: str
    key: str
    meaning: str

    @property
    def is_loss(self):
        return self.kind == LOSS


@dataclasses.dataclass(frozen=True)
class Snapshot:
    values: dict

    @classmethod
    def take(cls, pid="self", root="/"):
        folder = pathlib.Path(root) / "proc" / str(pid) / "net"
        values = {}
        for name in ("snmp", "netstat"):
            values.update(parse_pairs(read_lines(folder / name)))
        values.update(parse_softnet(read_lines(folder / "softnet_stat")))
        values.update(parse_sockstat(read_lines(folder / "sockstat")))
        values.update(parse_conntrack(read_lines(folder / "stat/nf_conntrack")))
        return cls(values)

    def __sub__(self, earlier):
        """Counter -> movement, those that did not move left out."""
        moved = {name: value - earlier.values.get(name, 0) for name, value in self.values.items()}
        return {name: delta for name, delta in moved.items() if delta}


def read_lines(path):
    try:
        return path.read_text("ascii", "replace").splitlines()
    except OSError:
        return []


def parse_pairs(lines):
    """snmp, netstat: a line of names, then a line of numbers. "TcpExt: X" is TcpExtX, as nstat."""
    found = {}
    for names, numbers in zip(lines[::2], lines[1::2]):
        prefix, *names = names.split()
        for name, number in zip(names, numbers.split()[1:]):
            found[prefix.rstrip(":") + name] = int(number)
    return found


def parse_softnet(lines):
    found = {}
    for line in lines:
        cells = line.split()
        for column, name in SOFTNET.items():
            if column < len(cells):
                counter = f"Softnet{name}"
                found[counter] = found.get(counter, 0) + int(cells[column], 16)
    return found


def parse_sockstat(lines):
    """TCP: inuse 5 orphan 0 tw 7: SockTcpInuse, SockTcpOrphan, SockTcpTw."""
    found = {}
    for line in lines:
        name, *cells = line.split()
        for label, number in zip(cells[::2], cells[1::2]):
            found[f"Sock{name.rstrip(':').capitalize()}{label.capitalize()}"] = int(number)
    return found


def parse_conntrack(lines):
    """A line of names, then a line per CPU; entries stands whole in each of them."""
    if not lines:
        return {}
    names = lines[0].split()
    rows = [[int(cell, 16) for cell in line.split()] for line in lines[1:]]
    sums = {name: sum(row[i] for row in rows) for i, name in enumerate(names) if name != "entries"}
    sums["entries"] = max((row[0] for row in rows), default=0)
    return {"Conntrack" + "".join(part.capitalize() for part in name.split("_")): value
            for name, value in sums.items()}


def load_table(path=None):
    """The rules of sysctl/watch.tsv by their counters. ValueError names the bad line."""
    path = pathlib.Path(path or profiles.folder() / "watch.tsv")
    rules = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        match = re.fullmatch(r"(loss|note)(?:>([0-9]+))?", cells[1]) if len(cells) == 4 else None
        if not match or cells[0] in rules:
            raise ValueError(f"{path}:{number}: expected counter, loss or note or note>N, key or -,"
                             " meaning, with tabs between, each counter once")
        rules[cells[0]] = Rule(cells[0], match[1], int(match[2] or 0), cells[2], cells[3])
    return rules


def explain(moved, rules):
    """The movements that the table knows, losses first, each as often as it is."""
    found = [Movement(rule.counter, moved[rule.counter], rule.kind, rule.key, rule.meaning)
             for rule in rules.values() if moved.get(rule.counter, 0) > rule.above]
    return sorted(found, key=lambda movement: not movement.is_loss)


def run(command):
    """Runs command with our streams; its exit status, 128 + N if signal N ended it.

    Ctrl-C reaches it by the terminal; what is sent to us alone is handed on.
    """
    try:
        child = subprocess.Popen(command)
    except FileNotFoundError:
        print(f"tune: {command[0]}: no such command", file=sys.stderr)
        return 127
    except OSError as error:
        print(f"tune: {command[0]}: {error.strerror}", file=sys.stderr)
        return 126
    handlers = {signal.SIGINT: lambda *_: None,
                signal.SIGTERM: lambda number, _: child.send_signal(number)}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        status = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status

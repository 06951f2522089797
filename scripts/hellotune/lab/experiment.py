# SPDX-License-Identifier: MIT
"""An experiment: what it sets, what it does, and what it expects to be observed.

Invariants: an experiment is a function of a Lab, named by its id; its first docstring line is the
claim, the rest explains. It holds when all its checks do, and a check compares a counter, a state,
an errno or a number of them, never a rate.
"""

import dataclasses
import inspect

from hellotune.lab.namespaces import Skip

ALL = {}


@dataclasses.dataclass(frozen=True)
class Experiment:
    id: str
    run: object
    quick: bool

    @property
    def claim(self):
        return inspect.getdoc(self.run).partition("\n")[0]

    @property
    def text(self):
        return inspect.getdoc(self.run)


def experiment(name, quick=False):
    """Registers the function; quick ones run in every test run, the others on request."""
    def register(function):
        ALL[name] = Experiment(name, function, quick)
        return function
    return register


class Lab:
    """The two hosts, and the protocol of one experiment: dicts of words, checks with "holds"."""

    def __init__(self, server, client):
        self.server, self.client = server, client
        self.lines = []

    def set(self, host, key, value):
        if not host.has(key):
            raise Skip(f"this kernel has no {key}")
        host.set(key, value)
        self.lines.append({"set": f"{key} = {value} ({host.name})"})

    def did(self, text):
        self.lines.append({"did": text})

    def check(self, what, expected, observed, holds=None):
        """expected is the value itself, or words for what `holds` says."""
        holds = expected == observed if holds is None else bool(holds)
        self.lines.append({"check": what, "expected": expected, "observed": observed,
                           "holds": holds})

    def note(self, text):
        """Worth seeing, but nothing depends on it."""
        self.lines.append({"observed": text})

    @property
    def holds(self):
        verdicts = [line["holds"] for line in self.lines if "holds" in line]
        return bool(verdicts) and all(verdicts)


class Moved:
    """By how much the counters of a host moved since this object was made."""

    def __init__(self, host):
        self.host, self.before = host, host.counters()

    def __getitem__(self, name):
        return self.host.counters().get(name, 0) - self.before.get(name, 0)

    def losses(self, names):
        """Those of the counters that moved."""
        now = self.host.counters()
        moved = {name: now.get(name, 0) - self.before.get(name, 0) for name in names}
        return {name: count for name, count in moved.items() if count}

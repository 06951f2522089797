# SPDX-License-Identifier: MIT
"""The results folder as reports need it: who was measured how often, and with which figures.

A figure comes from valid cells alone. Every planned entrant has a line in every step, whatever
became of it: measured, failed, not installed or not run.
"""

import dataclasses
import json
import pathlib
import re
import typing

from hellobench import journal, model, plan, stats, verdict
from hellobench.errors import UsageError
from hellobench.report import text


@dataclasses.dataclass(frozen=True)
class Metric:
    id: str
    title: str
    read: typing.Callable  # of a cell; None: not known
    show: typing.Callable
    less_is_better: bool = False


def per_core(cell):
    used = cell.cpu.server_cores
    return cell.rps / used if cell.rps is not None and used else None


METRICS = {metric.id: metric for metric in (
    Metric("rps", "requests per second", lambda c: c.rps, text.number),
    Metric("server_us_per_req", "server CPU time per request",
           lambda c: c.cpu.server_us_per_req, text.duration, True),
    Metric("client_us_per_req", "client CPU time per request",
           lambda c: c.cpu.client_us_per_req, text.duration, True),
    Metric("system_us_per_req", "CPU time of the whole machine per request",
           lambda c: c.cpu.system_us_per_req, text.duration, True),
    Metric("server_cores", "processors that the server used",
           lambda c: c.cpu.server_cores, text.number, True),
    Metric("client_cores", "processors that the client used",
           lambda c: c.cpu.client_cores, text.number, True),
    Metric("rps_per_core", "requests per second and processor used", per_core, text.number),
    Metric("pss_peak", "most memory, shared pages divided (PSS)",
           lambda c: c.memory.pss_peak, text.megabytes, True),
    Metric("pss_idle", "memory before the load (PSS)",
           lambda c: c.memory.pss_idle, text.megabytes, True),
    Metric("rss_peak", "most memory, shared pages counted by each process (RSS)",
           lambda c: c.memory.rss_peak, text.megabytes, True),
    Metric("p50_us", "latency, half of the requests", lambda c: c.latency.p50, text.duration, True),
    Metric("p99_us", "latency, 99 of 100 requests", lambda c: c.latency.p99, text.duration, True),
    Metric("bytes_per_response", "bytes per response",
           lambda c: c.bytes_per_response, text.number, True),
    Metric("connections_per_request", "connections per request",
           lambda c: c.network.passive_opens_per_req, text.number, True),
    Metric("start_ms", "start to first answer", lambda c: c.start_ms, text.milliseconds, True),
    Metric("article_max_pct", "most CPU of the machine in a second",
           lambda c: c.cpu.article_max_pct, text.percent, True),
    Metric("article_used", "most memory used on the machine",
           lambda c: c.memory.article_used, text.megabytes, True),
    Metric("duration_s", "length of a run", lambda c: c.duration_s, text.number),
)}


@dataclasses.dataclass
class Line:
    """An entrant in a step, with all its cells in the order of their blocks."""

    entrant: dict
    step: dict
    cells: list
    planned: int

    @property
    def id(self):
        return self.entrant["id"]

    @property
    def valid(self):
        return [cell for cell in self.cells if cell.valid]

    @property
    def invalid(self):
        return [cell for cell in self.cells if not cell.valid]

    def values(self, metric):
        """{block: value} of the valid cells that have one."""
        read = METRICS[metric].read
        return {cell.block: read(cell) for cell in self.valid if read(cell) is not None}

    def summary(self, metric):
        values = self.values(metric)
        return stats.summary(list(values.values())) if values else None

    def median(self, metric):
        values = self.summary(metric)
        return values["median"] if values else None

    def typical(self, metric):
        """The valid cell whose value is nearest to the median: what a figure links to."""
        middle = self.median(metric)
        read = METRICS[metric].read
        known = [cell for cell in self.valid if read(cell) is not None]
        return min(known, key=lambda cell: abs(read(cell) - middle), default=None)

    @property
    def state(self):
        if self.valid:
            return "measured"
        if not self.entrant["installed"]:
            return "not installed"
        return "failed" if self.cells else "not run"

    @property
    def why(self):
        """Why there is no figure, in a sentence; empty where there is one."""
        if self.state == "not installed":
            return f"not installed: {self.entrant.get('reason') or 'the reason is not known'}"
        if self.state == "failed":
            return "no valid run: " + ", ".join(
                f"{code} ({meaning(code)})" for code in codes(self.cells, fatal=True))
        return "not run: the benchmark was broken off before" if self.state == "not run" else ""

    @property
    def client_bound(self):
        """Its rate is what the client could do: the server may be capable of more."""
        return any(cell.verdict == "CLIENT_BOUND" for cell in self.valid)

    @property
    def verdict(self):
        counts = {}
        for cell in self.valid:
            word = verdict.word(cell.verdict) if cell.verdict else text.DASH
            counts[word] = counts.get(word, 0) + 1
        if len(counts) < 2:
            return "".join(counts)
        return ", ".join(f"{word} {count} of {len(self.valid)}"
                         for word, count in sorted(counts.items(), key=lambda item: -item[1]))


def meaning(code):
    """What a problem means, without the number of the invariant."""
    return re.sub(r"^I\d: ", "", model.PROBLEMS[code][1])


def codes(cells, fatal=None):
    """The codes of the problems of `cells`, each once, in their order."""
    found = {problem.code: None for cell in cells for problem in cell.problems
             if fatal is None or problem.fatal is fatal}
    return list(found)


class Results:
    """Everything that the folder says. Raises UsageError if there is no plan in it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        plan.load(self.folder)  # a plan that can't be used is refused with its reason
        self.plan = text.clean(read_json(self.folder / "plan.json"))
        self.env = text.clean(read_json(self.folder / "env.json"))
        self.verify = text.clean(read_json(self.folder / "verify.json"))
        log = journal.Journal(self.folder / "journal.jsonl")
        self.cells = sorted((model.cell_from_json(text.clean(model.to_json(cell)))
                             for cell in log.cells()),
                            key=lambda cell: (cell.block, cell.order))
        self.damage = text.clean(log.problems)
        self.profile = self.plan["profile"]
        self.steps = self.profile["steps"]
        self.entrants = self.plan["entrants"]
        self.baseline = self.plan["baseline"]
        self.missing = self.count_missing()
        self.noise = {(step["id"], metric): self.noise_floor(step, metric)
                      for step in self.steps for metric in METRICS}

    def count_missing(self):
        done = {(cell.block, cell.entrant, cell.step) for cell in self.cells}
        return sum((cell["block"], cell["entrant"], cell["step"]) not in done
                   for cell in self.plan["cells"])

    def entrant(self, entrant_id):
        return next((entry for entry in self.entrants if entry["id"] == entrant_id), None)

    def title(self, entrant_id):
        entry = self.entrant(entrant_id)
        return entry["title"] if entry else entrant_id

    def lines(self, step):
        """A line for each entrant, in the order of the plan."""
        return [self.line(entry, step) for entry in self.entrants]

    def line(self, entry, step):
        cells = [cell for cell in self.cells
                 if cell.entrant == entry["id"] and cell.step == step["id"]]
        planned = sum(cell["entrant"] == entry["id"] and cell["step"] == step["id"]
                      for cell in self.plan["cells"])
        return Line(entry, step, cells, planned)

    def baseline_line(self, step):
        """The baseline's line, if it has a figure to compare with."""
        entry = self.entrant(self.baseline)
        line = self.line(entry, step) if entry else None
        return line if line and line.valid else None

    def noise_floor(self, step, metric):
        """What the baseline and its twin differ by, as a share of 1; None without both."""
        base = self.baseline_line(step)
        twin = next((entry for entry in self.entrants
                     if base and entry.get("twin_of") == base.id), None)
        if twin is None:
            return None
        ratio = stats.compare(self.line(twin, step).values(metric), base.values(metric)).ratio
        return abs(ratio - 1) if ratio else None

    def margin(self, step, metric):
        """A ratio of `metric` in `step` this near to 1 counts as no difference."""
        return stats.margin_for(self.noise[step["id"], metric])

    def compare(self, line, metric):
        """stats.Comparison of `line` with the baseline; None for itself or without both."""
        base = self.baseline_line(line.step)
        if base is None or line.id == base.id:
            return None
        ours, theirs = line.values(metric), base.values(metric)
        if not ours or not theirs:
            return None
        return stats.compare(ours, theirs, self.margin(line.step, metric),
                             METRICS[metric].less_is_better)

    def ranked(self, step):
        """[(rank, Line)], those with a figure first, the best first; without one the rank is None.

        Entrants that can't be told apart share a rank.
        """
        metric = primary(step)
        lines = {line.id: line for line in self.lines(step)}
        groups = stats.tie_groups({name: line.values(metric) for name, line in lines.items()},
                                  self.margin(step, metric), METRICS[metric].less_is_better)
        ranked = []
        for group in groups:
            rank = len(ranked) + 1
            ranked += [(rank, lines.pop(name)) for name in group]
        order = ("measured", "failed", "not run", "not installed")
        return ranked + [(None, line) for line in
                         sorted(lines.values(), key=lambda line: order.index(line.state))]


def primary(step):
    """The metric that a step is about."""
    if not step["argv"]:
        return "start_ms"
    return "server_us_per_req" if step.get("offered_rps") else "rps"


def read_json(path):
    """What the file holds; {} without it: a run that was broken off at once has no more."""
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error

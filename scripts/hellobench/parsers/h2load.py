# SPDX-License-Identifier: MIT
"""h2load: its text of 1.52 (no percentiles) and of 1.70, its --log-file, and 1.70's JSON.

A client of h2load that meets an error stops for good, and the requests it would have sent count
as errored; its exit status is 0 all the same. With a warm-up, "finished in" and the bytes of the
contents include it, while the counts and the rate don't.
"""

import json
import re

from hellobench.model import Problem
from hellobench.parsers import histogram, units

_FINISHED = re.compile(r"^finished in ([\d.]+[a-z]+), ([\d.]+) req/s, \S+/s$", re.M)
_REQUESTS = re.compile(r"^requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, "
                       r"(\d+) failed, (\d+) errored, (\d+) timeout$", re.M)
_STATUSES = re.compile(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$", re.M)
_TRAFFIC = re.compile(r"^traffic: \S+ \((\d+)\) total, \S+ \((\d+)\) headers \(.*?\), "
                      r"\S+ \((\d+)\) data$", re.M)
_TIMED = re.compile(r"Timing-based test with (\S+) of warm-up time and (\S+) of main duration")
_COLUMNS = re.compile(r"^ +min +max +(?:(median) +(p95) +(p99) +)?mean +sd +\+/- sd$", re.M)
_ROW = re.compile(r"^(?:time for )?request\s*:\s+(.*)$", re.M)
_END = re.compile(r"^req/s\s*:(?:\s+[-\w.]+){4,7}\s+-?[\w.]+%$", re.M)
_COUNTS = ("total", "started", "done", "succeeded", "failed", "errored", "timeout")
_CLASSES = ("2xx", "3xx", "4xx", "5xx")
_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def parse(parsed, stdout, stderr, rc, files):
    match = re.search(r"h2load nghttp2/(\S+)", stdout)
    parsed.version = match[1] if match else None
    parsed.latency.resolution = 1.0
    if "json" in files or stdout.lstrip().startswith("{"):
        _read_json(parsed, files.get("json", stdout))
    else:
        _read_text(parsed, stdout)
    if "log" in files:
        _read_log(parsed, files["log"])


def _read_text(parsed, stdout):
    finished, requests = _FINISHED.search(stdout), _REQUESTS.search(stdout)
    statuses, traffic = _STATUSES.search(stdout), _TRAFFIC.search(stdout)
    if not (finished and requests and statuses and traffic):
        return
    timed = _TIMED.search(stdout)
    duration = timed[2] if timed else finished[1]
    microseconds = units.duration_us(duration)
    if microseconds is None:
        return
    parsed.duration_s = microseconds / 1e6
    parsed.extra["duration_step_s"] = (
        0.0 if timed else units.step(duration, units.duration_us) / 1e6)
    parsed.rps = float(finished[2])
    _set_counts(parsed, dict(zip(_COUNTS, map(int, requests.groups()))),
                dict(zip(_CLASSES, map(int, statuses.groups()))), timed=bool(timed))
    parsed.total_bytes = int(traffic[1])
    if not timed or units.duration_us(timed[1]) == 0:
        parsed.body_bytes = int(traffic[3])
    _read_times(parsed.latency, stdout)
    parsed.complete = bool(_END.search(stdout))


def _set_counts(parsed, counts, classes, timed):
    parsed.requests.asked = None if timed else counts["total"]
    parsed.requests.done = counts["done"]
    parsed.statuses = {name: count for name, count in classes.items() if count}
    errors = parsed.requests.errors
    errors["timeout"] = min(counts["timeout"], counts["errored"])
    rest = counts["errored"] - errors["timeout"]
    if counts["started"] == 0:
        errors["connect"] = rest
        return
    # What was never sent is the loss of a client that stopped, not an answer gone wrong.
    never_sent = max(0, counts["total"] - counts["started"])
    errors["other"] = min(rest, never_sent)
    errors["read"] = rest - errors["other"]


def _read_times(latency, stdout):
    columns, row = _COLUMNS.search(stdout), _ROW.search(stdout)
    if columns is None or row is None:
        return
    names = ["min", "max"] + (["p50", "p95", "p99"] if columns[1] else []) + ["mean"]
    values = [units.duration_us(value) for value in row[1].split()[:len(names)]]
    if len(values) < len(names) or not values[1]:
        return  # no request was done: all figures are 0us
    for name, value in zip(names, values):
        setattr(latency, name, value)


def _read_log(parsed, text):
    rows = [re.fullmatch(r"\d+\t(-?\d+)\t(\d+)", line) for line in text.split("\n")[:-1]]
    if not text.endswith("\n") or not all(rows):
        parsed.complete = False
        parsed.problems.append(Problem("BAD_OUTPUT", "the log file is cut"))
        return
    good = [row for row in rows if row[1] != "-1"]
    if good:
        histogram.fill(parsed.latency, histogram.of_values(int(row[2]) for row in good))
    if len(good) == parsed.requests.done:
        # The very status of each answer instead of its class.
        parsed.statuses = dict(histogram.of_values(row[1] for row in good))
    parsed.extra["log_rows"] = len(rows)


def _read_json(parsed, text):
    measured = json.loads(text)["measurements"]
    counts = {name: int(measured["requests"][name]) for name in _COUNTS}
    classes = {name: int(measured["status_codes"].get(name, 0)) for name in _CLASSES}
    parsed.rps = units.finite(measured["request_per_second"])
    duration = units.finite(measured["duration"])
    per_second = _units_per_second(duration, parsed.rps, counts["done"])
    if per_second is None:
        parsed.problems.append(Problem("BAD_OUTPUT", "duration, rate and count don't agree"))
        return
    parsed.duration_s = duration / per_second
    parsed.extra["duration_step_s"] = 0.0
    _set_counts(parsed, counts, classes, timed=False)
    traffic = measured["traffic"]
    parsed.total_bytes, parsed.body_bytes = int(traffic["total"]), int(traffic["data"])
    times = measured["performance"]["request"]
    scale = 1e6 / per_second
    samples = [value * scale for value in times.get("samples") or []]
    if samples:
        histogram.fill(parsed.latency, histogram.of_values(round(us) for us in samples))
    elif times.get("max"):
        for name, key in (("min", "min"), ("max", "max"), ("mean", "mean"), ("p50", "median"),
                          ("p95", "p95"), ("p99", "p99")):
            setattr(parsed.latency, name, times[key] * scale)
    parsed.complete = True


def _units_per_second(duration, rate, done):
    # The file does not name its unit of time: it is the one with which count / time is the rate.
    if not duration or not rate or not done:
        return 1.0 if duration is not None and rate is not None else None
    ratio = duration * rate / done
    return next((scale for scale in _SECOND.values() if 0.9 < ratio / scale < 1.1), None)

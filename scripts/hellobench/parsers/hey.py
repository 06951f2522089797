# SPDX-License-Identifier: MIT
"""hey, its summary and its -o csv.

hey's "Requests/sec" counts errors as requests, its exit status is 0 even if nothing worked, and
"Total data" is the sum of the Content-Length heads, not of what came. The CSV holds successes
only and has no end mark: it is whole only if hey is known to have ended well.
"""

import re

from hellobench.model import Problem
from hellobench.parsers import histogram, units

_US = 1e6
_CSV_HEAD = ("response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,"
             "status-code,offset")
_STATUS = re.compile(r"^  \[(\d{3})\]\t(\d+) responses$", re.M)
_ERROR = re.compile(r"^  \[(\d+)\]\t(.*)\n", re.M)
_PERCENTILE = re.compile(r"^  (\d+)% in (\S+) secs$", re.M)
_KINDS = (("status", r"stopped after \d+ redirects"),
          ("connect", r"dial |refused|no such host|cannot assign"),
          ("timeout", r"[Tt]imeout|deadline exceeded"),
          ("write", r"write tcp|broken pipe"),
          ("read", r"EOF|reset by peer|transport connection broken|malformed|server closed"))


def parse(parsed, stdout, stderr, rc, files):
    everything = stdout + "\n" + stderr
    if "Usage: hey" in everything:
        parsed.problems.append(Problem("TOOL_FAILED", everything.strip().splitlines()[0][:200]))
    table = stdout if stdout.lstrip().startswith(_CSV_HEAD) else files.get("csv", "")
    if table:
        _read_csv(parsed, table, rc)
    else:
        _read_summary(parsed, stdout)


def kind_of(message):
    """Which of model.ERROR_KINDS an error text of hey (Go's net/http) is."""
    return next((kind for kind, words in _KINDS if re.search(words, message)), "other")


def _read_summary(parsed, stdout):
    total, rate = _value(stdout, "Total"), _value(stdout, "Requests/sec")
    head, mark, distribution = stdout.partition("Status code distribution:")
    if total is None or rate is None or not mark:
        return
    statuses, _, errors = distribution.partition("Error distribution:")
    parsed.duration_s, parsed.rps = units.number(total), units.number(rate)
    parsed.extra["duration_step_s"] = units.step(total, units.number)
    parsed.statuses = {status: int(n) for status, n in _STATUS.findall(statuses)}
    parsed.extra["messages"] = {}
    for count, message in _ERROR.findall(errors):
        parsed.requests.errors[kind_of(message)] += int(count)
        parsed.extra["messages"][message] = int(count)
    parsed.requests.done = (sum(parsed.statuses.values())
                            + sum(parsed.requests.errors.values()))
    size = re.search(r"^  Total data:\t(\d+) bytes$", head, re.M)
    parsed.body_bytes = int(size[1]) if size else None
    _read_times(parsed.latency, head)
    parsed.complete = _ended(parsed, distribution)


def _ended(parsed, distribution):
    # Three blank lines end a list of statuses, one a list of errors. Output that was pasted
    # somewhere has lost them: there, rate x time must give the very count.
    ended = bool(re.search(r"\n\n\n$", distribution)) or (
        "Error distribution:" in distribution and distribution.endswith("\n\n"))
    if ended or parsed.rps is None or parsed.duration_s is None:
        return ended
    blur = parsed.rps * parsed.extra["duration_step_s"] / 2
    return blur < 0.5 and abs(parsed.rps * parsed.duration_s - parsed.requests.done) < 0.5


def _read_times(latency, head):
    latency.resolution = 100.0
    for name, label in (("max", "Slowest"), ("min", "Fastest"), ("mean", "Average")):
        seconds = units.number(_value(head, label) or "")
        setattr(latency, name, None if seconds is None else seconds * _US)
    if latency.mean is None:
        # Nothing succeeded: hey prints 0.0000 for the slowest and the fastest.
        latency.min = latency.max = None
    # A percentile that hey could not compute is a row "0% in 0.0000 secs".
    rows = dict(_PERCENTILE.findall(head))
    for percent in ("50", "75", "90", "95", "99"):
        seconds = units.number(rows.get(percent, ""))
        setattr(latency, f"p{percent}", None if seconds is None else seconds * _US)


def _read_csv(parsed, table, rc):
    lines = table.strip("\n").split("\n")[1:]
    rows = [re.fullmatch(r"(\d+\.\d{4}),(?:[\d.]+,){5}(\d{3}),(\d+\.\d{4})", line)
            for line in lines]
    good = [row for row in rows if row]
    for row in good:
        parsed.statuses[row[2]] = parsed.statuses.get(row[2], 0) + 1
    parsed.requests.done = len(good)
    if good:
        parsed.duration_s = max(float(row[1]) + float(row[3]) for row in good)
        parsed.extra["duration_step_s"] = 0.0001
        histogram.fill(parsed.latency,
                       histogram.of_values(round(float(row[1]) * _US) for row in good))
        parsed.latency.resolution = 100.0
    parsed.complete = rc == 0 and bool(good) and all(rows) and table.endswith("\n")


def _value(text, label):
    match = re.search(rf"^  {re.escape(label)}:\t\s*(\S+)(?: secs)?$", text, re.M)
    return match[1] if match else None

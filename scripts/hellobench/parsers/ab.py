# SPDX-License-Identifier: MIT
"""ab, also of httpd's trunk, with its -e CSV.

ab counts one broken request up to three times (as Receive, Length and Exceptions), so that
"Failed requests" can exceed the complete ones; here each is one error. A connection that was
closed without an answer is no failure to ab at all: only the byte counts show it. Its times are
whole milliseconds on the screen and have three decimals in the CSV.
"""

import re

from hellobench.model import Problem
from hellobench.parsers import units

_FAILURES = re.compile(r"^\s+\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)$",
                       re.M)
_GAVE_UP = re.compile(r"^.*?(apr_\w+: .*\(\d+\)|Test aborted after \d+ failures.*|ab: .+"
                      r"|SSL handshake failed.*)$", re.M)
_TOTAL_ROW = re.compile(r"^Total:\s+(\d+)\s+(\d+)\s+(?:[\d.]+\s+\d+\s+)?(\d+)$", re.M)
_PERCENTILE = re.compile(r"^\s+(\d+)%\s+(\d+)(?: \(.*\))?$", re.M)
_LONGEST = re.compile(r"^\s*100%\s+(\d+) \(longest request\)$", re.M)
_CSV_HEAD = "Percentage served,Time in ms"
_MS = 1000.0


def parse(parsed, stdout, stderr, rc, files):
    match = re.search(r"This is ApacheBench, Version (\S+)", stdout)
    parsed.version = match[1] if match else None
    gave_up = _GAVE_UP.search(stderr) or _GAVE_UP.search(stdout)
    if gave_up:
        parsed.problems.append(Problem("TOOL_FAILED", gave_up[1].strip()[:200]))
        _note_time_limit(parsed, gave_up[1])
    cut_short = re.search(r"Total of (\d+) requests completed", stdout)
    if cut_short:
        parsed.requests.done = int(cut_short[1])
        return
    _read_report(parsed, stdout)
    if "csv" in files and not _read_csv(parsed.latency, files["csv"]):
        parsed.complete = False
        parsed.problems.append(Problem("BAD_OUTPUT", "the CSV of -e is not whole"))


def _note_time_limit(parsed, text):
    if "(70007)" in text:
        parsed.requests.errors["timeout"] += 1
        parsed.problems.append(Problem("TIMEOUT_DISTORTED", "ab waited as long as -s allows"))


def _read_report(parsed, stdout):
    done = _whole(stdout, "Complete requests")
    seconds = _value(stdout, "Time taken for tests", " seconds")
    if done is None or seconds is None:
        return
    parsed.requests.done = done
    parsed.duration_s = units.number(seconds)
    parsed.extra["duration_step_s"] = units.step(seconds, units.number)
    parsed.rps = units.number(_value(stdout, "Requests per second", " [#/sec] (mean)") or "")
    parsed.document_bytes = _whole(stdout, "Document Length", " bytes")
    parsed.total_bytes = _whole(stdout, "Total transferred", " bytes")
    parsed.body_bytes = _whole(stdout, "HTML transferred", " bytes")
    parsed.kept_alive = _whole(stdout, "Keep-Alive requests")
    parsed.extra["concurrency"] = _whole(stdout, "Concurrency Level")
    _read_failures(parsed, stdout)
    _read_times(parsed.latency, stdout)
    # The report's last line; ab has it whenever a request was complete.
    parsed.complete = (bool(_LONGEST.search(stdout)) and parsed.body_bytes is not None
                       and _whole(stdout, "Failed requests") is not None)


def _read_failures(parsed, stdout):
    errors = parsed.requests.errors
    errors["status"] = _whole(stdout, "Non-2xx responses") or 0
    errors["write"] = _whole(stdout, "Write errors") or 0
    failed = _whole(stdout, "Failed requests") or 0
    parsed.extra["failed_by_tool"] = failed
    match = _FAILURES.search(stdout)
    if match is None:
        errors["other"] = failed
        return
    connect, receive, length, exceptions = (int(group) for group in match.groups())
    errors["connect"], errors["read"] = connect, receive
    errors["length"] = max(0, length - receive)
    errors["other"] = max(0, exceptions - receive - connect)


def _read_times(latency, stdout):
    rows = {int(percent): int(ms) for percent, ms in _PERCENTILE.findall(stdout)}
    latency.resolution = _MS
    for name, percent in (("p50", 50), ("p75", 75), ("p90", 90), ("p95", 95), ("p99", 99),
                          ("max", 100)):
        setattr(latency, name, rows[percent] * _MS if percent in rows else None)
    match = _TOTAL_ROW.search(stdout)
    if match:
        latency.min, latency.mean = int(match[1]) * _MS, int(match[2]) * _MS


def _read_csv(latency, text):
    lines = text.split("\n")
    rows = [re.fullmatch(r"(\d+),(\d+\.\d{3})", line) for line in lines[1:102]]
    if lines[0] != _CSV_HEAD or lines[102:] != [""] or len(rows) != 101 or not all(rows):
        return False
    times = [float(row[2]) * _MS for row in rows]
    if [int(row[1]) for row in rows] != list(range(101)):
        return False
    latency.resolution = 1.0
    latency.min, latency.max = times[0], times[100]
    latency.p50, latency.p75, latency.p90 = times[50], times[75], times[90]
    latency.p95, latency.p99 = times[95], times[99]
    # The area under 101 percentiles: as good a mean as they allow.
    latency.mean = (sum(times) - (times[0] + times[100]) / 2) / 100
    return True


def _value(stdout, label, unit=""):
    match = re.search(rf"^{re.escape(label)}:\s+(\S+){re.escape(unit)}$", stdout, re.M)
    return match[1] if match else None


def _whole(stdout, label, unit=""):
    value = _value(stdout, label, unit)
    return int(value) if value is not None and value.isdecimal() else None

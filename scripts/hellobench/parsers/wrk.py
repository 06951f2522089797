# SPDX-License-Identifier: MIT
"""wrk and wrk2: their text, and the JSON line that our report.lua makes wrk print.

wrk says nothing of connections that hang, counts answers of any status as requests, and always
adds samples of its own making to the latencies ("correction"); the JSON line has the whole
histogram, so the share of such samples is known. wrk2 sends at a fixed rate.
"""

import json
import re

from hellobench.model import Problem
from hellobench.parsers import histogram, units

_STATS = re.compile(r"^    Latency\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)$", re.M)
_PERCENTILE = re.compile(r"^\s+(\d+(?:\.\d+)?)%\s+(\S+)\s*$", re.M)
_REQUESTS = re.compile(r"^  (\d+) requests in (\S+), (\S+) read$", re.M)
_SOCKETS = re.compile(r"^  Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$",
                      re.M)
_NON_2XX = re.compile(r"^  Non-2xx or 3xx responses: (\d+)$", re.M)
_RATE = re.compile(r"^Requests/sec:\s+(\d+\.\d\d)$", re.M)
_END = re.compile(r"^Transfer/sec:\s+\d+\.\d\d[KMGT]?B\s*$", re.M)
_GAVE_UP = re.compile(r"^(unable to \w+.*|invalid .*|number of connections .*|Usage: wrk.*"
                      r"|unable to create thread.*|.*\.lua:?\d*:? .*)$", re.M)
_NAMES = {"50": "p50", "75": "p75", "90": "p90", "95": "p95", "99": "p99", "99.9": "p99_9"}


def parse(parsed, stdout, stderr, rc, files):
    gave_up = _GAVE_UP.search(stderr) or _GAVE_UP.search(stdout)
    if gave_up:
        parsed.problems.append(Problem("TOOL_FAILED", gave_up[1].strip()[:200]))
    fixed_rate = parsed.tool == "wrk2" or "Thread calibration:" in stdout
    parsed.latency.kind = "fixed-rate" if fixed_rate else "closed-loop,wrk-corrected"
    _read_text(parsed, stdout)
    line = re.search(r"^JSON (.*)(\n?)", stdout, re.M)
    if line is None:
        return
    try:
        result = json.loads(line[1])
    except ValueError:
        parsed.complete = False
        parsed.problems.append(Problem("BAD_OUTPUT", "the JSON line of report.lua is cut"))
        return
    _read_json(parsed, result)


def _read_text(parsed, stdout):
    requests, rate = _REQUESTS.search(stdout), _RATE.search(stdout)
    if requests is None or rate is None:
        return
    parsed.requests.done = int(requests[1])
    duration = units.duration_us(requests[2])
    size = units.size_bytes(requests[3])
    if duration is None or size is None:
        return
    parsed.duration_s = duration / 1e6
    parsed.extra["duration_step_s"] = units.step(requests[2], units.duration_us) / 1e6
    parsed.total_bytes = round(size)
    parsed.extra["bytes_step"] = units.step(requests[3], units.size_bytes)
    parsed.rps = float(rate[1])
    _read_errors(parsed.requests.errors, stdout)
    _read_times(parsed.latency, stdout)
    parsed.complete = bool(_END.search(stdout))


def _read_errors(errors, stdout):
    sockets, non_2xx = _SOCKETS.search(stdout), _NON_2XX.search(stdout)
    if sockets:
        for kind, count in zip(("connect", "read", "write", "timeout"), sockets.groups()):
            errors[kind] = int(count)
    if non_2xx:
        errors["status"] = int(non_2xx[1])


def _read_times(latency, stdout):
    stats = _STATS.search(stdout)
    if stats is None or units.percent(stats[4]) is None:
        return  # without a sample wrk prints zeros and "-nan%"
    latency.mean, latency.max = units.duration_us(stats[1]), units.duration_us(stats[3])
    latency.resolution = units.step(stats[1], units.duration_us)
    for percent, value in _PERCENTILE.findall(stdout):
        name = _NAMES.get(f"{float(percent):g}")
        if name:
            setattr(latency, name, units.duration_us(value))


def _read_json(parsed, result):
    parsed.requests.done = int(result["requests"])
    parsed.duration_s = result["duration_us"] / 1e6
    parsed.extra["duration_step_s"] = 1e-6
    parsed.total_bytes = int(result["bytes"])
    parsed.extra["bytes_step"] = 0
    for kind in ("connect", "read", "write", "timeout", "status"):
        parsed.requests.errors[kind] = int(result["errors"][kind])
    times = result["latency_us"]
    if not times["n"]:
        return  # no sample: the least value is then the least that 64 bits hold
    latency = parsed.latency
    latency.resolution = 1.0
    pairs = [(value, int(count)) for value, count in result.get("histogram", [])]
    if pairs:
        histogram.fill(latency, pairs)
        samples = sum(count for _, count in pairs)
        latency.synthetic_share = max(0.0, 1 - parsed.requests.done / samples)
        return
    latency.min, latency.max, latency.mean = times["min"], times["max"], times["mean"]
    for percent, name in _NAMES.items():
        setattr(latency, name, times["p"].get(percent))

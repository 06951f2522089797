# SPDX-License-Identifier: MIT
"""bombardier (the HTTP tool in Go, not Debian's game of that name), JSON and text; import only.

Its text has no count but the classes of statuses, and its rate is a mean of samples: the rate
here is the count over the time where the time is known, which it is in the JSON.
"""

import json
import re

from hellobench.parsers import hey, units

_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
_CODES = re.compile(r"^    1xx - (\d+), 2xx - (\d+), 3xx - (\d+), 4xx - (\d+), 5xx - (\d+)\n"
                    r"    others - (\d+)$", re.M)
_ROW = re.compile(r"^  (Reqs/sec|Latency) +(\S+) +(\S+) +(\S+)$", re.M)
_END = re.compile(r"^  Throughput: +\d+\.\d+[KMGT]?B/s$", re.M)
_PERCENTILES = {"50": "p50", "75": "p75", "90": "p90", "95": "p95", "99": "p99"}


def parse(parsed, stdout, stderr, rc, files):
    start = stdout.find('{"spec":')
    if start >= 0:
        _read_json(parsed, json.loads(stdout[start:]))
    else:
        _read_text(parsed, stdout)


def _read_json(parsed, whole):
    result = whole["result"]
    _set_counts(parsed, [int(result[f"req{name}"]) for name in _CLASSES], int(result["others"]),
                [(error["description"], int(error["count"])) for error in result.get("errors", [])])
    parsed.duration_s = units.finite(result["timeTakenSeconds"])
    parsed.extra["duration_step_s"] = 0.0
    parsed.total_bytes = units.whole(result["bytesRead"])
    parsed.requests.asked = units.whole(whole["spec"].get("numberOfRequests"))
    if parsed.duration_s:
        parsed.rps = parsed.requests.done / parsed.duration_s
    times = result.get("latency") or {}
    parsed.latency.mean = units.finite(times.get("mean"))
    parsed.latency.max = units.finite(times.get("max"))
    for key, name in _PERCENTILES.items():
        setattr(parsed.latency, name, units.finite((times.get("percentiles") or {}).get(key)))
    parsed.complete = parsed.duration_s is not None


def _set_counts(parsed, classes, others, errors):
    parsed.statuses = {name: n for name, n in zip(_CLASSES, classes) if n}
    named = 0
    for message, count in errors:
        parsed.requests.errors[hey.kind_of(message)] += count
        named += count
    parsed.requests.errors["other"] += max(0, others - named)
    parsed.requests.done = sum(classes) + sum(parsed.requests.errors.values())


def _read_text(parsed, stdout):
    codes = _CODES.search(stdout)
    if codes is None:
        return
    errors = re.findall(r"^ {4,}(.+) - (\d+)$", stdout[codes.end():], re.M)
    _set_counts(parsed, [int(n) for n in codes.groups()[:5]], int(codes[6]),
                [(message.strip(), int(count)) for message, count in errors])
    rows = {row[0]: row[1:] for row in _ROW.findall(stdout)}
    if "Reqs/sec" in rows:
        parsed.rps = units.number(rows["Reqs/sec"][0])
    if "Latency" in rows:
        parsed.latency.mean = units.duration_us(rows["Latency"][0])
        parsed.latency.max = units.duration_us(rows["Latency"][2])
    for percent, value in re.findall(r"^ +(\d\d)% +(\S+)$", stdout, re.M):
        if percent in _PERCENTILES:
            setattr(parsed.latency, _PERCENTILES[percent], units.duration_us(value))
    parsed.complete = bool(_END.search(stdout))

# SPDX-License-Identifier: MIT
"""oha, JSON and text; read for comparison, never started by hellobench.

Requests that were on their way when a timed run ended are listed as errors ("aborted due to
deadline"); they are no failures and are left out. `totalData` is the sum of the contents.
"""

import json
import re

from hellobench.parsers import hey, units

_PERCENTILES = {"p50": "p50", "p75": "p75", "p90": "p90", "p95": "p95", "p99": "p99",
                "p99.9": "p99_9"}
_AT_THE_END = "aborted due to deadline"


def parse(parsed, stdout, stderr, rc, files):
    if stdout.lstrip().startswith("{"):
        _read_json(parsed, json.loads(stdout))
    else:
        _read_text(parsed, re.sub(r"\x1b\[[\d;]*m", "", stdout))


def _read_json(parsed, result):
    summary = result["summary"]
    parsed.duration_s, parsed.rps = units.finite(summary["total"]), units.finite(
        summary["requestsPerSec"])
    parsed.extra["duration_step_s"] = 0.0
    _set_counts(parsed, result["statusCodeDistribution"], result["errorDistribution"])
    parsed.body_bytes = units.whole(summary["totalData"])
    latency = parsed.latency
    for name, key in (("max", "slowest"), ("min", "fastest"), ("mean", "average")):
        setattr(latency, name, _microseconds(summary[key]))
    for key, name in _PERCENTILES.items():
        setattr(latency, name, _microseconds(result["latencyPercentiles"].get(key)))
    parsed.complete = parsed.duration_s is not None


def _set_counts(parsed, statuses, messages):
    parsed.statuses = {str(status): int(count) for status, count in statuses.items()}
    for message, count in messages.items():
        if message != _AT_THE_END:
            parsed.requests.errors[hey.kind_of(message)] += int(count)
    parsed.requests.done = (sum(parsed.statuses.values())
                            + sum(parsed.requests.errors.values()))


def _microseconds(seconds):
    seconds = units.finite(seconds)
    return None if seconds is None else seconds * 1e6


def _read_text(parsed, stdout):
    total = re.search(r"^  Total:\t(\S+ \w+)$", stdout, re.M)
    rate = re.search(r"^  Requests/sec:\t(\S+)$", stdout, re.M)
    _, mark, distribution = stdout.partition("Status code distribution:\n")
    if total is None or rate is None or not mark:
        return
    duration = units.duration_us(total[1])
    parsed.duration_s = None if duration is None else duration / 1e6
    parsed.rps = units.number(rate[1])
    parsed.extra["duration_step_s"] = (units.step(total[1], units.duration_us) or 0) / 1e6
    for name, label in (("max", "Slowest"), ("min", "Fastest"), ("mean", "Average")):
        match = re.search(rf"^  {label}:\t(\S+ \w+)$", stdout, re.M)
        setattr(parsed.latency, name, units.duration_us(match[1]) if match else None)
    for percent, value in re.findall(r"^  (\d+\.\d\d)% in (\S+ \w+)$", stdout, re.M):
        name = _PERCENTILES.get(f"p{float(percent):g}")
        if name:
            setattr(parsed.latency, name, units.duration_us(value))
    statuses, _, errors = distribution.partition("Error distribution:\n")
    _set_counts(parsed, dict(re.findall(r"^  \[(\d{3})\] (\d+) responses$", statuses, re.M)),
                {text: n for n, text in re.findall(r"^  \[(\d+)\] (.*)\n", errors, re.M)})
    # No mark ends the text: the rate times the time has to give the very count. (At a deadline
    # the rate has requests that are no answers in it, so such text is never whole: use JSON.)
    counted = parsed.rps is not None and parsed.duration_s is not None
    parsed.complete = counted and abs(
        parsed.rps * parsed.duration_s - parsed.requests.done) < max(
            0.5, parsed.rps * parsed.extra["duration_step_s"])

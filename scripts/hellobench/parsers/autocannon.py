# SPDX-License-Identifier: MIT
"""autocannon -j; import only. Its percentiles are whole milliseconds, its `errors` count the
timeouts as well, and after resets it adds latency samples of its own making."""

import json

from hellobench.parsers import units

_NAMES = {"p50": "p50", "p75": "p75", "p90": "p90", "p99": "p99", "p99_9": "p99_9", "max": "max",
          "mean": "mean", "min": "min"}
_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")


def parse(parsed, stdout, stderr, rc, files):
    lines = [line for line in stdout.splitlines() if line.startswith("{")]
    if not lines:
        return
    result = json.loads(lines[-1])
    parsed.duration_s = units.finite(result["duration"])
    parsed.extra["duration_step_s"] = 0.01
    parsed.rps = units.finite(result["requests"]["average"])
    exact = result.get("statusCodeStats")
    if exact:
        parsed.statuses = {status: int(seen["count"]) for status, seen in exact.items()}
    else:
        parsed.statuses = {name: int(result[name]) for name in _CLASSES if result[name]}
    errors = parsed.requests.errors
    errors["timeout"], errors["length"] = int(result["timeouts"]), int(result["mismatches"])
    errors["read"] = max(0, int(result["errors"]) - errors["timeout"])
    parsed.requests.done = sum(parsed.statuses.values()) + errors["read"] + errors["timeout"]
    parsed.total_bytes = units.whole(result["throughput"]["total"])
    times = result["latency"]
    parsed.latency.resolution = 1000.0
    for key, name in _NAMES.items():
        value = units.finite(times.get(key))
        setattr(parsed.latency, name, None if value is None else value * 1000)
    samples = units.whole(times.get("totalCount"))
    if samples:
        parsed.latency.synthetic_share = max(0.0, 1 - sum(parsed.statuses.values()) / samples)
    parsed.complete = parsed.duration_s is not None

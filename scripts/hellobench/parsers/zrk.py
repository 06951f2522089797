# SPDX-License-Identifier: MIT
"""zrk --format json; import only. A run that was interrupted still prints a result and says so."""

import json

from hellobench.model import Problem
from hellobench.parsers import units

_NAMES = ("min", "mean", "max", "p50", "p75", "p90", "p99", "p99_9")


def parse(parsed, stdout, stderr, rc, files):
    start = stdout.find("{")
    if start < 0:
        return
    result = json.loads(stdout[start:])
    parsed.version = result.get("zrk_version")
    if not result.get("config", {}).get("closed", False):
        parsed.latency.kind = "fixed-rate"
    parsed.duration_s = units.finite(result["duration_s"])
    parsed.extra["duration_step_s"] = 0.001
    parsed.rps = units.finite(result["achieved_rate"])
    parsed.extra["rate_ratio"] = units.finite(result.get("rate_ratio"))
    parsed.requests.done = int(result["requests"])
    parsed.total_bytes = units.whole(result["bytes"])
    parsed.statuses = {name: int(n) for name, n in result["status_codes"].items() if n}
    seen = result["errors"]
    errors = parsed.requests.errors
    for kind in ("connect", "read", "write"):
        errors[kind] = int(seen[kind])
    errors["timeout"] = int(seen["timeout"]) + int(seen.get("deadline", 0))
    parsed.latency.resolution = 1.0
    for name in _NAMES:
        setattr(parsed.latency, name, units.finite(result["latency_us"].get(name)))
    if result.get("interrupted"):
        parsed.problems.append(Problem("INTERRUPTED", "zrk says that it was interrupted"))
    parsed.complete = parsed.duration_s is not None

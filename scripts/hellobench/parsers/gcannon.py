# SPDX-License-Identifier: MIT
"""gcannon --json; import only."""

import json

from hellobench.parsers import units

_NAMES = {"avg": "mean", "p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99_9"}


def parse(parsed, stdout, stderr, rc, files):
    start = stdout.find("{")
    if start < 0:
        return
    result = json.loads(stdout[start:])
    parsed.duration_s = units.finite(result["elapsed_sec"])
    parsed.extra["duration_step_s"] = 0.001
    parsed.rps = units.finite(result["rps"])
    parsed.requests.done = int(result["responses"])
    parsed.total_bytes = units.whole(result["bytes_read"])
    parsed.statuses = {name: int(n) for name, n in result["status"].items() if n}
    for kind in ("connect", "read", "timeout"):
        parsed.requests.errors[kind] = int(result["errors"][kind])
    parsed.latency.resolution = 1.0
    for key, name in _NAMES.items():
        setattr(parsed.latency, name, units.finite(result["latency_us"][key]))
    parsed.complete = parsed.duration_s is not None

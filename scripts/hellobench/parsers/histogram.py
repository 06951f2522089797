# SPDX-License-Identifier: MIT
"""Percentiles of (value, count) pairs, which can be merged over runs without loss.

Invariant: a percentile is a value that was seen (nearest rank), never one between two of them.
"""

import math

_PERCENTILES = {"p50": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9}


def of_values(values):
    """Ascending (value, count) pairs of plain values."""
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sorted(counts.items())


def percentile(pairs, percent):
    """The smallest value that at least this percentage of the samples doesn't exceed, or None."""
    total = sum(count for _, count in pairs)
    rank = max(1, math.ceil(total * percent / 100))
    seen = 0
    for value, count in pairs:
        seen += count
        if seen >= rank:
            return float(value)
    return None


def fill(latency, pairs):
    """Sets every figure of a model.Latency, and its histogram, from pairs that aren't empty."""
    total = sum(count for _, count in pairs)
    latency.histogram = [(float(value), count) for value, count in pairs]
    latency.min, latency.max = float(pairs[0][0]), float(pairs[-1][0])
    latency.mean = sum(value * count for value, count in pairs) / total
    for name, percent in _PERCENTILES.items():
        setattr(latency, name, percentile(pairs, percent))

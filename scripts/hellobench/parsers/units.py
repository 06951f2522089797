# SPDX-License-Identifier: MIT
"""Figures as load generators print them, made into plain numbers of one unit.

Invariant: text that isn't exactly one figure of its kind, or is not a number (NaN, -nan%), gives
None, never 0. So a figure cut in its middle is mostly noticed, and a missing one always.
"""

import math
import re

_FIGURE = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
                     r"\s*([A-Za-z%\u00b5\u03bc]*)\s*")
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "\u00b5s": 1.0, "\u03bcs": 1.0, "ms": 1e3, "s": 1e6,
                 "sec": 1e6, "secs": 1e6, "m": 60e6, "min": 60e6, "h": 3600e6}
_DECIMAL = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40,
           "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def number(text):
    """A plain number, or None."""
    return _scaled(text, {"": 1})


def duration_us(text):
    """ "283.48us", "4.84ms", "2.14s", "1.20m" in microseconds, or None."""
    return _scaled(text, _MICROSECONDS)


def count(text):
    """ "44.30k" as 44300.0, or None. Decimal, as wrk prints requests."""
    return _scaled(text, _DECIMAL)


def size_bytes(text):
    """ "4.85MB" in bytes, or None. wrk and h2load mean 1024 by each step, whatever they call it."""
    return _scaled(text, _BINARY)


def percent(text):
    """ "90.74%" as 90.74, or None for "-nan%"."""
    return _scaled(text, {"%": 1})


def step(text, to_unit):
    """The worth of one unit in the last printed place: step("1.00s", duration_us) is 10000.0."""
    match = _FIGURE.fullmatch(text)
    if match is None:
        return None
    places = len(match[1].partition(".")[2])
    return to_unit(f"{10 ** -places:.{places}f}{match[2]}")


def finite(value):
    """A JSON value as a float if it's a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e300 and not math.isnan(value) else None


def whole(value):
    """A JSON value as a count: an int that is not negative, else None."""
    value = finite(value)
    return int(value) if value is not None and value >= 0 and value == int(value) else None


def _scaled(text, units):
    match = _FIGURE.fullmatch(text)
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * units[match[2]]

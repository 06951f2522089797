# SPDX-License-Identifier: MIT
"""How reports print figures: three significant digits, thousands apart, the unit always there.

What is not known is a dash, never 0. Text from outside (names, versions, messages of other
programs) passes through `clean` once, when it is loaded.
"""

import math

DASH = "\u2013"
AT_LEAST = "\u2265 "
AT_MOST = "\u2264 "
TIMES = "\u00d7"
MICRO = "\u00b5s"
MEBI = 1024 * 1024


def clean(value):
    """`value`, of JSON, with each control character in its texts replaced by U+FFFD."""
    if isinstance(value, str):
        return "".join(c if is_plain(c) else "\ufffd" for c in value)
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def is_plain(character):
    """Whether XML can hold it: reports are HTML and SVG as well."""
    code = ord(character)
    return (code >= 32 and not 127 <= code < 160 and not 0xD800 <= code < 0xE000
            and code not in (0xFFFE, 0xFFFF)) or character in "\n\t"


def number(value):
    if value is None:
        return DASH
    for least, digits in ((99.95, 0), (9.995, 1), (0.9995, 2), (0.09995, 3), (0.00005, 4)):
        if abs(value) >= least:
            return f"{value:,.{digits}f}"
    return "0"


def duration(microseconds):
    """A time in the unit that reads best."""
    if microseconds is None:
        return DASH
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= 0.9995 * size:
            return f"{number(microseconds / size)} {unit}"
    return f"{number(microseconds)} {MICRO}"


def milliseconds(value):
    return duration(None if value is None else value * 1000)


def megabytes(value):
    return DASH if value is None else number(value / MEBI) + " MB"


def percent(value):
    return DASH if value is None else number(value) + " %"


def integer(value):
    return DASH if value is None else f"{value:,.0f}"


def spread(show, summary):
    """Median [minimum - maximum]; of a single run its one value."""
    if summary is None:
        return DASH
    if summary["n"] == 1:
        return show(summary["median"])
    middle, low, high = (show(summary[name]) for name in ("median", "min", "max"))
    unit = middle.partition(" ")[2]
    if low.partition(" ")[2] == high.partition(" ")[2] == unit:  # said once
        low, high = low.partition(" ")[0], high.partition(" ")[0]
    return f"{middle} [{low}{DASH}{high}]"


def and_list(words):
    words = list(words)
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def plural(count, noun):
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def code(text):
    """Marks a command in a paragraph; a backtick of its own would end it."""
    return "`" + str(text).replace("`", "'") + "`"


def bare(text):
    """Text from outside in a paragraph: it can't start a command."""
    return str(text).replace("`", "'")

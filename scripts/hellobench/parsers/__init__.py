# SPDX-License-Identifier: MIT
"""What load generators print, read into a model.Parsed.

Invariants: no input of any kind makes `parse` raise; `complete` is set only when the end of the
tool's result was seen, so that cut output is BAD_OUTPUT and never a smaller result; a figure
that isn't there is None. Nothing here decides whether the run was good: invariants.py does.
"""

import os
import re

from hellobench.model import Parsed, Problem
from hellobench.parsers import (ab, autocannon, bombardier, gcannon, h2load, hey, oha, wrk, zrk)

_PARSERS = {"ab": ab.parse, "hey": hey.parse, "wrk": wrk.parse, "wrk2": wrk.parse,
            "h2load": h2load.parse, "oha": oha.parse, "bombardier": bombardier.parse,
            "autocannon": autocannon.parse, "gcannon": gcannon.parse, "zrk": zrk.parse}
TOOLS = tuple(_PARSERS)

# How each tool is told a number of requests: names, the default, and what makes it run for a time.
_COUNT_OPTIONS = {
    "ab": (("-n",), 1, ("-t",)),
    "hey": (("-n",), 200, ("-z",)),
    "h2load": (("-n", "--requests"), 1, ("-D", "--duration")),
    "oha": (("-n",), 200, ("-z",)),
    "bombardier": (("-n", "--requests"), None, ("-d", "--duration")),
    "autocannon": (("-a", "--amount"), None, ()),
}
_HEY_WORKERS = 50


def parse(tool, stdout, stderr=b"", rc=None, side_files=None):
    """Reads one run. side_files: "csv" of ab -e, "log" of h2load --log-file, "json" of its
    --output-file. Raises KeyError only for a tool that isn't in TOOLS."""
    reader = _PARSERS[tool]
    parsed = Parsed(tool=tool)
    files = {name: _text(content) for name, content in (side_files or {}).items()}
    try:
        reader(parsed, _text(stdout), _text(stderr), rc, files)
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError,
            RecursionError) as error:
        # JSON of another shape than the tool's own: whatever was read so far can't be trusted.
        parsed = Parsed(tool=tool)
        parsed.problems.append(Problem("BAD_OUTPUT", f"not {tool}'s output: {error!r}"))
    if not parsed.complete and not any(p.code == "BAD_OUTPUT" for p in parsed.problems):
        parsed.problems.append(Problem("BAD_OUTPUT", _why(tool, _text(stdout), _text(stderr))))
    return parsed


def sharpen(parsed):
    """Gives `duration_s` the places that the tool knew and did not print, where its rate has them:
    ab's "0.001 seconds" for 10 requests may be 5,600 a second as well as 18,000. Only within the
    last printed place: where rate and time disagree the time stays, and check() has said so."""
    done, step = parsed.requests.done, parsed.extra.get("duration_step_s")
    if done and step and parsed.rps and parsed.duration_s is not None:
        finer = done / parsed.rps
        if abs(finer - parsed.duration_s) <= step / 2 + 1e-9:
            parsed.duration_s = finer


def expected_requests(argv):
    """How many requests a command line makes its tool send; None if it runs for a time."""
    tool, rest = _tool_and_options(argv)
    if tool not in _COUNT_OPTIONS:
        return None
    names, default, timed = _COUNT_OPTIONS[tool]
    if any(_option(rest, name) is not None for name in timed):
        return None
    asked = next((n for n in (_option(rest, name) for name in names) if n is not None), default)
    asked = _whole(asked)
    if tool == "hey" and asked is not None:
        # hey gives each worker n / c requests and drops the rest.
        workers = _whole(_option(rest, "-c") or _HEY_WORKERS)
        return asked // workers * workers if workers else None
    return asked


def _tool_and_options(argv):
    # The tool may stand behind taskset, timeout and the like.
    for index, word in enumerate(argv):
        name = os.path.basename(word)
        if name in TOOLS:
            return name, argv[index + 1:]
    return None, []


def _option(options, name):
    # The last one wins, as it does in the tools.
    found = None
    for index, word in enumerate(options):
        if word == name:
            found = options[index + 1] if index + 1 < len(options) else None
        elif word.startswith(name + "="):
            found = word[len(name) + 1:]
        elif len(name) == 2 and re.fullmatch(re.escape(name) + r"\d\S*", word):
            found = word[2:]
    return found


def _whole(value):
    return int(value) if value is not None and re.fullmatch(r"\d{1,18}", str(value)) else None


def _text(content):
    return content.decode("utf-8", errors="replace").replace("\r\n", "\n")


def _why(tool, stdout, stderr):
    if not stdout.strip() and not stderr.strip():
        return f"{tool} printed nothing"
    last = (stderr.strip() or stdout.strip()).splitlines()[-1].strip()
    return f"{tool}'s result is not whole; its last words: {last[:200]}"

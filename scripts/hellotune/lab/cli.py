# SPDX-License-Identifier: MIT
"""tune-lab list | run [ID...] [--json] | explain ID: try the reference's claims on this kernel.

Every experiment runs in network namespaces of its own, as root or as an ordinary user, and changes
nothing on the machine. Exit status: 0 all that ran held, 1 one did not, 2 bad usage, 77 all were
skipped.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import sys
import time
import traceback

from hellotune import streams
from hellotune.lab import catalogue, namespaces
from hellotune.lab.experiment import Lab
from hellotune.lab.namespaces import Skip

DEADLINE_SECONDS = 60  # Each takes less than 5; a machine may be very busy.
SKIPPED_STATUS = 77  # CTest's SKIP_RETURN_CODE, automake's too.
KINDS = ("set", "did", "expected", "observed")


def main(arguments=None):
    streams.make_usable()
    options = parse(arguments)
    known = catalogue.experiments()
    unknown = [name for name in options.ids if name not in known]
    if unknown:
        print(f"tune-lab: no experiment {' '.join(unknown)}; tune-lab list shows all",
              file=sys.stderr)
        return 2
    return {"list": show_list, "explain": explain, "run": run}[options.verb](options, known)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tune-lab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("list", help="the experiments and their claims").set_defaults(ids=[])
    running = verbs.add_parser("run", help="run some, or all")
    running.add_argument("ids", nargs="*", metavar="ID")
    running.add_argument("--json", action="store_true", help="one JSON list instead of text")
    running.add_argument("--quick", action="store_true", help="those that take a second or two")
    explaining = verbs.add_parser("explain", help="what one does, and why")
    explaining.add_argument("ids", nargs=1, metavar="ID")
    return parser.parse_args(arguments)


def show_list(_, known):
    for name, one in known.items():
        print(f"{name:16} {'quick' if one.quick else '':6} {one.claim}")
    return 0


def explain(options, known):
    print(known[options.ids[0]].text)
    return 0


def run(options, known):
    names = options.ids or [name for name, one in known.items() if one.quick or not options.quick]
    results = []
    for name in names:
        results.append(in_child(known[name]))
        if not options.json:
            show(results[-1])
    outcomes = [result["outcome"] for result in results]
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        print(", ".join(f"{outcomes.count(word)} {word}" for word in ("held", "failed", "skipped")))
    if "failed" in outcomes:
        return 1
    return 0 if "held" in outcomes else SKIPPED_STATUS


def show(result):
    print(f"{result['id']}: {result['claim']}")
    for line in result["lines"]:
        for kind in KINDS:
            if kind in line:
                subject = f"{line['check']}: " if kind == "expected" else ""
                print(f"    {kind:9} {subject}{line[kind]}{verdict(line, kind)}")
    reason = f": {result['reason']}" if result["reason"] else ""
    print(f"  {result['outcome']}{reason} ({result['seconds']} s)\n", flush=True)


def verdict(line, kind):
    return "   <-- NOT AS EXPECTED" if kind == "observed" and line.get("holds") is False else ""


def in_child(one):
    """The experiment's result. It has a process group to itself, which dies with it."""
    started = time.monotonic()
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        work(one, writer)
    os.close(writer)
    with contextlib.suppress(OSError):  # Whichever of the two comes first.
        os.setpgid(child, child)
    try:
        result = receive(reader)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return {"id": one.id, "claim": one.claim, **result,
            "seconds": round(time.monotonic() - started, 1)}


def receive(reader):
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(DEADLINE_SECONDS)
    try:
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
    except TimeoutError:
        return {"outcome": "failed", "reason": f"not done in {DEADLINE_SECONDS} s", "lines": []}
    finally:
        signal.alarm(0)
    if not data:
        return {"outcome": "failed", "reason": "it died without a word", "lines": []}
    return json.loads(data)


def give_up(*_):
    raise TimeoutError


def work(one, writer):
    """In the child: never returns. What it starts must not inherit the pipe (O_CLOEXEC is set)."""
    lines, reason, outcome = [], "", "failed"
    try:
        namespaces.leave()
        lab = Lab(*namespaces.pair())
        lines = lab.lines
        one.run(lab)
        outcome = "held" if lab.holds else "failed"
    except Skip as skip:
        outcome, reason = "skipped", str(skip)
    except BaseException:  # The parent wants to know whatever it was.
        reason = traceback.format_exc()
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        json.dump({"outcome": outcome, "reason": reason, "lines": lines}, pipe)
    os._exit(0)


def checkout():
    return pathlib.Path(__file__).resolve().parents[3]

# SPDX-License-Identifier: MIT
"""The verb `verify`: starts entrants one after the other and tells how they answer."""

import json
import os
import pathlib
import sys
import tempfile

from hellobench.server import Refused, Server

OK, FAILED, NOT_INSTALLED = 0, 5, 7


def show(entrants, profile, as_json):
    """Prints what was found of each; the exit status is the worst of them."""
    status, found = OK, {}
    for entrant in entrants:
        outcome, problems, traits = examine(entrant, profile)
        status = max(status, outcome)
        found[entrant.id] = {"ok": outcome == OK, "problems": problems, "traits": traits}
        if not as_json:
            print_one(entrant.id, found[entrant.id])
    if as_json:
        json.dump(found, sys.stdout, indent=1)
        print()
    return status


def examine(entrant, profile):
    """(exit status, problems as texts, traits)"""
    state = entrant.status()
    if not state.installed:
        return NOT_INSTALLED, [f"not installed: {state.reason}; {state.cure}"], {}
    with tempfile.TemporaryDirectory(prefix="hellobench-") as folder:
        server = Server(profile, sorted(os.sched_getaffinity(0)), pathlib.Path(folder) / "log")
        try:
            server.start(entrant, full=True)
        except Refused as refused:
            return FAILED, [problem.text for problem in refused.problems], {}
        server.stop()
    return OK, [], server.verification.traits


def print_one(name, found):
    print(f"{name}: {'ok' if found['ok'] else 'FAILED'}")
    for problem in found["problems"]:
        print(f"    {problem}")
    for trait, value in found["traits"].items():
        print(f"    {trait}: {value}")

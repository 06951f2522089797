# SPDX-License-Identifier: MIT
"""Profiles, entrants and cells for tests that measure nothing."""

import dataclasses
import types

from hellobench import model, plan


@dataclasses.dataclass(frozen=True)
class Step:
    id: str
    argv: list[str] = dataclasses.field(default_factory=lambda: ["wrk", "{url}"])


@dataclasses.dataclass(frozen=True)
class Profile:
    id: str = "made-up"
    title: str = "A made-up profile"
    steps: list[Step] = dataclasses.field(default_factory=lambda: [Step("main")])
    blocks: int = 3
    restart: bool = True
    topology: str = "shared"


def entrant(name, installed=True, version="1.0"):
    status = types.SimpleNamespace(
        installed=installed, version=version if installed else None,
        reason=None if installed else "there is no go",
        cure=None if installed else "apt install golang-go")
    return types.SimpleNamespace(
        id=name, title=name.title(), language="Go", kind="server", variant="tuned",
        workers="one", single_threaded=False, access_log=False, status=lambda: status)


def make_plan(names=("alpha", "beta", "gamma"), profile=None, seed=1, **more):
    entrants = [name if not isinstance(name, str) else entrant(name) for name in names]
    return plan.make(profile or Profile(), entrants, seed=seed, **more)


def cell(entrant_id="alpha", block=0, step="main", rps=1000.0, problems=(), **more):
    """A measured cell; invalid if `problems`, [(code, text)], has a fatal one."""
    found = [model.Problem(*problem) for problem in problems]
    valid = not any(problem.fatal for problem in found)
    return model.Cell(entrant=entrant_id, profile="made-up", step=step, block=block, order=0,
                      valid=valid, problems=found, rps=rps if valid else None, **more)


def measured(planned, **more):
    return cell(planned.entrant, planned.block, planned.step, **more)

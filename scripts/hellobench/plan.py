# SPDX-License-Identifier: MIT
"""The plan of a run: its cells in the order in which they are measured, fixed before the first one.

Randomised complete blocks: in each block every entrant runs once, in an order that follows from the
seed and the block alone. The file plan.json is whole or absent, so a run that was killed is
continued with the same plan and the cells that its journal lacks.
"""

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
import random
import subprocess

from hellobench import VERSION
from hellobench.errors import UsageError

SCHEMA = 1
FILE = "plan.json"


@dataclasses.dataclass(frozen=True)
class PlannedCell:
    block: int  # from 0; where a server is kept running, the repeat
    order: int  # position in its block, from 0
    entrant: str
    step: str
    start: bool  # a new server is started for it; else the one of the cell before goes on

    @property
    def key(self):
        return self.block, self.entrant, self.step


@dataclasses.dataclass(frozen=True)
class Plan:
    """As in plan.json, where `schema` and `tool` come first."""

    created: str
    git: dict  # {"commit": str|None, "dirty": bool|None}
    binary_sha256: str | None  # of hello-uring; None: not built
    profile: dict  # as run, all of it
    quick: bool
    seed: int
    blocks: int
    topology: str
    server_cpus: list[int]
    client_cpus: list[int]
    baseline: str
    entrants: list[dict]  # those that aren't installed too, with the reason
    cells: list[PlannedCell]
    sysctl: dict | None = None  # what was set in namespaces of the run; None: it is in no such


def make(profile, entrants, *, seed, blocks=None, quick=False, topology=None, server_cpus=(),
         client_cpus=(), baseline="hello-uring", git=None, binary_sha256=None, sysctl=None):
    """The plan for `profile` and `entrants`; of those only the installed ones have cells."""
    known = [_describe(entrant) for entrant in entrants]
    blocks = blocks or profile.blocks
    cells = _schedule([entry["id"] for entry in known if entry["installed"]],
                      [step.id for step in profile.steps], blocks, seed, profile.restart)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return Plan(created=now, git=git or {"commit": None, "dirty": None},
                binary_sha256=binary_sha256, profile=dataclasses.asdict(profile), quick=quick,
                seed=seed, blocks=blocks, topology=topology or profile.topology,
                server_cpus=list(server_cpus), client_cpus=list(client_cpus), baseline=baseline,
                entrants=known, cells=cells, sysctl=sysctl)


def _describe(entrant):
    names = ("title", "language", "kind", "variant", "workers", "single_threaded", "access_log",
             "twin_of")
    entry = {"id": entrant.id} | {name: getattr(entrant, name, None) for name in names}
    if not hasattr(entrant, "status"):  # The user started it: nothing more is known.
        return entry | {"title": entrant.id, "installed": True, "version": None, "reason": None,
                        "cure": None}
    status = entrant.status()
    return entry | {"installed": status.installed, "version": status.version,
                    "reason": status.reason, "cure": status.cure}


def _schedule(entrants, steps, blocks, seed, restart):
    """The cells in running order. A server that is kept running does all its repeats at once."""
    visits = []
    for block in range(blocks):
        order = list(entrants)
        random.Random(f"{seed}-{block if restart else 0}").shuffle(order)
        visits += [(block, position, entrant) for position, entrant in enumerate(order)]
    if not restart:
        visits.sort(key=lambda visit: visit[1])
    cells = [PlannedCell(block, position * len(steps) + index, entrant, step, False)
             for block, position, entrant in visits for index, step in enumerate(steps)]
    return _with_starts(cells, restart)


def _with_starts(cells, restart):
    started = []
    server = None
    for cell in cells:
        needed = (cell.entrant, cell.block if restart else None)
        started.append(dataclasses.replace(cell, start=needed != server))
        server = needed
    return started


def remaining(plan, cells):
    """What is still to be measured, in running order, when `cells` are in the journal.

    A cell that was broken off is measured again; no server is taken to run already.
    """
    done = {(cell.block, cell.entrant, cell.step) for cell in cells
            if all(problem.code != "INTERRUPTED" for problem in cell.problems)}
    left = [cell for cell in plan.cells if cell.key not in done]
    return _with_starts(left, plan.profile["restart"])


def save(plan, folder):
    """Write plan.json: after a crash at any moment the old file or the new one is there, whole."""
    data = {"schema": SCHEMA, "tool": f"hellobench {VERSION}"} | dataclasses.asdict(plan)
    write_durably(pathlib.Path(folder) / FILE, json.dumps(data, indent=1) + "\n")


def write_durably(path, text):
    """Put `text` in the place of the file at `path`, at once and as durable as the disk allows."""
    scratch = path.with_name(path.name + ".new")
    with open(scratch, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    os.replace(scratch, path)
    sync_folder(path.parent)


def sync_folder(folder):
    """Make the names in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(folder):
    """The plan in `folder`. Raises UsageError."""
    path = pathlib.Path(folder) / FILE
    try:
        data = json.loads(path.read_text("utf-8"))
        if data.pop("schema") != SCHEMA:
            raise ValueError(f"not of schema {SCHEMA}; another version of the harness wrote it")
        data.pop("tool")
        cells = [PlannedCell(**cell) for cell in data.pop("cells")]
        return Plan(cells=cells, **data)
    except FileNotFoundError as error:
        raise UsageError(f"{folder} holds no results: there is no {FILE} in it") from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} can't be used: {error}") from error


def check_resume(plan, *, git, binary_sha256, versions=None, force=False):
    """What differs now from when the plan was made, as sentences.

    Raises UsageError if anything does, unless forced: numbers of different programs are not one
    result. `versions` has the present version of each entrant, None where it isn't installed.
    """
    differences = []
    for name, then, now in (("git commit", plan.git.get("commit"), git.get("commit")),
                            ("hello-uring binary", plan.binary_sha256, binary_sha256)):
        if then != now:
            differences.append(f"the {name} was {_short(then)}, now it is {_short(now)}")
    for entry in plan.entrants if versions is not None else ():
        then, now = entry["version"], versions.get(entry["id"])
        if entry["installed"] and then != now:
            differences.append(f"{entry['id']} was {_short(then)}, now it is {_short(now)}")
    if differences and not force:
        raise UsageError("this run can't be continued as it began: " + "; ".join(differences)
                         + ". Go back to that state, begin a new run, or mix them by --force")
    return differences


def _short(value):
    if value is None:
        return "absent"
    is_hash = len(value) >= 40 and set(value) <= set("0123456789abcdef")
    return value[:12] if is_hash else value


def git_state(root):
    """{"commit", "dirty"} of the checkout at `root`; None where that can't be told."""
    def git(*words):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(["git", "-C", str(root), *words], capture_output=True,
                                  text=True, timeout=20, check=False)
            return done.stdout.strip() if done.returncode == 0 else None
        return None

    commit = git("rev-parse", "HEAD")
    changes = git("status", "--porcelain", "--untracked-files=no") if commit else None
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def sha256(path):
    """The checksum of the file at `path`; None without one."""
    with contextlib.suppress(OSError), open(path, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
    return None

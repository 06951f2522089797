# SPDX-License-Identifier: MIT
"""Measures the cells of a plan, one after the other, each into the journal before the next.

One cell: the sockets of the last one settle; the server is started (or kept from the last cell of
the same entrant, where the profile says so) and verified; the client runs while the sampler
watches; what the client says is checked against what is known. A cell that can't be measured
becomes one with a fatal problem and no number: nothing that an entrant does ends the run.
"""

import contextlib
import dataclasses
import datetime
import json
import os
import shutil
import signal
import time

from hellobench import doctor, group, invariants, network, parsers, plan, sampler, verdict
from hellobench import profile as profiles
from hellobench.model import Cell, Parsed, Problem
from hellobench.server import NOFILE, Refused, Server

SETTLE_SECONDS = 75  # TIME_WAIT lasts 60 s
STOP_GRACE_SECONDS = 10  # for the client to report after SIGINT, beyond its requests under way
SEEN_SECONDS = 2.5  # The sampler looks at the connections once a second.
VERIFY_FILE = "verify.json"
NOISE_LIMITS = {"steal_pct": 2.0, "foreign_cores": 0.2}


class Runner:
    """`entrants` maps ids to Entrant or Attached; `folder` is that of the results."""

    def __init__(self, the_plan, profile, entrants, folder, journal, ui, client_side=None):
        """`client_side()` is entered where a client is started: its network namespace."""
        self.plan, self.profile, self.entrants = the_plan, profile, entrants
        self.folder, self.journal, self.ui = folder, journal, ui
        self._client_side = client_side or contextlib.nullcontext
        self.versions = doctor.Machine.tool_versions()
        self.entrant_versions = {entry["id"]: entry["version"] for entry in the_plan.entrants}
        self.verified = read_json(folder / VERIFY_FILE)
        self._server = None
        self._served = None  # the entrant of the server that runs
        self._refused = {}  # (entrant, block or None): problems of a start that failed
        (folder / "raw").mkdir(exist_ok=True)

    def run(self, cells):
        """Measures `cells` of the plan. The server of the last one is stopped whatever happens."""
        try:
            for planned in cells:
                self.ui.cell_started(planned)
                cell = self.measure(planned)
                self.journal.append(cell)
                self.ui.cell_done(cell)
        finally:
            self._stop_server()

    def measure(self, planned):
        step = next(step for step in self.profile.steps if step.id == planned.step)
        cell = Cell(planned.entrant, self.profile.id, planned.step, planned.block, planned.order,
                    started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                    concurrency=step.concurrency, offered_rps=step.offered_rps,
                    server_cpus=self.plan.server_cpus, client_cpus=self.plan.client_cpus,
                    entrant_version=self.entrant_versions.get(planned.entrant))
        logs = self.folder / "raw" / f"{planned.block:02}-{planned.entrant}-{planned.step}"
        try:
            self._prepare(planned, cell, logs)
            cell.start_ms = self._server.start_ms
            if step.argv:
                self._load(step, cell, logs)
        except Refused as refused:
            cell.problems = refused.problems
        except group.StartError as error:  # Those of the server are Refused already.
            cell.problems.append(Problem("TOOL_FAILED", str(error)))
        cell.valid = not any(problem.fatal for problem in cell.problems)
        if not cell.valid and self._server is not None and not self._server.alive():
            self._stop_server()  # The next cell gets a new one.
        cell.raw = sorted(str(path.relative_to(self.folder))
                          for path in logs.parent.glob(f"{logs.name}.*")
                          if path.stat().st_size > 0)
        return cell

    def _prepare(self, planned, cell, logs):
        """A verified server of the entrant, and quiet sockets. Raises Refused."""
        key = (planned.entrant, planned.block if self.profile.restart else None)
        if key in self._refused:
            raise Refused(self._refused[key])
        if self._served != key or self._server is None:
            self._stop_server()
            try:
                self._start_server(planned.entrant, logs)
                cell.warm_up_s = self._warm_up()
            except Refused as refused:
                self._refused[key] = refused.problems
                self._stop_server()
                raise
            self._served = key
        port = self._server.port if self.profile.settle == "client" else 0
        limit = self.profile.waiting_limit
        cell.settle_s, left = network.settle(limit, SETTLE_SECONDS, port)
        if left > limit:
            cell.problems.append(Problem("TIME_WAIT", f"{left} sockets in WAIT states after "
                                         f"{SETTLE_SECONDS} s"))

    def _start_server(self, entrant_id, logs):
        entrant = self.entrants[entrant_id]
        server = Server(self.profile, self.plan.server_cpus, logs)
        try:
            server.start(entrant, full=entrant_id not in self.verified)
        finally:
            self._keep(entrant_id, server.verification)
        self._server = server

    def _keep(self, entrant_id, verification):
        """The first verification of each entrant, the one with all the checks, is for readers."""
        if verification is not None and entrant_id not in self.verified:
            self.verified[entrant_id] = dataclasses.asdict(verification)
            plan.write_durably(self.folder / VERIFY_FILE, json.dumps(self.verified, indent=1))

    def _stop_server(self):
        server, self._server, self._served = self._server, None, None
        if server is not None:
            server.stop()

    def _warm_up(self):
        """Runs the profile's warm-up command; returns its seconds, or None without one."""
        if not self.profile.warm_up:
            return None
        began = time.monotonic()
        argv = [profiles.fill(text, self._words(None)) for text in self.profile.warm_up]
        if shutil.which(argv[0]) is None:
            raise Refused([missing(argv[0])])
        with self._client_group("warm-up") as client:
            client.wait(client.start(argv, dict(os.environ), None, os.devnull, os.devnull), 30)
        return time.monotonic() - began

    @contextlib.contextmanager
    def _client_group(self, name):
        """A group whose keeper, and so all that it starts, is on the client's side."""
        with contextlib.ExitStack() as stack:
            with self._client_side():
                client = stack.enter_context(
                    group.Group(name, cpus=self.plan.client_cpus, nofile=NOFILE))
            yield client

    def _words(self, logs):
        return profiles.words(self._server.host, self._server.port, logs,
                              len(self.plan.client_cpus))

    def _load(self, step, cell, logs):
        """Runs the client of `step` and fills in what it and the sampler saw. Raises Refused."""
        scratch = logs.with_suffix(".side")
        argv = profiles.client_argv(step, self._words(scratch))
        cell.argv = [text.replace(f"{profiles.PACKAGE}/", "").replace(f"{self.folder}/", "")
                     for text in argv]  # As it reads on any machine.
        cell.tool = argv[0]
        cell.tool_version = self.versions.get(cell.tool)
        if shutil.which(cell.tool) is None:
            raise Refused([missing(cell.tool)])
        if cell.tool not in parsers.TOOLS:
            raise Refused([Problem("TOOL_MISSING", f"what {cell.tool} prints can't be read; known "
                                   f"are {', '.join(parsers.TOOLS)}")])
        scratch.mkdir(exist_ok=True)
        out, err = logs.with_suffix(".out"), logs.with_suffix(".err")
        with self._client_group("client") as client:
            watch = sampler.Sampler(self._server.group, client, self._server.port,
                                    os.cpu_count(), on_tick=self.ui.tick)
            watch.idle_memory()
            watch.start()
            began = time.monotonic()
            pid = client.start(argv, dict(os.environ, LC_ALL="C"), None, out, err)
            status, was_cut = wait_for(client, pid, step)
            cell.wall_s = time.monotonic() - began
            cell.cpu, cell.memory, cell.network, cell.noise = watch.stop()
            parsed = parsers.parse(cell.tool, out.read_bytes(), err.read_bytes(), status,
                                   side_files(scratch))
            self._judge(step, cell, parsed, status, was_cut, watch)
            self._conclude(step, cell, watch)
        keep_small(scratch, logs)

    def _judge(self, step, cell, parsed, status, was_cut, watch):
        """Fills in what the client said, what is wrong with it, and the rate if nothing is."""
        keepalive = self.profile.keepalive if step.keepalive is None else step.keepalive
        if keepalive and not self._server.keepalive:
            keepalive = False
            cell.problems.append(Problem("CLOSES", "known of this entrant"))
        asked = None if was_cut else parsers.expected_requests(cell.argv)
        ok, problems = invariants.check(
            parsed, asked=asked, concurrency=step.concurrency,
            expected_body=self.profile.body.encode(),
            response_bytes=self._server.response_bytes(keepalive), keepalive=keepalive,
            min_seconds=0 if self.profile.pooled else self.profile.min_seconds,
            passive_opens=watch.passive_opens, silences=watch.silences,
            established_peak=cell.network.established_peak if cell.wall_s > SEEN_SECONDS else None,
            longest_pause_s=cell.network.longest_pause_s if step.offered_rps is None else None,
            tool_timeout_s=step.tool_timeout_s, rc=None if was_cut else status,
            offered_rps=step.offered_rps, pipeline=step.pipeline)
        cell.problems += problems
        if was_cut:
            cell.problems.append(Problem("TIME_LIMIT", f"told to stop after {step.limit_s:g} s"))
        if status is None:
            cell.problems.append(Problem("HUNG", "the client never came to its report"))
        if not self._server.alive():
            cell.problems.append(Problem("SERVER_DIED", "a process of the server has ended"))
        elif not any(problem.fatal for problem in cell.problems):
            wrong = self._server.problems_after()
            cell.problems += wrong
            ok = None if wrong else ok
        parsers.sharpen(parsed)
        copy_parsed(cell, parsed, ok)
        cell.rps = invariants.rate(parsed, ok, cell.problems)

    def _conclude(self, step, cell, watch):
        """Costs and verdict of a cell whose client has ended."""
        if cell.rps:
            watch.per_request(cell.requests.ok)
        cell.problems += marks(cell)
        cell.verdict = verdict.verdict(
            cell.cpu, server_cpus=len(cell.server_cpus),
            client_threads=client_threads(cell.argv, len(cell.client_cpus)),
            shared=bool(set(cell.server_cpus) & set(cell.client_cpus)),
            single_threaded=self._server.single_threaded,
            fixed_rate=step.offered_rps is not None,
            errors=sum(cell.requests.errors.values()), idle_share=idle_share(cell))


def marks(cell):
    """What a reader should know of a run whatever its result: it takes nothing away."""
    if cell.network.listen_overflows:
        yield Problem("LISTEN_OVERFLOWS", f"{cell.network.listen_overflows} times")
    noisy = [f"{name} {value:.2g}" for name, limit in NOISE_LIMITS.items()
             if (value := getattr(cell.noise, name)) is not None and value > limit]
    if noisy:
        yield Problem("NOISY", ", ".join(noisy))


def missing(tool):
    return Problem("TOOL_MISSING", f"{tool} is not in PATH; scripts/setup --test installs it")


def read_json(path):
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def copy_parsed(cell, parsed: Parsed, ok):
    cell.duration_s, cell.tool_rps = parsed.duration_s, parsed.rps
    cell.requests, cell.statuses, cell.latency = parsed.requests, parsed.statuses, parsed.latency
    cell.requests.ok = ok
    if parsed.total_bytes and parsed.requests.done:
        cell.bytes_per_response = parsed.total_bytes / parsed.requests.done


def wait_for(client, pid, step):
    """(exit status or None, whether it was told to stop). SIGINT makes the tools report, hey when
    the requests under way have got their answers or their time is up."""
    status = client.wait(pid, step.limit_s)
    if status is not None:
        return status, False
    client.signal(pid, signal.SIGINT)
    return client.wait(pid, STOP_GRACE_SECONDS + (step.tool_timeout_s or 0)), True


def side_files(folder):
    kinds = {"ab.csv": "csv", "h2load.tsv": "log"}
    return {kind: (folder / name).read_bytes() for name, kind in kinds.items()
            if (folder / name).is_file()}


def keep_small(folder, logs):
    """Keeps the side files that a reader may want to see; a log of every request is not one."""
    for path in folder.iterdir():
        if path.name == "ab.csv":
            path.replace(logs.with_suffix(".csv"))
    shutil.rmtree(folder)


def client_threads(argv, cpus):
    """How many processors the client could use at most."""
    if argv[0] == "ab":
        return 1
    return min(cpus, profiles.number_after(argv, "-t") or cpus)


def idle_share(cell):
    if cell.cpu.system_cores is None:
        return None
    return max(0.0, 1 - cell.cpu.system_cores / os.cpu_count())

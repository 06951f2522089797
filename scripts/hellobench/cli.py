# SPDX-License-Identifier: MIT
"""The verbs of scripts/bench. What they print goes to standard output, complaints to the other."""

import dataclasses
import datetime
import json
import os
import pathlib
import signal
import sys

from hellobench import (arguments, attach, entrant, listing, namespaces, parsers, report, runner,
                        verifying)
from hellobench import compare as comparing
from hellobench import doctor as examination
from hellobench import install as installing
from hellobench import journal as journals
from hellobench import plan as planning
from hellobench import profile as profiles
from hellobench import ui as uis
from hellobench.errors import HarnessError, NotInstalled, UsageError

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTRANTS, PROFILES = ROOT / "scripts" / "entrants", ROOT / "scripts" / "profiles"
RESULTS = ROOT / "build" / "bench"
BINARY = ROOT / "build" / "release" / "hello-uring"


def main(argv):
    options = arguments.parse(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, lambda caught, _: sys.exit(128 + caught))
    try:
        return VERBS[options.verb](options) or 0
    except HarnessError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # The reader has gone; what Python would still flush at the end has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a folder that was removed, ...
        print(f"bench: {error}", file=sys.stderr)
        return HarnessError.exit_status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def known_entrants():
    return entrant.load_all(ENTRANTS)


def chosen(names, everything, word):
    """The entrants called `names`; `word` stands for all. Raises UsageError."""
    if names == [word]:
        return list(everything.values())
    for name in names:
        if name not in everything:
            raise UsageError(f"no entrant {name!r}; there are: {', '.join(sorted(everything))}")
    return [everything[name] for name in names]


def list_(options):
    return listing.show(options.what, options.json, known_entrants(),
                        profiles.load_all(PROFILES))


def doctor(options):
    findings = examination.examine(options.strict)
    if options.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    else:
        examination.show(findings)
    unfit = any(finding.verdict == "bad" for finding in findings)
    return 6 if options.strict and unfit else 0


def install(options):
    failed = []
    for each in chosen(options.entrants, known_entrants(), "all"):
        if not installing.install(each, options.dry_run, sys.stdout):
            failed.append(each.id)
    if failed:
        raise NotInstalled(f"not installed: {', '.join(failed)}")


def verify(options):
    everything = known_entrants()
    if options.entrants == ["installed"]:
        selected = [each for each in everything.values() if each.status().installed]
    else:
        selected = chosen(options.entrants, everything, "all")
    return verifying.show(selected, the_profile(options.profile, False), options.json)


def the_profile(name, quick):
    path = PROFILES / f"{name}.toml"
    if not path.is_file():
        names = ", ".join(sorted(each.stem for each in PROFILES.glob("*.toml")))
        raise UsageError(f"no profile {name!r}; there are: {names}")
    return profiles.load(path, quick)


def run(options):
    profile = the_profile(options.profile, options.quick)
    changes = {name: getattr(options, name) for name in ("blocks", "topology", "port")
               if getattr(options, name) is not None}
    profile = dataclasses.replace(profile, **changes)
    pair = None
    if options.sysctl and not options.dry_run:
        pair = namespaces.Pair(options.sysctl)
        profile = dataclasses.replace(profile, host=pair.server.address)
    names = options.entrants.split(",") if options.entrants else profile.entrants
    entrants = chosen(list(dict.fromkeys(names)), known_entrants(), "all")
    for each in map(attach.parse, options.attach):
        if each.id in {other.id for other in entrants}:
            raise UsageError(f"--attach {each.id}: this run has an entrant of that name already")
        entrants.append(each)
    server_cpus, client_cpus = processors(options, profile)
    plan = planning.make(
        profile, entrants, seed=options.seed, quick=options.quick, server_cpus=server_cpus,
        client_cpus=client_cpus, baseline=options.baseline or entrants[0].id,
        git=planning.git_state(ROOT), binary_sha256=planning.sha256(BINARY),
        sysctl=pair.described() if pair else None)
    if options.baseline and options.baseline not in {each.id for each in entrants}:
        raise UsageError(f"--baseline {options.baseline} is not among the entrants of this run")
    if not plan.cells:
        raise NotInstalled("nothing to measure: " + "; ".join(
            f"{each['id']}: {each['reason']} ({each['cure']})" for each in plan.entrants))
    if options.dry_run:
        from hellobench import listing
        return listing.show_commands(plan, profile, entrants)
    folder = options.out or new_folder(profile.id)
    prepare(folder, plan)
    return measure(folder, plan, profile, entrants, options, plan.cells, pair)


def processors(options, profile):
    """(server's, client's) processors: as asked for, else the allowed ones shared or halved."""
    allowed = sorted(os.sched_getaffinity(0))
    for asked in (options.server_cpus, options.client_cpus):
        if asked and not set(asked) <= set(allowed):
            raise UsageError(f"processors {asked}: only {allowed} may be used here")
    if profile.topology == "shared" or len(allowed) == 1:
        server = client = allowed
    else:
        half = len(allowed) // 2
        server, client = allowed[:half], allowed[half:]
    server = options.server_cpus or server[:profile.server_cores]
    return server, options.client_cpus or client


def new_folder(profile_id):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M%S")
    return RESULTS / f"{profile_id}-{now}"


def prepare(folder, plan):
    """Makes the folder of a new run. Raises UsageError where there are results already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty; give --out another name, or see `resume`")
        planning.write_durably(folder / "env.json",
                               json.dumps(examination.environment(), indent=1) + "\n")
        planning.save(plan, folder)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error


def resume(options):
    plan = planning.load(options.folder)
    profile = profiles.from_json(plan.profile)
    planned = {entry["id"] for entry in plan.entrants}
    entrants = [each for each in known_entrants().values() if each.id in planned]
    attached = sorted(planned - {each.id for each in entrants})
    if attached:
        raise UsageError(f"{', '.join(attached)} was attached; such a run can't be resumed")
    planning.check_resume(plan, git=planning.git_state(ROOT),
                          binary_sha256=planning.sha256(BINARY), force=options.force,
                          versions={each.id: each.status().version for each in entrants})
    with journals.Journal(options.folder / journals.FILE) as journal:
        left = planning.remaining(plan, journal.cells())
    pair = namespaces.Pair(plan.sysctl["list"]) if plan.sysctl else None
    return measure(options.folder, plan, profile, entrants, options, left, pair)


def measure(folder, plan, profile, entrants, options, cells, pair):
    """Measures `cells`, writes the reports, returns the exit status; also when broken off."""
    ui = uis.make(options.ui, sys.stdout)
    status = 0
    with journals.Journal(folder / journals.FILE) as journal:
        ui.start(plan, cells)
        try:
            runner.Runner(plan, profile, {each.id: each for each in entrants}, folder, journal,
                          ui, pair.client.inside if pair else None).run(cells)
        except KeyboardInterrupt:
            status = 128 + signal.SIGINT
        except SystemExit as stopped:
            status = stopped.code or 0
        finally:
            ui.stop()
        measured = journal.cells()
    if measured:
        report.write(folder, options.format)
    print(f"results: {folder}")
    if status:
        print(f"broken off; to go on: scripts/bench resume {folder}", file=sys.stderr)
        return status
    return 0 if all(cell.valid for cell in measured) else 4


def parse(options):
    if options.tool not in parsers.TOOLS:
        raise UsageError(f"--tool is one of {', '.join(parsers.TOOLS)}")
    try:
        data = sys.stdin.buffer.read() if options.file == "-" else open(options.file, "rb").read()
        errors = options.stderr.read_bytes() if options.stderr else b""
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from error
    parsed = parsers.parse(options.tool, data, errors, options.status)
    print(json.dumps(dataclasses.asdict(parsed), indent=1))
    return 0 if parsed.complete and not any(p.fatal for p in parsed.problems) else 4


def report_(options):
    report.write(options.folder, options.format)
    print(f"written: {options.folder}")


def compare(options):
    return comparing.main(options.base, options.new, options.metric.split(","), options.margin,
                          options.json)


VERBS = {"list": list_, "doctor": doctor, "install": install, "verify": verify, "run": run,
         "resume": resume, "parse": parse, "report": report_, "compare": compare}

# SPDX-License-Identifier: MIT
"""Installs an entrant as an ordinary user would: Debian's packages, then its package manager.

Everything but Debian's packages goes to build/entrants/ID; the log is kept beside, as ID.log.
Nothing is done twice: what is there and was made from the same source is left alone. A failure
leaves nothing behind that looks installed.
"""

import collections
import os
import shlex
import shutil
import signal
import subprocess
import threading

from hellobench import entrant as entrants

STEP_LIMIT_S = 1800
LAST_LINES = 15


class Failed(Exception):
    """What could not be done, with its cause and cure; `brief` is that in one line."""

    def __init__(self, text, brief=None):
        super().__init__(text)
        self.brief = brief or text


def install(entrant, dry_run, out):
    """Whether the entrant is installed now (or would be). Says what it does on `out`."""
    def say(text):
        print(f"{entrant.id}: {text}", file=out, flush=True)

    try:
        packages(entrant, dry_run, say)
        build(entrant, dry_run, say)
    except Failed as failure:
        say(str(failure))
        return False
    if dry_run:
        return True
    entrants.command_output.cache_clear()
    status = entrant.status()
    if status.installed:
        say(f"installed, version {status.version or 'unknown'}")
    else:
        say(f"not installed: {status.reason}; {status.cure}")
    return status.installed


def packages(entrant, dry_run, say):
    """Debian's packages for the needs that are not met; a need without one can't be cured here."""
    missing = entrant.missing_needs()
    for need, reason in missing:
        cure = entrant.cure(need)
        if not need.apt or cure == need.cure:
            raise Failed(f"not installed: {reason}; {cure}")
    names = list(dict.fromkeys(name for need, _ in missing for name in need.apt.split()))
    if not names:
        return
    command = [*become_root(names), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install",
               "--yes", "--no-install-recommends", *names]
    if dry_run:
        say(f"would run: {shlex.join(command)}")
        return
    log = log_path(entrant)
    try:
        run(command, log, say)
    except Failed:
        # A package list that is missing or old names no package, or one that is gone.
        say("the package list may be old; trying again with a new one")
        run([*become_root(names), "apt-get", "update"], log, say)
        run(command, log, say)
    entrants.command_output.cache_clear()
    for need, reason in entrant.missing_needs():
        raise Failed(f"not installed: Debian's {need.apt} is, but {reason}"
                     + (f"; {entrant.fill(need.cure)}" if need.cure else ""))


def become_root(names):
    """The words before a command that only root may run."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        return ["sudo"]
    raise Failed(f"not installed: only root may install Debian's packages, and there is no sudo; "
                 f"as root: apt-get install {' '.join(names)}")


def build(entrant, dry_run, say):
    if not entrant.install or entrant.status().installed:
        return
    if dry_run:
        say(f"would copy {entrant.source} to {entrant.build} and run there:")
        for step in entrant.steps:
            say(f"  {shlex.join(step)}")
        return
    entrant.build.mkdir(parents=True, exist_ok=True)
    (entrant.build / entrants.STAMP).unlink(missing_ok=True)
    remove(entrant.artefact)
    for path in entrants.source_files(entrant.source):
        target = entrant.build / path.relative_to(entrant.source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    env = os.environ | {"PATH": entrants.search_path()} | entrant.fill(entrant.install.env)
    failure = entrant.build / entrants.FAILURE
    try:
        for step in entrant.steps:
            run(step, log_path(entrant), say, cwd=entrant.build, env=env)
        if not entrant.artefact.exists():
            raise Failed(f"all steps were done, but there is no {entrant.artefact}; "
                         f"see {log_path(entrant)}")
    except Failed as failed:
        failure.write_text(failed.brief, "utf-8")  # For the reason that `list` shows.
        raise
    failure.unlink(missing_ok=True)
    (entrant.build / entrants.STAMP).write_text(entrant.stamp_of_source(), "ascii")


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def log_path(entrant):
    return entrant.build.with_suffix(".log")


def run(argv, log, say, cwd=None, env=None):
    """Runs a step, its output in the log. Raises Failed with the last lines of it."""
    say(f"running: {shlex.join(argv)}")
    log.parent.mkdir(parents=True, exist_ok=True)
    last = collections.deque(maxlen=LAST_LINES)
    with log.open("a", encoding="utf-8") as file:
        print(f"$ {shlex.join(argv)}", file=file, flush=True)
        status = follow(start(argv, cwd, env), file, last)
    if status:
        what = f"{shlex.join(argv)} ended with status {status}"
        brief = "; ".join([line.strip() for line in last if line.strip()][-2:]) or "without a word"
        raise Failed("\n".join([f"not installed: {what}:", *last, f"    (all of it: {log})"]),
                     f"{what}: {brief}")


def start(argv, cwd, env):
    try:
        # In a session of its own a step can be ended whole. But sudo asks on this terminal.
        return subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace", start_new_session=argv[0] != "sudo")
    except OSError as error:
        raise Failed(f"{argv[0]} can't be started: {error}") from error


def follow(process, file, last):
    """Copies the output to the log until the end; the exit status. An interrupt ends the step."""
    limit = threading.Timer(STEP_LIMIT_S, end, (process,))
    limit.start()
    try:
        with process.stdout:
            for line in process.stdout:
                file.write(line)
                last.append("    " + line.rstrip())
        return process.wait()
    except BaseException:
        end(process)
        raise
    finally:
        limit.cancel()


def end(process):
    """With all that it has started, unless it shares our session."""
    try:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.terminate()
    except ProcessLookupError:
        pass

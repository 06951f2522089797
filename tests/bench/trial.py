# SPDX-License-Identifier: MIT
"""A small checkout of its own for tests of whole runs: entrants that misbehave as they are told, a
profile that takes moments, and the harness in a process that can be killed.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = HERE.parents[1] / "scripts"
SERVER = HERE / "misbehaving_server.py"
# The verb's own code, with other folders than the real ones.
# Ctrl-C works even where the tests were started as a job that ignores it.
MAIN = """import pathlib, signal, sys
from hellobench import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
root = pathlib.Path(sys.argv[1])
cli.ENTRANTS, cli.PROFILES, cli.RESULTS = root / "entrants", root / "profiles", root / "results"
sys.exit(cli.main(sys.argv[2:]))
"""
ENTRANT = """schema = 1
title = "{title}"
language = "Python"
kind = "server"
variant = "tuned"
about = "It behaves or misbehaves for tests"
articles = []
access_log = false
workers = "one process"
single_threaded = true

[[needs]]
command = "{command}"
cure = "have {command} in PATH"

[version]
argv = ["{python}", "--version"]
pattern = 'Python (\\S+)'

[[run]]
argv = ["{python}", "{server}", "{mode}", "{{port}}", "--body", "{{body}}", "--sound", "{sound}",
        "--label", "{label}", "--host", "{{host}}"]

[ready]
seconds = {ready}
"""
PROFILE = """schema = 1
title = "A trial"
about = "Nothing but a test"
kind = "ours"
topology = "shared"
blocks = {blocks}
restart = {restart}
min_seconds = 0
waiting_limit = 1_000_000 # whatever other tests have left
entrants = {entrants}

[[steps]]
id = "main"
argv = {argv}
concurrency = {concurrency}
keepalive = {keepalive}
limit_s = {limit}
"""
AB = ["ab", "-q", "-n", "60", "-c", "3", "-s", "2", "{url}"]


class Trial:
    """A context manager; `folder` goes with it."""

    def __init__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="hellobench-trial-")
        self.folder = pathlib.Path(self._scratch.name)
        self.out = self.folder / "out"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._scratch.cleanup()

    def entrant(self, name, mode="ok", sound=0, ready=5, command="sh"):
        """`sound`: the first so many requests are answered well, so that `verify` is content."""
        path = self.folder / "entrants" / name
        path.mkdir(parents=True)
        (path / "entrant.toml").write_text(ENTRANT.format(
            title=name, mode=mode, sound=sound, ready=ready, command=command,
            python=sys.executable, server=SERVER, label=self.folder.name))

    def profile(self, entrants, argv=None, blocks=1, restart=True, keepalive=False, limit=20,
                concurrency=3):
        (self.folder / "profiles").mkdir(exist_ok=True)
        (self.folder / "profiles/trial.toml").write_text(PROFILE.format(
            entrants=json.dumps(entrants), argv=json.dumps(argv or AB), blocks=blocks,
            restart=str(restart).lower(), keepalive=str(keepalive).lower(), limit=limit,
            concurrency=concurrency))

    def begin(self, *words):
        """The harness as a process, with its output on a pipe."""
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, str(self.folder), *words],
            env=os.environ | {"PYTHONPATH": str(SCRIPTS), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def bench(self, *words):
        """(exit status, standard output, standard error) of the harness."""
        process = self.begin(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def run(self, *words):
        return self.bench("run", "trial", "--ui", "plain", "--format", "md", "--out",
                          str(self.out), *words)

    def cells(self):
        path = self.out / "journal.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line)["cell"] for line in lines if line.endswith("\n")]

    def only_cell(self):
        (cell,) = self.cells()
        return cell

    def servers(self):
        """Pids of the entrants of this trial that run."""
        mark = str(SERVER).encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in words and os.fsencode(self.folder.name) in words:
                found.append(int(entry.name))
        return found


def codes(cell):
    return {problem["code"] for problem in cell["problems"]}

# SPDX-License-Identifier: MIT
"""Entrants: the servers that are measured, one folder with an entrant.toml each.

An entrant says what it needs, how a package manager installs it and how it is started. Whatever is
missing is a reason and a cure to show, never an exception: a server that can't be had on a machine
keeps its row. A file that is wrong is a UsageError that names the file, the key and the cure.
"""

import dataclasses
import functools
import glob
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess

from hellobench import entrant_file
from hellobench.errors import UsageError

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION_LIMIT_S = 5
# Of the caller's environment no more than this reaches a server: a GOGC or NODE_OPTIONS that was
# left in a shell must not change a result.
KEPT_VARIABLES = ("HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
                  "DOTNET_ROOT")
# Where Debian has servers; only root's PATH holds it.
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
STAMP, FAILURE = ".installed", ".failed"
# What a configuration file or a shell could read as more than text.
BODY = re.compile(r"[ -~]+")
BODY_EXCLUDED = "\"'\\$`{}<>"


@dataclasses.dataclass(frozen=True)
class Status:
    installed: bool
    version: str | None = None
    reason: str | None = None  # why it is not installed
    cure: str | None = None  # the command that would help


@dataclasses.dataclass(frozen=True)
class ProcessSpec:
    argv: list[str]  # argv[0] is absolute
    env: dict[str, str]  # the whole environment
    cwd: str
    user: str | None = None


@dataclasses.dataclass(frozen=True)
class Launch:
    processes: list[ProcessSpec]  # in the order in which they are started
    ready: float  # seconds until the first good answers, at most
    stop_signal: signal.Signals


@dataclasses.dataclass(frozen=True)
class Entrant:
    id: str
    title: str
    language: str
    kind: str
    variant: str
    about: str
    articles: list[str]
    access_log: bool
    workers: str
    single_threaded: bool
    keepalive: bool  # False: it is known to close every connection
    needs: list[entrant_file.Need]
    install: entrant_file.Install | None
    version: entrant_file.Version | None
    processes: list[entrant_file.Process]
    files: list[entrant_file.Template]
    ready_s: float
    stop_signal: signal.Signals
    source: pathlib.Path
    root: pathlib.Path
    twin_of: str | None = None  # the entrant that it is but for its name: they differ by noise

    @property
    def build(self):
        return self.root / "build/entrants" / (self.twin_of or self.id)

    @property
    def steps(self):
        """The commands that install it, without the Debian packages."""
        return [self.fill(step) for step in self.install.steps] if self.install else []

    def fill(self, value, **more):
        """`value` (a text, list or table of texts) with the words in braces replaced."""
        words = {"build": str(self.build), "source": str(self.source), "root": str(self.root)}
        return entrant_file.fill(value, words | more)

    def missing_needs(self):
        """(need, why it is not met) of each need that is not met."""
        found = ((need, self.unmet(need)) for need in self.needs)
        return [(need, reason) for need, reason in found if reason]

    def unmet(self, need):
        """Why `need` is not met; None if it is."""
        package = f" (Debian's package {need.apt})" if need.apt else ""
        if need.command and not find_command(need.command):
            return f"{need.command} is not in PATH{package}"
        path = need.file or need.path
        if path and not pathlib.Path(self.fill(path)).exists():
            return f"{self.fill(path)} is missing{package}"
        if not need.least:
            return None
        output = command_output(tuple(self.fill(need.version)))
        found = re.search(r"\d+(?:\.\d+)+", output)
        if found and numbers(found[0]) >= numbers(need.least):
            return None
        name = need.command or pathlib.Path(path).name
        return f"{name} is {found[0] if found else 'of unknown version'}, not {need.least} or later"

    def status(self):
        for need, reason in self.missing_needs():
            return Status(False, reason=reason, cure=self.cure(need))
        if self.install:
            command = f"scripts/bench install {self.id}"
            if not self.artefact.exists() or self.stamp() is None:
                failure = file_text(self.build / FAILURE)
                reason = f"installing it failed: {failure}" if failure else "not installed yet"
                return Status(False, reason=reason, cure=command)
            if self.stamp() != self.stamp_of_source():
                return Status(False, reason="its source has changed since it was installed",
                              cure=command)
        return Status(True, version=self.find_version())

    def cure(self, need):
        """The command that meets a need. Debian's package can't be it where it is there already."""
        if need.cure and (not need.apt or (need.command and find_command(need.command))):
            return self.fill(need.cure)
        return f"scripts/bench install {self.id}"

    @property
    def artefact(self):
        return pathlib.Path(self.fill(self.install.artefact))

    def stamp(self):
        try:
            return (self.build / STAMP).read_text("ascii")
        except (OSError, UnicodeDecodeError):
            return None

    def stamp_of_source(self):
        """Of all that an installation is made from: the source files and the steps."""
        digest = hashlib.sha256(repr((self.install.steps, self.install.env)).encode())
        templates = {template.template for template in self.files}
        for path in source_files(self.source):
            name = path.relative_to(self.source).as_posix()
            if name not in templates:
                content = path.read_bytes()
                digest.update(f"{name} {len(content)} ".encode() + content)
        return digest.hexdigest()

    def find_version(self):
        """What is installed; None if it can't be told, which is no reason not to measure it."""
        if not self.version:
            return None
        if self.version.argv:
            text = command_output(tuple(self.fill(self.version.argv)))
        else:
            text = file_text(self.fill(self.version.file))
        found = re.search(self.version.pattern, text)
        groups = [group for group in found.groups() if group] if found else []
        return ", ".join(" ".join(group.split()) for group in groups) or None

    def launch(self, host, port, cores, cpus, body, run_folder):
        """What to start for a server on host:port; writes its configuration into `run_folder`."""
        if not BODY.fullmatch(body) or any(character in body for character in BODY_EXCLUDED):
            raise UsageError(f"body {body!r}: use printable ASCII without any of {BODY_EXCLUDED}")
        run = pathlib.Path(run_folder).resolve()
        # As nginx takes it, whose [::] would be without IPv4.
        address = f"*:{port}" if host == "::" else f"{host}:{port}"
        words = {"port": str(port), "host": host, "address": address, "cores": str(cores),
                 "cpus": ",".join(map(str, cpus)), "body": body, "run": str(run)}
        run.mkdir(parents=True, exist_ok=True)
        for template in self.files:
            text = (self.source / template.template).read_text("utf-8")
            target = pathlib.Path(self.fill(template.to, **words))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.fill(text, **words), "utf-8")
        processes = [self.process_spec(process, words) for process in self.processes]
        return Launch(processes, self.ready_s, self.stop_signal)

    def process_spec(self, process, words):
        argv = self.fill(process.argv, **words)
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        env = kept | {"PATH": search_path()} | self.fill(process.env, **words)
        default = str(self.build) if self.install else words["run"]
        cwd = self.fill(process.cwd, **words) if process.cwd else default
        return ProcessSpec([find_command(argv[0]) or argv[0], *argv[1:]], env, cwd, process.user)


def load_all(folder, root=ROOT):
    """{id: Entrant} of every folder in `folder` that has an entrant.toml. Raises UsageError."""
    paths = sorted(pathlib.Path(folder).glob("*/entrant.toml"))
    return {path.parent.name: load(path, root) for path in paths}


def load(path, root=ROOT):
    """The entrant in the file `path`; its id is the name of the folder. Raises UsageError."""
    path = pathlib.Path(path).resolve()
    fields = entrant_file.read(path)
    if "twin_of" in fields:
        original = path.parents[1] / fields["twin_of"] / path.name
        if "twin_of" in entrant_file.read(original):
            raise UsageError(f"{path}: twin_of: {fields['twin_of']} is a twin itself; name its "
                             "original")
        return dataclasses.replace(load(original, root), id=path.parent.name, **fields)
    return Entrant(id=path.parent.name, source=path.parent, root=pathlib.Path(root), **fields)


def source_files(folder):
    """What is copied to be built: all files but entrant.toml and what a tool left there."""
    left = {"node_modules", "__pycache__", "target", "bin", "obj"}
    return [path for path in sorted(folder.rglob("*"))
            if path.is_file() and path != folder / "entrant.toml"
            and not left.intersection(path.relative_to(folder).parts)]


def search_path():
    return f"{os.environ.get('PATH', os.defpath)}:{SBIN}"


def find_command(name):
    """The absolute path of a command. With a *, the latest: Debian's PHP has its version in it."""
    if "*" not in name:
        return shutil.which(name, path=search_path())
    for folder in search_path().split(":"):
        matches = [path for path in glob.glob(os.path.join(folder, name))
                   if os.access(path, os.X_OK)]
        if matches:
            return max(matches, key=numbers)
    return None


def numbers(text):
    """The numbers in a text, to be compared: 1.26.8 is later than 1.9."""
    return [int(number) for number in re.findall(r"\d+", os.path.basename(text))]


@functools.cache
def command_output(argv):
    """What a command prints; "" if it can't be run. Asked once per run of the harness."""
    path = find_command(argv[0])
    if not path:
        return ""
    try:
        done = subprocess.run([path, *argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=VERSION_LIMIT_S, check=False,
                              env=os.environ | {"PATH": search_path()})
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def file_text(path):
    try:
        return pathlib.Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""

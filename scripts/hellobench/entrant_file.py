# SPDX-License-Identifier: MIT
"""The file entrant.toml: what may be in it, and the errors for what may not.

Every key is checked when the file is read: an unknown key, a value of the wrong type or an unknown
word in braces is a UsageError with the file, the key and the cure, never a surprise in a run.
"""

import dataclasses
import re
import signal
import tomllib

from hellobench.errors import UsageError

KINDS = ("engine", "server", "framework")
VARIANTS = ("as-published", "tuned")
SIGNALS = ("TERM", "INT", "QUIT", "KILL")
# Those that are known when it is installed, then those of a run.
INSTALL_WORDS = ("build", "source", "root")
WORDS = (*INSTALL_WORDS, "port", "host", "address", "cores", "cpus", "body", "run")
# In a command a lone lower-case name in braces is meant as a word; {} or {x: 1} is not.
LOOKS_LIKE_WORD = re.compile(r"\{([a-z]+)\}")


@dataclasses.dataclass(frozen=True)
class Need:
    """Something that must be there to build and run: one of command, file and path."""

    command: str | None = None  # in PATH; * stands for a version
    file: str | None = None
    path: str | None = None
    apt: str | None = None  # Debian's package of it
    cure: str | None = None  # what the user types
    least: str | None = None  # its least version, and the command that prints it
    version: list[str] | None = None


@dataclasses.dataclass(frozen=True)
class Install:
    steps: list[list[str]]  # run in {build}, into which the entrant's folder has been copied
    artefact: str  # there: it is installed
    env: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Version:
    pattern: str  # its groups are the version, shown with commas between them
    argv: list[str] | None = None
    file: str | None = None


@dataclasses.dataclass(frozen=True)
class Process:
    argv: list[str]
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    cwd: str | None = None  # default: {build} if there is an [install], else {run}
    user: str | None = None


@dataclasses.dataclass(frozen=True)
class Template:
    template: str  # a file beside entrant.toml
    to: str


# Kinds of values, by their names in an error.
CHECKS = {
    "text": lambda value: isinstance(value, str) and value != "",
    "texts": lambda value: isinstance(value, list) and all(isinstance(x, str) for x in value),
    "command": lambda value: CHECKS["texts"](value) and len(value) > 0,
    "commands": lambda value: isinstance(value, list) and all(map(CHECKS["command"], value)),
    "true or false": lambda value: isinstance(value, bool),
    "number": lambda value: type(value) in (int, float) and value > 0,
    "table of texts": lambda value: (isinstance(value, dict)
                                     and all(isinstance(x, str) for x in value.values())),
    "table": lambda value: isinstance(value, dict),
    "tables": lambda value: (isinstance(value, list) and len(value) > 0
                             and all(isinstance(x, dict) for x in value)),
}
SAMPLES = {
    "text": '"text"', "texts": '["text", ...]', "command": '["program", "argument", ...]',
    "commands": '[["program", "argument", ...], ...]', "true or false": "true or false",
    "number": "a number above 0", "table of texts": '{ NAME = "text" }',
    "table": "a [table]", "tables": "a [[table]]",
}
# Of each table: key -> kind of value; a key that ends with ? may be left out.
TOP = {"schema": "number", "title": "text", "language": "text", "kind": "text", "variant": "text",
       "about": "text", "articles": "texts", "access_log": "true or false", "workers": "text",
       "single_threaded": "true or false", "keepalive?": "true or false", "needs?": "tables",
       "install?": "table", "version?": "table", "run": "tables", "files?": "tables",
       "ready?": "table", "stop?": "table"}
# All else is its original's, so that the two can't come to differ.
TWIN = {"schema": "number", "title": "text", "about": "text", "twin_of": "text"}
NEEDS = {"command?": "text", "file?": "text", "path?": "text", "apt?": "text", "cure?": "text",
         "least?": "text", "version?": "command"}
INSTALL = {"steps": "commands", "env?": "table of texts", "artefact": "text"}
VERSION = {"argv?": "command", "file?": "text", "pattern": "text"}
RUN = {"argv": "command", "env?": "table of texts", "cwd?": "text", "user?": "text"}
FILES = {"template": "text", "to": "text"}
READY = {"seconds": "number"}
STOP = {"signal": "text"}


class Mistake(Exception):
    """(key, what is wrong and how to cure it)"""


def read(path):
    """The fields of an Entrant, from the file; of a twin those alone in which it differs from its
    original. Raises UsageError."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    try:
        return fields_of(data, path.parent)
    except Mistake as mistake:
        key, text = mistake.args
        raise UsageError(f"{path}: {key}: {text}") from None


def fields_of(data, source):
    is_twin = "twin_of" in data
    check_table(data, TWIN if is_twin else TOP, "")
    if data["schema"] != 1:
        raise Mistake("schema", f"is {data['schema']}; this version reads schema = 1")
    if is_twin:
        return {key: data[key] for key in ("title", "about", "twin_of")}
    check_choice(data, "kind", KINDS)
    check_choice(data, "variant", VARIANTS)
    fields = {key: data[key] for key in ("title", "language", "kind", "variant", "about",
                                         "articles", "access_log", "workers", "single_threaded")}
    fields["keepalive"] = data.get("keepalive", True)
    fields["needs"] = [need_of(table, key) for key, table in numbered(data, "needs")]
    fields["install"] = install_of(data["install"]) if "install" in data else None
    fields["version"] = version_of(data["version"]) if "version" in data else None
    fields["processes"] = [made(Process, table, RUN, key, WORDS)
                           for key, table in numbered(data, "run")]
    fields["files"] = [template_of(table, key, source) for key, table in numbered(data, "files")]
    ready, stop = data.get("ready", {"seconds": 20}), data.get("stop", {"signal": "TERM"})
    check_table(ready, READY, "ready.")
    check_table(stop, STOP, "stop.")
    check_choice(stop, "signal", SIGNALS, "stop.")
    fields["ready_s"] = float(ready["seconds"])
    fields["stop_signal"] = signal.Signals["SIG" + stop["signal"]]
    return fields


def numbered(data, name):
    return [(f"{name}[{index}].", table) for index, table in enumerate(data.get(name, []))]


def made(kind, table, schema, key, words):
    """A `kind` of this file from a table, once its keys, types and words are right."""
    check_table(table, schema, key)
    check_words(table, key, words)
    return kind(**table)


def need_of(table, key):
    need = made(Need, table, NEEDS, key, INSTALL_WORDS)
    if sum(bool(way) for way in (need.command, need.file, need.path)) != 1:
        raise Mistake(key.rstrip("."), "give one of command, file and path")
    if not (need.apt or need.cure):
        raise Mistake(key.rstrip("."), "give apt (a Debian package) or cure (a command)")
    if bool(need.least) != bool(need.version):
        raise Mistake(key + "least", "goes with version, the command that prints the version")
    return need


def install_of(table):
    install = made(Install, table, INSTALL, "install.", INSTALL_WORDS)
    if not install.artefact.startswith("{build}/"):
        raise Mistake("install.artefact", "must be in {build}/")
    return install


def version_of(table):
    version = made(Version, table, VERSION, "version.", INSTALL_WORDS)
    if bool(version.argv) == bool(version.file):
        raise Mistake("version", "give either argv or file")
    try:
        groups = re.compile(version.pattern).groups
    except re.error as error:
        raise Mistake("version.pattern", f"is no regular expression: {error}") from None
    if groups < 1:
        raise Mistake("version.pattern", "has no group; put the version in ( )")
    return version


def template_of(table, key, source):
    template = made(Template, table, FILES, key, WORDS)
    if not (source / template.template).is_file():
        raise Mistake(key + "template", f"there is no file {template.template} beside it")
    if not template.to.startswith("{run}/"):
        raise Mistake(key + "to", "must be in {run}/")
    return template


def check_table(table, schema, prefix):
    if not isinstance(table, dict):
        raise Mistake(prefix.rstrip("."), "must be a [table]")
    kinds = {key.rstrip("?"): kind for key, kind in schema.items()}
    for key, value in table.items():
        if key not in kinds:
            raise Mistake(prefix + key, f"unknown key; known are {', '.join(kinds)}")
        if not CHECKS[kinds[key]](value):
            raise Mistake(prefix + key, f"must be {SAMPLES[kinds[key]]}, not {value!r}")
    for key in schema:
        if not key.endswith("?") and key not in table:
            raise Mistake(prefix + key, f"is missing; add {key} = {SAMPLES[kinds[key]]}")


def check_choice(table, key, allowed, prefix=""):
    if table[key] not in allowed:
        raise Mistake(prefix + key, f"is {table[key]!r}; choose one of {', '.join(allowed)}")


def check_words(value, key, words):
    """Raises Mistake for a word in braces that will have no value there."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != "pattern":
                check_words(inner, key + name, words)
    elif isinstance(value, list):
        for inner in value:
            check_words(inner, key, words)
    elif isinstance(value, str):
        for word in LOOKS_LIKE_WORD.findall(value):
            if word not in words:
                known = " ".join(f"{{{each}}}" for each in words)
                raise Mistake(key, f"unknown word {{{word}}}; known here are {known}")


def fill(value, words):
    """`value` (a text, list or table of texts) with {word} replaced, and no other brace touched."""
    if isinstance(value, dict):
        return {key: fill(inner, words) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, words) for inner in value]
    pattern = "|".join(words)
    return re.sub(rf"\{{({pattern})\}}", lambda match: words[match[1]], value)

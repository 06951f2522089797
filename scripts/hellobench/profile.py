# SPDX-License-Identifier: MIT
"""Profiles: benchmark protocols as data, one TOML file each in scripts/profiles/.

A profile says what is sent, how often, to a server on which processors; for an article's protocol
also what the article reported. A step is one client command; its words in braces (see `words`) are
filled in when it runs. `quick` holds what differs in the size for a machine with 2 processors.
"""

import copy
import dataclasses
import pathlib
import tomllib
import typing

from hellobench.errors import UsageError

PACKAGE = pathlib.Path(__file__).resolve().parent
KINDS = ("article", "ours")
TOPOLOGIES = ("shared", "pinned")
SETTLES = ("client", "all")
SHAPES = ("runs", "resources", "ladder", "rps")


@dataclasses.dataclass(frozen=True)
class Step:
    id: str
    argv: list[str]  # empty: no load, only the start of the server is measured
    concurrency: int | None = None
    added: list[str] = dataclasses.field(default_factory=list)  # put after argv[0]; same traffic
    keepalive: bool | None = None  # None: as the profile
    offered_rps: float | None = None  # requests/s of a fixed-rate step
    pipeline: int = 1  # requests that the client sends at once on a connection
    limit_s: float = 120  # the client is told to stop then
    tool_timeout_s: float | None = None  # the client's own limit for one request


@dataclasses.dataclass(frozen=True)
class Published:
    """What an article reported."""

    source: str
    shape: str  # of its table: "runs", "resources", "ladder" or "rps"
    note: str  # on what machine, and what is not known
    rows: list[dict[str, typing.Any]]


@dataclasses.dataclass(frozen=True)
class Profile:
    id: str
    title: str
    about: str
    kind: str
    steps: list[Step]
    entrants: list[str]
    body: str = "Hello World!"
    host: str = "127.0.0.1"  # as the client names it
    port: int = 0  # 0: a free one
    keepalive: bool = True
    topology: str = "pinned"
    server_cores: int | None = None  # at most so many processors for the server
    blocks: int = 10
    restart: bool = True  # a new server in each block
    warm_up: list[str] = dataclasses.field(default_factory=list)  # a command; none: cold
    min_seconds: float = 2.0  # a shorter run is marked
    settle: str = "client"  # before each run the client's ports are free; "all": the server's too
    waiting_limit: int = 10_000  # sockets in WAIT states; of the 28,232 ports enough are left
    pooled: bool = False  # its many short repeats are read together
    published: Published | None = None


def load_all(folder, quick=False):
    """{id: Profile} of every *.toml in `folder`. Raises UsageError."""
    return {path.stem: load(path, quick) for path in sorted(folder.glob("*.toml"))}


def load(path, quick=False):
    """The profile in the file `path`, in its quick size if asked. Raises UsageError."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    try:
        return from_data(path.stem, data, quick)
    except KeyError as error:
        raise UsageError(f"{path}: {error} is missing") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error


def from_data(profile_id, data, quick):
    data = copy.deepcopy(data)
    if data.pop("schema", None) != 1:
        raise ValueError("schema must be 1")
    smaller = data.pop("quick", {})
    quick_steps = smaller.pop("steps", {})
    steps = []
    for step in data.pop("steps", []):
        changes = quick_steps.pop(step["id"], {})
        steps.append(Step(**(step | changes if quick else step)))
    if quick_steps:
        raise ValueError(f"[quick.steps] names no step: {', '.join(quick_steps)}")
    published = data.pop("published", None)
    profile = Profile(id=profile_id, steps=steps, **(data | smaller if quick else data),
                      published=Published(**published) if published else None)
    check(profile)
    return profile


def check(profile):
    """Raises ValueError for what can't be run as it stands."""
    for value, allowed, name in ((profile.kind, KINDS, "kind"),
                                 (profile.topology, TOPOLOGIES, "topology"),
                                 (profile.settle, SETTLES, "settle")):
        if value not in allowed:
            raise ValueError(f"{name} is one of {', '.join(allowed)}, not {value!r}")
    if profile.published and profile.published.shape not in SHAPES:
        raise ValueError(f"published.shape is one of {', '.join(SHAPES)}")
    if profile.blocks < 1 or not profile.steps:
        raise ValueError("at least one block and one step")
    if len({step.id for step in profile.steps}) < len(profile.steps):
        raise ValueError("two steps of the same id")
    for step in profile.steps:
        if any("://" in text for text in step.argv):
            raise ValueError(f"step {step.id}: names an address; write {{url}} or {{origin}}")
        requests = number_after(step.argv, "-n")
        if requests and step.concurrency and requests < step.concurrency:
            raise ValueError(f"step {step.id}: -n {requests} is less than its concurrency "
                             f"{step.concurrency}; the client would refuse it")


def number_after(argv, option):
    """The number that follows `option`, apart or attached (-n10); None without one."""
    for word, following in zip(argv, [*argv[1:], ""]):
        text = following if word == option else word.removeprefix(option)
        if word.startswith(option) and text.isdigit():
            return int(text)
    return None


def to_json(profile):
    return dataclasses.asdict(profile)


def from_json(data):
    """The inverse of to_json, for the profile that a plan keeps."""
    fields = dict(data)
    fields["steps"] = [Step(**step) for step in fields["steps"]]
    if fields["published"]:
        fields["published"] = Published(**fields["published"])
    return Profile(**fields)


def words(host, port, step_dir, client_threads):
    """What the words of a command stand for: {origin}, {url}, {package}, ... {step_dir} is where
    the client may leave files."""
    origin = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    return {"origin": origin, "url": f"{origin}/", "package": PACKAGE, "step_dir": step_dir,
            "client_threads": client_threads}


def client_argv(step, words):
    """The command line of a step, with the `words` in it."""
    argv = [step.argv[0], *step.added, *step.argv[1:]] if step.argv else []
    return [fill(text, words) for text in argv]


def fill(text, words):
    for word, value in words.items():
        text = text.replace("{" + word + "}", str(value))
    return text

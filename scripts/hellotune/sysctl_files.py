# SPDX-License-Identifier: MIT
"""The one parser of sysctl/*.conf: files of sysctl.d(5) whose comments carry the reference.

    # prose
    #@ why: caps the backlog of listen()      a field of the next line that names a key
    #@   and the SYN queue with it            three blanks or more: the field's text goes on
    net.core.somaxconn = 65535                applied, and checked
    -net.ipv4.tcp_migrate_req = 1             the same, but may be missing (as in sysctl.d)
    #= net.ipv4.tcp_timestamps = 1            checked only: a comment to every other tool
    #: net.ipv4.tcp_fin_timeout               explained only: neither applied nor checked

Invariants: load() returns all settings of a file or raises; a key has one spelling (dots, as
sysctl(8) prints it) whichever way the file spells it; a value is one line, its words separated by
one blank each.
"""

import dataclasses
import pathlib
import re

FIELDS = frozenset("side scope default published unit compare since why what check risk counter"
                   " lab doc effect verdict optional".split())
COMPARES = ("exact", "min", "merge")
NUMBER = re.compile(r"-?[0-9]{1,40}")  # file-max goes up to 2^63-1
PORT_LIST = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*")


SWAPPED = str.maketrans("./", "/.")


class ParseError(ValueError):
    """A line that can't be meant; the text says what is wrong with it."""

    def __init__(self, path, line, text):
        super().__init__(f"{path}:{line}: {text}")
        self.path, self.line, self.text = path, line, text


@dataclasses.dataclass(frozen=True)
class Setting:
    key: str
    value: str  # "" if only explained
    verify_only: bool  # neither of the last two kinds is ever written
    fields: dict
    path: str
    line: int
    may_be_missing: bool = False

    @property
    def compare(self):
        return self.fields.get("compare", "exact")

    @property
    def explain_only(self):
        return not self.value

    @property
    def optional(self):
        """Where the kernel has no such key, or we may not write it, go on without it."""
        return self.may_be_missing or self.fields.get("optional", "no") not in ("no", "")


def load(path):
    """All settings of the file, in its order. Raises ParseError, OSError."""
    return parse(pathlib.Path(path).read_bytes(), str(path))


def parse(data, path):
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[:error.start].count(b"\n") + 1
        raise ParseError(path, line, "not UTF-8 text") from error
    parser = _Parser(path)
    for number, line in enumerate(re.split(r"\r?\n", text), 1):
        parser.take(number, line)
    return parser.finish()


def canonical_key(text):
    """The key with dots between its parts; ValueError if it can't be one.

    As in sysctl.d(5): the first separator decides. "net/ipv4/conf/eth0.5/forwarding" names the
    interface eth0.5, and so does "net.ipv4.conf.eth0/5.forwarding", which is the form we keep.
    """
    if not re.fullmatch(r"[A-Za-z0-9_./-]+", text):
        raise ValueError("a key is made of letters, digits and _ . / -")
    separator = re.search(r"[./]", text)
    key = text.translate(SWAPPED) if separator and separator.group() == "/" else text
    parts = key_path(key).split("/")
    if len(parts) < 2 or not all(part.strip(".") for part in parts):
        raise ValueError("a key has two parts or more, none of them empty or made of dots")
    return key


def key_path(key):
    """The canonical key's path, relative to /proc/sys."""
    return key.translate(SWAPPED)


def normalise(value):
    """Words with one blank between: the kernel separates with tabs, people with what they like."""
    return " ".join(value.split())


class _Parser:
    def __init__(self, path):
        self.path = path
        self.settings = []
        self.fields, self.fields_line, self.last_field = {}, 0, None

    def take(self, number, line):
        line = line.rstrip()
        if line.startswith("#@"):
            self._take_field(number, line[2:])
        elif line.startswith("#="):
            self._take_assignment(number, line[2:], verify_only=True)
        elif line.startswith("#:"):
            self._add(number, line[2:].strip(), "", verify_only=True)
        elif line.strip() and line.lstrip()[0] not in "#;":
            self._take_assignment(number, line, verify_only=False)

    def finish(self):
        if self.fields:
            raise ParseError(self.path, self.fields_line, "fields that belong to no key")
        return self.settings

    def _take_field(self, number, text):
        if re.match(r"\s{3}", text):
            if self.last_field is None:
                raise ParseError(self.path, number, "goes on with a field, but there is none")
            joined = self.fields[self.last_field] + " " + normalise(text)
            self.fields[self.last_field] = joined.strip()
            return
        match = re.fullmatch(r"\s*([a-z]+):(.*)", text)
        if not match or match[1] not in FIELDS:
            raise ParseError(self.path, number,
                             "not a field; there are: " + " ".join(sorted(FIELDS)))
        if match[1] in self.fields:
            raise ParseError(self.path, number, f"a second field {match[1]} for one key")
        self.fields_line = self.fields_line or number
        self.last_field = match[1]
        self.fields[match[1]] = normalise(match[2])

    def _take_assignment(self, number, text, verify_only):
        key, equals, value = text.partition("=")
        value = normalise(value)
        if not equals or not value:
            raise ParseError(self.path, number, "expected KEY = VALUE")
        if re.search(r"[#;]", value):
            # sysctl(8) hands it to the kernel, which takes "9 # nine" for 9 and drops the rest.
            raise ParseError(self.path, number,
                             "a comment behind a value is part of the value; give it its own line")
        if not value.isprintable():
            raise ParseError(self.path, number, "a value that can't be printed")
        self._add(number, key.strip(), value, verify_only)

    def _add(self, number, name, value, verify_only):
        may_be_missing = name.startswith("-")
        try:
            key = canonical_key(name[1:].strip() if may_be_missing else name)
        except ValueError as error:
            raise ParseError(self.path, number, f"{name!r}: {error}") from error
        setting = Setting(key, value, verify_only, self.fields, self.path, number, may_be_missing)
        self._check_compare(setting)
        self._check_earlier(setting)
        self.settings.append(setting)
        self.fields, self.fields_line, self.last_field = {}, 0, None

    def _check_compare(self, setting):
        if setting.compare not in COMPARES:
            raise ParseError(self.path, setting.line, "compare is one of " + " ".join(COMPARES))
        if setting.explain_only:
            return
        if setting.compare == "min" and not NUMBER.fullmatch(setting.value):
            raise ParseError(self.path, setting.line, "compare: min needs one number")
        if setting.compare == "merge" and not PORT_LIST.fullmatch(setting.value):
            raise ParseError(self.path, setting.line,
                             "compare: merge needs a list such as 80,8080-8083")

    def _check_earlier(self, setting):
        """The published list has a line twice; the same line with another value is a mistake."""
        for other in self.settings:
            if other.key == setting.key and other.value != setting.value:
                raise ParseError(self.path, setting.line, f"{setting.key} has another value in"
                                 f" line {other.line}; the last one would win without a word")

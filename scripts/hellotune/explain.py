# SPDX-License-Identifier: MIT
"""explain: what a sysctl line does for a server, from the files' fields and from live values.

It takes a key, or a whole line as lists on the net have them ("net.core.somaxconn=1024").
"""

import difflib
import re

from hellotune import profiles
from hellotune.kernel_keys import satisfied
from hellotune.sysctl_files import canonical_key, normalise
from hellotune.watch import Snapshot

ORDER = ("verdict", "why", "what", "effect", "side", "scope", "default", "published", "unit",
         "since", "check", "counter", "risk", "lab", "doc")
WIDTH = 96


class NotExplained(Exception):
    pass


def everything():
    """Profile name and setting, of all files."""
    return [(name, setting) for name in profiles.known() for setting in profiles.load(name)]


def explain(text, tree):
    """Lines about one key."""
    name, _, value = text.partition("=")
    entries = everything()
    key = whole_key(name.strip(), [setting.key for _, setting in entries])
    matching = [entry for entry in entries if entry[1].key == key]
    if not matching:
        keys = [setting.key for _, setting in entries]
        near = difflib.get_close_matches(key, keys, n=3)
        by_end = [other for other in keys if other.rpartition(".")[2] == key.rpartition(".")[2]]
        hint = " ".join(dict.fromkeys(by_end + near)) or "scripts/tune explain --all"
        raise NotExplained(f"{key}: not in our files; similar: {hint}. It is now:"
                           f" {tree.read(key) or 'not there'}")
    return describe(key, matching, normalise(value), tree)


def whole_key(name, keys):
    """Of a key we know the last part is enough: somaxconn."""
    ends = {key for key in keys if key.rpartition(".")[2] == name}
    try:
        return ends.pop() if len(ends) == 1 else canonical_key(name)
    except ValueError as error:
        raise NotExplained(f"{name!r}: {error}") from error


def explain_all(tree):
    entries = everything()
    lines = []
    for key in dict.fromkeys(setting.key for _, setting in entries):
        lines += describe(key, [entry for entry in entries if entry[1].key == key], "", tree) + [""]
    return lines


def describe(key, entries, yours, tree):
    now = tree.read(key)
    lines = [key, field("now", "can't be read here" if now is None else now or "(empty)")]
    for name, setting in entries:
        if not setting.explain_only:
            lines.append(field(name, wanted(setting, now)))
    if yours:
        lines.append(field("your line", judge(entries, yours)))
    merged = {}
    for _, setting in entries:
        for label, text in setting.fields.items():
            merged.setdefault(label, []).append(text)
    for label in ORDER:
        for text in dict.fromkeys(merged.get(label, [])):
            lines.append(field(label, text))
            if label == "counter":
                lines += live_counters(text)
    return [line for entry in lines for line in wrapped(entry)]


def wanted(setting, now):
    at_least = {"min": "at least ", "merge": "with "}.get(setting.compare, "")
    state = "holds" if satisfied(setting, now) else "does not hold"
    return f"{'checks' if setting.verify_only else 'sets'} {at_least}{setting.value}: {state}"


def judge(entries, yours):
    """What is different about the line somebody asks about."""
    ours = [(n, s) for n, s in entries if not s.explain_only and n != "published"]
    if not ours:
        return f"{yours}: we leave this key alone; why, stands below"
    name, setting = ours[0]
    if satisfied(setting, yours):
        return f"{yours}: does what {name} asks for"
    return f"{yours}: {name} has {setting.value}; why, stands below"


def live_counters(text):
    values = Snapshot.take().values
    words = [word for word in re.findall(r"\w+", text) if word in values]
    return [field("", f"{word} = {values[word]} since the namespace began") for word in words]


def field(label, text):
    return f"  {label:<10} {text}"


def wrapped(line):
    """The line, broken at blanks, its continuation below its text."""
    out = []
    while len(line) > WIDTH and " " in line[13:WIDTH]:
        cut = line.rindex(" ", 13, WIDTH)
        out.append(line[:cut])
        line = " " * 13 + line[cut + 1:]
    return [*out, line]

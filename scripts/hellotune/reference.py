# SPDX-License-Identifier: MIT
"""Makes sysctl/README.md from the fields of sysctl/*.conf and the prose of reference.md.

    PYTHONPATH=scripts /usr/bin/python3 -m hellotune.reference

Invariants: the same files give the same text on every machine; each key has one row and one
section, whichever files name it; nothing is said of a key that its fields don't say.
"""

import dataclasses
import pathlib

from hellotune import profiles

PROSE = pathlib.Path(__file__).with_name("reference.md")
COLUMNS = ("key", "default", "published", "ours", "side", "scope", "effect", "counter",
           "experiment", "docker", "kubernetes")
SECTIONS = (("What", "what"), ("Why", "why"), ("How to check", "check"), ("Risk", "risk"))
# pkg/kubelet/sysctl/safe_sysctls.go of Kubernetes, and the release since which.
SAFE_IN_KUBERNETES = {
    "net.ipv4.ip_local_port_range": "", "net.ipv4.tcp_syncookies": "",
    "net.ipv4.ip_unprivileged_port_start": " (1.22)", "net.ipv4.ip_local_reserved_ports": " (1.27)",
    "net.ipv4.tcp_fin_timeout": " (1.29)", "net.ipv4.tcp_rmem": " (1.32)",
    "net.ipv4.tcp_wmem": " (1.32)"}


@dataclasses.dataclass
class Entry:
    """All that the files say of one key; the file that describes it comes first."""

    key: str
    settings: list  # (profile, Setting)

    @property
    def fields(self):
        return next(s.fields for _, s in self.settings if "scope" in s.fields)

    @property
    def ours(self):
        for name, setting in self.settings:
            if name != "published":
                if setting.explain_only:
                    return "leave"
                least = "at least " if setting.compare == "min" else ""
                return f"{'check: ' if setting.verify_only else ''}{least}{setting.value}"
        return "leave"

    @property
    def published(self):
        values = [setting.value for name, setting in self.settings if name == "published"]
        return " and again ".join(values) or "-"

    @property
    def verdicts(self):
        return [s.fields["verdict"] for _, s in self.settings if "verdict" in s.fields]

    @property
    def labs(self):
        """The ids of the experiments, each once."""
        named = " ".join(setting.fields.get("lab", "") for _, setting in self.settings)
        return list(dict.fromkeys(named.split()))

    @property
    def docker(self):
        return "`--sysctl`" if self.fields["scope"] == "netns" else "host only"

    @property
    def kubernetes(self):
        if self.fields["scope"] != "netns":
            return "node only"
        since = SAFE_IN_KUBERNETES.get(self.key)
        return "unsafe" if since is None else f"safe{since}"


def entries():
    """One per key, in the order of the files."""
    found = {}
    for name in profiles.known():
        for setting in profiles.load(name):
            found.setdefault(setting.key, Entry(setting.key, [])).settings.append((name, setting))
    return list(found.values())


def text():
    prose = PROSE.read_text(encoding="utf-8")
    known = entries()
    return prose.replace("@TABLE@", table(known)).replace("@KEYS@", sections(known))


def table(known):
    rows = [COLUMNS, ["---"] * len(COLUMNS), *map(row, known)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def row(entry):
    fields = entry.fields
    return (f"[`{entry.key}`](#{anchor(entry.key)})", fields["default"], entry.published,
            entry.ours, fields["side"], fields["scope"], fields["effect"],
            words(fields["counter"]), ", ".join(f"`{name}`" for name in entry.labs) or "-",
            entry.docker, entry.kubernetes)


def words(counter):
    return "-" if counter == "none" else f"`{counter}`"


def anchor(key):
    """As GitHub makes it of a heading."""
    return key.replace(".", "").lower()


def sections(known):
    return "\n\n".join("\n\n".join(section(entry)) for entry in known)


def section(entry):
    fields = entry.fields
    yield f"### {entry.key}"
    for title, name in SECTIONS:
        yield f"**{title}.** {fields[name][0].upper()}{fields[name][1:]}"
    if entry.published != "-":
        yield f"**Published:** {entry.published}. Verdict: {'; and '.join(entry.verdicts)}."
    tried = f"Try it: `scripts/tune-lab run {' '.join(entry.labs)}`. " if entry.labs else ""
    since = f"Since Linux {fields['since']}. " if "since" in fields else ""
    yield f"{tried}{since}Sources: {fields['doc']}."


def readme():
    return profiles.folder() / "README.md"


if __name__ == "__main__":
    readme().write_text(text(), encoding="utf-8")

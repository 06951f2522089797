# SPDX-License-Identifier: MIT
"""Two results folders of one profile: what became better or worse from the first to the second.

Their blocks were not measured side by side, so they are not paired: each figure is compared over
all pairs of cells (Mann-Whitney). Only valid cells count, and of an entrant that lost its numbers
that is said.
"""

import dataclasses
import json
import pathlib

from hellobench import journal, plan, stats
from hellobench.errors import UsageError

HIGHER_IS_BETTER = ("rps",)
METRICS = HIGHER_IS_BETTER + (
    "cpu.server_us_per_req", "cpu.client_us_per_req", "cpu.system_us_per_req", "cpu.server_cores",
    "cpu.article_max_pct", "latency.mean", "latency.p50", "latency.p75", "latency.p90",
    "latency.p95", "latency.p99", "latency.p99_9", "latency.max", "memory.rss_idle",
    "memory.rss_peak", "memory.pss_idle", "memory.pss_peak", "memory.article_used", "start_ms")
DEFAULT_METRICS = ("rps", "cpu.server_us_per_req")
REGRESSION, LOST_NUMBERS = 3, 4  # exit statuses
WORDS = {"faster": "better", "slower": "WORSE", "equivalent": "the same",
         "inconclusive": "can't tell"}
CAUTION = """\
The two runs were not measured in turns: what changed on the machine between them looks like a
change of the program. Two runs of the same program, compared, show how much that is."""


@dataclasses.dataclass
class Run:
    """One results folder, read."""

    folder: pathlib.Path
    plan: plan.Plan
    cells: list
    damage: list[str]
    env: dict

    def values(self, entrant, step, metric):
        return [value for cell in self.cells
                if cell.valid and (cell.entrant, cell.step) == (entrant, step)
                and (value := figure(cell, metric)) is not None]

    def invalid(self, entrant, step):
        """{problem code: cells} of the cells without a number."""
        counts = {}
        for cell in self.cells:
            if not cell.valid and (cell.entrant, cell.step) == (entrant, step):
                code = next((each.code for each in cell.problems if each.fatal), "unknown")
                counts[code] = counts.get(code, 0) + 1
        return counts

    def installed(self):
        return [entry["id"] for entry in self.plan.entrants if entry["installed"]]


def figure(cell, metric):
    value = cell
    for name in metric.split("."):
        value = getattr(value, name)
    return value


def read(folder):
    folder = pathlib.Path(folder)
    made = plan.load(folder)
    kept = journal.Journal(folder / journal.FILE)
    cells = kept.cells()
    try:
        env = json.loads((folder / "env.json").read_text("utf-8"))
    except (OSError, ValueError):
        env = {}
    return Run(folder, made, cells, kept.problems, env if isinstance(env, dict) else {})


def compare(base_dir, new_dir, metrics=DEFAULT_METRICS, margin=stats.DEFAULT_MARGIN):
    """The comparison as a dictionary for JSON; "exit_status" is 3 for a regression.

    Raises UsageError if there is nothing to compare.
    """
    for metric in metrics:
        if metric not in METRICS:
            raise UsageError(f"no metric {metric!r}; there are: {', '.join(METRICS)}")
    base, new = read(base_dir), read(new_dir)
    ids = [run.plan.profile["id"] for run in (base, new)]
    if ids[0] != ids[1]:
        raise UsageError(f"{base_dir} is a run of {ids[0]}, {new_dir} one of {ids[1]}: only runs "
                         "of one profile compare")
    rows = [row(base, new, entrant, step, metric, margin)
            for step in steps_of_both(base, new)
            for entrant in base.installed() if entrant in new.installed()
            for metric in metrics if metric != "rps" or not step.get("offered_rps")]
    rows = [each for each in rows if each["base"]["n"] or each["new"]["n"]]
    if not rows:
        raise UsageError(f"{base_dir} and {new_dir} have no entrant and step in common with a "
                         f"valid cell that knows {', '.join(metrics)}")
    adjusted = stats.holm({index: each["p"] for index, each in enumerate(rows)})
    for index, each in enumerate(rows):
        each["p_holm"] = adjusted[index]
    return {"schema": 1, "profile": ids[0], "margin": margin, "method": "mann-whitney, unpaired",
            "base": about(base), "new": about(new), "differences": differences(base, new),
            "only_base": sorted(set(base.installed()) - set(new.installed())),
            "only_new": sorted(set(new.installed()) - set(base.installed())),
            "rows": rows, "exit_status": exit_status(rows)}


def steps_of_both(base, new):
    others = {step["id"] for step in new.plan.profile["steps"]}
    return [step for step in base.plan.profile["steps"] if step["id"] in others]


def row(base, new, entrant, step, metric, margin):
    before, after = (run.values(entrant, step["id"], metric) for run in (base, new))
    compared = stats.compare_unpaired(after, before, margin, metric not in HIGHER_IS_BETTER)
    return {"step": step["id"], "entrant": entrant, "metric": metric,
            "base": stats.summary(before), "new": stats.summary(after),
            "ratio": compared.ratio, "low": compared.low, "high": compared.high,
            "coverage": compared.coverage, "p": compared.p, "decision": compared.decision,
            "lost": bool(before) and not after,
            "invalid": {"base": base.invalid(entrant, step["id"]),
                        "new": new.invalid(entrant, step["id"])},
            "client_bound": metric == "rps" and any(
                cell.valid and cell.verdict == "CLIENT_BOUND" for run in (base, new)
                for cell in run.cells if (cell.entrant, cell.step) == (entrant, step["id"]))}


def about(run):
    return {"folder": run.folder.name, "created": run.plan.created, "git": run.plan.git,
            "binary_sha256": run.plan.binary_sha256, "blocks": run.plan.blocks,
            "damaged_lines": run.damage}


def differences(base, new):
    """What else is not the same in both runs, as sentences."""
    pairs = [(name, getattr(base.plan, name), getattr(new.plan, name))
             for name in ("quick", "blocks", "topology", "server_cpus", "client_cpus")]
    pairs += [(name, base.env.get(name), new.env.get(name))
              for name in ("kernel", "cpu", "ncpu", "virtualisation", "governor", "sysctl",
                           "versions")]
    before, after = ({step["id"]: step.get("argv") for step in run.plan.profile["steps"]}
                     for run in (base, new))
    pairs += [(f"step {step}", before.get(step), after.get(step)) for step in before | after]
    found = []
    for name, then, now in pairs:
        if isinstance(then, dict) and isinstance(now, dict):
            found += [f"{name}: {key} was {then.get(key)}, is {now.get(key)}"
                      for key in then | now if then.get(key) != now.get(key)]
        elif then != now:
            found.append(f"{name} was {then}, is {now}")
    return found


def exit_status(rows):
    if any(each["decision"] == "slower" for each in rows):
        return REGRESSION
    return LOST_NUMBERS if any(each["lost"] for each in rows) else 0


def text(found):
    """The comparison for people, a line per row."""
    lines = [f"{found['profile']}: {found['base']['folder']} -> {found['new']['folder']}, margin "
             f"{found['margin'] * 100:g} %", ""]
    table = [("step", "entrant", "metric", "before", "after", "change", "interval", "p (Holm)",
              "verdict")]
    table += [line_of(each) for each in found["rows"]]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    lines += ["  ".join(word.rjust(width) if 3 <= column <= 7 else word.ljust(width)
                        for column, (word, width) in enumerate(zip(line, widths))).rstrip()
              for line in table]
    lines += [""] + [f"Only in one of them: {name}"
                     for name in found["only_base"] + found["only_new"]]
    lines += [f"Differs: {sentence}" for sentence in found["differences"]]
    lines += [f"Damage in {found[side]['folder']}: {sentence}" for side in ("base", "new")
              for sentence in found[side]["damaged_lines"]]
    return "\n".join(lines + [CAUTION])


def line_of(each):
    change = interval = p = "-"
    if each["ratio"] is not None:
        change = f"{(each['ratio'] - 1) * 100:+.1f} %"
    if each["low"] is not None:
        interval = (f"{(each['low'] - 1) * 100:+.1f} .. {(each['high'] - 1) * 100:+.1f} % "
                    f"({each['coverage'] * 100:.0f} %)")
    if each["p_holm"] is not None:
        p = f"{each['p_holm']:.2g}"
    return (each["step"], each["entrant"], each["metric"], *(
        f"{number(each[side]['median'])} (n={each[side]['n']})" for side in ("base", "new")),
        change, interval, p, verdict_of(each))


def verdict_of(each):
    if each["lost"]:
        codes = ", ".join(each["invalid"]["new"]) or "not measured"
        return f"NO NUMBER any more: {codes}"
    words = [WORDS[each["decision"]]]
    if each["decision"] == "inconclusive" and each["low"] is None:
        words.append("too few cells")
    if each["client_bound"]:
        words.append("the client was the limit")
    invalid = [f"{side}: {sum(counts.values())} without number"
               for side, counts in each["invalid"].items() if counts]
    return "; ".join(words + invalid)


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def main(base_dir, new_dir, metrics, margin, as_json):
    """Prints the comparison; returns the exit status."""
    found = compare(base_dir, new_dir, metrics, margin)
    print(json.dumps(found, indent=1) if as_json else text(found))
    return found["exit_status"]

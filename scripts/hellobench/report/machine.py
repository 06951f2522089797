# SPDX-License-Identifier: MIT
"""What surrounds the figures: the machine, the servers' traits, how to do it again, and doubts."""

import re
import statistics

from hellobench import stats
from hellobench.report import text
from hellobench.report.document import Column, Commands, Fig, Paragraph, Points, Row, Table
from hellobench.report.ours import ENTRANT
from hellobench.report.results import primary

LABELS = {
    "cpu": "processor", "ncpu": "processors", "usable_cpus": "of them usable here",
    "memory_kb": "memory, kB", "governor": "frequency governor", "smt": "two threads per core",
    "cgroup_method": "CPU time is counted by", "before": "before the run:",
    "sysctl": "kernel setting", "limits": "limit", "versions": "version of",
}
TRAITS = {
    "keepalive_11": "keeps connections", "honours_close": "obeys Connection: close",
    "http10_closes": "closes after HTTP/1.0", "http10_keepalive": "keeps HTTP/1.0 if asked",
    "head_without_body": "HEAD has no body", "any_path": "answers any path",
    "pipelined": "answers pipelined requests", "split_requests": "takes requests in pieces",
    "header_8k": "takes a field of 8 KB", "date": "Date moves on", "ipv4": "IPv4", "ipv6": "IPv6",
    "framing": "body ends by", "content_type": "content type", "server": "calls itself",
}


def reproduce(results):
    plan = results.plan
    words = ["scripts/bench", "run", results.profile["id"]]
    words += ["--quick"] if plan["quick"] else []
    words += ["--blocks", str(plan["blocks"]), "--seed", str(plan["seed"]),
              "--topology", plan["topology"], "--baseline", plan["baseline"],
              *(["--sysctl", plan["sysctl"]["list"]] if plan.get("sysctl") else []),
              "--entrants", ",".join(entry["id"] for entry in results.entrants)]
    commit = plan["git"].get("commit")
    state = "with changes that were not committed" if plan["git"].get("dirty") else "unchanged"
    made = f"of commit {text.code(commit[:12])}, {state}" if commit else "without a git commit"
    binary = plan.get("binary_sha256")
    said = [Paragraph(f"Made by {text.bare(plan['tool'])} {made}"
                      + (f"; SHA-256 of the baseline's program {text.code(binary[:16])}..."
                         if binary else "") + ". To measure the same again, in the same order:"),
            Commands([" ".join(words)]),
            Paragraph("To write this report anew from the stored runs, without measuring:"),
            Commands(["scripts/bench report FOLDER"])]
    added = sorted({re.sub(r"\{\w+\}/", "", " ".join(step["added"]))
                    for step in results.steps if step.get("added")})
    if added:
        said.append(Paragraph("Added to the commands to get more output, without a change in what "
                              f"is sent: {text.and_list(text.code(words) for words in added)}."))
    return said


def environment_table(results):
    rows = [Row([Fig(label), Fig(value)]) for label, value in flat(results.env)]
    return Table("environment", [Column("what", left=True), Column("value", left=True)], rows,
                 sortable=False)


def flat(data, path=""):
    """[(label, text)] of nested JSON."""
    out = []
    for key, value in data.items():
        label = f"{path} {key}" if path else LABELS.get(key, key.replace("_", " "))
        if isinstance(value, dict):
            out += flat(value, label)
        elif isinstance(value, list):
            out.append((label, ", ".join(map(str, value))))
        else:
            out.append((label, yes_no(value)))
    return out


def server_table(results):
    """Who the servers are: versions, how they use processors, the size of their answers."""
    columns = [ENTRANT, Column("kind", left=True), Column("version", left=True),
               Column("workers", left=True), Column("access log", left=True),
               Column("bytes of an answer, kept connection"), Column("of one to HTTP/1.0")]
    rows = []
    for entry in results.entrants:
        found = results.verify.get(entry["id"]) or {}
        figs = [title_fig(entry)]
        figs += [Fig(str(entry.get(name) or text.DASH)) for name in ("kind", "version", "workers")]
        figs += [Fig("yes" if entry.get("access_log") else "no")]
        figs += [Fig(text.integer(found.get(name)), sort=found.get(name))
                 for name in ("response_bytes_keepalive", "response_bytes_close")]
        rows.append(Row(figs))
    return Table("versions", columns, rows)


def trait_table(results):
    """What verification saw of those that it reached."""
    traits = [(entry, found["traits"]) for entry in results.entrants
              if (found := results.verify.get(entry["id"])) and found.get("traits")]
    known = [name for name in TRAITS if any(name in seen for _, seen in traits)]
    columns = [ENTRANT, *(Column(TRAITS[name], left=True) for name in known)]
    rows = [Row([title_fig(entry), *(Fig(yes_no(seen.get(name)), sort=yes_no(seen.get(name)))
                                     for name in known)]) for entry, seen in traits]
    return Table("traits", columns, rows)


def title_fig(entry):
    return Fig(entry["title"], sort=entry["title"].lower(), look="strong")


def yes_no(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return text.DASH if value is None else str(value)


def doubts(results):
    """Brendan Gregg's questions to a benchmark, answered from the data of this one."""
    return Points([f"Why not double? {limits(results)}", f"Did it break a limit? {kernel(results)}",
                   f"Did it error? {errors(results)}",
                   f"Does it reproduce? {repeats(results)}",
                   "Does it matter? A hello-world response measures what a server and its runtime "
                   "add to each request. A real service adds its own work to that; the difference "
                   "between two fast servers will mostly drown in it.",
                   f"Did it even happen? {happened(results)}"])


def limits(results):
    counts = {}
    for cell in results.cells:
        if cell.valid and cell.verdict:
            counts[cell.verdict] = counts.get(cell.verdict, 0) + 1
    if not counts:
        return "No run says what its limit was."
    what = {"SERVER_BOUND": "the server used all the processor time it had",
            "CLIENT_BOUND": "the load generator was the limit, so the figure is a lower bound",
            "MACHINE_BOUND": "client and server together used the whole machine",
            "UNSATURATED": "nothing was used up: waiting was the limit",
            "RATE_LIMITED": "no more was asked for", "ERRORS": "there were errors"}
    words = [f"in {text.plural(count, 'run')} {what.get(verdict, verdict)}"
             for verdict, count in sorted(counts.items(), key=lambda item: -item[1])]
    return text.and_list(words).capitalize() + "."


def kernel(results):
    fields = {"listen_overflows": "connections that found the accept queue full",
              "retransmits": "segments sent again", "time_wait_overflows": "TIME_WAIT overflows"}
    totals = {name: sum(getattr(cell.network, name) or 0 for cell in results.cells)
              for name in fields}
    met = [f"{totals[name]:,} {label}" for name, label in fields.items() if totals[name]]
    return (f"The kernel counted {text.and_list(met)} over all runs." if met else
            "No full accept queue, no segment sent again, no TIME_WAIT overflow was counted.")


def errors(results):
    bad = [cell for cell in results.cells if not cell.valid]
    counts = {}
    for cell in bad:
        for problem in cell.problems:
            if problem.fatal:
                counts[problem.code] = counts.get(problem.code, 0) + 1
    if not bad:
        return f"None of the {len(results.cells):,} runs had an error."
    return (f"{text.plural(len(bad), 'run')} of {len(results.cells):,} had, and has no figure: "
            + text.and_list(f"{code} ({count})" for code, count in counts.items()) + ".")


def repeats(results):
    """How far an entrant's runs are apart, in words of the typical one and the worst."""
    spreads = []
    for step in results.steps:
        for line in results.lines(step):
            summary = line.summary(primary(step))
            if summary and summary["n"] > 1:
                share = 100 * (summary["max"] - summary["min"]) / summary["median"]
                spreads.append((share, text.bare(line.entrant["title"])))
    if not spreads:
        return "One run each: this can't be told."
    middle = statistics.median(share for share, _ in spreads)
    worst = max(spreads)
    return (f"From the lowest to the highest run of a server it is {text.number(middle)} % of its "
            f"median in the middle case, {text.number(worst[0])} % in the worst ({worst[1]}).")


def happened(results):
    counted = [cell.requests.ok for cell in results.cells if cell.valid and cell.requests.ok]
    noise = [cell.noise.steal_pct for cell in results.cells if cell.noise.steal_pct is not None]
    stolen = (f" The hypervisor took at most {text.number(max(noise))} % of a run's processor time "
              "away." if noise else "")
    return (f"{sum(counted):,} answers had the status 200 and the right size; before its runs each "
            f"server was asked and its answer compared byte by byte.{stolen}")


def margins(results):
    """From which difference on one counts, and why."""
    floors = {step["id"]: floor for step in results.steps
              if (floor := results.noise[step["id"], primary(step)]) is not None}
    least = f"A difference under {text.number(100 * stats.DEFAULT_MARGIN)} % counts as none"
    if not floors:
        return f"{least}; the same server was not measured twice, so the noise is not known."
    found = ", ".join(f"{text.number(100 * floor)} %" + f" ({name})" * (len(floors) > 1)
                      for name, floor in floors.items())
    return (f"{least}, and so does one under what the baseline differs from itself by, measured "
            f"as two entrants: {found}.")


def footnotes(results):
    notes = [
        "Latency of a closed loop: each connection waits for its answer before it asks again, so a "
        "stalled server is asked less just while it stalls, and high percentiles look better than "
        "users would find them. Figures at a fixed rate don't have that fault.",
        f"{text.AT_LEAST.strip()} before a figure: the load generator was the limit, so the server "
        f"is capable of at least that. A ratio with {text.AT_LEAST.strip()} or "
        f"{text.AT_MOST.strip()} comes from such a figure.",
        "Ratios are taken within each block of runs, close in time; their median is shown, with an "
        "interval from order statistics that needs no assumption about the spread (at least 5 "
        f"blocks). {margins(results)}",
        "CPU time: of all processes of the server, ended ones included. On loopback the kernel "
        "charges a part of receiving to the sender, so where client and server share processors "
        "the machine's CPU time per request is the fair figure.",
        "PSS divides a page that several processes share among them; RSS counts it in each. "
        "1 MB is 1,048,576 bytes.",
        "Without keep-alive each connection stays in TIME_WAIT for 60 s on the side that closed "
        "first; before a run sockets of earlier ones had time to settle.",
        "A run shorter than 2 s (TOO_SHORT) says little: read it by its median over many runs.",
    ]
    return Points(notes)

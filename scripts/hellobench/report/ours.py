# SPDX-License-Identifier: MIT
"""Our own tables, the same for every profile: rate, cost, answers, problems, and every run."""

import urllib.parse

from hellobench.report import text
from hellobench.report.document import Column, Fig, Folded, Row, Table
from hellobench.report.results import METRICS, codes, meaning, primary

ENTRANT = Column("server", left=True)
DECISIONS = {  # of stats.compare, as said of a rate and of a cost
    "faster": ("faster", "cheaper"),
    "slower": ("slower", "dearer"),
    "equivalent": ("the same", "the same"),
    "inconclusive": ("can't be told", "can't be told"),
}
TOO_FEW = "too few runs to tell"


def raw_link(cell):
    """The load generator's own output, which has the figure in it; None without a file."""
    files = [name for name in cell.raw if not name.startswith("/") and ".." not in name.split("/")]
    outputs = [name for name in files if name.endswith((".out", "stdout", ".txt"))]
    chosen = (outputs or files or [None])[0]
    return urllib.parse.quote(chosen) if chosen else None


def name_fig(line):
    variant = line.entrant.get("variant")
    label = line.entrant["title"] + (" (as published)" if variant == "as-published" else "")
    return Fig(label, sort=label.lower(), look="strong" if line.valid else "dim",
               title=f"{line.id} {line.entrant.get('version') or ''}".strip())


def figure(line, metric, at_least=False, largest=None):
    """Median [min - max], which links to the run with the median; a bar if `largest` is given."""
    summary = line.summary(metric)
    if summary is None:
        return Fig(text.DASH, look="dim")
    shown = text.spread(METRICS[metric].show, summary)
    return Fig((text.AT_LEAST if at_least else "") + shown, sort=summary["median"],
               href=raw_link(line.typical(metric)),
               share=summary["median"] / largest if largest else None)


def median(line, metric):
    value = line.median(metric)
    if value is None:
        return Fig(text.DASH, look="dim")
    return Fig(METRICS[metric].show(value), sort=value, href=raw_link(line.typical(metric)))


def note_row(figs, line):
    return Row(figs, note=text.bare(line.why), look="failed")


def look_of(results, line):
    return "baseline" if line.id == results.baseline else ""


def rate_table(results, step):
    """The ranking: the step's main figure, the ratio to the baseline, the verdict."""
    metric = primary(step)
    base = text.bare(results.title(results.baseline))
    columns = [Column("place", "entrants that can't be told apart share a place"), ENTRANT,
               Column("language", left=True),
               Column(f"{METRICS[metric].title}: median [min{text.DASH}max]"),
               Column(f"{text.TIMES} {base} [interval]"), Column("that is", left=True),
               Column("verdict", left=True), Column("good runs"), Column("marks", left=True)]
    ranked = results.ranked(step)
    largest = max((line.median(metric) or 0 for _, line in ranked), default=0)
    rows = []
    for rank, line in ranked:
        figs = [Fig(str(rank) if rank else text.DASH, sort=rank), name_fig(line),
                Fig(line.entrant["language"], sort=line.entrant["language"].lower())]
        if not line.valid:
            rows.append(note_row(figs, line))
            continue
        bound = metric == "rps" and line.client_bound
        figs += [figure(line, metric, bound, largest), *ratio_figs(results, line, metric),
                 Fig(line.verdict, sort=line.verdict),
                 Fig(f"{len(line.valid)} of {line.planned}", sort=len(line.valid),
                     look="bad" if len(line.valid) < line.planned else ""),
                 Fig(", ".join(codes(line.cells)), look="bad" if line.invalid else "dim")]
        rows.append(Row(figs, look=look_of(results, line)))
    return Table(f"rate-{step['id']}", columns, rows)


def ratio_figs(results, line, metric):
    """The ratio to the baseline and the word for it. A bound rate makes a bound ratio."""
    if line.id == results.baseline:
        return [Fig("baseline", sort=1.0, look="dim"), Fig("", look="dim")]
    found = results.compare(line, metric)
    if found is None or found.ratio is None:
        return [Fig(text.DASH, look="dim"), Fig("", look="dim")]
    ours = metric == "rps" and line.client_bound
    theirs = metric == "rps" and results.baseline_line(line.step).client_bound
    if ours and theirs:
        return [Fig(text.DASH, look="dim"), Fig("can't be told: the client was the limit of both")]
    sign = text.AT_LEAST if ours else text.AT_MOST if theirs else ""
    shown = f"{sign}{text.number(found.ratio)}{text.TIMES}"
    if found.low is not None:
        shown += f" [{text.number(found.low)}{text.DASH}{text.number(found.high)}]"
    return [Fig(shown, sort=found.ratio, title=coverage(found)),
            Fig(decision(found, metric, ours, theirs), sort=found.decision)]


def coverage(found):
    if found.low is None:
        return f"{text.plural(found.n, 'block')}: too few for an interval"
    return f"{100 * found.coverage:.1f} % interval of {text.plural(found.n, 'block')}"


def decision(found, metric, ours_bound, theirs_bound):
    """A lower bound can only show "faster", an upper one only "slower"."""
    if found.low is None:
        return TOO_FEW
    if (ours_bound and found.decision != "faster") or (theirs_bound and found.decision != "slower"):
        return DECISIONS["inconclusive"][0]
    return DECISIONS[found.decision][metric.endswith("_per_req")]


def cost_table(results, step):
    columns = [ENTRANT, Column("server CPU per request"), Column("client CPU per request"),
               Column("machine CPU per request", "all that the machine did, both sides included"),
               Column("processors used"), Column("of allotted"),
               Column("req/s per processor used"), Column("memory, PSS"), Column("memory, RSS")]
    rows = []
    for _, line in results.ranked(step):
        if not line.valid:
            continue
        allotted = len(line.valid[0].server_cpus) or results.env.get("ncpu")
        figs = [name_fig(line)]
        figs += [median(line, metric) for metric in (
            "server_us_per_req", "client_us_per_req", "system_us_per_req", "server_cores")]
        figs += [Fig(text.integer(allotted), sort=allotted)]
        figs += [median(line, metric) for metric in ("rps_per_core", "pss_peak", "rss_peak")]
        rows.append(Row(figs, look=look_of(results, line)))
    return Table(f"cost-{step['id']}", columns, rows)


def answer_table(results, step):
    loop = "fixed rate" if step.get("offered_rps") else "closed loop"
    columns = [ENTRANT, Column(f"p50 ({loop})", "half of the requests took at most this"),
               Column(f"p99 ({loop})", "99 of 100 requests took at most this"),
               Column("bytes per response", "head and body"),
               Column("connections per request", "1: a new one for each; 0: all were kept open"),
               Column("a run lasted")]
    rows = []
    for _, line in results.ranked(step):
        if not line.valid:
            continue
        length = line.median("duration_s")
        figs = [name_fig(line)]
        figs += [figure(line, metric) for metric in ("p50_us", "p99_us")]
        figs += [median(line, metric) for metric in ("bytes_per_response",
                                                     "connections_per_request")]
        figs += [Fig(text.duration(None if length is None else length * 1e6), sort=length)]
        rows.append(Row(figs, look=look_of(results, line)))
    return Table(f"answers-{step['id']}", columns, rows)


def problem_table(results):
    """Each problem once, with how often it was met and what was seen first.

    What took a figure away is said of each server alone, a mark of all that have it together.
    """
    columns = [ENTRANT, Column("step", left=True), Column("runs"), Column("problem", left=True),
               Column("what it means", left=True), Column("what was seen first", left=True)]
    rows = []
    for step in results.steps:
        lines = results.lines(step)
        rows += [problem_row([line], step, code) for line in lines
                 for code in codes(line.cells, fatal=True)]
        marks = codes([cell for line in lines for cell in line.cells], fatal=False)
        rows += [problem_row([line for line in lines if code in codes(line.cells)], step, code)
                 for code in marks]
    return Table("problems", columns, rows)


def problem_row(lines, step, code):
    cells = [cell for line in lines for cell in line.cells if code in codes([cell])]
    seen = next(problem for problem in cells[0].problems if problem.code == code)
    name = lines[0].entrant["title"] if len(lines) == 1 else f"{len(lines)} servers"
    planned = sum(line.planned for line in lines)
    means = meaning(code) + (": no figure" if seen.fatal else ": a mark only")
    return Row([Fig(name, sort=name.lower()), Fig(step["id"], sort=step["id"]),
                Fig(f"{len(cells)} of {planned}", sort=len(cells), href=raw_link(cells[0])),
                Fig(code, sort=code, look="bad" if seen.fatal else "dim"), Fig(means),
                Fig(seen.text)])


def absent_table(results):
    """Who isn't installed, why, and the command that would change that."""
    columns = [ENTRANT, Column("language", left=True), Column("why there is no figure", left=True),
               Column("what to do about it", left=True)]
    rows = [Row([Fig(entry["title"], sort=entry["title"].lower()), Fig(entry["language"]),
                 Fig(entry.get("reason") or "the reason is not known"),
                 Fig(text.code(entry["cure"]) if entry.get("cure") else text.DASH, look="code")])
            for entry in results.entrants if not entry["installed"]]
    return Table("absent", columns, rows)


def runs_table(results, step):
    """Every run, good or bad, each figure with its raw file."""
    columns = [ENTRANT, Column("block"), Column("req/s, ours"), Column("req/s, the tool's"),
               Column("good answers"), Column("length"), Column("p50"), Column("p99"),
               Column("server CPU/req"), Column("verdict", left=True),
               Column("problems", left=True)]
    rows = [run_row(line, cell) for line in results.lines(step) for cell in line.cells]
    return Folded(f"Every run of {step['id']} ({len(rows)})",
                  Table(f"runs-{step['id']}", columns, rows))


def run_row(line, cell):
    link = raw_link(cell)
    found = ", ".join(codes([cell]))
    bound = text.AT_LEAST if cell.verdict == "CLIENT_BOUND" else ""
    figs = [Fig(line.entrant["title"], sort=line.entrant["title"].lower()),
            Fig(str(cell.block + 1), sort=cell.block)]
    if cell.valid:
        figs += [Fig(bound + text.number(cell.rps) if cell.rps is not None else text.DASH,
                     sort=cell.rps, href=link),
                 Fig(text.number(cell.tool_rps), sort=cell.tool_rps, href=link)]
    else:
        word = codes([cell], fatal=True)
        figs += [Fig(word[0] if word else "INVALID", href=link, look="bad"),
                 Fig(text.DASH, look="dim")]
    length = cell.duration_s
    figs += [Fig(text.integer(cell.requests.ok), sort=cell.requests.ok, href=link),
             Fig(text.duration(None if length is None else length * 1e6), sort=length)]
    shown = (cell.latency.p50, cell.latency.p99, cell.cpu.server_us_per_req)
    figs += [Fig(text.duration(value if cell.valid else None), sort=value) for value in shown]
    figs += [Fig(cell.verdict or text.DASH, sort=cell.verdict),
             Fig(found, sort=found or None, look="bad" if not cell.valid else "dim")]
    return Row(figs, look="" if cell.valid else "failed")

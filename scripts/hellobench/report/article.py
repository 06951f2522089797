# SPDX-License-Identifier: MIT
"""An article's table in its own shape, with what it reported and what was measured here.

Shapes: "runs" (a column for each repeat, and errors), "resources" (rate, most CPU, memory),
"ladder" (rate and time per request on each rung) and "rps" (one rate).
"""

from hellobench.report import text
from hellobench.report.document import Column, Fig, Paragraph, Row, Table
from hellobench.report.ours import ENTRANT, figure, median, name_fig, note_row, raw_link
from hellobench.report.results import METRICS, codes, primary

ARTICLE, HERE = "article", "here"


def blocks(results):
    """Paragraphs and tables on the article; none for a profile of ours."""
    published = results.profile.get("published")
    if not published:
        return []
    shapes = {"runs": runs, "resources": resources, "ladder": ladder, "rps": rates}
    said = [Paragraph(f"{text.bare(published['source'])}. Its figures are marked "
                      f"\"{ARTICLE}\", those of this run \"{HERE}\"; servers that the article "
                      "didn't have follow below its own.")]
    tables = shapes[published["shape"]](results, published["rows"])
    return said + tables + [Paragraph(differences(results, published))] + orders(results, published)


def lines_of(results, rows, step):
    """[(published row or None, Line)]: the article's entrants in its order, then the others."""
    lines = {line.id: line for _, line in results.ranked(step)}
    paired = [(row, lines.pop(row["entrant"], None)) for row in rows]
    return paired + [(None, line) for line in lines.values()]


def label_fig(row, line):
    return Fig(row["label"], sort=row["label"].lower(), look="strong") if row else name_fig(line)


def absent(line):
    return "not part of this run" if line is None else text.bare(line.why)


def runs(results, rows):
    """A row of the article's repeats above a row of ours."""
    step = results.steps[0]
    count = max([results.plan["blocks"], *(len(row["rps"]) for row in rows)])
    columns = [ENTRANT, Column("", left=True), *[Column("req/s")] * count,
               Column("errors", left=True)]
    out = []
    for row, line in lines_of(results, rows, step):
        if row:
            figs = [Fig(text.number(value)) for value in row["rps"]]
            figs += [Fig("")] * (count - len(figs))
            out.append(Row([label_fig(row, line), Fig(ARTICLE, look="article"), *figs,
                            Fig(row.get("errors", ""))], look="article"))
        first = [Fig("") if row else label_fig(row, line), Fig(HERE)]
        if line is None or not line.cells:
            out.append(Row(first, note=absent(line), look="failed"))
            continue
        by_block = {cell.block: run_fig(cell) for cell in line.cells}
        figs = [by_block.get(block, Fig("")) for block in range(count)]
        out.append(Row([*first, *figs, Fig(errors_of(line))]))
    return [Table("article", columns, out, sortable=False)]


def run_fig(cell):
    """One run: its rate, or the name of what was wrong with it."""
    if cell.valid and cell.rps is not None:
        sign = text.AT_LEAST if cell.verdict == "CLIENT_BOUND" else ""
        return Fig(sign + text.number(cell.rps), href=raw_link(cell))
    found = codes([cell], fatal=True)
    return Fig(found[0] if found else text.DASH, href=raw_link(cell), look="bad")


def errors_of(line):
    """The errors that the client met in all runs, by kind; and other reasons for no figure."""
    counts = {}
    for cell in line.cells:
        for kind, count in cell.requests.errors.items():
            counts[kind] = counts.get(kind, 0) + count
    words = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    return ", ".join(words) or ", ".join(codes(line.cells, fatal=True)) or "none"


def resources(results, rows):
    step = results.steps[0]
    names = (("req/s", "rps"), ("max CPU", "article_max_pct"), ("memory", "article_used"))
    columns = [ENTRANT] + [Column(f"{name}, {who}") for name, _ in names for who in (ARTICLE, HERE)]
    out = []
    for row, line in lines_of(results, rows, step):
        said = (text.number(row["rps"][0]), text.percent(row["max_cpu_pct"]),
                f"{row['memory_mb']} MB") if row else ("",) * 3
        figs = [label_fig(row, line)]
        if not row and not line.valid:
            out.append(note_row(figs, line))
            continue
        for shown, (_, metric) in zip(said, names):
            figs += [Fig(shown, look="article"), here(line, metric)]
        out.append(Row(figs))
    return [Table("article", columns, out, sortable=False)]


def here(line, metric):
    """Our median; where there is none, in a few words why."""
    if line is None:
        return Fig("not in this run", look="dim")
    if not line.valid:
        found = codes(line.cells, fatal=True)
        return Fig(found[0] if found else line.state, look="bad", title=line.why)
    fig = median(line, metric)
    if metric == "rps" and line.client_bound:
        return Fig(text.AT_LEAST + fig.text, sort=fig.sort, href=fig.href)
    return fig


def rates(results, rows):
    """One rate each, and how it relates to the article's best."""
    step = results.steps[0]
    # The first is the article's best of those that have a figure here.
    known = [(row, line.median("rps")) for row, line in lines_of(results, rows, step)
             if row and line and line.median("rps")]
    top, ours = max(known or [(row, None) for row in rows], key=lambda pair: pair[0]["rps"][0])
    columns = [ENTRANT, *(Column(f"{what}, {who}") for what in ("req/s", f"of {top['label']}")
                          for who in (ARTICLE, HERE))]
    out = []
    for row, line in lines_of(results, rows, step):
        value = line.median("rps") if line else None
        figs = [label_fig(row, line)]
        if not row and not line.valid:
            out.append(note_row(figs, line))
            continue
        share = 100 * row["rps"][0] / top["rps"][0] if row else None
        figs += [Fig(text.number(row["rps"][0]) if row else "", look="article"),
                 here(line, "rps") if value is None else
                 figure(line, "rps", line.client_bound),
                 Fig(text.percent(share) if row else "", look="article"),
                 Fig(text.percent(100 * value / ours) if value and ours else text.DASH)]
        out.append(Row(figs))
    return [Table("article", columns, out, sortable=False)]


def ladder(results, rows):
    """The article's table (a row per command, a column per server), then all servers' rungs."""
    columns = [Column("command", left=True)]
    for row in rows:
        columns += [Column(f"{row['label']}, {who}") for who in (ARTICLE, HERE)]
    out = []
    for step in results.steps:
        figs = [Fig(rung_command(step), look="strong")]
        for row, line in lines_of(results, rows, step)[:len(rows)]:
            said = row["ladder"].get(step["id"])
            figs += [Fig(rung(*said) if said else text.DASH, look="article"), rung_fig(line)]
        out.append(Row(figs))
    article_table = Table("article", columns, out, sortable=False)
    columns = [ENTRANT, *(Column(rung_command(step)) for step in results.steps)]
    out = []
    for entry in results.entrants:
        lines = [results.line(entry, step) for step in results.steps]
        figs = [name_fig(lines[0])]
        if any(line.valid for line in lines):
            out.append(Row(figs + [rung_fig(line) for line in lines]))
        else:
            out.append(note_row(figs, lines[0]))
    return [article_table, Table("ladder", columns, out, "All servers on the same rungs")]


def rung_command(step):
    return " ".join(word for word in step["argv"] if "{" not in word)


def rung(rate, milliseconds):
    return f"{text.number(rate)} r/s, {text.number(milliseconds)} ms/r"


def rung_fig(line):
    if line is None or not line.valid or line.median("rps") is None:
        return here(line, "rps")
    rate = line.median("rps")
    concurrency = line.step["concurrency"] or 1
    sign = text.AT_LEAST if line.client_bound else ""
    return Fig(sign + rung(rate, 1000 * concurrency / rate), sort=rate,
               href=raw_link(line.typical("rps")))


def differences(results, published):
    """What must be known before the two are compared."""
    env = results.env
    machine = f"{env.get('cpu') or 'a machine'} with {text.plural(env['ncpu'], 'processor')}" \
        if env.get("ncpu") else "another machine"
    where = ("on processors of their own" if results.plan["topology"] == "pinned"
             else "on the same processors")
    size = " This run has the quick size: fewer requests than the article's." \
        if results.plan["quick"] else ""
    return (f"What differs. The article: {text.bare(published['note'])} Here: "
            f"{text.bare(machine)}, Linux {text.bare(env.get('kernel', text.DASH))}, server and "
            f"client on one machine, {where}, today's versions.{size} So compare the order and "
            "the ratios, not the figures.")


def orders(results, published):
    """Both orders in a sentence, of those that have a figure in both."""
    step = results.steps[-1]
    metric = primary(step)
    pairs = [(row, line) for row, line in lines_of(results, published["rows"], step)
             if row and line and line.median(metric) is not None]
    if metric != "rps" or len(pairs) < 2:
        return []
    said = sorted(pairs, key=lambda pair: -article_rate(pair[0], step))
    ours = sorted(pairs, key=lambda pair: -pair[1].median("rps"))
    names = [" > ".join(text.bare(row["label"]) for row, _ in order) for order in (said, ours)]
    note = f" (on the last rung, {rung_command(step)})" if published["shape"] == "ladder" else ""
    verdict = "the same order" if names[0] == names[1] else f"here {names[1]}"
    return [Paragraph(f"Order by {METRICS[metric].title}{note}: in the article {names[0]}; "
                      f"{verdict}.")]


def article_rate(row, step):
    """The article's median for a row."""
    if "ladder" in row:
        return row["ladder"].get(step["id"], [0])[0]
    return sorted(row["rps"])[len(row["rps"]) // 2]

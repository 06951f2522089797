# SPDX-License-Identifier: MIT
"""The document of a results folder: what was done, the article's table, ours, the rest."""

from hellobench import verdict
from hellobench.report import article, machine, ours, text
from hellobench.report.document import Document, Paragraph, Plot, Points, Section
from hellobench.report.results import METRICS, primary

NAMED = 4  # of those who share the first place, in the summary


def build(results):
    sections = [article_section(results)]
    sections += [step_section(results, step) for step in results.steps]
    sections += [problem_section(results), absent_section(results)]
    sections += [
        Section("servers", "The servers", server_blocks(results)),
        Section("runs", "Every single run", [
            Paragraph("Also in `results.csv` and `results.json`; what the load generators printed "
                      "is in `raw/`."),
            *(ours.runs_table(results, step) for step in results.steps)]),
        Section("environment", "The machine", [machine.environment_table(results)]),
        Section("reproduce", "Do it again", machine.reproduce(results)),
        Section("doubts", "Questions to ask of any benchmark", [machine.doubts(results)]),
        Section("notes", "How to read the figures", [
            verdicts(), machine.footnotes(results)])]
    return Document(results.profile["title"], lead(results),
                    [section for section in sections if section.blocks], results.plan["created"])


def verdicts():
    return Points([f"{verdict.word(code)}: {meaning}"
                   for code, meaning in verdict.MEANINGS.items()])


def lead(results):
    plan, env = results.plan, results.env
    installed = sum(entry["installed"] for entry in results.entrants)
    where = f"{text.bare(env['cpu'])}, " if env.get("cpu") else ""
    cores = f"{text.plural(env['ncpu'], 'processor')}, " if env.get("ncpu") else ""
    kernel = f"Linux {text.bare(env.get('kernel', text.DASH))}"
    place = ("on processors of its own" if plan["topology"] == "pinned"
             else "on the same processors")
    order = "in random order" if results.profile["restart"] else "each server kept running"
    parts = [Paragraph(f"{text.bare(results.profile['about']).strip()}", "about"),
             Paragraph(
                 f"On {plan['created'][:10]} {text.plural(installed, 'server')} answered "
                 f"{text.code(results.profile['body'])} to {commands(results)}, "
                 f"{text.plural(plan['blocks'], 'time')} each, {order}, client and server on one "
                 f"machine ({where}{cores}{kernel}), the client {place}. "
                 f"The baseline is {text.bare(results.title(results.baseline))}."
                 f"{namespaces(plan.get('sysctl'))}")]
    return parts + outcome(results) + cautions(results)


def namespaces(sysctl):
    """What was set in the run's own network namespaces, if it had any."""
    if not sysctl:
        return ""
    left_out = (f"; {text.bare(', '.join(sysctl['left_out']))} could not be set there"
                if sysctl["left_out"] else "")
    applied = text.bare(", ".join(sysctl["applied"])) or "nothing"
    return (" Server and client had a network namespace each, joined by a veth pair; of the list "
            f"{text.code(sysctl['list'])} was set: {applied}{left_out}.")


def commands(results):
    """The exact commands: as run, or as planned where no run got that far."""
    shown = []
    for step in results.steps:
        ran = next((cell.argv for cell in results.cells if cell.step == step["id"] and cell.argv),
                   None)
        planned = [*step["argv"][:1], *step.get("added", []), *step["argv"][1:]]
        if step["argv"]:
            shown.append(text.code(" ".join(without(ran or planned, step))))
    versions = sorted({f"{cell.tool} {cell.tool_version}" for cell in results.cells
                       if cell.tool and cell.tool_version})
    note = f" ({text.bare(', '.join(versions))})" if versions else ""
    return text.and_list(shown) + note if shown else "the first request after their start"


def without(argv, step):
    """The command without what was added for its output's sake; that is listed further down."""
    count = len(step.get("added", []))
    return [*argv[:1], *argv[1 + count:]]


def outcome(results):
    """The answer in a sentence: who is first on each step."""
    said = {}
    for step in results.steps:
        where = f" on {step['id']}" if len(results.steps) > 1 else ""
        said.setdefault(METRICS[primary(step)].title, []).append(best(results, step) + where)
    return [Paragraph(" ".join(f"First by {title}: {'; '.join(found)}."
                               for title, found in said.items()), "result")]


def best(results, step):
    """Who shares the first place, and with which figure."""
    metric = primary(step)
    first = [line for rank, line in results.ranked(step) if rank == 1]
    if not first:
        return "no server has a figure"
    names = [text.bare(line.entrant["title"]) for line in first]
    if len(names) > NAMED:
        names[NAMED:] = [f"{len(names) - NAMED} others"]
    bound = text.AT_LEAST if metric == "rps" and first[0].client_bound else ""
    tie = ", which can't be told apart" if len(first) > 1 else ""
    return (f"{text.and_list(names)}{tie} ({bound}"
            f"{METRICS[metric].show(first[0].median(metric))})")


def cautions(results):
    """What a reader must know before any figure."""
    plan = results.plan
    found = []
    if results.profile["id"] == "smoke":
        found.append("this profile only shows that the harness works: its figures mean nothing")
    if plan["quick"]:
        found.append("this run has the quick size")
    if plan["git"].get("dirty"):
        found.append("the source tree had changes that were not committed")
    if results.missing:
        found.append(f"{text.plural(results.missing, 'run')} of {len(plan['cells']):,} "
                     f"{'is' if results.missing == 1 else 'are'} missing: it was broken off")
    bad = sum(not cell.valid for cell in results.cells)
    if bad:
        found.append(f"{text.plural(bad, 'run')} had a fault and no figure (see Problems)")
    absent = sum(not entry["installed"] for entry in results.entrants)
    if absent:
        found.append(f"{text.plural(absent, 'server')} could not be installed here and "
                     f"{'has' if absent == 1 else 'have'} no figure")
    found += [text.bare(line) for line in results.damage]
    return [Paragraph("Please note: " + "; ".join(found) + ".", "caution")] if found else []


def article_section(results):
    return Section("article", "The article's table", article.blocks(results))


def step_section(results, step):
    name = step["id"] if len(results.steps) > 1 else "Results"
    command = article.rung_command(step)
    title = f"{name}: {command}" if len(results.steps) > 1 and command else name
    blocks = [ours.rate_table(results, step), *step_plots(results, step)]
    if any(line.valid for line in results.lines(step)):
        blocks += [Paragraph("What a request costs, and on how many processors."),
                   ours.cost_table(results, step)]
        if step["argv"]:
            blocks += [Paragraph("Latency as the load generator saw it, and what went over the "
                                 "wire."), ours.answer_table(results, step)]
    return Section(f"step-{step['id']}", title, blocks)


def step_plots(results, step):
    title = METRICS[primary(step)].title
    title = title[0].upper() + title[1:]
    first = [Plot(f"dots-{step['id']}",
                  "Every dot is a run, the bar their median, the scale begins at zero. "
                  "Servers without a figure are named with the reason.",
                  f"{title} of every run, per server"),
             Plot(f"ratios-{step['id']}",
                  "Each server against the baseline, with the interval of the ratio. Hollow: it "
                  "can't be told from the baseline, or only that they are the same.",
                  f"{title}: ratio to the baseline"),
             Plot(f"cpu-{step['id']}",
                  "CPU time that a request costs on the server's side (left) and the client's "
                  "(right). A bar with a break is cut; its figure is printed.",
                  "CPU time per request, server and client"),
             Plot(f"latency-{step['id']}",
                  "Latency at each percentile, one panel per server, all others in grey; each step "
                  "to the right is ten times rarer. All runs of a server together where the tool "
                  "keeps a histogram, so p99 can differ a little from the median in the table.",
                  "Latency percentiles per server")]
    if step is results.steps[-1] and len(results.steps) > 1:
        first.append(Plot("ladder", "Requests per second on each step, one panel per server, all "
                          "others in grey.", "Requests per second on each step, per server"))
    return first


def server_blocks(results):
    traits = machine.trait_table(results)
    said = Paragraph("Before the runs each server was asked, and its answer compared with the "
                     "right one. What else was seen of it is a trait, not a fault.")
    return [machine.server_table(results)] + ([said, traits] if traits.rows else [])


def problem_section(results):
    table = ours.problem_table(results)
    blocks = [table] if table.rows else [Paragraph("No run had a problem.")]
    return Section("problems", "Problems", blocks)


def absent_section(results):
    table = ours.absent_table(results)
    blocks = [Paragraph("These were asked for and could not be measured on this machine."), table]
    return Section("absent", "Not installed here", blocks if table.rows else [])

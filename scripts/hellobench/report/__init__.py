# SPDX-License-Identifier: MIT
"""Reports: what plan.json, journal.jsonl, env.json and verify.json of a results folder say.

Nothing is measured here, so a report can be written anew at any time; the same folder gives the
same files. What can't be written for want of a library is left out and said, never an error.
"""

import pathlib
import sys

from hellobench.errors import UsageError
from hellobench.report import content, csv_json, markdown
from hellobench.report.results import Results

FORMATS = ("md", "csv", "json", "svg", "png", "html")
LEFT_OUT = "{what} left out: {name} is not there (apt-get install python3-{name})"


def write(folder, formats=FORMATS):
    """Writes the reports of `formats`; the paths of the files. Raises UsageError."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise UsageError(f"no report format {', '.join(unknown)}; there are {', '.join(FORMATS)}")
    folder = pathlib.Path(folder)
    results = Results(folder)
    document = content.build(results)
    drawn, written = draw(results, folder, formats)
    makers = {
        "json": ("results.json", lambda: csv_json.results_json(results)),
        "csv": ("results.csv", lambda: csv_json.results_csv(results)),
        "md": ("report.md", lambda: markdown.write(document, drawn if "svg" in formats else ())),
        "html": ("report.html", lambda: page(document, drawn))}
    for name, (file, make) in makers.items():
        text = make() if name in formats else None
        if text is not None:
            (folder / file).write_text(text, "utf-8")
            written.append(folder / file)
    return written


def draw(results, folder, formats):
    """({name: SVG text}, paths) of the plots, where any format has them."""
    if not {"svg", "png", "html"} & set(formats):
        return {}, []
    try:
        from hellobench.report import plots
    except ImportError as error:
        print(LEFT_OUT.format(what="plots are", name="matplotlib"), f"({error})", file=sys.stderr)
        return {}, []
    return plots.draw(results, folder, formats)


def page(document, drawn):
    """The HTML text; None if it can't be made here."""
    try:
        from hellobench.report import html
    except ImportError as error:
        print(LEFT_OUT.format(what="report.html is", name="jinja2"), f"({error})", file=sys.stderr)
        return None
    colours = ""
    if drawn:
        from hellobench.report import style
        colours = style.dark_rules()
    return html.write(document, drawn, colours)

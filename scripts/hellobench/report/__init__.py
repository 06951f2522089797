# SPDX-License-Identifier: MIT
"""Reports: what plan.json, journal.jsonl, env.json and verify.json of a results folder say.

Nothing is measured here, so a report can be written anew at any time; the same folder gives the
same files. What can't be written for want of a library is left out and said, never an error.
"""

import pathlib

from hellobench.errors import UsageError
from hellobench.report import content, csv_json, markdown
from hellobench.report.results import Results

FORMATS = ("md", "csv", "json", "svg", "png", "html")


def write(folder, formats=FORMATS):
    """Writes the reports of `formats`; the paths of the files. Raises UsageError."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise UsageError(f"no report format {', '.join(unknown)}; there are {', '.join(FORMATS)}")
    folder = pathlib.Path(folder)
    results = Results(folder)
    document = content.build(results)
    written = []
    for name, make in (("json", lambda: csv_json.results_json(results)),
                       ("csv", lambda: csv_json.results_csv(results)),
                       ("md", lambda: markdown.write(document, ()))):
        if name in formats:
            path = folder / ("report.md" if name == "md" else f"results.{name}")
            path.write_text(make(), "utf-8")
            written.append(path)
    return written

# SPDX-License-Identifier: MIT
"""What a report says, apart from how it is written down: sections of paragraphs and tables.

Markdown and HTML are made from the same document, so they can't say different things. Texts are
plain; in a paragraph, `backticks` mark commands and names of files.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Fig:
    """A table's field. `sort`: what it is sorted by; None: after all others, whatever the order."""

    text: str
    sort: float | str | None = None
    href: str | None = None  # relative to the results folder
    title: str = ""  # an explanation, shown when pointed at
    look: str = ""  # "bad", "dim", "strong", "article", or "code": `commands` in it
    share: float | None = None  # of the table's largest, 0 to 1: a bar behind the figure


@dataclasses.dataclass(frozen=True)
class Column:
    label: str
    about: str = ""
    left: bool = False  # texts; figures stand right


@dataclasses.dataclass(frozen=True)
class Row:
    figs: list[Fig]
    note: str = ""  # instead of the fields that `figs` doesn't fill: why there are no figures
    look: str = ""  # "baseline" or "failed"


@dataclasses.dataclass(frozen=True)
class Table:
    id: str
    columns: list[Column]
    rows: list[Row]
    title: str = ""
    sortable: bool = True


@dataclasses.dataclass(frozen=True)
class Paragraph:
    text: str
    look: str = ""  # "about", "result" or "caution"


@dataclasses.dataclass(frozen=True)
class Points:
    items: list[str]


@dataclasses.dataclass(frozen=True)
class Commands:
    lines: list[str]


@dataclasses.dataclass(frozen=True)
class Plot:
    name: str  # of the files in plots/, without the ending
    caption: str  # what to look at
    summary: str  # for those who can't see it


@dataclasses.dataclass(frozen=True)
class Folded:
    """Long detail: closed at first in HTML, left out in Markdown."""

    title: str
    table: Table


@dataclasses.dataclass(frozen=True)
class Section:
    id: str
    title: str
    blocks: list


@dataclasses.dataclass(frozen=True)
class Document:
    title: str
    lead: list[Paragraph]
    sections: list[Section]
    created: str

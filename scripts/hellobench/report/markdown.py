# SPDX-License-Identifier: MIT
"""A document as Markdown (GitHub's tables). Text from outside can't become markup."""

import re

from hellobench.report.document import Commands, Folded, Paragraph, Plot, Points, Table

SPECIAL = re.compile(r"[\\`*~|<&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|(?<=\])\(|^(?=[#>+-])")


def write(document, plots):
    """The text; `plots` are the names of those that have been drawn."""
    parts = [f"# {escape(document.title)}"]
    parts += [spans(paragraph.text) for paragraph in document.lead]
    for section in document.sections:
        parts.append(f"## {escape(section.title)}")
        parts += [block(item, plots) for item in section.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def block(item, plots):
    if isinstance(item, Paragraph):
        return spans(item.text)
    if isinstance(item, Points):
        return "\n".join(f"- {spans(text)}" for text in item.items)
    if isinstance(item, Commands):
        return "```sh\n" + "\n".join(one_line(line) for line in item.lines) + "\n```"
    if isinstance(item, Table):
        return table(item)
    if isinstance(item, Plot) and item.name in plots:
        return f"![{escape(item.summary)}](plots/{item.name}.svg)\n\n{spans(item.caption)}"
    assert isinstance(item, (Plot, Folded))
    return ""


def table(item):
    lines = [f"**{escape(item.title)}**\n"] if item.title else []
    lines.append("| " + " | ".join(escape(column.label) for column in item.columns) + " |")
    lines.append("|" + "|".join(":--" if column.left else "--:" for column in item.columns) + "|")
    for row in item.rows:
        texts = [field(fig) for fig in row.figs]
        if row.note:
            texts.append(spans(row.note))
        texts += [""] * (len(item.columns) - len(texts))
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def field(fig):
    text = spans(fig.text) if fig.look == "code" else escape(fig.text)
    if fig.look == "strong" and text:
        return f"**{text}**"
    return text


def spans(text):
    """Text with `commands`: all but those is escaped."""
    parts = one_line(text).split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner is no markup
        return escape(text)
    return "".join(f"`{part.replace('|', chr(92) + '|')}`" if index % 2 else escape(part)
                   for index, part in enumerate(parts))


def escape(text):
    return SPECIAL.sub(escape_one, " ".join(str(text).split("\n")))


def escape_one(match):
    character = match.group()
    return {"<": "&lt;", "&": "&amp;"}.get(character, "\\" + character)


def one_line(text):
    return " ".join(str(text).split())

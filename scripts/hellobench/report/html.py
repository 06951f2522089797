# SPDX-License-Identifier: MIT
"""A document as one HTML file that opens from the disk: nothing is loaded from anywhere.

The page is well-formed XML too. Its policy allows its own style and one script, known by its hash:
text from outside could not run even if it were not escaped. The script sorts tables.
"""

import base64
import hashlib
import pathlib
import re

import jinja2
import markupsafe

from hellobench.report import style_page

HERE = pathlib.Path(__file__).parent


def write(document, drawn, plot_colours):
    """The text. `drawn`: {name: SVG text}; `plot_colours`: CSS that makes them fit dark mode."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters["spans"] = spans
    environment.filters["classes"] = lambda names: " ".join(name for name in names if name)
    environment.tests["kind"] = lambda item, name: type(item).__name__ == name
    script = style_page.SCRIPT
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html.j2").render(
        document=document, plots={name: inline(name, svg) for name, svg in drawn.items()},
        css=markupsafe.Markup(style_page.CSS + plot_colours), script=markupsafe.Markup(script),
        script_hash=digest).lstrip()


def spans(text):
    """Text with `commands` as markup."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:
        return markupsafe.escape(text)
    return markupsafe.Markup("").join(
        markupsafe.Markup("<code>{}</code>").format(part) if index % 2 else markupsafe.escape(part)
        for index, part in enumerate(parts))


def inline(name, svg):
    """SVG text as a part of a page: no prologue, ids of its own, no size but its proportions."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id="|xlink:href="#|href="#|url\(#)', lambda m: m.group() + name + "-", svg)
    width = re.search(r'viewBox="0 0 ([\d.]+)', svg).group(1)
    head = f'<svg class="plot" role="img" aria-labelledby="{name}-says" style="--w:{width}px" '
    svg = re.sub(r'^<svg\s+(?:(?:width|height)="[^"]*"\s*)*', head, svg)
    svg = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[\d.]+pt"', r"\1", svg)
    svg = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[\d.]+pt"', r"\1", svg)
    return markupsafe.Markup(svg.strip())

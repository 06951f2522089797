# SPDX-License-Identifier: MIT
"""How plots look: a few colours that differ in grey as well, and nothing that isn't data.

The page replaces each colour in dark mode by name, so plots use these and no others. Figures are
drawn without a window, and the same results give the same SVG byte for byte.
"""

import io
import math
import re

import matplotlib
from matplotlib.figure import Figure

INK = "#1b1f24"
MUTED = "#68707c"
LINE = "#d5d9df"
ACCENT = "#0a63c9"  # the baseline
PALE = "#a9b4c2"  # second part of a stack
BAND = "#e9ecf0"
PAPER = "#ffffff"
DARK = {INK: "#e8eaed", MUTED: "#9aa3af", LINE: "#3a4048", ACCENT: "#6db3ff", PALE: "#5d6875",
        BAND: "#272c33", PAPER: "#15181c"}
SIZE = 9  # points
LETTER = 0.074  # inches, of the average letter at that size
SETTINGS = {
    "svg.hashsalt": "hellobench", "svg.fonttype": "none", "font.family": "DejaVu Sans",
    "font.size": SIZE, "text.color": INK, "axes.edgecolor": LINE, "axes.labelcolor": MUTED,
    "xtick.color": MUTED, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.spines.left": False, "ytick.major.size": 0, "xtick.major.size": 0, "grid.color": LINE,
    "grid.linewidth": 0.6, "axes.axisbelow": True, "axes.facecolor": "none", "axes.linewidth": 0.8,
    "text.parse_math": False, "xtick.labelsize": SIZE - 1, "hatch.linewidth": 0.6,
}
MAX_NAME = 30


def settings():
    """A context in which figures are made and saved."""
    return matplotlib.rc_context(SETTINGS)


def new_figure(width, height):
    """Without pyplot: no window system, no global list of figures."""
    return Figure(figsize=(width, height), facecolor="none")


def heading(figure, title, about):
    """Title and a line below it, at a fixed distance from the top."""
    height = figure.get_figheight()
    figure.text(0.14 / figure.get_figwidth(), 1 - 0.22 / height, short(title, 90), size=SIZE + 2.5,
                weight="bold", va="center", color=INK)
    figure.text(0.14 / figure.get_figwidth(), 1 - 0.46 / height, short(about, 150), va="center",
                color=MUTED)


def short(name, limit=MAX_NAME):
    name = " ".join(name.split())
    return name if len(name) <= limit else name[:limit - 1] + "\u2026"


def log_ticks(low, high):
    """1, 10, 100, ... between both; 1, 2, 5, 10, ... where that would be too few."""
    steps = (1,) if high / low > 100 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0 ** power for power in powers for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def svg(figure):
    """The figure as SVG text, with its colours for dark mode."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", out.getvalue(), flags=re.DOTALL)
    return text.replace("<defs>", f"<style>{dark_rules()}</style>\n <defs>", 1)


def dark_rules():
    """CSS that gives every colour of a plot its dark twin.

    Not "svg [style...]": marks are used from afar, and there they have no svg around them.
    """
    rules = "".join(f'[style*="{kind}: {light}"]{{{kind}:{dark}!important}}'
                    for light, dark in DARK.items() for kind in ("fill", "stroke"))
    return "@media (prefers-color-scheme: dark){" + rules + "}"


def png(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=192, facecolor=PAPER, metadata={"Software": None})
    return out.getvalue()

# SPDX-License-Identifier: MIT
"""All plots of a results folder, as SVG and PNG."""

from hellobench.report import panel_plots, row_plots, style


def draw(results, folder, formats):
    """Writes those of `formats` into `folder`/plots; ({name: SVG text}, paths)."""
    made, written = {}, []
    with style.settings():
        for name, figure in figures(results):
            made[name] = style.svg(figure)
            for ending, data in (("svg", made[name].encode()),
                                 ("png", style.png(figure) if "png" in formats else b"")):
                if ending in formats:
                    path = folder / "plots" / f"{name}.{ending}"
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(data)
                    written.append(path)
    return made, written


def figures(results):
    """(name, figure) of what there is data for. Made one by one: each holds a few megabytes."""
    kinds = (("dots", row_plots.dots), ("ratios", row_plots.ratios), ("cpu", row_plots.cpu),
             ("latency", panel_plots.latency))
    for step in results.steps:
        # Of runs so short that only many together say something, percentiles would say nothing.
        short = results.profile["pooled"] and step is not results.steps[-1]
        for kind, make in kinds[:2] if short else kinds:
            figure = make(results, step)
            if figure is not None:
                yield f"{kind}-{step['id']}", figure
    figure = panel_plots.ladder(results)
    if figure is not None:
        yield "ladder", figure

"""The gap to the optimal value, episode by episode: the paper's figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ucbf.checks import one_of
from ucbf.figures.style import BANDS, STYLES, finding, legend_above, plain
from ucbf.reports import Curve, curves_of, gap_name, interval, panel_title, smallest

if TYPE_CHECKING:
    from ucbf.studies.spec import Study
    from ucbf.studies.store import Results

SCALES = ("linear", "log", "loglog")  # loglog: the gap too


def gap_figure(results: Results, band: str = "sd", scale: str = "linear") -> Figure:
    """The mean gap, episode by episode or step by step: a panel for each kind of world, a curve for each agent."""
    one_of("band", band, BANDS)
    one_of("scale", scale, SCALES)
    study = results.study
    curves = curves_of(results)
    panels = sorted({curve.panel for curve in curves})
    labels = list(dict.fromkeys(curve.label for curve in curves))
    columns = _columns(study, len(panels))
    rows = math.ceil(len(panels) / columns)
    beside = columns == 1  # the legend, where there is no room above
    size = (8.6, 1.1 + 3.3 * rows) if beside else (0.6 + 3.6 * columns, 1.1 + 2.7 * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        for curve in curves:
            if curve.panel == panel:
                _draw_curve(ax, curve, STYLES[labels.index(curve.label) % len(STYLES)], band)
        greedy = next(curve.greedy.mean() for curve in curves if curve.panel == panel)
        ax.axhline(greedy, color="#666666", linestyle=(0, (6, 3)), linewidth=1.2, label="greedy")
        ax.set_title(panel_title(study, panel), fontsize=10)
        if scale == "linear":
            ax.set(xlim=(0, study.length))
        else:
            ax.set(xscale="log", xlim=(1, study.length))
        if scale == "loglog" and greedy > 0:
            ax.set(yscale="log", ylim=(3e-4 * greedy, 2 * greedy))
        else:
            ax.set(ylim=(0, None))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#e8e8e8")
        ax.set_axisbelow(True)
    for i in range(len(panels), len(axes)):
        axes[i].set_axis_off()
        axes[i - columns].tick_params(labelbottom=True)
    worlds = sorted({len(curve.gap) for curve in curves})
    counted = f"{worlds[0]}" if len(worlds) == 1 else f"{worlds[0]} to {worlds[-1]}"
    figure.supxlabel(f"{study.counted}   ({counted} worlds a panel; {BANDS[band]})", fontsize=10)
    figure.supylabel(gap_name(study), fontsize=10)
    found = smallest({c.label: c.total.mean() for c in curves if c.panel == panel} for panel in panels)
    if beside:
        figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside right center")
        finding(figure, found)
    else:
        legend_above(figure, axes[0], found)
    return figure


def _columns(study: Study, panels: int) -> int:
    """Panels beside each other: a row for each value of what varies first, if two parameters vary."""
    varied = study.world.varied()
    values = len(getattr(study.world, varied[-1])) if len(varied) == 2 else 0
    return values if 2 <= values <= 4 and panels % values == 0 else min(3, panels)


def _draw_curve(ax: Axes, curve: Curve, style: tuple[str, object], band: str) -> None:
    """Draw the mean gap of one agent and its band."""
    colour, dashes = style
    mean = curve.gap.mean(axis=0)
    if band == "ci":
        low, high = interval(curve.gap)
    else:
        half = 0.5 * curve.gap.std(axis=0)
        low, high = mean - half, mean + half
    ax.fill_between(curve.episodes, np.maximum(low, 0), high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(curve.episodes, mean, color=colour, linestyle=dashes, linewidth=1.6, label=plain(curve.label))

"""How regret grows with the horizon, with fitted and proved exponents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from ucbf.figures.style import BANDS, STYLES, finding, plain, quiet
from ucbf.reports import interval, length_of

if TYPE_CHECKING:
    from ucbf.exponents import Growth
    from ucbf.studies.store import Results


def horizon_figure(results: Results, found: list[Growth]) -> Figure:
    """Mean regret over the horizon on log-log axes, a line for each agent; grey: the slopes that are proved."""
    figure = Figure(figsize=(9.2, 4.6), layout="constrained")
    ax = figure.subplots()
    for i, growth in enumerate(found):
        colour, dashes = STYLES[i % len(STYLES)]
        low, high = np.array([interval(worlds) for worlds in growth.regret]).T
        ax.fill_between(growth.horizons, low, high, color=colour, alpha=0.18, linewidth=0)
        label = f"{plain(growth.label)}: $H^{{{growth.fit.exponent:.2f}\\,\\pm\\,{growth.fit.half_width:.2f}}}$"
        if growth.proved is not None:
            label += f", proved $H^{{{growth.proved[0]:g}}}$"
            first, mean = growth.horizons.astype(float), growth.means
            slope = mean[0] * (first / first[0]) ** growth.proved[0]
            ax.plot(first, slope, color="#999999", linestyle=(0, (1, 2)), linewidth=1, zorder=1)
        ax.plot(
            growth.horizons, growth.means, color=colour, linestyle=dashes, marker="o", markersize=4, linewidth=1.6,
            label=label,
        )  # fmt: skip
    ticks = found[0].horizons
    ax.set(xscale="log", yscale="log", xticks=ticks, xticklabels=[str(H) for H in ticks])
    ax.set_xlabel(f"horizon H   ({max(len(worlds) for worlds in found[0].regret)} worlds; {BANDS['ci']})", fontsize=10)
    ax.set_ylabel(f"regret of {length_of(results.study)}", fontsize=10)
    ax.minorticks_off()
    quiet(ax)
    least = min(found, key=lambda growth: growth.fit.exponent)
    finding(figure, f"The regret of {least.label} grows least with the horizon, like H to the {least.fit.exponent:.1f}")
    figure.legend(frameon=False, fontsize=9, loc="outside right center", title="dotted: slope of the proved bound")
    return figure

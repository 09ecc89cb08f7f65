"""Cumulative regret: the figure beyond the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ucbf.figures.style import BANDS, STYLES, legend_above, plain
from ucbf.reports import compared_names, curves_of, interval, panel_title, smallest

if TYPE_CHECKING:
    from ucbf.studies.store import Results

ORDER = (0, 3, 2, 4, 1, 5, 6, 7)  # of the styles


def regret_figure(results: Results) -> Figure:
    """Cumulative regret on log-log axes: a row for each ζ, a column for each kind of world, a curve for each agent."""
    study, curves = results.study, curves_of(results)
    panels = sorted({curve.panel for curve in curves})
    errors = sorted({curve.runs[0]["model_error"] for curve in curves})
    names = compared_names(curves)
    families = list(dict.fromkeys(names))
    size = (0.8 + 2.5 * len(panels), 1.0 + 2.3 * len(errors))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(errors), len(panels), squeeze=False, sharex=True, sharey=True)
    for row, error in zip(axes, errors, strict=True):
        for ax, panel in zip(row, panels, strict=True):
            for curve, name in zip(curves, names, strict=True):
                if curve.panel == panel and curve.runs[0]["model_error"] == error:
                    colour, dashes = STYLES[ORDER[families.index(name) % len(ORDER)]]
                    low, high = interval(curve.regret)
                    ax.fill_between(curve.episodes, low, high, color=colour, alpha=0.2, linewidth=0)
                    mean = curve.regret.mean(axis=0)
                    ax.plot(curve.episodes, mean, color=colour, linestyle=dashes, linewidth=1.6, label=plain(name))
            ax.set(xscale="log", yscale="log", xlim=(1, study.length))
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(color="#ececec")
            ax.set_axisbelow(True)
        row[0].set_ylabel(f"ζ = {error:g}", fontsize=10)
    for ax, panel in zip(axes[0], panels, strict=True):
        ax.set_title(panel_title(study, panel), fontsize=10)
    worlds = max(len(curve.gap) for curve in curves)
    figure.supxlabel(f"{study.counted}   ({worlds} worlds a panel; {BANDS['ci']})", fontsize=10)
    figure.supylabel("cumulative regret", fontsize=10)
    regrets: dict[tuple[int, float], dict[str, float]] = {}
    for curve, name in zip(curves, names, strict=True):
        regrets.setdefault((curve.panel, curve.runs[0]["model_error"]), {})[name] = curve.total.mean()
    legend_above(figure, axes[0][0], smallest(regrets.values()))
    return figure

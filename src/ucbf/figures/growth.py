"""How time, memory and regret grow: the paper's Table 1 as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ucbf.figures.style import STYLES, legend_above

if TYPE_CHECKING:
    from ucbf.table1 import Measurement, Sizes


def growth_figure(measured: list[Measurement], sizes: Sizes) -> Figure:
    """How time, memory and regret grow, on log-log axes, a line for each algorithm."""
    figure = Figure(figsize=(13, 3.9), layout="constrained")
    axes = figure.subplots(1, 4)
    pairs = [s * sizes.regret_actions for s in sizes.regret_states]
    panels = (
        ("time a step (ns)", "states S", sizes.states, [1e9 * m.time_states for m in measured]),
        ("time a step (ns)", "actions A", sizes.actions, [1e9 * m.time_actions for m in measured]),
        ("memory (bytes)", "states S", sizes.states, [m.memory_states for m in measured]),
        (
            f"regret of {sizes.episodes} episodes",
            "states times actions SA",
            pairs,
            [m.regret.mean(1) for m in measured],
        ),
    )
    for ax, (what, along, n, values) in zip(axes, panels, strict=True):
        for i, m in enumerate(measured):
            colour, dashes = STYLES[i % len(STYLES)]
            ax.plot(n, values[i], color=colour, linestyle=dashes, marker="o", markersize=3, label=m.agent)
        ax.set(xscale="log", yscale="log", xlabel=along, title=what, xticks=n, xticklabels=[str(x) for x in n])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#e8e8e8")
    least = min(measured, key=lambda m: m.fits["regret, SA"].exponent)
    power = least.fits["regret, SA"].exponent
    found = f"The regret of {least.agent} grows least with states and actions, like SA to the {power:.1f}"
    legend_above(figure, axes[0], found)
    return figure

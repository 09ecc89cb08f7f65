"""What ``ucbf learn`` found, on one page."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ucbf.advice import LEARNED, Advice, OrderAdvice
from ucbf.figures.laws import law_panel
from ucbf.figures.policies import policy_panel, value_panel
from ucbf.figures.style import finding, quiet


def advice_figure(advice: Advice) -> Figure:
    """What was learned, on one page: the policy, its values, the law beside the data, and how it did afterwards."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    (left, right), (below, beside) = figure.subplots(2, 2)
    policy_panel(left, advice.policy, advice.last.name)
    value_panel(right, advice.plan, advice.policy)
    law_panel(below, advice)
    if advice.rewards:
        comparison_panel(beside, advice)
        beside.set_title("How far the learned policy was ahead", loc="left", fontsize=11)
        found = f"In the {len(advice.test)} episodes that followed the learned policy was {standing(_others(advice))}"
        finding(figure, found)
    else:
        beside.set_axis_off()
    return figure


def standing(rows: list[dict[str, Any]]) -> str:
    """Of how many others the learned policy was ahead, and behind how many, by more than chance."""
    ahead, behind = sum(row["low"] > 0 for row in rows), sum(row["high"] < 0 for row in rows)
    return f"ahead of {ahead or 'none'} of {len(rows)} others, behind {behind or 'none'}"


def _others(advice: Advice | OrderAdvice) -> list[dict[str, Any]]:
    """The rows of the comparison but that of the learned policy."""
    return [row for row in advice.comparison() if row["policy"] != LEARNED]


def comparison_panel(ax: Axes, advice: Advice | OrderAdvice) -> None:
    """How far the learned policy was ahead of each rule, with 95 % intervals."""
    rows = _others(advice)[::-1]
    for y, row in enumerate(rows):
        colour = "#0072B2" if row["low"] > 0 else "#D55E00" if row["high"] < 0 else "#777777"
        ax.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=3, solid_capstyle="butt")
        ax.plot(row["ahead"], y, marker="o", color=colour)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(yticks=range(len(rows)), yticklabels=[row["policy"] for row in rows], ylim=(-0.7, len(rows) - 0.3))
    ax.set_xlabel(f"learned is ahead by (reward an episode)\n({len(advice.test)} episodes; 95 % intervals)")
    ax.set_title(f"Afterwards: {standing(rows)}", loc="left", fontsize=11)
    quiet(ax)

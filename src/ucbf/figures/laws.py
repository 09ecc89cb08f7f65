"""The distribution of the disturbance, as it was learned, beside the true one or beside the data."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ucbf.advice import Advice
from ucbf.checks import whole
from ucbf.disturbance import Disturbance
from ucbf.figures.style import dated, name_steps, quiet

MOST_POINTS = 10_000  # of measured amounts that a panel shows: of more, every n-th episode


def law_figure(learned: Disturbance, truth: Disturbance, most: int = 8) -> Figure:
    """A learned distribution of W beside the true one, a panel for each of the first ``most`` steps."""
    steps = min(max(len(learned.pmf), len(truth.pmf)), whole("most", most, 1))
    columns = min(4, steps)
    rows = math.ceil(steps / columns)
    figure = Figure(figsize=(0.8 + 2.6 * columns, 0.8 + 2.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for h, ax in enumerate(axes):
        if h >= steps:
            ax.set_axis_off()
            continue
        ax.bar(truth.values, truth.pmf[h % len(truth.pmf)], color="#dddddd", label="the truth")
        ax.plot(learned.values, learned.pmf[h % len(learned.pmf)], color="#0072B2", marker=".", label="learned")
        if steps > 1:
            ax.set_title(f"step {h + 1}", loc="left", fontsize=10)
        quiet(ax)
    axes[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("disturbance", fontsize=10)
    figure.supylabel("probability", fontsize=10)
    return figure


def law_panel(ax: Axes, advice: Advice) -> None:
    """The learned distribution at every step, its median and 10 to 90 %, over the amounts measured."""
    law, unit, H = advice.last.amount_distribution, advice.preset.unit, advice.preset.n_steps
    steps = np.arange(1, H + 1)
    low, middle, high = (np.array([_quantile(law, h, share) * unit for h in range(H)]) for share in (0.1, 0.5, 0.9))
    rng = np.random.default_rng(0)
    kind = advice.last.kind
    for part, colour, label in ((advice.training, "#999999", "before"), (advice.test, "#D55E00", "judged by")):
        amounts = part.values[[not kind or k == kind for k in part.kinds]]
        amounts = amounts[:: math.ceil(amounts.size / MOST_POINTS) or 1]
        if len(amounts):
            jitter = rng.uniform(-0.25, 0.25, amounts.shape)
            size = 8 if amounts.size < 2000 else 3
            ax.scatter(steps + jitter, amounts, s=size, color=colour, alpha=0.4, linewidths=0, label=label)
    edges = np.arange(H + 1) + 0.5
    ax.stairs(high, edges, baseline=low, fill=True, color="#0072B2", alpha=0.2, label="learned, 10 to 90 %")
    ax.hlines(middle, edges[:-1], edges[1:], color="#0072B2", label="learned, middle")
    name_steps(ax, advice.policy)
    ax.set(ylabel=advice.preset.amount_name)
    ax.set_title(dated(f"The law of the {advice.preset.amount_name}", kind), loc="left", fontsize=11)
    for handle in ax.legend(frameon=False, fontsize=8, ncols=2).legend_handles[:2]:
        if handle is not None:
            handle.set_alpha(0.9)
    quiet(ax)


def _quantile(law: Disturbance, h: int, share: float) -> float:
    """The smallest value that W stays at or below with probability ``share`` at step h."""
    reached = np.cumsum(law.pmf[h % len(law.pmf)]) >= share - 1e-12
    return float(law.values[int(reached.argmax())])

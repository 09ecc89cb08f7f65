"""Plots from stored results. Each function returns a figure."""

from __future__ import annotations

import math

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ucbf.advice import LEARNED, Advice
from ucbf.checks import one_of, whole
from ucbf.disturbance import Disturbance
from ucbf.planning import Plan
from ucbf.policies import Policy
from ucbf.reports import Curve, curves_of, interval, panel_title
from ucbf.studies.store import Results
from ucbf.table1 import Measurement, Sizes

matplotlib.rcParams["svg.hashsalt"] = "ucbf"  # the same picture, the same file

# Okabe and Ito's colours, told apart by all eyes, and dashes for those who print in grey.
STYLES = [
    ("#0072B2", "-"),
    ("#56B4E9", (0, (5, 1.5))),
    ("#009E73", (0, (3, 1, 1, 1))),
    ("#D55E00", (0, (1, 1))),
    ("#CC79A7", "-"),
    ("#E69F00", (0, (5, 1.5))),
    ("#000000", (0, (3, 1, 1, 1))),
    ("#F0E442", "-"),
]
BANDS = {"sd": "band: ±0.5 standard deviation over worlds", "ci": "band: 95 % bootstrap interval of the mean"}
SCALES = ("linear", "log", "loglog")  # loglog: the gap too
MOST_POINTS = 10_000  # of measured amounts that a panel shows: of more, every n-th episode


def gap_figure(results: Results, band: str = "sd", scale: str = "linear") -> Figure:
    """The mean gap of every episode, a panel for each kind of world, a curve for each agent, and the greedy line."""
    one_of("band", band, BANDS)
    one_of("scale", scale, SCALES)
    study = results.study
    curves = curves_of(results)
    panels = sorted({curve.panel for curve in curves})
    labels = list(dict.fromkeys(curve.label for curve in curves))
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    beside = columns == 1  # the legend, where there is no room above
    size = (8.6, 1.1 + 3.3 * rows) if beside else (0.6 + 3.6 * columns, 1.1 + 2.7 * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        for curve in curves:
            if curve.panel == panel:
                _draw(ax, curve, STYLES[labels.index(curve.label) % len(STYLES)], band)
        greedy = next(curve.greedy.mean() for curve in curves if curve.panel == panel)
        ax.axhline(greedy, color="#666666", linestyle=(0, (6, 3)), linewidth=1.2, label="greedy")
        ax.set_title(panel_title(study, panel), fontsize=10)
        if scale == "linear":
            ax.set(xlim=(0, study.episodes))
        else:
            ax.set(xscale="log", xlim=(1, study.episodes))
        if scale == "loglog" and greedy > 0:
            ax.set(yscale="log", ylim=(3e-4 * greedy, 2 * greedy))
        else:
            ax.set(ylim=(0, None))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#e8e8e8")
        ax.set_axisbelow(True)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    worlds = sorted({len(curve.gap) for curve in curves})
    counted = f"{worlds[0]}" if len(worlds) == 1 else f"{worlds[0]} to {worlds[-1]}"
    figure.supxlabel(f"episode   ({counted} worlds a panel; {BANDS[band]})", fontsize=10)
    figure.supylabel("gap to the optimal value", fontsize=10)
    handles, names = axes[0].get_legend_handles_labels()
    place = {"loc": "outside right upper"} if beside else {"loc": "outside upper center", "ncols": min(len(names), 7)}
    figure.legend(handles, names, frameon=False, fontsize=9, **place)
    return figure


def regret_figure(results: Results) -> Figure:
    """Cumulative regret on log-log axes: a row for each ζ, a column for each kind of world, a curve for each agent."""
    study, curves = results.study, curves_of(results)
    panels = sorted({curve.panel for curve in curves})
    errors = sorted({curve.runs[0]["model_error"] for curve in curves})
    families = list(dict.fromkeys(curve.family for curve in curves))
    size = (0.8 + 2.5 * len(panels), 1.0 + 2.3 * len(errors))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(errors), len(panels), squeeze=False, sharex=True, sharey=True)
    for row, error in zip(axes, errors, strict=True):
        for ax, panel in zip(row, panels, strict=True):
            for curve in curves:
                if curve.panel == panel and curve.runs[0]["model_error"] == error:
                    colour, dashes = STYLES[(0, 3, 2, 4)[families.index(curve.family) % 4]]
                    low, high = interval(curve.regret)
                    ax.fill_between(curve.episodes, low, high, color=colour, alpha=0.2, linewidth=0)
                    mean = curve.regret.mean(axis=0)
                    ax.plot(curve.episodes, mean, color=colour, linestyle=dashes, linewidth=1.6, label=curve.family)
            ax.set(xscale="log", yscale="log", xlim=(1, study.episodes))
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(color="#ececec")
            ax.set_axisbelow(True)
        row[0].set_ylabel(f"ζ = {error:g}", fontsize=10)
    for ax, panel in zip(axes[0], panels, strict=True):
        ax.set_title(panel_title(study, panel), fontsize=10)
    worlds = max(len(curve.gap) for curve in curves)
    figure.supxlabel(f"episode   ({worlds} worlds a panel; {BANDS['ci']})", fontsize=10)
    figure.supylabel("cumulative regret", fontsize=10)
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, fontsize=9, loc="outside upper center", ncols=len(names))
    return figure


def advice_figure(advice: Advice) -> Figure:
    """What was learned, on one page: the policy, its values, the law beside the data, and how it did afterwards."""
    figure = Figure(figsize=(11, 7.6), layout="constrained")
    (left, right), (below, beside) = figure.subplots(2, 2)
    policy_panel(left, advice.policy, advice.last.name)
    value_panel(right, advice.plan, advice.policy)
    law_panel(below, advice)
    if advice.rewards:
        _comparison_panel(beside, advice)
    else:
        beside.set_axis_off()
    return figure


def policy_figure(policy: Policy, plan: Plan | None = None) -> Figure:
    """A heat map of any policy and, if a plan is given, what states are worth."""
    if not isinstance(policy, Policy):
        raise TypeError(f"policy is {policy!r:.60}; give a ucbf.Policy: ucbf.Policy(system, agent.policy)")
    figure = Figure(figsize=(11 if plan else 6, 4), layout="constrained")
    axes = figure.subplots(1, 2 if plan else 1, squeeze=False)[0]
    policy_panel(axes[0], policy)
    if plan is not None:
        value_panel(axes[1], plan, policy)
    return figure


def law_figure(learned: Disturbance, truth: Disturbance, most: int = 8) -> Figure:
    """A learned law of W beside the true one, a panel for each step; the first ``most`` of them."""
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
        _quiet(ax)
    axes[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("disturbance", fontsize=10)
    figure.supylabel("probability", fontsize=10)
    return figure


def policy_panel(ax: Axes, policy: Policy, day: str = "") -> None:
    """A heat map of what is done, over step and state; nothing done is left grey. day: for which it is."""
    amounts, states, words = policy.amounts.T, policy.states, policy.words
    idle = np.isclose(amounts, 0)
    half = words.unit / 2
    extent = (0.5, len(policy.step_names) + 0.5, states[0] - half, states[-1] + half)
    ax.set_facecolor("#e4e4e4")
    signed = bool(amounts.min() < 0)
    image = ax.imshow(
        np.ma.masked_where(idle & (words.amounts is not None), amounts),
        origin="lower",
        aspect="auto",
        cmap="RdBu" if signed else "viridis_r",
        norm=CenteredNorm() if signed else None,
        extent=extent,
        interpolation="nearest",
    )
    if float(words.unit).is_integer():
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    _name_steps(ax, policy)
    ax.set(ylabel=words.state)
    none = " (grey: none)" if idle.any() and words.amounts is not None else ""
    ax.set_title(_on(f"What to do: {words.action}{none}", day), loc="left", fontsize=11)
    colourbar = ax.figure.colorbar(image, ax=ax)
    colourbar.set_label(words.action)


def _on(title: str, day: str) -> str:
    return f"{title}, {day.removesuffix(' 00:00:00')}" if day else title


def value_panel(ax: Axes, plan: Plan, policy: Policy) -> None:
    """What states are worth beyond the first, at the first step, in the middle, and at the last."""
    H = len(policy.actions)
    for (colour, dashes), h in zip(STYLES, dict.fromkeys((0, H // 2, H - 1)), strict=False):
        label = policy.step_names[h] if policy.words.steps else f"{policy.words.step} {h + 1}"
        ax.plot(policy.states, plan.v[h] - plan.v[h, 0], color=colour, linestyle=dashes, label=label)
    ax.set(xlabel=policy.words.state, ylabel=f"reward expected beyond that of {policy.states[0]:g}")
    ax.set_title("What a state is worth", loc="left", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    _quiet(ax)


def law_panel(ax: Axes, advice: Advice) -> None:
    """The learned law of every step, middle and 10 to 90 %, beside what was measured before and after."""
    law, unit, H = advice.last.amounts, advice.ready.unit, advice.ready.horizon
    steps = np.arange(1, H + 1)
    low, middle, high = (np.array([_quantile(law, h, share) * unit for h in range(H)]) for share in (0.1, 0.5, 0.9))
    rng = np.random.default_rng(0)
    kind = advice.last.kind
    for part, colour, label in ((advice.training, "#999999", "learned from"), (advice.test, "#D55E00", "afterwards")):
        amounts = part.amounts[[not kind or k == kind for k in part.kinds]]
        amounts = amounts[:: math.ceil(amounts.size / MOST_POINTS) or 1]
        if len(amounts):
            jitter = rng.uniform(-0.25, 0.25, amounts.shape)
            size = 8 if amounts.size < 2000 else 3
            ax.scatter(steps + jitter, amounts, s=size, color=colour, alpha=0.4, linewidths=0, label=label)
    edges = np.arange(H + 1) + 0.5
    ax.stairs(high, edges, baseline=low, fill=True, color="#0072B2", alpha=0.2, label="learned, 10 to 90 %")
    ax.hlines(middle, edges[:-1], edges[1:], color="#0072B2", label="learned, middle")
    _name_steps(ax, advice.policy)
    ax.set(ylabel=advice.ready.amount_name)
    ax.set_title(_on(f"The law of the {advice.ready.amount_name}", kind), loc="left", fontsize=11)
    for handle in ax.legend(frameon=False, fontsize=8, ncols=2).legend_handles[:2]:
        if handle is not None:
            handle.set_alpha(0.9)
    _quiet(ax)


def _quantile(law: Disturbance, h: int, share: float) -> float:
    reached = np.cumsum(law.pmf[h % len(law.pmf)]) >= share - 1e-12
    return float(law.values[int(reached.argmax())])


def _comparison_panel(ax: Axes, advice: Advice) -> None:
    """How far the learned policy was ahead of each rule, with 95 % intervals."""
    rows = [row for row in advice.comparison() if row["policy"] != LEARNED][::-1]
    for y, row in enumerate(rows):
        colour = "#0072B2" if row["low"] > 0 else "#D55E00" if row["high"] < 0 else "#777777"
        ax.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=3, solid_capstyle="butt")
        ax.plot(row["ahead"], y, marker="o", color=colour)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(yticks=range(len(rows)), yticklabels=[row["policy"] for row in rows], ylim=(-0.7, len(rows) - 0.3))
    ax.set_xlabel(f"learned is ahead by (reward an episode)\n({len(advice.test)} episodes; 95 % intervals)")
    ax.set_title("Afterwards, against simple rules", loc="left", fontsize=11)
    _quiet(ax)


def _name_steps(ax: Axes, policy: Policy) -> None:
    names = policy.step_names
    every = max(1, math.ceil(len(names) / 12))
    at = range(0, len(names), every)
    ax.set(xticks=[h + 1 for h in at], xticklabels=[names[h] for h in at], xlim=(0.5, len(names) + 0.5))
    if policy.words.steps is None:
        ax.set_xlabel(policy.words.step)
    if max(len(names[h]) for h in at) > 4 and len(at) > 8:
        ax.tick_params(axis="x", labelrotation=60)


def _quiet(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#ececec")
    ax.set_axisbelow(True)


def _plain(label: str) -> str:
    """A label that matplotlib takes as it is: no mathematics, and not hidden for its first letter."""
    return label.replace("$", r"\$").removeprefix("_")


def _draw(ax: Axes, curve: Curve, style: tuple[str, object], band: str) -> None:
    colour, dashes = style
    mean = curve.gap.mean(axis=0)
    if band == "ci":
        low, high = interval(curve.gap)
    else:
        half = 0.5 * curve.gap.std(axis=0)
        low, high = mean - half, mean + half
    ax.fill_between(curve.episodes, np.maximum(low, 0), high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(curve.episodes, mean, color=colour, linestyle=dashes, linewidth=1.6, label=_plain(curve.label))


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
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False, fontsize=9)
    return figure

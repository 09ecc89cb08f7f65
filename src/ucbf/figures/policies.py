"""Policies: what to do in every step and state, and what states are worth."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ucbf.figures.style import STYLES, dated, name_steps, quiet
from ucbf.planning import Plan
from ucbf.policies import Policy


def policy_figure(policy: Policy, plan: Plan | None = None) -> Figure:
    """A heat map of any policy and, if a plan is given, what states are worth; a row for each context."""
    if not isinstance(policy, Policy):
        raise TypeError(f"policy is {policy!r:.60}; give a ucbf.Policy: ucbf.Policy(system, agent.policy)")
    E = policy.system.n_contexts
    figure = Figure(figsize=(11 if plan else 6, 4 * E), layout="constrained")
    axes = figure.subplots(E, 2 if plan else 1, squeeze=False)
    for e, row in enumerate(axes):
        policy_panel(row[0], policy, f"context {e}" if E > 1 else "", context=e)
        if plan is not None:
            value_panel(row[1], plan, policy, context=e)
    return figure


def policy_panel(ax: Axes, policy: Policy, day: str = "", context: int | None = None) -> None:
    """A heat map of the amount chosen, over step and state; grey where nothing is done. day: named in the title."""
    amounts, states, words = policy.quantities_in(context).T, policy.states, policy.words
    idle = np.isclose(amounts, 0)
    half = words.unit / 2
    extent = (0.5, len(policy.step_names) + 0.5, states[0] - half, states[-1] + half)
    ax.set_facecolor("#e4e4e4")
    signed = bool(amounts.min() < 0)
    image = ax.imshow(
        np.ma.masked_where(idle & (words.action_quantities is not None), amounts),
        origin="lower",
        aspect="auto",
        cmap="RdBu" if signed else "viridis_r",
        norm=CenteredNorm() if signed else None,
        extent=extent,
        interpolation="nearest",
    )
    if float(words.unit).is_integer():
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    name_steps(ax, policy)
    ax.set(ylabel=words.state)
    none = " (grey: none)" if idle.any() and words.action_quantities is not None else ""
    ax.set_title(dated(f"What to do: {words.action}{none}", day), loc="left", fontsize=11)
    colourbar = ax.figure.colorbar(image, ax=ax)
    colourbar.set_label(words.action)


def value_panel(ax: Axes, plan: Plan, policy: Policy, context: int = 0, day: str = "") -> None:
    """What states are worth beyond the first, at the first step, in the middle, and at the last. day: in the title."""
    H, S = len(policy.actions), policy.system.space.n_states
    v = plan.v[:, context * S : (context + 1) * S]
    for (colour, dashes), h in zip(STYLES, dict.fromkeys((0, H // 2, H - 1)), strict=False):
        label = policy.step_names[h] if policy.words.steps else f"{policy.words.step} {h + 1}"
        ax.plot(policy.states, v[h] - v[h, 0], color=colour, linestyle=dashes, label=label)
    ax.set(xlabel=policy.words.state, ylabel=f"reward expected beyond that of {policy.states[0]:g}")
    ax.set_title(dated("What a state is worth", day), loc="left", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    quiet(ax)

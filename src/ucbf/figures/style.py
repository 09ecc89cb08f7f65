"""What the figures share: colours and dashes, axes, titles, and files that are the same wherever they are made."""

from __future__ import annotations

import math
import textwrap

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ucbf.policies import Policy

matplotlib.use("Agg")
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
    ("#8B5A2B", "-"),  # in place of their yellow, which fades on white
]
BANDS = {"sd": "band: ±0.5 standard deviation over worlds", "ci": "band: 95 % bootstrap interval of the mean"}


def quiet(ax: Axes) -> None:
    """Show axes below and to the left only, and a grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#ececec")
    ax.set_axisbelow(True)


LETTER, BOLD_LETTER, ENTRY = 0.075, 0.105, 0.65  # inches: of a letter, and beside the name in a legend
BOLD = {"weight": "bold", "size": 12}  # of the sentence that says what a figure shows


def finding(figure: Figure, text: str) -> None:
    """Say what a figure shows, above all of it, at the left."""
    figure.suptitle(_wrapped(figure, text), x=0.01, ha="left", fontproperties=BOLD)


def legend_above(figure: Figure, ax: Axes, text: str) -> None:
    """The legend of a figure with several panels, in one line above them; over it the finding, if there is one."""
    handles, names = ax.get_legend_handles_labels()
    title = {"title": _wrapped(figure, text), "title_fontproperties": BOLD, "alignment": "left"} if text else {}
    widest = ENTRY + LETTER * max(map(len, names))
    columns = min(len(names), 7, max(int(figure.get_figwidth() / widest), 1))
    figure.legend(handles, names, loc="outside upper center", ncols=columns, frameon=False, fontsize=9, **title)


def _wrapped(figure: Figure, text: str) -> str:
    """The finding in lines that fit."""
    return textwrap.fill(plain(text), int(figure.get_figwidth() / BOLD_LETTER))


def plain(label: str) -> str:
    """A label that matplotlib shows as it is: $ starts no formula, and a first _ does not hide it from the legend."""
    return label.replace("$", r"\$").removeprefix("_")


def name_steps(ax: Axes, policy: Policy, most: int = 12) -> None:
    """Name the steps along the x axis, ``most`` of them at most."""
    names = policy.step_names
    every = max(1, math.ceil(len(names) / most))
    at = range(0, len(names), every)
    ax.set(xticks=[h + 1 for h in at], xticklabels=[names[h] for h in at], xlim=(0.5, len(names) + 0.5))
    if policy.words.steps is None:
        ax.set_xlabel(policy.words.step)
    crowded = max(len(names[h]) for h in at) > 4 and len(at) > 8
    ax.tick_params(axis="x", labelrotation=60 if crowded else 0)


def dated(title: str, day: str) -> str:
    """A title, and the day or kind of day that it is about, if there is one."""
    return f"{title}, {day.removesuffix(' 00:00:00')}" if day else title

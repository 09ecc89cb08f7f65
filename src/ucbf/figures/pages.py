"""The pictures of a page of HTML: each panel on its own, in the colours of the page, legible on a phone."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import partial
from textwrap import fill

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from ucbf.advice import Advice, EpisodeAdvice, OrderAdvice, Picture, Pictures
from ucbf.figures.advice import comparison_panel
from ucbf.figures.laws import law_panel
from ucbf.figures.policies import policy_panel, value_panel
from ucbf.figures.style import name_steps, quiet

SIZE = 4.6, 3.1  # inches; a phone shows about as many, so that letters keep their size there
SHOWN, AHEAD = 60, 14  # steps of a forecast: measured, and to come
MOST_NAMES = 7  # of steps along an axis
DPI = 200  # of what is stored as pixels
# Styles of the page take the place of these colours: it may be dark.
COLOURS = {
    "#000000": "currentColor",
    "#ececec": "var(--grid)",
    "#e4e4e4": "var(--idle)",
    "#0072b2": "var(--blue)",
    "#d55e00": "var(--orange)",
    "#777777": "var(--grey)",
    "#999999": "var(--grey)",
}


def page_pictures(advice: Advice) -> Pictures:
    """The pictures of ``ucbf.advice.html``: policies, what states are worth, the learned law, and the comparison."""
    words, amount = advice.policy.words, advice.preset.amount_name

    def policy(ax: Axes, each: EpisodeAdvice) -> None:
        policy_panel(ax, each.policy, each.name)
        name_steps(ax, each.policy, MOST_NAMES)

    def law(ax: Axes) -> None:
        law_panel(ax, advice)
        name_steps(ax, advice.policy, MOST_NAMES)

    return Pictures(
        policies={
            kind: _picture(
                partial(policy, each=each),
                f"policy-{k}",
                f"A map of what to do, by {words.step} and {words.state}; the rules beside it say the same.",
            )
            for k, (kind, each) in enumerate(advice.by_kind.items())
        },
        value=_picture(
            lambda ax: value_panel(ax, advice.plan, advice.policy, day=advice.last.name),
            "value",
            f"Lines: what more {words.state} is worth, at the first {words.step}, in the middle and at the last.",
        ),
        law=_picture(
            law,
            "law",
            f"The {amount} that was measured at every {words.step}, as points, over what was learned: the middle, and "
            "the range from 10 to 90 %.",
        ),
        comparison=_comparison(advice),
    )


def order_pictures(advice: OrderAdvice) -> Pictures:
    """The pictures of a page on orders: the demand with what is expected, and the comparison."""
    return Pictures(
        policies={},
        value=None,
        law=_picture(
            lambda ax: forecast_panel(ax, advice),
            "forecast",
            "The demand of the last steps, and what is expected of those to come: the mean, and the range from 10 to "
            "90 %.",
        ),
        comparison=_comparison(advice),
    )


def _comparison(advice: Advice | OrderAdvice) -> Picture | None:
    """How the policies compare; None where nothing followed."""
    if not advice.rewards:
        return None
    return _picture(
        lambda ax: comparison_panel(ax, advice),
        "comparison",
        "How far the learned policy was ahead of every other, with 95 % intervals; the table has the numbers.",
    )


def forecast_panel(ax: Axes, advice: OrderAdvice) -> None:
    """The last demands, and the forecast."""
    series = advice.training.series.values
    shown, ahead = series[-SHOWN:], advice.forecast(AHEAD)
    steps = range(1, AHEAD + 1)
    ax.plot(range(-len(shown) + 1, 1), shown, color="#777777", linewidth=1, label="measured")
    ax.fill_between(
        steps,
        [row["low"] for row in ahead],
        [row["high"] for row in ahead],
        color="#0072B2",
        alpha=0.25,
        label="10 to 90 %",
    )
    ax.plot(steps, [row["mean"] for row in ahead], color="#0072B2", label="expected")
    ax.set(xlabel="step, the last of the series 0", ylabel=advice.shop.amount_name, ylim=(0, None))
    ax.set_title("What is expected", loc="left", fontsize=11)
    ax.legend(frameon=False)
    quiet(ax)


def _picture(draw: Callable[[Axes], None], name: str, alt: str) -> Picture:
    """One panel as a picture; its title becomes the caption.

    name: begins all ids in the picture, so that no two pictures of a page share one
    """
    with rc_context({"font.size": 10.5, "svg.fonttype": "path", "axes.facecolor": "none", "figure.facecolor": "none"}):
        figure = Figure(figsize=SIZE, layout="constrained")
        ax = figure.subplots()
        draw(ax)
        for points in ax.collections:
            if isinstance(points, PathCollection):
                points.set_rasterized(True)  # thousands of them would make a page of megabytes
        caption = ax.get_title(loc="left")
        ax.set_title("", loc="left")
        ax.set_ylabel(fill(ax.get_ylabel(), 24))
        _legend_below(ax, figure)
        content = io.StringIO()
        figure.savefig(content, format="svg", dpi=DPI, metadata={"Date": None})
    return Picture(_inline(content.getvalue(), name), caption, alt)


def _legend_below(ax: Axes, figure: Figure) -> None:
    """Move a legend out of a panel that is too small for it."""
    inside = ax.get_legend()
    if inside is None:
        return
    inside.remove()
    handles, labels = ax.get_legend_handles_labels()
    columns = 3 if len("".join(labels)) < 25 else 2
    below = figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    for handle in below.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set(alpha=0.9, sizes=[20.0])


def _inline(svg: str, name: str) -> str:
    """An SVG file as an element of a page: names of its own, colours of the page, nothing that is fetched."""
    svg = svg[svg.index("<svg") :]
    for unwanted in ("<metadata>.*?</metadata>", "<!--.*?-->", "<style.*?</style>"):
        svg = re.sub(unwanted, "", svg, flags=re.DOTALL)
    svg = re.sub(r'^<svg [^>]*?(viewBox="[^"]*")[^>]*>', r"<svg \1>", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, ours in COLOURS.items():
        svg = svg.replace(colour, ours)
    return re.sub(r"\n\s*", "\n", svg).strip()

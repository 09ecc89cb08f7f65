"""The pictures of a page of HTML: each panel on its own, in the colours of the page, legible on a phone."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from ucbf.advice import Advice, Picture, Pictures
from ucbf.figures.advice import comparison_panel
from ucbf.figures.laws import law_panel
from ucbf.figures.policies import policy_panel, value_panel

WIDTH, HEIGHT = 4.6, 3.1  # inches; a phone is about as wide, so that letters keep their size there
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
    policies = {
        kind: _picture(
            lambda ax, each=each: policy_panel(ax, each.policy, each.name),  # type: ignore[misc]
            f"policy-{k}",
            f"A map of what to do, by {words.step} and {words.state}; the rules beside it say the same.",
        )
        for k, (kind, each) in enumerate(advice.by_kind.items())
    }
    value = _picture(
        lambda ax: value_panel(ax, advice.plan, advice.policy),
        "value",
        f"Lines: what more {words.state} is worth, at the first {words.step}, in the middle and at the last.",
    )
    law = _picture(
        lambda ax: law_panel(ax, advice),
        "law",
        f"The {amount} that was measured at every {words.step}, as points, over the middle and the range from 10 to 90 "
        "% of what was learned.",
    )
    if not advice.rewards:
        return Pictures(policies, value, law, None)
    comparison = _picture(
        lambda ax: comparison_panel(ax, advice),
        "comparison",
        "How far the learned policy was ahead of every other, with 95 % intervals; the table beside it has the numbers.",
        HEIGHT * 0.8,
    )
    return Pictures(policies, value, law, comparison)


def _picture(draw: Callable[[Axes], None], name: str, alt: str, height: float = HEIGHT) -> Picture:
    """One panel as a picture; its title becomes the caption. name: no other picture of the page has it"""
    with rc_context({"font.size": 10.5, "svg.fonttype": "path"}):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        figure.patch.set_alpha(0)
        ax = figure.subplots()
        ax.patch.set_alpha(0)
        draw(ax)
        for points in ax.collections:
            if isinstance(points, PathCollection):
                points.set_rasterized(True)  # thousands of them would make a page of megabytes
        caption = ax.get_title(loc="left")
        ax.set_title("", loc="left")
        content = io.StringIO()
        figure.savefig(content, format="svg", dpi=DPI, metadata={"Date": None})
    return Picture(_inline(content.getvalue(), name), caption, alt)


def _inline(svg: str, name: str) -> str:
    """An SVG file as an element of a page: names of its own, colours of the page, nothing that is fetched."""
    svg = svg[svg.index("<svg") :]
    for unwanted in ("<metadata>.*?</metadata>", "<!--.*?-->", "<style.*?</style>", r' xmlns(:\w+)?="[^"]*"'):
        svg = re.sub(unwanted, "", svg, flags=re.DOTALL)
    svg = re.sub(r'^<svg [^>]*?(viewBox="[^"]*")[^>]*>', r"<svg \1>", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, ours in COLOURS.items():
        svg = svg.replace(colour, ours)
    return re.sub(r"\n\s*", "\n", svg).strip()

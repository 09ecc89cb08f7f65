"""Figures, one kind in each file; each function gives a matplotlib Figure, or draws one panel."""

from __future__ import annotations

from ucbf.figures.advice import advice_figure
from ucbf.figures.gaps import SCALES, gap_figure
from ucbf.figures.growth import growth_figure
from ucbf.figures.horizons import horizon_figure
from ucbf.figures.laws import MOST_POINTS, law_figure, law_panel
from ucbf.figures.pages import order_pictures, page_pictures
from ucbf.figures.policies import policy_figure, policy_panel, value_panel
from ucbf.figures.regrets import regret_figure
from ucbf.figures.style import BANDS, STYLES

__all__ = [
    "BANDS",
    "MOST_POINTS",
    "SCALES",
    "STYLES",
    "advice_figure",
    "gap_figure",
    "growth_figure",
    "horizon_figure",
    "law_figure",
    "law_panel",
    "order_pictures",
    "page_pictures",
    "policy_figure",
    "policy_panel",
    "regret_figure",
    "value_panel",
]

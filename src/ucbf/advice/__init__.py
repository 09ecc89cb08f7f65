"""From a measured series to a policy: learn from its first part, judge by the rest, beside simple rules."""

from __future__ import annotations

from ucbf.advice.caveats import find_caveats
from ucbf.advice.forecasts import forecast_remark, mean_absolute_errors
from ucbf.advice.judging import LEARNED, STILL_LEARNING
from ucbf.advice.learning import learn
from ucbf.advice.lost_sales import censored_remark, missing_remark
from ucbf.advice.order_sections import order_sections
from ucbf.advice.ordering import OrderAdvice, learn_orders
from ucbf.advice.page import Picture, Pictures, html, markdown, summary
from ucbf.advice.planner import EpisodeAdvice
from ucbf.advice.promotions import Promotions, promotions
from ucbf.advice.regimes import RegimeAdvice, Regimes
from ucbf.advice.remarks import Remark
from ucbf.advice.result import Advice
from ucbf.advice.sections import Sections, sections_of
from ucbf.advice.ways_to_order import Played
from ucbf.data.sizes import nice_ceiling, rounding_effect, suggested_parameters

__all__ = [
    "LEARNED",
    "STILL_LEARNING",
    "Advice",
    "EpisodeAdvice",
    "OrderAdvice",
    "Picture",
    "Pictures",
    "Played",
    "Promotions",
    "RegimeAdvice",
    "Regimes",
    "Remark",
    "Sections",
    "censored_remark",
    "find_caveats",
    "forecast_remark",
    "html",
    "learn",
    "learn_orders",
    "markdown",
    "mean_absolute_errors",
    "missing_remark",
    "nice_ceiling",
    "order_sections",
    "promotions",
    "rounding_effect",
    "sections_of",
    "suggested_parameters",
    "summary",
]

"""From a measured series to a policy: learn from its first part, judge by the rest, beside simple rules."""

from __future__ import annotations

from ucbf.advice.caveats import find_caveats
from ucbf.advice.judging import LEARNED, STILL_LEARNING
from ucbf.advice.learning import learn
from ucbf.advice.page import summary
from ucbf.advice.planner import EpisodeAdvice
from ucbf.advice.result import Advice
from ucbf.advice.sizes import nice_ceiling, rounding_effect, suggested_parameters

__all__ = [
    "LEARNED",
    "STILL_LEARNING",
    "Advice",
    "EpisodeAdvice",
    "find_caveats",
    "learn",
    "nice_ceiling",
    "rounding_effect",
    "suggested_parameters",
    "summary",
]

"""From a measured series to a policy: learn from its first part, judge by the rest, beside simple rules."""

from __future__ import annotations

from ucbf.advice.advise import Advice, advise
from ucbf.advice.doubts import doubts
from ucbf.advice.field import LEARNED, LEARNING, Day
from ucbf.advice.page import summary
from ucbf.advice.sizes import nice, rounding, suggested
from ucbf.data.outliers import outliers

__all__ = [
    "LEARNED",
    "LEARNING",
    "Advice",
    "Day",
    "advise",
    "doubts",
    "nice",
    "outliers",
    "rounding",
    "suggested",
    "summary",
]

"""Ways of knowing the distribution of W, one file each; base.py is the contract."""

from __future__ import annotations

from typing import Any

from ucbf.laws.base import Law
from ucbf.laws.counts import Counts
from ucbf.laws.levels import Levels
from ucbf.laws.recent import Recent
from ucbf.named import made

LAWS: dict[str, type[Law]] = {kind.name: kind for kind in (Counts, Recent, Levels)}


def make_law(given: Law | str | dict[str, Any]) -> Law:
    """A way of knowing W, the name of one, or its name and parameters: ``{"name": "Counts", "stationary": True}``."""
    law: Law = made("law", given, LAWS)
    return law


__all__ = ["LAWS", "Counts", "Law", "Levels", "Recent", "make_law"]

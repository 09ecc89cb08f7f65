"""Ways of learning f while acting, one file each, and the names by which studies know them."""

from __future__ import annotations

from typing import Any

from ucbf.checks import one_of
from ucbf.estimators.base import Estimate, Estimator, Named
from ucbf.estimators.linear import LinearFeatures
from ucbf.estimators.offsets import OffsetPosterior
from ucbf.estimators.partial_fit import PartialFit

ESTIMATORS: dict[str, type[Named]] = {kind.name: kind for kind in (OffsetPosterior, LinearFeatures, PartialFit)}


def make_estimator(given: Named | str | dict[str, Any]) -> Named:
    """An estimator, the name of one, or a name with parameters: ``{"name": "OffsetPosterior", "threshold": 0.02}``."""
    if isinstance(given, Named):
        return given
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, dict) or "name" not in given:
        raise TypeError(
            f"estimator is {given!r:.60}; give one of ucbf.estimators, its name, or its name and parameters in a table"
        )
    params = {key: value for key, value in given.items() if key != "name"}
    return ESTIMATORS[one_of("estimator", given["name"], ESTIMATORS)](**params)


__all__ = ["ESTIMATORS", "Estimate", "Estimator", "LinearFeatures", "OffsetPosterior", "PartialFit", "make_estimator"]

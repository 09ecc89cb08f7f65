"""Ways of knowing f, one file each: exactly as told, or repaired while acting by an estimator."""

from __future__ import annotations

from typing import Any

from ucbf.models.base import Estimate, Estimator, Model
from ucbf.models.exact import Exact
from ucbf.models.linear import LinearFeatures
from ucbf.models.offsets import OffsetPosterior
from ucbf.models.regressor import PartialFit
from ucbf.named import made

ESTIMATORS: dict[str, type[Model]] = {kind.name: kind for kind in (OffsetPosterior, LinearFeatures, PartialFit)}


def make_estimator(given: Model | str | dict[str, Any]) -> Model:
    """An estimator, the name of one, or a name with parameters: ``{"name": "OffsetPosterior", "threshold": 0.02}``."""
    model: Model = made("estimator", given, ESTIMATORS)
    return model


__all__ = [
    "ESTIMATORS",
    "Estimate",
    "Estimator",
    "Exact",
    "LinearFeatures",
    "Model",
    "OffsetPosterior",
    "PartialFit",
    "make_estimator",
]

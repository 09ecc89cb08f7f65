"""Ways of learning f while acting, for ``estimator=``: the public names of :mod:`ucbf.models`."""

from __future__ import annotations

from ucbf.models import ESTIMATORS, Estimate, Estimator, LinearFeatures, OffsetPosterior, PartialFit, make_estimator

__all__ = ["ESTIMATORS", "Estimate", "Estimator", "LinearFeatures", "OffsetPosterior", "PartialFit", "make_estimator"]

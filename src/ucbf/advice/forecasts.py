"""How good a forecast is: its error in the test episodes, beside that of the mean of every step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.judging import half_interval
from ucbf.advice.remarks import Remark
from ucbf.advice.result import Advice
from ucbf.wording import show_count, show_number

Floats = NDArray[np.float64]


def absolute_errors(advice: Advice) -> tuple[Floats, Floats]:
    """[K] the mean in each test episode: of the forecast, and of the mean of every step of the past."""
    training = advice.judged.training
    means = training.profiles_of(np.arange(len(advice.training)))
    usual = np.array([means[kind] for kind in advice.test.kinds])
    errors = np.abs(advice.errors[1].values), np.abs(advice.test.values - usual)
    return errors[0].mean(axis=1), errors[1].mean(axis=1)


def mean_absolute_errors(advice: Advice) -> tuple[float, float]:
    """In the test episodes: of the forecast, and of the mean of every step of the past; nan where nothing followed."""
    if not len(advice.test):
        return np.nan, np.nan
    forecast, means = absolute_errors(advice)
    return float(forecast.mean()), float(means.mean())


def quantile_remark(advice: Advice, names: str) -> Remark:
    """Whether the quantiles of a forecast were used, and by what score; names: of their columns."""
    found = advice.quantile_scores
    if found is None:
        return Remark(f"Of the quantiles ({names}) only the median was used: there are too few episodes.")
    way = "were used" if found.are_better else "were not used, the median only"
    return Remark(
        f"The quantiles of the forecast ({names}), corrected by where the {advice.preset.amount_name} stood among them "
        f"before, {way}: they would have lost {found.quantiles:.4g} a step by the pinball loss, and the median with "
        f"its errors {found.middle:.4g}, in {show_count(found.steps, 'step')} to learn from, each predicted from the "
        "episodes before it."
    )


def forecast_remark(advice: Advice) -> Remark:
    """How good the forecast is, with the caveats if the means of the past are better by more than chance."""
    if not len(advice.test):
        return Remark("How good the forecast is was not judged: all episodes were learned from.", first=True)
    forecast, means = absolute_errors(advice)
    more = forecast - means
    compared = (
        f"in the {show_count(len(advice.test), 'episode')} that followed the forecast was off by "
        f"{show_number(float(forecast.mean()))} a step, on average, and the mean of each step of the past by "
        f"{show_number(float(means.mean()))}."
    )
    reach = half_interval(more)
    if more.mean() > reach:
        return Remark(f"The forecast is worse than the mean of each step: {compared}", first=True)
    if more.mean() > -reach:
        return Remark(f"The forecast cannot be told apart from the mean of each step: {compared}")
    return Remark(f"The forecast is better than the mean of each step: {compared}")

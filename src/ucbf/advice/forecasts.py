"""How good a forecast is: its error in the test episodes, beside that of the mean of every step."""

from __future__ import annotations

import numpy as np

from ucbf.advice.remarks import Remark
from ucbf.advice.result import Advice
from ucbf.wording import show_count, show_number


def mean_absolute_errors(advice: Advice) -> tuple[float, float]:
    """In the test episodes: of the forecast, and of the mean of every step of the past; nan where nothing followed."""
    if not len(advice.test):
        return np.nan, np.nan
    training = advice.judged.training
    means = training.profiles_of(np.arange(len(advice.training)))
    usual = np.array([means[kind] for kind in advice.test.kinds])
    return float(np.abs(advice.errors[1].values).mean()), float(np.abs(advice.test.values - usual).mean())


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
    """How good the forecast is, with the caveats if the means of the past are better."""
    forecast, means = mean_absolute_errors(advice)
    if np.isnan(forecast):
        return Remark("How good the forecast is was not judged: all episodes were learned from.", first=True)
    compared = (
        f"In the {show_count(len(advice.test), 'episode')} that followed the forecast was off by "
        f"{show_number(forecast)} a step, on average, and the mean of each step of the past by {show_number(means)}."
    )
    if forecast <= means:
        return Remark(compared)
    return Remark(f"The forecast is worse than the mean of each step: {compared[0].lower()}{compared[1:]}", first=True)

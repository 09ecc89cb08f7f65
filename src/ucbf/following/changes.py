"""Whether the amounts are still those that were learned from, and intervals of means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.following.model import Model

SIGNIFICANT = 0.001  # the largest p-value at which a change is reported
FEWEST = 8  # steps, for a verdict
CONFIDENCE = 0.95


class Change(NamedTuple):
    """The amounts since, beside those that were learned from; less what was expected of each, if anything."""

    mean: float  # of the amounts since
    learned: float  # of those that were learned from, at the same steps
    p: float  # how likely a difference as large is by chance; nan where that is not told

    @property
    def has_changed(self) -> bool:
        """Whether it is more than chance."""
        return bool(self.p < SIGNIFICANT)

    @property
    def share(self) -> float:
        """By what share of the learned mean; nan where that is 0."""
        return (self.mean - self.learned) / abs(self.learned) if self.learned else np.nan


def change(model: Model, steps: Sequence[tuple[str, int, float]]) -> Change | None:
    """Whether amounts have changed: the kind of an episode, the place in it, the amount less what was expected of it.

    None without any.

    A t-test of the deviations from the learned means, in learned standard deviations of their steps. It counts that
    those means are themselves known from so many amounts only, and that neighbours which depend on each other tell
    less.
    """
    if not steps:
        return None
    amounts = np.array([amount for _, _, amount in steps])
    means = np.array([model.kinds[kind].mean[h] for kind, h, _ in steps])
    found = Change(float(amounts.mean()), float(means.mean()), np.nan)
    spreads = np.array([model.kinds[kind].spread[h] for kind, h, _ in steps])
    usual = float(spreads.mean()) or float(np.abs(means).mean()) or 1.0
    spreads = np.where(spreads > 0, spreads, usual)
    z, n = (amounts - means) / spreads, len(steps)
    if n < FEWEST:
        return found
    unknown = _error_of_means(model, steps)
    error = float(np.sqrt((z.var(ddof=1) / n + unknown) * model.dependence))
    if not error:
        return found._replace(p=1.0 if not z.any() else 0.0)
    return found._replace(p=2 * float(_t_below(-abs(float(z.mean())) / error, n - 1)))


def _error_of_means(model: Model, steps: Sequence[tuple[str, int, float]]) -> float:
    """The variance of the mean deviation that comes from not knowing the means any better."""
    share: dict[tuple[str, int], int] = {}
    for kind, h, _ in steps:
        share[kind, h] = share.get((kind, h), 0) + 1
    return sum((n / len(steps)) ** 2 / max(model.kinds[kind].counts[h], 1) for (kind, h), n in share.items())


def half_interval(values: NDArray[np.float64], confidence: float = CONFIDENCE) -> float:
    """Half the width of the confidence interval of a mean, by Student's t; infinite for a single value."""
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return np.inf
    return float(stdtrit(n - 1, (1 + confidence) / 2) * values.std(ddof=1) / np.sqrt(n))


def _t_below(t: float, freedom: int) -> float:
    from scipy.special import stdtr

    return float(stdtr(freedom, t))

"""f by any regressor that learns in batches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import real
from ucbf.limits import MOST_SEEN, Limit, refuse_outside
from ucbf.models.base import Estimate
from ucbf.models.features import FeatureEstimator, Features
from ucbf.system import System


class PartialFit(FeatureEstimator):
    """Leaves the correction to a regressor with scikit-learn's ``partial_fit`` and ``predict``.

    It is fitted to the residuals of every episode at once; its inputs are the features and, one column each, the steps,
    so that the mean of W is not taken for a part of f. A regressor does not say how far off it may be: the bound is
    Theorem 3's, ζ/2 · sqrt(d/n) after n observations, and d is for the user to choose.

    A saved agent keeps what the regressor was shown, not the regressor: give :func:`ucbf.load` a new one, and it is
    shown all of it again, in the same batches.

    Parameters
    ----------
    regressor
        Has ``partial_fit(X, y)`` and ``predict(X)``.
    features
        As for :class:`LinearFeatures`.
    d
        How many observations it needs, about, until it is any good.
    """

    name = "PartialFit"

    def __init__(self, regressor: Any = None, features: Features = "affine", *, d: float = 100.0) -> None:
        if not (hasattr(regressor, "partial_fit") and hasattr(regressor, "predict")):
            raise TypeError(
                f"regressor is {regressor!r:.60}; give one with partial_fit and predict, such as SGDRegressor, to "
                "PartialFit, and for an agent that was saved: load(path, estimator=PartialFit(regressor, ...))"
            )
        super().__init__(features, d=real("d", d, 0, open_low=True))
        self.regressor = regressor

    def start(self, system: System) -> int:
        """One row, or H if the features depend on the step."""
        rows = super().start(system)
        self.horizon, self.half = system.n_steps, system.slack
        self.shown: list[tuple[int, int, int, int]] = []  # h, s, a, residual
        self.batches: list[int] = [0]  # where in ``shown`` each call of partial_fit ended
        self.last: Estimate | None = None
        return rows

    def observe(self, h: int, s: int, a: int, residual: int) -> None:
        """Keep for the next batch."""
        self.shown.append((h, s, a, residual))

    def estimate(self) -> Estimate | None:
        """Fit what is new, then predict every pair, on average over the steps."""
        if len(self.shown) == self.batches[-1]:
            return None
        self._fit(self.batches[-1], len(self.shown))
        rows, S, A, d = self.table.shape
        correction = np.zeros((rows, S, A))
        for h in range(self.horizon):
            inputs = np.zeros((S * A, d + self.horizon))
            inputs[:, :d] = self.table[h % rows].reshape(S * A, d)
            inputs[:, d + h] = 1
            predicted = np.asarray(self.regressor.predict(inputs), float).reshape(S, A)
            correction[h % rows] += predicted - predicted.mean() if rows > 1 else predicted / self.horizon
        correction -= correction.mean()
        error = self.half * min(1.0, float(np.sqrt(self.params["d"] / len(self.shown))))
        return Estimate(correction, np.full(correction.shape, error))

    def _fit(self, begin: int, end: int) -> None:
        h, s, a, residual = np.array(self.shown[begin:end]).T
        d = self.table.shape[3]
        inputs = np.zeros((end - begin, d + self.horizon))
        inputs[:, :d] = self.table[h % len(self.table), s, a]
        inputs[np.arange(end - begin), d + h] = 1
        self.regressor.partial_fit(inputs, residual.astype(float))
        self.batches.append(end)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """What the regressor was shown, and in which batches."""
        return {"shown": np.array(self.shown, np.int64).reshape(-1, 4), "batches": np.array(self.batches)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Show all of it again."""
        shown, batches = (state.get(name, np.empty(0)) for name in ("shown", "batches"))
        kinds = {shown.dtype, batches.dtype}
        if shown.shape[1:] != (4,) or batches.ndim != 1 or kinds != {np.dtype(np.int64)}:
            raise ValueError("it does not hold what the regressor was shown, and in which batches")
        _, S, A, _ = self.table.shape
        refuse_outside("shown", shown, Limit([0, 0, 0, -MOST_SEEN], [self.horizon - 1, S - 1, A - 1, MOST_SEEN]))
        if batches[:1].tolist() != [0] or (np.diff(batches) <= 0).any() or batches[-1] > len(shown):
            raise ValueError(f"its batches are {batches.tolist()!r:.60}; they must grow from 0 to at most {len(shown)}")
        self.shown = [tuple(row) for row in shown.tolist()]
        self.batches = [0]
        for begin, end in itertools.pairwise(batches.tolist()):
            self._fit(begin, end)

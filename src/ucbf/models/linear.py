"""f linear in known features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import real
from ucbf.limits import MOST_SEEN, SUM, Limit, Limits, refuse_outside
from ucbf.models.base import Estimate
from ucbf.models.features import FeatureEstimator, Features
from ucbf.system import System


class LinearFeatures(FeatureEstimator):
    """Knows that f is as told plus θ·φ(s, a), and finds θ by recursive least squares.

    The mean of W is a coefficient of its own for each step, and harmless. The bound on the error is the usual one of
    least squares, β times the distance of φ from its mean in the norm of the inverse design matrix,
    β = σ sqrt(2 log(2SA/p)) + sqrt(ridge)·size with σ estimated: for all pairs at once with probability 1-p, as if the
    design had been chosen beforehand, and but for a constant. Rounded to whole states f̂ is exact once the error is
    below ½.

    Parameters
    ----------
    features
        "affine" (s and a), "quadratic" (and their products), "actions" (an effect of each action), an array [S, A, d]
        or [H, S, A, d], or a function of (states, actions) that returns d arrays.
    p
        Probability with which the bound may fail.
    ridge
        Weight of the regularisation.
    size
        A bound on the length of θ, for the part of the error that the regularisation adds.
    """

    name = "LinearFeatures"

    def __init__(self, features: Features = "affine", *, p: float = 0.01, ridge: float = 1.0, size: float = 1.0):
        super().__init__(
            features,
            p=real("p", p, 0, 1, open_low=True),
            ridge=real("ridge", ridge, 0, open_low=True),
            size=real("size", size, 0),
        )

    def start(self, system: System) -> int:
        """One row, or H if the features depend on the step."""
        rows = super().start(system)
        H, d = system.n_steps, self.table.shape[3]
        self.moment = np.zeros(d + H)
        self.inverse = self._first_inverse()
        self.seen = np.zeros(2)  # observations; sum of the squares that are left
        self.news = np.zeros(1, np.int64)
        return rows

    def observe(self, h: int, s: int, a: int, residual: int) -> None:
        """One step of recursive least squares (Sherman-Morrison)."""
        d = self.table.shape[3]
        x = np.zeros(len(self.moment))
        x[:d] = self.table[h % len(self.table), s, a]
        x[d + h] = 1
        ahead = self.inverse @ x
        growth = 1 + float(x @ ahead)
        left = residual - float(ahead @ self.moment)  # x · (inverse @ moment)
        self.inverse -= np.outer(ahead, ahead) / growth
        self.moment += residual * x
        self.seen += 1, left * left / growth
        self.news[0] = 1

    @property
    def theta(self) -> NDArray[np.float64]:
        """[d] the coefficients as believed now."""
        theta: NDArray[np.float64] = (self.inverse @ self.moment)[: self.table.shape[3]]
        return theta

    def estimate(self) -> Estimate | None:
        """θ̂·φ, and β |φ|."""
        if not self.news[0]:
            return None
        self.news[0] = 0
        (_, S, A, d), params = self.table.shape, self.params
        noise = max(np.sqrt(self.seen[1] / max(self.seen[0] - len(self.moment), 1)), 0.5)  # of whole numbers
        beta = noise * np.sqrt(2 * np.log(2 * S * A / params["p"])) + np.sqrt(params["ridge"]) * params["size"]
        around = self.table - self.table.mean(axis=(0, 1, 2))  # what all pairs have in common is harmless
        norm = np.einsum("hsai,ij,hsaj->hsa", around, self.inverse[:d, :d], around)
        return Estimate(self.table @ self.theta, beta * np.sqrt(np.maximum(norm, 0)))

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """The design and what it says."""
        return {"inverse": self.inverse, "moment": self.moment, "seen": self.seen, "news": self.news}

    def limits(self, stored: dict[str, NDArray[Any]]) -> Limits:
        """The inverse of a design is positive definite and only shrinks as more is seen."""
        inverse, first = stored["inverse"], self._first_inverse()
        refuse_outside("inverse", inverse, Limit(-first.max(), first.max()))
        if not np.array_equal(inverse, inverse.T) or np.linalg.eigvalsh(inverse)[0] < -1e-9 * first.max():
            raise ValueError("its inverse is not that of least squares: symmetric, with no eigenvalue below 0")
        return {"moment": Limit(-SUM, SUM), "seen": Limit(0, [MOST_SEEN, SUM]), "news": Limit(0, 1)}

    def _first_inverse(self) -> NDArray[np.float64]:
        """Before anything was seen; the means of W are hardly regularised: nothing is known of them."""
        ridge = np.full(self.table.shape[3], self.params["ridge"])
        return np.diag(1 / np.append(ridge, np.full(len(self.moment) - len(ridge), 1e-6)))

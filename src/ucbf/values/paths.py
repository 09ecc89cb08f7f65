"""Many paths at once: disturbances drawn beforehand, and where a rule leads on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance, invert
from ucbf.large import LargeSystem, Rows, require_large

Rule = Callable[[int, Rows], Rows]  # from the step and states [N, d] to actions [N, m]

WEIGHED = 24  # so many values of W, or fewer, are all weighed
DRAWN = 4  # of more, so many of the others are drawn for every state
DRAWN_ALONE = 8  # and so many where no few are likely


class FitWarning(UserWarning):
    """A fit that is poor, or that does no better than a simple rule."""


@dataclass(frozen=True)
class Estimate:
    """A mean that was estimated by simulation, and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, samples: NDArray[np.float64]) -> Estimate:
        """Of independent samples [N]."""
        return cls(float(samples.mean()), float(samples.std(ddof=1) / np.sqrt(len(samples))))

    @property
    def at_least(self) -> float:
        """Two standard errors below the mean: by what rules are chosen, so that luck is not."""
        return self.mean - 2 * self.error

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.error:.4f}"


class Outcomes:
    """The distribution of W, the same at every step, as rows.

    Parameters
    ----------
    system
        Where W acts.
    law
        Of rows [k] of W; numbers are taken to move the first coordinate of f.
    """

    def __init__(self, system: LargeSystem, law: Disturbance) -> None:
        require_large(system)
        if not isinstance(law, Disturbance):
            raise TypeError(f"law is {law!r:.60}; give a ucbf.Disturbance of W")
        if len(law.pmf) > 1 or law.n_contexts > 1:
            raise ValueError(
                f"law has {len(law.pmf)} rows; values are fitted with one distribution for all steps: give [n]"
            )
        possible = np.flatnonzero(law.pmf[0])
        self.pmf: NDArray[np.float64] = law.pmf[0][possible]
        values = law.values[possible]
        if law.is_line:
            values = np.concatenate([values[:, None], np.zeros((len(values), system.n_raw - 1), values.dtype)], axis=1)
        if values.shape[1] != system.n_raw:
            raise ValueError(f"law has rows of {values.shape[1]} numbers, and f of {system.n_raw}; give one for each")
        self.values: Rows = values.astype(np.int64) if (values == np.rint(values)).all() else values
        _require_within(system, self.values)
        order = np.lexsort(self.values.T[::-1])  # so that strata are of neighbours
        self.values, self.pmf = self.values[order], self.pmf[order]

    def draw(self, rng: np.random.Generator, *shape: int) -> Rows:
        """[..., k] independent draws."""
        return self.values[invert(self.pmf, rng.random(shape))]

    def paths(self, rng: np.random.Generator, n: int, steps: int) -> Rows:
        """[n, steps, k] paths spread evenly over all that may happen (Sobol points, scrambled)."""
        from scipy.stats import qmc

        points = qmc.Sobol(steps, seed=rng).random(n)
        return self.values[invert(self.pmf, points)]

    def around(self, rng: np.random.Generator, n: int, most: int = WEIGHED) -> tuple[Rows, NDArray[np.float64]]:
        """[n, M, k] disturbances for each of n states, and their weights [M], with which means are right on average.

        All, if they are few. Else the most likely, each with its probability, and a few of the others, drawn evenly;
        where no few are likely, all are drawn.
        """
        if len(self.pmf) <= most:
            return np.broadcast_to(self.values, (n, *self.values.shape)), self.pmf
        likely = np.sort(np.argsort(-self.pmf)[:most])
        rest = np.array(self.pmf)
        rest[likely] = 0
        left, drawn = float(rest.sum()), DRAWN
        if left > 0.1:
            likely, rest, left, drawn = likely[:0], self.pmf, 1.0, DRAWN_ALONE
        u = (np.arange(drawn) + rng.random((n, drawn))) / drawn
        exact = np.broadcast_to(self.values[likely], (n, len(likely), self.values.shape[1]))
        weights = np.concatenate([self.pmf[likely], np.full(drawn, left / drawn)])
        return np.concatenate([exact, self.values[invert(rest / left, u)]], axis=1), weights


def _require_within(system: LargeSystem, values: Rows) -> None:
    """W takes no value that the system declares impossible: demand where f takes W = -demand, say."""
    if system.disturbance_range is None:
        return
    low, high = (np.atleast_1d(end) for end in system.disturbance_range)
    outside = ((values < low) | (values > high)).any(axis=1)
    if outside.any():
        raise ValueError(
            f"law gives W = {values[int(outside.argmax())]}, outside the declared disturbance_range {low}..{high}; "
            "give the law of what is added to f (of a preset: preset.large_law(demand)), or declare a wider range"
        )


def middle(system: LargeSystem, n: int) -> Rows:
    """[n, d] the state nearest to zero, n times: where an empty store begins."""
    first = np.clip(np.zeros(system.n_axes), system.low, system.high)
    return np.repeat((first.astype(np.int64) if system.whole_states else first)[None], n, axis=0)


def walk(system: LargeSystem, rule: Rule, s: Rows, w: Rows, first: int = 0) -> tuple[NDArray[np.float64], Rows]:
    """What a rule earns [N, T] from states [N, d] on disturbances [N, T, k], and where it ends [N, d]."""
    earned = np.empty(w.shape[:2])
    for t in range(w.shape[1]):
        h = first + t if system.horizon is not None else 0
        earned[:, t], s = system.step(h, s, rule(h, s), w[:, t])
    return earned, s

"""W by counting, what is recent more than what is long ago."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, real
from ucbf.disturbance import Disturbance
from ucbf.laws.base import Floats, Law
from ucbf.laws.counts import checked_counting, prior_counts
from ucbf.limits import MOST_SEEN, Limit, Limits

HALF_LIVES = (np.inf, 256.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0)  # disturbances, that are chosen from
GUESSED = 1.0  # disturbances that the guess counts for, where the next one is predicted
BETTER_BY = 3.0  # nats that a half-life must be better than counting all alike, to be taken: some chance
WORTH = 0.02  # and for each prediction: what a level costs that is off by a fifth of a standard deviation


def ahead_by(predictions: ArrayLike) -> Floats:
    """How many nats a half-life must be better than counting all alike after so many predictions, to be taken.

    More than chance would make it, and more than its own price: where less counts, the distribution is less certain,
    and the decision with it.
    """
    return np.maximum(BETTER_BY, WORTH * np.asarray(predictions, dtype=np.float64))


def best_half_life(half_lives: Floats, scores: Floats, predictions: ArrayLike) -> NDArray[np.int64]:
    """[...] which of the half-lives [C] is taken, by their scores [..., C] in so many predictions [...]."""
    margins = np.where(np.isinf(half_lives), ahead_by(predictions)[..., None], 0.0)
    chosen: NDArray[np.int64] = np.argmax(scores + margins, axis=-1)
    return chosen


class Recent(Law):
    """Believes that W is as it was of late: a disturbance counts half as much as one that came ``half_life`` later.

    Where no half-life is given, the one is taken whose predictions were best: every disturbance is predicted, from
    those before it, with each of several, and the logarithms of the probabilities of what came are added up. All count
    alike unless one is clearly better (:func:`best_half_life`).

    Parameters
    ----------
    half_life
        In disturbances of one step, so in episodes; if ``stationary``, in steps. None: chosen, again and again, from
        infinity, 256, 128, ..., 4 by what it predicted.
    stationary, prior, prior_weight
        As of :class:`Counts`. The prior is forgotten like all that is old.
    """

    name = "Recent"

    def __init__(
        self,
        *,
        half_life: float | None = None,
        stationary: bool = False,
        prior: Disturbance | None = None,
        prior_weight: float = 1.0,
    ) -> None:
        given = None if half_life is None else real("half_life", half_life, 0, 1e9, open_low=True)
        super().__init__(half_life=given, **checked_counting(stationary, prior, prior_weight))

    @property
    def prior(self) -> Floats:
        """[L, R] what the prior is worth, in disturbances counted."""
        return self._prior

    def start(self) -> None:
        """Count the prior, once for each half-life."""
        given, prior, rows = self.params["half_life"], self.params["prior"], self.horizon
        if self.params["stationary"]:
            rows = 1
        counts = np.zeros((rows, self.bins.n))
        if prior is not None:
            counts += prior_counts(self.bins, self.horizon, rows, prior, self.params["prior_weight"])
        self._prior = frozen(counts)
        self.half_lives = np.array(HALF_LIVES if given is None else [given])
        self._keep = 0.5 ** (1 / self.half_lives)
        self._counts = np.tile(counts, (len(self._keep), 1, 1))
        self._scores = np.zeros(len(self._keep))

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """[C, L, R] what was counted, and [C] how well it was predicted, with each half-life."""
        return {"counts": self._counts, "scores": self._scores}

    def limits(self, stored: dict[str, NDArray[Any]]) -> Limits:
        """What was counted cannot be negative."""
        return {"counts": Limit(0, MOST_SEEN), "scores": Limit(-1e3 * MOST_SEEN, 0)}

    @property
    def scores(self) -> dict[float, float]:
        """By half-life: the sum of the logarithms of the probabilities that what came was given before."""
        return dict(zip(self.half_lives.tolist(), self._scores.tolist(), strict=True))

    @property
    def half_life(self) -> float:
        """The one that is used now."""
        return float(self.half_lives[self._best])

    @property
    def _best(self) -> int:
        predictions = self._counts[0].sum() - self._prior.sum()  # the first are all that were seen
        return int(best_half_life(self.half_lives, self._scores, predictions))

    def add(self, h: int, j: NDArray[np.int64], share: Floats) -> None:
        """Score what came, let all of its step count less, and count it."""
        counts = self._counts[:, h % self._counts.shape[1]]
        total = counts.sum(axis=1)
        came = (counts[:, j] + GUESSED * self.bins.guess[j]) @ share / (total + GUESSED)
        self._scores += np.log(np.maximum(came, 1e-300))
        counts *= self._keep[:, None]
        counts[:, j] += share

    def pmf(self) -> Floats:
        """[L, R] shares of what was counted with the best half-life."""
        counts = self._counts[self._best]
        total = counts.sum(axis=1, keepdims=True)
        shares: Floats = np.where(total > 0, counts / np.where(total > 0, total, 1), self.bins.guess)
        return shares

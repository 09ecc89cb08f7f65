"""W by counting: how often each disturbance was seen, those that a boundary censored too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import frozen, real
from ucbf.disturbance import Disturbance
from ucbf.kernels import laws
from ucbf.kernels.seen import Seen
from ucbf.laws.base import Floats, Law
from ucbf.spaces import Bins

MOST_TRUST = 2.0  # disturbances of each kind that the prior is worth at most, where none is given


def checked_counting(stationary: bool, prior: Disturbance | None, prior_weight: float) -> dict[str, Any]:
    """The parameters that all laws have that count, or a readable error."""
    if not isinstance(stationary, bool | np.bool_):
        raise TypeError(f"stationary is {stationary!r:.60}; give True or False")
    if prior is not None and not isinstance(prior, Disturbance):
        raise TypeError(f"prior is {prior!r:.60}; give a ucbf.Disturbance")
    weight = real("prior_weight", prior_weight, 0, 1e9)
    return {"stationary": bool(stationary), "prior": prior, "prior_weight": weight}


def prior_counts(bins: Bins, horizon: int, rows: int, prior: Disturbance, weight: float) -> Floats:
    """[L, R] what a prior is worth, in disturbances counted.

    rows: L, 1 where all steps share one distribution; weight: the episodes that the prior is worth
    """
    if len(prior.pmf) not in (1, horizon):
        raise ValueError(
            f"prior has {len(prior.pmf)} steps and the system {horizon}; give one row, or one for each step"
        )
    if rows == 1 and len(prior.pmf) > 1:
        raise ValueError(f"prior has {len(prior.pmf)} steps, but the law is declared stationary; give one row")
    counts, episodes = np.zeros((rows, bins.n)), weight * (horizon if rows == 1 else 1)
    for i in np.flatnonzero((prior.pmf > 0).any(axis=0)):
        j, share = bins.spread(prior.values[i : i + 1])
        for c in range(share.shape[1]):
            counts[:, j[0, c]] += episodes * share[0, c] * prior.pmf[:, i]
    return counts


class Counts(Law):
    """Believes that W is as it was: every disturbance counts alike, whenever it was seen.

    Where a boundary censors W, the distribution is the product-limit estimate (Kaplan, Meier 1958; where both
    boundaries do, the self-consistent one of Turnbull 1974; where a transition says that W was in some other set, the
    most likely one, Turnbull 1976). Compiled.

    Parameters
    ----------
    stationary
        Whether W has the same distribution at every step; its samples are then pooled. Declare it only where it is so.
    prior, prior_weight
        A distribution that is believed before anything is seen, and how many episodes that belief is worth. None: where
        the range of W is declared, on one axis and without contexts, all of it alike, and worth what the counts
        themselves say that it is, two disturbances of each kind at most (Bühlmann 1967); ``prior_weight=0`` leaves the
        counts bare.
    """

    name = "Counts"
    asked_in_python = False
    reads_censored = True

    def __init__(
        self, *, stationary: bool = False, prior: Disturbance | None = None, prior_weight: float = 1.0
    ) -> None:
        super().__init__(**checked_counting(stationary, prior, prior_weight))

    @property
    def prior(self) -> Floats:
        """[L, R] what the prior is worth, in disturbances counted."""
        return self._prior

    def start(self) -> None:
        """Count the prior."""
        rows = 1 if self.params["stationary"] else self.horizon
        if self.params["prior"] is not None and self.n_contexts > 1:
            raise ValueError(f"prior is given, and the system has {self.n_contexts} contexts; leave it out")
        counts = np.zeros((rows * self.n_contexts, self.bins.n * self.n_contexts))
        if self.params["prior"] is not None:
            counts += prior_counts(self.bins, self.horizon, rows, self.params["prior"], self.params["prior_weight"])
        self._prior = frozen(counts)

    def _arrays(self) -> Any:
        guess, rows = np.tile(self.bins.guess, self.n_contexts) / self.n_contexts, len(self._prior)
        parts = {
            "counts": np.array(self._prior),
            "law": np.tile(guess, (rows, 1)),
            "guess": frozen(guess),
            "room": np.zeros((2, self.bins.n * self.n_contexts)),
        }
        if self.sets is not None:
            return laws.Sets(hits=np.zeros((rows, len(self.sets.begins) - 1)), **self.sets._asdict(), **parts)
        hidden = {"below": np.zeros_like(self._prior), "above": np.zeros_like(self._prior)}
        return laws.Counts(**hidden, **parts, rows=rows, trust=self._trust())

    def _trust(self) -> float:
        """The most that a uniform guess counts for, in disturbances; 0 where the range of W is not declared."""
        bins, assumed = self.bins, self.params["prior"] is None and self.n_contexts == 1
        if not (assumed and len(bins.count) == 1 and bins.is_whole.all() and bins.declared is not None):
            return 0.0
        low, high = (int(end[0]) for end in bins.declared)
        exact = bins.n_possible == high - low + 1  # else residuals of a wrong f are told apart, not disturbances
        return MOST_TRUST * bins.n_possible * float(self.params["prior_weight"]) if exact else 0.0

    def notice(self, seen: Seen, share: Floats) -> None:
        """The compiled functions count."""

    def notice_all(self, j: NDArray[np.int64], share: Floats) -> None:
        """The compiled functions count."""

    def follow(self) -> None:
        """The compiled functions do."""

    def believed(self) -> Floats:
        """[L, R] the distribution as it is believed now, without the doubts that a plan adds where W was censored."""
        law = np.empty_like(self.arrays.law)
        laws.believe(self.arrays._replace(law=law), False)
        normal: Floats = law / law.sum(axis=1, keepdims=True)
        return normal

    def counted(self) -> Floats:
        """[L, R] disturbances seen, without the prior."""
        seen: Floats = np.maximum(self.arrays.counts - self._prior, 0)
        return seen

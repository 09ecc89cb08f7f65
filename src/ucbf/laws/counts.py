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
        A distribution that is believed before anything is seen, and how many episodes that belief is worth.
    """

    name = "Counts"
    asked_in_python = False
    reads_censored = True

    def __init__(
        self, *, stationary: bool = False, prior: Disturbance | None = None, prior_weight: float = 1.0
    ) -> None:
        if not isinstance(stationary, bool | np.bool_):
            raise TypeError(f"stationary is {stationary!r:.60}; give True or False")
        if prior is not None and not isinstance(prior, Disturbance):
            raise TypeError(f"prior is {prior!r:.60}; give a ucbf.Disturbance")
        weight = real("prior_weight", prior_weight, 0, 1e9)
        super().__init__(stationary=bool(stationary), prior=prior, prior_weight=weight)

    @property
    def prior(self) -> Floats:
        """[L, R] what the prior is worth, in disturbances counted."""
        return self._prior

    def start(self) -> None:
        """Count the prior."""
        law, weight, rows = self.params["prior"], self.params["prior_weight"], 1
        if not self.params["stationary"]:
            rows = self.horizon
        counts = np.zeros((rows * self.n_contexts, self.bins.n * self.n_contexts))
        if law is not None and self.n_contexts > 1:
            raise ValueError(f"prior is given, and the system has {self.n_contexts} contexts; leave it out")
        if law is not None:
            if len(law.pmf) not in (1, self.horizon):
                raise ValueError(
                    f"prior has {len(law.pmf)} steps and the system {self.horizon}; give one row, or one for each step"
                )
            if rows == 1 and len(law.pmf) > 1:
                raise ValueError(f"prior has {len(law.pmf)} steps, but the law is declared stationary; give one row")
            episodes = weight * (self.horizon if rows == 1 else 1)
            for i in np.flatnonzero((law.pmf > 0).any(axis=0)):
                j, share = self.bins.spread(law.values[i : i + 1])
                for c in range(share.shape[1]):
                    counts[:, j[0, c]] += episodes * share[0, c] * law.pmf[:, i]
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
        return laws.Counts(below=np.zeros_like(self._prior), above=np.zeros_like(self._prior), **parts)

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

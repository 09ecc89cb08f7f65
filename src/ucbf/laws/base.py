"""The contract of a way of knowing W: it takes in disturbances and gives their distribution.

It knows nothing of the system but the disturbances that are told apart, so that what was learned under one price list
serves under another. To add one, subclass :class:`Law` and give ``name``, ``add`` and ``pmf``, and ``state`` if it
shall be saved. ``UCBVIf(system, law=YourLaw())`` then plans with it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import frozen
from ucbf.hidden import HiddenSets
from ucbf.kernels import laws
from ucbf.kernels.seen import Seen
from ucbf.named import Named
from ucbf.spaces import Bins

Floats = NDArray[np.float64]


class Law(Named):
    """What an agent knows of the distribution of W. Each agent needs one of its own."""

    asked_in_python: ClassVar[bool] = True  # whether it is asked between steps, so that no loop runs compiled
    reads_censored: ClassVar[bool] = False  # whether it uses what a boundary says of a W that it hides
    bins: Bins
    horizon: int
    sets: HiddenSets | None
    arrays: Any = None  # those that the compiled functions use; None before it belongs to an agent

    # -- what a way of knowing supplies ------------------------------------------------------------

    def add(self, h: int, j: NDArray[np.int64], share: Floats) -> None:
        """Take in one disturbance of step h: its index j [1] among ``self.bins.values``, and share [1] = 1.

        On a continuous axis a disturbance between bins is shared out among several: j [B], share [B].
        """
        raise NotImplementedError(f"{type(self).__name__} must say what it learns from a disturbance: give it `add`")

    def pmf(self) -> Floats:
        """[1, R] or [H, R] the distribution as it is believed now, over ``self.bins.values``.

        ``self.bins.guess`` [R] is what to believe where nothing was seen. Only the first ``self.bins.n_possible``
        disturbances may occur; where states wrap there is one for each state, and the others cannot.
        """
        raise NotImplementedError(f"{type(self).__name__} must say what it believes: give it `pmf`")

    def start(self) -> None:
        """Prepare for ``self.bins`` and ``self.horizon``, when an agent is built with it."""

    def counted(self) -> Floats:
        """[L, R] disturbances seen, independent draws all of them, from which a certificate can be made."""
        raise ValueError(
            f"nothing can be certified: nothing is proved of {self.name}; use UCBVI-f with its own counts (law=None)"
        )

    # -- as a part of an agent --------------------------------------------------------------------

    def attach(self, bins: Bins, horizon: int, n_contexts: int = 1, sets: HiddenSets | None = None) -> Any:
        """Its arrays, one of :mod:`ucbf.kernels.laws`, for an agent in a system with these bins, steps and contexts.

        sets: the disturbances that a next state does not tell apart, where it gives no bound
        """
        if n_contexts > 1 and self.asked_in_python:
            raise ValueError(f"{self.name} knows no contexts, and the system has {n_contexts}; use law=None")
        if self.arrays is not None:
            raise ValueError(f"{self!r:.60} already belongs to an agent; give each agent one of its own")
        self.bins, self.horizon, self.n_contexts, self.sets = bins, horizon, n_contexts, sets
        self.start()
        self.arrays = self._arrays()
        return self.arrays

    def _arrays(self) -> Any:
        return laws.Given(np.array(self._checked()))

    @property
    def prior(self) -> Floats:
        """[L, R] what was believed before anything was seen, in disturbances counted."""
        return frozen(np.zeros((self.horizon, self.bins.n)))

    def notice(self, seen: Seen, share: Floats) -> None:
        """Learn from a transition, in Python."""
        self.add(seen.h, seen.low + self.bins.corners, share)

    def notice_all(self, j: NDArray[np.int64], share: Floats) -> None:
        """Learn from a history, in Python. j: [K, H]; share: [K, H, B], or [1, 1, 1] where all are whole."""
        for k, h in np.ndindex(*j.shape):
            self.add(h, j[k, h] + self.bins.corners, share[k % len(share), h % share.shape[1]])

    def follow(self) -> None:
        """Write what is believed now into the arrays, before the policy is renewed."""
        self.arrays.law[...] = self._checked()

    def believed(self) -> Floats:
        """[L, R] the distribution as it is believed now."""
        return self._checked()

    def _checked(self) -> Floats:
        """[L, R] what ``pmf`` gives, or a readable error."""
        pmf = np.asarray(self.pmf(), dtype=np.float64)
        if pmf.ndim != 2 or pmf.shape[0] not in (1, self.horizon) or pmf.shape[1] != self.bins.n:
            raise ValueError(
                f"{self.name}.pmf gave shape {pmf.shape}; it must be [1, R] or [H, R] with H = {self.horizon} and "
                f"R = {self.bins.n}"
            )
        if not (np.isfinite(pmf).all() and (pmf >= 0).all() and np.allclose(pmf.sum(axis=1), 1, atol=1e-6)):
            raise ValueError(f"{self.name}.pmf gave rows that are no probabilities; each must sum to 1, none below 0")
        return pmf

"""A series as episodes of systems: what changes from one to the next, and what is learned from the first ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.data import Episodes
from ucbf.systems.base import Ready

FEW = 20  # training episodes of a kind: with fewer, steps are pooled around their profile
FEW_OF_A_KIND = 5  # with fewer, the profile of a kind of day is that of all days
MOST_JUDGED, MOST_RESAMPLED = 50_000, 100_000  # steps that judge, and that a resampled history has: enough for both
Profiles = dict[str, tuple[float, ...]]
Which = NDArray[np.int64]


class History:
    """Episodes of a series, each in the system of its day, and the training episodes among them.

    Training episodes are named by their numbers, so that a history may be resampled: ``which`` [n].
    """

    def __init__(
        self,
        ready: Ready,
        episodes: Episodes,
        train: float,
        pooled: bool | None,
        changes: Sequence[dict[str, Any]] | None,
    ) -> None:
        self.first, rest = episodes.split(train)
        self.resampled = max(MOST_RESAMPLED // ready.horizon, 1)  # episodes, at most
        self.rest = rest.part(0, min(len(rest), max(MOST_JUDGED // ready.horizon, 1)))
        self.episodes, self.changes = episodes.part(0, len(self.first) + len(self.rest)), changes
        self.ready = ready if changes is None else ready.anchored(changes[: len(self.first)])
        fewest = min(self.first.kinds.count(kind) for kind in set(self.first.kinds))
        self.together = fewest < FEW if pooled is None else pooled
        given = ready.profiled or any("profile" in change for change in changes or ())
        self.all = np.arange(len(self.first))
        self.odd = self.first.outliers  # which say nothing of a mean
        self.profiles = self.profiles_of(self.all) if self.together and not given else {}
        self._seen: dict[tuple[Any, ...], Ready] = {}

    def profiles_of(self, which: Which) -> Profiles:
        """The means of every kind of day, by training episodes."""
        amounts = np.where(self.odd, np.nan, self.first.amounts)[which]
        kinds = np.array(self.first.kinds)[which]
        found = {}
        for kind in dict.fromkeys((*self.first.kinds, *self.rest.kinds)):
            members = amounts[kinds == kind]
            table = members if len(members) >= FEW_OF_A_KIND else amounts
            n = np.isfinite(table).sum(axis=0)
            found[kind] = tuple((np.nansum(table, axis=0) / np.maximum(n, 1)).tolist())
        return found

    def on(self, k: int) -> Ready:
        """The system of episode k."""
        return self._with(k, self.profiles)

    def _with(self, k: int, profiles: Profiles) -> Ready:
        if self.changes is None and not profiles:
            return self.ready
        change = {} if self.changes is None else dict(self.changes[k])
        if profiles:
            change["profile"] = profiles[self.episodes.kinds[k]]
        key = tuple((name, tuple(np.ravel(value).tolist())) for name, value in change.items())
        if key not in self._seen:
            self._seen[key] = self.ready.replace(**change) if change else self.ready
        return self._seen[key]

    def kinds(self, shown: int) -> list[int]:
        """An episode for each kind of day, the last ones; only ``shown`` where every day differs."""
        if self.changes is not None:
            return [shown]
        last = {kind: k for k, kind in enumerate(self.episodes.kinds)}
        return [last[kind] for kind in sorted(last)]

    def follow(self) -> NDArray[np.float64]:
        """[n, n] how often one kind of day came after another, of those that :meth:`kinds` gives."""
        names = sorted(set(self.episodes.kinds))
        counts = np.full((len(names), len(names)), 1e-9)
        for before, after in itertools.pairwise(self.episodes.kinds):
            counts[names.index(before), names.index(after)] += 1
        share: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        return share

    def disturbances(self) -> NDArray[np.int64]:
        """[K, H] W of every episode, each around its own profile."""
        amounts = np.clip(self.episodes.amounts, *self.ready.amount_range)  # beyond it by less than half a unit
        return _disturbances(amounts, [self.on(k) for k in range(len(amounts))])

    def counted(self, which: Which, kind: str) -> UCBVIf:
        """An agent that has counted W of training episodes: of all if pooled, else of one kind.

        The i-th of ``which`` is taken for episode i, with its changes; it may be fewer than there are.
        """
        profiles = self.profiles_of(which) if self.profiles else {}
        amounts = np.clip(self.first.amounts[which], *self.ready.amount_range)
        counts = self.together or kind not in self.first.kinds
        days = [k for k, each in enumerate(self.first.kinds[: len(which)]) if counts or each == kind]
        systems = [self._with(k, profiles) for k in days]
        agent = UCBVIf(systems[-1].system, stationary=self.together)
        agent.warm_start(_disturbances(amounts[days], systems))
        return agent


def _disturbances(amounts: NDArray[np.float64], systems: Sequence[Ready]) -> NDArray[np.int64]:
    """[K, H] W of episodes, each in its own system."""
    w = np.empty(amounts.shape, np.int64)
    which = np.array([id(ready) for ready in systems])
    for ready in {id(ready): ready for ready in systems}.values():
        here = which == id(ready)
        w[here] = ready.disturbances(amounts[here])
    return w

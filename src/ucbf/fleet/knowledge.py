"""What a fleet knows of the W of its items: each way of :mod:`ucbf.laws`, for all items in one table.

Every class has ``rows``, the distributions of an item: 1 where its steps share one, else H; ``add``, which takes in the
indices j [n] of disturbances of steps h [n] of items [n], in order of time; and ``believed``, [n, L, R] distributions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels import fleet as kernels
from ucbf.kernels import laws
from ucbf.laws import Counts, Law, Recent
from ucbf.laws.recent import best_half_life
from ucbf.spaces import Bins

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Knowledge(Protocol):
    """What is known of the W of all items."""

    rows: int

    def add(self, items: Ints, h: Ints, j: Ints) -> None:
        """Take disturbances in."""

    def believed(self, items: Ints, curious: bool) -> Floats:
        """[n, L, R] the distributions of some items."""


class Counted:
    """How often each disturbance of each item was seen, censored ones too."""

    def __init__(self, law: Counts, bins: Bins, horizon: int, n_items: int) -> None:
        one = law.attach(bins, horizon, 1, None)
        self.origin, self.rows = law, len(one.counts)
        counts = np.tile(one.counts, (n_items, 1))
        self.law: laws.Counts = one._replace(counts=counts, below=np.zeros(counts.shape), above=np.zeros(counts.shape))

    def add(self, items: Ints, h: Ints, j: Ints) -> None:
        """Count."""
        kernels.count_items(self.law.counts, self.rows, items, h, j)

    def believed(self, items: Ints, curious: bool) -> Floats:
        """[n, L, R] curious: with the doubts that a plan adds where W was censored."""
        rows = _view_of(_rows(items, self.rows))
        counted = {name: getattr(self.law, name)[rows] for name in ("counts", "below", "above")}
        law: Floats = np.empty_like(counted["counts"])
        laws.believe(self.law._replace(**counted, law=law, room=np.empty_like(self.law.room)), curious)
        return law.reshape(len(items), self.rows, -1)


class Recalled:
    """How often each disturbance of each item was seen of late; each item has the half-life that served it best."""

    def __init__(self, law: Recent, bins: Bins, horizon: int, n_items: int) -> None:
        law.attach(bins, horizon, 1, None)
        first = law.state["counts"]  # [C, L, R]
        self.rows, self.half_lives, self.guess = first.shape[1], law.half_lives, np.array(bins.guess)
        self.counts = np.tile(first.transpose(1, 0, 2), (n_items, 1, 1))
        self.total, self.prior = self.counts.sum(axis=2), float(law.prior.sum())
        self.scores = np.zeros((n_items, len(law.half_lives)))

    def add(self, items: Ints, h: Ints, j: Ints) -> None:
        """Score, forget, count."""
        keep = 0.5 ** (1 / self.half_lives)
        kernels.recall_items(self.counts, self.total, self.scores, keep, self.guess, self.rows, items, h, j)

    def chosen(self, items: Ints) -> Floats:
        """[n] the half-lives that are used now."""
        lives: Floats = self.half_lives[self._best(items)]
        return lives

    def _best(self, items: Ints) -> Ints:
        """[n] the numbers of these half-lives."""
        seen = self.total[_rows(items, self.rows), 0].reshape(len(items), -1).sum(axis=1) - self.prior
        return best_half_life(self.half_lives, self.scores[items], seen)

    def believed(self, items: Ints, curious: bool) -> Floats:
        """[n, L, R] shares of what was counted; curious: no use is made of it."""
        rows, best = _rows(items, self.rows), np.repeat(self._best(items), self.rows)
        counts = self.counts[rows, best]
        total = counts.sum(axis=1, keepdims=True)
        law: Floats = np.where(total > 0, counts / np.where(total > 0, total, 1), self.guess)
        return law.reshape(len(items), self.rows, -1)


class AroundForecasts:
    """What is known of W less what was forecast of it, and the forecasts of the coming episode.

    W = forecast + error, moved to the end of W's range where that is beyond it. The errors of an index are told apart
    from -(R - 1) to R - 1.
    """

    def __init__(self, errors: Knowledge, bins: Bins, horizon: int, n_items: int) -> None:
        self.errors, self.n, self.rows = errors, bins.n, horizon
        self.expected = np.zeros((n_items, horizon), np.int64)  # indices of W

    def add_around(self, items: Ints, h: Ints, j: Ints, expected: Ints) -> None:
        """Take errors in; expected: [n] the index of W that was forecast."""
        self.errors.add(items, h, j - expected + self.n - 1)

    def add(self, items: Ints, h: Ints, j: Ints) -> None:
        """A disturbance alone says nothing of the forecast."""
        raise ValueError("this fleet learns around forecasts; say what was forecast for each step (expected)")

    def believed(self, items: Ints, curious: bool) -> Floats:
        """[n, H, R] the distributions of the errors, moved to the forecasts."""
        errors, at = self.errors.believed(items, curious), self.expected[items]
        law = np.zeros((len(items), self.rows, self.n))
        which, step = np.arange(len(items))[:, None], np.arange(self.rows)[None]
        for e in range(errors.shape[2]):
            law[which, step, np.clip(at + e - (self.n - 1), 0, self.n - 1)] += errors[:, step[0] % errors.shape[1], e]
        return law


def knowledge_of(law: Law, bins: Bins, horizon: int, n_items: int, forecasts: bool) -> Knowledge:
    """What a fleet knows by one of :mod:`ucbf.laws`; forecasts: of the errors of forecasts."""
    if forecasts:
        if law.params.get("prior") is not None:
            raise ValueError("a prior is of W, and this fleet learns the errors of forecasts; leave one of them out")
        if not bins.is_line or bins.around:
            raise ValueError("a fleet learns around forecasts where W is a number that does not wrap; leave them out")
        n = 2 * bins.n - 1
        own = replace(bins, first=np.array([1 - bins.n]), count=np.array([n]), declared=None, n_possible=n)
        return AroundForecasts(knowledge_of(law, own, horizon, n_items, False), bins, horizon, n_items)
    if isinstance(law, Counts):
        return Counted(law, bins, horizon, n_items)
    if isinstance(law, Recent):
        return Recalled(law, bins, horizon, n_items)
    raise ValueError(f"law is {law.name}; a fleet knows Counts and Recent: use one of them, or UCBVI-f, item by item")


def _rows(items: Ints, rows: int) -> Ints:
    """The rows of some items in the tables."""
    found: Ints = (items[:, None] * rows + np.arange(rows)).ravel()
    return found


def _view_of(rows: Ints) -> Ints | slice:
    """Rows that follow one another as a slice, with which a table is not copied."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows

"""What an action earns over the next steps, with a rule after it: the mean over fixed paths of W."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.stores import Levels, expected_on_shelf, look_ahead
from ucbf.large import LargeSystem, Rows
from ucbf.values.paths import Outcomes, Rule
from ucbf.values.up_to import UpTo

AT_ONCE = 40_000  # rows that are followed at once
THREADS = 2


class Ahead:
    """Rewards of the steps after an action, with a rule from then on, averaged over fixed paths.

    Parameters
    ----------
    system
        A system of which all steps are alike.
    rule
        What is done after the action.
    outcomes
        The distribution of W.
    paths
        [K, J, k] disturbances.
    """

    def __init__(self, system: LargeSystem, rule: Rule, outcomes: Outcomes, paths: Rows) -> None:
        self.system, self.rule, self.outcomes, self.paths = system, rule, outcomes, paths
        self.levels: Levels | None = None
        if system.compiled is not None and isinstance(rule, UpTo):
            store = system.compiled
            self.levels, self.shelf_earns = _levels(system, rule), np.zeros(store.backlog + store.capacity + 1)
            expected_on_shelf(store, _ints(outcomes.values[:, 0]), outcomes.pmf, self.shelf_earns)

    @property
    def steps(self) -> int:
        """J."""
        return int(self.paths.shape[1])

    def shortened(self, steps: int) -> Ahead:
        """The same over fewer steps."""
        return Ahead(self.system, self.rule, self.outcomes, self.paths[:, :steps])

    def rewards(self, s: Rows, a: Rows) -> NDArray[np.float64]:
        """[N, J] mean rewards of each step, from states [N, d] and actions [N, m]."""
        out = np.empty((len(s), self.steps))
        rows = max(1, AT_ONCE // len(self.paths)) if self.levels is None else 512
        blocks = [slice(i, i + rows) for i in range(0, len(s), rows)]
        follow = self._followed if self.levels is None else self._compiled
        if len(blocks) < 2 * THREADS:
            for block in blocks:
                follow(s[block], a[block], out[block])
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(lambda block: follow(s[block], a[block], out[block]), blocks))
        return out

    def _compiled(self, s: Rows, a: Rows, out: NDArray[np.float64]) -> None:
        w = _ints(self.paths[:, :, 0])
        assert self.levels is not None
        look_ahead(self.system.compiled, self.levels, self.shelf_earns, _ints(s), _ints(a), w, out)

    def _followed(self, s: Rows, a: Rows, out: NDArray[np.float64]) -> None:
        """The same by the functions of the system, for all rows and paths at once."""
        K, n = len(self.paths), len(s)
        s, a = np.repeat(s, K, axis=0), np.repeat(a, K, axis=0)
        for j in range(self.steps):
            earned, s = self.system.step(0, s, a, np.tile(self.paths[:, j], (n, 1)))
            out[:, j] = earned.reshape(n, K).mean(axis=1)
            if j + 1 < self.steps:
                a = self.rule(0, s)


def _ints(rows: Rows) -> NDArray[np.int64]:
    return np.ascontiguousarray(rows, dtype=np.int64)


def _levels(system: LargeSystem, rule: UpTo) -> Levels:
    """A rule that orders up to levels, for kernels."""
    axes: Any = system.action_axes
    largest = int(system.action_high.max())
    existing = np.zeros((system.n_parts, largest + 1), np.int64)
    for i, values in enumerate(axes):
        existing[i] = values[np.searchsorted(values, np.arange(largest + 1), side="right") - 1]
    return Levels(rule.level * 1.0, rule.weights * 1.0, rule.most * 1.0, rule.gap * 1.0, existing)

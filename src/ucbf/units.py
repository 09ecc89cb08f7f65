"""The learner's own units, in which all values span at most H, as the bonuses of the literature assume.

A system that pays between 0 and 1 a step and nothing at the end is left as it is, with the paper's cap on values. Any
other is divided by a scale. How large and how small values can be follows from the mechanics, by taking the best and
the worst disturbance at every step; it needs no law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import frozen, sealed
from ucbf.induction import Best, is_large, ranges
from ucbf.kernels.types import Mechanics
from ucbf.spaces import sliding
from ucbf.system import System

LONG = 100.0  # steps: how far to look ahead where the average counts and there is no end


@dataclass(frozen=True, eq=False)
class Units:
    """A value of the user's, divided by ``scale``, is one of the learner's."""

    scale: float
    cap: NDArray[np.float64]  # [H] the largest possible return from each step on, in the learner's units
    least: Callable[[], NDArray[np.float64]]  # [H] finds the smallest possible return from each step on

    @cached_property
    def floor(self) -> NDArray[np.float64]:
        """[H] that, in the learner's units, whatever the first action: found when it is asked for."""
        return frozen(self.least() / self.scale)


def units_of(system: System) -> Units:
    """The units in which values span at most H."""
    H, m = system.n_steps, system.mechanics
    if system.horizon is None:
        return _units_without_end(system)
    if in_paper_units(system):
        most = float(np.sum(system.discount ** np.arange(H)))
        return Units(1.0, frozen(np.full(H, most)), partial(np.zeros, H))
    high, _ = extreme_returns(np.maximum, system, m)
    low, _ = extreme_returns(np.minimum, system, m)
    spread = float((high.max(axis=1) - low.min(axis=1)).max())
    scale = spread / H or 1.0
    return Units(scale, frozen(high[:H].max(axis=1) / scale), partial(least_returns, system))


def least_returns(system: System) -> NDArray[np.float64]:
    """[H] the smallest possible return from each step on, whatever the first action, in the user's units."""
    m = system.mechanics
    _, ahead = extreme_returns(np.minimum, system, m)
    return np.array([ranges_of(m, h, least, least)[0] for h, least in enumerate(ahead)])


def extreme_returns(pick: Any, system: System, m: Mechanics) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[H + 1, S] and [H, X] the return of the best actions, and what follows after-states, if W is always extreme.

    pick: np.maximum for the best W of every step, np.minimum for the worst; for systems with an end
    """
    H = system.n_steps
    v, ahead = np.empty((H + 1, system.n_states)), np.empty((H, m.n_after))
    v[H] = m.terminal
    best, policy = Best(m) if is_large(m, m.offsets) else None, np.zeros(system.n_states, np.int64)
    for h in range(H - 1, -1, -1):
        reward, landing = (table[h % len(table)] for table in (m.reward, m.landing))
        ahead[h] = over_disturbances(pick, landing + m.discount * v[h + 1][m.next_state], system)
        if best is None:
            v[h] = (reward + following(m, ahead[h], h)).max(axis=1)
        else:
            best(h, ahead[h : h + 1], v[h], policy)
    return v, ahead


def _units_without_end(system: System) -> Units:
    """The units in which a step pays between a smallest and a largest reward that differ by 1."""
    least, most = reward_range(system)
    scale = 1.0 if in_paper_units(system) else most - least or 1.0
    steps = 1 / (1 - system.discount) if system.discount < 1 else LONG
    cap, floor = (np.full(system.n_steps, steps * one) for one in (most, least))
    return Units(scale, frozen(cap / scale), partial(np.array, floor))


def in_paper_units(system: System) -> bool:
    """Whether every step pays between 0 and 1, and the end nothing, as the paper's proofs assume."""
    least, most = reward_range(system)
    return bool(least >= 0 and most <= 1 and not system.terminal.any())


def in_units(mechanics: Mechanics, units: Units) -> Mechanics:
    """The same mechanics with rewards in the learner's units."""
    if units.scale == 1:
        return mechanics
    return mechanics._replace(
        reward=sealed(mechanics.reward / units.scale),
        landing=sealed(mechanics.landing / units.scale),
        late=sealed(mechanics.late / units.scale),
        terminal=sealed(mechanics.terminal / units.scale),
    )


def reward_range(system: System) -> tuple[float, float]:
    """Smallest and largest reward of a step, landing included, over all actions and residuals that exist."""
    m = system.mechanics
    least, most = (over_disturbances(pick, m.landing, system) for pick in (np.minimum, np.maximum))  # [D, X]
    low, high = np.inf, -np.inf
    for h in range(max(len(m.after), len(m.reward), len(m.landing))):
        smallest, largest = ranges_of(m, h, least[h % len(least)], most[h % len(most)])
        low, high = min(low, smallest), max(high, largest)
    return low, high


def ranges_of(m: Mechanics, h: int, least: NDArray[np.float64], most: NDArray[np.float64]) -> tuple[float, float]:
    """The smallest reward + least and the largest reward + most of step h, over the pairs. least, most: [X]."""
    if is_large(m, m.offsets):
        return ranges(m, h, least, most)
    reward = m.reward[h % len(m.reward)]
    exists = np.isfinite(reward)
    low, high = (reward + following(m, ends, h) for ends in (least, most))
    return float(low[exists].min()), float(high[exists].max())


def over_disturbances(pick: Any, raw: NDArray[np.float64], system: System) -> NDArray[np.float64]:
    """[..., X] np.maximum or np.minimum, over the disturbances that may occur, of what follows [..., Z]."""
    if system.n_contexts > 1:  # any may come next
        blocks = raw.reshape(*raw.shape[:-1], system.n_contexts, -1)
        return np.tile(_over_disturbances(pick, pick.reduce(blocks, axis=-2), system), system.n_contexts)
    return _over_disturbances(pick, raw, system)


def _over_disturbances(pick: Any, raw: NDArray[np.float64], system: System) -> NDArray[np.float64]:
    """The same for one context."""
    if system.space.is_line:
        return sliding(pick, raw, system.bins.n_possible)[..., : system.mechanics.n_after // system.n_contexts]
    table = raw.reshape(*raw.shape[:-1], *system.reach.raw_shape(system.bins))
    for k, n in enumerate(system.bins.count, start=raw.ndim - 1):
        table = np.moveaxis(sliding(pick, np.moveaxis(table, k, -1), int(n)), -1, k)
    return np.ascontiguousarray(table).reshape(*raw.shape[:-1], -1)


def following(m: Mechanics, ahead: NDArray[np.float64], h: int) -> NDArray[np.float64]:
    """[S, A] what follows every pair at step h, given what follows the after-states [X]."""
    after = m.after[h % len(m.after)]
    if len(m.corners) == 1:
        at_once: NDArray[np.float64] = ahead[after]
        return at_once
    share = m.share[h % len(m.share)]
    total: NDArray[np.float64] = sum(
        (share[..., c] * ahead[after + m.corners[c]] for c in range(len(m.corners))), np.zeros(after.shape)
    )
    return total

"""The learner's own units: one step pays between 0 and 1, a whole episode at most ``cap`` <= H.

The bonuses of the literature are stated for such rewards. A system whose rewards already lie in [0, 1],
with nothing paid at the end, is left as it is; any other is mapped affinely and mapped back on the way out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import frozen
from ucbf.system import Mechanics, System


class Units(NamedTuple):
    """A value v of the user's, from step h on, is (v - offset[h]) / scale in the learner's units."""

    low: float  # the smallest reward of a step
    scale: float
    offset: NDArray[np.float64]  # [H+1] the smallest return from each step on
    cap: float  # the largest return, in the learner's units


def units_of(system: System) -> Units:
    """The units in which ``system`` pays 0..1 a step and at most H in all."""
    low, high = reward_range(system)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    H, discount, terminal = system.horizon, system.discount, system.terminal
    offset, spread = np.empty(H + 1), np.empty(H + 1)
    offset[H], spread[H] = terminal.min(), np.ptp(terminal)
    for h in range(H - 1, -1, -1):
        offset[h] = low + discount * offset[h + 1]
        spread[h] = (high - low) + discount * spread[h + 1]
    largest = float(spread[:H].max())
    scale = max(high - low, largest / H) or 1.0
    return Units(low, scale, frozen(offset), largest / scale)


def in_units(mechanics: Mechanics, units: Units) -> Mechanics:
    """The same mechanics with rewards in the learner's units; shares every array that does not change."""
    low, scale, offset, _ = units
    if low == 0 and scale == 1 and offset[-1] == 0:
        return mechanics
    return mechanics._replace(
        reward=frozen((mechanics.reward - low) / scale),
        landing=frozen(mechanics.landing / scale),
        terminal=frozen((mechanics.terminal - offset[-1]) / scale),
    )


def reward_range(system: System) -> tuple[float, float]:
    """Smallest and largest reward of a step, landing included, over all actions and residuals that exist."""
    m = system.mechanics
    windows = np.lib.stride_tricks.sliding_window_view(m.landing, m.n_residuals, axis=1)  # [D, X, residuals]
    least, most = windows.min(axis=2), windows.max(axis=2)
    low, high = np.inf, -np.inf
    for h in range(max(len(m.after), len(m.reward), len(m.landing))):
        reward, after = m.reward[h % len(m.reward)], m.after[h % len(m.after)]
        exists = np.isfinite(reward)
        low = min(low, float((reward + least[h % len(least)][after])[exists].min()))
        high = max(high, float((reward + most[h % len(most)][after])[exists].max()))
    return low, high

"""How steep rewards, f and values are: what an error of f, or of a lattice, may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.spaces import lattice
from ucbf.system import System
from ucbf.tables import distinct_steps
from ucbf.units import Units

if TYPE_CHECKING:
    from ucbf.planning import Plan

Floats = NDArray[np.float64]


def lipschitz_of(system: System, units: Units) -> float:
    """L of V*: as the user gave it, else the largest of :func:`value_constants`."""
    return system.lipschitz if system.lipschitz is not None else float(value_constants(system, units).max())


def lipschitz_ahead(system: System, units: Units) -> float:
    """The constant of what follows a raw next state, landing(z) + γ V*_{h+1}: what an error of f costs, a state.

    It is not that of V*: where every action leads to the same place whatever the state, V* is level, and an f that is
    wrong by one state may still meet quite another landing reward.
    """
    landing = 0.0 if system.landing is None or not system.space.is_line else steepest(system.landing)
    later = value_constants(system, units)[1:].max() if system.lipschitz is None else system.lipschitz
    return float(landing + system.discount * later)


def value_constants(system: System, units: Units) -> NDArray[np.float64]:
    """[H+1] of V*_h: ``L_h <= L_r + L_f (L_landing + γ L_{h+1})``, which needs no V*, capped by the range of values.

    The recursion compares neighbouring states under the same action. Where they may have different actions,
    or where a wrapped neighbour may be at the other end, the range of values is all that can be said.
    """
    spread = units.scale * system.n_steps
    if (
        not system.space.is_line
        or system.boundary == "wrap"
        or not distinct_steps(system.allowed).all()
        or system.n_states == 1
    ):
        return np.full(system.n_steps + 1, spread)
    L_f, L_r = steepest(system.f), steepest(system.reward)
    L_landing = 0.0 if system.landing is None else steepest(system.landing)
    constants = np.empty(system.n_steps + 1)
    constants[-1] = steepest(system.terminal[None])
    for h in range(system.n_steps - 1, -1, -1):
        constants[h] = min(spread, L_r + L_f * (L_landing + system.discount * constants[h + 1]))
    return constants


def steepest(table: NDArray[np.generic]) -> float:
    """The largest difference of neighbouring states, in a table with steps first and states second."""
    return float(np.abs(np.diff(distinct_steps(table), axis=1)).max(initial=0))


# -- in a box -----------------------------------------------------------------------------------------------


class Lipschitz(NamedTuple):
    """Constants in the largest coordinate, as far as the points of a box show them."""

    f: float
    reward: float
    value: Floats  # [H+1] of the values of a plan, or a bound on them that needs no plan


def constants_of_box(system: System, plan: Plan | None = None) -> Lipschitz:
    """How steep f, the reward and the values are between neighbouring points of a box: an estimate.

    Without a plan the constants of the values are bounded: L_h <= L_r + L_f (L_landing + γ L_{h+1}).
    """
    space, H = system.space, system.n_steps
    if space.is_line:
        raise TypeError("this is a line; ucbf.lipschitz.value_constants gives its constants")
    shape, axes = (*space.shape, system.n_actions), range(space.n_axes)
    steep_f = max(_steepest(system, f.reshape(*shape, -1)[..., k]) for f in system.f for k in axes)
    steep_r = max(_steepest(system, reward.reshape(shape)) for reward in system.reward)
    steep = np.empty(H + 1)
    if plan is not None:
        for h, v in enumerate(plan.v):
            steep[h] = _steepest(system, v.reshape(space.shape))
        return Lipschitz(steep_f, steep_r, steep)
    low, high = system.bins.range()
    beyond = lattice(space.low + low, space.high + high, space.shape)
    apart = (space.high + high - space.low - low) / (space.shape - 1)
    landed = max(_steepest_of(system.at_any_state.landing(h, beyond).reshape(space.shape), apart) for h in range(H))
    steep[-1] = _steepest(system, system.terminal.reshape(space.shape))
    for h in range(H - 1, -1, -1):
        steep[h] = steep_r + steep_f * (landed + system.discount * steep[h + 1])
    return Lipschitz(steep_f, steep_r, steep)


def _steepest(system: System, table: NDArray[Any]) -> float:
    """As of :func:`_steepest_of`, at the points of a box; also over the end of an axis that wraps."""
    for k in np.flatnonzero(system.space.wraps):
        table = np.concatenate([table, np.take(table, [0], axis=k)], axis=k)
    return _steepest_of(table, system.space.spacing)


def _steepest_of(table: NDArray[Any], spacing: NDArray[Any]) -> float:
    """The largest sum, over the axes, of what neighbouring points differ by, a unit apart. table: [points, ...]."""
    total, axes = np.zeros(()), tuple(range(len(spacing)))
    for k in axes:
        total = total + (np.abs(np.diff(table, axis=k)) / spacing[k]).max(axis=axes)
    return float(np.max(total))

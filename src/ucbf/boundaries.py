"""Boundaries that a user states: functions of raw next states, and what must hold of any boundary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import integers
from ucbf.spaces import GIVEN, NEAR, Space, sliding
from ucbf.tables import Function

if TYPE_CHECKING:
    from ucbf.system import System


def given_boundary(boundary: Callable[..., Any], rows: bool, n_axes: int, disturbance_range: Any) -> Callable[..., Any]:
    """A boundary of the user's, as a function of raw next states [N, k] that gives states [N, d]."""
    if disturbance_range is None:
        raise ValueError(
            "boundary is a function, and disturbance_range is not given; declare the (low, high) of W, so that it can "
            "be asked where f + W may lead"
        )
    function = Function("boundary", boundary, 1, rows=rows)
    if function.per_step:
        raise TypeError("boundary takes more than the raw next states; it must be the same at every step")

    def led(z: NDArray[np.int64]) -> NDArray[np.int64]:
        answer = function(0, (len(z), n_axes), z) if rows else function(0, (len(z),), z[:, 0])
        return integers("boundary", answer).reshape(len(z), n_axes)

    return led


def with_given_boundary(plain: Space, boundary: Callable[..., Any], counts: list[Any], disturbance_range: Any) -> Space:
    """A box, as it would be with another boundary, with one of the user's. counts: its points, None for whole axes."""
    if any(n is not None for n in counts):
        raise ValueError(
            "boundary is a function, and some axes are continuous; there it must be 'clip', 'wrap' or 'strict': state "
            "the axes in whole units (points=None)"
        )
    sides = [np.asarray(side) for side in disturbance_range] if np.iterable(disturbance_range) else []
    k = next((side.size for side in sides if side.ndim == 1), plain.n_axes)
    given = given_boundary(boundary, True, plain.n_axes, disturbance_range)
    return replace(plain, rules=(GIVEN,) * plain.n_axes, boundary=given, raw=Space.of_raw(k))


def check_boundary_given(system: System) -> None:
    """A boundary of the user's must lead to a state from wherever f + W may be."""
    if system.space.boundary is None or system.next_of_raw.min() >= 0:
        return
    reach, bins = system.reach, system.bins
    reached: NDArray[Any] = np.zeros(reach.shape, np.bool_)
    for at in system._reached():
        reached[tuple((at - reach.origin).T)] = True
    for k, n in enumerate(bins.count):  # and what the disturbances reach from there
        around = [(n - 1, n - 1) if axis == k else (0, 0) for axis in range(reached.ndim)]
        reached = np.moveaxis(sliding(np.logical_or, np.moveaxis(np.pad(reached, around), k, -1), int(n)), -1, k)
    wrong = np.flatnonzero((system.next_of_raw < 0) & reached.ravel())
    if len(wrong):
        at = np.stack(np.unravel_index(wrong[:1], tuple(reach.raw_shape(bins))), axis=1)
        there = at + reach.origin + bins.first + system.raw_space.low
        led = system.space.meet_boundary(there)[0]
        one = (lambda row: row[0]) if system.space.is_line else np.asarray
        raise ValueError(
            f"boundary leads from f + W = {one(there[0])} to {one(led)}, outside the states "
            f"{one(system.space.low)}..{one(system.space.high)}; correct it, state more states, or forbid the actions "
            "that lead there (allowed)"
        )


def check_boundary_unsaid(system: System) -> None:
    """An error where a boundary that nobody stated would matter: a shop does not wrap."""
    if system.disturbance_range is None:
        return
    choices = "pass boundary='clip' (the nearest state), 'wrap' (modulo S) or 'strict' (it cannot happen)"
    if system.landing is not None:
        raise ValueError(f"landing is given, but not where f + W outside the states leads; {choices}")
    (low, high), first, last = system.disturbance_range, system.states[0], system.states[-1]
    f, exists = system._f_and_allowed
    wrong = np.argwhere(exists & ((f + low < first) | (f + high > last)))
    if len(wrong):
        h, s, a = wrong[0]
        x = system.f[h, s, a]
        raise ValueError(
            f"from state {s + first}, action {a} at step {h} (f = {x}) W in {low}..{high} leads to {x + low}.."
            f"{x + high}, outside the states {first}..{last}, and boundary is not given; {choices}"
        )


def check_inside(system: System) -> None:
    """Along a strict axis f must stay among the states; in a box, f + W for the range of W that is declared."""
    strict = np.array([rule == "strict" for rule in system.space.rules])
    if not strict.any():
        return
    f, exists = system._f_and_allowed
    if system.space.is_line:
        first, last = system.states[0], system.states[-1]
        wrong = np.argwhere(exists & ((f < first) | (f > last)))
        if len(wrong):
            h, s, a = wrong[0]
            raise ValueError(
                f"f sends state {s + system.state_offset}, action {a} at step {h} to {system.f[h, s, a]}, "
                f"outside {first}..{last}; pass boundary='clip' or 'wrap', or correct f"
            )
        return
    low, high = system.disturbance_range or (0, 0)
    near = NEAR * (system.space.high - system.space.low)
    beyond = strict & ((f + low < system.space.low - near) | (f + high > system.space.high + near))
    wrong = np.argwhere(beyond & exists[..., None])
    if len(wrong):
        h, s, a, k = wrong[0]
        raise ValueError(
            f"from {system.space.name(s)}, action {system.actions[a]} at step {h} f + W may leave the box along axis "
            f"{k}; pass boundary='clip' or 'wrap', a larger box, or the disturbance_range"
        )

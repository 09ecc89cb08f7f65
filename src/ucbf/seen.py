"""What a transition says of W, in the words of the user: whether it can be, and where a boundary hides it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import numbers, whole
from ucbf.kernels import seen as kernel
from ucbf.kernels.jit import source
from ucbf.kernels.seen import Seen
from ucbf.kernels.types import Mechanics
from ucbf.system import System

# Interpreted: for one transition that is quicker than handing two dozen arrays to compiled code.
residual_of, explain_residual, raw_of = (
    source(function) for function in (kernel.residual_of, kernel.explain_residual, kernel.raw_of)
)

ROUNDED = 1e-6  # how far, as a share of an axis, a continuous state may be off as the environment says it


class Transition(NamedTuple):
    """What was observed: between places (:meth:`ucbf.spaces.Space.place`); W, where it was measured."""

    h: int
    s: Any
    a: int
    s_next: Any
    disturbance: Any = None


class Reading(NamedTuple):
    """What a transition says of W."""

    seen: Seen | None  # None if nothing is to be learned from it
    share: NDArray[np.float64]  # [B] how a W between bins is shared out among them
    outside: str = ""  # why nothing is to be learned: the residual cannot be, by what was declared
    censored: str = ""  # what the boundary hides, where the nearest W that explains it was taken


def explain(system: System, told: Mechanics, moved: Transition, reads_censored: bool) -> Reading:
    """What a transition says of W. told: the mechanics with f as it is believed now, on a line.

    reads_censored: whether bounds on W are of use where a boundary hides it; else the nearest W is taken
    """
    if system.space.boundary is not None or system.n_contexts > 1 or (reads_censored and not system.space.is_line):
        return _by_search(system, told, moved, reads_censored)
    return _on_a_line(system, told, moved, reads_censored) if system.space.is_line else _in_a_box(system, told, moved)


def _by_search(system: System, told: Mechanics, moved: Transition, reads_censored: bool) -> Reading:
    """By trying every disturbance: what a transition says of W is the set of those that lead to the next state."""
    h, s, a, s_next, disturbance = moved
    R, S = system.bins.n, system.space.n_states
    e_next = s_next // S
    leads = leading(system, told, moved)[0]
    where = f"from state {system.state_name(s)}, action {system.actions[a]} at step {h} (f = {system.f[h, s, a]})"
    if disturbance is not None:
        measured = int(system.bins.index(disturbance)) + R * e_next
        if measured not in leads:
            raise ValueError(
                f"{where} the disturbance {disturbance} does not lead to the next state {system.state_name(s_next)} "
                "that was given; correct f or the boundary, or what was given"
            )
        leads = np.array([measured])
    if not len(leads):
        low, high = (side if system.space.is_line else side.tolist() for side in system.bins.range())
        outside = (
            f"{where} no disturbance within {low}..{high} leads to {system.state_name(s_next)}; correct f or boundary, "
            "or declare a wider disturbance_range"
        )
        return Reading(None, told.whole, outside=outside)
    first, last = int(leads[0]), int(leads[-1])
    censored = ""
    if len(leads) > 1 and not reads_censored:
        values = system.bins.values
        shown = ", ".join(str(values[j % R]) for j in leads[:3]) + (", ..." if len(leads) > 3 else "")
        end = system.state_name(s_next)
        censored = f"{where} the next state {end} does not say which of {len(leads)} disturbances ({shown}) led there"
        first = last = int(leads[-1] if first == R * e_next else leads[0])
    return Reading(Seen(h, s, a, s_next, first, last), told.whole, censored=censored)


def leading(system: System, told: Mechanics, moved: Transition) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The disturbances that lead to the next state, by index, and the raw next states that they lead over."""
    z = raw_of(told, int(told.after[moved.h % len(told.after), moved.s, moved.a])) + told.offsets
    leads = np.flatnonzero(told.next_state[z] == moved.s_next)
    leads = leads[leads % system.bins.n < system.bins.n_possible]
    return leads, z[leads]


def stated_reward(system: System, moved: Transition) -> tuple[float, float] | None:
    """The least and the most that the system says a transition pays, the end left out: they differ where W is hidden.

    None where no disturbance leads there, or where nothing can be said: on continuous axes, at an edge that hides W.
    """
    if not system.space.all_whole:
        return _stated_between(system, moved)
    told, (h, s, a, s_next, disturbance) = system.mechanics, moved
    paid = float(told.reward[h % len(told.reward), s, a])
    if system.landing is None:
        return paid, paid
    leads, raw = leading(system, told, moved)
    if disturbance is not None:  # f may be off by ζ/2
        measured = int(system.bins.index(disturbance)) + system.bins.n * (s_next // system.space.n_states)
        raw = raw[np.abs(leads - measured) <= system.slack]
    landing = told.landing[h % len(told.landing), raw]
    return (paid + float(landing.min()), paid + float(landing.max())) if len(landing) else None


def _stated_between(system: System, moved: Transition) -> tuple[float, float] | None:
    """The same on continuous axes, give or take what rounding of the next state makes of it."""
    (h, s, a, s_next, disturbance), ask, space = moved, system.at_any_state, system.space
    paid = float(ask.reward(h, s[None], np.array([a]))[0])
    if system.landing is None:
        return paid, paid
    x = _after(system, moved)
    if disturbance is not None:
        landing = ask.landing(h, (x + np.ravel(numbers("disturbance", disturbance)))[None])
    elif np.logical_or(*space.ends(s_next)).any():
        return None
    else:
        off = np.diag(np.where(space.is_whole, 0, ROUNDED * (space.high - space.low)))
        landing = ask.landing(h, x + _residual(system, s_next - x) + np.concatenate([0 * off[:1], off, -off]))
    return paid + float(landing.min()), paid + float(landing.max())


def _on_a_line(system: System, told: Mechanics, moved: Transition, reads_censored: bool) -> Reading:
    h, s, a, s_next, disturbance = moved
    first, last = system.residuals[0], len(system.declared_residuals) - 1
    hidden = bool(told.hides[s_next])
    lower, upper = hidden and s_next == 0, hidden and s_next == system.n_states - 1
    j = int(residual_of(told, system.mechanics.after, h, s, a, s_next))
    if (j < 0 and not upper) or (j > last and not lower):
        return Reading(
            None,
            told.whole,
            outside=f"{_from(system, h, s, a)} to {system.space.name(s_next)} the residual is {j + first}, outside "
            f"{first}..{first + last} (disturbance_range, widened by ζ/2); correct f, or declare a wider "
            "disturbance_range or a larger model_error",
        )
    measured, now = 0, j
    if told.after is not system.mechanics.after:  # f has been repaired since
        now = int(residual_of(told, told.after, h, s, a, s_next))
    if disturbance is not None:
        measured = int(system.bins.index(whole("disturbance", disturbance)))
        _check_agreement(system, moved)
    if disturbance is not None or not hidden or reads_censored:
        seen = explain_residual(told, h, s, a, s_next, now, measured, disturbance is None)
        return Reading(seen, told.whole)
    nearest = min(max(j, system.slack), last - system.slack)
    seen, censored = Seen(h, s, a, s_next, nearest, nearest), ""
    if system.slack or (lower and j > 0) or (upper and j < last):
        bound = f"W {'<=' if lower else '>='} {s_next + system.state_offset - int(system.f[h, s, a])}"
        censored = f"{_from(system, h, s, a)} the next state {system.space.name(s_next)} is a clipped boundary: {bound}"
    return Reading(seen, told.whole, censored=censored)


def _in_a_box(system: System, told: Mechanics, moved: Transition) -> Reading:
    (h, s, a, s_next, disturbance), space, bins = moved, system.space, system.bins
    x = _after(system, moved)
    before, after = (space.points[i] if space.all_whole else i for i in (s, s_next))
    w, (low, high) = _residual(system, after - x), bins.range()
    at_low, at_high = space.ends(after)
    if disturbance is not None:
        measured = np.ravel(numbers("disturbance", disturbance))
        if measured.shape != x.shape:
            raise ValueError(f"disturbance has shape {measured.shape}; give [d] with d = {space.n_axes}")
        bins.spread(measured[None])  # an error if it cannot be
        _check_agreement_in_a_box(system, moved, x, after, measured)
        w = np.where(at_low | at_high, measured, w)
        at_low, at_high = np.zeros_like(at_low), np.zeros_like(at_high)  # what was measured is not hidden
    tolerance = np.where(space.is_whole, 0, space.spacing / 2)  # at an end only one side can be told
    if (((w < low - tolerance) & ~at_high) | ((w > high + tolerance) & ~at_low)).any():
        return Reading(
            None,
            told.whole,
            outside=f"from {before} with action {system.actions[a]} at step {h} to {after} the residual is {w}, "
            f"outside {low}..{high}; correct f, or declare a wider disturbance_range",
        )
    censored = ""
    hidden = (at_low & (w > low)) | (at_high & (w < high))
    if hidden.any():
        k = int(hidden.argmax())
        censored = (
            f"from {before} with action {system.actions[a]} at step {h} the next state {after} is a clipped boundary "
            f"of axis {k}: W {'<=' if at_low[k] else '>='} {w[k]:g} there"
        )
    j, share = bins.spread(np.clip(w, low, high)[None])
    seen = Seen(h, space.index(s), a, space.index(s_next), int(j[0, 0]), int(j[0, 0]))
    return Reading(seen, share[0], censored=censored)


def _after(system: System, moved: Transition) -> NDArray[Any]:
    """[d] f of a transition in a box."""
    if system.space.all_whole:
        return np.array(system.f[moved.h, moved.s, moved.a])
    return np.array(system.at_any_state.after(moved.h, moved.s[None], np.array([moved.a]))[0])


def _residual(system: System, w: NDArray[Any]) -> NDArray[Any]:
    """[d] next state - f, on axes that wrap within the range of W: the shorter way round, on continuous ones."""
    space, (low, high) = system.space, system.bins.range()
    around = np.where(space.is_whole, space.shape, space.high - space.low)
    first = np.where(space.is_whole, low, (low + high) / 2 - around / 2)
    turned = first + (w - first) % around
    residual: NDArray[Any] = np.where(space.wraps, turned, w).astype(w.dtype)
    return residual


def _from(system: System, h: int, s: int, a: int) -> str:
    return f"from state {system.space.name(s)}, action {a} at step {h} (f = {system.f[h, s, a]})"


def _check_agreement(system: System, moved: Transition) -> None:
    """An error unless f + W, give or take ζ/2, leads to the next state."""
    h, s, a, s_next, disturbance = moved
    slack, raw = system.slack, int(system.f[h, s, a]) + disturbance
    around = raw + np.arange(-slack, slack + 1) - system.state_offset
    landed = around if system.boundary == "strict" else system.space.index_of_raw(around[:, None])
    if s_next not in landed:
        raise ValueError(
            f"{_from(system, h, s, a)} the disturbance {disturbance} leads to {raw}, not to the next state "
            f"{system.space.name(s_next)} that was given; correct f, or what was given, or declare a larger model_error"
        )


def _check_agreement_in_a_box(
    system: System, moved: Transition, x: NDArray[Any], after: NDArray[Any], w: NDArray[np.float64]
) -> None:
    """The same, give or take half the spacing of continuous axes."""
    space = system.space
    strict = np.array([rule == "strict" for rule in space.rules])
    away = np.abs(np.where(strict, x + w, space.meet_boundary((x + w)[None])[0]) - after)
    width = np.where(space.is_whole, space.shape, space.high - space.low)
    away = np.where(space.wraps, np.minimum(away, width - away), away)
    if (away > np.where(space.is_whole, 0, space.spacing / 2)).any():
        before = space.points[moved.s] if space.all_whole else moved.s
        raise ValueError(
            f"from {before} with action {system.actions[moved.a]} at step {moved.h} (f = {x}) the disturbance {w} "
            f"leads to {x + w}, not to the next state {after} that was given; correct f, or what was given"
        )

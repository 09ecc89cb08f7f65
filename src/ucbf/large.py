"""LargeSystem: a system with more states than a table can list, stated by functions on rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import LARGEST_RETURN, array_of, integers, numbers, one_of, real, whole
from ucbf.spaces import BOUNDARIES
from ucbf.statement import read_actions, read_length
from ucbf.tables import Function

Rows = NDArray[Any]

MOST_DISTURBANCES = 4096  # that a learner tells apart
SAMPLED = 64  # pairs at which functions are compared that are stated again
FEW_ACTIONS = 16  # so many, or fewer, may be kinds


def require_large(system: Any) -> LargeSystem:
    """The system, if it is one that values are fitted of."""
    if not isinstance(system, LargeSystem):
        raise TypeError(f"system is {system!r:.60}; values are fitted of a ucbf.LargeSystem (a preset has one: .large)")
    return system


class LargeSystem:
    """The mechanics and rewards of a system whose states are never listed: ``S' = g(f(S, A) + W)``.

    It is stated as a :class:`ucbf.System` in a box is, by functions that answer for rows of states at once. Nothing is
    put into tables, so that ten axes of forty values each are no more than one. What is planned with it is fitted, and
    judged by simulation: :mod:`ucbf.values`.

    Parameters
    ----------
    f
        Where actions a [N] or [N, m] lead from states s [N, d], before the disturbance: [N, k].
    reward
        What they pay at once: [N].
    horizon
        Number of steps of an episode; None: there is no end.
    boundary
        g: from raw next states z = f + W, [N, k], to states [N, d]; or "clip", "wrap" or "strict", where k = d.
    low, high
        [d] the least and the largest state along each axis.
    actions
        [A] or [A, m] the actions.
    action_low, action_high
        Instead of ``actions``: [m] the bounds of actions that are continuous.
    landing
        What raw next states pay: [N].
    discount
        γ in (0, 1]. Where there is no end, 1 means the long-run average.
    terminal
        What the states pay in which an episode ends: [N].
    allowed
        Whether actions exist in states: booleans [N]. Of continuous actions: write f so that all exist.

    disturbance_range
        (low, high) of W, each [k], whole numbers: what a learner counts. Not needed where the law of W is told.

    Every function may take the step first, as those of a System do.

    Examples
    --------
    >>> stock = LargeSystem(
    ...     lambda s, a: np.column_stack([s, a]),                                    # what is on its way moves up
    ...     lambda s, a: np.zeros(len(s)), horizon=None, low=[0] * 8, high=[40] * 8, actions=np.arange(13),
    ...     boundary=lambda z: np.column_stack([np.maximum(z[:, 0], 0) + z[:, 1], z[:, 2:]]),
    ...     landing=lambda z: -np.maximum(z[:, 0], 0) - 4.0 * np.maximum(-z[:, 0], 0))
    >>> stock
    LargeSystem(8 axes, 7.98e+12 states, 13 actions, no end)
    """

    def __init__(
        self,
        f: Callable[..., Any],
        reward: Callable[..., Any],
        horizon: int | None,
        *,
        boundary: str | Callable[..., Any],
        low: ArrayLike,
        high: ArrayLike,
        actions: ArrayLike | None = None,
        action_low: ArrayLike | None = None,
        action_high: ArrayLike | None = None,
        landing: Callable[..., Any] | None = None,
        discount: float = 1.0,
        terminal: Callable[..., Any] | None = None,
        allowed: Callable[..., Any] | None = None,
        disturbance_range: Any = None,
        compiled: Any = None,
    ) -> None:
        read_length(horizon, 1, terminal)
        self.horizon = None if horizon is None else whole("horizon", horizon, 1)
        self.discount = real("discount", discount, 0, 1, open_low=True)
        self.low, self.high = (np.atleast_1d(numbers(name, x)) for name, x in (("low", low), ("high", high)))
        if self.low.shape != self.high.shape or self.low.ndim != 1 or (self.low > self.high).any():
            raise ValueError(f"low is {self.low} and high {self.high}; give one number for each axis, low at most high")
        if self._whole_axes.all():  # so that a clipped state stays whole
            self.low, self.high = self.low.astype(np.int64), self.high.astype(np.int64)
        self.n_axes = len(self.low)
        if not self.n_axes:
            raise ValueError("low and high are empty; give one number for each axis of the states")
        self._f, self._reward = Function("f", f, 2, rows=True), Function("reward", reward, 2, rows=True)
        self._landing = None if landing is None else Function("landing", landing, 1, rows=True)
        self._terminal = None if terminal is None else Function("terminal", terminal, 1, rows=True)
        self._allowed = None if allowed is None else Function("allowed", allowed, 2, rows=True)
        self._boundary = boundary if callable(boundary) else one_of("boundary", boundary, BOUNDARIES)
        self.disturbance_range = disturbance_range
        self.compiled = compiled  # what a preset knows of itself as arrays, for kernels; None: functions are asked
        self._read_actions(actions, action_low, action_high)
        self._check_functions()
        if disturbance_range is not None:
            self._disturbance_ends()

    def _check_functions(self) -> None:
        """Every function answers for a few rows, each row by itself, with finite numbers of the right shape."""
        n = 8
        s, a = self._anywhere(n)
        given = self._given(a)
        steps = whole("horizon", self.horizon or 1, 1)
        answer = array_of("f", self._f.asked(0, np.array(s), np.array(given)))
        self.n_raw = answer.shape[1] if answer.ndim == 2 else 1
        self.whole_states = bool(self._whole_axes.all()) and np.issubdtype(answer.dtype, np.integer)

        def pairs(part: slice) -> tuple[Rows, ...]:
            return s[part], given[part]

        x = numbers("f", self._f.steps(steps, (n, self.n_raw), pairs))[0]
        numbers("reward", self._reward.steps(steps, (n,), pairs), most=LARGEST_RETURN)
        if self._landing is not None:
            numbers("landing", self._landing.steps(steps, (n,), lambda part: (x[part],)), most=LARGEST_RETURN)
        if self._terminal is not None:
            numbers("terminal", self._terminal(0, (n,), s), most=LARGEST_RETURN)
        if self._allowed is not None:
            self._allowed(0, (n,), s, given)
        if self.n_raw != self.n_axes and not callable(self._boundary):
            raise ValueError(
                f"f gives {self.n_raw} numbers for a state of {self.n_axes}; state the boundary as a function from "
                "these to states"
            )
        self._bounded(answer.reshape(n, self.n_raw))

    @property
    def _whole_axes(self) -> NDArray[np.bool_]:
        return np.asarray((self.low == np.rint(self.low)) & (self.high == np.rint(self.high)))

    def _anywhere(self, n: int) -> tuple[Rows, Rows]:
        """Some states [n, d] and actions [n, m], always the same."""
        rng = np.random.default_rng(0)
        s = rng.uniform(self.low, self.high, (n, self.n_axes))
        s = np.where(self._whole_axes, np.rint(s), s)
        s = s.astype(np.int64) if self._whole_axes.all() else s
        if self.continuous:
            return s, rng.uniform(self.action_low, self.action_high, (n, self.n_parts))
        return s, self.actions[rng.integers(len(self.actions), size=n)]

    def sampled(self) -> dict[str, Rows]:
        """What the functions say in some states and actions, by which a system is known again.

        W is one of those that are declared, as raw next states are asked for.
        """
        n, w = SAMPLED, self.disturbances
        s, a = self._anywhere(n)
        z = self.after(0, s, a) + w[np.random.default_rng(1).integers(len(w), size=n)]
        said = {"f": self.after(0, s, a), "reward": self.paid(0, s, a), "landing": self.landed(0, z)}
        return {**said, "boundary": self._bounded(z), "terminal": self.ended(s)}

    def _read_actions(self, actions: Any, low: Any, high: Any) -> None:
        """Rows [A, m] of actions; of continuous ones their bounds [m], and no rows."""
        if (actions is None) == (low is None) or (low is None) != (high is None):
            raise TypeError("give actions, or both action_low and action_high where they are continuous")
        if actions is not None:
            given = read_actions(actions, None)
            self.plain_actions = given.ndim == 1
            self.actions = given.reshape(len(given), -1)
            self.action_low, self.action_high = self.actions.min(axis=0), self.actions.max(axis=0)
            return
        self.plain_actions = np.ndim(low) == 0
        self.action_low, self.action_high = (
            np.atleast_1d(numbers(name, x)) for name, x in (("action_low", low), ("action_high", high))
        )
        if self.action_low.shape != self.action_high.shape or (self.action_low > self.action_high).any():
            raise ValueError(f"action_low is {low} and action_high {high}; give low at most high, one for each part")
        self.actions = np.zeros((0, len(self.action_low)))

    def __repr__(self) -> str:
        states = float(np.prod(self.high - self.low + 1.0))
        actions = "continuous" if self.continuous else str(len(self.actions))
        end = "no end" if self.horizon is None else f"horizon {self.horizon}"
        return f"LargeSystem({self.n_axes} axes, {states:.3g} states, {actions} actions, {end})"

    @property
    def continuous(self) -> bool:
        """Whether actions are any within bounds."""
        return not len(self.actions)

    @property
    def n_parts(self) -> int:
        """m: of how many numbers an action consists."""
        return self.actions.shape[1]

    @cached_property
    def may_be_kinds(self) -> bool:
        """Whether actions are so few that each may be of its own kind. Those of a compiled store are amounts."""
        return 0 < len(self.actions) <= FEW_ACTIONS and self.compiled is None

    @cached_property
    def free_parts(self) -> NDArray[np.int64]:
        """The parts of an action that there is a choice of."""
        return np.flatnonzero(self.action_high > self.action_low)

    @cached_property
    def disturbances(self) -> Rows:
        """[n, k] the values that W may take."""
        if self.disturbance_range is None:
            raise ValueError("disturbance_range is not given; to learn the law of W, declare its (low, high), each [k]")
        low, high = self._disturbance_ends()
        n = float(np.prod(high - low + 1.0))
        if n > MOST_DISTURBANCES:
            raise ValueError(f"W may take {n:.0f} values, more than {MOST_DISTURBANCES}; narrow disturbance_range")
        axes = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.n_raw)

    def _disturbance_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[k] the least and the largest W that are declared."""
        given = self.disturbance_range
        if np.ndim(given) > 0 and len(given) == 2:
            low, high = (integers("disturbance_range", np.atleast_1d(end)) for end in given)
            if low.shape == high.shape == (self.n_raw,) and (low <= high).all():
                return low, high
        raise ValueError(f"disturbance_range is {given!r:.80}; give (low, high), each [{self.n_raw}], low at most high")

    # -- the mechanics, for rows ------------------------------------------------------------------

    def _given(self, a: Rows) -> Rows:
        return a[:, 0] if self.plain_actions else a

    def _ask(self, function: Function | None, h: int, shape: tuple[int, ...], *rows: Rows) -> Rows:
        """Its answer for rows; what it may do to them in place stays with it."""
        if function is None:
            return np.zeros(shape)
        copies = [np.array(row) for row in rows]
        answer = np.asarray(function.function(h, *copies) if function.per_step else function.function(*copies))
        return answer if answer.shape == shape else np.broadcast_to(answer.reshape(answer.shape[:1] or ()), shape)

    def after(self, h: int, s: Rows, a: Rows) -> Rows:
        """[N, k] where actions [N, m] lead from states [N, d] before the disturbance."""
        return self._ask(self._f, h, (len(s), self.n_raw), s, self._given(a))

    def paid(self, h: int, s: Rows, a: Rows) -> NDArray[np.float64]:
        """[N] what actions [N, m] pay at once in states [N, d]."""
        return self._ask(self._reward, h, (len(s),), s, self._given(a))

    def landed(self, h: int, z: Rows) -> NDArray[np.float64]:
        """[N] what raw next states [N, k] pay."""
        return self._ask(self._landing, h, (len(z),), z)

    def met(self, z: Rows) -> Rows:
        """[N, d] the states that raw next states [N, k] lead to."""
        s = self._bounded(z)
        outside = (s < self.low) | (s > self.high)
        if outside.any():
            i = int(outside.any(axis=1).argmax())
            raise ValueError(
                f"f + W = {z[i]} leads to {s[i]}, outside {self.low}..{self.high}; correct the boundary, or state more "
                "states"
            )
        return s

    def _bounded(self, z: Rows) -> Rows:
        """[N, d] what the boundary makes of raw next states [N, k]."""
        if callable(self._boundary):
            s = np.asarray(self._boundary(np.array(z)))
            if s.shape != (len(z), self.n_axes):
                raise ValueError(f"boundary gives shape {s.shape} for {z.shape}; it must be {(len(z), self.n_axes)}")
            return s
        if self._boundary == "wrap":
            return self.low + np.mod(z - self.low, self.high - self.low + 1)
        return np.clip(z, self.low, self.high) if self._boundary == "clip" else z

    def ended(self, s: Rows) -> NDArray[np.float64]:
        """[N] what states [N, d] pay in which an episode ends."""
        return self._ask(self._terminal, 0, (len(s),), s)

    def allows(self, h: int, s: Rows, a: Rows) -> NDArray[np.bool_]:
        """[N] whether actions [N, m] exist in states [N, d]."""
        if self._allowed is None:
            return np.ones(len(s), np.bool_)
        return self._ask(self._allowed, h, (len(s),), s, self._given(a)).astype(bool)

    def exist(self, h: int, s: Rows) -> NDArray[np.bool_]:
        """[N, A] which of the actions exist in states [N, d]."""
        n, A = len(s), len(self.actions)
        if self._allowed is None:
            return np.ones((n, A), np.bool_)
        return self.allows(h, np.repeat(s, A, axis=0), np.tile(self.actions, (n, 1))).reshape(n, A)

    def step(self, h: int, s: Rows, a: Rows, w: Rows) -> tuple[NDArray[np.float64], Rows]:
        """What is paid [N] and the next states [N, d], after actions [N, m] and disturbances [N, k]."""
        z = self.after(h, s, a) + w
        return self.paid(h, s, a) + self.landed(h, z), self.met(z)

    # -- actions ----------------------------------------------------------------------------------

    def has(self, h: int, s: Rows, a: Rows) -> NDArray[np.bool_]:
        """[N] whether rows [N, m] are actions of this system that exist in states [N, d]."""
        if self.continuous:
            return np.asarray(((a >= self.action_low) & (a <= self.action_high)).all(axis=1))
        known = (a == self.actions[self.at_most(a)]).all(axis=1)
        return np.asarray(known & self.allows(h, s, np.where(known[:, None], a, self.actions[0])))

    @cached_property
    def action_axes(self) -> list[NDArray[Any]] | None:
        """The values along each part of the actions, where these are all combinations of them; else None."""
        values = [np.unique(column) for column in self.actions.T]
        places = np.stack([np.searchsorted(v, c) for v, c in zip(values, self.actions.T, strict=True)], axis=1)
        radix = np.cumprod([1, *(len(v) for v in values[:0:-1])])[::-1]
        in_order = np.array_equal(places @ radix, np.arange(len(self.actions)))
        return values if in_order and len(self.actions) == np.prod([len(v) for v in values]) else None

    def at_most(self, wanted: Rows) -> NDArray[np.int64]:
        """[N] the number of the action that is at most what is wanted [N, m], part by part; else the nearest."""
        if self.action_axes is None:
            away = ((wanted[:, None, :] - self.actions[None]) ** 2).sum(axis=2)
            return np.asarray(away.argmin(axis=1))
        index = np.zeros(len(wanted), np.int64)
        for i, values in enumerate(self.action_axes):
            place = np.searchsorted(values, wanted[:, i] + 1e-9, side="right") - 1
            index = index * len(values) + np.maximum(place, 0)
        return index

    @cached_property
    def neighbours(self) -> NDArray[np.int64]:
        """[A, B] the actions nearest to each, itself first; all of them where they may be kinds."""
        A, near = len(self.actions), 3 if len(self.free_parts) == 1 else 9
        B = A if self.may_be_kinds else min(A, near)
        spread = np.maximum(np.ptp(self.actions, axis=0), 1e-300) / [len(np.unique(c)) for c in self.actions.T]
        scaled = self.actions / spread
        found = np.empty((A, B), np.int64)
        for i in range(A):
            found[i] = np.argsort(((scaled - scaled[i]) ** 2).sum(axis=1), kind="stable")[:B]
        return found

    def existing(self, h: int, s: Rows, a: Rows) -> Rows:
        """[N, m] actions, each replaced by the nearest that exists where it does not."""
        wrong = np.flatnonzero(~self.allows(h, s, a))
        if not len(wrong):
            return a
        if self.continuous:
            raise ValueError(f"action {a[wrong[0]]} does not exist in state {s[wrong[0]]}; write f so that all do")
        at = s[wrong]
        there = self.exist(h, at)
        if not there.any(axis=1).all():
            raise ValueError(f"no action exists in state {at[int((~there.any(axis=1)).argmax())]}; correct allowed")
        away = ((self.actions[None] - a[wrong][:, None, :]) ** 2).sum(axis=2)
        a = np.array(a)
        a[wrong] = self.actions[np.where(there, away, np.inf).argmin(axis=1)]
        return a

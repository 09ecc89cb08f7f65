"""Continuous states in a box: the same idea on a lattice, with W as it is measured.

Values are kept at the points of a lattice and interpolated (multilinearly) between them. Seen from a point of the
lattice, every disturbance w ends at the same place within a cell, so that interpolating what follows at x + w is
sharing w out, once, among the 2^d differences of points around it: W is not rounded, and a plan takes no longer for a
thousand samples than for ten. What follows an after-state f(s, a) is interpolated again. Where values are smooth the
error falls with the square of the spacing, where they have kinks, with the spacing.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.agents.base import CensoredWarning, Lock
from ucbf.checks import LARGEST_INTEGER, LARGEST_RETURN, array_of, frozen, numbers, one_of, real, whole
from ucbf.kernels.types import BOUNDARIES, Mechanics
from ucbf.limits import MOST_SEEN, ROUNDED, Limit, Limits, copy_into
from ucbf.model_check import ModelWarning
from ucbf.planning import induction
from ucbf.saving import GRID_AGENT, LARGEST_FILE, read_arrays, write_arrays
from ucbf.system import LARGEST_TABLE, takes_the_step

Floats = NDArray[np.float64]
Function = Callable[..., Any]
MOST_AXES = 4
EDGE = 1e-9  # of the width of the box: how near to an edge is at it


def lattice(low: ArrayLike, high: ArrayLike, points: ArrayLike) -> Floats:
    """All points [N, m] of a lattice over a box, for ``actions``: 25 for [-1, -1], [1, 1] and 5."""
    axes = [np.linspace(a, b, n) for a, b, n in zip(*_axes(low, high, points), strict=True)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _axes(low: ArrayLike, high: ArrayLike, points: ArrayLike) -> tuple[Floats, Floats, list[int]]:
    first, last = np.atleast_1d(numbers("low", low)), np.atleast_1d(numbers("high", high))
    if first.ndim != 1 or first.shape != last.shape or not len(first):
        raise ValueError(f"low has shape {first.shape} and high {last.shape}; give one number for each axis")
    if (first >= last).any():
        k = int(np.flatnonzero(first >= last)[0])
        raise ValueError(f"axis {k} goes from {first[k]:g} to {last[k]:g}; low must be below high")
    counts = [whole("points", n, 2) for n in np.atleast_1d(points).tolist()]
    if len(counts) not in (1, len(first)):
        raise ValueError(f"points has {len(counts)} numbers; give one, or one for each of the {len(first)} axes")
    return first, last, counts * (len(first) if len(counts) == 1 else 1)


class _Function:
    """A function of the user's: rows in, a number or a vector for each of them out."""

    def __init__(self, name: str, function: Any, arguments: int, most: float = LARGEST_RETURN) -> None:
        if not callable(function):
            what = "states [N, d] and actions [N, m]" if arguments == 2 else "states [N, d]"
            raise TypeError(f"{name} is {function!r:.60}; give a function of {what}")
        self.name, self.function, self.most = name, function, most
        self.per_step = takes_the_step(name, function, arguments)

    def __call__(self, h: int, shape: tuple[int, ...], *arrays: Floats) -> Floats:
        """[N] or [N, d]; an error for what is not finite, or not of that shape."""
        copies = [np.array(array) for array in arrays]  # it may work in place
        try:
            answer = self.function(h, *copies) if self.per_step else self.function(*copies)
        except Exception as error:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise TypeError(
                f"{self.name} failed when called with arrays of shape {shapes}: {type(error).__name__}: {error}; "
                "write it so that it answers for all rows at once; s[:, 0] is the first coordinate"
            ) from error
        given = array_of(self.name, answer).astype(np.float64)
        if given.shape == (*shape, 1) or (given.shape == shape[:1] and shape[1:] == (1,)):
            given = given.reshape(shape)
        if given.shape not in {shape, ()}:
            raise ValueError(f"{self.name} returned shape {given.shape} for {len(arrays[0])} rows; it must be {shape}")
        table = np.broadcast_to(given, shape)
        wrong = np.argwhere(~(np.abs(table) <= self.most))
        if len(wrong):
            i = int(wrong[0, 0])
            where = ", ".join(str(array[i]) for array in arrays)
            raise ValueError(
                f"{self.name} is {table[tuple(wrong[0])]} at {where}, step {h}; it must be a finite number within "
                f"±{self.most:g}"
            )
        return table

    def check_rows(self, table: Floats, *arrays: Floats) -> None:
        """Whether the answer for a row is the same alone and among others. table: that among others, at step 0."""
        for i in {0, len(table) // 2, len(table) - 1}:
            alone = self(0, (1, *table.shape[1:]), *(array[i : i + 1] for array in arrays))[0]
            if not np.allclose(alone, table[i], rtol=1e-9, atol=1e-12):
                raise ValueError(
                    f"{self.name} is {alone} for {arrays[0][i]} alone and {table[i]} among other states; write it so "
                    "that it answers row by row: s[:, 0], np.sum(..., axis=1)"
                )


class Lipschitz(NamedTuple):
    """Constants in the largest coordinate, as far as the lattice shows them."""

    f: float
    reward: float
    value: Floats  # [H+1] of the values of a plan, or a bound on them that needs no plan


class Lattice(NamedTuple):
    """A system as arrays, on a lattice."""

    mechanics: Mechanics
    origin: NDArray[np.int64]  # [d] index of the first after-state
    shape: NDArray[np.int64]  # [d] after-states along each axis


class Grid:
    """A system with continuous states, S' = f(S, A) + W, all of them vectors; everything except the law of W.

    Parameters
    ----------
    f
        A function of (states, actions) or (h, states, actions): [N, d] and [N, m] in, [N, d] out.
    reward
        A function like f: [N] out.
    horizon
        Number of steps of an episode, H.
    low, high
        [d] the box, in one to four dimensions.
    points
        Of the lattice along each axis; one number, or one for each.
    actions
        [A] or [A, m]: the actions; :func:`ucbf.grid.lattice` makes a box into a list.
    boundary
        "clip", "wrap" or "strict", or one for each axis.
    landing
        Reward of the raw next state z = f + W: a function of z [N, d] or of (h, z). Needs ``disturbance_range``.
    terminal
        Reward of the last state: a function of [N, d].
    allowed
        Which actions exist: a function like reward, with booleans out.
    discount
        γ in (0, 1].
    disturbance_range
        (low, high) of W, [d] each; what two states can be apart, if None.

    Examples
    --------
    >>> plant = Grid(f=lambda x, u: x + u, reward=lambda x, u: -(x**2 + u**2)[:, 0], horizon=3, low=-2, high=2,
    ...              points=81, actions=np.linspace(-2, 2, 81), disturbance_range=(-0.3, 0.3))
    >>> plan = plant.plan([[-0.2], [0.2]])
    >>> print(f"{plan.value(0, [1.0]):.3f}")                        # Riccati says -(1.6 + 0.04 (1.5 + 1))
    -1.700
    """

    def __init__(
        self,
        f: Function,
        reward: Function,
        horizon: int,
        low: ArrayLike,
        high: ArrayLike,
        points: ArrayLike,
        actions: ArrayLike,
        boundary: str | Sequence[str] = "clip",
        landing: Function | None = None,
        terminal: Function | None = None,
        allowed: Function | None = None,
        discount: float = 1.0,
        disturbance_range: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        first, last, counts = _axes(low, high, points)
        d = len(first)
        if d > MOST_AXES:
            raise ValueError(f"the box has {d} axes; at most {MOST_AXES} are supported: leave out what does not matter")
        rules = (boundary,) * d if isinstance(boundary, str) else tuple(boundary)
        if len(rules) != d:
            raise ValueError(f"boundary has {len(rules)} entries; give one, or one for each of the {d} axes")
        wraps = np.array([one_of("boundary", rule, BOUNDARIES) == "wrap" for rule in rules])
        choices = numbers("actions", actions)
        if choices.ndim not in (1, 2) or not choices.size:
            raise ValueError(f"actions has shape {choices.shape}; give [A] or [A, m]")
        n = np.array(counts)
        self.horizon = whole("horizon", horizon, 1)
        if self.horizon * math.prod(counts) > LARGEST_TABLE:
            raise ValueError(
                f"{self.horizon} steps of {math.prod(counts)} points are more than {LARGEST_TABLE} together; state a "
                "shorter horizon, or take a coarser lattice"
            )
        most = LARGEST_RETURN / self.horizon
        self._f, self._reward = _Function("f", f, 2), _Function("reward", reward, 2, most)
        self._allowed = None if allowed is None else _Function("allowed", allowed, 2)
        self._landing = None if landing is None else _Function("landing", landing, 1, most)
        self._terminal = None if terminal is None else _Function("terminal", terminal, 1, most)
        if self._terminal is not None and self._terminal.per_step:
            raise TypeError("terminal takes more than the states; it is paid once, after the last step")
        self.low, self.high = frozen(first), frozen(last)  # [d]
        self.points, self.boundary = tuple(counts), rules  # [d]
        self.actions: Floats = frozen(choices.reshape(len(choices), -1))  # [A, m]
        self.discount = real("discount", discount, 0, 1, open_low=True)
        self.spacing: Floats = frozen((last - first) / np.where(wraps, n, n - 1))  # [d]
        self.disturbance_range = self._checked_range(disturbance_range)  # (low, high) of W, [d] each
        if landing is not None and disturbance_range is None:
            raise ValueError("landing needs disturbance_range=(low, high): how far beyond the box f + W may go")

    # -- sizes ------------------------------------------------------------------------------------

    @property
    def n_axes(self) -> int:
        """D."""
        return len(self.low)

    @property
    def n_states(self) -> int:
        """Points of the lattice."""
        return int(np.prod(self.points))

    @property
    def n_actions(self) -> int:
        """A."""
        return len(self.actions)

    @cached_property
    def nodes(self) -> Floats:
        """[S, d] the points of the lattice, the last axis running fastest."""
        return frozen(self.low + self.spacing * _indices(self.points))

    def __repr__(self) -> str:
        sides = " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(self.low, self.high, strict=True))
        shape = " x ".join(map(str, self.points))
        return f"Grid({sides}, {shape} points, {self.n_actions} actions, horizon {self.horizon})"

    # -- what the user wrote, at any states ---------------------------------------------------------

    def f(self, h: int, states: ArrayLike, actions: ArrayLike) -> Floats:
        """[N, d] where actions [N, m] lead from states [N, d] before the disturbance."""
        s, a = np.atleast_2d(numbers("states", states)), np.atleast_2d(numbers("actions", actions))
        return self._f(h, (len(s), self.n_axes), s, a)

    def reward(self, h: int, states: ArrayLike, actions: ArrayLike) -> Floats:
        """[N] what it pays."""
        s, a = np.atleast_2d(numbers("states", states)), np.atleast_2d(numbers("actions", actions))
        return self._reward(h, (len(s),), s, a)

    def allowed(self, h: int, states: Floats, actions: Floats) -> NDArray[np.bool_]:
        """[N] whether the action exists."""
        if self._allowed is None:
            return np.ones(len(states), bool)
        return self._allowed(h, (len(states),), states, actions).astype(bool)

    def landing(self, h: int, raw: Floats) -> Floats:
        """[N] what raw next states [N, d] pay."""
        return np.zeros(len(raw)) if self._landing is None else self._landing(h, (len(raw),), raw)

    def terminal(self, states: Floats) -> Floats:
        """[N] what the last states pay."""
        return np.zeros(len(states)) if self._terminal is None else self._terminal(0, (len(states),), states)

    def rows(self, name: str, states: ArrayLike) -> Floats:
        """[N, d] states, [d] being one of them; turned into the box where an axis wraps, refused outside it."""
        s = numbers(name, states)
        if s.ndim <= 1:
            s = s.reshape(-1, 1) if self.n_axes == 1 else s.reshape(1, -1)
        if s.ndim != 2 or s.shape[1] != self.n_axes:
            raise ValueError(f"{name} has shape {np.shape(states)}; give [d] or [N, d] with d = {self.n_axes}")
        wraps = np.array([rule == "wrap" for rule in self.boundary])
        s = np.where(wraps, self.meet_boundary(s), s)
        margin = 1e-6 * (self.high - self.low)
        outside = s[((s < self.low - margin) | (s > self.high + margin)).any(axis=1)]
        if len(outside):
            raise ValueError(f"{name} {outside[0]} is outside the box {self.low}..{self.high}; state a larger box")
        return s

    def meet_boundary(self, raw: ArrayLike) -> Floats:
        """[N, d] raw next states, brought back into the box."""
        z = np.array(raw, dtype=np.float64)
        for k, rule in enumerate(self.boundary):
            width = self.high[k] - self.low[k]
            turned = self.low[k] + (z[:, k] - self.low[k]) % width
            z[:, k] = turned if rule == "wrap" else np.clip(z[:, k], self.low[k], self.high[k])
        return z

    def step(self, h: int, states: Floats, actions: Floats, w: Floats) -> tuple[Floats, Floats]:
        """[N, d] where a step ends, and [N] what it pays, landing included."""
        raw = self.f(h, states, actions) + w
        return self.meet_boundary(raw), self.reward(h, states, actions) + self.landing(h, raw)

    def edges(self, state: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """[d] twice: whether a state is at the low edge of a clipped axis, and at the high one."""
        s, near = np.ravel(np.asarray(state, dtype=np.float64)), EDGE * (self.high - self.low)
        clips = np.array([rule == "clip" for rule in self.boundary])
        return clips & (s <= self.low + near), clips & (s >= self.high - near)

    def hides(self, state: ArrayLike) -> bool:
        """Whether a state may hide the disturbance that led to it: at an edge of a clipped axis."""
        low, high = self.edges(state)
        return bool((low | high).any())

    def residual(self, h: int, state: ArrayLike, action: int, next_state: ArrayLike) -> Floats:
        """[d] next_state - f: W, where no edge hides it. The shorter way round, where an axis wraps."""
        w = np.ravel(numbers("next state", next_state)) - self.f(h, np.ravel(state), self.actions[action])[0]
        for k, rule in enumerate(self.boundary):
            if rule == "wrap":
                first = sum(side[k] for side in self.disturbance_range) / 2 - (self.high[k] - self.low[k]) / 2
                w[k] = first + (w[k] - first) % (self.high[k] - self.low[k])
        return np.array(w)

    # -- the lattice --------------------------------------------------------------------------------

    def _checked_range(self, given: tuple[ArrayLike, ArrayLike] | None) -> tuple[Floats, Floats]:
        width = self.high - self.low
        if given is None:
            wraps = np.array([rule == "wrap" for rule in self.boundary])
            half = np.where(wraps, width / 2, width)
            return frozen(-half), frozen(half)
        try:
            pair = [np.broadcast_to(numbers("disturbance_range", side), (self.n_axes,)) for side in given]
            low, high = pair
        except (TypeError, ValueError):
            raise ValueError(
                f"disturbance_range is {given!r:.80}; give (low, high), a number or {self.n_axes} each"
            ) from None
        if (low > high).any():
            raise ValueError(f"disturbance_range is {given!r:.80}; low must not exceed high")
        return frozen(low), frozen(high)

    @cached_property
    def bins(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[d] twice: the first multiple of the spacing that W may reach, and how many there are."""
        low, high = self.disturbance_range
        first = np.floor(low / self.spacing + 1e-9).astype(np.int64)
        last = np.ceil(high / self.spacing - 1e-9).astype(np.int64)
        return first, np.maximum(last, first + 1) - first + 1

    def shared(self, samples: ArrayLike, weights: ArrayLike | None = None) -> Floats:
        """[R] disturbances [n, d], shared out among the multiples of the spacing around them; sums to the weights."""
        w = numbers("samples", samples)
        w = w.reshape(-1, 1) if w.ndim == 1 and self.n_axes == 1 else np.atleast_2d(w)
        if w.ndim != 2 or w.shape[1] != self.n_axes:
            raise ValueError(f"samples has shape {np.shape(samples)}; give [n, d] with d = {self.n_axes}")
        low, high = self.disturbance_range
        outside = w[((w < low - EDGE) | (w > high + EDGE)).any(axis=1)]
        if len(outside):
            raise ValueError(
                f"the disturbance {outside[0]} is outside {low}..{high}; declare a wider disturbance_range"
            )
        weight = np.ones(len(w)) if weights is None else numbers("weights", weights)
        if weight.shape != (len(w),):
            raise ValueError(f"weights has shape {weight.shape}; give one for each of the {len(w)} samples")
        if (weight < 0).any() or not weight.sum() > 0:
            raise ValueError(
                "there is nothing to plan with: give samples, and weights of which none is below 0 and one above"
            )
        first, count = self.bins
        cell, share = _cells(w / self.spacing - first, count)
        corners, products = _corners(share)
        table = np.zeros(int(count.prod()))
        strides = _strides(count)
        for corner, product in zip(corners, products, strict=True):
            np.add.at(table, np.minimum(cell + corner, count - 1) @ strides, weight * product)
        return table

    @property
    def mechanics(self) -> Mechanics:
        """The system as arrays for the compiled functions."""
        return self.lattice.mechanics

    @cached_property
    def lattice(self) -> Lattice:
        """The same, and where the after-states lie."""
        H, S, A, d = self.horizon, self.n_states, self.n_actions, self.n_axes
        n, (first, count) = np.array(self.points), self.bins
        states, actions = np.repeat(self.nodes, A, axis=0), np.tile(self.actions, (S, 1))
        if (H if self._f.per_step or self._reward.per_step else 1) * S * A * 2**d > LARGEST_TABLE:
            raise ValueError(f"{S} points and {A} actions are too many; take a coarser lattice, or fewer actions")

        def steps(function: _Function | None, table: Callable[[int], NDArray[Any]]) -> NDArray[Any]:
            """[1 or H, ...]: one step, where the function does not take the step."""
            return np.stack([table(h) for h in range(H if function is not None and function.per_step else 1)])

        f = steps(self._f, lambda h: self.f(h, states, actions))
        self._f.check_rows(f[0], states, actions)
        reward = steps(self._reward, lambda h: self.reward(h, states, actions))
        self._reward.check_rows(reward[0], states, actions)
        after = (f - self.low) / self.spacing
        exists = steps(self._allowed, lambda h: self.allowed(h, states, actions).reshape(S, A))
        self._check_inside(after.reshape(len(after), S, A, d), exists)
        stuck = np.argwhere(~exists.any(axis=2))
        if len(stuck):
            raise ValueError(f"state {self.nodes[stuck[0, 1]]} has no allowed action at step {stuck[0, 0]}; allow one")
        if self._landing is None:  # further out it makes no difference
            for k, rule in enumerate(self.boundary):
                turned = after[..., k] % n[k]
                inside = np.clip(after[..., k], -(first[k] + count[k] - 1), n[k] - 1 - first[k])
                after[..., k] = turned if rule == "wrap" else inside
        low, high = self._reached(after)
        reach = high - low + count + 2
        if H * float(np.prod(reach)) > LARGEST_TABLE or np.abs([low, high]).max() > LARGEST_INTEGER:
            raise ValueError(
                f"f + W reaches over {' x '.join(f'{n:g}' for n in reach)} points in each of {H} steps; check f and "
                "disturbance_range, or take a coarser lattice"
            )
        origin = np.floor(low).astype(np.int64)
        shape = np.floor(high).astype(np.int64) + 2 - origin  # one more than the last cell begins
        raw = shape + count - 1
        cell, share = _cells(after.reshape(-1, d) - origin, shape)
        corners, products = _corners(share)
        z = _indices(tuple(raw.tolist())) + origin + first
        where = [z[:, k] % n[k] if rule == "wrap" else np.clip(z[:, k], 0, n[k] - 1)
                 for k, rule in enumerate(self.boundary)]  # fmt: skip
        positions = self.low + z * self.spacing
        rows = _indices(tuple(shape[:-1].tolist())) @ _strides(raw)[:-1] if d > 1 else np.zeros(1, np.int64)
        mechanics = Mechanics(
            after=frozen((cell @ _strides(shape)).reshape(len(after), S, A).astype(np.int32)),
            share=frozen(products.T.reshape(len(after), S, A, len(corners))),
            corners=frozen(corners @ _strides(shape)),
            reward=frozen(np.where(exists, reward.reshape(-1, S, A), -np.inf)),
            landing=frozen(steps(self._landing, lambda h: self.landing(h, positions))),
            next_state=frozen((np.stack(where, axis=1) @ _strides(n)).astype(np.int32)),
            rows=frozen(rows),
            offsets=frozen(_indices(tuple(count.tolist())) @ _strides(raw)),
            terminal=frozen(np.array(self.terminal(self.nodes))),
            discount=self.discount,
            horizon=H,
            n_after=int(shape.prod()),
            n_residuals=int(count.prod()),
            shift=0,
            hides=frozen(np.zeros(S, np.bool_)),  # what a transition says of W is not asked of the compiled functions
            wraps=False,
            modular=False,
        )
        return Lattice(mechanics, origin, shape)

    def _reached(self, after: Floats) -> tuple[Floats, Floats]:
        """[d] the least and the most of f, in units of the spacing; also from the end of an axis that turns."""
        low, high = after.min(axis=(0, 1)), after.max(axis=(0, 1))
        wraps = [k for k, rule in enumerate(self.boundary) if rule == "wrap"]
        if self._landing is None or not wraps:
            return low, high
        ends = np.array(self.nodes)
        for k in wraps:
            ends[:, k] = np.where(np.isclose(ends[:, k], self.low[k]), self.high[k], ends[:, k])
        states, actions = np.repeat(ends, self.n_actions, axis=0), np.tile(self.actions, (len(ends), 1))
        for h in range(self.horizon if self._f.per_step else 1):
            there = (self.f(h, states, actions) - self.low) / self.spacing
            low, high = np.minimum(low, there.min(axis=0)), np.maximum(high, there.max(axis=0))
        return low, high

    def _check_inside(self, after: Floats, exists: NDArray[np.bool_]) -> None:
        """Along a strict axis f + W must stay in the box. after: [F, S, A, d] in units of the spacing."""
        low, high = (side / self.spacing for side in self.disturbance_range)
        for k, rule in enumerate(self.boundary):
            if rule == "strict":
                beyond = (after[..., k] + low[k] < -1e-9) | (after[..., k] + high[k] > self.points[k] - 1 + 1e-9)
                wrong = np.argwhere(beyond & exists)
                if len(wrong):
                    h, s, a = wrong[0]
                    raise ValueError(
                        f"from {self.nodes[s]}, action {self.actions[a]} at step {h} f + W may leave the box along "
                        f"axis {k}; pass boundary='clip' or 'wrap', a larger box, or the disturbance_range"
                    )

    def plan(self, samples: ArrayLike, weights: ArrayLike | None = None) -> GridPlan:
        """The best plan if W is one of these, [n, d], or [H, n, d] for a law of its own at every step."""
        given = numbers("samples", samples)
        each = given if given.ndim == 3 else given[None]
        if len(each) not in (1, self.horizon):
            raise ValueError(f"samples has {len(each)} steps and the system {self.horizon}; give one, or one each")
        counts = np.stack([self.shared(step, weights) for step in each])
        return self.plan_with(counts / counts.sum(axis=1, keepdims=True))

    def plan_with(self, law: Floats) -> GridPlan:
        """The best plan for a law over the multiples of the spacing, [1 or H, R]; see :meth:`shared`."""
        m = self.mechanics
        return GridPlan(self, *induction(m, m.offsets, np.ascontiguousarray(law)))

    def lipschitz(self, plan: GridPlan | None = None) -> Lipschitz:
        """How steep f, the reward and the values are between neighbouring points of the lattice: an estimate.

        Without a plan the constants of the values are bounded: L_h <= L_r + L_f (L_landing + γ L_{h+1}).
        """
        A, shape = self.n_actions, self.points
        states, actions = np.repeat(self.nodes, A, axis=0), np.tile(self.actions, (self.n_states, 1))
        steep_f = steep_r = 0.0
        for h in range(self.horizon):
            f = self.f(h, states, actions).reshape(*shape, A, self.n_axes)
            steep_f = max(steep_f, *(self._steepest(f[..., k]) for k in range(self.n_axes)))
            steep_r = max(steep_r, self._steepest(self.reward(h, states, actions).reshape(*shape, A)))
        steep = np.empty(self.horizon + 1)
        if plan is not None:
            for h, v in enumerate(plan.v):
                steep[h] = self._steepest(v.reshape(shape))
            return Lipschitz(steep_f, steep_r, steep)
        low, high = self.disturbance_range
        beyond = lattice(self.low + low, self.high + high, self.points)
        apart = (self.high + high - self.low - low) / (np.array(self.points) - 1)
        landed = max(_steepest(self.landing(h, beyond).reshape(shape), apart) for h in range(self.horizon))
        steep[-1] = self._steepest(self.terminal(self.nodes).reshape(shape))
        for h in range(self.horizon - 1, -1, -1):
            steep[h] = steep_r + steep_f * (landed + self.discount * steep[h + 1])
        return Lipschitz(steep_f, steep_r, steep)

    def _steepest(self, table: Floats) -> float:
        """As of the function below, at the points of the lattice; also over the end of an axis that turns."""
        for k, rule in enumerate(self.boundary):
            if rule == "wrap":
                table = np.concatenate([table, np.take(table, [0], axis=k)], axis=k)
        return _steepest(table, self.spacing)


def _steepest(table: Floats, spacing: Floats) -> float:
    """The largest sum, over the axes, of what neighbouring points differ by, a unit apart. table: [points, ...]."""
    total, axes = np.zeros(()), tuple(range(len(spacing)))
    for k in axes:
        total = total + (np.abs(np.diff(table, axis=k)) / spacing[k]).max(axis=axes)
    return float(np.max(total))


class GridPlan:
    """Values on the lattice of a :class:`Grid`, and between its points."""

    def __init__(self, grid: Grid, v: Floats, ahead: Floats, policy: NDArray[np.int64]) -> None:
        self.grid = grid
        self.v = v  # [H+1, S]
        self.ahead = ahead  # [H, X] what follows the after-states
        self.policy = policy  # [H, S] indices of actions

    def __repr__(self) -> str:
        return f"GridPlan({self.grid!r})"

    def value(self, h: int, states: ArrayLike) -> Any:
        """The values of states [d] or [N, d] at step h, interpolated."""
        grid = self.grid
        h, s = whole("step h", h, 0, grid.horizon), grid.rows("state", states)
        at = (grid.meet_boundary(s) - grid.low) / grid.spacing
        n = np.array(grid.points)
        wraps = np.array([rule == "wrap" for rule in grid.boundary])
        cell, share = _cells(at, n + wraps)
        corners, products = _corners(share)
        found = np.zeros(len(s))
        for corner, product in zip(corners, products, strict=True):
            index = np.where(wraps, (cell + corner) % n, np.minimum(cell + corner, n - 1))
            found += product * self.v[h][index @ _strides(n)]
        return float(found[0]) if _is_one(states, grid) else found

    def q(self, h: int, states: ArrayLike) -> Floats:
        """[N, A] for states [N, d]: the reward at the very state, and what follows f, interpolated."""
        grid, (_, origin, shape) = self.grid, self.grid.lattice
        h, s = whole("step h", h, 0, grid.horizon - 1), grid.rows("state", states)
        N, A = len(s), grid.n_actions
        each, actions = np.repeat(s, A, axis=0), np.tile(grid.actions, (N, 1))
        at = (grid.f(h, each, actions) - grid.low) / grid.spacing
        if grid._landing is None:
            n = np.array(grid.points)
            for k, rule in enumerate(grid.boundary):
                at[:, k] = at[:, k] % n[k] if rule == "wrap" else at[:, k]
        cell, share = _cells(at - origin, shape)
        corners, products = _corners(share)
        follows = sum(
            product * self.ahead[h][(cell + corner) @ _strides(shape)]
            for corner, product in zip(corners, products, strict=True)
        )
        q = grid.reward(h, each, actions) + follows
        exists = grid.allowed(h, each, actions).reshape(N, A)
        stuck = np.flatnonzero(~exists.any(axis=1))
        if len(stuck):
            raise ValueError(f"state {s[stuck[0]]} has no allowed action at step {h}; allow one in every state")
        return np.where(exists, q.reshape(N, A), -np.inf)

    def act(self, h: int, states: ArrayLike) -> Any:
        """Indices of the best actions in states [d] or [N, d]; ties go to the lowest."""
        best = self.q(h, states).argmax(axis=1)
        return int(best[0]) if _is_one(states, self.grid) else best

    def rollout(self, starts: ArrayLike, disturbances: ArrayLike) -> Floats:
        """[N] discounted returns of N episodes from states [N, d] with disturbances [N, H, d], in the system itself."""
        grid = self.grid
        s, w = grid.rows("starts", starts), numbers("disturbances", disturbances)
        if w.shape != (len(s), grid.horizon, grid.n_axes):
            raise ValueError(f"disturbances has shape {w.shape}; give {(len(s), grid.horizon, grid.n_axes)}")
        total = np.zeros(len(s))
        for h in range(grid.horizon):
            actions = grid.actions[self.act(h, s)]
            s, paid = grid.step(h, s, actions, w[:, h])
            total += grid.discount**h * paid
        return total + grid.discount**grid.horizon * grid.terminal(s)


class GridAgent:
    """UCBVI-f in a continuous system: counts the disturbances as they are and plans with them.

    Parameters
    ----------
    grid
        The mechanics and rewards the learner is told.
    stationary
        Whether W has the same law at every step; its samples are then pooled. Declare it only where it is so.
    """

    def __init__(self, grid: Grid, *, stationary: bool = False) -> None:
        if not isinstance(grid, Grid):
            raise TypeError(f"GridAgent is built from a ucbf.Grid, not {grid!r:.60}")
        self.system = grid
        self.stationary = bool(stationary)
        rows, bins = 1 if stationary else grid.horizon, float(np.prod(grid.bins[1].astype(float)))
        if rows * bins > LARGEST_TABLE:
            raise ValueError(
                f"W may be any of {bins:.3g} multiples of the spacing; declare a narrower disturbance_range"
            )
        self.counts = np.zeros((rows, int(bins)))
        self.outside = 0  # residuals that the declared range excludes, and nothing was learned from
        self._law = self._believed()  # what the plan is made with, until it is renewed
        self._plan: GridPlan | None = None
        self._warned: set[type] = set()
        self.lock = Lock()

    def __repr__(self) -> str:
        return f"GridAgent({self.system!r}, stationary={self.stationary})"

    def _believed(self) -> Floats:
        """[1 or H, R] the law of what was counted; a step that has seen nothing takes W for 0, or what is nearest."""
        total = self.counts.sum(axis=1, keepdims=True)
        low, high = self.system.disturbance_range
        nothing = self.system.shared(np.clip(np.zeros_like(low), low, high)[None])
        law: Floats = np.where(total > 0, self.counts / np.where(total > 0, total, 1), nothing)
        return law

    def renew(self) -> None:
        """Plan with all that was seen so far. Done when an episode starts, or the plan or policy is asked for."""
        with self.lock:
            law = self._believed()
            if self._plan is None or not np.array_equal(law, self._law):
                self._law, self._plan = law, self.system.plan_with(law)

    @property
    def plan(self) -> GridPlan:
        """The plan with what was seen so far."""
        self.renew()
        return self._acting()

    def _acting(self) -> GridPlan:
        """The plan of this episode."""
        if self._plan is None:
            self._plan = self.system.plan_with(self._law)
        return self._plan

    @property
    def law(self) -> tuple[Floats, Floats]:
        """Disturbances [R, d], multiples of the spacing, and their probabilities [1 or H, R], as counted."""
        first, count = self.system.bins
        return (first + _indices(tuple(count.tolist()))) * self.system.spacing, self._believed()

    @property
    def policy(self) -> NDArray[np.int64]:
        """[H, S] the actions it would take now at the points of the lattice."""
        return self.plan.policy.copy()

    def act(self, h: int, s: ArrayLike) -> int:
        """The index of the action for state s [d] at step h; the plan is renewed when an episode starts."""
        h = whole("step h", h, 0, self.system.horizon - 1)
        if h == 0:
            self.renew()
        return int(self._acting().act(h, self._state("state", s)))

    def observe(self, h: int, s: ArrayLike, a: int, next_s: ArrayLike, disturbance: ArrayLike | None = None) -> None:
        """Learn from a transition, whoever chose the action.

        disturbance: W itself, where it was measured; needed only at an edge of a clipped axis, which hides it
        """
        grid = self.system
        h, a = whole("step h", h, 0, grid.horizon - 1), whole("action", a, 0, grid.n_actions - 1)
        before, after = self._state("state", s), self._state("next state", next_s)
        w = grid.residual(h, before, a, after)
        low, high = grid.disturbance_range
        at_low, at_high = grid.edges(after)
        if disturbance is not None:
            measured = self._measured(h, before, a, after, disturbance)
            w = np.where(at_low | at_high, measured, w)
        elif (at_low | at_high).any():
            self._warn(
                CensoredWarning,
                f"the next state {after} is at an edge of axis {int((at_low | at_high).argmax())}, which hides how far "
                "beyond W went; it is taken for the nearest that explains it, which biases what is learned: pass "
                "disturbance=W, or state a larger box",
            )
        slack = grid.spacing / 2  # at an edge only one side can be told
        if (((w < low - slack) & ~at_high) | ((w > high + slack) & ~at_low)).any():
            self.outside += 1
            self._warn(
                ModelWarning,
                f"from {before} with action {grid.actions[a]} at step {h} to {after} the residual is {w}, outside "
                f"{low}..{high}: correct f, or declare a wider disturbance_range. Nothing is learned from it",
            )
            return
        with self.lock:
            self.counts[h % len(self.counts)] += grid.shared(np.clip(w, low, high)[None])

    def warm_start(self, disturbances: ArrayLike) -> None:
        """Learn from a history of disturbances [K, H, d] alone."""
        w, grid = numbers("disturbances", disturbances), self.system
        if w.ndim != 3 or w.shape[1:] != (grid.horizon, grid.n_axes):
            raise ValueError(f"disturbances has shape {w.shape}; give [K, H, d] = [K, {grid.horizon}, {grid.n_axes}]")
        low, high = grid.disturbance_range
        outside = np.argwhere((w < low) | (w > high))
        if len(outside):
            k, h, _ = outside[0]
            raise ValueError(f"disturbances[{k}, {h}] is {w[k, h]}, outside {low}..{high}; declare a wider range")
        with self.lock:
            for h in range(grid.horizon):
                self.counts[h % len(self.counts)] += grid.shared(w[:, h])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to one file; :meth:`load` goes on from it."""
        with self.lock:
            state = {"counts": self.counts.copy(), "law": self._law.copy(), "outside": np.array([self.outside])}
        write_arrays(path, {"agent": GRID_AGENT, "grid": self._lattice()}, state)

    def _lattice(self) -> dict[str, Any]:
        """What a file says of the grid; its functions cannot be written."""
        grid = self.system
        first, count = grid.bins
        return {
            "horizon": grid.horizon, "boundary": list(grid.boundary), "low": grid.low.tolist(),
            "high": grid.high.tolist(), "points": list(grid.points), "spacing": grid.spacing.tolist(),
            "bins": [first.tolist(), count.tolist()], "stationary": self.stationary,
        }  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str], grid: Grid, largest: int = LARGEST_FILE) -> GridAgent:
        """Go on from a file; the grid, which has functions in it, is stated again. largest: see :func:`ucbf.load`."""
        header, stored = read_arrays(path, whole("largest", largest, 1))
        if header.get("agent") != GRID_AGENT or not isinstance(header.get("grid"), dict):
            raise ValueError(f"{path} holds no agent of a grid but a {header.get('agent')!r:.40}; use ucbf.load(path)")
        theirs = header["grid"]
        agent = cls(grid, stationary=theirs.get("stationary") is True)
        for name, mine in agent._lattice().items():
            if theirs.get(name) != mine:
                raise ValueError(
                    f"{path} is of another lattice, or of another range of W: its {name} is {theirs.get(name)!r:.60}, "
                    f"here it is {mine!r:.60}; state the grid as it was"
                )
        outside = np.zeros(1, np.int64)
        try:
            copy_into({"counts": agent.counts, "law": agent._law, "outside": outside}, stored, _may_hold)
        except ValueError as error:
            raise ValueError(f"{path} does not hold this agent: {error}; save the agent again") from None
        agent.outside = int(outside[0])
        return agent

    def _state(self, name: str, s: ArrayLike) -> Floats:
        """[d] one state."""
        rows = self.system.rows(name, s)
        if len(rows) != 1:
            raise ValueError(f"{name} has shape {np.shape(s)}; give one, [d] with d = {self.system.n_axes}")
        return np.array(rows[0])

    def _measured(self, h: int, before: Floats, a: int, after: Floats, disturbance: ArrayLike) -> Floats:
        """[d] a disturbance that was measured; an error unless it leads to the next state, as far as can be told."""
        grid = self.system
        w = np.ravel(numbers("disturbance", disturbance))
        if w.shape != (grid.n_axes,):
            raise ValueError(f"disturbance has shape {w.shape}; give [d] with d = {grid.n_axes}")
        x = grid.f(h, before, grid.actions[a])[0]
        away = np.abs(grid.meet_boundary((x + w)[None])[0] - after)
        wraps = np.array([rule == "wrap" for rule in grid.boundary])
        away = np.where(wraps, np.minimum(away, grid.high - grid.low - away), away)
        if (away > grid.spacing / 2).any():
            raise ValueError(
                f"from {before} with action {grid.actions[a]} at step {h} (f = {x}) the disturbance {w} leads to "
                f"{x + w}, not to the next state {after} that was given; correct one of them"
            )
        return w

    def _warn(self, kind: type[Warning], message: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, kind, stacklevel=3)


def _may_hold(stored: dict[str, NDArray[Any]]) -> Limits:
    """What the arrays of a saved :class:`GridAgent` may be."""
    if not np.allclose(stored["law"].sum(axis=1), 1):
        raise ValueError("its law is not one of probabilities that add up to 1")
    return {"counts": Limit(0, MOST_SEEN), "law": Limit(0, ROUNDED), "outside": Limit(0, MOST_SEEN)}


def _is_one(states: ArrayLike, grid: Grid) -> bool:
    """Whether one state was meant, not a list of them."""
    return np.ndim(states) == 0 or (np.ndim(states) == 1 and (grid.n_axes > 1 or np.size(states) == 1))


# -- indices ----------------------------------------------------------------------------------------------


def _indices(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """[N, d] all indices of an array, the last axis running fastest."""
    return np.stack([axis.ravel() for axis in np.indices(shape)], axis=1)


def _strides(shape: NDArray[np.int64]) -> NDArray[np.int64]:
    """[d] how far apart neighbours along each axis are in memory."""
    return np.concatenate([np.cumprod(shape[:0:-1])[::-1], [1]]).astype(np.int64)


def _cells(at: Floats, shape: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
    """[N, d] twice: the cell that each place is in, and how far into it; places beyond are brought to the edge."""
    at = np.clip(at, 0, shape - 1)
    cell = np.minimum(np.floor(at).astype(np.int64), np.maximum(shape - 2, 0))
    return cell, at - cell


def _corners(share: Floats) -> tuple[NDArray[np.int64], Floats]:
    """[2^d, d] the corners of a cell, and [2^d, N] what each counts for."""
    d = share.shape[1]
    corners = np.array(list(itertools.product((0, 1), repeat=d)), dtype=np.int64)
    products = np.stack([np.where(corner, share, 1 - share).prod(axis=1) for corner in corners])
    return corners, products

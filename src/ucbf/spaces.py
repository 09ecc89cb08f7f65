"""The states as points of a lattice with its boundary rule, and the disturbances that are told apart on it.

A line of whole numbers is the simplest lattice. Its states are named by numbers; those of any other are rows [d]. An
axis is either *whole* (its points are all the states there are) or continuous (values are interpolated between them).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, integers, numbers, whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
BOUNDARIES = ("wrap", "clip", "strict")
GIVEN = "given"  # a boundary that is a function of the user's
NEAR = 1e-9  # of the width of an axis: how near to its end is at it


@dataclass(frozen=True, eq=False)
class Space:
    """The states: all points of a lattice, the last axis running fastest; and where a boundary leads."""

    low: NDArray[Any]  # [d] the first point
    high: NDArray[Any]  # [d] the last point; on a continuous axis that wraps, where it begins again
    spacing: NDArray[Any]  # [d]
    shape: Ints  # [d] how many points
    rules: tuple[str, ...]  # [d] the boundary: "wrap", "clip" or "strict", or "given"
    is_whole: Bools  # [d] whether an axis is whole
    is_line: bool  # whether states are named by numbers, not by rows
    boundary: Callable[[Ints], Ints] | None = None  # a rule of the user's: raw next states [N, k] -> states [N, d]
    raw: Space | None = None  # the lattice of raw next states, where it has axes of its own

    @classmethod
    def line(cls, first: int, n: int, rule: str, boundary: Callable[[Ints], Ints] | None = None) -> Space:
        """The whole numbers from ``first`` on."""
        one, low = np.ones(1, np.int64), np.array([first])
        return cls(low, low + n - 1, one, one * n, (rule,), np.ones(1, np.bool_), True, boundary)

    @classmethod
    def of_raw(cls, n_axes: int) -> Space:
        """The whole numbers along so many axes, as f + W names them."""
        zero = np.zeros(n_axes, np.int64)
        return cls(zero, zero, zero + 1, zero + 1, (GIVEN,) * n_axes, zero == 0, False)

    @cached_property
    def _first(self) -> int:
        """The first state of a line."""
        return int(self.low[0])

    @property
    def n_axes(self) -> int:
        """D."""
        return len(self.low)

    @cached_property
    def n_states(self) -> int:
        """S."""
        return int(np.prod(self.shape))

    @cached_property
    def all_whole(self) -> bool:
        """Whether the points are all the states there are."""
        return bool(self.is_whole.all())

    @cached_property
    def points(self) -> NDArray[Any]:
        """[S, d] the points; whole numbers, if all axes are whole."""
        return frozen(self.low + self.spacing * indices(self.shape))

    @cached_property
    def wraps(self) -> Bools:
        """[d] which axes wrap."""
        return np.array([rule == "wrap" for rule in self.rules])

    @cached_property
    def clips(self) -> Bools:
        """[d] which axes are clipped."""
        return np.array([rule == "clip" for rule in self.rules])

    # -- the boundary rule --------------------------------------------------------------------------

    def meet_boundary(self, z: NDArray[Any]) -> NDArray[Any]:
        """[..., d] raw next states, brought back among the states.

        Under "strict" only a wrong f can lead outside; the nearest state is the least wrong answer.
        """
        if self.boundary is not None:
            return self.boundary(z.reshape(-1, z.shape[-1])).reshape(*z.shape[:-1], self.n_axes)
        around = np.where(self.is_whole, self.shape, self.high - self.low)
        return self._brought_back(z, self.low, self.high, around.astype(self.low.dtype))

    def index_of_raw(self, z: Ints) -> Ints:
        """[N] state indices of raw next states that are points [N, d] of the lattice, counted from the first.

        -1 where a boundary of the user's leads outside the states.
        """
        if self.boundary is not None:
            led = self.meet_boundary(z + (self.raw or self).low) - self.low
            inside = ((led >= 0) & (led < self.shape)).all(axis=-1)
            return np.where(inside, led @ strides(self.shape), -1)
        return self._brought_back(z, np.zeros_like(self.shape), self.shape - 1, self.shape) @ strides(self.shape)

    def _brought_back(
        self, z: NDArray[Any], low: NDArray[Any], high: NDArray[Any], around: NDArray[Any]
    ) -> NDArray[Any]:
        """The one place where the boundary rule stands: modulo ``around``, or the nearest within low..high."""
        inside: NDArray[Any] = np.minimum(np.maximum(z, low), high)
        if not self.wraps.any():
            return inside
        turned: NDArray[Any] = np.where(self.wraps, low + (z - low) % around, inside)
        return turned

    @cached_property
    def hiding(self) -> Bools:
        """[S] which points may hide the disturbance that led to them: the ends of a clipped axis."""
        at = indices(self.shape)
        return frozen((self.clips & ((at == 0) | (at == self.shape - 1))).any(axis=1))

    def ends(self, state: NDArray[Any]) -> tuple[Bools, Bools]:
        """[d] twice: whether a state [d] is at the lower end of a clipped axis, and at the upper one."""
        near = NEAR * (self.high - self.low)
        return self.clips & (state <= self.low + near), self.clips & (state >= self.high - near)

    # -- names of states ----------------------------------------------------------------------------

    @property
    def names(self) -> Any:
        """The states as they are named: a range of numbers, or rows [S, d]."""
        first = int(self.low[0])
        return range(first, first + self.n_states) if self.is_line else self.points

    def name(self, i: int) -> str:
        """The name of the point with index i, in a message."""
        return str(i + int(self.low[0])) if self.is_line else str(self.points[i])

    def place(self, what: str, s: Any) -> Any:
        """Where one state is: its index where all axes are whole, else the state itself, [d]; or a readable error."""
        if self.is_line:
            first, last = self._first, self._first + self.n_states - 1
            return s - first if type(s) is int and first <= s <= last else whole(what, s, first, last) - first
        row = self.rows(what, s)
        if len(row) != 1:
            raise ValueError(f"{what} has shape {np.shape(s)}; give one, [d] with d = {self.n_axes}")
        return int((row[0] - self.low) @ strides(self.shape)) if self.all_whole else row[0]

    def index(self, place: Any) -> int:
        """The index of a place, or of the point nearest to it."""
        if self.all_whole:
            return int(place)
        return int(self.index_of_raw(np.rint((place - self.low) / self.spacing).astype(np.int64)[None])[0])

    def state(self, i: int) -> Any:
        """The state with index i, as it is named."""
        return self.names[i] if self.is_line else self.points[i].copy()

    def rows(self, what: str, states: ArrayLike) -> NDArray[Any]:
        """[N, d] states, [d] being one of them; brought back where a continuous axis wraps, refused outside."""
        s: NDArray[Any] = integers(what, states) if self.all_whole else numbers(what, states)
        if s.ndim <= 1:
            s = s.reshape(-1, 1) if self.n_axes == 1 else s.reshape(1, -1)
        if s.ndim != 2 or s.shape[1] != self.n_axes:
            raise ValueError(f"{what} has shape {np.shape(states)}; give [d] or [N, d] with d = {self.n_axes}")
        turned = self.wraps & ~self.is_whole
        if turned.any():
            s = np.where(turned, self.meet_boundary(s), s)
        margin = np.where(self.is_whole, 0, 1e-6 * (self.high - self.low))
        outside = s[((s < self.low - margin) | (s > self.high + margin)).any(axis=1)]
        if len(outside):
            raise ValueError(f"{what} {outside[0]} is outside {self.low}..{self.high}; state a larger box")
        fraction = np.argwhere(self.is_whole & (s != np.rint(s)))
        if len(fraction):
            raise ValueError(f"{what} {s[fraction[0, 0]]} is not whole along axis {fraction[0, 1]}, as it must be")
        return s

    def is_one(self, states: ArrayLike) -> bool:
        """Whether one state is meant, not a list of them."""
        return np.ndim(states) == 0 or (np.ndim(states) == 1 and (self.n_axes > 1 or np.size(states) == 1))

    def interpolated(self, values: Floats, rows: NDArray[Any]) -> Floats:
        """[N] values [S] at the points, at rows [N, d] of states."""
        found = np.zeros(len(rows))
        for point, share in self._around(rows):
            found += share * values[point]
        return found

    def shares_of_points(self, state: NDArray[Any]) -> Floats:
        """[S] what each point counts for where a state [d] between them is interpolated."""
        found = np.zeros(self.n_states)
        for point, share in self._around(state[None]):
            found[point] += share
        return found

    def _around(self, rows: NDArray[Any]) -> Iterator[tuple[Ints, Floats]]:
        """[N] twice, for every corner of a cell: the points there, and what they count for at rows [N, d]."""
        at = (self.meet_boundary(rows) - self.low) / self.spacing
        turned = self.wraps & ~self.is_whole
        cell, into = cells(at, self.shape + turned, self.is_whole)
        corner = corners(self.is_whole)
        for one, share in zip(corner, shares(corner, into).T, strict=True):
            at_corner = np.where(turned, (cell + one) % self.shape, np.minimum(cell + one, self.shape - 1))
            yield at_corner @ strides(self.shape), share


@dataclass(frozen=True, eq=False)
class Bins:
    """The disturbances that are told apart: whole multiples of the spacing, over a box."""

    first: Ints  # [d] the first multiple
    count: Ints  # [d] how many
    spacing: NDArray[Any]  # [d]
    is_whole: Bools  # [d]
    is_line: bool  # whether disturbances are numbers, not rows
    declared: tuple[NDArray[Any], NDArray[Any]] | None  # [d] twice: the least and the most of W, where it is known
    around: int = 0  # on a line: what disturbances are counted modulo; 0 if they are not
    saturates: bool = False  # whether those beyond the bins do what the last one does
    n_possible: int = 0  # how many, the first ones, may occur

    @cached_property
    def n(self) -> int:
        """R."""
        return int(np.prod(self.count))

    @cached_property
    def corners(self) -> Ints:
        """[B] how far the bins that a disturbance is shared out among are from the first, among all."""
        return corners(self.is_whole) @ strides(self.count)

    @cached_property
    def values(self) -> NDArray[Any]:
        """[R] or [R, d] the disturbances."""
        rows = (self.first + indices(self.count)) * self.spacing
        return frozen(rows[:, 0] if self.is_line else rows)

    @cached_property
    def guess(self) -> Floats:
        """[R] what is believed where nothing was seen: all that may occur alike; W = 0 on continuous axes."""
        if self.is_whole.all():
            pmf = np.zeros(self.n)
            pmf[: self.n_possible] = 1 / self.n_possible
            return pmf
        low, high = self.range()
        j, share = self.spread(np.clip(np.zeros(len(low)), low, high)[None])
        return np.bincount(j[0], share[0], minlength=self.n).astype(np.float64)

    def index(self, disturbances: ArrayLike) -> Ints:
        """[...] indices of disturbances [...] or [..., d] where all axes are whole; an error for one that cannot be."""
        w = integers("disturbance", disturbances)
        w = w[..., None] if self.is_line else w
        if w.shape[-1:] != self.first.shape:
            raise ValueError(f"disturbance has shape {w.shape}; give rows [..., d] with d = {len(self.first)}")
        if self.declared is not None:
            low, high = self.declared
            wrong = w[((w < low) | (w > high)).any(axis=-1)]
            if wrong.size:
                raise ValueError(
                    f"disturbance {self._one(wrong[0])} is outside the disturbance_range {self._one(low)}.."
                    f"{self._one(high)}; correct it (a demand is a negative disturbance), or declare a wider range"
                )
        at = w - self.first
        if self.around:
            at = at % self.around
        wrong = w[((at < 0) | (at >= self.count)).any(axis=-1)]
        if wrong.size and not self.saturates:
            low, high = self.first, self.first + self.count - 1
            raise ValueError(
                f"disturbance {self._one(wrong[0])} is outside {self._one(low)}..{self._one(high)}, the range "
                "assumed because none was declared; pass disturbance_range=(low, high) to System"
            )
        # Beyond what the states can show every after-state is clipped to the same end.
        index: Ints = np.clip(at, 0, self.count - 1) @ strides(self.count)
        return index

    def spread(self, disturbances: ArrayLike) -> tuple[Ints, Floats]:
        """[n, B] twice: the bins that disturbances [n] or [n, d] are shared out among, and their shares."""
        if self.is_whole.all():
            j = self.index(disturbances)[..., None]
            return j, np.ones(j.shape)
        w = self.rows(disturbances)
        low, high = self.range()
        outside = w[((w < low - NEAR) | (w > high + NEAR)).any(axis=-1)]
        if len(outside):
            raise ValueError(
                f"the disturbance {outside[0]} is outside {low}..{high}; declare a wider disturbance_range"
            )
        uneven = np.argwhere(self.is_whole & (w != np.rint(w)))
        if len(uneven):
            i, k = uneven[0]
            raise ValueError(f"the disturbance {w[i]} is not whole along axis {k}, which is; round it there")
        cell, into = cells(w / self.spacing - self.first, self.count, self.is_whole)
        corner = corners(self.is_whole)
        j = np.minimum(cell[:, None] + corner, self.count - 1) @ strides(self.count)
        return j, shares(corner, into)

    def rows(self, disturbances: ArrayLike) -> Floats:
        """[n, d] disturbances, or a readable error."""
        w = numbers("disturbances", disturbances)
        w = w.reshape(-1, 1) if w.ndim == 1 and len(self.first) == 1 else np.atleast_2d(w)
        if w.ndim != 2 or w.shape[1] != len(self.first):
            raise ValueError(f"disturbances has shape {np.shape(disturbances)}; give [n, d] with d = {len(self.first)}")
        return w

    def range(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """[d] twice: the least and the most of W, declared or not."""
        if self.declared is not None:
            return self.declared
        return self.first * self.spacing, (self.first + self.count - 1) * self.spacing

    def _one(self, row: NDArray[Any]) -> str:
        return str(row[0]) if self.is_line else str(row)


# -- indices of lattices ------------------------------------------------------------------------------------


def indices(shape: ArrayLike) -> Ints:
    """[N, d] all indices of an array, the last axis running fastest."""
    return np.stack([axis.ravel() for axis in np.indices(tuple(np.ravel(shape).tolist()))], axis=1)


def strides(shape: ArrayLike) -> Ints:
    """[d] how far apart neighbours along each axis are in memory."""
    return np.concatenate([np.cumprod(np.asarray(shape)[:0:-1])[::-1], [1]]).astype(np.int64)


def cells(at: NDArray[Any], shape: ArrayLike, is_whole: Bools) -> tuple[Ints, Floats]:
    """[N, d] twice: the cell that each place is in, and how far into it; places beyond are brought to the end."""
    most = np.asarray(shape) - 1
    at = np.clip(at, 0, most)
    if is_whole.all():
        return at.astype(np.int64, copy=False), np.zeros(at.shape)
    cell = np.minimum(np.floor(at).astype(np.int64), np.where(is_whole, most, np.maximum(most - 1, 0)))
    return cell, at - cell


def corners(is_whole: Bools) -> Ints:
    """[C, d] the corners of a cell; along a whole axis there is one."""
    return np.array(list(itertools.product(*((0,) if w else (0, 1) for w in is_whole))), dtype=np.int64)


def shares(corner: Ints, into: Floats) -> Floats:
    """[N, C] what each corner [C, d] counts for, for places [N, d] so far into their cells."""
    return np.stack([np.where(one, into, 1 - into).prod(axis=1) for one in corner], axis=1)


def sliding(pick: Any, values: NDArray[Any], width: int) -> NDArray[Any]:
    """np.maximum or np.minimum over every window of ``width`` along the last axis, by doubling the window."""
    span = 1
    while span < width:
        step = min(span, width - span)
        values = pick(values[..., :-step], values[..., step:])
        span += step
    return values


def lattice(low: ArrayLike, high: ArrayLike, points: ArrayLike) -> Floats:
    """All points [N, m] of a lattice over a box, for ``actions``: 25 for [-1, -1], [1, 1] and 5."""
    first, last, counts = axes(low, high, points)
    each = [np.linspace(a, b, n) for a, b, n in zip(first, last, counts, strict=True)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*each, indexing="ij")], axis=1)


def axes(low: ArrayLike, high: ArrayLike, points: Any) -> tuple[Floats, Floats, list[Any]]:
    """[d] three times: the ends of each axis of a box, and its points; None for a whole axis."""
    first, last = np.atleast_1d(numbers("low", low)), np.atleast_1d(numbers("high", high))
    if first.ndim != 1 or first.shape != last.shape or not len(first):
        raise ValueError(f"low has shape {first.shape} and high {last.shape}; give one number for each axis")
    counts = list(points) if isinstance(points, list | tuple | np.ndarray) else [points]
    counts = [None if n is None else whole("points", n, 2) for n in counts]
    if len(counts) not in (1, len(first)):
        raise ValueError(f"points has {len(counts)} numbers; give one, or one for each of the {len(first)} axes")
    counts = counts * (len(first) if len(counts) == 1 else 1)
    for k, n in enumerate(counts):
        if first[k] > last[k] or (n is not None and first[k] == last[k]):
            raise ValueError(f"axis {k} goes from {first[k]:g} to {last[k]:g}; low must be below high")
    return first, last, counts

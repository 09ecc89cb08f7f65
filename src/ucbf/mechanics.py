"""A system as arrays for the compiled functions: after-states, raw next states and disturbances on their lattices.

Seen from a point of a lattice, every disturbance w ends at the same place within a cell. So interpolating what follows
x + w is sharing w out, once, among the bins around it: W is not rounded, and a plan takes no longer for a thousand
samples than for ten. What follows an after-state f(s, a) between points is interpolated again. Where values are smooth
the error falls with the square of the spacing; where they have kinks, with the spacing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import LARGEST_INTEGER, frozen, numbers, sealed, whole
from ucbf.kernels.types import Mechanics
from ucbf.spaces import Bins, Space, cells, corners, indices, shares, strides
from ucbf.tables import LARGEST_TABLE


class Reach(NamedTuple):
    """The lattice of after-states, counted in points of the states' lattice from its first."""

    origin: NDArray[np.int64]  # [d] the first
    shape: NDArray[np.int64]  # [d] how many along each axis

    def raw(self, bins: Bins, part: slice) -> NDArray[np.int64]:
        """[n, d] a part of the raw next states, counted likewise."""
        at = np.unravel_index(np.arange(part.start, part.stop), tuple(self.raw_shape(bins)))
        return np.stack(at, axis=1) + self.origin + bins.first

    def raw_shape(self, bins: Bins) -> NDArray[np.int64]:
        """[d] how many raw next states there are along each axis."""
        return self.shape + bins.count - 1


def line_range(given: Any) -> tuple[int, int] | None:
    """A declared range of W on a line, checked."""
    if given is None:
        return None
    try:
        low, high = given
    except (TypeError, ValueError):
        raise TypeError(f"disturbance_range is {given!r}; give (low, high)") from None
    pair = tuple(
        whole(f"disturbance_range[{i}]", w, -LARGEST_INTEGER, LARGEST_INTEGER) for i, w in enumerate((low, high))
    )
    if pair[0] > pair[1]:
        raise ValueError(f"disturbance_range is {pair}; low must not exceed high")
    return pair[0], pair[1]


def box_range(space: Space, given: Any) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """A declared range of W in a box, [d] twice, checked."""
    if given is None:
        return None
    try:
        low, high = (np.broadcast_to(numbers("disturbance_range", side), space.low.shape) for side in given)
    except (TypeError, ValueError):
        raise ValueError(
            f"disturbance_range is {given!r:.80}; give (low, high), a number or {space.n_axes} each"
        ) from None
    if (low > high).any():
        raise ValueError(f"disturbance_range is {given!r:.80}; low must not exceed high")
    if np.abs([low, high]).max() > LARGEST_INTEGER:
        raise ValueError(f"disturbance_range is {given!r:.80}; it must stay within ±2**53")
    uneven = np.flatnonzero(space.is_whole & ((low != np.rint(low)) | (high != np.rint(high))))
    if len(uneven):
        raise ValueError(f"disturbance_range is {given!r:.80}; along axis {uneven[0]}, which is whole, so must it be")
    kind = np.int64 if space.all_whole else np.float64
    return frozen(low.astype(kind)), frozen(high.astype(kind))


def positions(space: Space, f: NDArray[Any]) -> NDArray[Any]:
    """[..., d] after-states, counted in points from the first."""
    at: NDArray[Any] = f - space.low if space.all_whole else (f - space.low) / space.spacing
    return at


def ends_of(parts: Iterable[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """[d] twice: the smallest and the largest of rows [n, d], given some at a time."""
    ends = [[(column.min(), column.max()) for column in at.T] for at in parts if len(at)]  # quicker than all at once
    low, high = np.moveaxis(np.array(ends), -1, 0)
    return low.min(axis=0), high.max(axis=0)


def box_bins(
    space: Space, low: NDArray[Any], high: NDArray[Any], declared: tuple[NDArray[Any], NDArray[Any]] | None
) -> Bins:
    """The disturbances that are told apart: as declared, else all that two states can be apart.

    low, high: [d] the ends of where actions that exist lead, counted in points from the first
    """
    if declared is None:
        width = space.shape - 1
        half = np.where(space.wraps, (width + 1) / 2, width)
        least = np.where(space.is_whole, np.where(space.wraps, 0, -high), -half)
        most = np.where(space.is_whole, np.where(space.wraps, width, width - low), half)
    else:
        least, most = (side / space.spacing for side in declared)
    first, last = np.floor(least + 1e-9).astype(np.int64), np.ceil(most - 1e-9).astype(np.int64)
    last = np.where(space.is_whole, last, np.maximum(last, first + 1))
    count = last - first + 1
    if float(np.prod(count.astype(float))) > LARGEST_TABLE:
        raise ValueError(
            f"W may be any of {float(np.prod(count.astype(float))):.3g} multiples of the spacing; declare a narrower "
            "disturbance_range"
        )
    if declared is None and not space.all_whole:
        declared = frozen(least * space.spacing), frozen(most * space.spacing)
    return Bins(first, count, space.spacing, space.is_whole, False, declared, n_possible=int(count.prod()))


def within_reach(space: Space, bins: Bins, at: NDArray[Any]) -> NDArray[Any]:
    """[..., d] after-states without those further out than makes a difference, where landing pays nothing."""
    inside = np.clip(at, -(bins.first + bins.count - 1), space.shape - 1 - bins.first)
    return np.where(space.wraps, at % space.shape, inside)


def box_reach(space: Space, bins: Bins, low: NDArray[Any], high: NDArray[Any], horizon: int) -> Reach:
    """The lattice that after-states from ``low`` to ``high`` [d] lie on; between points it has the next one too."""
    extent = high - low + bins.count + 2
    if horizon * float(np.prod(extent)) > LARGEST_TABLE or np.abs([low, high]).max() > LARGEST_INTEGER:
        raise ValueError(
            f"f + W reaches over {' x '.join(f'{n:g}' for n in extent)} points in each of {horizon} steps; check f and "
            "disturbance_range, or take a coarser lattice"
        )
    origin = np.floor(low).astype(np.int64)
    return Reach(origin, np.floor(high).astype(np.int64) - origin + np.where(space.is_whole, 1, 2))


def mechanics_of(
    space: Space,
    bins: Bins,
    reach: Reach,
    next_state: NDArray[np.int32],
    sizes: tuple[int, int, int],
    parts: Iterable[tuple[int, slice, NDArray[Any]]],
    reward: NDArray[np.float64],
    landing: NDArray[np.float64] | None,
    terminal: NDArray[np.float64],
    discount: float,
    horizon: int,
    endless: bool,
    n_contexts: int,
    lag: int,
    late: NDArray[np.float64],
) -> Mechanics:
    """The arrays.

    next_state: [Z] of one context, negative where nothing leads; sizes: F, S, A; reward: -inf for no action
    parts: a step, some states, and [n, A, d] their after-states, counted in points from the first
    Of contexts there is a block each: of states and after-states that of the context now, of raw next states and of
    disturbances that of the next one.
    """
    (_, S, A), k, E, raw = sizes, len(reach.shape), n_contexts, reach.raw_shape(bins)
    X, Z, blocks = int(reach.shape.prod()), int(raw.prod()), np.arange(E, dtype=np.int32)[:, None]
    corner = corners((space.raw or space).is_whole)
    after, share = np.empty(sizes, np.int32), np.ones((0, 0, 0, 1))
    if len(corner) > 1:
        share = np.empty((*sizes, len(corner)))
    for h, part, at in parts:
        cell, into = cells(at.reshape(-1, k) - reach.origin, reach.shape, (space.raw or space).is_whole)
        context = np.arange(part.start, part.stop)[:, None] // (S // E)
        index = sum(cell[:, i] * apart for i, apart in enumerate(strides(reach.shape)))  # quicker than a product
        after[h, part] = np.reshape(index, (-1, A)) + X * context
        if len(corner) > 1:
            share[h, part] = shares(corner, into).reshape(-1, A, len(corner))
    moved = int(np.flatnonzero(bins.count > 1)[-1]) if (bins.count > 1).any() else 0  # the last axis that W acts on
    rows = indices(reach.shape[:moved]) @ strides(raw)[:moved] if moved else np.zeros(1, np.int64)
    offsets = indices(bins.count) @ strides(raw)
    return Mechanics(
        after=sealed(after),
        share=sealed(share),
        corners=frozen(corner @ strides(reach.shape)),
        reward=sealed(reward),
        landing=sealed(np.zeros((1, Z * E)) if landing is None else landing if E == 1 else np.tile(landing, E)),
        next_state=sealed((np.maximum(next_state, 0) + S // E * blocks).ravel()),
        rows=frozen(rows),
        length=X // len(rows),
        stride=int(raw[moved + 1 :].prod()),
        offsets=frozen((offsets + Z * blocks).ravel()),
        bins=frozen(bins.count),
        bin_corners=frozen(bins.corners),
        whole=frozen(np.ones(1)),
        terminal=terminal,
        discount=discount,
        horizon=horizon,
        endless=endless,
        n_contexts=E,
        n_states=S // E,
        n_after=X * E,
        n_residuals=bins.n * E,
        shift=-int(reach.origin[0] + bins.first[0]),
        hides=frozen(np.tile(space.hiding, E)),
        wraps=space.n_axes == 1 and bool(space.wraps[0]),
        modular=bins.around > 0,
        lag=lag,
        late=frozen(late),
        searches=k > 1 or space.boundary is not None or E > 1,
    )


def raw_starts(m: Mechanics) -> NDArray[np.int64]:
    """[X] where each after-state lies among the raw next states, before W moves it."""
    return np.tile((m.rows[:, None] + np.arange(m.length)).ravel(), m.n_contexts)


def look_ahead(space: Space, reach: Reach, ahead: NDArray[np.float64], at: NDArray[Any]) -> NDArray[np.float64]:
    """[N] what follows after-states [N, d], counted in points from the first. ahead: [X] at those of the lattice."""
    corner = corners(space.is_whole)
    cell, into = cells(at - reach.origin, reach.shape, space.is_whole)
    found = np.zeros(len(at))
    for one, share in zip(corner, shares(corner, into).T, strict=True):
        found += share * ahead[(cell + one) @ strides(reach.shape)]
    return found


def raw_index(space: Space, bins: Bins, reach: Reach, z: ArrayLike) -> NDArray[np.int64]:
    """[N] indices of raw next states [N, d], points of the lattice, among all."""
    at = np.asarray(z) - space.low - reach.origin - bins.first
    index: NDArray[np.int64] = at.astype(np.int64) @ strides(reach.raw_shape(bins))
    return index

"""Models of f: what a learner believes of f, and the functions that use it, chosen by the model's type.

A learner's mechanics hold f as it is believed now. :class:`Exact` and :class:`Interpolated` are f as told, of which
nothing is learned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.jit import by_type, inlined, unsigned
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen, residual_of
from ucbf.kernels.types import Floats, Ints, Mechanics

# learn_pair(told, model, seen) -> bool: take in what a transition says of f; whether no doubt is left about its pair.
learn_pair = by_type(1)
# averaged(told, model, seen, j) -> int: the disturbance that UCB-f averages, j being counted from f as believed now.
averaged = by_type(1)
# learn_disturbance(model, h, j): take in a disturbance of which neither state nor action is known.
learn_disturbance = by_type(0)
# refit(told, model, watch): fit the model to what was seen.
refit = by_type(1, merged=False)
# value_pairs(told, model, ahead, h, weight): find what is taken to follow every pair of step h.
value_pairs = by_type(1)
# with_ahead(told, model, paid, h, f, s, a, ahead, row) -> float: what a pair pays, and what is taken to follow it.
# f: the row of after-states of step h
with_ahead = by_type(1)
# explore(told, model, ahead, policy) -> int: write the policy of a learner that explores; the last step that changed,
# or -1.
explore = by_type(1, merged=False)
# explores(model) -> bool: whether it does, so that the policy is not simply the best by what is taken to follow.
explores = by_type(0)
# may_change(model) -> bool: whether f as believed may change, so that values wait for the next episode.
may_change = by_type(0)


@packed
class Exact(NamedTuple):
    """f as told."""

    f: NDArray[np.int32]  # [F, S, A] after-states


@inlined
def exact_learn_pair(told: Mechanics, model: Any, seen: Seen) -> bool:
    """Nothing is learned, and there is no doubt."""
    return True


@inlined
def averaged_as_seen(told: Mechanics, model: Any, seen: Seen, j: int) -> int:
    """As it was seen."""
    return j


@inlined
def exact_learn_disturbance(model: Any, h: int, j: int) -> None:
    """Nothing to do."""


@inlined
def exact_refit(told: Mechanics, model: Any, watch: Any) -> None:
    """Nothing to do."""


@inlined
def exact_value_pairs(told: Mechanics, model: Any, ahead: Floats, h: int, weight: float) -> None:
    """Nothing to do: what follows a pair is what follows its after-state."""


@inlined
def exact_with_ahead(
    told: Mechanics, model: Exact, paid: float, h: int, f: int, s: int, a: int, ahead: Floats, row: int
) -> float:
    """What follows the after-state."""
    total: float = paid + ahead[row, unsigned(told.after[f, s, a])]
    return total


@packed
class Interpolated(NamedTuple):
    """f as told, which leads between the points of a lattice."""

    f: NDArray[np.int32]  # [F, S, A] the first corner of the cells of the after-states


@inlined
def interpolated_with_ahead(
    told: Mechanics, model: Interpolated, paid: float, h: int, f: int, s: int, a: int, ahead: Floats, row: int
) -> float:
    """What follows the corners of the cell of the after-state."""
    for c in range(len(told.corners)):
        paid += told.share[f, s, a, c] * ahead[row, told.after[f, s, a] + told.corners[c]]
    return paid


def as_told(told: Mechanics) -> Any:
    """The model of f as it is told."""
    return Exact(told.after) if len(told.corners) == 1 else Interpolated(told.after)


@inlined
def never(model: Any) -> bool:
    """Never."""
    return False


@inlined
def no_exploring(told: Mechanics, model: Any, ahead: Floats, policy: Ints) -> int:
    """Nothing to do."""
    return -1


@packed
class Bounded(NamedTuple):
    """f as an estimator in Python believes it: an estimate, and bounds on it."""

    first: NDArray[np.int32]  # [F, S, A] after-states as they were told
    f: NDArray[np.int32]  # [F, S, A] after-states now; the learner's mechanics hold the same array
    low: NDArray[np.int32]  # [F, S, A] the truth is believed to be from low to high, not yet wrapped
    high: NDArray[np.int32]  # [F, S, A]
    residuals: Floats  # [H, R] how often each residual of f as it was told was seen
    lead: Floats  # [H, S, A] what is taken to follow every pair


@inlined
def note_residual(told: Mechanics, model: Any, seen: Seen) -> int:
    """Count the residual of f as it was told; its index, or -1 if it is none that is told apart."""
    hidden = told.hides[seen.s_next]
    j = seen.low if hidden else residual_of(told, model.first, seen.h, seen.s, seen.a, seen.s_next)
    if not 0 <= j < told.n_residuals:
        return -1
    model.residuals[seen.h, j] += 1
    return j


@inlined
def is_settled(model: Any, seen: Seen) -> bool:
    """Whether no doubt is left about f of a pair."""
    f = min(seen.h, len(model.f) - 1)
    settled: bool = model.low[f, seen.s, seen.a] == model.high[f, seen.s, seen.a]
    return settled


@inlined
def bounded_learn_pair(told: Mechanics, model: Bounded, seen: Seen) -> bool:
    """Count the residual; the estimator itself is asked in Python."""
    note_residual(told, model, seen)
    return is_settled(model, seen)


@inlined
def bounded_learn_disturbance(model: Bounded, h: int, j: int) -> None:
    """A disturbance is a residual."""
    model.residuals[h, j] += 1


@inlined
def bounded_refit(told: Mechanics, model: Bounded, watch: Any) -> None:
    """Nothing to do: the estimator writes into the model."""


@inlined
def bounded_value_pairs(told: Mechanics, model: Bounded, ahead: Floats, h: int, weight: float) -> None:
    """The best that may follow, within the bounds: Theorem 3's bonus with the values themselves."""
    f, lead = min(h, len(model.f) - 1), model.lead
    for s in range(model.f.shape[1]):
        for a in range(model.f.shape[2]):
            lead[h, s, a] = -np.inf
            for x in range(model.low[f, s, a], model.high[f, s, a] + 1):
                lead[h, s, a] = max(lead[h, s, a], ahead[h, place(told, x)])


@inlined
def lead_with_ahead(
    told: Mechanics, model: Any, paid: float, h: int, f: int, s: int, a: int, ahead: Floats, row: int
) -> float:
    """What was found to follow the pair."""
    total: float = paid + model.lead[h, s, a]
    return total


@inlined
def always(model: Any) -> bool:
    """Always."""
    return True


@inlined
def place(told: Mechanics, x: int) -> int:
    """An after-state that an offset leads to, brought back among those there are."""
    X = told.n_after
    if 0 <= x < X:
        return x
    return x % X if told.modular else min(max(x, 0), X - 1)


for kind in (Exact, Interpolated):
    learn_pair.state(kind, exact_learn_pair)
    learn_disturbance.state(kind, exact_learn_disturbance)
    refit.state(kind, exact_refit)
    value_pairs.state(kind, exact_value_pairs)
    may_change.state(kind, never)
for any_kind in (Exact, Interpolated, Bounded):
    averaged.state(any_kind, averaged_as_seen)
for believed in (Exact, Interpolated, Bounded):
    explores.state(believed, never)
    explore.state(believed, no_exploring)
with_ahead.state(Exact, exact_with_ahead)
with_ahead.state(Interpolated, interpolated_with_ahead)

learn_pair.state(Bounded, bounded_learn_pair)
learn_disturbance.state(Bounded, bounded_learn_disturbance)
refit.state(Bounded, bounded_refit)
value_pairs.state(Bounded, bounded_value_pairs)
with_ahead.state(Bounded, lead_with_ahead)
may_change.state(Bounded, always)

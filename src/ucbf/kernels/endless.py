"""Values where there is no end: the backward induction goes round the period until nothing is learned from it.

One sweep is T: the values of the first step of a period, given those of the first step of the next. Whatever V is, the
best long-run average of a period lies between the smallest and the largest entry of TV - V (Odoni 1969), and with a
discount d per period V* is TV + d/(1 - d) times something between the same two (MacQueen 1966; Porteus 1971). So both
are solved alike: until the entries of TV - V agree. Between two sweeps that improve the policy there are sweeps that
follow it (modified policy iteration); where that does not settle soon, they become more and more. Where the average
counts, now and then one of these goes only half the way, so that cycles die out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ucbf.kernels.backward import Arena, delay, follow, induction
from ucbf.kernels.jit import by_type, compiled, inlined, inner
from ucbf.kernels.types import Floats, Ints, Mechanics

# plan_ahead(told, end, model, moves, law, value, ahead, policy, raw) -> int: the plan of a learner; the last step whose
# policy changed, or -1.
plan_ahead = by_type(1, merged=False)


class End(NamedTuple):
    """After the last step comes the terminal reward."""

    paid: Floats  # [S]


class NoEnd(NamedTuple):
    """After the last step of a period comes the first."""

    settled: float  # how far entries of TV - V may differ, in the learner's units


# charge(told, cost, law): find the landing rewards, where some are paid later than they are incurred.
charge = by_type(1)


class AtOnce(NamedTuple):
    """Landing rewards are paid at once."""

    landing: Floats


class Late(NamedTuple):
    """Landing rewards with what is paid late, which depends on the distribution of W."""

    landing: Floats  # [H, Z] that of the learner's mechanics, filled
    paid: Floats  # [D, Z] what is paid at once
    room: Floats  # [2, Z + lag (R - 1)]


@inlined
def charge_nothing(m: Mechanics, cost: AtOnce, law: Floats) -> None:
    """Nothing to do."""


@inlined
def charge_late(m: Mechanics, cost: Late, law: Floats) -> None:
    """By what is believed of W now."""
    delay(m, law, cost.landing, cost.paid, cost.room)


charge.state(AtOnce, charge_nothing)
charge.state(Late, charge_late)

TURN = 8  # where the average counts, every so many sweeps one goes half the way
FOLLOWED = 200  # sweeps that follow a policy before it is improved, at most
PATIENT = 20  # improvements after which a policy is followed ever longer: half-known values may lead round in a circle
SETTLED = 1e-7  # how far entries of TV - V may differ for a learner, in its own units, in which a step pays 0 to 1
SWEEPS = 300  # of a learner, at most
STILL = 50  # sweeps after which bounds that do not move are taken for settled, though apart


@inlined
def go_round(value: Floats, share: float) -> None:
    """The values after the period: those of its first step, or so much of the way there; relative, to stay small.

    value: [H+1, S]
    """
    P = value.shape[0] - 1
    zero = (1 - share) * value[P, 0] + share * value[0, 0]
    for s in range(value.shape[1]):
        value[P, s] = (1 - share) * value[P, s] + share * value[0, s] - zero


@inlined
def part_of(m: Mechanics, i: int) -> float:
    """How far sweep i goes."""
    return 0.5 if m.discount == 1 and i % TURN == TURN - 1 else 1.0


@inlined
def bounds(value: Floats) -> tuple[float, float]:
    """The smallest and the largest entry of TV - V."""
    P, low, high = value.shape[0] - 1, np.inf, -np.inf
    for s in range(value.shape[1]):
        difference = value[0, s] - value[P, s]
        low, high = min(low, difference), max(high, difference)
    return low, high


@inlined
def raise_by(m: Mechanics, value: Floats, ahead: Floats, low: float, high: float) -> None:
    """With a discount: from relative values to values. With none they stay relative to the first state."""
    P = value.shape[0] - 1
    decay = m.discount**P
    constant = -value[0, 0] if decay == 1 else 0.5 * (low + high) / (1 - decay)
    for h in range(P, -1, -1):
        for s in range(value.shape[1]):
            value[h, s] += constant
        if h > 0:
            constant *= m.discount
            for x in range(ahead.shape[1] if len(ahead) == P else 0):
                ahead[h - 1, x] += constant


@inner
def solve(
    m: Mechanics,
    model: Any,
    moves: Ints,
    law: Floats,
    value: Floats,
    ahead: Floats,
    policy: Ints,
    raw: Floats,
    tolerance: float,
    most: int,
) -> tuple[float, float, int]:
    """Modified policy iteration; bounds on what a period pays, and the last step whose policy changed, or -1.

    As :func:`ucbf.kernels.backward.induction`, but value[0] is where it begins.
    most: sweeps that improve the policy, at most
    """
    low, high, top, left = -np.inf, np.inf, -1, most * FOLLOWED
    for sweep in range(most):
        go_round(value, 1.0)
        top = max(top, induction(m, model, moves, law, value, ahead, policy, raw))
        low, high = bounds(value)
        if high - low <= tolerance:
            break
        patience = max(sweep - PATIENT, 0)
        enough = 0.1 * (high - low) * 0.5**patience
        for i in range(min(FOLLOWED * (1 + patience), left)):
            go_round(value, part_of(m, i))
            for h in range(m.horizon - 1, -1, -1):
                follow(m, model, moves, law, value, ahead, policy, raw, h)
            left -= 1
            least, largest = bounds(value)
            if largest - least <= enough:
                break
    raise_by(m, value, ahead, low, high)
    return low, high, top


@inlined
def plan_to_the_end(
    m: Mechanics,
    end: End,
    model: Any,
    moves: Ints,
    law: Floats,
    value: Floats,
    ahead: Floats,
    policy: Ints,
    raw: Floats,
) -> int:
    """Backward induction."""
    return induction(m, model, moves, law, value, ahead, policy, raw)


@inlined
def plan_without_end(
    m: Mechanics,
    end: NoEnd,
    model: Any,
    moves: Ints,
    law: Floats,
    value: Floats,
    ahead: Floats,
    policy: Ints,
    raw: Floats,
) -> int:
    """From where the last plan ended."""
    return solve(m, model, moves, law, value, ahead, policy, raw, end.settled, SWEEPS)[2]


plan_ahead.state(End, plan_to_the_end)
plan_ahead.state(NoEnd, plan_without_end)


@inner
def evaluate(arena: Arena, policy: Ints, v: Floats, tolerance: float, most: int) -> tuple[float, float]:
    """Values of a policy in a world, and bounds on what a period pays; from where v [H+1, S] stands."""
    m, model, room = arena.mechanics, arena.model, arena.ahead
    return follow_on(m, model, arena.j, arena.pmf, v, room, policy, arena.raw, tolerance, most)


@inner
def follow_on(
    m: Mechanics,
    model: Any,
    moves: Ints,
    law: Floats,
    v: Floats,
    ahead: Floats,
    policy: Ints,
    raw: Floats,
    tolerance: float,
    most: int,
) -> tuple[float, float]:
    """Values of a policy, and bounds on what a period pays, in so many sweeps at most; other arguments as of solve.

    Where the policy keeps to one of several parts of the states for ever, the bounds stay apart.
    """
    still, low, high = 0, -np.inf, np.inf
    for i in range(most):
        go_round(v, part_of(m, i))
        for h in range(m.horizon - 1, -1, -1):
            follow(m, model, moves, law, v, ahead, policy, raw, h)
        before, above = low, high
        low, high = bounds(v)
        still = still + 1 if m.discount == 1 and abs(low - before) + abs(high - above) <= 1e-3 * tolerance else 0
        if high - low <= tolerance or still >= STILL:
            break
    return low, high


@compiled
def evaluate_and_raise(arena: Arena, policy: Ints, v: Floats, tolerance: float, most: int) -> tuple[float, float]:
    """The same, from relative values to values."""
    low, high = evaluate(arena, policy, v, tolerance, most)
    raise_by(arena.mechanics, v, arena.ahead, low, high)
    return low, high


@inlined
def worth(arena: Arena, v: Floats) -> float:
    """What a policy with values v [H+1, S], as :func:`evaluate` leaves them, is worth from the first state on.

    The average of a step in the long run, or the discounted sum.
    """
    m, total, P = arena.mechanics, 0.0, v.shape[0] - 1
    decay = m.discount**P
    low, high = bounds(v)
    constant = 0.5 * (low + high) / (1 - decay) * decay if decay < 1 else 0.0
    for s in range(v.shape[1]):
        total += arena.start[s] * (v[0, s] + constant if decay < 1 else (v[0, s] - v[P, s]) / P)
    return total

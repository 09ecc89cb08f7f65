"""UCB-f with bonuses that follow variances: Bernstein's, and against a reference value.

The bonus differs from one after-state to another, so that it is averaged in with what follows them. G is the H of the
learning rate, B the range of values: both H, or where there is no end the effective horizon and 1/(1-γ).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ucbf.kernels.averaged import UCBfState, average_in, recount, recount_nothing, tick
from ucbf.kernels.jit import inlined, inner, unsigned
from ucbf.kernels.seen import row_of
from ucbf.kernels.types import Floats, Ints, Mechanics

GROWTH = 1.1  # the reference is renewed when what was seen has grown by this factor


class Scale(NamedTuple):
    """The numbers of a bonus."""

    c: float
    log_term: float  # ι
    span: float  # G
    most: float  # B
    floor: float  # for ζ


@inlined
def begin(learner: UCBfState, h: int, e: int, n: int) -> float:
    """α of the clock n; what is left of the initial value, and the weight of the reward, follow it."""
    alpha = (learner.span + 1) / (learner.span + n)
    learner.weight[h, e] = (1 - alpha) * learner.weight[h, e] + alpha
    learner.bonus[h, e] = (1 - alpha) * learner.bonus[h, e]
    return alpha


@inlined
def mix(mean: Floats, variance: Floats, h: int, x: int, part: float, number: float) -> None:
    """Mean and variance [H, X] of step h at x when ``number`` takes the given part of the weight (Welford 1962)."""
    apart = number - mean[h, x]
    mean[h, x] += part * apart
    variance[h, x] = (1 - part) * (variance[h, x] + part * apart * apart)


class Bernstein(NamedTuple):
    """β(x) = c min( sqrt(G (Var(x) + B) ι / n) + G B² ι / n, sqrt(G B² ι / n) ), Var that of the targets so far.

    The bonus is (β_k - (1-α) β_{k-1}) / 2α, so that its running average is β/2 (Jin et al. 2018, Algorithm 2).
    """

    mean: Floats  # [H, X] of the targets, all alike
    variance: Floats  # [H, X]
    beta: Floats  # [H, X]
    scale: Scale


@inlined
def bernstein_average_in(
    told: Mechanics, learner: UCBfState, how: Bernstein, h: int, e: int, j: int, share: Floats
) -> None:
    """What disturbance j says of every after-state of step h and context e, averaged in."""
    n = tick(told, learner, h, e)
    alpha, seen = begin(learner, h, e, n), learner.visits[h, e] - 1.0
    average, landing, d, kept = learner.average, told.landing, min(h, len(told.landing) - 1), 1 - alpha
    length, runs = unsigned(told.length), len(told.rows)
    for c in range(len(share)):
        move, weight = told.offsets[j + told.bin_corners[c]], alpha * share[c]
        seen += share[c]
        part = share[c] / seen if seen > 0 else 0.0
        for k in range(runs):
            z, first = unsigned(told.rows[k] + move), unsigned(e * runs + k) * length
            for x in range(length):
                target = landing[d, z + x] + learner.discount * learner.value[h + 1, told.next_state[z + x]]
                average[h, first + x] = kept * average[h, first + x] + weight * target
                mix(how.mean, how.variance, h, first + x, part, target)
        kept = 1.0
    for x in range(e * runs * length, (e + 1) * runs * length):
        beta = bernstein(how.scale, how.variance[h, x], n)
        bonus = (beta - (1 - alpha) * how.beta[h, x]) / (2 * alpha) + how.scale.floor
        how.beta[h, x] = beta
        average[h, x] += alpha * bonus


@inlined
def bernstein(scale: Scale, variance: float, n: int) -> float:
    """β of one after-state."""
    _, iota, G, B, _ = scale
    small = math.sqrt(G * (variance + B) * iota / n) + G * B * B * iota / n
    return scale.c * min(small, math.sqrt(G * B * B * iota / n))


class Reference(NamedTuple):
    """Averages only what values exceed a reference by, and adds the mean of the reference over all that was seen.

    The bonus is c ( sqrt(Var_ref ι / n) + sqrt(G Var_adv ι / n) + B ι / n ): Var_ref of the reference over the counts,
    Var_adv of the excess as it is averaged. The reference is the value of when it was last renewed. It is one of later
    steps, which learn nothing from the disturbances of this one, so that it is independent of what it is averaged over.
    """

    value_ref: Floats  # [H, S] the reference of what follows step h
    counts: Floats  # [H·E, R] disturbances seen
    mean_ref: Floats  # [H, X] of landing + γ reference
    variance_ref: Floats  # [H, X]
    mean_adv: Floats  # [H, X] of the excess
    variance_adv: Floats  # [H, X]
    due_ref: Ints  # [H] how many disturbances of a step must have been seen for its reference to be renewed
    stale_ref: Ints  # [H] whether the counts have changed otherwise than by what was seen
    scale: Scale


@inlined
def reference_average_in(
    told: Mechanics, learner: UCBfState, how: Reference, h: int, e: int, j: int, share: Floats
) -> None:
    """What disturbance j says of every after-state of step h and context e, averaged in."""
    n = tick(told, learner, h, e)
    alpha = begin(learner, h, e, n)
    refer(told, learner, how, h, e, j, share)
    average, kept = learner.average, 1 - alpha
    length, runs = unsigned(told.length), len(told.rows)
    for c in range(len(share)):
        move, weight = told.offsets[j + told.bin_corners[c]], alpha * share[c]
        part = weight / (kept + weight) if kept + weight > 0 else 0.0
        for k in range(runs):
            z, first = unsigned(told.rows[k] + move), unsigned(e * runs + k) * length
            for x in range(length):
                s = told.next_state[z + x]
                excess = learner.discount * (learner.value[h + 1, s] - how.value_ref[h, s])
                mix(how.mean_adv, how.variance_adv, h, first + x, part, excess)
                average[h, first + x] = (1 - alpha if c == 0 else 1.0) * average[h, first + x] + weight * excess
        kept += weight
    _, iota, G, B, floor = how.scale
    for x in range(e * runs * length, (e + 1) * runs * length):
        bonus = math.sqrt(how.variance_ref[h, x] * iota / n) + math.sqrt(G * how.variance_adv[h, x] * iota / n)
        bonus = how.scale.c * (bonus + B * iota / n) + floor
        average[h, x] += alpha * (how.mean_ref[h, x] + bonus)


@inlined
def refer(told: Mechanics, learner: UCBfState, how: Reference, h: int, e: int, j: int, share: Floats) -> None:
    """Count the disturbance; renew the reference of the step, if that is due, and its mean and variance."""
    row, seen, length = row_of(told, len(how.counts), h, e), 0, told.length
    for c in range(len(share)):
        how.counts[row, j + told.bin_corners[c]] += share[c]
    for i in range(told.n_contexts):
        seen += learner.visits[h, i]
    if seen >= how.due_ref[h]:
        how.due_ref[h] = max(seen + 1, math.ceil(GROWTH * seen))
        for s in range(how.value_ref.shape[1]):
            how.value_ref[h, s] = learner.value[h + 1, s]
        how.stale_ref[h] = 1
    if how.stale_ref[h] == 1:
        how.stale_ref[h] = 0
        for i in range(told.n_contexts):
            mean_of_all(told, learner, how, h, i)
        return
    before = learner.visits[h, e] - 1.0
    for c in range(len(share)):
        before += share[c]
        if share[c] > 0:
            take_in(told, learner, how, h, e, j + told.bin_corners[c], share[c] / before, length)


@inner
def mean_of_all(told: Mechanics, learner: UCBfState, how: Reference, h: int, e: int) -> None:
    """Mean and variance of the reference over all disturbances that were counted."""
    row, length, runs = row_of(told, len(how.counts), h, e), told.length, len(told.rows)
    for x in range(e * runs * length, (e + 1) * runs * length):
        how.mean_ref[h, x], how.variance_ref[h, x] = 0.0, 0.0
    before = 0.0
    for i in range(how.counts.shape[1]):
        if how.counts[row, i] > 0:
            before += how.counts[row, i]
            take_in(told, learner, how, h, e, i, how.counts[row, i] / before, length)


@inlined
def take_in(
    told: Mechanics, learner: UCBfState, how: Reference, h: int, e: int, j: int, part: float, length: int
) -> None:
    """What the reference says of disturbance j, which takes a part of the weight."""
    move, d, runs = told.offsets[j], min(h, len(told.landing) - 1), len(told.rows)
    for k in range(runs):
        z, first = unsigned(told.rows[k] + move), unsigned((e * runs + k) * length)
        for x in range(unsigned(length)):
            worth = told.landing[d, z + x] + learner.discount * how.value_ref[h, told.next_state[z + x]]
            mix(how.mean_ref, how.variance_ref, h, first + x, part, worth)


@inlined
def reference_recount(how: Reference) -> None:
    """Means over the counts are found anew."""
    for h in range(len(how.stale_ref)):
        how.stale_ref[h] = 1


average_in.state(Bernstein, bernstein_average_in)
recount.state(Bernstein, recount_nothing)
average_in.state(Reference, reference_average_in)
recount.state(Reference, reference_recount)

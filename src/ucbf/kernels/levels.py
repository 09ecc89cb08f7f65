"""A mixture of levels: what each expects, how likely each is, and paths drawn from them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled, inner
from ucbf.kernels.types import Floats, Ints

LEAST = 1e-9  # a smaller probability of a cell is taken from the density


class LevelsState(NamedTuple):
    """K local levels y_t = m_t + noise, m_t moving: West and Harrison (1997), chapter 2, with discounted variance.

    M ways of forgetting weigh them; each way is weighed by what its mixture predicted.
    """

    rooted: Ints  # [K] 1: y = sqrt(1 + d); 0: y = d
    rests: Ints  # [K] 1: demands of 0 come by themselves, and the level is that of the others: Croston (1972)
    discount: Floats  # [K] what a demand counts for one step later
    variance_discount: Floats  # [K] what a squared error counts for one step later
    keeps: Floats  # [K] what is left of the level one step later
    prior: Floats  # [K] logarithm of the weight before the first demand
    forgetting: Floats  # [M] what a log-likelihood counts for one step later
    mean: Floats  # [K] m
    behind: Floats  # [K] n: discounted number of demands behind the level
    scatter: Floats  # [K] discounted sum of squared standardised errors
    freedom: Floats  # [K] ν: discounted number of errors behind the variance scatter / ν
    zeros: Floats  # [K] discounted number of demands of 0
    counted: Floats  # [K] discounted number of all
    likelihood: Floats  # [K] logarithm of that of the last demand
    weight: Floats  # [M, K] discounted log-likelihood
    trust: Floats  # [M] probability of each way of forgetting
    highest: Floats  # [1] the largest demand so far


@inner
def log_t(e: float, variance: float, freedom: float) -> float:
    """Log density at e of Student's t with this squared scale."""
    half = (freedom + 1) / 2
    constant = math.lgamma(half) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi * variance)
    return constant - half * math.log(1 + e * e / (freedom * variance))


@inner
def score_t(e: float, variance: float, freedom: float) -> float:
    """The standard normal quantile that e is of Student's t, as Wallace (1959) approximates it."""
    z = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log(1 + e * e / (freedom * variance)))
    return math.copysign(z, e)


@inner
def log_between(low: float, high: float) -> float:
    """Logarithm of the standard normal probability between two quantiles; -inf if it is too small to tell."""
    if low > 0:
        low, high = -high, -low  # where the digits are
    p = 0.5 * (math.erfc(-high / math.sqrt(2.0)) - math.erfc(-low / math.sqrt(2.0)))
    return math.log(p) if p > LEAST else -np.inf


@inner
def log_likelihood(y: float, rooted: int, cell: float, expected: float, variance: float, freedom: float) -> float:
    """Of a demand whose y this is: the probability of its cell, all below 0 being 0; the density, if cell is 0."""
    d = y * y - 1 if rooted else y
    if cell > 0:
        high = math.sqrt(1 + d + cell / 2) if rooted else d + cell / 2
        low = -np.inf
        if d > cell / 4:
            low = math.sqrt(max(1 + d - cell / 2, 0.0)) if rooted else d - cell / 2
            low = score_t(low - expected, variance, freedom)
        p = log_between(low, score_t(high - expected, variance, freedom))
        if p > -np.inf:
            return p
    density = log_t(y - expected, variance, freedom) + (math.log(cell) if cell > 0 else 0.0)
    return density - math.log(2 * y) if rooted else density  # dy/dd = 1 / (2y)


@inner
def chance_of_none(state: LevelsState, k: int) -> float:
    """The probability that a demand is 0 by itself. Until the first one that was, there are none."""
    if state.rests[k] == 0 or state.zeros[k] == 0:
        return 0.0
    return float(state.zeros[k] / (state.counted[k] + 1))


@inner
def foretold(state: LevelsState, m: int) -> float:
    """The log-likelihood of the last demand by one way of forgetting."""
    odds = state.prior + state.weight[m]
    odds = np.exp(odds - odds.max())
    best = state.likelihood.max()
    return float(best + math.log((odds * np.exp(state.likelihood - best)).sum() / odds.sum()))


@compiled
def take_in(state: LevelsState, demand: float, cell: float, first: bool, switch: float) -> None:
    """Weigh each level by how well it foretold this demand, then move it. cell: what whole numbers are apart, or 0."""
    state.highest[0] = max(state.highest[0], demand)
    for k in range(len(state.mean)):
        y = math.sqrt(demand + 1) if state.rooted[k] else demand
        if first:
            state.mean[k], state.behind[k] = y, 1.0
            continue
        expected = state.keeps[k] * state.mean[k]
        wider = 1 + 1 / state.behind[k]
        spread = state.scatter[k] / state.freedom[k] * wider
        none = chance_of_none(state, k)
        said = log_likelihood(y, state.rooted[k], cell, expected, spread, state.freedom[k])
        if none > 0:
            said = math.log((1 - none) * math.exp(said) + (none if demand == 0 else 0.0) + 1e-300)
        state.likelihood[k] = said
        state.zeros[k] *= state.variance_discount[k]
        state.counted[k] = state.variance_discount[k] * state.counted[k] + 1
        if demand == 0:
            state.zeros[k] += 1
            if state.rests[k]:
                continue
        e = y - expected
        state.scatter[k] = state.variance_discount[k] * state.scatter[k] + e * e / wider
        state.freedom[k] = state.variance_discount[k] * state.freedom[k] + 1
        state.behind[k] = state.discount[k] * state.behind[k] + 1
        state.mean[k] = expected + e / state.behind[k]
    if first:
        return
    odds = np.empty(len(state.trust))
    for m in range(len(odds)):
        odds[m] = foretold(state, m)
        state.weight[m] = state.forgetting[m] * state.weight[m] + state.likelihood
    odds = state.trust * np.exp(odds - odds.max())
    state.trust[:] = (1 - switch) * odds / odds.sum() + switch / len(odds)


@compiled
def draw_paths(state: LevelsState, chosen: Ints, normals: Floats, drift: float, ceiling: float, paths: Floats) -> None:
    """Fill paths [N, n] with demands ahead; chosen [N] says from which level, normals [N, 2 + 2n] are standard.

    A path has one variance and one first level, drawn from what is believed of them; its level then fades, and
    moves by drift·σ(1-δ)/sqrt(δ) a step. χ²_ν/ν is drawn as Wilson and Hilferty (1931) approximate it. Where demands
    of 0 come by themselves, the normal of the noise says whether one does, and that of the move is the noise.
    """
    most = ceiling * state.highest[0]
    for i in range(len(paths)):
        k = chosen[i]
        nu, delta, none = state.freedom[k], state.discount[k], chance_of_none(state, k)
        root = max(1 - 2 / (9 * nu) + normals[i, 0] * math.sqrt(2 / (9 * nu)), 0.1)
        sigma = math.sqrt(state.scatter[k] / nu / (root * root * root))
        level = state.mean[k] + sigma * normals[i, 1] / math.sqrt(state.behind[k])
        for j in range(paths.shape[1]):
            moves, noise = normals[i, 2 + 2 * j], normals[i, 3 + 2 * j]
            level *= state.keeps[k]
            if none > 0:
                if 0.5 * math.erfc(-noise / math.sqrt(2.0)) < none:
                    paths[i, j] = 0.0
                    continue
                noise = moves
            elif j > 0:
                level += drift * sigma * (1 - delta) / math.sqrt(delta) * moves
            y = level + sigma * noise
            if state.rooted[k]:
                y = max(y, 0.0) ** 2 - 1
            paths[i, j] = min(max(y, 0.0), most)

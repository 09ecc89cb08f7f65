"""A mixture of levels: what each expects, how likely each is, and paths drawn from them."""

from __future__ import annotations

import math
from typing import NamedTuple

from ucbf.kernels.jit import compiled, inner
from ucbf.kernels.types import Floats, Ints


class LevelsState(NamedTuple):
    """K local levels y_t = m_t + noise, m_t moving: West and Harrison (1997), chapter 2, with discounted variance."""

    rooted: Ints  # [K] 1: y = sqrt(1 + d); 0: y = d
    discount: Floats  # [K] what a demand counts for one step later
    keeps: Floats  # [K] what is left of the level one step later
    mean: Floats  # [K] m
    behind: Floats  # [K] n: discounted number of demands behind the level
    scatter: Floats  # [K] discounted sum of squared standardised errors
    freedom: Floats  # [K] ν: discounted number of errors behind the variance scatter / ν
    weight: Floats  # [K] discounted log-likelihood
    highest: Floats  # [1] the largest demand so far


@inner
def log_t(e: float, variance: float, freedom: float) -> float:
    """Log density at e of Student's t with this squared scale."""
    half = (freedom + 1) / 2
    constant = math.lgamma(half) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi * variance)
    return constant - half * math.log(1 + e * e / (freedom * variance))


@compiled
def take_in(state: LevelsState, demand: float, first: bool, variance_discount: float, forgetting: float) -> None:
    """Weigh each level by how well it foretold this demand, then move it."""
    state.highest[0] = max(state.highest[0], demand)
    for k in range(len(state.mean)):
        y = math.sqrt(demand + 1) if state.rooted[k] else demand
        if first:
            state.mean[k], state.behind[k] = y, 1.0
            continue
        expected = state.keeps[k] * state.mean[k]
        e = y - expected
        wider = 1 + 1 / state.behind[k]
        density = log_t(e, state.scatter[k] / state.freedom[k] * wider, state.freedom[k])
        if state.rooted[k]:
            density -= math.log(2 * y)  # dy/dd = 1 / (2y): densities of d are compared, not of y
        state.weight[k] = forgetting * state.weight[k] + density
        state.scatter[k] = variance_discount * state.scatter[k] + e * e / wider
        state.freedom[k] = variance_discount * state.freedom[k] + 1
        state.behind[k] = state.discount[k] * state.behind[k] + 1
        state.mean[k] = expected + e / state.behind[k]


@compiled
def draw_paths(state: LevelsState, chosen: Ints, normals: Floats, drift: float, ceiling: float, paths: Floats) -> None:
    """Fill paths [N, n] with demands ahead; chosen [N] says from which level, normals [N, 2 + 2n] are standard.

    A path has one variance and one first level, drawn from what is believed of them; its level then fades, and
    moves by drift·σ(1-δ)/sqrt(δ) a step. χ²_ν/ν is drawn as Wilson and Hilferty (1931) approximate it.
    """
    most = ceiling * state.highest[0]
    for i in range(len(paths)):
        k = chosen[i]
        nu, delta = state.freedom[k], state.discount[k]
        root = max(1 - 2 / (9 * nu) + normals[i, 0] * math.sqrt(2 / (9 * nu)), 0.1)
        sigma = math.sqrt(state.scatter[k] / nu / (root * root * root))
        level = state.mean[k] + sigma * normals[i, 1] / math.sqrt(state.behind[k])
        for j in range(paths.shape[1]):
            level *= state.keeps[k]
            if j > 0:
                level += drift * sigma * (1 - delta) / math.sqrt(delta) * normals[i, 2 + 2 * j]
            y = level + sigma * normals[i, 3 + 2 * j]
            if state.rooted[k]:
                y = max(y, 0.0) ** 2 - 1
            paths[i, j] = min(max(y, 0.0), most)

"""The paper's bounds as functions. Each docstring says what is proved, and what is an order of growth only.

Values are in the user's units. Where a bound needs L and the system does not give it, that of
:func:`ucbf.lipschitz.lipschitz_ahead` is taken. c and p are those of the bonus "theorem" with the clock "episode".
c = None takes the smallest c for which the proof holds over that number of episodes
(:func:`ucbf.certificates.valid_scale`); with a smaller c the formulas are the same, but nothing is proved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf import certificates
from ucbf.certificates import error_parts, error_shape, log_share, valid_scale
from ucbf.checks import real, whole
from ucbf.lipschitz import lipschitz_ahead, lipschitz_of, steepest
from ucbf.planning import optimal
from ucbf.system import System
from ucbf.units import units_of
from ucbf.world import World


def weights(horizon: int, t: int) -> NDArray[np.float64]:
    """[t] α_t^i, i = 1..t: the weight of the i-th target after t updates, α_i Π_{j>i} (1 - α_j), α_i = (H+1)/(H+i).

    They sum to 1; none exceeds 2H/t, nor does the sum of their squares (Jin et al. 2018, Lemma 4.1).
    """
    H, i = whole("horizon", horizon, 1), np.arange(1, whole("t", t, 1) + 1)
    alpha = (H + 1) / (H + i)
    later = np.append(np.cumprod((1 - alpha)[:0:-1])[::-1], 1.0)  # Π_{j>i} (1 - α_j)
    product: NDArray[np.float64] = alpha * later
    return product


def error_bounds(system: System, t: int, c: float | None = None, p: float = 0.01) -> NDArray[np.float64]:
    """[H] P_h^t / sqrt(t): how far Q^k at the action it chooses can be above Q*, after t = k-1 episodes.

    P_h^t = 4 (1 + 1/H) (c sqrt(H³ι) + Lζ sqrt(t)) + (1 + 1/H) P_{h+1}^t, P_H^t = 0. Proved, with probability 1-p and a
    large enough c: ``0 <= (V^k - V*)(s) <= (Q^k - Q*)(s, π_k(s)) <= P_h^t / sqrt(t)``.
    """
    t = whole("t", t, 1)
    bounds: NDArray[np.float64] = certificates.error_bounds(system, np.array([t]), _scale(system, c, t, p), p)[0]
    return bounds


def _scale(system: System, c: float | None, t: int, p: float) -> float:
    return valid_scale(system, t, real("p", p, 0, 1, open_low=True)) if c is None else c


def gap_bound(system: System, k: int, c: float | None = None, p: float = 0.01) -> float:
    """A bound on the gap of episode k: Σ_h P_h^t / sqrt(t), t = k-1, and at most the largest difference of returns.

    Proved: V*_h - V^π_h <= V^k_h - V^π_h <= (Q^k - Q*)(s, π_k(s)) + E[(V* - V^π)_{h+1}], step by step.
    """
    t = whole("k", k, 1) - 1
    return float(certificates.gap_bounds(system, np.array([t]), _scale(system, c, t, p), p)[0])


def regret_bound(system: System, episodes: int, c: float | None = None, p: float = 0.01) -> float:
    """Theorem 1 with the constants of its proof: the sum of the gap bounds of K episodes.

    Of the order sqrt(H⁶ T ι) + LζHT, T = HK; it depends on S and A only through the logarithm ι = log(SAH/p).
    """
    K = whole("episodes", episodes, 1)
    return float(certificates.gap_bounds(system, np.arange(K), _scale(system, c, K, p), p).sum())


def online_regret_bound(system: System, episodes: int, d: float, c: float | None = None, p: float = 0.01) -> float:
    """Theorem 3 with the constants that the proof of Theorem 1 gives: f is off by at most sqrt(d/k)/2 in episode k.

    The bonus "online", c sqrt(H³ι/k) + L sqrt(d/k), falls like 1/sqrt(k) as a whole, and Σ_i α_t^i / sqrt(i) is at most
    (1 + 1/H)/sqrt(t), so that P_h^t is Theorem 1's with Lζ sqrt(t) replaced by L sqrt(d):
    P_h = 4 (1 + 1/H) (c sqrt(H³ι) + L sqrt(d)) + (1 + 1/H) P_{h+1}. The sum of the gap bounds of K episodes, of the
    order sqrt(H⁶Tι) + L sqrt(HdT), T = HK. That f is off by no more is an assumption about the estimator, and the
    system's own ``model_error`` does not count here.
    """
    K, root = whole("episodes", episodes, 1), float(np.sqrt(real("d", d, 0)))
    fixed, _ = error_parts(system, _scale(system, c, K, p), p)
    falling = float((fixed + error_shape(system.n_steps) * lipschitz_ahead(system, units_of(system)) * root).sum())
    most = certificates.gap_bounds(system, np.zeros(1, np.int64), 1.0, p)[0]  # before anything is seen
    with np.errstate(divide="ignore"):
        return float(np.minimum(most, falling / np.sqrt(np.arange(K))).sum())


class EpisodesNeeded(NamedTuple):
    """After so many episodes the gap of the policy is at most ε + ``leftover``."""

    episodes: int
    leftover: float  # the part of the gap bound that a wrong f adds and no episode removes, of the order LζH²


def episodes_for(system: System, epsilon: float, c: float | None = None, p: float = 0.01) -> EpisodesNeeded:
    """Theorem 2 with the constants of its proof: how many episodes make the policy (ε + O(LζH²))-optimal.

    The smallest k whose gap bound, without the part that ζ adds, is at most ε; of the order H⁷ι/ε².
    """
    asked = real("epsilon", epsilon, 0, open_low=True)
    fixed, growing = error_parts(system, 1.0, p)

    def bound(t: int) -> float:
        return float(fixed.sum() * _scale(system, c, t, p) / np.sqrt(t))

    return EpisodesNeeded(1 + _smallest(bound, asked), float(growing.sum()))


def _smallest(bound: Callable[[int], float], asked: float) -> int:
    """The smallest n >= 1 for which ``bound(n)``, which falls with n, is at most ``asked``: by bisection."""
    enough = 1
    while bound(enough) > asked:
        enough *= 2
    few = enough // 2 + 1
    while few < enough:
        middle = (few + enough) // 2
        few, enough = (few, middle) if bound(middle) <= asked else (middle + 1, enough)
    return enough


def episodes_to_certify(system: System, epsilon: float, p: float = 0.05) -> int:
    """How many episodes make the certificate of UCBVI-f (Hoeffding's form) at most ε, whatever is observed.

    Proved: V^up - V^low <= 2 Σ_h γ^h range_h sqrt(log(1/δ) / 2k), where range_h is the largest difference of returns
    after step h, and δ = 6p / (π²k² · 2XH). Of the order H³ log(XHk/p) / ε²: it depends on S and A only through the
    logarithm. For ζ = 0.
    """
    if system.model_error:
        raise ValueError(
            f"model_error is {system.model_error:g}; a wrong f leaves an error that no number of episodes removes; "
            "pass a system with model_error=0"
        )
    asked, p = real("epsilon", epsilon, 0, open_low=True), real("p", p, 0, 1, open_low=True)
    H, units, X = system.n_steps, units_of(system), system.mechanics.n_after
    width = 2 * float((system.discount ** np.arange(H) * (units.cap - units.floor)).sum()) * units.scale

    def bound(k: int) -> float:
        return width * float(np.sqrt(log_share(k, 2 * X * H, p) / (2 * k)))

    return max(2, _smallest(bound, asked))


def lipschitz_constants(system: System) -> dict[str, float]:
    """Lipschitz constants of f, r and landing in the state, and the L for V* that they give (proved).

    L_h <= L_r + L_f (L_landing + γ L_{h+1}), and at most the largest difference of returns. Where neighbouring states
    have different actions, or wrap to the other end, only the largest difference of returns is a bound.
    """
    landing = 0.0 if system.landing is None else steepest(system.landing)
    bound = lipschitz_of(system.replace(lipschitz=None), units_of(system))
    return {"f": steepest(system.f), "reward": steepest(system.reward), "landing": landing, "value": bound}


def measured_lipschitz(world: World) -> float:
    """The smallest L for V* of a world: the largest difference of neighbours, the two ends included if states wrap."""
    v = optimal(world).v
    steps = [np.abs(np.diff(v, axis=1))]
    if world.system.boundary == "wrap":
        steps.append(np.abs(v[:, :1] - v[:, -1:]))
    return float(max(step.max(initial=0) for step in steps))


def regret_orders(
    n_states: int,
    n_actions: int,
    horizon: int,
    steps: int,
    lipschitz: float = 0.0,
    model_error: float = 0.0,
    d: float = 0.0,
) -> dict[str, float]:
    """Table 1 of the paper: the order of the regret after T steps, without constants and logarithms.

    "UCB-f, online" is Theorem 3: an estimate of f that improves like sqrt(d/k); :func:`online_regret_bound` has
    constants. Orders only: they say how regret grows, not how large it is. :func:`observed_orders` has newer ones.
    """
    given = {"n_states": n_states, "n_actions": n_actions, "horizon": horizon, "steps": steps}
    S, A, H, T = (float(whole(name, number, 1)) for name, number in given.items())
    return {
        "UCBVI": (H**2 * S * A * T) ** 0.5 + H**4 * S**2 * A,
        "UBEV": (H**3 * S * A * T) ** 0.5 + H**2 * S**3 * A**2,
        "UCB-H": (H**4 * S * A * T) ** 0.5,
        "Q-EarlySettled-Advantage": (H**2 * S * A * T) ** 0.5 + H**6 * S * A,
        "UCB-f": (H**6 * T) ** 0.5 + lipschitz * model_error * H * T,
        "UCB-f, online": (H**6 * T) ** 0.5 + lipschitz * (H * d * T) ** 0.5,
    }


def observed_orders(n_disturbances: int, horizon: int, episodes: int) -> dict[str, float]:
    """Newer bounds for systems whose randomness is all exogenous and observed, as W is with exact f: orders of growth.

    Without constants and logarithms, after K episodes, d being the number of values that W (there: the exogenous state)
    may take. They are as their authors state them, for rewards between 0 and 1 a step; nothing is proved here.

    ==================  ==================  ============================================================================
    name                order               stated in
    ==================  ==================  ============================================================================
    plug-in             sqrt(H³dK)          Wan, Sinclair, Shah, Wainwright, arXiv 2409.14557: independent, observed
    PEL                 H² d sqrt(K)        Liang, Cheng, Sinclair, Du, arXiv 2601.20694: pure exploitation, tables
    lower bound, in d   sqrt(dK)            Maran, Salaorni, Restelli, arXiv 2603.02862: a Markov state, not independent
    UCBVI-f             H² sqrt(K)          this package: independent W, exact f; free of d, but for a logarithm of S
    ==================  ==================  ============================================================================

    The lower bound is for exogenous states that depend on the one before. It says nothing of independent W, where the
    regret of UCBVI-f may be smaller. EXAVI (arXiv 2603.02862) has d in its leading term as the lower bound has it; its
    powers of H are not repeated here.
    """
    given = {"n_disturbances": n_disturbances, "horizon": horizon, "episodes": episodes}
    d, H, K = (float(whole(name, number, 1)) for name, number in given.items())
    return {
        "plug-in": (H**3 * d * K) ** 0.5,
        "PEL": H**2 * d * K**0.5,
        "lower bound, in d": (d * K) ** 0.5,
        "UCBVI-f": H**2 * K**0.5,
    }

"""The named exploration bonuses. Every bonus is width[h] / sqrt(n) + floor.

n is the agent's clock: for an agent that is told f, the episodes or updates so far; for one that is not,
the visits of the pair. H is the horizon, ζ the model error, L the Lipschitz constant of what follows a raw next state
(:func:`ucbf.lipschitz.lipschitz_ahead`; without landing rewards and discount that of V*), ι = log(SAH/p),
ℓ = log(5SAHK/p), d the rate at which an estimate of f improves. The theorems say "for a large enough c"; the c of the
table are what is usual, and :func:`ucbf.certificates.valid_scale` says which are proved for UCB-f.

===========  ==========================  ===========  ==========  =====================================
name         width                       floor        c if None   source
===========  ==========================  ===========  ==========  =====================================
theorem      c sqrt(H³ι)                 Lζ           1           Theorems 1 and 2 of the paper; UCB-H
online       c sqrt(H³ι) + L sqrt(d)     0            1           Theorem 3
experiment   cH                          cζL          0.05        the paper's text on its figure
published    c (H-h) sqrt(ι)             cζL/2        0.05        the authors' code, which drew it
CH           7cHℓ                        0            1           UCBVI, Chernoff-Hoeffding
===========  ==========================  ===========  ==========  =====================================

Under "published" the last step, where its reward is known, gets no bonus and is not learned. Agents that
are not told f pay no floor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import frozen, one_of, real
from ucbf.kernels.sharper import Scale
from ucbf.lipschitz import lipschitz_ahead
from ucbf.system import System
from ucbf.units import LONG, Units

LARGEST_SCALE = 1e50  # of a bonus: values stay finite
ACCURACY = 0.1  # ε, in units of the largest reward
SCALES = {"theorem": 1.0, "online": 1.0, "experiment": 0.05, "published": 0.05, "CH": 1.0}


class Bonus(NamedTuple):
    """width[h] / sqrt(n) + floor, in the learner's units."""

    width: NDArray[np.float64]  # [H]
    floor: float


def scale_of(name: str, choices: tuple[str, ...], c: float | None) -> float:
    """c, checked, or the one that belongs to the bonus ``name`` if it is None."""
    one_of("bonus", name, choices)
    return SCALES[name] if c is None else real("c", c, 0, LARGEST_SCALE)


def log_term(system: System, p: float) -> float:
    """ι = log(SAH/p)."""
    return float(np.log(system.n_states * system.n_actions * system.n_steps / p))


def horizon_log_term(system: System, p: float, episodes: int) -> float:
    """ℓ = log(5SAT/p), T = HK."""
    return float(np.log(5 * system.n_states * system.n_actions * system.n_steps * episodes / p))


def effective_discount(system: System) -> float:
    """γ, or where the average counts and there is no end, that of an effective horizon of ``LONG`` steps."""
    return system.discount if system.discount < 1 else 1 - 1 / LONG


def effective_horizon(system: System) -> float:
    """H' = log(1/((1-γ)ε))/(1-γ): after so many steps what follows is worth less than ε (Dong et al. 2019)."""
    rest = 1 - effective_discount(system)
    return max(1.0, float(np.log(1 / (rest * ACCURACY)) / rest))


def endless_width(name: str, system: System, c: float, p: float) -> float:
    """The width of a bonus where there is no end: 1/(1-γ) stands for H, and for one H of the theorems' H³ does H'."""
    rest, iota = 1 - effective_discount(system), log_term(system, p)
    if name in ("theorem", "online"):
        return float(c / rest * np.sqrt(effective_horizon(system) * iota))
    return float(c / rest * (np.sqrt(iota) if name == "published" else 1.0))


def bonus_of(
    name: str, system: System, units: Units, *, c: float, p: float, d: float = 0.0, episodes: int = 1
) -> Bonus:
    """The bonus ``name`` of the table above."""
    if system.horizon is None:
        return Bonus(frozen(np.full(system.n_steps, endless_width(name, system, c, p))), 0.0)
    H, zeta = system.n_steps, system.model_error
    iota = log_term(system, p)
    L = lipschitz_ahead(system, units) / units.scale if zeta or d else 0.0
    width = {
        "theorem": c * np.sqrt(H**3 * iota),
        "online": c * np.sqrt(H**3 * iota) + L * np.sqrt(d),
        "experiment": c * H,
        "published": c * (H - np.arange(H)) * np.sqrt(iota),
        "CH": 7 * c * H * horizon_log_term(system, p, episodes),
    }[name]
    floor = {"theorem": L * zeta, "experiment": c * zeta * L, "published": c * zeta / 2 * L}.get(name, 0.0)
    return Bonus(frozen(width * np.ones(H)), float(floor))


def scale_of_variances(system: System, units: Units, *, c: float, p: float, repairs: bool) -> Scale:
    """The numbers of the bonuses that follow variances; cLζ for a wrong f, unless it is repaired."""
    H, rest = float(system.n_steps), 1 - effective_discount(system)
    if system.horizon is None:
        return Scale(c, log_term(system, p), effective_horizon(system), 1 / rest, 0.0)
    zeta = 0.0 if repairs else system.model_error
    L = lipschitz_ahead(system, units) / units.scale if zeta else 0.0
    return Scale(c, log_term(system, p), H, H, float(c * L * zeta))

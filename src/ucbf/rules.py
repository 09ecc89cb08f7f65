"""Simple rules that a practitioner would use, to compare a learned policy with. Each gives a policy [H, S]."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers
from ucbf.disturbance import Disturbance
from ucbf.planning import charged, check_law, induction, occurring, plan
from ucbf.system import System


def myopic(system: System, law: Disturbance) -> NDArray[np.int64]:
    """The best action if every step were the last: what it pays on average, and the terminal reward where it ends."""
    check_law(system, law)
    m, (moves, pmf) = charged(system, law), occurring(system, law)
    E = system.n_contexts
    policy = np.empty(system.allowed.shape[:2], np.int64)
    for h in range(system.n_steps):
        after, reward, landing = (table[h % len(table)][None] for table in (m.after, m.reward, m.landing))
        now = pmf.reshape(-1, E, len(moves))[h % (len(pmf) // E)]
        step = m._replace(after=after, reward=reward, landing=landing, horizon=1)
        policy[h] = induction(step, moves, np.ascontiguousarray(now))[2][0]
    return policy


def certainty_equivalent(system: System, law: Disturbance) -> NDArray[np.int64]:
    """The best plan if W were always its mean, rounded."""
    check_law(system, law)
    if system.n_contexts > 1 or not system.space.is_line:
        raise ValueError("certainty_equivalent is of states on a line, without contexts; use ucbf.optimal")
    means = [round(law.mean(h)) - law.low for h in range(len(law.pmf))]
    return plan(system, Disturbance(np.eye(len(law.values))[means], low=law.low)).policy


def aim_at(system: System, law: Disturbance, level: int) -> NDArray[np.int64]:
    """The action after which the state is expected to be nearest to a level, whatever it costs; the lower, of two."""
    check_law(system, law)
    return np.stack(
        [
            np.where(system.allowed[h], np.abs(system.f[h] + law.mean(h) - level), np.inf).argmin(axis=1)
            for h in range(system.n_steps)
        ]
    )


def up_to(system: System, levels: ArrayLike, thresholds: ArrayLike | None = None) -> NDArray[np.int64]:
    """Raise the state to a level whenever it is below a threshold (below the level, if None).

    levels, thresholds: one number, or [H] one for each step. Of the actions that exist it takes the one that leads
    nearest to the level without passing it; at or above the threshold, the one that raises the state least.
    """
    H, S = system.allowed.shape[:2]
    level = np.broadcast_to(numbers("levels", levels), (H,))
    threshold = level if thresholds is None else np.broadcast_to(numbers("thresholds", thresholds), (H,))
    states = np.array(system.states)
    policy = np.empty((H, S), np.int64)
    for h in range(H):
        base = np.where(system.allowed[h], system.f[h], np.int64(np.iinfo(np.int64).max)).min(axis=1)  # raised least
        raised = states[:, None] + (system.f[h] - base[:, None])
        fits = system.allowed[h] & (raised <= np.maximum(level[h], states)[:, None])
        highest = np.where(fits, system.f[h], -np.inf).argmax(axis=1)
        lowest = np.where(system.allowed[h], system.f[h], np.inf).argmin(axis=1)
        policy[h] = np.where(states < threshold[h], highest, lowest)
    return policy

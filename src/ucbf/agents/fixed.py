"""Policies that learn nothing, to compare with: greedy, random, optimal."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.base import Agent, CompiledAgent
from ucbf.checks import whole
from ucbf.disturbance import Disturbance
from ucbf.kernels import learners
from ucbf.kernels.seen import Seen
from ucbf.limits import MOST_SEEN, Limit, Limits
from ucbf.planning import greedy, plan
from ucbf.system import System

BLOCK = 64  # random policies drawn at a time


class Fixed(CompiledAgent):
    """A policy that stays."""

    uses_residual = False
    pays_late = True


class Greedy(Fixed):
    """Takes the largest immediate reward r(s, a), whatever follows: the dashed line of the paper's figure."""

    name = "greedy"

    def __init__(self, system: System) -> None:
        super().__init__(system)
        self.learner = learners.Fixed(policy=greedy(system))


class Optimal(Fixed):
    """Is told the law as well, and plans with it.

    Parameters
    ----------
    system
        The mechanics; with the true ones nothing does better.
    law
        The law of W that the other agents have to learn.
    """

    name = "optimal"

    def __init__(self, system: System, *, law: Disturbance | None = None) -> None:
        if not isinstance(law, Disturbance):
            raise TypeError(f"law is {law!r:.60}; the optimal agent must be told it: pass law=world.law")
        super().__init__(system, law=law)
        self._plan = plan(system, law)
        self.learner = learners.Fixed(policy=self._plan.policy)

    @property
    def q(self) -> NDArray[np.float64]:
        """[H, S, A] Q* if system and law are the true ones."""
        return self._plan.q.copy()


class Random(Agent):
    """Chooses among the allowed actions uniformly: a fresh random policy for every episode.

    Parameters
    ----------
    system
        The actions there are.
    seed
        Of its choices; the policy depends on it and on the number of transitions seen at each step.
    """

    name = "random"
    tables: ClassVar[dict[str, str]] = {"count": "H"}
    uses_residual = False
    pays_late = True

    def __init__(self, system: System, *, seed: int = 0) -> None:
        super().__init__(system, seed=whole("seed", seed, 0))
        self._count = np.zeros(system.n_steps, np.int64)
        self._policies = lru_cache(maxsize=2)(self._draw)

    @property
    def policy(self) -> NDArray[np.int64]:
        """[H, S] the actions it takes now."""
        return np.stack([self._policies(int(k) // BLOCK)[k % BLOCK, h] for h, k in enumerate(self._count)])

    def update(self, seen: Seen) -> None:
        """Go on to the next random policy of the step."""
        self._count[seen.h] += 1

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """How many transitions each step has seen."""
        return {"count": self._count}

    def limits(self, stored: dict[str, NDArray[Any]]) -> Limits:
        """Counts."""
        return {"count": Limit(0, MOST_SEEN)}

    def _draw(self, block: int) -> NDArray[np.int64]:
        """[BLOCK, H, S]: block after block from the seed, so that the counts alone say where the agent stands."""
        allowed = self.system.allowed
        uniforms = np.random.default_rng([self.params["seed"], block]).random((BLOCK, *allowed.shape[:2]))
        rank = np.floor(uniforms * allowed.sum(axis=2)).astype(np.int64)  # the how-many-th allowed action
        return np.take_along_axis(np.argsort(~allowed, axis=2, kind="stable")[None], rank[..., None], axis=3)[..., 0]

"""Rules for actions that are kinds, not amounts: the action with the largest score acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem, Rows
from ucbf.values.paths import Outcomes, Rule, middle
from ucbf.values.trials import Trial, narrowed

Floats = NDArray[np.float64]

STAGES = 3  # of the search, each with paths twice as long as the one before
STARTS = 4  # of the first stage, which may end far from the best
ROUNDS, DRAWN, ELITE, KEPT = 30, 48, 1 / 8, 0.8
OWN = 0.5  # of what the action that moves a coordinate most moves it by, or more: the coordinate is one of its own


@dataclass(frozen=True, eq=False)
class Scores:
    """The action with the largest score, ``offset[a] + weights[a] @ s``, among those that exist.

    Serving the longest queue is such a rule, and so are fixed priorities (the first of a list that has work), and
    filling up what will run out first.
    """

    system: LargeSystem
    offset: Floats  # [A]
    weights: Floats  # [A, d]

    def __call__(self, h: int, s: Rows) -> Rows:
        """[N, m] actions in states [N, d]."""
        return _largest(self.system, h, s, self.offset + s @ self.weights.T)

    @classmethod
    def stacked(cls, rules: Sequence[Scores], n: int) -> Rule:
        """Several rules as one, each for its own n rows."""
        system, P = rules[0].system, len(rules)
        offset, weights = (np.stack([getattr(rule, name) for rule in rules]) for name in ("offset", "weights"))

        def rule(h: int, s: Rows) -> Rows:
            scores = offset[:, None] + s.reshape(P, n, -1) @ weights.transpose(0, 2, 1)
            return _largest(system, h, s, scores.reshape(P * n, -1))

        return rule

    def __str__(self) -> str:
        return f"the largest of {len(self.offset)} scores"


def _largest(system: LargeSystem, h: int, s: Rows, scores: Floats) -> Rows:
    """[N, m] the actions with the largest scores [N, A] in states [N, d]."""
    best = np.where(system.exist(h, s), scores, -np.inf).argmax(axis=1)
    return np.asarray(system.actions[best])


def search_scores(system: LargeSystem, law: Disturbance, chains: int, steps: int, seed: int) -> tuple[Scores, float]:
    """The best rule that was found, and what it earned.

    Paths are short at first, so that rules that all go wrong in the long run differ; then twice as long, and so on. The
    score of an action depends at first on the coordinates only that it moves itself (how full the item is that it would
    fill): many weights cannot be found from nothing.
    """
    size, own = _size_and_own(system, Outcomes(system, law))
    shape = (len(system.actions), system.n_axes + 1)
    centre, spread = np.zeros(shape).ravel(), np.concatenate([np.ones((shape[0], 1)), own], axis=1).ravel()

    def made(row: Floats) -> Scores:
        table = row.reshape(shape)
        return Scores(system, table[:, 0], table[:, 1:] / size)

    for stage in range(STAGES):
        trial = Trial.drawn(system, law, max(chains // 12, 4), 2**stage * steps, seed + stage)

        def worth(rows: Floats, trial: Trial = trial) -> Floats:
            return trial.worth([made(row) for row in rows])

        starts = range(STARTS if stage == 0 else 1)
        found = np.concatenate([narrowed(worth, centre, spread, DRAWN, ROUNDS, ELITE, KEPT, i) for i in starts])
        centre = found[worth(found).argmax()]
        spread = np.full(len(centre), 0.3 * np.sqrt(np.mean(centre[centre != 0] ** 2))) if centre.any() else spread
    rule = made(centre)
    return rule, float(Trial.drawn(system, law, chains, steps, seed).worth([rule])[0])


def _size_and_own(
    system: LargeSystem, outcomes: Outcomes, chains: int = 100, steps: int = 100
) -> tuple[Floats, NDArray[np.bool_]]:
    """[d] how large states are that actions of any kind lead to, and [A, d] which coordinates an action moves itself.

    These are what the state after an action differs by from that after any other, on average.
    """
    rng, s, A = np.random.default_rng(0), middle(system, chains), len(system.actions)
    moved, times = np.zeros((A, system.n_axes)), np.zeros((A, 1))
    for h in range(steps if system.horizon is None else system.horizon):
        step = h if system.horizon is not None else 0
        w, exist = outcomes.draw(rng, chains), system.exist(step, s)
        then = np.zeros((A, *s.shape))
        for i, rows in enumerate(exist.T):
            a = np.repeat(system.actions[i : i + 1], int(rows.sum()), axis=0)
            then[i, rows] = system.step(step, s[rows], a, w[rows])[1]
        away = np.abs(then - then.sum(axis=0) / exist.sum(axis=1)[:, None]) * exist.T[:, :, None]
        moved, times = moved + away.sum(axis=1), times + exist.sum(axis=0)[:, None]
        a = _largest(system, step, s, rng.random((chains, A)))
        s = system.step(step, s, a, w)[1]
    moved = moved / np.maximum(times, 1)
    own = (moved > 1e-9) & (moved >= OWN * moved.max(axis=0))
    size = np.maximum(np.abs(s).mean(axis=0) + s.std(axis=0), 1e-9)
    return size, own if own.any() else np.ones_like(own)


def imitated_scores(system: LargeSystem, s: Rows, a: Rows) -> Scores:
    """The rule that does about the same as actions [N, m] in states [N, d]: logistic regression."""
    from scipy.optimize import minimize

    A, n = len(system.actions), len(s)
    done = np.eye(A)[system.at_most(a)]
    middle_, size = s.mean(axis=0), np.maximum(s.std(axis=0), 1e-9)
    x = np.concatenate([np.ones((n, 1)), (s - middle_) / size], axis=1)
    hidden = np.where(system.exist(0, s), 0.0, -np.inf)

    def loss(flat: Floats) -> tuple[float, Floats]:
        table = flat.reshape(A, -1)
        scores = x @ table.T + hidden
        top = scores.max(axis=1, keepdims=True)
        share = np.exp(scores - top)
        total = share.sum(axis=1, keepdims=True)
        likely = (np.where(done > 0, scores, 0.0).sum(axis=1) - top[:, 0] - np.log(total[:, 0])).mean()
        slope = (done - share / total).T @ x / n
        return -likely + 1e-4 * flat @ flat, (-slope + 2e-4 * table).ravel()

    table = minimize(loss, np.zeros(A * x.shape[1]), jac=True, method="L-BFGS-B").x.reshape(A, -1)
    weights = table[:, 1:] / size
    return Scores(system, table[:, 0] - weights @ middle_, weights)

"""Slow, literal transcriptions of the pseudocode: the judges of the compiled learners.

Each keeps whole tables, loops over everything and calls nothing of ``ucbf.kernels``. Values are in the user's units
divided by ``scale``; scale and cap (the largest return from each step on) are given, and tested elsewhere.
"""

import itertools
import math

import numpy as np


def meet_boundary(system, z):
    """State index of a raw next state."""
    index = int(z) - system.state_offset
    if system.boundary == "wrap":
        return index % system.n_states
    return min(max(index, 0), system.n_states - 1)


def landing(system, h, z):
    return 0.0 if system.landing is None else system.landing[h, int(z) - system.raw_states[0]]


def allowed_actions(system, h, s):
    return [a for a in range(system.n_actions) if system.allowed[h, s, a]]


class Literal:
    """Q = V = cap everywhere, the terminal reward after the end; if the last step is known, Q is known there."""

    def __init__(self, system, units, bonus, known_last):
        self.system, self.bonus = system, bonus
        H, S, A = system.f.shape
        self.scale, self.cap = units.scale, units.cap
        self.last = H - 2 if known_last else H - 1
        self.V = np.zeros((H + 1, S))
        self.V[H] = system.terminal / self.scale
        self.Q = np.empty((H, S, A))
        for h, s, a in np.ndindex(H, S, A):
            self.Q[h, s, a] = self.cap[h] if system.allowed[h, s, a] else -np.inf
            if known_last and h == H - 1 and system.allowed[h, s, a]:
                z = system.raw_states[0]  # any: what follows does not depend on it
                self.Q[h, s, a] = self.paid(h, s, a, z) + system.discount * self.V[H, 0]
        for h, s in np.ndindex(H, S):
            self.V[h, s] = min(self.cap[h], max(self.Q[h, s]))

    def paid(self, h, s, a, z):
        return (self.system.reward[h, s, a] + landing(self.system, h, z)) / self.scale

    def policy(self):
        return self.Q.argmax(axis=2)


class LiteralUCBf(Literal):
    """Algorithm 1 of Alharbi, Roozbehani, Dahleh (2024), for every (s, a). bonus(h, n)."""

    def __init__(self, system, units, bonus, clock, known_last=False):
        super().__init__(system, units, bonus, known_last)
        self.clock, self.k = clock, [0] * system.horizon

    def observe(self, h, w):
        if h > self.last:
            return
        system, H = self.system, self.system.horizon
        self.k[h] += 1
        n = self.k[h] if self.clock == "episode" else (self.k[h] - 1) * H + h + 1
        alpha = (H + 1) / (H + n)
        for s in range(system.n_states):
            for a in allowed_actions(system, h, s):
                z = system.f[h, s, a] + w
                target = self.paid(h, s, a, z)
                target += system.discount * self.V[h + 1, meet_boundary(system, z)] + self.bonus(h, n)
                self.Q[h, s, a] = (1 - alpha) * self.Q[h, s, a] + alpha * target
        for s in range(system.n_states):
            self.V[h, s] = min(self.cap[h], max(self.Q[h, s]))


class LiteralUCBH(Literal):
    """Algorithm 1 of Jin et al. (2018)."""

    def __init__(self, system, units, bonus, known_last=False):
        super().__init__(system, units, bonus, known_last)
        self.N = np.zeros(system.f.shape, int)

    def observe(self, h, s, a, s_next, w):
        if h > self.last:
            return
        system, H = self.system, self.system.horizon
        self.N[h, s, a] += 1
        t = self.N[h, s, a]
        alpha = (H + 1) / (H + t)
        target = self.paid(h, s, a, system.f[h, s, a] + w) + system.discount * self.V[h + 1, s_next] + self.bonus(h, t)
        self.Q[h, s, a] = (1 - alpha) * self.Q[h, s, a] + alpha * target
        self.V[h, s] = min(self.cap[h], max(self.Q[h, s]))


class LiteralUCBVI(Literal):
    """Algorithms 1 and 2 of Azar et al. (2017), a count for each step."""

    def __init__(self, system, units, bonus, known_last=False):
        super().__init__(system, units, bonus, known_last)
        H, S, A = system.f.shape
        self.N, self.sum_paid = np.zeros((H, S, A, S)), np.zeros((H, S, A))

    def observe(self, h, s, a, s_next, w):
        self.N[h, s, a, s_next] += 1
        self.sum_paid[h, s, a] += self.paid(h, s, a, self.system.f[h, s, a] + w)

    def plan(self):
        system = self.system
        for h in range(self.last, -1, -1):
            for s in range(system.n_states):
                for a in allowed_actions(system, h, s):
                    n = self.N[h, s, a].sum()
                    if n:
                        P = self.N[h, s, a] / n
                        q = self.sum_paid[h, s, a] / n + system.discount * sum(P * self.V[h + 1]) + self.bonus(h, n)
                        self.Q[h, s, a] = min(self.Q[h, s, a], self.cap[h], q)
                self.V[h, s] = max(self.Q[h, s])


def outcomes(world, h, s, a):
    """(probability, reward, next state index) of each disturbance."""
    system, law = world.system, world.law
    for i, probability in enumerate(law.pmf[h % len(law.pmf)]):
        z = system.f[h, s, a] + law.low + i
        if probability:
            yield probability, system.reward[h, s, a] + landing(system, h, z), meet_boundary(system, z)


def policy_values(world, policy):
    """[H+1, S], by the definition."""
    system = world.system
    v = np.zeros((system.horizon + 1, system.n_states))
    v[-1] = system.terminal
    for h in range(system.horizon - 1, -1, -1):
        for s in range(system.n_states):
            for p, r, s_next in outcomes(world, h, s, policy[h][s]):
                v[h, s] += p * (r + system.discount * v[h + 1, s_next])
    return v


def best_of_all_policies(world):
    """[S]: the largest first value over every deterministic policy."""
    system = world.system
    H, S = system.horizon, system.n_states
    places = [(h, s) for h in range(H) for s in range(S)]
    best = np.full(S, -np.inf)
    for choice in itertools.product(*(allowed_actions(system, h, s) for h, s in places)):
        policy = np.reshape(choice, (H, S))
        best = np.maximum(best, policy_values(world, policy)[0])
    return best


def bonus(name, system, units, told_f, c=None, p=0.01, d=1.0, episodes=5000):
    """(h, n) -> b, by the formulas; agents that are not told f pay nothing for its error."""
    S, A, H = system.n_states, system.n_actions, system.horizon
    iota = math.log(S * A * H / p)
    L = (system.lipschitz or 0.0) / units.scale if told_f else 0.0
    zeta = system.model_error
    if name == "theorem":
        c = 1.0 if c is None else c
        return lambda h, n: c * math.sqrt(H**3 * iota / n) + L * zeta
    if name == "online":
        c = 1.0 if c is None else c
        return lambda h, n: c * math.sqrt(H**3 * iota / n) + L * math.sqrt(d / n)
    if name == "experiment":
        c = 0.05 if c is None else c
        return lambda h, n: c * math.sqrt(H**2 / n) + c * zeta * L
    if name == "published":
        c = 0.05 if c is None else c
        return lambda h, n: c * (math.sqrt((H - h) ** 2 * iota / n) + zeta / 2 * L)
    c = 1.0 if c is None else c
    return lambda h, n: 7 * c * H * math.log(5 * S * A * H * episodes / p) * math.sqrt(1 / n)

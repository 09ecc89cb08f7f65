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


class LiteralUCBB(Literal):
    """Algorithm 2 of Jin et al. (2018), c1 = c2 = c, keeping every target it has seen."""

    def __init__(self, system, units, c, p):
        super().__init__(system, units, None, False)
        self.c, self.iota = c, math.log(system.n_states * system.n_actions * system.horizon / p)
        self.targets, self.beta = {}, {}

    def observe(self, h, s, a, s_next, w):
        system, (H, S, A) = self.system, self.system.f.shape
        seen = self.targets.setdefault((h, s, a), [])
        seen.append(landing(system, h, system.f[h, s, a] + w) / self.scale + system.discount * self.V[h + 1, s_next])
        t = len(seen)
        alpha = (H + 1) / (H + t)
        W = sum((y - sum(seen) / t) ** 2 for y in seen) / t
        one = math.sqrt(H / t * (W + H) * self.iota) + math.sqrt(H**7 * S * A) * self.iota / t
        beta = min(self.c * one, self.c * math.sqrt(H**3 * self.iota / t))
        b = (beta - (1 - alpha) * self.beta.get((h, s, a), 0.0)) / (2 * alpha)
        self.beta[h, s, a] = beta
        target = system.reward[h, s, a] / self.scale + seen[-1] + b
        self.Q[h, s, a] = (1 - alpha) * self.Q[h, s, a] + alpha * target
        self.V[h, s] = min(self.cap[h], max(self.Q[h, s]))


class LiteralEarlySettled(Literal):
    """Algorithm 1 of Li et al. (2021), line by line; everything that is per pair in one record."""

    def __init__(self, system, units, c, p):
        super().__init__(system, units, None, False)
        H, S, A = system.f.shape
        self.c, self.iota = c, math.log(S * A * H / p)
        self.VR, self.VL, self.u = self.V.copy(), self.V.copy(), np.ones((H, S), bool)
        self.QU, self.QR, self.QL = self.Q.copy(), self.Q.copy(), self.Q.copy()
        for h, s, a in zip(*np.nonzero(system.allowed), strict=True):
            self.QL[h, s, a] = units.floor[h]
        for h in range(H):
            self.VL[h] = units.floor[h]
        self.record = {}

    def observe(self, h, s, a, s_next, w):
        system, H, c, iota = self.system, self.system.horizon, self.c, self.iota
        rec = self.record.setdefault((h, s, a), dict.fromkeys(["N", "mr", "sr", "ma", "sa", "BR"], 0.0))
        rec["N"] += 1
        n = rec["N"]
        eta = (H + 1) / (H + n)
        r = self.paid(h, s, a, system.f[h, s, a] + w)
        V, VR, VL = (system.discount * table[h + 1, s_next] for table in (self.V, self.VR, self.VL))
        b_H = c * math.sqrt(H**3 * iota / n)
        self.QU[h, s, a] = (1 - eta) * self.QU[h, s, a] + eta * (r + V + b_H)
        self.QL[h, s, a] = (1 - eta) * self.QL[h, s, a] + eta * (r + VL - b_H)
        rec["mr"] = (1 - 1 / n) * rec["mr"] + VR / n
        rec["sr"] = (1 - 1 / n) * rec["sr"] + VR**2 / n
        rec["ma"] = (1 - eta) * rec["ma"] + eta * (V - VR)
        rec["sa"] = (1 - eta) * rec["sa"] + eta * (V - VR) ** 2
        B_next = c * math.sqrt(iota / n) * math.sqrt(max(rec["sr"] - rec["mr"] ** 2, 0))
        B_next += c * math.sqrt(iota / n) * math.sqrt(H) * math.sqrt(max(rec["sa"] - rec["ma"] ** 2, 0))
        delta = B_next - rec["BR"]
        rec["BR"] = B_next
        b_R = rec["BR"] + (1 - eta) * delta / eta + c * H**2 * iota / n**0.75
        self.QR[h, s, a] = (1 - eta) * self.QR[h, s, a] + eta * (r + V - VR + rec["mr"] + b_R)
        self.Q[h, s, a] = min(self.QR[h, s, a], self.QU[h, s, a], self.Q[h, s, a])
        self.V[h, s] = max(self.Q[h, s])
        self.VL[h, s] = max(max(self.QL[h, s]), self.VL[h, s])
        if self.V[h, s] - self.VL[h, s] > 1:
            self.VR[h, s] = self.V[h, s]
        elif self.u[h, s]:
            self.VR[h, s] = self.V[h, s]
            self.u[h, s] = False


class LiteralUCBVIBF(LiteralUCBVI):
    """Azar et al. (2017) with the bonus of their Algorithm 4."""

    def __init__(self, system, units, c, p, episodes=5000):
        super().__init__(system, units, None)
        H, S, A = system.f.shape
        self.c, self.log_term = c, math.log(5 * S * A * H * episodes / p)

    def plan(self):
        system, (H, S, A), log_term = self.system, self.system.f.shape, self.log_term
        for h in range(H - 1, -1, -1):
            for s in range(S):
                for a in allowed_actions(system, h, s):
                    N = self.N[h, s, a].sum()
                    if not N:
                        continue
                    P, V = self.N[h, s, a] / N, system.discount * self.V[h + 1]
                    variance = sum(P * (V - sum(P * V)) ** 2)
                    b = math.sqrt(8 * log_term * variance / N) + 14 * H * log_term / (3 * N)
                    if h < H - 1:
                        arrived = self.N[h + 1].sum(axis=(1, 2))
                        rest = [100**2 * H**3 * S**2 * A * log_term**2 / arrived[y] for y in range(S) if P[y]]
                        weights = [P[y] for y in range(S) if P[y]]
                        b += math.sqrt(8 / N * sum(p * min(x, H**2) for p, x in zip(weights, rest, strict=True)))
                    q = self.sum_paid[h, s, a] / N + sum(P * V) + self.c * b
                    self.Q[h, s, a] = min(self.Q[h, s, a], self.cap[h], q)
                self.V[h, s] = max(self.Q[h, s])


class LiteralUBEV(LiteralUCBVI):
    """Algorithm 1 of Dann et al. (2017), rewards known."""

    def __init__(self, system, units, c, p):
        super().__init__(system, units, None)
        H, S, A = system.f.shape
        self.c, self.log_term = c, math.log(18 * S * A * H / p)
        self.plain = units.scale == 1

    def plan(self):
        system, (H, S, _) = self.system, self.system.f.shape
        for h in range(H - 1, -1, -1):
            landings = [landing(system, h, z) / self.scale for z in system.raw_states]
            most = system.discount * max(self.V[h + 1]) + max(landings)
            span = H - h - 1 + (system.landing is not None) if self.plain else H
            for s in range(S):
                for a in allowed_actions(system, h, s):
                    n, r = self.N[h, s, a].sum(), system.reward[h, s, a] / self.scale
                    follows = most
                    if n:
                        phi = self.c * math.sqrt((2 * math.log(math.log(max(n, math.e))) + self.log_term) / n)
                        expected = self.sum_paid[h, s, a] / n - r
                        expected += system.discount * sum(self.N[h, s, a] / n * self.V[h + 1])
                        follows = min(most, expected + span * phi)
                    self.Q[h, s, a] = r + follows
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
    steep = 0.0  # of landing rewards
    for row in [] if system.landing is None else system.landing:
        steep = max([steep, *(abs(b - a) for a, b in itertools.pairwise(row))])
    L = (steep + system.discount * (system.lipschitz or 0.0)) / units.scale if told_f else 0.0
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


class LiteralUCBVIf:
    """Counts of w per step, backward induction with f: G = Σ P̂ V(x + w), V = max_a r + G(f). In the user's units."""

    def __init__(self, system, stationary=False):
        self.system, self.stationary = system, stationary
        self.seen = [[] for _ in range(system.horizon)]
        self.plan()

    def observe(self, h, w):
        self.seen[h].append(w)

    def plan(self):
        system = self.system
        H, S, A = system.f.shape
        self.V, self.Q = np.zeros((H + 1, S)), np.full((H, S, A), -np.inf)
        self.V[H] = system.terminal
        for h in range(H - 1, -1, -1):
            samples = [w for step in self.seen for w in step] if self.stationary else self.seen[h]
            if not samples:
                samples = list(system.declared_residuals)[: len(system.residuals)]
            for s in range(S):
                for a in allowed_actions(system, h, s):
                    follows = 0.0
                    for w in samples:
                        z = system.f[h, s, a] + w
                        follows += landing(system, h, z) + system.discount * self.V[h + 1, meet_boundary(system, z)]
                    self.Q[h, s, a] = system.reward[h, s, a] + follows / len(samples)
                self.V[h, s] = max(self.Q[h, s])


def kaplan_meier(seen, hidden, highest):
    """P(D = 0..highest) from demands seen and bounds b of those hidden (D >= b): Π (1 - d/n), the rest at the end."""
    law, survival = [], 1.0
    for d in range(highest + 1):
        at_risk = sum(x >= d for x in seen) + sum(b > d for b in hidden)
        died = sum(x == d for x in seen)
        share = died / at_risk if died else 0.0
        law.append(survival * share)
        survival *= 1 - share
    law[-1] += survival
    return np.array(law)


def turnbull(seen, at_most, at_least, highest, passes=20_000):
    """P(W = 0..highest) by expectation and maximisation, from the counts and a little at either end."""
    law = np.bincount(seen, minlength=highest + 1).astype(float)
    law[0] += 1
    law[-1] += 1
    law /= law.sum()
    for _ in range(passes):
        expected = np.bincount(seen, minlength=highest + 1).astype(float)
        for b in at_most:
            expected[: b + 1] += law[: b + 1] / law[: b + 1].sum()
        for b in at_least:
            expected[b:] += law[b:] / law[b:].sum()
        law = expected / expected.sum()
    return law


def doubted(law, seen, hidden):
    """A law of 0..highest, which is believed less where b in ``hidden`` (D >= b) hide too many; the end gets more.

    seen: how many were seen at each d, with those that something else hid where they are believed
    """
    found, survival, highest = [], 1.0, len(law) - 1
    for d in range(highest):
        at_risk = sum(seen[d:]) + sum(b > d for b in hidden)
        left = sum(law[d:])
        believed = sum(left / sum(law[b:]) for b in hidden if b <= d and sum(law[b:]) > 1e-12)
        share = law[d] / left if left > 1e-12 else 0.0
        enough = at_risk * min(10, 1 + at_risk**2)
        if believed > enough:
            share *= at_risk / (at_risk + np.log(1 + len(hidden)) * (1 - enough / believed))
        found.append(survival * share)
        survival *= 1 - share
    return np.array([*found, survival])


def literal_box_plan(system, samples):
    """V on the lattice: G_h(x) is the mean over w of U_h at x + w, V_h(s) = max_a r + G_h at f(s, a); all by loops.

    Between the points of the lattice, which goes on beyond the box, U and G are interpolated one axis at a time.
    """

    def interpolated(table, at):
        """table: a function of whole indices; at: [d] in units of the spacing."""
        if len(at) == 0:
            return table(())
        cell = int(np.floor(at[-1] + 1e-12))
        share = at[-1] - cell
        low = interpolated(lambda i: table((*i, cell)), at[:-1])
        return (
            low if share < 1e-12 else (1 - share) * low + share * interpolated(lambda i: table((*i, cell + 1)), at[:-1])
        )

    space, H = system.space, system.horizon
    ask, shape = system.at_any_state, space.shape
    V = np.zeros((H + 1, *shape))
    for i in np.ndindex(*shape):
        V[(H, *i)] = ask.terminal((space.low + np.array(i) * space.spacing)[None])[0]
    for h in range(H - 1, -1, -1):

        def ahead(i, h=h):
            """U at a point of the lattice, in the box or beyond."""
            inside = tuple(
                k % n if rule == "wrap" else min(max(k, 0), n - 1)
                for k, n, rule in zip(i, shape, space.rules, strict=True)
            )
            landed = ask.landing(h, (space.low + np.array(i) * space.spacing)[None])[0]
            return landed + system.discount * V[(h + 1, *inside)]

        known = {}

        def follows(i, ahead=ahead, known=known):
            """G at a point of the lattice."""
            if i not in known:
                known[i] = np.mean([interpolated(ahead, np.array(i) + w / space.spacing) for w in samples])
            return known[i]

        for i in np.ndindex(*shape):
            s = (space.low + np.array(i) * space.spacing)[None]
            V[(h, *i)] = max(
                ask.reward(h, s, a)[0] + interpolated(follows, (ask.after(h, s, a)[0] - space.low) / space.spacing)
                for a in np.arange(system.n_actions)[:, None]
            )
    return V.reshape(H + 1, -1)


def coupled(system, policy, most, toll=0.0, leads_to=None, W=None):
    """[S] D_0(s, s), everything by loops over all pairs of states; in the user's units.

    most(h, d): the most that the mean of d may be, a number for every disturbance that may occur
    toll: what every step adds, a number or [H, S] at s'
    leads_to(h, s, a): the after-states that are possible, if f is not known; W: the disturbances that may occur
    """
    H, S, _ = system.f.shape
    leads_to = leads_to or (lambda h, s, a: [system.f[h, s, a]])
    W = system.bins.values[: system.bins.n_possible] if W is None else W
    toll = np.broadcast_to(toll, (H, S))
    D = {(s, t): system.terminal[s] - system.terminal[t] for s in range(S) for t in range(S)}
    for h in range(H - 1, -1, -1):
        fresh = {}
        for s, t in D:
            best = -math.inf
            for a, y in itertools.product(allowed_actions(system, h, s), leads_to(h, t, policy[h, t])):
                for x in leads_to(h, s, a):
                    if s == t and a == policy[h, t] and x != y:
                        continue  # one and the same action leads both sides to the same
                    d = [
                        landing(system, h, x + w) - landing(system, h, y + w)
                        + system.discount * D[meet_boundary(system, x + w), meet_boundary(system, y + w)]
                        for w in W
                    ]  # fmt: skip
                    best = max(best, system.reward[h, s, a] + most(h, d))
            fresh[s, t] = best - system.reward[h, t, policy[h, t]] + toll[h, t]
        D = fresh
    return np.array([D[s, s] for s in range(S)])


def flat(d, shares, n, price):
    """B: -λ log of the mean of exp(-B_ν/λ) over all ν above d, with λ = ``price``: the integral as a sum.

    B_ν = ν - κ - κ Σ p log((ν - d)/κ), κ = λn; the mean is with the weight 1/Z, Z = ∫ ((1 + v) exp(-v))^n dv.
    """
    d, shares, kappa = np.array(d, float), np.array(shares), n * price
    if np.ptp(d) == 0:
        return d[0]
    some, step = shares > 0, min(0.01, 0.1 / math.sqrt(n))
    x = np.arange(math.log(1e-8), math.log(80), step)  # ν = max d + κ exp(x), dν/κ = exp(x) dx
    nu = d.max() + kappa * np.exp(x)
    logs = np.log((nu[:, None] - d[some]) / kappa) @ shares[some]
    exponents = -(nu - kappa - kappa * logs) / price + x
    total = exponents.max() + math.log(np.exp(exponents - exponents.max()).sum() * step)
    return -price * (total - (n + math.lgamma(n + 1) - (n + 1) * math.log(n)))


def choosing(system, policy, shares, n, prices, share):
    """[H, S] λ log Σ_y' exp(share B(u_y' - u_y)/λ): what it costs that the policy could lead to any y' from s'.

    u_y is the reward and what follows y, if all disturbances are alike at all steps; prices: [H] λ
    """
    H, S, _ = system.f.shape
    W, value = system.bins.values[: system.bins.n_possible], list(system.terminal)
    found = np.zeros((H, S))
    for h in range(H - 1, -1, -1):

        def worth(h, x, value=value):
            z = [x + w for w in W]
            return np.array(
                [landing(system, h, one) + system.discount * value[meet_boundary(system, one)] for one in z]
            )

        fresh = []
        for s in range(S):
            first = {}
            for a in allowed_actions(system, h, s):
                first.setdefault(int(system.f[h, s, a]), system.reward[h, s, a])
            u = {x: reward + worth(h, x) for x, reward in first.items()}
            y = int(system.f[h, s, policy[h, s]])
            terms = [share / prices[h] * flat(one - u[y], shares[h], n, prices[h]) for one in u.values()]
            found[h, s] = prices[h] * np.logaddexp.reduce(terms)
            fresh.append(
                max(system.reward[h, s, a] + worth(h, system.f[h, s, a]).mean() for a in allowed_actions(system, h, s))
            )
        value = fresh
    if system.landing is None and np.ptp(system.terminal) == 0:
        found[-1] = 0  # nothing follows
    return found


def separate(system, policy, most):
    """[S] the same by two separate bounds: the most that V* may be, less the least that V^π may be."""
    H, S, _ = system.f.shape
    W = system.bins.values[: system.bins.n_possible]
    up = low = system.terminal

    def ahead(h, x, value, sign):
        z = [x + w for w in W]
        worth = [landing(system, h, one) + system.discount * value[meet_boundary(system, one)] for one in z]
        return sign * most(h, [sign * one for one in worth])

    for h in range(H - 1, -1, -1):
        f, r = system.f[h], system.reward[h]
        up = [max(r[s, a] + ahead(h, f[s, a], up, 1) for a in allowed_actions(system, h, s)) for s in range(S)]
        low = [r[s, policy[h, s]] + ahead(h, f[s, policy[h, s]], low, -1) for s in range(S)]
    return np.array(up) - np.array(low)


class LiteralSharper(Literal):
    """UCB-f for every (s, a) with targets and bonuses of its own kind; begun with the best W of every step."""

    def __init__(self, system, units, c, p, clock, L=0.0):
        super().__init__(system, units, None, system.last_step_is_known)
        H, S, A = system.f.shape
        self.c, self.iota, self.clock = c, math.log(S * A * H / p), clock
        self.floor = c * L / self.scale * system.model_error
        self.seen = [[] for _ in range(H)]
        possible = list(system.declared_residuals)[: len(system.residuals)]
        for h in range(H - 1, -1, -1):
            for s in range(S):
                for a in allowed_actions(system, h, s):
                    best = max(self.follows(h, s, a, w, self.V) for w in possible)
                    self.Q[h, s, a] = system.reward[h, s, a] / self.scale + best
                self.V[h, s] = max(self.Q[h, s])

    def follows(self, h, s, a, w, V):
        """What is paid on landing, and V of the state after."""
        z = self.system.f[h, s, a] + w
        value = V[h + 1] if V.ndim == 2 else V
        return landing(self.system, h, z) / self.scale + self.system.discount * value[meet_boundary(self.system, z)]

    def observe(self, h, w):
        if h > self.last:
            return
        system, H = self.system, self.system.horizon
        self.seen[h].append(w)
        k = len(self.seen[h])
        n = k if self.clock == "episode" else (k - 1) * H + h + 1
        alpha = (H + 1) / (H + n)
        self.prepare(h)
        for s in range(system.n_states):
            for a in allowed_actions(system, h, s):
                target = system.reward[h, s, a] / self.scale + self.target(h, s, a, w, alpha, n) + self.floor
                self.Q[h, s, a] = (1 - alpha) * self.Q[h, s, a] + alpha * target
        for s in range(system.n_states):
            self.V[h, s] = min(self.cap[h], max(self.Q[h, s]))

    def prepare(self, h):
        pass


class LiteralBernstein(LiteralSharper):
    """β = c min( sqrt(H (Var + H) ι/n) + H³ι/n, sqrt(H³ι/n) ), b = (β - (1-α) β before) / 2α, keeping every target."""

    def __init__(self, *given):
        super().__init__(*given)
        self.targets, self.beta = {}, {}

    def target(self, h, s, a, w, alpha, n):
        H = self.system.horizon
        targets = self.targets.setdefault((h, s, a), [])
        targets.append(self.follows(h, s, a, w, self.V))
        small = math.sqrt(H * (np.var(targets) + H) * self.iota / n) + H**3 * self.iota / n
        beta = self.c * min(small, math.sqrt(H**3 * self.iota / n))
        b = (beta - (1 - alpha) * self.beta.get((h, s, a), 0.0)) / (2 * alpha)
        self.beta[h, s, a] = beta
        return targets[-1] + b


class LiteralReference(LiteralSharper):
    """The target (V - V^R)(x + w) + Σ P̂ V^R(x + w), b = c ( sqrt(Var_ref ι/n) + sqrt(H Var_adv ι/n) + Hι/n ).

    V^R is V of when it was renewed: at the first sample of a step, and whenever there are a tenth more, rounded up.
    """

    def __init__(self, *given):
        super().__init__(*given)
        self.VR, self.renewed = self.V.copy(), [0] * self.system.horizon
        self.moments = {}

    def prepare(self, h):
        k = len(self.seen[h])
        if k >= max(self.renewed[h] + 1, math.ceil(1.1 * self.renewed[h])):
            self.VR[h + 1], self.renewed[h] = self.V[h + 1], k

    def target(self, h, s, a, w, alpha, n):
        H = self.system.horizon
        excess = self.follows(h, s, a, w, self.V) - self.follows(h, s, a, w, self.VR)
        mean, square = self.moments.get((h, s, a), (0.0, 0.0))
        mean, square = (1 - alpha) * mean + alpha * excess, (1 - alpha) * square + alpha * excess**2
        self.moments[h, s, a] = mean, square
        of_reference = [self.follows(h, s, a, w, self.VR) for w in self.seen[h]]
        variance_adv = square - mean**2 if square - mean**2 > 1e-13 * square else 0.0  # less is rounding
        b = math.sqrt(np.var(of_reference) * self.iota / n) + math.sqrt(H * variance_adv * self.iota / n)
        return excess + np.mean(of_reference) + self.c * (b + H * self.iota / n)

"""How far from optimal a policy can be, given what was seen: bounds that hold with probability 1-p at every episode.

For an agent that counts disturbances: an upper value (plan, adding the error of every mean) and a lower value of its
policy (evaluate, subtracting it) bracket the truth, so that V* - V^π is at most their difference. What follows a step
depends on the disturbances of later steps only, so that its mean over those of this step is a mean of independent
numbers. Two bounds on the error of such a mean of n numbers within a range, δ being p shared among steps,
after-states, sides and all n (6/(π²n²) of it for n):

- Hoeffding: range sqrt(log(1/δ) / 2n);
- empirical Bernstein (Maurer, Pontil 2009): sqrt(2 var log(2/δ) / n) + 7 range log(2/δ) / (3(n-1)).

Where the samples of all steps are pooled, f may be wrong (ζ > 0), or steps were not seen equally often (in the middle
of an episode, or from a log), later values need not be independent of this step's disturbances. Then one bound serves
every function: range sqrt((D log 2 + log(1/δ)) / 2n) with D possible disturbances (Weissman et al. 2003). And a
residual may be off by up to ζ, which is met by taking the best (or the worst) within ζ of every raw next state.

Where f is exact and everything is a whole number, far narrower bounds couple both sides: :mod:`ucbf.coupling`. The
smallest of several bounds is given, p being shared among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.bonuses import log_term
from ucbf.checks import numbers, real
from ucbf.coupling import Coupling, Settled, Tilted, TooLargeError
from ucbf.kernels.types import Mechanics
from ucbf.lipschitz import lipschitz_ahead
from ucbf.mechanics import raw_starts
from ucbf.spaces import sliding
from ucbf.system import System
from ucbf.units import Units, following, over_disturbances, reward_range, units_of

Array = NDArray[np.float64]
SEPARATE = ("bernstein", "hoeffding")
FORMS = ("best", "evalue", "coupled", *SEPARATE)
BRACKET = 0.05  # of p: for upper and lower, and for the difference between them
SWEEPS = 300  # for a bound where there is no end, at most
PART = 0.7


@dataclass(frozen=True, eq=False)
class Certificate:
    """V*(s) <= upper(s), lower(s) <= V^π(s) and V*(s) - V^π(s) <= gap(s), for all first states s.

    All of it holds together with probability 1-p, at all episodes at once, and so does :meth:`average` of one law of
    the first state. If you take the smaller of two certificates (of two forms, say), ask each for p/2: the smaller of
    two that hold with 1-p holds only with 1-2p. The form "best" has done so.
    """

    upper: Array  # [S] in the user's units
    lower: Array  # [S]
    gap: Array  # [S] at most upper - lower
    p: float
    form: str = ""  # which bound was the smallest, on average over the first states
    note: str = ""  # why narrower ones were not to be had; empty if they were
    tilted: Tilted | None = None  # e-values: an average over first states is bounded more narrowly than each of them
    otherwise: Array | None = None  # [S] the gap without e-values, where there are any

    def __repr__(self) -> str:
        said = "".join(f", {one}" for one in (self.form, self.note) if one)
        return (
            f"Certificate(gap {self.gap.min():.4g} to {self.gap.max():.4g} over the first states, p={self.p:g}{said})"
        )

    def average(self, start: ArrayLike | None = None) -> float:
        """The bound, averaged over a law of the first state [S]; uniform if None.

        With e-values it is narrower than that of the single states, and p is spent on it alone: choose the law before
        you see what happens, and do not take the smallest of several.
        """
        weights = checked_start(start, len(self.gap))
        if self.tilted is None or self.otherwise is None:
            return float(weights @ self.gap)
        found = min(float(weights @ self.otherwise), max(self.tilted.average(weights), 0.0))
        return min(found, float(self.gap.mean())) if start is None else found


def checked_start(start: ArrayLike | None, S: int) -> Array:
    """[S] a law of the first state; uniform if None."""
    weights = np.full(S, 1 / S) if start is None else numbers("start", start)
    if weights.shape != (S,) or (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
        raise ValueError(f"start is {weights!r:.60}; it must be probabilities [S] = {(S,)} that sum to 1")
    return weights


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was counted: residuals [L, R] of f as it was told, L being 1 if steps are pooled, and the policy [H, S]."""

    counts: Array
    policy: NDArray[np.int64]
    value: Array | None = None  # [S] about what the first states are worth, in the learner's units
    settled: Settled | None = None  # what is certain of a wrong f


def certify(system: System, units: Units, told: Mechanics, evidence: Evidence, p: float, form: str) -> Certificate:
    """How far from optimal the policy can be, by one of ``FORMS``. Other arguments: as of :func:`bracket`.

    p is shared among the bounds by what is fixed before anything is seen: whether a bound can be had may depend on
    the data, but its share may not.
    """
    if form in SEPARATE:
        return _separate(system, units, told, evidence, p, form)
    settled, asked = evidence.settled, p
    uncoupled, shares = _uncoupled(system, settled, p), _shares(system, evidence, form)
    if uncoupled and form == "best":
        return replace(_separate(system, units, told, evidence, p, "bernstein"), note=uncoupled)
    if uncoupled or not shares:
        raise ValueError(f"the form {form!r} is not to be had: {uncoupled or _shared(system)}; use form='best'")
    p -= settled.chance if settled else 0.0
    if form == "coupled" and not settled:  # which serves every function
        found = bracket_by_sets(system, units, told, evidence, BRACKET * p)
    else:
        found = _separate(system, units, told, evidence, BRACKET * p, "bernstein")
    found = replace(found, p=asked)
    possible = settled.possible if settled else np.tile(system.bins.guess > 0, system.n_contexts)
    try:
        coupling = Coupling(told, evidence.policy, possible, settled.targets if settled else None)
    except TooLargeError as reason:
        return replace(found, note=f"separate bounds only: {reason}")
    value = np.zeros(system.n_states) if evidence.value is None else evidence.value
    # Whole numbers, but for rounding where a prior was added and taken off.
    counts = np.rint(settled.counts if settled else evidence.counts)
    gaps, tilted, seen = {found.form: found.gap}, None, counts.sum(axis=1)
    span = float(units.cap[0] - units.floor[0])  # 0: all that may be done is worth the same
    if "coupled" in shares:
        gaps["coupled"] = coupling.over_balls(counts, shares["coupled"] * p, value) * units.scale
    otherwise = np.maximum(np.minimum.reduce(list(gaps.values())), 0)
    if "evalue" in shares and seen.min() >= 1 and np.ptp(seen) == 0 and span > 0:
        tilted = coupling.with_evalues(counts, shares["evalue"] * p, span).times(units.scale)
        gaps["evalue"] = np.maximum(tilted.at_states(), 0)
    means = {name: float(one.mean()) for name, one in gaps.items()}
    if tilted is not None:
        means["evalue"] = min(means["evalue"], tilted.average(np.full(len(otherwise), 1 / len(otherwise))))
    gap = otherwise if tilted is None else np.minimum(otherwise, gaps["evalue"])
    return replace(found, gap=gap, form=min(means, key=means.__getitem__), tilted=tilted, otherwise=otherwise)


def _uncoupled(system: System, settled: Settled | None, p: float) -> str:
    """Why both sides cannot be coupled; empty if they can."""
    if settled is not None and not settled.counts.any():
        return "no offset of f is certain yet, so that separate bounds serve"
    if settled is not None and p <= settled.chance:
        return f"offsets of f are certain but for a chance of {settled.chance:g}, so that separate bounds serve"
    if system.slack and settled is None:
        return f"f may be wrong (model_error {system.model_error:g}), so that separate bounds serve"
    if not system.space.all_whole or len(system.mechanics.corners) > 1:
        return "an axis is continuous, so that separate bounds serve"
    return ""


def _shares(system: System, evidence: Evidence, form: str) -> dict[str, float]:
    """The shares of p of the coupled bounds of a form; empty if it is not to be had."""
    alone = system.horizon is not None and system.n_contexts == 1 and len(evidence.counts) == system.n_steps
    shares = {"evalue": 2 / 3, "coupled": 1 / 3} if alone and evidence.settled is None else {"coupled": 1.0}
    if form != "best":
        shares = {form: 1.0} if form in shares else {}
    return {name: (1 - BRACKET) * share for name, share in shares.items()}


def _shared(system: System) -> str:
    """Why e-values are not to be had."""
    if system.horizon is None:
        return "e-values need an end"
    return "e-values need a distribution of its own for every step, and no contexts (here steps or contexts share one)"


def _separate(system: System, units: Units, told: Mechanics, evidence: Evidence, p: float, form: str) -> Certificate:
    """By two separate bounds; without an end and with contexts there is one form only."""
    if system.horizon is None or system.n_contexts > 1:
        return bracket_by_sets(system, units, told, evidence, p)
    return bracket(system, units, told, evidence, p, form)


def bracket(system: System, units: Units, told: Mechanics, evidence: Evidence, p: float, form: str) -> Certificate:
    """Upper values by planning, lower values of the policy, backwards from the last step.

    told: the mechanics as the agent was told them, in its own units.
    """
    H, S, X = told.horizon, system.n_states, told.n_after
    up = low = told.terminal
    for h in range(H - 1, -1, -1):
        counts = evidence.counts[h % len(evidence.counts)]
        reward, landing = told.reward[h % len(told.reward)], told.landing[h % len(told.landing)]
        error = _Error(system, told, counts, p, 2 * X * H, form, _distinct(system, evidence.counts))
        above = _within(system, told, landing + told.discount * up[told.next_state], 1)
        below = _within(system, told, landing + told.discount * low[told.next_state], -1)
        best, worst = error.above(above), -error.above(-below)
        up = np.minimum((reward + following(told, best, h)).max(axis=1), units.cap[h])
        chosen = np.arange(S), evidence.policy[h]
        low = reward[chosen] + following(told, worst, h)[chosen]
    upper, lower = up * units.scale, np.minimum(low, up) * units.scale
    return Certificate(upper, lower, upper - lower, p, form)


def bracket_by_sets(system: System, units: Units, told: Mechanics, evidence: Evidence, p: float) -> Certificate:
    """Where there is no end, or where there are contexts: with one bound on the counts that serves every function.

    Without an end: whatever V is, no policy gets more on average than the largest entry of TV - V, where T takes the
    best distribution that the counts allow, nor does this one get less than the smallest, with the worst; alike with a
    discount. V is whatever some sweeps make of it.
    """
    sweep = _Sweep(system, told, evidence, p)
    if system.horizon is not None:
        upper, lower = sweep(told.terminal, 1), sweep(told.terminal, -1)
        upper = np.minimum(upper, units.cap[0])
    else:
        lower, upper = (_settled(system, units, told, sweep, sign) for sign in (-1, 1))
    upper, lower = upper * units.scale, np.minimum(lower, upper) * units.scale
    return Certificate(upper, lower, upper - lower, p, "sets")


def _settled(system: System, units: Units, told: Mechanics, sweep: _Sweep, sign: int) -> Array:
    """[S] an upper (sign 1) or lower (-1) bound where there is no end: the best of some sweeps."""
    decay = told.discount**told.horizon
    steps = 1.0 if decay == 1 else 1 / (1 - told.discount)
    bound = np.full(system.n_states, reward_range(system)[sign > 0] / units.scale * steps)
    v, best = np.zeros(system.n_states), np.minimum if sign > 0 else np.maximum
    for _ in range(SWEEPS):
        moved = sweep(v, sign) - v
        furthest = moved.max() if sign > 0 else moved.min()
        bound = best(bound, furthest / told.horizon if decay == 1 else v + furthest / (1 - decay))
        if np.ptp(moved) <= 1e-6 * float(np.ptp(v)):
            break
        v = v + (moved - moved[0]) * (PART if decay == 1 else 1.0)  # part of the way, so that cycles die out
    return bound


class _Sweep:
    """T: values of the first step, given those after the last, with what the counts allow.

    Of n draws of k values the shares of all sets of values are within ε of their chances, but for a probability of
    2^k exp(-2nε²), so that the mean of any function is within ε times its range.
    """

    def __init__(self, system: System, told: Mechanics, evidence: Evidence, p: float) -> None:
        self.system, self.told, self.policy = system, told, evidence.policy
        self.seen = evidence.counts.sum(axis=1)
        n, k = np.maximum(self.seen, 1.0), system.bins.n_possible * system.n_contexts
        logs = np.array([log_share(one, len(n), p) for one in n])
        self.chances, self.error = evidence.counts / n[:, None], np.sqrt((k * np.log(2) + logs) / (2 * n))
        self.starts = raw_starts(told).reshape(system.n_contexts, -1)

    def __call__(self, v: Array, sign: int) -> Array:
        """[S] the best plan with the best distributions (sign 1), or the policy with the worst (-1)."""
        told = self.told
        for h in range(told.horizon - 1, -1, -1):
            raw = sign * (told.landing[h % len(told.landing)] + told.discount * v[told.next_state])
            q = told.reward[h % len(told.reward)] + following(told, sign * self._ahead(h, raw), h)
            v = q.max(axis=1) if sign > 0 else q[np.arange(len(q)), self.policy[h]]
        return v

    def _ahead(self, h: int, raw: Array) -> Array:
        """[X] what the mean of ``raw`` [Z] is at most."""
        E = self.system.n_contexts
        most, least = (over_disturbances(pick, raw, self.system).reshape(E, -1) for pick in (np.maximum, np.minimum))
        for e in range(E):
            row = h % (len(self.seen) // E) * E + e
            if self.seen[row]:
                mean = np.zeros(most.shape[1])
                for j in np.flatnonzero(self.chances[row]):
                    mean += self.chances[row, j] * raw[self.starts[e] + self.told.offsets[j]]
                most[e] = np.minimum(most[e], mean + self.error[row] * (most[e] - least[e]))
        return most.ravel()


def _distinct(system: System, counts: Array) -> int:
    """How many disturbances there may be, where one bound has to serve every function; 0 where it has not."""
    pooled = len(counts) == 1 and system.n_steps > 1
    seen = counts.sum(axis=1)
    uneven = bool(
        np.ptp(seen) > 1e-6 * max(float(seen.max()), 1.0)
    )  # shares of bins add up to whole numbers but for rounding
    if not (pooled or uneven or system.slack):
        return 0
    possible = system.bins.n_possible
    if system.disturbance_range is None or not system.space.is_line:
        return possible
    return min(possible, int(system.disturbance_range[1]) - int(system.disturbance_range[0]) + 1)


def _within(system: System, told: Mechanics, raw: Array, sign: int) -> Array:
    """[Z] the best (sign 1) or the worst (-1) of ``raw`` within ζ of every raw next state."""
    reach = 2 * system.slack
    if not reach:
        return raw
    if told.modular:
        one = raw[np.arange(-reach, system.n_states + reach) % system.n_states] * sign
        around: Array = sliding(np.maximum, one, 2 * reach + 1) * sign
        return around[np.arange(len(raw)) % system.n_states]
    padded = np.pad(raw * sign, reach, constant_values=-np.inf)
    best: Array = sliding(np.maximum, padded, 2 * reach + 1) * sign
    return best


def log_share(n: float, shares: int, p: float) -> float:
    """log(1/δ): p shared among so many bounds, and among all n, 6/(π²n²) of it for n."""
    return float(np.log(np.pi**2 / 6 * n**2 * shares / p))


class _Error:
    """The error of the mean of one step's counts."""

    def __init__(
        self, system: System, told: Mechanics, counts: Array, p: float, shares: int, form: str, distinct: int
    ) -> None:
        self.system, self.told = system, told
        self.counts, self.n, self.form, self.distinct = counts, float(counts.sum()), form, distinct
        if self.n:
            self.log = log_share(self.n, shares, p)

    def above(self, raw: Array) -> Array:
        """[X] what the mean of ``raw`` [Z] over the disturbances, of which some may occur, is at most."""
        most, least = (over_disturbances(pick, raw, self.system) for pick in (np.maximum, np.minimum))
        if self.n < 2:
            return most
        pmf, middle = self.counts / self.n, float(self._reach(raw).mean())
        raw = raw - middle  # squares of large numbers would swallow what they differ by
        mean = self._mean(raw, pmf)
        spread, n = most - least, self.n
        if self.distinct:
            error = spread * np.sqrt((self.distinct * np.log(2) + self.log) / (2 * n))
        elif self.form == "hoeffding":
            error = spread * np.sqrt(self.log / (2 * n))
        else:
            variance = np.maximum(self._mean(raw * raw, pmf) - mean * mean, 0) * n / (n - 1)
            log = self.log + np.log(2)
            error = np.sqrt(2 * variance * log / n) + 7 * spread * log / (3 * (n - 1))
        bound: Array = np.minimum(middle + mean + error, most)
        return bound

    def _reach(self, raw: Array) -> Array:
        """What of [Z] can be reached by disturbances that may occur."""
        return raw[: len(raw) - len(self.counts) + self.system.bins.n_possible] if self.system.space.is_line else raw

    def _mean(self, raw: Array, pmf: Array) -> Array:
        """[X] the mean of ``raw`` [Z] over the disturbances, by their probabilities [R]."""
        if self.system.space.is_line:
            return np.correlate(raw, pmf, "valid")
        told, first, mean = self.told, raw_starts(self.told), np.zeros(self.told.n_after)
        for j in np.flatnonzero(pmf):
            mean += pmf[j] * raw[first + told.offsets[j]]
        return mean


# -- the paper's own bound, of UCB-f ----------------------------------------------------------------------


def valid_scale(system: System, t: int, p: float, share: float | None = None) -> float:
    """The smallest c of the bonus "theorem" for which its proof holds in all of the first t episodes.

    c sqrt(H³ι/k) has to exceed the error of an average of k values with weights α_k^i, for all k up to t, all steps and
    after-states, and both sides, together with probability 1 - share. p: that of the bonus, ι = log(SAH/p); share: p
    if None
    """
    shares = 2 * system.mechanics.n_after * system.n_steps
    return float(np.sqrt(log_share(max(t, 1), shares, p if share is None else share) / log_term(system, p)))


def error_shape(H: int) -> Array:
    """[H] P_h^t over what the bonus adds at a step, c sqrt(H³ι) + Lζ sqrt(t): 4 (1 + 1/H) + (1 + 1/H) that of h + 1."""
    step, shape = 1 + 1 / H, np.zeros(H + 1)
    for h in range(H - 1, -1, -1):
        shape[h] = 4 * step + step * shape[h + 1]
    return shape[:H]


def error_parts(system: System, c: float, p: float) -> tuple[Array, Array]:
    """[H] twice: the parts of P_h^t / sqrt(t) that fall like 1/sqrt(t), times sqrt(t), and that stay."""
    H, units, shape = system.n_steps, units_of(system), error_shape(system.n_steps)
    iota = log_term(system, real("p", p, 0, 1, open_low=True))
    L = lipschitz_ahead(system, units) if system.model_error else 0.0
    return shape * real("c", c, 0) * np.sqrt(H**3 * iota) * units.scale, shape * L * system.model_error


def error_bounds(system: System, t: NDArray[np.int64], c: float, p: float) -> Array:
    """[n, H] P_h^t / sqrt(t) after t [n] episodes; infinite after none."""
    fixed, growing = error_parts(system, c, p)
    with np.errstate(divide="ignore"):
        bounds: Array = fixed / np.sqrt(t)[:, None] + growing
    return bounds


def gap_bounds(system: System, t: NDArray[np.int64], c: float, p: float) -> Array:
    """[n] Σ_h P_h^t / sqrt(t) after t [n] episodes, never more than returns can differ."""
    low, high = reward_range(system)
    most = (high - low) * float(np.sum(system.discount ** np.arange(system.n_steps))) + float(np.ptp(system.terminal))
    bounds: Array = np.minimum(most, error_bounds(system, t, c, p).sum(axis=1))
    return bounds


def proved(possible: Certificate, optimistic: Array, errors: Array, acted: Array) -> Certificate:
    """UCB-f's certificate: what its proof says, within what is possible at all.

    possible: of the best and the worst disturbances
    optimistic: [S] V^k of the first step, which is at least V*, by at most errors[0]
    errors, acted: [H] P_h^t / sqrt(t) now, and when the policy was made, whose gap is at most their sum
    """
    gap = np.minimum(acted.sum(), possible.gap)
    upper = np.minimum(optimistic, possible.upper)
    lower = np.maximum(optimistic - errors[0] - acted.sum(), possible.lower)
    return Certificate(upper, lower, np.minimum(gap, upper - lower), possible.p, "theorem")

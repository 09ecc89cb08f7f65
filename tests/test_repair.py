"""Repair of a wrong f, one whole offset for each pair: against a transcription, by hand, and that it does no harm."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

import ucbf
from ucbf.coupling import Coupling
from ucbf.estimators import OffsetPosterior
from ucbf.kernels import exploring, fitting, models, offsets, settling
from ucbf.kernels.jit import source
from ucbf.kernels.seen import Seen
from ucbf.model_check import beyond_reach

AMOUNTS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


class LiteralRepair:
    """The model of offsets as formulas over everything that was seen. f is the same at every step, and states wrap."""

    def __init__(self, told, sweeps, prior):
        (self.H, self.S, self.A), self.half, self.sweeps = told.f.shape, told.slack, sweeps
        self.first, self.reward, self.E = told.f[0].ravel(), told.reward, 4 * told.slack + 1
        self.prior = prior  # [H, S] counts
        self.trust = np.array([4 * (0.5 if d == 0 else 0.5 / (self.E - 1)) for d in self.offsets])
        self.posterior = np.tile(self.trust / 4, (len(self.first), 1))
        self.seen = np.zeros((self.H, len(self.first), self.S))
        self.scores, self.exact, self.amounts, self.n, self.fitted_at = [0.0, 0.0], 0.5, [1.0, 1.0], 0, 0
        self.stale = set()

    @property
    def offsets(self):
        return range(-2 * self.half, 2 * self.half + 1)

    def raw(self):
        return self.prior + self.seen.sum(axis=1)

    def counts(self, but=None):
        total = self.prior.copy()
        for h, pair, j in np.argwhere(self.seen):
            for d, p in zip(self.offsets, self.posterior[pair], strict=True):
                total[h, (j - d) % self.S] += self.seen[h, pair, j] * p * (pair != but)
        return total

    def learn(self, h, pair, j):
        raw, counts = self.raw()[h], self.counts()[h]
        self.n += 1
        as_told = math.log((raw[j] + self.amounts[0]) / (raw.sum() + self.S * self.amounts[0]))
        chances = (counts + self.amounts[1]) / (counts.sum() + self.S * self.amounts[1])
        chance = sum(p * chances[(j - d) % self.S] for d, p in zip(self.offsets, self.posterior[pair], strict=True))
        self.scores[0] += as_told
        said = min(math.log((1 - 1e-9) * chance + 1e-9 / self.S), 0)
        self.scores[1] = np.logaddexp(self.scores[1] + said, self.scores[0] - 2 * math.log(self.n))
        self.seen[h, pair, j] += 1
        self.stale.add(pair)

    def believe(self, pair):
        counts, believed = self.counts(but=pair), self.trust.copy()
        for other in range(len(self.first)):
            if other != pair and self.seen[:, other].any():
                believed += self.posterior[other]
        score = np.log(believed / believed.sum())
        for h in range(self.H):
            n = self.seen[h, pair]
            for k, d in enumerate(self.offsets):
                weights = np.roll(counts[h], d) + self.amounts[1]  # of the residuals, with this offset
                score[k] += (gammaln(weights + n) - gammaln(weights)).sum()
                score[k] -= gammaln(weights.sum() + n.sum()) - gammaln(weights.sum())
        likely = np.exp(score - score.max())
        likely[likely <= 1e-12 * likely.sum()] = 0
        self.posterior[pair] = likely / np.exp(score - score.max()).sum()

    def fit(self):
        if self.n >= self.fitted_at:
            self.fitted_at = self.n + max(1, self.n // 20)
            self.amounts = [self.best_amount(self.raw()), self.best_amount(self.counts())]
            for _ in range(self.sweeps - 1):
                for pair in range(len(self.first)):
                    if (self.posterior[pair] > 0).sum() > 1:
                        self.believe(pair)
            self.stale = set(range(len(self.first)))
            self.told_apart_by = self.counts() + self.amounts[1]
            everything = True
        else:
            everything = False
        self.exact = 1 / (1 + math.exp(min(self.scores[1] - self.scores[0], 700)))
        for pair in sorted(self.stale):
            if everything or (self.posterior[pair] > 0).sum() > 1:
                self.believe(pair)
        self.stale = set()
        self.law = self.exact * self.raw() + (1 - self.exact) * self.counts()

    def best_amount(self, counts):
        def likelihood(alpha):
            each = (gammaln(counts + alpha) - gammaln(alpha)).sum()
            return each + (gammaln(self.S * alpha) - gammaln(counts.sum(axis=1) + self.S * alpha)).sum()

        return max(AMOUNTS, key=likelihood)

    def alike(self, h, by):
        law = self.told_apart_by[h] / self.told_apart_by[h].sum()
        moved = np.roll(law, by)
        return (2 * law * moved / (law + moved)).sum()

    def resolved(self, h, pair):
        p, doubt, left = self.posterior[pair], 0.0, 0.0
        for d in range(self.E):
            for e in range(d):
                doubt += p[d] * p[e]
                left += p[d] * p[e] * self.alike(h, d - e)
        return 1 - left / doubt if doubt > 0 else 0.0

    def values_of(self, ahead, h, s):
        """What follows each action of a state on average, and what is gained by knowing its offset."""
        after = [self.first[s * self.A + a] for a in range(self.A)]
        follows = np.array([[ahead[h, (x + d) % self.S] for d in self.offsets] for x in after])
        posterior, as_told = self.posterior[s * self.A : (s + 1) * self.A], ahead[h, after]
        mean = self.exact * as_told + (1 - self.exact) * (follows * posterior).sum(axis=1)
        q, gain, doubt = self.reward[h, s] + mean, np.zeros(self.A), max(1 - self.exact, 1e-6)
        for a in range(self.A):
            rival = max((q[b] for b in range(self.A) if b != a), default=-math.inf)
            if a != q.argmax():
                rival = q.max()
            known = (posterior[a] * np.maximum(self.reward[h, s, a] + follows[a], rival)).sum()
            known = doubt * known + (1 - doubt) * max(self.reward[h, s, a] + as_told[a], rival)
            left = np.flatnonzero(posterior[a])
            best = self.reward[h, s, a] + follows[a][left[0] : left[-1] + 1].max()
            if len(left) > 1 and best > rival > -math.inf:
                gain[a] = max(known - q.max(), 0)
        return mean, gain

    def check(self, agent):
        """That the agent values pairs alike, and takes the same actions."""
        m, ahead = agent.learner.model, agent.learner.ahead
        met = self.seen.reshape(self.H, self.S, -1).sum(axis=2)
        for s in range(self.S):
            means, gains = map(np.array, zip(*(self.values_of(ahead, h, s) for h in range(self.H)), strict=True))
            speed = np.array([[self.resolved(h, s * self.A + a) for a in range(self.A)] for h in range(self.H)])
            hope = (gains * (1 - (1 - speed) ** (met[:, s].sum() + 0.1))).max(axis=1)
            np.testing.assert_allclose(m.lead[:, s], means + hope[:, None], atol=1e-9)
            np.testing.assert_allclose(m.gain[:, s], gains, atol=1e-9)
            self.check_choices(agent, s, self.reward[:, s] + means, gains, speed, met[:, s] + 0.1)

    def check_choices(self, agent, s, q, gains, speed, visits):
        bids = np.zeros((self.H, self.A))
        for a in range(self.A):
            total, price = (visits * gains[:, a]).sum(), q.max(axis=1) - q[:, a]
            if total > 0:
                limits = []
                for most in price:
                    cheap = price <= most
                    limits.append((total + (visits * price)[cheap].sum()) / visits[cheap].sum())
                bids[:, a] = np.minimum(total * speed[:, a], min(limits)) - price
        for h in range(self.H):
            a = agent.learner.policy[h, s]
            if bids[h].max() > 1e-9:
                assert bids[h, a] >= bids[h].max() - 1e-9
            elif bids[h].max() < -1e-9 or not (gains > 0).any():
                assert q[h, a] >= q[h].max() - 1e-9


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4]), st.sampled_from([0, 3]))
@settings(max_examples=8)
def test_offsets_are_found_and_tried_as_transcribed(seed, zeta, weight):
    world = ucbf.random_world(n_states=9, n_actions=2, horizon=2, max_disturbance=2, lipschitz=None, seed=seed)
    told, prior = ucbf.corrupt(world.system, zeta, seed), ucbf.Disturbance([0.2, 0.5, 0.3])
    agent = ucbf.UCBVIf(told, estimator=OffsetPosterior(iterations=2), prior=prior, prior_weight=weight)
    m = agent.learner.model
    literal, rng = LiteralRepair(told, 2, np.array(m.raw)), np.random.default_rng(seed)
    assert m.raw.sum() == pytest.approx(2 * weight)
    for round_ in range(6):
        for _ in range(3 + 8 * round_):
            s = int(rng.integers(9))
            for h in range(2):
                a = int(rng.integers(2))
                s_next = int((world.system.f[h, s, a] + rng.choice(3, p=world.law.pmf[h])) % 9)
                agent.observe(h, s, a, s_next)
                literal.learn(h, s * 2 + a, (s_next - told.f[h, s, a]) % 9)
                s = s_next
        agent.renew()
        literal.fit()
        np.testing.assert_allclose(m.scores, literal.scores, rtol=1e-9)
        np.testing.assert_allclose(m.exact, literal.exact, atol=1e-9)
        np.testing.assert_allclose(m.posterior, literal.posterior, atol=1e-9)
        np.testing.assert_allclose(m.counts, literal.counts(), atol=1e-9)
        np.testing.assert_allclose(m.law, literal.law, atol=1e-9)
        check_bounds(m, literal)
        literal.check(agent)


def check_bounds(m, literal):
    """The likeliest offset, and the first and the last that are not dismissed."""
    threshold = 0.01 / math.sqrt(1 + literal.n / 18)
    for pair, posterior in enumerate(literal.posterior):
        plausible = np.flatnonzero(posterior >= threshold) - 2 * literal.half + literal.first[pair]
        assert m.low.ravel()[pair] <= plausible.min()
        assert m.high.ravel()[pair] >= plausible.max()
        likeliest = posterior[(m.f.ravel()[pair] - literal.first[pair] + 2 * literal.half) % 9]
        assert likeliest >= posterior.max() - 1e-9


def one_pair(system=None, **settings):
    """An agent, its mechanics and its model."""
    system = system or ucbf.System(np.zeros((5, 1)), 0.0, 1, model_error=2)
    agent = ucbf.UCBVIf(system, estimator=OffsetPosterior(**settings), prior_weight=0)
    return agent, agent.told, agent.learner.model


def test_a_posterior_by_hand():
    # Offsets -2..2, 0 with 1/2 and the others with 1/8. W was measured: three times 0 and once 1. A residual of 1 is
    # W = 1 without an offset, 1/2 · 1/4, and W = 0 with an offset of 1, 1/8 · 3/4: 4 to 3.
    agent, _, m = one_pair(smoothing=1e-12)
    agent.warm_start([[0], [0], [1], [0]])
    agent.observe(0, 0, 0, 1)
    agent.renew()
    np.testing.assert_allclose(m.posterior[0], [0, 0, 4 / 7, 3 / 7, 0], atol=1e-9)
    np.testing.assert_allclose(m.counts[0], [3 + 3 / 7, 1 + 4 / 7, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(m.raw[0], [3, 2, 0, 0, 0])


def test_residuals_of_a_pair_do_not_vouch_for_its_own_offset():
    # Nothing is known of W but what this pair showed: whatever its offset, its residuals are as likely.
    agent, _, m = one_pair()
    for _ in range(6):
        agent.observe(0, 0, 0, 1)
    agent.renew()
    np.testing.assert_allclose(m.posterior[0], [1 / 8, 1 / 8, 1 / 2, 1 / 8, 1 / 8], atol=1e-9)


def test_how_likely_it_is_that_f_is_as_told_by_hand():
    # W was measured: three times 0 and once 1; it is smoothed by 1 of 5 until the first fit. Residual 2 has chance
    # 1/9 if f is as told. By offsets, W = 4, 3, 2, 1, 0 with 1/8, 1/8, 1/2, 1/8, 1/8: (1 + 1 + 4·1 + 2 + 4) / 72. That
    # offsets began to count after the first residual has weight 1, so that both go on from there.
    agent, _, m = one_pair()
    agent.warm_start([[0], [0], [1], [0]])
    m.clock[:] = 0, 99
    agent.observe(0, 0, 0, 2)
    as_told, with_offsets = 1 / 9, 1 / 8 * 12 / 9
    np.testing.assert_allclose(m.scores, [math.log(as_told), math.log(with_offsets + as_told)], atol=1e-7)
    agent.renew()
    assert m.exact[0] == pytest.approx(as_told / (2 * as_told + with_offsets), abs=1e-7)


def test_how_alike_moved_laws_are_by_hand():
    # P(0) = 3/4 and P(1) = 1/4 of four: moved by 1, both have W = 1, with 1/4 and 3/4, 2 · 3/16 / 1; moved by 2, none.
    _, told, m = one_pair(ucbf.System(np.zeros((4, 1)), 0.0, 1, model_error=2), smoothing=1e-12)
    m.counts[0] = 3e6, 1e6, 0, 0
    fitting.tell_apart(told, m)
    np.testing.assert_allclose(m.overlap[0, 4:7], [1, 3 / 8, 0], atol=1e-4)  # of -4..4: by 0, 1 and 2
    m.posterior[0] = 0, 0, 0.6, 0.4, 0
    assert exploring.resolved(m, 0, 0) == pytest.approx(5 / 8, abs=1e-4)
    m.posterior[0] = 0, 0, 1, 0, 0
    assert exploring.resolved(m, 0, 0) == 0


@pytest.mark.parametrize(("visits", "action"), [(0, 0), (9, 1)])
def test_a_pair_is_tried_once_there_is_enough_to_gain_by_hand(visits, action):
    # After-states 0..4 are worth 0, 1, 4, 2, 0. Action 0 leads to 3 for sure, action 1 to 1, or with 1/4 to 2 if
    # offsets count at all, which they do with 1/2: 1/2 · 1 + 1/2 (3/4 · 1 + 1/4 · 4) = 1.375, which is 0.625 less.
    # Who knew it would get 1/2 · 2 + 1/2 (3/4 · 2 + 1/4 · 4) = 2.25 instead of 2: it is worth 0.25 a visit.
    # After 9 visits that is 9.1 · 0.25 = 2.275, of which one try resolves 4/5; and not more than all that both
    # would cost and bring a visit, 0.875. Nothing is worth 0.625 where a tenth of a visit is expected.
    system = ucbf.System(np.array([[3, 1], *[[0, 0]] * 4]), 0.0, 1, model_error=2)
    _, told, m = one_pair(system)
    m.posterior[0], m.ends[0] = [0, 0, 1, 0, 0], 2
    m.posterior[1], m.ends[1] = [0, 0, 0.75, 0.25, 0], [2, 3]
    m.posterior[2:], m.ends[2:] = [0, 0, 1, 0, 0], 2
    m.overlap[0, 5], m.met[0, 0], ahead = 0.2, visits, np.array([[0.0, 1, 4, 2, 0]])
    value_pairs, explore = (source(f) for f in (exploring.offsets_value_pairs, exploring.offsets_explore))
    value_pairs(told, m, ahead, 0, 1.0)
    hope = 0.25 * (1 - 0.2 ** (visits + 0.1))
    np.testing.assert_allclose(m.lead[0, 0], [2 + hope, 1.375 + hope])
    np.testing.assert_allclose(m.gain[0, 0], [0, 0.25])
    policy = np.zeros((1, 5), np.int64)
    assert explore(told, m, ahead, policy) == (0 if action else -1)
    assert policy[0, 0] == action
    assert m.bids[exploring.BID, 0] == 0  # of state 4, where both actions are known and alike
    exploring.bid_for(told, m, 0, 0, 1)
    assert m.bids[exploring.BID, 0] == (pytest.approx(0.25) if action else 0)


def test_pairs_that_no_error_within_reach_explains_are_found_by_hand():
    # Offsets -2..2, of which any three that follow each other are within ζ/2 = 1 but for what all have in common. Pairs
    # at -2, 0, 0 and 2: of -2..0 and of 0..2 one pair is left out, of -1..1 two.
    _, _, m = one_pair(ucbf.System(np.zeros((4, 1)), 0.0, 1, model_error=2))
    m.posterior[:], m.visits[:], m.exact[0] = np.eye(5)[[0, 2, 2, 4]], [30, 40, 50, 20], 0.0
    (found,) = beyond_reach(m, 0.001)
    assert found.what == "no error of f within ζ/2 = 1 explains what 1 of 4 pairs showed"
    assert found.visits == 20
    m.visits[3] = 19  # too few to be sure
    assert beyond_reach(m, 0.001) == []
    m.visits[3] = 20
    m.exact[0] = 0.5  # it may well be that f is as told
    assert beyond_reach(m, 0.001) == []
    m.exact[0], m.posterior[3] = 0, [0, 0, 1e-3, 0.0, 0.999]
    assert beyond_reach(m, 0.001 * 4 + 1e-9)
    assert not beyond_reach(m, 0.001 * 4 - 1e-6)


def test_smoothing_follows_the_data():
    # Sixty residuals that are all alike say that what was not seen will not be; thirty that are hardly ever alike, that
    # it will. Of laws drawn with a weight α for every value the likeliest is taken.
    _, told, _ = one_pair(ucbf.System(np.zeros((30, 1)), 0.0, 1, model_error=2))

    def likelihood(counts, alpha):
        total = math.lgamma(30 * alpha) - math.lgamma(sum(counts) + 30 * alpha)
        return total + sum(math.lgamma(n + alpha) - math.lgamma(alpha) for n in counts)

    rng = np.random.default_rng(0)
    for counts in (np.eye(30)[4] * 60, np.ones(30), rng.integers(0, 3, 30) * 1.0, rng.integers(0, 2, 30) * 7.0):
        best = max(fitting.SMOOTHINGS, key=lambda alpha: likelihood(counts, alpha))
        assert fitting.best_smoothing(told, counts[None]) == best
    assert fitting.best_smoothing(told, np.eye(30)[4:5] * 60) == 0.003
    assert fitting.best_smoothing(told, np.ones((1, 30))) == 1.0


def test_the_settings_of_offsets_are_checked():
    assert OffsetPosterior(iterations=1).params["iterations"] == 1
    for wrong, message in [
        ({"iterations": 0}, "iterations is 0; it must be 1 to 1000"),
        ({"threshold": 0}, "threshold is 0; it must be above 0 and at most 1"),
        ({"threshold": 1.1}, "threshold is 1.1"),
        ({"smoothing": 0}, "smoothing is 0; it must be above 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            OffsetPosterior(**wrong)


def test_what_an_offset_leads_to_is_brought_back_among_the_after_states():
    line = ucbf.UCBf(ucbf.System(lambda s, a: s, 0.0, 1, "clip", n_states=4, n_actions=1)).told
    last = line.n_after - 1
    assert [models.place(line, x) for x in (-2, 0, last, last + 4)] == [0, 0, last, last]
    ring = ucbf.UCBf(ucbf.System(np.zeros((4, 1)), 0.0, 1)).told
    assert [models.place(ring, x) for x in (-1, 0, 3, 5)] == [3, 0, 3, 1]


def test_a_pair_without_doubt_says_so():
    # While its offset is in doubt, a transition says nothing of W that the model check could use.
    agent = ucbf.UCBVIf(ucbf.System(np.zeros((4, 2)), 0.0, 1, model_error=2), estimator=OffsetPosterior())
    m = agent.learner.model
    m.low[0, 2, 1], m.high[0, 2, 1] = -1, 1
    assert not offsets.offsets_learn_pair(agent.told, m, Seen(0, 2, 1, 3, 3, 3))
    m.low[0, 2, 1], m.high[0, 2, 1] = 0, 0
    assert offsets.offsets_learn_pair(agent.told, m, Seen(0, 2, 1, 3, 3, 3))
    assert m.visits[2 * 2 + 1] == 2
    assert m.residuals[0, 3] == 2


def test_offsets_that_leave_the_states_are_barred_where_none_may():
    # f is 0, 1, 2 and 3 of four states, and offsets are -2..2.
    system = ucbf.System(np.arange(4).reshape(4, 1), 0.0, 1, "strict", model_error=2, disturbance_range=(0, 0))
    barred = ucbf.UCBVIf(system, estimator=OffsetPosterior()).learner.model.barred
    assert (barred < 0).astype(int).tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 1]]


def test_offsets_that_take_too_much_room_are_refused():
    told = ucbf.System(np.zeros((100, 100)), 0.0, 1, "wrap", model_error=20_000)
    with pytest.raises(ValueError, match="would tell 40001 offsets apart for each of 10000 pairs, more than 268435456"):
        ucbf.UCBf(told, estimator="OffsetPosterior")


def gap_after(agent, world, episodes, seed=0):
    return ucbf.simulate(agent, world, episodes, seed).gap


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBVIf])
@pytest.mark.parametrize("zeta", [2, 4])
def test_repair_finds_the_right_f_but_for_a_constant(kind, zeta):
    world = ucbf.random_world(n_actions=2, horizon=5, seed=11)
    told = ucbf.corrupt(world.system, zeta, seed=3)
    agent = kind(told, estimator="OffsetPosterior")
    gap = gap_after(agent, world, 3000)
    plain = gap_after(kind(told), world, 3000)
    assert gap[-1] < 1e-3 < plain[-1]
    assert gap.sum() < 0.2 * plain.sum()
    settled = (agent.learner.model.low == agent.learner.model.high)[0]
    constants = ((agent.f[0] - world.system.f[0]) % 25)[settled]
    assert settled.mean() > 0.5
    assert len(np.unique(constants)) == 1


def bell(S, A, sd, seed):
    """A world with a wide, bell-shaped law of W, in which one residual says little of an offset."""
    rng, x = np.random.default_rng(seed), np.arange(6 * sd + 1)
    pmf = np.exp(-((x - 3 * sd) ** 2) / (2 * sd**2))
    system = ucbf.System(rng.integers(0, S, (S, A)), rng.random(S), 5, "wrap")
    return ucbf.World(system, ucbf.Disturbance(pmf / pmf.sum()))


def regrets(world, told, episodes, seed):
    """With f known, as told, and repaired."""
    agents = ucbf.UCBVIf(world.system), ucbf.UCBVIf(told), ucbf.UCBVIf(told, estimator="OffsetPosterior")
    return [ucbf.simulate(agent, world, episodes, seed).regret[-1] for agent in agents]


def test_repair_does_no_harm_where_little_can_be_told():
    found, exact = [], []
    for seed in range(4):
        world = bell(60, 3, 6, seed)
        found.append(regrets(world, ucbf.corrupt(world.system, 4, seed), 1500, seed))
        exact.append(regrets(world, world.system.replace(model_error=4), 1500, seed))
    known, told, repaired = np.mean(found, axis=0)
    assert repaired < 1.1 * told  # it was one and a half times that
    assert repaired < 2 * known
    known, _, repaired = np.mean(exact, axis=0)
    assert repaired < 1.2 * known  # it was three times that


@pytest.mark.parametrize(("n_actions", "most"), [(2, 1.2), (8, 1.2)])
def test_an_exact_f_that_is_said_to_be_off_is_believed_soon(n_actions, most):
    found = []
    for seed in range(6):
        world = ucbf.random_world(n_actions=n_actions, horizon=5, seed=seed)
        found.append(regrets(world, world.system.replace(model_error=4), 2000, seed))
    known, _, repaired = np.mean(found, axis=0)
    assert repaired < most * known  # it was three and six times that


def test_ucb_f_counts_disturbances_from_f_as_told_where_it_believes_that():
    # Here the offsets come to have -1 in common, and disturbances 1 more, while f as told is believed. Averages of
    # disturbances that were counted from f - 1 would be read at f.
    world = ucbf.random_world(25, 2, 5, seed=5869106955035002910)
    agent = ucbf.UCBf(world.system.replace(model_error=4), estimator="OffsetPosterior")
    gap = ucbf.simulate(agent, world, 600, seed=6836746895823231952).gap
    m = agent.learner.model
    assert m.exact[0] > 0.9
    assert (m.posterior.argmax(axis=1) == 2 * m.half - 1).mean() > 0.5
    assert gap[300:].max() < 0.01  # it was 0.025


def test_repair_in_a_clipped_warehouse_with_measured_demand():
    def stock(gain, zeta):
        return ucbf.System(
            lambda s, a: s + gain * a, lambda s, a: -1.0 * a, 6, "clip", model_error=zeta,
            landing=lambda z: -1.0 * np.maximum(z, 0) - 8.0 * np.maximum(-z, 0), n_states=15, n_actions=4,
            disturbance_range=(-4, 0),
        )  # fmt: skip

    world = ucbf.World(stock(2, 0), ucbf.Disturbance([0.1, 0.2, 0.4, 0.2, 0.1], low=-4))
    told = stock(1, 6)  # an order was thought to be a box of one; it is a box of two
    gap = gap_after(ucbf.UCBVIf(told, estimator="OffsetPosterior"), world, 2000)
    assert gap[-100:].mean() < 0.05 * gap_after(ucbf.UCBVIf(told), world, 2000)[-100:].mean()


@pytest.mark.parametrize("boundary", ["wrap", "clip", "strict"])
@pytest.mark.parametrize("offset", [2**31 - 3, -(2**31) - 3, 2**40])
def test_states_may_be_named_by_large_numbers(offset, boundary):
    agents = [
        ucbf.UCBVIf(
            ucbf.System(
                np.array([[1, 2], [2, 3], [3, 2], [3, 1], [1, 2]]) + first, np.arange(10.0).reshape(5, 2), 2, boundary,
                model_error=2, disturbance_range=(-1, 1), state_offset=first,
            ),
            estimator="OffsetPosterior",
        )
        for first in (0, offset)
    ]  # fmt: skip
    for first, agent in zip((0, offset), agents, strict=True):
        for _ in range(30):
            agent.observe(0, first + 1, 0, first + 2)
            agent.observe(1, first + 2, agent.act(1, first + 2), first + 3)
            agent.act(0, first)
    np.testing.assert_array_equal(agents[0].q, agents[1].q)
    np.testing.assert_array_equal(agents[0].f + offset, agents[1].f)


# -- what is dismissed for good ----------------------------------------------------------------------


def ring(declared=(0, 2)):
    """Twenty states, two actions, f off by up to 2 and W from 0 to 2, so that residuals are numbered from -2 on."""
    return ucbf.System(np.zeros((20, 2)), 0.0, 1, "wrap", model_error=4, disturbance_range=declared)


def test_what_residuals_say_for_sure_by_hand():
    agent = ucbf.UCBVIf(ring(), estimator="OffsetPosterior")
    m, told = agent.learner.model, agent.told
    assert m.window.tolist() == [2, 4]
    agent.observe(0, 0, 0, 0)  # W was 0, 1 or 2: the offset is 0, -1 or -2
    agent.observe(0, 0, 0, 1)
    assert settling.known_for_sure(told, m, 0) == (-1, 0)
    assert settling.known_for_sure(told, m, 1) == (-2, 2)
    agent.observe(0, 0, 1, 18)  # only -2 is left
    for _ in range(2):  # what is found first tells where to count from
        settling.look_at_all(told, m)
    assert m.anchor[settling.KIND] == settling.ABSOLUTE
    assert m.certain[:2].tolist() == [-1, 2]  # of offsets -4..4
    assert m.left[0].tolist() == [False] * 3 + [True] * 2 + [False] * 4
    before = m.pool.sum()
    agent.observe(0, 0, 1, 19)  # W = 1, without a doubt
    assert m.pool.sum() - before == m.pool[0, 3] == 1
    agent.observe(0, 0, 0, 1)
    assert m.pool.sum() - before == 1


def test_the_pool_begins_with_measured_disturbances():
    agent = ucbf.UCBVIf(ring(), estimator="OffsetPosterior")
    agent.warm_start([[0], [2], [2]])
    assert agent.learner.model.anchor[settling.KIND] == settling.ABSOLUTE
    assert agent.learner.model.pool[0, 2:5].tolist() == [1, 0, 2]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_no_offset_is_dismissed_that_a_law_in_the_ball_allows(seed):
    """The most that Π Q(residuals) can be while Q(pool) > KT(pool) δ / 2, by scipy, is never above the bound."""
    rng = np.random.default_rng(seed)
    agent = ucbf.UCBVIf(ring(), estimator="OffsetPosterior")
    m, told = agent.learner.model, agent.told
    pool, residuals = rng.integers(0, 40, 3), rng.integers(0, 12, 3)
    m.pool[0, 2:5], m.seen[0, 0, 2:5], m.often[0, 0], m.visits[0] = pool, residuals, residuals.sum(), residuals.sum()
    m.anchor[settling.KIND] = settling.ABSOLUTE
    radius = math.log(2 / settling.CHANCE) - log_kt(pool)
    most, P = most_likely(residuals, pool, radius), len(m.certain)
    within = math.log(2 * P / settling.CHANCE)
    m.said[0] = most + within - 1e-6
    assert settling.is_possible(told, m, 0, 0)
    m.said[0] = most + within + 1.5  # and the bound is not far above
    assert not settling.is_possible(told, m, 0, 0) or residuals.sum() == 0
    m.said[0] = -1e9
    assert settling.is_possible(told, m, 0, 1) == (residuals[0] == 0)  # residual -2 would be W = -1, which cannot be


def log_kt(counts):
    """Each disturbance in turn is foretold by (count + 1/2) / (n + k/2)."""
    log, seen = 0.0, np.zeros(len(counts))
    for w, n in enumerate(counts):
        for _ in range(n):
            log += math.log((seen[w] + 0.5) / (seen.sum() + len(counts) / 2))
            seen[w] += 1
    return log


def most_likely(residuals, pool, radius):
    """max Σ c log Q with Σ n log Q >= -radius: Q is proportional to c + λ n, with the least λ that is enough."""

    def at(price):
        q = residuals + price * pool + 1e-12
        return q / q.sum()

    def slack(price):
        return radius + (pool * np.log(at(price))).sum()

    if slack(0) >= 0:
        return float((residuals * np.log(at(0))).sum())
    low, high = 1e-9, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if slack(middle) >= 0 else (middle, high)
    return float((residuals * np.log(at(high))).sum())


# -- certificates ------------------------------------------------------------------------------------


def test_the_chance_of_dismissing_a_right_offset_is_paid_for():
    system = ucbf.System(np.zeros((8, 2)), np.eye(8)[:, :2], 3, "wrap", model_error=2, disturbance_range=(0, 1))
    agent = ucbf.UCBVIf(system, estimator="OffsetPosterior")
    agent.warm_start([[0, 1, 1], [1, 1, 0], [0, 0, 1]] * 20)
    found, held = agent.certificate(0.01, "coupled"), agent.model.settled(agent.told, agent.learner.model)
    both = Coupling(agent._told_first, agent.learner.policy, held.possible, held.targets)
    left = 0.01 - settling.CHANCE  # of p: 19 parts of 20 for the coupled bound, and one for separate bounds
    coupled = both.over_balls(held.counts, 0.95 * left, np.zeros(8)) * agent.units.scale
    separate = agent.certificate(0.05 * left, "bernstein").gap
    assert (coupled < separate).any()
    np.testing.assert_allclose(found.gap, np.minimum(coupled, separate))
    assert found.p == 0.01
    assert "separate bounds serve" in agent.certificate(settling.CHANCE).note


def test_where_actions_may_lead_by_hand():
    # f(s, a) = s in 20 states, off by up to 2, and W from 0 to 2: from s - 2 to s + 4. States 0 and 19 hide W.
    system = ucbf.System(lambda s, a: s + 0 * a, 0.0, 1, "clip", model_error=4, disturbance_range=(0, 2), n_states=20,
                         n_actions=1)  # fmt: skip
    agent = ucbf.UCBVIf(system, estimator="OffsetPosterior")
    m = agent.learner.model
    assert np.flatnonzero(m.clear).tolist() == [*range(3, 15)]
    # Counted from a pair whose own offset is from -2 to 2, offsets are from -4 to 4.
    m.anchor[:] = settling.RELATIVE, -2, 2
    targets = agent.model.settled(agent.told, m).targets
    assert np.diff(targets.begins).tolist() == [9] * 20
    first = agent.told.after[0, 0, 0] + targets.pad
    assert targets.members[:9].tolist() == [*range(first - 4, first + 5)]
    assert targets.members.min() == 0
    assert targets.members.max() == agent.told.n_after + 2 * targets.pad - 1


def test_certificates_under_repair_hold_and_tighten():
    """They were as wide as what ζ leaves open, whatever was found out."""
    for seed in range(3):
        world = ucbf.random_world(n_states=25, n_actions=2, horizon=5, seed=seed)
        system = world.system.replace(disturbance_range=(0, 5))
        told = ucbf.corrupt(system, 2, seed)
        agent, widths = ucbf.UCBVIf(told, estimator="OffsetPosterior"), []
        for _ in range(3):
            ucbf.simulate(agent, world, 1500, seed=seed + len(widths))
            found = agent.certificate(0.05)
            gap = world.plan.v[0] - ucbf.evaluate(world, agent.policy)[0]
            assert (found.gap >= gap - 1e-9).all()
            widths.append(found.average())
        separate = agent.certificate(0.05, "bernstein").average()
        assert found.form == "coupled"
        assert widths[2] < widths[1] < widths[0]
        assert widths[2] < 0.5 * separate
        m, off = agent.learner.model, (world.system.f[0] - told.f[0]).ravel()
        sure = m.certain >= 0
        assert sure.sum() > 10
        assert len(np.unique((m.certain - off)[sure] % 25)) == 1  # right, but for what all have in common

"""Repair of a wrong f: expectation and maximisation against a transcription, least squares, regressors, contract."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forging
import ucbf
from ucbf.estimators import Estimate, Estimator, LinearFeatures, OffsetPosterior, PartialFit, make_estimator
from ucbf.kernels import averaged, fitting, jit, models, offsets
from ucbf.kernels.seen import Seen
from ucbf.models.features import table_of


class LiteralEM:
    """Posterior of every pair's offset given the law of the others, the law given the posteriors, and what is believed.

    States wrap, and f is the same at every step.
    """

    def __init__(self, S, pairs, H, half, smoothing):
        self.S, self.H, self.half, self.smoothing = S, H, half, smoothing
        self.offsets = range(-half, half + 1)
        self.seen = np.zeros((H, pairs, S))
        self.law = np.zeros((H, S))
        self.belief = {d: math.log(0.5 if d == 0 else 0.5 / (2 * half)) for d in self.offsets}
        self.weights = np.array([[math.exp(self.belief[d]) for d in self.offsets]] * pairs)
        self.counted = np.zeros(self.seen.shape)  # of what was seen, when last fitted
        self.believed = None  # f then

    def own(self, pair):
        """[H, S] what a pair adds to the law."""
        share = np.zeros((self.H, self.S))
        for h, j in np.argwhere(self.seen[:, pair]):
            for d in self.offsets:
                share[h, (j - d) % self.S] += self.seen[h, pair, j] * self.weights[pair, d + self.half]
        return share

    def score(self, pair, d):
        """The logarithm of the chance of a pair's residuals with an offset, by the law without the pair's own."""
        own, total = self.own(pair), 0.0
        for h, j in np.argwhere(self.seen[:, pair]):
            w = (j - d) % self.S
            count, n = self.law[h, w] + self.smoothing, self.seen[h, pair].sum()
            share = own[h, w] / count
            log = math.log(count) - share if share < 0.1 else math.log(max(count - own[h, w], self.smoothing))
            rest = max(self.law[h].sum() - n, 0) + self.smoothing * self.S
            total += self.seen[h, pair, j] * (log - math.log(rest))
        return total

    def posterior(self, move=0):
        """[pairs, offsets] and the logarithm of the chance of all that was seen."""
        out, total, least = [], 0.0, min(self.belief.values())
        for pair in range(self.seen.shape[1]):
            scores = [self.score(pair, d + move) + self.belief.get(d + move, least) for d in self.offsets]
            most = max(scores)
            weights = [math.exp(score - most) for score in scores]
            total += most + math.log(sum(weights))
            out.append([w / sum(weights) for w in weights])
        return np.array(out), total

    def iterate(self):
        moves = sorted(self.offsets, key=lambda m: (abs(m), -m))
        chosen, best = 0, -math.inf
        for move in moves:
            total = self.posterior(move)[1]
            if total > best + 1:
                chosen, best = move, total
        self.weights = self.posterior(chosen)[0]
        self.law[:] = 0
        for h, pair, j in np.argwhere(self.seen):
            for d in self.offsets:
                self.law[h, (j - d) % self.S] += self.seen[h, pair, j] * self.weights[pair, d + self.half]
        visited = self.seen.sum(axis=(0, 2)) > 0
        trust = np.array([4 * (0.5 if d == 0 else 0.5 / (2 * self.half)) for d in self.offsets])
        found = trust + self.weights[visited].sum(axis=0)
        self.belief = {d: math.log(found[d + self.half] / found.sum()) for d in self.offsets}


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4]))
@settings(max_examples=15)
def test_offsets_are_fitted_by_expectation_and_maximisation(seed, zeta):
    check_fit(seed, zeta, 4)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_first_fit_agrees_with_the_transcription(seed):
    check_fit(seed, 2, 2)


def check_fit(seed, zeta, fits):
    """Observations of random actions, and after every few of them a fit."""
    world = ucbf.random_world(n_states=9, n_actions=2, horizon=2, max_disturbance=2, lipschitz=None, seed=seed)
    told = ucbf.corrupt(world.system, zeta, seed)
    agent = ucbf.UCBVIf(told, estimator=OffsetPosterior(iterations=2, smoothing=0.1))
    literal = LiteralEM(9, 18, 2, zeta // 2, 0.1)
    model = agent.learner.model
    model.clock[2] = 10**9  # no start from the beginning here
    rng = np.random.default_rng(seed)
    for _ in range(fits):
        for _ in range(5):
            s = int(rng.integers(9))
            for h in range(2):
                a = int(rng.integers(2))
                w = int(rng.choice(3, p=world.law.pmf[h]))
                s_next = int((world.system.f[h, s, a] + w) % 9)
                agent.observe(h, s, a, s_next)
                literal.seen[h, s * 2 + a, (s_next - told.f[h, s, a]) % 9] += 1
                s = s_next
        np.testing.assert_array_equal(model.residuals, literal.seen.sum(axis=1))
        agent.renew()
        # between fits the agent counts the residuals of f as it is believed, which the next fit starts from
        literal.law[:] = literal_start(literal, agent)
        for _ in range(2):
            literal.iterate()
        literal.weights = literal.posterior()[0]
        np.testing.assert_allclose(model.counts, literal.law, atol=1e-9)
        np.testing.assert_allclose(model.belief, list(literal.belief.values()), atol=1e-9)
        np.testing.assert_allclose(model.posterior, literal.weights, atol=1e-9)
        literal.believed = model.f.reshape(-1).copy()
        weights = literal.weights
        likeliest = weights.argmax(axis=1) - zeta // 2
        offset = (model.f - model.first).reshape(-1)
        sure = np.sort(weights, axis=1)[:, -1] > np.sort(weights, axis=1)[:, -2] + 1e-9
        assert (((offset - likeliest) % 9)[sure] == 0).all()
        threshold = 0.01 / math.sqrt(1 + model.clock[0] / 18)
        for pair in range(18):
            plausible = np.flatnonzero(weights[pair] >= threshold) - zeta // 2 + model.first.reshape(-1)[pair]
            assert model.low.reshape(-1)[pair] <= plausible.min()
            assert model.high.reshape(-1)[pair] >= plausible.max()
        check_what_is_tried(agent, told, threshold)


def check_what_is_tried(agent, told, threshold):
    """What follows every pair: the mean over its offsets, or the best plausible one if it is worth trying."""
    m, half, ahead = agent.learner.model, told.slack, agent.learner.ahead
    for h, s in np.ndindex(told.f.shape[:2]):
        values = np.array([[ahead[h, (m.first[0, s, a] + d) % 9] for d in range(-half, half + 1)] for a in range(2)])
        chances = m.posterior[[s * 2, s * 2 + 1]]
        settled = m.low[0, s] == m.high[0, s]
        mean = np.where(settled, ahead[h, m.f[0, s]], (values * chances).sum(axis=1))
        reward = told.reward[h, s]
        best = (reward + mean).max()
        expected = mean.copy()
        for a in range(2):
            q = reward[a] + values[a]
            low, high = m.low[0, s, a] - m.first[0, s, a] + half, m.high[0, s, a] - m.first[0, s, a] + half
            hope = low + int(q[low : high + 1].argmax())
            if settled[a] or q[hope] <= best or reward[a] + mean[a] == best:
                continue
            gain = sum(p * max(x - best, 0) for p, x in zip(chances[a], q, strict=True))
            cost = 0.0
            for d, (p, x) in enumerate(zip(chances[a], q, strict=True)):
                if p > 1e-12 and x <= best:
                    apart = max(m.apart[hope - d + 2 * half], 1e-12)
                    cost += p * (best - x) * (1 + max(math.log(chances[a][hope] / (p * threshold)), 0) / apart)
            if m.visits[[s * 2, s * 2 + 1]].sum() * gain >= cost:
                expected[a] = q[hope] - reward[a]
        np.testing.assert_allclose(agent.learner.model.lead[h, s], expected, atol=1e-9)


def test_how_far_offsets_are_told_apart_by_hand():
    # P(0) = 3/4 and P(1) = 1/4, of four: one residual tells an offset of 1 from none by the mean of log P(w) - log
    # P(w-1), 3/4 (log 3/4 - log P(3)) + 1/4 (log 1/4 - log 3/4), P(3) being what smoothing leaves it.
    agent = ucbf.UCBVIf(ucbf.System(np.zeros((4, 1)), 0.0, 1, model_error=2), estimator=OffsetPosterior(smoothing=1e-6))
    m = agent.learner.model
    m.counts[0] = 3e6, 1e6, 0, 0
    fitting.take_logs(agent.told, m.counts, m.logs, 0, 1.0, 2)
    fitting.tell_apart(agent.told, m)
    p = [3 / 4, 1 / 4, 1 / 4e6, 1 / 4e6]
    by_one = p[0] * math.log(p[0] / p[3]) + p[1] * math.log(p[1] / p[0])
    np.testing.assert_allclose(m.apart[[2, 3]], [0, by_one], atol=1e-4)
    np.testing.assert_allclose(m.apart[1], p[0] * math.log(p[0] / p[1]) + p[1] * math.log(p[1] / p[2]), rtol=1e-4)


def test_smoothing_follows_the_data():
    # Sixty residuals that are all alike say that what was not seen will not be; thirty that are hardly ever alike, that
    # it will. Of laws drawn with a weight α for every value the likeliest is taken.
    def chosen(counts):
        agent = ucbf.UCBVIf(ucbf.System(np.zeros((30, 1)), 0.0, 1, model_error=2), estimator=OffsetPosterior())
        agent.learner.model.counts[0] = counts
        return fitting.best_smoothing(agent.told, agent.learner.model)

    def likelihood(counts, alpha):
        total = math.lgamma(30 * alpha) - math.lgamma(sum(counts) + 30 * alpha)
        return total + sum(math.lgamma(n + alpha) - math.lgamma(alpha) for n in counts)

    rng = np.random.default_rng(0)
    for counts in (np.eye(30)[4] * 60, np.ones(30), rng.integers(0, 3, 30) * 1.0, rng.integers(0, 2, 30) * 7.0):
        best = max(fitting.SMOOTHINGS, key=lambda alpha: likelihood(counts, alpha))
        assert chosen(counts) == best
    assert chosen(np.eye(30)[4] * 60) == 0.003
    assert chosen(np.ones(30)) == 1.0


def literal_start(literal, agent):
    """The law that a fit starts from: the last fit, and since then residuals of the f of that time, as counted."""
    start, new = literal.law.copy(), literal.seen - literal.counted
    first = agent.learner.model.first.reshape(-1)
    believed = first if literal.believed is None else literal.believed
    for h, pair, j in np.argwhere(new):
        start[h, (j + first[pair] - believed[pair]) % literal.S] += new[h, pair, j]
    literal.counted = literal.seen.copy()
    return start


def test_a_posterior_by_hand():
    # One pair, offsets -1, 0, 1, believed with 1/4, 1/2, 1/4; the law says w = 0 with 3/4 and w = 1 with 1/4, so that
    # residual 1 has likelihoods P(w = 2) = 0, P(w = 1) = 1/4 and P(w = 0) = 3/4: 0, 1/8 and 3/16.
    system = ucbf.System(np.zeros((5, 1)), 0.0, 1, model_error=2)
    agent = ucbf.UCBVIf(system, estimator=OffsetPosterior(smoothing=1e-12))
    m = agent.learner.model
    m.counts[0, :2] = 3, 1
    fitting.take_logs(agent.told, m.counts, m.logs, 0, 1e-12, 2)
    agent.observe(0, 0, 0, 1)
    fitting.posterior(m, 0, 0, 1.0)
    np.testing.assert_allclose(m.weights, [0, 0.4, 0.6], atol=1e-9)


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


def test_the_evidence_of_a_move_by_hand():
    # W was measured: twice 0, and 1 once. If all offsets move by 1, those were -1 and 0: on a ring of 4 the chances are
    # P(3)² P(0). The pairs saw nothing: whatever their offsets, that has chance 1.
    agent = ucbf.UCBVIf(ucbf.System(np.zeros((4, 1)), 0.0, 1, model_error=2), estimator=OffsetPosterior())
    m = agent.learner.model
    m.counts[0] = 5, 2, 2, 1
    m.known[0, :2] = 2, 1
    fitting.take_logs(agent.told, m.counts, m.logs, 0, 1e-12, 2)
    run = jit.source(fitting.evidence)
    assert run(agent.told, m, 0) == pytest.approx(2 * math.log(0.5) + math.log(0.2))
    assert run(agent.told, m, 1) == pytest.approx(2 * math.log(0.1) + math.log(0.5))
    assert run(agent.told, m, -1) == pytest.approx(2 * math.log(0.2) + math.log(0.2))


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


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBVIf])
def test_a_fit_from_the_beginning_that_is_no_better_leaves_no_trace(kind):
    # W is always 0 and f is right: nothing fits better than what goes on.
    system = ucbf.System(lambda s, a: s + a, 0.0, 1, n_states=5, n_actions=2, model_error=2)
    starts_over, goes_on = (kind(system, estimator=OffsetPosterior(smoothing=0.1, iterations=40)) for _ in range(2))
    for agent, when in ((starts_over, 0), (goes_on, 10**9)):
        agent.learner.model.clock[2] = when
        for s, a in np.ndindex(5, 2):
            agent.observe(0, s, a, (s + a) % 5)
        agent.renew()
    assert starts_over.learner.model.clock[2] == 20
    for name in ("counts", "posterior", "f", "low", "high"):
        one, other = (getattr(agent.learner.model, name) for agent in (starts_over, goes_on))
        np.testing.assert_array_equal(one, other)


def test_averages_follow_after_states_that_are_moved():
    # Moved by 1, what followed after-state 0 now follows 1; at the end of a line what is carried on is the last value.
    ring = ucbf.UCBf(ucbf.System(np.zeros((4, 1)), 0.0, 1)).told
    average = np.array([[1.0, 2, 4, 8]])
    averaged.move_average(ring, average, 1)
    np.testing.assert_array_equal(average, [[8, 1, 2, 4]])
    averaged.move_average(ring, average, -2)
    np.testing.assert_array_equal(average, [[2, 4, 8, 1]])
    line = ucbf.UCBf(ucbf.System(lambda s, a: s, 0.0, 1, "clip", n_states=4, n_actions=1)).told
    average = np.array([[1.0, 2, 4, 8]])
    averaged.move_average(line, average, 2)
    np.testing.assert_array_equal(average, [[1, 1, 1, 2]])
    averaged.move_average(line, average, -1)
    np.testing.assert_array_equal(average, [[1, 1, 2, 2]])


def test_averages_of_ucb_f_follow_where_the_fit_moves_all_of_f(monkeypatch):
    # The fit says that all of f is 1 less than it was believed: what follows after-state x is what followed x + 1.
    line = ucbf.System(lambda s, a: s, 0.0, 1, "clip", n_states=4, n_actions=1, disturbance_range=(0, 0))
    agent = ucbf.UCBf(line.replace(model_error=2), estimator=OffsetPosterior())
    average = agent.learner.average
    before = np.arange(average.size, dtype=float).reshape(average.shape)
    average[:] = before
    monkeypatch.setattr(averaged, "refit", lambda *given: 1)
    monkeypatch.setattr(averaged, "value_pairs", lambda *given: None)
    monkeypatch.setattr(averaged, "ucb_f_greedy", lambda *given: False)
    jit.source(averaged.ucb_f_renew)(agent.told, agent.learner)
    np.testing.assert_array_equal(average[:, :-1], before[:, 1:])


def test_how_far_a_new_fit_moved_most_of_f_by_hand():
    # f was believed at its first values. The new fit says -1 of pairs 0 and 1, seen 3 and 4 times, and 1 of pair 2,
    # seen 6 times: 7 of 13 observations were moved back by 1.
    system = ucbf.System(np.full((3, 1), 4), 0.0, 1, "clip", model_error=2, disturbance_range=(0, 1), n_states=3)
    agent = ucbf.UCBVIf(system, estimator=OffsetPosterior())
    m = agent.learner.model
    for pair, (times, offset) in enumerate([(3, -1), (4, -1), (6, 1)]):
        m.seen[0, pair, 1] = times
        m.likelihood[pair] = -99
        m.likelihood[pair, 2 + offset] = 0  # likelihoods are of -2..2
    common_move = jit.source(fitting.common_move)  # only compiled functions call the compiled one
    assert common_move(agent.told, m) == 1
    m.seen[0, 2, 1] = 8
    assert common_move(agent.told, m) == -1


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
    assert repaired < 1.6 * known  # it was three times that


@pytest.mark.parametrize(("n_actions", "most"), [(2, 1.7), (8, 2.0)])
def test_an_exact_f_that_is_said_to_be_off_is_believed_soon(n_actions, most):
    found = []
    for seed in range(6):
        world = ucbf.random_world(n_actions=n_actions, horizon=5, seed=seed)
        found.append(regrets(world, world.system.replace(model_error=4), 2000, seed))
    known, _, repaired = np.mean(found, axis=0)
    assert repaired < most * known  # it was three and six times that


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


def test_least_squares_are_what_numpy_says():
    world = ucbf.random_world(n_states=12, n_actions=3, horizon=2, max_disturbance=2, lipschitz=None, seed=1)
    system = world.system.replace(model_error=4, disturbance_range=(0, 2))
    estimator = LinearFeatures("affine", ridge=0.5)
    estimator.start(system)
    rng = np.random.default_rng(0)
    rows, targets = [], []
    for _ in range(60):
        h, s, a, residual = rng.integers([2, 12, 3, 7])
        estimator.observe(h, s, a, residual - 2)
        rows.append([s, a, h == 0, h == 1])
        targets.append(residual - 2)
    x, y = np.array(rows, float), np.array(targets, float)
    design = x.T @ x + np.diag([0.5, 0.5, 1e-6, 1e-6])
    theta = np.linalg.solve(design, x.T @ y)
    np.testing.assert_allclose(estimator.theta, theta[:2], rtol=1e-6)
    estimate = estimator.estimate()
    np.testing.assert_allclose(estimate.correction[0, 7, 2], 7 * theta[0] + 2 * theta[1], rtol=1e-6)
    around = np.array([7 - 5.5, 2 - 1.0])
    left = np.sum((y - x @ theta) ** 2) + theta**2 @ [0.5, 0.5, 1e-6, 1e-6]
    beta = math.sqrt(left / 56) * math.sqrt(2 * math.log(2 * 36 / 0.01)) + math.sqrt(0.5)
    expected = beta * math.sqrt(around @ np.linalg.inv(design)[:2, :2] @ around)
    np.testing.assert_allclose(estimate.error[0, 7, 2], expected, rtol=1e-5)
    assert estimator.estimate() is None


def tank(gain, zeta):
    return ucbf.System(
        lambda s, a: s + gain * a - 2 * gain, lambda s, a: 1 - np.abs(s - 15) / 31, 4, "clip", model_error=zeta,
        n_states=31, n_actions=5, disturbance_range=(-2, 2),
    )  # fmt: skip


class Ridge:
    """A regressor with scikit-learn's methods: least squares on all it was shown."""

    def partial_fit(self, X, y):
        self.X = np.vstack([self.X, X]) if hasattr(self, "X") else X
        self.y = np.append(getattr(self, "y", []), y)
        self.w = np.linalg.solve(self.X.T @ self.X + 1e-3 * np.eye(X.shape[1]), self.X.T @ self.y)

    def predict(self, X):
        return X @ self.w


ESTIMATORS = {
    "linear": lambda: LinearFeatures("actions"),
    "function": lambda: LinearFeatures(lambda s, a: [a]),
    "regressor": lambda: PartialFit(Ridge(), "actions", d=20),
}


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBVIf])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_in_python_repair_a_gain(kind, name):
    world = ucbf.World(tank(3, 0), ucbf.Disturbance([0.1, 0.2, 0.4, 0.2, 0.1], low=-2))
    told = tank(1, 8)
    repaired = gap_after(kind(told, estimator=ESTIMATORS[name]()), world, 800)
    assert repaired[-50:].mean() <= 0.3 * gap_after(kind(told), world, 800)[-50:].mean()


def test_an_edge_does_not_make_an_exact_f_seem_wrong():
    system = ucbf.System(
        lambda s, a: s + a - 1, lambda s, a: s / 20, 3, "clip", model_error=4, n_states=20, n_actions=3,
        disturbance_range=(-3, 3),
    )  # fmt: skip
    world = ucbf.World(system.replace(model_error=0), ucbf.Disturbance(np.full(7, 1 / 7), low=-3))
    agent = ucbf.UCBVIf(system, estimator=LinearFeatures("affine"))
    ucbf.simulate(agent, world, 600)
    model = agent.learner.model
    fits = [((model.low <= model.first + c) & (model.first + c <= model.high)).all() for c in (-1, 0, 1)]
    assert any(fits)  # the truth is within the bound, but for a constant
    assert np.abs(agent.estimator.theta).max() < 0.15


@pytest.mark.parametrize("name", ESTIMATORS)
def test_agents_with_an_estimator_in_python_save_and_go_on(name, tmp_path):
    world = ucbf.World(tank(2, 0), ucbf.Disturbance([0.2, 0.6, 0.2], low=-1))
    straight, stopped = (ucbf.UCBVIf(tank(1, 4), estimator=ESTIMATORS[name]()) for _ in range(2))
    for part in range(3):
        one, other = (ucbf.simulate(agent, world, 15, seed=part) for agent in (straight, stopped))
        np.testing.assert_array_equal(one.gap, other.gap)
        stopped.observe(0, 15, 1, 13)
        straight.observe(0, 15, 1, 13)
        stopped.save(tmp_path / "agent")
        again = {"estimator": ESTIMATORS[name]()} if name == "regressor" else {}
        stopped = ucbf.load(tmp_path / "agent", **again)
    np.testing.assert_array_equal(straight.q, stopped.q)
    if name == "regressor":
        with pytest.raises((TypeError, ValueError), match="give one with partial_fit"):
            ucbf.load(tmp_path / "agent")
        with pytest.raises(ValueError, match="pass one with the same parameters"):
            ucbf.load(tmp_path / "agent", estimator=PartialFit(Ridge(), "affine", d=20))


class Half(Estimator):
    """Believes that the first action leads one state further than was said."""

    name = "half"

    def observe(self, h, s, a, residual):
        self.last = residual

    def estimate(self):
        correction = np.zeros((1, 31, 5))
        correction[:, :, 0] = 1.2
        return Estimate(correction, np.full(correction.shape, 0.4))


def test_an_estimator_of_ones_own():
    agent = ucbf.UCBVIf(tank(1, 4), estimator=Half())
    agent.observe(0, 15, 2, 16)
    assert agent.estimator.last == 1
    np.testing.assert_array_equal((agent.f - agent.system.f)[0, 10], [1, 0, 0, 0, 0])
    model = agent.learner.model
    # 1.2 ± 0.4, and 0.5 more until it is near enough to a whole number; in doubt by one state at least
    np.testing.assert_array_equal((model.low - model.first)[0, 10], [1, -1, -1, -1, -1])
    np.testing.assert_array_equal((model.high - model.first)[0, 10], [2, 0, 0, 0, 0])


def test_what_cannot_be_estimated_is_refused_with_the_remedy():
    exact, wrong = tank(1, 0), tank(1, 4)
    for make, error, message in [
        (lambda: ucbf.UCBf(exact, estimator="OffsetPosterior"), ValueError, "model_error .* is 0, so that OffsetPost"),
        (lambda: ucbf.UCBf(wrong, estimator="Offsets"), ValueError, "unknown estimator 'Offsets'"),
        (lambda: ucbf.UCBf(wrong, estimator=3), TypeError, "estimator is 3; give one of ucbf.estimators"),
        (lambda: PartialFit(None), TypeError, "give one with partial_fit and predict"),
        (lambda: OffsetPosterior(threshold=0), ValueError, "threshold is 0"),
        (lambda: ucbf.UCBf(wrong, estimator=LinearFeatures(np.zeros((2, 2)))), ValueError, "features has shape"),
        (lambda: ucbf.UCBf(wrong, estimator=LinearFeatures("cubic")), ValueError, "unknown features 'cubic'"),
        (
            lambda: ucbf.UCBf(ucbf.random_world().system.replace(model_error=2), estimator="LinearFeatures"),
            ValueError,
            "needs to know W's range where states wrap",
        ),
        (
            lambda: ucbf.UCBf(wrong.replace(disturbance_range=None), estimator="LinearFeatures"),
            ValueError,
            "needs to know W's range where states are clipped",
        ),
    ]:
        with pytest.raises(error, match=message):
            make()
    used = LinearFeatures()
    ucbf.UCBf(wrong, estimator=used)
    with pytest.raises(ValueError, match="already belongs to an agent"):
        ucbf.UCBf(wrong, estimator=used)
    assert make_estimator({"name": "OffsetPosterior", "threshold": 0.2}).params["threshold"] == 0.2


def test_named_features_by_hand():
    # Two states, 0 and 1, and two actions: what f may depend on, for (0, 0), (0, 1), (1, 0), (1, 1).
    system = ucbf.System(np.zeros((2, 2)), 0.0, 1, disturbance_range=(0, 0))

    def columns(name):
        return table_of(name, system).reshape(4, -1).tolist()

    assert columns("affine") == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert columns("quadratic") == [[0, 0, 0, 0, 0], [0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert columns("actions") == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_an_estimator_serves_one_agent():
    system = ucbf.System(np.zeros((6, 2)), 0.0, 1, "clip", disturbance_range=(0, 0), model_error=2)
    estimator = LinearFeatures("affine")
    ucbf.UCBf(system, estimator=estimator)
    with pytest.raises(ValueError, match="already belongs to an agent"):
        ucbf.UCBf(system, estimator=estimator)
    for p in (0, 1.5):
        with pytest.raises(ValueError, match=f"p is {p}; it must be above 0 and at most 1"):
            LinearFeatures("affine", p=p)


def test_offsets_that_leave_the_states_are_barred_where_none_may():
    # f is 0, 1, 2 and 3 of four states: -1 is impossible from the first, +1 from the last.
    system = ucbf.System(np.arange(4).reshape(4, 1), 0.0, 1, "strict", model_error=2, disturbance_range=(0, 0))
    barred = ucbf.UCBVIf(system, estimator=OffsetPosterior()).learner.model.barred
    assert (barred < 0).tolist() == [[True, False, False], [False] * 3, [False] * 3, [False, False, True]]


def test_pairs_from_which_an_edge_may_hide_w_are_left_out():
    # States 0 to 9, f wrong by 1 at most and W from -1 to 2: f - 2 is above 0 from 3 on, f + 3 below 9 up to 5.
    system = ucbf.System(np.arange(10).reshape(10, 1), 0.0, 1, "clip", model_error=2, disturbance_range=(-1, 2))
    agent = ucbf.UCBVIf(system, estimator=LinearFeatures("affine"))
    assert np.flatnonzero(agent.model._shows_all[0, :, 0]).tolist() == [3, 4, 5]


def test_how_a_fit_climbs_by_hand(monkeypatch):
    # Three rounds that move all of f back by 1, by 0 and by -3: by -2 in all. From the beginning, faith grows by 1.3
    # from a half: 0.5, 0.65, 0.845, and then three rounds at 1; only a fit that goes on learns what to believe of
    # offsets.
    agent = ucbf.UCBVIf(ucbf.System(np.zeros((4, 1)), 0.0, 1, model_error=2), estimator=OffsetPosterior(iterations=3))
    moves, faiths, beliefs = [1, 0, -3], [], []
    monkeypatch.setattr(fitting, "weigh", lambda told, m: None)
    monkeypatch.setattr(fitting, "best_move", lambda told, m: moves[len(faiths) % 3])
    monkeypatch.setattr(fitting, "recount", lambda told, m, move, faith: faiths.append((move, faith)))
    monkeypatch.setattr(fitting, "learn_belief", beliefs.append)
    climb, m = jit.source(fitting.climb), agent.learner.model
    assert climb(agent.told, m, 1.0) == -2
    assert faiths == [(1, 1), (0, 1), (-3, 1)]
    assert len(beliefs) == 3
    faiths.clear()
    assert climb(agent.told, m, 0.5) == -2
    assert faiths == [(0, 0.5), (0, 0.65), (0, pytest.approx(0.845)), (1, 1), (0, 1), (-3, 1)]
    assert len(beliefs) == 3


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


def test_offsets_that_take_too_much_room_are_refused():
    told = ucbf.System(np.zeros((100, 100)), 0.0, 1, "wrap", model_error=20_000)
    with pytest.raises(ValueError, match="would tell 20001 offsets apart for each of 10000 pairs, more than 268435456"):
        ucbf.UCBf(told, estimator="OffsetPosterior")


def test_a_new_f_begins_a_new_comparison_of_residuals_whatever_the_prior():
    """What a prior was worth was taken from what was seen since, and residuals dated to before the first period."""
    prior = ucbf.Disturbance([0.2, 0.6, 0.2], low=-1)
    agent = ucbf.UCBVIf(tank(1, 4), estimator="LinearFeatures", prior=prior, prior_weight=500)
    watch = agent.learner.watch
    ucbf.simulate(agent, ucbf.World(tank(2, 0), prior), 40)
    begun = watch.steps[0, :, 0] - watch.periods[0, 0, :, 0]
    assert (begun >= 0).all()
    np.testing.assert_array_equal(watch.periods[0, 1:, :, 0].sum(axis=0), begun)
    assert agent.model_check().residuals >= 0


def test_what_a_regressor_was_shown_is_checked(tmp_path):
    path = tmp_path / "agent"
    agent = ucbf.UCBVIf(tank(1, 4), estimator=ESTIMATORS["regressor"]())
    ucbf.simulate(agent, ucbf.World(tank(2, 0), ucbf.Disturbance([0.2, 0.6, 0.2], low=-1)), 15)
    agent.save(path)
    header, arrays = forging.contents(path)
    for name, value, message in [
        ("shown", 99, r"its shown\[0, 0\] is 99; it must be 0 to"),
        ("shown", -1, r"its shown\[0, 0\] is -1; it must be 0 to"),
        ("batches", 2, "its batches are .*; they must grow from 0 to at most"),
        ("shown", None, "it does not hold what the regressor was shown"),
    ]:
        key = f"state.estimator.{name}"
        forged = {k: v for k, v in arrays.items() if k != key or value is not None}
        if value is not None:
            forged[key] = np.full_like(arrays[key], value)
        path.write_bytes(forging.sealed(header, forged))
        with pytest.raises(ValueError, match=message):
            ucbf.load(path, estimator=ESTIMATORS["regressor"]())

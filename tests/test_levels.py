import math

import numpy as np
import pytest
from scipy import stats

from ucbf.laws.mixtures import LevelMixture, LevelSettings

ONE = LevelSettings(
    discounts=(0.5,), variance_discount=0.8, freedom=4.0, spread=0.5, forgetting=(0.9,), fade=0.19
)  # √0.81 = 0.9


def normal_score(e, scale, freedom):
    """What Student's t is of the standard normal distribution: Wallace (1959), to 3 digits."""
    return (
        np.sign(e) * (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p((e / scale) ** 2 / freedom))
    )


def log_cell(d, cell, rooted, mean, scale, freedom):
    """Literal: the logarithm of the probability of the cell around d, all below 0 belonging to 0."""
    y = (lambda x: math.sqrt(max(1 + x, 0))) if rooted else (lambda x: x)
    low = stats.norm.cdf(normal_score(y(d - cell / 2) - mean, scale, freedom)) if d > 0 else 0.0
    return math.log(stats.norm.cdf(normal_score(y(d + cell / 2) - mean, scale, freedom)) - low)


@pytest.mark.parametrize("freedom", [2.5, 4.0, 30.0])
def test_the_normal_score_of_students_t_is_close(freedom):
    x = np.linspace(-6, 6, 49)
    near = stats.norm.cdf([normal_score(e, 1.0, freedom) for e in x])
    np.testing.assert_allclose(near, stats.t.cdf(x, freedom), atol=0.003)


def test_two_demands_by_hand():
    levels = LevelMixture(ONE, scale=8.0)
    levels.add(10)
    levels.add(16)
    state = levels.state
    # raw: m = 10, n = 1, variance (0.5 * 8)^2 = 16 worth 4 errors: scatter 64. Then e = 6, 1 + 1/n = 2:
    # scatter 0.8 * 64 + 36 / 2 = 69.2, freedom 0.8 * 4 + 1 = 4.2, n = 0.5 * 1 + 1 = 1.5, m = 10 + 6 / 1.5 = 14
    assert state.scatter[0] == pytest.approx(69.2)
    assert state.freedom[0] == pytest.approx(4.2)
    assert state.behind[0] == 1.5
    assert state.mean[0] == 14
    # roots: variance 0.5^2 * 8 / 4 = 0.5 worth 4 errors; 0.9 sqrt(11) is expected,
    # e = sqrt(17) - 0.9 sqrt(11), scatter 0.8 * 4 * 0.5 + e^2 / 2
    e = math.sqrt(17) - 0.9 * math.sqrt(11)
    assert state.mean[1] == pytest.approx(0.9 * math.sqrt(11) + e / 1.5)
    assert state.scatter[1] == pytest.approx(1.6 + e * e / 2)


def test_a_closed_day_says_nothing_of_the_level():
    with_it, without = LevelMixture(), LevelMixture()
    for levels in (with_it, without):
        for demand in (9, 11, 10):
            levels.add(demand)
    with_it.add(12, factor=0.09)
    assert with_it.seen == without.seen == 3
    np.testing.assert_array_equal(with_it.state.mean, without.state.mean)
    np.testing.assert_array_equal(with_it.weights, without.weights)
    with_it.add(12, factor=0.1)  # as much as 120 on a usual day
    assert with_it.state.mean.max() > 20


def test_weights_are_the_likelihoods_of_the_demand_on_its_own_scale():
    levels = LevelMixture(ONE, scale=8.0)
    levels.add(10.5)
    levels.add(16.5)
    raw = stats.t.pdf(16.5, 4, loc=10.5, scale=math.sqrt(32))
    # roots: squared scale 0.5 * (1 + 1); a step of d is 1 / (2 sqrt(17.5)) of the root
    root = stats.t.pdf(math.sqrt(17.5), 4, loc=0.9 * math.sqrt(11.5), scale=1.0) / (2 * math.sqrt(17.5))
    # each level counts twice: demands of 0 may come by themselves, but none has
    assert levels.weights == pytest.approx(np.array([raw, root, raw, root]) / (2 * (raw + root)))
    assert levels.weights.sum() == pytest.approx(1)


def test_whole_demands_have_the_probability_of_their_cells():
    levels = LevelMixture(ONE, scale=8.0)
    levels.add(10)
    levels.add(16)
    raw = log_cell(16, 1.0, False, 10, math.sqrt(32), 4)
    root = log_cell(16, 1.0, True, 0.9 * math.sqrt(11), 1.0, 4)
    assert levels.state.weight[0] == pytest.approx([raw, root, raw, root])
    # of a step that expects half of a usual demand: 4 is 8, and the cell of 8 is 2 wide. 0 is all below 1 as well.
    for demand, cell, mean in ((4, 2.0, None), (0, 2.0, None)):
        before, state = levels.state.weight[0, 0], levels.state
        mean, n, freedom = state.mean[0], state.behind[0], state.freedom[0]
        scale = math.sqrt(state.scatter[0] / freedom * (1 + 1 / n))
        levels.add(demand, 0.5)
        new = log_cell(2 * demand, cell, False, mean, scale, freedom)
        assert levels.state.weight[0, 0] == pytest.approx(0.9 * before + new)


def test_demands_of_0_that_come_by_themselves_by_hand():
    levels = LevelMixture(ONE, scale=8.0)
    for demand in (10, 0):
        levels.add(demand)
    state = levels.state
    # the levels of the others stay, of those that count every demand they move: 10 - 10 / 1.5
    assert state.mean[2:] == pytest.approx([10, math.sqrt(11)])
    assert state.mean[0] == pytest.approx(10 - 10 / 1.5)
    # 1 of 1 was 0: the chance of another is 1 / 2. What comes next has the other half.
    before = state.weight[0].copy()
    levels.add(12)
    said = math.log(0.5) + log_cell(12, 1.0, False, 10, math.sqrt(32), 4)
    assert levels.state.weight[0, 2] == pytest.approx(0.9 * before[2] + said)
    # zeros 0.8 of 0.8 + 1 now
    assert (levels.state.zeros[2], levels.state.counted[2]) == pytest.approx((0.8, 1.8))
    # paths from that level: a noise at the median or below means that nothing is asked for, and the move is the noise
    chance = 0.8 / 2.8
    quantile = stats.norm.ppf(chance)
    sigma = math.sqrt(levels.state.scatter[2] / levels.state.freedom[2] / (1 - 2 / (9 * levels.state.freedom[2])) ** 3)
    uniform = levels.weights[:2].sum() + 1e-6
    path = levels.paths([uniform], np.array([[0, 0, 0.5, quantile + 0.01, 0.25, quantile - 0.01]]))[0]
    assert path.tolist() == [np.rint(min(levels.state.mean[2] + 0.5 * sigma, 36)), 0]


def test_older_likelihoods_count_less_in_one_way_and_all_count_alike_in_another():
    levels = LevelMixture(LevelSettings(discounts=(0.5,), forgetting=(0.9, 1.0), switch=0.1), scale=8.0)
    for demand in (10.5, 16.5):
        levels.add(demand)
    before, trust, weight = levels.state.weight.copy(), levels.state.trust.copy(), levels.weights
    assert trust.tolist() == [0.5, 0.5]  # nothing was foretold differently yet
    levels.add(13.5)
    said = levels.state.likelihood.copy()
    assert levels.state.weight == pytest.approx(np.array([0.9 * before[0] + said, before[1] + said]))
    odds = np.exp(before - before.max(axis=1, keepdims=True))
    assert weight == pytest.approx(odds[0] / odds[0].sum())
    levels.add(30.5)
    # each way is weighed by what its mixture foretold; a tenth of the belief is spread evenly
    odds = np.exp(np.array([0.9 * before[0] + said, before[1] + said]))
    foretold = (odds * np.exp(levels.state.likelihood)).sum(axis=1) / odds.sum(axis=1)
    assert levels.state.trust == pytest.approx(0.9 * foretold / foretold.sum() + 0.05)


def test_a_path_by_hand():
    levels = LevelMixture(LevelSettings(discounts=(0.36,), freedom=2.0, spread=0.5, drift=0.5, ceiling=2.0), scale=8.0)
    levels.add(10.5)
    # freedom 2: root = 1 - 1/9 + 3 / 9 = 11/9 at normal 1; sigma = 4 / root^1.5. Raw level (uniform 0).
    sigma = 4 / (11 / 9) ** 1.5
    normals = np.array([[1.0, 0.5, 9.0, -1.0, 2.0, 0.25]])
    path = levels.paths([0.0], normals)[0]
    # the level is 10.5 + 0.5 sigma; the drift of the first step is not used; that of the second is
    # 0.5 * (1 - 0.36) / sqrt(0.36) = 0.5333 sigma, twice
    assert path[0] == pytest.approx(10.5 + 0.5 * sigma - sigma)
    assert path[1] == pytest.approx(min(21, 10.5 + 0.5 * sigma + 2 * 0.32 / 0.6 * sigma + 0.25 * sigma))


def test_a_path_of_roots_by_hand():
    settings = LevelSettings(discounts=(0.36,), freedom=2.0, spread=0.5, drift=0.5, ceiling=2.0, fade=0.19)
    levels = LevelMixture(settings, scale=8.0)
    levels.add(14.5)
    # the root is sqrt(1 + 14.5), its variance 0.5^2 * 8 / 4 = 0.5; root of chi as above
    sigma = math.sqrt(0.5) / (11 / 9) ** 1.5
    path = levels.paths([0.99], np.array([[1.0, 0.5, 9.0, -1.0, 2.0, 0.25]]))[0]
    # 0.9 of the level sqrt(15.5) + 0.5 sigma is left in the first step; 0.81 in the second, which drifts
    level = math.sqrt(15.5) + 0.5 * sigma
    assert path[0] == pytest.approx((0.9 * level - sigma) ** 2 - 1)
    assert path[1] == pytest.approx((0.81 * level + (2 * 0.32 / 0.6 + 0.25) * sigma) ** 2 - 1)
    # a root below 0 is a demand of 0, not its square
    assert levels.paths([0.99], np.array([[1.0, 0.0, 0.0, -99.0]]))[0, 0] == 0


def faded(y, left):
    """What each y is worth at the time of the last."""
    return [left ** (len(y) - 1 - s) * y[s] for s in range(len(y))]


def literal(demands, settings, scale):
    """[M, K] the log-likelihoods of every level from the formulas, each step from the whole past."""
    weights = []
    for rooted in (False, True):
        for delta in settings.discounts:
            forgets = max(settings.variance_discount, delta)
            y = [math.sqrt(1 + d) if rooted else d for d in demands]
            guess = settings.spread * (math.sqrt(scale) / 2 if rooted else scale)
            left = math.sqrt(1 - settings.fade) if rooted and delta < 0.95 else 1.0
            total = np.zeros(len(settings.forgetting))
            errors = []
            for t in range(1, len(y)):
                old = [delta ** (t - 1 - s) for s in range(t)]
                mean, n = left * np.dot(old, faded(y[:t], left)) / sum(old), sum(old)
                fade = [forgets ** (t - 1 - s) for s in range(1, t)]
                first = forgets ** (t - 1) * settings.freedom
                freedom = first + sum(fade)
                variance = (first * guess**2 + np.dot(fade, errors)) / freedom
                density = stats.t.logpdf(y[t], freedom, loc=mean, scale=math.sqrt(variance * (1 + 1 / n)))
                total = np.array(settings.forgetting) * total + density - (math.log(2 * y[t]) if rooted else 0)
                errors.append((y[t] - mean) ** 2 / (1 + 1 / n))
            weights.append(total)
    return np.array(weights * 2).T  # no demand is 0, so that none came by itself


def test_agrees_with_a_literal_transcription():
    demands = np.random.default_rng(3).poisson(20, 15) + 0.5
    levels = LevelMixture(scale=20.0)
    for demand in demands:
        levels.add(demand)
    assert levels.state.weight == pytest.approx(literal(demands, LevelSettings(), 20.0))


def test_after_a_jump_the_quick_levels_are_believed_and_the_forecast_follows():
    levels = LevelMixture()
    rng = np.random.default_rng(0)
    for demand in np.append(rng.normal(100, 5, 30), rng.normal(300, 5, 6)):
        levels.add(demand)
    draws = np.random.default_rng(1)
    paths = levels.paths(draws.random(2000), draws.standard_normal((2000, 4)))
    assert 250 < np.median(paths) < 320


def test_paths_spread_with_the_steps_ahead_and_stay_within_their_bounds():
    levels = LevelMixture()
    for demand in (5, 0, 9, 3, 7, 2, 8):
        levels.add(demand)
    draws = np.random.default_rng(1)
    paths = levels.paths(draws.random(4000), draws.standard_normal((4000, 22)))
    assert paths.min() >= 0
    assert paths.max() <= 27
    assert paths[:, 9].std() > paths[:, 0].std()


def test_refusals():
    with pytest.raises(ValueError, match="no demand was taken in"):
        LevelMixture().paths([0.5], np.zeros((1, 4)))
    with pytest.raises(ValueError, match="demand is -1"):
        LevelMixture().add(-1)
    levels = LevelMixture()
    levels.add(1)
    with pytest.raises(ValueError, match="give \\[N, 2 \\+ 2n\\]"):
        levels.paths([0.5], np.zeros((1, 3)))
    with pytest.raises(ValueError, match="discounts is empty"):
        LevelSettings(discounts=())
    with pytest.raises(ValueError, match="forgetting is empty"):
        LevelSettings(forgetting=())


def test_a_long_series_that_does_not_change_is_foretold_by_its_mean_and_one_that_jumped_by_what_came_last():
    rng, steady, jumped = np.random.default_rng(2), LevelMixture(), LevelMixture()
    for t in range(600):
        steady.add(rng.poisson(28))
        jumped.add(rng.poisson(28 if t < 590 else 60))
    draws = np.random.default_rng(1)
    drawn = [mixture.paths(draws.random(4000), draws.standard_normal((4000, 4))) for mixture in (steady, jumped)]
    assert drawn[0].mean() == pytest.approx(28, rel=0.03)
    assert drawn[0].std() == pytest.approx(28**0.5, rel=0.1)
    assert drawn[1].mean() > 50
    assert (drawn[0] == np.rint(drawn[0])).all()

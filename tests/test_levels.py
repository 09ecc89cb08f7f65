import math

import numpy as np
import pytest
from scipy import stats

from ucbf.laws.mixtures import LevelMixture, LevelSettings

ONE = LevelSettings(
    discounts=(0.5,), variance_discount=0.8, freedom=4.0, spread=0.5, forgetting=0.9, fade=0.19
)  # √0.81 = 0.9


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


def test_weights_are_the_likelihoods_of_the_demand_on_its_own_scale():
    levels = LevelMixture(ONE, scale=8.0)
    levels.add(10)
    levels.add(16)
    raw = stats.t.pdf(16, 4, loc=10, scale=math.sqrt(32))
    # roots: squared scale 0.5 * (1 + 1); a step of d is 1 / (2 sqrt(17)) of the root
    root = stats.t.pdf(math.sqrt(17), 4, loc=0.9 * math.sqrt(11), scale=1.0) / (2 * math.sqrt(17))
    assert levels.weights == pytest.approx([raw / (raw + root), root / (raw + root)])
    assert levels.weights.sum() == pytest.approx(1)


def test_older_likelihoods_count_less():
    levels = LevelMixture(ONE, scale=8.0)
    for demand in (10, 16):
        levels.add(demand)
    before, scatter, freedom = levels.state.weight[0], levels.state.scatter[0], levels.state.freedom[0]
    levels.add(13)
    # one step ahead of m = 14, n = 1.5: squared scale scatter / freedom * (1 + 1 / 1.5)
    new = stats.t.logpdf(13, freedom, loc=14, scale=math.sqrt(scatter / freedom * (1 + 1 / 1.5)))
    assert levels.state.weight[0] == pytest.approx(0.9 * before + new)


def test_a_path_by_hand():
    levels = LevelMixture(LevelSettings(discounts=(0.36,), freedom=2.0, spread=0.5, drift=0.5, ceiling=2.0), scale=8.0)
    levels.add(10)
    # freedom 2: root = 1 - 1/9 + 3 / 9 = 11/9 at normal 1; sigma = 4 / root^1.5. Raw level (uniform 0).
    sigma = 4 / (11 / 9) ** 1.5
    normals = np.array([[1.0, 0.5, 9.0, -1.0, 2.0, 0.25]])
    path = levels.paths([0.0], normals)[0]
    # the level is 10 + 0.5 sigma; the drift of the first step is not used; that of the second is
    # 0.5 * (1 - 0.36) / sqrt(0.36) = 0.5333 sigma, twice
    assert path[0] == pytest.approx(10 + 0.5 * sigma - sigma)
    assert path[1] == pytest.approx(min(20, 10 + 0.5 * sigma + 2 * 0.32 / 0.6 * sigma + 0.25 * sigma))


def test_a_path_of_roots_by_hand():
    settings = LevelSettings(discounts=(0.36,), freedom=2.0, spread=0.5, drift=0.5, ceiling=2.0, fade=0.19)
    levels = LevelMixture(settings, scale=8.0)
    levels.add(15)
    # the root is sqrt(1 + 15) = 4, its variance 0.5^2 * 8 / 4 = 0.5; root of chi as above
    sigma = math.sqrt(0.5) / (11 / 9) ** 1.5
    path = levels.paths([0.99], np.array([[1.0, 0.5, 9.0, -1.0, 2.0, 0.25]]))[0]
    # 0.9 of the level 4 + 0.5 sigma is left in the first step; 0.81 in the second, which drifts
    level = 4 + 0.5 * sigma
    assert path[0] == pytest.approx((0.9 * level - sigma) ** 2 - 1)
    assert path[1] == pytest.approx((0.81 * level + (2 * 0.32 / 0.6 + 0.25) * sigma) ** 2 - 1)
    # a root below 0 is a demand of 0, not its square
    assert levels.paths([0.99], np.array([[1.0, 0.0, 0.0, -99.0]]))[0, 0] == 0


def faded(y, left):
    """What each y is worth at the time of the last."""
    return [left ** (len(y) - 1 - s) * y[s] for s in range(len(y))]


def literal(demands, settings, scale):
    """The log-likelihoods of every level from the formulas, each step from the whole past."""
    weights = []
    for rooted in (False, True):
        for delta in settings.discounts:
            y = [math.sqrt(1 + d) if rooted else d for d in demands]
            guess = settings.spread * (math.sqrt(scale) / 2 if rooted else scale)
            left = math.sqrt(1 - settings.fade) if rooted else 1.0
            total = 0.0
            errors = []
            for t in range(1, len(y)):
                old = [delta ** (t - 1 - s) for s in range(t)]
                mean, n = left * np.dot(old, faded(y[:t], left)) / sum(old), sum(old)
                fade = [settings.variance_discount ** (t - 1 - s) for s in range(1, t)]
                first = settings.variance_discount ** (t - 1) * settings.freedom
                freedom = first + sum(fade)
                variance = (first * guess**2 + np.dot(fade, errors)) / freedom
                density = stats.t.logpdf(y[t], freedom, loc=mean, scale=math.sqrt(variance * (1 + 1 / n)))
                total = settings.forgetting * total + density - (math.log(2 * y[t]) if rooted else 0)
                errors.append((y[t] - mean) ** 2 / (1 + 1 / n))
            weights.append(total)
    return np.array(weights)


def test_agrees_with_a_literal_transcription():
    demands = np.random.default_rng(3).poisson(20, 15).astype(float)
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

"""Contexts made from a series: the level of the last steps."""

from types import SimpleNamespace

import numpy as np
import pytest

import commands
import ucbf
from ucbf import data
from ucbf.advice.judging import BY_LEVEL
from ucbf.advice.planner import Planner
from ucbf.advice.regimes import Regimes, _counts, _scores, advise_by_level, chosen_regimes, levels
from ucbf.advice.training import Training
from ucbf.following.levels import BORROWED, Scale, law_of
from ucbf.systems import Inventory

SHOP = Inventory(capacity=12, max_demand=12, price=9, unit_cost=4, holding=1, horizon=2)


def episodes_of(values, horizon=2):
    return data.episodes(data.Series(np.asarray(values, float).ravel(), None, "units", "made"), horizon)


def regimes_of_demand(K, seed=0):
    """[K, 2] demand of 2 or 9 a day, give or take one; it changes once in ten days."""
    rng, busy, found = np.random.default_rng(seed), False, []
    for _ in range(2 * K):
        busy = busy ^ (rng.random() < 0.1)
        found.append((9 if busy else 2) + rng.integers(-1, 2))
    return np.reshape(found, (K, 2))


def test_the_level_forgets_what_is_past_by_its_memory():
    # 0; 0.25*0 + 0.75*4 = 3; 0.25*3 + 0.75*(-8) = -5.25; nan counts as 0: 0.25*(-5.25) = -1.3125
    np.testing.assert_array_equal(levels(np.array([4.0, -8.0, np.nan]), 0.25), [0, 3, -5.25, -1.3125])


def test_contexts_are_those_before_each_step_and_the_one_that_followed():
    regimes = Regimes(0.0, (-1.0, 1.0), np.inf, 0.0, 0.0, 0)
    # levels before steps 0..3 and after: 0, 5, -5, 0, 5
    np.testing.assert_array_equal(regimes.contexts(np.array([[5.0, -5.0], [0.0, 5.0]])), [[1, 2, 0], [0, 1, 2]])
    assert regimes.names == ("low", "usual", "high")


def test_a_step_is_scored_by_students_t_from_those_before_it_in_its_context():
    r, context = np.array([1.0, 7.0, 2.0, 6.0, 4.0, 9.0, 3.0, 5.0]), np.array([0, 1, 0, 1, 0, 1, 0, 1])
    found = _scores(r, context, np.full(8, True))
    assert np.isnan(found[:6]).all()  # with fewer than three before it there is no score
    # context 0: 1, 2, 4 before the 3: mean 7/3, variance 14/9, which are estimates of three: times 1 + 1/3
    # with two degrees of freedom the density at z is 1 / (2 sqrt(2) (1 + z²/2)^(3/2)), over the scale
    scale = np.sqrt(14 / 9 * 4 / 3)
    for t, z in ((6, (3 - 7 / 3) / scale), (7, (5 - 22 / 3) / scale)):
        assert found[t] == pytest.approx(-np.log(2 * np.sqrt(2)) - 1.5 * np.log1p(z**2 / 2) - np.log(scale))


def test_contexts_are_made_where_one_day_tells_of_the_next_and_only_there():
    dependent = Training(SHOP, episodes_of(regimes_of_demand(60)), 1.0, None, None)
    found = chosen_regimes(dependent)
    assert found is not None
    assert found.score > found.score_without + 0.25
    shuffled = np.random.default_rng(1).permutation(regimes_of_demand(60).ravel())
    assert chosen_regimes(Training(SHOP, episodes_of(shuffled), 1.0, None, None)) is None
    assert chosen_regimes(Training(SHOP, episodes_of(regimes_of_demand(7)), 1.0, None, None)) is None


@pytest.mark.parametrize("pooled", [False, True])
def test_the_distribution_given_a_context_is_counted_with_a_little_of_what_all_show(pooled):
    values = regimes_of_demand(12, seed=3)
    training = Training(SHOP, episodes_of(values), 1.0, pooled, None, half_life=4.0)
    contexts = Regimes(0.0, (0.0,), np.inf, 0, 0, 0).contexts(values - values.mean(axis=0))
    preset = training.preset_of(0)
    system = preset.system.replace(contexts=2)
    law = ucbf.Disturbance.over(system.bins, law_of(_counts(training, 0, system, contexts)), 2)
    weights, R = 0.5 ** (np.arange(11, -1, -1) / 4), len(system.residuals)
    for h in range(2):
        counts = np.zeros((2, 2 * R))
        for k in range(12):
            for step in (0, 1) if pooled else (h,):
                demand = values[k, step] - preset.expected_amount[step] + preset.expected_amount[h]
                w = preset.expected_amount[h] - min(max(demand, 0), 12)
                column = contexts[k, step + 1] * R + list(system.residuals).index(w)
                counts[contexts[k, step], column] += weights[k]
        for e in range(2):
            shown = (counts[e] + BORROWED * counts.sum(axis=0) / counts.sum()) / (counts[e].sum() + BORROWED)
            np.testing.assert_allclose(law.row(h, e), shown, atol=1e-12)


def test_what_to_do_follows_the_level_and_earns_more():
    found = ucbf.learn(SHOP.replace(holding=3), episodes_of(regimes_of_demand(800)), half_life=np.inf)
    assert found.by_level is not None
    policy = found.by_level.policies[""]
    low, high = (policy.act(0, 0, context=e) for e in (0, len(found.by_level.regimes.names) - 1))
    assert low <= 4
    assert high >= 8
    row = next(row for row in found.comparison() if row["policy"] == BY_LEVEL)
    assert row["high"] < 0  # better than the policy that does not look
    page = ucbf.advice.summary(found)
    assert "What to do depends on how high the demand was in the last steps" in page
    assert "### By the level of the last steps, which is " in page
    # judged with contexts that follow from the amounts before each step, whatever the policy does
    demand = found.by_level.training.episodes.values
    means = found.by_level.training.profiles_of(np.arange(len(demand)))[""]
    again = found.by_level.regimes.contexts(demand - np.array(means))
    np.testing.assert_array_equal(found.by_level.contexts, again)
    assert found.by_level.now == again[-1, -1]


def test_a_plan_with_one_context_that_says_nothing_is_the_plan():
    rng = np.random.default_rng(5)
    training = Training(SHOP, episodes_of(rng.integers(0, 9, (40, 2))), 1.0, None, None)
    planner = Planner(training, ongoing=True)
    alike = np.zeros((40, 3), np.int64)
    blind = SimpleNamespace(
        half_life=training.recency.half_life,
        names=("low", "high"),
        memory=0.0,
        scale=Scale(0.0, (0.0,)),
        contexts=lambda r: alike,
    )
    advised = advise_by_level(planner, blind)
    quantities = advised.policies[""].quantities_in(0)
    np.testing.assert_array_equal(quantities, planner.episode(0).policy.quantities)


def test_the_command_writes_what_to_do_by_level_and_removes_what_is_old(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(280)
    for name, values in (("linked", regimes_of_demand(140)), ("plain", np.random.default_rng(0).poisson(5, 280))):
        lines = "".join(f"{d},{u}\n" for d, u in zip(days, np.ravel(values), strict=True))
        (tmp_path / f"{name}.csv").write_text("date,units\n" + lines)
    shop = ["learn", "inventory", "--price", 9, "--unit-cost", 4, "--no-pictures", "--out", "shop", "--demand"]
    done = commands.ucbf(*shop, "linked.csv", cwd=tmp_path)
    assert "policy_by_level.csv" in done.stdout
    header, first, *_ = (tmp_path / "shop/policy_by_level.csv").read_text().splitlines()
    assert header.startswith("level,day,stock,order")
    assert first.startswith("low,Mon,0")
    done = commands.ucbf(*shop, "plain.csv", cwd=tmp_path)
    assert "by the level" not in done.stdout
    assert not (tmp_path / "shop/policy_by_level.csv").exists()

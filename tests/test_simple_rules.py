"""Rules that are quick to ask: up to levels, by scores; the search for them; and what is fitted on top of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import ucbf
from ucbf import values
from ucbf.large import LargeSystem
from ucbf.planning import gain
from ucbf.systems import Inventory
from ucbf.values.scores import Scores, imitated_scores
from ucbf.values.searching import imitated, simple_rule
from ucbf.values.trials import Trial, narrowed
from ucbf.values.up_to import UpTo


def served(z):
    """One server for two stations in a row: a customer moves on where the server was (+1) and finished (+1)."""
    out = ((z[:, 2:] == 2) & (z[:, :2] > 0)).astype(np.int64)
    s = z[:, :2] - out
    s[:, 1] += out[:, 0]
    return np.clip(s, 0, 7)


def tandem(costs=(1.0, 3.0)):
    """Two stations in a row: as a LargeSystem, and as a world with tables.

    W: an arrival (0.35), and whether the server would finish at each station (0.9).
    """
    told = {
        "f": lambda s, a: np.concatenate([s, (np.arange(2) == a[:, None]).astype(np.int64)], axis=1),
        "reward": lambda s, a: -(s @ np.array(costs)),
        "horizon": None, "boundary": served, "low": [0, 0], "high": [7, 7], "actions": np.arange(2),
    }  # fmt: skip
    values_, pmf = [], []
    for come, first, second in np.ndindex(2, 2, 2):
        values_.append([come, 0, first, second])
        pmf.append(np.prod([p if x else 1 - p for x, p in ((come, 0.35), (first, 0.9), (second, 0.9))]))
    law = ucbf.Disturbance(pmf, values=values_)
    world = ucbf.World(ucbf.System(**told, disturbance_range=([0] * 4, [1, 0, 1, 1])), law, start=[0, 0])
    return LargeSystem(**told), law, world


def exact(world, rule):
    """The gain of a rule, from tables."""
    states = np.reshape(np.asarray(world.system.states), (world.system.n_states, -1))
    acts = rule(0, states)
    rows = np.reshape(np.asarray(world.system.actions), (world.system.n_actions, -1))
    return gain(world, (acts[:, None] == rows).all(axis=2).argmax(axis=1))


# -- rules by hand ----------------------------------------------------------------------------------


def test_the_largest_score_acts_among_the_actions_that_exist():
    system = LargeSystem(
        lambda s, a: s, lambda s, a: np.zeros(len(s)), horizon=None, boundary="clip", low=[0, 0], high=[9, 9],
        actions=[10, 20, 30], allowed=lambda s, a: (a < 30) | (s[:, 0] > 5),
    )  # fmt: skip
    rule = Scores(system, np.array([0.5, 0.0, 2.0]), np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]))
    # (1, 1): 1.5, 1, (2); (4, 1): 1.5, 4, (2); (6, 1): 1.5, 6, 2; (6, 9): 9.5; where 30 does not exist it does not act
    assert rule(0, np.array([[1, 1], [4, 1], [6, 1], [6, 9]]))[:, 0].tolist() == [10, 20, 20, 10]
    none = Scores(system, np.array([0.0, 0.0, 1.0]), np.zeros((3, 2)))
    assert none(0, np.array([[5, 0], [6, 0]]))[:, 0].tolist() == [10, 30]
    assert str(none) == "the largest of 3 scores"


def test_rules_say_what_they_do():
    system = Inventory(lead_time=3, horizon=None, backlog=0, capacity=20, max_order=9, max_demand=5).large

    def said(level, weights, most, gap=0.0):
        return str(
            UpTo(system, np.array([level, 0]), np.array([weights, [0.0] * 3]), np.array([most, 0]), np.array([gap, 0]))
        )

    assert said(12.0, [1.0, 1, 1], 9.0) == "up to 12 of all, at most 9; 0"
    assert said(12.0, [1.0, 0, 0], 9.0, 4.0) == "up to 12 of the first 1, at most 9, nothing below 4; 0"
    assert said(5.0, [0.0, 0, 0], 9.0) == "5; 0"
    assert said(9.5, [0.5, 1, 0.25], 7.0) == "up to 9.5 of all, weighted by 0.5, 1, 0.25, at most 7; 0"


def test_stacked_rules_act_as_each_does_by_itself():
    rng, n = np.random.default_rng(0), 50
    shop = Inventory(lead_time=3, horizon=None, capacity=30, max_order=9, max_demand=5).large
    levels = [
        UpTo(shop, np.array([level, 0.0]), np.array([w, [0.0] * 3]), np.array([most, 0]), np.array([gap, 0.0]))
        for level, w, most, gap in ((12.0, [1.0] * 3, 9.0, 0.0), (9.0, [0.3, 0.9, 1.1], 4.0, 3.0))
    ]
    scores = [Scores(tandem()[0], rng.normal(size=2), rng.normal(size=(2, 2))) for _ in range(3)]
    for rules, most in ((levels, 9), (scores, 8)):
        s = rng.integers(0, most, (n * len(rules), rules[0].system.n_axes))
        together = type(rules[0]).stacked(rules, n)(0, s)
        for i, rule in enumerate(rules):
            assert np.array_equal(together[i * n : (i + 1) * n], rule(0, s[i * n : (i + 1) * n]))


# -- searches ---------------------------------------------------------------------------------------


def test_numbers_are_narrowed_down_to_the_best():
    best = np.array([3.0, -2.0, 0.5])
    found, middle = narrowed(lambda rows: -((rows - best) ** 2).sum(axis=1), np.zeros(3), np.full(3, 2.0), 40, 20)
    assert found == pytest.approx(best, abs=0.01)
    assert middle == pytest.approx(best, abs=0.05)


def test_a_trial_pays_by_hand():
    # Each step pays the state; W is added: 0, then 1, then 1 + 2, ... from s = 0. Discounted by a half: 0 + 1/2 + 3/4.
    told = {"f": lambda s, a: s, "reward": lambda s, a: s[:, 0] * 1.0, "boundary": "clip", "low": [0], "high": [99]}
    w = np.array([[[1], [2], [4], [0]]])
    idle = [Scores(LargeSystem(**told, horizon=None, actions=[0]), np.zeros(1), np.zeros((1, 1)))]

    def worth(warm_up=1, **how):
        system = LargeSystem(**told, actions=[0], **how)
        return Trial(system, w[:, : how["horizon"] or 4], warm_up).worth(
            [Scores(system, np.zeros(1), np.zeros((1, 1)))]
        )[0]

    assert Trial(idle[0].system, w, 1).worth(idle * 2).tolist() == [(1 + 3 + 7) / 3] * 2
    assert worth(horizon=None, discount=0.5) == 0 + 1 / 2 + 3 / 4 + 7 / 8
    assert worth(horizon=3, discount=0.5, terminal=lambda s: 8.0 * s[:, 0]) == 0 + 1 / 2 + 3 / 4 + 8 * 7 / 8


@pytest.fixture(scope="module")
def backlogged():
    """Customers wait, and every order costs 20: some (s, S) rule is optimal. A line, with and without tables."""
    pmf = stats.poisson(3).pmf(np.arange(12))
    told = {
        "f": lambda s, a: s + a[:, None], "reward": lambda s, a: -20.0 * (a > 0), "horizon": None, "boundary": "clip",
        "low": [-20], "high": [40], "actions": np.arange(31), "allowed": lambda s, a: s[:, 0] + a <= 40,
        "landing": lambda z: -1.0 * np.maximum(z[:, 0], 0) - 9.0 * np.maximum(-z[:, 0], 0),
    }  # fmt: skip
    law = ucbf.Disturbance(pmf[::-1] / pmf.sum(), low=-11)
    rows = ucbf.Disturbance(law.pmf, values=law.values[:, None])
    return LargeSystem(**told), law, ucbf.World(ucbf.System(**told, disturbance_range=([-11], [0])), rows, start=[0])


def test_the_search_finds_an_optimal_rule_of_two_numbers(backlogged):
    system, law, world = backlogged
    rule, worth = values.search(system, law, kind="(s, S)", chains=200)
    best = ucbf.optimal(world).gain
    assert exact(world, rule) > best * 1.005  # of a cost: within half a percent
    assert worth == pytest.approx(exact(world, rule), rel=0.03)
    assert rule.gap[0] > 3
    assert exact(world, values.search(system, law, kind="base-stock")[0]) < 1.3 * best  # orders every day


def test_weights_are_found_that_beat_a_plain_base_stock():
    pmf = stats.poisson(5).pmf(np.arange(19))
    demand = ucbf.Disturbance(pmf / pmf.sum())
    shop = Inventory(
        lead_time=2, penalty=4, horizon=None, capacity=40, max_order=15, max_demand=18, price=0, unit_cost=0, holding=1
    )
    system, law, world = shop.large, shop.large_law(demand), shop.world(demand, start=[0, 0])
    costs = {}
    for kind in ("constant", "base-stock", "capped", "weighted"):
        rule, _ = values.search(system, law, kind=kind, chains=200)
        costs[kind] = -exact(world, lambda h, s, rule=rule: np.asarray(rule(h, s)))
    assert costs["base-stock"] == pytest.approx(4.64, abs=0.01)  # Zipkin 2008
    assert costs["weighted"] < costs["capped"] + 0.01 < costs["base-stock"] < costs["constant"]
    assert costs["weighted"] < 1.02 * 4.3953  # the optimum


def test_a_search_says_which_kinds_there_are():
    system, law, _ = tandem()
    with pytest.raises(ValueError, match="'scores'"):
        values.search(system, law, kind="score")
    continuous = LargeSystem(
        lambda s, a: s, lambda s, a: a, horizon=None, boundary="clip", low=[0], high=[1], action_low=0, action_high=1
    )
    with pytest.raises(ValueError, match="list some actions"):
        values.search(continuous, ucbf.Disturbance([1.0]), kind="scores")


# -- actions that are kinds -------------------------------------------------------------------------


@pytest.mark.parametrize("costs", [(1.0, 3.0), (3.0, 1.0)])
def test_a_queue_network_is_served_as_well_as_by_the_exact_plan(costs):
    system, law, world = tandem(costs)
    best = ucbf.optimal(world).gain
    rule = simple_rule(system, law)
    assert isinstance(rule, Scores)
    found = values.policy_iteration(system, law, samples=300, rounds=1)
    assert exact(world, found) > 1.01 * best  # of a cost
    assert found.worth.mean == pytest.approx(exact(world, found), rel=0.02)
    longest = exact(world, lambda h, s: s.argmax(axis=1)[:, None])
    assert longest < 1.1 * best


def test_a_rule_is_imitated_by_its_kind():
    system, _, _ = tandem()
    s = np.random.default_rng(0).integers(0, 8, (500, 2))
    rule = Scores(system, np.array([0.0, -1.5]), np.array([[1.0, 0.0], [0.0, 2.0]]))
    again = imitated(system, s, rule(0, s))
    assert isinstance(again, Scores)
    assert (again(0, s) == rule(0, s)).mean() > 0.97
    shop = Inventory(lead_time=2, horizon=None, capacity=20, max_order=9, max_demand=5).large
    s = np.random.default_rng(0).integers(0, 9, (500, 2))
    assert isinstance(imitated(shop, s, np.clip(10 - s.sum(axis=1, keepdims=True), 0, 9) * [1, 0]), UpTo)


def test_imitated_scores_never_choose_what_does_not_exist():
    system = LargeSystem(
        lambda s, a: s, lambda s, a: np.zeros(len(s)), horizon=None, boundary="clip", low=[0], high=[9],
        actions=[0, 1, 2], allowed=lambda s, a: (a < 2) | (s[:, 0] < 3),
    )  # fmt: skip
    s = np.arange(10)[:, None]
    acts = np.where(s < 3, 2, (s > 6).astype(np.int64))
    rule = imitated_scores(system, np.repeat(s, 20, axis=0), np.repeat(acts, 20, axis=0))
    assert rule(0, s)[:, 0].tolist() == acts[:, 0].tolist()

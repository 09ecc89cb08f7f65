"""Values that are fitted: LargeSystem, and ucbf.values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

import ucbf
from ucbf import values
from ucbf.kernels.jit import source
from ucbf.kernels.stores import look_ahead
from ucbf.planning import gain
from ucbf.systems import Inventory
from ucbf.values.ahead import Ahead
from ucbf.values.choosing import best_actions
from ucbf.values.evaluating import Equations, Work
from ucbf.values.pairs import Terms
from ucbf.values.paths import Outcomes, middle, walk
from ucbf.values.scores import Scores
from ucbf.values.up_to import UpTo, imitated_up_to


def puterman():
    """Puterman, 3.2.2: lost sales, capacity 3, act first; order 4 + 2u, holding 1 on s + a, revenue 8 a unit sold."""
    system = ucbf.LargeSystem(
        lambda s, a: s + a[:, None],
        lambda s, a: -4.0 * (a > 0) - 2.0 * a - (s[:, 0] + a) + 8.0 * (s[:, 0] + a),
        horizon=3,
        boundary="clip",
        low=[0],
        high=[3],
        actions=np.arange(4),
        landing=lambda z: -8.0 * np.maximum(z[:, 0], 0),
        allowed=lambda s, a: s[:, 0] + a <= 3,
    )
    return system, ucbf.Disturbance([0.25, 0.5, 0.25], low=-2)


def lost_sales(lead_time=2, penalty=4.0, **more):
    pmf = stats.poisson(5).pmf(np.arange(19))
    demand = ucbf.Disturbance(pmf / pmf.sum())
    shop = Inventory(
        lead_time=lead_time, penalty=penalty, horizon=None, capacity=40, max_order=15, max_demand=18, price=0,
        unit_cost=0, holding=1, **more,
    )  # fmt: skip
    return shop.large, shop.large_law(demand)


# -- the system -----------------------------------------------------------------------------------


def test_a_step_by_hand_of_a_store_with_orders_under_way():
    shop = Inventory(
        lead_time=3, horizon=None, capacity=9, max_order=4, max_demand=6, price=7, unit_cost=2, order_cost=3,
        holding=0.5, storage=0.25, penalty=11,
    )  # fmt: skip
    large = shop.large
    assert (large.n_axes, large.n_raw, large.horizon) == (3, 4, None)
    s, a, w = np.array([[5, 2, 1], [1, 4, 0]]), np.array([[3, 0], [0, 0]]), np.array([[-4, 0, 0, 0], [-3, 0, 0, 0]])
    earned, then = large.step(0, s, a, w)
    # 5 on the shelf, 4 sold: 4·7 - 1·0.5 - 5·0.25 - (3 + 3·2); then 1 + 2 on the shelf
    # 1 on the shelf, 3 wanted: 1·7 - 2·11 - 1·0.25; then 0 + 4
    assert earned.tolist() == [17.25, -15.25]
    assert then.tolist() == [[3, 1, 3], [4, 0, 0]]


def test_a_large_system_says_what_is_wrong():
    one = {"horizon": None, "boundary": "clip", "low": [0, 0], "high": [3, 3]}
    with pytest.raises(ValueError, match="sums|alone"):
        ucbf.LargeSystem(lambda s, a: s + a[:, None], lambda s, a: np.full(len(s), s.sum()), actions=[0, 1], **one)
    with pytest.raises(TypeError, match="action_low"):
        ucbf.LargeSystem(lambda s, a: s, lambda s, a: a, **one)
    with pytest.raises(ValueError, match="boundary as a function"):
        ucbf.LargeSystem(lambda s, a: s[:, :1], lambda s, a: a, actions=[0, 1], **one)
    with pytest.raises(ValueError, match=r"boundary gives shape \(8,\)"):
        ucbf.LargeSystem(lambda s, a: s, lambda s, a: a, actions=[0, 1], **{**one, "boundary": lambda z: z[:, 0]})
    with pytest.raises(TypeError, match="f failed when it was called with arrays of shape .*rows at once"):
        ucbf.LargeSystem(lambda s, a: s[:, 9], lambda s, a: a, actions=[0, 1], **one)
    with pytest.raises(ValueError, match=r"disturbance_range is 5; give \(low, high\)"):
        ucbf.LargeSystem(lambda s, a: s, lambda s, a: a, actions=[0, 1], disturbance_range=5, **one)
    with pytest.raises(ValueError, match="give one number for each axis of the states"):
        ucbf.LargeSystem(lambda s, a: s, lambda s, a: a, actions=[0, 1], **{**one, "low": [], "high": []})
    strict = ucbf.LargeSystem(lambda s, a: s, lambda s, a: a, actions=[0, 1], **{**one, "boundary": "strict"})
    with pytest.raises(ValueError, match="outside"):
        strict.met(np.array([[4, 0]]))
    with pytest.raises(ValueError, match="table holds them"):
        assert Inventory().large


def test_actions_that_do_not_exist_are_replaced_by_the_nearest_that_do():
    system, _ = puterman()
    s, a = np.array([[0], [2], [3], [1]]), np.array([[3], [3], [2], [1]])
    assert system.existing(0, s, a)[:, 0].tolist() == [3, 1, 0, 1]


# -- looking ahead ----------------------------------------------------------------------------------


@pytest.mark.parametrize("second", [{}, {"fast_cost": 9.0, "fast_lead_time": 0, "max_fast": 3, "backlog": 4},
                                    {"fast_cost": 9.0, "fast_lead_time": 1, "max_fast": 3, "backlog": 4}])  # fmt: skip
def test_the_kernel_follows_a_store_as_its_functions_do(second):
    shop = Inventory(
        lead_time=3, horizon=None, capacity=12, max_order=6, pack=2, max_demand=5, price=7, unit_cost=2, order_cost=3,
        holding=0.5, storage=0.25, penalty=11, **second,
    )  # fmt: skip
    system, law = shop.large, shop.large_law(ucbf.Disturbance([0.1, 0.2, 0.3, 0.2, 0.1, 0.1]))
    rng, m = np.random.default_rng(3), system.n_parts
    weights = rng.uniform(0.2, 1, (m, 3)) * (system.action_high > 0)[:, None]
    rule = UpTo(system, np.array([11.0, 4.0]) * (system.action_high > 0), weights, np.array([5.0, 2.0]), np.zeros(2))
    outcomes = Outcomes(system, law)
    ahead = Ahead(system, rule, outcomes, outcomes.paths(rng, 16, 6))
    s = rng.integers([0, 0, 0], [9, 5, 5], (20, 3))
    a = system.existing(0, s, system.actions[rng.integers(len(system.actions), size=20)])
    found = ahead.rewards(s, a)
    for n in range(20):  # by the functions: expected landing, then the path's disturbance
        for k in range(16):
            state, act = s[n : n + 1], a[n : n + 1]
            for j in range(6):
                x = system.after(0, state, act)
                expected = outcomes.pmf @ system.landed(0, x + outcomes.values)
                found[n, j] -= (system.paid(0, state, act)[0] + expected) / 16
                state = system.met(x + ahead.paths[k, j])
                act = rule(0, state)
    assert np.abs(found).max() < 1e-9
    one, two = np.zeros((20, 6)), np.zeros((20, 6))
    told = (system.compiled, ahead.levels, ahead.shelf_earns, s, a.astype(np.int64), ahead.paths[:, :, 0].copy())
    look_ahead(*told, one)
    source(look_ahead)(*told, two)
    assert np.array_equal(one, two)


def test_functions_are_followed_where_nothing_is_compiled():
    system, law = lost_sales(lead_time=3)
    system.compiled = None
    outcomes = Outcomes(system, law)
    rule = UpTo(system, np.array([20.0, 0]), np.array([[1.0] * 3, [0.0] * 3]), np.array([7.0, 0]), np.zeros(2))
    paths = outcomes.paths(np.random.default_rng(0), 8, 5)
    s, a = np.array([[6, 5, 4], [0, 3, 9]]), np.array([[3, 0], [7, 0]])
    found = Ahead(system, rule, outcomes, paths).rewards(s, a)
    for n in range(2):
        earned = [walk(system, lambda h, x: rule(h, x), *_first(system, s[n], a[n], w)) for w in paths]
        assert found[n, 1:] == pytest.approx(np.mean([e[0][0] for e in earned], axis=0))


def _first(system, s, a, w):
    """Where an action leads, and the disturbances that are left."""
    return system.step(0, s[None], a[None], w[:1])[1], w[None, 1:]


# -- disturbances -----------------------------------------------------------------------------------


def test_disturbances_around_states_are_weighed_rightly():
    system, _ = lost_sales()
    system.disturbance_range = None
    pmf = stats.geom(0.15).pmf(np.arange(1, 60))
    law = ucbf.Disturbance(pmf / pmf.sum(), low=-58)
    outcomes = Outcomes(system, law)
    w, weight = outcomes.around(np.random.default_rng(0), 4000)
    assert weight.sum() == pytest.approx(1)
    means = w[:, :, 0] @ weight
    assert means.mean() == pytest.approx(law.mean(), abs=4 * means.std() / np.sqrt(4000))
    assert means.std() < 0.5  # one draw: 6.1
    few = Outcomes(system, ucbf.Disturbance([0.5, 0.25, 0.25], low=-2))
    w, weight = few.around(np.random.default_rng(0), 2)
    assert (w[1, :, 0].tolist(), weight.tolist()) == ([-2, -1, 0], [0.5, 0.25, 0.25])


# -- rules ------------------------------------------------------------------------------------------


def test_a_rule_orders_up_to_its_level_by_hand():
    system, _ = lost_sales(lead_time=3)
    rule = UpTo(
        system, np.array([12.5, 0]), np.array([[1.0, 1.0, 0.5], [0.0] * 3]), np.array([6.0, 0]), np.array([2.0, 0])
    )
    # 12.5 - (3 + 2 + 2) = 5.5 -> 5; 12.5 - 1 - 0.5 = 11 -> 6; 12.5 - 12 = 0.5 < 2 -> 0
    assert rule(0, np.array([[3, 2, 4], [1, 0, 1], [12, 0, 0]]))[:, 0].tolist() == [5, 6, 0]


def test_the_search_finds_the_newsvendor():
    pmf = stats.poisson(6).pmf(np.arange(25))
    system = ucbf.LargeSystem(
        lambda s, a: s + a[:, None], lambda s, a: np.zeros(len(s)), horizon=1, boundary="clip", low=[0], high=[40],
        actions=np.arange(41), landing=lambda z: -np.maximum(z[:, 0], 0) - 4.0 * np.maximum(-z[:, 0], 0),
        allowed=lambda s, a: s[:, 0] + a <= 40,
    )  # fmt: skip
    law = ucbf.Disturbance(pmf[::-1] / pmf.sum(), low=-24)
    rule, worth = values.search(system, law, kind="base-stock", chains=20_000)
    assert rule.level[0] == 8
    assert worth == pytest.approx(-3.5701, abs=0.08)


def test_a_linear_rule_is_found_again_from_what_it_does():
    system, _ = lost_sales(lead_time=3)
    rule = UpTo(system, np.array([15.0, 0]), np.array([[0.4, 0.6, 0.9], [0.0] * 3]), np.array([9.0, 0]), np.zeros(2))
    s = np.random.default_rng(0).integers(0, 12, (3000, 3))
    again = imitated_up_to(system, s, rule(0, s))
    assert again.weights[0] == pytest.approx(rule.weights[0], abs=0.03)
    assert (again(0, s)[:, 0] == rule(0, s)[:, 0]).mean() > 0.9


def test_the_largest_action_is_a_bound_only_where_it_is_reached():
    system = ucbf.LargeSystem(
        lambda s, a: s, lambda s, a: a, horizon=None, boundary="clip", low=[-9.0], high=[9.0], action_low=-5,
        action_high=5,
    )  # fmt: skip
    s = np.random.default_rng(0).normal(size=(500, 1))
    free, bound = (imitated_up_to(system, s, np.minimum(1 - 0.5 * s, most)) for most in (5.0, 1.2))
    assert (free.most[0], bound.most[0]) == (5, 1.2)
    assert free(0, s) == pytest.approx(1 - 0.5 * s, abs=1e-3)


def test_the_search_finds_what_to_fill_up_among_eight_items():
    # Every day one item may be filled up by 6. A rule by scores is "what lasts least, if for fewer than 2 days":
    # scores -s_i / rate_i, and -2 for none of them. It loses 2.9 a day, and filling up whatever lasts least 6.3.
    rate, missed = np.arange(0.2, 1, 0.1), np.arange(9.0, 1, -1)
    w = -(np.random.default_rng(0).random((100, 8)) < rate).astype(int)
    system = ucbf.LargeSystem(
        lambda s, a: np.minimum(s + 6 * (np.arange(8) == a[:, None]), 12), lambda s, a: np.zeros(len(s)), horizon=None,
        boundary="clip", low=[0] * 8, high=[12] * 8, actions=np.arange(9),
        landing=lambda z: -0.1 * np.maximum(z, 0).sum(axis=1) - np.maximum(-z, 0) @ missed,
    )  # fmt: skip
    law = ucbf.Disturbance(values=w)
    rule, _ = values.search(system, law, kind="scores", chains=48, steps=100)
    scores = np.vstack([-np.diag(1 / rate), np.zeros(8)])
    least = Scores(system, np.array([0.0] * 8 + [-2]), scores)
    found, usual = (values.measured(system, law, one, chains=50, steps=300) for one in (rule, least))
    assert found.mean > usual.mean - 0.15


def test_clipped_states_stay_whole():
    system = ucbf.LargeSystem(
        lambda s, a: s + a[:, None], lambda s, a: np.zeros(len(s)), horizon=None, boundary="clip", low=[0], high=[3],
        actions=[0, 1],
    )  # fmt: skip
    assert system.met(np.array([[5], [2]])).dtype == np.int64
    half = ucbf.LargeSystem(
        lambda s, a: s + a[:, None], lambda s, a: np.zeros(len(s)), horizon=None, boundary="clip", low=[0], high=[2.5],
        actions=[0, 1],
    )  # fmt: skip
    assert half.met(np.array([[5], [2]])).tolist() == [[2.5], [2]]


# -- choosing ---------------------------------------------------------------------------------------


def test_continuous_and_many_actions_are_climbed_to_the_best():
    plain = {"horizon": None, "boundary": "clip", "low": [0], "high": [1]}
    smooth = ucbf.LargeSystem(
        lambda s, a: s, lambda s, a: np.zeros(len(s)), action_low=[0, -1], action_high=[4, 1], **plain
    )
    s = np.array([[0.0], [1.0]])

    def worth(s, a):
        return -((a[:, 0] - 1 - s[:, 0]) ** 2) - 2 * (a[:, 1] - 0.3) ** 2 + 0.5 * a[:, 0] * a[:, 1]

    found, value = best_actions(smooth, 0, s, np.zeros((2, 2)), worth)
    grid = np.stack(np.meshgrid(np.linspace(0, 4, 401), np.linspace(-1, 1, 201)), axis=-1).reshape(-1, 2)
    for i in range(2):
        assert value[i] > worth(np.repeat(s[i : i + 1], len(grid), axis=0), grid).max() - 2e-3
    assert value == pytest.approx(worth(s, found))
    many = ucbf.LargeSystem(lambda s, a: s, lambda s, a: np.zeros(len(s)), actions=np.arange(100), **plain)
    found, _ = best_actions(many, 0, s, np.array([[80], [3]]), lambda s, a: -np.abs(a[:, 0] - 40.4 + s[:, 0]))
    assert found[:, 0].tolist() == [40, 39]

    def jump(at_zero):  # 60 is worth -25, and 0 is worth at_zero - 60
        return lambda s, a: -np.abs(a[:, 0] - 60.0) - 25.0 * (a[:, 0] > 0) + at_zero * (a[:, 0] == 0)

    assert best_actions(many, 0, s, np.array([[55], [55]]), jump(30.0))[0][:, 0].tolist() == [60, 60]
    assert best_actions(many, 0, s, np.array([[55], [55]]), jump(40.0))[0][:, 0].tolist() == [0, 0]


# -- with an end ------------------------------------------------------------------------------------


def test_with_every_anchor_the_fit_is_the_plan():
    system, law = puterman()
    for fit in (values.Hats(), values.Nearest(3)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", values.FitWarning)
            plan = values.backward_induction(system, law, fit=fit, states=np.arange(4)[:, None])
        acts, v = plan.chosen(0, np.arange(4)[:, None])
        assert v == pytest.approx([67 / 16, 129 / 16, 97 / 8, 227 / 16], abs=1e-12)
        assert acts[:, 0].tolist() == [3, 0, 0, 0]
        assert plan(1, np.array([[0]]))[0, 0] == 2
        assert plan.error.max() < 1e-12
        assert plan.promised == pytest.approx(67 / 16)
        assert abs(plan.worth.mean - 67 / 16) < 4 * plan.worth.error


def test_hats_interpolate_and_never_leave_the_range_of_the_anchors():
    corners = np.array([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]])
    predict = values.Hats().at(corners, np.array([1.0, 3.0, 5.0, 11.0]))
    # at (1, 1): shares 3/4, 1/4 of x and 1/2, 1/2 of y: (1 + 3)·3/8 + (5 + 11)·1/8
    assert predict(np.array([[1.0, 1.0], [9.0, -3.0]])).tolist() == [3.5, 5.0]
    near = values.Nearest(2).at(np.array([[0.0], [3.0], [9.0]]), np.array([1.0, 4.0, 100.0]))
    assert near(np.array([[1.0], [3.0]])) == pytest.approx([1 * 2 / 3 + 4 / 3, 4.0])


def test_a_poor_fit_says_so():
    system, law = puterman()
    flat = values.Linear(lambda x: np.ones((len(x), 1)))
    with pytest.warns(values.FitWarning, match="less than the base|errs by"):
        values.backward_induction(system, law, fit=flat)


def test_any_regressor_may_be_fitted():
    class Line:
        def fit(self, X, y):
            self.w = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]

        def predict(self, X):
            return np.column_stack([X, np.ones(len(X))]) @ self.w

    x = np.arange(6.0)[:, None]
    assert values.Regressor(Line()).at(x, 3 * x[:, 0] + 1)(np.array([[10.0]])) == pytest.approx([31])
    with pytest.raises(TypeError, match="fit"):
        values.Regressor(3)


# -- without an end ---------------------------------------------------------------------------------


def test_lost_sales_are_near_the_optimum_and_judged_rightly():
    system, law = lost_sales(lead_time=2)
    found = values.policy_iteration(system, law, samples=300, rounds=2, paths=64)
    assert -found.worth.mean < 4.3953 * 1.005  # Zipkin 2008, recomputed: 4.3953; best base-stock 4.64
    assert found.worth.error < 0.02
    assert found.worth.mean >= found.base_worth.mean
    plain = values.measured(system, law, found, chains=300, steps=200, warm_up=40)
    assert abs(plain.mean - found.worth.mean) < 4 * plain.error
    assert "by simulation" in str(found)


@pytest.mark.slow
def test_what_is_measured_does_not_depend_on_how_good_q_is():
    system, law = lost_sales(lead_time=2)
    base = values.search(system, law)[0]
    found = values.policy_iteration(system, law, base=base, samples=200, rounds=1, paths=16)
    far = UpTo(system, base.level + 4, base.weights, base.most, base.gap)
    plain = values.measured(system, law, far, chains=1000, steps=400)
    judged = found.measured(law, far, samples=4000)
    assert abs(plain.mean - judged.mean) < 4 * np.hypot(plain.error, judged.error)


@pytest.mark.slow
def test_a_discounted_worth_is_that_of_the_first_state():
    shop = Inventory(
        lead_time=2, penalty=4, horizon=None, discount=0.9, capacity=20, max_order=8, max_demand=4, price=0,
        unit_cost=1, holding=1,
    )  # fmt: skip
    demand = ucbf.Disturbance([0.1, 0.2, 0.4, 0.2, 0.1])
    exact = ucbf.optimal(shop.world(demand, start=[0, 0]))
    found = values.policy_iteration(shop.large, shop.large_law(demand), samples=400, rounds=2, paths=64)
    best = float(exact.v[0, 0])
    assert found.worth.mean == pytest.approx(best, abs=4 * found.worth.error + 0.01 * abs(best))


def test_nothing_that_loses_to_its_base_is_returned(monkeypatch):
    system, law = lost_sales(lead_time=2)
    monkeypatch.setattr("ucbf.values.evaluating.RIDGES", (-1.0,))  # equations that are wrong
    monkeypatch.setattr(Work, "far_ahead", Work.begun)  # and nothing without them
    with pytest.warns(values.FitWarning, match="the base is returned"):
        found = values.policy_iteration(system, law, samples=100, rounds=1, paths=8)
    assert found.is_base
    assert found.worth == found.base_worth
    assert -found.worth.mean < 4.75  # a capped base-stock costs 4.64 at best


def test_where_a_fit_misleads_a_long_look_ahead_is_taken(monkeypatch):
    system, law = lost_sales(lead_time=2)
    base = UpTo(system, np.array([20.0, 0]), np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([15.0, 0]), np.zeros(2))
    monkeypatch.setattr(Equations, "solved", lambda self: np.full(self.left.shape[1] - 1, 50.0))
    monkeypatch.setattr("ucbf.values.iteration.REBASED", 0)
    found = values.policy_iteration(system, law, base=base, samples=100, rounds=1, paths=64)
    assert not found.is_base
    assert found.steps_ahead == 40
    assert found.worth.mean > found.base_worth.mean


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_what_is_found_costs_no_more_than_its_base_and_little_more_than_the_optimum(seed):
    rng = np.random.default_rng(seed)
    demand = ucbf.Disturbance(rng.dirichlet(np.full(5, 0.7)))
    shop = Inventory(
        lead_time=int(rng.integers(1, 4)), penalty=float(rng.uniform(2, 20)), holding=float(rng.uniform(0.5, 2)),
        order_cost=float(rng.choice([0, 4])), price=0, unit_cost=float(rng.uniform(0, 2)), horizon=None, capacity=14,
        max_order=6, max_demand=4,
    )  # fmt: skip
    world = shop.world(demand, start=[0] * shop.lead_time)
    states = np.reshape(np.asarray(world.system.states), (world.system.n_states, -1))
    rows = np.reshape(np.asarray(world.system.actions), (world.system.n_actions, -1))

    def exact(rule):
        acts = rule(0, states)[:, : rows.shape[1]]
        return gain(world, (acts[:, None] == rows).all(axis=2).argmax(axis=1))

    found = values.policy_iteration(shop.large, shop.large_law(demand), seed=seed, paths=64)
    best = ucbf.optimal(world).gain
    assert exact(found) >= exact(found.base) - 2e-3 * abs(best)
    assert exact(found) >= best - 0.01 * abs(best)
    assert abs(found.worth.mean - exact(found)) < 5 * found.worth.error + 1e-6


def test_an_estimate_that_says_little_says_so():
    rare = ucbf.LargeSystem(  # once in 2,000 steps all is lost, whatever is done
        lambda s, a: s, lambda s, a: 0.001 * a, horizon=None, boundary=lambda z: np.zeros((len(z), 1), np.int64),
        low=[0], high=[1], actions=[0, 1], landing=lambda z: -1000.0 * (z[:, 0] == 1),
    )  # fmt: skip
    law = ucbf.Disturbance([1 - 5e-4, *np.full(50, 1e-5)], values=[[0], [1], *([[w] for w in range(-2, -51, -1)])])
    with pytest.warns(values.FitWarning, match="known only as"):
        values.policy_iteration(rare, law, samples=100, rounds=1, paths=8)


def test_progress_is_told_up_to_the_end():
    system, law = lost_sales(lead_time=2)
    told = []
    values.policy_iteration(system, law, samples=100, rounds=2, paths=8, progress=lambda *done: told.append(done))
    assert told == sorted(told)
    assert told[0][0] == 1
    assert told[-1][0] == told[-1][1]
    assert len({total for _, total in told}) == 1
    told.clear()
    stock, demand = puterman()
    values.backward_induction(stock, demand, fit=values.Hats(), progress=lambda *done: told.append(done))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_products_are_terms_only_where_there_are_states_enough():
    rng = np.random.default_rng(0)
    ahead = np.zeros((400, 2))
    counts = [Terms.of(rng.normal(size=(400, k)), ahead).centre.size for k in (3, 12, 45, 80)]
    # 400 states are enough for 100 terms: 3 + 6 + 2; 12 + 78 + 2; 45 + 45 + 2 (1,035 products); 80 + 2 (squares: 162)
    assert counts == [3 + 6 + 2, 12 + 78 + 2, 45 + 45 + 2, 80 + 2]
    x = rng.normal(size=(400, 2)) * [1.0, 3.0] + [5.0, 0.0]
    terms = Terms.of(x, rng.normal(size=(400, 1)))
    found = terms(x, ahead[:, :1])
    assert found[:, :5].mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert found[:, :5].std(axis=0) == pytest.approx(1)


def test_paths_go_on_until_what_is_earned_moves_no_more():
    def walking(step):  # pays the state, which goes up to 1,000 by so many a step
        return ucbf.LargeSystem(
            lambda s, a: np.minimum(s + step, 1000), lambda s, a: s[:, 0] / 1.0, horizon=None, boundary="clip",
            low=[0], high=[1000], actions=[0],
        )  # fmt: skip

    def idle(h, s):
        return np.zeros((len(s), 1), np.int64)

    for step, reached in ((1000, 1000), (1, 1000), (0, 0)):
        system = walking(step)
        work = Work(system, Outcomes(system, ucbf.Disturbance([1.0])), np.random.default_rng(0), np.array([0]), 100)
        work.begin(idle)
        assert (work.first[::10] == 0).all()  # some begin anew
        assert (np.delete(work.first, np.arange(0, 50, 10), axis=0) == reached).all()
    calls = []
    work = Work(
        walking(500), Outcomes(walking(500), ucbf.Disturbance([1.0])), np.random.default_rng(0), np.array([0]), 100
    )
    work._settled(work.first, lambda h, s: calls.append(0) or idle(h, s), 40)
    assert len(calls) == 40  # what moves in the first steps only has settled


def test_rules_are_judged_on_the_same_disturbances():
    system, law = lost_sales(lead_time=2)
    base = values.search(system, law)[0]
    work = Work(system, Outcomes(system, law), np.random.default_rng(0), np.array([0, 0]), 200)
    q = work.begun(base, 16)
    there = work.visited(base, 7)
    one, again, other = (work.judge(base, q, work.visited(base, seed), seed) for seed in (7, 7, 8))
    assert one.over(again).mean == one.over(again).error == 0
    assert one.over(other).error > 0
    assert one.by_path.mean() == one.worth.mean
    less = UpTo(system, base.level - 3, base.weights, base.most, base.gap)
    paired = work.judge(less, q, work.visited(less, 7), 7).over(one)
    assert paired.mean < -2 * paired.error
    assert len(work.visited(base, 7, times=3)) == 3 * len(there)


def test_ends_and_no_ends_are_told_apart():
    system, law = puterman()
    with pytest.raises(ValueError, match="backward_induction"):
        values.policy_iteration(system, law)
    endless, law = lost_sales()
    with pytest.raises(ValueError, match="policy_iteration"):
        values.backward_induction(endless, law)
    with pytest.raises(ValueError, match="one for each"):
        Outcomes(endless, ucbf.Disturbance(values=[[1, 2, 3, 4, 5, 6]]))
    assert middle(endless, 2).tolist() == [[0, 0], [0, 0]]


QUICK = {"samples": 100, "rounds": 1, "paths": 4}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rounds": 0}, "rounds is 0; it must be 1 or more"),
        ({"paths": 0}, "paths is 0; it must be 1 or more"),
        ({"samples": 10}, "samples is 10; it must be 100 or more"),
        ({"seed": -1}, "seed is -1; it must be 0 or more"),
        ({"start": [1]}, r"start has shape \(1,\); give one state: \[2\]"),
        ({"start": [1, 99]}, "start has .*99.*outside .*; give states of the system"),
        ({"start": [1, 0.5]}, "0.5; every entry must be a whole number"),
        ({"base": 3}, "base is 3; give a rule"),
        ({"base": lambda s: s}, "base failed when it was called with step 0 and states of shape"),
        ({"base": lambda h, s: np.zeros(len(s))}, "base gives shape .*; it must be .* a row for each state"),
        ({"base": lambda h, s: np.full((len(s), 2), 99)}, r"base takes action \[99 99\] in state .* not exist there"),
    ],
)
def test_what_is_wrong_with_a_fit_is_said_before_any_work(options, said, monkeypatch):
    monkeypatch.setattr("ucbf.values.iteration.Work.begun", lambda *_: pytest.fail("work was done"))
    monkeypatch.setattr("ucbf.values.iteration.simple_rule", lambda *_: pytest.fail("work was done"))
    with pytest.raises((ValueError, TypeError), match=said):
        values.policy_iteration(*lost_sales(), **{**QUICK, **options})


def test_what_else_is_wrong_is_said_before_any_work():
    system, law = lost_sales()
    demand = ucbf.Disturbance([0.5, 0.5])  # and W is minus the demand
    with pytest.raises(ValueError, match=r"law gives W = \[1 0 0\], outside the declared .*large_law"):
        values.policy_iteration(system, demand, **QUICK)
    with pytest.raises(TypeError, match="LargeSystem"):
        values.policy_iteration(Inventory().system, law)
    with pytest.raises(TypeError, match="LargeSystem"):
        values.search(Inventory().system, law)
    with pytest.raises(ValueError, match="chains is 0; it must be 1 or more"):
        values.search(system, law, chains=0)
    with pytest.raises(ValueError, match="chains is 1; it must be 2 or more"):
        values.measured(system, law, lambda h, s: s, chains=1)
    stock, demand = puterman()
    for options, said in (
        ({"fit": "hats"}, "fit is 'hats'; give values.Hats"),
        ({"states": [1, 2]}, r"states has shape \(2,\); give \[N, 1\]"),
        ({"states": [[5]]}, "outside"),
        ({"fit": values.Linear(lambda x: np.zeros(3))}, r"features gives shape \(3,\)"),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            values.backward_induction(stock, demand, **options)
    for made, options in ((values.Nearest, [0]), (values.Hats, [0]), (values.Hats, [[3, -1]]), (values.Linear, [3])):
        with pytest.raises((ValueError, TypeError), match="must be 1 or more|give a function"):
            made(*options)


# -- an agent ---------------------------------------------------------------------------------------


def small_shop():
    return Inventory(
        lead_time=2, horizon=None, capacity=12, max_order=5, max_demand=4, price=0, unit_cost=0, holding=1, penalty=9
    )


OPTIONS = {"samples": 100, "rounds": 1, "paths": 16}


def test_an_agent_learns_the_law_also_where_the_boundary_hides_it():
    shop = small_shop()
    agent = ucbf.UCBVIf(shop.large, values=OPTIONS)
    rng, s = np.random.default_rng(0), np.array([0, 0])
    for _ in range(400):
        w = np.array([-rng.choice(5, p=[0.1, 0.2, 0.4, 0.2, 0.1]), 0, 0])
        a = np.array([2, 0])
        then = shop.large.step(0, s[None], a[None], w[None])[1][0]
        agent.observe(0, s, a, then)
        s = then
    assert agent.law.pmf[0] == pytest.approx([0.1, 0.2, 0.4, 0.2, 0.1], abs=0.08)
    assert len(agent.sets) > 5  # some were hidden
    with pytest.raises(ValueError, match="explains this transition"):
        agent.observe(0, [0, 0], [0, 0], [3, 0])


def test_an_agent_fits_when_due_and_goes_on_as_it_was_saved(tmp_path):
    shop = small_shop()
    agent = ucbf.UCBVIf(shop.large, values=OPTIONS)
    agent.warm_start([[-2, 0, 0]] * 15 + [[-1, 0, 0]] * 10)
    first = agent.act(0, [1, 2])
    fitted = agent.rule
    agent.observe(0, [4, 0], [1, 0], [2, 1])  # W was -2
    assert agent.act(0, [1, 2]).tolist() == first.tolist()
    assert agent.rule is fitted  # 26 < 1.6 · 25
    agent.save(tmp_path / "agent.npz")
    again = ucbf.load(tmp_path / "agent.npz", system=shop.large)
    s = np.random.default_rng(1).integers(0, 5, (50, 2))
    assert np.array_equal(agent.rule(0, s), again.rule(0, s))
    assert np.array_equal(agent.law.pmf, again.law.pmf)
    for one in (agent, again):
        one.warm_start([[-3, 0, 0]] * 14)  # 40 in all: due
    assert agent.rule is not fitted
    assert np.array_equal(agent.rule(0, s), again.rule(0, s))
    with pytest.raises(ValueError, match="disturbance_range"):
        ucbf.load(tmp_path / "agent.npz", system=lost_sales()[0])
    with pytest.raises(ValueError, match="another landing; state the system as it was"):
        ucbf.load(tmp_path / "agent.npz", system=shop.replace(penalty=8).large)
    with pytest.raises(ValueError, match=r"state it again: load\(path, system="):
        ucbf.load(tmp_path / "agent.npz")
    told = ucbf.UCBVIf(shop.large, values={**OPTIONS, "base": lambda h, s: s})
    with pytest.raises(TypeError, match="base of values is .*cannot be saved"):
        told.save(tmp_path / "agent.npz")


def test_an_agent_that_fits_says_what_it_needs():
    with pytest.raises(TypeError, match="LargeSystem"):
        ucbf.UCBVIf(small_shop().system, values="fitted")
    with pytest.raises(TypeError, match="dictionary"):
        ucbf.UCBVIf(small_shop().large, values=3)
    with pytest.raises(ValueError, match="disturbance_range"):
        ucbf.UCBVIf(puterman()[0])
    with pytest.raises(ValueError, match="unknown option of values 'sampels'; did you mean 'samples'"):
        ucbf.UCBVIf(small_shop().large, values={"sampels": 100})
    agent = ucbf.UCBVIf(small_shop().large, values=OPTIONS)
    for asked, said in (
        (lambda: agent.act(-1, [0, 0]), "h is -1"),
        (lambda: agent.act(0, [0]), r"s has shape \(1,\); give one state"),
        (lambda: agent.observe(0, [0, 0], [9, 0], [0, 9]), r"a is \[9, 0\] in state \[0 0\]; give an action"),
        (lambda: agent.observe(0, [0, 0], [1, 0], [0]), "next_s has shape"),
        (lambda: agent.observe(0, [0, 0], [1, 0], [0, 1], disturbance=-1), r"give \[3\]"),
        (lambda: agent.warm_start([1, 2]), r"disturbances has shape \(2,\); give \[K, 3\]"),
        (lambda: agent.warm_start([[5, 0, 0]]), r"explains disturbance \[5"),
    ):
        with pytest.raises(ValueError, match=said):
            asked()
    assert agent.steps == 0
    with pytest.raises(TypeError, match=r"use ucbf\.simulate_large"):
        ucbf.simulate(agent, small_shop().world(), steps=5)
    with pytest.raises(TypeError, match=r"give a ucbf\.UCBVIf\(system, values='fitted'\), or use ucbf\.simulate"):
        ucbf.simulate_large(ucbf.UCBVIf(small_shop().system), small_shop().large_law(ucbf.Disturbance([1.0])), 5)


def test_disturbances_of_one_coordinate_are_numbers():
    system = ucbf.LargeSystem(
        lambda s, a: s + a[:, None], lambda s, a: -1.0 * a, horizon=None, boundary="clip", low=[0], high=[9],
        actions=[0, 1], disturbance_range=([-2], [0]),
    )  # fmt: skip
    agent = ucbf.UCBVIf(system, values=OPTIONS)
    agent.warm_start([-2, -2, 0])
    agent.observe(0, 5, 1, 5, disturbance=-1)
    agent.observe(0, 5, 1, 4)  # W was -2
    assert agent.law.pmf[0] * 6 == pytest.approx([3 + 1 / 3, 1 + 1 / 3, 1 + 1 / 3])


@pytest.mark.slow
def test_an_agent_is_simulated_and_its_gap_estimated():
    shop = small_shop()
    law = shop.large_law(ucbf.Disturbance([0.1, 0.2, 0.4, 0.2, 0.1]))
    told = []
    run = ucbf.simulate_large(
        ucbf.UCBVIf(shop.large, values=OPTIONS), law, 25, progress=lambda *done: told.append(done)
    )
    assert told == [(i, 26) for i in range(1, 27)]
    assert run.rewards.shape == (25,)
    assert run.gap.mean == pytest.approx(run.told.mean - run.worth.mean)
    assert run.gap.mean > -4 * run.gap.error - 0.05
    assert f"estimates by simulation: {run.worth} a step, told the law {run.told}, gap {run.gap}" in str(run)

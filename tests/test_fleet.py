"""Fleets: each item gets what an agent that sees it alone would get."""

import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ucbf
from ucbf.kernels.fleet import runs_of
from ucbf.planning import induction

SHOP = ucbf.systems.Inventory(capacity=8, max_order=5, max_demand=6, horizon=4)


def random_fleet(seed, n=7, shop=SHOP, **given):
    rng = np.random.default_rng(seed)
    costs = {"price": rng.uniform(5, 20, n), "unit_cost": rng.uniform(1, 5, n), "order_cost": rng.uniform(0, 5, n)}
    fleet = ucbf.Fleet(shop, costs, **given)
    k = 40 * n
    seen = rng.integers(0, n, k), rng.integers(0, shop.n_steps, k), -rng.integers(0, 7, k)
    fleet.add(*seen)
    return fleet, seen


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=15)
def test_each_item_gets_the_very_plan_that_it_would_get_alone(seed, stationary):
    fleet, _ = random_fleet(seed, stationary=stationary)
    for i in range(len(fleet)):
        m = fleet.system_of(i).mechanics
        law = fleet.believed(np.array([i]), True)[0]
        v, _, policy = induction(m, m.offsets, law)
        np.testing.assert_array_equal(fleet.values[i], v[0])
        np.testing.assert_array_equal(fleet.policies[i], policy)


def test_where_actions_lead_by_hand():
    # Stocks 0 to 3, orders up to 2, no more than fit: action a leads s to s + a, and exists for s = 0 .. 3 - a.
    stock = {"boundary": "clip", "n_states": 4, "n_actions": 3, "disturbance_range": (-2, 0)}
    order = {"f": lambda s, a: s + a, "reward": lambda s, a: -1.0 * a, "horizon": 2, "landing": lambda z: 1.0 * z}
    full = stock | order | {"allowed": lambda s, a: s + a <= 3}
    assert runs_of(ucbf.System(**full).mechanics).tolist() == [[0, 1, 2], [0, 0, 0], [4, 3, 2]]
    # Sales: action a leads s to s - a, and exists for s = a .. 3, but for action 1 in state 2.
    sold = full | {"f": lambda s, a: s - a, "allowed": lambda s, a: (s >= a) & ((s != 2) | (a != 1))}
    assert runs_of(ucbf.System(**sold).mechanics).tolist() == [[0, -1, -2], [0, 1, 2], [4, 4, 4]]
    for other in ({"f": lambda s, a: 3 - s}, {"f": lambda h, s, a: s + a + h}):
        assert runs_of(ucbf.System(**full | {"allowed": True} | other).mechanics) is None
    never = full | {"allowed": lambda s, a: a < 2}
    assert runs_of(ucbf.System(**never).mechanics) is None


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_plans_made_for_one_action_after_the_other_are_the_same(seed):
    rng = np.random.default_rng(seed)
    S, A, H = (int(n) for n in rng.integers(1, (9, 6, 4)))
    exists = rng.random((S, A)) < 0.6
    exists[:, 0] = True
    system = ucbf.System(
        lambda s, a: s + a,
        rng.integers(0, 3, (H, S, A)) / 2.0,  # many actions tie
        H,
        "clip",
        landing=lambda z: -0.5 * abs(z),
        terminal=rng.random(S),
        allowed=exists,
        disturbance_range=(-3, 1),
        discount=0.9,
    )
    fleet = ucbf.Fleet(system, n_items=2)
    fleet.add([0, 1, 1], rng.integers(0, H, 3), rng.integers(-3, 2, 3))
    assert (fleet._runs is not None) == exists.any(axis=0).all()
    for i in range(2):
        m = fleet.system_of(i).mechanics
        v, _, policy = induction(m, m.offsets, fleet.believed(np.array([i]), True)[0])
        np.testing.assert_array_equal(fleet.values[i], v[0])
        np.testing.assert_array_equal(fleet.policies[i], policy)


@pytest.mark.parametrize("stationary", [True, False])
def test_each_item_knows_and_does_what_ucbvi_f_would(stationary):
    fleet, (items, steps, w) = random_fleet(3, stationary=stationary)
    for i in range(len(fleet)):
        preset = SHOP.replace(**dict(zip(fleet.names, fleet.costs[i].tolist(), strict=True)))
        agent = ucbf.UCBVIf(preset.system, stationary=stationary)
        for h, one in zip(steps[items == i], w[items == i], strict=True):
            agent.learner.law.counts[0 if stationary else h, one - preset.system.residuals[0]] += 1
            agent.learner.stale[0] = 1
        np.testing.assert_allclose(fleet.values[i], agent.plan.v[0], rtol=1e-12)
        np.testing.assert_array_equal(fleet.policies[i], agent.policy)
        np.testing.assert_allclose(fleet.distribution_of(i).pmf, agent.law.pmf, rtol=1e-12)


def test_one_item_by_hand():
    # One day, room for one, demand 0 or 1, seen once each. Stock 0: ordering 1 costs 2 and sells for 10 half of the
    # time; what is left brings its salvage value 1 and costs 3 to hold: -2 + 0.5 10 + 0.5 (1 - 3) = 2. Stock 1: 4.
    shop = ucbf.systems.Inventory(capacity=1, max_demand=1, horizon=1, salvage=1)
    fleet = ucbf.Fleet(shop, {"price": [10, 5], "unit_cost": [2, 2], "holding": [3, 3]})
    fleet.add([0, 0, 1, 1], [0, 0, 0, 0], [0, -1, 0, -1])
    np.testing.assert_allclose(fleet.values, [[2, 4], [0, 1.5]], rtol=0, atol=1e-14)
    # Item 1: -2 + 0.5 5 + 0.5 (1 - 3) = -0.5, so that nothing is ordered.
    np.testing.assert_array_equal(fleet.policies[:, 0], [[1, 0], [0, 0]])
    np.testing.assert_array_equal(fleet.act(0, [0, 0]), [1, 0])


def test_what_a_boundary_hides_counts_as_for_ucbvi_f():
    rng, n = np.random.default_rng(1), 5
    fleet = ucbf.Fleet(SHOP, n_items=n)
    agents = [ucbf.UCBVIf(SHOP.system) for _ in range(n)]
    s = np.full(n, 4)
    for k in range(20):
        h = k % SHOP.n_steps
        a = fleet.act(h, s)
        s_next = np.maximum(s + a - rng.integers(0, 7, n), 0)
        fleet.observe(h, s, a, s_next)
        for i, agent in enumerate(agents):
            agent.observe(h, int(s[i]), int(a[i]), int(s_next[i]))
        s = s_next
    for i, agent in enumerate(agents):
        rows = slice(i * SHOP.n_steps, (i + 1) * SHOP.n_steps)
        for name in ("counts", "below", "above"):
            np.testing.assert_array_equal(getattr(fleet.knowledge.law, name)[rows], getattr(agent.learner.law, name))
        np.testing.assert_array_equal(fleet.policies[i], agent.policy)
    assert fleet.knowledge.law.below.sum() > 0


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_without_an_end(discount):
    shop = SHOP.replace(horizon=None, period=3, review=3, discount=discount)
    fleet, _ = random_fleet(5, shop=shop)
    for i in range(3):
        plan = ucbf.planning.plan(fleet.system_of(i), fleet.distribution_of(i))
        np.testing.assert_array_equal(fleet.policies[i], plan.policy)
        if discount == 1:
            assert abs(fleet.gains[i] - plan.gain) < 1e-8
        else:
            np.testing.assert_allclose(fleet.values[i], plan.v[0], rtol=0, atol=1e-7)


def test_a_plan_that_does_not_settle_says_so():
    stuck = ucbf.System(np.array([[0], [1]]), np.array([[1.0], [2.0]]), None, "clip", disturbance_range=(0, 0))
    fleet = ucbf.Fleet(stuck, n_items=1)  # whoever begins in 0 gets 1 a step for ever, and in 1 gets 2
    assert np.isnan(fleet.gains[0])
    assert fleet.unsettled[0]


def test_neither_the_workers_nor_the_order_of_news_matter(monkeypatch):
    monkeypatch.setattr("ucbf.fleet.items.BLOCK", 2)
    one, (items, steps, w) = random_fleet(6, workers=1)
    other = ucbf.Fleet(SHOP, dict(zip(one.names, one.costs.T, strict=True)), workers=4)
    asked = []
    for part in np.array_split(np.random.default_rng(0).permutation(len(items)), 3):
        other.add(items[part], steps[part], w[part])
        other.renew(lambda done, of: asked.append((done, of)))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.policies, other.policies)
    assert asked[-1] == (7, 7)


def test_only_items_with_news_are_planned_anew():
    fleet, _ = random_fleet(8)
    fleet.renew()
    fleet.add([2], [0], [-6])
    np.testing.assert_array_equal(np.flatnonzero(fleet._stale), [2])


def test_pipelines_are_fleets_too():
    shop = ucbf.systems.Inventory(capacity=6, max_order=3, max_demand=4, lead_time=2, horizon=None)
    fleet = ucbf.Fleet(shop, {"penalty": [4.0, 19.0]})
    axes = shop.system.raw_space.n_axes
    fleet.add([0, 0, 1, 1], [0] * 4, [[-w, *[0] * (axes - 1)] for w in (1, 4, 1, 4)])
    for i in range(2):
        plan = ucbf.planning.plan(fleet.system_of(i), fleet.distribution_of(i))
        assert abs(fleet.gains[i] - plan.gain) < 1e-8
    assert fleet.act(0, [[0, 0], [0, 0]]).shape == (2,)


def test_parquet(tmp_path):
    fleet, _ = random_fleet(9)
    fleet.write(tmp_path / "plans.parquet", [f"sku{i}" for i in range(7)])
    rows = pq.read_table(tmp_path / "plans.parquet").to_pylist()
    assert rows[3]["item"] == "sku3"
    assert rows[3]["price"] == fleet.costs[3, 0]
    np.testing.assert_array_equal(rows[3]["value"], fleet.values[3])
    np.testing.assert_array_equal(rows[3]["action"], fleet.policies[3].ravel())


def test_what_cannot_be_is_refused():
    fleet, _ = random_fleet(0)
    cases = [
        (lambda: ucbf.Fleet(SHOP), "neither costs nor n_items is given"),
        (
            lambda: ucbf.Fleet(SHOP, {"capacity": [1, 2]}),
            "capacity is no cost that items may differ in; those are price",
        ),
        (lambda: ucbf.Fleet(SHOP, {"price": [1, 2], "penalty": [1]}), "one number for each item"),
        (lambda: ucbf.Fleet(SHOP.system, {"price": [1]}), "a System has none"),
        (lambda: fleet.add([7], [0], [0]), "items go from 7 to 7; they must be 0 to 6"),
        (lambda: fleet.add([0], [4], [0]), "steps go from 4 to 4; they must be 0 to 3"),
        (lambda: fleet.add([0], [0], [-7]), "W from -6 to 0; widen the range"),
        (lambda: fleet.add([0], [0, 1], [0]), "give as many of each"),
        (lambda: fleet.act(0, [0] * 6), "states must be 7 numbers from 0 to 8"),
        (lambda: fleet.act(0, [9] * 7), "states must be 7 numbers from 0 to 8"),
        (lambda: fleet.observe(0, [8] * 7, [5] * 7, [8] * 7), "one that exists in its state"),
        (lambda: fleet.observe(0, [1, 1], [0, 0], [1, 1], items=[3, 3]), "an item stands twice"),
        (lambda: fleet.write("x.parquet", ["a"]), "names has 1 entries"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            call()
    with pytest.raises(AttributeError, match="gains are of systems"):
        _ = fleet.gains
    with pytest.raises(TypeError, match="give one of ucbf.systems"):
        ucbf.Fleet(3, n_items=2)


def test_what_is_scarce_is_shared_at_one_price():
    fleet, _ = random_fleet(11, n=5)
    alone = fleet.values[:, 0].sum()
    free = fleet.share("unit_cost", 1e6)
    assert (free.multiplier, free.gap) == (0, 0)
    assert free.reward == pytest.approx(alone)
    plans = fleet.share("unit_cost", 0.6 * free.used)
    assert 0 < plans.used <= 0.6 * free.used
    assert plans.reward <= alone
    # What is expected of the policies is worked out anew, item by item, at their true costs.
    paid = used = 0.0
    for i in range(5):
        preset = SHOP.replace(**dict(zip(fleet.names, fleet.costs[i].tolist(), strict=True)))
        law = fleet.distribution_of(i)
        paid += ucbf.evaluate(ucbf.World(preset.system, law), fleet.policies[i])[0, 0]
        dearer = preset.replace(unit_cost=preset.unit_cost + 1)
        used -= ucbf.evaluate(ucbf.World(dearer.system, law), fleet.policies[i])[0, 0]
    assert plans.reward == pytest.approx(paid)
    assert plans.used == pytest.approx(paid + used)
    assert plans.reward <= plans.bound <= alone + 1e-9
    fleet.unshare()
    assert fleet.values[:, 0].sum() == alone


def test_the_bound_holds_for_all_policies_that_keep_to_what_there_is():
    rng = np.random.default_rng(2)
    fleet, _ = random_fleet(12, n=3)
    plans = fleet.share("unit_cost", 8.0)
    for _ in range(200):  # order up to random levels, where all fits
        levels = rng.integers(0, 9, 3)
        paid = used = 0.0
        for i in range(3):
            policy = np.minimum(np.maximum(levels[i] - np.arange(9), 0), 5)
            preset = SHOP.replace(**dict(zip(fleet.names, fleet.costs[i].tolist(), strict=True)))
            law = fleet.distribution_of(i)
            one = ucbf.evaluate(ucbf.World(preset.system, law), policy)[0, 0]
            dearer = preset.replace(unit_cost=preset.unit_cost + 1)
            used += one - ucbf.evaluate(ucbf.World(dearer.system, law), policy)[0, 0]
            paid += one
        if used <= 8:
            assert paid <= plans.bound + 1e-9


def test_what_cannot_be_shared_is_refused():
    fleet, _ = random_fleet(0)
    with pytest.raises(ValueError, match="holding"):
        fleet.share("holding", 3)
    endless, _ = random_fleet(0, shop=SHOP.replace(horizon=None))
    with pytest.raises(ValueError, match="this system has no end"):
        endless.share("price", 3)


def test_many_items_leave_little_between_plans_and_bound():
    fleet, _ = random_fleet(13, n=60)
    free = fleet.share("unit_cost", 1e6)
    plans = fleet.share("unit_cost", 0.5 * free.used)
    assert 0 <= plans.gap <= 2e-3 * plans.reward
    with pytest.raises(ValueError, match="'price', which is earned and not paid; name a cost"):
        fleet.share("price", 3)


def test_a_bound_by_hand():
    # Both sell 4 a day for 5 days. At a multiplier of 3 the item that sells for 5 gains nothing any more, and the other
    # 9 - 2 - 3 each for 20 units: 80, and 30 of what is scarce are worth 90. It orders 20 and earns 7 on each.
    shop = ucbf.systems.Inventory(capacity=10, max_demand=6, horizon=5, salvage=0)
    fleet = ucbf.Fleet(shop, {"price": [9, 5], "unit_cost": [2, 2]}, stationary=True)
    fleet.add(items=[0, 1], steps=[0, 0], disturbances=[-4, -4])
    plans = fleet.share("unit_cost", 30)
    assert [plans.multiplier, plans.used, plans.reward, plans.bound] == pytest.approx([3, 20, 140, 170], rel=1e-5)


def test_a_budget_in_money_by_hand():
    # Units cost 2 and 1; 4 of each are sold a day, for 5 days. The first earns 7 for 2 of money, the second 4 for 1. At
    # a multiplier of 3.5 the first gains nothing; the second gains 0.5 on each of 20, and 30 of money are worth
    # 105. It spends 20 and earns 80.
    shop = ucbf.systems.Inventory(capacity=10, max_demand=6, horizon=5, salvage=0)
    fleet = ucbf.Fleet(shop, {"price": [9, 5], "unit_cost": [2, 1]}, stationary=True)
    fleet.add(items=[0, 1], steps=[0, 0], disturbances=[-4, -4])
    enough = fleet.share("unit_cost", 60, weight=[2, 1])
    assert (enough.multiplier, enough.used, enough.gap) == (0, 60, 0)
    plans = fleet.share("unit_cost", 30, weight=[2, 1])
    assert [plans.multiplier, plans.used, plans.reward, plans.bound] == pytest.approx([3.5, 20, 80, 115], rel=1e-5)
    with pytest.raises(ValueError, match="weight is .*; give numbers from 0 on, one for each of the 2 items"):
        fleet.share("unit_cost", 30, weight=[2, -1])


# -- other ways of knowing W ------------------------------------------------------------------------


@pytest.mark.parametrize(("half_life", "stationary"), [(None, False), (None, True), (6.0, False)])
def test_what_is_recent_counts_as_for_an_agent_that_sees_the_item_alone(half_life, stationary):
    rng, n, K = np.random.default_rng(4), 3, 60
    law = {"name": "Recent", "half_life": half_life, "stationary": stationary}
    fleet = ucbf.Fleet(SHOP, {"price": [9.0, 12, 15]}, law=law)
    w = np.stack([np.r_[-rng.integers(0, 3, (K - k, 4)), -rng.integers(4, 7, (k, 4))] for k in (0, 8, 30)])
    for h in range(4):  # of one step after the other; of each step in order of time
        if not stationary:
            fleet.add(np.repeat(np.arange(n), K), np.full(n * K, h), w[:, :, h].ravel())
    if stationary:
        fleet.add(np.repeat(np.arange(n), 4 * K), np.tile(np.arange(4), n * K), w.ravel())
    for i in range(n):
        agent = ucbf.UCBVIf(fleet.system_of(i), law=law)
        agent.warm_start(w[i])
        np.testing.assert_array_equal(fleet.policies[i], agent.policy)
        np.testing.assert_allclose(fleet.values[i], agent.plan.v[0], rtol=1e-12)
        np.testing.assert_allclose(fleet.distribution_of(i).pmf, agent.law.pmf, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(fleet.knowledge.scores[i], list(agent.knowledge.scores.values()), rtol=1e-12)
        if half_life is None:
            assert fleet.knowledge.chosen(np.array([i]))[0] == agent.knowledge.half_life
    if half_life is None:
        assert len(set(fleet.knowledge.chosen(np.arange(n)))) > 1


def test_a_half_life_by_hand():
    # Demand 0, then 1, with a half-life of one step of the kind: the first counts 1/2, the second 1.
    shop = ucbf.systems.Inventory(capacity=1, max_demand=1, horizon=1)
    fleet = ucbf.Fleet(shop, n_items=1, law={"name": "Recent", "half_life": 1.0})
    fleet.add([0, 0], [0, 0], [0, -1])
    np.testing.assert_allclose(fleet.distribution_of(0).pmf, [[2 / 3, 1 / 3]])


def test_around_forecasts_the_error_is_learned_and_moved_to_the_coming_episode():
    # Forecast 2, demand 3 and 2: errors of 1 and 0 more than forecast. Now 4 is forecast: 5 or 4. Of 6: 7 is beyond
    # the range and counts as 6.
    shop = ucbf.systems.Inventory(capacity=8, max_demand=6, horizon=1)
    fleet = ucbf.Fleet(shop, n_items=2, forecasts=True)
    fleet.add([0, 0, 1, 1], [0, 0, 0, 0], [-3, -2, -3, -2], expected=[-2, -2, -2, -2])
    fleet.expect([[-4], [-6]])
    np.testing.assert_array_equal(fleet.distribution_of(0).values, np.arange(-6, 1))
    np.testing.assert_array_equal(fleet.distribution_of(0).pmf, [[0, 0.5, 0.5, 0, 0, 0, 0]])
    np.testing.assert_array_equal(fleet.distribution_of(1).pmf, [[1.0, 0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize("law", [None, "Recent"])
def test_plans_around_forecasts_are_those_of_a_preset_with_that_profile(law):
    rng, K = np.random.default_rng(5), 40
    shop = SHOP.replace(price=9.0, unit_cost=3.0)
    fleet = ucbf.Fleet(shop, n_items=1, forecasts=True, law=law)
    forecast = rng.integers(1, 5, (K, 4))
    demand = np.clip(forecast + rng.integers(-2, 3, (K, 4)), 0, 6)
    fleet.add(np.zeros(4 * K, int), np.tile(np.arange(4), K), -demand.ravel(), expected=-forecast.ravel())
    now = np.array([1, 3, 5, 2])
    fleet.expect([-now])
    with_profile = shop.replace(profile=tuple(map(float, now)))
    agent = ucbf.UCBVIf(with_profile.system, law=law or {"name": "Counts", "prior_weight": 0})  # bare, as errors are
    agent.warm_start(forecast - demand)
    believed = with_profile.clipped_to_amount_range(agent.law)
    plan = ucbf.planning.plan(with_profile.system, believed)
    np.testing.assert_allclose(fleet.values[0], plan.v[0], rtol=1e-12)
    np.testing.assert_array_equal(fleet.policies[0], plan.policy)


def test_certificates_are_those_of_an_agent_that_saw_the_item_alone():
    rng = np.random.default_rng(6)
    prior = ucbf.Disturbance([0.5, 0.5], low=-1)
    fleet = ucbf.Fleet(SHOP, {"price": [9.0, 14.0]}, prior=prior, prior_weight=3)
    w = -rng.binomial(6, 0.4, (2, 300, 4))
    fleet.add(np.repeat([0, 1], 1200), np.tile(np.arange(4), 600), w.ravel())
    for i in range(2):
        alone = ucbf.UCBVIf(fleet.system_of(i), prior=prior, prior_weight=3)
        alone.warm_start(w[i])
        agent = fleet.agent_of(i)
        np.testing.assert_array_equal(agent.learner.visits, alone.learner.visits)
        one, other = fleet.certificate(i, 0.1, "bernstein"), alone.certificate(0.1, "bernstein")
        np.testing.assert_array_equal(one.gap, other.gap)
        assert 0 < one.gap.max() < fleet.values[i].max()
    fleet.observe(0, [0, 0], [0, 0], [0, 0])  # an empty shelf
    with pytest.raises(ValueError, match="a boundary hid 1 disturbance"):
        fleet.certificate(0)


def test_what_other_laws_cannot_do_is_refused():
    fleet = ucbf.Fleet(SHOP, n_items=2, law="Recent")
    fleet.observe(0, [5, 5], [0, 0], [4, 3])
    cases = [
        (lambda: fleet.observe(0, [0, 5], [0, 0], [0, 4]), "a boundary hides a disturbance"),
        (lambda: fleet.agent_of(0), "an agent is made of counts"),
        (lambda: fleet.add([0], [0], [-1], expected=[-1]), "does not learn around forecasts; pass forecasts=True"),
        (lambda: ucbf.Fleet(SHOP, n_items=2, law="Levels"), "a fleet knows Counts and Recent"),
        (lambda: ucbf.Fleet(SHOP, n_items=2, forecasts=True).add([0], [0], [-1]), "say what was forecast"),
        (lambda: ucbf.Fleet(SHOP, n_items=2, forecasts=True).expect([[0] * 4]), "give [N, H] = (2, 4)"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            call()

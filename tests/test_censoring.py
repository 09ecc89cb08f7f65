"""What a clipped edge hides: UCBVI-f learns the law all the same, and no agent is misled in silence."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ucbf
from reference import doubted, kaplan_meier, turnbull

MOST = 9


def shop(horizon=1, capacity=MOST, **more):
    """Lost sales: from an empty shelf one knows only that the demand was at least the stock."""
    return ucbf.systems.Inventory(horizon=horizon, capacity=capacity, max_demand=MOST, salvage=0, **more)


def pool(size, most):
    """A state 0..size-1 that W moves from anywhere to anywhere: both edges hide."""
    return ucbf.System(lambda s, a: s, 0.0, 1, "clip", disturbance_range=(-most, most), n_states=size, n_actions=1)


def test_a_hidden_demand_is_shared_out_among_those_seen_further_on():
    # Sold 2, 4 and 4 of plenty; once 3 of 3, which says that 3 or more were asked for.
    # P(2) = 1/4. At 3 nobody was seen; what is left, 3/4, is all at 4.
    agent = ucbf.UCBVIf(shop().system)
    for sold in (2, 4, 4):
        agent.observe(0, 9, 0, 9 - sold)
    agent.observe(0, 3, 0, 0)
    law = agent.law
    assert dict(zip(-law.values, law.pmf[0], strict=True)) == pytest.approx(
        {d: {2: 0.25, 4: 0.75}.get(d, 0.0) for d in range(MOST + 1)}
    )


def test_what_no_shelf_ever_showed_is_believed_at_the_end_of_the_range():
    # Sold 1, then twice all of 5: P(1) = 1/3; of the rest it is only known that it is 5 or more.
    agent = ucbf.UCBVIf(shop().system)
    agent.observe(0, 9, 0, 8)
    for _ in range(2):
        agent.observe(0, 5, 0, 0)
    assert agent.law.pmf[0][[MOST - 1, 0]] == pytest.approx([1 / 3, 2 / 3])


@given(st.lists(st.tuples(st.integers(0, MOST), st.integers(0, MOST)), min_size=1, max_size=30))
def test_one_edge_gives_the_product_limit_estimate(days):
    agent = ucbf.UCBVIf(shop().system, prior_weight=0)
    seen, hidden = [], []
    for stock, demand in days:
        left = max(stock - demand, 0)
        agent.observe(0, stock, 0, left)
        if left or stock == MOST:
            seen.append(stock - left)
        else:
            hidden.append(stock)
    np.testing.assert_allclose(agent.law.pmf[0][::-1], kaplan_meier(seen, hidden, MOST), atol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=1, max_size=25))
def test_two_edges_give_the_self_consistent_estimate(days):
    agent = ucbf.UCBVIf(pool(5, 3))
    seen, at_most, at_least = [], [], []
    for s, w in days:
        after = min(max(s + w, 0), 4)
        agent.observe(0, s, 0, after)
        j = after - s + 3
        if after not in (0, 4) or (after == 0 and j <= 0) or (after == 4 and j >= 6):
            seen.append(j)
        else:
            (at_most if after == 0 else at_least).append(j)
    law = agent.law.pmf[0]
    assert law.min() >= 0
    if at_most and at_least:
        expected = turnbull(seen, at_most, at_least, 6, passes=500)
        assert likelihood(law, seen, at_most, at_least) >= likelihood(expected, seen, at_most, at_least) - 1e-6


def planned_with(agent):
    """The law that the plan is made with."""
    agent.renew()
    return agent.learner.law.law[0]


def test_what_was_hidden_long_and_seen_once_is_doubted_by_hand():
    # A demand of 0 seen once, from a full shelf, and then 99 days with an empty one, each of which says only that the
    # demand was 0 or more. By the estimate nobody ever comes. But what was seen once is enough for 1 + 1² hidden ones:
    # log(100) (1 - 2/99) more are taken to have been at risk, and the rest, 0.82, asked for the most.
    agent = ucbf.UCBVIf(shop().system)
    agent.observe(0, 9, 0, 9)
    for _ in range(99):
        agent.observe(0, 0, 0, 0)
    assert agent.law.pmf[0, -1] == 1
    believed = 1 / (1 + math.log(100) * (1 - 2 / 99))
    np.testing.assert_allclose(planned_with(agent)[[MOST, 0]], [believed, 1 - believed])
    # Ten that were seen are enough for a hundred, and the plan is that for the estimate.
    for _ in range(9):
        agent.observe(0, 9, 0, 9)
    np.testing.assert_array_equal(planned_with(agent), agent.law.pmf[0])


@pytest.mark.parametrize("up", [True, False])
def test_each_of_two_edges_that_hide_is_doubted_by_itself(up):
    # W from -3 to 3 moves a state 0..4. Once it was 0; 60 times, from state 4, the upper edge said that it was 0 or
    # more, and once the lower edge that it was 0 or less. The other way round, all is mirrored.
    agent = ucbf.UCBVIf(pool(5, 3))
    agent.observe(0, 2, 0, 2)
    for _ in range(60):
        agent.observe(0, *((4, 0, 4) if up else (0, 0, 0)))
    agent.observe(0, *((0, 0, 0) if up else (4, 0, 4)))
    law = planned_with(agent) if up else planned_with(agent)[::-1]
    estimate = agent.law.pmf[0] if up else agent.law.pmf[0][::-1]
    np.testing.assert_allclose(estimate, np.eye(7)[3], atol=1e-5)
    # Two were seen, or are believed to have been, at 0, enough for 2 (1 + 2²) hidden ones, not for 60.
    believed = 2 / (2 + math.log(61) * (1 - 10 / 60))
    np.testing.assert_allclose(law[[3, 6]], [believed, 1 - believed], rtol=1e-4)
    assert law[:3].sum() < 1e-4  # the lower edge hid too little to doubt anything


@pytest.mark.filterwarnings("ignore::ucbf.ModelWarning")  # blocks of equal days look like a drift
@given(st.lists(st.tuples(st.integers(0, MOST), st.integers(0, MOST), st.integers(1, 40)), min_size=1, max_size=8))
def test_a_doubted_product_limit_agrees_with_its_transcription(days):
    agent = ucbf.UCBVIf(shop().system, prior_weight=0)
    seen, hidden = [], []
    for stock, demand, times in days:
        left = max(stock - demand, 0)
        for _ in range(times):
            agent.observe(0, stock, 0, left)
        (seen if left or stock == MOST else hidden).extend([stock - left] * times)
    estimate = kaplan_meier(seen, hidden, MOST)
    expected = doubted(estimate, np.bincount(seen, minlength=MOST + 1), hidden) if hidden else estimate
    np.testing.assert_allclose(planned_with(agent)[::-1], expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore::ucbf.ModelWarning")
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3), st.integers(1, 40)), min_size=1, max_size=8))
def test_what_the_plan_doubts_only_goes_to_the_ends(days):
    agent = ucbf.UCBVIf(pool(5, 3))
    for s, w, times in days:
        for _ in range(times):
            agent.observe(0, s, 0, min(max(s + w, 0), 4))
    law, estimate = planned_with(agent), agent.law.pmf[0]
    assert law.sum() == pytest.approx(1)
    assert law.min() >= 0
    assert (law[1:-1] <= estimate[1:-1] + 1e-9).all()


def test_sales_of_three_years_are_planned_with_as_they_are():
    # Shelves of 8 on most days and full ones on some: much is hidden and enough is seen. The plan used to expect more
    # than ever came.
    shop = ucbf.systems.Inventory(capacity=40, max_demand=30)
    rng = np.random.default_rng(0)
    agent, stock = ucbf.UCBVIf(shop.system), 0
    for day in range(3 * 365):
        level = 40 if rng.random() < 0.2 else 8
        order, demand = max(level - stock, 0), int(rng.poisson(8))
        left = max(stock + order - demand, 0)
        agent.observe(day % 7, stock, order, left)
        stock = left
    assert agent.learner.law.below.sum() > 200
    np.testing.assert_array_equal(agent.policy, ucbf.optimal(ucbf.World(shop.system, agent.law)).policy)


def likelihood(law, seen, at_most, at_least):
    parts = [law[j] for j in seen] + [law[: b + 1].sum() for b in at_most] + [law[b:].sum() for b in at_least]
    return float(np.log(parts).sum())


def test_heavy_censoring_does_not_bias_the_law_and_a_naive_estimate_it_does():
    # Stock is uniform on 0..9 and so is demand: about half of all periods end with an empty shelf.
    world = shop().world(ucbf.Disturbance(np.full(MOST + 1, 0.1)))
    agents = {n: ucbf.UCBVIf(world.system) for n in (200, 20_000)}
    rng = np.random.default_rng(0)
    empty, sold = 0, []
    for n, agent in agents.items():
        for _ in range(n):
            stock, demand = rng.integers(0, MOST + 1, 2)
            agent.observe(0, stock, 0, max(stock - demand, 0))
            empty += demand >= stock
            sold.append(min(stock, demand))
    assert 0.45 < empty / len(sold) < 0.6
    assert "a boundary hid" in str(agents[20_000].model_check())
    errors = {n: np.abs(agent.law.pmf[0] - 0.1).sum() / 2 for n, agent in agents.items()}
    assert errors[20_000] < 0.03 < errors[200]
    naive = np.bincount(sold, minlength=MOST + 1) / len(sold)
    assert np.abs(naive - 0.1).sum() / 2 > 0.2


def test_learning_behind_an_empty_shelf_comes_to_the_optimal_orders():
    store = shop(horizon=4, price=9, unit_cost=4, holding=0.5)
    world = store.world(ucbf.Disturbance([0.05, 0.05, 0.1, 0.1, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05]), start=0)
    agent = ucbf.UCBVIf(world.system, stationary=True)
    run = ucbf.simulate(agent, world, 2000, censored=True)
    assert run.gap[-1] < 0.001 * ucbf.optimal(world).v[0, 0]
    with pytest.raises(ValueError, match="a boundary hid \\d+ disturbance"):
        agent.certificate()
    misled = ucbf.UCBf(world.system)
    with pytest.warns(ucbf.CensoredWarning, match="UCBVI-f does not"):
        wrong = ucbf.simulate(misled, world, 2000, censored=True)
    assert wrong.gap[-1] > 10 * run.gap[-1]


@pytest.mark.parametrize("stationary", [False, True])
def test_an_early_quiet_day_is_not_believed_for_ever(stationary):
    # Demand 0 seen once from a full shelf, and then an empty shelf for ever, would say that nobody ever comes.
    world = ucbf.systems.Inventory(max_demand=8).world(ucbf.Disturbance(np.full(9, 1 / 9)), start=0)
    best = ucbf.optimal(world).v[0, 0]
    for seed in range(8):
        agent = ucbf.UCBVIf(world.system, stationary=stationary)
        run = ucbf.simulate(agent, world, 1500, seed=seed, censored=True)
        assert run.gap[-1] < 0.01 * best
    agent = ucbf.UCBVIf(world.system)
    agent.observe(0, 20, 0, 20)
    for _ in range(3):
        agent.observe(0, 0, 0, 0)
    assert agent.law.pmf[0, -1] == 1  # the estimate
    assert agent.policy[0, 0] > 0  # and what is made of it


@pytest.mark.parametrize("make", [ucbf.UCBVIf, ucbf.UCBf])
def test_hidden_from_a_simulation_is_hidden_from_an_observer(make):
    world = shop(horizon=3).world(start=0)
    one, other = make(world.system), make(world.system)
    with pytest.warns(ucbf.CensoredWarning) if make is ucbf.UCBf else nullcontext():
        ucbf.simulate(one, world, 40, seed=3, censored=True)
        starts, w = world.draw(40, 3)
        for k in range(40):
            s = int(starts[k])
            for h in range(3):
                a = other.act(h, s)
                after = max(s + a + w[k, h], 0)
                other.observe(h, s, a, after)
                s = after
    for name, array in one.state.items():
        np.testing.assert_array_equal(array, other.state[name], err_msg=name)


def test_repair_needs_the_edges():
    world = shop().world()
    told = ucbf.corrupt(world.system, 2)
    with pytest.raises(ValueError, match="OffsetPosterior needs it there"):
        ucbf.simulate(ucbf.UCBVIf(told, estimator="OffsetPosterior"), world, 3, censored=True)

"""The presets: known answers, natural units, and the views of Gymnasium."""

import json
from dataclasses import fields
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ucbf
import ucbf.envs
import ucbf.testing
from instances import INSTANCES
from ucbf.systems import PRESETS, Battery, Inventory, Queue, Reservoir, Shower

DIGITS = {"snyder-shen-4.29": 5e-8, "reservoir": 5e-7}


@pytest.mark.parametrize("name", INSTANCES)
def test_known_answers_come_out_to_the_digits_given(name):
    world, value = INSTANCES[name]()
    assert float(world.start @ ucbf.optimal(world).v[0]) == pytest.approx(value, abs=DIGITS.get(name, 1e-12))


def test_known_policies_come_out():
    plan = ucbf.optimal(INSTANCES["puterman-inventory"]()[0])
    np.testing.assert_allclose(plan.v[0], [67 / 16, 129 / 16, 97 / 8, 227 / 16], rtol=1e-14)
    assert plan.policy.tolist() == [[3, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(-ucbf.optimal(INSTANCES["bertsekas-inventory"]()[0]).v[0], [3.7, 2.7, 2.818])
    world, _ = INSTANCES["snyder-shen-4.29"]()
    low = ucbf.optimal(world).policy[:, : 60 + 23]
    assert (low + np.arange(-60, 23) == 23).all()
    assert ucbf.optimal(INSTANCES["newsvendor"]()[0]).policy[0, 0] == 8


@pytest.mark.parametrize("name", INSTANCES)
def test_the_learner_comes_within_a_percent_in_a_hundred_episodes(name):
    world, value = INSTANCES[name]()
    gaps = [ucbf.simulate(ucbf.UCBVIf(world.system), world, 100, seed=seed).gap[-1] for seed in range(20)]
    assert np.median(gaps) <= 0.01 * abs(value)


def test_a_week_of_lost_sales_by_hand():
    # Stock 2, order 3, demand 4: sold 4 at 9, one left; ordering 12 + 3 * 4 = 24, holding 0.5.
    shop = Inventory(capacity=6, max_demand=5, horizon=1, price=9, unit_cost=4, order_cost=12, holding=0.5, salvage=4)
    env = gymnasium.make("ucbf/World-v0", world=shop.world(ucbf.Disturbance([1.0], low=4)))
    env.reset(seed=0, options={"state": 2})
    after, paid, *_ = env.step(3)
    assert (after, paid) == (1, 4 * 9 - 24 - 0.5 + 4 * 1)
    # Demand 5 from a stock of 2 and no order: 2 sold, and three customers gone, whose loss costs nothing more.
    env = gymnasium.make("ucbf/World-v0", world=shop.world(ucbf.Disturbance([1.0], low=5)))
    env.reset(seed=0, options={"state": 2})
    assert env.step(0)[:2] == (0, 2 * 9)


def test_backlog_is_owed_and_costs_until_it_is_served():
    shop = Inventory(capacity=6, backlog=3, max_demand=9, horizon=1, price=9, unit_cost=4, penalty=2, holding=1)
    system = shop.system
    assert (system.states[0], system.states[-1]) == (-3, 6)
    # Stock 1, order 0, demand 3: all three are paid for, two are owed at 2 each, and buying them later costs 8.
    env = gymnasium.make("ucbf/World-v0", world=shop.world(ucbf.Disturbance([1.0], low=3)))
    env.reset(options={"state": 1})
    assert env.step(0)[:2] == (-2, 27 - 4 - 8)


def test_amounts_are_multiples_of_the_unit_and_money_is_not():
    one = Inventory(capacity=20, max_demand=15)
    ten = Inventory(capacity=200, max_demand=150, unit=10, price=0.9, unit_cost=0.4, holding=0.05)
    law = one.example_distribution()
    np.testing.assert_allclose(ucbf.optimal(one.world(law)).v, ucbf.optimal(ten.world(law)).v)
    assert ten.policy(ucbf.optimal(ten.world(law))).states[-1] == 200
    assert ten.disturbances([[31.0] * 7]).tolist() == [[-3] * 7]
    with pytest.raises(ValueError, match="capacity is 205, which is not a multiple of unit 10"):
        Inventory(capacity=205, unit=10, max_demand=100)


@given(st.sampled_from(sorted(PRESETS)), st.integers(0, 2**32 - 1))
def test_a_profile_only_moves_what_is_called_disturbance(kind, seed):
    rng = np.random.default_rng(seed)
    plain = PRESETS[kind](horizon=3)
    low, high = plain.amount_range
    known = plain.replace(profile=tuple(rng.uniform(low, high, 3)))
    pmf = rng.random((3, round(high - low) + 1))
    law = ucbf.Disturbance(pmf / pmf.sum(axis=1, keepdims=True), low=round(low))
    np.testing.assert_allclose(ucbf.optimal(plain.world(law)).v, ucbf.optimal(known.world(law)).v, rtol=1e-9, atol=1e-9)
    again = known.amount_distribution(known.disturbance_distribution(law))
    assert [again.mean(h) for h in range(3)] == pytest.approx([law.mean(h) for h in range(3)])
    amounts = low + law.draw(rng.random((4, 3))) - round(low)
    moved = known.disturbances(amounts) + known.sign * known.expected_amount
    np.testing.assert_array_equal(moved, plain.disturbances(amounts))


def ordered(preset):
    """{(h, stock, order): what it costs to order} for every order that exists, all in the user's units."""
    system, orders = preset.system, preset.action_quantities
    return {
        (int(h), system.states[s] * preset.unit, float(orders[a])): float(
            system.reward[h, s, 0] - system.reward[h, s, a]
        )
        for h, s, a in zip(*np.nonzero(system.allowed), strict=True)
    }


@given(
    unit=st.sampled_from([1, 2, 0.7]),
    pack=st.none() | st.integers(1, 4),
    min_order=st.integers(0, 4),
    max_order=st.none() | st.integers(4, 12),
    review=st.integers(1, 4),
    breaks=st.lists(st.tuples(st.integers(1, 13), st.integers(0, 6)), max_size=3, unique_by=lambda each: each[0]),
)
def test_orders_are_those_that_the_supplier_takes_at_the_price_of_the_largest_break(
    unit, pack, min_order, max_order, review, breaks
):
    plain = {"unit": unit, "capacity": 9 * unit, "backlog": 3 * unit, "max_demand": 4 * unit, "horizon": 5}
    plain |= {"unit_cost": 5, "order_cost": 2, "price": 0}
    breaks = sorted(breaks)
    shop = Inventory(
        **plain,
        pack=None if pack is None else pack * unit,
        min_order=min_order * unit,
        max_order=None if max_order is None else max_order * unit,
        review=review,
        price_breaks=tuple((n * unit, cost) for n, cost in breaks) or None,
    )
    expected = {}
    for h, stock, n in np.ndindex(5, 13, 13):
        exists = n % (pack or 1) == 0 and min_order <= n <= (max_order or 12) and h % review == 0
        if n == 0 or (exists and stock - 3 + n <= 9):
            cost = [5, *(cost for least, cost in breaks if n >= least)][-1]
            expected[h, stock - 3, n] = cost * n * unit + 2 if n else 0
    found = {tuple(round(x) for x in (h, s / unit, q / unit)): cost for (h, s, q), cost in ordered(shop).items()}
    assert found == pytest.approx(expected)
    assert len(set(shop.action_quantities)) == len({n for _, _, n in expected})


def test_a_break_is_reached_whatever_rounding_says():
    assert 3 * 0.7 < 2.1
    assert ordered(Inventory(unit=0.7, capacity=7, max_demand=7, price_breaks=((2.1, 1),), price=0))[0, 0, 3 * 0.7] == (
        pytest.approx(2.1)
    )


def test_leftovers_are_worth_the_lowest_price_at_which_an_order_can_be_placed():
    # Were they worth the 4 of a small order, one would buy 12 at 3 on the last day to be paid 4 for each.
    assert Inventory(price_breaks=((12, 3), (21, 2))).system.terminal[:2].tolist() == [0, 3]
    assert Inventory(price_breaks=((12, 3),), salvage=1).system.terminal[1] == 1
    world = Inventory(price_breaks=((12, 3),), price=0, holding=0).world(ucbf.Disturbance([1.0]))
    assert not ucbf.optimal(world).policy.any()


def test_base_stock_until_the_next_review_by_hand():
    # Demand is 0 or 1 alike. Orders on days 1, 3 and 5. One too few loses 9 - 4 = 5, one too many 1 a day: 5/7 of the
    # demand of two days (0.25, 0.5, 0.25) is 1; on day 5, which is the last, 5/6 of one day is 1. With three days
    # between reviews: 5/8 of (1, 3, 3, 1)/8 is 2, and then 5/7 of the two days that remain is 1.
    shop = Inventory(horizon=5, capacity=4, max_demand=1, holding=1, review=2)
    law = shop.disturbance_distribution(ucbf.Disturbance([0.5, 0.5]))
    assert shop.rules(law)["base-stock"][:, 0].tolist() == [1, 0, 1, 0, 1]
    assert shop.replace(review=3).rules(law)["base-stock"][:, 0].tolist() == [2, 0, 0, 1, 0]
    # One more every day: two more until the next review, but one on the last day.
    more = shop.replace(max_demand=2)
    law = more.disturbance_distribution(ucbf.Disturbance([0.5, 0.5], low=1))
    assert more.rules(law)["base-stock"][:, 0].tolist() == [3, 0, 3, 0, 2]
    # Steps with distributions of their own: nothing is asked for on day 2, and one for sure on day 3.
    law = shop.disturbance_distribution(ucbf.Disturbance([[0.5, 0.5], [1, 0], [0, 1], [0, 1], [0, 1]]))
    assert shop.rules(law)["base-stock"][:, 0].tolist() == [1, 0, 2, 0, 1]


@pytest.mark.parametrize("more", [{"min_order": 5}, {"price_breaks": ((12, 3),)}, {"order_cost": 3}])
def test_where_small_orders_are_dear_reorder_points_are_compared_with(more):
    shop = Inventory(**more)
    assert "(s, S)" in shop.rules(shop.world().law)
    assert "(s, S)" not in Inventory().rules(Inventory().world().law)


def test_a_supplier_with_terms_keeps_the_contract():
    terms = {"pack": 4, "min_order": 8, "review": 2, "price_breaks": ((12, 3.5), (16, 3)), "order_cost": 3}
    ucbf.testing.check_preset(partial(Inventory, unit=2, capacity=20, max_demand=12, backlog=4, horizon=4, **terms))
    assert Inventory(price_breaks=((12, 3.5), (16, 3))).describe("price_breaks") == "price_breaks (12, 3.5) (16, 3)"


def test_an_amount_is_the_action_that_means_it():
    shop = Inventory(pack=6, capacity=30)
    assert [shop.action_of(x) for x in (0, 6, 11.5, 30.4)] == [0, 1, 2, 5]
    with pytest.raises(ValueError, match="order is 9, which is none that Inventory has: give 6 or 12, or change"):
        shop.action_of(9)
    with pytest.raises(ValueError, match="order is 32; it must be 0 to 30"):
        shop.action_of(32)


def test_an_empirical_law_by_hand():
    shop = Inventory(horizon=2, unit=10, capacity=50, max_demand=40)
    law = shop.empirical_distribution([[12, 30], [8, 30], [21, 9]])
    assert law.low == 1
    np.testing.assert_allclose(law.pmf, [[2 / 3, 1 / 3, 0], [1 / 3, 0, 2 / 3]])
    np.testing.assert_allclose(shop.empirical_distribution([[12, 30], [8, 30]], pooled=True).pmf, [[0.5, 0, 0.5]])


def test_a_battery_buys_when_it_is_cheap():
    store = Battery(horizon=2, capacity=8, prices=(1.0, 4.0), max_buy=8, max_demand=4, shortage_price=9, end_value=0)
    law = ucbf.Disturbance([1.0], low=3)
    policy = store.policy(ucbf.optimal(store.world(law)))
    assert policy.quantities[0, 0] == 6  # what both hours need, at the price of the first
    assert policy.quantities[1, 3] == 0
    sell = Battery(horizon=1, prices=5.0, max_sell=3, max_demand=0, end_value=0)
    assert sell.policy(ucbf.optimal(sell.world())).quantities[0, :5].tolist() == [0, -1, -2, -3, -3]


@given(st.floats(0.1, 1), st.floats(0.1, 1), st.floats(-5, 5), st.sampled_from([1, 2.5]))
def test_what_is_bought_and_sold_again_costs_what_is_lost_on_the_way(there, back, price, unit):
    store = Battery(
        horizon=1, unit=unit, capacity=8 * unit, max_buy=4 * unit, max_sell=4 * unit, prices=price, efficiency=there,
        discharge_efficiency=back, max_demand=0,
    )  # fmt: skip
    for n in range(1, 5):
        a, b = store.action_of(n * unit), store.action_of(-n * unit)
        assert store.system.f[0, 4, a] - 4 == 4 - store.system.f[0, 4, b] == n  # no loss in what is stored
        lost = price * n * unit * (1 / there - back)
        assert store.system.reward[0, 4, [a, b]].sum() == pytest.approx(-lost, abs=1e-12)
    assert store.system.reward[0, 4, store.action_of(0)] == 0


def test_a_battery_with_losses_keeps_the_contract():
    ucbf.testing.check_preset(
        partial(Battery, horizon=2, unit=2, capacity=8, max_sell=4, efficiency=0.8, discharge_efficiency=0.75)
    )


def test_a_reservoir_never_releases_what_it_has_not():
    dam = Reservoir(capacity=5, max_inflow=2, horizon=2)
    assert all(a <= s for a in range(6) for s in range(6) if dam.system.allowed[0, s, a])


def test_a_queue_serves_faster_the_more_wait():
    policy = Queue().policy(ucbf.optimal(Queue().world())).quantities[:6]
    assert (np.diff(policy, axis=1) >= 0).all()


def test_the_shower_is_learned_in_a_few_episodes():
    world = Shower().world(start=30)
    worth = {n: ucbf.simulate(ucbf.make_agent(n, world.system), world, 50).gap[-1] for n in ("UCBVI-f", "UCB-H")}
    assert worth["UCBVI-f"] < 2 < 10 < worth["UCB-H"]


@pytest.mark.parametrize("kind", sorted(PRESETS))
def test_every_system_is_an_environment(kind):
    env = gymnasium.make(f"ucbf/{kind.capitalize()}-v0", horizon=3)
    state, info = env.reset(seed=0)
    for h in range(3):
        assert env.observation_space.contains(state)
        state, _, over, _, info = env.step(env.action_space.sample(info["action_mask"]))
        assert over == (h == 2)
    envs = gymnasium.make_vec(f"ucbf/{kind.capitalize()}-v0", num_envs=4, horizon=3)
    assert envs.reset(seed=0)[0].shape == (4,)


@pytest.mark.parametrize("kind", sorted(PRESETS))
def test_no_rule_beats_the_optimum_and_all_are_policies(kind):
    preset = PRESETS[kind](horizon=4)
    world = preset.world()
    best = ucbf.optimal(world).v[0]
    rules = preset.rules(world.law)
    assert {"myopic", "certainty-equivalent"} <= set(rules)
    for name, rule in rules.items():
        assert (ucbf.evaluate(world, rule)[0] <= best + 1e-9).all(), name


def test_the_rules_of_a_store():
    # No order cost and leftovers worth their cost: the critical ratio (9-4)/(9-4+0.5) is the optimum.
    shop = Inventory()
    world = shop.world()
    rules = shop.rules(world.law)
    np.testing.assert_array_equal(rules["base-stock"], ucbf.optimal(world).policy)
    dear = Inventory(order_cost=12)
    rules = dear.rules(dear.world().law)
    worth = {name: ucbf.evaluate(dear.world(), rule)[0, 0] for name, rule in rules.items()}
    assert max(worth, key=worth.get) in {"(s, S)", "certainty-equivalent"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Inventory(holding=-1), "holding is -1; it must be 0 or more"),
        (lambda: Inventory(horizon=0), "horizon is 0"),
        (lambda: Inventory(profile=(1.0, 2.0)), "profile has 2 numbers; give one, or one for each of the 7 steps"),
        (lambda: Inventory(pack=7, unit=5), "pack is 7, which is not a multiple of unit 5; change one of them"),
        (lambda: Inventory(pack=2, unit=5), "pack is 2, which is not a multiple of unit 5"),
        (lambda: Inventory(pack=0), "pack is 0; it must be above 0"),
        (lambda: Inventory(min_order=7, unit=5), "min_order is 7, which is not a multiple of unit 5"),
        (lambda: Inventory(min_order=-1), "min_order is -1; it must be 0 or more"),
        (lambda: Inventory(pack=21), "no order is possible: the smallest is 21 .pack, min_order., and at most 20 can"),
        (lambda: Inventory(pack=6, min_order=7, max_order=11), "the smallest is 12 .pack, min_order., and at most 11"),
        (lambda: Inventory(backlog=5, min_order=26), "the smallest is 26 .* at most 25 can be ordered"),
        (lambda: Inventory(review=0), "review is 0; it must be 1 or more"),
        (lambda: Inventory(review=1.5), "review is 1.5; give a whole number"),
        (lambda: Inventory(price_breaks=(10, 3)), r"price_breaks is \(10, 3\); give pairs \(quantity, unit cost\)"),
        (lambda: Inventory(price_breaks=()), "give pairs .quantity, unit cost., such as ..10, 3.5.,., or None"),
        (
            lambda: Inventory(price_breaks=((10, 3), (10, 2))),
            "has quantity 10 after 10; .* must be above 0 and increase",
        ),
        (lambda: Inventory(price_breaks=((0, 3),)), "has quantity 0 after 0; the quantities must be above 0"),
        (lambda: Inventory(price_breaks=((10, -1),)), "price_breaks has the unit cost -1; it must be 0 or more"),
        (lambda: Battery(prices=(1.0,) * 3), "prices has 3 numbers"),
        (lambda: Battery(min_demand=3, max_demand=2), "from 3 to 2; the first must not exceed the second"),
        (lambda: Queue(service=(1, 2), service_cost=(1,)), "service has 2 choices and service_cost 1"),
        (lambda: Shower(target_low=50, target_high=40), "the target 50..40 is not within"),
        (lambda: Queue(service_cost=-1), "service has 4 choices and service_cost 1"),
        (
            lambda: Queue(unit=5, service=(0, 2), service_cost=(0, 1)),
            "service has 2, which is not a multiple of unit 5",
        ),
        (lambda: Inventory(price="9"), "price is not an array of real numbers"),
        (lambda: Battery(discharge_efficiency=0), "discharge_efficiency is 0; it must be above 0 and at most 1"),
        (lambda: Battery(efficiency=1.5), "efficiency is 1.5; it must be above 0 and at most 1"),
        (lambda: Inventory().world(ucbf.Disturbance(np.full(30, 1 / 30))), "a demand from 0 to 29, but it is declared"),
        (lambda: Inventory(capacity=10**6), "more than 100000 times unit 1; take a coarser unit"),
        (lambda: Inventory(capacity=50_000), "50001 states and 50001 actions are too many"),
        (lambda: Inventory().policy(np.zeros((7, 21), int), steps=("Mo", "Tu")), "steps has 2 names"),
        (lambda: Inventory().world(law=[0.5, 0.5]), "give a ucbf.Disturbance of the demand"),
        (lambda: Inventory().disturbances([1.0, 2.0]), "demand has shape"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(make(), "system", None)


def test_what_is_known_of_w_moves_to_other_prices():
    cheap = Battery(horizon=4, prices=(1.0, 2.0, 3.0, 4.0))
    agent = ucbf.UCBVIf(cheap.system)
    agent.warm_start(cheap.disturbances(np.random.default_rng(0).integers(0, 9, (50, 4))))
    other = cheap.replace(prices=(4.0, 3.0, 2.0, 1.0))
    moved = agent.moved_to(other.system)
    np.testing.assert_array_equal(moved.law.pmf, agent.law.pmf)
    np.testing.assert_array_equal(moved.policy, ucbf.optimal(ucbf.World(other.system, agent.law)).policy)
    with pytest.raises(ValueError, match="declare the same disturbance_range and horizon"):
        agent.moved_to(cheap.replace(max_demand=5).system)


def test_sizes_of_a_battery_by_hand():
    # The largest demand is 8, the least -2: twice 8 in the battery, 12 at most bought, a tenth and more to spare.
    assert Battery.suggested_sizes(-2, 3, 8) == {"max_demand": 10, "capacity": 16, "max_buy": 12, "min_demand": -3}
    assert "min_demand" not in Battery.suggested_sizes(0, 3, 8)


def test_sizes_of_the_others_by_hand():
    # Amounts of 4 on average, 10 at most.
    assert Inventory.suggested_sizes(0, 4, 10) == {"max_demand": 15, "capacity": 20}
    assert Queue.suggested_sizes(0, 4, 10) == {"max_arrivals": 15, "capacity": 30, "service": (0, 2, 4, 8)}
    assert Reservoir.suggested_sizes(0, 4, 10) == {"max_inflow": 15, "capacity": 20, "max_release": 8, "target": 4}


def test_a_capacity_has_room_for_dear_orders_and_packs_by_hand():
    def capacity(**given):
        return Inventory.suggested_sizes(0, 4, 10, **given)["capacity"]

    # 1.25 sqrt(2 * 8 * 4 / (0.2 + 0.05)) = 20 on top of the largest demand; two packs of 6, or of 12, on top of that.
    assert capacity(order_cost=8, holding=0.2, storage=0.05) == 30
    assert capacity(order_cost=8, holding=0.2, storage=0.05, pack=6) == 42
    assert capacity(pack=6, min_order=12) == 34
    assert capacity(pack=6) == 22
    assert capacity(pack=5) == 20  # fits into twice the largest demand
    # Nothing speaks against a large stock: 4 a day for an episode of 7 days; for a period of 5, where there is no end.
    assert capacity(order_cost=8, holding=0) == 38
    assert capacity(order_cost=8, holding=0, horizon=None, period=5) == 30
    assert capacity(holding=0) == 20
    # 512 units at most.
    assert capacity(order_cost=8, holding=1e-9) == 512
    assert capacity(order_cost=8, holding=1e-9, unit=2.0) == 1024


def test_a_store_is_filled_as_far_as_packs_let_orders():
    shop = Inventory(capacity=20, max_demand=5, backlog=4)
    assert shop.filled_by(np.array([[24.0, 0], [3, 0]]))  # from a debt of 4 up to 20
    assert not shop.filled_by(np.array([[23.0, 0]]))
    assert shop.replace(pack=3, backlog=0).filled_by(np.array([[18.0, 0]]))
    assert not shop.replace(pack=3, backlog=0).filled_by(np.array([[15.0, 0]]))
    assert not shop.replace(pack=20, backlog=0).filled_by(np.array([[0.0, 0]]))


def test_a_shower_in_half_degrees():
    # From 37 and a turn of half a degree, warmer by 0.5: 38 is within 37 to 39; from 39 it is 40, which is not.
    shower = Shower(unit=0.5, coldest=30, hottest=45)
    assert shower.system.advance(0, 74 - 60, 2, 1) == (76 - 60, 1.0)
    assert shower.system.advance(0, 78 - 60, 2, 1) == (80 - 60, -1.0)


def test_the_usual_parameters_of_presets():
    # What is not given is assumed: another default is another answer for everyone who relies on it.
    stated = json.loads((Path(__file__).parent / "data" / "preset_defaults.json").read_text())
    for name, kind in PRESETS.items():
        found = {f.name: f.default for f in fields(kind)}
        assert json.loads(json.dumps(found)) == stated[name], name

"""Inventory with lead times, ageing stock and a second supplier: published optima, and steps worked out by hand."""

import numpy as np
import pytest
from scipy import stats

import ucbf
from ucbf.mechanics import raw_starts
from ucbf.planning import gain, occurring, worth
from ucbf.systems import Battery, Inventory, Queue

# Zipkin (2008), Operations Research 56(5), Tables 3 and 4: lost sales, mean demand 5, holding 1, penalty p. The optima
# to four digits, recomputed before with another program.
ZIPKIN = {
    ("poisson", 4): (4.0407, 4.3953, 4.5987, 4.7285),
    ("poisson", 19): (6.6757, 7.6644, 8.3625, 8.8872),
    ("geometric", 9): (14.5082, 15.5029, 16.1367, 16.5774),
}
SIZES = {"poisson": {"capacity": 35, "max_order": 12, "max_demand": 25},
         "geometric": {"capacity": 60, "max_order": 12, "max_demand": 120}}  # fmt: skip
NOTHING = {"price": 0, "unit_cost": 0, "horizon": None}


def demand_of(kind, most):
    d = np.arange(most + 1)
    pmf = stats.poisson(5).pmf(d) if kind == "poisson" else stats.geom(1 / 6).pmf(d + 1)
    pmf[-1] += 1 - pmf.sum()
    return ucbf.Disturbance(pmf)


def zipkin(kind, penalty, lead_time):
    shop = Inventory(lead_time=lead_time, penalty=penalty, holding=1, **NOTHING, **SIZES[kind])
    return shop.world(demand_of(kind, shop.max_demand))


@pytest.mark.parametrize(("kind", "penalty"), ZIPKIN)
@pytest.mark.parametrize("lead_time", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_lost_sales_with_a_lead_time_cost_what_zipkin_found(kind, penalty, lead_time):
    plan = ucbf.optimal(zipkin(kind, penalty, lead_time))
    assert -plan.gain == pytest.approx(ZIPKIN[kind, penalty][lead_time - 1], abs=5e-5)
    assert plan.bounds[1] - plan.bounds[0] <= 1e-9


def test_an_order_can_be_sold_after_the_lead_time():
    # Two on the shelf, 3 come next step and 1 the step after; 4 are ordered at 2.5 each plus 7, and 5 are asked for: 2
    # are sold at 10, 3 lost at 6. Next step the shelf has 3, then 1 and 4 come.
    shop = Inventory(lead_time=3, capacity=9, max_order=4, max_demand=5, horizon=2, price=10, unit_cost=2.5,
                     order_cost=7, holding=0.25, storage=0.5, penalty=6)  # fmt: skip
    system = shop.system
    order = shop.action_of(4)
    place, paid = system.advance(0, system.place("state", [2, 3, 1]), order, np.array([-5, 0, 0, 0]))
    assert system.space.state(int(place)).tolist() == [3, 1, 4]
    assert paid == pytest.approx(2 * 10 - 3 * 6 - 2 * 0.5 - 4 * 2.5 - 7)
    # One is asked for: one is left, at 0.25, and joins the 3 that come.
    place, paid = system.advance(0, system.place("state", [2, 3, 1]), order, np.array([-1, 0, 0, 0]))
    assert system.space.state(int(place)).tolist() == [4, 1, 4]
    assert paid == pytest.approx(10 - 0.25 - 2 * 0.5 - 4 * 2.5 - 7)
    # The shelf holds 9.
    place, _ = system.advance(0, system.place("state", [9, 4, 0]), order, np.array([0, 0, 0, 0]))
    assert system.space.state(int(place)).tolist() == [9, 0, 4]
    assert system.terminal[system.place("state", [2, 3, 1])] == pytest.approx(6 * 2.5)


@pytest.mark.parametrize(
    ("issue", "left", "paid"), [("first", [2, 3], 5 * 10 - 2 * 0.25), ("last", [0, 3], 50 - 2 * 3)]
)
def test_stock_ages(issue, left, paid):
    # Kept for two steps: 4 are sold now or never, 3 came this step, 5 are asked for. First in, first out: 4 old and 1
    # new are sold, and 2 new are kept. Last in, first out: 3 new and 2 old are sold, and 2 old thrown away at 3 each.
    shop = Inventory(shelf_life=2, lead_time=1, issue=issue, capacity=20, max_order=5, max_demand=6, horizon=2,
                     price=10, unit_cost=2.5, order_cost=7, holding=0.25, storage=0.5, penalty=6, waste=3)  # fmt: skip
    system = shop.system
    place, got = system.advance(0, system.place("state", [4, 3]), shop.action_of(3), np.array([-5, 0, 0, 0]))
    assert system.space.state(int(place)).tolist() == left
    assert got == pytest.approx(paid - 7 * 0.5 - 3 * 2.5 - 7)


def test_a_second_supplier_delivers_sooner():
    # 1 on the shelf, 2 come next step. 3 from the slow one at 2, 4 from the fast one, at once, at 5; 6 are asked for: 5
    # are sold, and 1 waits. Next step the shelf has 2 - 1 = 1, and 3 come after it.
    shop = Inventory(lead_time=2, fast_cost=5, unit_cost=2, price=10, holding=0.25, penalty=6, backlog=4, capacity=9,
                     max_order=4, max_demand=6, horizon=2)  # fmt: skip
    system = shop.system
    both = int(np.flatnonzero((system.actions == [3, 4]).all(axis=1))[0])
    place, paid = system.advance(0, system.place("state", [1, 2]), both, np.array([-6, 0, 0]))
    assert system.space.state(int(place)).tolist() == [1, 3]
    assert paid == pytest.approx(6 * 10 - 6 - 3 * 2 - 4 * 5)


@pytest.mark.parametrize(("fast_cost", "cost"), [(105, 216.7698), (110, 219.7333)])
def test_dual_sourcing_costs_what_is_published(fast_cost, cost):
    # Gijsbrechts et al. (2022): demand uniform on 0..4, the regular order after two steps.
    shop = Inventory(horizon=None, lead_time=2, fast_cost=fast_cost, unit_cost=100, price=0, holding=5, penalty=495,
                     backlog=12, capacity=16, max_order=6, max_demand=4)  # fmt: skip
    assert -ucbf.optimal(shop.world(ucbf.Disturbance(np.full(5, 0.2)))).gain == pytest.approx(cost, abs=5e-5)


@pytest.mark.parametrize(("issue", "value"), [("last", -1553), ("first", -1457)])
def test_perishables_are_worth_what_is_published(issue, value):
    # De Moor et al. (2022): gamma demand, mean 4, variation 0.5, rounded; 365 periods, after 100 to warm up.
    gamma, d = stats.gamma(4, scale=1), np.arange(26)
    pmf = gamma.cdf(d + 0.5) - gamma.cdf(d - 0.5)
    pmf[-1] += 1 - pmf.sum()
    shop = Inventory(horizon=365, discount=0.99, lead_time=1, shelf_life=2, issue=issue, waste=7, holding=1, penalty=5,
                     unit_cost=3, price=0, max_order=10, capacity=30, max_demand=25, salvage=0)  # fmt: skip
    world = shop.world(ucbf.Disturbance(pmf), start=[0, 0])
    plan, m, (moves, chances) = ucbf.optimal(world), world.system.mechanics, occurring(world.system, world.law)
    share = np.array(world.start)
    for _ in range(100):
        after = m.next_state[raw_starts(m)[m.after[0, np.arange(len(share)), plan.policy[0]]][:, None] + moves]
        share = np.bincount(after.ravel(), (share[:, None] * chances).ravel(), minlength=len(share))
    assert round(float(share @ plan.v[0])) == value


def waiting(lead_time):
    return Inventory(lead_time=lead_time, penalty=9, holding=1, backlog=60 + 8 * lead_time, max_demand=20, max_order=20,
                     capacity=40 + 8 * lead_time, **NOTHING)  # fmt: skip


@pytest.mark.parametrize("lead_time", [1, 10, 30])
def test_where_customers_wait_a_lead_time_is_on_one_axis(lead_time):
    # What is on the shelf when an order comes: what was there or under way, less lead_time + 1 demands. The newsvendor.
    world, pmf = waiting(lead_time).world(demand_of("poisson", 20)), np.ones(1)
    for _ in range(lead_time + 1):
        pmf = np.convolve(pmf, demand_of("poisson", 20).pmf[0])
    d = np.arange(len(pmf))
    costs = [pmf @ (np.maximum(y - d, 0) + 9 * np.maximum(d - y, 0)) for y in range(len(pmf))]
    plan = ucbf.optimal(world)
    assert -plan.gain == pytest.approx(min(costs), abs=1e-8)
    assert world.system.states[int(np.flatnonzero(plan.policy[0] == 0)[0])] == int(np.argmin(costs))


def test_what_is_paid_late_is_learned_by_planning_only():
    with pytest.raises(ValueError, match="UCB-f learns only from what is paid at once"):
        ucbf.UCBf(waiting(2).system)


@pytest.mark.slow
def test_what_is_paid_late_is_learned():
    world = waiting(10).world(demand_of("poisson", 20))
    run = ucbf.simulate(ucbf.UCBVIf(world.system), world, steps=2000)
    assert run.gap[-1] <= 0.02 * -world.best


def test_lead_times_of_an_episode_and_of_no_end_agree():
    # Nine tenths of what follows count: the discounted value from an empty shelf is that of a long episode.
    shop = Inventory(lead_time=2, penalty=4, holding=1, discount=0.9, capacity=12, max_order=6, max_demand=6, **NOTHING)
    endless, long = shop, shop.replace(horizon=400, salvage=0)
    law = ucbf.Disturbance([0.2, 0.1, 0.3, 0.1, 0.1, 0.1, 0.1])
    values = [ucbf.optimal(one.world(law)).v[0] for one in (endless, long)]
    np.testing.assert_allclose(*values, atol=1e-6)


def test_a_review_every_other_step_costs_more_than_one_every_step():
    every = Inventory(lead_time=1, penalty=4, holding=1, period=2, capacity=20, max_order=15, max_demand=12, **NOTHING)
    law = ucbf.Disturbance(stats.binom(12, 0.4).pmf(np.arange(13)))
    costs = [-ucbf.optimal(shop.world(law)).gain for shop in (every, every.replace(review=2))]
    assert costs[1] > costs[0] + 0.1
    assert not ucbf.optimal(every.replace(review=2).world(law)).policy[1].any()


def test_a_base_stock_level_is_worth_what_zipkin_printed():
    # The best base-stock level for Poisson demand, penalty 4, lead time 2, costs 4.64 (Zipkin's Table 3).
    world = zipkin("poisson", 4, 2)
    position = world.system.space.points.sum(axis=1)
    costs = [-gain(world, np.clip(level - position, 0, 12)) for level in range(10, 25)]
    assert min(costs) == pytest.approx(4.64, abs=5e-3)


def test_demand_is_learned_within_one_percent_in_three_hundred_periods():
    world, gaps = zipkin("poisson", 4, 2), []
    for seed in range(5):
        gaps.append(ucbf.simulate(ucbf.UCBVIf(world.system), world, steps=300, seed=seed).gap[-1] / -world.best)
    assert np.median(gaps) <= 0.01


def test_rules_of_stock_and_orders_under_way_are_found_and_said():
    shop = Inventory(lead_time=2, penalty=4, holding=1, capacity=12, max_order=6, max_demand=6, **NOTHING)
    world = shop.world()
    rules = shop.rules(world.law)
    assert list(rules) == ["myopic", "base-stock", "capped base-stock"]
    costs = {name: -worth(world, policy) for name, policy in rules.items()}
    assert -world.best < costs["capped base-stock"] < costs["base-stock"] < costs["myopic"]
    assert str(shop.policy(rules["base-stock"])) == "every day: order up to 7, at most 6 (stock and orders under way)"
    assert "order up to 7, at most 2 (stock and orders under way)" in str(shop.policy(rules["capped base-stock"]))
    # A table of two axes that is short is said as it is.
    policy = np.zeros((1, 4), np.int64)
    policy[0, 1] = 1
    tiny = ucbf.System(lambda s, a: s, 0.0, 1, low=[0, 0], high=[1, 1], actions=[0, 1], boundary="clip")
    assert (
        str(ucbf.Policy(tiny, policy))
        == "step 1: action 0 at 0, 0; action 1 at 0, 1; action 0 at 1, 0; action 0 at 1, 1"
    )


def test_a_battery_that_charges_slowly():
    # 4 in the battery, 5 bought at 2, 1 used: 4 more would go in, but only 3 can; 1 is spilled at 0.5. Then 6 are used:
    # of the 7 only 2 come out, and 4 are short at 9.
    cell = Battery(capacity=10, prices=2.0, max_buy=5, max_demand=6, max_charge=3, max_discharge=2, shortage_price=9,
                   spill_price=0.5, horizon=2, end_value=1)  # fmt: skip
    system = cell.system
    place, paid = system.advance(0, system.place("state", [4]), cell.action_of(5), np.array([-1, 0]))
    assert (int(place), float(paid)) == (7, pytest.approx(-5 * 2 + 0.5))
    place, paid = system.advance(0, place, cell.action_of(0), np.array([-6, 0]))
    assert (int(place), float(paid)) == (5, pytest.approx(-4 * 9))
    assert system.terminal[5] == 5
    # Limits that never bind change nothing.
    law = ucbf.Disturbance([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    free = cell.replace(max_charge=None, max_discharge=None)
    wide = cell.replace(max_charge=10, max_discharge=10)
    np.testing.assert_allclose(*(ucbf.optimal(one.world(law)).v for one in (free, wide)), atol=1e-12)


def test_a_queue_whose_servers_start_and_stop():
    # 7 wait, one choice (2 an hour) ran before; now three run (6 an hour, at 9), two more, at 4 each. 3 arrive: 4 wait.
    queue = Queue(capacity=10, max_arrivals=5, start_cost=4, stop_cost=1, waiting_cost=2, rejection_cost=20, horizon=2)
    system = queue.system
    place, paid = system.advance(0, system.place("state", [7, 1]), 3, np.array([3, 0]))
    assert system.space.state(int(place)).tolist() == [4, 3]
    assert float(paid) == pytest.approx(-9 - 2 * 4 - 4 * 2)
    # Then none: three are stopped, at 1 each; 5 arrive.
    place, paid = system.advance(1, int(place), 0, np.array([5, 0]))
    assert system.space.state(int(place)).tolist() == [9, 0]
    assert float(paid) == pytest.approx(-3 - 9 * 2)
    # Changes that cost nothing change nothing; those that are limited do.
    law = ucbf.Disturbance([0.2, 0.2, 0.2, 0.2, 0.1, 0.1])
    free, slow = Queue(capacity=10, max_arrivals=5), Queue(capacity=10, max_arrivals=5, max_change=1)
    costless = Queue(capacity=10, max_arrivals=5, max_change=3)
    values = [ucbf.optimal(one.world(law)).v[0] for one in (free, costless, slow)]
    np.testing.assert_allclose(values[1].reshape(11, 4), np.repeat(values[0][:, None], 4, axis=1), atol=1e-12)
    assert (values[2].reshape(11, 4)[:, 0] <= values[0] + 1e-12).all()
    assert values[2].sum() < values[1].sum() - 1


MISTAKES = [
    ({"lead_time": -1}, "lead_time is -1; it must be 0 to 1000"),
    ({"issue": "newest"}, "unknown issue 'newest'; the choices are 'first', 'last'"),
    ({"shelf_life": 1}, "shelf_life is 1; it must be 2 to 1000"),
    ({"shelf_life": 3, "backlog": 2}, "shelf_life is given with a backlog or a second supplier"),
    ({"fast_cost": 3}, "fast_lead_time is 0 and lead_time 0; the second supplier must be the faster one"),
    ({"max_fast": 3}, "max_fast is 3 without a fast_cost"),
    ({"period": 7}, "period is 7, and horizon 7; a period is of systems without an end"),
    ({"horizon": None, "review": 2}, "review is 2 and period 1; without an end the period must be a multiple"),
]


@pytest.mark.parametrize(("wrong", "message"), MISTAKES)
def test_mistakes_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        Inventory(**wrong)

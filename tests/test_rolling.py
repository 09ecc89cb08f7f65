"""Orders over sampled futures: brute force, hand-made paths, the terms of a store, and a store that is run on."""

import itertools

import numpy as np
import pytest

import ucbf
from ucbf.kernels.rolling import lasting, needs, projected, projected_now, target, value
from ucbf.kernels.shelves import sized, step_value
from ucbf.rolling import Rolling, best_order, plain_terms, rollout, terms_of
from ucbf.suppliers import Belief, Supplier


def certain(lag):
    """A supplier whose orders always come after ``lag`` periods."""
    lags = np.zeros(2 * lag + 4)
    lags[lag] = 1
    return Belief(lag, 1.0, lags)


def order(stock, quantities, ages, belief, demand, profit=3.0, holding=1.0, **more):
    demand = np.asarray(demand, float)
    rng = np.random.default_rng(0)
    return best_order(
        stock, quantities, ages, belief, demand, rng.random(len(demand)),
        rng.random((len(demand), len(ages) + demand.shape[1])), plain_terms(profit, holding), **more
    )  # fmt: skip


def reward(orders, stock, open_orders, demand, lag, profit, holding):
    """Literal: the reward of a path, every order coming after ``lag`` periods; open_orders by arrival step."""
    total = 0.0
    for j, d in enumerate(demand):
        stock += open_orders.get(j, 0) + (orders[j - lag] if j >= lag else 0)
        sold = min(stock, d)
        stock -= sold
        total += profit * sold - holding * stock
    return total


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_with_demand_and_lead_time_known_the_order_is_that_of_brute_force(lag):
    demand = [3, 5, 2, 4]
    plans = itertools.product(range(7), repeat=4)
    best = max(plans, key=lambda plan: reward(plan, 1, {0: 1}, demand, lag, 3.0, 1.0))
    ages, quantities = ([], []) if lag == 0 else ([lag], [1])
    found = order(2 if lag == 0 else 1, quantities, ages, certain(lag), [demand] * 4, safeties=(0.0,))
    assert found.quantity == pytest.approx(best[0])


def test_one_period_is_a_newsvendor():
    # profit 3, holding 1: the 3/4 quantile of 1..8 is between 6 and 7
    found = order(0, [], [], certain(0), np.arange(1.0, 9)[:, None])
    assert 6 <= found.quantity <= 7


def test_the_value_of_a_path_by_hand():
    # lag 1, stock 2, an open order of 3 that comes in step 0; demand 4, 2, 5; mean = demand; first order 1, no safety.
    # step 0: 2 + 3 = 5, sells 4, keeps 1: 3 * 4 - 1 = 11
    # step 1: projected for step 2: 1 + 1 - 2 = 0, orders 5; 1 + 1 arrives = 2, sells 2: 6
    # step 2: 5 arrive, sells 5: 15
    paths = np.array([[4.0, 2.0, 5.0]])
    r, stock = rollout([3.0], [1], certain(1), paths, np.zeros(1), np.zeros((1, 4)), plain_terms(3, 1)), np.array([2.0])
    assert value(r, stock, 1.0, 0.0) == pytest.approx(11 + 6 + 15)
    # first order 3: step 1 has 1 + 3, keeps 2 (cost 2); projected 2, so that step 1 orders 3
    assert value(r, stock, 3.0, 0.0) == pytest.approx(11 + 6 - 2 + 15)
    # nothing ordered: 2 + 3 - 4 = 1 before the demand of step 1
    assert projected_now(r, 2.0, 1) == pytest.approx(1)
    # with a safety of 2 standard deviations of 1.5, step 1 orders 3 more, which are left: -3
    assert value(r._replace(spread=np.full(3, 1.5)), stock, 1.0, 2.0) == pytest.approx(11 + 6 + 15 - 3)


def test_an_order_that_never_comes_is_not_paid_for():
    # Nothing in stock, a demand of 4 in each of 3 steps. The first order, of 5, never comes: it costs its 15, and its
    # units nothing. What the rule hopes of it is gone when the order of step 1 comes: all else is as without it.
    shop = ucbf.systems.Inventory(lead_time=1, price=9, unit_cost=2, order_cost=15, holding=0.5, penalty=0)
    paths, never = np.full((1, 3), 4.0), Belief(1, 0.0, np.array([0.0, 0.5, 0.0, 0.5]))
    draws = np.array([[0.9, 0.1, 0.1]])  # above 0.5: never; below: a lag of 1
    r = rollout([], [], never, paths, np.ones(1), draws, terms_of(shop))._replace(batch=0.0)
    assert r.fates.tolist() == [[-1, 2, 3]]
    assert value(r, np.zeros(1), 5.0, 0.0) - value(r, np.zeros(1), 0.0, 0.0) == pytest.approx(-15)


def test_what_open_and_placed_orders_are_expected_to_bring_by_hand():
    # lags 0, 1, 2 or never: 0.2, 0.4, 0.2, 0.2. The promise (1) is not kept. An open order of 10, age 1, leaves
    # 0.4 0.2 | 0.2 of 0.8: now 0.5, in a step 0.25. Of age 2, it leaves 0.2 | 0.2: 0.5.
    belief = Belief(1, 0.0, np.array([0.2, 0.4, 0.2, 0.0, 0.0, 0.2]))
    # path 0: 0.9 of what is left: never. Path 1: 0.6: lag 2, in step 1. The order of step 0: 0.9, never; 0.5, lag 1.
    # Path 2: 0.3: lag 1, it comes in step 0, and nothing more is hoped for in step 1.
    draws = np.array([[0.9, 0.9, 0.0], [0.6, 0.5, 0.0], [0.3, 0.9, 0.0]])
    r = rollout([10.0], [1], belief, np.full((3, 2), 4.0), np.zeros(3), draws, plain_terms(3.0, 1.0))
    assert r.lag == 1
    assert r.brought.tolist() == [[0, 0], [0, 10], [10, 0]]
    assert r.hoped[:, 0] == pytest.approx(np.array([[5, 2.5], [5, 2.5], [5, 2.5]]))
    assert r.hoped[:, 1] == pytest.approx(np.array([[5, 0], [5, 0], [0, 0]]))
    assert projected_now(r, 3.0, 0) == pytest.approx(3 + 5 - 4 + 2.5)
    # in step 1 of either path, stock 1, an order of 8 placed in step 0 has not come: 0.4 0.2 | 0.2, now 4, then 2
    assert projected(r, 0, 1, 1.0, np.array([8.0, 0.0])) == pytest.approx(1 + 5 + 4 - 4 + 2)
    assert projected(r, 1, 1, 1.0, np.array([8.0, 0.0])) == pytest.approx(1 + 5 + 4 - 4 + 2)


def test_one_path_in_so_many_is_valued():
    paths = np.array([[1.0], [2.0], [3.0], [4.0]])
    r, stock = rollout([], [], certain(0), paths, np.zeros(4), np.zeros((4, 1)), plain_terms(3.0, 1.0)), np.array([2.0])
    # nothing ordered: sells 1 and keeps 1, then 2, 2, 2; of every second path, the second and the fourth
    assert value(r, stock, 0.0, 0.0) == pytest.approx((3 - 1 + 6 + 6 + 6) / 4)
    assert value(r, stock, 0.0, 0.0, 2) == pytest.approx(6)
    assert value(r, stock, 1.0, 0.0, 2) == pytest.approx((6 - 1 + 9) / 2)


def test_what_must_be_ordered_for_the_stock_to_last_by_hand():
    # lag 1, an open order of 3 that comes in step 1. Path 0: 5 in stock, 2 sold; 3 + 3 for 9: 3 are needed. Path 1: all
    # 5 sold, 1 lost; 0 + 3 for 4: 1. Path 2: nothing is asked for; 5 + 3 for 2: 6 too many. Step 2 is the next order's.
    paths = np.array([[2.0, 9.0, 9.0], [6.0, 4.0, 9.0], [0.0, 2.0, 9.0]])
    r = rollout([3.0], [0], certain(1), paths, np.zeros(3), np.zeros((3, 4)), plain_terms(3.0, 1.0))
    found = np.empty(3)
    assert needs(r, np.array([5.0]), found) == 3
    assert found.tolist() == [-6, 1, 3]
    assert [lasting(found, 3, q) for q in (-7, 0, 1, 2, 3)] == [0, 1 / 3, 2 / 3, 2 / 3, 1]
    # where customers wait, path 1 owes 1 more
    needs(r._replace(terms=r.terms._replace(waits=1)), np.array([5.0]), found)
    assert found.tolist() == [-6, 2, 3]
    # reviewed at every second step, the order must do for step 2 as well: 3, 1, -6 and 9 more
    found = np.empty(6)
    assert needs(r._replace(terms=r.terms._replace(review=2)), np.array([5.0]), found) == 6
    assert found.tolist() == [-6, 1, 3, 3, 10, 12]


def test_with_a_service_asked_for_the_order_is_the_quantile_that_meets_it():
    terms = plain_terms(0.0, 1.0)._replace(service=0.9, grain=6.0)
    rng, demand = np.random.default_rng(0), np.arange(1.0, 101)[:, None]

    def found(stock, **more):  # fmt: skip
        return best_order(stock, [], [], certain(0), demand, rng.random(100), rng.random((100, 1)),
                          terms._replace(**more))  # fmt: skip

    # the 90th demand of 100 is 90: 90 - 25 = 65 are wanted, and packs of 6 are 66, which do for 91
    assert (found(25.0).quantity, found(25.0).lasts) == (66, 0.91)
    assert found(90.0).quantity == 0
    assert found(25.0, since=1).quantity == 0  # not now
    assert found(89.0, order_cost=200.0).quantity == 144  # 2 * 200 * 50.5 / 1, the root: 142


def test_an_order_that_may_never_come_is_not_relied_upon():
    lost = Belief(1, 0.0, np.array([0.0, 0.5, 0.0, 0.0, 0.0, 0.5]))
    sure = order(0, [20], [1], certain(1), np.full((400, 3), 10.0), profit=19.0)
    doubtful = order(0, [20], [1], lost, np.full((400, 3), 10.0), profit=19.0)
    assert sure.quantity == 0  # the 20 do for the first two steps
    assert doubtful.quantity >= 10


def test_nothing_is_ordered_that_could_not_come_before_the_end():
    assert order(0, [], [], certain(2), np.full((8, 2), 5.0)).quantity == 0


def test_a_dearer_shortage_means_a_larger_order():
    demand = np.random.default_rng(1).poisson(20, (256, 4))
    found = [order(0, [], [], certain(0), demand, profit=p).quantity for p in (1.0, 4.0, 19.0)]
    assert found[0] < found[1] < found[2]


def test_refusals():
    with pytest.raises(ValueError, match="one for each open order and each step"):
        best_order(0, [], [], certain(0), np.ones((2, 3)), [0, 0], np.ones((2, 2)), plain_terms(1, 1))
    with pytest.raises(ValueError, match="give one age for each open order"):
        order(0, [1], [], certain(0), np.ones((2, 3)))


# -- the terms of a store -------------------------------------------------------------------------------------------

STORE = ucbf.systems.Inventory(
    price=7, unit_cost=3, order_cost=5, holding=0.5, penalty=2, waste=1.5, lead_time=2, pack=6, min_order=10, review=2,
    max_order=30, max_demand=40, capacity=60,
)  # fmt: skip


def test_orders_are_whole_packs_and_not_too_small():
    terms = terms_of(STORE)  # packs of 6, at least 10, so 12, 18, 24, 30
    found = [sized(terms, q) for q in (0, 4.9, 5, 12, 14.9, 15, 29, 300, -4)]
    assert found == [0, 0, 12, 12, 12, 18, 30, 30, 0]
    assert sized(plain_terms(1, 1), 2.5) == 3


def test_a_step_by_hand():
    # 4 on the shelf, 9 asked for, 12 ordered: 4 sold, 5 missing: 7 * 4 - 2 * 5 - 3 * 12 - 5
    shelf = np.array([4.0])
    assert step_value(terms_of(STORE), shelf, 12.0, 9.0) == 28 - 10 - 36 - 5
    assert shelf[0] == 0
    # 9 on the shelf, 4 asked for: 28 - 0.5 * 5
    shelf = np.array([9.0])
    assert step_value(terms_of(STORE), shelf, 0.0, 4.0) == 28 - 2.5


def test_a_step_in_which_customers_wait_by_hand():
    # Owed 2, 9 asked for: all 9 are paid for, 11 are owed: 7 * 9 - 2 * 11
    terms, shelf = terms_of(STORE.replace(backlog=20)), np.array([-2.0])
    assert step_value(terms, shelf, 0.0, 9.0) == 63 - 22
    assert shelf[0] == -11


def test_stock_that_ages_by_hand():
    # 2 keep this step only, 6 one more, 3 two more; 1 is asked for: 1 of the oldest is sold, 1 thrown away.
    terms, shelf = terms_of(STORE.replace(shelf_life=3)), np.array([2.0, 6.0, 3.0])
    assert step_value(terms, shelf, 0.0, 1.0) == 7 - 0.5 * 9 - 1.5
    assert shelf.tolist() == [6.0, 3.0, 0.0]


def test_last_in_first_out_sells_what_is_fresh():
    terms, shelf = terms_of(STORE.replace(shelf_life=3, issue="last")), np.array([2.0, 6.0, 3.0])
    paid = step_value(terms, shelf, 0.0, 4.0)  # the 3 fresh ones and 1 of the 6; the 2 are thrown away
    assert shelf.tolist() == [5.0, 0.0, 0.0]
    assert paid == 28 - 2.5 - 3


def test_what_is_left_and_under_way_after_the_last_step_is_worth_its_cost():
    # lag 2, two steps: stock 10, nothing asked for; 12 ordered now come after the end.
    terms, found = terms_of(STORE), certain(2)
    paths = rollout([], [], found, np.zeros((1, 2)), np.zeros(1), np.zeros((1, 2)), terms)
    # holding 2 * 5, the order 36 + 5, and 3 * (10 + 12) at the end
    assert value(paths, np.array([10.0]), 12.0, 0.0) == -10 - 41 + 66
    # until the next review 4 + 8 are expected, and half a standard deviation of 3 is kept
    paths = paths._replace(mean=np.array([1.0, 2.0, 4.0, 8.0]), spread=np.full(4, 3.0))
    assert target(paths, 0, 0.5) == 4 + 8 + 1.5


STORES = {
    "lost": {}, "backlog": {"backlog": 60}, "order cost": {"order_cost": 40, "pack": 1, "min_order": 0},
    "review": {"review": 3}, "shelf life": {"shelf_life": 4}, "last first": {"shelf_life": 4, "issue": "last"},
    "free": {"order_cost": 0, "pack": 1, "min_order": 0, "max_order": None}, "smallest": {"order_cost": 0},
}  # fmt: skip


@pytest.mark.parametrize("service", [0.0, 0.95])
@pytest.mark.parametrize("name", STORES)
def test_a_larger_stock_never_means_a_larger_order(name, service):
    shop = STORE.replace(**{"review": 1, **STORES[name]})
    orders = Rolling(shop, season=[0.5, 1, 1.5], supplier=Supplier(2), paths=64, service=service)
    rng = np.random.default_rng(5)
    for t in range(42):
        orders.observe(rng.negative_binomial(3, 3 / (3 + 12 * (1 + (t > 20)))))
    for under_way in ([], [(18, 1)], [(12, 2), (12, 1)], [(12, 5)]):
        stocks = range(-30 if shop.backlog else 0, 300, 5)
        found = [orders.order(stock, under_way).quantity for stock in stocks]
        assert found == sorted(found, reverse=True), (under_way, found)
        assert found[0] > 0
        assert found[-1] == 0 or shop.shelf_life  # what is there may be too old when an order comes


def test_where_orders_cost_something_it_is_looked_ahead_until_a_batch_is_sold():
    # demand 10: the batch is sqrt(2 * 250 * 10 / 0.5) = 100, which lasts 10 steps; the order comes after 2.
    def ahead(**costs):  # fmt: skip
        orders = Rolling(STORE.replace(**{"review": 1, "holding": 0.5, **costs}))
        for _ in range(60):
            orders.observe(10)
        return orders.look_ahead

    assert ahead(order_cost=250) in (2 + 1 + 10, 2 + 1 + 11)  # the forecast is not 10 to the last digit
    assert ahead(order_cost=0) == ahead(order_cost=5) == 2 + 1 + 3
    assert ahead(order_cost=99_999) == 2 + 1 + 14
    assert ahead(order_cost=0, review=4) == 2 + 1 + 8


def test_between_reviews_nothing_is_ordered():
    orders = Rolling(STORE)
    for demand in (9, 12, 10):
        orders.observe(demand)
    assert orders.t == 3
    assert orders.order(0).quantity == 0  # reviews are at steps 0, 2, 4
    orders.observe(11)
    assert orders.order(0).quantity > 0


def test_the_same_history_gives_the_same_order_and_seasons_matter():
    def one(season=None):
        orders = Rolling(STORE.replace(review=1, pack=1, min_order=0), season=season)
        for t in range(28):
            orders.observe(10.0 * (3 if t % 7 == 5 else 1))
        return orders

    assert one().order(3, [(6, 1)]) == one().order(3, [(6, 1)])
    season = np.array([1, 1, 1, 1, 1, 3, 1.0])
    found = one(season).forecast(7)
    np.testing.assert_array_equal(one(season).forecast(4), found[:, :4])
    np.testing.assert_allclose(found.mean(axis=0), 10 * season, rtol=0.1)
    with pytest.raises(ValueError, match="one factor above 0"):
        Rolling(STORE, season=[0, 1])


def test_counts_stay_counts_where_a_step_sold_out():
    taken = []
    for seed in range(40):
        told = Rolling(ucbf.systems.Inventory(lead_time=2), seed=seed)
        for demand in (3, 1, 2, 2, 3, 1, 2, 4, 2, 1):
            told.observe(demand)
        drawn = told.forecast(1)[:, 0]
        expected = drawn[drawn >= 2].mean()
        added = []
        told.levels.add = lambda demand, factor, into=added: into.append(demand)
        told.observe(2, sold_out=True)
        assert added[0] in (np.floor(expected), np.ceil(expected))
        taken.append(added[0] - expected)
    assert abs(np.mean(taken)) < 3 * 0.5 / np.sqrt(len(taken))  # one of two neighbours: a deviation of 0.5 at most
    told = Rolling(ucbf.systems.Inventory(lead_time=2))
    for i in range(60):
        told.observe(i % 3, sold_out=i == 40)
    assert told.levels.whole
    np.testing.assert_array_equal(told.forecast(2), np.rint(told.forecast(2)))
    weighed = Rolling(ucbf.systems.Inventory(lead_time=2))
    for demand in (2.5, 3.1, 2.8, 2.2):
        weighed.observe(demand)
    drawn = weighed.forecast(1)[:, 0]
    other = Rolling(ucbf.systems.Inventory(lead_time=2))
    for demand in (2.5, 3.1, 2.8, 2.2, drawn[drawn >= 2].mean()):
        other.observe(demand)
    weighed.observe(2, sold_out=True)
    np.testing.assert_array_equal(weighed.forecast(2), other.forecast(2))


def test_a_step_that_sold_out_counts_for_more_than_it_sold():
    plain, told = Rolling(STORE), Rolling(STORE)
    for demand in (20, 22, 18, 21, 19, 20):
        plain.observe(demand)
        told.observe(demand)
    plain.observe(5)
    told.observe(5, sold_out=True)
    assert told.forecast(1).mean() > plain.forecast(1).mean() + 3


def test_overdue_orders_are_given_up_when_the_supplier_may_lose_them():
    orders = Rolling(STORE.replace(review=1, pack=1, min_order=0), supplier=Supplier(2))
    for t in range(20):
        orders.observe(10, lags=[2] if t > 2 else [])
    waiting, overdue = (orders.order(0, [(60, age)]).quantity for age in (1, 6))
    assert overdue > waiting


def test_what_rolling_orders_do_not_know_is_refused():
    with pytest.raises(
        ValueError, match="storage is given; where orders .* one supplier, one unit cost and no storage"
    ):
        Rolling(STORE.replace(storage=1))
    with pytest.raises(TypeError, match="give a ucbf.systems.Inventory"):
        Rolling(ucbf.systems.Queue())
    with pytest.raises(ValueError, match="shelf has 1 entries; give 3"):
        best_order(
            4.0, [], [], certain(0), np.ones((2, 3)), [0, 0], np.ones((2, 3)), terms_of(STORE.replace(shelf_life=3))
        )

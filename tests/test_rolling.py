import itertools

import numpy as np
import pytest

from ucbf.kernels.rolling import projected, projected_now, value
from ucbf.rolling import best_order, rollout
from ucbf.suppliers import Belief


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
        rng.random((len(demand), len(ages) + demand.shape[1])), profit=profit, holding=holding, **more
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
    found = order(2 if lag == 0 else 1, quantities, ages, certain(lag), [demand] * 4, covers=(1.0,))
    assert found.quantity == pytest.approx(best[0])


def test_one_period_is_a_newsvendor():
    # profit 3, holding 1: the 3/4 quantile of 1..8 is between 6 and 7
    found = order(0, [], [], certain(0), np.arange(1.0, 9)[:, None])
    assert 6 <= found.quantity <= 7


def test_the_value_of_a_path_by_hand():
    # lag 1, stock 2, an open order of 3 that comes in step 0; demand 4, 2, 5; mean = demand; first order 1, cover 1.
    # step 0: 2 + 3 = 5, sells 4, keeps 1: 3 * 4 - 1 = 11
    # step 1: projected for step 2: 1 + 1 - 2 = 0, orders 5; 1 + 1 arrives = 2, sells 2: 6
    # step 2: 5 arrive, sells 5: 15
    r = rollout(2.0, [3.0], [1], certain(1), np.array([[4.0, 2.0, 5.0]]), np.zeros(1), np.zeros((1, 4)), 3.0, 1.0)
    assert value(r, 1.0, 1.0) == pytest.approx(11 + 6 + 15)
    # first order 3: step 1 has 1 + 3, keeps 2 (cost 2); projected 2, so that step 1 orders 3
    assert value(r, 3.0, 1.0) == pytest.approx(11 + 6 - 2 + 15)
    # nothing ordered: 2 + 3 - 4 = 1 before the demand of step 1
    assert projected_now(r, 1) == pytest.approx(1)


def test_what_open_and_placed_orders_are_expected_to_bring_by_hand():
    # lags 0, 1, 2 or never: 0.2, 0.4, 0.2, 0.2. The promise (1) is not kept. An open order of 10, age 1, leaves
    # 0.4 0.2 | 0.2 of 0.8: now 0.5, in a step 0.25. Of age 2, it leaves 0.2 | 0.2: 0.5.
    belief = Belief(1, 0.0, np.array([0.2, 0.4, 0.2, 0.0, 0.0, 0.2]))
    # path 0: 0.9 of what is left: never. Path 1: 0.6: lag 2, in step 1. The order of step 0: 0.9, never; 0.5, lag 1.
    # Path 2: 0.3: lag 1, it comes in step 0, and nothing more is hoped for in step 1.
    draws = np.array([[0.9, 0.9, 0.0], [0.6, 0.5, 0.0], [0.3, 0.9, 0.0]])
    r = rollout(3.0, [10.0], [1], belief, np.full((3, 2), 4.0), np.zeros(3), draws, 3.0, 1.0)
    assert r.lag == 1
    assert r.brought.tolist() == [[0, 0], [0, 10], [10, 0]]
    assert r.hoped[:, 0] == pytest.approx(np.array([[5, 2.5], [5, 2.5], [5, 2.5]]))
    assert r.hoped[:, 1] == pytest.approx(np.array([[5, 0], [5, 0], [0, 0]]))
    assert projected_now(r, 0) == pytest.approx(3 + 5 - 4 + 2.5)
    # in step 1 of either path, stock 1, an order of 8 placed in step 0 has not come: 0.4 0.2 | 0.2, now 4, then 2
    assert projected(r, 0, 1, 1.0, np.array([8.0, 0.0])) == pytest.approx(1 + 5 + 4 - 4 + 2)
    assert projected(r, 1, 1, 1.0, np.array([8.0, 0.0])) == pytest.approx(1 + 5 + 4 - 4 + 2)


def test_one_path_in_so_many_is_valued():
    r = rollout(
        2.0, [], [], certain(0), np.array([[1.0], [2.0], [3.0], [4.0]]), np.zeros(4), np.zeros((4, 1)), 3.0, 1.0
    )
    # nothing ordered: sells 1 and keeps 1, then 2, 2, 2; of every second path, the second and the fourth
    assert value(r, 0.0, 1.0) == pytest.approx((3 - 1 + 6 + 6 + 6) / 4)
    assert value(r, 0.0, 1.0, 2) == pytest.approx(6)
    assert value(r, 1.0, 1.0, 2) == pytest.approx((6 - 1 + 9) / 2)


def test_an_order_that_may_never_come_is_not_relied_upon():
    lost = Belief(1, 0.0, np.array([0.0, 0.5, 0.0, 0.0, 0.0, 0.5]))
    sure = order(0, [10], [1], certain(1), np.full((400, 3), 10.0), profit=19.0)
    doubtful = order(0, [10], [1], lost, np.full((400, 3), 10.0), profit=19.0)
    assert doubtful.quantity > sure.quantity + 3


def test_nothing_is_ordered_that_could_not_come_before_the_end():
    assert order(0, [], [], certain(2), np.full((8, 2), 5.0)).quantity == 0


def test_a_dearer_shortage_means_a_larger_order():
    demand = np.random.default_rng(1).poisson(20, (256, 4))
    found = [order(0, [], [], certain(0), demand, profit=p).quantity for p in (1.0, 4.0, 19.0)]
    assert found[0] < found[1] < found[2]


def test_refusals():
    with pytest.raises(ValueError, match="one for each open order and each step"):
        best_order(0, [], [], certain(0), np.ones((2, 3)), [0, 0], np.ones((2, 2)), profit=1, holding=1)
    with pytest.raises(ValueError, match="give one age for each open order"):
        order(0, [1], [], certain(0), np.ones((2, 3)))

"""A few days of every preset, worked out to the cent: every cost is there, and what comes later is worth less."""

import gymnasium
import numpy as np
import pytest

import ucbf
import ucbf.envs
from ucbf.systems import Battery, Inventory, Queue, Reservoir, Shower

SHOP = Inventory(
    horizon=2, unit=2, capacity=10, max_demand=12, backlog=4, price=9, unit_cost=4, order_cost=3, holding=0.5,
    storage=0.25, penalty=2, salvage=1.5, discount=0.5,
)  # fmt: skip
WHOLESALE = Inventory(
    horizon=2, unit=2, capacity=20, max_demand=12, backlog=4, pack=4, min_order=8, review=2, price=9, unit_cost=4,
    price_breaks=((12, 3.5), (16, 3)), order_cost=3, holding=0.5, storage=0.25, penalty=2, salvage=1.5, discount=0.5,
)  # fmt: skip
STORE = Battery(
    horizon=2, unit=2, capacity=8, prices=(3, 5), max_buy=6, max_sell=4, min_demand=-6, max_demand=6, efficiency=0.8,
    shortage_price=20, spill_price=-1, end_value=2, discount=0.5,
)  # fmt: skip
DAM = Reservoir(
    horizon=2, unit=10, capacity=50, max_inflow=40, max_release=30, value=(2, 3), target=20, shortage_cost=(1, 4),
    spill_cost=0.5, water_value=1.5, discount=0.5,
)  # fmt: skip
DESK = Queue(
    horizon=2, unit=2, capacity=8, max_arrivals=10, service=(0, 4), service_cost=(1, 3), waiting_cost=0.5,
    rejection_cost=7, end_cost=2, discount=0.5,
)  # fmt: skip
BATH = Shower(horizon=2, coldest=30, hottest=40, target_low=37, target_high=38, drift=1, discount=0.5)

# preset, first state, what is done, the amount, where it ends, what it brings
DAYS = {
    # Monday: 2 + 6 in stock, 8 · 0.25 to store them, 6 · 4 + 3 to buy; 4 are sold at 9, 4 are held at 0.5: 36-2-27-2 =
    # 5. Tuesday: 4 + 6, 10 · 0.25, 27; all 10 are sold and 2 are owed, paid for at 9 and waited for at 2: 108-2.5-27-4.
    # In the end 2 are owed, at 1.5 each. 5 + 74.5/2 - 3/4.
    "shop": (SHOP, 2, (6, 6), (4, 12), -2, 5 + 74.5 / 2 - 3 / 4),
    # Nothing is bought: 4 · 0.25, all 4 sold, 4 owed and 4 lost of 12, 8 are missing at 2: 72 - 1 - 16 = 55. Then 4 are
    # owed; 10 bought for 43, of which 6 remain, stored at 0.25, 2 sold for 18, 4 held at 0.5: 18 - 43 - 1.5 - 2 =
    # -28.5.
    "shop that owes": (SHOP, 4, (0, 10), (12, 2), 4, 55 - 28.5 / 2 + 6 / 4),
    # 12 at 3.5 and 3 to order them: 45; 14 · 0.25 to store them; 4 are sold, 10 are held: 36-45-3.5-5 = -17.5. Then no
    # order can be placed: 10 · 0.25, 12 are paid for, 2 of them owed: 108-2.5-4 = 101.5. 2 are owed in the end.
    "shop that buys packs": (WHOLESALE, 2, (12, 0), (4, 12), -2, -17.5 + 101.5 / 2 - 3 / 4),
    # 8 are below the first break, 32 + 3; 12 · 0.25; 2 sold, 10 held: 18-35-3-5 = -25. 36-2.5-3 = 30.5. 6 are left.
    "shop that buys little": (WHOLESALE, 4, (8, 0), (2, 4), 6, -25 + 30.5 / 2 + 9 / 4),
    # All 20 cost 3, 60 + 3; 4 were owed, 16 · 0.25; 12 sold, 4 held: 108-63-4-2 = 39. Then 54-1-4 = 49, and 2 are owed.
    "shop that buys much": (WHOLESALE, -4, (20, 0), (12, 6), -2, 39 + 49 / 2 - 3 / 4),
    # 4 arrive of 5 paid for at 3: 15. 2 are generated, and of 4 + 4 + 2 two do not fit: 2. Then 4 are sold at 5, and of
    # 6 that are needed 2 are not there: 20 · 2. -17 + (20 - 40)/2 + 0.
    "battery": (STORE, 4, (4, -4), (-2, 6), 0, -17 - 20 / 2),
    # The same where three of the four that are sold arrive, 15 for them; the demand is what leaves the battery.
    "battery that loses": (STORE.replace(discharge_efficiency=0.75), 4, (4, -4), (-2, 6), 0, -17 + (15 - 40) / 2),
    # 6 of 7.5 at 3, and 6 - 2 remain; then nothing, and 2 are left, at 2 each.
    "battery that lasts": (STORE, 0, (6, 0), (2, 2), 2, -22.5 + 0 / 2 + 4 / 4),
    # 10 at 2, 10 less than wanted at 1; 30 - 10 + 40 is 10 too much, at 0.5. Then 30 at 3; 50 - 30 + 10 are left, at
    # 1.5.
    "dam": (DAM, 30, (10, 30), (40, 10), 30, (20 - 10 - 5) + 90 / 2 + 45 / 4),
    # 20 at 2, as wanted; 0 left and 10 come. 10 at 3 are 10 less than wanted at 4; 0 left.
    "dam that runs dry": (DAM, 20, (20, 10), (10, 0), 0, 40 + (30 - 40) / 2 + 0),
    # 6 wait, 4 are served for 3, 8 come: 10, of whom 2 find no room at 7, 8 wait at 0.5. Then nobody is served, for 1,
    # and 2 come in vain: 4 + 14. 8 still wait, at 2.
    "desk": (DESK, 6, (4, 0), (8, 2), 8, -(3 + 4 + 14) - (1 + 4 + 14) / 2 - 16 / 4),
    # 2 wait and 4 could be served; 4 come; 4 are served and 2 come.
    "desk that is quick": (DESK, 2, (4, 4), (4, 2), 2, -(3 + 2) - (3 + 1) / 2 - 4 / 4),
    # 36 + 1 + 1 is warm enough; 38 + 1 + 1 is too hot.
    "bath": (BATH, 36, (1, 1), (1, 1), 40, 1 - 1 / 2),
}


def parts(name):
    preset, start, done, amounts, end, brings = DAYS[name]
    index = [preset.action_of(x) for x in done]
    policy = np.zeros((2, preset.system.n_states), int)
    for h, a in enumerate(index):
        fits = preset.system.allowed[h, :, a]
        policy[h] = np.where(fits, a, preset.system.allowed[h].argmax(axis=1))
    return preset, start, policy, preset.disturbances([amounts]), end, brings


@pytest.mark.parametrize("name", DAYS)
def test_replayed(name):
    preset, start, policy, w, end, brings = parts(name)
    done = ucbf.replay(ucbf.Policy(preset.system, policy), w, start=int(start // preset.unit), carry=False)
    assert done.states[0, -1] * preset.unit == end
    assert done.reward[0] == pytest.approx(brings)


@pytest.mark.parametrize("name", DAYS)
def test_evaluated(name):
    preset, start, policy, w, _, brings = parts(name)
    low, high = int(w.min()), int(w.max())
    law = ucbf.Disturbance(np.eye(high - low + 1)[w[0] - low], low=low)
    world = ucbf.World(preset.system, law)
    value = ucbf.evaluate(world, policy)[0, int(start // preset.unit) - preset.system.state_offset]
    assert value == pytest.approx(brings)


@pytest.mark.parametrize("name", DAYS)
def test_in_an_environment(name):
    preset, start, policy, w, end, brings = parts(name)
    low, high = int(w.min()), int(w.max())
    law = ucbf.Disturbance(np.eye(high - low + 1)[w[0] - low], low=low)
    env = gymnasium.make("ucbf/World-v0", world=ucbf.World(preset.system, law, start=int(start // preset.unit)))
    state, _ = env.reset(seed=0)
    total = 0.0
    for h in range(2):
        state, reward, over, _, _ = env.step(int(policy[h, state - preset.system.state_offset]))
        total += 0.5**h * reward
    assert over
    assert state * preset.unit == end
    assert total == pytest.approx(brings)


def test_what_is_carried_over_is_charged_at_what_was_paid_for_it():
    # Two weeks of the shop: the second begins with 2 owed, for which 1.5 each were paid, undiscounted, at its start.
    policy = ucbf.Policy(SHOP.system, parts("shop")[2])
    w = SHOP.disturbances([(4, 12), (4, 12)])
    done = ucbf.replay(policy, w, start=1)
    alone = ucbf.replay(policy, w[1:], start=-1, carry=False)
    assert done.states[1, 0] == -1
    assert done.reward[0] == pytest.approx(5 + 74.5 / 2 - 3 / 4 - 1.5 * 2)
    assert done.reward[1] == pytest.approx(alone.reward[0] + 1.5 * 2)


def test_base_stock_by_its_critical_ratio():
    # A unit too few loses 9 + 2 - 4 less the 1 of storing it, 6; one too many costs 4 + 0.5 - 1.5 and that 1, 4.
    # 6 / (6 + 4) of a demand of 0 to 9 alike is 5.
    shop = Inventory(
        horizon=1, capacity=12, max_demand=9, price=9, unit_cost=4, holding=0.5, storage=1, penalty=2, salvage=1.5
    )
    law = shop.disturbance_distribution(ucbf.Disturbance(np.full(10, 0.1)))
    np.testing.assert_array_equal(shop.rules(law)["base-stock"][0], np.maximum(5 - np.arange(13), 0))
    # Where customers wait only the penalty is at stake: (2 - 1) / (1 + 4) = 0.2 is 1.
    waits = shop.replace(backlog=9)
    np.testing.assert_array_equal(waits.rules(law)["base-stock"][0], np.maximum(1 - np.arange(-9, 13), 0))


def test_a_box_discounts_what_is_paid_and_its_end():
    # x' = x + u + w on 0..8, reward 3x - u, landing z/2, end 4x, γ = 0.5, u = 1 always. From 2 with W = 0, 1:
    # 6 - 1 + 3/2 = 6.5; then from 3: 9 - 1 + 5/2 = 10.5; the end is 5: 20. 6.5 + 10.5/2 + 20/4 = 16.75.
    for points, values in ((9, [[0.0], [1.0]]), (None, [[0], [1]])):
        box = ucbf.System(
            lambda s, a: s + a[:, None], lambda s, a: 3 * s[:, 0] - a, 2, "clip", low=[0], high=[8], points=points,
            actions=[1], landing=lambda z: z[:, 0] / 2, terminal=lambda s: 4 * s[:, 0], discount=0.5,
            disturbance_range=(0, 1),
        )  # fmt: skip
        world = ucbf.World(box, ucbf.Disturbance([[1, 0], [0, 1]], values=values), start=[2])
        plan = ucbf.optimal(world)
        if points:
            assert plan.rollout([[2.0]], [[[0.0], [1.0]]]) == pytest.approx([16.75])
        assert plan.value_at(0, [2]) == pytest.approx(16.75)
        assert ucbf.replay(plan, [values], start=[2], carry=False).reward == pytest.approx([16.75])
        assert ucbf.simulate(ucbf.UCBVIf(box), world, 1).reward == pytest.approx([16.75])
        env = gymnasium.make("ucbf/World-v0", world=world)
        env.reset(seed=0)
        rewards = [env.step(0)[1] for _ in range(2)]
        assert rewards == pytest.approx([6.5, 10.5 + 0.5 * 20])

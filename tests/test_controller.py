"""Agents in the user's units, and the files they are kept in."""

import numpy as np
import pytest

import forging
import ucbf
from ucbf.systems import Battery, Inventory, Preset, Queue


def shop(**more):
    return Inventory(**{"unit": 2, "capacity": 40, "max_demand": 20, "horizon": 3, "holding": 1.0, **more})


def test_states_orders_and_demand_are_in_the_users_units():
    preset = shop()
    agent, controller = ucbf.UCBVIf(preset.system), ucbf.Controller(preset, ucbf.UCBVIf(preset.system))
    # 10 on the shelf and 12 ordered are 5 + 6; 8 asked for are 4; 14 are left, 7.
    controller.observe(0, 10, 12, 14, amount=8)
    agent.observe(0, 5, 6, 7, disturbance=-4)
    # Of 9 on the shelf (4.5, rounded to 4) and nothing ordered, all went: at least 8 were asked for.
    controller.observe(1, 8, 0, 0)
    agent.observe(1, 4, 0, 0)
    for name, array in agent.state.items():
        np.testing.assert_array_equal(array, controller.agent.state[name], err_msg=name)
    assert controller.act(0, 10) == 2 * agent.act(0, 5)
    assert controller.act(2, 0) == 2 * agent.act(2, 0)
    assert str(controller.policy) == str(preset.policy(agent))


def test_amounts_that_do_not_fit_the_unit_are_rounded():
    controller = ucbf.Controller(shop(), ucbf.UCBVIf(shop().system))
    # 11 (6 units, as 5.5 is rounded to the even one), 13 ordered (12), 7 asked for (4 units): 14 units less 4 are 20;
    # 17 were counted, which rounds to 16 or 18, and is one unit off at most.
    controller.observe(0, 11, 13, 17, amount=7)
    assert controller.agent.law.pmf[0, 20 // 2 - 4] == 1
    with pytest.raises(ValueError, match="from stock 11 with order 13 and demand 7 comes 16, not 25; correct one"):
        controller.observe(0, 11, 13, 25, amount=7)


def test_orders_that_a_supplier_does_not_take_are_refused_in_the_users_words(tmp_path):
    preset = shop(pack=6, review=2, price_breaks=((12, 3.5), (24, 3)))
    controller = ucbf.Controller(preset, ucbf.UCBVIf(preset.system))
    controller.observe(0, 10, 12, 14, amount=8)  # 5 units and 6 units, which is action 2; 4 units go
    plain = ucbf.UCBVIf(preset.system)
    plain.observe(0, 5, 2, 7, disturbance=-4)
    np.testing.assert_array_equal(plain.q, controller.agent.q)
    assert controller.act(0, 0) % 6 == 0
    assert controller.act(1, 0) == 0
    for h, stock, order, message in [
        (0, 10, 9, "order is 9, which is none that Inventory has: give 6 or 12"),
        (1, 10, 12, "order is 12; at step 1 with stock 10 it must be 0"),
        (0, 30, 12, "order is 12; at step 0 with stock 30 it must be 0 to 6"),
    ]:
        with pytest.raises(ValueError, match=message):
            controller.observe(h, stock, order, 10, amount=8)
    controller.save(tmp_path / "agent.npz")
    assert ucbf.load(tmp_path / "agent.npz").preset == preset


def test_a_profile_is_taken_into_account():
    preset = shop(profile=(6.0, 8.0, 10.0))
    controller = ucbf.Controller(preset, ucbf.UCBVIf(preset.system))
    controller.observe(1, 20, 0, 10, amount=10)  # 8 were expected, 10 came: W is -1 unit
    assert controller.agent.law.mean(1) == -1


def test_of_equally_good_orders_the_lowest_is_taken_as_in_the_table():
    preset = shop(price=5, unit_cost=5, holding=0, salvage=5)  # nothing is earned, whatever is ordered
    agent = ucbf.UCBVIf(preset.system)
    agent.warm_start(-np.random.default_rng(0).integers(0, 10, (30, 3)))
    controller = ucbf.Controller(preset, agent)
    table = {(row["day"], row["stock"]): row["order"] for row in controller.policy.rows()}
    for h in range(3):
        for stock in range(0, 42, 2):
            assert controller.act(h, stock) == table[(h + 1, float(stock))]


def test_a_saved_controller_acts_in_the_same_units(tmp_path):
    preset = shop(profile=(6.0, 8.0, 10.0))
    controller = ucbf.Controller(preset, ucbf.UCBVIf(preset.system.replace(terminal=np.arange(21.0))))
    controller.observe(0, 10, 12, 14, amount=8)
    controller.save(tmp_path / "agent.npz")
    again = ucbf.load(tmp_path / "agent.npz")
    assert isinstance(again, ucbf.Controller)
    assert again.preset == preset
    assert [again.act(h, s) for h in range(3) for s in range(41)] == [
        controller.act(h, s) for h in range(3) for s in range(41)
    ]
    both = (again, controller)
    for each in both:
        each.observe(1, 14, 0, 4, amount=10)
    np.testing.assert_array_equal(again.agent.q, controller.agent.q)


class Kiosk(Inventory):
    """A system of one's own."""

    kind = "kiosk"


def test_a_controller_of_ones_own_system_is_loaded_with_its_class(tmp_path):
    preset = Kiosk(capacity=5, max_demand=3)
    ucbf.Controller(preset, ucbf.UCBVIf(preset.system)).save(tmp_path / "kiosk.npz")
    with pytest.raises(ValueError, match="is of the preset 'kiosk'; pass its class"):
        ucbf.load(tmp_path / "kiosk.npz")
    assert ucbf.load(tmp_path / "kiosk.npz", preset=Kiosk).preset == preset
    with pytest.raises(ValueError, match="is of the preset 'kiosk'"):
        ucbf.load(tmp_path / "kiosk.npz", preset=Inventory)


def test_a_plain_agent_is_loaded_as_one(tmp_path):
    ucbf.UCBVIf(shop().system).save(tmp_path / "agent.npz")
    assert isinstance(ucbf.load(tmp_path / "agent.npz"), ucbf.UCBVIf)


@pytest.mark.parametrize("preset", [shop(), Battery(horizon=2, unit=2, max_sell=4, capacity=8), Queue(unit=2)])
def test_every_preset_can_be_controlled(preset: Preset):
    controller = ucbf.Controller(preset, ucbf.UCBVIf(preset.system))
    state = preset.system.states[-1] * preset.unit
    assert controller.act(0, state) in preset.action_quantities


def test_mistakes_are_named_in_the_users_units():
    controller = ucbf.Controller(shop(), ucbf.UCBVIf(shop().system))
    for make, message in [
        (lambda: controller.act(0, 43), r"state \(stock\) is 43; it must be 0 to 40"),
        (lambda: controller.act(3, 10), "step h is 3; it must be 0 to 2"),
        (lambda: controller.observe(0, 10, 99, 14), "order is 99; it must be 0 to 40"),
        (lambda: controller.observe(0, 10, 12, 14, amount=60), "demand is 60; it must be 0 to 20"),
        (lambda: ucbf.Controller(shop(), ucbf.UCBH(shop().system)), "give an agent that is told f"),
        (lambda: ucbf.Controller(shop(capacity=20), ucbf.UCBVIf(shop().system)), "build it from preset.system"),
        (lambda: ucbf.Controller(shop().system, None), "give one of ucbf.systems"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            make()


def test_an_amount_may_be_as_far_beyond_its_range_as_rounding_goes():
    preset = shop()
    for amount in (preset.amount_range[1] + 0.4 * preset.unit, preset.amount_range[0] - 0.4 * preset.unit):
        controller = ucbf.Controller(preset, ucbf.UCBVIf(preset.system))
        demand = min(max(amount, 0), 20)
        controller.observe(0, 40, 0, max(40 - demand, 0), amount=amount)
        assert controller.agent.learner.visits[0] == 1
    for amount in (preset.amount_range[1] + 0.6 * preset.unit, preset.amount_range[0] - 0.6 * preset.unit):
        with pytest.raises(ValueError, match="it must be 0 to 20"):
            controller.observe(0, 40, 0, 20, amount=amount)


@pytest.mark.filterwarnings("ignore")
def test_forged_units_are_refused_or_harmless(tmp_path):
    controller = ucbf.Controller(shop(capacity=10), ucbf.UCBVIf(shop(capacity=10).system))
    controller.save(tmp_path / "agent")
    forged = [each for each in forging.forged_headers(tmp_path / "agent") if "'preset'" in each[0]]
    assert len(forged) > 100
    for _, content in forged:
        (tmp_path / "forged").write_bytes(content)
        loaded, _ = forging.load(tmp_path / "forged")
        if loaded is not None:
            forging.use(loaded)


def test_units_of_another_horizon_are_refused_before_tables_are_made(tmp_path):
    path, preset = tmp_path / "agent", shop()
    ucbf.Controller(preset, ucbf.UCBVIf(preset.system)).save(path)
    header, arrays = forging.contents(path)
    header["preset"][1]["horizon"] = 10**6
    path.write_bytes(forging.sealed(header, arrays))
    with pytest.raises(
        ValueError, match="does not hold this controller: its units are of 1000000 steps, its agent of 3"
    ):
        ucbf.load(path)

"""Policies as tables, and the rules read off them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ucbf
from ucbf.rule_reading import Words
from ucbf.rules import aim_at, certainty_equivalent, myopic, up_to
from ucbf.systems import Inventory, Queue, Reservoir
from worlds import forked, weather


def store(**more):
    return Inventory(**{"capacity": 10, "max_demand": 5, "horizon": 2, "salvage": 0, **more})


def test_up_to_a_level_below_a_threshold_is_read_off():
    shop = store()
    policy = shop.policy(up_to(shop.system, [7, 4], [3, 4]))
    first, second = policy.rules()
    assert first == ("up to", "order up to 7 when below 3", 3.0, 7.0)
    assert second == ("up to", "order up to 4", 4.0, 4.0)
    assert str(policy) == "day 1: order up to 7 when below 3\nday 2: order up to 4"
    assert str(shop.policy(up_to(shop.system, 7, 3), steps=("Mon", "Tue"))) == "Mon to Tue: order up to 7 when below 3"


def test_a_limit_on_orders_does_not_hide_the_level():
    shop = store(max_order=3)
    assert shop.policy(up_to(shop.system, 7, 6)).rules()[0][1:] == ("order up to 7, at most 3 when below 6", 6.0, 7.0)
    assert shop.policy(up_to(shop.system, 10, 4)).rules()[0].text == "order 3 when below 4"


def test_packs_do_not_hide_the_level():
    # Up to 9 in packs of 4: from 0 and 1 two packs, from 5 one, and from 6 on a pack would be too much.
    shop = store(pack=4)
    policy = shop.policy(up_to(shop.system, 9))
    assert policy.quantities[0].tolist() == [8, 8, 4, 4, 4, 4, 0, 0, 0, 0, 0]
    assert policy.rules()[0] == ("up to", "order up to 9 when below 6, in multiples of 4", 6.0, 9.0)
    both = store(pack=4, max_order=4)
    assert both.policy(up_to(both.system, 9)).rules()[0].text == "order 4 when below 6"
    least = store(pack=2, min_order=6, max_order=8)
    assert least.policy(up_to(least.system, 10)).rules()[0].text == (
        "order up to 10, at most 8 when below 5, in multiples of 2"
    )
    # Two and three units, not multiples of anything: only what comes exactly to the level is said to.
    words = Words(verb="order", action_quantities=np.array([0.0, 2, 3]))
    steps = ucbf.System(lambda s, a: s + np.array([0, 2, 3])[a], 0.0, 1, "clip", n_states=6, n_actions=3)
    assert ucbf.Policy(steps, np.array([2, 2, 2, 1, 0, 0]), words).rules()[0].text == (
        "order up to 5, at most 3 when below 4"
    )
    assert ucbf.Policy(steps, np.array([2, 1, 0, 0, 0, 0]), words).rules()[0].text == "order up to 3 when below 2"
    assert ucbf.Policy(steps, np.array([2, 2, 1, 1, 0, 0]), words).rules()[0].kind == "pieces"
    between = words._replace(action_quantities=np.array([0, 2.4, 4.4]))
    assert ucbf.Policy(steps, np.array([1, 0, 0, 0, 0, 0]), between).rules()[0].text == "order up to 2.4 when below 1"


def test_other_shapes_are_said_as_they_are():
    shop = store()
    assert shop.policy(np.zeros((2, 11), int)).rules()[0].text == "no order"
    odd = np.zeros((2, 11), int)
    odd[0, [0, 2, 4, 6]] = 1
    assert shop.policy(odd).rules()[0].kind == "none"
    queue = Queue(horizon=1, capacity=5)
    text = queue.policy(np.array([[0, 0, 1, 1, 2, 3]])).rules()[0].text
    assert text == "no service up to 1, service 2 from 2 to 3, service 4 at 4, service 6 from 5 on"
    dam = Reservoir(horizon=1, capacity=5)
    assert dam.policy(np.array([[0, 0, 0, 1, 2, 3]])).rules()[0].text == "release down to 2"
    assert dam.policy(np.array([[0, 1, 2, 2, 2, 2]])).rules()[0].text == "release 2, or what there is"
    capped = Reservoir(horizon=1, capacity=8, max_release=4)
    assert capped.policy(np.array([[0, 1, 2, 2, 2, 3, 4, 4, 4]])).rules()[0].text == (
        "release 2, or what there is, and all beyond 4, at most 4"
    )


def test_aiming_at_a_level_by_hand():
    # Demand is 2 on average: to be left with 3, stock 1 orders 4.
    shop = store()
    law = shop.disturbance_distribution(ucbf.Disturbance([0.0, 0.5, 0.0, 0.5]))
    assert aim_at(shop.system, law, 3)[0].tolist() == [5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0]


def test_a_policy_is_a_table_a_file_and_an_array(tmp_path):
    shop = store(unit=2, max_demand=4)
    policy = shop.policy(up_to(shop.system, 3), steps=("Mon", "Tue"))
    table = policy.table()
    names = list(table.columns) if hasattr(table, "iloc") else table.column_names
    assert names == ["day", "stock", "order"]
    assert policy.rows()[1] == {"day": "Mon", "stock": 2.0, "order": 4.0}
    policy.to_csv(tmp_path / "policy.csv")
    lines = (tmp_path / "policy.csv").read_text().splitlines()
    assert lines[:3] == ["day,stock,order", "Mon,0,6", "Mon,2,4"]
    assert len(lines) == 1 + 2 * 6
    np.testing.assert_array_equal(np.asarray(policy), policy.actions)
    world = shop.world()
    np.testing.assert_array_equal(ucbf.evaluate(world, policy), ucbf.evaluate(world, policy.actions))


def test_a_system_of_ones_own_has_plain_words():
    world = ucbf.random_world(n_states=3, n_actions=2, horizon=1, lipschitz=None)
    policy = ucbf.Policy(world.system, ucbf.optimal(world).policy)
    assert list(policy.rows()[0]) == ["step", "state", "action"]
    named = ucbf.Policy(world.system, policy.actions, Words(state="level"))
    assert "level" in named.rows()[0]
    with pytest.raises(ValueError, match="policy has shape"):
        ucbf.Policy(world.system, [0])


def test_myopic_weighs_this_step_only_by_hand():
    # One step left or many, the myopic order is the newsvendor's: P(D <= y) >= (9-4+0)/(9+0.5) with nothing salvaged.
    # Demand 0..5 with 1/6 each: 5/9.5 = 0.526 -> y = 3.
    shop = store(price=9, unit_cost=4, holding=0.5)
    law = shop.disturbance_distribution(ucbf.Disturbance(np.full(6, 1 / 6)))
    assert shop.policy(myopic(shop.system, law)).rules()[0].level == 3


def test_certainty_equivalence_orders_for_the_mean():
    shop = store(price=9, unit_cost=4, holding=0.5, horizon=1)
    law = shop.disturbance_distribution(ucbf.Disturbance([0.4, 0, 0.2, 0, 0, 0.4]))  # mean 2.4
    assert shop.policy(certainty_equivalent(shop.system, law)).rules()[0].level == 2


def test_any_policy_and_any_law_can_be_drawn():
    from ucbf import figures

    shop = store()
    plan = ucbf.optimal(shop.world())
    figure = figures.policy_figure(shop.policy(plan), plan)
    heat, values = figure.axes[:2]
    assert heat.get_ylabel() == "stock"
    assert len(values.lines) == 2
    figure = figures.law_figure(shop.world().law, ucbf.Disturbance(np.full((3, 6), 1 / 6), low=-5))
    assert [len(ax.patches) for ax in figure.axes] == [6, 6, 6]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["inventory", "packs", "reservoir", "queue"]))
def test_a_rule_that_is_read_off_is_what_the_policy_does(seed, kind):
    rng = np.random.default_rng(seed)
    preset = {
        "inventory": Inventory(capacity=5, max_demand=3, horizon=1, max_order=3),
        "packs": Inventory(capacity=5, max_demand=3, horizon=1, pack=2),
        "reservoir": Reservoir(capacity=5, max_inflow=3, horizon=1, max_release=3),
        "queue": Queue(capacity=5, max_arrivals=3, horizon=1, service=(0, 1, 2), service_cost=(0, 1, 2)),
    }[kind]
    allowed = preset.system.allowed[0]
    choices = np.array([rng.choice(np.flatnonzero(row)) for row in allowed])
    if rng.random() < 0.7:  # shapes that come near to a rule
        target = rng.integers(0, 6)
        near = {"inventory": target - np.arange(6), "packs": (target - np.arange(6)) // 2}.get(
            kind, np.arange(6) - target
        )
        choices = np.where(rng.random(6) < 0.9, np.clip(near, 0, allowed.sum(axis=1) - 1), choices)
    policy = preset.policy(choices[None])
    rule, states, amounts = policy.rules()[0], policy.states, policy.quantities[0]
    most = preset.action_quantities.max()
    if rule.kind == "up to":
        pack = 2 if kind == "packs" else 1
        assert rule.text.endswith(", in multiples of 2") == (kind == "packs")
        meant = np.where(states < rule.threshold, np.minimum((rule.level - states) // pack * pack, most), 0)
        np.testing.assert_array_equal(amounts, meant)
    elif rule.kind == "amount":
        level = np.inf if rule.level is None else rule.level
        usual = np.minimum(states, rule.threshold)
        np.testing.assert_array_equal(amounts, np.maximum(usual, np.minimum(states - level, most)))
    elif rule.kind == "down to":
        meant = np.where(states > rule.threshold, np.minimum(states - rule.level, most), 0)
        np.testing.assert_array_equal(amounts, meant)
    elif rule.kind == "pieces":
        said = np.full(6, np.nan)
        for piece in rule.text.split(", "):
            _, _, where = piece.partition(" up to ") if " up to " in piece else ("", "", "")
            amount = 0.0 if piece.startswith("no ") else float(piece.split()[1])
            if " when below " in piece:
                said[:] = np.where(states < float(piece.split()[-1]), amount, 0)
            elif where:
                said[states <= float(where)] = amount
            elif " at " in piece:
                said[states == float(piece.split(" at ")[1])] = amount
            elif " on" in piece and " from " in piece:
                said[states >= float(piece.split(" from ")[1].split()[0])] = amount
            elif " from " in piece:
                low, high = piece.split(" from ")[1].split(" to ")
                said[(states >= float(low)) & (states <= float(high))] = amount
            else:
                said[:] = amount
        np.testing.assert_array_equal(amounts, said)


def test_a_rule_with_two_sides():
    station = ucbf.System(
        lambda s, a: s + a - 2, 0.0, 1, "clip", disturbance_range=(-2, 2), n_states=9, n_actions=5,
        allowed=lambda s, a: (s + a - 2 >= 0) & (s + a - 2 <= 8),
    )  # fmt: skip
    words = Words(state="bikes", action="van", action_quantities=np.arange(-2.0, 3), verb="bring")
    rule = ucbf.Policy(station, np.array([4, 4, 3, 2, 2, 2, 1, 0, 0]), words).rules()[0]
    assert rule.text == "bring up to 3, down to 5 (at most 2 up and 2 down at once)"
    odd = ucbf.Policy(station, np.array([4, 3, 3, 2, 2, 2, 1, 0, 0]), words).rules()[0]
    assert odd.kind in {"none", "pieces"}


# -- without an end, and with contexts ----------------------------------------------------------------


def by_weather():
    """Two contexts, a period of two: 1 at the first step in context 1 below 2, else 0; states in units of 5."""
    actions = np.zeros((2, 8), int)
    actions[0, 4:6] = 1
    words = Words("stock", "order", "day", unit=5.0, action_quantities=np.array([0.0, 5.0]), verb="order")
    return ucbf.Policy(weather().system, actions, words)


def test_rows_of_a_policy_have_a_column_for_the_context():
    policy = by_weather()
    rows = policy.rows()
    assert len(rows) == 2 * 2 * 4
    assert rows[0] == {"day": 1, "context": 0, "stock": 0.0, "order": 0.0}
    assert rows[5] == {"day": 1, "context": 1, "stock": 5.0, "order": 5.0}
    assert rows[13] == {"day": 2, "context": 1, "stock": 5.0, "order": 0.0}
    assert [row["order"] for row in rows] == [0, 0, 0, 0, 5, 5, 0, 0] + [0] * 8
    assert list(policy.table().columns) == ["day", "context", "stock", "order"]


def test_rules_are_read_context_by_context():
    policy = by_weather()
    assert [rule.text for rule in policy.rules(1)] == ["order 5 when below 10", "no order"]
    assert str(policy) == (
        "context 0, every day: no order\ncontext 1, day 1: order 5 when below 10\ncontext 1, day 2: no order"
    )
    with pytest.raises(TypeError, match="the system has 2 contexts; say in which: context="):
        policy.rules()
    with pytest.raises(ValueError, match="context is 2; it must be 0 to 1"):
        policy.quantities_in(2)


def test_a_policy_without_an_end_is_asked_at_any_step():
    policy = by_weather()
    assert [policy.act(h, 1, context=1) for h in (0, 1, 2, 7, 100)] == [1, 0, 1, 0, 1]
    assert policy.act(0, 1, context=0) == 0
    with pytest.raises(TypeError, match="the system has 2 contexts; say in which the state is: context="):
        policy.act(0, 1)
    machine = ucbf.Policy(forked().system, [0, 1, 1, 1])
    assert machine.rows()[3] == {"step": 1, "state": 3.0, "action": 1.0}
    assert str(machine) == "every step: action 0 at 0; action 1 at 1; action 1 at 2; action 1 at 3"
    with pytest.raises(ValueError, match="step h is 2; it must be 0 to 1"):
        store().policy(np.zeros((2, 11), int)).act(2, 0)


def test_the_picture_of_a_policy_has_a_row_for_each_context():
    pytest.importorskip("matplotlib")
    from ucbf.figures import policy_figure

    policy = by_weather()
    plan = ucbf.optimal(weather(mixed=True))
    axes = [ax for ax in policy_figure(policy, plan).axes if ax.get_label() != "<colorbar>"]
    assert len(axes) == 4
    titles = [ax.get_title("left") for ax in axes]
    assert [title.endswith(f", context {e}") for e, title in enumerate(titles[::2])] == [True, True]
    np.testing.assert_allclose(axes[3].lines[0].get_ydata(), plan.v[0, 4:] - plan.v[0, 4])
    assert axes[2].images[0].get_array().filled(0).tolist() == [[5, 0], [5, 0], [0, 0], [0, 0]]

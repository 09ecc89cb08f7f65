import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings

import reference
import ucbf
from worlds import any_world, bertsekas_inventory, puterman_inventory


def test_optimal_values_and_policies_are_those_of_quantecon():
    # Written by QuantEcon's backward induction over dense tables; the file says how.
    recorded = json.loads((Path(__file__).parent / "data" / "backward_induction.json").read_text())
    for one in recorded["systems"]:
        system = ucbf.System(one["f"], one["reward"], 6, "wrap", discount=0.95, terminal=one["terminal"])
        plan = ucbf.optimal(ucbf.World(system, ucbf.Disturbance(one["pmf"])))
        np.testing.assert_allclose(plan.v, one["v"], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(plan.policy, one["policy"])


@given(any_world(largest_states=3))
@settings(max_examples=40)
def test_optimal_is_the_best_of_all_policies(world):
    assume(world.system.allowed.sum(axis=2).prod() <= 4096)
    np.testing.assert_allclose(ucbf.optimal(world).v[0], reference.best_of_all_policies(world), rtol=1e-12, atol=1e-12)


@given(any_world())
def test_values_follow_from_the_definition_and_the_optimal_policy_earns_the_optimal_value(world):
    plan = ucbf.optimal(world)
    scale = np.abs(plan.v).max() + 1e-12
    assert world.system.allowed[np.indices(plan.policy.shape)[0], np.indices(plan.policy.shape)[1], plan.policy].all()
    np.testing.assert_allclose(ucbf.evaluate(world, plan.policy), plan.v, rtol=0, atol=1e-12 * scale)
    anything = ucbf.Random(world.system, seed=3).policy
    values = ucbf.evaluate(world, anything)
    np.testing.assert_allclose(values, reference.policy_values(world, anything), rtol=0, atol=1e-12 * scale)
    assert (values <= plan.v + 1e-12 * scale).all()


def test_puterman_inventory_is_solved_to_the_digits_of_the_book():
    plan = ucbf.optimal(puterman_inventory())
    np.testing.assert_allclose(plan.v[0], [67 / 16, 129 / 16, 97 / 8, 227 / 16], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(plan.policy, [[3, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]])


def test_bertsekas_inventory_is_solved_to_the_digits_of_the_book():
    plan = ucbf.optimal(bertsekas_inventory())
    np.testing.assert_allclose(-plan.v[0], [3.7, 2.7, 2.818], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(plan.policy, [[1, 0, 0]] * 3)


@pytest.mark.parametrize("textbook", [puterman_inventory, bertsekas_inventory])
@pytest.mark.parametrize("seed", range(5))
def test_ucb_f_learns_the_textbook_policies_without_being_told_the_law(textbook, seed):
    world = textbook()
    agent = ucbf.UCBf(world.system)
    # Ordering 2 or 3 from empty differ by 1/16 in 67/16: thousands of demands tell them apart, hundreds do not.
    run = ucbf.simulate(agent, world, episodes=10_000, seed=seed)
    np.testing.assert_array_equal(agent.policy, ucbf.optimal(world).policy)
    assert run.gap[-1] == pytest.approx(0, abs=1e-12)
    assert run.gap[0] > 0.1


def test_a_policy_may_be_one_row_for_every_step():
    world = puterman_inventory()
    np.testing.assert_array_equal(
        ucbf.evaluate(world, [1, 0, 0, 0]), ucbf.evaluate(world, np.tile([1, 0, 0, 0], (3, 1)))
    )


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([[0] * 4] * 2, r"shape \(2, 4\).*\[H, S\] = \(3, 4\)"),
        ([0, 0, 0, 9], r"action 9 in state 3 at step 0; actions are 0\.\.3"),
        ([0, 0, 0, 1], r"action 1 in state 3 at step 0, where it is not allowed"),
        ([0, 0.5, 0, 0], r"policy\[1\] is 0.5"),
    ],
)
def test_an_impossible_policy_is_refused(policy, message):
    with pytest.raises(ValueError, match=message):
        ucbf.evaluate(puterman_inventory(), policy)


def test_what_is_no_world_or_no_policy_is_named():
    world = puterman_inventory()
    for call, message in [
        (lambda: ucbf.optimal(world.system), "world is System(.*; give a ucbf.World"),
        (lambda: ucbf.evaluate(world.system, [0] * 4), "give a ucbf.World"),
        (lambda: ucbf.evaluate(world, ucbf.optimal(world)), "policy is a Plan; pass its .policy"),
        (lambda: ucbf.evaluate(world, ucbf.Greedy(world.system)), "policy is a Greedy; pass its .policy"),
    ]:
        with pytest.raises(TypeError, match=message.replace("(", r"\(")):
            call()

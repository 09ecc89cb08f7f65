"""Compiled learners against literal transcriptions of their pseudocode, in arbitrary worlds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import ucbf
from worlds import any_world

BONUSES = {
    "published": reference.published_bonus,
    "theorem": reference.theorem_bonus,
    "experiment": reference.experiment_bonus,
}


def transitions(world, episodes, seed):
    """Of a random policy: h, state index, action, next state index, w."""
    starts, w = world.draw(episodes, seed)
    chooser = ucbf.Random(world.system, seed=seed)
    system = world.system
    for k in range(episodes):
        s = int(starts[k])
        for h in range(system.horizon):
            a = int(chooser.policy[h, s])
            s_next = reference.meet_boundary(system, system.f[h, s, a] + w[k, h])
            chooser.update(h, s, a, s_next, 0)
            yield h, s, a, s_next, int(w[k, h])
            s = s_next


@given(any_world(unit_rewards=True), st.sampled_from(sorted(BONUSES)), st.sampled_from(["episode", "update"]))
@settings(max_examples=60)
def test_ucb_f_in_after_state_form_is_algorithm_1(world, bonus, clock):
    system = world.system
    known = bonus == "published" and system.last_step_is_known
    literal = reference.LiteralUCBf(system, BONUSES[bonus](system), clock, known)
    agent = ucbf.UCBf(system, bonus=bonus, clock=clock)
    np.testing.assert_array_equal(agent.policy, literal.policy())
    for h, s, a, s_next, w in transitions(world, 12, seed=1):
        o = system.state_offset
        agent.observe(h, s + o, a, s_next + o, disturbance=w)
        literal.observe(h, w)
    np.testing.assert_allclose(agent.q, literal.Q, rtol=0, atol=1e-10)


@pytest.mark.parametrize("zeta", [2, 4])
@pytest.mark.parametrize("boundary", ["wrap", "clip", "strict"])
def test_ucb_f_replays_the_residual_of_a_wrong_f(zeta, boundary):
    rng = np.random.default_rng(zeta)
    f = rng.integers(3, 9, size=(12, 3))
    system = ucbf.System(f, rng.random((12, 3)), horizon=4, boundary=boundary, lipschitz=0.2)
    world = ucbf.World(system, ucbf.Disturbance([0.3, 0.4, 0.3], low=-1))
    told = ucbf.corrupt(system, zeta, seed=5)
    literal = reference.LiteralUCBf(told, reference.published_bonus(told), "update", True)
    agent = ucbf.UCBf(told)
    for h, s, a, s_next, _ in transitions(world, 40, seed=2):
        agent.observe(h, s, a, s_next)
        literal.observe(h, s_next - told.f[h, s, a])
    np.testing.assert_allclose(agent.q, literal.Q, rtol=0, atol=1e-10)


@given(any_world(unit_rewards=True), st.sampled_from(sorted(BONUSES)))
@settings(max_examples=40)
def test_ucb_h_is_its_pseudocode(world, bonus):
    system = world.system
    literal = reference.LiteralUCBH(
        system, BONUSES[bonus](system, told_f=False), bonus == "published" and system.last_step_is_known
    )
    agent = ucbf.UCBH(system, bonus=bonus)
    for h, s, a, s_next, w in transitions(world, 12, seed=3):
        agent.observe(h, s + system.state_offset, a, s_next + system.state_offset, disturbance=w)
        literal.observe(h, s, a, s_next, w)
    np.testing.assert_allclose(agent.q, literal.Q, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(agent.policy, literal.policy())


@given(any_world(unit_rewards=True), st.sampled_from(["published", "experiment"]))
@settings(max_examples=40)
def test_ucbvi_is_its_pseudocode(world, bonus):
    system = world.system
    literal = reference.LiteralUCBVI(
        system, BONUSES[bonus](system, told_f=False), bonus == "published" and system.last_step_is_known
    )
    agent = ucbf.UCBVI(system, bonus=bonus)
    for h, s, a, s_next, w in transitions(world, 12, seed=4):
        if h == 0:
            literal.plan()
            agent.act(0, s + system.state_offset)
        agent.observe(h, s + system.state_offset, a, s_next + system.state_offset, disturbance=w)
        literal.observe(h, s, a, s_next, w)
    literal.plan()
    np.testing.assert_allclose(agent.q, literal.Q, rtol=0, atol=1e-10)

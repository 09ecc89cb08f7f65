"""Compiled learners against literal transcriptions of their pseudocode, in arbitrary worlds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import ucbf
from ucbf.kernels.seen import Seen
from ucbf.lipschitz import lipschitz_ahead
from worlds import any_told, any_world


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
            chooser.update(Seen(h, s, a, s_next, 0, 0))
            yield h, s, a, s_next, int(w[k, h])
            s = s_next


def known_last(bonus, system):
    return bonus == "published" and system.last_step_is_known


@given(
    st.data(), st.sampled_from(["theorem", "online", "experiment", "published"]), st.sampled_from(["episode", "update"])
)
@settings(max_examples=100)
def test_ucb_f_in_after_state_form_is_algorithm_1(data, bonus, clock):
    world = data.draw(any_world())
    told = data.draw(any_told(world))
    agent = ucbf.UCBf(told, bonus=bonus, clock=clock)
    formula = reference.bonus(bonus, told, agent.units, told_f=True)
    literal = reference.LiteralUCBf(told, agent.units, formula, clock, known_last(bonus, told))
    np.testing.assert_array_equal(agent.policy, literal.policy())
    o = told.state_offset
    for h, s, a, s_next, w in transitions(world, 12, seed=1):
        hidden = told.boundary == "clip" and s_next in (0, told.n_states - 1)
        residual = w if hidden else s_next + o - int(told.f[h, s, a])
        if told.boundary == "wrap":  # the one that the declared range, or 0..S-1, contains
            residual = told.residuals[0] + (residual - told.residuals[0]) % told.n_states
        agent.observe(h, s + o, a, s_next + o, disturbance=w)
        literal.observe(h, residual)
    tolerance = 1e-10 * agent.units.scale * (1 + np.abs(agent.units.cap).max())
    np.testing.assert_allclose(agent.q, literal.Q * agent.units.scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("kind", "literal_kind"), [
    (ucbf.UCBfBernstein, reference.LiteralBernstein),
    (ucbf.UCBfReference, reference.LiteralReference),
])  # fmt: skip
@given(data=st.data())
@settings(max_examples=60)
def test_the_sharper_forms_of_ucb_f_are_their_pseudocode(kind, literal_kind, data):
    world = data.draw(any_world())
    told = data.draw(any_told(world))
    c, clock = data.draw(st.sampled_from([1.0, 0.05, 0.0])), data.draw(st.sampled_from(["episode", "update"]))
    agent = kind(told, c=c, p=0.1, clock=clock)
    L = lipschitz_ahead(told, agent.units) if told.model_error else 0.0
    literal = literal_kind(told, agent.units, c, 0.1, clock, L)
    tolerance = 1e-9 * agent.units.scale * (1 + np.abs(agent.units.cap).max())
    np.testing.assert_allclose(agent.q, literal.Q * agent.units.scale, rtol=0, atol=tolerance)
    o = told.state_offset
    for h, s, a, s_next, w in transitions(world, 25, seed=3):
        hidden = told.boundary == "clip" and s_next in (0, told.n_states - 1)
        residual = w if hidden else s_next + o - int(told.f[h, s, a])
        if told.boundary == "wrap":
            residual = told.residuals[0] + (residual - told.residuals[0]) % told.n_states
        agent.observe(h, s + o, a, s_next + o, disturbance=w)
        literal.observe(h, residual)
    np.testing.assert_allclose(agent.q, literal.Q * agent.units.scale, rtol=0, atol=tolerance)


@given(st.data(), st.booleans())
@settings(max_examples=60)
def test_ucbvi_f_plans_with_what_it_counted(data, stationary):
    world = data.draw(any_world())
    told = data.draw(any_told(world))
    agent = ucbf.UCBVIf(told, stationary=stationary, prior_weight=0)
    literal = reference.LiteralUCBVIf(told, stationary)
    o = told.state_offset
    tolerance = 1e-9 * agent.units.scale * (1 + np.abs(agent.units.cap).max())
    for h, s, a, s_next, w in transitions(world, 8, seed=1):
        np.testing.assert_allclose(agent.q, literal.Q, rtol=0, atol=tolerance)
        hidden = told.boundary == "clip" and s_next in (0, told.n_states - 1)
        residual = w if hidden else s_next + o - int(told.f[h, s, a])
        if told.boundary == "wrap":
            residual = told.residuals[0] + (residual - told.residuals[0]) % told.n_states
        if told.boundary == "clip" and told.landing is None:  # beyond what the states can show all are alike
            residual = min(max(residual, told.residuals[0]), told.residuals[-1])
        agent.observe(h, s + o, a, s_next + o, disturbance=w)
        literal.observe(h, residual)
        literal.plan()
    np.testing.assert_allclose(agent.q, literal.Q, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("kind", "literal_kind"), [
    (ucbf.UCBH, reference.LiteralUCBH),
    (ucbf.UCBVI, reference.LiteralUCBVI),
])  # fmt: skip
@given(data=st.data())
@settings(max_examples=60)
def test_the_baselines_are_their_pseudocode(kind, literal_kind, data):
    world = data.draw(any_world())
    system = world.system
    names = ["experiment", "published", "theorem" if kind is ucbf.UCBH else "CH"]
    bonus = data.draw(st.sampled_from(names))
    agent = kind(system, bonus=bonus, c=data.draw(st.sampled_from([None, 0.01])))
    formula = reference.bonus(bonus, system, agent.units, told_f=False, c=agent.params["c"])
    literal = literal_kind(system, agent.units, formula, known_last(bonus, system))
    o = system.state_offset
    for h, s, a, s_next, w in transitions(world, 12, seed=4):
        if h == 0:
            agent.act(0, s + o)
            getattr(literal, "plan", int)()
        agent.observe(h, s + o, a, s_next + o, disturbance=w)
        literal.observe(h, s, a, s_next, w)
    getattr(literal, "plan", int)()
    tolerance = 1e-10 * agent.units.scale * (1 + np.abs(agent.units.cap).max())
    np.testing.assert_allclose(agent.q, literal.Q * agent.units.scale, rtol=0, atol=tolerance)


@given(data=st.data())
@settings(max_examples=60)
def test_pairs_that_ucbvi_does_not_work_out_in_every_plan_end_as_if_it_had(data):
    world = data.draw(any_world())
    system, o = world.system, world.system.state_offset
    agent = ucbf.UCBVI(system, c=0.05, bonus="experiment")
    formula = reference.bonus("experiment", system, agent.units, False, 0.05)
    literal = reference.LiteralUCBVI(system, agent.units, formula)
    tolerance = 1e-10 * agent.units.scale * (1 + np.abs(agent.units.cap).max())
    for h, s, a, s_next, w in transitions(world, 10, seed=data.draw(st.integers(0, 9))):
        for _ in range(data.draw(st.integers(1, 2))):  # twice between two plans, now and then
            agent.observe(h, s + o, a, s_next + o, disturbance=w)
            literal.observe(h, s, a, s_next, w)
        if data.draw(st.booleans()):
            agent.act(0, o)
            literal.plan()
            chosen = np.take_along_axis(literal.Q, agent.policy[..., None], axis=2)[..., 0] * agent.units.scale
            np.testing.assert_allclose(chosen, literal.Q.max(axis=2) * agent.units.scale, rtol=0, atol=tolerance)
        if data.draw(st.integers(0, 9)) == 0:
            literal.plan()
            np.testing.assert_allclose(agent.q, literal.Q * agent.units.scale, rtol=0, atol=tolerance)
    literal.plan()
    np.testing.assert_allclose(agent.q, literal.Q * agent.units.scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("kind", "literal_kind"), [
    (ucbf.UCBB, reference.LiteralUCBB),
    (ucbf.EarlySettled, reference.LiteralEarlySettled),
    (ucbf.UCBVIBF, reference.LiteralUCBVIBF),
    (ucbf.UBEV, reference.LiteralUBEV),
])  # fmt: skip
@given(data=st.data())
@settings(max_examples=60)
def test_the_rest_of_table_1_are_their_pseudocode(kind, literal_kind, data):
    world = data.draw(any_world())
    system = world.system
    c = data.draw(st.sampled_from([1.0, 0.01, 0.0]))
    agent = kind(system, c=c, p=0.1)
    literal = literal_kind(system, agent.units, c, 0.1)
    tolerance = 1e-10 * agent.units.scale * (1 + np.abs(agent.units.cap).max())
    o = system.state_offset
    for h, s, a, s_next, w in transitions(world, 15, seed=4):
        if h == 0:
            agent.act(0, s + o)
            getattr(literal, "plan", int)()
            np.testing.assert_allclose(agent.q, literal.Q * agent.units.scale, rtol=0, atol=tolerance)
        agent.observe(h, s + o, a, s_next + o, disturbance=w)
        literal.observe(h, s, a, s_next, w)
    getattr(literal, "plan", int)()
    np.testing.assert_allclose(agent.q, literal.Q * agent.units.scale, rtol=0, atol=tolerance)
    if kind is ucbf.EarlySettled:
        for mine, theirs in (
            ("upper", "QU"),
            ("lower", "QL"),
            ("reference", "QR"),
            ("value_ref", "VR"),
            ("value_low", "VL"),
        ):
            scaled = getattr(agent.learner, mine), getattr(literal, theirs)
            np.testing.assert_allclose(*scaled, rtol=0, atol=1e-10 * (1 + np.abs(agent.units.cap).max()))

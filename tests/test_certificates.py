"""Certificates: hand-computed errors, brackets of the truth, and what they refuse."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ucbf
from ucbf.certificates import _Error, _within, gap_bounds
from worlds import any_told, any_world, forked, make_variant, puterman_inventory, weather

POINT = ucbf.System([[0]], [[0.0]], 1, "clip", disturbance_range=(0, 1))  # one after-state, two raw next states


def test_hoeffdings_error_by_hand():
    # 8 disturbances, 6 of them 0 and 2 of them 1; what follows is 0 or 1: mean 1/4, range 1, at most 1 anyway.
    error = _Error(POINT, POINT.mechanics, np.array([600.0, 200.0]), p=0.1, shares=4, form="hoeffding", distinct=0)
    log = math.log(math.pi**2 / 6 * 800**2 * 4 / 0.1)
    np.testing.assert_allclose(error.above(np.array([0.0, 1.0])), [0.25 + math.sqrt(log / 1600)])


def test_bernsteins_error_by_hand():
    error = _Error(POINT, POINT.mechanics, np.array([600.0, 200.0]), p=0.1, shares=4, form="bernstein", distinct=0)
    log = math.log(math.pi**2 / 6 * 800**2 * 4 / 0.1) + math.log(2)
    variance = 0.25 * 0.75 * 800 / 799
    expected = 0.25 + math.sqrt(2 * variance * log / 800) + 7 * log / (3 * 799)
    np.testing.assert_allclose(error.above(np.array([0.0, 1.0])), [expected])


def test_the_error_for_every_function_by_hand():
    error = _Error(POINT, POINT.mechanics, np.array([600.0, 200.0]), p=0.1, shares=4, form="bernstein", distinct=2)
    log = 2 * math.log(2) + math.log(math.pi**2 / 6 * 800**2 * 4 / 0.1)
    np.testing.assert_allclose(error.above(np.array([0.0, 1.0])), [0.25 + math.sqrt(log / 1600)])


def test_the_variance_survives_a_large_constant():
    for form in ("bernstein", "hoeffding"):
        plain, far = (
            _Error(POINT, POINT.mechanics, np.array([600.0, 200.0]), 0.1, 4, form, 0).above(np.array([0.0, 1.0]) + c)
            - c
            for c in (0, 1e8)
        )
        np.testing.assert_allclose(plain, far, rtol=1e-6)


@pytest.mark.parametrize("form", ["hoeffding", "bernstein"])
@pytest.mark.parametrize("name", ["UCBVI-f", "UCBVI-f, stationary", "UCBVI-f, few", "UCBVI-f, offsets"])
@given(data=st.data())
@settings(max_examples=25)
def test_a_certificate_brackets_the_truth(name, form, data):
    world = data.draw(any_world())
    agent = make_variant(name, data.draw(any_told(world)))
    assume(agent is not None)
    if agent.params["stationary"]:
        world = ucbf.World(world.system, ucbf.Disturbance(world.law.pmf[0], low=world.law.low))
    best = ucbf.optimal(world).v[0]
    for seed in range(3):
        ucbf.simulate(agent, world, 20, seed)
        certificate = agent.certificate(1e-6, form)
        value = ucbf.evaluate(world, agent.policy)[0]
        slack = 1e-9 * (1 + np.abs(best).max())
        assert (best <= certificate.upper + slack).all()
        assert (value >= certificate.lower - slack).all()
        assert (certificate.gap >= best - value - slack).all()
        assert np.isfinite(certificate.gap).all()


def test_ucb_fs_certificate_brackets_the_truth_too():
    world = ucbf.random_world(n_states=5, n_actions=2, horizon=2, max_disturbance=2, lipschitz=None, seed=1)
    agent = ucbf.UCBf(world.system, bonus="theorem", clock="episode", c=3)
    ucbf.simulate(agent, world, 200_000)
    certificate = agent.certificate(0.05, "theorem")
    best, value = ucbf.optimal(world).v[0], ucbf.evaluate(world, agent.policy)[0]
    assert (certificate.upper >= best - 1e-9).all()
    assert (certificate.lower <= value + 1e-9).all()
    assert certificate.average() < 2  # it says something
    planned = ucbf.UCBVIf(world.system)
    ucbf.simulate(planned, world, 5000)
    assert planned.certificate().average() < certificate.average()


def test_ucb_fs_certificate_counts_what_a_wrong_f_costs_where_it_lands():
    # Told that action 0 leads to 6 and action 1 to 4, where it is the other way round: landing there pays 1 and 0.5, so
    # that the agent takes action 0 for ever and misses 0.5. V* is level, so that L of V* says nothing.
    told = ucbf.System(lambda s, a: 6 - 2 * a + 0 * s, lambda s, a: 0.0 * s, 1, "clip", n_states=11, n_actions=2,
                       landing=lambda z: np.where(z == 6, 1.0, np.where(z == 4, 0.5, 0.0)), disturbance_range=(0, 0),
                       model_error=4)  # fmt: skip
    world = ucbf.World(told.replace(f=lambda s, a: 4 + 2 * a + 0 * s, model_error=0), ucbf.Disturbance([1.0]), start=5)
    agent = ucbf.UCBf(told, bonus="theorem", clock="episode", c=4, p=0.05)
    run = ucbf.simulate(agent, world, 100_000)
    certificate = agent.certificate(form="theorem")
    assert run.gap[-1] == 0.5
    assert certificate.gap[5] >= 0.5
    assert certificate.upper[5] >= 1


def test_ucb_fs_certificate_stays_within_what_is_possible():
    world = ucbf.random_world(25, 2, 5, seed=0)
    agent = ucbf.UCBf(world.system, bonus="theorem", clock="episode", c=3)
    ucbf.simulate(agent, world, 2000)
    certificate = agent.certificate(form="theorem")
    best, value = ucbf.optimal(world).v[0], ucbf.evaluate(world, agent.policy)[0]
    assert (certificate.lower <= value).all()
    assert (certificate.upper >= best).all()
    assert (certificate.gap <= certificate.upper - certificate.lower).all()
    # Five steps pay at most five times the largest reward, and at least five times the smallest.
    assert certificate.upper.max() <= 5 * world.system.reward.max()
    assert certificate.lower.min() >= 5 * world.system.reward.min()


@pytest.mark.parametrize(("eta", "made_after"), [(None, 200_000), (1.0, 131_071)])
def test_ucb_fs_certificate_is_of_the_episodes_its_policy_was_made_from(eta, made_after):
    # Action 1 lands on 1 or 2 and gets 0 or 1, action 0 on 0 or 1 and gets 0.2 or 0: anything from 0 to 1 is possible.
    system = ucbf.System(lambda s, a: a + 0 * s, 0.0, 1, "clip", landing=lambda z: np.array([0.2, 0, 1])[z],
                         disturbance_range=(0, 1), n_states=3, n_actions=2)  # fmt: skip
    few = {} if eta is None else {"renewal": "few", "eta": eta}  # with eta = 1 before episodes 1, 2, 4, ..., 131072
    agent = ucbf.UCBf(system, bonus="theorem", clock="episode", c=4, **few)
    ucbf.simulate(agent, ucbf.World(system, ucbf.Disturbance([0.5, 0.5])), 200_000)
    certificate = agent.certificate(form="theorem")
    # H = 1: P_0 = 4 · 2 c sqrt(ι), ι = log(3 · 2 / 0.01)
    now, then = (8 * 4 * math.sqrt(math.log(600) / t) for t in (200_000, made_after))
    np.testing.assert_allclose(certificate.gap, then)
    np.testing.assert_allclose(certificate.upper, agent.learner.value[0])
    # V^k is at most P_0/sqrt(t) above V*, and the policy at most its own bound below V*.
    np.testing.assert_allclose(certificate.lower, agent.learner.value[0] - now - then)


def test_nothing_is_proved_of_ucb_f_with_a_repaired_f():
    told = ucbf.random_world(seed=1).system.replace(model_error=2)
    agent = ucbf.UCBf(told, bonus="theorem", clock="episode", c=9, estimator="OffsetPosterior")
    with pytest.raises(ValueError, match="nothing is proved of UCB-f's bonus while f is being repaired"):
        agent.certificate(form="theorem")
    assert np.isfinite(agent.certificate().gap).all()


def test_certificates_tighten_and_bernstein_wins_late():
    world = ucbf.random_world(n_actions=4, horizon=5, seed=3)
    agent = ucbf.UCBVIf(world.system)
    bounds = []
    for seed, episodes in enumerate((100, 900, 9000)):
        ucbf.simulate(agent, world, episodes, seed)
        bounds.append([agent.certificate(0.05, form).average(world.start) for form in ("hoeffding", "bernstein")])
    assert np.all(np.diff(bounds, axis=0) < 0)
    assert bounds[0][1] > bounds[0][0]
    assert bounds[2][1] < bounds[2][0]


def test_a_run_stops_when_its_certificate_says_so():
    world = ucbf.random_world(n_actions=2, horizon=5, seed=0)
    agent = ucbf.UCBVIf(world.system)
    run = ucbf.simulate(agent, world, 5000, stop_when=0.3)
    assert len(run.gap) == len(run.reward) == len(run.switched) < 5000
    assert run.gap[-1] <= agent.certificate().average(world.start) <= 0.3
    whole = ucbf.simulate(ucbf.UCBVIf(world.system), world, len(run.gap))
    np.testing.assert_array_equal(run.gap, whole.gap)
    assert ucbf.theory.episodes_to_certify(world.system, 0.3) > len(run.gap)


def test_the_number_of_episodes_that_certify_is_the_first_that_does():
    system = puterman_inventory().system
    for epsilon in (50.0, 5.0):
        k = ucbf.theory.episodes_to_certify(system, epsilon)
        agent = ucbf.UCBVIf(system)
        agent.warm_start(np.resize([[-1, -2, 0], [0, -1, -2]], (k, 3)))
        assert agent.certificate(form="hoeffding").gap.max() <= epsilon
    assert k > 4 * ucbf.theory.episodes_to_certify(system, 50.0)
    with pytest.raises(ValueError, match="model_error is 2; a wrong f leaves an error"):
        ucbf.theory.episodes_to_certify(system.replace(model_error=2), 1.0)


def test_what_cannot_be_certified_is_refused_with_the_reason():
    world = puterman_inventory()
    with pytest.raises(TypeError, match="stop_when needs a certificate, and UCB-H gives none"):
        ucbf.simulate(ucbf.UCBH(world.system), world, 5, stop_when=1.0)
    with pytest.raises(ValueError, match="the proof is of bonus 'theorem'"):
        ucbf.UCBf(world.system).certificate(form="theorem")
    with pytest.raises(ValueError, match="rewards between 0 and 1"):
        ucbf.UCBf(world.system, bonus="theorem", clock="episode").certificate(form="theorem")
    plain = ucbf.random_world(seed=1)
    agent = ucbf.UCBf(plain.system, bonus="theorem", clock="episode")
    ucbf.simulate(agent, plain, 1000)
    with pytest.raises(ValueError, match=r"c is 1; for 1000 episodes the proof needs 1\.\d+ at p = 0.05"):
        agent.certificate(form="theorem")
    agent = ucbf.UCBVIf(world.system)
    agent.observe(0, 1, 0, 0)
    with pytest.raises(ValueError, match="a boundary hid 1 disturbance"):
        agent.certificate()
    agent = ucbf.UCBVIf(ucbf.System(np.full((9, 1), 4), 0.0, 1, "strict", disturbance_range=(-1, 1)))
    with pytest.warns(ucbf.ModelWarning):
        agent.observe(0, 0, 0, 7)
    with pytest.raises(ValueError, match="1 residuals were outside the declared range"):
        agent.certificate()
    with pytest.raises(ValueError, match="start is"):
        ucbf.UCBVIf(plain.system).certificate().average([1.0])


def test_a_wrong_f_may_lead_anywhere_within_zeta():
    # W is 0. f is told as 5 and may be off by ζ/2 = 1, and so may the f of every pair that W was learned from: the raw
    # next state may be 2 from where it is believed. Landing there pays 1 at 3 and 7, 4 at 2 and 8.
    worth = np.array([0, 0, 4, 1, 0, 0, 0, 1, 4, 0, 0, 0])
    system = ucbf.System(lambda s, a: 5 + 0 * s, 0.0, 1, "clip", landing=lambda z: 1.0 * worth[np.clip(z, 0, 11)],
                         disturbance_range=(0, 0), model_error=2, n_states=11, n_actions=1)  # fmt: skip
    agent = ucbf.UCBVIf(system)
    agent.warm_start(np.zeros((10**6, 1), int))
    certificate = agent.certificate()
    # The residuals -1, 0, 1 are possible, and were all 0; what may follow 5 is the best of 3..7, and with so much data
    # not much of 2 or 8.
    assert certificate.upper[0] == pytest.approx(1, abs=0.05)
    assert certificate.lower[0] == pytest.approx(0, abs=0.05)
    ring = _within(system.replace(boundary="wrap"), system.mechanics, np.arange(3.0), 1)
    assert ring[0] == 2  # two further on


def test_what_is_within_zeta_by_hand():
    raw = np.array([0.0, 1, 5, 1, 0, 7, 0])
    line = ucbf.System(lambda s, a: s, 0.0, 1, "clip", model_error=2, n_states=7, n_actions=1)
    np.testing.assert_array_equal(_within(line, line.mechanics, raw, 1), [5, 5, 5, 7, 7, 7, 7])
    np.testing.assert_array_equal(_within(line, line.mechanics, raw, -1), [0, 0, 0, 0, 0, 0, 0])
    ring = ucbf.System(lambda s, a: s, 0.0, 1, "wrap", model_error=2, n_states=7, n_actions=1)
    once = _within(ring, ring.mechanics, np.concatenate([raw, raw[:6]]), 1)  # X + R - 1 = 13 raw states
    np.testing.assert_array_equal(once[:7], [7, 5, 5, 7, 7, 7, 7])  # from 0 two back is 5; from 1, 6
    exact = line.replace(model_error=0)
    np.testing.assert_array_equal(_within(exact, exact.mechanics, raw, 1), raw)


def test_a_declared_range_wider_than_the_states_that_wrap():
    system = ucbf.System(np.zeros((4, 1)), [0.0, 1, 0, 0], 3, "wrap", disturbance_range=(0, 5))
    agent = ucbf.UCBVIf(system)
    np.testing.assert_allclose(agent.law.pmf, 0.25)
    assert np.isfinite(agent.certificate().gap).all()


def test_a_certificate_is_that_of_what_was_seen_last():
    # Asked before or after the agent renewed its policy, it says the same. To land on 2 after W = w one must aim at 2 -
    # w.
    system = ucbf.System(lambda s, a: a + 0 * s, lambda s, a: 1.0 * (s == 2), 2, "clip", n_states=4, n_actions=3,
                         disturbance_range=(0, 1))  # fmt: skip
    for w in (0, 1):
        asked, renewed = ucbf.UCBVIf(system), ucbf.UCBVIf(system)
        for agent in (asked, renewed):
            agent.act(0, 0)
            agent.warm_start(np.full((500, 2), w))
        renewed.renew()
        assert renewed.learner.policy[0, 0] == 2 - w
        one, other = asked.certificate(), renewed.certificate()
        np.testing.assert_array_equal(one.gap, other.gap)
        np.testing.assert_array_equal(one.lower, other.lower)


def test_a_gap_is_never_more_than_returns_can_differ():
    # Rewards from 0 to 1, the second counting half, and an end worth 1 to 4: returns differ by 1 + 1/2 + 3 at most.
    system = ucbf.System(lambda s, a: s, lambda s, a: 1.0 * (s == 1), 2, "clip", n_states=2, n_actions=1, discount=0.5,
                         terminal=[1.0, 4.0], disturbance_range=(0, 0))  # fmt: skip
    assert gap_bounds(system, np.array([1]), 4.0, 0.05) == pytest.approx([4.5])


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBfBernstein, ucbf.UCBfReference])
def test_ucb_f_is_certified_from_the_disturbances_it_has_seen(kind):
    world = ucbf.random_world(8, 3, 3, 3, None, seed=2)
    system = world.system.replace(disturbance_range=(0, 3))
    agent, planner = kind(system), ucbf.UCBVIf(system, prior_weight=0)
    for one in (agent, planner):
        ucbf.simulate(one, world, 300, seed=4)
    np.testing.assert_array_equal(agent.counted(), planner.counted())
    assert agent.counted()[2].sum() == 300  # of the last step too, of which it learns nothing
    gap = world.plan.v[0] - ucbf.evaluate(world, agent.policy)[0]
    for form in ("best", "evalue", "coupled", "bernstein", "hoeffding"):
        found = agent.certificate(1e-6, form)
        assert (found.gap >= gap).all()
    # Of the same policy the same is said.
    planner.learner.policy[...] = agent.policy
    np.testing.assert_allclose(agent.certificate(form="evalue").gap, planner.certificate(form="evalue").gap)
    assert agent.credible_gap() < agent.certificate().average()


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBfBernstein, ucbf.UCBfReference])
def test_what_ucb_f_does_at_a_step_does_not_depend_on_the_disturbances_of_earlier_ones(kind):
    world = ucbf.random_world(12, 3, 4, 5, None, seed=1)
    history = np.random.default_rng(2).integers(0, 6, (30, 4)) // np.arange(1, 5)
    for h in range(1, 4):
        policies = []
        for _ in range(2):
            agent = kind(world.system.replace(disturbance_range=(0, 5)))
            agent.warm_start(history)
            policies.append(agent.policy)
            history[:, h - 1] = 0
        assert (policies[0][:h] != policies[1][:h]).any()
        np.testing.assert_array_equal(policies[0][h:], policies[1][h:])


def test_ucb_f_is_certified_without_an_end_and_with_contexts():
    for world in (weather(mixed=True), forked()):
        agent = ucbf.UCBf(world.system)
        ucbf.simulate(agent, world, steps=3000)
        found = agent.certificate(0.01)
        assert found.form == "coupled"
        gap = world.plan.v[0] - ucbf.evaluate(world, agent.policy)[0]
        assert (found.gap >= gap - 1e-9).all()
        with pytest.raises(ValueError, match="the paper's proof is of systems with an end"):
            agent.certificate(form="theorem")


def test_a_run_of_ucb_f_stops_too():
    world = ucbf.random_world(8, 3, 3, 3, None, seed=2)
    told = world.system.replace(disturbance_range=(0, 3))
    agent = ucbf.UCBf(told)
    run = ucbf.simulate(agent, world, 5000, stop_when=0.2)
    assert len(run.gap) < 5000
    assert run.gap[-1] <= agent.certificate().average(world.start) <= 0.2


def test_forms_of_certificates_that_there_are_not():
    agent = ucbf.UCBf(ucbf.System(np.zeros((4, 1)), 0.0, 1, disturbance_range=(0, 0)), bonus="theorem", c=4)
    with pytest.raises(ValueError, match="unknown form 'tight'"):
        agent.certificate(form="tight")

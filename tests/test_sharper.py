"""UCB-f with bonuses that follow variances. The system of the sums by hand is that of test_kernels.py:

H = 2, three states that wrap, two actions; the last step is known, V_1 = r.

state   f(s,0)  f(s,1)  r(s)
  0       0       1     0
  1       1       2     0.5
  2       2       0     1
"""

import math

import numpy as np
import pytest

import reference
import ucbf
from ucbf.certificates import valid_scale

F = [[0, 1], [1, 2], [2, 0]]
REWARD = [0, 0.5, 1]
P = 12 * math.exp(-4)  # ι = log(SAH/p) = log(12/p) = 4
SHARPER = [ucbf.UCBfBernstein, ucbf.UCBfReference]


@pytest.fixture
def system():
    return ucbf.System(F, REWARD, horizon=2)


@pytest.mark.parametrize("kind", SHARPER)
def test_they_begin_with_what_the_best_disturbance_would_lead_to(kind, system):
    narrow = kind(system.replace(disturbance_range=(0, 1), boundary="wrap"))
    # (0,0) -> 0 or 1: at best 0.5; (0,1) -> 1 or 2: 1; (1,0): 0.5 + 1; (1,1) -> 2 or 0: 0.5 + 1; (2,0) -> 2, 0: 1 + 1;
    # (2,1) -> 0, 1: 1 + 0.5
    np.testing.assert_allclose(narrow.q[0], [[0.5, 1], [1.5, 1.5], [2, 1.5]])
    np.testing.assert_allclose(narrow.q[1], [[0, 0], [0.5, 0.5], [1, 1]])
    np.testing.assert_array_equal(narrow.policy, [[1, 0, 0], [0, 0, 0]])


def test_bernstein_adds_half_of_beta(system):
    agent = ucbf.UCBfBernstein(system, c=0.1, p=P, clock="episode")
    agent.observe(0, 0, 1, 2)  # w = 1
    # α = 1. sqrt(2·(0+2)·4) + 8·4 = 36 is more than sqrt(8·4): β = 0.1·sqrt(32), b = β/2. Targets V(f+1): (0,0) -> 1.
    b = 0.05 * math.sqrt(32)
    np.testing.assert_allclose(agent.q[0], np.array([[0.5, 1], [1.5, 0.5], [1, 1.5]]) + b, atol=1e-14)
    agent.observe(0, 0, 1, 2)
    # α = 3/4, β = 0.1·sqrt(16), b = (0.4 - β_1/4) / 1.5; the running average is β/2 = 0.2.
    np.testing.assert_allclose(agent.q[0], np.array([[0.5, 1], [1.5, 0.5], [1, 1.5]]) + 0.2, atol=1e-14)


def test_bernsteins_form_takes_over_when_it_is_smaller(system):
    agent = ucbf.UCBfBernstein(system, c=1, p=P, clock="episode")
    agent.warm_start([[1, 0]] * 1000)
    # No variance: sqrt(2·2·4/1000) + 8·4/1000 is less than sqrt(8·4/1000).
    half = (math.sqrt(0.016) + 0.032) / 2
    np.testing.assert_allclose(agent.q[0], np.array([[0.5, 1], [1.5, 0.5], [1, 1.5]]) + half, atol=1e-12)
    agent.warm_start([[0, 0]] * 1000)
    # Targets of x = 0 were 0.5 and are 0: their variance is 1/16.
    assert agent.learner.how.variance[0, 0] == pytest.approx(1 / 16)
    beta = math.sqrt(2 * (1 / 16 + 2) * 4 / 2000) + 8 * 4 / 2000
    assert agent.learner.how.beta[0, 0] == pytest.approx(beta)


def test_a_reference_is_averaged_over_all_that_was_seen(system):
    agent = ucbf.UCBfReference(system, c=0.1, p=P)
    agent.observe(0, 0, 1, 2)  # w = 1
    # The reference is V_1 = r. α = 1, no variance: b = 0.1·2·4/1.
    np.testing.assert_allclose(agent.q[0], np.array([[0.5, 1], [1.5, 0.5], [1, 1.5]]) + 0.8, atol=1e-14)
    agent.observe(0, 2, 0, 2)  # w = 0
    # α = 3/4. x = 0: V(1) = 0.5 and V(0) = 0 have the mean 1/4, where UCB-f's target is 0, and the deviation 1/4:
    # b = 0.1·(sqrt(1/16·4/2) + 2·4/2). x = 1: 1 and 0.5. x = 2: 0 and 1, deviation 1/2.
    b = 0.1 * (math.sqrt(1 / 8) + 4)
    assert agent.q[0, 0, 0] == pytest.approx(0.25 * 1.3 + 0.75 * (0.25 + b), abs=1e-14)
    assert agent.q[0, 0, 1] == pytest.approx(0.25 * 1.8 + 0.75 * (0.75 + b), abs=1e-14)
    b = 0.1 * (math.sqrt(1 / 2) + 4)
    assert agent.q[0, 1, 1] == pytest.approx(0.5 + 0.25 * 0.8 + 0.75 * (0.5 + b), abs=1e-14)


def test_what_exceeds_the_reference_is_averaged_as_ucb_f_averages_values():
    # One action that stays, two states, three steps, W = 0 only: nothing varies but the values themselves.
    system = ucbf.System([[0], [1]], [0.0, 1.0], horizon=3, boundary="wrap", disturbance_range=(0, 0))
    agent = ucbf.UCBfReference(system, c=0.1, p=6 * math.exp(-2))  # ι = 2
    how = agent.learner.how
    agent.warm_start([[0, 0, 0]] * 11)  # each renewed the reference: the next is due at 12.1
    before, reference_ = agent.learner.value[1].copy(), how.value_ref[0].copy()
    np.testing.assert_array_equal(how.due_ref, [13, 13, 0])
    agent.warm_start([[0, 0, 0]])
    # α = 4/15. What values exceed the reference by was 0 at every renewal.
    excess = before[1] - reference_[1]
    assert excess != 0
    assert how.mean_adv[0, 1] == pytest.approx(4 / 15 * excess, rel=1e-12)
    assert how.variance_adv[0, 1] == pytest.approx(4 / 15 * 11 / 15 * excess**2, rel=1e-12)
    assert how.mean_ref[0, 1] == pytest.approx(reference_[1], rel=1e-14)


@pytest.mark.parametrize("kind", SHARPER)
def test_after_long_they_still_are_their_pseudocode(kind, system):
    literal_kind = reference.LiteralBernstein if kind is ucbf.UCBfBernstein else reference.LiteralReference
    deep = ucbf.System(F, REWARD, horizon=3)
    agent = kind(deep, c=0.3, p=0.5, clock="update")
    literal = literal_kind(deep, agent.units, 0.3, 0.5, "update")
    w = np.random.default_rng(0).choice(3, (150, 3), p=[0.6, 0.3, 0.1])
    agent.warm_start(w)
    for episode in w:
        for h in range(3):
            literal.observe(h, int(episode[h]))
    np.testing.assert_allclose(agent.q, literal.Q, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", SHARPER)
@pytest.mark.parametrize("seed", range(4))
def test_q_stays_above_the_optimal_q(kind, seed):
    # Bernstein's bonus is halved on the average, so that it needs twice the c for which UCB-f's is proved.
    world = ucbf.random_world(8, 3, 4, max_disturbance=3, lipschitz=None, seed=seed)
    c = 2 * valid_scale(world.system, 400, 0.01)
    agent, best = kind(world.system, c=c, clock="episode"), ucbf.optimal(world).q
    drawn = world.draw(400, seed)[1]
    assert (agent.q >= best - 1e-12).all()
    for k in range(400):
        agent.warm_start(drawn[k : k + 1])
        if k < 20 or k % 20 == 0:
            assert (agent.q >= best - 1e-12).all()
    bold = kind(world.system, c=0, clock="episode")
    bold.warm_start(drawn)
    assert (bold.q < best - 1e-3).any()  # without a bonus it would not


@pytest.mark.slow
def test_a_reference_halves_the_regret_of_ucb_f():
    total = {ucbf.UCBf: 0.0, ucbf.UCBfReference: 0.0}
    for seed in range(24):
        world = ucbf.random_world(25, 4, 10, max_disturbance=5, lipschitz=0.25, seed=seed)
        for kind in total:
            total[kind] += ucbf.simulate(kind(world.system), world, 5000, seed=seed).gap.sum()
    assert total[ucbf.UCBfReference] <= 0.55 * total[ucbf.UCBf]


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARPER)
def test_they_repair_a_wrong_f(kind):
    world = ucbf.random_world(15, 3, 4, max_disturbance=3, lipschitz=None, seed=1)
    told = ucbf.corrupt(world.system, 4, seed=1)
    fixed = ucbf.simulate(kind(told), world, 1500, seed=0)
    mended = ucbf.simulate(kind(told, estimator="OffsetPosterior"), world, 1500, seed=0)
    assert mended.gap[-300:].mean() < 0.3 * fixed.gap[-300:].mean()

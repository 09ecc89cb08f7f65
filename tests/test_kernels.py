"""Updates done by hand. H = 2, three states, two actions, states wrap; f and r are

state   f(s,0)  f(s,1)  r(s)
  0       0       1     0
  1       1       2     0.5
  2       2       0     1
"""

import itertools
import math

import numpy as np
import pytest

import ucbf
from ucbf.kernels.gamma import log_gamma
from ucbf.kernels.jit import source

F = [[0, 1], [1, 2], [2, 0]]
REWARD = [0, 0.5, 1]


@pytest.fixture
def system():
    return ucbf.System(F, REWARD, horizon=2)


def test_ucb_f_moves_every_pair_to_its_target(system):
    agent = ucbf.UCBf(system, c=0.1, bonus="experiment", clock="episode")
    agent.observe(1, 0, 0, 0)  # w = 0
    # First update: α = (2+1)/(2+1) = 1, b = 0.1·2/1 = 0.2; Q = r + 0 + 0.2, V = the same.
    np.testing.assert_allclose(agent.q[1], [[0.2, 0.2], [0.7, 0.7], [1.2, 1.2]], atol=1e-15)
    agent.observe(0, 0, 1, 2)  # w = 2 - f(0,1) = 1
    # Q(s,a) = r(s) + V(f(s,a) + 1) + 0.2, V = 0.2, 0.7, 1.2: (0,0) -> 1: 0 + 0.7 + 0.2, (1,1) -> 3 = 0: 0.5 + 0.2 + 0.2
    np.testing.assert_allclose(agent.q[0], [[0.9, 1.4], [1.9, 0.9], [1.4, 1.9]], atol=1e-15)
    np.testing.assert_array_equal(agent.policy, [[1, 0, 1], [0, 0, 0]])
    agent.observe(0, 2, 0, 2)  # w = 0
    # Second update: α = 3/4, b = 0.2/√2; (0,0): 0.25·0.9 + 0.75·(0 + 0.2 + b), (2,1): 0.25·1.9 + 0.75·(1 + 0.2 + b)
    b = 0.2 / math.sqrt(2)
    assert agent.q[0, 0, 0] == pytest.approx(0.225 + 0.75 * (0.2 + b), abs=1e-15)
    assert agent.q[0, 2, 1] == pytest.approx(0.475 + 0.75 * (1.2 + b), abs=1e-15)


def test_ucb_f_with_the_update_clock_keeps_some_of_the_initial_value(system):
    agent = ucbf.UCBf(system, c=0.1, bonus="experiment", clock="update")
    agent.observe(1, 0, 0, 0)
    # h = 1 of the first episode is update n = 2: α = 3/4, b = 0.2/√2. A quarter of the initial 2 is left.
    b = 0.2 / math.sqrt(2)
    np.testing.assert_allclose(agent.q[1, :, 0], [0.5 + 0.75 * (r + b) for r in REWARD], atol=1e-15)
    agent.observe(1, 0, 0, 0)
    # Its second update is n = 4: α = 3/6, b = 0.2/2.
    expected = [0.5 * (0.5 + 0.75 * (r + b)) + 0.5 * (r + 0.1) for r in REWARD]
    np.testing.assert_allclose(agent.q[1, :, 0], expected, atol=1e-15)


def test_ucb_f_value_is_capped_at_the_largest_return(system):
    agent = ucbf.UCBf(system, c=10, bonus="experiment", clock="episode")
    agent.observe(1, 0, 0, 0)  # b = 20
    agent.observe(0, 0, 0, 0)
    # V_1 = min(2, r + 20) = 2, so that Q_0 = r + 2 + 20.
    np.testing.assert_allclose(agent.q[0, :, 0], [22, 22.5, 23], atol=1e-13)


def test_the_published_bonus_knows_the_last_step(system):
    agent = ucbf.UCBf(system, c=0.1, p=0.5)
    np.testing.assert_allclose(agent.q[1], [[0, 0], [0.5, 0.5], [1, 1]])
    agent.observe(1, 0, 0, 1)
    np.testing.assert_allclose(agent.q[1], [[0, 0], [0.5, 0.5], [1, 1]])
    agent.observe(0, 0, 0, 1)
    # n = 1: Q = r + V(f + 1) + 0.1·2·sqrt(log(3·2·2/0.5)); (0,0) -> 1: 0.5, (1,0) -> 2: 0.5 + 1
    b = 0.2 * math.sqrt(math.log(24))
    assert agent.q[0, 0, 0] == pytest.approx(0.5 + b)
    assert agent.q[0, 1, 0] == pytest.approx(1.5 + b)


def test_ucb_f_averages_landing_rewards_and_discounts_what_follows():
    system = ucbf.System(
        lambda s, a: s + a, lambda s, a: 0.1 * a, 2, boundary="clip", landing=lambda z: 0.3 * (z < 0),
        discount=0.5, disturbance_range=(-2, 0), n_states=2, n_actions=2,
    )  # fmt: skip
    agent = ucbf.UCBf(system, c=0, bonus="experiment", clock="episode")
    agent.observe(1, 0, 0, 0, disturbance=-2)
    # z = s + a - 2: only (1,1) stays at 0. α = 1: Q_1 = r + 0.3 where z < 0.
    np.testing.assert_allclose(agent.q[1], [[0.3, 0.4], [0.3, 0.1]], atol=1e-15)
    agent.observe(0, 1, 1, 1, disturbance=-1)
    # z = s + a - 1 is -1, 0, 0, 1; V_1 = 0.4, 0.3. Q_0 = r + landing + 0.5 V_1(clip z):
    # (0,0): 0.3 + 0.2, (0,1): 0.1 + 0.2, (1,0): 0.2, (1,1): 0.1 + 0.15
    np.testing.assert_allclose(agent.q[0], [[0.5, 0.3], [0.2, 0.25]], atol=1e-15)
    agent.observe(1, 0, 0, 0, disturbance=0)
    # α = 3/4, no z is below 0: (0,0): 0.25·0.3 + 0, (1,0): 0.25·0.3, (0,1): 0.25·0.4 + 0.75·0.1
    np.testing.assert_allclose(agent.q[1], [[0.075, 0.175], [0.075, 0.1]], atol=1e-15)


def test_ucb_h_moves_only_the_visited_pair(system):
    agent = ucbf.UCBH(system, c=0.1, bonus="experiment")
    agent.observe(1, 2, 0, 0)
    # t = 1: α = 1, b = 0.2: Q = 1 + 0 + 0.2; the other action keeps 2, so that V_1(2) = 2.
    np.testing.assert_allclose(agent.q[1], [[2, 2], [2, 2], [1.2, 2]])
    agent.observe(1, 2, 1, 0)
    agent.observe(0, 0, 1, 2)
    # V_1(2) = 1.2 now: Q_0(0,1) = 0 + 1.2 + 0.2
    assert agent.q[0, 0, 1] == pytest.approx(1.4)
    agent.observe(0, 0, 1, 1)
    # t = 2: α = 3/4, V_1(1) = 2: 0.25·1.4 + 0.75·(2 + 0.2/√2)
    assert agent.q[0, 0, 1] == pytest.approx(0.35 + 0.75 * (2 + 0.2 / math.sqrt(2)))
    np.testing.assert_array_equal(agent.policy, [[0, 0, 0], [0, 0, 0]])
    assert np.count_nonzero(agent.q == 2) == 12 - 3


def test_ucbvi_plans_with_counts_and_never_raises_q(system):
    agent = ucbf.UCBVI(system, c=0.1, bonus="experiment")
    for s_next in (0, 0, 1, 0):
        agent.observe(0, 0, 1, s_next)
    for s, a in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        agent.observe(1, s, a, 0)
    # Q_1 = r + 0 + 0.2 once visited: V_1 = 0.2, 0.7, 2. N = 4: Q_0(0,1) = 0 + (3·0.2 + 0.7)/4 + 0.2/2
    np.testing.assert_allclose(agent.q[1], [[0.2, 0.2], [0.7, 0.7], [2, 2]])
    assert agent.q[0, 0, 1] == pytest.approx(0.325 + 0.1)
    assert agent.act(0, 0) == 0
    for _ in range(5):
        agent.observe(0, 0, 1, 2)
    # The new estimate (3·0.2 + 0.7 + 5·2)/9 + 0.2/3 is larger; Q stays.
    assert agent.q[0, 0, 1] == pytest.approx(0.425)


IOTA_IS_4 = 12 * math.exp(-4)  # p for which ι = log(SAH/p) = log(12/p) = 4


def test_ucb_b_takes_half_the_bound_at_first_and_then_its_change(system):
    agent = ucbf.UCBB(system, c=0.1, p=IOTA_IS_4)
    agent.observe(1, 2, 0, 0)
    # t = 1: β = 0.1 min(sqrt(2·(0 + 2)·4) + sqrt(2⁷·3·2)·4, sqrt(2³·4)) = 0.1 sqrt(32); b = β/2
    assert agent.q[1, 2, 0] == pytest.approx(1 + 0.05 * math.sqrt(32))
    agent.observe(1, 2, 0, 0)
    # t = 2: α = 3/4, β = 0.1 sqrt(32/2) = 0.4; b = (0.4 - 0.1 sqrt(32)/4) / 1.5
    b = (0.4 - 0.025 * math.sqrt(32)) / 1.5
    assert agent.q[1, 2, 0] == pytest.approx(0.25 * (1 + 0.05 * math.sqrt(32)) + 0.75 * (1 + b))
    assert np.count_nonzero(agent.q == 2) == 11


def test_early_settled_keeps_three_bounds_and_the_smallest(system):
    agent = ucbf.EarlySettled(system, c=0.1, p=IOTA_IS_4)
    learner = agent.learner
    agent.observe(1, 2, 0, 0)
    # n = 1: η = 1, b = 0.1 sqrt(2³·4) = 0.1 sqrt(32). Q^U = 1 + b, Q^L = 1 - b; after the end V^R = 0, so that
    # B = 0 and Q^R = 1 + 0.1·2²·4 = 2.6. Q is the smallest of them and of the 2 before.
    b = 0.1 * math.sqrt(32)
    bounds = learner.upper[1, 2, 0], learner.lower[1, 2, 0], learner.reference[1, 2, 0], agent.q[1, 2, 0]
    assert bounds == pytest.approx((1 + b, 1 - b, 2.6, 1 + b))
    # V(2) = 2 from the other action, V^L(2) = 1 - b = 0.434: further apart than 1, the reference follows V.
    assert (learner.value[1, 2], learner.value_low[1, 2], learner.value_ref[1, 2]) == pytest.approx((2, 1 - b, 2))
    agent.observe(1, 2, 0, 0)
    # n = 2: η = 3/4, b = 0.4; Q^R: 0.25·2.6 + 0.75 (1 + 1.6/2^0.75)
    upper, lower = 0.25 * (1 + b) + 0.75 * 1.4, 0.25 * (1 - b) + 0.75 * 0.6
    bounds = learner.upper[1, 2, 0], learner.lower[1, 2, 0], learner.reference[1, 2, 0], agent.q[1, 2, 0]
    assert bounds == pytest.approx((upper, lower, 0.65 + 0.75 * (1 + 1.6 / 2**0.75), upper))
    agent.observe(1, 2, 1, 0)
    # Now V(2) = Q(2,0) = 1.441 (the other is 1 + b = 1.566: the larger!), V^L(2) = max(0.559, 0.434): within 1.01.
    assert learner.value[1, 2] == pytest.approx(1 + b)
    agent.observe(1, 2, 1, 0)
    # Both actions at 1.441, V^L = 0.559: 0.883 apart. The reference takes V once more and settles.
    assert (learner.value_ref[1, 2], learner.unsettled[1, 2]) == (pytest.approx(upper), 0)
    agent.observe(1, 2, 1, 0)
    agent.observe(1, 2, 0, 0)
    assert learner.value[1, 2] < learner.value_ref[1, 2] == pytest.approx(upper)
    agent.observe(0, 0, 1, 2)
    # V = Q(2,·), V^R as settled, so that the advantage is their difference and μ^ref the reference itself.
    assert learner.mean_ref[0, 0, 1] == pytest.approx(upper)
    assert learner.mean_adv[0, 0, 1] == pytest.approx(learner.value[1, 2] - upper)


def test_ubev_adds_a_span_that_shrinks_towards_the_end(system):
    agent = ucbf.UBEV(system, c=0.1, p=216 * math.exp(-9))  # log(18SAH/p) = log(216/p) = 9
    # No data: Q_1 = r, Q_0 = r + max r = r + 1.
    np.testing.assert_allclose(agent.q, [[[1, 1], [1.5, 1.5], [2, 2]], [[0, 0], [0.5, 0.5], [1, 1]]])
    agent.observe(0, 0, 1, 1)
    # n = 1: llnp(1) = log(log(e)) = 0, φ = 0.1 sqrt(9) = 0.3; Q_0(0,1) = 0 + min(1, 0.5 + 1·0.3)
    assert agent.q[0, 0, 1] == pytest.approx(0.8)
    for _ in range(15):
        agent.observe(0, 0, 1, 0)
    # n = 16: P̂V = 0.5/16, φ = 0.1 sqrt((2 log(log 16) + 9) / 16)
    phi = 0.1 * math.sqrt((2 * math.log(math.log(16)) + 9) / 16)
    assert agent.q[0, 0, 1] == pytest.approx(0.5 / 16 + phi)


def test_ucbvi_bf_adds_variance_range_and_the_next_states_uncertainty(system):
    agent = ucbf.UCBVIBF(system, c=0.001, p=60 * math.exp(-6), episodes=1)  # ℓ = log(5SAT/p) = log(60/p) = 6
    agent.observe(1, 2, 0, 0)
    agent.observe(1, 2, 1, 0)
    # Nothing follows the last step: b = 0.001·14·2·6/3 = 0.056
    np.testing.assert_allclose(agent.q[1], [[2, 2], [2, 2], [1.056, 1.056]])
    agent.observe(0, 0, 1, 2)
    # One next state, seen twice at step 1: no variance; min(100²·2³·3²·2·6²/2, 2²) = 4: b = 0.001 (56 + sqrt(8·4))
    assert agent.q[0, 0, 1] == pytest.approx(1.056 + 0.056 + 0.001 * math.sqrt(32))
    agent.observe(0, 0, 1, 1)
    # Half 1.056, half 2: variance (0.944/2)²; N = 2. State 1 was never left at step 1 before: 4 for both.
    bonus = math.sqrt(8 * 6 * 0.472**2 / 2) + 14 * 2 * 6 / 6 + math.sqrt(8 * 4 / 2)
    assert agent.q[0, 0, 1] == pytest.approx(min(1.056 + 0.056 + 0.001 * math.sqrt(32), 1.528 + 0.001 * bonus))


@pytest.mark.parametrize("n_actions", [1, 2, 4, 5])
def test_ties_go_to_the_lowest_action_whatever_their_number(n_actions):
    reward = np.array(list(itertools.product([0.0, 1.0, 2.0], repeat=n_actions)))  # every pattern of ties, a state each
    system = ucbf.System(np.zeros(reward.shape, np.int64), reward, 1, "wrap")
    found = ucbf.optimal(ucbf.World(system, ucbf.Disturbance([1.0])))
    assert found.policy[0].tolist() == reward.argmax(axis=1).tolist()  # numpy's argmax is the first
    assert found.v[0].tolist() == reward.max(axis=1).tolist()


def test_the_logarithm_of_gamma():
    x = np.concatenate([np.logspace(-4, 6, 500), np.arange(1, 30), np.arange(1, 60) / 2])
    expected = [math.lgamma(each) for each in x]
    np.testing.assert_allclose([source(log_gamma)(each) for each in x], expected, rtol=1e-12, atol=1e-12)

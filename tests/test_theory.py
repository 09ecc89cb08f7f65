import math

import numpy as np
import pytest

import ucbf
from ucbf import theory


def test_weights_are_what_updates_leave_of_their_targets():
    # H = 2: α = 1, 3/4, 3/5. After three updates: 1·(1/4)·(2/5), (3/4)·(2/5), 3/5.
    np.testing.assert_allclose(theory.weights(2, 3), [0.1, 0.3, 0.6])
    np.testing.assert_allclose(theory.weights(5, 1), [1])


@pytest.mark.parametrize("H", [1, 2, 10])
@pytest.mark.parametrize("t", [1, 2, 17, 400])
def test_weights_keep_their_lemma(H, t):
    w, i = theory.weights(H, t), np.arange(1, t + 1)
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert w.max() <= 2 * H / t + 1e-15
    assert (w**2).sum() <= 2 * H / t + 1e-15
    for a in (0.5, 1.0):
        assert t**-a - 1e-15 <= (w / i**a).sum() <= (1 + 1 / H) * t**-a + 1e-15


def simple(**changes):
    return ucbf.System(**{"f": np.zeros((5, 2), int), "reward": np.linspace(0, 1, 5), "horizon": 2, **changes})


def test_error_bounds_follow_the_recursion():
    # H = 2: P_1 = 4·1.5·x = 6x, P_0 = 6x + 1.5·6x = 15x, x = c sqrt(8ι) + Lζ sqrt(t), ι = log(20/0.1)
    system = simple(model_error=2, lipschitz=0.25)
    x = 0.5 * math.sqrt(8 * math.log(200)) + 0.25 * 2 * 3
    np.testing.assert_allclose(theory.error_bounds(system, 9, c=0.5, p=0.1), [15 * x / 3, 6 * x / 3])


def test_gap_bounds_sum_over_steps_fall_and_never_exceed_what_returns_can_differ():
    system = simple()
    k = 10**6
    assert theory.gap_bound(system, k) == pytest.approx(theory.error_bounds(system, k - 1).sum())
    assert theory.gap_bound(system, 1) == theory.gap_bound(system, 50) == 2
    total = sum(theory.gap_bound(system, j) for j in range(1, 301))
    assert theory.regret_bound(system, 300) == pytest.approx(total)
    dear = simple(reward=1000 * np.linspace(0, 1, 5))
    assert theory.regret_bound(dear, 10**5) == pytest.approx(1000 * theory.regret_bound(system, 10**5), rel=0.2)


def test_theorem_2_is_the_gap_bound_turned_round():
    exact, wrong = simple(), simple(model_error=2, lipschitz=0.1)
    k, leftover = theory.episodes_for(exact, 0.3)
    assert leftover == 0
    assert theory.gap_bound(exact, k) <= 0.3 < theory.gap_bound(exact, k - 2)
    k, leftover = theory.episodes_for(wrong, 0.3)
    assert leftover == pytest.approx((15 + 6) * 0.1 * 2)
    assert theory.gap_bound(wrong, k) <= 0.3 + leftover
    with pytest.raises(ValueError, match="epsilon is 0; it must be above 0"):
        theory.episodes_for(exact, 0)


def test_by_default_c_is_the_smallest_for_which_the_proof_holds():
    # S = 5, A = 2, H = 2, five after-states: c² log(SAH/p) = log(π²/6 · t² · 2XH/p)
    system, t, p = simple(), 10_000, 0.02
    c = math.sqrt(math.log(math.pi**2 / 6 * t**2 * 20 / p) / math.log(20 / p))
    np.testing.assert_allclose(theory.error_bounds(system, t, p=p), theory.error_bounds(system, t, c=c, p=p))
    assert theory.gap_bound(system, t + 1, p=p) == pytest.approx(theory.gap_bound(system, t + 1, c=c, p=p))
    assert theory.regret_bound(system, t, p=p) == pytest.approx(theory.regret_bound(system, t, c=c, p=p))
    ucbf.UCBf(system, bonus="theorem", clock="episode", c=c + 1e-9, p=p).check_proof(t, p)
    with pytest.raises(ValueError, match="for 10000 episodes the proof needs"):
        ucbf.UCBf(system, bonus="theorem", clock="episode", c=c - 1e-9, p=p).check_proof(t, p)
    # Theorem 2 is of a c that passes the same check, where c = 1 does not.
    paper = ucbf.random_world(n_actions=2, horizon=5).system
    k, _ = theory.episodes_for(paper, 0.1)
    needed = theory.episodes_for(paper, 0.1, c=1)
    assert k > 5 * needed.episodes
    with pytest.raises(ValueError, match=r"c is 1; for 1126068748 episodes the proof needs 2\.27 at p = 0\.01"):
        ucbf.UCBf(paper, bonus="theorem", clock="episode", c=1).check_proof(needed.episodes - 1, 0.01)


def test_the_regret_bound_grows_like_the_root_of_the_episodes_and_linearly_with_a_wrong_f():
    exact, wrong = simple(horizon=1), simple(horizon=1, model_error=2, lipschitz=0.001)
    one, four = (theory.regret_bound(exact, 10**6 * n, c=2) for n in (1, 4))
    assert four / one == pytest.approx(2, rel=0.02)
    late = theory.regret_bound(wrong, 4 * 10**6, c=2) - theory.regret_bound(exact, 4 * 10**6, c=2)
    assert late == pytest.approx(4 * 10**6 * 8 * 0.001 * 2, rel=0.01)


def test_theorem_3_by_hand():
    # H = 2: P_1 + P_0 = 21x, x = c sqrt(8ι) + L sqrt(d), ι = log(20/0.1). The returns differ by 2 at most.
    system = simple(lipschitz=0.25)
    x = 0.01 * math.sqrt(8 * math.log(200)) + 0.25 * 0.3
    expected = 2 + sum(min(2, 21 * x / math.sqrt(t)) for t in range(1, 50))
    assert theory.online_regret_bound(system, 50, d=0.09, c=0.01, p=0.1) == pytest.approx(expected)
    assert 21 * x / math.sqrt(49) < 1  # so that x counts
    exact = theory.online_regret_bound(system, 3000, d=0, c=0.5)
    assert exact == pytest.approx(theory.regret_bound(system, 3000, c=0.5))
    with pytest.raises(ValueError, match="d is -1; it must be 0 or more"):
        theory.online_regret_bound(system, 10, d=-1)


@pytest.mark.parametrize("zeta", [0, 2])
@pytest.mark.parametrize("seed", range(6))
def test_the_lemma_holds_for_every_state_step_and_episode(seed, zeta):
    world = ucbf.random_world(n_states=8, n_actions=3, horizon=3, max_disturbance=2, lipschitz=None, seed=seed)
    plan = ucbf.optimal(world)
    told = ucbf.corrupt(world.system, zeta, seed=seed).replace(lipschitz=theory.measured_lipschitz(world))
    for c in (1.0, 0.1):
        agent = ucbf.UCBf(told, bonus="theorem", clock="episode", c=c)
        for k in range(1, 301):
            q, policy = agent.q, agent.policy
            chosen = np.take_along_axis(q - plan.q, policy[:, :, None], axis=2)[:, :, 0]
            v = np.minimum(agent.units.cap[:, None], q.max(axis=2))
            assert (v - plan.v[:-1] >= -1e-10).all(), k
            assert (v - plan.v[:-1] <= chosen + 1e-10).all(), k
            if k > 1:
                assert (chosen <= theory.error_bounds(told, k - 1, c=c)[:, None] + 1e-10).all(), k
                gap = plan.v[0] - ucbf.evaluate(world, policy)[0]
                assert gap.max() <= theory.gap_bound(told, k, c=c) + 1e-10
            ucbf.simulate(agent, world, 1, seed=1000 * seed + k)


def test_lipschitz_constants_of_a_gentle_system_bound_its_values():
    system = ucbf.System(lambda s, a: s - a, lambda s, a: 0.1 * s, 3, boundary="clip", n_states=6, n_actions=2,
                         landing=lambda z: -0.05 * np.abs(z), disturbance_range=(0, 1))  # fmt: skip
    constants = theory.lipschitz_constants(system)
    # L_2 = 0.1 + 0.05, L_1 = 0.1 + 0.05 + L_2, L_0 = 0.1 + 0.05 + L_1
    expected = {"f": 1, "reward": pytest.approx(0.1), "landing": pytest.approx(0.05), "value": pytest.approx(0.45)}
    assert constants == expected
    world = ucbf.World(system, ucbf.Disturbance([0.5, 0.5]))
    assert 0 < theory.measured_lipschitz(world) <= constants["value"]


def test_measured_lipschitz_looks_across_the_seam_where_states_wrap():
    ring = ucbf.System(lambda s, a: s, [0, 0.1, 0.2, 0.3], 1, n_states=4, n_actions=1)
    assert theory.measured_lipschitz(ucbf.World(ring, ucbf.Disturbance([1.0]))) == pytest.approx(0.3)
    line = ring.replace(boundary="clip")
    assert theory.measured_lipschitz(ucbf.World(line, ucbf.Disturbance([1.0]))) == pytest.approx(0.1)


def test_the_orders_of_table_1_grow_as_it_says():
    one = theory.regret_orders(10, 4, 5, 10**12, lipschitz=0.1, d=3)
    more_states = theory.regret_orders(40, 4, 5, 10**12, lipschitz=0.1, d=3)
    assert more_states["UCB-f"] == one["UCB-f"] == pytest.approx((5**6 * 10**12) ** 0.5)
    assert more_states["UCB-H"] == pytest.approx(2 * one["UCB-H"])
    assert more_states["UCBVI"] > 1.99 * one["UCBVI"]
    assert one["UCB-f, online"] == pytest.approx(one["UCB-f"] + 0.1 * (5 * 3 * 10**12) ** 0.5)


def test_the_orders_of_table_1_by_hand():
    # S = 3, A = 2, H = 4, T = 600: SAT = 3600, whose root is 60.
    orders = theory.regret_orders(3, 2, 4, 600, lipschitz=0.5, model_error=2, d=6)
    assert orders == pytest.approx(
        {
            "UCBVI": 4 * 60 + 4**4 * 3**2 * 2,
            "UBEV": 8 * 60 + 4**2 * 3**3 * 2**2,
            "UCB-H": 16 * 60,
            "Q-EarlySettled-Advantage": 4 * 60 + 4**6 * 3 * 2,
            "UCB-f": 64 * 600**0.5 + 0.5 * 2 * 4 * 600,
            "UCB-f, online": 64 * 600**0.5 + 0.5 * (4 * 6 * 600) ** 0.5,
        }
    )


def test_the_newer_orders_by_hand():
    # d = 9, H = 4, K = 100: sqrt(64·9·100) = 8·3·10, 16·9·10, sqrt(900), 16·10
    orders = theory.observed_orders(9, 4, 100)
    assert orders == pytest.approx({"plug-in": 240, "PEL": 1440, "lower bound, in d": 30, "UCBVI-f": 160})
    with pytest.raises(ValueError, match="n_disturbances is 0"):
        theory.observed_orders(0, 4, 100)

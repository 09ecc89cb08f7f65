"""Systems without an end: discounted, or judged by the average in the long run; costs that come late."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import ucbf
from ucbf.planning import gain

FLIPS = [0.75, 0.25]  # W = 1 moves to the other of two states


def two_states(discount=1.0, law=FLIPS, reward=((0.0, -1.0), (4.0, 3.0)), **more):
    """Stay (action 0) or go (1), which costs 1; state 1 pays 4. With probability 1/4 it comes out the other way."""
    system = ucbf.System(np.array([[0, 1], [1, 0]]), np.array(reward), None, "wrap", discount=discount, **more)
    return ucbf.World(system, ucbf.Disturbance(law))


def drawn(seed, discount=1.0, period=1, S=5, A=3, n=3):
    """A random world in which every state is reached, and its f, rewards [P, S, A] and probabilities [P, n]."""
    rng = np.random.default_rng(seed)
    f, reward = rng.integers(0, S, (period, S, A)), rng.normal(size=(period, S, A))
    pmf = rng.random((period, n)) + 0.1
    pmf /= pmf.sum(axis=1, keepdims=True)
    system = ucbf.System(f, reward, None, "wrap", discount=discount, period=period)
    return ucbf.World(system, ucbf.Disturbance(pmf)), f, reward, pmf


def transitions(f, pmf, h, S):
    """[S, A, S] of step h."""
    P = np.zeros((*f.shape[1:], S))
    for s, a in np.ndindex(f.shape[1:]):
        for w, chance in enumerate(pmf[h]):
            P[s, a, (f[h, s, a] + w) % S] += chance
    return P


# -- by hand --------------------------------------------------------------------------------------------------


def test_gain_and_relative_values_of_two_states():
    # Go in 0, stay in 1: from either it is in 1 with probability 3/4. Gain 1/4 (-1) + 3/4 * 4 = 2.75. Both actions lead
    # to the same distribution, so that v(1) - v(0) = 4 - (-1) = 5. Staying in 0 is worth 1/4 * 5, going -1 + 3/4 * 5.
    world = two_states()
    plan = ucbf.optimal(world)
    assert plan.gain == pytest.approx(2.75, abs=1e-8)
    assert plan.bounds[0] <= 2.75 + 1e-12
    assert plan.bounds[1] >= 2.75 - 1e-12
    np.testing.assert_array_equal(plan.policy, [[1, 0]])
    np.testing.assert_allclose(plan.v, [[0, 5], [-2.75, 2.25]], atol=1e-7)
    np.testing.assert_allclose(plan.q[0] - plan.q[0, 0, 1], [[-1.5, 0], [5, 1.5]], atol=1e-7)
    assert world.best == plan.gain
    # Always staying: half of the time in each. D = 4 + (3/4 - 1/4) D = 8.
    assert gain(world, [0, 0]) == pytest.approx(2, abs=1e-8)
    np.testing.assert_allclose(ucbf.evaluate(world, [0, 0])[0], [0, 8], atol=1e-7)


def test_discounted_values_of_two_states():
    # γ = 0.8: V(1) - V(0) = 5; V(0) = -1 + 0.8 (V(0) + 3/4 * 5), so that 0.2 V(0) = 2.
    world = two_states(0.8)
    plan = ucbf.optimal(world)
    np.testing.assert_allclose(plan.v[0], [10, 15], atol=1e-8)
    np.testing.assert_allclose(plan.q[0], [[9, 10], [15, 12]], atol=1e-8)  # 0.8 (10 + 5/4) = 9; 3 + 9
    assert world.best == pytest.approx(12.5, abs=1e-8)
    # Always staying: D = 4 + 0.8 / 2 D = 20/3; V(0) = 0.8 (V(0) + D/4), so that V(0) = D.
    np.testing.assert_allclose(ucbf.evaluate(world, [0, 0])[0], [20 / 3, 40 / 3], atol=1e-8)
    with pytest.raises(AttributeError, match="V\\* is in v"):
        _ = plan.gain
    with pytest.raises(ValueError, match="use ucbf.evaluate"):
        gain(world, [0, 0])


def test_a_period_of_two():
    # At step 0 state 1 pays 4, at step 1 state 0 pays 6; going costs 1. W = 1 has probability 1/4 at step 0, 1/10 at
    # step 1. Best: be in 1 at step 0, in 0 at step 1. A period pays 0.9 (4 - 1) + 0.75 (6 - 1) = 6.45.
    reward = [[[0, -1], [4, 3]], [[6, 5], [0, -1]]]
    world = two_states(law=[[0.75, 0.25], [0.9, 0.1]], reward=reward, period=2)
    plan = ucbf.optimal(world)
    assert plan.gain == pytest.approx(6.45 / 2, abs=1e-8)
    np.testing.assert_array_equal(plan.policy, [[0, 1], [1, 0]])
    np.testing.assert_allclose(np.diff(plan.v), [[3], [-5], [3]], atol=1e-7)
    np.testing.assert_allclose(plan.v[0] - plan.v[2], 6.45, atol=1e-7)
    # Always staying: at step 0 in 1 as often as in 0, likewise at step 1: (2 + 3) / 2.
    assert gain(world, [0, 0]) == pytest.approx(2.5, abs=1e-8)
    assert gain(world, plan.policy) == pytest.approx(plan.gain, abs=1e-8)
    half = ucbf.optimal(two_states(0.5, [[0.75, 0.25], [0.9, 0.1]], reward, period=2))
    V = np.zeros(2)
    for _ in range(60):
        for h, stay in ((1, 0.9), (0, 0.75)):
            V = np.array([max(reward[h][s][a] + 0.5 * (stay * V[s ^ a] + (1 - stay) * V[1 - (s ^ a)]) for a in (0, 1))
                          for s in (0, 1)])  # fmt: skip
    np.testing.assert_allclose(half.v[0], V, atol=1e-8)


@pytest.mark.parametrize(
    ("last", "best", "values"),
    [
        # 0 -> 1 -> 0 pays 0 + 4, 0 -> 1 -> 2 -> 0 pays 0 + 1 + last.
        (8.0, 3.0, [0, 3, 5]),  # (0 + 1 + 8) / 3; v(0) = 0 - 3 + v(1), v(1) = 1 - 3 + v(2)
        (4.0, 2.0, [0, 2, 2]),  # (0 + 4) / 2; v(0) = 0 - 2 + v(1), v(2) = 4 - 2 + v(0)
    ],
)
def test_cycles_that_nothing_disturbs(last, best, values):
    reward = np.array([[0.0, 0], [4, 1], [last, last]])
    system = ucbf.System(np.array([[1, 1], [0, 2], [0, 0]]), reward, None, "wrap")
    world = ucbf.World(system, ucbf.Disturbance([1.0]), start=0)
    plan = ucbf.optimal(world)
    assert plan.gain == pytest.approx(best, abs=1e-8)
    np.testing.assert_allclose(plan.v[0], values, atol=1e-6)
    assert gain(world, [0, 0, 0]) == pytest.approx(2, abs=1e-8)
    assert gain(world, [0, 1, 0]) == pytest.approx((1 + last) / 3, abs=1e-8)


def test_a_policy_may_keep_to_where_it_begins():
    # Staying in 0 pays 0 for ever, staying in 1 pays 1: the average depends on the first state.
    system = ucbf.System(np.array([[0, 1], [1, 0]]), np.array([[0.0, 0], [1, 1]]), None, "wrap")
    law = ucbf.Disturbance([1.0])
    for start, average in ((0, 0), (1, 1), ([0.25, 0.75], 0.75)):
        world = ucbf.World(system, law, start=start)
        assert gain(world, [0, 0]) == pytest.approx(average, abs=1e-8)
        assert world.best == pytest.approx(1, abs=1e-8)
    with pytest.raises(ValueError, match="average of this policy depends on the first state"):
        ucbf.evaluate(world, [0, 0])


# -- against other methods --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("period", "K", "best"), [(1, 15.0, 112), (7, 15.0, 112), (7, 40.0, 183)])
def test_slow_movers_with_a_dear_order_settle_at_what_a_cycle_earns(period, K, best):
    # A unit goes on a day with chance p. Ordering q when nothing is left earns q (price - cost) - K in a cycle of
    # q / p days. In it stock k lasts 1/p days; k is left on all of them but the last, k - 1 on that: together
    # q (q + 1) / (2 p) - q.
    p, margin, q = 0.25, 0.48, np.arange(1, 401)

    def earned(p):
        return p / q * (margin * q - K - 0.0006 * (q * (q + 1) / (2 * p) - q))

    shop = ucbf.systems.Inventory(
        capacity=400,
        max_demand=1,
        horizon=None,
        period=period,
        price=1.68,
        unit_cost=1.2,
        order_cost=K,
        holding=0.0006,
    )
    plan = ucbf.planning.plan(shop.system, ucbf.Disturbance([p, 1 - p], low=-1))
    assert plan.gain == pytest.approx(earned(p).max(), abs=1e-7)
    assert plan.policy[0, 0] == earned(p).argmax() + 1 == best
    assert plan.gain < p * margin
    fleet = ucbf.Fleet(shop, n_items=1)
    days = np.arange(4 * period)
    fleet.add(0 * days, days % period, -(days < period).astype(int))
    believed = fleet.distribution_of(0).pmf[:, 0]
    assert (believed == believed[0]).all()
    assert fleet.gains[0] == pytest.approx(earned(believed[0]).max(), abs=1e-7)
    assert not fleet.unsettled[0]


@pytest.mark.parametrize("period", [1, 2, 3])
def test_the_best_average_is_that_of_the_linear_programme(period):
    for seed in range(8):
        world, f, reward, pmf = drawn(seed, period=period)
        S, A = world.system.n_states, world.system.n_actions
        flow = np.zeros((period, S, period, S, A))  # of x[h, s, a], into and out of each state at each step
        for h in range(period):
            P = transitions(f, pmf, h, S)
            for s, a in np.ndindex(S, A):
                flow[h, s, h, s, a] += 1
                flow[(h + 1) % period, :, h, s, a] -= P[s, a]
        equal = np.vstack([flow.reshape(period * S, -1), np.ones(reward.size)])
        found = linprog(-reward.ravel(), A_eq=equal, b_eq=[0] * (period * S) + [1])
        assert world.best == pytest.approx(-found.fun, abs=1e-8)
        assert gain(world, world.plan.policy) == pytest.approx(-found.fun, abs=1e-8)


@pytest.mark.parametrize("period", [1, 2])
def test_the_discounted_optimum_is_the_best_of_all_policies(period):
    S, A, discount = 3, 2, 0.7
    for seed in range(4):
        world, f, reward, pmf = drawn(seed, discount, period, S, A)
        best, rows = np.full(period * S, -np.inf), np.arange(S)
        for actions in itertools.product(range(A), repeat=period * S):
            policy = np.reshape(actions, (period, S))
            step, paid = np.zeros((period, S, period, S)), np.empty((period, S))
            for h in range(period):
                step[h, :, (h + 1) % period] = transitions(f, pmf, h, S)[rows, policy[h]]
                paid[h] = reward[h, rows, policy[h]]
            step = step.reshape(period * S, period * S)
            value = np.linalg.solve(np.eye(period * S) - discount * step, paid.ravel())
            best = np.maximum(best, value)
            if sum(actions) % 5 == 0:
                np.testing.assert_allclose(ucbf.evaluate(world, policy)[:-1].ravel(), value, atol=1e-8)
        np.testing.assert_allclose(world.plan.v[:-1].ravel(), best, atol=1e-8)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_discounted_values_approach_the_average(seed, period):
    # U = g/(1-γ) + v solves the discounted equation but for (1-γ) v, so that |(1-γ) V - g| <= (1-γ) (max v - min v).
    # With a period, v is over all its steps.
    world, *_ = drawn(seed, period=period)
    v, g = world.plan.v[:-1] + world.best * np.arange(period)[:, None], world.best
    for discount in (0.9, 0.99, 0.999):
        V = drawn(seed, discount, period)[0].plan.v[:-1]
        assert np.abs((1 - discount) * V - g).max() <= (1 - discount) * np.ptp(v) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_ucb_f_is_the_literal_update(seed):
    # Q <- (1-α) Q + α (r + γ V(f + w) + b), V = min(cap, max Q), with the horizon log(1/((1-γ) 0.1)) / (1-γ).
    rng = np.random.default_rng(seed)
    S, A, discount, p, c = 4, 2, 0.8, 0.05, 0.1
    f, reward = rng.integers(0, S, (S, A)), rng.random((S, A))
    agent = ucbf.UCBf(ucbf.System(f, reward, None, "wrap", discount=discount), bonus="theorem", c=c, p=p)
    rest = 1 - discount
    horizon, iota, cap = math.log(1 / (rest * 0.1)) / rest, math.log(S * A / p), reward.max() / rest
    Q, V, s = np.full((S, A), cap), np.full(S, cap), 0
    for t in range(1, 60):
        a = agent.act(t - 1, s)
        assert a == Q[s].argmax()
        w = int(rng.integers(0, 3))
        after = int(f[s, a] + w) % S
        agent.observe(t - 1, s, a, after)
        alpha, bonus = (horizon + 1) / (horizon + t), c / rest * math.sqrt(horizon * iota / t)
        Q = (1 - alpha) * Q + alpha * (reward + discount * V[(f + w) % S] + bonus)
        V, s = np.minimum(cap, Q.max(axis=1)), after
        np.testing.assert_allclose(agent.q[0], Q, atol=1e-12)


# -- what is paid late ------------------------------------------------------------------------------------------

LAG, P = 2, 3
DEMAND = np.array([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0, 0.25, 0.75]])  # of W = -2, -1, 0, at each step of a period


def backlog(horizon, **more):
    """Stock with what is under way, -3..3; orders of 0 to 2 take two steps; what is short then costs 5, what lies 1."""
    return ucbf.System(
        lambda s, a: s + a, lambda s, a: -0.3 * a, horizon, "clip", state_offset=-3, n_states=7, n_actions=3,
        landing=lambda z: 0.1 * z, disturbance_range=(-2, 0), allowed=lambda s, a: s + a <= 3,
        lag=LAG, late_landing=lambda z: np.where(z < 0, 5.0 * z, -1.0 * z), **more,
    )  # fmt: skip


def expected_late(h, z):
    """What z costs two steps later, by enumeration of the two disturbances after that of step h."""
    expected = 0.0
    for w in itertools.product((-2, -1, 0), repeat=LAG):
        total = z + sum(w)
        chance = math.prod(DEMAND[(h + 1 + i) % P, w[i] + 2] for i in range(LAG))
        expected += chance * (5.0 * total if total < 0 else -1.0 * total)
    return expected


LATE = {(h, z): expected_late(h, z) for h in range(P) for z in range(-5, 4)}


def late_q(system, h, V):
    """[S, A] by loops."""
    q = np.full((7, 3), -np.inf)
    for s, a in itertools.product(range(-3, 4), range(3)):
        if s + a <= 3:
            q[s + 3, a] = -0.3 * a
            for w in (-2, -1, 0):
                z = s + a + w
                later = system.discount * V[max(z, -3) + 3] + system.discount**LAG * LATE[h % P, z]
                q[s + 3, a] += DEMAND[h % P, w + 2] * (0.1 * z + later)
    return q


def informed(system):
    """UCBVI-f that has seen the distributions as they are."""
    agent = ucbf.UCBVIf(system, prior_weight=0)
    history = np.array([[-2, -2, -1], [-1, -2, 0], [-1, -1, 0], [0, 0, 0]])
    agent.warm_start(np.tile(history, (1, system.n_steps // P)))
    return agent


def test_what_comes_late_counts_as_expected():
    system = backlog(6, discount=0.9)  # after the last step the distributions come round again
    plan = ucbf.optimal(ucbf.World(system, ucbf.Disturbance(np.tile(DEMAND, (2, 1)), low=-2)))
    V = np.zeros(7)
    for h in range(5, -1, -1):
        q = late_q(system, h, V)
        np.testing.assert_allclose(plan.q[h], q, atol=1e-12)
        V = q.max(axis=1)
    agent = informed(system)
    np.testing.assert_array_equal(agent.policy, plan.policy)
    np.testing.assert_allclose(agent.plan.v, plan.v, atol=1e-12)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_what_comes_late_counts_without_an_end(discount):
    system = backlog(None, discount=discount, period=P)
    world = ucbf.World(system, ucbf.Disturbance(DEMAND, low=-2))
    V = before = np.zeros(7)
    for _ in range(80):
        before = V
        for h in (2, 1, 0):
            V = late_q(system, h, V).max(axis=1)
    if discount == 1:
        assert world.best == pytest.approx((V - before).mean() / P, abs=1e-6)
        V = V - V[0]
    np.testing.assert_allclose(world.plan.v[0], V, atol=1e-6)
    agent = informed(system)
    np.testing.assert_array_equal(agent.policy, world.plan.policy)
    np.testing.assert_allclose(np.diff(agent.plan.v), np.diff(world.plan.v), atol=1e-5)
    run = ucbf.simulate(ucbf.UCBVIf(system), world, steps=2000)
    assert run.gap.min() > -1e-9
    assert run.gap[-1] < 0.02 * abs(world.best)


# -- learning -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("Agent", [ucbf.UCBf, ucbf.UCBVIf])
def test_gaps_fall_and_are_never_negative(Agent, discount):
    for seed in range(3):
        world, *_ = drawn(seed, discount, period=2)
        agent = Agent(world.system)
        run = ucbf.simulate(agent, world, steps=20_000 if Agent is ucbf.UCBf else 4000, seed=seed)
        assert run.gap.min() > -1e-9
        assert run.gap[-len(run.gap) // 10 :].mean() < 0.05 * run.gap[0] + 1e-3
        # The gap is that of the policy in the world.
        if discount == 1:
            lost = world.best - gain(world, agent.policy)
        else:
            lost = world.best - world.start @ ucbf.evaluate(world, agent.policy)[0]
        assert lost == pytest.approx(run.gap[-1], abs=0.05)


@pytest.mark.parametrize("Agent", [ucbf.UCBf, ucbf.UCBVIf])
def test_a_simulation_is_what_acting_and_observing_do(Agent):
    world, f, reward, _ = drawn(1, 0.9, period=2)
    one, other = Agent(world.system), Agent(world.system)
    run = ucbf.simulate(one, world, steps=60, seed=4)
    first, w = world.draw_steps(60, seed=4)
    s = int(first[0])
    for t in range(60):
        a = other.act(t, s)
        after = int(f[t % 2, s, a] + w[t, 0]) % 5
        assert run.reward[t] == reward[t % 2, s, a]
        other.observe(t, s, a, after)
        s = after
    np.testing.assert_array_equal(one.q, other.q)


def test_few_renewals_are_few():
    world, *_ = drawn(2, 0.9)
    run = ucbf.simulate(ucbf.UCBVIf(world.system, renewal="few", eta=0.5), world, steps=3000)
    assert 1 <= run.switched.sum() <= 2 + np.log(3000) / np.log(1.5)
    slow = ucbf.UCBVIf(world.system, renewal="few", eta=1e6)
    ucbf.simulate(slow, world, steps=200)
    assert slow.learner.due[0] > 200  # nothing more is planned for long
    assert ucbf.UCBVIf(world.system).params["renewal"] == "few"  # without an end, as a planner
    assert ucbf.UCBf(world.system).params["renewal"] == "episode"


@pytest.mark.parametrize("period", [1, 2])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_certificates_hold_and_fall(discount, period):
    for seed in range(3):
        world, *_ = drawn(seed, discount, period)
        agent, widths = ucbf.UCBVIf(world.system), []
        for i in range(3):
            ucbf.simulate(agent, world, steps=20 * 20**i, seed=i)
            found, policy = agent.certificate(), agent.policy
            if discount == 1:
                best, got = np.full(5, world.best), np.full(5, gain(world, policy))
            else:
                best, got = world.plan.v[0], ucbf.evaluate(world, policy)[0]
            assert (best <= found.upper + 1e-7).all()
            assert (found.lower <= got + 1e-7).all()
            assert (best - got <= found.gap + 1e-7).all()
            widths.append(found.average())
        assert widths[0] > widths[1] > widths[2] > 0
        assert widths[2] < 0.25 * widths[0]


def test_a_certificate_by_hand():
    # Of n = 400 steps W was 1 in 100. The chance of W = 1 is within ε = sqrt((2 log 2 + log(π²/6 n² / 0.05)) / 2n) of
    # 1/4. State 0 (going) pays 5 less than state 1 (staying): at best the gain is 4 - 5 (1/4 - ε), at worst
    # 4 - 5 (1/4 + ε).
    system = two_states(disturbance_range=(0, 1)).system
    agent = ucbf.UCBVIf(system)
    agent.warm_start(np.array([0, 0, 0, 1] * 100)[:, None])
    error = math.sqrt((2 * math.log(2) + math.log(math.pi**2 / 6 * 400**2 / 0.05)) / 800)
    found = agent.certificate(form="bernstein")
    np.testing.assert_allclose(found.upper, 2.75 + 5 * error, atol=1e-3)
    np.testing.assert_allclose(found.lower, 2.75 - 5 * error, atol=1e-3)


def test_stop_when_stops():
    world = two_states(0.8)
    agent = ucbf.UCBVIf(world.system)
    run = ucbf.simulate(agent, world, steps=20_000, stop_when=3.0)
    assert len(run.gap) < 20_000
    assert agent.certificate().average(world.start) <= 3.0
    assert len(ucbf.simulate(ucbf.UCBVIf(world.system), world, steps=100, stop_when=1e-3).gap) == 100


@pytest.mark.parametrize("Agent", [ucbf.UCBf, ucbf.UCBVIf])
def test_a_saved_agent_goes_on_bit_for_bit(Agent, tmp_path):
    world, *_ = drawn(3, 0.9, period=2)
    agent = Agent(world.system)
    ucbf.simulate(agent, world, steps=101)
    agent.save(tmp_path / "agent.npz")
    other = ucbf.load(tmp_path / "agent.npz")
    assert other.system.horizon is None
    assert other.system.n_steps == 2
    runs = [ucbf.simulate(one, world, steps=50, seed=1) for one in (agent, other)]
    np.testing.assert_array_equal(runs[0].gap, runs[1].gap)
    np.testing.assert_array_equal(runs[0].reward, runs[1].reward)
    for name, array in agent.state.items():
        np.testing.assert_array_equal(array, other.state[name])


# -- refusals ---------------------------------------------------------------------------------------------------

STAY = np.array([[0, 0], [1, 1]])


def test_several_closed_classes_have_no_best_average():
    with pytest.raises(ValueError, match="whoever is in state 0 never gets to 1.*from 0 to 1;.*discount below 1"):
        _ = ucbf.World(ucbf.System(STAY, np.array([0.0, 1]), None, "wrap"), ucbf.Disturbance([1.0])).plan
    plan = ucbf.World(ucbf.System(STAY, np.array([0.0, 1]), None, "wrap", discount=0.5), ucbf.Disturbance([1.0])).plan
    np.testing.assert_allclose(plan.v[0], [0, 2], atol=1e-8)


@pytest.mark.parametrize(
    ("horizon", "more", "message"),
    [
        (None, {"terminal": np.zeros(2)}, "horizon is None: without an end nothing is paid there"),
        (3, {"period": 2}, "period is 2, and horizon 3; a period is of systems without an end"),
        (None, {"period": 0}, "period is 0; it must be 1 or more"),
        (None, {"lag": 1}, "lag is 1, and late_landing None; give both"),
        (None, {"late_landing": lambda z: z}, "lag is 0, and late_landing .*; give both"),
        (None, {"lag": 1, "late_landing": lambda z: z}, "lag needs states on a line that is clipped or strict"),
        (3, {"lag": 1, "late_landing": lambda z: z, "boundary": "clip"}, "lag needs disturbance_range"),
    ],
)
def test_what_does_not_go_together_is_refused(horizon, more, message):
    with pytest.raises(ValueError, match=message):
        ucbf.System(STAY, np.zeros(2), horizon, **{"boundary": "wrap", **more})


def test_late_landing_is_the_same_at_every_step():
    with pytest.raises(TypeError, match="late_landing takes more than the raw next states"):
        ucbf.System(STAY, np.zeros(2), None, "clip", disturbance_range=(0, 1), lag=1, late_landing=lambda h, z: 1.0 * z)


def test_steps_and_episodes_are_told_apart():
    endless, law = two_states(), ucbf.Disturbance(FLIPS)
    ends = ucbf.World(endless.system.replace(horizon=3), law)
    for world, how in ((endless, {"episodes": 3}), (endless, {}), (endless, {"episodes": 3, "steps": 3})):
        with pytest.raises(TypeError, match="has no end: give steps="):
            ucbf.simulate(ucbf.UCBVIf(world.system), world, **how)
    for how in ({"steps": 3}, {"episodes": 3, "steps": 3}):
        with pytest.raises(TypeError, match="has episodes: give episodes="):
            ucbf.simulate(ucbf.UCBVIf(ends.system), ends, **how)
    with pytest.raises(ValueError, match="told horizon = 3, but the world has None"):
        ucbf.simulate(ucbf.UCBVIf(ends.system), endless, steps=3)


@pytest.mark.parametrize("name", ["UCBH", "UCBB", "UCBVI", "UCBVIBF", "UBEV"])
def test_blind_agents_need_an_end(name):
    with pytest.raises(ValueError, match="learns from episodes, and this system has no end; use UCBVI-f or UCB-f"):
        getattr(ucbf, name)(two_states().system)


def test_what_agents_cannot_do_is_refused():
    with pytest.raises(ValueError, match="paid 2 steps late, and UCB-f learns only from what is paid at once"):
        ucbf.UCBf(backlog(None))
    with pytest.raises(ValueError, match="nothing is certified of rewards that are paid late"):
        ucbf.UCBVIf(backlog(None)).certificate()
    system = two_states(0.8).system
    with pytest.raises(ValueError, match="the paper's proof is of systems with an end"):
        ucbf.UCBf(system, bonus="theorem", clock="episode", c=9).certificate(form="theorem")
    with pytest.raises(ValueError, match="repairs f in systems with an end"):
        ucbf.UCBVIf(system, estimator="OffsetPosterior")


def test_discounted_optima_are_those_of_quantecon():
    # tests/data/discrete_dp.json was written by QuantEcon's DiscreteDP; it says how.
    recorded = json.loads((Path(__file__).parent / "data" / "discrete_dp.json").read_text())
    for one in recorded["systems"]:
        law = ucbf.Disturbance(one["pmf"])
        told = {"boundary": "clip", "discount": one["discount"], "disturbance_range": (0, len(one["pmf"]) - 1)}
        plan = ucbf.optimal(ucbf.World(ucbf.System(one["f"], one["reward"], None, **told), law))
        np.testing.assert_allclose(plan.v[0], one["v"], rtol=1e-9)
        np.testing.assert_array_equal(plan.policy[0], one["policy"])


def test_a_run_does_not_depend_on_how_it_is_cut(monkeypatch):
    rng = np.random.default_rng(0)
    system = ucbf.System(rng.integers(0, 9, (9, 3)), rng.random(9), None, "wrap", discount=0.9)
    world = ucbf.World(system, ucbf.Disturbance([0.5, 0.3, 0.2]))
    runs = []
    for seconds in (1.0, 0.0):  # in a few parts, or step by step
        monkeypatch.setattr("ucbf.simulation.BLOCK_SECONDS", seconds)
        runs.append(ucbf.simulate(ucbf.UCBf(system, c=0.005), world, steps=300))
    np.testing.assert_array_equal(runs[0].reward, runs[1].reward)
    np.testing.assert_array_equal(runs[0].switched, runs[1].switched)

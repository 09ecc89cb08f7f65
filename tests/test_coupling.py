"""Coupled bounds: by hand, against loops over everything and scipy's optimiser, and what they refuse."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import beta

import reference
import ucbf
from ucbf import coupling
from ucbf.coupling import Coupling, ball_radius
from ucbf.kernels import settling
from ucbf.kernels.bounds import over_ball
from ucbf.kernels.jit import source
from ucbf.planning import gain
from worlds import any_world, forked, puterman_inventory, weather


def dual(d, shares, radius):
    """The largest mean of d over the ball, as the least over ν, by scipy's search."""
    d, shares, top = np.array(d), np.array(shares), max(d)
    if top - min(d) < 1e-12 or radius == math.inf:
        return top
    some = shares > 0

    def bound(log_excess):
        nu = top + math.exp(log_excess)
        return nu - math.exp(shares[some] @ np.log(nu - d[some]) - radius)

    ends = math.log(top - min(d)) + np.array([-25, 10])
    found = min(minimize_scalar(bound, bounds=(i, i + 7), method="bounded").fun for i in np.arange(*ends, 7))
    return min(found, bound(ends[0]), top)


def ball(counts, p):
    """most(h, d) over the balls of counts [L, n]."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    radius = [ball_radius(row, len(counts), p) for row in counts]
    return lambda h, d: dual(d, shares[h % len(counts)], radius[h % len(counts)])


def coupled_of(system, policy):
    """In the user's units."""
    possible = np.tile(system.bins.guess > 0, system.n_contexts)
    return Coupling(system.mechanics, np.ascontiguousarray(policy), possible)


def any_policy(system, seed):
    return (np.random.default_rng(seed).random(system.allowed.shape) * system.allowed).argmax(axis=2)


def counts_of(system, law, n):
    """[L, R] as if the n disturbances of every step had come in the very shares of ``law``."""
    counts = np.zeros((len(law.pmf), system.bins.n * system.n_contexts))
    for row, pmf in zip(counts, law.pmf, strict=True):
        np.add.at(row, system.indices_of(law), n * pmf)
    return counts


# -- by hand --------------------------------------------------------------------------------------------------


def test_the_radius_of_a_ball_by_hand():
    # Three 0 and one 1: P̂(data) = (3/4)³ 1/4 = 27/256, KT = (1/2 · 3/2 · 5/2 · 1/2) / (1 · 2 · 3 · 4) = 5/128.
    assert ball_radius(np.array([3.0, 1.0]), 2, 0.1) == pytest.approx((math.log(20) + math.log(27 / 10)) / 4)
    assert ball_radius(np.zeros(2), 2, 0.1) == math.inf


def test_one_step_by_hand():
    # Aim at 0 or 1; W is 0 or 1, and was 0 three times. Landing on 1 pays 1: so the policy aims at 1. Aiming at 0 would
    # be better by -1 if W = 0 and by 1 if W = 1. The ball says that Q(0) >= exp(-radius), so D = 1 - 2 exp(-radius).
    system = ucbf.System(lambda s, a: a + 0 * s, 0.0, 1, "clip", landing=lambda z: 1.0 * (z == 1), n_states=3,
                         n_actions=2, disturbance_range=(0, 1))  # fmt: skip
    agent = ucbf.UCBVIf(system)
    agent.warm_start(np.zeros((3, 1), int))
    kt = (1 / 2 * 3 / 2 * 5 / 2) / 6
    expected = 1 - 2 * (kt * 0.05) ** (1 / 3)  # 19 parts of 20 of p = 1/19 are for this
    found = agent.certificate(1 / 19, "coupled")
    np.testing.assert_allclose(found.gap, expected, rtol=1e-9)
    assert found.form == "coupled"


def test_two_steps_of_two_states_by_hand():
    # Aim at 0 or 1, W (0 or 1, modulo 2) moves on; then being in 1 pays 1. Of eight W six were 0: aim at 1. Aiming at 0
    # is better by -1 or 1, so D = 2q - 1 with the largest chance q of W = 1 in the ball: KL((3/4, 1/4), (1 - q, q)) =
    # radius.
    system = ucbf.System(lambda s, a: a + 0 * s, lambda s, a: 1.0 * s, 2, "wrap", n_states=2, n_actions=2)
    system = system.replace(reward=np.array([[[0.0, 0]] * 2, [[0.0, 0], [1, 1]]]), disturbance_range=(0, 1))
    counts = np.array([[6.0, 2], [6, 2]])
    radius = ball_radius(counts[0], 2, 0.1)
    low, q = 0.25, 1.0
    for _ in range(60):
        middle = (low + q) / 2
        inside = 0.75 * math.log(0.75 / (1 - middle)) + 0.25 * math.log(0.25 / middle) <= radius
        low, q = (middle, q) if inside else (low, middle)
    found = coupled_of(system, np.ones((2, 2), int)).over_balls(counts, 0.1, np.zeros(2))
    assert q > 0.5
    np.testing.assert_allclose(found, 2 * q - 1, rtol=2e-3)
    assert (found >= 2 * q - 1 - 1e-12).all()


def test_the_average_reward_of_two_states_by_hand():
    # The same without an end: being in 1 pays 1, whatever was before. A step is better by at most 2q - 1.
    system = ucbf.System(lambda s, a: a + 0 * s, lambda s, a: 1.0 * s, None, "wrap", n_states=2, n_actions=2,
                         disturbance_range=(0, 1))  # fmt: skip
    counts = np.array([[6.0, 2]])
    least = dual([-1, 1], [0.75, 0.25], ball_radius(counts[0], 1, 0.1))
    found = coupled_of(system, np.ones((1, 2), int)).over_balls(counts, 0.1, np.array([0.0, 1.0]))
    np.testing.assert_allclose(found, least, rtol=2e-3)
    assert (found >= least - 1e-9).all()
    discounted = coupled_of(system.replace(discount=0.5), np.ones((1, 2), int))
    # D(s, s) = least/2 + D/2: what is missed is paid one step later, and so on.
    np.testing.assert_allclose(discounted.over_balls(counts, 0.1, np.zeros(2)), least, rtol=3e-3)


# -- against slow code ----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.sampled_from([1e-4, 0.01, 0.1, 1.0, 5.0]))
@settings(max_examples=60)
def test_the_most_over_a_ball_is_what_an_optimiser_finds(seed, n, radius):
    rng = np.random.default_rng(seed)
    d, shares = rng.normal(size=n) * rng.choice([1e-3, 1, 100]), rng.dirichlet(np.ones(n))
    shares[1:][rng.random(n - 1) < 0.3] = 0
    shares /= shares.sum()
    found = source(over_ball)(d, shares[None], 0, radius, d.max(), d.min())
    best = dual(d, shares, radius)
    mean = shares @ d
    assert best - 1e-9 * np.ptp(d) <= found <= best + 2e-3 * (best - mean) + 1e-9 * np.ptp(d)
    some = shares > 0

    def outside(q):
        return radius - shares[some] @ np.log(shares[some] / np.maximum(q[some], 1e-300))

    first = 0.99 * shares + 0.01 / n
    primal = minimize(
        lambda q: -(q @ d) / np.ptp(d), first, bounds=[(1e-12, 1)] * n, method="SLSQP",
        constraints=[{"type": "ineq", "fun": outside}, {"type": "eq", "fun": lambda q: q.sum() - 1}],
    )  # fmt: skip
    if primal.success and outside(primal.x) > -1e-9:
        assert found >= primal.x @ d - 1e-5 * np.ptp(d)


@given(any_world(), st.integers(0, 2**32 - 1))
@settings(max_examples=12)
def test_a_ball_is_that_of_loops_over_everything(world, seed):
    system, rng = world.system, np.random.default_rng(seed)
    policy, H = any_policy(system, seed), system.n_steps
    counts = np.zeros((H, system.bins.n))
    counts[:, : system.bins.n_possible] = rng.multinomial(
        40, np.full(system.bins.n_possible, 1 / system.bins.n_possible), H
    )
    seen = counts[:, : system.bins.n_possible]
    both = coupled_of(system, policy)
    slow, quick = (
        reference.coupled(system, policy, ball(seen, 0.2)),
        both.over_balls(counts, 0.2, np.zeros(system.n_states)),
    )
    scale = 1e-9 + np.abs(slow).max()
    assert (quick >= slow - 1e-6 * scale).all()
    np.testing.assert_allclose(quick, slow, atol=1e-2 * scale)


# -- what must hold -------------------------------------------------------------------------------------------


@given(any_world(), st.integers(0, 2**32 - 1), st.sampled_from([1, 30, 10_000]))
@settings(max_examples=25)
def test_with_the_true_law_in_the_ball_the_bound_is_above_the_gap_of_any_policy(world, seed, n):
    system, policy = world.system, any_policy(world.system, seed)
    counts = counts_of(system, world.law, n)
    found = coupled_of(system, policy).over_balls(counts, 0.5, np.zeros(system.n_states))
    gap = ucbf.optimal(world).v[0] - ucbf.evaluate(world, policy)[0]
    slack = 1e-9 * (1 + np.abs(gap).max())
    assert (found >= gap - slack).all()
    assert (found >= -slack).all()
    # Two separate bounds over the same ball are never below.
    seen = counts[:, : system.bins.n_possible]
    most = ball(seen, 0.5)
    separate = reference.separate(system, policy, most)
    assert (found <= separate + 2e-2 * (1e-9 + np.abs(separate).max())).all()


@pytest.mark.parametrize("discount", [0.7, 1.0])
@pytest.mark.parametrize("period", [1, 2])
def test_without_an_end_the_bound_is_above_the_gap_of_any_policy_and_falls(discount, period):
    rng = np.random.default_rng(4)
    f, reward = rng.integers(0, 5, (period, 5, 3)), rng.random((period, 5, 3))
    system = ucbf.System(f, reward, None, "wrap", discount=discount, period=period, disturbance_range=(0, 2))
    pmf = rng.dirichlet(np.ones(3), period)
    world = ucbf.World(system, ucbf.Disturbance(pmf))
    for policy in (world.plan.policy, any_policy(system, 1)):
        missed = world.best - gain(world, policy) if discount == 1 else None
        gap = world.plan.v[0] - ucbf.evaluate(world, policy)[0] if missed is None else missed
        both, bounds = coupled_of(system, policy), []
        for n in (20, 500, 10**7):
            bounds.append(both.over_balls(counts_of(system, world.law, n), 0.1, world.plan.v[0]))
            assert (bounds[-1] >= gap - 1e-7).all()
        assert bounds[0].mean() >= bounds[1].mean() >= bounds[2].mean()  # 0 where it is certain that it is the best
        np.testing.assert_allclose(bounds[2], gap, atol=0.1)
    assert bounds[0].mean() > bounds[1].mean() > bounds[2].mean() > 0


def test_with_contexts_and_in_boxes_the_bound_is_above_the_gap_too():
    for world in (weather(mixed=True), forked()):
        system = world.system
        agent = ucbf.UCBVIf(system)
        ucbf.simulate(agent, world, steps=3000)
        found = agent.certificate(0.01)
        assert found.form == "coupled"
        assert not found.note
        gap = world.plan.v[0] - ucbf.evaluate(world, agent.policy)[0]
        assert (found.gap >= gap - 1e-9).all()
        assert found.average() < 0.5 * agent.certificate(0.01, "bernstein").average()


def test_moved_to_other_prices_and_pooled_steps():
    world = puterman_inventory()
    agent = ucbf.UCBVIf(world.system, stationary=True)
    ucbf.simulate(agent, world, 400)
    moved = agent.moved_to(world.system.replace(landing=lambda z: -5.0 * np.maximum(z, 0)))
    other = SimpleNamespace(system=moved.system, law=world.law)
    gap = ucbf.planning.plan(moved.system, world.law).v[0] - ucbf.evaluate(other, moved.policy)[0]
    found = moved.certificate(0.01, "coupled")
    assert (found.gap >= gap - 1e-9).all()
    assert found.average() < 0.2 * moved.certificate(0.01, "bernstein").average()
    with pytest.raises(ValueError, match="'evalue' is not to be had: e-values need a distribution of its own"):
        moved.certificate(0.01, "evalue")


def test_steps_seen_unequally_often_are_left_to_the_ball():
    world = puterman_inventory()
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, 50)
    assert agent.certificate().tilted is not None
    agent.observe(0, 0, 3, 2)
    found = agent.certificate()
    assert found.tilted is None
    assert found.form == "coupled"


def test_the_best_of_all_shares_p_and_says_what_it_is():
    world = ucbf.random_world(8, 3, 3, 3, None, seed=2)
    agent = ucbf.UCBVIf(world.system.replace(disturbance_range=(0, 3)))
    ucbf.simulate(agent, world, 200)
    best = agent.certificate(0.05)
    coupled, evalue = agent.certificate(0.05 / 3, "coupled"), agent.certificate(0.05 * 2 / 3, "evalue")
    separate = agent.certificate(0.0025, "bernstein")
    np.testing.assert_allclose(best.gap, np.minimum.reduce([coupled.gap, evalue.gap, separate.gap]), rtol=1e-9)
    np.testing.assert_array_equal(best.upper, separate.upper)
    assert best.average() == min(evalue.average(), best.gap.mean())
    assert best.form == ("evalue" if evalue.average() < coupled.average() else "coupled")
    assert best.form in repr(best)


# -- what is refused, and what serves instead -----------------------------------------------------------------


def test_what_cannot_be_coupled_gets_separate_bounds_and_says_so(monkeypatch):
    system = ucbf.random_world(6, 2, 2, 2, None, seed=0).system
    wrong = ucbf.UCBVIf(system.replace(model_error=2))
    np.testing.assert_array_equal(wrong.certificate().gap, wrong.certificate(form="bernstein").gap)
    assert "f may be wrong (model_error 2)" in wrong.certificate().note
    with pytest.raises(ValueError, match=r"'coupled' is not to be had: f may be wrong .*; use form='best'"):
        wrong.certificate(form="coupled")
    agent = ucbf.UCBVIf(system)
    for name, value in (("MOST_PAIRS", 5), ("MOST_PAIRS", 20), ("MOST_WORK", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(coupling, name, value)
            found = agent.certificate()
            assert found.note.startswith("separate bounds only: 6 states")
            np.testing.assert_array_equal(found.gap, agent.certificate(0.005, "bernstein").gap)
            assert found.p == 0.05
            assert found.form == agent.certificate(form="evalue").form == "bernstein"
            assert agent.certificate(form="coupled").form == "sets"
    endless = ucbf.UCBVIf(ucbf.System([[0, 1], [1, 0]], 0.0, None, "wrap"))
    with pytest.raises(ValueError, match="'evalue' is not to be had: e-values need an end"):
        endless.certificate(form="evalue")


def test_few_pairs_are_looked_at_where_few_can_be_reached():
    # Both sides order up to something: their stocks differ by 4 at most, however large the shop.
    system = ucbf.System(lambda s, a: s + a, 0.0, 4, "clip", landing=lambda z: -np.abs(z - 200.0), n_states=400,
                         n_actions=2, disturbance_range=(-1, 0))  # fmt: skip
    both = coupled_of(system, np.zeros((4, 400), int))
    assert both.n <= 400 * 4
    np.testing.assert_array_equal(both.pairs.sizes, np.sort(both.pairs.sizes))
    assert both.pairs.sizes[0] == 400


# -- beside it: what is believed ------------------------------------------------------------------------------


def test_what_is_believed_by_hand():
    # As in one step by hand: aiming at 1 is wrong where Q(1) > 1/2, and then by 2 Q(1) - 1. After two 0 Q(1) is
    # Beta(1/2, 5/2); its quantile at 0.95 is x, so that the gap is at most 2x - 1 with a belief of 0.95.
    system = ucbf.System(lambda s, a: a + 0 * s, 0.0, 1, "clip", landing=lambda z: 1.0 * (z == 1), n_states=3,
                         n_actions=2, disturbance_range=(0, 1))  # fmt: skip
    agent = ucbf.UCBVIf(system)
    agent.warm_start(np.zeros((2, 1), int))
    assert agent.credible_gap(0.05, draws=3000) == pytest.approx(2 * beta.ppf(0.95, 0.5, 2.5) - 1, abs=0.05)
    assert agent.credible_gap(0.5) == 0
    assert agent.credible_gap(0.01) == agent.credible_gap(0.01)
    assert agent.credible_gap(0.01, seed=1) != agent.credible_gap(0.01)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_what_is_believed_without_an_end_is_less_than_what_is_certain(discount):
    system = ucbf.System(lambda s, a: a + 0 * s, lambda s, a: 1.0 * s, None, "wrap", n_states=2, n_actions=2,
                         disturbance_range=(0, 1), discount=discount)  # fmt: skip
    agent = ucbf.UCBVIf(system)
    agent.warm_start(np.array([[0], [0], [0], [1]]))
    assert 0 < agent.credible_gap(0.02, start=[1.0, 0.0]) < agent.certificate(0.02).gap[0]


def test_what_cannot_be_believed():
    system = ucbf.random_world(6, 2, 2, 2, None, seed=0).system
    with pytest.raises(ValueError, match="model_error is 2: .* state f exactly"):
        ucbf.UCBVIf(system.replace(model_error=2)).credible_gap()
    with pytest.raises(ValueError, match="start is"):
        ucbf.UCBVIf(system).credible_gap(start=[1.0])
    with pytest.raises(ValueError, match="draws is 0"):
        ucbf.UCBVIf(system).credible_gap(draws=0)
    with pytest.raises(ValueError, match="p is 0"):
        ucbf.UCBVIf(system).credible_gap(0)


@pytest.mark.parametrize(("boundary", "pays"), [("wrap", False), ("wrap", True), ("clip", True)])
def test_bounds_with_several_after_states_are_those_of_loops_over_everything(boundary, pays):
    """Every action may lead to one to three after-states within ζ/2 of what is told, beyond the edges too."""
    rng = np.random.default_rng(5)
    for _ in range(4):
        system = ucbf.System(
            rng.integers(0, 8, (8, 2)), rng.random((8, 2)), 3, boundary, model_error=4, disturbance_range=(0, 2),
            landing=(lambda z: np.cos(1.0 * z)) if pays else None, terminal=rng.random(8), discount=0.9,
        )  # fmt: skip
        agent = ucbf.UCBVIf(system, estimator="OffsetPosterior")
        m, told = agent.learner.model, agent.told
        m.left[:] = rng.random(m.left.shape) < 0.3
        m.left[:, :2], m.left[:, 7:], m.left[:, 4] = False, False, True  # of offsets -4..4
        m.anchor[settling.KIND], m.certain[:] = settling.ABSOLUTE, 4  # so that nothing is looked at again
        m.pool[:, 2:5] = rng.integers(1, 30, (3, 3))
        settled = agent.model.settled(told, m)
        policy = rng.integers(0, 2, (3, 8))
        found = Coupling(told, policy, settled.possible, settled.targets).over_balls(settled.counts, 0.1, np.zeros(8))

        def leads_to(h, s, a, m=m, system=system):
            return [system.f[h, s, a] + d for d in np.flatnonzero(m.left[s * 2 + a]) - 4]

        scale, W = agent.units.scale, [0, 1, 2]
        slow = reference.coupled(system, policy, ball(settled.counts[:, 2:5], 0.1), leads_to=leads_to, W=W)
        np.testing.assert_allclose(found * scale, slow, rtol=2e-3)
        assert (found * scale >= slow - 1e-9).all()

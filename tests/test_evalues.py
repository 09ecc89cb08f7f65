"""Coupled bounds with e-values: by hand, against slow code, and their mean over all that may be seen."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import gammaincc

import reference
import ucbf
from ucbf.coupling import Coupling, Tilted, log_looks, looks
from ucbf.kernels import coupled
from ucbf.kernels.bounds import over_flat
from ucbf.kernels.coupled import SHARE
from ucbf.kernels.jit import source
from ucbf.planning import plan
from worlds import any_world, puterman_inventory


def coupled_of(system, policy):
    """In the user's units."""
    return Coupling(system.mechanics, np.ascontiguousarray(policy), system.bins.guess > 0)


def any_policy(system, seed):
    return (np.random.default_rng(seed).random(system.allowed.shape) * system.allowed).argmax(axis=2)


def flat(d, shares, n, price):
    """B of the kernel."""
    level = n + math.lgamma(n + 1) - (n + 1) * math.log(n)
    chances = SimpleNamespace(shares=shares[None], samples=float(n), level=level)
    return source(over_flat)(d, chances, 0, price, d.max(), d.min())


def aimed():
    """Aim at 0 or 1; landing on 1 pays 1, and W is 0 or 1."""
    return ucbf.System(lambda s, a: a + 0 * s, 0.0, 1, "clip", landing=lambda z: 1.0 * (z == 1), n_states=3,
                       n_actions=2, disturbance_range=(0, 1))  # fmt: skip


# -- by hand --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("price", "n"), [(0.05, 3), (0.5, 3), (0.02, 60), (2.0, 60)])
def test_one_value_seen_n_times_by_hand(price, n):
    # d is -1 or 1, and only -1 was seen: exp(-B_ν/λ) = exp(1/λ) (u exp(1 - u))^n with u = (ν + 1)/κ. That is integrated
    # from 2/κ on, and in Z from 0 on: the ratio is an incomplete gamma function.
    exact = -1 - price * math.log(gammaincc(n + 1, n * 2 / (n * price)))
    found = flat(np.array([-1.0, 1.0]), np.array([1.0, 0.0]), n, price)
    assert exact <= found <= exact + price * (0.4 if 2 / price < n else 3)
    assert flat(np.array([4.0, 4.0]), np.array([0.5, 0.5]), n, price) == 4


def test_one_step_by_hand():
    # W was 0 three times, so that the policy aims at 1. Aiming at 0 is better by d = -1 if W = 0 and by 1 if W = 1.
    agent = ucbf.UCBVIf(aimed())
    agent.warm_start(np.zeros((3, 1), int))
    held = coupled_of(aimed(), agent.policy).with_evalues(agent.knowledge.counted(), 0.5, 1.0)
    assert 2 ** (-15 / 2) / math.sqrt(3) in held.prices.tolist()  # where the search begins
    seen = np.array([1.0, 0.0])
    for price, d in zip(held.prices, held.d, strict=True):
        # Under the guess aiming at 0 is worth 0 or 1, at 1 it is 1 or 0: their difference is the same d.
        toll = price * math.log(1 + math.exp(SHARE * flat(np.array([-1.0, 1.0]), seen, 3, price) / price))
        gain = flat(np.array([-1.0, 1.0]), seen, 3, (1 - SHARE) * price)
        np.testing.assert_allclose(d, max(0, gain) + toll)
    # After three episodes, the third of the numbers that get most of p: 0.8 · 100 / (102 · 103) of it.
    assert held.beta == pytest.approx(math.log(102 * 103 / 80 / 0.5))
    # Weights 1/(1 + x²), three entries of the list being one x: i = 15, 14 have 1 and 9/10 of something.
    weight = dict(zip(np.round(-2 * np.log2(held.prices * math.sqrt(3))).tolist(), np.exp(held.logs), strict=True))
    assert weight[14] / weight[15] == pytest.approx(0.9)
    assert 0.1 < weight[15] < 0.13


def test_no_toll_where_nothing_follows_or_nothing_can_be_chosen():
    rewards = ucbf.System(lambda s, a: a + 0 * s, np.array([[0.0, 1.0], [1.0, 0.0]]), 1, "wrap", n_states=2,
                          disturbance_range=(0, 1))  # fmt: skip
    held = coupled_of(rewards, np.array([[1, 1]])).with_evalues(np.array([[3.0, 2.0]]), 0.5, 1.0)
    np.testing.assert_array_equal(held.d, np.tile([0.0, 1.0], (len(held.d), 1)))  # action 1 is the best at 0 only
    forced = ucbf.System(lambda s, a: 0 * s + a, 0.0, 3, "wrap", landing=lambda z: 1.0 * z, n_states=3, n_actions=3,
                         allowed=lambda s, a: a == s, disturbance_range=(0, 1))  # fmt: skip
    only = coupled_of(forced, np.tile(np.arange(3), (3, 1))).with_evalues(np.full((3, 3), 2.0), 0.5, 1.0)
    np.testing.assert_array_equal(only.d, 0)


def test_the_bound_of_several_levels_by_hand():
    held = Tilted(np.array([[1.0, 3.0], [2.0, 2.5]]), np.array([0.5, 0.1]), np.log([0.25, 0.5]), 4.0)

    def root(first, second, beta):
        return brentq(
            lambda g: math.log(0.25 * math.exp((g - first) / 0.5) + 0.5 * math.exp((g - second) / 0.1)) - beta, 0, 9
        )

    assert held.average(np.array([0.5, 0.5])) == pytest.approx(root(2, 2.25, 4))
    assert held.average(np.array([0.25, 0.75])) == pytest.approx(root(2.5, 2.375, 4))
    np.testing.assert_allclose(held.at_states(), [root(1, 2, 4 + math.log(2)), root(3, 2.5, 4 + math.log(2))])
    np.testing.assert_allclose(held.times(10).at_states(), 10 * held.at_states())
    # With one level it is D + λ (β - log weight).
    one = Tilted(np.array([[1.0]]), np.array([0.5]), np.log([0.25]), 4.0)
    assert one.average(np.ones(1)) == pytest.approx(1 + 0.5 * (4 + math.log(4)))


def test_numbers_of_episodes_with_two_digits_get_most_of_p():
    assert log_looks(1) == pytest.approx(-math.log(0.8 / 101))
    assert log_looks(99) == pytest.approx(-math.log(0.8 * 100 / (198 * 199)))
    assert log_looks(100) == pytest.approx(-math.log(0.8 * 100 / (199 * 200)))
    assert log_looks(101) == log_looks(109) == pytest.approx(-math.log(0.2 / 9 * 100 / (199 * 200)))
    assert log_looks(2700) == pytest.approx(-math.log(0.8 * 100 / ((100 + 206) * (101 + 206))))  # 99 + 90 + 17
    assert log_looks(2701) - log_looks(2700) == pytest.approx(math.log(4 * 99))
    shares = np.exp([-log_looks(n) for n in range(1, 10_000)])
    # All shares up to the j-th sum to 1 - 100 / (101 + j), but that nothing lies between the first hundred.
    assert shares.sum() == pytest.approx(0.8 * (1 - 100 / 379) + 0.2 * (100 / 199 - 100 / 379))


def test_when_a_run_looks_at_its_certificate():
    assert looks(30) == [*range(1, 21), 21, 22, 23, 24, 25, 26, 27, 28, 29]
    assert [n for n in looks(1400) if n > 90] == [93, 97, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200, 210, 220,
        240, 260, 280, 300, 320, 340, 360, 380, 400, 420, 450, 480, 510, 540, 570, 600, 630, 670, 710, 750, 790, 830,
        880, 930, 980, 1100, 1200, 1300]  # fmt: skip
    assert all(log_looks(n) < 9 for n in looks(10**6))
    assert looks(1) == []


# -- against slow code ----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.sampled_from([1, 2, 5, 50, 1000]), st.floats(-2, 2))
@settings(max_examples=200)
def test_the_integral_over_all_nu_is_never_missed_by_much(seed, k, n, spread):
    rng = np.random.default_rng(seed)
    d, shares = rng.normal(size=k), rng.multinomial(n, rng.dirichlet(np.ones(k))) / n
    price = np.ptp(d) * 10**spread / math.sqrt(n)
    exact, found = reference.flat(d, shares, n, price), flat(d, shares, n, price)
    assert exact - 1e-6 * price - 1e-9 <= found
    if n * price > 2 * np.ptp(d):
        assert found <= exact + (0.05 + 0.7 / math.sqrt(n)) * price
    np.testing.assert_allclose(flat(d + 7, shares, n, price), 7 + found, atol=1e-9)
    np.testing.assert_allclose(flat(3 * d, shares, n, 3 * price), 3 * found, atol=1e-9)


@given(any_world(), st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None)
def test_the_bound_is_that_of_loops_over_everything(world, seed):
    system, rng, n = world.system, np.random.default_rng(seed), 40
    policy, H, W = any_policy(system, seed), system.n_steps, system.bins.n_possible
    counts = np.zeros((H, system.bins.n))
    counts[:, :W] = rng.multinomial(n, np.full(W, 1 / W), H)
    shares = counts[:, :W] / n
    held = coupled_of(system, policy).with_evalues(counts, 0.2, 100.0)  # values of these worlds differ by 3 at most
    d, price = held.d[0], held.prices[0]
    prices = price / system.discount ** np.arange(H)

    def most(h, follows):
        return reference.flat(follows, shares[h], n, (1 - SHARE) * prices[h])

    tolls = reference.choosing(system, policy, shares, n, prices, SHARE)
    slow = reference.coupled(system, policy, most, tolls)
    assert (d >= slow - 1e-3 * price).all()
    assert (d <= slow + 0.2 * prices.sum()).all()


# -- what must hold -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "price"), [(2, 2.0), (4, 1.0), (9, 0.4)])
@pytest.mark.parametrize("pmf", [[0.5, 0.3, 0.2], [0.02, 0.08, 0.9], [0.9, 0.08, 0.02], [0.0, 0.5, 0.5]])
def test_of_one_function_the_mean_is_at_most_1_and_not_much_less(n, price, pmf):
    d, pmf, mean = np.array([1.0, 0.2, -0.4]), np.array(pmf), 0.0
    for drawn in itertools.product(range(n + 1), repeat=3):
        if sum(drawn) == n:
            chance = math.factorial(n) * math.prod(p**c / math.factorial(c) for p, c in zip(pmf, drawn, strict=True))
            mean += chance * math.exp((pmf @ d - flat(d, np.array(drawn) / n, n, price)) / price)
    assert 0.6 < mean <= 1


def tiny(rng):
    """A system and a distribution of W for which all that may be seen in n episodes can be gone through."""
    S, A, H, K = (int(rng.integers(2, most)) for most in (4, 4, 4, 3 if rng.random() < 0.6 else 4))
    H, n = (min(H, 2), int(rng.integers(1, 4))) if K > 2 else (H, int(rng.integers(1, 6 if H < 3 else 4)))
    landing, reward = rng.random((H, 40)) * rng.integers(0, 2), rng.random((H, S, A)) * rng.choice([0, 0.3, 1])
    boundary = str(rng.choice(["wrap", "clip"])) if K <= S else "clip"
    land = None if boundary == "wrap" else lambda h, z: landing[h, z + 10]
    system = ucbf.System(rng.integers(0, S, (H, S, A)), reward, H, boundary, landing=land, n_states=S, n_actions=A,
                         disturbance_range=(0, K - 1), discount=float(rng.choice([1, 0.7])),
                         terminal=rng.random(S) * rng.integers(0, 2))  # fmt: skip
    return system, rng.dirichlet(np.full(K, rng.choice([0.3, 1, 5])), H), n


def greedy(system, counts, n):
    """The best plan with what was counted."""
    return plan(system, ucbf.Disturbance(counts[:, : system.bins.n_possible] / n)).policy


def perverse(system, counts, n):
    """Any policy that depends on the counts, at each step on those of that step and of later ones."""
    H, S, A = system.allowed.shape
    seeds = [[int(c) for c in counts[h:].ravel()] for h in range(H)]
    return np.array([np.random.default_rng(seed).integers(A, size=S) for seed in seeds])


def mean_of_evalues(system, pmf, n, choose, prices, start):
    """[n] over all that may be seen in n episodes, of exp((V* - V^π - D)/λ)."""
    H, K, means = system.n_steps, pmf.shape[1], np.zeros(len(prices))
    drawn = [c for c in itertools.product(range(n + 1), repeat=K) if sum(c) == n]
    world = ucbf.World(system, ucbf.Disturbance(pmf))
    best, level = world.plan.v[0], n + math.lgamma(n + 1) - (n + 1) * math.log(n)
    for data in itertools.product(drawn, repeat=H):
        counts, chance = np.zeros((H, system.bins.n)), 1.0
        for h, row in enumerate(data):
            counts[h, :K] = row
            chance *= math.factorial(n) * math.prod(p**c / math.factorial(c) for p, c in zip(pmf[h], row, strict=True))
        policy = choose(system, counts, n)
        both, missed = coupled_of(system, policy), best - ucbf.evaluate(world, policy)[0]
        for i, price in enumerate(prices):
            level_prices = price / system.discount ** np.arange(H)
            chances = coupled.Chances(both.moves, both.shares(counts), np.zeros(H), level_prices, float(n), level,
                                      *both.guess)  # fmt: skip
            d = np.zeros(both.n)
            both._sweep(chances, d)
            means[i] += chance * math.exp(start @ (missed - d[: system.n_states]) / price)
    return means


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_over_all_that_may_be_seen_the_mean_is_at_most_1(seed):
    rng = np.random.default_rng(seed)
    system, pmf, n = tiny(rng)
    start = rng.dirichlet(np.ones(system.n_states)) if rng.random() < 0.5 else np.eye(system.n_states)[0]
    for choose in (greedy, perverse):
        means = mean_of_evalues(system, pmf, n, choose, (0.003, 0.03, 0.3, 3.0), start)
        assert means.max() <= 1 + 1e-9


@pytest.mark.parametrize(("discount", "horizon"), [(0.1, 320), (0.5, 1100)])
def test_where_a_discount_to_the_power_of_all_steps_is_no_number(discount, horizon):
    # γ^-319 is more than a number may be: the bound was not a number, and the gap of a certificate neither.
    reward = np.random.default_rng(0).random((2, 2))
    system = ucbf.System(lambda s, a: a + 0 * s, reward, horizon, "wrap", discount=discount, n_states=2, n_actions=2,
                         disturbance_range=(0, 1))  # fmt: skip
    agent = ucbf.UCBVIf(system)
    agent.warm_start(np.random.default_rng(1).integers(0, 2, (50, horizon)))
    found = agent.certificate(form="evalue")
    assert found.form == "evalue"
    law = ucbf.Disturbance(np.full((1, 2), 0.5))
    missed = ucbf.optimal(ucbf.World(system, law)).v[0] - ucbf.evaluate(ucbf.World(system, law), agent.policy)[0]
    assert (missed <= found.gap).all()
    assert np.isfinite(found.gap).all()


def test_where_all_returns_are_alike_nothing_is_missed():
    agent = ucbf.UCBVIf(ucbf.System(lambda s, a: a + 0 * s, 5.0, 3, "wrap", n_states=2, n_actions=2,
                                    disturbance_range=(0, 1)))  # fmt: skip
    agent.warm_start(np.zeros((20, 3), int))
    for form in ("best", "evalue"):
        assert agent.certificate(form=form).gap.tolist() == [0, 0]


def test_averages_are_bounded_more_narrowly_than_each_state():
    world = ucbf.random_world(8, 3, 3, 3, None, seed=2)
    agent = ucbf.UCBVIf(world.system.replace(disturbance_range=(0, 3)))
    ucbf.simulate(agent, world, 100)
    found = agent.certificate(form="evalue")
    assert found.average() < found.gap.mean()
    # A law of the first state that was fixed beforehand does not pay for the choice among eight.
    one, price = np.eye(8)[3], found.tilted.prices
    assert found.gap[3] - price.max() * math.log(8) <= found.average(one) <= found.gap[3] - price.min() * math.log(8)


def test_an_average_does_not_spend_p_twice():
    world = puterman_inventory()
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, 60)
    found = agent.certificate()
    start = np.array([0.5, 0.5, 0, 0])
    expected = min(start @ found.otherwise, found.tilted.average(start))
    assert found.average(start) == pytest.approx(expected)
    assert (found.gap <= found.otherwise).all()
    # Of two states one form bounds the one, the other form the other: 1 and 1. Together they would spend p twice.
    tilted = Tilted(np.array([[1.0, 3.0]]), np.array([0.1]), np.zeros(1), 0.0)
    one = np.ones(2)
    both = ucbf.certificates.Certificate(4 * one, 0 * one, one, 0.05, "best", "", tilted, np.array([3.0, 1.0]))
    assert both.average([0.5, 0.5]) == pytest.approx(2)
    assert both.average() == pytest.approx(1)  # of all alike it is one event

import math

import numpy as np
import pytest

import ucbf
from ucbf.bonuses import bonus_of
from ucbf.lipschitz import lipschitz_ahead, lipschitz_of
from ucbf.units import units_of


def alpha(horizon, t):
    return (horizon + 1) / (horizon + t)


def weights(horizon, t):
    """[t+1] α_t^i = α_i Π_{j>i} (1 - α_j), i = 0..t, α_0 = 1: the weight of the i-th target after t updates."""
    rates = alpha(horizon, np.arange(1, t + 1))
    out = np.empty(t + 1)
    for i in range(t + 1):
        out[i] = (1.0 if i == 0 else rates[i - 1]) * np.prod(1 - rates[i:])
    return out


@pytest.mark.parametrize("H", [1, 3, 10])
@pytest.mark.parametrize("t", [1, 2, 9])
def test_ucb_f_weighs_its_targets_so(H, t):
    # One state, and a landing reward of 1 if W = 1: a single 1, at update i, is seen with its weight in the average.
    system = ucbf.System(
        0, 0.0, H, "clip", landing=lambda z: 1.0 * (z == 1), disturbance_range=(0, 1), n_states=1, n_actions=1
    )
    for i in range(1, t + 1):
        agent = ucbf.UCBf(system, bonus="experiment", c=0, clock="episode")
        for update in range(1, t + 1):
            agent.observe(H - 1, 0, 0, 0, disturbance=int(update == i))
        assert agent.q[H - 1, 0, 0] == pytest.approx(weights(H, t)[i], abs=1e-15)


@pytest.mark.parametrize("H", [1, 2, 5, 10])
@pytest.mark.parametrize("t", [1, 2, 3, 10, 200])
def test_weights_of_the_targets(H, t):
    w = weights(H, t)
    assert w[0] == 0  # the first update forgets the initial value
    assert w[1:].sum() == pytest.approx(1, abs=1e-12)
    assert w[1:].max() <= 2 * H / t + 1e-15
    assert (w[1:] ** 2).sum() <= 2 * H / t + 1e-15
    i = np.arange(1, t + 1)
    for a in (0.5, 0.75, 1.0):
        middle = (w[1:] / i**a).sum()
        assert t**-a - 1e-15 <= middle <= (1 + 1 / H) * t**-a + 1e-15


@pytest.mark.parametrize("H", [2, 5, 10])
@pytest.mark.parametrize("i", [1, 2, 7])
def test_all_later_weights_of_a_target_sum_to_one_plus_one_over_h(H, i):
    total, weight = 0.0, alpha(H, i)
    for t in range(i, 200_000):
        total += weight
        weight *= 1 - alpha(H, t + 1)
    # What is left after the last t: α_t^i falls like t^-(H+1), so its tail is at most weight * t / H.
    assert total <= 1 + 1 / H + 1e-9
    assert total + weight * 200_000 / H >= 1 + 1 / H - 1e-9


def system(**changes):
    arguments = {"f": np.zeros((5, 2), int), "reward": np.linspace(0, 1, 5), "horizon": 4, "model_error": 2}
    return ucbf.System(**{**arguments, "lipschitz": 0.25, **changes})


def at(name, h, n, s, **constants):
    bonus = bonus_of(name, s, units_of(s), **constants)
    return bonus.width[h] / math.sqrt(n) + bonus.floor


def test_each_bonus_is_its_formula():
    s, iota = system(), math.log(5 * 2 * 4 / 0.1)  # SAH/p
    # c sqrt(H³ι/n) + Lζ
    assert at("theorem", 1, 9, s, c=2, p=0.1) == pytest.approx(2 * math.sqrt(64 * iota / 9) + 0.25 * 2)
    # c sqrt(H³ι/n) + L sqrt(d/n)
    online = 2 * math.sqrt(64 * iota / 9) + 0.25 * math.sqrt(3 / 9)
    assert at("online", 1, 9, s, c=2, p=0.1, d=3) == pytest.approx(online)
    # c sqrt(H²/n) + cζL
    assert at("experiment", 1, 9, s, c=2, p=0.1) == pytest.approx(2 * 4 / 3 + 2 * 2 * 0.25)
    # c (sqrt((H-h)²ι/n) + ζL/2)
    assert at("published", 1, 9, s, c=2, p=0.1) == pytest.approx(2 * (3 * math.sqrt(iota) / 3 + 0.25))
    # 7 c H log(5SAHK/p) / sqrt(n)
    ch = 7 * 2 * 4 * math.log(5 * 5 * 2 * 4 * 100 / 0.1) / 3
    assert at("CH", 1, 9, s, c=2, p=0.1, episodes=100) == pytest.approx(ch)


def test_costs_in_other_units_scale_the_lipschitz_constant_with_them():
    plain, dear = system(), system(reward=1000 * np.linspace(0, 1, 5), lipschitz=250.0)
    assert at("theorem", 0, 1, plain, c=1, p=0.1) == pytest.approx(at("theorem", 0, 1, dear, c=1, p=0.1))


def test_the_derived_lipschitz_constant_follows_the_recursion_and_stops_at_the_range():
    # f = s is 1-Lipschitz, r = 0.1 s is 0.1-Lipschitz: L = 0.1 (1 + 1 + 1) after three steps.
    gentle = ucbf.System(lambda s, a: s, lambda s, a: 0.1 * s, 3, boundary="clip", n_states=5, n_actions=2)
    assert lipschitz_of(gentle, units_of(gentle)) == pytest.approx(0.3)
    # f = 9s multiplies differences by 9: 0.1 (1 + 9 + 81) > 3, the largest return.
    wild = ucbf.System(lambda s, a: 9 * s, lambda s, a: 0.1 * s, 3, boundary="clip", n_states=5, n_actions=2)
    assert lipschitz_of(wild, units_of(wild)) == pytest.approx(3)
    assert lipschitz_of(gentle.replace(lipschitz=0.7), units_of(gentle)) == 0.7


def test_what_follows_a_raw_next_state_has_a_constant_of_its_own():
    # f = s - 2a, r = 0.1 s, landing 0.5 z, γ = 0.5, terminal 0.7 s, two steps. U is what follows a raw next state.
    # U_1 = 0.5 + 0.5·0.7 = 0.85; L_1 = 0.1 + 0.85 = 0.95; U_0 = 0.5 + 0.5·0.95 = 0.975; L_0 = 0.1 + 0.975.
    sloped = ucbf.System(lambda s, a: s - 2 * a, lambda s, a: 0.1 * s, 2, "clip", landing=lambda z: 0.5 * z,
                         discount=0.5, terminal=lambda s: 0.7 * s, disturbance_range=(0, 1), n_states=5,
                         n_actions=2, model_error=2)  # fmt: skip
    units = units_of(sloped)
    assert lipschitz_ahead(sloped, units) == pytest.approx(0.975)
    assert lipschitz_of(sloped, units) == pytest.approx(1.075)
    # The earlier step need not be the steeper: with γ = 0.1, U_1 = 0.5 + 0.07 and U_0 = 0.5 + 0.1 (0.1 + 0.57) = 0.567.
    assert lipschitz_ahead(sloped.replace(discount=0.1), units) == pytest.approx(0.57)
    # A constant that the user gives is of V*: 0.5 + 0.5·0.3.
    assert lipschitz_ahead(sloped.replace(lipschitz=0.3), units) == pytest.approx(0.65)
    told = sloped.replace(lipschitz=0.3)
    assert at("theorem", 0, 1, told, c=0, p=0.1) * units_of(told).scale == pytest.approx(0.65 * 2)


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBH, ucbf.UCBVI])
def test_bad_constants_are_refused(kind):
    for bad, message in [
        ({"c": -1}, "c is -1; it must be 0 or more"),
        ({"p": 0}, "p is 0; it must be above 0"),
        ({"p": 1.5}, "p is 1.5; it must be above 0 and at most 1"),
        ({"bonus": "publishd"}, "unknown bonus 'publishd'; did you mean 'published'"),
    ]:
        with pytest.raises(ValueError, match=message):
            kind(system(), **bad)
    with pytest.raises(ValueError, match="unknown clock 'updates'; did you mean 'update'"):
        ucbf.UCBf(system(), clock="updates")

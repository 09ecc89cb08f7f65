"""What agents that are told f have in common: few switches, priors, the model check."""

import math

import numpy as np
import pytest

import ucbf
from ucbf.kernels import averaged
from ucbf.model_check import _bar
from ucbf.testing import small_worlds
from worlds import puterman_inventory


def test_ucbvi_f_by_hand():
    # Two states, one action that stays, W in {0, 1}, states wrap; reward 0 in state 0 and 1 in state 1; H = 2.
    # Of the first step's disturbances 1 of 4 was a 1: from state 0 the second step is worth 3/4 · 0 + 1/4 · 1.
    system = ucbf.System([[0], [1]], [0.0, 1.0], 2)
    agent = ucbf.UCBVIf(system)
    for w in (0, 1, 0, 0):
        agent.observe(0, 0, 0, w)
    np.testing.assert_array_equal(agent.q[0, :, 0], [0.25, 1.75])
    np.testing.assert_array_equal(agent.law.pmf, [[0.75, 0.25], [0.5, 0.5]])


def test_a_prior_counts_as_many_episodes_as_it_is_worth():
    system = ucbf.System([[0], [1]], [0.0, 1.0], 2)
    agent = ucbf.UCBVIf(system, prior=ucbf.Disturbance([0.5, 0.5]), prior_weight=4)
    np.testing.assert_array_equal(agent.q[0, :, 0], [0.5, 1.5])
    for w in (0, 1, 0, 0):
        agent.observe(0, 0, 0, w)
    np.testing.assert_array_equal(agent.q[0, :, 0], [(2 + 1) / 8, 1 + (2 + 3) / 8])
    pooled = ucbf.UCBVIf(system, prior=ucbf.Disturbance([0.5, 0.5]), prior_weight=4, stationary=True)
    np.testing.assert_array_equal(pooled.learner.law.counts, [[4, 4]])
    for prior, message in [
        (3, "prior is 3; give a ucbf.Disturbance"),
        (ucbf.Disturbance(np.full((3, 2), 0.5)), "the law has 3 steps"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            ucbf.UCBVIf(system, prior=prior)


def test_pooling_learns_a_stationary_law_faster():
    base = ucbf.random_world(n_actions=4, horizon=10, seed=4)
    world = ucbf.World(base.system, ucbf.Disturbance(base.law.pmf[0]))
    regrets = [
        ucbf.simulate(ucbf.UCBVIf(world.system, stationary=pooled), world, 500).regret[-1] for pooled in (True, False)
    ]
    assert regrets[0] < 0.5 * regrets[1]


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBVIf])
def test_few_switches_are_few_and_cost_little(kind):
    world = ucbf.random_world(n_actions=4, horizon=5, seed=2)
    K, eta = 2000, 0.1
    often, seldom = kind(world.system), kind(world.system, renewal="few", eta=eta)
    one, other = (ucbf.simulate(agent, world, K) for agent in (often, seldom))
    assert other.switches <= 1 + math.log(K) / math.log(1 + eta) < 0.5 * one.switches
    assert other.regret[-1] < 1.5 * one.regret[-1]
    np.testing.assert_array_equal(other.switched.sum(), other.switches)


def test_between_switches_the_policy_stays_and_learning_goes_on():
    world = ucbf.random_world(seed=2)
    agent = ucbf.UCBf(world.system, renewal="few", eta=10.0)
    ucbf.simulate(agent, world, 15)
    before, q = agent.policy, agent.q
    ucbf.simulate(agent, world, 5, seed=1)
    np.testing.assert_array_equal(agent.policy, before)
    assert (agent.q != q).any()


def test_the_schedule_by_hand():
    # 1, ceil(1 · 1.5) = 2, ceil(2 · 1.5) = 3, 5, 8, 12, 18
    visits, due, renewed = np.zeros((1, 1), np.int64), np.zeros(1, np.int64), []
    for k in range(1, 20):
        if averaged.is_due(visits, due, 0.5):
            renewed.append(k)
        visits[0] += 1
    assert renewed == [1, 2, 3, 5, 8, 12, 18]


def test_how_often_policies_are_renewed_by_default():
    # Bai et al.: 1/(2H(H+1)), for H = 3 one in 24. A plan is made anew when there is a twentieth more.
    system = puterman_inventory().system
    assert ucbf.UCBf(system, renewal="few").learner.eta == pytest.approx(1 / 24)
    assert ucbf.UCBVIf(system, renewal="few").learner.eta == 0.05
    assert ucbf.UCBf(system).learner.eta == ucbf.UCBVIf(system).learner.eta == 0


def test_what_is_known_of_w_moves_to_other_prices_with_what_an_edge_hid():
    system = puterman_inventory().system
    agent = ucbf.UCBVIf(system)
    for h in range(3):
        agent.observe(h, 3, 0, 2)
        for _ in range(3):
            agent.observe(h, 1, 0, 0)  # at least one was asked for
    moved = agent.moved_to(system.replace(discount=0.5))
    for name in ("counts", "below", "above"):
        np.testing.assert_array_equal(getattr(moved.learner.law, name), getattr(agent.learner.law, name), err_msg=name)
    np.testing.assert_array_equal(moved.learner.visits, agent.learner.visits)
    np.testing.assert_array_equal(moved.law.pmf, agent.law.pmf)
    with pytest.raises(ValueError, match="a boundary hid 9 disturbance"):
        moved.certificate()
    fresh = ucbf.UCBVIf(system.replace(discount=0.5))
    assert (moved.q != fresh.q).any()


# -- the model check ------------------------------------------------------------------------------


def test_deviations_by_hand():
    # 30 residuals of step 0: 15 times 0 and 15 times 2, mean 1, sum of squares 30. Then a 2 in state 3, action 1:
    # (2 - 1) / sqrt(31/30 · 31/30) = 30/31.
    agent = ucbf.UCBf(ucbf.System(np.zeros((9, 2)), 0.0, 1))
    for _ in range(15):
        agent.observe(0, 0, 0, 0)
        agent.observe(0, 0, 0, 2)
    assert not agent.learner.watch.groups.any()
    agent.observe(0, 3, 1, 2)
    first, watch = 30 / 31, agent.learner.watch
    np.testing.assert_allclose(watch.groups[0, 3], [1, 0, 0])  # there was none to compare it with
    np.testing.assert_allclose(watch.tally, [[[1, first, first**2 - 1, 0]]])
    np.testing.assert_array_equal(watch.unused, [0, 0])
    # The mean moves by (2 - 1) / 31, the sum of squares about it by (2 - 1) (2 - 1 - 1/31).
    np.testing.assert_allclose(watch.steps[0, 0], [31, 0, 1 + 1 / 31, 30 + 30 / 31])
    # Then a 0 in state 3, action 0: -32/31 / sqrt((30 + 30/31 + 1)/31 · 32/31), less the one before, over sqrt(1 + 1).
    agent.observe(0, 3, 0, 0)
    second = -32 / 31 / math.sqrt((31 + 30 / 31) / 31 * 32 / 31)
    less, above = (second - first) / math.sqrt(2), (second**2 - first**2) / math.sqrt(2)
    np.testing.assert_allclose(watch.groups[0, 3], [2, less, above])
    np.testing.assert_allclose(watch.groups[0, 9 + 1], [1, 0, 0])
    np.testing.assert_allclose(watch.groups[0, 9], [1, less, above])
    means = (first + second) / 2, (first**2 + second**2) / 2 - 1
    np.testing.assert_allclose(watch.tally, [[[2, *means, above**2]]])


@pytest.mark.parametrize("rare", [0.02, 0.01])
def test_a_right_model_is_not_accused_where_the_law_is_lopsided_at_one_step(rare):
    # A residual further than four standard deviations counts for four. So the usual square is 1 of a fair coin, and
    # about a third of a coin that shows 1 in 50: states met at one step only have less than those met at both.
    rng = np.random.default_rng(1)
    system = ucbf.System(rng.integers(0, 25, (2, 25, 6)), rng.random((2, 25, 6)), 2, "wrap")
    world = ucbf.World(system, ucbf.Disturbance([[0.5, 0.5], [1 - rare, rare]]))
    for seed in range(4):
        agent = ucbf.UCBVIf(system)
        ucbf.simulate(agent, world, 2000, seed)
        assert agent.model_check().ok


def test_a_wrong_model_is_reported_with_where_and_how_strongly():
    world = ucbf.random_world(n_actions=2, horizon=5, seed=1)
    f = world.system.f[0].copy()
    f[7] += 3
    agent = ucbf.UCBVIf(world.system.replace(f=f % 25))
    with pytest.warns(ucbf.ModelWarning, match="state 7: residuals are .* standard deviations too"):
        ucbf.simulate(agent, world, 800)
    found = agent.model_check()
    assert not found.ok
    assert found.findings[0].where == "state 7"
    assert found.findings[0].strength > 5
    assert "standard errors" in str(found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("params", [{}, {"estimator": "OffsetPosterior"}])
def test_a_right_model_is_not_accused(seed, params):
    world = ucbf.random_world(n_actions=4, horizon=5, seed=seed)
    told = ucbf.corrupt(world.system, 4, seed) if params else world.system
    agent = ucbf.UCBVIf(told, **params)
    ucbf.simulate(agent, world, 1000)
    assert agent.model_check().ok
    assert "speaks against" in str(agent.model_check())


@pytest.mark.parametrize("pmf", [[1.0], [0.998, 0.002], [0.99, 0.01]])
def test_a_disturbance_that_hardly_ever_comes_is_no_reason_to_accuse(pmf):
    base = ucbf.random_world(n_states=5, n_actions=2, horizon=3, lipschitz=None, seed=0)
    world = ucbf.World(base.system, ucbf.Disturbance(pmf))
    agent = ucbf.UCBVIf(world.system)
    for seed in range(4):
        ucbf.simulate(agent, world, 500, seed)
        assert agent.model_check().ok


def test_repair_that_cannot_express_the_error_is_reported():
    world = ucbf.random_world(n_actions=4, horizon=5, seed=3)
    told = ucbf.corrupt(world.system, 8, seed=1).replace(model_error=2)
    with pytest.warns(ucbf.ModelWarning):
        ucbf.simulate(ucbf.UCBVIf(told, estimator="OffsetPosterior"), world, 1500)


def one_step(low=0, high=9):
    """A single step in which nothing matters but W."""
    return ucbf.System(np.full((20, 1), 8), 0.0, 1, "strict", disturbance_range=(low, high))


def test_a_drift_by_hand():
    # 40 residuals: 20 of 0 and 2 in turn, mean 1, then 20 of 6 and 8, mean 7. Sums of squares about the means 20 each,
    # and 1 for what never moved: variance 41/38. The means are 6 apart, 6 / sqrt(41/38) = 5.78 standard deviations;
    # the error of Student's t with 38 degrees of freedom is sqrt(38/36 · (1/20 + 1/20)).
    agent = ucbf.UCBVIf(one_step())
    agent.warm_start([[0], [2]] * 10 + [[6], [8]] * 10)
    found = agent.model_check()
    assert found.drifts
    assert str(found).startswith("the latest residuals: they are 5.78 standard deviations higher than those before: W")
    finding = found.findings[0]
    assert finding.visits == 20
    assert finding.strength == pytest.approx(6 / math.sqrt(41 / 38) / math.sqrt(38 / 36 / 10))
    back = ucbf.UCBVIf(one_step())
    back.warm_start([[6], [8]] * 10 + [[0], [2]] * 10)
    assert "5.78 standard deviations lower" in str(back.model_check())


def test_periods_are_joined_by_hand():
    # 33 residuals do not fit into 32 periods of one each: they become periods of two, of which the last has one.
    agent = ucbf.UCBVIf(one_step(0, 40))
    agent.warm_start(np.arange(33)[:, None] % 5)
    watch = agent.learner.watch
    assert watch.length[0] == 2
    x = np.arange(33) % 5
    pairs = np.append(x, 0).reshape(17, 2)
    np.testing.assert_array_equal(watch.periods[0, 1:18, 0, 1], pairs.sum(axis=1))
    np.testing.assert_array_equal(watch.periods[0, 1:18, 0, 2], (pairs**2).sum(axis=1))
    np.testing.assert_array_equal(watch.periods[0, :, 0, 0], [0] + [2] * 16 + [1] + [0] * 15)


def weeks(agent, rate, n, rng, stock=0):
    """Let an agent run a shop for n weeks, all demand counted; what is left in stock."""
    for _ in range(n):
        for h in range(7):
            demand, order = min(int(rng.poisson(rate)), 60), agent.act(h, stock)
            left = max(stock + order - demand, 0)
            agent.observe(h, stock, order, left, disturbance=-demand)
            stock = left
    return stock


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBVIf])
@pytest.mark.parametrize("history", ["lived", "told", "believed"])
def test_a_demand_that_triples_is_reported(history, kind):
    shop, rng = ucbf.systems.Inventory(capacity=60, max_demand=60).system, np.random.default_rng(0)
    before, agent, stock = -np.minimum(rng.poisson(5, (30, 7)), 60), kind(shop), 0
    if history == "believed":
        if kind is ucbf.UCBf:
            pytest.skip("UCB-f takes no prior")
        agent.warm_start(before)
        agent = ucbf.UCBVIf(shop, prior=agent.law, prior_weight=30)
    elif history == "told":
        agent.warm_start(before)
    else:
        stock = weeks(agent, 5, 30, rng)
    assert agent.model_check().ok
    with pytest.warns(ucbf.ModelWarning, match="the latest residuals: they are .* lower .*begin anew"):
        weeks(agent, 15, 40, rng, stock)
    found = agent.model_check()
    assert found.drifts
    assert found.findings[0].where == "the latest residuals"
    assert 240 <= found.findings[0].visits <= 300  # about the 280 days since
    if kind is ucbf.UCBVIf:
        assert agent.moved_to(shop.replace(discount=0.9)).model_check().drifts


@pytest.mark.parametrize("law", [[0.98, 0, 0, 0, 0, 0, 0, 0, 0.02], [0.2, 0.5, 0.3], [1.0]])
def test_a_law_that_stays_is_not_said_to_drift(law):
    for seed in range(20):
        agent, rng = ucbf.UCBVIf(one_step()), np.random.default_rng(seed)
        for _ in range(30):
            agent.warm_start(rng.choice(len(law), p=law, size=(20, 1)))
            assert agent.model_check().ok


def test_what_a_wrong_f_may_do_to_residuals_is_no_drift():
    # f is told as 8 and may be off by 2: the residuals of the pairs that are visited later may be 4 higher.
    for zeta, ok in ((0, False), (4, True)):
        agent = ucbf.UCBVIf(one_step(0, 5).replace(model_error=zeta))
        agent.warm_start([[0], [1]] * 20 + [[4], [5]] * 20)
        assert agent.model_check().ok is ok


def test_options_are_checked():
    system = puterman_inventory().system
    for make, message in [
        (lambda: ucbf.UCBVIf(system, renewal="never"), "unknown renewal 'never'"),
        (lambda: ucbf.UCBVIf(system, renewal="few", eta=0), "eta is 0"),
        (lambda: ucbf.UCBVIf(system, stationary=1), "stationary is 1; give True or False"),
        (lambda: ucbf.UCBVIf(system, prior_weight=-1), "prior_weight is -1"),
        (lambda: ucbf.UCBVIf(system).certificate(form="exact"), "unknown form 'exact'"),
        (lambda: ucbf.UCBVIf(system).certificate(p=0), "p is 0"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            make()


def test_an_agent_that_repairs_f_is_not_moved():
    system = ucbf.System(np.zeros((4, 1)), 0.0, 2, model_error=2)
    agent = ucbf.UCBVIf(system, estimator="OffsetPosterior")
    with pytest.raises(ValueError, match="an agent that repairs f cannot be moved"):
        agent.moved_to(system)
    other = ucbf.System(np.zeros((4, 1)), 0.0, 3)
    with pytest.raises(ValueError, match=r"over 3 steps, this one in .* over 2"):
        ucbf.UCBVIf(ucbf.System(np.zeros((4, 1)), 0.0, 2)).moved_to(other)


def test_how_many_standard_errors_are_too_many_by_hand():
    # p = 0.02 shared by 5 tests, both ways, and by the times that visits double: log(2 · 5 · 1 / 0.02) = log 500 after
    # one visit, and after four, which are two doublings, log(2 · 5 · 9 / 0.02) = log 4500.
    bars = _bar(np.array([0.0, 1, 4]), 5, 0.02)
    np.testing.assert_allclose(bars, np.sqrt(2 * np.log([500, 500, 4500])))


@pytest.mark.parametrize("name", ["UCBVI-f", "UCB-f", "UCB-f-Reference", "UCB-H", "UCBVI"])
@pytest.mark.parametrize("world", range(4))
def test_the_short_way_and_the_long_way_of_observe_end_alike(name, world):
    made = [ucbf.random_world(n_states=7, n_actions=3, horizon=4, seed=1), *small_worlds()]
    world = made[world % len(made)]
    system, o = world.system, world.system.state_offset
    short, long = (ucbf.make_agent(name, system) for _ in range(2))
    long._takes_in = lambda *transition: False
    rng, short_ways = np.random.default_rng(0), 0
    for _ in range(300):
        h, s = int(rng.integers(system.n_steps)), int(rng.integers(system.n_states))
        a = int(rng.choice(np.flatnonzero(system.allowed[h, s])))
        w = int(rng.choice(world.law.values, p=world.law.row(h)))
        s_next = int(system.advance(h, s, a, w)[0])
        hidden = bool(system.mechanics.hides[s_next])
        given = {"disturbance": w} if hidden else {}
        for agent in (short, long):
            agent.observe(h, s + o, a, s_next + o, **given)
        short_ways += not hidden
    assert short_ways > 50
    assert short.state.keys() == long.state.keys()
    for key, array in short.state.items():
        np.testing.assert_array_equal(array, long.state[key], err_msg=key)


@pytest.mark.parametrize(
    ("transition", "error", "message"),
    [
        ((2**70, 0, 0, 0), ValueError, "step h is"),
        ((0, 2**70, 0, 0), ValueError, "state is"),
        ((0, 0.0, 0, 0), TypeError, "state is 0.0; give a whole number"),
        ((True, 0, 0, 0), TypeError, "not a truth value"),
        ((0, 0, -1, 0), ValueError, "action is -1"),
        ((-1, 0, 0, 0), ValueError, "step h is -1"),
    ],
)
def test_what_cannot_be_taken_in_gets_its_error_the_long_way(transition, error, message):
    agent = ucbf.UCBVIf(ucbf.random_world(seed=0).system)
    with pytest.raises(error, match=message):
        agent.observe(*transition)
    assert not agent.learner.visits.any()

"""An observed context that moves by itself, and that the distribution of W depends on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ucbf
from ucbf.planning import gain
from ucbf.rules import myopic

STAYS = np.array([[0.9, 0.1], [0.2, 0.8]])  # the next context, given this one


def shop(horizon=None, discount=0.9, **more):
    """Stock 0..4, orders of 0 to 3; W = -demand, 0 to 3; an order costs 1, what is short 5, what is left over 0.5."""
    return ucbf.System(
        lambda s, a: s + a, lambda s, a: -1.0 * a, horizon, "clip", n_states=5, n_actions=4, discount=discount,
        landing=lambda z: -0.5 * np.maximum(z, 0) + 5.0 * np.minimum(z, 0), allowed=lambda s, a: s + a <= 4,
        disturbance_range=(-3, 0), **more,
    )  # fmt: skip


QUIET, BUSY = [0.0, 0.0, 0.2, 0.8], [0.7, 0.2, 0.1, 0.0]  # of W = -3, -2, -1, 0
REGIMES = ucbf.Disturbance([QUIET, BUSY], low=-3, contexts=STAYS)


def literal_plan(f, reward, pmf, follows, horizon, discount, sweeps, land):
    """Backward induction by loops on a clipped line: V [E, S]. pmf: [H, E, n] of W = -1, ..., n - 2."""
    E, S, A = f.shape
    V = np.zeros((E, S))
    for _ in range(sweeps):
        for h in range(horizon - 1, -1, -1):
            Q = np.zeros((E, S, A))
            for e, s, a in np.ndindex(E, S, A):
                Q[e, s, a] = reward[e, s, a]
                for i, chance in enumerate(pmf[h, e]):
                    z = f[e, s, a] + i - 1
                    after = sum(follows[e, i, k] * V[k, min(max(z, 0), S - 1)] for k in range(E))
                    Q[e, s, a] += chance * (land * z + discount * after)
            V = Q.max(axis=2)
    return V


# -- plans ------------------------------------------------------------------------------------------------------


def test_two_steps_by_hand():
    # States 0, 1; action 1 goes to the other; context 1 pays 10 s, context 0 pays s. W = 1 (the other state) has
    # probability 1/4 in context 0 and 0 in context 1. Context 1 follows 0 with probability 0.3, and 1 with 0.6.
    # A next state 1 is worth 0.7 * 1 + 0.3 * 10 = 3.7 in context 0, and 0.4 * 1 + 0.6 * 10 = 6.4 in context 1.
    system = ucbf.System(
        lambda s, a: (s + a) % 2, lambda s, a, context: s * (1.0 + 9 * context), 2, "wrap", n_states=2, n_actions=2,
        contexts=2,
    )  # fmt: skip
    world = ucbf.World(
        system, ucbf.Disturbance([[0.75, 0.25], [1, 0]], contexts=[[0.7, 0.3], [0.4, 0.6]]), start=1, start_context=0
    )
    plan = ucbf.optimal(world)
    np.testing.assert_allclose(plan.v[1], [0, 1, 0, 10], atol=1e-12)  # index e * S + s
    np.testing.assert_allclose(plan.q[0, 0], [0.25 * 3.7, 0.75 * 3.7], atol=1e-12)
    np.testing.assert_allclose(plan.q[0, 1], [1 + 0.75 * 3.7, 1 + 0.25 * 3.7], atol=1e-12)
    np.testing.assert_allclose(plan.q[0, 2:], [[0, 6.4], [10 + 6.4, 10]], atol=1e-12)
    assert plan.act(0, 0, context=0) == 1
    assert plan.act(0, 1, context=1) == 0
    assert world.best == pytest.approx(1 + 0.75 * 3.7)
    law = world.law
    for first, best in ((1, 16.4), ([0.5, 0.5], (16.4 + 1 + 0.75 * 3.7) / 2)):
        assert ucbf.World(system, law, start=1, start_context=first).best == pytest.approx(best)


@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_plans_are_those_of_loops(seed, endless):
    rng = np.random.default_rng(seed)
    S, A, n, E, H, discount = 4, 2, 3, 2, 2, 0.7
    f, reward = rng.integers(-1, S + 1, (E, S, A)), rng.normal(size=(E, S, A))
    pmf, follows = rng.random((H, E, n)), rng.random((E, n, E))
    pmf, follows = pmf / pmf.sum(axis=2, keepdims=True), follows / follows.sum(axis=2, keepdims=True)
    system = ucbf.System(
        lambda s, a, context: f[context][s, a], lambda s, a, context: reward[context][s, a], None if endless else H,
        "clip", contexts=E, n_states=S, n_actions=A, discount=discount, disturbance_range=(-1, 1),
        landing=lambda z: 0.3 * z, period=H if endless else 1,
    )  # fmt: skip
    world = ucbf.World(system, ucbf.Disturbance(pmf, low=-1, contexts=follows))
    V = literal_plan(f, reward, pmf, follows, H, discount, 40 if endless else 1, 0.3)
    np.testing.assert_allclose(world.plan.v[0], V.ravel(), atol=1e-8)
    again = system.replace(discount=discount)  # from tables by context
    np.testing.assert_array_equal(again.f, system.f)
    np.testing.assert_array_equal(again.reward, system.reward)


def test_the_next_context_may_depend_on_w_or_not():
    pmf = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
    plain = ucbf.Disturbance(pmf, contexts=STAYS)
    same = ucbf.Disturbance(pmf, contexts=np.repeat(STAYS[:, None], 3, axis=1))
    np.testing.assert_allclose(plain.pmf, same.pmf, atol=1e-15)
    # In context 1: P(W = 2, next context 0) = 0.1 * 0.2.
    assert plain.pmf[1, 2] == pytest.approx(0.02)
    assert plain.pmf[1, 3 + 2] == pytest.approx(0.08)
    assert (plain.low, plain.high) == (0, 2)


def test_one_step_decisions_see_the_context():
    # In context 0 nothing is asked for, in context 1 three, and each that is missing costs 4.
    system = ucbf.System(
        lambda s, a: s + a, lambda s, a: -1.0 * a, 2, "clip", n_states=4, n_actions=3, disturbance_range=(-3, 0),
        contexts=2, landing=lambda z: -4.0 * np.maximum(-z, 0),
    )  # fmt: skip
    law = ucbf.Disturbance([[0, 0, 0, 1.0], [1, 0, 0, 0]], low=-3, contexts=np.eye(2))
    np.testing.assert_array_equal(myopic(system, law), [[0, 0, 0, 0, 2, 2, 1, 0]] * 2)


def test_contexts_that_change_nothing_change_nothing():
    one = ucbf.World(shop(), ucbf.Disturbance(BUSY, low=-3))
    two = ucbf.World(shop(contexts=2), ucbf.Disturbance([BUSY, BUSY], low=-3, contexts=STAYS))
    np.testing.assert_allclose(two.plan.v, np.tile(one.plan.v, (1, 2)), atol=1e-7)
    np.testing.assert_array_equal(two.plan.policy, np.tile(one.plan.policy, (1, 2)))


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_a_context_is_a_state_that_moves_by_itself(seed):
    # The same as a box with the context for a second axis: W then has two parts, and g reads the next context from W.
    rng = np.random.default_rng(seed)
    S, A, n, E = 3, 2, 2, 2
    f, reward = rng.integers(0, S, (S, A)), rng.normal(size=(E, S, A))
    pmf = rng.random(n) + 0.1
    pmf /= pmf.sum()
    switch = rng.random(n)  # P(the context changes | W), in either
    follows = np.array([[[1 - switch[i], switch[i]] for i in range(n)], [[switch[i], 1 - switch[i]] for i in range(n)]])
    line = ucbf.System(
        lambda s, a: f[s, a], lambda s, a, context: reward[context][s, a], None, "wrap", n_states=S, n_actions=A,
        contexts=E, discount=0.8,
    )  # fmt: skip
    box = ucbf.System(
        lambda s, a: np.stack([s[:, 0], f[s[:, 1], a]], axis=1), lambda s, a: reward[s[:, 0], s[:, 1], a], None,
        lambda z: z % [E, S], low=[0, 0], high=[E - 1, S - 1], n_actions=A, discount=0.8,
        disturbance_range=([0, 0], [1, n - 1]),
    )  # fmt: skip
    values = [[c, i] for c in (0, 1) for i in range(n)]
    joint = [pmf[i] * (switch[i] if c else 1 - switch[i]) for c, i in values]
    one = ucbf.World(line, ucbf.Disturbance([pmf] * E, contexts=follows))
    other = ucbf.World(box, ucbf.Disturbance(joint, values=values))
    np.testing.assert_allclose(one.plan.v, other.plan.v, atol=1e-7)


def test_hydro_thermal_is_as_published():
    # SDDP.jl's documentation: storage 5..15, here in units of 2.5; (inflow, demand) = (0, 7.5), (5, 5), (10, 2.5) alike
    # likely and seen before the decision; thermal costs 1, spilling 10; discount 0.9; from 10: 119.1667.
    inflow, demand = np.array([0, 2, 4]), np.array([3, 2, 1])

    def f(s, a, context):
        return s - a.sum(axis=1, keepdims=True) + inflow[context]

    def allowed(s, a, context):
        after = f(s, a, context)[:, 0]
        return (a[:, 0] <= demand[context]) & (after >= 2) & (after <= 6)

    system = ucbf.System(
        f, lambda s, a, context: -2.5 * (demand[context] - a[:, 0] + 10 * a[:, 1]), None, "clip", low=[2], high=[6],
        actions=[(hydro, spill) for hydro in range(4) for spill in range(5)], allowed=allowed, discount=0.9,
        disturbance_range=([0], [0]), contexts=3,
    )  # fmt: skip
    law = ucbf.Disturbance(np.ones((3, 1)), values=[[0]], contexts=np.full((3, 3), 1 / 3))
    assert -ucbf.World(system, law, start=[4]).best == pytest.approx(119.16667, abs=1e-5)
    with pytest.raises(ValueError, match="in context 0"):
        ucbf.evaluate(ucbf.World(system, law), np.full(15, 19))


def test_f_may_stay_inside_in_each_context_in_its_own_way():
    # W = 1 occurs in context 1 only, where f leads to 1 at most.
    def world(f):
        system = ucbf.System(f, 0.0, 2, "strict", n_states=3, n_actions=1, contexts=2)
        return ucbf.World(system, ucbf.Disturbance([[1, 0], [0.5, 0.5]], contexts=np.eye(2)))

    assert world(lambda s, a, context: np.minimum(s, 2 - context)).best == 0
    with pytest.raises(ValueError, match="from state 2 in context 1, action 0 at step 0 a disturbance of 1 leads to 3"):
        world(lambda s, a: s)


def test_a_policy_acts_by_the_context():
    world = ucbf.World(shop(contexts=2, period=2), REGIMES)
    policy = ucbf.Policy(world.system, world.plan.policy)
    for h, e, s in np.ndindex(4, 2, 5):
        assert policy.act(h, s, context=e) == world.plan.act(h, s, context=e) == world.plan.policy[h % 2, 5 * e + s]
    with pytest.raises(TypeError, match="say in which the state is: context="):
        policy.act(0, 1)


# -- learning -----------------------------------------------------------------------------------------------------


def test_what_is_observed_counts_for_its_context():
    agent = ucbf.UCBVIf(shop(contexts=2))
    # In context 0: W = -1 twice, then W = -2 and on to context 1. In context 1: W = -3, and back to 0.
    agent.observe(0, 3, 0, 2, context=0, next_context=0)
    agent.observe(1, 1, 2, 2, context=0, next_context=0)
    agent.observe(2, 4, 0, 2, context=0, next_context=1)
    agent.observe(3, 2, 0, 0, disturbance=-3, context=1, next_context=0)
    learned = agent.law
    assert learned.pmf.shape == (2, 8)
    np.testing.assert_allclose(learned.pmf[0], [0, 0, 2 / 3, 0, 0, 1 / 3, 0, 0], atol=1e-12)
    np.testing.assert_allclose(learned.pmf[1], [1, 0, 0, 0, 0, 0, 0, 0], atol=1e-12)
    other = ucbf.UCBVIf(shop(contexts=2))
    other.warm_start([[-1], [-1], [-2], [-3]], contexts=[[0, 0], [0, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(other.law.pmf, learned.pmf)
    assert other.act(0, 0, context=1) == agent.act(0, 0, context=1)


@pytest.mark.parametrize("horizon", [None, 2])
def test_with_the_true_counts_the_plan_is_the_best(horizon):
    system = shop(horizon, contexts=2)
    world = ucbf.World(
        system, ucbf.Disturbance([[0, 0, 0.25, 0.75], [0.5, 0.25, 0.25, 0]], low=-3, contexts=STAYS[::-1])
    )
    w, now = [], []
    for e, row in enumerate(world.law.pmf):  # so often in 40 as it is likely
        for j, n in enumerate(np.rint(row * 40).astype(int)):
            w += [[world.law.values[j]] * system.n_steps] * n
            now += [[e, world.law.next_context[j]]] * n
    agent = ucbf.UCBVIf(system)
    if horizon is None:
        agent.warm_start(w, contexts=now)
    else:  # a row goes from one context to the next, and each step counts for its own
        for (first, *_), (e, after) in zip(w, now, strict=True):
            for h in range(horizon):
                s_next = max(4 + first, 0)
                agent.observe(h, 4, 0, s_next, disturbance=first, context=e, next_context=after)
    np.testing.assert_allclose(agent.law.pmf[:2], world.law.pmf, atol=1e-12)
    np.testing.assert_array_equal(agent.policy, world.plan.policy)
    np.testing.assert_allclose(agent.plan.v, world.plan.v, atol=1e-5)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_whoever_ignores_the_regime_loses_and_whoever_sees_it_does_not(discount):
    world = ucbf.World(shop(discount=discount, contexts=2), REGIMES)
    # In the long run context 0 lasts 2/3 of the time; that is the mixture that one who does not look sees.
    mixed = ucbf.Disturbance(np.array([2, 1]) / 3 @ [QUIET, BUSY], low=-3)
    blind = np.tile(ucbf.World(shop(discount=discount), mixed).plan.policy, (1, 2))

    def worth(policy):
        return gain(world, policy) if discount == 1 else float(world.start @ ucbf.evaluate(world, policy)[0])

    scale = abs(world.best)
    assert worth(world.plan.policy) == pytest.approx(world.best, abs=1e-6)
    assert world.best - worth(blind) > 0.05 * scale
    agent = ucbf.UCBVIf(world.system)
    run = ucbf.simulate(agent, world, steps=4000)
    assert run.gap.min() > -1e-9
    assert world.best - worth(agent.policy) < 0.01 * scale


@pytest.mark.parametrize("Agent", [ucbf.UCBf, ucbf.UCBVIf])
@pytest.mark.parametrize("horizon", [None, 3])
def test_gaps_fall(Agent, horizon):
    world = ucbf.World(shop(horizon, contexts=2), REGIMES, start=0, start_context=0)
    long = {"steps": 20_000} if horizon is None else {"episodes": 5000}
    run = ucbf.simulate(Agent(world.system), world, **long)
    assert run.gap.min() > -1e-9
    assert run.gap[-100:].mean() < 0.1 * run.gap[0]


@pytest.mark.parametrize("Agent", [ucbf.UCBf, ucbf.UCBVIf])
def test_a_simulation_is_what_acting_and_observing_do(Agent):
    world = ucbf.World(shop(contexts=2, period=2), REGIMES, start=1, start_context=1)
    system, (one, other) = world.system, (Agent(world.system) for _ in range(2))
    run = ucbf.simulate(one, world, steps=60, seed=4)
    first, drawn = world.draw_steps(60, seed=4)
    assert first == 5 + 1
    s, e = 1, 1
    for t in range(60):
        a = other.act(t, s, context=e)
        w, after = int(REGIMES.values[drawn[t, e]]), int(REGIMES.next_context[drawn[t, e]])
        z = s + a + w
        assert run.reward[t] == pytest.approx(-a - 0.5 * max(z, 0) + 5 * min(z, 0))
        other.observe(t, s, a, max(z, 0), disturbance=w, context=e, next_context=after)
        s, e = max(z, 0), after
    np.testing.assert_array_equal(one.q, other.q)
    assert system.n_states == 10


@pytest.mark.parametrize(("horizon", "discount"), [(None, 0.9), (None, 1.0), (3, 0.9)])
def test_certificates_hold_and_fall(horizon, discount):
    world = ucbf.World(shop(horizon, discount, contexts=2), REGIMES)
    agent, widths = ucbf.UCBVIf(world.system), []
    for i in range(3):
        K = 40 * 15**i
        ucbf.simulate(agent, world, **({"steps": K} if horizon is None else {"episodes": K // 3}), seed=i)
        found, policy = agent.certificate(), agent.policy
        if (horizon, discount) == (None, 1.0):
            best, got = np.full(10, world.best), np.full(10, gain(world, policy))
        else:
            best, got = world.plan.v[0], ucbf.evaluate(world, policy)[0]
        assert (best <= found.upper + 1e-7).all()
        assert (found.lower <= got + 1e-7).all()
        widths.append(found.average())
    assert widths[0] > widths[1] > widths[2] >= 0  # 0, but for rounding, where the policy is proved to be the best
    assert widths[2] < 0.5 * widths[0]
    enough = 1.01 * widths[2] + 1e-9
    run = ucbf.simulate(agent, world, **{"steps" if horizon is None else "episodes": 100}, seed=3, stop_when=enough)
    assert len(run.gap) == 1  # it is looked at after the first


@pytest.mark.parametrize("horizon", [None, 2])
def test_certificates_keep_steps_and_contexts_apart(horizon):
    # What is quiet at one step is busy at the next; much was seen, so that the bracket is narrow.
    law = ucbf.Disturbance([[QUIET, BUSY], [BUSY, QUIET]], low=-3, contexts=STAYS)
    world = ucbf.World(shop(horizon, contexts=2, period=2 if horizon is None else 1), law)
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, **({"steps": 200_000} if horizon is None else {"episodes": 100_000}))
    found = agent.certificate()
    assert (world.plan.v[0] <= found.upper).all()
    assert (found.lower <= ucbf.evaluate(world, agent.policy)[0]).all()
    assert (found.upper - world.plan.v[0]).max() < 0.08 * np.abs(world.plan.v[0]).max()


@pytest.mark.parametrize("Agent", [ucbf.UCBf, ucbf.UCBVIf])
@pytest.mark.parametrize("horizon", [None, 3])
def test_a_saved_agent_goes_on_bit_for_bit(Agent, horizon, tmp_path):
    world = ucbf.World(shop(horizon, contexts=2), REGIMES)
    first, then = ({"steps": 101}, {"steps": 50}) if horizon is None else ({"episodes": 30}, {"episodes": 20})
    agent = Agent(world.system)
    ucbf.simulate(agent, world, **first)
    agent.save(tmp_path / "agent.npz")
    other = ucbf.load(tmp_path / "agent.npz")
    assert other.system.n_contexts == 2
    runs = [ucbf.simulate(one, world, **then, seed=1) for one in (agent, other)]
    np.testing.assert_array_equal(runs[0].gap, runs[1].gap)
    np.testing.assert_array_equal(runs[0].reward, runs[1].reward)
    for name, array in agent.state.items():
        np.testing.assert_array_equal(array, other.state[name])


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Agent", [ucbf.UCBf, ucbf.UCBVIf])
def test_contexts_are_asked_for(Agent):
    agent = Agent(shop(contexts=2))
    with pytest.raises(TypeError, match="the system has 2 contexts; say in which the state is: context="):
        agent.act(0, 1)
    with pytest.raises(ValueError, match="context is 2; it must be 0 to 1"):
        agent.act(0, 1, context=2)
    with pytest.raises(TypeError, match="say in which the state is"):
        agent.observe(0, 1, 0, 1, next_context=0)
    with pytest.raises(TypeError, match="say in which the next state is"):
        agent.observe(0, 1, 0, 1, context=0)
    with pytest.raises(TypeError, match="has 2 context.* and contexts was not given"):
        agent.warm_start([[-1]])
    with pytest.raises(ValueError, match="give \\[K, H \\+ 1\\] = \\(1, 2\\) of 0..1"):
        agent.warm_start([[-1]], contexts=[[0, 2]])
    with pytest.raises(ValueError, match="context is 1; it must be 0 to 0"):
        Agent(shop()).act(0, 1, context=1)
    with pytest.raises(TypeError, match="has 1 context.* and contexts was given"):
        Agent(shop()).warm_start([[-1]], contexts=[[0, 0]])


@pytest.mark.parametrize(
    ("pmf", "contexts", "message"),
    [
        ([QUIET, BUSY], [[0.5, 0.4], [0, 1]], "row \\[0\\] of contexts sums to 0.9; .* sum to 1"),
        ([QUIET, [0.5, 0.5, 0.5, 0]], STAYS, "row \\[1\\] of pmf sums to 1.5"),
        ([QUIET, BUSY], [[1.5, -0.5], [0, 1]], "row \\[0\\] of contexts .* must be probabilities"),
        ([QUIET, BUSY], np.eye(3), "with 3 contexts it must be \\[E, n\\] or \\[H, E, n\\]"),
        (QUIET, STAYS, "with 2 contexts it must be"),
        ([QUIET, BUSY], np.ones((2, 3)), "contexts has shape \\(2, 3\\); give \\[E, E\\]"),
        ([QUIET, BUSY], np.full((2, 3, 2), 0.5), "with 4 values of W it must be \\(2, 4, 2\\)"),
    ],
)
def test_distributions_are_checked(pmf, contexts, message):
    with pytest.raises(ValueError, match=message):
        ucbf.Disturbance(pmf, low=-3, contexts=contexts)


def test_law_and_system_must_have_as_many():
    three = ucbf.Disturbance([QUIET] * 3, low=-3, contexts=np.eye(3))
    with pytest.raises(ValueError, match="the law has 3 contexts and the system 2"):
        ucbf.World(shop(contexts=2), three)
    with pytest.raises(ValueError, match="the law has 2 contexts and the system 1"):
        ucbf.World(shop(), REGIMES)
    with pytest.raises(ValueError, match="the law has 1 contexts and the system 2"):
        ucbf.World(shop(contexts=2), ucbf.Disturbance(BUSY, low=-3))
    with pytest.raises(ValueError, match="told n_contexts = 2, but the world has 1|told n_states = 10"):
        ucbf.simulate(ucbf.UCBVIf(shop(contexts=2)), ucbf.World(shop(), ucbf.Disturbance(BUSY, low=-3)), steps=3)
    with pytest.raises(ValueError, match="start_context is 1, and the system has no contexts"):
        ucbf.World(shop(), ucbf.Disturbance(BUSY, low=-3), start_context=1)
    for first, message in (([0.5, 0.6], "2 probabilities that sum to 1"), (2, "start_context is 2; it must be 0 to 1")):
        with pytest.raises(ValueError, match=message):
            ucbf.World(shop(contexts=2), REGIMES, start_context=first)


def test_best_averages_that_depend_on_the_context_are_refused():
    law = ucbf.Disturbance([QUIET, BUSY], low=-3, contexts=np.eye(2))
    with pytest.raises(ValueError, match="whoever is in state . in context 0 never gets to . in context 1"):
        _ = ucbf.World(shop(discount=1.0, contexts=2), law).plan


def test_what_a_boundary_hides_is_learned_by_context():
    world, agent = ucbf.World(shop(contexts=2), REGIMES), ucbf.UCBVIf(shop(contexts=2))
    run = ucbf.simulate(agent, world, steps=4000, censored=True)
    assert run.gap.min() > -1e-9
    assert run.gap[-1] < 0.05 * run.gap[0]


def test_what_contexts_do_not_go_with_is_refused():
    def told(s, a, context):
        return s + a

    def landing(z, context):
        return 1.0 * z

    plain = {"n_states": 5, "n_actions": 2, "disturbance_range": (-1, 1)}
    with pytest.raises(TypeError, match="f takes a context; only .* in a system with contexts="):
        ucbf.System(told, 0.0, 2, "clip", **plain)
    with pytest.raises(TypeError, match="landing takes a context; only f, reward and allowed do"):
        ucbf.System(lambda s, a: s, 0.0, 2, "clip", landing=landing, contexts=2, **plain)
    with pytest.raises(ValueError, match="contexts need whole axes"):
        ucbf.System(
            lambda s, a: s, lambda s, a: s[:, 0], 2, "clip", low=[0], high=[1], points=5, n_actions=2, contexts=2
        )
    with pytest.raises(ValueError, match="lag needs states on a line .* without contexts"):
        ucbf.System(lambda s, a: s, 0.0, 2, "clip", contexts=2, lag=1, late_landing=lambda z: 1.0 * z, **plain)
    with pytest.raises(ValueError, match="the paper's proof is of systems with an end and without contexts"):
        ucbf.UCBf(shop(3, contexts=2)).certificate(form="theorem")
    plan = ucbf.World(shop(3, contexts=2), REGIMES).plan
    for ask in (plan.value_at, plan.q_at):
        with pytest.raises(TypeError, match="with contexts, values are looked up"):
            ask(0, [1])

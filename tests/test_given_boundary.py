"""Boundaries that are functions of the user's."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ucbf
from ucbf.kernels.seen import Seen
from ucbf.seen import Transition, explain


def test_a_boundary_on_a_line_may_be_a_function():
    # States 0, 1, 2; f = s + a, W is -1, 0 or 1; g reflects at both ends: -1 -> 1, 3 -> 1, 4 -> 0.
    # Two steps, each pays its state. From 0 without moving: W = -1, 0, 1 lead to 1, 0, 1: 0 + 0.2 + 0.5 = 0.7.
    # Moving by one: to 0, 1, 2: 0.3 + 2 * 0.5 = 1.3. From 2 moving by one: raw 2, 3, 4 lead to 2, 1, 0.
    led = np.array([1, 0, 1, 2, 1, 0])
    system = ucbf.System(
        lambda s, a: s + a, lambda s, a: 1.0 * s, 2, lambda z: led[z + 1], n_states=3, n_actions=2,
        disturbance_range=(-1, 1),
    )  # fmt: skip
    plan = ucbf.optimal(ucbf.World(system, ucbf.Disturbance([0.2, 0.3, 0.5], low=-1)))
    np.testing.assert_allclose(plan.q[0, 0], [0.7, 1.3], atol=1e-12)
    np.testing.assert_allclose(plan.q[0, 2], [2 + 0.2 * 1 + 0.3 * 2 + 0.5 * 1, 2 + 0.2 * 2 + 0.3 * 1], atol=1e-12)


class Drawn:
    """A random system of d whole axes in which f and W have k parts, and g is looked up in a table."""

    def __init__(self, seed, d, k, contexts=1):
        self.rng = rng = np.random.default_rng(seed)
        self.shape, self.low = rng.integers(2, 4, d), rng.integers(-2, 3, d)
        self.S, self.A, self.H = int(self.shape.prod()), 2, 2
        self.points = self.low + np.stack(np.unravel_index(np.arange(self.S), self.shape), axis=1)
        self.f, self.reward = rng.integers(-1, 3, (self.S, self.A, k)), rng.normal(size=(self.H, self.S, self.A))
        self.first, self.last = np.full(k, -1), rng.integers(0, 2, k)
        self.w = self.first + np.stack(
            np.unravel_index(np.arange(np.prod(self.last - self.first + 1)), self.last - self.first + 1), axis=1
        )
        self.pmf = rng.random((self.H, len(self.w))) + 0.05
        self.pmf /= self.pmf.sum(axis=1, keepdims=True)
        self.table, self.paid = rng.integers(0, self.S, (8,) * k), rng.normal(size=(8,) * k)  # of z + 3
        self.system = ucbf.System(
            lambda s, a: self.f[self.index(s), a], lambda h, s, a: self.reward[h, self.index(s), a], self.H, self.g,
            low=self.low, high=self.low + self.shape - 1, n_actions=self.A, landing=lambda z: self.paid[tuple(z.T + 3)],
            discount=0.9, disturbance_range=(self.first, self.last),
        )  # fmt: skip
        self.world = ucbf.World(self.system, ucbf.Disturbance(self.pmf, values=self.w))

    def index(self, states):
        return np.ravel_multi_index(tuple((states - self.low).T), self.shape)

    def led(self, z):
        """The index of the state that a raw next state [k] leads to."""
        return int(self.table[tuple(z + 3)])

    def g(self, z):
        return self.points[self.table[tuple(z.T + 3)]]

    def literal_q(self):
        """[H, S, A] by loops."""
        Q, V = np.empty((self.H, self.S, self.A)), np.zeros(self.S)
        for h in range(self.H - 1, -1, -1):
            for s, a in np.ndindex(self.S, self.A):
                Q[h, s, a] = self.reward[h, s, a]
                for w, chance in zip(self.w, self.pmf[h], strict=True):
                    z = self.f[s, a] + w
                    Q[h, s, a] += chance * (self.paid[tuple(z + 3)] + 0.9 * V[self.led(z)])
            V = Q[h].max(axis=1)
        return Q


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 3))
def test_plans_and_runs_are_those_of_loops(seed, d, k):
    drawn = Drawn(seed, d, k)
    np.testing.assert_allclose(drawn.world.plan.q, drawn.literal_q(), atol=1e-12)
    assert drawn.world.best == pytest.approx(drawn.literal_q()[0].max(axis=1).mean(), abs=1e-12)
    agent = ucbf.UCBVIf(drawn.system, prior_weight=0)
    run = ucbf.simulate(agent, drawn.world, 20)
    assert run.gap.min() > -1e-9
    lost = drawn.world.start @ (drawn.world.plan.v[0] - ucbf.evaluate(drawn.world, agent.policy)[0])
    assert lost >= -1e-9
    starts, moved = drawn.world.draw(20, 0)
    counts = np.stack([[(moved[:, h] == w).all(axis=1).sum() for w in drawn.w] for h in range(2)])
    np.testing.assert_allclose(agent.law.pmf, counts / 20, atol=1e-12)  # what was drawn, though g may hide it
    # What the first episode paid, step by step, with the policy that an agent begins with.
    s, paid, first = int(starts[0]), 0.0, ucbf.UCBVIf(drawn.system, prior_weight=0).policy
    for h in range(2):
        a = first[h, s]
        z = drawn.f[s, a] + moved[0, h].astype(int)
        paid += 0.9**h * (drawn.reward[h, s, a] + drawn.paid[tuple(z + 3)])
        s = drawn.led(z)
    assert run.reward[0] == pytest.approx(paid, abs=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 3))
def test_a_transition_says_of_w_what_leads_there(seed, d, k):
    drawn = Drawn(seed, d, k)
    system, told = drawn.system, drawn.system.mechanics
    for s, a, s_next in np.ndindex(drawn.S, drawn.A, drawn.S):
        leads = [j for j, w in enumerate(drawn.w) if drawn.led(drawn.f[s, a] + w) == s_next]
        reading = explain(system, told, Transition(0, s, a, s_next, None), True)
        if not leads:
            assert "no disturbance within" in reading.outside
            continue
        assert reading.seen == Seen(0, s, a, s_next, leads[0], leads[-1])
        assert not reading.censored
        nearest = explain(system, told, Transition(0, s, a, s_next, None), False)
        assert nearest.seen.low == nearest.seen.high
        assert nearest.seen.low in leads
        assert (f"does not say which of {len(leads)} disturbances" in nearest.censored) == (len(leads) > 1)
        measured = explain(system, told, Transition(0, s, a, s_next, drawn.w[leads[-1]]), True)
        assert measured.seen == Seen(0, s, a, s_next, leads[-1], leads[-1])


# -- a shop whose orders take a step, and whose customers do not wait -----------------------------------------------

DEMAND = np.array([0.1, 0.2, 0.3, 0.25, 0.15])  # of 0 .. 4


def pipeline(horizon=None, **more):
    """States (stock, ordered), orders of 0 to 3, f = (stock, ordered, order), W = (-demand, 0, 0); nobody waits."""
    if horizon is None:
        more = {"discount": 0.9, **more}

    def landing(z):
        return -0.2 * np.maximum(z[:, 0], 0) + 5 * np.minimum(z[:, 0], 0)

    return ucbf.System(
        lambda s, a: np.column_stack([s, a]), lambda s, a: -1.0 * a, horizon,
        lambda z: np.column_stack([np.minimum(np.maximum(z[:, 0], 0) + z[:, 1], 6), z[:, 2]]),
        low=[0, 0], high=[6, 3], n_actions=4, landing=landing,
        disturbance_range=([-4, 0, 0], [0, 0, 0]), **more,
    )  # fmt: skip


def demand(pmf=DEMAND):
    return ucbf.Disturbance(pmf, values=[[-i, 0, 0] for i in range(len(pmf))])


def learned_demand(agent):
    """[5] of 0 .. 4."""
    return agent.law.pmf[0][::-1] if agent.law.values[0, 0] == -4 else agent.law.pmf[0]


def test_a_pipeline_by_hand():
    # Stock 2, 1 ordered, order 3; demand 3: one sale is lost (-5), 1 arrives, 3 are under way (-3).
    system = pipeline(2)
    i = 2 * 4 + 1
    after, paid = system.advance(0, i, 3, [-3, 0, 0])
    assert after == 1 * 4 + 3
    assert paid == -3 - 5
    after, paid = system.advance(0, i, 3, [-1, 0, 0])  # stock 1 left, 1 arrives
    assert after == 2 * 4 + 3
    assert paid == pytest.approx(-3 - 0.2)
    agent = ucbf.UCBVIf(system)
    agent.observe(0, [2, 1], 3, [2, 3])
    np.testing.assert_allclose(learned_demand(agent), [0, 1, 0, 0, 0])
    agent.observe(0, [6, 3], 0, [6, 0])  # 3, or fewer: 6 is the most there may be
    with pytest.raises(ValueError, match="disturbance .* does not lead to the next state"):
        agent.observe(0, [2, 1], 3, [2, 3], disturbance=[-2, 0, 0])
    with pytest.warns(ucbf.ModelWarning, match="no disturbance within .* leads to \\[0 3\\]"):
        agent.observe(0, [2, 1], 3, [0, 3])


def test_censored_sales_teach_the_demand_up_to_what_is_ever_in_stock():
    world = ucbf.World(pipeline(), demand())
    agent = ucbf.UCBVIf(world.system)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ucbf.CensoredWarning)
        run = ucbf.simulate(agent, world, steps=6000, censored=True)
    assert run.gap.min() > -1e-9
    assert run.gap[-1] < 0.01 * abs(world.best)
    learned = learned_demand(agent)
    np.testing.assert_allclose(learned[:3], DEMAND[:3], atol=0.03)
    assert learned[3:].sum() == pytest.approx(DEMAND[3:].sum(), abs=0.03)
    with pytest.warns(ucbf.CensoredWarning, match="UCB-f takes a W that a boundary hides"):
        ucbf.simulate(ucbf.UCBf(world.system), world, steps=10, censored=True)


@pytest.mark.parametrize("Agent", [ucbf.UCBf, ucbf.UCBVIf])
def test_gaps_fall_in_a_pipeline(Agent):
    world = ucbf.World(pipeline(4), demand([0.7, 0.2, 0.1, 0, 0]), start=[0, 0])
    agent = Agent(world.system)
    run = ucbf.simulate(agent, world, 3000)
    assert run.gap.min() > -1e-9
    assert run.gap[-100:].mean() < 0.1 * run.gap[0]
    if Agent is ucbf.UCBVIf:
        found = agent.certificate()
        assert (world.plan.v[0] <= found.upper + 1e-9).all()
        assert (found.lower <= ucbf.evaluate(world, agent.policy)[0] + 1e-9).all()


def test_a_saved_agent_goes_on_if_the_system_is_stated_again(tmp_path):
    world = ucbf.World(pipeline(), demand())
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, steps=100)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(
        ValueError, match="a boundary of its own or a late_landing, whose functions are not saved: state it again"
    ):
        ucbf.load(tmp_path / "agent.npz")
    other = ucbf.load(tmp_path / "agent.npz", system=pipeline())
    runs = [ucbf.simulate(one, world, steps=50, seed=1) for one in (agent, other)]
    np.testing.assert_array_equal(runs[0].gap, runs[1].gap)
    np.testing.assert_array_equal(runs[0].reward, runs[1].reward)
    for name, array in agent.state.items():
        np.testing.assert_array_equal(array, other.state[name])


# -- refusals ---------------------------------------------------------------------------------------------------

LINE = {"n_states": 5, "n_actions": 2, "disturbance_range": (-1, 1)}
BOX = {"low": [0, 0], "high": [1, 1], "n_actions": 2, "disturbance_range": ([0, 0], [1, 1])}


@pytest.mark.parametrize(
    ("boundary", "more", "error", "message"),
    [
        (lambda z: z, LINE, ValueError, "from f \\+ W = -1 to -1, outside the states 0..4; correct it, .* forbid"),
        (lambda z: z, BOX, ValueError, "= \\[0 2\\] to \\[0 2\\], outside the states \\[0 0\\]..\\[1 1\\]"),
        (lambda z: z % 5, {**LINE, "disturbance_range": None}, ValueError, "disturbance_range is not given; declare"),
        (lambda z: z % 2, {**BOX, "disturbance_range": None}, ValueError, "disturbance_range is not given; declare"),
        (lambda z: z % 2, {**BOX, "points": [None, 5]}, ValueError, "some axes are continuous; there it must be"),
        (lambda h, z: z % 5, LINE, TypeError, "takes more than the raw next states; it must be the same at every step"),
        (lambda z, context: z % 5, {**LINE, "contexts": 2}, TypeError, "boundary takes a context; only f, reward"),
        (lambda z: z[:, 0] % 2, BOX, ValueError, "boundary, .*, returned shape \\(9,\\); it must be \\(9, 2\\)"),
        (lambda z: z % 5 + 0.5, LINE, ValueError, "every entry must be a whole number"),
    ],
)  # fmt: skip
def test_a_boundary_is_checked(boundary, more, error, message):
    with pytest.raises(error, match=message):
        ucbf.System(lambda s, a: s, 0.0, 2, boundary, **more)


def test_f_has_as_many_parts_as_w():
    with pytest.raises(ValueError, match="f, called with .* returned shape \\(8, 2\\); it must be \\(8, 3\\)"):
        ucbf.System(lambda s, a: s, 0.0, 2, lambda z: z[:, :2] % 2, **{**BOX, "disturbance_range": ([0] * 3, [1] * 3)})


def test_only_where_f_and_w_lead_must_a_boundary_answer():
    # f is 0 or 10 and W 0 or 1: nothing leads to 2..9. Action 2, which would lead there, is not allowed.
    def system(allowed):
        return ucbf.System(
            lambda s, a: np.array([0, 10, 5])[a], 0.0, 2, lambda z: np.where((z > 1) & (z < 10), 99, z % 5), n_states=5,
            n_actions=3, disturbance_range=(0, 1), allowed=allowed,
        )  # fmt: skip

    assert ucbf.World(system(lambda s, a: a < 2), ucbf.Disturbance([0.5, 0.5])).best == 0
    with pytest.raises(ValueError, match="boundary leads from f \\+ W = 5 to 99"):
        system(None)


def told_by_sets(led, n_states=5):
    """Always at 0, W in 0..n-1 leads to led[W]."""
    return ucbf.System(
        lambda s, a: 0 * s, lambda s, a: 1.0 * s, None, lambda z: np.array(led)[z], n_states=n_states, n_actions=1,
        disturbance_range=(0, len(led) - 1), discount=0.9,
    )  # fmt: skip


def test_a_set_of_disturbances_is_shared_out_by_hand():
    # From state 0 the next one tells 0, {1, 2}, 3 apart, from state 1 it tells 0, 1, {2, 3}.
    system = ucbf.System(
        lambda s, a: 4 * (s % 2), lambda s, a: 0.0 * s, None, lambda z: np.array([0, 1, 1, 2, 0, 1, 2, 2])[z],
        n_states=3, n_actions=1, disturbance_range=(0, 3), discount=0.9,
    )  # fmt: skip
    assert not system.tells_bounds
    sets = system.hidden_sets
    near, far = int(sets.which[0, 1]), int(sets.which[4, 2])
    assert sets.which[[0, 4]].tolist() == [[-1, near, near, -1], [-1, -1, far, far]]
    members = [sets.members[sets.begins[m] : sets.begins[m + 1]].tolist() for m in (near, far)]
    assert members == [[1, 2], [2, 3]]
    agent = ucbf.UCBVIf(system)
    agent.observe(0, 0, 0, 0)  # W = 0
    agent.observe(0, 0, 0, 1)  # 1 or 2
    agent.observe(0, 1, 0, 2)  # 2 or 3: 2 explains both, so that a third is 0 and two thirds are 2
    np.testing.assert_allclose(agent.law.pmf[0], [1 / 3, 0, 2 / 3, 0], atol=1e-4)
    agent.observe(0, 0, 0, 2)  # W = 3: of the four now 0, {1, 2}, {2, 3} and 3
    # The likelihood p0 (p1 + p2) (p2 + p3) p3 is largest with p1 = 0, p0 = 1/4, and p2 = p3 of the rest.
    np.testing.assert_allclose(agent.law.pmf[0], [1 / 4, 0, 3 / 8, 3 / 8], atol=1e-4)


@pytest.mark.parametrize(
    "led",
    [
        [0, 1, 1, 2, 3],  # 1 and 2 of 0..4 lead to the same state
        [0, 1, 2, 3, 0],  # the smallest and the largest do
        [3, 1, 0, 1, 3],  # how far from 2
    ],
)
def test_what_a_boundary_hides_is_learned_up_to_what_it_never_tells_apart(led):
    system, law = told_by_sets(led), np.array([0.1, 0.3, 0.2, 0.1, 0.3])
    world = ucbf.World(system, ucbf.Disturbance(law))
    agent = ucbf.UCBVIf(system)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ucbf.CensoredWarning)
        run = ucbf.simulate(agent, world, steps=4000, censored=True)
    assert run.gap.min() > -1e-9
    seen = agent.law.pmf[0]
    for s in set(led):
        alike = np.array(led) == s
        assert seen[alike].sum() == pytest.approx(law[alike].sum(), abs=0.03)
    ucbf.simulate(ucbf.UCBVIf(system), world, steps=10)


def literal_em(counts, sets, passes=500):
    """Expectation and maximisation as it is written: sets is a list of (members, how often)."""
    n = counts.sum() + sum(hits for _, hits in sets)
    law = (counts + 1 / len(counts)) / (counts.sum() + 1)
    for _ in range(passes):
        expected = counts.astype(float).copy()
        for members, hits in sets:
            members = list(members)
            expected[members] += hits * law[members] / law[members].sum()
        law = expected / n
    return law


@given(st.integers(0, 2**32 - 1))
def test_sets_are_learned_as_written_in_random_systems(seed):
    rng = np.random.default_rng(seed)
    R, S = int(rng.integers(2, 6)), 3
    table = rng.integers(0, S, R + 2 * S)
    system = ucbf.System(
        lambda s, a: 2 * s, lambda s, a: 0.0 * s, None, lambda z: table[z], n_states=S, n_actions=1,
        disturbance_range=(0, R - 1), discount=0.9,
    )  # fmt: skip
    agent, counts, sets = ucbf.UCBVIf(system), np.zeros(R), {}
    for _ in range(12):
        s, w = int(rng.integers(S)), int(rng.integers(R))
        agent.observe(0, s, 0, int(table[2 * s + w]))
        members = tuple(j for j in range(R) if table[2 * s + j] == table[2 * s + w])
        if len(members) == 1:
            counts[w] += 1
        else:
            sets[members] = sets.get(members, 0) + 1
    if not system.tells_bounds:
        np.testing.assert_allclose(agent.law.pmf[0], literal_em(counts, list(sets.items())), atol=1e-6)


def test_two_demands_that_share_a_step_are_learned_from_what_was_sold():
    # Two products, each sold from a shelf of up to 2: a sale of all says "at least".
    system = ucbf.System(
        lambda s, a: a, lambda s, a: -0.1 * a.sum(axis=1), 3, low=[0, 0], high=[2, 2], boundary="clip",
        actions=[[i, j] for i in range(3) for j in range(3)], disturbance_range=([-2, -2], [0, 0]),
        landing=lambda z: -1.0 * np.minimum(z, 0).sum(axis=1) * -1,
    )  # fmt: skip
    law = ucbf.Disturbance([0.4, 0.3, 0.3], values=[[0, 0], [-1, -2], [-2, 0]])
    agent = ucbf.UCBVIf(system)
    ucbf.simulate(agent, ucbf.World(system, law), 2000, censored=True)
    learned = {tuple(value): p for value, p in zip(agent.law.values.tolist(), agent.law.pmf[0], strict=True)}
    assert sum(learned.values()) == pytest.approx(1)
    assert not system.tells_bounds
    assert system.hidden_sets is not None


def test_sets_survive_saving_and_moving(tmp_path):
    system = told_by_sets([3, 1, 0, 1, 3])
    agent = ucbf.UCBVIf(system)
    for s in (3, 1, 0, 1):
        agent.observe(0, 0, 0, s)
    agent.save(tmp_path / "agent")
    loaded = ucbf.load(tmp_path / "agent", system=system)
    np.testing.assert_array_equal(loaded.law.pmf, agent.law.pmf)
    np.testing.assert_array_equal(agent.moved_to(system).law.pmf, agent.law.pmf)

"""Continuous boxes: agreement with the integers, with Riccati, and with the truth when learning."""

import threading

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forging
import ucbf
from instances import riccati
from reference import literal_grid_plan
from ucbf import saving
from ucbf.grid import Grid, GridAgent, lattice
from ucbf.kernels import backward


def regulator(points, horizon=8, **more):
    """x' = x + u + w, cost x² + u²; as many actions as points, at the same spacing."""
    options = {"low": -4, "high": 4, "actions": np.linspace(-3, 3, (points - 1) * 3 // 4 + 1), **more}
    return Grid(lambda x, u: x + u, lambda x, u: -(x**2 + u**2), horizon, points=points, **options)


def test_riccati_is_as_published():
    assert riccati(5) == pytest.approx([0, 1, 1.5, 1.6, 1.615385, 1.617647], abs=5e-7)
    assert riccati(30)[-1] == pytest.approx(1.6180339887, abs=5e-11)


def test_the_regulator_converges_to_riccati_with_the_square_of_the_spacing():
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 1))
    noise -= noise.mean()
    p, x = riccati(8), np.linspace(-1, 1, 41)[:, None]
    truth = -(p[8] * x[:, 0] ** 2 + np.mean(noise**2) * sum(p[:8]))
    spacing, errors = [], []
    for points in (41, 81, 161, 321):
        grid = regulator(points, disturbance_range=(-0.6, 0.6))
        errors.append(np.abs(grid.plan(noise).value(0, x) - truth).max())
        spacing.append(grid.spacing[0])
    order = np.polyfit(np.log(spacing), np.log(errors), 1)[0]
    assert 1.9 < order < 2.3
    assert errors[-1] < 0.003


def test_two_steps_by_hand():
    # Points 0, 1, 2; stay or go up one; reward of the step is the state. W = 0.5: from 0, staying, the next state is
    # 0.5, worth (0 + 1)/2 at the last step.
    grid = Grid(lambda s, a: s + a, lambda s, a: s[:, 0], 2, 0, 2, 3, [0.0, 1.0], disturbance_range=(0, 1))
    plan = grid.plan([[0.5]])
    np.testing.assert_allclose(plan.v, [[1.5, 3.0, 4.0], [0, 1, 2], [0, 0, 0]])
    assert plan.policy[0].tolist() == [1, 1, 0]  # at the top both lead to the edge
    # From 0.25: f is 0.25 or 1.25, between after-states 0, 1 and 2, which 0.5, 1.5 and (the edge) 2 follow.
    assert plan.q(0, [[0.0], [0.25]]).tolist() == [[0.5, 1.5], [0.25 + 0.75, 0.25 + 1.625]]
    assert plan.value(0, [0.5]) == 2.25
    assert plan.act(0, [0.25]) == 1


@given(st.integers(0, 2**32 - 1), st.sampled_from(["clip", "wrap"]), st.booleans())
def test_on_whole_numbers_it_is_the_system_of_integers(seed, boundary, lands):
    rng = np.random.default_rng(seed)
    S, A, H = 5, 3, 3
    moves, paid, cost = rng.integers(-2, 3, A), rng.normal(size=(S, A)), rng.normal(size=40)
    law = rng.random((H, 4))
    law /= law.sum(axis=1, keepdims=True)
    landing = (lambda z: cost[np.asarray(z, int) + 20]) if lands else None
    system = ucbf.System(
        lambda s, a: s + moves[a], paid, H, boundary, landing=landing, disturbance_range=(-2, 1), n_states=S
    )
    plan = ucbf.optimal(ucbf.World(system, ucbf.Disturbance(law, low=-2)))
    grid = Grid(
        lambda s, a: s + moves[a[:, 0].astype(int)][:, None],
        lambda s, a: paid[np.rint(s[:, 0]).astype(int), a[:, 0].astype(int)],
        H, 0, S if boundary == "wrap" else S - 1, S, np.arange(A), boundary,
        landing=(lambda z: cost[np.rint(z[:, 0]).astype(int) + 20]) if lands else None,
        disturbance_range=(-2, 1),
    )  # fmt: skip
    each = np.broadcast_to(np.arange(-2.0, 2)[None, :, None], (H, 4, 1))
    counts = np.stack([grid.shared(each[h], law[h]) for h in range(H)])
    found = grid.plan_with(counts)
    np.testing.assert_allclose(found.v, plan.v, atol=1e-12)
    np.testing.assert_allclose(found.q(1, np.arange(S)[:, None]), plan.q[1], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("boundary", [("clip", "wrap"), ("wrap", "clip"), ("clip", "clip")])
def test_a_plan_in_two_dimensions_is_the_literal_one(boundary, seed):
    rng = np.random.default_rng(seed)
    turn, cost = rng.normal(size=(2, 2)), rng.normal(size=4)
    # What lands must not depend on how often an axis has turned: the lattice beyond a turn is the lattice again.
    still = [k for k, rule in enumerate(boundary) if rule == "clip"]
    grid = Grid(
        lambda h, s, a: s @ turn * (0.3 + 0.1 * h) + a,
        lambda s, a: np.sin(s @ cost[:2]) - a[:, 0] ** 2,
        2, [0, -1], [1, 1], [4, 3], [[0.1, 0.2], [-0.3, 0.4]], boundary,
        landing=lambda h, z: (h + 1) * np.abs(z[:, still]).sum(axis=1),
        terminal=lambda s: np.cos(s @ cost[2:]),
        disturbance_range=([-0.2, -0.5], [0.4, 0.3]), discount=0.9,
    )  # fmt: skip
    samples = rng.uniform([-0.2, -0.5], [0.4, 0.3], (5, 2))
    np.testing.assert_allclose(grid.plan(samples).v, literal_grid_plan(grid, samples), atol=1e-10)


def test_interpreted_and_compiled_plans_are_the_same_bits():
    grid = craft(9, 3, horizon=2)
    law = np.tile(grid.shared([[0.01, 0.2], [0.0, -0.1]]) / 2, (1, 1))
    m, plan = grid.mechanics, grid.plan_with(law)
    value, ahead, policy = np.empty_like(plan.v), np.empty_like(plan.ahead), np.empty_like(plan.policy)
    value[-1] = m.terminal
    backward.plan.py_func(m, m.offsets, law, value, ahead, policy, np.empty(len(m.next_state)))
    np.testing.assert_array_equal(value, plan.v)
    np.testing.assert_array_equal(policy, plan.policy)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_linear_values_are_exact_in_every_dimension(d):
    # f halves the state and the reward is linear: so are all values, and interpolation does not err.
    weights = np.arange(1.0, d + 1)
    grid = Grid(lambda s, a: s / 2, lambda s, a: s @ weights, 3, [-1] * d, [1] * d, 9, [0.0],
                disturbance_range=(-0.2, 0.2))  # fmt: skip
    w = np.random.default_rng(0).uniform(-0.2, 0.2, (50, d))
    plan = grid.plan(w)
    s = np.random.default_rng(1).uniform(-1, 1, (20, d))
    mean = w.mean(axis=0)
    expected = (s + (s / 2 + mean) + (s / 4 + mean / 2 + mean)) @ weights
    np.testing.assert_allclose(plan.value(0, s), expected, atol=1e-12)
    np.testing.assert_allclose(plan.q(0, s)[:, 0], expected, atol=1e-12)


@given(st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(-1, 1)), min_size=1, max_size=20))
def test_sharing_out_keeps_every_mean(samples):
    grid = Grid(lambda s, a: s, lambda s, a: 0.0, 1, [0, 0], [1, 2], [7, 5], [0.0],
                disturbance_range=([-0.5, -1], [0.5, 1]))  # fmt: skip
    shares = grid.shared(samples)
    first, count = grid.bins
    values = (np.stack(np.meshgrid(*map(np.arange, count), indexing="ij"), -1).reshape(-1, 2) + first) * grid.spacing
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(len(samples))
    np.testing.assert_allclose(shares @ values, np.sum(samples, axis=0), atol=1e-9)


def test_a_turned_axis_goes_on_at_the_other_side():
    grid = Grid(lambda s, a: s + a, lambda s, a: np.cos(s[:, 0]), 2, 0, 2 * np.pi, 60, [-0.3, 0.3], "wrap")
    plan = grid.plan([[0.0]])
    assert plan.value(0, [0.0]) == pytest.approx(plan.value(0, [2 * np.pi]))
    assert plan.act(0, [6.0]) == 1
    assert grid.residual(0, [6.1], 1, [0.1])[0] == pytest.approx(0.1 + 2 * np.pi - 6.4)


def craft(points=41, actions=9, horizon=12):
    """A double integrator that wind pushes."""
    dt = 0.25

    def f(s, u):
        return np.stack([s[:, 0] + dt * s[:, 1] + dt**2 / 2 * u[:, 0], s[:, 1] + dt * u[:, 0]], axis=1)

    def reward(s, u):
        return -(s[:, 0] ** 2 + 0.1 * s[:, 1] ** 2 + 0.1 * u[:, 0] ** 2)

    return Grid(f, reward, horizon, [-3, -3], [3, 3], points, np.linspace(-2, 2, actions),
                terminal=lambda s: -(4 * s[:, 0] ** 2 + s[:, 1] ** 2),
                disturbance_range=([-0.1, -0.5], [0.1, 0.5]))  # fmt: skip


def wind(rng, h=0):
    gust = min(0.12 * rng.gamma(2.0) - 0.12, 0.5)
    return np.array([gust / 8, gust])


def test_a_double_integrator_in_the_wind_is_learned_within_two_percent():
    rng = np.random.default_rng(0)
    fine, coarse = craft(81, 17), craft(61, 17)
    law = np.array([wind(rng) for _ in range(4000)])
    starts = rng.uniform([-2, -0.5], [2, 0.5], (500, 2))
    gusts = np.array([[wind(rng) for _ in range(12)] for _ in range(500)])
    best = fine.plan(law).rollout(starts, gusts).mean()
    agent = GridAgent(coarse)
    env = gymnasium.make("ucbf/Grid-v0", grid=coarse, noise=wind, start=lambda rng: rng.uniform([-2, -0.5], [2, 0.5]))
    ucbf.learn(agent, env, episodes=30, seed=1)
    learned = agent.plan.rollout(starts, gusts).mean()
    assert learned == pytest.approx(best, rel=0.02)
    nothing = GridAgent(coarse).plan.rollout(starts, gusts).mean()
    assert nothing < best * 1.03  # knowing nothing of the wind costs more


class Plane(gymnasium.Env):
    """Somebody's environment with Box spaces: the same craft, in single precision, and no word of its wind."""

    observation_space = gymnasium.spaces.Box(-3, 3, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = self.np_random.uniform([-2, -0.5], [2, 0.5]).astype(np.float32)
        return self.s, {}

    def step(self, u):
        grid = craft()
        reward = grid.reward(0, self.s[None], u[None])[0]
        self.s = grid.meet_boundary(grid.f(0, self.s[None], u[None]) + wind(self.np_random))[0].astype(np.float32)
        return self.s, float(reward), False, False, {}


def test_an_environment_with_boxes_is_learned_and_what_does_not_fit_is_refused():
    agent = GridAgent(craft(), stationary=True)
    rewards = ucbf.learn(agent, Plane(), episodes=3, seed=0)
    assert rewards.shape == (3,)
    assert agent.counts.sum() == pytest.approx(3 * 12)
    bold = Grid(lambda s, u: s, lambda s, u: 0.0, 2, [-3, -3], [3, 3], 5, [[9.0]])
    with pytest.raises(ValueError, match="is not in the environment's action_space"):
        ucbf.learn(GridAgent(bold), Plane(), 1)
    with pytest.raises(ValueError, match="the grid has states of shape"):
        ucbf.learn(GridAgent(regulator(11)), Plane(), 1)


def test_an_edge_and_a_residual_out_of_range_are_told():
    agent = GridAgent(regulator(41, disturbance_range=(-0.5, 0.5)))
    with pytest.warns(ucbf.CensoredWarning, match="at an edge of axis 0"):
        agent.observe(0, [3.9], 15, [4.0])
    with pytest.warns(ucbf.ModelWarning, match="the residual is"):
        agent.observe(0, [0.0], 15, [2.0])
    agent.observe(0, [3.9], 15, [4.0], disturbance=[0.3])
    assert agent.counts.sum() == 2


def test_saving_and_going_on(tmp_path):
    grid = craft(11, 3)
    agent = GridAgent(grid, stationary=True)
    rng = np.random.default_rng(0)
    agent.warm_start([[wind(rng) for _ in range(12)] for _ in range(5)])
    agent.save(tmp_path / "agent.npz")
    again = GridAgent.load(tmp_path / "agent.npz", craft(11, 3))
    np.testing.assert_array_equal(again.policy, agent.policy)
    with pytest.raises(ValueError, match="of another lattice"):
        GridAgent.load(tmp_path / "agent.npz", craft(13, 3))
    with pytest.raises(ValueError, match="is not a saved ucbf agent, or is damaged"):
        GridAgent.load(__file__, grid)


def saved_box(path, **more):
    """A saved agent that has seen something, and its grid."""
    grid = regulator(11, disturbance_range=(-0.5, 0.5), **more)
    agent = GridAgent(grid)
    agent.warm_start(np.full((3, grid.horizon, 1), 0.2))
    agent.save(path)
    return grid


def test_the_file_of_a_grid_agent_is_like_any_other(tmp_path):
    path = tmp_path / "agent.npz"
    grid = saved_box(path)
    assert forging.contents(path)[0]["version"] == saving.VERSION
    with pytest.raises(
        ValueError, match=r"agent.npz is of a GridAgent; state its grid again: GridAgent.load\(path, grid\)"
    ):
        ucbf.load(path)
    header, arrays = forging.contents(path)
    path.write_bytes(forging.packed(header, {**arrays, "counts": arrays["counts"] + 1}))
    with pytest.raises(ValueError, match="was changed after it was written: its digest does not match"):
        GridAgent.load(path, grid)
    ucbf.UCBf(ucbf.random_world(seed=1).system).save(path)
    with pytest.raises(ValueError, match=r"holds no agent of a grid but a 'UCB-f'; use ucbf.load\(path\)"):
        GridAgent.load(path, grid)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("counts", np.nan, "it holds a counts that is not a number"),
        ("counts", -1.0, r"its counts\[0, 0\] is -1.0; it must be 0 to 9007199254740992"),
        ("law", 2.0, "its law is not one of probabilities that add up to 1"),
        ("outside", -1, r"its outside\[0\] is -1"),
    ],
)
def test_the_arrays_of_a_grid_agent_are_checked(name, value, message, tmp_path):
    path = tmp_path / "agent.npz"
    grid = saved_box(path)
    header, arrays = forging.contents(path)
    arrays[name].fill(value)
    path.write_bytes(forging.sealed(header, arrays))
    with pytest.raises(ValueError, match=f"agent.npz does not hold this agent: {message}.*; save the agent again"):
        GridAgent.load(path, grid)


def test_a_file_of_another_grid_is_refused_with_the_difference(tmp_path):
    path = tmp_path / "agent.npz"
    saved_box(path, horizon=4)
    for other, message in [
        ({"horizon": 5}, "its horizon is 4, here it is 5"),
        ({"boundary": "wrap"}, r"its boundary is \['clip'\], here it is \['wrap'\]"),
        ({"points": 21}, r"its points is \[11\], here it is \[21\]"),
        ({"disturbance_range": (-0.5, 3)}, "its bins is "),
    ]:
        arguments = {"points": 11, "horizon": 4, "disturbance_range": (-0.5, 0.5), **other}
        with pytest.raises(ValueError, match=f"is of another lattice, or of another range of W: {message}"):
            GridAgent.load(path, regulator(arguments.pop("points"), **arguments))


@pytest.mark.filterwarnings("ignore")
def test_forged_files_of_a_grid_agent_are_refused_or_harmless(tmp_path):
    path = tmp_path / "agent.npz"
    grid = saved_box(path)
    for _, content in forging.forgeries(path):
        (tmp_path / "forged").write_bytes(content)
        loaded, _ = forging.load(tmp_path / "forged", grid=grid)
        if loaded is not None:
            forging.use(loaded)


def test_a_grid_agent_that_learns_while_it_is_saved_is_saved_whole(tmp_path):
    path = tmp_path / "agent.npz"
    grid = saved_box(path)
    agent, stop = GridAgent.load(path, grid), threading.Event()

    def learn():
        while not stop.is_set():
            agent.warm_start(np.full((1, grid.horizon, 1), 0.1))

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(100):
            agent.save(path)
            counts = GridAgent.load(path, grid).counts.sum(axis=1)
            assert np.ptp(counts) < 1e-6  # of every step as many, never half of an episode
    finally:
        stop.set()
        thread.join()


def test_what_can_only_overflow_is_refused():
    with pytest.raises(ValueError, match=r"reward is -1e\+300 at .*, step 0; it must be a finite number within ±"):
        Grid(lambda s, a: s, lambda s, a: -1e300 + 0 * s[:, 0], 2, 0, 1, 3, [0.0]).plan([0.1])
    with pytest.raises(
        ValueError, match="1000000000 steps of 3 points are more than 268435456 together; state a shorter"
    ):
        Grid(lambda s, a: s, lambda s, a: 0.0, 10**9, 0, 1, 3, [0.0])
    far = Grid(
        lambda s, a: s + 1e90, lambda s, a: 0.0, 2, 0, 1, 3, [0.0], landing=lambda z: 0.0, disturbance_range=(0, 1)
    )
    with pytest.raises(
        ValueError, match="f \\+ W reaches over .* points in each of 2 steps; check f and disturbance_range"
    ):
        far.plan([0.1])


def test_lipschitz_constants_are_estimated():
    # |x² + u²| is as steep as 2 * 4 less half a cell on either side; f as 1; the values of a plan less than the bound.
    grid = regulator(81)
    found = grid.lipschitz()
    assert found.f == pytest.approx(1)
    assert found.reward == pytest.approx(7.9)
    assert found.value[-2:].tolist() == pytest.approx([7.9, 0])
    seen = grid.lipschitz(grid.plan([[-0.1], [0.1]])).value
    assert (seen <= found.value + 1e-9).all()
    assert seen[0] > seen[-2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": [0] * 5, "high": [1] * 5}, "5 axes; at most 4"),
        ({"low": 1, "high": 0}, "axis 0 goes from 1 to 0"),
        ({"points": 1}, "points is 1"),
        ({"points": [3, 3]}, "points has 2 numbers"),
        ({"boundary": "wall"}, "unknown boundary 'wall'"),
        ({"boundary": ["clip", "clip"]}, "boundary has 2 entries"),
        ({"actions": []}, "actions has shape"),
        ({"f": 3}, "f is 3; give a function"),
        ({"landing": lambda z: z[:, 0]}, "landing needs disturbance_range"),
        ({"disturbance_range": (1, 0)}, "low must not exceed high"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Grid(**{"f": lambda s, a: s, "reward": lambda s, a: s[:, 0], "horizon": 2, "low": 0, "high": 1, "points": 3,
                "actions": [0.0], **change})  # fmt: skip


def test_functions_that_answer_for_one_row_only_are_told():
    bad = Grid(lambda s, a: s, lambda s, a: max(s, a), 1, 0, 1, 3, [0.0])
    with pytest.raises(TypeError, match="answers for all rows at once"):
        bad.plan([[0.0]])
    short = Grid(lambda s, a: s[:2], lambda s, a: 0.0, 1, 0, 1, 3, [0.0])
    with pytest.raises(ValueError, match="f returned shape"):
        short.plan([[0.0]])
    stuck = Grid(lambda s, a: s, lambda s, a: 0.0, 1, 0, 1, 3, [0.0], allowed=lambda s, a: s[:, 0] < 0.5)
    with pytest.raises(ValueError, match="has no allowed action"):
        stuck.plan([[0.0]])


def test_a_box_of_actions_is_a_lattice():
    assert lattice([-1, 0], [1, 4], [3, 2]).tolist() == [[-1, 0], [-1, 4], [0, 0], [0, 4], [1, 0], [1, 4]]


def test_functions_that_sum_over_all_states_are_told():
    with pytest.raises(ValueError, match="reward is .* alone and .* among other states"):
        Grid(lambda s, a: s, lambda s, a: -np.sum(s**2), 1, 0, 1, 3, [0.0]).plan([0.0])
    with pytest.raises(ValueError, match="f is .* alone and .* among other states"):
        Grid(lambda s, a: s[0] + a, lambda s, a: 0.0, 1, 0, 1, 3, [0.0]).plan([0.0])
    with pytest.raises(ValueError, match=r"reward is nan at \[0.5\], \[0.\], step 0; it must be a finite number"):
        Grid(lambda s, a: s, lambda s, a: np.where(s == 0.5, np.nan, s), 1, 0, 1, 3, [0.0]).plan([0.0])


def test_functions_may_work_in_place():
    def f(s, a):
        s += a
        return s

    grid = Grid(f, lambda s, a: s[:, 0], 2, 0, 2, 3, [0.0, 1.0], disturbance_range=(0, 1))
    np.testing.assert_allclose(grid.plan([0.5]).v, [[1.5, 3.0, 4.0], [0, 1, 2], [0, 0, 0]])


def test_samples_out_of_range_or_none_at_all_are_refused():
    grid = regulator(11, disturbance_range=(-0.5, 0.5))
    with pytest.raises(ValueError, match="declare a wider disturbance_range"):
        grid.plan([0.6])
    with pytest.raises(ValueError, match="nothing to plan with"):
        grid.plan(np.zeros((0, 1)))
    with pytest.raises(ValueError, match="nothing to plan with"):
        grid.plan([0.1, 0.2], [0, 0])
    with pytest.raises(ValueError, match="is outside the box"):
        grid.plan([0.1]).value(0, [5.0])
    with pytest.raises(ValueError, match="step h is 9"):
        grid.plan([0.1]).value(9, [0.0])


def test_a_strict_box_is_never_left():
    with pytest.raises(ValueError, match="may leave the box along axis 0"):
        regulator(11, boundary="strict", disturbance_range=(-0.5, 0.5)).plan([0.1])
    Grid(lambda s, a: s / 2, lambda s, a: 0.0, 1, 0, 1, 3, [0.0], "strict", disturbance_range=(0, 0.5)).plan([0.1])


def test_stopping_in_the_middle_of_an_episode_is_never_having_stopped(tmp_path):
    grid = regulator(21, horizon=4, disturbance_range=(-0.6, 0.6))
    rng = np.random.default_rng(0)

    def go(agent, stop):
        acted, s = [], np.array([1.0])
        for k in range(6):
            for h in range(4):
                if (k, h) == stop:
                    agent.save(tmp_path / "agent.npz")
                    agent = GridAgent.load(tmp_path / "agent.npz", grid)
                a = agent.act(h, s)
                acted.append(a)
                after = grid.meet_boundary(grid.f(h, s[None], grid.actions[a][None]) + noise[k, h])[0]
                agent.observe(h, s, a, after, disturbance=[noise[k, h]])
                s = after
        return acted

    noise = rng.uniform(-0.5, 0.5, (6, 4))
    assert go(GridAgent(grid), (2, 2)) == go(GridAgent(grid), None) == go(GridAgent(grid), (0, 1))


def test_the_environment_of_a_grid_refuses_what_is_not_allowed():
    grid = regulator(11, allowed=lambda s, a: a[:, 0] <= 0, disturbance_range=(-0.5, 0.5))
    env = gymnasium.make("ucbf/Grid-v0", grid=grid, noise=lambda rng, h: [0.7 * h], start=[0.0])
    _, info = env.reset(seed=0)
    assert info["action_mask"].sum() == (grid.actions <= 0).sum()
    with pytest.raises(ValueError, match="is not allowed in state"):
        env.step(grid.n_actions - 1)
    env.step(0)
    with pytest.raises(ValueError, match="declare a wider disturbance_range"):
        env.step(0)
    with pytest.raises(TypeError, match="give a ucbf.Grid"):
        gymnasium.make("ucbf/Grid-v0", grid=3, noise=wind)


def test_an_environment_that_goes_on_in_one_array_teaches_the_same():
    class Same(Plane):
        def step(self, u):
            before = self.s
            after, *rest = super().step(u)
            before[:] = after
            self.s = before
            return before, *rest

    agents = [GridAgent(craft(), stationary=True) for _ in range(2)]
    for agent, env in zip(agents, (Plane(), Same()), strict=True):
        ucbf.learn(agent, env, episodes=2, seed=0)
    np.testing.assert_array_equal(agents[0].counts, agents[1].counts)


def test_the_cell_beyond_the_last_point_of_a_turned_axis_is_there():
    # From 6.2, close to a whole turn, going on by 0.25 lands at 6.45, past it: cos 6.45 = 0.986 < cos 6.2 = 0.997.
    grid = Grid(lambda s, a: s + a, lambda s, a: 0.0, 1, 0, 2 * np.pi, 12, [0.0, 0.25], "wrap",
                landing=lambda z: np.cos(z[:, 0]), disturbance_range=(-0.1, 0.1))  # fmt: skip
    assert grid.plan([0.0]).act(0, [6.2]) == 0


def test_a_right_f_is_not_accused_at_an_edge():
    agent = GridAgent(Grid(lambda s, a: s + a, lambda s, a: 0.0, 1, 0, 1, 11, [0.5], disturbance_range=(-0.1, 0.1)))
    with pytest.warns(ucbf.CensoredWarning):
        agent.observe(0, [0.9], 0, [1.0])  # f = 1.4, and the edge says only that W was at least -0.4
    assert agent.outside == 0


def test_a_measured_disturbance_that_contradicts_the_transition_is_refused():
    agent = GridAgent(Grid(lambda s, a: s + a, lambda s, a: 0.0, 1, 0, 1, 11, [0.5], disturbance_range=(-0.4, 0.4)))
    agent.observe(0, [0.2], 0, [0.75], disturbance=[0.06])  # within half a spacing of 0.05, which the transition says
    values, pmf = agent.law
    assert pmf[0] @ values[:, 0] == pytest.approx(0.05)
    with pytest.raises(ValueError, match=r"the disturbance \[-0.1\] leads to \[0.6\], not to the next state \[0.75\]"):
        agent.observe(0, [0.2], 0, [0.75], disturbance=[-0.1])
    agent.observe(0, [0.6], 0, [1.0], disturbance=[0.3])  # beyond the edge
    with pytest.raises(ValueError, match="not to the next state"):
        agent.observe(0, [0.6], 0, [1.0], disturbance=[-0.3])
    ring = GridAgent(
        Grid(lambda s, a: s + a, lambda s, a: 0.0, 1, 0, 1, 10, [0.5], "wrap", disturbance_range=(-0.4, 0.4))
    )
    ring.observe(0, [0.6], 0, [0.98], disturbance=[-0.1])  # 1.0 is 0.0, and 0.98 is near to both
    with pytest.raises(ValueError, match="not to the next state"):
        ring.observe(0, [0.6], 0, [0.9], disturbance=[-0.1])


def test_lipschitz_constants_of_landing_and_of_a_turn():
    grid = Grid(
        lambda s, a: s, lambda s, a: 0.0, 1, 0, 1, 11, [0.0], landing=lambda z: 3 * z[:, 0], disturbance_range=(-2, 2)
    )
    assert grid.lipschitz().value[0] == pytest.approx(3)
    saw = Grid(lambda s, a: s, lambda s, a: s[:, 0], 1, 0, 1, 10, [0.0], "wrap")
    assert saw.lipschitz().reward == pytest.approx(9)  # from 0.9 back to 0

"""Boxes: agreement with the integers, with Riccati, and with the truth when learning."""

import itertools
import threading

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forging
import ucbf
import ucbf.envs  # registers the environments
from instances import riccati
from reference import literal_box_plan
from ucbf.kernels import backward
from ucbf.kernels.models import as_told
from ucbf.lipschitz import constants_of_box
from ucbf.planning import occurring
from ucbf.spaces import lattice


def box(f, reward, horizon, low, high, points, actions, boundary="clip", **more):
    """A System whose functions get actions [N, m], also where there is one part."""
    choices = np.asarray(actions, float)
    choices = choices[:, None] if choices.ndim == 1 and choices.size else choices
    return ucbf.System(f, reward, horizon, boundary, low=low, high=high, points=points, actions=choices, **more)


def planned(grid, samples, pmf=None):
    """The best plan if W is one of these, [n, d], all alike."""
    law = ucbf.Disturbance(pmf, values=np.reshape(samples, (-1, grid.space.n_axes)))
    return ucbf.optimal(ucbf.World(grid, law))


def regulator(points, horizon=8, **more):
    """x' = x + u + w, cost x² + u²; as many actions as points, at the same spacing."""
    options = {"low": -4, "high": 4, "actions": np.linspace(-3, 3, (points - 1) * 3 // 4 + 1), **more}
    return box(lambda x, u: x + u, lambda x, u: -(x**2 + u**2), horizon, points=points, **options)


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
        errors.append(np.abs(planned(grid, noise).value_at(0, x) - truth).max())
        spacing.append(grid.space.spacing[0])
    order = np.polyfit(np.log(spacing), np.log(errors), 1)[0]
    assert 1.9 < order < 2.3
    assert errors[-1] < 0.003


def test_two_steps_by_hand():
    # Points 0, 1, 2; stay or go up one; reward of the step is the state. W = 0.5: from 0, staying, the next state is
    # 0.5, worth (0 + 1)/2 at the last step.
    grid = box(lambda s, a: s + a, lambda s, a: s[:, 0], 2, 0, 2, 3, [0.0, 1.0], disturbance_range=(0, 1))
    plan = planned(grid, [[0.5]])
    np.testing.assert_allclose(plan.v, [[1.5, 3.0, 4.0], [0, 1, 2], [0, 0, 0]])
    assert plan.policy[0].tolist() == [1, 1, 0]  # at the top both lead to the edge
    # From 0.25: f is 0.25 or 1.25, between after-states 0, 1 and 2, which 0.5, 1.5 and (the edge) 2 follow.
    assert plan.q_at(0, [[0.0], [0.25]]).tolist() == [[0.5, 1.5], [0.25 + 0.75, 0.25 + 1.625]]
    assert plan.value_at(0, [0.5]) == 2.25
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
    grid = box(
        lambda s, a: s + moves[a[:, 0].astype(int)][:, None],
        lambda s, a: paid[np.rint(s[:, 0]).astype(int), a[:, 0].astype(int)],
        H, 0, S if boundary == "wrap" else S - 1, S, np.arange(A), boundary,
        landing=(lambda z: cost[np.rint(z[:, 0]).astype(int) + 20]) if lands else None,
        disturbance_range=(-2, 1),
    )  # fmt: skip
    found = planned(grid, np.arange(-2.0, 2), law)
    np.testing.assert_allclose(found.v, plan.v, atol=1e-12)
    np.testing.assert_allclose(found.q, plan.q, atol=1e-12)
    np.testing.assert_allclose(found.q_at(1, np.arange(S)[:, None]), plan.q[1], atol=1e-12)
    whole = ucbf.System(
        lambda s, a: s + moves[a][:, None], lambda s, a: paid[s[:, 0], a], H, boundary, low=[0], high=[S - 1],
        n_actions=A, landing=(lambda z: cost[z[:, 0] + 20]) if lands else None, disturbance_range=(-2, 1),
    )  # fmt: skip
    same = planned(whole, np.arange(-2, 2), law)
    np.testing.assert_array_equal(same.v, plan.v)
    np.testing.assert_array_equal(same.policy, plan.policy)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("boundary", [("clip", "wrap"), ("wrap", "clip"), ("clip", "clip")])
def test_a_plan_in_two_dimensions_is_the_literal_one(boundary, seed):
    rng = np.random.default_rng(seed)
    turn, cost = rng.normal(size=(2, 2)), rng.normal(size=4)
    # What lands must not depend on how often an axis has turned: the lattice beyond a turn is the lattice again.
    still = [k for k, rule in enumerate(boundary) if rule == "clip"]
    grid = box(
        lambda h, s, a: s @ turn * (0.3 + 0.1 * h) + a,
        lambda s, a: np.sin(s @ cost[:2]) - a[:, 0] ** 2,
        2, [0, -1], [1, 1], [4, 3], [[0.1, 0.2], [-0.3, 0.4]], boundary,
        landing=lambda h, z: (h + 1) * np.abs(z[:, still]).sum(axis=1),
        terminal=lambda s: np.cos(s @ cost[2:]),
        disturbance_range=([-0.2, -0.5], [0.4, 0.3]), discount=0.9,
    )  # fmt: skip
    samples = rng.uniform([-0.2, -0.5], [0.4, 0.3], (5, 2))
    np.testing.assert_allclose(planned(grid, samples).v, literal_box_plan(grid, samples), atol=1e-10)


def test_interpreted_and_compiled_plans_are_the_same_bits():
    grid = craft(9, 3, horizon=2)
    law = ucbf.Disturbance(values=[[0.01, 0.2], [0.0, -0.1]])
    m, plan = grid.mechanics, ucbf.optimal(ucbf.World(grid, law))
    value, ahead, policy = np.empty_like(plan.v), np.empty_like(plan.ahead), np.empty_like(plan.policy)
    value[-1] = m.terminal
    room = np.empty(len(m.next_state))
    backward.plan.py_func(m, as_told(m), *occurring(grid, law), value, ahead, policy, room)
    np.testing.assert_array_equal(value, plan.v)
    np.testing.assert_array_equal(policy, plan.policy)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_linear_values_are_exact_in_every_dimension(d):
    # f halves the state and the reward is linear: so are all values, and interpolation does not err.
    weights = np.arange(1.0, d + 1)
    grid = box(lambda s, a: s / 2, lambda s, a: s @ weights, 3, [-1] * d, [1] * d, 9 if d < 5 else 5, [0.0],
                disturbance_range=(-0.2, 0.2))  # fmt: skip
    w = np.random.default_rng(0).uniform(-0.2, 0.2, (50, d))
    plan = planned(grid, w)
    s = np.random.default_rng(1).uniform(-1, 1, (20, d))
    mean = w.mean(axis=0)
    expected = (s + (s / 2 + mean) + (s / 4 + mean / 2 + mean)) @ weights
    np.testing.assert_allclose(plan.value_at(0, s), expected, atol=1e-12)
    np.testing.assert_allclose(plan.q_at(0, s)[:, 0], expected, atol=1e-12)


@given(st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(-1, 1)), min_size=1, max_size=20))
def test_sharing_out_keeps_every_mean(samples):
    grid = box(lambda s, a: s, lambda s, a: 0.0, 1, [0, 0], [1, 2], [7, 5], [0.0],
                disturbance_range=([-0.5, -1], [0.5, 1]))  # fmt: skip
    j, share = grid.bins.spread(samples)
    shares = np.bincount(j.ravel(), share.ravel(), minlength=grid.bins.n)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(len(samples))
    np.testing.assert_allclose(shares @ grid.bins.values, np.sum(samples, axis=0), atol=1e-9)


def test_a_turned_axis_goes_on_at_the_other_side():
    grid = box(lambda s, a: s + a, lambda s, a: np.cos(s[:, 0]), 2, 0, 2 * np.pi, 60, [-0.3, 0.3], "wrap")
    plan = planned(grid, [[0.0]])
    assert plan.value_at(0, [0.0]) == pytest.approx(plan.value_at(0, [2 * np.pi]))
    assert plan.act(0, [6.0]) == 1
    agent = ucbf.UCBVIf(grid)
    agent.observe(0, [6.1], 1, [0.1])  # f = 6.4: the shorter way round
    assert agent.law.mean(0)[0] == pytest.approx(0.1 + 2 * np.pi - 6.4)


def craft(points=41, actions=9, horizon=12):
    """A double integrator that wind pushes."""
    dt = 0.25

    def f(s, u):
        return np.stack([s[:, 0] + dt * s[:, 1] + dt**2 / 2 * u[:, 0], s[:, 1] + dt * u[:, 0]], axis=1)

    def reward(s, u):
        return -(s[:, 0] ** 2 + 0.1 * s[:, 1] ** 2 + 0.1 * u[:, 0] ** 2)

    return box(f, reward, horizon, [-3, -3], [3, 3], points, np.linspace(-2, 2, actions),
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
    best = planned(fine, law).rollout(starts, gusts).mean()
    agent = ucbf.UCBVIf(coarse)
    about = (np.abs(coarse.space.points) <= [2, 0.5]).all(axis=1)
    world = ucbf.World(coarse, ucbf.Disturbance(values=law), about / about.sum())
    ucbf.train(agent, gymnasium.make("ucbf/World-v0", world=world), episodes=30, seed=1)
    learned = agent.plan.rollout(starts, gusts).mean()
    assert learned == pytest.approx(best, rel=0.02)
    nothing = ucbf.UCBVIf(coarse).plan.rollout(starts, gusts).mean()
    assert nothing < best * 1.03  # knowing nothing of the wind costs more
    again = ucbf.UCBVIf(coarse)
    run = ucbf.simulate(again, world, episodes=30, seed=1)
    assert run.gap[-1] < 0.05 * run.gap[0]
    assert (run.gap > -1e-9).all()
    assert again.plan.rollout(starts, gusts).mean() == pytest.approx(best, rel=0.02)


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
        a = np.abs(grid.actions - u).argmin(keepdims=True)
        after, reward = grid.advance(0, self.s[None], a, wind(self.np_random))
        reward, self.s = reward[0], after[0].astype(np.float32)
        return self.s, float(reward), False, False, {}


def test_an_environment_with_boxes_is_learned_and_what_does_not_fit_is_refused():
    agent = ucbf.UCBVIf(craft(), stationary=True)
    run = ucbf.train(agent, Plane(), episodes=3, seed=0)
    assert run.reward.shape == (3,)
    with pytest.raises(AttributeError, match="gap is not known of this run"):
        run.gap  # noqa: B018
    assert agent.learner.law.counts.sum() == pytest.approx(3 * 12)
    bold = box(lambda s, u: s, lambda s, u: 0.0, 2, [-3, -3], [3, 3], 5, [[9.0]])
    with pytest.raises(ValueError, match="is not in the environment's action_space"):
        ucbf.train(ucbf.UCBVIf(bold), Plane(), 1)
    with pytest.raises(ValueError, match="the system has states of shape"):
        ucbf.train(ucbf.UCBVIf(regulator(11)), Plane(), 1)


def test_an_edge_and_a_residual_out_of_range_are_told():
    agent = ucbf.UCBVIf(regulator(41, disturbance_range=(-0.5, 0.5)))
    with pytest.warns(ucbf.CensoredWarning, match="is a clipped boundary of axis 0: W >= "):
        agent.observe(0, [3.9], 15, [4.0])
    with pytest.warns(ucbf.ModelWarning, match="the residual is"):
        agent.observe(0, [0.0], 15, [2.0])
    agent.observe(0, [3.9], 15, [4.0], disturbance=[0.3])
    assert agent.learner.law.counts.sum() == 2


def test_saving_and_going_on(tmp_path):
    grid = craft(11, 3)
    agent = ucbf.UCBVIf(grid, stationary=True)
    rng = np.random.default_rng(0)
    agent.warm_start([[wind(rng) for _ in range(12)] for _ in range(5)])
    agent.save(tmp_path / "agent.npz")
    again = ucbf.load(tmp_path / "agent.npz", system=craft(11, 3))
    np.testing.assert_array_equal(again.policy, agent.policy)
    with pytest.raises(
        ValueError,
        match="its system has continuous axes, a boundary of its own or a late_landing",
    ):
        ucbf.load(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match=r"its points is \[11, 11\], that of the system given is \[13, 13\]"):
        ucbf.load(tmp_path / "agent.npz", system=craft(13, 3))


def saved_box(path, **more):
    """A saved agent that has seen something, and its grid."""
    grid = regulator(11, disturbance_range=(-0.5, 0.5), **more)
    agent = ucbf.UCBVIf(grid)
    agent.warm_start(np.full((3, grid.horizon, 1), 0.2))
    agent.save(path)
    return grid


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("state.law.counts", np.nan, "it holds a law.counts that is not a number"),
        ("state.law.counts", -1.0, r"its law.counts\[0, 0\] is -1.0; it must be 0 to 9007199254740992"),
        ("state.law.law", 2.0, r"its law.law\[0, 0\] is 2.0; it must be 0"),
        ("state.watch.unused", -1, r"its watch.unused\[0\] is -1"),
    ],
)
def test_the_arrays_of_an_agent_in_a_box_are_checked(name, value, message, tmp_path):
    path = tmp_path / "agent.npz"
    grid = saved_box(path)
    header, arrays = forging.contents(path)
    arrays[name].fill(value)
    path.write_bytes(forging.sealed(header, arrays))
    with pytest.raises(ValueError, match=f"agent.npz does not hold this agent: {message}.*; save the agent again"):
        ucbf.load(path, system=grid)


def test_a_file_of_another_box_is_refused_with_the_difference(tmp_path):
    path = tmp_path / "agent.npz"
    saved_box(path, horizon=4)
    for other, message in [
        ({"horizon": 5}, "its horizon is 4, that of the system given is 5"),
        ({"boundary": "wrap"}, "its boundary is 'clip', that of the system given is 'wrap'"),
        ({"points": 21}, r"its points is \[11\], that of the system given is \[21\]"),
        ({"disturbance_range": (-0.5, 3)}, "its disturbance_range is "),
    ]:
        arguments = {"points": 11, "horizon": 4, "disturbance_range": (-0.5, 0.5), **other}
        with pytest.raises(ValueError, match=message):
            ucbf.load(path, system=regulator(arguments.pop("points"), **arguments))


@pytest.mark.parametrize(
    ("name", "other"), [("f", {"f": lambda s, a: s + a + 0.25}), ("reward", {"reward": lambda s, a: -(s[..., 0] ** 4)})]
)
def test_a_box_with_other_functions_is_refused(name, other, tmp_path):
    def line(f=lambda s, a: s + a, reward=lambda s, a: -(s[..., 0] ** 2)):
        return ucbf.System(
            f, reward, 3, "clip", low=[-1.0], high=[1.0], points=[9], actions=[[-0.25], [0.0], [0.25]],
            disturbance_range=([-0.5], [0.5]),
        )  # fmt: skip

    ucbf.UCBVIf(line()).save(tmp_path / "agent.npz")
    ucbf.load(tmp_path / "agent.npz", system=line())
    with pytest.raises(ValueError, match=f"its {name} is not that of the system given; state the system as it was"):
        ucbf.load(tmp_path / "agent.npz", system=line(**other))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_forged_files_of_an_agent_in_a_box_are_refused_or_harmless(every, tmp_path):
    path = tmp_path / "agent.npz"
    grid = saved_box(path)
    for _, content in itertools.islice(forging.forgeries(path), 0, None, every):
        (tmp_path / "forged").write_bytes(content)
        loaded, _ = forging.load(tmp_path / "forged", system=grid)
        if loaded is not None:
            forging.use(loaded)


def test_an_agent_in_a_box_that_learns_while_it_is_saved_is_saved_whole(tmp_path):
    path = tmp_path / "agent.npz"
    grid = saved_box(path)
    agent, stop = ucbf.load(path, system=grid), threading.Event()

    def learn():
        while not stop.is_set():
            agent.warm_start(np.full((1, grid.horizon, 1), 0.1))

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(100):
            agent.save(path)
            counts = ucbf.load(path, system=grid).learner.law.counts.sum(axis=1)
            assert np.ptp(counts) < 1e-6  # of every step as many, never half of an episode
    finally:
        stop.set()
        thread.join()


def test_what_can_only_overflow_is_refused():
    with pytest.raises(
        ValueError, match=r"reward at step 0, state \[0.\], action 0 is -1e\+300; it must stay within ±"
    ):
        box(lambda s, a: s, lambda s, a: -1e300 + 0 * s[:, 0], 2, 0, 1, 3, [0.0])
    with pytest.raises(
        ValueError, match="1000000000 steps of 3 points are more than 268435456 together; state a shorter"
    ):
        box(lambda s, a: s, lambda s, a: 0.0, 10**9, 0, 1, 3, [0.0])
    for far in (1e90, 1e12):
        with pytest.raises(ValueError, match="must stay within|check f and disturbance_range"):
            box(lambda s, a, far=far: s + far * (s > 0.5), lambda s, a: 0.0, 2, 0, 1, 3, [0.0], landing=lambda z: 0.0,
                disturbance_range=(0, 1))  # fmt: skip


def test_lipschitz_constants_are_estimated():
    # |x² + u²| is as steep as 2 * 4 less half a cell on either side; f as 1; the values of a plan less than the bound.
    grid = regulator(81)
    found = constants_of_box(grid)
    assert found.f == pytest.approx(1)
    assert found.reward == pytest.approx(7.9)
    assert found.value[-2:].tolist() == pytest.approx([7.9, 0])
    seen = constants_of_box(grid, planned(grid, [[-0.1], [0.1]])).value
    assert (seen <= found.value + 1e-9).all()
    assert seen[0] > seen[-2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": [0] * 20, "high": [1] * 20, "points": 9}, "a lattice of 9 x 9 .* points is too large"),
        ({"boundary": None}, "boundary is not given; say what happens to f"),
        ({"model_error": 2}, "in a box f must be exact"),
        ({"high": None}, "a box needs both"),
        ({"n_states": 3}, "leave out n_states"),
        ({"points": None, "high": 0.5}, "a whole axis begins and ends at whole numbers"),
        ({"low": 1, "high": 0}, "axis 0 goes from 1 to 0"),
        ({"points": 1}, "points is 1"),
        ({"points": [3, 3]}, "points has 2 numbers"),
        ({"boundary": "wall"}, "unknown boundary 'wall'"),
        ({"boundary": ["clip", "clip"]}, "boundary has 2 entries"),
        ({"actions": []}, "actions has shape"),
        ({"f": 3}, "f is 3; on continuous axes it must be a function"),
        ({"landing": lambda z: z[:, 0]}, "landing needs disturbance_range"),
        ({"disturbance_range": (1, 0)}, "low must not exceed high"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        box(**{"f": lambda s, a: s, "reward": lambda s, a: s[:, 0], "horizon": 2, "low": 0, "high": 1, "points": 3,
               "actions": [0.0], **change})  # fmt: skip


def test_functions_that_answer_for_one_row_only_are_told():
    with pytest.raises(TypeError, match="answers for all rows at once"):
        box(lambda s, a: s, lambda s, a: max(s, a), 1, 0, 1, 3, [0.0])
    with pytest.raises(ValueError, match="f, called with arrays of shape .*, returned shape"):
        box(lambda s, a: s[:2], lambda s, a: 0.0, 1, 0, 1, 3, [0.0])
    with pytest.raises(ValueError, match=r"state \[0.5\] has no allowed action"):
        box(lambda s, a: s, lambda s, a: 0.0, 1, 0, 1, 3, [0.0], allowed=lambda s, a: s[:, 0] < 0.5)


def test_a_box_of_actions_is_a_lattice():
    assert lattice([-1, 0], [1, 4], [3, 2]).tolist() == [[-1, 0], [-1, 4], [0, 0], [0, 4], [1, 0], [1, 4]]


def test_functions_that_sum_over_all_states_are_told():
    with pytest.raises(ValueError, match="reward is .* alone and .* among others"):
        box(lambda s, a: s, lambda s, a: -np.sum(s**2), 1, 0, 1, 3, [0.0])
    with pytest.raises(ValueError, match="f is .* alone and .* among others"):
        box(lambda s, a: s[0] + a, lambda s, a: 0.0, 1, 0, 1, 3, [0.0])
    with pytest.raises(
        ValueError, match=r"reward at step 0, state \[0.5\], action 0 is nan; every entry must be a finite"
    ):
        box(lambda s, a: s, lambda s, a: np.where(s == 0.5, np.nan, s), 1, 0, 1, 3, [0.0])


def test_functions_may_work_in_place():
    def f(s, a):
        s += a
        return s

    grid = box(f, lambda s, a: s[:, 0], 2, 0, 2, 3, [0.0, 1.0], disturbance_range=(0, 1))
    np.testing.assert_allclose(planned(grid, [0.5]).v, [[1.5, 3.0, 4.0], [0, 1, 2], [0, 0, 0]])


def test_samples_out_of_range_or_none_at_all_are_refused():
    grid = regulator(11, disturbance_range=(-0.5, 0.5))
    with pytest.raises(ValueError, match="declare a wider disturbance_range"):
        planned(grid, [0.6])
    with pytest.raises(ValueError, match="values has shape"):
        planned(grid, np.zeros((0, 1)))
    with pytest.raises(ValueError, match=r"state \[5.\] is outside"):
        planned(grid, [0.1]).value_at(0, [5.0])
    with pytest.raises(ValueError, match="step h is 9"):
        planned(grid, [0.1]).value_at(9, [0.0])


def test_a_strict_box_is_never_left():
    with pytest.raises(ValueError, match="may leave the box along axis 0"):
        regulator(11, boundary="strict", disturbance_range=(-0.5, 0.5))
    planned(box(lambda s, a: s / 2, lambda s, a: 0.0, 1, 0, 1, 3, [0.0], "strict", disturbance_range=(0, 0.5)), [0.1])


def test_stopping_in_the_middle_of_an_episode_is_never_having_stopped(tmp_path):
    grid = regulator(21, horizon=4, disturbance_range=(-0.6, 0.6))
    rng = np.random.default_rng(0)

    def go(agent, stop):
        acted, s = [], np.array([1.0])
        for k in range(6):
            for h in range(4):
                if (k, h) == stop:
                    agent.save(tmp_path / "agent.npz")
                    agent = ucbf.load(tmp_path / "agent.npz", system=grid)
                a = agent.act(h, s)
                acted.append(a)
                after = grid.advance(h, s[None], np.array([a]), noise[k, h])[0][0]
                agent.observe(h, s, a, after, disturbance=[noise[k, h]])
                s = after
        return acted

    noise = rng.uniform(-0.5, 0.5, (6, 4))
    assert go(ucbf.UCBVIf(grid), (2, 2)) == go(ucbf.UCBVIf(grid), None) == go(ucbf.UCBVIf(grid), (0, 1))


def test_the_environment_of_a_box_refuses_what_is_not_allowed():
    grid = regulator(11, allowed=lambda s, a: a[:, 0] <= 0, disturbance_range=(-0.5, 0.5))
    world = ucbf.World(grid, ucbf.Disturbance(values=[[0.2], [-0.3]]), start=[0.1])
    env = gymnasium.make("ucbf/World-v0", world=world)
    first, info = env.reset(seed=0)
    assert first.tolist() == [0.1]
    assert info["action_mask"].sum() == (grid.actions <= 0).sum()
    with pytest.raises(ValueError, match="is not allowed in state"):
        env.step(grid.n_actions - 1)
    env.step(0)
    assert env.reset(options={"state": [0.3]})[0].tolist() == [0.3]
    many = gymnasium.make_vec("ucbf/World-v0", num_envs=3, world=world)
    states, info = many.reset(seed=0)
    assert states.shape == (3, 1)
    _, _, *_, info = many.step(np.zeros(3, int))
    assert info["disturbance"].shape == (3, 1)


def test_an_environment_that_goes_on_in_one_array_teaches_the_same():
    class Same(Plane):
        def step(self, u):
            before = self.s
            after, *rest = super().step(u)
            before[:] = after
            self.s = before
            return before, *rest

    agents = [ucbf.UCBVIf(craft(), stationary=True) for _ in range(2)]
    for agent, env in zip(agents, (Plane(), Same()), strict=True):
        ucbf.train(agent, env, episodes=2, seed=0)
    np.testing.assert_array_equal(agents[0].learner.law.counts, agents[1].learner.law.counts)


def test_the_cell_beyond_the_last_point_of_a_turned_axis_is_there():
    # From 6.2, close to a whole turn, going on by 0.25 lands at 6.45, past it: cos 6.45 = 0.986 < cos 6.2 = 0.997.
    grid = box(lambda s, a: s + a, lambda s, a: 0.0, 1, 0, 2 * np.pi, 12, [0.0, 0.25], "wrap",
                landing=lambda z: np.cos(z[:, 0]), disturbance_range=(-0.1, 0.1))  # fmt: skip
    assert planned(grid, [0.0]).act(0, [6.2]) == 0


def test_a_right_f_is_not_accused_at_an_edge():
    agent = ucbf.UCBVIf(box(lambda s, a: s + a, lambda s, a: 0.0, 1, 0, 1, 11, [0.5], disturbance_range=(-0.1, 0.1)))
    with pytest.warns(ucbf.CensoredWarning):
        agent.observe(0, [0.9], 0, [1.0])  # f = 1.4, and the edge says only that W was at least -0.4
    assert agent.learner.watch.unused[0] == 0


def test_a_measured_disturbance_that_contradicts_the_transition_is_refused():
    agent = ucbf.UCBVIf(box(lambda s, a: s + a, lambda s, a: 0.0, 1, 0, 1, 11, [0.5], disturbance_range=(-0.4, 0.4)))
    agent.observe(0, [0.2], 0, [0.75], disturbance=[0.06])  # within half a spacing of 0.05, which the transition says
    assert agent.law.mean()[0] == pytest.approx(0.05)
    with pytest.raises(ValueError, match=r"the disturbance \[-0.1\] leads to \[0.6\], not to the next state \[0.75\]"):
        agent.observe(0, [0.2], 0, [0.75], disturbance=[-0.1])
    agent.observe(0, [0.6], 0, [1.0], disturbance=[0.3])  # beyond the edge
    with pytest.raises(ValueError, match="not to the next state"):
        agent.observe(0, [0.6], 0, [1.0], disturbance=[-0.3])
    ring = ucbf.UCBVIf(
        box(lambda s, a: s + a, lambda s, a: 0.0, 1, 0, 1, 10, [0.5], "wrap", disturbance_range=(-0.4, 0.4))
    )
    ring.observe(0, [0.6], 0, [0.98], disturbance=[-0.1])  # 1.0 is 0.0, and 0.98 is near to both
    with pytest.raises(ValueError, match="not to the next state"):
        ring.observe(0, [0.6], 0, [0.9], disturbance=[-0.1])


def test_lipschitz_constants_of_landing_and_of_a_turn():
    grid = box(
        lambda s, a: s, lambda s, a: 0.0, 1, 0, 1, 11, [0.0], landing=lambda z: 3 * z[:, 0], disturbance_range=(-2, 2)
    )
    assert constants_of_box(grid).value[0] == pytest.approx(3)
    saw = box(lambda s, a: s, lambda s, a: s[:, 0], 1, 0, 1, 10, [0.0], "wrap")
    assert constants_of_box(saw).reward == pytest.approx(9)  # from 0.9 back to 0


# -- vectors of whole numbers ------------------------------------------------------------------------------


def shelves(H=3, boundary="clip", **more):
    """Two shelves that share two deliveries; what is missing costs 4, what is left 1."""
    arguments = {
        "f": lambda s, a: s + np.stack([a, 2 - a], axis=1), "reward": lambda s, a: -1.0 * s.sum(axis=1), "horizon": H,
        "boundary": boundary, "low": [0, 0], "high": [5, 4], "actions": [0, 1, 2], "discount": 0.9,
        "landing": lambda z: -4.0 * np.maximum(-z, 0).sum(axis=1), "terminal": lambda s: -0.5 * s[:, 0],
        "disturbance_range": ([-3, -2], [0, 0]), **more,
    }  # fmt: skip
    return ucbf.System(**arguments)


DEMAND = ucbf.Disturbance([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]], values=[[-3, 0], [-1, -1], [0, -2]])


def literal_vector_plan(system, law):
    """V of a box of whole numbers, by dictionaries and loops."""
    states = [tuple(s) for s in system.space.points.tolist()]
    v = {s: float(system.terminal[i]) for i, s in enumerate(states)}
    values = []
    for h in range(system.horizon - 1, -1, -1):
        now, pmf = {}, law.pmf[h % len(law.pmf)]
        for i, s in enumerate(states):
            q = []
            for a in range(system.n_actions):
                total = system.reward[h, i, a]
                for chance, w in zip(pmf, law.values, strict=True):
                    z = system.f[h, i, a] + w
                    after = tuple(
                        int(k % n if rule == "wrap" else min(max(k, 0), n - 1))
                        for k, n, rule in zip(z, system.space.shape, system.space.rules, strict=True)
                    )
                    paid = 0 if system.landing is None else -4.0 * max(-z[0], 0) - 4.0 * max(-z[1], 0)
                    total += chance * (paid + system.discount * v[after])
                q.append(total)
            now[s] = max(q)
        v = now
        values.append([v[s] for s in states])
    return np.array(values[::-1])


@pytest.mark.parametrize(
    ("boundary", "landing"), [("clip", True), ("clip", False), (("wrap", "clip"), False), ("wrap", False)]
)
def test_a_plan_of_vectors_is_the_literal_one(boundary, landing):
    system = shelves(boundary=boundary, **({} if landing else {"landing": None}))
    plan = ucbf.optimal(ucbf.World(system, DEMAND))
    np.testing.assert_allclose(plan.v[:-1], literal_vector_plan(system, DEMAND), atol=1e-12)
    np.testing.assert_allclose(ucbf.evaluate(ucbf.World(system, DEMAND), plan.policy), plan.v, atol=1e-12)
    np.testing.assert_allclose(plan.q.max(axis=2), plan.v[:-1], atol=1e-12)
    np.testing.assert_allclose(plan.q_at(1, system.space.points), plan.q[1], atol=1e-12)


def test_two_shelves_by_hand():
    # One step from [1, 2], one delivery each (a = 1): x = [2, 3]. W = [-3, 0], [-1, -1], [0, -2] with .2, .5, .3
    # leads to [-1, 3], [1, 2], [2, 1]: landing -4, 0, 0; the end pays half the first shelf: 0, -0.5, -1, times 0.9.
    system = shelves(H=1)
    law = ucbf.Disturbance([0.2, 0.5, 0.3], values=DEMAND.values)
    q = ucbf.optimal(ucbf.World(system, law)).q
    i = system.space.place("state", [1, 2])
    assert i == 1 * 5 + 2
    assert q[0, i, 1] == pytest.approx(-3 + 0.2 * -4 + 0.9 * (0.5 * -0.5 + 0.3 * -1))


@pytest.mark.parametrize("name", ["UCBVI-f", "UCB-f", "UCB-H", "UCBVI", "greedy", "random"])
def test_agents_learn_and_go_on_with_vectors(name, tmp_path):
    world = ucbf.World(shelves(), DEMAND, start=[2, 2])
    agent = ucbf.make_agent(name, world.system)
    run = ucbf.simulate(agent, world, 60, seed=1)
    assert (run.gap > -1e-9).all()
    agent.save(tmp_path / "agent.npz")
    again = ucbf.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(again.policy, agent.policy)
    a, b = (ucbf.simulate(each, world, 20, seed=2) for each in (agent, again))
    np.testing.assert_array_equal(a.reward, b.reward)
    if name == "UCBVI-f":
        assert run.gap[-1] < 0.02 * abs(ucbf.optimal(world).v[0]).max()
        assert agent.certificate().average(world.start) >= run.gap[-1]
        np.testing.assert_allclose(agent.law.pmf.sum(axis=1), 1)


@pytest.mark.parametrize("name", ["UCBVI-f", "UCB-f", "UCB-H"])
def test_observing_vectors_step_by_step_teaches_what_simulate_does(name):
    world = ucbf.World(shelves(), DEMAND, start=[2, 2])
    compiled, asked = (ucbf.make_agent(name, world.system) for _ in range(2))
    ucbf.simulate(compiled, world, 25, seed=3)
    starts, drawn = world.draw(25, 3)
    for k in range(25):
        s = world.system.space.state(starts[k])
        for h in range(3):
            a, w = asked.act(h, s), drawn[k, h].astype(int)
            i, _ = world.system.advance(h, world.system.space.place("state", s), a, w)
            after = world.system.space.state(int(i))
            asked.observe(h, s, a, after, disturbance=w)
            s = after
    np.testing.assert_array_equal(compiled.policy, asked.policy)
    np.testing.assert_allclose(compiled.q, asked.q, atol=1e-12)


def test_a_line_and_a_box_of_one_axis_are_the_same_system():
    line = ucbf.System(
        lambda s, a: s + a, lambda s, a: -1.0 * a, 3, "clip", landing=lambda z: -np.abs(z - 3.0), n_states=8,
        n_actions=3, disturbance_range=(-2, 1),
    )  # fmt: skip
    box_of_one = ucbf.System(
        lambda s, a: s + a[:, None], lambda s, a: -1.0 * a, 3, "clip", landing=lambda z: -np.abs(z[:, 0] - 3.0),
        low=[0], high=[7], n_actions=3, disturbance_range=([-2], [1]),
    )  # fmt: skip
    pmf = [0.1, 0.4, 0.3, 0.2]
    worlds = (
        ucbf.World(line, ucbf.Disturbance(pmf, low=-2)),
        ucbf.World(box_of_one, ucbf.Disturbance(pmf, values=[[-2], [-1], [0], [1]])),
    )
    for name in ("UCBVI-f", "UCB-f", "UCB-H"):
        agents = [ucbf.make_agent(name, world.system) for world in worlds]
        runs = [ucbf.simulate(agent, world, 40, seed=0) for agent, world in zip(agents, worlds, strict=True)]
        np.testing.assert_array_equal(runs[0].gap, runs[1].gap)
        np.testing.assert_array_equal(agents[0].q, agents[1].q)
    for form in ("bernstein", "hoeffding"):
        one, other = (agent.certificate(0.1, form) for agent in map(_learned, worlds))
        np.testing.assert_allclose(one.gap, other.gap, atol=1e-9)


def _learned(world):
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, 40, seed=0)
    return agent


def test_the_certificate_of_vectors_is_never_below_the_gap():
    world = ucbf.World(shelves(), DEMAND)
    for seed in range(10):
        agent = ucbf.UCBVIf(world.system)
        run = ucbf.simulate(agent, world, 30, seed=seed)
        found = agent.certificate()
        assert found.average(world.start) >= run.gap[-1]
        assert (found.upper >= ucbf.optimal(world).v[0] - 1e-9).all()
        assert (found.lower <= ucbf.evaluate(world, agent.policy)[0] + 1e-9).all()


def test_a_wrong_f_of_vectors_is_found_out():
    true = shelves(landing=None, disturbance_range=None)
    told = true.replace(f=lambda s, a: s + np.stack([a, 2 - a + (s[:, 0] > 2)], axis=1))
    world = ucbf.World(true, DEMAND)
    agent = ucbf.UCBVIf(told)
    with pytest.warns(ucbf.ModelWarning, match="along axis 1"):
        ucbf.simulate(agent, world, 3000, seed=0)
    right = ucbf.UCBVIf(true)
    ucbf.simulate(right, world, 3000, seed=0)
    assert right.model_check().ok


def test_a_clipped_boundary_of_a_box_tells_a_set():
    agent = ucbf.UCBVIf(shelves())
    agent.observe(0, [0, 0], 1, [0, 1])  # f = (1, 1): W <= -1 along the first axis, and 0 along the second
    law = agent.law
    possible = (law.values[:, 0] <= -1) & (law.values[:, 1] == 0)
    np.testing.assert_allclose(law.pmf[0], possible / 3, atol=1e-9)
    with pytest.raises(ValueError, match="a boundary hid 1 disturbance"):
        agent.certificate()
    with pytest.warns(ucbf.CensoredWarning, match="is a clipped boundary of axis 0: W <= -1 there"):
        ucbf.UCBf(shelves()).observe(0, [0, 0], 1, [0, 1])
    learner, world = ucbf.UCBVIf(shelves()), ucbf.World(shelves(), DEMAND, start=[[3, 2]])
    ucbf.simulate(learner, world, 3000, censored=True)
    shares = learner.law.pmf[0][[int(np.flatnonzero((learner.law.values == w).all(axis=1))[0]) for w in DEMAND.values]]
    np.testing.assert_allclose(shares, DEMAND.pmf[0], atol=0.03)  # nothing is hidden in the first step


def test_what_only_a_line_has_is_refused_in_a_box():
    with pytest.raises(ValueError, match="OffsetPosterior moves f by whole states on a line"):
        ucbf.UCBVIf(shelves(), estimator="OffsetPosterior")
    with pytest.raises(ValueError, match="UCB-H keeps a table of states and actions"):
        ucbf.UCBH(regulator(11, disturbance_range=(-0.5, 0.5)))
    with pytest.raises(ValueError, match="in it W is a number: give values="):
        ucbf.World(shelves(), ucbf.Disturbance([1.0]))


def test_replay_and_policies_speak_rows():
    system = shelves()
    w = DEMAND.values[[[0, 1, 2], [2, 1, 0]]].astype(int)
    plan = ucbf.optimal(ucbf.World(system, DEMAND))
    run = ucbf.replay(plan, w, start=[2, 2])
    assert run.states.shape == (2, 4, 2)
    assert run.states[0, 0].tolist() == [2, 2]
    policy = ucbf.Policy(system, plan.policy)
    np.testing.assert_array_equal(ucbf.replay(policy, w, start=[2, 2]).reward, run.reward)
    assert list(policy.rows()[0]) == ["step", "state 1", "state 2", "action"]
    assert "see the table" in str(policy)
    # By hand, from [2, 2] with the actions taken: the first step.
    a, x = run.actions[0, 0], np.array([2, 2]) + [run.actions[0, 0], 2 - run.actions[0, 0]] + w[0, 0]
    assert run.states[0, 1].tolist() == np.clip(x, 0, [5, 4]).tolist()
    assert a == plan.act(0, [2, 2])


def test_gymnasium_sees_rows():
    world = ucbf.World(shelves(), DEMAND, start=[2, 2])
    env = gymnasium.make("ucbf/World-v0", world=world)
    state, _ = env.reset(seed=0)
    assert state.tolist() == [2, 2]
    assert env.observation_space.contains(state)
    total, discount = 0.0, 1.0
    for _ in range(3):
        state, reward, over, _, info = env.step(1)
        assert env.observation_space.contains(state)
        assert info["disturbance"].shape == (2,)
        total, discount = total + discount * reward, discount * 0.9
    assert over
    agent = ucbf.UCBVIf(world.system)
    ucbf.train(agent, env, 10, seed=0)
    assert agent.learner.law.counts.sum() == 30


# -- what must not be taken silently -----------------------------------------------------------------------


def mixed(**more):
    """One whole axis and one continuous."""
    arguments = {
        "f": lambda s, a: s + np.stack([a, 0.1 * a], axis=1), "reward": lambda s, a: s[:, 0] + s[:, 1] - 0.3 * a,
        "horizon": 3, "boundary": "clip", "low": [0, 0], "high": [3, 1], "points": [None, 6], "n_actions": 2,
        "disturbance_range": ([-1, -0.2], [1, 0.2]), **more,
    }  # fmt: skip
    return ucbf.System(**arguments)


def test_whole_axes_of_a_mixed_box_stay_whole():
    with pytest.raises(ValueError, match=r"the disturbance \[0.5 0.1\] is not whole along axis 0"):
        ucbf.World(mixed(), ucbf.Disturbance(values=[[0.5, 0.1]]))
    with pytest.raises(ValueError, match="is not whole along axis 0"):
        ucbf.UCBVIf(mixed()).warm_start([[[0.5, 0]] * 3])
    bent = mixed(f=lambda s, a: np.stack([np.minimum(s[:, 0] + 5 * s[:, 1], 3), s[:, 1]], axis=1))
    with pytest.raises(ValueError, match=r"f sends state \[0.  0.3\], action 0 at step 0 to \[1.5 0.3\]; along axis 0"):
        bent.at_any_state.after(0, np.array([[0, 0.3]]), np.array([0]))


def test_a_mixed_box_is_played_and_learned():
    world = ucbf.World(mixed(), ucbf.Disturbance(values=[[0, 0.05], [1, -0.1], [-1, 0.2]]), start=[1, 0.35])
    for agent in (ucbf.UCBVIf(world.system), ucbf.UCBf(world.system), ucbf.Greedy(world.system)):
        run = ucbf.simulate(agent, world, 20, seed=0)
        assert (run.gap > -1e-9).all()
    learned = ucbf.UCBVIf(world.system)
    gap = ucbf.simulate(learned, world, 60, seed=0).gap
    assert learned.certificate().average(world.start) >= gap[-1]
    assert learned.model_check().ok


def test_actions_between_points_are_those_that_exist_there():
    with pytest.raises(TypeError, match=r"(?s)allowed is .*; on continuous axes it must be a function"):
        mixed(allowed=np.ones((24, 2), bool))
    some = mixed(allowed=lambda s, a: (a == 0) | (s[:, 1] >= 0.5))
    with pytest.raises(ValueError, match=r"action 1 is not allowed in state \[1, 0.4\]"):
        ucbf.UCBVIf(some).observe(0, [1, 0.4], 1, [2, 0.5])
    always = np.where(some.allowed[..., 1], 1, 0)
    policy = ucbf.Policy(some, always)
    assert policy.act(0, [1, 0.6]) == 1
    assert policy.act(0, [1, 0.45]) == 0  # the nearest point is 0.4
    assert policy.act(0, [1, 0.499]) == 0  # 0.6 is allowed its action, but not here


def test_certificates_on_continuous_axes_use_what_is_known_of_their_counts():
    world = ucbf.World(regulator(21, disturbance_range=(-0.6, 0.6)), ucbf.Disturbance(values=[[0.13], [-0.27], [0.05]]))
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, 300, seed=0)
    tight, loose = agent.certificate(0.05, "bernstein").average(), agent.certificate(0.05, "hoeffding").average()
    assert tight != loose  # one bound for every function would ignore the form


def test_what_wraps_all_the_way_round_is_refused_where_it_pays():
    with pytest.raises(ValueError, match="along axis 0 W may go all the way round"):
        box(lambda s, a: s, lambda s, a: 0.0, 2, 0, 1, 10, [0.0], "wrap", landing=lambda z: z[:, 0],
            disturbance_range=(-2, 2))  # fmt: skip


def test_states_beyond_the_last_point_of_a_ring_are_reached():
    # f = 0.9 s, W = 0 on a ring of 5: from 4.9 to 4.41, between the points 4 and 0 (5), worth 4 and 0 at the last step.
    ring = box(lambda s, a: 0.9 * s, lambda s, a: s[:, 0], 2, 0, 5, 5, [0.0], "wrap", disturbance_range=(-1, 1))
    assert planned(ring, [0.0]).q_at(0, [[4.9]])[0, 0] == pytest.approx(4.9 + 0.59 * 4)


def test_a_measured_w_is_held_to_the_range_and_to_strict_boundaries():
    shelf = box(lambda s, a: s + 5, lambda s, a: 0.0, 1, 0, 3, None, [0.0], disturbance_range=(-2, 0))
    with pytest.raises(ValueError, match="outside the disturbance_range"):
        ucbf.UCBVIf(shelf).observe(0, [3], 0, [3], disturbance=[-4])
    closed = ucbf.System(lambda s, a: s, lambda s, a: 0.0 * s[:, 0], 1, "strict", low=[0, 0], high=[3, 3], n_actions=1)
    with pytest.raises(ValueError, match="not to the next state"):
        ucbf.UCBVIf(closed).observe(0, [3, 3], 0, [3, 3], disturbance=[2, 0])


def test_what_is_ambiguous_or_contradicts_itself_is_refused():
    two = ucbf.System(lambda s, a: s, lambda s, a: 0.0 * s[:, 0], 1, "clip", low=[0, 0], high=[1, 0], n_actions=1)
    still = ucbf.Disturbance(values=[[0, 0]])
    with pytest.raises(ValueError, match="a state, or probabilities of 2 states"):
        ucbf.World(two, still, start=[1, 0])
    assert ucbf.World(two, still, start=[[1, 0]]).start.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"n_actions is 2, and actions has shape \(3,\)"):
        shelves(n_actions=2)
    with pytest.raises(TypeError, match="boundary is 3; give 'clip'"):
        shelves(boundary=3)
    with pytest.raises(ValueError, match="this system is a box"):
        ucbf.corrupt(shelves(), 2)
    with pytest.raises(ValueError, match="endless plans need whole axes"):
        ucbf.endless(regulator(11, disturbance_range=(-0.5, 0.5)), ucbf.Disturbance(values=[[0.1]]))
    assert ucbf.endless(shelves(discount=0.9), ucbf.Disturbance([1.0], values=[[-1, -1]])).terminal.shape == (30,)
    with pytest.raises(ValueError, match="renewal='few' keeps a table of actions"):
        ucbf.UCBf(regulator(11, disturbance_range=(-0.5, 0.5)), renewal="few")

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ucbf
from ucbf.envs import WorldEnv
from worlds import VARIANTS, any_told, any_world, forked, make_variant, puterman_inventory

SHARPER = ["UCB-f-Bernstein", "UCB-f-Reference"]
COMPILED = ["UCB-f", *SHARPER, "UCBVI-f", "UCB-H", "UCBVI", "UCB-B", "Q-EarlySettled-Advantage", "UCBVI-BF", "UBEV"]


def step_by_step(agent, world, episodes, seed, after_the_episode=False):
    """The same run, as a user would write it with act and observe; observing at once or after the episode."""
    system = world.system
    starts, w = world.draw(episodes, seed)
    o, m = system.state_offset, system.mechanics
    gap, reward = np.empty(episodes), np.zeros(episodes)
    best = ucbf.optimal(world).v[0]
    for k in range(episodes):
        gap[k] = world.start @ best - world.start @ ucbf.evaluate(world, agent.policy)[0]
        s, seen = int(starts[k]), []
        for h in range(system.horizon):
            a = agent.act(h, s + o)
            z = m.after[h % len(m.after), s, a] + int(system.bins.index(w[k, h]))
            s_next = int(m.next_state[z])
            reward[k] += system.discount**h * (system.reward[h, s, a] + m.landing[h % len(m.landing), z])
            seen.append((h, s + o, a, s_next + o, int(w[k, h])))
            if not after_the_episode:
                agent.observe(*seen.pop())
            s = s_next
        for transition in seen:
            agent.observe(*transition)
        reward[k] += system.discount**system.horizon * system.terminal[s]
    return gap, reward


@pytest.mark.parametrize("name", [*COMPILED, *VARIANTS])
@pytest.mark.parametrize("after_the_episode", [False, True])
@given(data=st.data())
@settings(max_examples=25)
def test_step_by_step_and_after_the_episode_and_compiled_give_the_same_numbers(name, after_the_episode, data):
    world = data.draw(any_world())
    told = data.draw(any_told(world))
    compiled, stepped = (make_variant(name, told) for _ in range(2))
    assume(compiled is not None)
    run = ucbf.simulate(compiled, world, 12, seed=5)
    gap, reward = step_by_step(stepped, world, 12, 5, after_the_episode)
    np.testing.assert_array_equal(compiled.q, stepped.q)
    np.testing.assert_array_equal(compiled.policy, stepped.policy)
    scale = 1 + np.abs(reward).max()
    np.testing.assert_allclose(run.gap, gap, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(run.reward, reward, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("name", [*COMPILED, *(v for v in VARIANTS if "linear" not in v)])
@given(data=st.data())
@settings(max_examples=25)
def test_the_loop_in_python_gives_the_numbers_of_the_compiled_one(name, data):
    world = data.draw(any_world())
    told = data.draw(any_told(world))
    compiled, looped = (make_variant(name, told) for _ in range(2))
    assume(compiled is not None)
    fast = ucbf.simulate(compiled, world, 15, seed=6)
    looped.__class__ = type("StepByStep", (type(looped),), {"compiled": None})
    slow = ucbf.simulate(looped, world, 15, seed=6)
    np.testing.assert_array_equal(fast.switched, slow.switched)
    np.testing.assert_array_equal(fast.gap, slow.gap)
    np.testing.assert_array_equal(fast.reward, slow.reward)
    np.testing.assert_array_equal(compiled.q, looped.q)


INTERPRETED = """
import json, sys
sys.path.insert(0, sys.argv[1])
from worlds import VARIANTS, bertsekas_inventory, make_variant
import ucbf, numba
worlds = [ucbf.random_world(n_states=9, n_actions=3, horizon=4, seed=2), bertsekas_inventory()]
out = []
for world in worlds:
    for name in [*sorted(ucbf.AGENTS.keys() - {"optimal"}), *VARIANTS]:
        agent = make_variant(name, world.system)
        if agent is None:
            continue
        run = ucbf.simulate(agent, world, 25, seed=3)
        out.append([x.hex() for x in (*run.gap.tolist(), *run.reward.tolist())])
        if hasattr(agent, "q"):
            out.append([x.hex() for x in agent.q.ravel().tolist()])
print(json.dumps([bool(numba.config.DISABLE_JIT), out]))
"""


def test_interpreted_and_compiled_give_the_same_bits():
    results = []
    for disabled in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", INTERPRETED, str(Path(__file__).parent)],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        was_disabled, numbers = json.loads(done.stdout)
        assert was_disabled == (disabled == "1")
        results.append(numbers)
    assert results[0] == results[1]


def test_the_run_is_the_same_in_blocks_and_reports_its_progress(monkeypatch):
    world = ucbf.random_world(seed=1)
    whole = ucbf.simulate(ucbf.UCBf(world.system), world, 40)
    monkeypatch.setattr("ucbf.simulation.BLOCK_SECONDS", 0)
    seen = []
    parts = ucbf.simulate(ucbf.UCBf(world.system), world, 40, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(k, 40) for k in range(16, 41)]
    np.testing.assert_array_equal(whole.gap, parts.gap)
    np.testing.assert_array_equal(whole.reward, parts.reward)


def test_a_longer_run_begins_with_the_shorter_one():
    world = ucbf.random_world(seed=1)
    short, long = (ucbf.simulate(ucbf.UCBf(world.system), world, k) for k in (30, 90))
    np.testing.assert_array_equal(short.gap, long.gap[:30])


def test_agents_meet_the_same_disturbances():
    # Nothing depends on the action: whoever plays, the same disturbances collect the same rewards.
    system = ucbf.System(lambda s, a: s, lambda s, a: s, 4, n_states=5, n_actions=2)
    world = ucbf.World(system, ucbf.Disturbance([0.2, 0.5, 0.3]))
    rewards = [
        ucbf.simulate(ucbf.make_agent(n, system), world, 50, seed=3).reward for n in ("UCB-f", "random", "UCBVI")
    ]
    np.testing.assert_array_equal(rewards[0], rewards[1])
    np.testing.assert_array_equal(rewards[0], rewards[2])
    assert np.ptp(rewards[0]) > 0


def test_other_rewards_than_the_worlds_are_remarked():
    world = puterman_inventory()
    for changes in ({"reward": 0.0}, {"discount": 0.5}, {"landing": lambda z: z}, {"terminal": [1, 2, 3, 4]}):
        with pytest.warns(UserWarning, match="told other rewards or another discount than the world's"):
            ucbf.simulate(ucbf.UCBf(world.system.replace(**changes)), world, 2)


def test_strict_worlds_need_no_measured_disturbance():
    system = ucbf.System(np.full((3, 1), 1), 0.0, 2, "strict")
    world = ucbf.World(system, ucbf.Disturbance([0.5, 0, 0.5], low=-1))
    ucbf.simulate(ucbf.UCBf(system.replace(f=np.full((3, 1), 2), model_error=2)), world, 5)


def test_the_collected_reward_averages_to_the_value_of_the_policy():
    world = puterman_inventory()
    discounted = ucbf.World(world.system.replace(discount=0.8, terminal=[0, 1, 2, 3]), world.law)
    agent = ucbf.Optimal(discounted.system, law=discounted.law)
    reward = ucbf.simulate(agent, discounted, 40_000).reward
    value = discounted.start @ ucbf.optimal(discounted).v[0]
    assert reward.mean() == pytest.approx(value, abs=4 * reward.std() / 200)


def test_regret_is_the_cumulative_gap():
    world = ucbf.random_world(seed=1)
    run = ucbf.simulate(ucbf.UCBf(world.system), world, 10)
    np.testing.assert_array_equal(run.regret, np.cumsum(run.gap))


class Stubborn(ucbf.Agent):
    """An agent of a user's own: always the last action, and counts what it sees."""

    name = "stubborn"

    def __init__(self, system):
        super().__init__(system)
        self.seen = np.zeros(system.n_states, np.int64)

    @property
    def policy(self):
        return np.full(self.system.f.shape[:2], self.system.n_actions - 1)

    @property
    def state(self):
        return {"seen": self.seen}

    def update(self, seen):
        self.seen[seen.s_next] += 1


def test_an_agent_of_ones_own_needs_a_policy_and_an_update(tmp_path):
    world = ucbf.random_world(seed=1)
    agent = Stubborn(world.system)
    run = ucbf.simulate(agent, world, 30)
    value = ucbf.evaluate(world, np.full((10, 25), 7))[0].mean()
    np.testing.assert_allclose(run.gap, ucbf.optimal(world).v[0].mean() - value, atol=1e-12)
    assert agent.seen.sum() == 300
    agent.save(tmp_path / "mine")
    np.testing.assert_array_equal(ucbf.load(tmp_path / "mine", agent=Stubborn).seen, agent.seen)
    with pytest.raises(ValueError, match="holds a 'stubborn', none of ucbf's agents; pass its class"):
        ucbf.load(tmp_path / "mine")
    with pytest.raises(ValueError, match="holds a 'stubborn', not a 'UCB-f'"):
        ucbf.load(tmp_path / "mine", agent=ucbf.UCBf)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.full((10, 25), 10**9), "policy takes action 1000000000 in state 0 at step 0; actions are 0..7"),
        (np.full((10, 25), -1), "policy takes action -1"),
        (np.full((25, 10), 0), r"policy has shape \(25, 10\)"),
        (np.full((10, 25), 0.7), "is 0.7; every entry must be a whole number"),
    ],
)
def test_an_impossible_policy_of_ones_own_agent_is_refused(policy, message):
    class Mistaken(Stubborn):
        @property
        def policy(self):
            return policy

    world = ucbf.random_world(seed=1)
    with pytest.raises(ValueError, match=message):
        ucbf.simulate(Mistaken(world.system), world, 5)


def test_what_cannot_be_simulated_is_refused_before_any_work():
    world = ucbf.random_world(seed=1)
    agent = ucbf.UCBf(world.system)
    shifted = world.system.replace(f=world.system.f + 1, disturbance_range=(0, 5))
    for call, message in [
        (lambda: ucbf.simulate(agent, world, 0), "episodes is 0; it must be 1 or more"),
        (lambda: ucbf.simulate(agent, ucbf.random_world(n_states=9), 5), "told n_states = 25, but the world has 9"),
        (lambda: ucbf.simulate(ucbf.UCBf(world.system.replace(boundary="clip")), world, 5), "told boundary = 'clip'"),
        (lambda: ucbf.simulate(ucbf.UCBf(world.system.replace(disturbance_range=(0, 3))), world, 5),
         r"would see a residual of 4, outside 0\.\.3 \(its disturbance_range, widened"),
        (lambda: ucbf.simulate(ucbf.UCBf(shifted), world, 5),
         r"would see a residual of 24, outside 0\.\.5"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
    allowed = world.system.allowed.copy()
    allowed[:, :, 7] = False
    with pytest.raises(ValueError, match="do not allow the same actions"):
        ucbf.simulate(ucbf.UCBf(world.system.replace(allowed=allowed)), world, 5)
    with pytest.raises(TypeError, match=r"world is System\(.*; give a ucbf.World"):
        ucbf.simulate(agent, world.system, 5)
    with pytest.raises(TypeError, match="agent is .*; give an agent"):
        ucbf.simulate(world.system, world, 5)
    assert agent.learner.visits.sum() == 0


# -- any Gymnasium environment ----------------------------------------------------------------------


class Shower(gymnasium.Env):
    """Temperature plus action minus one plus noise, clipped; knows nothing of ucbf and does not tell W."""

    observation_space = gymnasium.spaces.Discrete(11, start=30)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.temperature = int(self.np_random.integers(31, 40))
        return self.temperature, {}

    def step(self, action):
        self.temperature += action - 1 + int(self.np_random.integers(-1, 2))
        self.temperature = min(max(self.temperature, 30), 40)
        return self.temperature, float(abs(self.temperature - 35) <= 1), False, False, {}


def test_an_agent_learns_in_any_environment_whose_mechanics_are_stated():
    system = ucbf.System(
        lambda s, a: s + a - 1,
        0.0,
        horizon=8,
        boundary="clip",
        landing=lambda z: 1.0 * (np.abs(z - 35) <= 1),
        disturbance_range=(-1, 1),
        state_offset=30,
        n_states=11,
        n_actions=3,
    )
    agent = ucbf.UCBf(system)
    seen = []
    with pytest.warns(ucbf.CensoredWarning):
        reward = ucbf.train(agent, Shower(), 300, seed=0, progress=lambda done, of: seen.append(done)).reward
    assert reward.shape == (300,)
    assert seen[-1] == 300
    world = ucbf.World(system, ucbf.Disturbance([1 / 3] * 3, low=-1))
    gap = ucbf.optimal(world).v[0] - ucbf.evaluate(world, agent.policy)[0]
    assert gap.max() < 0.05
    np.testing.assert_array_equal(agent.policy[3, [2, 3, 7, 8]], [2, 2, 0, 0])


def test_the_gymnasium_view_of_a_world_teaches_what_its_disturbances_teach():
    world = puterman_inventory()
    agent, replayed = ucbf.UCBf(world.system), ucbf.UCBf(world.system)
    env = Noting(WorldEnv(world))
    ucbf.train(agent, env, 50, seed=2)
    replayed.warm_start(np.reshape(env.seen, (50, 3)))
    np.testing.assert_array_equal(agent.q, replayed.q)


class Noting(gymnasium.Wrapper):
    """Keeps the disturbances it passes on."""

    seen: list

    def __init__(self, env):
        super().__init__(env)
        self.seen = []

    def step(self, action):
        answer = self.env.step(action)
        self.seen.append(answer[-1]["disturbance"])
        return answer


def test_agent_and_environment_are_told_apart():
    agent = ucbf.UCBf(puterman_inventory().system)
    with pytest.raises(TypeError, match="agent is .*; give an agent, such as"):
        ucbf.train(Shower(), agent, 5)
    with pytest.raises(TypeError, match="env is .*; give a Gymnasium environment"):
        ucbf.train(agent, puterman_inventory(), 5)


def test_an_environment_of_other_sizes_is_refused():
    agent = ucbf.UCBf(puterman_inventory().system)
    with pytest.raises(
        ValueError, match=r"observation_space is Discrete\(11, start=30\), but the agent's system has 4"
    ):
        ucbf.train(agent, Shower(), 5)


@pytest.mark.parametrize(("n", "start"), [(5, 0), (6, 1), (5, 1)])
def test_spaces_of_another_size_or_beginning_are_refused(n, start):
    env = SimpleNamespace(reset=None, step=None, observation_space=SimpleNamespace(n=n, start=start), action_space=None)
    agent = ucbf.UCBVIf(ucbf.System(lambda s, a: s, 0.0, 1, n_states=6, n_actions=1))
    with pytest.raises(ValueError, match="but the agent's system has 6 starting at 0"):
        ucbf.train(agent, env, 1)


def test_the_gap_is_that_of_the_world_whatever_the_agent_was_told_of_the_end():
    world = ucbf.World(ucbf.System(np.array([[0, 1], [0, 1]]), 0.0, 2, terminal=[0.0, 1.0]), ucbf.Disturbance([1.0]))
    agent = ucbf.Greedy(world.system.replace(terminal=[5.0, 0.0]))
    with pytest.warns(UserWarning, match="told other rewards"):
        run = ucbf.simulate(agent, world, 1)
    # Action 0 always leads to state 0, which is worth nothing in the end; action 1 to state 1, worth 1.
    assert run.gap.tolist() == [1.0]


def test_the_optimal_plan_of_a_world_is_made_once_and_cannot_be_changed():
    world = ucbf.random_world(n_states=4, n_actions=2, horizon=2, lipschitz=None)
    plan = ucbf.optimal(world)
    assert ucbf.optimal(world) is plan
    with pytest.raises(ValueError, match="read-only"):
        plan.v[0, 0] = 9


def test_a_policy_acts_and_learns_nothing():
    policy = ucbf.Policy(ucbf.System(np.zeros((2, 2)), 0.0, 1, state_offset=5), [[1, 0]])
    assert [policy.act(0, s) for s in (5, 6)] == [1, 0]
    with pytest.raises(ValueError, match="state is 4; it must be 5 to 6"):
        policy.act(0, 4)
    assert policy.observe(0, 5, 1, 5) is None


def test_without_an_end_states_between_points_move_as_they_do():
    # From 0 on by 0.1 at the even steps of a period and by 0.2 at the odd ones, to the end of the axis; 5 points.
    # The odd steps pay 10 more.
    ramp = ucbf.System(lambda s, a: s, lambda h, s, a: s[:, 0] + 10 * h, horizon=None, period=2, discount=0.9,
                       low=[0], high=[1], points=5, actions=[0.0], boundary="clip",
                       disturbance_range=(0, 0.25))  # fmt: skip
    world = ucbf.World(ramp, ucbf.Disturbance([[1.0, 0.0], [0.0, 1.0]], values=[[0.1], [0.2]]), start=[0.0])
    run = ucbf.simulate(ucbf.UCBVIf(ramp), world, steps=9)
    np.testing.assert_allclose(run.reward, [0, 10.1, 0.3, 10.4, 0.6, 10.7, 0.9, 11, 1])
    np.testing.assert_allclose(run.gap, 0, atol=1e-9)  # there is one action
    trained = ucbf.train(ucbf.UCBVIf(ramp), WorldEnv(world), steps=9)
    np.testing.assert_array_equal(trained.reward, run.reward)


def test_without_an_end_a_run_between_points_does_not_depend_on_its_blocks(monkeypatch):
    plant = ucbf.System(lambda x, u: x + u[:, None], lambda x, u: -(x[:, 0] ** 2), horizon=None, discount=0.8, low=[-1],
                        high=[1], points=9, actions=[-0.3, 0, 0.3], boundary="clip",
                        disturbance_range=(-0.25, 0.25))  # fmt: skip
    world = ucbf.World(plant, ucbf.Disturbance(values=[[0.2], [0.25]]))
    whole = ucbf.simulate(ucbf.UCBVIf(plant), world, steps=60, seed=3)
    monkeypatch.setattr("ucbf.simulation.BLOCK_SECONDS", 0)
    pieces = ucbf.simulate(ucbf.UCBVIf(plant), world, steps=60, seed=3)
    np.testing.assert_array_equal(whole.reward, pieces.reward)
    assert whole.gap[0] > 0.01  # W is thought to be 0 at first
    assert whole.gap[-1] < 1e-6


def test_an_agent_that_meets_the_same_disturbances_again_is_warned_of():
    world, other = ucbf.random_world(seed=1, horizon=3), ucbf.random_world(seed=2, horizon=3)
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, 20)
    ucbf.simulate(agent, world, 20, seed=1)
    ucbf.simulate(agent, ucbf.World(world.system, other.law), 20)  # of another law
    said = "the agent has met the disturbances of seed 1 in this world before, and counts them again, so that no"
    with pytest.warns(UserWarning, match=said) as seen:
        ucbf.simulate(agent, world, 5, seed=1)
    assert seen[0].filename == __file__
    assert agent.learner.law.counts.sum() == 3 * 65
    for kind in (ucbf.Greedy, ucbf.Random):  # who does not learn may meet them again
        player = kind(world.system)
        ucbf.simulate(player, world, 5)
        ucbf.simulate(player, world, 5)


def test_warnings_point_at_the_callers_line():
    system = ucbf.System(np.full((5, 2), 2), lambda s, a: 0.1 * a, 2, "clip", disturbance_range=(-9, 9))
    world = ucbf.World(system, ucbf.Disturbance([0.5, 0.5], low=-2))
    dear = ucbf.World(system.replace(reward=np.ones((5, 2))), world.law)
    for call, kind in (
        (lambda: ucbf.UCBf(system).observe(0, 2, 0, 0), ucbf.CensoredWarning),
        (lambda: ucbf.simulate(ucbf.UCBf(system), world, 5, censored=True), ucbf.CensoredWarning),
        (lambda: ucbf.simulate(ucbf.UCBVIf(system), dear, 5), UserWarning),
        (lambda: ucbf.UCBVIf(system.replace(disturbance_range=(0, 1))).observe(0, 2, 0, 1), ucbf.ModelWarning),
    ):
        with pytest.warns(kind) as seen:
            call()
        assert [one.filename for one in seen] == [__file__]


def test_numbers_in_warnings_are_plain():
    world = forked()
    with pytest.warns(ucbf.ModelWarning, match=r"no disturbance within \[0, 0\]\.\.\[1, 1\] leads to"):
        ucbf.UCBVIf(world.system).observe(0, [0], 0, [3])

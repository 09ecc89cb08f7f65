import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import ucbf
from ucbf.envs import WorldEnv, WorldVectorEnv, given_vector_env
from worlds import forked, puterman_inventory, weather


def test_the_environments_pass_gymnasiums_own_check_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("ucbf/Random-v0").unwrapped)
        check_env(gymnasium.make("ucbf/Random-v0", render_mode="ansi").unwrapped)
        check_env(gymnasium.make("ucbf/World-v0", world=puterman_free(), render_mode="ansi").unwrapped)


def puterman_free():
    """The same shop with a warehouse large enough for every order: a checker takes any action."""
    system = puterman_inventory().system
    return ucbf.World(system.replace(allowed=None), puterman_inventory().law)


def test_an_episode_has_h_steps_and_ends_with_terminated():
    env = gymnasium.make("ucbf/Random-v0", horizon=3, n_states=7, world_seed=4)
    _, info = env.reset(seed=0)
    assert info["h"] == 0
    ends = []
    for h in range(3):
        _, _, terminated, truncated, info = env.step(0)
        assert info["h"] == h + 1
        ends.append((terminated, truncated))
    assert ends == [(False, False), (False, False), (True, False)]
    with pytest.raises(RuntimeError, match=r"the episode is over: call reset\(\)"):
        env.unwrapped.step(0)


def test_the_transition_is_the_systems_and_the_disturbance_is_told():
    world = puterman_inventory()
    env = WorldEnv(world, render_mode="ansi")
    s, info = env.reset(seed=1, options={"state": 2})
    assert s == 2
    assert info["action_mask"].tolist() == [1, 1, 0, 0]
    next_s, reward, _, _, info = env.step(1)
    w = info["disturbance"]
    assert next_s == max(3 + w, 0)
    # 8·3 - (4 + 2) - 3 at once, and -8 for each unit left over
    assert reward == 15 - 8 * max(3 + w, 0)
    assert env.render() == f"step 0: state 2, action 1, disturbance {w} -> state {next_s}, reward {reward:g}"


def test_the_end_of_an_episode_pays_the_terminal_reward():
    world = ucbf.World(ucbf.System(lambda s, a: s, 0.0, 2, terminal=[5, 6], n_states=2, n_actions=1),
                       ucbf.Disturbance([1.0]))  # fmt: skip
    env = WorldEnv(world)
    env.reset(options={"state": 1})
    assert [env.step(0)[1] for _ in range(2)] == [0, 6]


def test_discounted_rewards_add_up_to_the_value():
    system = ucbf.System(0, 1.0, 3, terminal=[10.0], discount=0.5, n_states=1, n_actions=1)
    world = ucbf.World(system, ucbf.Disturbance([1.0]))
    env = WorldEnv(world)
    env.reset()
    rewards = [env.step(0)[1] for _ in range(3)]
    # 1 + 1/2 + 1/4 + 10/8
    assert rewards[0] + rewards[1] / 2 + rewards[2] / 4 == ucbf.optimal(world).v[0, 0] == 3
    assert ucbf.train(ucbf.Greedy(system), env, 1).reward[0] == 3


def test_the_same_seed_gives_the_same_episode():
    episodes = []
    for _ in range(2):
        env = gymnasium.make("ucbf/Random-v0")
        s, _ = env.reset(seed=11)
        episodes.append([int(s), *(int(env.step(h % 8)[0]) for h in range(10))])
    assert episodes[0] == episodes[1]


def test_mistakes_are_named():
    env = WorldEnv(puterman_inventory())
    with pytest.raises(ValueError, match=r'options\["state"\] is 4; it must be 0 to 3'):
        env.reset(options={"state": 4})
    env.reset(options={"state": 3})
    with pytest.raises(ValueError, match=r'action 1 is not allowed in state 3 at step 0; info\["action_mask"\]'):
        env.step(1)
    with pytest.raises(ValueError, match="action is 4; it must be 0 to 3"):
        env.step(4)
    with pytest.raises(ValueError, match="unknown option 'start'; .*the choices are 'state'$"):
        env.reset(options={"start": 3})
    with pytest.raises(ValueError, match="unknown render_mode 'human'"):
        WorldEnv(puterman_inventory(), render_mode="human")
    with pytest.raises(TypeError, match="pass world_seed= to choose the world"):
        gymnasium.make("ucbf/Random-v0", seed=3)
    with pytest.raises(TypeError, match="give a ucbf.World"):
        gymnasium.make("ucbf/World-v0", world=puterman_inventory().system)


def test_many_copies_are_stepped_at_once_and_start_again():
    envs = gymnasium.make_vec("ucbf/Random-v0", num_envs=64, vectorization_mode="vector_entry_point", horizon=3)
    assert isinstance(envs.unwrapped, WorldVectorEnv)
    states, info = envs.reset(seed=0)
    assert states.shape == (64,)
    assert (info["h"] == 0).all()
    world = ucbf.random_world(horizon=3)
    for turn in range(2):
        for h in range(3):
            actions = envs.action_space.sample()
            before = states
            states, reward, terminated, truncated, info = envs.step(actions)
            np.testing.assert_array_equal(states, (world.system.f[h, before, actions] + info["disturbance"]) % 25)
            np.testing.assert_array_equal(reward, world.system.reward[h, before, actions])
            assert (terminated == (h == 2)).all(), turn
            assert not truncated.any()
        states, reward, terminated, _, info = envs.step(actions)  # the reset step: its action is ignored
        assert not terminated.any()
        assert not reward.any()
        assert not info["_disturbance"].any()
        assert (info["h"] == 0).all()


def test_make_vec_uses_the_vectorised_environment_by_itself():
    assert isinstance(gymnasium.make_vec("ucbf/Random-v0", num_envs=2).unwrapped, WorldVectorEnv)


def test_copies_follow_the_law():
    world = puterman_free()
    envs = WorldVectorEnv(world, 20_000)
    envs.reset(seed=3, options={"state": 1})
    _, _, _, _, info = envs.step(np.zeros(20_000, int))
    shares = [(info["disturbance"] == w).mean() for w in (-2, -1, 0)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], atol=0.02)


def test_copies_may_start_apart_and_wrong_numbers_of_states_are_refused():
    envs = WorldVectorEnv(puterman_inventory(), 3)
    states, _ = envs.reset(seed=0, options={"state": [0, 2, 3]})
    assert states.tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="has 2 states; give one, or one for each of 3"):
        envs.reset(options={"state": [0, 1]})
    with pytest.raises(TypeError, match="pass one seed, not a list"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match=r"actions has shape \(2,\); give one for each of 3 copies"):
        envs.step(np.zeros(2, int))
    with pytest.raises(RuntimeError, match="have not begun: call reset"):
        WorldVectorEnv(puterman_inventory(), 3).step(np.zeros(3, int))


def test_an_environment_in_a_box_begins_where_it_is_told_and_ends():
    box = ucbf.System(lambda s, a: s, lambda s, a: s[:, 0], low=[0], high=[1], points=3, actions=[0.0], horizon=2,
                      boundary="clip")  # fmt: skip
    env = WorldEnv(ucbf.World(box, ucbf.Disturbance(values=[[0.0]])))
    assert env.reset(seed=0, options={"state": [0.5]})[0].tolist() == [0.5]
    ended = [env.step(0)[2:4] for _ in range(2)]
    assert [any(end) for end in ended] == [False, True]
    with pytest.raises(RuntimeError, match=r"the episode is over: call reset\(\) before the next step"):
        env.step(0)


def test_many_copies_of_a_given_world():
    env = given_vector_env(puterman_inventory(), 3)
    assert env.num_envs == 3
    assert env.reset(seed=0)[0].shape == (3,)


# -- without an end, with contexts, with any boundary -----------------------------------------------


def test_without_an_end_nothing_terminates_and_steps_go_round():
    env = gymnasium.make("ucbf/World-v0", world=weather(), max_episode_steps=5).env
    assert env.observation_space == gymnasium.spaces.Discrete(4)  # the context is told beside it
    env.reset(seed=0, options={"state": 0, "context": 1})
    told = [env.step(0) for _ in range(5)]
    assert [info["h"] for *_, info in told] == [1, 0, 1, 0, 1]
    assert not any(terminated for _, _, terminated, _, _ in told)
    # Context 1 lasts, W is 1 at the even steps of the period and 0 at the others; doing nothing pays 10 e + s.
    assert [info["context"] for *_, info in told] == [1] * 5
    assert [info["disturbance"] for *_, info in told] == [1, 0, 1, 0, 1]
    assert [s for s, *_ in told] == [1, 1, 2, 2, 3]
    assert [reward for _, reward, *_ in told] == [10, 11, 11, 12, 12]


def test_without_an_end_the_time_limit_of_gymnasium_truncates():
    env = gymnasium.make("ucbf/World-v0", world=weather(), max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    env = WorldEnv(weather())
    with pytest.raises(RuntimeError, match=r"call reset\(\) before the next step"):
        env.step(0)


def test_many_copies_without_an_end_are_cut_off_and_start_again():
    envs = gymnasium.make_vec("ucbf/World-v0", num_envs=2, world=weather(), max_episode_steps=3)
    states, info = envs.reset(seed=0, options={"state": [0, 2], "context": [0, 1]})
    assert (states.tolist(), info["context"].tolist()) == ([0, 2], [0, 1])
    for t in range(3):
        states, reward, terminated, truncated, info = envs.step(np.zeros(2, int))
        assert not terminated.any()
        assert truncated.tolist() == [t == 2] * 2
        assert info["h"].tolist() == [(t + 1) % 2] * 2
    # W is 1, 0, 1: from 0 to 2, and from 2 round to 0.
    assert states.tolist() == [2, 0]
    _, reward, terminated, truncated, info = envs.step(np.zeros(2, int))
    assert not any(part.any() for part in (reward, terminated, truncated, info["_disturbance"]))
    assert (info["h"] == 0).all()
    with pytest.raises(ValueError, match="max_episode_steps is 0; it must be 1 or more"):
        WorldVectorEnv(weather(), 2, max_episode_steps=0)


def test_an_episode_with_an_end_is_cut_off_before_it():
    envs = WorldVectorEnv(ucbf.random_world(horizon=2), 1, max_episode_steps=2)
    envs.reset(seed=0)
    ends = [envs.step(np.zeros(1, int))[2:4] for _ in range(2)]
    assert [(bool(a[0]), bool(b[0])) for a, b in ends] == [(False, False), (True, False)]


def test_contexts_choose_the_law_and_follow_it():
    world = weather(mixed=True)
    envs = WorldVectorEnv(world, 20_000)
    envs.reset(seed=3, options={"state": 1, "context": 0})
    *_, info = envs.step(np.zeros(20_000, int))
    # From context 0: W is 0, 1 in 1:3, and 1 follows in a fifth of the cases.
    np.testing.assert_allclose([(info["disturbance"] == 1).mean(), info["context"].mean()], [0.75, 0.2], atol=0.02)
    envs.reset(seed=3, options={"state": 1, "context": 1})
    *_, info = envs.step(np.zeros(20_000, int))
    np.testing.assert_allclose([(info["disturbance"] == 1).mean(), info["context"].mean()], [0.5, 0.9], atol=0.02)


def test_a_context_or_a_state_that_is_not_asked_for_is_drawn():
    world = ucbf.World(weather(mixed=True).system, weather(mixed=True).law, start=3, start_context=1)
    env = WorldEnv(world)
    s, info = env.reset(seed=0)
    assert (s, info["context"]) == (3, 1)
    s, info = env.reset(seed=0, options={"context": 0})
    assert (s, info["context"]) == (3, 0)
    s, info = env.reset(seed=0, options={"state": 2})
    assert (s, info["context"]) == (2, 1)
    with pytest.raises(ValueError, match=r'options\["context"\] is 2; it must be 0 to 1'):
        env.reset(options={"context": 2})
    with pytest.raises(ValueError, match=r'options\["context"\] has 3 contexts; give one, or one for each of 2'):
        WorldVectorEnv(world, 2).reset(options={"context": [0, 1, 0]})
    with pytest.raises(ValueError, match="unknown option 'context'; .*the choices are 'state'$"):
        WorldEnv(puterman_inventory()).reset(options={"context": 0})


def test_a_boundary_of_ones_own_brings_rows_of_other_lengths_back():
    env = WorldEnv(forked(), render_mode="ansi")
    s, _ = env.reset(seed=0, options={"state": [1]})
    for _ in range(20):
        before = int(s[0])
        s, _, _, _, info = env.step(1)
        w = info["disturbance"]
        assert w.shape == (2,)
        assert s.tolist() == [min(before + 1 + w[0], 3) if w[1] else 0]
    assert "disturbance [" in env.render()
    envs = WorldVectorEnv(forked(), 3)
    states, _ = envs.reset(seed=0, options={"state": [[0], [1], [2]]})
    after, _, _, _, info = envs.step(np.ones(3, int))
    w = info["disturbance"]
    np.testing.assert_array_equal(after[:, 0], np.where(w[:, 1], np.minimum(states[:, 0] + 1 + w[:, 0], 3), 0))


def test_worlds_of_all_kinds_pass_gymnasiums_own_check_and_the_same_seed_gives_the_same_bits():
    for world in (weather(), weather(mixed=True), forked()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(gymnasium.make("ucbf/World-v0", world=world, render_mode="ansi").unwrapped)
        runs = []
        for _ in range(2):
            env = WorldEnv(world, render_mode="ansi")
            env.reset(seed=5)
            lines = [env.render()]
            for t in range(20):
                env.step(t % 2)
                lines.append(env.render())
            runs.append(lines)
        assert runs[0] == runs[1]

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ucbf
from worlds import any_world


@pytest.mark.parametrize("seed", range(5))
def test_random_worlds_are_the_papers(seed):
    world = ucbf.random_world(seed=seed)
    system = world.system
    assert (system.n_states, system.n_actions, system.horizon, system.boundary) == (25, 8, 10, "wrap")
    assert world.law.pmf.shape == (10, 6)
    assert world.law.low == 0
    assert np.abs(np.diff(ucbf.optimal(world).v[0])).max() == pytest.approx(0.25, abs=1e-12)
    assert system.lipschitz == 0.25
    assert 0 <= system.reward.min() <= system.reward.max() <= 1
    assert system.f.min() >= 0
    assert system.f.max() <= 24
    assert (system.f == system.f[0]).all()
    assert (system.reward == system.reward[0, :, :1]).all()
    np.testing.assert_array_equal(world.start, np.full(25, 1 / 25))


def test_worlds_depend_on_the_seed_alone():
    one, same, other = (ucbf.random_world(seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.system.f, same.system.f)
    np.testing.assert_array_equal(one.law.pmf, same.law.pmf)
    assert not np.array_equal(one.system.f, other.system.f)


def test_a_steepness_that_no_world_reaches_is_refused(monkeypatch):
    monkeypatch.setattr("ucbf.world.MOST_DRAWS", 100)
    with pytest.raises(ValueError, match="none of 100 random worlds .* lipschitz=50; pass a smaller one, or None"):
        ucbf.random_world(n_states=3, n_actions=1, horizon=1, lipschitz=50)
    assert ucbf.random_world(n_states=3, horizon=1, lipschitz=None).system.lipschitz is None


@given(st.sampled_from([0, 1, 2, 4, 7]), st.integers(0, 1000))
def test_a_corrupted_f_is_within_half_the_model_error(zeta, seed):
    system = ucbf.random_world(n_states=9, n_actions=3, horizon=4, seed=seed % 3).system
    told = ucbf.corrupt(system, zeta, seed)
    assert np.abs(told.f - system.f).max() <= zeta / 2
    assert told.f.min() >= 0
    assert told.f.max() <= 8
    assert told.model_error == zeta
    np.testing.assert_array_equal(told.reward, system.reward)
    assert (told.f == told.f[0]).all()


def test_the_error_of_a_corrupted_f_is_that_of_its_seed():
    # Recorded studies hold such systems by their seeds: the errors are added, in the order in which they are drawn.
    system = ucbf.System(np.full((50, 2), 20), 0.0, 1)
    drawn = np.random.default_rng(np.random.SeedSequence(3)).integers(-2, 3, size=(1, 50, 2))
    np.testing.assert_array_equal(ucbf.corrupt(system, 4, seed=3).f, 20 + drawn)


def test_corruption_uses_the_whole_range_evenly():
    system = ucbf.System(np.full((4000, 5), 2000), 0.0, horizon=1)
    error = (ucbf.corrupt(system, 4, seed=0).f - system.f)[0]
    values, counts = np.unique(error, return_counts=True)
    np.testing.assert_array_equal(values, [-2, -1, 0, 1, 2])
    assert np.abs(counts / 20000 - 0.2).max() < 0.02  # five standard errors


def test_a_longer_draw_begins_with_the_shorter_one():
    world = ucbf.random_world(seed=3)
    for short, long in zip(world.draw(50, seed=8), world.draw(400, seed=8), strict=True):
        np.testing.assert_array_equal(short, long[:50])


def test_draws_follow_the_law_and_never_give_what_cannot_happen():
    law = ucbf.Disturbance([[0.0, 0.25, 0.0, 0.75, 0.0], [1.0, 0, 0, 0, 0]], low=-2)
    world = ucbf.World(ucbf.System(np.zeros((3, 1), int), 0.0, horizon=2), law, start=[0, 0.5, 0.5])
    starts, w = world.draw(40_000, seed=0)
    assert set(w[:, 0]) == {-1, 1}
    assert set(w[:, 1]) == {-2}
    assert (w[:, 0] == 1).mean() == pytest.approx(0.75, abs=0.01)
    assert set(starts) == {1, 2}


@given(any_world(), st.floats(0, 1, exclude_max=True))
def test_any_uniform_number_gives_a_possible_disturbance(world, u):
    drawn = world.law.draw(np.full((1, world.system.horizon), u))[0]
    pmf = world.law.pmf
    assert all(pmf[h % len(pmf), w - world.law.low] > 0 for h, w in enumerate(drawn))


@pytest.mark.parametrize(
    ("pmf", "message"),
    [
        ([0.5, 0.6], "row 0 of pmf sums to 1.1; it must sum to 1: divide it by its sum"),
        ([1.5, -0.5], r"pmf\[0, 1\] is -0.5; probabilities must not be negative"),
        ([[0.5, 0.5], [0.5, 0.4]], "row 1 of pmf sums to 0.9"),
        ([0.5, np.nan], r"pmf\[1\] is nan"),
        ([], r"pmf has shape \(0,\)"),
        ([[[1.0]]], r"pmf has shape \(1, 1, 1\); give \[n\], or \[H, n\]"),
    ],
)
def test_an_impossible_law_is_refused(pmf, message):
    with pytest.raises(ValueError, match=message):
        ucbf.Disturbance(pmf)


def system(**changes):
    return ucbf.System(**{"f": [[1], [2], [1]], "reward": 0.0, "horizon": 2, **changes})


@pytest.mark.parametrize(
    ("told", "law", "start", "message"),
    [
        ({}, ucbf.Disturbance(np.eye(3)), None, "the law has 3 steps and the system 2"),
        ({"boundary": "strict"}, ucbf.Disturbance([0.5, 0.5]), None,
         r"from state 1, action 0 at step 0 a disturbance of 1 leads to 3, outside 0\.\.2; pass boundary='clip'"),
        ({"disturbance_range": (0, 1), "boundary": "wrap"}, ucbf.Disturbance([0.5, 0.5], low=1), None,
         r"the law does not fit the system: disturbance 2 is outside the disturbance_range 0\.\.1"),
        ({"landing": lambda z: z, "boundary": "clip"}, ucbf.Disturbance([1.0], low=7), None,
         r"disturbance 7 is outside -2\.\.1, the range assumed because none was declared; pass disturbance_range"),
        ({}, ucbf.Disturbance([1.0]), [0.5, 0.5], r"start has shape \(2,\)"),
        ({}, ucbf.Disturbance([1.0]), [0.5, 0.6, 0.1], "must sum to 1"),
        ({}, ucbf.Disturbance([1.0]), 3, "start is 3; it must be 0 to 2"),
    ],
)  # fmt: skip
def test_a_world_that_cannot_be_is_refused(told, law, start, message):
    with pytest.raises(ValueError, match=message):
        ucbf.World(system(**told), law, start)


def test_kinds_are_checked():
    with pytest.raises(TypeError, match=r"law is \[1.0\]; give a ucbf.Disturbance"):
        ucbf.World(system(), [1.0])
    with pytest.raises(TypeError, match="system is .*; give a ucbf.System"):
        ucbf.World(ucbf.random_world(), ucbf.Disturbance([1.0]))


def test_the_start_may_be_one_state():
    world = ucbf.World(system(state_offset=1), ucbf.Disturbance([1.0]), start=3)
    np.testing.assert_array_equal(world.start, [0, 0, 1])


def test_a_law_of_other_steps_is_refused_by_the_optimal_agent_too():
    with pytest.raises(ValueError, match="the law has 3 steps and the system 2"):
        ucbf.Optimal(system(), law=ucbf.Disturbance(np.eye(3)))


def test_a_corrupted_f_stays_where_the_boundary_lets_it():
    shop = ucbf.System(lambda s, a: s + a, 0.0, 2, "clip", landing=lambda z: -z, disturbance_range=(-3, 0), n_states=5,
                       n_actions=5)  # fmt: skip
    told = ucbf.corrupt(shop, 4, seed=1)
    assert told.f.min() >= 0
    assert told.f.max() <= 8
    assert told.landing.shape[1] == len(told.raw_states) > shop.landing.shape[1]
    walled = ucbf.System([[3, 99]] * 4, 0.0, 2, "strict", allowed=np.array([[True, False]] * 4))
    assert ucbf.corrupt(walled, 4, seed=1).f[walled.allowed].max() <= 3


def test_a_random_world_without_an_end_has_a_best_average_and_comes_round():
    world = ucbf.random_endless_world(n_states=5, n_actions=2, period=3, max_disturbance=2, seed=4)
    assert (world.system.horizon, world.system.n_steps, world.system.discount) == (None, 3, 1)
    assert world.law.pmf.shape == (3, 3)
    assert 0 < world.best < 1  # an average of rewards that are within 0..1
    again = ucbf.random_endless_world(n_states=5, n_actions=2, period=3, max_disturbance=2, seed=4)
    np.testing.assert_array_equal(again.law.pmf, world.law.pmf)
    np.testing.assert_array_equal(again.system.f, world.system.f)
    assert ucbf.random_endless_world(n_states=3, discount=0.5).system.discount == 0.5


def test_worlds_whose_average_depends_on_the_first_state_are_drawn_again():
    # One action and W = 0 make f a map of the states to themselves: some maps have two cycles, which pay differently.
    for seed in range(10):
        world = ucbf.random_endless_world(n_states=4, n_actions=1, max_disturbance=0, seed=seed)
        values = ucbf.simulate(ucbf.Greedy(world.system), world, steps=1).gap
        assert values[0] == pytest.approx(0, abs=1e-6)


def test_what_a_random_world_without_an_end_must_be_is_said(monkeypatch):
    with pytest.raises(ValueError, match="period is 0; it must be 1 or more"):
        ucbf.random_endless_world(period=0)
    with pytest.raises(ValueError, match="discount is 0; it must be above 0"):
        ucbf.random_endless_world(discount=0)
    with pytest.raises(ValueError, match="are more than .* numbers; choose smaller sizes"):
        ucbf.random_endless_world(n_states=10**9)
    monkeypatch.setattr("ucbf.world._has_a_gain", lambda world: False)
    with pytest.raises(ValueError, match="in none of 20 random worlds with 4 states, 1 actions and max_disturbance=0"):
        ucbf.random_endless_world(n_states=4, n_actions=1, max_disturbance=0)


def test_a_strict_boundary_holds_in_every_context():
    still = ucbf.System(lambda s, a: s, 0.0, None, "strict", contexts=2, discount=0.9, n_states=3, n_actions=1,
                        disturbance_range=(0, 1))  # fmt: skip
    with pytest.raises(ValueError, match="from state 2 in context 1, action 0 at step 0 a disturbance of 1 leads to 3"):
        ucbf.World(still, ucbf.Disturbance([[1.0, 0.0], [0.0, 1.0]], contexts=[[1, 0], [0, 1]]))
    ucbf.World(still, ucbf.Disturbance([[1.0, 0.0], [1.0, 0.0]], contexts=[[1, 0], [0, 1]]))

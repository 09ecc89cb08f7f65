import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import reference
import ucbf
from ucbf.spaces import sliding
from ucbf.units import in_paper_units, reward_range, units_of
from worlds import any_world, puterman_inventory


def build(**changes):
    arguments = {"f": np.zeros((4, 2), int), "reward": np.zeros((4, 2)), "horizon": 3}
    return ucbf.System(**{**arguments, **changes})


def test_functions_and_arrays_say_the_same():
    from_functions = ucbf.System(
        lambda s, a: s + a, lambda s, a: s - 2.0 * a, 3, "clip", state_offset=-1, n_states=4, n_actions=2
    )
    from_arrays = ucbf.System(
        [[-1, 0], [0, 1], [1, 2], [2, 3]], [[-1, -3], [0, -2], [1, -1], [2, 0]], 3, "clip", state_offset=-1
    )
    np.testing.assert_array_equal(from_functions.f, from_arrays.f)
    np.testing.assert_array_equal(from_functions.reward, from_arrays.reward)
    assert from_functions.n_states == 4
    assert list(from_functions.states) == [-1, 0, 1, 2]


def test_functions_of_the_step_give_a_table_per_step():
    prices = np.array([1.0, 5.0, 2.0])
    system = build(reward=lambda h, s, a: -prices[h] * a, f=lambda h, s, a: (s + h * a) % 4, n_states=4, n_actions=2)
    np.testing.assert_array_equal(system.reward[:, 0, 1], -prices)
    np.testing.assert_array_equal(system.f[2, 1], [1, 3])


def test_an_argument_with_a_default_is_not_the_step():
    system = build(f=lambda s, a, top=3: np.minimum(s + a, top))
    np.testing.assert_array_equal(system.f[0, 3], [3, 3])


def test_a_reward_per_state_holds_for_every_action():
    system = build(reward=[0, 1, 2, 3])
    np.testing.assert_array_equal(system.reward[1], [[0, 0], [1, 1], [2, 2], [3, 3]])


def test_tables_given_once_are_stored_once():
    system = build(f=np.zeros((1000, 8), int), reward=np.zeros(1000), horizon=50)
    assert system.f.shape == (50, 1000, 8)
    assert system.f.strides[0] == 0


def test_a_system_cannot_be_changed():
    system = build()
    for table in (system.f, system.reward, system.terminal, system.mechanics.after, system.mechanics.next_state):
        with pytest.raises(ValueError, match="read-only"):
            table[...] = 1
    with pytest.raises(AttributeError):
        system.horizon = 4


def test_a_system_keeps_its_own_copy_of_the_arrays_it_was_given():
    f = np.zeros((4, 2), int)
    system = build(f=f)
    f[:] = 3
    assert system.f.max() == 0


def test_boundaries():
    z = np.array([-2, -1, 0, 3, 4, 9])
    np.testing.assert_array_equal(build(boundary="wrap").space.index_of_raw(z[:, None]), [2, 3, 0, 3, 0, 1])
    np.testing.assert_array_equal(build(boundary="clip").space.index_of_raw(z[:, None]), [0, 0, 0, 3, 3, 3])
    offset = build(boundary="clip", state_offset=-1).space
    np.testing.assert_array_equal(offset.index_of_raw(z[:, None] + 1), [0, 0, 1, 3, 3, 3])
    np.testing.assert_array_equal(offset.meet_boundary(z[:, None])[:, 0], [-1, -1, 0, 2, 2, 2])


def test_a_boundary_nobody_stated_is_wrap_only_where_it_cannot_matter():
    inside = build(f=[[0, 1]] * 4, disturbance_range=(0, 2))
    assert inside.boundary == "wrap"
    assert build().boundary == "wrap"  # no range is declared: the paper's setting
    for changes in ({"disturbance_range": (0, 3)}, {"landing": lambda z: z}):
        with pytest.raises(ValueError, match="boundary='clip'"):
            inside.replace(**changes)
        assert inside.replace(**changes, boundary="clip").boundary == "clip"
        assert build(boundary="wrap", f=[[0, 1]] * 4, disturbance_range=(0, 2)).replace(**changes).boundary == "wrap"


def test_raw_states_reach_as_far_as_f_and_w_do():
    system = puterman_inventory().system
    assert (system.after_states, system.residuals, system.raw_states) == (range(4), range(-2, 1), range(-2, 4))
    np.testing.assert_array_equal(system.landing[0], [0, 0, 0, -8, -16, -24])
    wider = system.replace(model_error=2)
    assert (wider.after_states, wider.residuals) == (range(-1, 5), range(-3, 2))
    np.testing.assert_array_equal(wider.landing[0], [0, 0, 0, 0, 0, -8, -16, -24, -32, -40])


def test_undeclared_residuals_are_what_the_states_can_show():
    assert build(boundary="wrap").residuals == range(4)
    assert build(boundary="strict", f=[[1, 2]] * 4).residuals == range(-2, 3)


def test_landing_may_be_an_array_over_the_raw_states_or_differ_by_step():
    system = puterman_inventory().system
    again = system.replace(landing=system.landing[0])
    np.testing.assert_array_equal(again.landing, system.landing)
    by_step = system.replace(landing=lambda h, z: h * z)
    np.testing.assert_array_equal(by_step.landing[2], 2 * np.arange(-2, 4))


def test_measured_disturbances_beyond_what_a_clipped_space_can_show_count_as_its_end():
    system = build(boundary="clip", f=lambda s, a: s, n_states=4, n_actions=2)
    np.testing.assert_array_equal(system.bins.index([-99, -3, 0, 3, 99]), [0, 0, 3, 6, 6])


BAD = [
    ({"f": np.zeros((3, 2), int), "reward": np.zeros((4, 2))}, r"reward has shape \(4, 2\).*S=3, A=2"),
    ({"f": np.zeros((2, 4, 2), int)}, r"f has shape \(2, 4, 2\).*\[H, S, A\] = \(3, 4, 2\)"),
    (
        {"reward": np.full((4, 2), np.nan)},
        "reward at step 0, state 0, action 0 is nan; every entry must be a finite number",
    ),
    ({"reward": [0, 0, np.inf, 0]}, "reward at step 0, state 2, action 0 is inf"),
    (
        {"f": np.full((4, 2), 0.5)},
        "f at step 0, state 0, action 0 is 0.5; every entry must be a whole number: round it",
    ),
    (
        {"f": np.full((4, 2), 41), "boundary": "strict"},
        r"f sends state 0, action 0 at step 0 to 41, outside 0\.\.3; pass",
    ),
    ({"horizon": 0}, "horizon is 0; it must be 1 or more"),
    ({"f": np.zeros((0, 2), int), "reward": np.zeros((0, 2))}, "n_states is 0; it must be 1 or more"),
    ({"f": np.zeros((4, 0), int), "reward": np.zeros((4, 0))}, "n_actions is 0; it must be 1 or more"),
    ({"boundary": "warp"}, "unknown boundary 'warp'; did you mean 'wrap'"),
    ({"model_error": -1}, r"model_error \(ζ\) is -1; it must be 0 or more"),
    ({"lipschitz": -0.1}, "lipschitz is -0.1; it must be 0 or more"),
    ({"discount": 0}, "discount is 0; it must be above 0"),
    ({"discount": 1.1}, "discount is 1.1; it must be above 0 and at most 1"),
    ({"terminal": [0, 1]}, r"terminal has shape \(2,\); it must be \[S\] = \(4,\)"),
    ({"allowed": np.array([[True, True]] * 3 + [[False, False]])}, "state 3 has no allowed action at step 0"),
    ({"disturbance_range": (2, 1)}, r"disturbance_range is \(2, 1\); low must not exceed high"),
    ({"landing": [1.0, 2.0], "boundary": "strict"}, r"landing has shape \(2,\); over the raw states 0\.\.3"),
    ({"landing": lambda z: z}, r"landing under boundary 'wrap' needs disturbance_range=\(low, high\)"),
    ({"landing": lambda z: z, "disturbance_range": (0, 9)}, "10 disturbances wrap onto 4 states"),
    (
        {"f": lambda s, a: np.zeros(3), "n_states": 4, "n_actions": 2},
        r"returned shape \(3,\); it must be \(4, 2\)",
    ),
    ({"f": [[0, 2**40]] * 4, "boundary": "clip"}, "raw states; at most"),
    ({"f": np.full((4, 2), 1e300)}, r"f at step 0, state 0, action 0 is 1e\+300; entries must stay within ±2\*\*53"),
    ({"f": np.full((4, 2), 2**62)}, "entries must stay within"),
    ({"f": [[0, 10**13]] * 4, "landing": lambda z: z, "boundary": "clip"}, "raw states; at most"),
    ({"reward": lambda s, a: np.zeros(2)}, r"reward, called with arrays of shape \(4, 2\), returned shape \(2,\)"),
    ({"terminal": lambda s: np.zeros(3)}, r"terminal, called with arrays of shape \(4,\), returned shape \(3,\)"),
    ({"landing": lambda z: z, "disturbance_range": (0, 0)}, "landing is given, but not where f . W outside the states"),
    (
        {"disturbance_range": (0, 4)},
        r"from state 0, action 0 at step 0 \(f = 0\) W in 0\.\.4 leads to 0\.\.4, outside the states 0\.\.3, and "
        "boundary is not given; pass boundary='clip'",
    ),
    ({"disturbance_range": (-1, 0)}, r"W in -1\.\.0 leads to -1\.\.0, outside the states"),
    ({"state_offset": -9, "reward": [0, 0, np.inf, 0]}, "reward at step 0, state -7, action 0 is inf"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_a_bad_value_is_named_with_the_rule_and_the_remedy(changes, message):
    with pytest.raises(ValueError, match=message):
        build(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 2.5}, "horizon is 2.5; give a whole number"),
        ({"horizon": True}, "not a truth value"),
        ({"f": "abc"}, "f is not an array of real numbers"),
        ({"reward": None}, "reward is not an array of real numbers: None"),
        ({"reward": np.full((4, 2), 1j)}, "reward is not an array of real numbers"),
        ({"f": lambda s, a: max(s - a, 0)}, r"f failed when it was called with arrays of shape \(4, 2\): ValueError"),
        (
            {"allowed": lambda s, a: a == 0 and s > 1},
            r"allowed failed .* \(np.maximum, np.where, & and \|, not max, if",
        ),
        ({"reward": lambda s, a, h: s}, "reward takes 'h' where it is not filled in; make the step its first argument"),
        ({"landing": lambda z, h: z, "boundary": "clip"}, "landing takes 'h' where it is not filled in"),
        ({"reward": lambda s, a, h=0: s}, "reward takes 'h' where it is not filled in"),
        ({"terminal": lambda h, s: s}, "terminal takes more than the states"),
        ({"f": [[0, 1], [2]]}, "f is not an array of real numbers"),
        ({"allowed": np.ones((4, 2))}, "allowed holds float64; give booleans"),
        ({"disturbance_range": 3}, r"disturbance_range is 3; give \(low, high\)"),
        ({"model_error": "two"}, r"model_error \(ζ\) is 'two'; give a number"),
        (
            {"f": lambda s, a: s, "reward": lambda s, a: s},
            "n_states cannot be read off functions alone; pass n_states=",
        ),
    ],
)
def test_a_wrong_kind_is_named(changes, message):
    with pytest.raises(TypeError, match=message):
        build(**changes)


def test_what_stands_where_an_action_does_not_exist_does_not_matter():
    allowed = np.array([[True, False]] * 4)
    system = build(f=[[0, 0.5]] * 4, reward=[[1, -np.inf]] * 4, allowed=allowed)
    assert system.reward[0].tolist() == [[1, 0]] * 4


def test_an_f_outside_the_states_is_fine_where_the_action_does_not_exist():
    allowed = np.array([[True, False]] * 4)
    assert build(f=[[0, 99]] * 4, allowed=allowed, boundary="strict").after_states == range(1)


@given(any_world())
def test_a_system_is_built_again_from_its_arguments(world):
    again = ucbf.System(**world.system.arguments())
    for mine, theirs in zip(world.system.mechanics, again.mechanics, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@given(any_world(), st.data())
def test_every_transition_lands_where_the_boundary_says(world, data):
    system, m = world.system, world.system.mechanics
    h = data.draw(st.integers(0, system.horizon - 1))
    s = data.draw(st.integers(0, system.n_states - 1))
    a = data.draw(st.sampled_from(np.flatnonzero(system.allowed[h, s]).tolist()))
    w = data.draw(st.integers(world.law.low, world.law.high))
    z = m.after[h % len(m.after), s, a] + int(system.bins.index(w))
    assert m.next_state[z] == system.space.index_of_raw(system.f[h, s, a] + np.array([[w]]) - system.state_offset)[0]
    if system.landing is not None:
        assert z + system.raw_states[0] == system.f[h, s, a] + w


@given(any_world())
def test_in_the_learners_units_values_span_at_most_h_and_stay_below_the_cap(world):
    units = units_of(world.system)
    plan = ucbf.optimal(world)
    tolerance = 1e-9 * (1 + np.abs(plan.v / units.scale).max())
    assert np.ptp(plan.v, axis=1).max() / units.scale <= world.system.horizon + tolerance
    assert (plan.v[:-1] / units.scale <= units.cap[:, None] + tolerance).all()


@given(any_world(largest_states=4))
@settings(max_examples=30)
def test_the_cap_is_reached_if_every_disturbance_is_the_best_one(world):
    system = world.system
    units = units_of(system)
    assume(units.scale != 1)
    v = system.terminal
    for h in range(system.horizon - 1, -1, -1):
        ahead = np.full((system.n_states, system.n_actions), -np.inf)
        for s, a in np.argwhere(system.allowed[h]):
            for w in system.declared_residuals:
                z = system.f[h, s, a] + w
                landed = reference.landing(system, h, z) + system.discount * v[reference.meet_boundary(system, z)]
                ahead[s, a] = max(ahead[s, a], system.reward[h, s, a] + landed)
        v = ahead.max(axis=1)
        assert v.max() == pytest.approx(units.cap[h] * units.scale, rel=1e-9, abs=1e-9)


def test_rewards_within_0_and_1_are_left_alone_and_others_are_scaled():
    plain = units_of(build(reward=[0.2, 0.3, 0.1, 0.9]))
    assert plain.scale == 1
    np.testing.assert_array_equal(plain.cap, [3, 3, 3])
    # States stay where they are, so that three steps pay between 3 (-3) = -9 and 3 · 5 = 15: span 24 = 3 · 8.
    stay = build(f=lambda s, a: s, reward=[-3, 0, 2, 5], boundary="strict", disturbance_range=(0, 0), n_actions=2)
    units = units_of(stay)
    assert units.scale == pytest.approx(8)
    np.testing.assert_allclose(units.cap, [15 / 8, 10 / 8, 5 / 8])
    # An end worth 40 in the last state: between -9 and 15 + 40.
    ended = units_of(stay.replace(terminal=[0, 0, 0, 40]))
    assert ended.scale == pytest.approx(64 / 3)
    np.testing.assert_allclose(ended.cap * ended.scale, [55, 50, 45])


@pytest.mark.parametrize("boundary", ["wrap", "clip", "strict"])
def test_only_disturbances_of_the_declared_range_count_for_the_units(boundary):
    # Every action leads to state 0, where W = 0 leaves it: three steps pay at most 5 + 1 + 1 and at least 0 + 1 + 1,
    # two 5 + 1 and 0 + 1, one 5 and 0: a span of 5, so that 3 of the learner's units are 5 of the user's.
    units = units_of(build(reward=[1, 0, 2, 5], boundary=boundary, disturbance_range=(0, 0)))
    assert units.scale == pytest.approx(5 / 3)
    np.testing.assert_allclose(units.cap * units.scale, [7, 6, 5])
    np.testing.assert_allclose(units.floor * units.scale, [2, 1, 0])


def test_the_smallest_and_largest_reward_of_a_step_by_hand():
    # Landing in z pays 10 z, and W is -1, 0 or 1: in state 0 a step pays 0 + 10 (-1..1), in state 1 it pays
    # 1 + 10 (0..2), in state 2 it pays -1 + 10 (1..3).
    system = build(
        f=lambda s, a: s, reward=[0, 1, -1], n_states=3, n_actions=1, landing=lambda z: 10.0 * z, boundary="clip",
        disturbance_range=(-1, 1),
    )  # fmt: skip
    assert reward_range(system) == (-10, 29)
    within = build(reward=[0, 0.5, 1, 0])
    assert in_paper_units(within)
    assert not in_paper_units(within.replace(terminal=[0, 0, 0, 1]))
    assert not in_paper_units(within.replace(reward=[0, 0, 1.1, 0]))
    assert not in_paper_units(within.replace(reward=[0, 0, -0.1, 0]))


def test_the_largest_and_smallest_of_every_window():
    values = np.random.default_rng(0).normal(size=(3, 20))
    for width in range(1, 21):
        windows = np.lib.stride_tricks.sliding_window_view(values, width, axis=1)
        np.testing.assert_array_equal(sliding(np.maximum, values, width), windows.max(axis=2))
        np.testing.assert_array_equal(sliding(np.minimum, values, width), windows.min(axis=2))


def test_a_system_in_which_nothing_matters_has_units_too():
    assert units_of(build(reward=-7.0)).scale == 1
    # Three steps of -7 each are known from the start: Q_h = -7 (3 - h).
    np.testing.assert_array_equal(ucbf.UCBf(build(reward=-7.0)).q[:, 0, 0], [-21, -14, -7])


def test_a_function_that_sums_over_all_states_is_told():
    with pytest.raises(ValueError, match="reward is -3 for 3, 1 alone and -12 among others"):
        ucbf.System(lambda s, a: s, lambda s, a: -1.0 * np.sum(s), 1, n_states=4, n_actions=2)


def test_a_horizon_that_is_too_long_is_refused_at_once():
    f, nothing = np.zeros((3, 2), int), np.zeros((3, 2))
    with pytest.raises(
        ValueError, match="1000000000 steps of 3 states are more than 268435456 together; state a shorter"
    ):
        ucbf.System(f, nothing, 10**9)
    with pytest.raises(
        ValueError, match=r"100000 steps of 20001 raw states \(f \+ W\) are more than 268435456 together"
    ):
        ucbf.System(np.zeros((1, 1)), 0.0, 10**5, "clip", disturbance_range=(0, 20000))
    with pytest.raises(ValueError, match=r"f depends on the step: 10000000 tables of shape \(10, 3\) have more than"):
        ucbf.System(lambda h, s, a: s, 0.0, 10**7, n_states=10, n_actions=3)


def test_a_long_horizon_takes_no_more_room_than_a_short_one():
    tracemalloc.start()
    long = ucbf.System(
        np.zeros((3, 2), int), np.zeros((3, 2)), 10**6, "clip", disturbance_range=(0, 1), landing=lambda z: z
    )
    assert len(long.mechanics.after) == 1
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10**6


@pytest.mark.parametrize("name", ["reward", "landing", "terminal"])
def test_rewards_that_overflow_are_refused(name):
    table = {"reward": (3, 2), "landing": (4,), "terminal": (3,)}[name]
    arguments = {"f": np.zeros((3, 2)), "reward": 0.0, "horizon": 4, "boundary": "clip", "disturbance_range": (0, 3)}
    ucbf.System(**{**arguments, name: np.full(table, 2.5e99)})
    for large in (2.6e99, -1e308):
        with pytest.raises(ValueError, match=f"{name}.* is {re.escape(f'{large:g}')}; it must stay within ±2.5e.99"):
            ucbf.System(**{**arguments, name: np.full(table, large)})


def test_sizes_that_no_array_can_have_are_refused():
    for more, message in [
        ({"state_offset": 2**60}, "state_offset is 1152921504606846976; it must be -9007199254740992 to"),
        ({"disturbance_range": (0, 10**400)}, r"disturbance_range\[1\] is 1000.*; it must be -9007199254740992 to"),
        ({"model_error": 1e300}, r"model_error .* is 1e\+300; it must be 0 or more and at most 2.68435e\+08"),
        ({"lipschitz": 1e300}, r"lipschitz is 1e\+300; it must be 0 or more and at most 1e\+100"),
    ]:
        with pytest.raises(ValueError, match=message):
            ucbf.System(np.zeros((3, 2)), 0.0, 2, "wrap", **more)

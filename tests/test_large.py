"""What large systems are built and valued by: parts, threads, sliding maxima, Fourier transforms."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ucbf
from ucbf import induction, tables
from ucbf import system as systems
from ucbf.planning import arena_of, occurring
from worlds import any_world

rewards = st.sampled_from([0.0, 0.1, 0.25, 1.0, 1.7])


def shop(capacity=30, orders=20, horizon=3, fixed=0.0, cost=0.3, short=1.7, **more):
    """A stock that is raised by what is ordered, at a fixed cost and so much a piece."""
    stated = {
        "f": lambda s, a: s + a,
        "reward": lambda s, a: -cost * a - fixed * (a > 0) - 0.05 * s,
        "horizon": horizon,
        "boundary": "clip",
        "landing": lambda z: -0.1 * np.maximum(z, 0) - short * np.maximum(-z, 0),
        "allowed": lambda s, a: s + a <= capacity,
        "n_states": capacity + 1,
        "n_actions": orders,
        "disturbance_range": (-9, 0),
        "discount": 0.95,
    }
    return ucbf.System(**stated | more)


def law_of(weights, low=-9):
    pmf = np.asarray(weights, float) + 1e-3
    return ucbf.Disturbance(pmf / pmf.sum(), low=low)


def as_large(world):
    """The optimal plan, as that of a large system."""
    m, (moves, pmf) = world.system.mechanics, occurring(world.system, world.law)
    value, ahead = np.tile(m.terminal, (m.horizon + 1, 1)), np.empty((m.horizon, m.n_after))
    policy = np.zeros((m.horizon, len(m.terminal)), np.int64)
    top = induction.Large(m, moves, pmf).induction(value, ahead, policy, np.empty(len(m.next_state)))
    return value, ahead, policy, top


def assert_same_bits(world):
    plan = ucbf.optimal(world)
    value, ahead, policy, top = as_large(world)
    np.testing.assert_array_equal(value, plan.v)
    np.testing.assert_array_equal(ahead, plan.ahead)
    np.testing.assert_array_equal(policy, plan.policy)
    changed = np.flatnonzero(plan.policy.any(axis=1))
    assert top == (changed[-1] if len(changed) else -1)


@given(any_world())
@settings(max_examples=40)
def test_threads_give_the_same_bits(world):
    assume(world.system.n_contexts == 1)
    assert_same_bits(world)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_bits_do_not_depend_on_the_number_of_threads(threads, monkeypatch):
    monkeypatch.setattr(induction, "threads", lambda: threads)
    assert_same_bits(ucbf.random_world(n_states=40, n_actions=20, seed=3, lipschitz=None))
    box = ucbf.System(
        lambda s, a: s + a[:, None] * [1, 0],
        lambda s, a: -0.3 * a + s[:, 1],
        2,
        ["clip", "wrap"],
        low=[0, 0],
        high=[6, 600],  # W on the first axis moves by 601 after-states
        actions=np.arange(3),
        disturbance_range=([-2, 0], [0, 0]),
    )
    assert_same_bits(ucbf.World(box, ucbf.Disturbance([0.2, 0.5, 0.3], values=[[-2, 0], [-1, 0], [0, 0]])))


@given(
    rewards,
    rewards,
    rewards,
    st.lists(st.integers(0, 5), min_size=10, max_size=10),
    st.integers(2, 40),
    st.integers(16, 60),
)
@settings(max_examples=60)
def test_sliding_maxima_give_the_same_bits_also_where_actions_tie(cost, fixed, short, weights, capacity, orders):
    system = shop(capacity, orders, fixed=fixed, cost=cost, short=short)
    best = induction.Best(system.mechanics)
    best._look(system.mechanics.after[0], system.mechanics.reward[0])
    assert best.slope == pytest.approx(-cost if min(capacity + 1, orders) > 2 else 0, abs=1e-12)
    assert_same_bits(ucbf.World(system, law_of(weights)))


@pytest.mark.parametrize("cost", [0.1, 0.3, 1.7])
def test_where_rounding_decides_all_actions_are_compared(cost):
    # What follows grows by what an order costs: all actions tie but for rounding, of the reward and of the sum.
    m = shop(60, 25, cost=cost).mechanics
    best, each, rng = induction.Best(m), np.arange(61), np.random.default_rng(0)
    for _ in range(20):
        ahead = cost * np.arange(m.n_after)[None] + rng.integers(-2, 3, (1, m.n_after)) * 1e-16
        value, policy = np.empty(61), np.zeros(61, np.int64)
        best(0, ahead, value, policy)
        q = m.reward[0] + ahead[0, m.after[0]]
        np.testing.assert_array_equal(policy, q.argmax(axis=1))
        np.testing.assert_array_equal(value, q[each, policy])


def test_sliding_maxima_are_for_orders_that_cost_so_much_a_piece():
    def slope(**more):
        m = shop(**more).mechanics
        best = induction.Best(m)
        best._look(m.after[0], m.reward[0])
        return best.slope

    assert slope() == pytest.approx(-0.3)
    assert np.isnan(slope(reward=lambda s, a: -0.3 * a - 1e-6 * (a == 7)))  # the price of one quantity is another
    assert np.isnan(slope(f=lambda s, a: s + a + (a == 7)))
    assert np.isnan(slope(f=lambda s, a: 30 - s, allowed=True))  # windows that move down
    assert np.isnan(slope(allowed=lambda s, a: (s + a <= 30) & (a != 7)))
    assert np.isnan(slope(orders=15))  # few actions are as quick by themselves


def test_sliding_maxima_look_at_two_pairs_of_a_state():
    # Not ordering, and the best order: rewards of the others, which would be taken if they were looked at, are not.
    world = ucbf.World(shop(fixed=1.0), law_of(range(10)))
    m, each = world.system.mechanics, np.arange(31)
    best, ahead = induction.Best(m), np.ascontiguousarray(ucbf.optimal(world).ahead[:1])
    value, again, policy = np.empty(31), np.empty(31), np.zeros(31, np.int64)
    best(0, ahead, value, policy)
    np.testing.assert_array_equal(value, ucbf.optimal(world).v[0])
    order = 1 + (m.reward[0] + ahead[0, m.after[0]])[:, 1:].argmax(axis=1)
    spoiled = np.where(np.isfinite(m.reward), 1e6, -np.inf)
    for looked_at in (0 * each, order):
        spoiled[0, each, looked_at] = m.reward[0, each, looked_at]
    best.m = m._replace(reward=spoiled)
    best(0, ahead, again, policy)
    np.testing.assert_array_equal(again, value)


def test_a_wide_distribution_is_summed_by_fourier_transforms_and_rounding_breaks_no_ties():
    rng = np.random.default_rng(0)
    weights = rng.random(801) * (rng.random(801) < 0.5)
    world = ucbf.World(
        shop(60, 20, disturbance_range=(-900, 3), reward=lambda s, a: 0.0 * a), law_of(weights, low=-850)
    )
    direct = ucbf.optimal(world)
    value, ahead, _policy, _ = as_large(world)
    scale = np.ptp(direct.v)
    assert 0 < np.abs(ahead - direct.ahead).max() <= 1e-13 * scale
    np.testing.assert_allclose(value, direct.v, rtol=0, atol=1e-13 * scale)
    # Beyond the reach of W all stocks are alike, and every action ties: the lowest is taken.
    flat = ucbf.World(shop(60, 20, landing=lambda z: 0.0 * z + 3.0, cost=0.0, reward=lambda s, a: 0.0 * a,
                           disturbance_range=(-900, 3)), law_of(weights, low=-850))  # fmt: skip
    assert not as_large(flat)[2].any()
    same = [as_large(world) for _ in range(2)]
    np.testing.assert_array_equal(same[0][0], same[1][0])


@pytest.mark.parametrize(("states", "first", "last"), [(40, -900, 3), (5000, -600, 0), (3, -5, 2000), (1, -700, -100)])
def test_pieces_of_a_transform_overlap_so_far_as_the_disturbances_reach(states, first, last):
    rng = np.random.default_rng(states)
    system = ucbf.System(lambda s, a: s, 0.0, 1, "clip", n_states=states, n_actions=1, disturbance_range=(first, last),
                         landing=lambda z: 1 + np.sin(z))  # fmt: skip
    m, pmf = system.mechanics, rng.dirichlet(np.ones(last - first + 1))[None]
    one, raw, ahead = induction.Large(m, m.offsets, pmf), np.empty(len(m.next_state)), np.empty((1, m.n_after))
    assert one.fourier
    one.expect(0, rng.random(states), raw, ahead)
    summed = [pmf[0] @ raw[x : x + len(pmf[0])] for x in range(states)]
    np.testing.assert_allclose(ahead[0], summed, rtol=0, atol=1e-13 * np.ptp(raw))


def test_actions_within_the_rounding_of_a_transform_tie_and_the_lowest_is_taken():
    # Action 1 leads to 5 + 2e-13, action 2 to 5 + 4e-13, action 0 to 5 - 3e-12: with a slack of 1e-12 the second ties.
    m = ucbf.System(lambda s, a: a + 0 * s, 0.0, 1, "clip", n_states=3, n_actions=3).mechanics
    ahead = np.array([[5 - 3e-12, 5 + 2e-13, 5 + 4e-13]])
    for slack, lowest in ((0.0, 2), (1e-12, 1), (1e-11, 0)):
        value, policy = np.empty(3), np.zeros(3, np.int64)
        induction.Best(m)(0, ahead, value, policy, slack)
        assert policy.tolist() == [lowest] * 3
        assert value.tolist() == [5 + 4e-13] * 3


def test_a_large_system_is_learned_and_valued_as_any(monkeypatch):
    world = ucbf.World(shop(fixed=1.0), law_of(range(10)), start=4)
    other = ucbf.random_world(seed=2, lipschitz=None)

    def played():
        found = []
        for one in (world, other):
            fresh = ucbf.World(one.system.replace(), one.law, start=one.start)
            agent = ucbf.UCBVIf(fresh.system)
            run = ucbf.simulate(agent, fresh, episodes=12, seed=5)
            anything = ucbf.Random(fresh.system, seed=3).policy
            found += [
                run.gap,
                run.reward,
                run.switched,
                agent.q,
                agent.policy,
                agent.units.scale,
                agent.units.cap,
                agent.units.floor,
            ]
            found += [ucbf.evaluate(fresh, anything), fresh.plan.v]
        return found

    as_ever = played()
    monkeypatch.setattr(induction, "LARGE", 0)
    for mine, theirs in zip(as_ever, played(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_policy_is_valued_as_ever():
    world = ucbf.World(shop(), law_of(range(10)))
    arena, anything = arena_of(world.system, world.law), ucbf.Random(world.system, seed=3).policy
    v = np.tile(world.system.terminal, (4, 1))
    induction.Large(arena.mechanics, arena.j, arena.pmf).evaluate(anything, v, arena.raw, arena.ahead, 2)
    np.testing.assert_array_equal(v, ucbf.evaluate(world, anything))


# -- building ----------------------------------------------------------------------------------------------


def in_parts(monkeypatch):
    monkeypatch.setattr(tables, "AT_ONCE", 8)
    monkeypatch.setattr(tables, "PART", 50)
    monkeypatch.setattr(systems, "AT_ONCE", 64)


def box(**more):
    stated = {
        "f": lambda h, s, a: np.stack([s[:, 0] + a + h, s[:, 1]], axis=1),
        "reward": lambda s, a: -0.5 * a - s[:, 1],
        "horizon": 2,
        "boundary": ["clip", "wrap"],
        "low": [0, -3],
        "high": [12, 3],
        "actions": np.arange(5),
        "allowed": lambda s, a: s[:, 0] + a <= 13,
        "disturbance_range": ([-2, -1], [0, 1]),
        "landing": lambda z: -np.abs(z[:, 0] - 2.0 * z[:, 1]),
        "terminal": lambda s: s.sum(axis=1),
    }
    return ucbf.System(**stated | more)


def pipeline():
    return ucbf.systems.Inventory(lead_time=3, capacity=9, max_order=4, max_demand=6, horizon=None, penalty=4).system


@pytest.mark.parametrize(
    "make",
    [shop, box, pipeline, lambda: box(points=[None, 5], boundary="clip")],
    ids=["line", "box", "pipeline", "lattice"],
)
def test_a_system_that_is_read_in_parts_is_the_same(make, monkeypatch):
    whole = make()
    in_parts(monkeypatch)
    parts = make()
    for name in ("f", "reward", "allowed", "landing", "terminal"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    for mine, theirs in zip(parts.mechanics, whole.mechanics, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not parts.f.flags.writeable
    assert not parts.mechanics.after.flags.writeable


def test_functions_of_large_systems_may_know_the_sizes_and_change_their_kind_of_number(monkeypatch):
    in_parts(monkeypatch)
    table = np.arange(31 * 20).reshape(31, 20) % 31
    known = shop(f=lambda s, a: table, reward=lambda s, a: np.where((s > 20).any(), 0.5, 1) * a)
    np.testing.assert_array_equal(known.f[0], np.where(known.allowed[0], table, 0))
    assert table[3, 3] == 63 % 31  # it is not written to
    # 50 // 20 = 2 states a part: whole numbers first, and halves from state 20 on
    assert known.reward[0, 19, 4] == 4.0
    assert known.reward[0, 22, 4] == 2.0


def test_after_states_of_large_tables_take_half_the_memory_unless_they_are_large(monkeypatch):
    in_parts(monkeypatch)
    assert shop().f.dtype == np.int32
    assert shop(f=lambda s, a: s + a + 2**40, state_offset=2**40, allowed=True, landing=None).f.dtype == np.int64


def test_an_error_in_a_part_names_the_state(monkeypatch):
    in_parts(monkeypatch)
    with pytest.raises(ValueError, match=r"reward at step 0, state 25, action 2 is nan"):
        shop(reward=lambda s, a: np.where((s == 25) & (a == 2), np.nan, 0.0))
    with pytest.raises(TypeError, match="failed when it was called"):
        shop(reward=lambda s, a: 1 / 0)


def test_a_first_state_needs_no_table_of_all_pairs_of_states():
    world = ucbf.World(ucbf.System(lambda s, a: s, 0.0, 1, "clip", n_states=200_000, n_actions=1), law_of([1], 0), 7)
    assert world.start[7] == 1
    assert world.start.sum() == 1


# -- draws -------------------------------------------------------------------------------------------------


def test_episodes_that_are_drawn_in_blocks_are_those_drawn_at_once():
    world = ucbf.random_world(seed=1, lipschitz=None)
    starts, drawn = world.draw_indices(20, 9)
    draw = world.drawing(9)
    blocks = [draw(n) for n in (1, 12, 7)]
    np.testing.assert_array_equal(np.concatenate([block[0] for block in blocks]), starts)
    np.testing.assert_array_equal(np.concatenate([block[1] for block in blocks]), drawn)


def test_first_draws_are_kept_for_the_next_agent_and_followed_by_the_same(monkeypatch):
    monkeypatch.setattr(ucbf.world, "DRAWN_AT_ONCE", 77)
    world = ucbf.random_world(seed=1, lipschitz=None)  # 10 steps and a first state: 7 episodes at once
    starts, drawn = world.draw_indices(20, 9)
    for seed, again in ((9, False), (9, True), (8, False), (9, False)):
        draw = world.drawing(seed, 20)
        before = world.__dict__.get("_first_draws")
        blocks = [draw(n) for n in (1, 12, 7)]
        assert (world.__dict__["_first_draws"] is before) == again
        same = np.array_equal(np.concatenate([block[0] for block in blocks]), starts)
        same &= np.array_equal(np.concatenate([block[1] for block in blocks]), drawn)
        assert same == (seed == 9)


def test_steps_that_are_drawn_in_blocks_are_those_of_their_place_in_the_period():
    system = ucbf.System(lambda s, a: s + a, 0.0, None, "wrap", n_states=5, n_actions=2, period=3, discount=0.9)
    world = ucbf.World(system, ucbf.Disturbance([[1.0, 0, 0], [0, 1.0, 0], [0.5, 0, 0.5]]))
    first, drawn = world.draw_steps(20, 9)
    assert drawn[::3].tolist() == [[0]] * 7
    assert drawn[1::3].tolist() == [[1]] * 7
    assert set(drawn[2::3, 0].tolist()) == {0, 2}
    begin, draw = world.drawing_steps(9)
    assert begin == first
    np.testing.assert_array_equal(np.concatenate([draw(0, 1), draw(1, 12), draw(12, 20)]), drawn)


@pytest.mark.slow
def test_a_hundred_thousand_states_and_a_hundred_actions_take_less_than_seven_tenths_of_a_gigabyte():
    program = """
import resource, numpy as np, ucbf
S, A, W = 100_000, 100, 100
system = ucbf.System(lambda s, a: s + a, lambda s, a: -2.0 * a, 20, "clip", n_states=S, n_actions=A,
                     landing=lambda z: -1.0 * np.maximum(z, 0) - 9.0 * np.maximum(-z, 0),
                     allowed=lambda s, a: s + a < S, disturbance_range=(-W, 0))
world = ucbf.World(system, ucbf.Disturbance(np.full(W + 1, 1 / (W + 1)), low=-W), start=0)
ucbf.simulate(ucbf.UCBVIf(system), world, episodes=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9)
"""
    run = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in "ab"]
    assert float(run[1].stdout) < 0.7  # the first compiles

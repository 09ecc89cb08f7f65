"""simulate: one agent in one world, for K episodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.base import Agent
from ucbf.agents.fitted import FittedUCBVIf
from ucbf.certificates import Certificate
from ucbf.checks import length_of, real, whole
from ucbf.coupling import looks
from ucbf.errors import warn
from ucbf.files import digest
from ucbf.kernels import backward, loop
from ucbf.kernels.backward import Arena
from ucbf.kernels.seen import Seen, explain
from ucbf.mechanics import raw_starts
from ucbf.planning import arena_of, checked_policy, follow, most_sweeps, tolerance
from ucbf.run import Progress, Run
from ucbf.system import System
from ucbf.tables import LARGEST_TABLE, distinct_steps
from ucbf.world import World

BLOCK_SECONDS = 0.1  # how long a progress report, or Ctrl-C, waits
AT_ONCE = 2**12  # states whose f is compared
CHECKED_AFTER = frozenset(50 * 2**i for i in range(40))  # episodes: whether what the agent was told is contradicted


def simulate(
    agent: Agent,
    world: World,
    episodes: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    stop_when: float | None = None,
    censored: bool = False,
    *,
    steps: int | None = None,
) -> Run:
    """Let ``agent`` act and learn in ``world``; it goes on from what it knows already.

    All first states and disturbances are drawn from ``seed`` before the first episode, so that every agent
    meets the same ones. An agent that goes on needs another seed: with one that it had before it meets the same
    disturbances again and counts them twice, so that no certificate holds; that is warned of. Where a clipped boundary
    hides a disturbance the agent is shown it, as ``info`` of the Gymnasium view does, unless ``censored``. Now and then
    an agent that is told f is asked whether its model holds, and warns if not.

    Parameters
    ----------
    episodes, steps
        How long: episodes, or where there is no end, steps. The run then has an entry for each step: what it paid, and
        the gap between the best policy and the one acted by, in the long-run average or, with a discount, in the
        value from the first state on.
    progress
        Called with (episodes done, episodes) about ten times a second.
    stop_when
        ε: stop as soon as ``agent.certificate()``, averaged over the first state, is at most that; it is looked at
        after 1, 2, ..., 40, 42, 44, ... episodes, a twentieth more each time, in numbers of two digits followed by
        zeros, for which it is narrowest. The run is then shorter.
    censored
        Whether a clipped edge hides W: an agent that is told f then learns there only that W was at most, or at least,
        something, as in a shop that does not count the customers it sends away. Others see what they are paid, as ever.
    """
    if isinstance(agent, FittedUCBVIf):
        raise TypeError(f"agent is {agent!r:.60}, which fits values; use ucbf.simulate_large(agent, law, steps)")
    if not isinstance(world, World):
        raise TypeError(f"world is {world!r:.60}; give a ucbf.World")
    if not isinstance(agent, Agent):
        raise TypeError(f"agent is {agent!r:.60}; give an agent, such as ucbf.UCBf(system)")
    unending = world.system.horizon is None
    K = length_of(episodes, steps, unending, "this world")
    if unending and K * world.system.n_contexts > LARGEST_TABLE:
        raise ValueError(
            f"{K} steps are more than {LARGEST_TABLE} draws at a time; simulate fewer, and again with another seed: "
            "the agent goes on from what it has learned"
        )
    if not unending and K * (world.system.n_steps + 1) > LARGEST_TABLE:
        raise ValueError(
            f"{K} episodes of {world.system.n_steps} steps are more than {LARGEST_TABLE} draws at a time; simulate "
            "fewer, and again with another seed: the agent goes on from what it has learned"
        )
    _check_told(agent.system, world)
    hides = bool(world.system.space.clips.any()) or world.system.space.boundary is not None
    hidden = censored and hides and agent.hides_at_edges()
    if hidden and stop_when is not None:
        raise ValueError("stop_when needs a certificate, and nothing can be certified of what an edge hides; drop one")
    stops = _stops(agent, world, K, stop_when)
    pauses = sorted({k for k in CHECKED_AFTER if k < K} | {K} | set(stops))
    seed = whole("seed", seed, 0)
    _warn_if_met(agent, world, seed)
    begin, draw_on = world.drawing_steps(seed)
    draw = world.drawing(seed, 0 if unending else K)
    arena = arena_of(world.system, world.law, world.start, world.best)
    gap, reward, switched = np.empty(K), np.empty(K), np.empty(K, np.bool_)
    acted = np.zeros((world.system.n_steps, world.system.n_states), np.int64)  # whatever: no episode was before
    v = np.tile(world.system.terminal, (world.system.n_steps + 1, 1))
    played = Played(world, arena, v, acted, gap, reward, switched)
    moves, measured = _moves(world, agent.system) if world.system.space.all_whole else (begin, begin)
    at, now = np.array(begin), np.zeros(3)
    if unending:
        now[1:] = tolerance(world.system), most_sweeps(world.system)
    between = at if world.system.space.all_whole else _first_state(world, begin[0])
    done, block, stopped = 0, 16, False
    while done < K and not stopped:
        end = min(done + block, next(k for k in pauses if k > done))
        part, begun = slice(done, end), time.perf_counter()
        starts, drawn = (at, draw_on(done, end)) if unending else draw(end - done)
        if unending and not world.system.space.all_whole:
            between = _play_on_between(agent, played, drawn[:, 0], part, between, now)
        elif unending:
            draws = loop.Draws(at, moves[drawn[:, None]], measured[drawn[:, None]], hidden)
            _play_on(agent, played, draws, part, at, now)
        elif world.system.space.all_whole:
            drawn = drawn if drawn.ndim == 3 else drawn[..., None]
            draws = loop.Draws(starts, moves[drawn], measured[drawn], hidden)
            _play(agent, played, draws, part)
        else:
            _play_between(agent, played, starts, drawn, part)
        switched[0], done = False, part.stop  # there was none before the first
        took = max(time.perf_counter() - begun, 1e-9)
        block = max(1, min(4 * block, int(block * BLOCK_SECONDS / took)))
        stopped = done in stops and stops[done]()
        if done in CHECKED_AFTER or done == K or stopped:
            agent.warn_if_contradicted()
        if progress is not None:
            progress(done, K)
    return Run(reward[:done], gap[:done], switched[:done], by_step=unending)


def _warn_if_met(agent: Agent, world: World, seed: int) -> None:
    """Warn if an agent that learns has met these disturbances before; remember them."""
    law = world.law
    drawn = digest(b"".join(np.asarray(part).tobytes() for part in (seed, world.start, law.pmf, law.values)))
    if drawn in agent.met and (agent.uses_residual or agent.learns_what_is_paid):
        warn(
            f"the agent has met the disturbances of seed {seed} in this world before, and counts them again, so that "
            "no certificate holds; pass another seed, or begin with a new agent"
        )
    agent.met.add(drawn)


class Played(NamedTuple):
    """A world that is played in, and room for what happens."""

    world: World
    arena: Arena
    v: NDArray[np.float64]  # [H+1, S] for the values of a policy, its last row the terminal reward
    acted: NDArray[np.int64]  # [H, S] the policy of the episode before
    gap: NDArray[np.float64]  # [K] filled
    reward: NDArray[np.float64]  # [K]
    switched: NDArray[np.bool_]  # [K]


def _moves(world: World, told: System) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[n] of the values of the law: how far each moves among the raw next states, and its index for the learner."""
    true, law = world.system, world.law
    j = true.indices_of(law)
    shown = told.space.clips.any() or told.mechanics.searches  # elsewhere the next state says it
    return true.mechanics.offsets[j], told.indices_of(law) if shown else j


def _play(agent: Agent, played: Played, draws: loop.Draws, part: slice) -> None:
    """Act, then learn, for the episodes of a part; fills gap, reward and switched."""
    _, arena, v, acted, gap, reward, switched = played
    gap, reward, switched = gap[part], reward[part], switched[part]
    if agent.compiled is not None:
        with agent.lock:
            loop.run(arena, agent.told, agent.compiled, draws, v, acted, gap, reward, switched)
        return
    H = agent.system.n_steps
    states, actions = np.empty(H + 1, np.int64), np.empty(H, np.int64)
    for k in range(len(gap)):
        with agent.lock:
            agent.renew()
            now = agent.policy
            switched[k] = not np.array_equal(acted, now)
            if switched[k] or part.start + k == 0:
                acted[...] = checked_policy(agent.system, now)
                follow(arena, acted, v, H - 1)
            gap[k], reward[k] = loop.episode(arena, acted, draws, k, v, -1, states, actions)
            for h in range(H):
                agent.update(Seen(*loop.seen_at(agent.told, draws, k, h, states, actions)))


def _play_on(
    agent: Agent,
    played: Played,
    draws: loop.Draws,
    part: slice,
    at: NDArray[np.int64],
    now: NDArray[np.float64],
) -> None:
    """The same where there is no end, for the steps of a part. at, now: as of :func:`ucbf.kernels.loop.run_on`."""
    world, arena, v, acted, gap, reward, switched = played
    if agent.compiled is not None:
        with agent.lock:
            told, learner, first = agent.told, agent.compiled, part.start
            out = gap[part], reward[part], switched[part]
            loop.run_on(arena, told, learner, draws, first, v, acted, at, now, *out)
        return
    m, P = world.system.mechanics, world.system.n_steps
    for i, t in enumerate(range(part.start, part.stop)):
        with agent.lock:
            agent.renew()
            policy = agent.policy
            switched[t] = not np.array_equal(acted, policy)
            if switched[t] or t == 0:
                acted[...] = checked_policy(agent.system, policy)
                now[0] = loop.gap_without_end(arena, acted, v, now)
            h, s = t % P, int(at[0])
            a, e = int(acted[h, s]), s // world.system.space.n_states
            z = int(raw_starts(m)[m.after[h % len(m.after), s, a]]) + int(draws.j[i, 0, e])
            gap[t], reward[t] = now[0], m.reward[h % len(m.reward), s, a] + m.landing[h % len(m.landing), z]
            at[0] = m.next_state[z]
            measured = int(draws.measured[i, 0, e])
            agent.update(Seen(*explain(agent.told, h, s, a, int(at[0]), measured, draws.censored)))


def _play_between(
    agent: Agent, played: Played, starts: NDArray[np.int64], drawn: NDArray[np.int64], part: slice
) -> None:
    """The same where axes are continuous: the states are what they are, the gap is that of the points.

    starts, drawn: of the part
    """
    world, arena, v, acted, gap, reward, switched = played
    system, policy = world.system, np.empty((0, 0), np.int64)
    for i, k in enumerate(range(part.start, part.stop)):
        agent.renew()
        now = checked_policy(system, agent.policy)
        if not np.array_equal(now, policy):
            policy = now
            follow(arena, policy, v, system.n_steps - 1)
        switched[k], acted[...] = not np.array_equal(acted, policy), policy
        gap[k], reward[k] = backward.gap_of(arena, v), 0.0
        s = _first_state(world, starts[i])
        for h in range(system.n_steps):
            a, w = agent.act(h, s), world.law.values[drawn[i, h]]
            after, paid = system.advance(h, s[None], np.array([a]), w)
            reward[k] += system.discount**h * float(paid[0])
            agent.observe(h, s, a, after[0], disturbance=w)
            s = after[0]
        reward[k] += system.discount**system.n_steps * float(system.at_any_state.terminal(s[None])[0])


def _play_on_between(
    agent: Agent, played: Played, drawn: NDArray[np.int64], part: slice, s: NDArray[Any], now: NDArray[np.float64]
) -> NDArray[Any]:
    """The same where axes are continuous and there is no end, from state s [d] on; the state after the last step."""
    world, arena, v, acted, gap, reward, switched = played
    system = world.system
    for t, j in zip(range(part.start, part.stop), drawn, strict=True):
        agent.renew()
        policy = checked_policy(system, agent.policy)
        switched[t] = not np.array_equal(acted, policy)
        if switched[t] or t == 0:
            acted[...] = policy
            now[0] = loop.gap_without_end(arena, acted, v, now)
        a, w = agent.act(t, s), world.law.values[j]
        after, paid = system.advance(t % system.n_steps, s[None], np.array([a]), w)
        gap[t], reward[t] = now[0], float(paid[0])
        agent.observe(t, s, a, after[0], disturbance=w)
        s = after[0]
    return s


def _first_state(world: World, i: int) -> NDArray[Any]:
    """[d] on continuous axes: the first state that was drawn, by its index."""
    start: NDArray[Any] = world.system.space.points[i] if world.start_state is None else world.start_state
    return start


def _stops(agent: Agent, world: World, K: int, stop_when: float | None) -> dict[int, Callable[[], bool]]:
    """After which episodes to look whether to stop, in order; each says so."""
    if stop_when is None:
        return {}
    wanted = real("stop_when", stop_when, 0, open_low=True)
    agent.check_certifiable(K)

    def certified() -> bool:
        try:
            found: Certificate = agent.certificate()  # type: ignore[attr-defined]  # it has one: it was checked
        except ValueError:  # what was seen since contradicts the model, which a ModelWarning says
            return False
        return found.average(world.start) <= wanted

    return dict.fromkeys(looks(K), certified)


def _check_told(told: System, world: World) -> None:
    """What the agent was told must speak of this world, before any work is done."""
    true = world.system
    for what in ("n_states", "n_actions", "horizon", "n_steps", "n_contexts", "state_offset", "lag"):
        if getattr(told, what) != getattr(true, what):
            raise ValueError(
                f"the agent was told {what} = {getattr(told, what)!r}, but the world has "
                f"{getattr(true, what)!r}; build both from one system"
            )
    if told.space.rules != true.space.rules:
        raise ValueError(
            f"the agent was told boundary = {told.boundary!r:.40}, but the world has {true.boundary!r:.40}; build both "
            "from one system"
        )
    lattices = [(s.low.tolist(), s.high.tolist(), s.shape.tolist(), s.is_line) for s in (told.space, true.space)]
    if lattices[0] != lattices[1] or not np.array_equal(told.actions, true.actions):
        raise ValueError("the agent and the world do not have the same states and actions; build both from one system")
    if not _alike(told.allowed, true.allowed):
        raise ValueError("the agent and the world do not allow the same actions; build both from one system")
    paid = [(s.reward, s.terminal, s.discount, _landing_within(s, true, told)) for s in (told, true)]
    if not all(_alike(mine, theirs) for mine, theirs in zip(*paid, strict=True)):
        warn("the agent was told other rewards or another discount than the world's")
    if told.disturbance_range is not None:
        _check_residuals(told, world)


def _check_residuals(told: System, world: World) -> None:
    """The residuals that the agent would see must be within the range that it was told."""
    true, d = world.system, world.system.raw_space.n_axes
    errors = np.unique(np.concatenate(list(_errors(told, true))), axis=0)
    occurs = world.law.values[(world.law.pmf > 0).any(axis=0)].reshape(-1, d)
    residuals = np.concatenate([occurs - error for error in errors])
    low, high = (np.ravel(side) for side in told.disturbance_range)
    low, high = low - told.slack, high + told.slack
    space = true.raw_space
    turned = space.wraps & space.is_whole
    residuals = np.where(turned, low + (residuals - low) % space.shape, residuals)
    margin = np.where(space.is_whole, 0, space.spacing / 2)
    outside = residuals[((residuals < low - margin) | (residuals > high + margin)).any(axis=1)]
    if len(outside):
        shown = [str(row[0]) if true.space.is_line else str(row) for row in (outside[0], low, high)]
        raise ValueError(
            f"in this world the agent would see a residual of {shown[0]}, outside {shown[1]}..{shown[2]} "
            "(its disturbance_range, widened by ζ/2); declare a wider range, or a larger model_error"
        )


def _errors(told: System, true: System) -> Iterator[NDArray[Any]]:
    """[n, d] by how much f as told is wrong, of the pairs that exist: each once, of some states at a time."""
    d = true.raw_space.n_axes
    if told.f is true.f:
        yield np.zeros((1, d), true.f.dtype)
        return
    tables = [distinct_steps(table) for table in (told.f, true.f, true.allowed)]
    for h in range(max(map(len, tables))):
        mine, theirs, exists = (table[min(h, len(table) - 1)] for table in tables)
        for i in range(0, true.n_states, AT_ONCE):
            part = slice(i, i + AT_ONCE)
            yield np.unique((mine[part] - theirs[part])[exists[part]].reshape(-1, d), axis=0)


def _alike(one: Any, other: Any) -> bool:
    """Whether two tables, or numbers, are equal; steps that are stored once are compared once."""
    if one is other or not np.ndim(one):
        return bool(one is other or one == other)
    if one.shape != other.shape:
        return False
    mine, theirs = np.broadcast_arrays(distinct_steps(one), distinct_steps(other))
    return np.array_equal(mine, theirs)


def _sides(system: System) -> tuple[NDArray[Any], ...]:
    """What says, beside the lattice of after-states, which raw states a box has."""
    return system.bins.first, system.bins.count, system.raw_space.low, system.raw_space.spacing


def _landing_within(system: System, one: System, other: System) -> NDArray[np.float64]:
    """Landing rewards over the raw states that both systems have; zero where there are none."""
    if not system.space.is_line:
        alike = one is other or all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip((*one.reach, *_sides(one)), (*other.reach, *_sides(other)), strict=True)
        )
        return np.zeros((1, 1)) if system.landing is None or not alike else system.landing
    first = max(one.raw_states[0], other.raw_states[0])
    n = max(0, min(one.raw_states[-1], other.raw_states[-1]) + 1 - first)
    begin = first - system.raw_states[0]
    return np.zeros((1, n)) if system.landing is None else system.landing[:, begin : begin + n]

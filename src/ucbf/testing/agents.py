"""The contract of an agent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents import Agent, Random
from ucbf.checks import whole
from ucbf.planning import evaluate, optimal
from ucbf.simulation import simulate
from ucbf.testing.contract import Rule, chosen, enforce, name_of, require, require_equal, require_refusal
from ucbf.testing.playing import (
    EPISODES,
    Make,
    episode,
    known,
    learned,
    reloaded,
    require_same,
    require_same_state,
    show,
    stages,
)
from ucbf.testing.worlds import leaning_worlds, small_worlds, state_name, states_outside
from ucbf.world import World

MANY = 500  # episodes of those who learn
RANDOM = 200  # episodes of those who choose at random
SHARE = 0.5  # of what choosing at random loses, that a learner may still lose in the end
SURE = 1e-6  # the chance with which a certificate may fail here


def check_agent(
    make: Make, world: World | Iterable[World] | None = None, *, episodes: int = MANY, skip: Collection[str] = ()
) -> None:
    """Try every rule of the contract on an agent of one's own; a :class:`ucbf.testing.ContractError` if one is broken.

    Parameters
    ----------
    make
        The class, or a function of a System that gives a new agent: ``functools.partial(MyAgent, c=0.1)``.
    world
        Where to try it, one world or several. None: small worlds that have every feature of a system and, for the rules
        on learning, :func:`ucbf.testing.leaning_worlds`.
    episodes
        How long it may learn before it must have learned.
    skip
        Names of rules that do not apply: ``["learns"]`` for an agent that learns nothing. AGENT_RULES lists them.

    Examples
    --------
    >>> import ucbf
    >>> ucbf.testing.check_agent(ucbf.UCBVIf)
    >>> ucbf.testing.check_agent(ucbf.Greedy)
    Traceback (most recent call last):
    ucbf.testing.contract.ContractError: Greedy breaks the rule learns in System(5 states -2..2, 3 actions, ...
    >>> ucbf.testing.check_agent(ucbf.Greedy, skip=["learns"])
    """
    episodes = whole("episodes", episodes, 1)
    easy = leaning_worlds() if world is None else [world] if isinstance(world, World) else list(world)
    everywhere = [*small_worlds(), *easy] if world is None else easy
    for rule in chosen(AGENT_RULES, skip):
        for where in easy if rule in (warm_start_teaches_or_is_refused, learns) else everywhere:
            more = (episodes,) if rule is learns else ()
            enforce(rule, name_of(make, "the agent"), make, where, *more, place=repr(where.system))


# -- what an agent is and does ----------------------------------------------------------------------------


def is_an_agent(make: Make, world: World) -> None:
    """It is built from a System and is a ucbf.Agent with a name."""
    agent = make(world.system)
    require(isinstance(agent, Agent), f"it is {agent!r:.60}", "return an instance of a subclass of ucbf.Agent")
    name = getattr(agent, "name", None)
    require(isinstance(name, str) and name, f"its name is {name!r}", "give the class a text as its name")


def policy_is_a_table_of_allowed_actions(make: Make, world: World) -> None:
    """Its policy is [H, S] whole numbers, each an action that is allowed there; before and after learning."""
    allowed = world.system.allowed
    for agent in stages(make, world):
        policy = np.asarray(agent.policy)
        require(
            policy.shape == allowed.shape[:2],
            f"policy has shape {policy.shape}",
            f"give [H, S] = {allowed.shape[:2]}: a row for each step, a column for each state",
        )
        require(policy.dtype.kind in "iu", f"policy is of type {policy.dtype}", "give whole numbers")
        for h, s in np.ndindex(policy.shape):
            a = int(policy[h, s])
            require(
                0 <= a < allowed.shape[2] and allowed[h, s, a],
                f"at step {h} in state {state_name(world.system, s)} the policy takes action {a}",
                f"choose among the allowed {np.flatnonzero(allowed[h, s]).tolist()}: system.allowed[h, s]",
            )


def system_is_not_changed(make: Make, world: World) -> None:
    """What it is told stays as it was, in every table and in what is optimal."""
    before = _tables(world)
    agent = learned(make, world)
    agent.act(0, state_name(world.system, 0))
    for name, now in _tables(world).items():
        require_equal(before[name], now, f"{name} of the system before and after", "work on copies of its tables")


def gap_is_never_negative(make: Make, world: World) -> None:
    """Nothing that it does is better than optimal."""
    slack = 1e-10 * (1 + float(np.abs(optimal(world).v).max()))
    run = simulate(make(world.system), world, EPISODES, seed=5)
    least = float(run.gap.min())
    require(least >= -slack, f"its gap fell to {least:g}", "do not touch the world: the gap is V* less V of its policy")


def act_follows_the_policy(make: Make, world: World) -> None:
    """What act answers for a state, called by its name, is what the policy says at its index."""
    for agent in stages(make, world):
        policy = agent.policy
        for h, s in np.ndindex(policy.shape):
            state = state_name(world.system, s)
            a = agent.act(h, state)
            require(isinstance(a, int | np.integer), f"act({h}, {state}) is {a!r}", "answer with a whole number")
            require(
                a == policy[h, s],
                f"act({h}, {state}) is {a}, but policy[{h}, {s}] is {policy[h, s]}",
                "look up the index of the state, which is its name less that of the first state",
            )


def what_it_returns_is_a_copy(make: Make, world: World) -> None:
    """Writing into a policy that it returned changes nothing in it."""
    agent = learned(make, world)
    returned = agent.policy
    before = np.array(returned)
    if returned.flags.writeable:
        returned[...] = world.system.n_actions - 1 - returned
    require_equal(agent.policy, before, "the policy before and after writing into what was returned", "return a copy")


def q_is_a_value_for_every_allowed_action(make: Make, world: World) -> None:
    """Its q, where it has one, is [H, S, A]: finite where an action is allowed, -inf elsewhere."""
    for agent in stages(make, world):
        if not hasattr(agent, "q"):
            return
        q, allowed = np.asarray(agent.q), world.system.allowed
        require(q.shape == allowed.shape, f"q has shape {q.shape}", f"give [H, S, A] = {allowed.shape}")
        require(np.isfinite(q[allowed]).all(), "q is not finite where an action is allowed", "check how it is updated")
        require((q[~allowed] == -np.inf).all(), "q is a number where an action does not exist", "put -inf there")


def same_seed_same_run(make: Make, world: World) -> None:
    """Two new agents in two runs with one seed do the same, bit for bit."""
    before = known(make(world.system))
    one, other = (simulate(make(world.system), world, EPISODES, seed=4) for _ in range(2))
    remedy = "draw random numbers from a generator with a seed of the agent's own, and share nothing between agents"
    after = known(make(world.system))
    require_same_state(before, after, "a new agent, before and after others learned", remedy)
    require_equal(one.gap, other.gap, "the gaps of two runs with one seed", remedy)
    require_equal(one.reward, other.reward, "the rewards of two runs with one seed", remedy)


# -- learning ---------------------------------------------------------------------------------------------


def observe_teaches_what_simulate_does(make: Make, world: World) -> None:
    """An agent that is shown transitions by observe learns what it learns in simulate from the same ones."""
    shown = make(world.system)
    for k in range(EPISODES):
        show(shown, episode(shown.policy, world, EPISODES, k))
    remedy = "learn in update, which both of them call, not in observe or in act"
    require_same(learned(make, world), shown, world, "an agent in simulate and one that is shown the same", remedy)


def saved_and_loaded_it_goes_on(make: Make, world: World) -> None:
    """Saved and loaded, twice, it goes on as if it had never stopped, bit for bit."""
    straight, stopped = make(world.system), make(world.system)
    remedy = "list every array that learning changes in state, and give the constructor's keywords to super().__init__"
    for part in range(2):
        for agent in (straight, stopped):
            simulate(agent, world, EPISODES, seed=part)
        stopped, what = reloaded(stopped), "an agent that went on and one that was saved and loaded"
        require_same_state(known(straight), known(stopped), what, remedy)
        require_same(straight, stopped, world, what, remedy, seed=9 + part)


def saved_in_the_middle_of_an_episode_it_goes_on(make: Make, world: World) -> None:
    """It can be saved between two steps of an episode."""
    middle = world.system.n_steps // 2
    straight, stopped = learned(make, world), learned(make, world)
    steps = episode(straight.policy, world, 1, 0, seed=6)
    for agent in (straight, stopped):
        show(agent, steps[:middle])
    stopped = reloaded(stopped)
    what = f"an agent that went on and one that was saved and loaded before step {middle}"
    remedy = "keep what it remembers from step to step in state, too"
    one, other = ([agent.act(h, s) for h, s, *_ in steps[middle:]] for agent in (straight, stopped))
    require_equal(one, other, f"the actions of {what}", remedy)
    for agent in (straight, stopped):
        show(agent, steps[middle:])
    require_same_state(known(straight), known(stopped), what, remedy)
    require_same(straight, stopped, world, what, remedy)


def copies_learn_apart(make: Make, world: World) -> None:
    """Deep copies learn each for itself, in threads too, and leave the original alone."""
    agent = learned(make, world)
    policy, before = np.array(agent.policy), known(agent)
    remedy = "hold all that learning changes in arrays of the agent's own"
    copies = [deepcopy(agent) for _ in range(2)]
    require(all(copy is not agent for copy in copies), "copy.deepcopy gives the agent itself", remedy)
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(partial(_run, world), copies, (1, 2)))
    require_same_state(before, known(agent), "an agent before and after its copies learned", remedy)
    require_equal(policy, agent.policy, "the policy of an agent before and after its copies learned", remedy)
    for seed, run in enumerate(runs, start=1):
        alone = _run(world, deepcopy(agent), seed)
        require_equal(run, alone, "the gaps of a copy that learns beside another and of one alone", remedy)


def refuses_what_does_not_exist(make: Make, world: World) -> None:
    """A step, state or action that does not exist is refused with a ValueError, and nothing is learned from it."""
    agent, system = learned(make, world), world.system
    h, s, a, after, w = episode(agent.policy, world, 1, 0)[0]
    H, A = system.n_steps, system.n_actions
    before, observe = known(agent), partial(agent.observe, disturbance=w)
    wrong: dict[str, Callable[[], Any]] = {}
    for step in (-1, H):
        wrong[f"act({step}, {s})"] = partial(agent.act, step, s)
        wrong[f"observe({step}, {s}, {a}, {after})"] = partial(observe, step, s, a, after)
    for state in states_outside(system):
        wrong[f"act({h}, {state})"] = partial(agent.act, h, state)
        wrong[f"observe({h}, {state}, {a}, {after})"] = partial(observe, h, state, a, after)
        wrong[f"observe({h}, {s}, {a}, {state})"] = partial(observe, h, s, a, state)
    for action in (-1, A):
        wrong[f"observe({h}, {s}, {action}, {after})"] = partial(observe, h, s, action, after)
    for step, index, action in np.argwhere(~system.allowed)[:1].tolist():
        state = state_name(system, index)
        wrong[f"observe({step}, {state}, {action}, {after})"] = partial(observe, step, state, action, after)
    remedy = "raise a ValueError with the value and what is allowed; Agent.act and Agent.observe do"
    for what, call in wrong.items():
        require_refusal(call, (ValueError,), what, remedy)
    require_same_state(before, known(agent), "an agent before and after such calls", "check first, then learn")


def warm_start_teaches_or_is_refused(make: Make, world: World) -> None:
    """A history of W alone teaches it what to do, or is refused with a TypeError that says why."""
    agent = make(world.system)
    history = world.draw(MANY, seed=7)[1]
    try:
        agent.warm_start(history)
    except TypeError as error:
        require(str(error), "warm_start raised a TypeError without a word", "say why it learns nothing from W alone")
        return
    gap = float(world.start @ (optimal(world).v[0] - evaluate(world, agent.policy)[0]))
    _require_low(gap, world, f"after a warm_start with {MANY} episodes", "learn from W, or leave warm_start as it is")


def certificate_holds(make: Make, world: World) -> None:
    """A certificate, where it gives one, is never below the exact gap and brackets the values; a ValueError if none."""
    agent, best = make(world.system), optimal(world).v[0]
    if not hasattr(agent, "certificate"):
        return
    slack = 1e-9 * (1 + float(np.abs(best).max()))
    for part in range(3):
        try:
            found = agent.certificate(SURE)
        except ValueError as error:
            require(str(error), "certificate raised a ValueError without a word", "say why nothing can be certified")
            return
        value = evaluate(world, agent.policy)[0]
        for name in ("upper", "lower", "gap"):
            array = np.asarray(getattr(found, name))
            well = array.shape == best.shape and bool(np.isfinite(array).all())
            require(well, f"its {name} is {array!r:.60}", f"give finite numbers [S] = {best.shape}")
        after = f"after {part * 2 * EPISODES} episodes, at p = {SURE:g},"
        remedy = "count the error of every mean; a gap is V* less V of the policy as it is now"
        for short, what in (
            (best - value - found.gap, "gap(s) is below the exact gap by"),
            (best - found.upper, "upper(s) is below V*(s) by"),
            (found.lower - value, "lower(s) is above V(s) of its policy by"),
            (found.gap - (found.upper - found.lower), "gap(s) is above upper(s) - lower(s) by"),
        ):
            require((short <= slack).all(), f"{after} {what} {short.max():g}", remedy)
        simulate(agent, world, 2 * EPISODES, seed=part)


def learns(make: Make, world: World, episodes: int = MANY) -> None:
    """In the end it loses at most half of what choosing at random loses."""
    run = simulate(make(world.system), world, episodes, seed=8)
    gap = float(run.gap[-max(1, episodes // 10) :].mean())
    remedy = (
        "look at update; a smaller bonus or more episodes= may be needed; if it is not meant to learn: skip=['learns']"
    )
    _require_low(gap, world, f"in the last tenth of {episodes} episodes", remedy)


AGENT_RULES: tuple[Rule, ...] = (
    is_an_agent,
    policy_is_a_table_of_allowed_actions,
    system_is_not_changed,
    gap_is_never_negative,
    act_follows_the_policy,
    what_it_returns_is_a_copy,
    q_is_a_value_for_every_allowed_action,
    same_seed_same_run,
    observe_teaches_what_simulate_does,
    saved_and_loaded_it_goes_on,
    saved_in_the_middle_of_an_episode_it_goes_on,
    copies_learn_apart,
    refuses_what_does_not_exist,
    warm_start_teaches_or_is_refused,
    certificate_holds,
    learns,
)


# -- what the rules share ---------------------------------------------------------------------------------


def _tables(world: World) -> dict[str, Any]:
    """Copies of what an agent is told, and of what follows from it."""
    system = world.system
    names = [name for name in ("f", "reward", "allowed", "terminal", "landing") if getattr(system, name) is not None]
    tables = {name: np.array(getattr(system, name)) for name in names}
    return {**tables, "the optimal value": optimal(World(system, world.law, world.start)).v}


def _run(world: World, agent: Agent, seed: int) -> NDArray[np.float64]:
    return simulate(agent, world, EPISODES, seed).gap


def _require_low(gap: float, world: World, when: str, remedy: str) -> None:
    """An error if a gap is not clearly below that of choosing at random."""
    chance = float(simulate(Random(world.system), world, RANDOM).gap.mean())
    allowed = SHARE * chance + 1e-9 * (1 + abs(world.best))
    require(gap <= allowed, f"{when} its gap is {gap:.3g}, where choosing at random loses {chance:.3g}", remedy)

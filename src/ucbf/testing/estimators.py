"""The contract of an estimator of f."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ucbf.agents import UCBVIf
from ucbf.controller import load
from ucbf.disturbance import Disturbance
from ucbf.estimators import Estimate, Estimator
from ucbf.models import Model
from ucbf.simulation import simulate
from ucbf.system import System
from ucbf.testing.contract import Rule, a_file, chosen, enforce, name_of, require, require_equal, require_refusal
from ucbf.testing.playing import EPISODES, require_same
from ucbf.testing.worlds import tank
from ucbf.world import World

Make = Callable[[], Model]
Residual = tuple[int, int, int, int]  # h, s, a, s' - f(s, a): what an estimator observes

OBSERVATIONS = 60
MANY = 300  # episodes
TIMES = 2.0  # what repairing f may lose, compared with leaving it as told


def check_estimator(
    make: Make, world: World | None = None, told: System | None = None, *, skip: Collection[str] = ()
) -> None:
    """Try every rule of the contract on an estimator of f; a :class:`ucbf.testing.ContractError` if one is broken.

    Parameters
    ----------
    make
        The class, or a function without arguments that gives a new estimator: ``lambda: MyEstimator(features)``.
    world, told
        Where to try it, and what its agents are told of that: a System with a wrong f, of which ``model_error`` says
        how wrong it may be. None: a tank whose actions do three times as much as is told.
    skip
        Names of rules that do not apply. ESTIMATOR_RULES lists them.

    Examples
    --------
    >>> import ucbf
    >>> ucbf.testing.check_estimator(ucbf.estimators.LinearFeatures)
    """
    if (world is None) != (told is None):
        raise TypeError("world and told go together: give the world and what is told of it, or neither")
    world = World(tank(3, 0), Disturbance([0.1, 0.2, 0.4, 0.2, 0.1], low=-2)) if world is None else world
    told = tank(1, 8) if told is None else told
    for rule in chosen(ESTIMATOR_RULES, skip):
        enforce(rule, name_of(make, "the estimator"), make, world, told, place=repr(told))


def is_an_estimator(make: Make, world: World, told: System) -> None:
    """Each call gives a new estimator, a subclass of ucbf.estimators.Estimator with a name."""
    one, other = make(), make()
    for made in (one, other):
        require(isinstance(made, Model), f"it is {made!r:.60}", "return an instance of ucbf.estimators.Estimator")
    require(one is not other, "two calls gave the same object", "make a new one each time")
    name = getattr(one, "name", None)
    require(isinstance(name, str) and name, f"its name is {name!r}", "give the class a text as its name")


def estimates_are_finite_tables(make: Make, world: World, told: System) -> None:
    """After start, which says 1 or H rows, it estimates finite tables [rows, S, A]; no error is below 0."""
    H, S, A = told.horizon, told.n_states, told.n_actions
    made = make()
    if not isinstance(made, Estimator):
        return
    rows = made.start(told)
    require(rows in (1, H), f"start gave {rows!r} rows", f"give 1, or H = {H}")
    made.estimate()  # perhaps None: nothing was seen
    shown(made, world, told)
    found: Any = made.estimate()
    require(
        isinstance(found, Estimate),
        f"after {OBSERVATIONS} observations estimate gave {found!r:.60}",
        "return Estimate(correction, error)",
    )
    for name, array in found._asdict().items():
        shape = np.shape(array)
        require(shape == (rows, S, A), f"{name} has shape {shape}", f"give [rows, S, A] = {(rows, S, A)}")
        require(np.isfinite(array).all(), f"{name} is not finite", "check the features, and divisions by zero")
    require((found.error >= 0).all(), "an error is below 0", "give how far off it may be, 0 or more")


def none_if_nothing_changed(make: Make, world: World, told: System) -> None:
    """Asked again without an observation in between, it says None."""
    made = started(make, told)
    if made is None:
        return
    shown(made, world, told)
    made.estimate()
    again = made.estimate()
    require(
        again is None,
        f"the second answer is {again!r:.60}",
        "return None until something is observed: it is asked often",
    )


def same_observations_same_estimate(make: Make, world: World, told: System) -> None:
    """Two new estimators that observe the same say the same, bit for bit."""
    remedy = "draw random numbers from a generator with a seed of its own, and share nothing between estimators"
    one, other = (_answer(shown(started(make, told), world, told)) for _ in range(2))
    require_equal(one, other, "two estimators that observed the same", remedy)


def restored_it_goes_on(make: Make, world: World, told: System) -> None:
    """Restored from its state, a new one goes on as if it were the old, bit for bit; another's state is refused."""
    straight, new = started(make, told), started(make, told)
    if straight is None or new is None:
        return
    shown(straight, world, told)
    straight.estimate()
    shown(straight, world, told, seed=1)
    remedy = "list every array that observe or estimate changes in state"
    new.restore({name: np.array(array) for name, array in straight.state.items()})
    require_equal(_answer(straight), _answer(new), "an estimator that went on and one that was restored", remedy)
    for one in (straight, new):
        shown(one, world, told, seed=2)
    require_equal(_answer(straight), _answer(new), "the same two, after they went on", remedy)
    if straight.state:
        require_refusal(
            lambda: new.restore({}), (ValueError,), "restore({})", "raise a ValueError if an array is missing"
        )


def belongs_to_one_agent(make: Make, world: World, told: System) -> None:
    """An estimator that an agent has is refused by another agent with a ValueError."""
    made = make()
    if isinstance(made, Estimator):
        UCBVIf(told, estimator=made)
        remedy = "leave ``started`` to the agents: what two of them observe would be mixed up"
        require_refusal(lambda: UCBVIf(told, estimator=made), (ValueError,), "a second agent with it", remedy)


def its_agent_is_saved_and_goes_on(make: Make, world: World, told: System) -> None:
    """An agent with it, saved and loaded with a new one, goes on as if it had never stopped, bit for bit."""
    straight, stopped = (UCBVIf(told, estimator=make()) for _ in range(2))
    for agent in (straight, stopped):
        simulate(agent, world, EPISODES)
    with a_file() as path:
        stopped.save(path)
        loaded = load(path, estimator=make())
    remedy = "give its parameters to super().__init__ and list what it learns in state"
    require_same(straight, loaded, world, "an agent that went on and one that was saved and loaded", remedy)


def does_no_harm(make: Make, world: World, told: System) -> None:
    """Where the f that is told is wrong, the regret with it is at most twice that without."""
    regret, without = (
        float(simulate(UCBVIf(told, estimator=estimator), world, MANY).regret[-1]) for estimator in (make(), None)
    )
    require(
        regret <= TIMES * without + 1e-9 * (1 + abs(world.best)),
        f"in {MANY} episodes its regret is {regret:.3g}, and {without:.3g} where f is left as told",
        "check the sign: a residual is s' less f(s, a) as told, and a correction is added to f",
    )


ESTIMATOR_RULES: tuple[Rule, ...] = (
    is_an_estimator,
    estimates_are_finite_tables,
    none_if_nothing_changed,
    same_observations_same_estimate,
    restored_it_goes_on,
    belongs_to_one_agent,
    its_agent_is_saved_and_goes_on,
    does_no_harm,
)


# -- what the rules share ---------------------------------------------------------------------------------


def started(make: Make, told: System) -> Estimator | None:
    """A new estimator that knows what is told; None for one that is compiled into its agent, and has no methods."""
    made = make()
    if not isinstance(made, Estimator):
        return None
    made.start(told)
    return made


def shown(estimator: Any, world: World, told: System, seed: int = 0) -> Any:
    """The estimator after it observed residuals of random pairs, away from any boundary; None if it is None."""
    if estimator is not None:
        for residual in residuals(world, told, seed):
            estimator.observe(*residual)
    return estimator


def residuals(world: World, told: System, seed: int) -> list[Residual]:
    """What a random policy would show: the error of f, plus W."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(np.argwhere(told.allowed), OBSERVATIONS)
    w = world.draw(OBSERVATIONS, seed)[1]
    error = world.system.f - told.f
    return [(int(h), int(s), int(a), int(error[h, s, a] + w[k, h])) for k, (h, s, a) in enumerate(pairs)]


def _answer(estimator: Estimator | None) -> Any:
    """[2, rows, S, A] its estimate; an empty array for None."""
    found = None if estimator is None else estimator.estimate()
    return np.zeros(0) if found is None else np.stack(found)

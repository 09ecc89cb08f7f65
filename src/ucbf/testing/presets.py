"""The contract of a preset."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from ucbf.agents import UCBVIf
from ucbf.controller import Controller, load
from ucbf.disturbance import Disturbance
from ucbf.planning import evaluate, optimal
from ucbf.simulation import simulate
from ucbf.systems import Preset
from ucbf.testing.contract import Rule, a_file, chosen, enforce, name_of, require, require_equal, require_refusal
from ucbf.testing.worlds import state_name
from ucbf.world import World

FINER = 5  # units that one is cut into
WORDS = ("kind", "amount_name", "state_name", "action_name", "step_name")


def check_preset(make: Callable[[], Preset], *, skip: Collection[str] = ()) -> None:
    """Try every rule of the contract on a preset; a :class:`ucbf.testing.ContractError` if one is broken.

    Parameters
    ----------
    make
        The class, or a function without arguments that gives a preset: ``functools.partial(MyPreset, horizon=3)``. A
        small one serves as well as a large one: its system is also built in units of a fifth.
    skip
        Names of rules that do not apply. PRESET_RULES lists them.

    Examples
    --------
    >>> import ucbf
    >>> ucbf.testing.check_preset(lambda: ucbf.systems.Inventory(capacity=6, max_demand=3, horizon=2))
    """
    for rule in chosen(PRESET_RULES, skip):
        enforce(rule, name_of(make, "the preset"), make)


def is_a_preset(make: Callable[[], Preset]) -> None:
    """It is a preset of ucbf.systems that says what things are called, and whether W adds to the state."""
    preset = make()
    require(
        isinstance(preset, Preset), f"it is {preset!r:.60}", f"return an instance of ucbf.systems.{Preset.__name__}"
    )
    for name in WORDS:
        word = getattr(preset, name, None)
        require(isinstance(word, str) and word, f"{name} is {word!r}", "give the class a text of that name")
    sign = getattr(preset, "sign", None)
    require(sign in (-1, 1), f"sign is {sign!r}", "say 1 if the amount adds to the state, -1 if it is taken from it")


def parameters_are_checked(make: Callable[[], Preset]) -> None:
    """A parameter that makes no sense is refused when the preset is made, with a ValueError or TypeError."""
    preset = make()
    given = preset.parameters()
    wrong: list[dict[str, Any]] = [
        *({name: value} for name in given for value in (float("nan"), "many")),
        *({"horizon": 0}, {"unit": 0.0}, {"unit": -1.0}, {"discount": 0.0}, {"discount": 1.5}),
        {"profile": (0.0,) * (preset.n_steps + 1)},
        {"no_such_parameter": 1},
    ]
    for name in preset.multiples_of_unit:
        if given[name] is not None:
            wrong.append({name: _moved(given[name], preset.unit / 2)})
    for change in wrong:
        what = ", ".join(f"{name}={value!r:.40}" for name, value in change.items())
        remedy = "refuse it in check, and leave __post_init__ as it is"
        require_refusal(partial(preset.replace, **change), (ValueError, TypeError), what, remedy)


def replace_changes_what_is_named(make: Callable[[], Preset]) -> None:
    """With replace comes a preset of the same kind with one parameter changed; parameters() builds it again."""
    preset = make()
    before, discount = preset.parameters(), 0.5 if preset.discount != 0.5 else 0.25
    changed, again = preset.replace(discount=discount), type(preset)(**before)
    remedy = "make every parameter a field of the dataclass"
    for made, expected in ((changed, {**before, "discount": discount}), (again, before), (preset, before)):
        require(type(made) is type(preset), f"its type is {type(made).__name__}", "return the same kind")
        found = made.parameters()
        require(found.keys() == {field.name for field in fields(preset)}, f"parameters are {[*found]}", remedy)
        for name, value in expected.items():
            require(np.array_equal(found[name], value), f"{name} is {found[name]!r:.40}, not {value!r:.40}", remedy)


def actions_exist_everywhere(make: Callable[[], Preset]) -> None:
    """In every state an action is allowed, and each has its amount."""
    preset = make()
    system, amounts = preset.system, np.asarray(preset.action_quantities)
    require(
        amounts.shape == (system.n_actions,) and np.isfinite(amounts).all(),
        f"action_quantities is {amounts!r:.60} for {system.n_actions} actions",
        "give a number for each",
    )


def range_of_w_covers_the_amounts(make: Callable[[], Preset]) -> None:
    """Every amount of amount_range is a W that the system declares, with a profile too; others are refused."""
    for preset in (make(), profiled(make())):
        low, high = preset.amount_range
        declared = preset.system.disturbance_range
        require(declared is not None, "its system declares no range of W", "leave ``system`` as it is")
        w = preset.disturbances(np.repeat(np.linspace(low, high, 7)[:, None], preset.n_steps, axis=1))
        least, most = declared or (0, 0)
        require(
            w.min() >= least and w.max() <= most,
            f"amounts from {low:g} to {high:g} are W from {w.min()} to {w.max()}, but {least} to {most} is declared",
            "let amount_range say how far the amount goes",
        )
        law = preset.example_distribution()
        back = preset.amount_distribution(preset.disturbance_distribution(law))
        means, found = ([one.mean(h) for h in range(preset.n_steps)] for one in (law, back))
        require(np.allclose(means, found), f"mean amounts of {means} came back as {found}", "check sign")
        beyond = Disturbance([1.0], low=int(preset.to_units(high)) + 1)
        remedy = "leave ``disturbance`` as it is"
        require_refusal(partial(preset.world, beyond), (ValueError,), "an amount beyond its range", remedy)


def a_profile_only_moves_w(make: Callable[[], Preset]) -> None:
    """With a profile W is called otherwise, but what is optimal stays as it is."""
    plain, known = make().replace(profile=0.0), profiled(make())
    one, other = (optimal(preset.world(plain.example_distribution())).v for preset in (plain, known))
    apart = float(np.abs(one - other).max())
    require(
        apart <= 1e-9 * (1 + np.abs(one).max()),
        f"the optimal values differ by up to {apart:g}",
        "add sign * expected[h] to f at every step",
    )


def a_finer_unit_is_the_same_system(make: Callable[[], Preset]) -> None:
    """In units of a fifth, from the same amounts, the same action and W lead to the same amount and pay the same."""
    preset = make().replace(profile=0.0)
    cut = preset.replace(unit=preset.unit / FINER)
    coarse, fine = preset.system, cut.system
    states = np.array([FINER * s - fine.states[0] for s in coarse.states])  # indices of the same amounts
    near = np.abs(preset.action_quantities[:, None] - cut.action_quantities) < 1e-9 * preset.unit
    actions, has = near.argmax(axis=1), near.any(axis=1)  # those that a finer unit has too
    require(states.min() >= 0 and states.max() < fine.n_states, "it has other states", "count states in units")
    h, s, a = np.nonzero(coarse.allowed & has)
    allowed = fine.allowed[h, states[s], actions[a]].all()
    require(allowed, "an action is not allowed where it was", "compare amounts in one unit")
    low, high = (range_ or (0, 0) for range_ in (coarse.disturbance_range, fine.disturbance_range))
    w = np.array([w for w in range(low[0], low[1] + 1) if high[0] <= FINER * w <= high[1]])
    after, paid = coarse.advance(h[:, None], s[:, None], a[:, None], w)
    fine_after, fine_paid = fine.advance(h[:, None], states[s][:, None], actions[a][:, None], FINER * w)
    require((states[after] == fine_after).all(), "f leads elsewhere", "let f count in units, and amounts by units_of()")
    for what, one, other in (
        ("a step pays", paid, fine_paid),
        ("the end pays", coarse.terminal, fine.terminal[states]),
    ):
        slack = 1e-9 * (1 + float(np.abs(one).max()))
        at = np.unravel_index(np.abs(one - other).argmax(), one.shape)
        require(
            abs(one[at] - other[at]) <= slack,
            f"{what} {one[at]:g} in units of {preset.unit:g} and {other[at]:g} in units of {cut.unit:g}",
            "a cost of each unit is multiplied by unit in reward, landing and terminal; a fixed cost is not",
        )


def world_begins_where_asked(make: Callable[[], Preset]) -> None:
    """Its world() is of its system; start is in the user's units; an agent can learn in it."""
    preset = make()
    system, last = preset.system, preset.system.n_states - 1
    world = preset.world(start=state_name(system, last) * preset.unit)
    require(isinstance(world, World) and world.system is system, f"world() is {world!r:.60}", "make it of ``system``")
    require_equal(world.start, np.eye(last + 1)[last], "the first state as it was asked for", "use start")
    simulate(UCBVIf(system), world, 2)


def policies_are_told_in_its_words(make: Callable[[], Preset]) -> None:
    """A policy has a row for every step and state, in the words and units of the preset, and can be read."""
    preset = make()
    system, policy = preset.system, preset.policy(optimal(preset.world()))
    rows, words = policy.rows(), [preset.step_name, preset.state_name, preset.action_name]
    require([*rows[0]] == words, f"its columns are {[*rows[0]]}", f"call them {words}")
    said, states = np.array([row[preset.state_name] for row in rows]), np.array(system.states) * preset.unit
    each = said.size == system.n_steps * len(states) and np.allclose(said.reshape(-1, len(states)), states)
    require(each, f"its states are {said!r:.60}", "give each state, times unit, at every step")
    done = {row[preset.action_name] for row in rows}
    require(
        done <= set(np.asarray(preset.action_quantities, float)), f"actions are {done!r:.60}", "use action_quantities"
    )
    require(str(policy), "it reads as nothing", "leave ``policy`` as it is")


def its_environment_passes_gymnasiums_check(make: Callable[[], Preset]) -> None:
    """Gymnasium's check_env passes without a warning; for an action that is not allowed it is given one that is."""
    from gymnasium.utils.env_checker import check_env

    from ucbf.envs import WorldEnv

    class Forgiving(WorldEnv):
        """Takes the first allowed action for one that is not allowed."""

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            state, info = super().reset(seed=seed, options=options)
            self.mask = info["action_mask"]
            return state, info

        def step(self, action: Any) -> Any:
            *moved, info = super().step(action if self.mask[action] else self.mask.argmax())
            self.mask = info["action_mask"]
            return *moved, info

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(Forgiving(make().world()), skip_render_check=True)


def saved_controllers_give_the_same_orders(make: Callable[[], Preset]) -> None:
    """A Controller with it, saved and loaded, gives the same orders in the user's units."""
    preset = make()
    system = preset.system
    agent = UCBVIf(system)
    agent.warm_start(preset.world().draw(20, seed=0)[1])
    controller = Controller(preset, agent)
    with a_file() as path:
        controller.save(path)
        loaded = load(path, None, None, type(preset))
    steps = [(h, state_name(system, s) * preset.unit) for h in range(system.n_steps) for s in range(system.n_states)]
    one, other = ([each.act(h, state) for h, state in steps] for each in (controller, loaded))
    require_equal(
        one, other, "the orders before and after saving", "make all that it depends on a field of the dataclass"
    )


def rules_are_policies(make: Callable[[], Preset]) -> None:
    """Each of its rules is a policy [H, S] of allowed actions, and none is better than optimal."""
    preset = make()
    world = preset.world()
    best = optimal(world).v[0]
    for name, rule in preset.rules(world.law).items():
        shape = np.shape(rule)
        require(shape == world.system.allowed.shape[:2], f"{name!r} has shape {shape}", "give [H, S]")
        over = float((evaluate(world, rule)[0] - best).max())
        require(over <= 1e-9 * (1 + np.abs(best).max()), f"{name!r} is better than optimal by {over:g}", "check it")


PRESET_RULES: tuple[Rule, ...] = (
    is_a_preset,
    parameters_are_checked,
    replace_changes_what_is_named,
    actions_exist_everywhere,
    range_of_w_covers_the_amounts,
    a_profile_only_moves_w,
    a_finer_unit_is_the_same_system,
    world_begins_where_asked,
    policies_are_told_in_its_words,
    its_environment_passes_gymnasiums_check,
    saved_controllers_give_the_same_orders,
    rules_are_policies,
)


# -- what the rules share ---------------------------------------------------------------------------------


def profiled(preset: Preset) -> Preset:
    """The same with an amount expected at each step: now the least, now the most, now between."""
    low, high = preset.amount_range
    return preset.replace(profile=tuple(low + (high - low) * (h % 3) / 2 for h in range(preset.n_steps)))


def _moved(value: Any, by: float) -> Any:
    """A parameter that is one number or several, moved."""
    return tuple(x + by for x in value) if np.ndim(value) else value + by

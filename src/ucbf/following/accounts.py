"""What steps that happened say: in multiples of the unit, in money, and of the amount."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.controller import Controller
from ucbf.following.happened import Happened
from ucbf.seen import Transition, explain
from ucbf.systems import Preset
from ucbf.tables import takes_the_step

PARTS = (1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100, 200, 500, 1000)  # of a unit, in which money is counted, the first fit
NEAR = 1e-6  # parts: this near to a multiple is one


@dataclass(frozen=True)
class Reading:
    """A step that happened, as its system sees it."""

    told: Transition  # what the agent is told, in multiples of the unit
    s: int  # the index of the state
    w: int  # the disturbance; where it is hidden, the smallest that explains what was seen
    hidden: bool  # whether the next state says only that it was at least so large
    amount: float  # in the user's units; measured, or what the next state tells
    happened: Happened  # as it was told

    @property
    def a(self) -> int:
        """The number of the action."""
        return self.told.a


class Plan(NamedTuple):
    """What was expected when it was learned, in money."""

    v: NDArray[np.float64]  # [H+1, S] of a state at a step
    q: NDArray[np.float64]  # [H, S, A]


def read_step(controller: Controller, h: int, step: Happened) -> Reading:
    """A step as its system sees it; a ValueError in the user's words if it cannot have been like this."""
    preset, system = controller.preset, controller.agent.system
    moved = controller.transition(h, step.state, step.action, step.next_state, step.amount)
    begin, end = moved.s - system.state_offset, moved.s_next - system.state_offset
    if step.amount is not None:
        return Reading(moved, begin, moved.disturbance, False, step.amount, step)
    w = moved.s_next - int(system.f[h, begin, moved.a])
    amount = float((preset.sign * w + int(preset.expected_amount[h])) * preset.unit)
    low, high = preset.amount_range
    if not low - preset.unit <= amount <= high + preset.unit:
        raise ValueError(
            f"from {preset.state_name} {step.state:g} with {preset.action_name} {step.action:g} to {step.next_state:g} "
            f"the {preset.amount_name} would be {amount:g}, and it is {low:g} to {high:g} "
            f"({', '.join(preset.range_parameters)}); correct one of them"
        )
    seen = explain(system, controller.agent.told, Transition(h, begin, moved.a, end), True).seen
    if seen is not None and seen.low != seen.high:
        return Reading(moved, begin, w, True, amount, step)
    inside = float(np.clip(amount, low, high))
    if inside != amount:  # by rounding
        moved = controller.transition(h, step.state, step.action, step.next_state, inside)
        w = moved.disturbance
    return Reading(moved, begin, w, False, inside, step)


def learn_from(controller: Controller, reading: Reading) -> None:
    """Let a controller learn from a step, as its ``observe`` does."""
    told = reading.told
    controller.agent.observe(told.h, told.s, told.a, told.s_next, disturbance=told.disturbance)


def learned_plan(controller: Controller) -> Plan:
    """What an agent that has seen nothing since it was learned expects."""
    q = controller.agent.q
    v = np.vstack([q.max(axis=2), controller.agent.system.terminal])
    return Plan(v, q)


class Account(NamedTuple):
    """One step in money."""

    paid: float
    better: float  # than the plan expected of the advice from that state, what the next state is worth included
    unfollowed: float  # what the plan expected to lose by doing something else; 0 or below


def account(controller: Controller, plan: Plan, h: int, step: Reading) -> Account:
    """What a step paid, and what was expected of it.

    A state between two multiples of the unit is worth what lies between theirs.
    """
    system, unit = controller.agent.system, controller.preset.unit
    value, unfollowed = float(plan.v[h, step.s]), float(plan.q[h, step.s, step.a] - plan.v[h, step.s])
    exact = paid_between_units(controller.preset, h, step.happened)
    if exact is None:
        landed, paid = system.advance(h, step.s, step.a, step.w)
        return Account(float(paid), float(paid + system.discount * plan.v[h + 1, int(landed)]) - value, unfollowed)
    states = np.asarray(system.states) * unit
    value = float(np.interp(step.happened.state, states, plan.v[h]))
    follows = system.discount * float(np.interp(step.happened.next_state, states, plan.v[h + 1]))
    return Account(exact, exact + follows - value, unfollowed)


def paid_between_units(preset: Preset, h: int, step: Happened) -> float | None:
    """What a step paid whose numbers are not all multiples of the unit, by the mechanics in a unit of which they are.

    None where they are multiples of the unit, or of none that is tried.
    """
    told = [step.state, step.action, step.next_state, *(() if step.amount is None else (step.amount,))]
    parts = next((n for n in PARTS if all(_is_multiple(x, preset.unit / n) for x in told)), None)
    if parts in (None, 1):
        return None
    fine = preset.replace(unit=preset.unit / parts)
    known = fine.mechanics()
    if not all(callable(known[name]) for name in ("f", "reward", "landing") if name in known):
        return None

    def ask(name: str, *given: Any) -> int | float:
        function = known[name]
        given = (h, *given) if takes_the_step(name, function, len(given)) else given
        return np.asarray(function(*given)).reshape(-1)[0].item()  # type: ignore[no-any-return]

    s, end, a = np.array([fine.to_units(step.state)]), int(fine.to_units(step.next_state)), np.array([0])
    a[0] = fine.action_of(step.action)
    z = np.array([end])
    if step.amount is not None:
        z[0] = ask("f", s, a) + fine.sign * (int(fine.to_units(step.amount)) - int(fine.expected_amount[h]))
    return float(ask("reward", s, a) + (ask("landing", z) if "landing" in known else 0.0))


def _is_multiple(x: float, unit: float) -> bool:
    return abs(x / unit - round(x / unit)) < NEAR

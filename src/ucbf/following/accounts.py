"""What steps that happened say: in multiples of the unit, in money, and of the amount."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.controller import Controller
from ucbf.following.happened import Happened
from ucbf.seen import Transition, explain


@dataclass(frozen=True)
class Reading:
    """A step that happened, as its system sees it."""

    told: Transition  # what the agent is told, in multiples of the unit
    s: int  # the index of the state
    w: int  # the disturbance; where it is hidden, the smallest that explains what was seen
    hidden: bool  # whether the next state says only that it was at least so large
    amount: float  # in the user's units; measured, or what the next state tells

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
        return Reading(moved, begin, moved.disturbance, False, step.amount)
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
        return Reading(moved, begin, w, True, amount)
    inside = float(np.clip(amount, low, high))
    if inside != amount:  # by rounding
        moved = controller.transition(h, step.state, step.action, step.next_state, inside)
        w = moved.disturbance
    return Reading(moved, begin, w, False, inside)


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
    """What a step paid, and what was expected of it."""
    system = controller.agent.system
    landed, paid = system.advance(h, step.s, step.a, step.w)
    follows = float(system.discount * plan.v[h + 1, int(landed)])
    value = float(plan.v[h, step.s])
    return Account(float(paid), float(paid) + follows - value, float(plan.q[h, step.s, step.a]) - value)

"""What steps that happened say: in multiples of the unit, in money, and of the amount."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.controller import Controller
from ucbf.following.happened import Happened, words_of
from ucbf.kernels.seen import Seen
from ucbf.planning import lowest_best
from ucbf.policies import Policy
from ucbf.seen import Transition, explain
from ucbf.system import System
from ucbf.systems import Preset
from ucbf.tables import takes_the_step

PARTS = (1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100, 200, 500, 1000)  # of a unit, in which money is counted, the first fit
NEAR = 1e-6  # parts: this near to a multiple is one


@dataclass(frozen=True)
class Reading:
    """A step that happened, as its system sees it."""

    s: int  # the index of the state
    a: int  # the number of the action
    units: int  # the amount in multiples of the unit; where it is hidden, one that explains what was seen
    seen: Seen | None  # what an agent learns from it, if anything
    amount: float  # in the user's units; measured, or what the next state tells
    least: float  # of the amounts that explain what was seen: the amount itself, unless an edge hid it
    most: float
    happened: Happened  # as it was told

    @property
    def hidden(self) -> bool:
        """Whether the next state says only that the amount was within some range."""
        return self.least < self.most

    def disturbance(self, preset: Preset, h: int) -> int:
        """W at step h, around what this preset expects of it."""
        return preset.sign * (self.units - int(preset.expected_amount[h]))

    def moved(self, by: int, last: int) -> Reading:
        """The same where W is by so much larger, as around another forecast. last: the index of the largest.

        What is hidden reaches to an end of the range, and still does.
        """
        if self.seen is None or not by:
            return self
        exact, (low, high) = self.seen.low == self.seen.high, (self.seen.low, self.seen.high)
        if exact or low > 0:
            low = min(max(low + by, 0), last)
        if exact or high < last:
            high = min(max(high + by, 0), last)
        return replace(self, seen=self.seen._replace(low=low, high=high))


def read_step(controller: Controller, h: int, step: Happened) -> Reading:
    """A step as its system sees it; a ValueError in the user's words if it cannot have been like this."""
    preset, system, agent = controller.preset, controller.agent.system, controller.agent
    assert step.next_state is not None
    moved = controller.transition(h, step.state, step.action, step.next_state, step.amount)
    places = Transition(h, moved.s - system.state_offset, moved.a, moved.s_next - system.state_offset)
    if step.amount is None:
        units = _amount(preset, h, moved.s_next - int(system.f[h, places.s, moved.a]))
        amount = float(units * preset.unit)
        low, high = preset.amount_range
        if not low - preset.unit <= amount <= high + preset.unit:
            raise ValueError(
                f"from {preset.state_name} {step.state:g} with {preset.action_name} {step.action:g} to "
                f"{step.next_state:g} the {preset.amount_name} would be {amount:g}, and it is {low:g} to {high:g} "
                f"({', '.join(preset.range_parameters)}); correct one of them"
            )
        bounds = explain(system, agent.told, places, True).seen
        if bounds is not None and bounds.low != bounds.high:
            ends = [_amount(preset, h, int(system.bins.values[j])) * preset.unit for j in (bounds.low, bounds.high)]
            least, most = (float(np.clip(end, low, high)) for end in sorted(ends))
            if least < most:
                seen = explain(system, agent.told, places, agent.reads_censored).seen
                return Reading(places.s, moved.a, units, seen, amount, least, most, step)
        amount = float(np.clip(amount, low, high))  # it may be outside by rounding
        moved = controller.transition(h, step.state, step.action, step.next_state, amount)
    else:
        amount = step.amount
    places = places._replace(s_next=moved.s_next - system.state_offset, disturbance=moved.disturbance)
    seen = explain(system, agent.told, places, agent.reads_censored).seen
    units = _amount(preset, h, int(moved.disturbance))
    return Reading(places.s, moved.a, units, seen, amount, amount, amount, step)


def _amount(preset: Preset, h: int, w: int) -> int:
    """The amount that a disturbance means, in multiples of the unit."""
    return preset.sign * w + int(preset.expected_amount[h])


class Plan(NamedTuple):
    """What is expected, in money, and so what to do: in the contexts that there are, of which most systems have one."""

    preset: Preset
    system: System  # without contexts
    v: NDArray[np.float64]  # [H+1, E, S] of a state at a step
    q: NDArray[np.float64]  # [H, E, S, A]

    def policy(self, context: int, steps: tuple[str, ...] | None = None, step: str | None = None) -> Policy:
        """What to do in a context, in the words of the preset."""
        return self.preset.policy(lowest_best(self.q[:, context]), steps, step)


class Account(NamedTuple):
    """One step in money."""

    paid: float
    better: float  # than the plan expected of the advice from that state, what the next state is worth included
    unfollowed: float  # what the plan expected to lose by doing something else; 0 or below


def account(plan: Plan, h: int, step: Reading, contexts: tuple[int, int] = (0, 0)) -> Account:
    """What a step paid, and what was expected of it.

    A state between two multiples of the unit is worth what lies between theirs.

    contexts: before the step, and after it
    """
    system, unit, (e, e_next) = plan.system, plan.preset.unit, contexts
    value = float(plan.v[h, e, step.s])
    unfollowed = float(plan.q[h, e, step.s, step.a]) - value
    exact = paid_between_units(plan.preset, h, step.happened)
    if exact is None:
        landed, paid = system.advance(h, step.s, step.a, step.disturbance(plan.preset, h))
        better = float(paid + system.discount * plan.v[h + 1, e_next, int(landed)]) - value
        return Account(float(paid), better, unfollowed)
    states = np.asarray(system.states) * unit
    value = float(np.interp(step.happened.state, states, plan.v[h, e]))
    follows = system.discount * float(np.interp(step.happened.next_state or 0.0, states, plan.v[h + 1, e_next]))
    return Account(exact, exact + follows - value, unfollowed)


# -- what is told, in a unit of which all of it is a multiple ---------------------------------------------


class _Fine:
    """The mechanics of a step, in a unit of which its numbers are multiples."""

    def __init__(self, preset: Preset, h: int, step: Happened, parts: int) -> None:
        self.preset, self.h = (preset if parts == 1 else preset.replace(unit=preset.unit / parts)), h
        self.known = self.preset.mechanics()
        self.s = np.array([self.preset.to_units(step.state)])
        self.a = np.array([self.preset.action_of(step.action)])

    def asks(self, *names: str) -> bool:
        """Whether these can be asked for any state, not only looked up."""
        return all(callable(self.known[name]) for name in names if name in self.known)

    def ask(self, name: str, *given: Any) -> int | float:
        """One number that a function of the mechanics gives."""
        function = self.known[name]
        given = (self.h, *given) if takes_the_step(name, function, len(given)) else given
        return np.asarray(function(*given)).reshape(-1)[0].item()  # type: ignore[no-any-return]

    def raw(self, amount: float) -> int:
        """Where an amount leads, before the boundary."""
        preset = self.preset
        w = preset.sign * (int(preset.to_units(amount)) - int(preset.expected_amount[self.h]))
        return int(self.ask("f", self.s, self.a)) + w


def paid_between_units(preset: Preset, h: int, step: Happened) -> float | None:
    """What a step paid whose numbers are not all multiples of the unit, by the mechanics in a unit of which they are.

    None where they are multiples of the unit, or of none that is tried.
    """
    parts = _parts(preset, step)
    if parts is None or parts == 1:
        return None
    fine = _Fine(preset, h, step, parts)
    if not fine.asks("f", "reward", "landing"):
        return None
    assert step.next_state is not None
    z = np.array([int(fine.preset.to_units(step.next_state)) if step.amount is None else fine.raw(step.amount)])
    return float(fine.ask("reward", fine.s, fine.a) + (fine.ask("landing", z) if "landing" in fine.known else 0.0))


def with_next_state(preset: Preset, h: int, step: Happened) -> Happened:
    """A step with the next state that the mechanics give it, where it was not told.

    A ValueError where they do not tell it.
    """
    if step.next_state is not None:
        return step
    name, given = words_of(preset)["next_state"], preset.amount_name
    if step.amount is None:
        raise ValueError(f"neither the {given} nor the {name} is given; give one of them")
    parts = _parts(preset, step)
    fine = None if parts is None else _Fine(preset, h, step, parts)
    if fine is None or not fine.asks("f") or fine.known.get("boundary", "clip") != "clip":
        raise ValueError(f"the {name} does not follow from what is given; give it")
    low = fine.known.get("state_offset", 0)
    z = min(max(fine.raw(step.amount), low), low + fine.known["n_states"] - 1)
    return replace(step, next_state=float(z * fine.preset.unit))


def _parts(preset: Preset, step: Happened) -> int | None:
    """Into how many parts a unit must be cut so that all that was told is a multiple of one; None for too many."""
    told = [x for x in (step.state, step.action, step.next_state, step.amount) if x is not None]
    return next((n for n in PARTS if all(_is_multiple(x, preset.unit / n) for x in told)), None)


def _is_multiple(x: float, unit: float) -> bool:
    return abs(x / unit - round(x / unit)) < NEAR

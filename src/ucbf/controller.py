"""An agent in the user's units: what is on the shelf in, what to order out; and files of agents."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ucbf.agents import restored
from ucbf.agents.base import Agent
from ucbf.agents.fitted import FittedUCBVIf
from ucbf.agents.informed import InformedAgent
from ucbf.checks import numbers, real, whole
from ucbf.large import LargeSystem
from ucbf.laws import Law
from ucbf.models import Model
from ucbf.planning import lowest_best
from ucbf.policies import Policy
from ucbf.saving import LARGEST_FILE, SavedPreset, read, said, write
from ucbf.seen import Transition
from ucbf.system import System
from ucbf.systems import PRESETS, Preset


class Controller:
    """Acts and learns in the units of one of :mod:`ucbf.systems`: stock, orders and demand as people count them.

    Parameters
    ----------
    preset
        The system; its unit says what one state of the agent is worth, its ``action_quantities`` what an action means.
    agent
        One that is told ``preset.system``, or the same with another terminal reward.

    Examples
    --------
    >>> import ucbf
    >>> shop = ucbf.systems.Inventory(unit=2, capacity=40, max_demand=20)
    >>> controller = Controller(shop, ucbf.UCBVIf(shop.system))
    >>> controller.observe(0, 10, 12, 14, amount=8)         # 10 on the shelf, 12 ordered, 8 asked for: 14 are left
    >>> controller.act(0, 2)
    6.0
    """

    def __init__(self, preset: Preset, agent: Agent) -> None:
        if not isinstance(preset, Preset):
            raise TypeError(f"preset is {preset!r:.60}; give one of ucbf.systems")
        if not isinstance(agent, InformedAgent):
            raise TypeError(f"agent is {agent!r:.60}; give an agent that is told f, such as ucbf.UCBVIf")
        told, meant = agent.system, preset.system
        if told.states != meant.states or not np.array_equal(told.allowed, meant.allowed):
            raise ValueError(
                f"the agent is of {told!r}, not of {meant!r} with the same actions; build it from preset.system"
            )
        self.preset, self.agent = preset, agent
        self._actions: Any = None  # [H, S] of this episode

    def __repr__(self) -> str:
        return f"Controller({self.preset.kind}, unit {self.preset.unit:g}, {self.agent.name})"

    @property
    def policy(self) -> Policy:
        """What it would do now, in the words of the system."""
        return self.preset.policy(self.agent)

    def act(self, h: int, state: float) -> float:
        """What to do at step h, in the user's units; the state is rounded to a multiple of the unit.

        Of actions that are equally good it takes the lowest, as the policy that is shown does.
        """
        s = self._state("state", state)
        self.agent.act(h, s)  # an error for a step that there is not; renews the plan when an episode starts
        if h == 0 or self._actions is None:
            self._actions = lowest_best(self.agent.q)
        return float(self.preset.action_quantities[self._actions[h, s - self.agent.system.state_offset]])

    def observe(self, h: int, state: float, action: float, next_state: float, amount: float | None = None) -> None:
        """Learn from a step, all in the user's units.

        Parameters
        ----------
        action
            What was done, whoever decided it: the nearest that there is, at most one unit away.
        amount
            What was asked for, flowed in, arrived, where it was measured. It is needed where ``next_state`` does not
            tell it: an empty shelf says only that at least so much was asked for.
        """
        moved = self.transition(h, state, action, next_state, amount)
        self.agent.observe(moved.h, moved.s, moved.a, moved.s_next, disturbance=moved.disturbance)

    def transition(
        self, h: int, state: float, action: float, next_state: float, amount: float | None = None
    ) -> Transition:
        """What :meth:`observe` tells the agent: states and W in multiples of the unit, the number of the action.

        An error in the user's words where it cannot have been like this.
        """
        preset, system = self.preset, self.agent.system
        h = whole("step h", h, 0, system.n_steps - 1)
        s, after = self._state("state", state), self._state("next state", next_state)
        a, place = preset.action_of(action), s - system.state_offset
        if not system.is_allowed(h, place, a):
            possible = preset.action_quantities[system.allowed[h, place]]
            raise ValueError(
                f"{preset.action_name} is {action:g}; at step {h} with {preset.state_name} {state:g} it must be "
                + (f"{possible.min():g} to {possible.max():g}" if len(possible) > 1 else f"{possible[0]:g}")
            )
        if amount is None:
            return Transition(h, s, a, after)
        low, high = preset.amount_range
        amount = real(preset.amount_name, amount, -np.inf)
        if not low - preset.unit / 2 <= amount <= high + preset.unit / 2:
            names = ", ".join(preset.range_parameters)
            raise ValueError(f"{preset.amount_name} is {amount:g}; it must be {low:g} to {high:g} ({names})")
        w = int(preset.sign * (preset.to_units(np.clip(amount, low, high)) - preset.expected_amount[h]))
        landed = int(system.advance(h, place, a, w)[0]) + system.state_offset
        if abs(landed - after) > 1:  # one is what rounding may do
            raise ValueError(
                f"from {preset.state_name} {state:g} with {preset.action_name} {action:g} and {preset.amount_name} "
                f"{amount:g} comes {landed * preset.unit:g}, not {next_state:g}; correct one of them"
            )
        return Transition(h, s, a, landed, w)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one file, units and all; :func:`ucbf.load` goes on from it."""
        write(path, self.agent.saved(SavedPreset(self.preset.kind, self.preset.parameters())))

    def _state(self, what: str, state: float) -> int:
        states, u = self.agent.system.states, self.preset.unit
        s = int(self.preset.to_units(numbers(what, state)))
        if s not in states:
            raise ValueError(
                f"{what} ({self.preset.state_name}) is {state:g}; it must be {states[0] * u:g} to {states[-1] * u:g}"
            )
        return s


def load(
    path: str | os.PathLike[str],
    agent: type[Agent] | None = None,
    estimator: Model | None = None,
    preset: type[Preset] | None = None,
    largest: int = LARGEST_FILE,
    system: System | LargeSystem | None = None,
    law: Law | None = None,
) -> Any:
    """The agent saved at ``path``, or the :class:`Controller`; it goes on, bit for bit, as if it had never stopped.

    Parameters
    ----------
    path
        What ``agent.save`` or ``controller.save`` was given, or the agent that ``ucbf learn`` wrote.
    agent
        The class of an agent that is not one of ucbf's own.
    estimator
        An estimator, new and with the parameters of the one that was saved, where that is not one of ucbf's own or
        holds a regressor.
    preset
        The class of the preset of a controller, where that is not one of :mod:`ucbf.systems`.
    largest
        The most bytes that the file may unpack to, and that a table of its system may take; a larger one is refused
        before room is made for it.
    system
        The system as it was, for an agent in a box with continuous axes, or with a function for a boundary: functions
        are not saved. A :class:`ucbf.LargeSystem` for an agent that fits values.
    law
        A way of knowing W, new and with the parameters of the one that was saved, where that is not one of ucbf's own.
    """
    if isinstance(system, LargeSystem):
        return FittedUCBVIf.loaded(path, system, whole("largest", largest, 1))
    saved = read(path, whole("largest", largest, 1), system)
    made = restored(path, saved, agent, estimator, law)
    if saved.preset is None:
        return made
    kind = PRESETS.get(saved.preset.kind) if preset is None else preset
    if kind is None or kind.kind != saved.preset.kind:
        raise ValueError(f"{path} is of the preset {saved.preset.kind!r}; pass its class: load(path, preset=...)")
    try:
        stated = kind(**saved.preset.parameters)
        if stated.horizon != saved.system.n_steps:  # before tables are made for a horizon that the file only claims
            raise ValueError(f"its units are of {stated.horizon} steps, its agent of {saved.system.n_steps}")
        return Controller(stated, made)
    except Exception as error:  # a forged file may make anything go wrong
        raise ValueError(f"{path} does not hold this controller: {said(error)}; save it again") from None

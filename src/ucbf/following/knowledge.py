"""What is known of W at a time: what was learned, and the steps of the journal that were shown to it since.

Where there is a forecast of every step, W is what the amount differs from it by. It is learned around all forecasts
alike, and each episode is planned with its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.controller import Controller
from ucbf.disturbance import Disturbance
from ucbf.errors import UserError
from ucbf.following.accounts import Plan, Reading, read_step
from ucbf.following.happened import Happened
from ucbf.following.known import PROFILE, PROMOTED, QUANTILES, Ahead
from ucbf.following.model import Model
from ucbf.planning import plan
from ucbf.systems import Preset
from ucbf.wording import show_count

Controllers = dict[str, Controller]  # by the kind of an episode
MANY = 3  # forecasts that are named one by one


class Level(NamedTuple):
    """How high the amounts of the last steps were."""

    name: str  # "high"
    why: str


class _Planned(NamedTuple):
    """A plan, and what it was made with."""

    episode: int
    h: int  # from this step of it on
    ahead: Ahead
    plan: Plan


class Knowledge:
    """What is known of W by counting, for each kind of episode, with what agents counted as it was learned.

    Parameters
    ----------
    model
        What was learned.
    controllers
        With the agents of each kind of episode, which learn from what is shown.
    """

    def __init__(self, model: Model, controllers: Controllers) -> None:
        self.model, self.calendar, self.controllers = model, model.calendar, controllers
        self._planned: dict[str, _Planned] = {}  # by the kind of an episode

    # -- what others may differ in ----------------------------------------------------------------

    def law(self, number: int, preset: Preset, ahead: Ahead) -> Disturbance:
        """The distribution of W in the episode of a step, around its forecasts. preset: of that episode."""
        agent = self.controller_of(number).agent
        assert isinstance(agent, UCBVIf)
        return preset.clipped_to_amount_range(Disturbance.over(agent.system.bins, agent.knowledge.believed()))

    def show(self, number: int, reading: Reading, ahead: Ahead) -> None:
        """Learn from a step. Steps are shown in the order of their numbers."""
        if reading.seen is not None:
            self.controller_of(number).agent.update(reading.seen)
        self._planned.clear()

    def context(self, number: int) -> int:
        """Which context a step is in, of those that plans have."""
        return 0

    def level(self, number: int) -> Level | None:
        """How high the amounts were before a step, where what to do depends on that."""
        return None

    def expected(self, number: int, ahead: Ahead) -> float:
        """What was expected of the amount of a step beforehand; 0 where nothing was but its mean."""
        forecast = self.forecast(number, ahead)
        return 0.0 if forecast is None else float(forecast[0])

    # -- steps ------------------------------------------------------------------------------------

    @property
    def preset(self) -> Preset:
        """The preset, of any kind of episode."""
        return next(iter(self.controllers.values())).preset

    def controller_of(self, number: int) -> Controller:
        """The controller of the kind of episode that a step is in."""
        kind = self.calendar.kind_of(number)
        if kind not in self.controllers:
            raise UserError(
                f"{self.calendar.when(number)} is a {kind}, of which the series has none; learn from a series that has"
            )
        return self.controllers[kind]

    def read(self, number: int, step: Happened, ahead: Ahead) -> Reading:
        """A step as its system sees it, W around its forecast; a ValueError if it cannot have been like this."""
        controller, h = self.controller_of(number), self.calendar.place_of(number)
        reading, forecast, preset = read_step(controller, h, step), self.forecast(number, ahead), controller.preset
        if forecast is None:
            return reading
        by = preset.sign * (int(preset.expected_amount[h]) - int(preset.to_units(forecast[0])))
        return reading.moved(by, len(controller.agent.system.residuals) - 1)

    def forecast(self, number: int, ahead: Ahead) -> NDArray[np.float64] | None:
        """[n] the forecasts of a step and of those after it in its episode, within the range of the amount, if any."""
        if PROMOTED in ahead:
            assert self.model.promotions is not None
            means = np.array(self.model.promotions.means[self.calendar.kind_of(number)])
            usual = means[self.calendar.place_of(number) :]
            found = np.where(ahead[PROMOTED] != 0, self.model.promotions.uplift * usual, usual)
        elif PROFILE in ahead:
            found = ahead[PROFILE]
        elif QUANTILES in ahead:
            from ucbf.data.quantiles import middle

            found = middle(np.array(self.model.shares), ahead[QUANTILES])
        else:
            return None
        return np.clip(found, *self.preset.amount_range)

    def preset_for(self, number: int, ahead: Ahead) -> Preset:
        """The preset of the episode of a step; steps before it, which count no more, are as it is."""
        given = {name: values for name, values in ahead.items() if name not in (PROFILE, PROMOTED, QUANTILES)}
        forecast, h = self.forecast(number, ahead), self.calendar.place_of(number)
        if forecast is not None:
            given[PROFILE] = forecast
        changes = {name: (*[float(x[0])] * h, *x.tolist()) for name, x in given.items()}
        preset = self.controller_of(number).preset
        return preset.replace(**changes) if changes else preset

    def beyond(self, number: int, ahead: Ahead) -> list[str]:
        """What is to be said of forecasts outside of the range of the amount."""
        if PROFILE not in ahead:
            return []
        low, high = self.preset.amount_range
        values = ahead[PROFILE]
        out = np.flatnonzero((values < low) | (values > high))
        named = [f"{self.calendar.when(number + int(i))} ({values[i]:g})" for i in out[:MANY]]
        if not named:
            return []
        more = f" and {len(out) - MANY} more" if len(out) > MANY else ""
        return [
            f"{show_count(len(out), 'forecast')} outside {low:g}..{high:g}, the range of the {self.preset.amount_name}"
            f", clipped to it: {', '.join(named)}{more}"
        ]

    # -- plans ------------------------------------------------------------------------------------

    def plan(self, number: int, ahead: Ahead) -> Plan:
        """The plan of the episode of a step with what is known now; right from that step on."""
        kind, episode, h = (
            self.calendar.kind_of(number),
            self.calendar.episode_of(number),
            self.calendar.place_of(number),
        )
        known = self._planned.get(kind)
        if known is not None and (not self.model.varies or (known.episode == episode and _is_rest(ahead, h, known))):
            return known.plan
        made = self.new_plan(number, ahead)
        self._planned[kind] = _Planned(episode, h, ahead, made)
        return made

    def new_plan(self, number: int, ahead: Ahead) -> Plan:
        """The same, made anew."""
        controller = self.controller_of(number)
        system = controller.agent.system
        if not self.model.varies:
            q = controller.agent.q
            return Plan(controller.preset, system, np.vstack([q.max(axis=2), system.terminal])[:, None], q[:, None])
        preset = self.preset_for(number, ahead)
        system = preset.system.replace(terminal=system.terminal)
        best = plan(system, self.law(number, preset, ahead))
        return Plan(preset, system, best.v[:, None], best.q[:, None])

    # -- does it still hold? ----------------------------------------------------------------------

    def contradictions(self) -> list[str]:
        """What the model does not explain, for each kind of episode."""
        found = {kind: controller.agent.model_check() for kind, controller in self.controllers.items()}
        return [f"{kind}: {check}" if kind else str(check) for kind, check in found.items() if not check.ok]


def _is_rest(ahead: Ahead, h: int, known: _Planned) -> bool:
    """Whether what is known from a step on is what a plan of the same episode was made with."""
    later = h - known.h
    return (
        later >= 0
        and ahead.keys() == known.ahead.keys()
        and all(np.array_equal(values, known.ahead[name][later:]) for name, values in ahead.items())
    )

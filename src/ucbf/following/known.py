"""What is known of an episode beforehand, where the advice was learned with it: a forecast, prices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.checks import numbers
from ucbf.controller import Controller
from ucbf.data.series import Series
from ucbf.disturbance import Disturbance
from ucbf.errors import UserError
from ucbf.following.calendar import Calendar, as_datetime
from ucbf.following.model import Model

CALLED = {"profile": "forecasts"}  # what parameters are called in messages
FLAGS = {"profile": "--forecast", "prices": "--price-file"}
Known = Mapping[str, Any]  # by the name of a parameter: [H], or a series with dates


def learned_with(folder: Path, model: Model) -> str:
    """The beginning of a message: what differs from episode to episode."""
    names = [CALLED.get(name, name) for name in model.varies]
    return f"{folder} was learned with {' and '.join(names)} that differ from episode to episode"


def check_known(folder: Path, model: Model, known: Known) -> None:
    """An error unless what is known is what differed in the episodes that were learned from."""
    varies = set(model.varies)
    if "quantiles" in varies:
        raise UserError(f"{learned_with(folder, model)}, which act does not take; in Python ucbf.learn does")
    if varies == set(known):
        return
    if not varies:
        flags = " and ".join(FLAGS.get(name, name) for name in sorted(known))
        raise UserError(
            f"{folder} was learned without anything that differs from episode to episode; leave out {flags}"
        )
    needed = " and ".join(f"{CALLED.get(name, name)} ({FLAGS.get(name, name)})" for name in sorted(varies))
    raise UserError(f"{learned_with(folder, model)}: give {needed} of the steps of this episode")


def controller_with(controller: Controller, model: Model, number: int, known: Known) -> Controller:
    """The controller of the episode of a step, with what is known of it and the distribution as it was learned."""
    kind = model.kinds[model.calendar.kind_of(number)]
    changes = {name: _of_episode(model.calendar, name, given, number) for name, given in known.items()}
    preset = controller.preset.replace(**changes)
    law = preset.clipped_to_amount_range(Disturbance(np.array(kind.pmf), low=kind.low))
    system = preset.system.replace(terminal=controller.agent.system.terminal)
    return Controller(preset, UCBVIf(system, prior=law, prior_weight=1.0))


def _of_episode(calendar: Calendar, name: str, given: Any, number: int) -> tuple[float, ...]:
    """[H] what is known of the steps of the episode of a step; what is over counts as the first of the rest."""
    h, H, called = calendar.place_of(number), calendar.horizon, CALLED.get(name, name)
    if not isinstance(given, Series) or given.times is None or not calendar.is_dated:
        values = given.values if isinstance(given, Series) else numbers(name, given)
        if values.shape != (H,):
            raise UserError(
                f"{called}: {len(values)} rows without dates; give {H}, one for each step of the episode, or a column "
                "of dates"
            )
        return tuple(values.tolist())
    dated = zip(given.times, given.values, strict=True)
    found = {calendar.number_of(as_datetime(time)): float(x) for time, x in dated}
    rest = range(number, number - h + H)
    missing = [n for n in rest if n not in found]
    if missing:
        raise UserError(
            f"{given.source}, column {given.name!r}: nothing for {calendar.when(missing[0])}; give the {called} from "
            f"{calendar.when(number)} to {calendar.when(rest[-1])}"
        )
    return tuple(found.get(n, found[number]) for n in range(number - h, number - h + H))

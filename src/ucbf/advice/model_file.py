"""What a piece of advice leaves behind for those who follow it: ``model.json``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ucbf.advice.result import Advice
from ucbf.advice.training import FEWEST_OF_A_KIND
from ucbf.data import Episodes
from ucbf.data.cutting import kinds_of_weekdays
from ucbf.data.series import STEPS
from ucbf.files import digest
from ucbf.following.calendar import Calendar, as_datetime
from ucbf.following.model import NAME, Kind, Model, write_model


def save_advice(advice: Advice, folder: Path, time_zone: str | None) -> list[str]:
    """Write the agents and ``model.json``, which comes last; their names. time_zone: of the series, if it was named."""
    agents = advice.controllers()
    files = {name: f"agent-{_slug(name)}.npz" if len(agents) > 1 else "agent.npz" for name in agents}
    for name, controller in agents.items():
        controller.save(folder / files[name])
    write_model(folder, _model(advice, folder, files, time_zone))
    return [*files.values(), NAME]


def _slug(name: str) -> str:
    """A name that a file may have."""
    return "".join(c if c.isalnum() else "-" for c in name)


def _model(advice: Advice, folder: Path, files: dict[str, str], time_zone: str | None) -> Model:
    """What is to be known of an advice whose agents were saved. files: by the names of ``advice.by_kind``."""
    preset, series = advice.preset, advice.learned.series
    training, law_of = advice.planner.training, advice.planner.distributions
    varies = () if training.changes is None else tuple(sorted({name for each in training.changes for name in each}))
    if training.quantiles is not None:
        varies = (*varies, "quantiles")

    def law(kind: str) -> tuple[Any, int]:
        found = law_of[kind]
        return (tuple(map(tuple, found.pmf.tolist())), int(found.low)) if varies else ((), 0)

    kinds = {
        each.kind: Kind(
            files[name],
            digest((folder / files[name]).read_bytes()),
            *_amounts(advice.learned, each.kind),
            *law(each.kind),
        )
        for name, each in advice.by_kind.items()
    }
    if varies:  # one agent stands for all kinds; each has a distribution of its own
        (one,) = kinds.values()
        kinds = {kind: replace(one, pmf=law(kind)[0], low=law(kind)[1]) for kind in law_of}
    return Model(
        preset=preset.kind,
        parameters={name: value for name, value in preset.parameters().items() if name != "profile"},
        source=series.source,
        column=series.name,
        rows=len(series),
        episodes=len(advice.learned),
        expected=float(advice.value),
        varies=varies,
        calendar=calendar_of(advice.learned, time_zone),
        kinds=kinds,
    )


def calendar_of(episodes: Episodes, time_zone: str | None) -> Calendar:
    """The steps that follow a series. time_zone: of the series, if it was named."""
    series, H = episodes.series, episodes.values.shape[1]
    next_step = (len(series) - episodes.begin) % H
    if series.times is None or series.spacing is None:
        return Calendar(H, next_step)
    return Calendar(
        horizon=H,
        next_step=next_step,
        last=str(as_datetime(series.times[-1])),
        spacing=series.spacing,
        seconds=STEPS.get(series.spacing),
        time_zone=time_zone,
        names=episodes.names,
        weekday_kinds=kinds_of_weekdays(series.spacing, H),
    )


def _amounts(episodes: Episodes, kind: str) -> tuple[Any, Any, Any]:
    """[H] the means, standard deviations and counts of the amounts of a kind; of all where it has too few."""
    values = np.where(episodes.outliers, np.nan, episodes.values)
    members = values[[each == kind for each in episodes.kinds]]
    table = members if len(members) >= FEWEST_OF_A_KIND else values
    n = np.isfinite(table).sum(axis=0)
    mean = np.nansum(table, axis=0) / np.maximum(n, 1)
    spread = np.sqrt(np.nansum((table - mean) ** 2, axis=0) / np.maximum(n - 1, 1))
    return tuple(mean.tolist()), tuple(spread.tolist()), tuple(n.tolist())

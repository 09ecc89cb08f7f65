"""What a piece of advice leaves behind for those who follow it: ``model.json``, and what it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.result import Advice
from ucbf.advice.training import FEWEST_OF_A_KIND
from ucbf.controller import Controller
from ucbf.following.calendar import calendar_of
from ucbf.following.levels import write_levels
from ucbf.following.model import NAME, Kind, Model, Promoted, Stored, stored_as, write_model
from ucbf.following.places import Places, write_places

KNOWLEDGE = "knowledge.npz"
Floats = NDArray[np.float64]


def save_advice(advice: Advice, folder: Path, time_zone: str | None) -> list[str]:
    """Write the agents and ``model.json``, which comes last; their names. time_zone: of the series, if it was named."""
    training = advice.planner.training
    if training.changes is None:
        controllers = {advice.by_kind[name].kind: each for name, each in advice.controllers().items()}
    else:
        kinds = advice.planner.distributions
        controllers = {kind: Controller(*advice.planner.agent_of_kind(kind)) for kind in kinds}
    stored = {}
    for kind, controller in controllers.items():
        name = f"agent-{_slug(kind)}.npz" if len(controllers) > 1 else "agent.npz"
        controller.save(folder / name)
        stored[kind] = stored_as(folder, name)
    knowledge = None
    if _write_knowledge(advice, folder / KNOWLEDGE):
        knowledge = stored_as(folder, KNOWLEDGE)
    write_model(folder, _model(advice, stored, knowledge, time_zone))
    return [*(each.name for each in stored.values()), *([] if knowledge is None else [KNOWLEDGE]), NAME]


def _slug(name: str) -> str:
    """A name that a file may have."""
    return "".join(c if c.isalnum() else "-" for c in name)


def _write_knowledge(advice: Advice, path: Path) -> bool:
    """Write what is known of W besides what agents count; whether there is any."""
    training = advice.planner.training
    if training.quantiles is not None:
        kinds, half_life = training.episodes.kinds, training.recency.half_life
        write_places(path, Places(training.places, kinds, training.quantiles.gap, half_life, training.pooled))
        return True
    if advice.by_level is not None and advice.follows_level:
        write_levels(path, advice.by_level.levels)
        return True
    return False


def _model(advice: Advice, stored: dict[str, Stored], knowledge: Stored | None, time_zone: str | None) -> Model:
    """What is to be known of an advice whose agents were saved. stored: by the kind of an episode."""
    preset, episodes, training = advice.preset, advice.learned, advice.planner.training
    series, values = episodes.series, _unexpected(advice)
    return Model(
        preset=preset.kind,
        parameters={name: value for name, value in preset.parameters().items() if name != "profile"},
        source=series.source,
        column=series.name,
        rows=len(series),
        episodes=len(episodes),
        expected=float(advice.value),
        varies=advice.varies,
        shares=() if training.quantiles is None else tuple(training.quantiles.shares.tolist()),
        promotions=_promoted(advice),
        knowledge=knowledge,
        calendar=calendar_of(episodes, time_zone),
        dependence=_dependence(values, episodes.kinds),
        kinds={kind: Kind(each, *_moments(_alike(values, episodes.kinds, kind))) for kind, each in stored.items()},
    )


def _promoted(advice: Advice) -> Promoted | None:
    found = advice.promotions
    return None if found is None else Promoted(found.column, found.uplift, found.means)


def _unexpected(advice: Advice) -> Floats:
    """[K, H] what amounts differ from their forecasts by, or from what the level of the steps before let expect.

    The amounts themselves where there is neither; nan for outliers.
    """
    values = advice.learned_errors.values
    if advice.by_level is not None and advice.follows_level:
        values = values - advice.by_level.expected()
    return np.where(advice.learned.outliers, np.nan, values)


def _alike(values: Floats, kinds: tuple[str, ...], kind: str) -> Floats:
    """[n, H] those of a kind of episode; all, where it has too few."""
    members = values[[each == kind for each in kinds]]
    return members if len(members) >= FEWEST_OF_A_KIND else values


def _moments(table: Floats) -> tuple[Any, Any, Any]:
    """[H] means, standard deviations and counts of every step."""
    n = np.isfinite(table).sum(axis=0)
    mean = np.nansum(table, axis=0) / np.maximum(n, 1)
    spread = np.sqrt(np.nansum((table - mean) ** 2, axis=0) / np.maximum(n - 1, 1))
    return tuple(mean.tolist()), tuple(spread.tolist()), tuple(n.tolist())


def _dependence(values: Floats, kinds: tuple[str, ...]) -> float:
    """By how much neighbours that depend on each other widen the variance of a mean; 1 where they do not.

    The variance of means of blocks of steps, as many as there are steps in each, over that of independent steps.
    """
    means = {kind: np.array(_moments(_alike(values, kinds, kind))[0]) for kind in set(kinds)}
    differ = (values - np.array([means[kind] for kind in kinds])).ravel()
    size = int(np.sqrt(len(differ)))
    blocks = differ[: size * size].reshape(size, size)
    n = np.isfinite(blocks).sum(axis=1)
    variance, of_blocks = float(np.nanvar(differ)), float((np.nansum(blocks, axis=1) ** 2 / np.maximum(n, 1)).mean())
    return max(of_blocks / variance, 1.0) if variance > 0 else 1.0

"""The paper's experiment as a study, a second study in the same worlds, and a third with longer horizons."""

from __future__ import annotations

from typing import Any

from ucbf.studies.reading import make_study
from ucbf.studies.spec import Study

PANELS = {
    "kind": "random",
    "n_states": 25,
    "horizon": [5, 10],
    "n_actions": [2, 4, 8],
    "max_disturbance": 5,
    "lipschitz": 0.25,
}
UCB_F: dict[str, Any] = {"name": "UCB-f", "bonus": "published", "clock": "update"}


def figure1(*, quick: bool = False, seed: int = 0) -> Study:
    """Figure 1 of the paper: six panels, five curves and the greedy line; ``quick`` for a look in seconds."""
    agents: list[dict[str, Any]] = [
        {**UCB_F, "model_error": [0, 2, 4]},
        {"name": "UCB-H", "bonus": "published"},
        {"name": "UCBVI", "bonus": "published"},
    ]
    return _study("figure1", PANELS, agents, quick, seed)


def figure2(*, quick: bool = False, seed: int = 0) -> Study:
    """The same panels with UCB-f and UCBVI-f, without and with repair of f; an exact f is repaired as if ζ were 4."""
    agents: list[dict[str, Any]] = []
    for agent in (UCB_F, {"name": "UCBVI-f"}):
        repaired = {**agent, "estimator": "OffsetPosterior"}
        agents += [
            {**agent, "model_error": [0, 2, 4]},
            {**repaired, "model_error": 0, "told_error": 4, "label": f"{agent['name']} repaired, told ζ = 4"},
            {**repaired, "model_error": [2, 4], "label": f"{agent['name']} repaired"},
        ]
    return _study("figure2", PANELS, agents, quick, seed)


def figure3(*, quick: bool = False, seed: int = 0) -> Study:
    """How regret grows with the horizon, in the paper's worlds with four actions: UCB-f, its sharper forms, UCBVI-f.

    c is the published one. With the theorem's bonus and the paper's own clock, and, beside them, UCB-f as in figure 1.
    """
    by_episode: dict[str, Any] = {"clock": "episode", "c": 0.05}
    agents: list[dict[str, Any]] = [
        {"name": "UCB-f", "bonus": "theorem", **by_episode},
        {"name": "UCB-f-Bernstein", **by_episode},
        {"name": "UCB-f-Reference", **by_episode},
        {**UCB_F, "label": "UCB-f as published"},
        {"name": "UCBVI-f"},
    ]
    return _study("figure3", {**PANELS, "horizon": [5, 10, 20, 40], "n_actions": 4}, agents, quick, seed)


def _study(name: str, world: dict[str, Any], agents: list[dict[str, Any]], quick: bool, seed: int) -> Study:
    episodes, worlds = (500, 5) if quick else (5000, 50)
    return make_study(
        {"name": name, "episodes": episodes, "worlds": worlds, "seed": seed, "world": world, "agents": agents}
    )

"""The runs of a study, one by one: what determines each, its id, its world and its agent."""

from __future__ import annotations

import inspect
import json
from typing import Any, NamedTuple

import numpy as np

from ucbf.agents import AGENTS, Agent
from ucbf.files import digest
from ucbf.studies.names import agent_class, world_maker
from ucbf.studies.spec import Study, Value
from ucbf.world import World, corrupt

CHECKPOINTS = (100, 1000, 5000)  # episodes, or steps, whose gap the table of runs gives
COLUMNS = (  # of the table of runs, before and after the parameters of the world
    ("run", "panel", "world", "label", "agent", "model_error", "agent_params", "kind"),
    (
        "world_seed",
        "draw_seed",
        "episodes",
        "optimum",
        "greedy_gap",
        "regret",
        *(f"gap_{k}" for k in CHECKPOINTS),
        "settled",
        "switches",
    ),
)
RESULT_VERSION = 6  # part of every run's id: raise it when the same parameters begin to give other numbers


class Run(NamedTuple):
    """One agent in one world."""

    panel: int
    world: int
    label: str
    kind: str
    world_params: dict[str, Value]
    agent: str
    agent_params: dict[str, Any]
    model_error: float
    told_error: float
    world_seed: int
    error_seed: int
    draw_seed: int
    episodes: int  # or steps
    record: int
    by_step: bool = False  # whether the world has no end

    @property
    def id(self) -> str:
        """A digest of all that determines the result."""
        without_end = ["steps"] if self.by_step else []
        text = json.dumps([RESULT_VERSION, *self[3:-1], *without_end], sort_keys=True)
        return digest(text.encode())


NOT_PARAMETERS = ("name", "label", "model_error", "told_error")  # what an agent's constructor is not given


def runs_of(study: Study) -> list[Run]:
    """Every run: panel by panel, world by world, agent by agent. World i has the same seeds whatever the agents."""
    runs, variants = [], study.variants()
    for p, panel in enumerate(study.panels()):
        world_params = {k: v for k, v in panel.items() if k != "kind"}
        for i in range(study.worlds):
            seeds = [int(s) >> 1 for s in np.random.SeedSequence([study.seed, i]).generate_state(3, np.uint64)]
            for _, variant in variants:
                params = {k: v for k, v in variant.items() if k not in NOT_PARAMETERS}
                error = float(variant["model_error"])
                told = float(variant.get("told_error", error))
                runs.append(
                    Run(
                        p, i, str(variant["label"]), str(panel["kind"]), world_params, str(variant["name"]), params,
                        error, told, seeds[0], seeds[1], seeds[2], study.length, study.record, study.by_step,
                    )
                )  # fmt: skip
    return runs


def build_world(run: Run) -> World:
    """The world of a run."""
    world = world_maker(run.kind)(**run.world_params, seed=run.world_seed)
    if not isinstance(world, World):
        raise TypeError(f"{run.kind} returned {world!r:.60}; it must return a ucbf.World")
    if (world.system.horizon is None) != run.by_step:
        found, wanted = ("episodes", "episodes, not steps") if run.by_step else ("no end", "steps, not episodes")
        raise ValueError(f"the world {run.kind!r} has {found}; give the study {wanted}")
    return world


def build_agent(run: Run, world: World) -> Agent:
    """The agent of a run, which is told f with the errors that the run says."""
    told = corrupt(world.system, run.model_error, run.error_seed) if run.model_error else world.system
    if run.told_error != run.model_error:
        told = told.replace(model_error=run.told_error)
    kind = agent_class(run.agent)
    law = {"law": world.law} if kind is AGENTS["optimal"] else {}
    drawn = {"seed": _seed_of_agent(run)} if "seed" in inspect.signature(kind).parameters else {}
    return kind(told, **run.agent_params, **law, **drawn)


def _seed_of_agent(run: Run) -> int:
    """For an agent that draws: another one in every world, and none of those of the world."""
    return int(np.random.SeedSequence([run.draw_seed, 1]).generate_state(1, np.uint64)[0] >> 1)

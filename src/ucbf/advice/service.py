"""How the demand was met in the episodes that followed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.training import Training
from ucbf.run import Run
from ucbf.systems import Inventory


@dataclass(frozen=True)
class Service:
    """How the demand was met."""

    met: float  # the share of the demand that was met at once
    without_stock_out: float  # the share of the steps in which all of it was

    def __str__(self) -> str:
        return f"{self.met:.1%} of the demand was met at once; in {self.without_stock_out:.1%} of the steps all of it."


def service_of(demand: NDArray[np.float64], met: NDArray[np.float64]) -> Service:
    """Of demands, and what was met of them at once, step by step."""
    total = float(demand.sum())
    share = float(met.sum()) / total if total else 1.0
    return Service(share, float((met >= demand - 1e-9).mean()) if demand.size else 1.0)


def service_in(run: Run, training: Training) -> Service | None:
    """Of a run through the test episodes; None where no demand is met from stock."""
    preset, first = training.preset, len(training.training_episodes)
    if not isinstance(preset, Inventory):
        return None
    demand = training.measured(np.arange(first, len(training.episodes)))
    there = run.states[:, :-1] * preset.unit + preset.action_quantities[run.actions]
    return service_of(demand, np.clip(there, 0, demand))

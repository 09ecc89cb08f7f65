"""How regret grows with the horizon, in stored results: exponents fitted to it, beside those that are proved."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.errors import UserError
from ucbf.reports import Curve, curves_of, interval
from ucbf.studies.store import Results
from ucbf.table1 import Fit, fit

PROVED = {  # the power of H in a proved bound on the regret of a fixed number of episodes
    ("UCB-f", "theorem"): (3.5, "sqrt(H⁶T)"),  # Theorem 1, T = HK
    ("UCBVI-f", None): (2.0, "H² sqrt(K)"),
}


class Growth(NamedTuple):
    """The regret of one agent over the horizons, and the exponent fitted to it."""

    label: str
    horizons: NDArray[np.int64]  # [n]
    regret: list[NDArray[np.float64]]  # [n] of [worlds]
    fit: Fit
    proved: tuple[float, str] | None  # the exponent of a proved bound, and that bound

    @property
    def means(self) -> NDArray[np.float64]:
        """[n] the mean regret at each horizon."""
        return np.array([worlds.mean() for worlds in self.regret])


def growths(results: Results) -> list[Growth]:
    """How the regret of every agent of a study grows with the horizon of its worlds."""
    horizons = [panel.get("horizon") for panel in results.study.panels()]
    if results.study.world.varied() != ["horizon"] or len(horizons) < 2:
        raise UserError("the study must have worlds that differ in their horizon only: horizon = [5, 10, 20]")
    curves: dict[str, list[Curve]] = {}
    for curve in curves_of(results):
        curves.setdefault(curve.label, []).append(curve)
    return [_growth(label, found, np.array(horizons)) for label, found in curves.items()]


def _growth(label: str, curves: list[Curve], horizons: NDArray[np.int64]) -> Growth:
    at, regret = horizons[[curve.panel for curve in curves]], [curve.total for curve in curves]
    every = np.repeat(at.astype(float), [len(worlds) for worlds in regret])
    run = curves[0].runs[0]
    return Growth(label, at, regret, fit(every, np.concatenate(regret)), _proved(run["agent"], run["agent_params"]))


def _proved(agent: str, params: str) -> tuple[float, str] | None:
    """What is proved of an agent with these parameters, for c large enough."""
    return PROVED.get((agent, json.loads(params).get("bonus")))


def rows(found: list[Growth]) -> list[dict[str, str]]:
    """The table: mean regrets with their 95 % intervals, the fitted exponent and the proved one."""
    table = []
    for growth in found:
        row = {"agent": growth.label}
        for H, worlds in zip(growth.horizons, growth.regret, strict=True):
            low, high = interval(worlds)
            row[f"H = {H}"] = f"{worlds.mean():.3g} ({low:.3g}, {high:.3g})"
        proved = "-" if growth.proved is None else f"{growth.proved[0]:g}: {growth.proved[1]}"
        table.append({**row, "regret ~ H^": str(growth.fit), "proved": proved})
    return table


def numbers(found: list[Growth]) -> list[dict[str, Any]]:
    """Everything that was measured, a row for each agent and horizon."""
    return [
        {
            "agent": growth.label,
            "horizon": int(H),
            "worlds": len(worlds),
            "regret": float(worlds.mean()),
            "regret_low": float(interval(worlds)[0]),
            "regret_high": float(interval(worlds)[1]),
            "exponent": growth.fit.exponent,
            "exponent_half_width": growth.fit.half_width,
            "proved": None if growth.proved is None else growth.proved[0],
        }
        for growth in found
        for H, worlds in zip(growth.horizons, growth.regret, strict=True)
    ]

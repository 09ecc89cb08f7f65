"""Whether the residuals bear the model out: W must not depend on the state or the action.

Every residual is compared with those of its step so far, in standard deviations. Where f is right, the deviations seen
in a state average 0 and their squares 1, whatever the actions; so do those of an action, whatever the states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ucbf.kernels import COMPARED, FOURTH, OUTSIDE, SEEN, SQUARE, Watch
from ucbf.system import System

LEAST = 20  # deviations, for a mean to be about normal


class ModelWarning(UserWarning):
    """What was seen contradicts what the agent was told."""


class Finding(NamedTuple):
    """One thing that the model does not explain."""

    where: str
    what: str
    visits: int
    strength: float  # standard errors beyond what ζ allows

    def __str__(self) -> str:
        return f"{self.where}: {self.what} ({self.visits} residuals, {self.strength:.1f} standard errors)"


@dataclass(frozen=True)
class ModelCheck:
    """The findings, strongest first. A right model has any with a chance of about p, at all times together."""

    findings: tuple[Finding, ...]
    residuals: int  # how many were looked at
    p: float

    @property
    def ok(self) -> bool:
        """Whether there is nothing to say against the model."""
        return not self.findings

    def __str__(self) -> str:
        if self.ok:
            return f"nothing in {self.residuals} residuals speaks against the model"
        more = f"; and {len(self.findings) - 3} more" if len(self.findings) > 3 else ""
        return "; ".join(str(finding) for finding in self.findings[:3]) + more


def check_model(system: System, watch: Watch, p: float, settled: bool) -> ModelCheck:
    """What speaks against the model. settled: f was repaired, so that ζ excuses nothing any more."""
    findings, outside = [], int(watch.tally[OUTSIDE])
    if outside:
        span = system.declared_residuals
        what = f"residuals outside {span[0]}..{span[-1]}, the declared range of W, widened by ζ/2"
        findings.append(Finding("in places", what, outside, np.inf))
    seen = watch.steps[:, SEEN]
    compared = watch.tally[COMPARED]
    if compared:
        deviations = np.sqrt(watch.steps[seen > 0, SQUARE] / seen[seen > 0])
        zeta = 0 if settled else 2 * system.slack
        excused = zeta / max(float(deviations.min(initial=np.inf)), 1e-9)
        noise = np.sqrt(max(watch.tally[FOURTH] / compared, 1.0))
        groups = _groups(system, watch)
        for where, visits, shift, spread in groups:
            if visits < LEAST:
                continue
            bar = np.sqrt(2 * np.log(4 * len(groups) * (1 + np.log2(visits)) ** 2 / p))
            by = shift / visits
            tests = (
                (abs(by) - excused, 1.0, f"residuals are {abs(by):.2f} standard deviations too {_side(by)}"),
                (abs(spread / visits) - excused**2, noise, f"their square is {1 + spread / visits:.2f} of the usual"),
            )
            for size, error, what in tests:
                strength = size * np.sqrt(visits) / error
                if strength > bar:
                    findings.append(Finding(where, what, int(visits), float(strength)))
    findings.sort(key=lambda finding: -finding.strength)
    return ModelCheck(tuple(findings), int(seen.sum()), p)


def _groups(system: System, watch: Watch) -> list[tuple[str, float, float, float]]:
    """States and actions, with the sums of each."""
    names = [f"state {s}" for s in system.states] + [f"action {a}" for a in range(system.n_actions)]
    return list(zip(names, *watch.groups.T.tolist(), strict=True))


def _side(mean: float) -> str:
    return "high" if mean > 0 else "low"

"""Whether the residuals bear the model out: W must not depend on the state or the action.

Every residual is compared with those of its step so far, or of all steps where they share a law, in standard
deviations. Where f is right, the deviations seen
in a state average 0 and their squares 1, whatever the actions; so do those of an action, whatever the states. Each is
tested by itself, which says where, and all of them together, which sees what is small everywhere. And the residuals
since any time are compared, step by step, with those before it: a law that drifts is not the law that was learned.
Where an edge hid disturbances, those that were seen are a selection that does depend on the state: nothing is tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.fitting import HARDLY
from ucbf.kernels.offsets import Offsets
from ucbf.kernels.types import Mechanics
from ucbf.kernels.watch import (
    CENSORED,
    COMPARED,
    COUNT,
    FOURTH,
    FURTHEST,
    ORIGIN,
    OUTSIDE,
    SEEN,
    SQUARE,
    SUM,
    SUM_OF_SQUARES,
    Watch,
    from_origin,
    modulus,
)
from ucbf.system import System
from ucbf.tables import distinct_steps

LEAST, LEAST_FOR_SPREAD = 20, 100  # deviations, for a mean of them, or of their squares, to be about normal
LEAST_OF_STEP, LEAST_FREEDOM = 3, 8  # residuals of a step before and after, and together less 2, to compare it
ACCUSED = 0.001  # the chance, about, with which a right model may be warned of, and is then not certified
LATELY = "the latest residuals"


class ModelWarning(UserWarning):
    """What was seen contradicts what the agent was told."""


class Finding(NamedTuple):
    """One thing that the model does not explain."""

    where: str
    what: str
    visits: int
    strength: float  # standard errors beyond what ζ allows

    def __str__(self) -> str:
        sure = "" if np.isinf(self.strength) else f", {self.strength:.1f} standard errors"  # what cannot be has none
        return f"{self.where}: {self.what} ({self.visits} residuals{sure})"


@dataclass(frozen=True)
class ModelCheck:
    """The findings: a drift first, then the strongest. A right model has any with a chance of about p, at all times."""

    findings: tuple[Finding, ...]
    residuals: int  # how many were looked at
    p: float
    hidden: int = 0  # how many an edge hid; if any, W was not tested
    compared: int = 0  # of the residuals: those of a state and an action that were held against the others
    states: tuple[int, int] = (0, 0)  # how many were met often enough to be tested, of how many
    actions: tuple[int, int] = (0, 0)  # the same, of those that are allowed anywhere

    @property
    def drifts(self) -> bool:
        """Whether recent residuals differ from earlier ones."""
        return any(finding.where == LATELY for finding in self.findings)

    @property
    def ok(self) -> bool:
        """Whether there is nothing to say against the model."""
        return not self.findings

    def __str__(self) -> str:
        if self.ok:
            return self._untested() if self.hidden or not self.states[0] else self._tested()
        more = f"; and {len(self.findings) - 3} more" if len(self.findings) > 3 else ""
        return "; ".join(str(finding) for finding in self.findings[:3]) + more

    def _tested(self) -> str:
        """What was tested, and nothing speaks against it; what was not."""
        said = f"nothing in {self.compared} residuals speaks against the model"
        (states, all_states), (actions, all_actions) = self.states, self.actions
        if states == all_states and actions == all_actions:
            return said
        return (
            f"{said}; tested were {actions} of {all_actions} actions, in {states} of {all_states} states, and "
            "elsewhere a certificate rests on f as it is stated"
        )

    def _untested(self) -> str:
        """Why neither states nor actions were tested."""
        if self.hidden:
            return (
                f"a boundary hid {self.hidden} disturbances, so that what was seen is a selection and was not tested: "
                "whether f holds is not known"
            )
        drift = f"nothing in {self.residuals} residuals speaks of a drift, but " if self.residuals >= 2 * LEAST else ""
        return (
            f"{drift}no state was met often enough with a W that varies to test whether W depends on states or "
            "actions: a certificate rests on f as it is stated"
        )


class Sums(NamedTuple):
    """Deviations, in groups that the model says are alike: pairs, states, actions."""

    groups: dict[str, NDArray[np.float64]]  # [n, 3] of each kind: how many, their sum, the sum of their squares - 1
    fourth: float  # variance of the squares, at the step at which it is largest


def watched(system: System, watch: Watch) -> list[Sums]:
    """What was noted on the way, by states and by actions, for each axis of W."""
    S = system.n_states
    return [
        Sums(
            {"state": groups[:S], "action": groups[S:]},
            float((tally[:, FOURTH] / np.maximum(tally[:, COMPARED], LEAST)).max()),
        )
        for groups, tally in zip(watch.groups, watch.tally, strict=True)
    ]


def recounted(told: Mechanics, model: Offsets, watch: Watch) -> Sums:
    """What the counts of a repaired model say now, by pairs, states and actions; pairs still in doubt are left out.

    Not where states are clipped: what did not end at an edge is a selection.
    """
    (F, S, A), R = model.f.shape, told.n_residuals
    sums, fourth = np.zeros((F * S * A, 3)), 0.0
    offset = (model.low - model.first).reshape(-1)
    settled = (model.low == model.high).reshape(-1)
    for step in range(len(model.seen)):
        weights = model.counts[step % len(model.counts)]
        if not weights.sum():
            continue
        x = _from_origin(np.arange(R), told, watch, step)
        mean = float(weights @ x / weights.sum())
        variance = float(weights @ (x - mean) ** 2 / weights.sum()) + 1 / weights.sum()
        usual = np.clip((x - mean) / np.sqrt(variance), -FURTHEST, FURTHEST)  # what is cut has another mean than 0
        shifted, square = float(weights @ usual / weights.sum()), float(weights @ usual**2 / weights.sum())
        fourth = max(fourth, float(weights @ (usual**2 - square) ** 2 / weights.sum()))
        first = step % F * S * A
        for d in np.unique(offset[first : first + S * A]):
            w = np.arange(R) - d  # of every residual
            far = _from_origin(w % R if told.modular else w, told, watch, step) - mean
            deviation = np.clip(far / np.sqrt(variance), -FURTHEST, FURTHEST)
            pairs = np.flatnonzero(settled[first : first + S * A] & (offset[first : first + S * A] == d))
            seen = model.seen[step, pairs]
            shift, spread = deviation - shifted, deviation**2 - square
            sums[first + pairs] += np.stack([seen.sum(axis=1), seen @ shift, seen @ spread], axis=1)
    table = sums.reshape(F, S, A, 3).sum(axis=0)
    groups = {"pair": table.reshape(S * A, 3), "state": table.sum(axis=1), "action": table.sum(axis=0)}
    return Sums(groups, fourth)


def _from_origin(w: NDArray[np.int64], told: Mechanics, watch: Watch, step: int) -> NDArray[np.float64]:
    """How far disturbances are from the first that was seen at a step."""
    origin, around = watch.steps[0, min(step, watch.steps.shape[1] - 1), ORIGIN], modulus(told)
    return np.array([from_origin(int(each), origin, around) for each in w])


def beyond_reach(model: Offsets, p: float) -> list[Finding]:
    """Pairs whose residuals no error of f within ζ/2 explains, by what is believed of offsets.

    Offsets are told apart from W but for a constant: that one counts which explains most.
    """
    half, P, found = model.half, len(model.posterior), []
    rows = model.posterior.reshape(len(model.f), -1, model.posterior.shape[1])
    visits = model.visits.reshape(len(model.f), -1)
    for posterior, seen in zip(rows, visits, strict=True):
        within = np.stack([posterior[:, c : c + 2 * half + 1].sum(axis=1) for c in range(2 * half + 1)])
        likely = np.log(np.maximum(within, HARDLY))
        best = float(model.exact[0]) + (1 - float(model.exact[0])) * within[likely.sum(axis=1).argmax()]
        unlikely = np.flatnonzero((best < p / P) & (seen >= LEAST))
        if len(unlikely):
            what = f"no error of f within ζ/2 = {half} explains what {len(unlikely)} of {P} pairs showed"
            strength = float(np.sqrt(-2 * np.log(max(float(best.min()), HARDLY))))
            found.append(Finding("in places", what, int(seen[unlikely].sum()), strength))
    return found


def check_model(
    system: System, watch: Watch, sums: list[Sums], p: float, settled: bool, more: list[Finding]
) -> ModelCheck:
    """What speaks against the model.

    sums: for each axis of W; settled: f was repaired, so that ζ excuses nothing any more; more: what was found already
    """
    findings = list(more)
    outside, hidden = int(watch.unused[OUTSIDE]), int(watch.unused[CENSORED])
    if outside:
        low, high = (system.declared_residuals[i] for i in (0, -1)) if system.space.is_line else system.bins.range()
        what = f"residuals outside {low}..{high}, the declared range of W, widened by ζ/2"
        findings.append(Finding("in places", what, outside, np.inf))
    for k, steps in enumerate(watch.steps if not hidden else []):
        if not watch.tally[k, :, COMPARED].any():
            continue
        seen = steps[:, SEEN]
        deviations = np.sqrt(steps[seen > 0, SQUARE] / seen[seen > 0])
        zeta = 0 if settled else 2 * system.slack
        found = _dependence(system, sums[k], p, zeta / max(float(deviations.min()), 1e-9))
        if not settled:  # while f is being repaired residuals change with it
            found += _drift(watch.periods[k], p, zeta)
        along = f" along axis {k}" if len(watch.steps) > 1 else ""
        findings += [finding._replace(what=finding.what + along) for finding in found]
    findings.sort(key=lambda finding: (finding.where != LATELY, -finding.strength))  # a drift feigns the others
    counts = {kind: sums[0].groups[kind][:, 0] for kind in ("state", "action")}
    states, actions = (int((visits >= LEAST).sum()) for visits in counts.values())
    return ModelCheck(
        tuple(findings),
        residuals=int(watch.steps[0, :, SEEN].sum()),
        p=p,
        hidden=hidden,
        compared=int(counts["action"].sum()),
        states=(states, system.n_states),
        actions=(actions, int(distinct_steps(system.allowed).any(axis=(0, 1)).sum())),
    )


def _dependence(system: System, sums: Sums, p: float, excused: float) -> list[Finding]:
    """Groups whose residuals are too high, too low, too far or too near, one by one and all of a kind together.

    excused: by how many standard deviations ζ lets the residuals of a group differ from those of others
    """
    found: list[Finding] = []
    tests = 4 * sum(len(group) + 1 for group in sums.groups.values())
    noise = np.sqrt(max(sums.fourth, 1.0))
    for kind, group in sums.groups.items():
        enough = np.flatnonzero(group[:, 0] >= LEAST)
        visits, shift, spread = group[enough].T
        usual, usual_square = (float(group[:, i].sum() / max(group[:, 0].sum(), 1)) for i in (1, 2))
        mean, square = shift / visits - usual, spread / visits - usual_square
        too_far = np.sqrt(visits) * np.maximum(np.abs(mean) - excused, 0)
        too_wide = np.sqrt(visits) * np.maximum(np.abs(square) - excused**2, 0) / noise
        too_wide[visits < LEAST_FOR_SPREAD] = 0
        bar = _bar(visits, tests, p)
        for i in np.flatnonzero(too_far > bar):
            what = f"residuals are {abs(mean[i]):.2f} standard deviations too {'high' if mean[i] > 0 else 'low'}"
            found.append(Finding(_name(system, kind, enough[i]), what, int(visits[i]), float(too_far[i])))
        for i in np.flatnonzero(too_wide > bar):
            what = f"squared residuals are {1 + square[i]:.2f} of the usual"
            found.append(Finding(_name(system, kind, enough[i]), what, int(visits[i]), float(too_wide[i])))
        for strengths, what in ((too_far, "the mean of residuals"), (too_wide, "the spread of residuals")):
            together = _together(strengths)
            if together > _bar(visits.sum(keepdims=True), tests / max(len(group), 1), p)[0]:
                found.append(Finding(f"all {kind}s together", f"{what} differs", int(visits.sum()), together))
    return found


def _drift(periods: NDArray[np.float64], p: float, excused: int) -> list[Finding]:
    """Whether residuals have moved: those since some time against those before it, at the time that shows it best.

    Means are compared by Student's t, step by step, and summed. A law that changes around the same mean escapes it.
    excused: by how many states ζ lets residuals move, where other pairs are visited
    """
    total = periods.cumsum(axis=0)
    (n, mean, square), (later, later_mean, later_square) = _moments(total[:-1]), _moments(total[-1] - total[:-1])
    usable = (n >= LEAST_OF_STEP) & (later >= LEAST_OF_STEP) & (n + later - 2 >= LEAST_FREEDOM)  # [PERIODS, H]
    freedom = np.where(usable, n + later - 2, LEAST_FREEDOM)
    deviation = np.sqrt((square + later_square + 1) / freedom)  # 1: what never moved may yet
    worth = np.where(usable, n * later / np.maximum(n + later, 1), 0.0)
    before, since = (np.where(usable, count, 0).sum(axis=1) for count in (n, later))
    enough = np.flatnonzero((before >= LEAST) & (since >= LEAST))
    if not len(enough):
        return []
    moved = np.sign(later_mean - mean) * np.maximum(np.abs(later_mean - mean) - excused, 0)
    shift = ((worth * moved / deviation).sum(axis=1) / np.maximum(worth.sum(axis=1), 1e-12))[enough]
    error = (np.sqrt((worth * freedom / (freedom - 2)).sum(axis=1)) / np.maximum(worth.sum(axis=1), 1e-12))[enough]
    strength = np.abs(shift) / error
    top = int(strength.argmax())
    if strength[top] <= _bar(total[-1, :, COUNT].sum(keepdims=True), 2 * len(n), p)[0]:
        return []
    way = "higher" if shift[top] > 0 else "lower"
    what = f"they are {abs(shift[top]):.2f} standard deviations {way} than those before: W drifts"
    return [Finding(LATELY, what, int(since[enough[top]]), float(strength[top]))]


def _moments(sums: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """[..., H] three times: how many, their mean, the sum of squares about it."""
    n, total, squares = sums[..., COUNT], sums[..., SUM], sums[..., SUM_OF_SQUARES]
    mean = total / np.maximum(n, 1e-12)
    return n, mean, np.maximum(squares - total * mean, 0)


def _bar(visits: NDArray[np.float64], tests: float, p: float) -> NDArray[np.float64]:
    """Standard errors that are too many: p shared among the tests, and among the times that visits double."""
    bar: NDArray[np.float64] = np.sqrt(2 * np.log(2 * tests * (1 + np.log2(np.maximum(visits, 1))) ** 2 / p))
    return bar


def _name(system: System, kind: str, i: int) -> str:
    name, A = system.space.name, system.n_actions
    return f"state {name(i // A)}, action {i % A}" if kind == "pair" else f"{kind} {name(i) if kind == 'state' else i}"


def _together(strengths: NDArray[np.float64]) -> float:
    """How far the sum of squares of standard normal numbers is out, in standard errors (Wilson and Hilferty 1931)."""
    n = len(strengths)
    if n < 2:
        return 0.0
    ninth = 2 / (9 * n)
    return float((np.cbrt(np.sum(strengths**2) / n) - (1 - ninth)) / np.sqrt(ninth))

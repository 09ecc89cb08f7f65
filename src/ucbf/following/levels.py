"""Where what to do depends on how high the amounts of the last steps were: the level, and what followed it.

The level is z' = m z + (1 - m) r, where r is what an amount differs from the mean of its step by. It is cut into a few
contexts, low to high, and the distribution of W, and of the next context, is counted in each (``advice/regimes.py``
chooses m and the cuts).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance
from ucbf.following.accounts import Plan, Reading
from ucbf.following.knowledge import Controllers, Knowledge, Level
from ucbf.following.known import Ahead
from ucbf.following.model import Model
from ucbf.planning import plan
from ucbf.saving import Arrays, write_arrays
from ucbf.systems import Preset

ABOUT = "levels"  # what files of these say that they are of
NAMES = {2: ("low", "high"), 3: ("low", "usual", "high")}
BORROWED = 5.0  # observations of the distribution without contexts that each context is given
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """How the level of the last steps is counted, and cut into contexts."""

    memory: float  # m: the share of the level that stays at each step; 0: only the last step counts
    cuts: tuple[float, ...]  # [E-1] the levels between contexts, in the user's units

    @property
    def names(self) -> tuple[str, ...]:
        """[E] of the contexts."""
        return NAMES[len(self.cuts) + 1]

    def next(self, level: float, differs: float) -> float:
        """The level after a step whose amount differed by so much from the mean of its step."""
        return self.memory * level + (1 - self.memory) * differs

    def after(self, level: float, steps: int) -> float:
        """The level after so many steps of which nothing is known: of each, its mean."""
        return level * self.memory**steps

    def contexts(self, levels: Any) -> Any:
        """The number of the context of a level, or of each of many."""
        return np.searchsorted(self.cuts, levels)


@dataclass(frozen=True, eq=False)
class Counted:
    """What was counted in each context, in one kind of episode."""

    means: Floats  # [H] of the amounts
    profile: Floats  # [H] around which W is measured; [0] if it is not
    counts: Floats  # [H, E, E R] of each context: the context that followed, and W
    terminal: Floats  # [E, S] what follows the episode is worth

    def expected(self, preset: Preset) -> Floats:
        """[H, E] the mean of the amount in each context; preset: of this kind of episode."""
        H, E, n = self.counts.shape
        w = law_of(self.counts).reshape(H, E, E, n // E).sum(axis=2) @ np.asarray(preset.system.bins.values)
        found: Floats = (preset.sign * w + preset.expected_amount[:, None]) * preset.unit
        return found


def law_of(counts: Floats) -> Floats:
    """[H E, E R] probabilities: shares of what was counted, and of a few observations that all contexts share.

    counts: [H, E, E R]
    """
    total = counts.sum(axis=1, keepdims=True)
    shared = total / total.sum(axis=2, keepdims=True)
    pmf = (counts + BORROWED * shared) / (counts.sum(axis=2, keepdims=True) + BORROWED)
    rows: Floats = (pmf / pmf.sum(axis=2, keepdims=True)).reshape(-1, counts.shape[2])
    return rows


@dataclass(frozen=True, eq=False)
class Levels:
    """The level at the end of a series, and what was counted by it."""

    scale: Scale
    level: float  # after the last step of the series
    half_life: float  # in episodes
    pooled: bool  # whether what happens in any step and kind of episode counts in all of them
    kinds: dict[str, Counted]


def write_levels(path: Path, given: Levels) -> None:
    """Write them to a file."""
    about = {"about": ABOUT, "pooled": given.pooled, "kinds": [*given.kinds], "memory": given.scale.memory}
    arrays = {"cuts": np.array(given.scale.cuts), "level": np.array([given.level, given.half_life])}
    for i, counted in enumerate(given.kinds.values()):
        arrays |= {f"{name}.{i}": array for name, array in vars(counted).items()}
    write_arrays(path, about, arrays)


def read_levels(header: dict[str, Any], arrays: Arrays) -> Levels:
    """Those of a file."""
    scale = Scale(float(header["memory"]), tuple(map(float, arrays["cuts"])))
    level, half_life = map(float, arrays["level"])
    kinds = {
        str(kind): Counted(
            *(arrays[f"{name}.{i}"].astype(np.float64) for name in ("means", "profile", "counts", "terminal"))
        )
        for i, kind in enumerate(header["kinds"])
    }
    for counted in kinds.values():
        if counted.counts.ndim != 3 or counted.counts.shape[1] != len(scale.names):
            raise ValueError("counts of as many contexts as there are cuts are needed")
    return Levels(scale, level, half_life, bool(header["pooled"]), kinds)


class LevelKnowledge(Knowledge):
    """What is known of W by the level of the last steps."""

    def __init__(self, model: Model, controllers: Controllers, levels: Levels) -> None:
        super().__init__(model, controllers)
        self.scale, self._given = levels.scale, levels
        self._counted = {kind: replace(each, counts=each.counts.copy()) for kind, each in levels.kinds.items()}
        self._levels = [(0, levels.level)]  # after which steps it was how high, in their order
        self._presets = {
            kind: controllers[kind].preset.replace(profile=tuple(each.profile.tolist()) if len(each.profile) else 0.0)
            for kind, each in levels.kinds.items()
        }

        self._expected = {kind: each.expected(self._presets[kind]) for kind, each in levels.kinds.items()}

    def expected(self, number: int, ahead: Ahead) -> float:
        """The mean of the amount at the level before a step, as it was learned."""
        kind, h = self.calendar.kind_of(number), self.calendar.place_of(number)
        return float(self._expected[kind][h, self.context(number)])

    # -- the level --------------------------------------------------------------------------------

    def context(self, number: int) -> int:
        """The context of the level before a step."""
        return int(self.scale.contexts(self._level(number)))

    def level(self, number: int) -> Level | None:
        """How high the level before a step is, and by which amounts."""
        z, steps, amount = self._level(number), self.calendar.step_word, self.preset.amount_name
        name, cuts = self.scale.names[self.context(number)], self.scale.cuts
        last, known = self._known(number)
        when = self.calendar.when(last)
        what = f"the {amount} of {when} was"
        if self.scale.memory:
            what = f"the {amount} of the {steps}s up to {when}, what is recent counting more, was"
        ends = {"low": f"below {cuts[0]:+.3g}", "high": f"above {cuts[-1]:+.3g}"}
        where = ends.get(name, f"from {cuts[0]:+.3g} to {cuts[-1]:+.3g}")
        missing, without = range(last + 1, number), ""
        if missing:
            without = (
                f"; {self.calendar.listed(missing)} not in the journal: the mean counts there, which makes it {z:+.3g}"
            )
        return Level(name, f"{what} {known:+.3g} from its mean{without}, and {where} is {name}")

    def _known(self, number: int) -> tuple[int, float]:
        """The last step before one that is known, and how high the level was after it."""
        return next(each for each in reversed(self._levels) if each[0] < max(number, 1))

    def _level(self, number: int) -> float:
        """The level before a step; of steps that are missing, their means count."""
        last, level = self._known(number)
        return self.scale.after(level, max(number, 1) - 1 - last)

    def _mean(self, number: int) -> float:
        return float(self._counted[self.calendar.kind_of(number)].means[self.calendar.place_of(number)])

    # -- what is shown ----------------------------------------------------------------------------

    def show(self, number: int, reading: Reading, ahead: Ahead) -> None:
        """Count the amount in the context before it, and let it move the level.

        A hidden amount counts for the level as the possible one that is nearest to its mean; W is then shared out among
        what is possible, by what is believed of it. The agent, which watches whether the model holds, sees W without
        what the level let expect of it, so that steps that depend on each other do not seem to contradict the model.
        """
        e, mean, preset = self.context(number), self._mean(number), self.preset
        by = -preset.sign * int(preset.to_units(self.expected(number, ahead) - mean))
        last = len(self.controller_of(number).agent.system.residuals) - 1
        super().show(number, reading.moved(by, last), ahead)
        amount = float(np.clip(mean, reading.least, reading.most)) if reading.hidden else reading.amount
        self._levels.append((number, self.scale.next(self._level(number), amount - mean)))
        self._count(number, self._shares(number, reading, e), e, self.context(number + 1))

    def _shares(self, number: int, reading: Reading, e: int) -> Floats:
        """[R] how W counts: as itself, or where it is hidden shared out by what is believed of it in a context."""
        kind, h, E = self.calendar.kind_of(number), self.calendar.place_of(number), len(self.scale.names)
        preset = self._presets[kind]
        bins, shares = preset.system.bins, np.zeros(preset.system.bins.n)
        if reading.hidden:
            ends = preset.sign * (preset.to_units([reading.least, reading.most]) - preset.expected_amount[h])
            possible = (bins.values >= ends.min()) & (bins.values <= ends.max())
            believed = law_of(self._counted[kind].counts)[h * E + e].reshape(E, -1).sum(axis=0)
            shares[possible] = believed[possible]
        if not shares.any():
            shares[int(bins.index(reading.disturbance(preset, h)))] = 1.0
        found: Floats = shares / shares.sum()
        return found

    def _count(self, number: int, shares: Floats, e: int, e_next: int) -> None:
        """Count W, shared out [R], in a context, and the one that followed; what was counted before fades."""
        kind, pooled, H = self.calendar.kind_of(number), self._given.pooled, self.calendar.horizon
        fading = 0.5 ** (1 / (self._given.half_life * (H if pooled else 1)))
        for other in self._counted if pooled else (kind,):
            preset, counts = self._presets[other], self._counted[other].counts
            bins, R = preset.system.bins, len(shares)
            for h in range(H) if pooled else (self.calendar.place_of(number),):
                w = preset.nearest_possible(np.asarray(bins.values), preset.expected_amount[h])
                counts[h] *= fading
                np.add.at(counts[h, e], e_next * R + bins.index(w), shares)

    # -- plans ------------------------------------------------------------------------------------

    def new_plan(self, number: int, ahead: Ahead) -> Plan:
        """The plan for every context."""
        kind, E = self.calendar.kind_of(number), len(self.scale.names)
        preset, counted = self._presets[kind], self._counted[kind]
        plain = preset.system
        best = plan(
            plain.replace(contexts=E, terminal=counted.terminal),
            Disturbance.over(plain.bins, law_of(counted.counts), E),
        )
        v, q = best.v.reshape(-1, E, plain.n_states), best.q.reshape(-1, E, plain.n_states, plain.n_actions)
        return Plan(preset, plain, v, q)

"""Sizes and units that suit a series: coarse enough to be quick, fine enough to hide nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.data.outliers import outliers
from ucbf.errors import UserError
from ucbf.systems.base import MOST_UNITS, Ready

Floats = NDArray[np.float64]
STATES = 40  # that the bulk of the amounts is spread over, if nothing is hidden by it
MOST_STATES = 1500
SMALL = 0.01  # a change of the mean that nobody notices; twice that of a spread, or of the mean of one step
LARGE = 0.05  # one that makes a unit useless; twice that of a spread


def nice(x: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... and 0.5, 0.2, ... that is not below x."""
    exponent = np.floor(np.log10(max(x, 1e-300)))
    return float(next(m * 10.0**exponent for m in (1, 2, 5, 10) if m * 10.0**exponent >= x * (1 - 1e-9)))


class Rounding(NamedTuple):
    """What rounding to multiples of a unit does to amounts, outliers aside."""

    unit: float
    mean: tuple[float, float]  # before and after
    spread: tuple[float, float]  # around the means of the steps
    step: float  # the largest change of the mean of a step, in shares of it, beyond what chance would do

    @property
    def unnoticed(self) -> bool:
        """Whether nobody would notice."""
        return self._moved(self.mean) <= SMALL and self._moved(self.spread) <= 2 * SMALL and self.step <= 2 * SMALL

    @property
    def useless(self) -> bool:
        """Whether the amounts are no longer what they were."""
        return self._moved(self.mean) > LARGE or self._moved(self.spread) > 2 * LARGE

    def _moved(self, pair: tuple[float, float]) -> float:
        before, after = pair
        return abs(after - before) / abs(before) if before else np.inf if after else 0.0

    def __str__(self) -> str:
        (mean, rounded), (spread, wider) = self.mean, self.spread
        return (
            f"multiples of {self.unit:g} turn a mean of {mean:.4g} into {rounded:.4g} and a spread of {spread:.3g} "
            f"into {wider:.3g}"
        )


def rounding(amounts: Floats, unit: float) -> Rounding:
    """What multiples of ``unit`` make of amounts [K, H], or [N]."""
    table = np.array(amounts, dtype=np.float64).reshape(-1, np.shape(amounts)[-1] if np.ndim(amounts) > 1 else 1)
    table[outliers(table)] = np.nan
    after = np.rint(table / unit) * unit
    n = np.maximum(np.isfinite(table).sum(axis=0), 1)
    means = [np.nansum(t, axis=0) / n for t in (table, after)]
    spreads = [float(np.sqrt(np.nansum((t - m) ** 2) / n.sum())) for t, m in zip((table, after), means, strict=True)]
    error = np.sqrt(np.nansum((table - means[0]) ** 2, axis=0) / n) / np.sqrt(n)  # of the mean of every step
    moved = np.maximum(np.abs(means[1] - means[0]) - error / 4, 0)
    step = float(np.max(moved / np.where(means[0] == 0, 1.0, np.abs(means[0]))))
    total = [float((m * n).sum() / n.sum()) for m in means]
    return Rounding(unit, (total[0], total[1]), (spreads[0], spreads[1]), step)


def suggested(kind: type[Ready], amounts: Floats, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters for a series: those given, and for the sizes that were not, what the bulk of the series suggests."""
    given = {name: value for name, value in given.items() if value is not None}
    if not np.abs(amounts).max():
        raise ValueError("all amounts are 0, so that nothing can be learned from them; is it the right column?")
    usual = amounts[~outliers(amounts)]
    bulk = usual if np.abs(usual).max(initial=0) > 0 else np.ravel(amounts)
    unit = float(given.get("unit") or _unit(kind, amounts, float(np.abs(bulk).max()), given))

    def up(x: float) -> float:
        return float(np.ceil(x / unit - 1e-9) * unit)

    sizes = kind.sizes(float(bulk.min()), float(bulk.mean()), float(bulk.max()))
    fits: dict[str, Any] = {name: tuple(map(up, x)) if isinstance(x, tuple) else up(x) for name, x in sizes.items()}
    for name in kind.limits.split(", "):  # the range of the amounts takes in all of them
        if name in fits:
            least, most = float(np.min(amounts)), float(np.max(amounts))
            fits[name] = min(fits[name], -up(-least)) if name.startswith("min") else max(fits[name], up(most))
            if abs(fits[name]) / unit > MOST_UNITS and name not in given:
                worst = most if abs(most) > abs(least) else least
                raise UserError(
                    f"one {kind.amount_name} is {worst:g}, the largest of the others {bulk.max():g}; correct it, or "
                    f"say how far they go ({name})"
                )
    return {"unit": unit, **fits, **given}


def _unit(kind: type[Ready], amounts: Floats, size: float, given: dict[str, Any]) -> float:
    """The coarsest unit of which the sizes that were given are multiples, and that hides nothing."""
    whole_ones = bool(np.array_equal(amounts, np.rint(amounts)))
    coarsest = max(nice(size / STATES), 1.0 if whole_ones else 0.0)
    sizes = [float(x) for name in kind.multiples if name in given for x in np.ravel(given[name])]
    finest = max(min(nice(size / MOST_STATES), coarsest), 1.0 if whole_ones else 0.0)
    possible = [u for u in _finer(coarsest, finest) if all(_divides(u, x) for x in sizes)] or [finest]
    return next((u for u in possible if rounding(amounts, u).unnoticed), possible[-1])


def _finer(coarsest: float, finest: float) -> Iterable[float]:
    """1, 0.5, 0.2, 0.1, ... from the coarsest to the finest."""
    unit = coarsest
    while unit >= finest * (1 - 1e-9):
        yield unit
        unit = _below(unit)


def _below(unit: float) -> float:
    """The next of 1, 2, 5, 10, ... below one of them."""
    exponent = 10.0 ** np.floor(np.log10(unit * (1 + 1e-9)))
    first = round(unit / exponent)
    return float({1: 0.5, 2: 1, 5: 2}[first] * exponent)


def _divides(unit: float, x: float) -> bool:
    return abs(x / unit - round(x / unit)) <= 1e-9

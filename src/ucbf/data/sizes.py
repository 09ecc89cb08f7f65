"""Units and sizes that suit a series: a unit coarse enough to be quick, and fine enough to hide nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.data.outliers import outliers
from ucbf.errors import UserError
from ucbf.systems.base import Preset
from ucbf.systems.parameters import MOST_UNITS

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
UNITS_IN_LARGEST = 40  # a unit that is chosen fits about so often into the largest amount, unless that hides something
COUNTED_IN_ONES = 100  # whole numbers up to this are not rounded
MOST_UNITS_IN_LARGEST = 1500  # and never more often
ABSURD = 50.0  # times the largest of the others: an outlier that tables are not made for
NEGLIGIBLE = 0.01  # a relative change of the mean that nobody notices; twice that for a spread or the mean of one step
TOO_LARGE = 0.05  # a relative change of the mean that makes a unit useless; twice that for a spread


class RoundingEffect(NamedTuple):
    """What rounding to multiples of a unit does to amounts, outliers left out."""

    unit: float
    mean: tuple[float, float]  # before and after
    spread: tuple[float, float]  # around the means of the steps, before and after
    step: float  # the largest relative change of the mean of a step, beyond what chance would do

    @property
    def negligible(self) -> bool:
        """Whether nobody would notice."""
        mean, spread = _relative_change(*self.mean), _relative_change(*self.spread)
        return mean <= NEGLIGIBLE and spread <= 2 * NEGLIGIBLE and self.step <= 2 * NEGLIGIBLE

    @property
    def too_large(self) -> bool:
        """Whether the amounts are no longer what they were."""
        return _relative_change(*self.mean) > TOO_LARGE or _relative_change(*self.spread) > 2 * TOO_LARGE

    def __str__(self) -> str:
        (mean, rounded), (spread, wider) = self.mean, self.spread
        return (
            f"multiples of {self.unit:g} turn a mean of {mean:.4g} into {rounded:.4g} and a spread of {spread:.3g} "
            f"into {wider:.3g}"
        )


def _relative_change(before: float, after: float) -> float:
    return abs(after - before) / abs(before) if before else np.inf if after else 0.0


def rounding_effect(amounts: Floats, unit: float, odd: Bools | None = None) -> RoundingEffect:
    """What rounding to multiples of ``unit`` does to amounts [K, H], or [N]. odd: which are outliers, where known."""
    table = np.array(amounts, dtype=np.float64).reshape(-1, np.shape(amounts)[-1] if np.ndim(amounts) > 1 else 1)
    table[outliers(table) if odd is None else np.reshape(odd, table.shape)] = np.nan
    after = np.rint(table / unit) * unit
    n = np.maximum(np.isfinite(table).sum(axis=0), 1)
    means = [np.nansum(t, axis=0) / n for t in (table, after)]
    spreads = [float(np.sqrt(np.nansum((t - m) ** 2) / n.sum())) for t, m in zip((table, after), means, strict=True)]
    error = np.sqrt(np.nansum((table - means[0]) ** 2, axis=0) / n) / np.sqrt(n)  # of the mean of every step
    moved = np.maximum(np.abs(means[1] - means[0]) - error / 4, 0)
    step = float(np.max(moved / np.where(means[0] == 0, 1.0, np.abs(means[0]))))
    total = [float((m * n).sum() / n.sum()) for m in means]
    return RoundingEffect(unit, (total[0], total[1]), (spreads[0], spreads[1]), step)


def suggested_parameters(
    preset: type[Preset],
    amounts: Floats,
    given: dict[str, Any],
    odd: Bools | None = None,
    place: Callable[[int], str] | None = None,
) -> dict[str, Any]:
    """Parameters of a preset for measured amounts: those given, and sizes that suit all amounts but outliers.

    odd: which amounts are outliers, where that is known
    place: where an amount stands, by its index in ``amounts.ravel()``, for an error about it
    """
    given = {name: value for name, value in given.items() if value is not None}
    if not np.abs(amounts).max():
        raise ValueError("all amounts are 0, so that nothing can be learned from them; is it the right column?")
    odd = outliers(amounts) if odd is None else odd
    usual = amounts[~odd]
    bulk = usual if np.abs(usual).max(initial=0) > 0 else np.ravel(amounts)
    unit = float(given.get("unit") or _suggested_unit(preset, amounts, float(np.abs(bulk).max()), given, odd))

    def up(x: float) -> float:
        """Rounded up to a multiple of the unit."""
        return float(np.ceil(x / unit - 1e-9) * unit)

    known = {**given, "unit": unit}
    sizes = preset.suggested_sizes(float(bulk.min()), float(bulk.mean()), float(bulk.max()), **known)
    fits: dict[str, Any] = {name: tuple(map(up, x)) if isinstance(x, tuple) else up(x) for name, x in sizes.items()}
    for name in preset.range_parameters:  # the range takes in all amounts, outliers too
        if name in fits:
            lowest, most = float(np.min(amounts)), float(np.max(amounts))
            worst = most if abs(most) > abs(lowest) else lowest
            fits[name] = min(fits[name], -up(-lowest)) if name.startswith("min") else max(fits[name], up(most))
            absurd = abs(worst) > ABSURD * np.abs(bulk).max() and abs(worst) / unit > MOST_UNITS_IN_LARGEST
            if (absurd or abs(fits[name]) / unit > MOST_UNITS) and name not in given:
                if np.abs(bulk).max() / unit > MOST_UNITS:
                    raise UserError(
                        f"unit is {unit:g}, and one {preset.amount_name} is {worst:g}, more than {MOST_UNITS} times as "
                        "much; take a coarser unit (unit, --unit)"
                    )
                where = "" if place is None else f" at {place(int(np.argmax(np.abs(amounts))))}"
                raise UserError(
                    f"one {preset.amount_name} is {worst:g}{where}, the largest of the others {bulk.max():g}; correct "
                    f"it, or say how far they go ({name})"
                )
    return {"unit": unit, **fits, **given}


def _suggested_unit(preset: type[Preset], amounts: Floats, largest: float, given: dict[str, Any], odd: Bools) -> float:
    """The coarsest unit that hides nothing and of which the given sizes are multiples."""
    whole_numbers = bool(np.array_equal(amounts, np.rint(amounts)))
    coarsest = max(nice_ceiling(largest / UNITS_IN_LARGEST), 1.0 if whole_numbers else 0.0)
    if whole_numbers and largest <= COUNTED_IN_ONES:
        coarsest = 1.0
    sizes = [float(x) for name in preset.multiples_of_unit if name in given for x in np.ravel(given[name])]
    finest = max(min(nice_ceiling(largest / MOST_UNITS_IN_LARGEST), coarsest), 1.0 if whole_numbers else 0.0)
    possible = [u for u in _nice_numbers(coarsest, finest) if all(_divides(u, x) for x in sizes)]
    possible = possible or _common_divisors(sizes, coarsest, finest) or [finest]
    return next((u for u in possible if rounding_effect(amounts, u, odd).negligible), possible[-1])


def _common_divisors(sizes: list[float], coarsest: float, finest: float) -> list[float]:
    """Whole numbers between these that divide all sizes, the coarsest first; none if a size is not whole."""
    if not all(x == round(x) for x in sizes):
        return []
    largest = math.gcd(*(round(x) for x in sizes))
    return [float(u) for u in range(min(largest, int(coarsest)), max(math.ceil(finest), 1) - 1, -1) if largest % u == 0]


def nice_ceiling(x: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... and 0.5, 0.2, ... that is not below x."""
    exponent = np.floor(np.log10(max(x, 1e-300)))
    return float(next(m * 10.0**exponent for m in (1, 2, 5, 10) if m * 10.0**exponent >= x * (1 - 1e-9)))


def _nice_numbers(coarsest: float, finest: float) -> Iterable[float]:
    """1, 0.5, 0.2, 0.1, ... from the coarsest down to the finest."""
    unit = coarsest
    while unit >= finest * (1 - 1e-9):
        yield unit
        unit = _next_finer(unit)


def _next_finer(unit: float) -> float:
    """The next of 1, 2, 5, 10, ... below one of them."""
    exponent = 10.0 ** np.floor(np.log10(unit * (1 + 1e-9)))
    first = round(unit / exponent)
    return float({1: 0.5, 2: 1, 5: 2}[first] * exponent)


def _divides(unit: float, x: float) -> bool:
    return abs(x / unit - round(x / unit)) <= 1e-9

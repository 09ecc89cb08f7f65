"""The parameters of a preset: checked, in the user's units or in multiples of ``unit``, and in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, real, whole

PerStep = float | tuple[float, ...]
MOST_UNITS = 100_000  # that a parameter may be
MOST_STEPS = 1_000_000  # of an episode: more than a year of minutes


@dataclass(frozen=True, kw_only=True)
class Parameters(ABC):
    """The parameters that every preset has, and what can be done with any parameter."""

    said_if_used: ClassVar[tuple[str, ...]] = ("period",)  # the parameters that go without saying at their defaults
    multiples_of_unit: ClassVar[tuple[str, ...]] = ()  # the parameters that must be multiples of unit
    money: ClassVar[tuple[str, ...]] = ()  # the parameters that are prices, costs and values

    horizon: int | None  # None: there is no end
    period: int = 1  # where there is none: after how many steps everything comes round again
    unit: float = 1.0
    profile: PerStep = 0.0
    discount: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, may_be_none = getattr(self, field.name), field.default is None or field.name == "horizon"
            if not isinstance(field.default, str) and not (value is None and may_be_none):
                numbers(field.name, value)
        whole("period", self.period, 1, MOST_STEPS)
        if self.horizon is not None:
            whole("horizon", self.horizon, 1, MOST_STEPS)
            if self.period != 1:
                raise ValueError(
                    f"period is {self.period}, and horizon {self.horizon}; a period is of systems without an end: pass "
                    "horizon=None, or leave it out"
                )
        real("unit", self.unit, 0, open_low=True)
        real("discount", self.discount, 0, 1, open_low=True)
        self.check()
        for name in self.multiples_of_unit:
            self._check_multiple(name)

    @abstractmethod
    def check(self) -> None:
        """Raise an error for a parameter that makes no sense."""

    def replace(self, **changes: Any) -> Self:
        """A copy with some parameters changed."""
        return replace(self, **changes)

    def parameters(self) -> dict[str, Any]:
        """All parameters, as the constructor takes them."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def stated_parameters(self) -> list[str]:
        """The names of the parameters that have a value, without the profile and without what is not made use of."""
        unused = {f.name for f in fields(self) if f.name in self.said_if_used and getattr(self, f.name) == f.default}
        stated = {name: value for name, value in self.parameters().items() if value is not None}
        return [name for name in stated if name != "profile" and name not in unused]

    def describe(self, name: str) -> str:
        """The name of a parameter and its value, in a few words."""
        value = getattr(self, name)
        if isinstance(value, str):
            return f"{name} {value!r}"
        if np.ndim(value) == 0:
            return f"{name} {value:g}"
        if np.ndim(value) == 2:
            return f"{name} " + " ".join(f"({', '.join(f'{x:g}' for x in row)})" for row in value)
        short = len(value) <= 12
        return f"{name} " + (" ".join(f"{x:g}" for x in value) if short else f"{min(value):g} to {max(value):g}")

    def per_step(self, name: str) -> NDArray[np.float64]:
        """[H] a parameter that is given as one number or as one for each step."""
        value = numbers(name, getattr(self, name))
        if value.shape not in {(), (self.n_steps,)}:
            raise ValueError(f"{name} has {value.size} numbers; give one, or one for each of the {self.n_steps} steps")
        return np.broadcast_to(value, (self.n_steps,))

    @property
    def n_steps(self) -> int:
        """The horizon, or where there is none the period."""
        return self.period if self.horizon is None else self.horizon

    def to_units(self, values: ArrayLike) -> NDArray[np.int64]:
        """Numbers in the user's units as multiples of ``unit``, rounded."""
        return np.rint(np.asarray(values, dtype=np.float64) / self.unit).astype(np.int64)

    def units_of(self, name: str) -> int:
        """A parameter, such as capacity, as a multiple of ``unit``."""
        return round(float(getattr(self, name)) / self.unit)

    def check_at_least(self, low: float, *names: str) -> None:
        """Raise an error for a parameter below ``low``."""
        for name in names:
            for value in np.atleast_1d(getattr(self, name)):
                real(name, value, low)

    def _check_multiple(self, name: str) -> None:
        given = getattr(self, name)
        for value in () if given is None else np.ravel(given):
            if abs(value / self.unit - round(value / self.unit)) > 1e-9:
                raise ValueError(
                    f"{name} {'has' if np.ndim(given) else 'is'} {value:g}, which is not a multiple of unit "
                    f"{self.unit:g}; change one of them"
                )
            if abs(value) / self.unit > MOST_UNITS:
                raise ValueError(
                    f"{name} is {value:g}, more than {MOST_UNITS} times unit {self.unit:g}; take a coarser unit"
                )

"""Parts of an agent that have a name, parameters, and arrays that learning changes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import one_of
from ucbf.limits import Limits, copy_into


class HasState:
    """Something whose learning changes arrays, which are saved."""

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that learning changes, by name: what is saved."""
        return {}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from what ``state`` said; an error if it is of another, or cannot be."""
        copy_into(self.state, state, self.limits)

    def limits(self, stored: dict[str, NDArray[Any]]) -> Limits:
        """What the arrays of ``state`` may hold, by name; what is not named is only checked for nan."""
        return {}


class Named(HasState):
    """A part with a name and parameters, as a file can say it; its state is without what compiled functions keep."""

    name: ClassVar[str]

    def __init__(self, **params: Any) -> None:
        self.params = params

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r:.40}' for k, v in self.params.items())})"

    def description(self) -> dict[str, Any]:
        """Its name and parameters, from which :func:`made` builds it again."""
        return {"name": self.name, **self.params}

    def fresh(self) -> Self:
        """Another of the same kind, with the same parameters, that has learned nothing."""
        return type(self)(**self.params)


def made(what: str, given: Any, kinds: dict[str, type[Any]]) -> Any:
    """A part as it is given: itself, its name, or its name and parameters in a table.

    what: the name of the argument, in errors; kinds: those that have a name
    """
    if isinstance(given, Named):
        return given
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, dict) or "name" not in given:
        raise TypeError(
            f"{what} is {given!r:.60}; give one of ucbf.{what}s, its name, or its name and parameters in a table"
        )
    params = {key: value for key, value in given.items() if key != "name"}
    return kinds[one_of(what, given["name"], kinds)](**params)


def with_prefix(prefix: str, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a part, named "prefix.name"."""
    return {f"{prefix}.{name}": np.asarray(array) for name, array in state.items()}


def of_prefix(prefix: str, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays that are named "prefix.name", by name."""
    return {name.removeprefix(f"{prefix}."): a for name, a in state.items() if name.startswith(f"{prefix}.")}

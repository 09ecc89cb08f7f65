"""The contract of an estimator: a way of learning f while acting.

An agent that is given one is told a first guess of f and how far it may be off (``model_error``, ζ). The estimator sees
the residuals of that guess, s' - f(s, a) = correction(s, a) + W, and says what it makes of the correction and how far
off that may be. The agent takes the best after-state within the bound: Theorem 3's bonus, at most L times the bound.

To add one, subclass :class:`Estimator` and give ``name``, ``observe`` and ``estimate``, and ``state`` if it shall be
saved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.limits import Limits, copy_into
from ucbf.system import System


class Estimate(NamedTuple):
    """What is believed of the correction to f as it was told, in states. Rows: 1 or H."""

    correction: NDArray[np.float64]  # [rows, S, A]
    error: NDArray[np.float64]  # [rows, S, A] how far off it may be


class Named:
    """Something with a name and parameters, as a file can say it."""

    name: ClassVar[str]

    def __init__(self, **params: Any) -> None:
        self.params = params

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r:.40}' for k, v in self.params.items())})"

    def description(self) -> dict[str, Any]:
        """What :func:`ucbf.estimators.make_estimator` builds it from again."""
        return {"name": self.name, **self.params}


class Estimator(Named, ABC):
    """Learns a correction to f. Each agent needs one of its own."""

    started = False  # whether it belongs to an agent

    def start(self, system: System) -> int:
        """Prepare for what the agent is told; the rows of its estimates, 1 or H."""
        return 1

    @abstractmethod
    def observe(self, h: int, s: int, a: int, residual: int) -> None:
        """Learn from one residual s' - f(s, a), f as it was told, between state indices.

        Pairs from which W could lead to a clipped edge, which would hide it, are left out.
        """

    @abstractmethod
    def estimate(self) -> Estimate | None:
        """What is believed now; None if nothing has changed since it was last asked."""

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning changes, by name: what is saved."""
        return {}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from what ``state`` said; an error if that was of another estimator, or cannot be."""
        copy_into(self.state, state, self.limits)

    def limits(self, stored: dict[str, NDArray[Any]]) -> Limits:
        """What the arrays of ``state`` may hold, by name; what is not named is only checked for nan."""
        return {}


def require_plain_residuals(name: str, system: System) -> None:
    """An error where residuals are known only modulo S, so that there is no line to fit through them."""
    if system.boundary == "wrap" and system.disturbance_range is None:
        raise ValueError(
            f"{name} needs to know W's range where states wrap: 24 could be -1; pass disturbance_range to System"
        )
    if system.boundary == "wrap" and len(system.declared_residuals) > system.n_states:
        raise ValueError(
            f"{name} cannot tell {len(system.declared_residuals)} residuals apart where {system.n_states} states wrap; "
            "declare a narrower disturbance_range or a smaller model_error"
        )

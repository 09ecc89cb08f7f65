"""What f may depend on, as tables over states and actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, one_of
from ucbf.models.base import Estimator, require_plain_residuals
from ucbf.system import System

NAMED = {
    "affine": lambda s, a: (s, a),
    "quadratic": lambda s, a: (s, a, s * s, s * a, a * a),
    "actions": lambda s, a: tuple(a == i for i in range(int(a.max()) + 1)),
}
Features = str | ArrayLike | Callable[..., Any]


def table_of(features: Features, system: System) -> NDArray[np.float64]:
    """[1 or H, S, A, d] of a name, an array [S, A, d] or [H, S, A, d], or a function of (states, actions).

    A function returns a sequence of d arrays. No column should be constant: what is the same for all pairs is part
    of W.
    """
    H, S, A = system.f.shape
    if isinstance(features, str):
        features = NAMED[one_of("features", features, NAMED)]
    if callable(features):
        states, actions = np.meshgrid(np.array(system.states), np.arange(A), indexing="ij")
        columns = features(states, actions)
        features = np.stack([np.broadcast_to(np.asarray(column, float), (S, A)) for column in columns], axis=-1)
    table = numbers("features", features)
    if table.ndim == 3:
        table = table[None]
    if table.ndim != 4 or table.shape[:3] not in {(1, S, A), (H, S, A)} or not table.shape[3]:
        raise ValueError(
            f"features has shape {table.shape}; it must be [S, A, d] or [H, S, A, d] with H={H}, S={S}, A={A}"
        )
    return table


class FeatureEstimator(Estimator):
    """An estimator for which f depends on the pair through features."""

    table: NDArray[np.float64]  # [1 or H, S, A, d]

    def __init__(self, features: Features, **params: Any) -> None:
        super().__init__(**params)
        self.features = features

    def description(self) -> dict[str, Any]:
        """With the features as a table, where they are not a name."""
        named = self.features if isinstance(self.features, str) else self.table.tolist()
        return {**super().description(), "features": named}

    def start(self, system: System) -> int:
        """One row, or H if the features depend on the step."""
        require_plain_residuals(self.name, system)
        self.table = table_of(self.features, system)
        return len(self.table)

"""Ways of fitting numbers to after-states, from what they are at some of them: the anchors."""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import numbers, real, whole
from ucbf.large import Rows

Floats = NDArray[np.float64]
Predict = Callable[[Rows], Floats]  # of after-states [N, k]

MOST_ANCHORS = 2_000_000


class Fit(ABC):
    """A way of fitting. An averager gives means of what the anchors are worth, and so never makes an error larger."""

    def anchors(self, sampled: Rows) -> Rows:
        """[N, k] the after-states to fit at, given some that may occur."""
        return np.unique(sampled, axis=0)

    @abstractmethod
    def at(self, anchors: Rows, y: Floats) -> Predict:
        """A function that is about y [N] at anchors [N, k]."""


@dataclass(frozen=True)
class Hats(Fit):
    """Interpolation between the points of a lattice, linear along each axis: an averager.

    points: along each axis, or one number for all; None: every whole number
    """

    points: Any = None

    def __post_init__(self) -> None:
        for n in np.atleast_1d(np.asarray(self.points, object)):
            if n is not None:
                whole("points", n, 1)

    def anchors(self, sampled: Rows) -> Rows:
        """The lattice from the least to the largest that occurs along each axis."""
        return _product(self._axes(sampled))

    def _axes(self, sampled: Rows) -> list[Floats]:
        low, high = sampled.min(axis=0), sampled.max(axis=0)
        given = self.points if isinstance(self.points, list | tuple | np.ndarray) else [self.points] * len(low)
        if len(given) != len(low):
            raise ValueError(f"points has {len(given)} entries, and after-states {len(low)} axes; give one for each")
        axes = []
        for a, b, n in zip(low, high, given, strict=True):
            count = int(b - a) + 1 if n is None else max(int(n), 1) if b > a else 1
            axes.append(np.linspace(a, b, count) if count > 1 else np.array([float(a)]))
        size = float(np.prod([float(len(axis)) for axis in axes]))
        if size > MOST_ANCHORS:
            raise ValueError(
                f"a lattice of {' x '.join(str(len(axis)) for axis in axes)} points is too large; give fewer points, "
                "or another fit: values.Nearest, values.Linear"
            )
        return axes

    def at(self, anchors: Rows, y: Floats) -> Predict:
        """Interpolated; beyond the lattice as at its nearest point."""
        axes = [np.unique(column) for column in anchors.T]
        table = y.reshape([len(axis) for axis in axes])

        def predict(x: Rows) -> Floats:
            below, share = [], []
            for axis, column in zip(axes, x.T, strict=True):
                at = np.interp(column, axis, np.arange(len(axis)))
                i = np.minimum(at.astype(np.int64), max(len(axis) - 2, 0))
                below.append(i)
                share.append(at - i)
            value = np.zeros(len(x))
            for corner in itertools.product(*[(0, 1) if len(axis) > 1 else (0,) for axis in axes]):
                weight = np.ones(len(x))
                for up, part in zip(corner, share, strict=True):
                    weight = weight * (part if up else 1 - part)
                value += weight * table[tuple(i + up for i, up in zip(below, corner, strict=True))]
            return value

        return predict


def _product(axes: list[Floats]) -> Rows:
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


@dataclass(frozen=True)
class Nearest(Fit):
    """The mean of the nearest anchors, the nearer the more: an averager.

    neighbours: how many
    """

    neighbours: int = 8

    def __post_init__(self) -> None:
        whole("neighbours", self.neighbours, 1)

    def at(self, anchors: Rows, y: Floats) -> Predict:
        """Weights are 1 / distance, along axes of equal spread; at an anchor it is what the anchor is."""
        from scipy.spatial import cKDTree

        spread = np.maximum(anchors.std(axis=0), 1e-12)
        tree, n = cKDTree(anchors / spread), min(self.neighbours, len(anchors))

        def predict(x: Rows) -> Floats:
            away, which = tree.query(x / spread, k=[*range(1, n + 1)])
            here = away[:, :1] < 1e-9
            weight = np.where(here, np.arange(n) == 0, 1 / np.maximum(away, 1e-12))
            return np.asarray((weight * y[which]).sum(axis=1) / weight.sum(axis=1))

        return predict


@dataclass(frozen=True)
class Linear(Fit):
    """Least squares on features of after-states. It may make errors larger from step to step.

    features: a function from after-states [N, k] to [N, F]; None: 1, the coordinates, their squares and products
    ridge: what keeps the weights small, where anchors do not determine them
    """

    features: Callable[[Rows], Any] | None = None
    ridge: float = 1e-8

    def __post_init__(self) -> None:
        real("ridge", self.ridge, 0)
        if self.features is not None and not callable(self.features):
            raise TypeError(f"features is {self.features!r:.60}; give a function from after-states [N, k] to [N, F]")

    def _features(self, x: Rows, mean: Floats, spread: Floats) -> Floats:
        if self.features is not None:
            found = numbers("features", self.features(np.array(x)))
            if found.ndim != 2 or len(found) != len(x):
                raise ValueError(f"features gives shape {found.shape} for {len(x)} after-states; give [{len(x)}, F]")
            return found
        y = (x - mean) / spread
        first, second = np.triu_indices(y.shape[1])
        return np.concatenate([np.ones((len(y), 1)), y, y[:, first] * y[:, second]], axis=1)

    def at(self, anchors: Rows, y: Floats) -> Predict:
        """The weights of least squares."""
        mean, spread = anchors.mean(axis=0), np.maximum(anchors.std(axis=0), 1e-12)
        phi = self._features(anchors, mean, spread)
        scale = np.maximum(np.sqrt((phi**2).mean(axis=0)), 1e-300)
        phi = phi / scale
        gram = phi.T @ phi / len(phi) + self.ridge * np.eye(phi.shape[1])
        theta = np.linalg.solve(gram, phi.T @ y / len(phi)) / scale
        return lambda x: np.asarray(self._features(x, mean, spread) @ theta)


@dataclass(frozen=True)
class Regressor(Fit):
    """Anything with ``fit(X, y)`` and ``predict(X)``; a copy is fitted at every step."""

    regressor: Any

    def __post_init__(self) -> None:
        if not (hasattr(self.regressor, "fit") and hasattr(self.regressor, "predict")):
            raise TypeError(f"regressor is {self.regressor!r:.60}; give an object with fit(X, y) and predict(X)")

    def at(self, anchors: Rows, y: Floats) -> Predict:
        """Fitted to all anchors."""
        made = copy.deepcopy(self.regressor)
        made.fit(anchors, y)
        return lambda x: np.asarray(made.predict(x), np.float64).reshape(len(x))

"""f as told."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels import models
from ucbf.kernels.types import Mechanics
from ucbf.models.base import Model
from ucbf.system import System


class Exact(Model):
    """Believes f as told, and learns nothing of it."""

    name = "Exact"
    repairs = False

    def attach(
        self, system: System, told: Mechanics, counts: NDArray[np.float64], prior: NDArray[np.float64]
    ) -> tuple[Mechanics, Any]:
        """F as told."""
        return told, models.as_told(told)

"""The system as arrays, and the names of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BOUNDARIES = ("wrap", "clip", "strict")
WRAP, CLIP, STRICT = range(3)


class Mechanics(NamedTuple):
    """A system as arrays for the compiled functions. F, R, D are 1 (the same at every step) or H."""

    after: NDArray[np.int32]  # [F, S, A] index of the after-state; 0 where the action does not exist
    reward: Floats  # [R, S, A] -inf where the action does not exist
    landing: Floats  # [D, Z] reward of the raw next state
    next_state: NDArray[np.int32]  # [Z] state index of a raw next state: the boundary rule
    terminal: Floats  # [S]
    discount: float
    horizon: int
    n_after: int  # X: number of after-states; Z = X + n_residuals - 1
    n_residuals: int  # number of disturbances told apart; raw next state = after-state + residual
    shift: int  # residual index = next state index + shift - after-state index (modulo S if wrapped)
    boundary: int  # WRAP, CLIP or STRICT
    modular: bool  # whether after-states and residuals are counted modulo S

"""The system as arrays, and the names of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.parts import packed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@packed
class Mechanics(NamedTuple):
    """A system as arrays for the compiled functions. F, P, D are 1 (the same at every step) or H.

    States, after-states and raw next states are points of lattices, counted along the last axis first. An after-state
    between points is shared out among the C corners of its cell, and a disturbance between bins among B bins. Where
    everything is a whole number, C and B are 1.

    S, X, Z and R count all contexts, a block for each: of states and after-states that of the context now, of raw next
    states and disturbances that of the next one.
    """

    after: NDArray[np.int32]  # [F, S, A] index of the after-state, or of its first corner; 0 where there is no action
    share: Floats  # [F, S, A, C] what each corner counts for; [0, 0, 0, 1] where C = 1
    corners: Ints  # [C] how far each corner is from the first
    reward: Floats  # [P, S, A] -inf where the action does not exist
    landing: Floats  # [D, Z] reward of the raw next state
    next_state: NDArray[np.int32]  # [Z] state index of a raw next state: the boundary rule
    rows: Ints  # where each run of after-states of a context, from the last axis that W acts on, begins among the raw
    # next states
    length: int  # how many after-states a run has
    stride: int  # how far apart neighbours along that axis are
    offsets: Ints  # [R] how far each disturbance that is told apart moves, among the raw next states
    bins: Ints  # [d] how many disturbances are told apart along each axis
    bin_corners: Ints  # [B] how far the bins that a disturbance is shared out among are from the first
    whole: Floats  # [1] 1.0: how a disturbance that is a bin is shared out
    terminal: Floats  # [S]
    discount: float
    horizon: int  # or the period, where there is no end
    endless: bool
    n_contexts: int  # E
    n_states: int  # S / E: states of a context
    n_after: int  # X: number of after-states
    n_residuals: int  # R
    shift: int  # on a line, residual index = next state index + shift - after-state index (modulo S if wrapped)
    hides: NDArray[np.bool_]  # [S] whether a state hides, by itself, the disturbance that led to it
    wraps: bool  # whether the states of a line are counted modulo S
    modular: bool  # whether its after-states and residuals are counted modulo S
    lag: int  # how many steps later what ``late`` says is paid
    late: Floats  # [Z + lag (R - 1)] reward of what a raw next state has become by then; [0] where lag is 0
    searches: bool  # whether what a transition says of W is found by trying all disturbances

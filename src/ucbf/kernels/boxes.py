"""A system and a learner in one place, so that Python hands a compiled function one address, and not seventy arrays.

Finding out what seventy arrays are takes ten times as long as learning from one transition. A box refers to the arrays
that it was made of: what a function changes in it has changed in them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.experimental import structref
from numba.extending import overload

from ucbf.kernels.jit import compiled, entry
from ucbf.kernels.learners import renew, update
from ucbf.kernels.seen import Seen, residual_of
from ucbf.kernels.types import Mechanics


class Interpreted(NamedTuple):
    """A box where nothing is compiled."""

    told: Mechanics
    learner: Any


@structref.register
class BoxType(types.StructRef):
    """Its type."""


class Box(structref.StructRefProxy):
    """A box as Python holds it."""


structref.define_boxing(BoxType, Box)


def _new(told: Mechanics, learner: Any) -> Any:
    return Interpreted(told, learner)


@overload(_new)
def _compiled_new(told: Any, learner: Any) -> Any:
    kind = BoxType([("told", told), ("learner", learner)])

    def new(told: Any, learner: Any) -> Any:
        box: Any = structref.new(kind)  # type: ignore[call-arg]  # numba hands it the first argument
        box.told = told
        box.learner = learner
        return box

    return new


@compiled
def put_into_box(told: Mechanics, learner: Any) -> Any:
    """A box of both."""
    return _new(told, learner)


@compiled
def update_in(box: Any, h: int, s: int, a: int, s_next: int, low: int, high: int) -> bool:
    """Take a transition in, whose disturbance is between low and high; as :func:`ucbf.kernels.learners.update`."""
    changed: bool = update(box.told, box.learner, Seen(h, s, a, s_next, low, high), box.told.whole)
    return changed


@compiled
def update_if_plain(box: Any, last: int, h: int, s: int, a: int, s_next: int) -> bool:
    """Take a transition on a line in, if it is possible and says what W was; else do nothing. Whether it was taken in.

    last: the largest index that W may have; -1 where the learner does not look at W
    """
    told, j = box.told, 0
    if not (0 <= h < told.horizon and 0 <= s < told.n_states and 0 <= s_next < told.n_states):
        return False
    if not 0 <= a < told.after.shape[2] or told.reward[min(h, len(told.reward) - 1), s, a] == -np.inf:
        return False
    if last >= 0:
        j = residual_of(told, told.after, h, s, a, s_next)
        if told.hides[s_next] or not 0 <= j <= last:
            return False
    update(told, box.learner, Seen(h, s, a, s_next, j, j), told.whole)
    return True


@compiled
def renew_in(box: Any) -> int:
    """As :func:`ucbf.kernels.learners.renew`."""
    top: int = renew(box.told, box.learner)
    return top


class StepByStep:
    """The compiled functions of one learner, ready to be called again and again. A copy begins anew."""

    def __init__(self) -> None:
        self._told: Mechanics | None = None
        self._learner: Any = None
        self._known: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[type[StepByStep], tuple[()]]:
        return StepByStep, ()

    def __call__(self, function: Any, told: Mechanics, learner: Any, *numbers: int) -> Any:
        """Call one of the functions of this room, with numbers after the box."""
        if told is not self._told or learner is not self._learner:
            self._box, self._told, self._learner = put_into_box(told, learner), told, learner
            self._known.clear()
        known = self._known.get(function)
        if known is None:
            known = self._known[function] = entry(function, self._box, *[0] * len(numbers))
        return known(self._box, *numbers)

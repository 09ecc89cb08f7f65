"""Learners: arrays that learning changes, and the functions that change them, chosen by the learner's type.

Each room states the functions of its own learners: ``update.state(kind, kernel)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ucbf.kernels.jit import by_type, inlined
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen
from ucbf.kernels.types import Floats, Ints, Mechanics

# update(told, learner, seen, share) -> bool: take one transition in; whether the policy of its step changed.
# share: [B] how a disturbance between bins is shared out among those that begin with seen.low; [1] where all are whole.
update = by_type(1)
# learn(told, learner, h, e, j, share) -> bool: the same with a disturbance of step h and context e of which neither
# state nor action is known, for learners that are told f.
learn = by_type(1)
# renew(told, learner) -> int: prepare the policy of the next episode; the last step that changed, or -1. It is merged,
# so that it finds out quickly whether there is anything to do. What is long is not, and is handed few arrays: two dozen
# take a tenth of a microsecond.
renew = by_type(1)
# improve(told, learner, h): renew q of step h, for a learner that plans with counted transitions.
improve = by_type(1)


def registered(kind: type, updates: Callable[..., bool], renews: Callable[..., int] | None = None) -> None:
    """State the functions of a kind of learner; without ``renews``, its policy is right after every update."""
    update.state(kind, updates)
    renew.state(kind, renews or renew_nothing)


@inlined
def renew_nothing(told: Mechanics, learner: Any) -> int:
    """For learners whose policy is right after every update."""
    return -1


@packed
class Fixed(NamedTuple):
    """Learns nothing."""

    policy: Ints  # [H, S]


@inlined
def fixed_update(told: Mechanics, learner: Fixed, seen: Seen, share: Floats) -> bool:
    """Nothing to do."""
    return False


registered(Fixed, fixed_update)

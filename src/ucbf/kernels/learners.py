"""Learners: arrays that learning changes, and the two functions that change them.

``update(told, learner, seen) -> bool`` takes in one transition and says whether the policy of its step changed.
``learn(told, learner, h, j) -> bool`` does the same with a disturbance of which neither state nor action is known, for
learners that are told f. ``renew(told, learner) -> int`` is called before an episode and returns the last step whose
policy it changed, or -1. All are chosen by the learner's type, when compiled and when interpreted; each room registers
its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload

from ucbf.kernels.jit import INNER, MERGED, UNCOUNTED, inlined, source
from ucbf.kernels.seen import Seen
from ucbf.kernels.types import Ints, Mechanics

_UPDATES: dict[type, Callable[..., bool]] = {}
_LESSONS: dict[type, Callable[..., bool]] = {}
_RENEWALS: dict[type, Callable[..., int]] = {}
_IMPROVEMENTS: dict[type, Callable[..., None]] = {}


def update(told: Mechanics, learner: Any, seen: Seen) -> bool:
    """Take one transition in; whether the policy of its step changed."""
    return _UPDATES[type(learner)](told, learner, seen)


def learn(told: Mechanics, learner: Any, h: int, j: int) -> bool:
    """Take one disturbance in; whether the policy of step h changed."""
    return _LESSONS[type(learner)](told, learner, h, j)


def renew(told: Mechanics, learner: Any) -> int:
    """Prepare the policy of the next episode; the last step that changed, or -1."""
    return _RENEWALS[type(learner)](told, learner)


def improve(told: Mechanics, learner: Any, h: int) -> None:
    """Renew q of step h, for a learner that plans."""
    _IMPROVEMENTS[type(learner)](told, learner, h)


@overload(update, strict=False, jit_options=MERGED | INNER)
def _compiled_update(told: Any, learner: Any, seen: Any) -> Any:
    return source(_UPDATES[learner.instance_class])


@overload(learn, strict=False, jit_options=MERGED | INNER)
def _compiled_learn(told: Any, learner: Any, h: Any, j: Any) -> Any:
    return source(_LESSONS[learner.instance_class])


@overload(renew, strict=False, jit_options=UNCOUNTED | INNER)  # not merged: it can be long
def _compiled_renew(told: Any, learner: Any) -> Any:
    return source(_RENEWALS[learner.instance_class])


@overload(improve, strict=False, jit_options=MERGED | INNER)
def _compiled_improve(told: Any, learner: Any, h: Any) -> Any:
    return source(_IMPROVEMENTS[learner.instance_class])


def registered(
    kind: type,
    update: Callable[..., bool],
    renew: Callable[..., int] | None = None,
    learn: Callable[..., bool] | None = None,
    improve: Callable[..., None] | None = None,
) -> None:
    """State the functions of a kind of learner; without ``renew``, its policy is right after every update."""
    _UPDATES[kind], _RENEWALS[kind] = update, renew or renew_nothing
    if learn is not None:
        _LESSONS[kind] = learn
    if improve is not None:
        _IMPROVEMENTS[kind] = improve


@inlined
def renew_nothing(told: Mechanics, learner: Any) -> int:
    """For learners whose policy is right after every update."""
    return -1


class Fixed(NamedTuple):
    """Learns nothing."""

    policy: Ints  # [H, S]


@inlined
def fixed_update(told: Mechanics, learner: Fixed, seen: Seen) -> bool:
    """Nothing to do."""
    return False


registered(Fixed, fixed_update)

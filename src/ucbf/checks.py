"""Checks of what a user passes in: each error gives the value, the rule and the remedy."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGEST_INTEGER = 2**53
LARGEST_FLOAT = float(np.finfo(np.float64).max)
LARGEST_RETURN = 1e100  # what an episode may pay, so that sums and squares of values stay finite


def whole(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """``value`` as a Python int within low..high, or a readable error."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; give a whole number") from None
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}; give a whole number, not a truth value")
    if (low is not None and number < low) or (high is not None and number > high):
        upper = "or more" if high is None else f"to {high}"
        raise ValueError(f"{name} is {number}; it must be {low} {upper}")
    return number


def real(name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False) -> float:
    """``value`` as a finite float within low..high (above low if ``open_low``)."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}; give a number, not a truth value")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}; give a number") from None
    if not np.isfinite(number):
        raise ValueError(f"{name} is {number}; give a finite number")
    if number < low or number > high or (open_low and number == low):
        lower = f"above {low:g}" if open_low else f"{low:g} or more"
        upper = "" if high == np.inf else f" and at most {high:g}"
        raise ValueError(f"{name} is {number:g}; it must be {lower}{upper}")
    return number


def one_of(kind: str, value: object, choices: Iterable[str]) -> str:
    """``value`` if it is one of ``choices``, else an error that suggests the nearest."""
    names = list(choices)
    if isinstance(value, str) and value in names:
        return value
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(value).lower(), lowered, n=1, cutoff=0.5)
    hint = f"did you mean {lowered[near[0]]!r}? " if near else ""
    raise ValueError(f"unknown {kind} {value!r}; {hint}the choices are {', '.join(map(repr, names))}")


def array_of(name: str, values: ArrayLike) -> NDArray[Any]:
    """``values`` as an array of real numbers or truth values."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} is not an array of real numbers: {values!r:.80}")
    return array


def numbers(
    name: str, values: ArrayLike, place: Callable[..., str] | None = None, most: float = np.inf
) -> NDArray[np.float64]:
    """``values`` as finite floats within ±most, or an error for the first that is not. place: names an index."""
    array = array_of(name, values).astype(np.float64, copy=False)
    if not within(array, min(most, LARGEST_FLOAT)):
        _refuse_first(~np.isfinite(array), name, array, place, "every entry must be a finite number")
        _refuse_first(np.abs(array) > most, name, array, place, f"it must stay within ±{most:g}: choose another unit")
    return array


def integers(name: str, values: ArrayLike, place: Callable[..., str] | None = None) -> NDArray[np.int64]:
    """``values`` as integers; floats are taken only where they are whole."""
    array = array_of(name, values)
    if array.dtype.kind == "f":
        array = numbers(name, array, place)
        remedy = "every entry must be a whole number: round it, or choose a finer unit"
        _refuse_first(array != np.rint(array), name, array, place, remedy)
    if not within(array, LARGEST_INTEGER):
        large = (array > LARGEST_INTEGER) | (array < -LARGEST_INTEGER)  # np.abs(-2**63) is itself
        _refuse_first(large, name, array, place, "entries must stay within ±2**53")
    return array.astype(np.int64, copy=False)


def within(array: NDArray[Any], most: float) -> bool:
    """Whether every entry is within ±most, and a number; without an array of answers, for large ones."""
    return array.size == 0 or array.dtype == np.bool_ or bool(array.min() >= -most and array.max() <= most)


def _refuse_first(
    wrong: NDArray[np.bool_], name: str, array: NDArray[Any], place: Callable[..., str] | None, rule: str
) -> None:
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = place(*first) if place is not None else name + (str(list(first)) if first else "")
        raise ValueError(f"{where} is {array[first]:g}; {rule}")


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous, read-only copy; the array itself if it is both already and owns its memory."""
    if array.flags.c_contiguous and not array.flags.writeable and array.base is None:
        return array
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """As :func:`frozen`, of an array that nobody else has: itself, if it is contiguous."""
    own = np.ascontiguousarray(array)
    own.flags.writeable = False
    return own


def length_of(episodes: int | None, steps: int | None, unending: bool, where: str) -> int:
    """How many episodes are asked for, or steps where there is no end; refused unless that one alone is given.

    where: what has, or has not, an end, in the error
    """
    if (steps is None) == unending or (episodes is None) != unending:
        raise TypeError(
            f"episodes is {episodes!r:.40} and steps {steps!r:.40}; {where} "
            + ("has no end: give steps=" if unending else "has episodes: give episodes=")
            + ", and only that"
        )
    return whole("steps", steps, 1) if unending else whole("episodes", episodes, 1)

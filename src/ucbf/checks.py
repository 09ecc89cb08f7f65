"""Checks of what a user passes in: each error gives the value, the rule and the remedy."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


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


def numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """``values`` as finite floats; the error names the first place that is not."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is not an array of numbers: {values!r:.80}") from None
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = tuple(bad[0].tolist())
        raise ValueError(f"{name}{list(place)} is {array[place]}; every entry must be a finite number")
    return array


def integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """``values`` as integers; floats are taken only where they are whole."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return values
    array = numbers(name, values)
    bad = np.argwhere(array != np.rint(array))
    if len(bad):
        place = tuple(bad[0].tolist())
        raise ValueError(
            f"{name}{list(place)} is {array[place]:g}; every entry must be a whole number: "
            "round it, or choose a finer unit"
        )
    if array.size and np.abs(array).max() > 2**53:
        raise ValueError(f"{name} reaches {np.abs(array).max():.3g}; entries must stay below 2**53")
    return array.astype(np.int64)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous, read-only copy (or the array itself if it is both, and nobody else's memory)."""
    if array.flags.c_contiguous and not array.flags.writeable and array.base is None:
        return array
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy

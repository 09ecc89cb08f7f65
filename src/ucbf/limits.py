"""What the arrays of an agent may hold, and how they are filled from a file: the one place that says so.

Compiled functions use these arrays as indices, ends of loops, clocks and divisors and do not look twice. A file comes
from outside, and its digest says no more than that nobody changed it by accident.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.kernels.fitting import SMOOTHINGS
from ucbf.kernels.models import Bounded
from ucbf.kernels.offsets import Offsets
from ucbf.kernels.types import Mechanics
from ucbf.kernels.watch import COUNT, FURTHEST, PERIODS, SEEN, VISITS, Watch
from ucbf.system import System
from ucbf.tables import distinct_steps

MOST_SEEN = 2**53  # observations: one more is still told apart from one less
VALUE, SUM, SQUARES = 1e110, 1e130, 1e250  # what a system can pay is far below; products of these stay finite
NEVER_LEARNED = ("span", "cap", "width", "guess")
ROUNDED = 1 + 1e-6  # a probability, as sums of floats give it

Arrays = dict[str, NDArray[Any]]


class Limit(NamedTuple):
    """The least and the most that an array may hold, numbers or arrays that broadcast to it."""

    low: ArrayLike
    high: ArrayLike


Limits = dict[str, Limit]


def copy_into(arrays: Arrays, stored: Arrays, limits: Callable[[Arrays], Limits]) -> None:
    """Fill every array with the stored one of its name; an error if that is missing, of another kind, or impossible.

    limits: what each may hold, given all of them; where it says nothing, floats must be numbers
    """
    found = {}
    for name, array in arrays.items():
        found[name] = stored.get(name, np.empty(0, np.void))
        if found[name].shape != array.shape or found[name].dtype != array.dtype:
            raise ValueError(f"it holds no {name} of shape {array.shape}: it was written by another version")
        if found[name].dtype.kind == "f" and np.isnan(found[name]).any():
            raise ValueError(f"it holds a {name} that is not a number")
    for name, limit in limits(found).items():
        refuse_outside(name, found[name], limit)
    for name, array in arrays.items():
        array[...] = found[name]


def refuse_outside(name: str, array: NDArray[Any], limit: Limit) -> None:
    """An error that names the first place where ``array`` is outside its limits."""
    low, high = (np.broadcast_to(side, array.shape) for side in limit)
    wrong = np.argwhere(~((array >= low) & (array <= high)))
    if len(wrong):
        first = tuple(int(i) for i in wrong[0])
        raise ValueError(f"its {name}{list(first)} is {array[first]}; it must be {low[first]} to {high[first]}")


def learner_limits(system: System, told: Mechanics, learner: Any, stored: Arrays, prefix: str = "") -> Limits:
    """Of the arrays of a learner, one of the NamedTuples of :mod:`ucbf.kernels`; of its parts under "part.name"."""
    by_name = _named(system)
    limits: Limits = {}
    for field, part in learner._asdict().items():
        name = prefix + field
        if isinstance(part, Watch):
            limits |= _watch_limits(told, stored, name)
        elif isinstance(part, Bounded | Offsets):
            limits |= _model_limits(system, told, part, stored, name)
        elif isinstance(part, tuple):
            limits |= learner_limits(system, told, part, stored, name + ".")
        elif name in stored and field in NEVER_LEARNED:
            limits[name] = Limit(part, part)
        elif name in stored and field in by_name:
            limits[name] = by_name[field]
    return limits


def _named(system: System) -> Limits:
    """Of what learners have, by name."""
    each, exists = MOST_SEEN // system.n_steps, distinct_steps(system.allowed)
    q = Limit(np.where(exists, -VALUE, -np.inf), np.where(exists, VALUE, -np.inf))
    value, total, flag, chance = Limit(-VALUE, VALUE), Limit(-SUM, SUM), Limit(0, 1), Limit(0, ROUNDED)
    return {
        "policy": Limit(0, system.n_actions - 1),
        **dict.fromkeys(("visits", "made"), Limit(0, each)),
        **dict.fromkeys(("due", "due_ref", "plans", "known"), Limit(0, 2**62)),
        **dict.fromkeys(("stale", "stale_ref", "unsettled"), flag),
        **dict.fromkeys(("counts", "below", "above", "hits", "seen", "chosen", "arrived"), Limit(0, MOST_SEEN)),
        **dict.fromkeys(("weight", "law", "share"), chance),
        **dict.fromkeys(("q", "upper", "lower", "reference"), q),
        **dict.fromkeys(("average", "bonus", "value", "value_low", "value_ref", "mean", "mean_ref", "mean_adv"), value),
        **dict.fromkeys(("landed", "total", "ahead", "raw", "room"), total),
        **dict.fromkeys(("squares", "square_ref", "square_adv", "beta", "bonus_ref", "phi"), Limit(0, SQUARES)),
        **dict.fromkeys(("variance", "variance_ref", "variance_adv"), Limit(0, SQUARES)),
    }


def _watch_limits(told: Mechanics, stored: Arrays, at: str) -> Limits:
    """Of a :class:`Watch`. The period that a residual is dated to is worked out from three of its arrays."""
    R, steps, groups, periods = told.n_residuals, *(stored[f"{at}.{name}"] for name in ("steps", "groups", "periods"))
    begun, length = periods[:, 0, :, COUNT], stored[f"{at}.length"]
    latest = np.minimum(begun + PERIODS * np.clip(length, 1, MOST_SEEN).astype(float), MOST_SEEN)
    never, most = np.zeros(begun.shape), np.full(begun.shape, float(MOST_SEEN))
    compared = np.clip(steps[..., SEEN], 0, MOST_SEEN)
    visits, dated = np.clip(groups[..., VISITS], 0, MOST_SEEN), np.clip(periods[..., COUNT], 0, MOST_SEEN)
    further = R * dated + 1
    return {
        f"{at}.length": Limit(1, MOST_SEEN // told.horizon),
        f"{at}.periods": Limit(
            np.stack([np.zeros_like(dated), -further, np.zeros_like(dated)], axis=-1),
            np.stack([np.full_like(dated, MOST_SEEN), further, R * further], axis=-1),
        ),
        f"{at}.steps": Limit(
            np.stack([np.maximum(begun - 0.5, 0), never, never - R, never], axis=-1),
            np.stack([latest, never + R - 1, never + R, most * R * R], axis=-1),
        ),
        f"{at}.groups": Limit(
            np.stack([0 * visits, -2 * FURTHEST * visits - 1, -(FURTHEST**2) * visits - 1], axis=-1),
            np.stack([0 * visits + MOST_SEEN, 2 * FURTHEST * visits + 1, FURTHEST**2 * visits + 1], axis=-1),
        ),
        f"{at}.tally": Limit(
            np.stack([0 * compared, never - FURTHEST, never - 1, 0 * compared], axis=-1),
            np.stack([compared, never + FURTHEST, never + FURTHEST**2, FURTHEST**4 * compared], axis=-1),
        ),
        f"{at}.unused": Limit(0, MOST_SEEN),
    }


def _model_limits(system: System, told: Mechanics, model: Any, stored: Arrays, at: str) -> Limits:
    """Of a model of f. Where f is fitted in Python its bounds may be one state further apart."""
    first, fitted = model.first.astype(np.int64), isinstance(model, Offsets)
    reach = 2 * system.slack if fitted else system.slack
    limits = {
        "first": Limit(first, first),
        "f": Limit(0, told.n_after - 1),
        "low": Limit(first - reach - (not fitted), np.minimum(first + reach, stored[f"{at}.high"])),
        "high": Limit(first - reach, first + reach),
        "residuals": Limit(0, MOST_SEEN),
        "lead": Limit(-VALUE, VALUE),
    }
    if fitted:
        limits |= _offset_limits(model)
    return {f"{at}.{name}": limit for name, limit in limits.items() if f"{at}.{name}" in stored}


def _offset_limits(model: Offsets) -> Limits:
    """Of the arrays from which offsets are fitted, and certificates made."""
    likely, amounts, half = 1e20, (model.smoothing,) if model.smoothing > 0 else SMOOTHINGS, model.half
    counted = ("seen", "often", "raw", "counts", "law", "visits", "met", "due", "clock", "pool")
    return {
        **dict.fromkeys(counted, Limit(0, MOST_SEEN)),
        **dict.fromkeys(("stale", "left"), Limit(0, 1)),
        **dict.fromkeys(("barred", "said"), Limit(-likely, 0)),
        **dict.fromkeys(("posterior", "exact", "overlap"), Limit(0, ROUNDED)),
        **dict.fromkeys(("gain", "scores"), Limit(-VALUE, VALUE)),
        "believed": Limit(1e-300, MOST_SEEN),
        "amount": Limit(min(amounts), max(amounts)),
        "anchor": Limit([0, -half, -half], [2, half, half]),
        "certain": Limit(-1, 4 * half),
        "ends": Limit(0, 4 * half),
        **dict.fromkeys(("weights", "bids"), Limit(-SUM, SUM)),
    }

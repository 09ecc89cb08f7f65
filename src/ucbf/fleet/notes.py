"""What looks wrong with the rows of an item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.fleet.reading import Rows
from ucbf.kernels.fleet import describe_items
from ucbf.wording import show_count

Floats = NDArray[np.float64]
REFUSED = "refused: "
FEWEST = 8  # episodes below which a plan is a first guess
CHANGED = 5.0  # standard errors between the halves of a series that are no chance


class Description(NamedTuple):
    """What the rows of each item look like, [n] each."""

    least: Floats
    mean: Floats
    most: Floats
    gaps: Floats  # days that are missing
    disorder: Floats  # days that do not follow the one before
    first_mean: Floats  # of the first half of the rows
    first_error: Floats  # the square of its standard error
    second_mean: Floats
    second_error: Floats


def described(rows: Rows) -> Description:
    """What the rows of each item look like."""
    found = np.zeros((len(rows.names), len(Description._fields)))
    describe_items(rows.begins, rows.day, rows.amount, found)
    return Description(*np.ascontiguousarray(found.T))


def notes_of(rows: Rows, look: Description, n_steps: int, amount: str, recent: bool) -> list[str | None]:
    """[n] what is to be said of each item; None where nothing is.

    n_steps: of an episode; amount: what is measured; recent: whether what is recent counts more
    """
    n = np.diff(rows.begins)
    spread = np.sqrt(look.first_error + look.second_error)
    change = np.divide(look.second_mean - look.first_mean, spread, out=np.zeros(len(n)), where=spread > 0)
    found: list[str | None] = [None] * len(n)
    for i in np.flatnonzero((look.disorder > 0) | (abs(change) > CHANGED) | (n < FEWEST * n_steps) | (look.gaps > 0)):
        if look.disorder[i]:
            found[i] = f"{REFUSED}its days are not in order, or one stands twice; sort the file, keep one row a day"
        elif abs(change[i]) > CHANGED:
            word = "rose" if change[i] > 0 else "fell"
            counts = "what is recent counts more" if recent else "all of the past counts alike here"
            means = f"from {look.first_mean[i]:.3g} to {look.second_mean[i]:.3g} a day"
            found[i] = f"its {amount} {word} {means}; {counts}"
        elif n[i] < FEWEST * n_steps:
            found[i] = f"learned from {n[i]} days: take it as a first guess"
        else:
            found[i] = f"missing: {show_count(int(look.gaps[i]), 'day')}"
    return found

"""What looks wrong with the rows of an item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.data.outliers import outliers_of_each
from ucbf.fleet.rows import Rows
from ucbf.kernels.fleet import describe_items, lay_out_by_steps, most_of_a_step
from ucbf.wording import show_count

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
MONDAY = 4  # 1970-01-05, in days from 1970-01-01
AT_ONCE = 64  # items whose rows are gone through, so that they stay in the cache
NAMED = 5  # outliers that are named one by one
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


def outliers_of_rows(rows: Rows, n_steps: int) -> Bools:
    """[N] which amounts are far from all others of their item, each measured from the median of its step."""
    found = np.zeros(len(rows), np.bool_)
    for first in range(0, len(rows.names), AT_ONCE):
        begins = rows.begins[first : first + AT_ONCE + 1]
        place = np.empty(begins[-1] - begins[0], np.int64)
        most = most_of_a_step(begins, rows.day, n_steps, MONDAY, np.empty(n_steps, np.int64), place)
        table = np.full((len(begins) - 1, n_steps, most), np.nan)
        lay_out_by_steps(begins, rows.day, rows.amount, MONDAY, place, table)
        found[begins[0] : begins[-1]] = outliers_of_each(table).ravel()[place]
    return found


def day_of(rows: Rows, r: int) -> str:
    """The day of a row."""
    return str(np.datetime64(int(rows.day[r]), "D"))


def _far_from_others(rows: Rows, odd: Bools, i: int) -> str:
    """Names the outliers of an item, of which there are some."""
    here = slice(rows.begins[i], rows.begins[i + 1])
    which, others = np.flatnonzero(odd[here]) + rows.begins[i], rows.amount[here][~odd[here]]
    named = ", ".join(f"{rows.amount[r]:g} on {day_of(rows, int(r))}" for r in which[:NAMED])
    more = f" and {len(which) - NAMED} more" if len(which) > NAMED else ""
    return f"far from all others: {named}{more}; the others go from {others.min():g} to {others.max():g}"


def notes_of(rows: Rows, look: Description, n_steps: int, amount: str, recent: bool, odd: Bools) -> list[str | None]:
    """[n] what is to be said of each item; None where nothing is.

    n_steps: of an episode; amount: what is measured; recent: whether what is recent counts more; odd: [N] outliers
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
    for i in np.unique(np.searchsorted(rows.begins, np.flatnonzero(odd), side="right") - 1):
        if not look.disorder[i]:
            found[i] = "; ".join(filter(None, (_far_from_others(rows, odd, i), found[i])))
    return found


def nothing_ordered(price: float, cost: float) -> str:
    """Says that a plan orders nothing. price, cost: of a unit."""
    if price > cost:
        why = (
            f", although its price ({price:g}) is above its unit cost ({cost:g}): no order that fits pays for its costs"
        )
    else:
        why = f": its price ({price:g}) is not above its unit cost ({cost:g})" if cost else ""
    return f"nothing is ever ordered{why}"

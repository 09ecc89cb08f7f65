"""What the page says of steps whose amount had to be drawn: sold out, or missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.remarks import Remark
from ucbf.data import Uncensored
from ucbf.wording import show_count, show_number

MANY_UNRESOLVED = 0.1  # of the steps that were sold out
MANY_SOLD_OUT = 0.5  # of all steps
MANY_MISSING = 0.2  # of all steps


def censored_remark(done: Uncensored, column: str) -> Remark:
    """How many steps were sold out, how much the mean rose, and how many could not be resolved."""
    there = ~done.unknown
    n, kept, total = int(done.sold_out.sum()), int(done.unresolved.sum()), int(there.sum())
    tail = _of_rest(done.sold_out_after)
    if not n:
        also = f", but {tail}, whose demand was drawn from what the others show" if tail else ""
        return Remark(f"No step{' of the whole episodes' if tail else ''} was sold out, by column {column!r}{also}.")
    if n == total:
        return Remark(
            f"Every step was sold out (column {column!r}): nothing shows how much more was asked for. What was sold "
            "was taken for the demand, which is too little, and so is what is ordered. Have more in stock for a while, "
            "or check that 1 means in stock.",
            first=True,
            gravest=True,
        )
    before, after = float(done.sold[there].mean()), float(done.episodes.values[there].mean())
    most = n > MANY_SOLD_OUT * total
    rose = f" ({after / before - 1:+.1%})" if before else ""
    said = (
        f"{n / total:.0%} of the steps were sold out, by column {column!r}: is it the other way round? 1 must mean "
        "that the stock lasted. "
        if most
        else ""
    )
    said += (
        f"{n} of {total} steps{tail and f', and {tail},'} were sold out (column {column!r}), so that the demand was at "
        "least what was sold. "
        f"It was drawn from what the other steps show, and the mean rose from {show_number(before)} to "
        f"{show_number(after)}{rose}. Rewards of the episodes that followed are of drawn demand, too."
    )
    if kept:
        said += (
            f" {kept} of these steps sold as much as was ever seen of them, so that nothing shows how much more was "
            "asked for: that is a guess, from the shape of what was seen. Have more in stock for a while, and learn "
            "again."
        )
    return Remark(said, first=most or kept > MANY_UNRESOLVED * n, gravest=most)


def missing_remark(done: Uncensored) -> Remark:
    """How many steps are missing, and what was taken for them."""
    n, total, tail = int(done.unknown.sum()), done.unknown.size, _of_rest(done.unknown_after)
    return Remark(
        f"{n} of {total} steps{tail and f', and {tail},'} are missing and were taken as not known (--gaps "
        "unknown): their amounts were drawn from what the other steps show. Rewards of the episodes that followed are "
        "of drawn amounts, too.",
        first=n > MANY_MISSING * total,
    )


def _of_rest(hidden: NDArray[np.bool_]) -> str:
    """How many of the steps after the last whole episode; nothing if none."""
    n, M = int(hidden.sum()), len(hidden)
    return f"{n} of the {show_count(M, 'step')} after the last whole episode" if n else ""

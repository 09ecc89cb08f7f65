"""What the page says of steps whose amount had to be drawn: sold out, or missing."""

from __future__ import annotations

from ucbf.advice.remarks import Remark
from ucbf.data import Uncensored
from ucbf.wording import show_number

MANY_UNRESOLVED = 0.1  # of the steps that were sold out
MANY_SOLD_OUT = 0.5  # of all steps
MANY_MISSING = 0.2  # of all steps


def censored_remark(done: Uncensored, column: str) -> Remark:
    """How many steps were sold out, how much the mean rose, and how many could not be resolved."""
    there = ~done.unknown
    n, kept, total = int(done.sold_out.sum()), int(done.unresolved.sum()), int(there.sum())
    if not n:
        return Remark(f"No step was sold out, by column {column!r}.")
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
        f"{n} of {total} steps were sold out (column {column!r}), so that the demand was at least what was sold. "
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
    n, total = int(done.unknown.sum()), done.unknown.size
    return Remark(
        f"{n} of {total} steps are missing and were taken as not known (--gaps unknown): their amounts were drawn from "
        "what the other steps show. Rewards of the episodes that followed are of drawn amounts, too.",
        first=n > MANY_MISSING * total,
    )

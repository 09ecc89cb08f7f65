"""What happened in a step of a store whose orders take time, as people tell it: by flags, or in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ucbf.checks import real
from ucbf.errors import UserError
from ucbf.following.happened import read_rows
from ucbf.systems.inventory import Inventory

if TYPE_CHECKING:
    from ucbf.following.happened import Source

COLUMNS = {
    "demand": ("demand", "amount"),
    "order": ("order", "action"),
    "received": ("received",),
    "cancelled": ("cancelled",),
    "sold_out": ("sold_out",),
    "stock": ("stock", "state"),
    "left": ("left", "next_stock", "next_state"),
}


@dataclass(frozen=True)
class StoreStep:
    """What happened in a step after the series."""

    demand: float
    order: float = 0.0  # placed in it
    received: float = 0.0  # that came in it
    sold_out: bool = False  # then demand is what was sold
    cancelled: float = 0.0  # of what was under way, and will not come

    def __str__(self) -> str:
        sold = "sold (sold out)" if self.sold_out else "demand"
        cancelled = f", cancelled {self.cancelled:g}" if self.cancelled else ""
        return f"{sold} {self.demand:g}, order {self.order:g}, received {self.received:g}{cancelled}"


@dataclass(frozen=True)
class Told:
    """A step as it was told, and when it was, by its date or its number."""

    happened: StoreStep
    date: Any = None
    step: int | None = None
    note: str = ""  # what is odd about it
    where: str = ""  # the row of a file

    def error(self, message: object) -> UserError:
        """The error for this step."""
        return UserError(f"{self.where}: {message}" if self.where else str(message))


def step_of(
    shop: Inventory,
    demand: float | None = None,
    order: float | None = None,
    received: float | None = None,
    cancelled: float | None = None,
    sold_out: bool = False,
    stock: float | None = None,
    left: float | None = None,
) -> tuple[StoreStep, str]:
    """The step that is told, and what is odd about it.

    stock, left: before the step, without what came in it, and after it; together they tell the demand, or where
    nothing is left what was sold, if that is not told
    """
    below = -1e12 if shop.backlog else 0
    for name, value, low in (("stock", stock, below), ("left", left, below)):
        if value is not None:
            real(name, value, low)
    came, gone = (real(name, value or 0.0, 0) for name, value in (("received", received), ("cancelled", cancelled)))
    placed, note = real("order", order or 0.0, 0), ""
    if demand is None:
        if stock is None or left is None:
            raise UserError(
                "demand not given; give what was asked for (--demand), or what was sold (with --sold-out), or what was "
                "there before and after the step (--stock and --left)"
            )
        if shop.shelf_life:
            raise UserError("what is left does not tell what was sold where stock ages; give --demand")
        demand, near = stock + came - left, 1e-9 * max(abs(stock) + came, 1)
        if abs(demand - round(demand)) <= near:
            demand = float(round(demand))  # decimals leave a little: 0.7 + 0.1 is less than 0.8
        if demand < 0:
            raise UserError(
                f"{left:g} were left, and no more than {stock + came:g} were there (stock and received); correct them"
            )
        sold_out = sold_out or (left <= 0 and not shop.backlog)
    elif stock is not None and left is not None and not shop.shelf_life:
        rest = stock + came - demand
        rest = rest if shop.backlog else max(rest, 0.0)
        if abs(rest - left) > 1e-9 * max(abs(left), 1):
            note = f"{left:g} were left, where stock, received and demand leave {rest:g}; the demand counts as given"
    return StoreStep(real("demand", demand, 0), placed, came, bool(sold_out), gone), note


def read_told(source: Source, shop: Inventory, date_format: str | None = None) -> list[Told]:
    """The steps in a CSV or Parquet file, a row for each, in the order of the file."""
    columns, dates, steps, rows = read_rows(source, COLUMNS, (), tuple(COLUMNS), date_format)
    found = []
    for i, where in enumerate(rows):
        given = {name: None if np.isnan(values[i]) else float(values[i]) for name, values in columns.items()}
        mark = given.pop("sold_out") or 0.0
        if mark not in (0.0, 1.0):
            raise UserError(f"{where}: sold_out is {mark:g}; write 1 where more was asked for than was sold, else 0")
        try:
            happened, note = step_of(shop, sold_out=mark == 1.0, **given)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from None
        date, step = None if dates is None else dates[i], None if steps is None else steps[i]
        found.append(Told(happened, date, step, note, where))
    return found


def under_way_after(
    waiting: list[tuple[float, int, int | None]], number: int, happened: StoreStep
) -> tuple[list[int], float, float]:
    """Take a step into the orders under way, in place: how much, when ordered, when a part of it came last.

    What comes, and what is cancelled, is taken from the oldest order. The lead times that became known; how much came
    that was not under way; how much was cancelled that was not.
    """
    lags: list[int] = []
    if happened.order > 0:
        waiting.append((happened.order, number, None))
    extra = []
    for amount, came in ((happened.received, True), (happened.cancelled, False)):
        while amount > 1e-9 and waiting:
            quantity, placed, part = waiting[0]
            last = number if came else part
            if amount < quantity - 1e-9:
                waiting[0] = quantity - amount, placed, last
                amount = 0.0
            else:
                waiting.pop(0)
                amount -= quantity
                if last is not None:
                    lags.append(last - placed)
        extra.append(amount if amount > 1e-9 else 0.0)
    return lags, extra[0], extra[1]

"""What ``ucbf learn inventory`` needs to know of money: prices and costs, or a service level instead."""

from __future__ import annotations

from typing import Any

from ucbf.advice import Advice, OrderAdvice, Remark
from ucbf.errors import UserError
from ucbf.systems import Inventory

NEEDED = ("price", "unit_cost")
WITH_SERVICE_LEVEL = ("holding", "order_cost")  # the costs that may be given with a service level


def inventory_costs(given: dict[str, Any], service_level: float | None) -> tuple[dict[str, Any], tuple[Remark, ...]]:
    """The parameters with the costs that a service level stands for, and what the page says of it.

    A UserError if neither prices nor a service level are given, or both.
    """
    missing = [name for name in NEEDED if name not in given]
    if service_level is None:
        if missing:
            raise UserError(
                f"{' and '.join(missing)} not given; "
                "give --price and --unit-cost (or price and unit_cost in --config), or, "
                "without prices, --service-level, such as 0.95: the probability of no stock-out in a step"
            )
        return given, ()
    beside = [name for name in given if name in Inventory.money and name not in WITH_SERVICE_LEVEL]
    if beside:
        raise UserError(
            f"service_level {service_level:g} is given with {', '.join(beside)}; give prices and costs, or a service "
            f"level, which stands for them (only {' and '.join(WITH_SERVICE_LEVEL)} go with it)"
        )
    try:
        costs = Inventory.service_level_costs(service_level, given.get("holding", 1.0), given.get("review", 1))
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    units = "" if "holding" in given else ", in multiples of the cost of holding a unit for a step"
    return {**given, **costs}, (
        Remark(
            f"A service level was given instead of prices: no stock-out in {100 * service_level:g} % of the steps"
            f"{' between orders' if given.get('review', 1) > 1 else ''}. It stands for a cost of "
            f"{costs['holding']:g} for each unit left at the end of a step and of {costs['penalty']:.4g} for each that "
            f"is missing, with price and unit cost 0. Rewards here are such costs{units}, and no profits.",
            True,
        ),
    )


def service_remarks(found: Advice | OrderAdvice, wanted: float | None) -> tuple[Remark, ...]:
    """A caveat where the service level that was asked for was missed in the episodes that followed."""
    came = found.service
    if wanted is None or came is None:
        return ()
    chance = 2 * (wanted * (1 - wanted) / found.test.values.size) ** 0.5
    if came.without_stock_out >= wanted - chance:
        return ()
    return (
        Remark(
            f"Asked for was no stock-out in {wanted:.1%} of the steps; in the episodes that followed it was "
            f"{came.without_stock_out:.1%}. Chance alone explains a difference of {100 * chance:.1f} points at most. "
            "Ask for more, or learn again often.",
            first=True,
        ),
    )

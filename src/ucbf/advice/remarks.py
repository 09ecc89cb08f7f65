"""What a page says beyond the advice itself: what was given instead of costs, what was done to the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ucbf.advice.result import Advice
from ucbf.systems.base import Preset
from ucbf.systems.inventory import Inventory


@dataclass(frozen=True)
class Remark:
    """A sentence or two for the page."""

    text: str
    first: bool = False  # whether it is a caveat, which the page begins with
    gravest: bool = False  # whether it comes before all others: what was given may be wrong


def with_caveats(found: Iterable[str], remarks: Iterable[Remark]) -> tuple[str, ...]:
    """The caveats of a page: the gravest remarks, what was found, and the other remarks that come first."""
    first = [remark for remark in remarks if remark.first]
    before = (remark.text for remark in first if remark.gravest)
    return (*before, *found, *(remark.text for remark in first if not remark.gravest))


def losing_sales(preset: Preset) -> tuple[Remark, ...]:
    """Says that a sale earns nothing, where a unit costs as much as it brings, or more."""
    if not isinstance(preset, Inventory):
        return ()
    price, cost, penalty = preset.price, preset.lowest_unit_cost, preset.penalty
    if not cost or price > cost or (price == 0 and penalty > cost):  # without a price only a penalty counts
        return ()
    why = ""
    if price + penalty > cost:
        why = f" Only the penalty ({penalty:g}) speaks for ordering."
    elif not preset.backlog and (preset.salvage or 0) <= cost:  # who waits costs the penalty at every step
        why = " So nothing is ordered."
    than = "below" if price < cost else "no more than"
    which = "lowest unit cost" if preset.price_breaks else "unit cost"
    return (
        Remark(
            f"The price ({price:g}) is {than} the {which} ({cost:g}): no sale earns anything.{why} Are they of the "
            "same unit, and not exchanged?",
            first=True,
            gravest=True,
        ),
    )


def assumed_costs(preset: Preset, given: Collection[str] | None, unused: Collection[str] = ()) -> tuple[Remark, ...]:
    """Names the prices and costs that nobody gave.

    given: the parameters that the user chose; None: all were chosen; unused: those that do not count
    """
    if given is None:
        return ()
    count = [name for name in preset.stated_parameters() if name in preset.money and name not in unused]
    assumed = [name for name in count if name not in given]
    if not assumed:
        return ()
    said = ", ".join(preset.describe(name) for name in assumed)
    return (Remark(f"Assumed, because not given: {said}. Give what it is for you; the policy follows from it.", True),)


def binding_capacity(advice: Advice, given: Collection[str] | None) -> tuple[Remark, ...]:
    """Says that a capacity that nobody gave is used up. given: the parameters that the user chose; None: all were."""
    if given is None or "capacity" in given or not isinstance(advice.preset, Inventory):
        return ()
    shop = advice.preset
    if not any(shop.filled_by(each.policy.quantities) for each in advice.by_kind.values()):
        return ()
    return (
        Remark(
            f"The capacity of {shop.capacity:g}, which was assumed, is used up: with a larger one (capacity=, "
            "--capacity) the policy may order more at once. Give what there is room for.",
            first=True,
        ),
    )


def nothing_ordered(advice: Advice) -> tuple[Remark, ...]:
    """Says that the policy never orders, although a sale earns something."""
    shop = advice.preset
    if not isinstance(shop, Inventory) or any(each.policy.quantities.any() for each in advice.by_kind.values()):
        return ()
    price, cost = shop.price, shop.lowest_unit_cost
    if price <= cost:  # losing_sales says that
        return ()
    return (
        Remark(
            f"Nothing is ever ordered, although the price ({price:g}) is above the unit cost ({cost:g}): no order of "
            f"up to {shop.action_quantities.max():g} pays for what it costs (order cost {shop.order_cost:g}, holding "
            f"{shop.holding:g}, storage {shop.storage:g}). Are these of the same unit? A larger capacity "
            "(capacity=, --capacity) lets larger orders pay.",
            first=True,
            gravest=True,
        ),
    )

"""``ucbf learn``: one command from a measured series to a policy, a picture of it and a page on what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ucbf import advice
from ucbf.cli.costs import inventory_costs
from ucbf.cli.flags import THIS_MACHINE, Workers
from ucbf.cli.items import learn_items
from ucbf.cli.learn_files import write_files
from ucbf.cli.learning import Task
from ucbf.cli.parameters import flags_of, given_parameters
from ucbf.cli.progress import progress_bar
from ucbf.cli.reading import Reading
from ucbf.cli.results import WRITTEN, refuse_inputs
from ucbf.errors import UserError
from ucbf.systems import Battery, Inventory, Queue, Reservoir

learn = App(name="learn", help="From a measured series to a policy: inventory, battery, reservoir, queue.")

File = Annotated[Path, Parameter(help="CSV or Parquet file with a column of numbers, and one of dates if it has them.")]
ServiceLevel = Annotated[
    float | None,
    Parameter(help="Instead of prices: the probability of no stock-out in a step, such as 0.95; also in --config."),
]

InventoryFlags, BatteryFlags = flags_of(Inventory), flags_of(Battery)
ReservoirFlags, QueueFlags = flags_of(Reservoir), flags_of(Queue)
USUAL = Reading()


@learn.command
def inventory(
    *,
    demand: File,
    service_level: ServiceLevel = None,
    items: Annotated[
        Path | None,
        Parameter(
            help="With --item: CSV or Parquet file, a row an item, its own costs and sizes in columns. For many items."
        ),
    ] = None,
    only: Annotated[
        str | None, Parameter(help="With --items: learn this item by itself, and write the page that one item gets.")
    ] = None,
    workers: Workers = THIS_MACHINE,
    reading: Reading = USUAL,
    costs: InventoryFlags = InventoryFlags(),  # type: ignore[valid-type]  # noqa: B008
) -> None:
    """Learn what to order from a series of demand: what was asked for, not what was sold.

    Needed: --price and --unit-cost, or --service-level.
    """
    given = given_parameters(Inventory, costs, reading.config, also=("service_level",))
    in_file = given.pop("service_level", None)
    if items is not None:
        from ucbf.cli.fleet import learn_with_costs_of_items

        if service_level is not None or in_file is not None:
            raise UserError("service_level does not go with costs of items (--items); give a penalty for each item")
        learn_with_costs_of_items(given, reading, demand, items, only, workers)
        return
    if only is not None or workers != THIS_MACHINE:
        raise UserError("--only, --jobs, --engine and --ray-address are for many items; give their file (--items)")
    level = in_file if service_level is None else service_level
    given, remarks = inventory_costs(given, level)
    _learn(Task(Inventory, reading, given, 0, remarks, service_level=level), demand)


@learn.command
def reservoir(*, inflow: File, reading: Reading = USUAL, costs: ReservoirFlags = ReservoirFlags()) -> None:  # type: ignore[valid-type]  # noqa: B008
    """Learn what to release from a series of inflow."""
    given = given_parameters(Reservoir, costs, reading.config)
    _learn(Task(Reservoir, reading, given, 0), inflow)


@learn.command
def queue(*, arrivals: File, reading: Reading = USUAL, costs: QueueFlags = QueueFlags()) -> None:  # type: ignore[valid-type]  # noqa: B008
    """Learn how fast to serve from a series of arrivals."""
    given = given_parameters(Queue, costs, reading.config)
    _learn(Task(Queue, reading, given, 0), arrivals)


@learn.command
def battery(
    *,
    demand: File,
    price_file: Annotated[Path | None, Parameter(help="CSV or Parquet file, a price for each step of demand.")] = None,
    price_column: Annotated[str | None, Parameter(help="The column of that file with the prices.")] = None,
    reading: Reading = USUAL,
    costs: BatteryFlags = BatteryFlags(),  # type: ignore[valid-type]  # noqa: B008
) -> None:
    """Learn what to buy, and when, from a series of net demand, at prices that are known for the day."""
    given = given_parameters(Battery, costs, reading.config)
    prices = None if price_file is None else reading.known_series(price_file, price_column, "--price-column")
    _learn(Task(Battery, reading, given, None, prices=prices), demand, () if price_file is None else (price_file,))


def _learn(task: Task, source: Path, others: tuple[Path, ...] = ()) -> None:
    """Learn from a file, and write what came of it. others: inputs besides."""
    reading = task.reading
    reading.check()
    folder = reading.out or Path("results") / task.kind.kind
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; give a folder (--out)")
    if reading.item is not None:
        learn_items(reading, lambda name: task, source, folder, others)
        return
    refuse_inputs((source, *reading.files, *others), folder, WRITTEN)
    with progress_bar("steps") as progress:
        found, told = task.learn_from(source, reading.forecast, progress)
    names = write_files(folder, found, told, reading.time_zone, reading.draws())
    print(advice.markdown(told))
    without = "" if reading.draws() or reading.pictures is False else "; without pictures: pip install 'ucbf[plot]'"
    print(f"written to {folder}: {', '.join(names)}{without}")

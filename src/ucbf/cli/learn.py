"""``ucbf learn``: one command from a measured series to a policy, a picture of it and a page on what it is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from ucbf import advice, data
from ucbf.checks import whole
from ucbf.cli.costs import inventory_costs
from ucbf.cli.learn_files import write_files
from ucbf.cli.parameters import flags_of, given_parameters
from ucbf.cli.prices import prices_by_episode
from ucbf.cli.progress import progress_bar
from ucbf.errors import UserError
from ucbf.systems import Battery, Inventory, Preset, Queue, Reservoir

learn = App(name="learn", help="From a measured series to a policy: inventory, battery, reservoir, queue.")

File = Annotated[Path, Parameter(help="CSV or Parquet file with a column of numbers, and one of dates if it has them.")]
ServiceLevel = Annotated[
    float | None,
    Parameter(help="Instead of prices: the probability of no stock-out in a step, such as 0.95; also in --config."),
]
LEAST = 4  # episodes
STEPS = {"day": 7, "hour": 24, "half-hour": 48, "month": 12}  # of an episode, by the spacing of the series


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """What every command is told of the series, and where the results go.

    Parameters
    ----------
    column
        The column with the series; needed if several columns have numbers.
    time
        The column of dates; found by itself if not given.
    date_format
        How dates are written, such as %d.%m.%Y; found by itself if not given.
    time_zone
        Such as Europe/Berlin. Dates without an offset from UTC are read as local times of this zone; dates with one are
        converted to it.
    gaps
        What a missing date means: an error (refuse), or that the amount was 0 (zero).
    train
        Share of the episodes to learn from; the policy is judged by the others.
    pool
        Learn one distribution for all steps, around the mean of each step. This is the default with fewer than 20
        episodes of a kind to learn from (where an episode is a day, weekdays and weekends are two kinds).
    half_life
        After how many episodes one counts half as much as the last. If not given, chosen by what it would have
        predicted; all count alike unless another is clearly better. inf: all count alike.
    config
        TOML file with costs and sizes, such as order_cost = 150; flags override it.
    out
        Folder of the results; results/NAME if not given.
    """

    column: str | None = None
    time: str | None = None
    date_format: str | None = None
    time_zone: str | None = None
    gaps: Literal["refuse", "zero"] = "refuse"
    train: float = 0.7
    pool: bool | None = None
    half_life: float | None = None
    config: Path | None = None
    out: Path | None = None

    def series(self, path: Path, column: str | None, least: float | None) -> data.Series:
        """A column of a file."""
        return data.read_series(
            path,
            column,
            self.time,
            least=least,
            gaps=self.gaps,
            date_format=self.date_format,
            time_zone=self.time_zone,
        )


InventoryFlags, BatteryFlags = flags_of(Inventory), flags_of(Battery)
ReservoirFlags, QueueFlags = flags_of(Reservoir), flags_of(Queue)
USUAL = Reading()


@learn.command
def inventory(
    *,
    demand: File,
    service_level: ServiceLevel = None,
    reading: Reading = USUAL,
    costs: InventoryFlags = InventoryFlags(),  # type: ignore[valid-type]  # noqa: B008
) -> None:
    """Learn what to order from a series of demand: what was asked for, not what was sold.

    Needed: --price and --unit-cost, or --service-level.
    """
    given = given_parameters(Inventory, costs, reading.config, also=("service_level",))
    in_file = given.pop("service_level", None)
    given, remarks = inventory_costs(given, in_file if service_level is None else service_level)
    _learn(Inventory, reading.series(demand, reading.column, 0), reading, given, remarks=remarks)


@learn.command
def reservoir(*, inflow: File, reading: Reading = USUAL, costs: ReservoirFlags = ReservoirFlags()) -> None:  # type: ignore[valid-type]  # noqa: B008
    """Learn what to release from a series of inflow."""
    given = given_parameters(Reservoir, costs, reading.config)
    _learn(Reservoir, reading.series(inflow, reading.column, 0), reading, given)


@learn.command
def queue(*, arrivals: File, reading: Reading = USUAL, costs: QueueFlags = QueueFlags()) -> None:  # type: ignore[valid-type]  # noqa: B008
    """Learn how fast to serve from a series of arrivals."""
    given = given_parameters(Queue, costs, reading.config)
    _learn(Queue, reading.series(arrivals, reading.column, 0), reading, given)


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
    prices = None if price_file is None else replace(reading, gaps="refuse").series(price_file, price_column, None)
    _learn(Battery, reading.series(demand, reading.column, None), reading, given, prices)


def _learn(
    kind: type[Preset],
    series: data.Series,
    reading: Reading,
    given: dict[str, Any],
    prices: data.Series | None = None,
    remarks: tuple[advice.Remark, ...] = (),
) -> None:
    """Learn from the first part of a series, judge by the rest, and write what came of it."""
    chosen = {*given, *(() if prices is None else ("prices",))}
    folder = reading.out or Path("results") / kind.kind
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; give a folder (--out)")
    try:
        horizon = whole("horizon", given.setdefault("horizon", STEPS.get(series.spacing or "", 10)), 1)
        episodes = data.episodes(series, horizon, least=LEAST)
        changes = None if prices is None else prices_by_episode(prices, episodes)
        preset = kind(**advice.suggested_parameters(kind, episodes.values, given))
        with progress_bar("steps") as progress:
            found = advice.learn(
                preset, episodes, reading.train, reading.pool, changes, progress=progress, half_life=reading.half_life
            )
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    told = advice.sections_of(found, chosen, remarks)
    names = write_files(folder, found, told)
    print(advice.markdown(told))
    print(f"written to {folder}: {', '.join(names)}")

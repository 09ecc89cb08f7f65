"""``ucbf learn``: one command from a measured series to a policy, a picture of it and a page on what it is worth."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from ucbf import advice, data
from ucbf.cli import save
from ucbf.errors import UserError
from ucbf.files import write_whole
from ucbf.reports import comma_separated
from ucbf.systems import Battery, Inventory, Queue, Ready, Reservoir

learn = App(name="learn", help="From a measured series to a policy: inventory, battery, reservoir, queue.")

File = Annotated[Path, Parameter(help="CSV or Parquet file with a column of numbers, and one of dates if it has them.")]
Many = Annotated[tuple[float, ...] | None, Parameter(consume_multiple=True, negative=())]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """What every command is told of the series, and where the results go.

    Parameters
    ----------
    column
        The column with the series; needed if there are several with numbers.
    time
        The column of dates; found if not given.
    date_format
        How dates are written, such as %d.%m.%Y; found if not given.
    gaps
        What a missing date means.
    train
        Share of the episodes to learn from; the rest judges.
    pool
        One law for all steps, around their means (weekdays and weekends apart, where an episode is a day); the default
        for such days, and with fewer than 50 episodes to learn from.
    config
        TOML file with costs and sizes; flags go before it.
    out
        Folder of the results; results/NAME if not given.
    """

    column: str | None = None
    time: str | None = None
    date_format: str | None = None
    gaps: Literal["refuse", "zero"] = "refuse"
    train: float = 0.7
    pool: bool | None = None
    config: Path | None = None
    out: Path | None = None

    def series(self, path: Path, column: str | None, least: float | None) -> data.Series:
        """A column of a file."""
        return data.read_series(path, column, self.time, least=least, gaps=self.gaps, date_format=self.date_format)


def _flags(kind: type[Ready]) -> Any:
    """The parameters of a kind of system as flags: what is not given is suggested by the series."""

    def flag(name: str, default: Any) -> Any:
        several = isinstance(default, tuple) or name in PER_STEP
        return int | None if name == "horizon" else Many if several else float | None

    made = [(f.name, flag(f.name, f.default), None) for f in fields(kind) if f.name != "profile"]
    flags = make_dataclass(f"{kind.__name__}Flags", made, frozen=True, kw_only=True)
    flags.__module__, flags.__doc__ = __name__, kind.__doc__
    return Parameter(name="*", group="Costs and sizes")(flags)


PER_STEP = {"prices", "value", "target", "shortage_cost"}
InventoryFlags, BatteryFlags = _flags(Inventory), _flags(Battery)
ReservoirFlags, QueueFlags = _flags(Reservoir), _flags(Queue)
USUAL = Reading()


@learn.command
def inventory(*, demand: File, reading: Reading = USUAL, costs: InventoryFlags = InventoryFlags()) -> None:  # type: ignore[valid-type]  # noqa: B008
    """Learn what to order from a series of demand."""
    _advise(Inventory, reading.series(demand, reading.column, 0), reading, costs)


@learn.command
def reservoir(*, inflow: File, reading: Reading = USUAL, costs: ReservoirFlags = ReservoirFlags()) -> None:  # type: ignore[valid-type]  # noqa: B008
    """Learn what to release from a series of inflow."""
    _advise(Reservoir, reading.series(inflow, reading.column, 0), reading, costs)


@learn.command
def queue(*, arrivals: File, reading: Reading = USUAL, costs: QueueFlags = QueueFlags()) -> None:  # type: ignore[valid-type]  # noqa: B008
    """Learn how fast to serve from a series of arrivals."""
    _advise(Queue, reading.series(arrivals, reading.column, 0), reading, costs)


@learn.command
def battery(
    *,
    demand: File,
    price_file: Annotated[Path | None, Parameter(help="Series of prices, a row for each step of the demand.")] = None,
    price_column: Annotated[str | None, Parameter(help="Its column.")] = None,
    reading: Reading = USUAL,
    costs: BatteryFlags = BatteryFlags(),  # type: ignore[valid-type]  # noqa: B008
) -> None:
    """Learn what to buy, and when, from a series of net demand, at prices that are known for the day."""
    prices = None if price_file is None else reading.series(price_file, price_column, None)
    _advise(Battery, reading.series(demand, reading.column, None), reading, costs, prices)


def _given(kind: type[Ready], flags: Any, config: Path | None) -> dict[str, Any]:
    """What the user said, in the file and, which goes before it, on the command line."""
    said: dict[str, Any] = {}
    if config is not None:
        try:
            said = tomllib.loads(config.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{config} is not TOML: {error}") from None
        names = {f.name for f in fields(kind)}
        for name, value in said.items():
            if name not in names:
                raise UserError(f"{config}: {kind.kind} has no parameter {name!r}; it has {', '.join(sorted(names))}")
            if isinstance(value, list):
                said[name] = tuple(value)
    for name, value in ({} if flags is None else vars(flags)).items():
        if value is not None:
            said[name] = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return said


def _advise(
    kind: type[Ready], series: data.Series, reading: Reading, flags: Any, prices: data.Series | None = None
) -> None:
    """Learn, judge, and write what came of it."""
    given = _given(kind, flags, reading.config)
    horizon = given.setdefault("horizon", STEPS.get(series.spacing or "", 10))
    episodes = data.episodes(series, horizon)
    changes = None if prices is None else _daily(prices, episodes)
    try:
        ready = kind(**advice.suggested(kind, episodes.amounts, given))
        found = advice.advise(ready, episodes, reading.train, reading.pool, changes)
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    folder = reading.out or Path("results") / kind.kind
    folder.mkdir(parents=True, exist_ok=True)
    page = advice.summary(found)
    write_whole(folder / "summary.md", page.encode())
    found.policy.to_csv(folder / "policy.csv")
    found.agent.save(folder / "agent.npz")
    write_whole(folder / "law.csv", comma_separated(_law_rows(found)).encode())
    names = ["summary.md", "policy.csv", "law.csv", "agent.npz"]
    if found.rewards:
        write_whole(folder / "comparison.csv", comma_separated(found.comparison()).encode())
        names.append("comparison.csv")
    names += save(folder, "policy", lambda figures: figures.advice_figure(found))
    print(page)
    print(f"written to {folder}: {', '.join(names)}")


STEPS = {"day": 7, "hour": 24, "half-hour": 48, "month": 12}  # of an episode, by the spacing of the series


def _daily(prices: data.Series, episodes: data.Episodes) -> list[dict[str, Any]]:
    """The prices of every episode, matched by date where both have dates, else row by row."""
    H = episodes.amounts.shape[1]
    begins = 0
    if prices.times is not None and episodes.series.times is not None:
        wanted = episodes.starts[0]
        found = [i for i, t in enumerate(prices.times) if str(t) == wanted]
        if not found:
            raise UserError(
                f"{prices.source}, column {prices.name!r}: there is no price for {wanted}, the first episode"
            )
        begins = found[0]
    need = begins + episodes.amounts.size
    if len(prices) < need:
        raise UserError(
            f"{prices.source}, column {prices.name!r}: {len(prices)} rows, but the demand needs {need} of them; "
            "give a price for every step"
        )
    return [{"prices": tuple(prices.values[i : i + H].tolist())} for i in range(begins, need, H)]


def _law_rows(found: advice.Advice) -> list[dict[str, Any]]:
    """The learned law of the amount, a row for each step and value that may occur."""
    law, ready = found.demand, found.ready
    return [
        {
            ready.step_name: found.policy.step_names[h],
            ready.amount_name: float(value * ready.unit),
            "probability": float(p),
        }
        for h in range(ready.horizon)
        for value, p in zip(law.values, law.pmf[h % len(law.pmf)], strict=True)
        if p > 0
    ]

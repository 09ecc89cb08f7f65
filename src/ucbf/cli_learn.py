"""``ucbf learn``: one command from a measured series to a policy, a picture of it and a page on what it is worth."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import App, Parameter
from numpy.typing import NDArray

from ucbf import advice, data
from ucbf.checks import whole
from ucbf.cli import read_whole
from ucbf.cli_output import progress_bar, save
from ucbf.errors import UserError
from ucbf.files import write_whole
from ucbf.reports import comma_separated
from ucbf.systems import Battery, Inventory, Queue, Ready, Reservoir

learn = App(name="learn", help="From a measured series to a policy: inventory, battery, reservoir, queue.")

File = Annotated[Path, Parameter(help="CSV or Parquet file with a column of numbers, and one of dates if it has them.")]
Whole = Annotated[int | None, Parameter(converter=read_whole)]
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
    time_zone
        Such as Europe/Berlin: the zone in which dates without an offset from universal time were written, or to whose
        clock dates with one are brought.
    gaps
        What a missing date means: an error, or that nothing was sold, arrived, flowed.
    train
        Share of the episodes to learn from; the rest judges.
    pool
        One law for all steps, around their means; the default with fewer than 20 episodes of a kind (weekdays and
        weekends, where an episode is a day) to learn from.
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


def _flags(kind: type[Ready]) -> Any:
    """The parameters of a kind of system as flags: what is not given is suggested by the series."""

    def flag(name: str, default: Any) -> Any:
        several = isinstance(default, tuple) or name in PER_STEP
        return Whole if name == "horizon" else Many if several else float | None

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
    """Learn what to order from a series of demand: what was asked for, not what was sold."""
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
    prices = None if price_file is None else replace(reading, gaps="refuse").series(price_file, price_column, None)
    _advise(Battery, reading.series(demand, reading.column, None), reading, costs, prices)


def _given(kind: type[Ready], flags: Any, config: Path | None) -> dict[str, Any]:
    """What the user said, in the file and, which goes before it, on the command line."""
    said: dict[str, Any] = {}
    if config is not None and not config.is_file():
        raise UserError(f"there is no file {str(config)!r} (--config)")
    if config is not None:
        try:
            said = tomllib.loads(config.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{config} is not TOML in UTF-8: {error}") from None
        types = {f.name: isinstance(f.default, tuple) or f.name in PER_STEP for f in fields(kind)}
        for name, value in said.items():
            if name not in types:
                near = name.replace("-", "_")
                hint = f"did you mean {near!r}? " if near in types else ""
                known = ", ".join(sorted(types))
                raise UserError(f"{config}: {kind.kind} has no parameter {name!r}; {hint}it has {known}")
            many = isinstance(value, list) and types[name]
            for x in value if many else [value]:
                if not isinstance(x, int | float) or isinstance(x, bool):
                    what = "a number or a list of them" if types[name] else "a number"
                    raise UserError(f"{config}: {name} is {x!r}; it must be {what}")
            said[name] = tuple(value) if many else value
    for name, value in vars(flags).items():
        if value is not None:
            said[name] = value[0] if name in PER_STEP and len(value) == 1 else value
    return said


def _advise(
    kind: type[Ready], series: data.Series, reading: Reading, flags: Any, prices: data.Series | None = None
) -> None:
    """Learn, judge, and write what came of it."""
    given = _given(kind, flags, reading.config)
    chosen = set(given)
    folder = reading.out or Path("results") / kind.kind
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; give a folder (--out)")
    try:
        horizon = whole("horizon", given.setdefault("horizon", STEPS.get(series.spacing or "", 10)), 1)
        episodes = data.episodes(series, horizon, least=LEAST)
        changes = None if prices is None else _daily(prices, episodes)
        ready = kind(**advice.suggested(kind, episodes.amounts, given))
        with progress_bar("steps") as progress:
            found = advice.advise(ready, episodes, reading.train, reading.pool, changes, progress=progress)
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    folder.mkdir(parents=True, exist_ok=True)
    page = advice.summary(found, chosen)
    tables = {"policy.csv": _policy_rows(found), "law.csv": _law_rows(found)}
    if found.rewards:
        tables["comparison.csv"] = found.comparison()
    names = save(folder, "policy", lambda figures: figures.advice_figure(found))
    for name, rows in tables.items():
        write_whole(folder / name, comma_separated(rows).encode())
    agents = found.controllers()
    files = {f"agent-{_slug(name)}.npz" if len(agents) > 1 else "agent.npz": each for name, each in agents.items()}
    for name, controller in files.items():
        controller.save(folder / name)
    write_whole(folder / "summary.md", page.encode())
    print(page)
    print(f"written to {folder}: {', '.join(['summary.md', *tables, *files, *names])}")


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)


LEAST = 4  # episodes
STEPS = {"day": 7, "hour": 24, "half-hour": 48, "month": 12}  # of an episode, by the spacing of the series


def _daily(prices: data.Series, episodes: data.Episodes) -> list[dict[str, Any]]:
    """The prices of every episode, matched by date where both have dates, else row by row."""
    (K, H), demand = episodes.amounts.shape, episodes.series
    where = f"{prices.source}, column {prices.name!r}"
    at = np.arange(K * H)
    if prices.times is not None and demand.times is not None:
        if prices.spacing != demand.spacing:
            raise UserError(
                f"{where}: a price every {prices.spacing}, a demand every {demand.spacing}; make them alike"
            )
        if (prices.offsets is None) != (demand.offsets is None):
            known, unknown = (prices, demand) if demand.offsets is None else (demand, prices)
            raise UserError(
                f"{known.source} says how far its dates are from universal time, {unknown.source} does not; name the "
                "zone of its clock (time_zone, --time-zone)"
            )
        at = _matched(prices, demand.part(episodes.begin, episodes.begin + K * H), where)
    if len(prices) < at[-1] + 1:
        raise UserError(
            f"{where}: {len(prices)} rows, but the demand needs {at[-1] + 1} of them; give a price for every step"
        )
    return [{"prices": tuple(day)} for day in prices.values[at].reshape(K, H).tolist()]


def _matched(prices: data.Series, demand: data.Series, where: str) -> NDArray[np.int64]:
    """[N] which price is that of each step: of the same instant where that is known, else of the same time."""
    have, want = (series.times if series.instants is None else series.instants for series in (prices, demand))
    assert have is not None
    assert want is not None
    at = np.searchsorted(have, want, side="right") - 1
    first = int(at[0])
    if first < 0 or have[first] != want[0]:
        raise UserError(f"{where}: no price for {demand.when(0)}, where the first episode begins")
    if have[-1] < want[-1]:
        raise UserError(
            f"{where}: the prices end at {prices.when(-1)}, the demand at {demand.when(-1)}; give a price for every "
            "step of the demand"
        )
    wrong = have[at] != want
    if wrong.any():
        raise UserError(
            f"{where}: no price for {demand.when(int(wrong.argmax()))}; bring both to one clock (--time-zone)"
        )
    return at


def _policy_rows(found: advice.Advice) -> list[dict[str, Any]]:
    """What to do, a row for each kind of day, step and state."""
    named = len(found.days) > 1
    return [({"kind": day.name} if named else {}) | row for day in found.days.values() for row in day.policy.rows()]


def _law_rows(found: advice.Advice) -> list[dict[str, Any]]:
    """The learned law of the amount, a row for each kind of day, step and value that may occur."""
    rows = []
    for day in found.days.values():
        law, ready, words = day.amounts, day.ready, day.policy.words
        for h, step in enumerate(words.steps or range(1, ready.horizon + 1)):
            for value, p in zip(law.values, law.pmf[h % len(law.pmf)], strict=True):
                if p > 0:
                    kind = {"kind": day.name} if len(found.days) > 1 else {}
                    amount = {ready.amount_name: float(value * ready.unit), "probability": float(p)}
                    rows.append({**kind, words.step: step, **amount})
    return rows

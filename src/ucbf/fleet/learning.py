"""From the rows of some items to a table of their plans. Items of one shape are learned side by side."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ucbf import __version__
from ucbf.data.sizes import suggested_parameters
from ucbf.errors import UserError
from ucbf.fleet.comparing import gains_over_mean_plans
from ucbf.fleet.items import Fleet
from ucbf.fleet.notes import (
    AT_ONCE,
    MONDAY,
    REFUSED,
    Bools,
    Description,
    day_of,
    described,
    notes_of,
    nothing_ordered,
    outliers_of_rows,
)
from ucbf.fleet.rows import Rows
from ucbf.kernels.fleet import place_rows
from ucbf.laws import Law, make_law
from ucbf.systems.base import Preset
from ucbf.systems.inventory import Inventory

Floats = NDArray[np.float64]
SHAPES = 256  # presets that are kept ready
_ready: dict[str, Preset] = {}


@dataclass(frozen=True)
class Job:
    """What all items have in common."""

    preset: Preset
    law: dict[str, Any]  # name and parameters of one of :mod:`ucbf.laws`
    fitted: tuple[str, ...] = ()  # parameters that are chosen for each item, by its data
    gains: bool = True  # whether plans are compared with those for the mean
    certificate: float | None = None  # the probability with which a bound on what is lost may fail

    def law_of_its_own(self) -> Law:
        """The way of knowing W, for one fleet."""
        return make_law(self.law).fresh()


class Part(NamedTuple):
    """Some items to learn."""

    number: int
    rows: Rows
    costs: dict[str, Floats]  # by name, [n]
    shape: dict[str, Floats]  # by name, [n]; not a number where it is as for all


def key_of(job: Job, part: Part) -> str:
    """A digest of all that the plans of some items follow from."""
    rows, preset = part.rows, job.preset
    stated: list[Any] = [__version__, type(preset).__name__, preset.parameters(), job.law, job.fitted, job.gains]
    stated += [job.certificate, str(rows.amount.dtype)]
    found = hashlib.sha256(
        json.dumps([*stated, sorted(part.costs), sorted(part.shape), rows.names, rows.refused], default=str).encode()
    )
    tables = [part.costs[name] for name in sorted(part.costs)] + [part.shape[name] for name in sorted(part.shape)]
    for array in (rows.begins, rows.day, rows.amount, rows.forecast, *tables):
        if array is not None:
            found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:16]


def table_of(job: Job, part: Part) -> pa.Table:
    """A row for each item: what is known of it, its plan, and what looks wrong."""
    past, coming = split(part.rows.in_floats(), job.preset.n_steps)
    look = described(past)
    odd = outliers_of_rows(past, job.preset.n_steps)
    noted = notes_of(past, look, job.preset.n_steps, job.preset.amount_name, job.law["name"] == "Recent", odd)
    for i, name in enumerate(part.rows.names if part.rows.refused else ()):
        if name in part.rows.refused:
            noted[i] = REFUSED + part.rows.refused[name]
    _refuse(noted, np.flatnonzero(np.diff(past.begins) == 0), f"no {job.preset.amount_name} at all; leave it out")
    _refuse(noted, np.flatnonzero(_unpriced(part)), "no costs; add a row to the file of costs")
    if coming is not None:
        unknown = np.flatnonzero(np.isnan(coming).any(axis=1))
        _refuse(noted, unknown, f"no forecast of the {job.preset.n_steps} days to come")
    tables, order = [], []
    for shape, items in _shapes(job, part, past, odd, noted):
        try:
            preset = _preset(job.preset, shape)
            low, high = preset.amount_range
        except (UserError, ValueError, TypeError) as error:
            _refuse(noted, items, " ".join(str(error).split()))
            preset, low, high = job.preset, 0.0, 0.0
        name = preset.amount_name
        for i in items[look.least[items] < low - preset.unit / 2]:
            below = f"its least {name} is {look.least[i]:g}, below {low:g}; correct it"
            _refuse(noted, [i], below)
        for i in items[look.most[items] > high + preset.unit / 2]:
            above = f"its largest {name} is {look.most[i]:g}, above {high:g}; correct it, or plan it with larger sizes"
            _refuse(noted, [i], above)
        good = np.array([i for i in items if not _refused(noted[i])], np.int64)
        try:
            plans = _plans(job, part, past, coming, preset, good) if len(good) else None
            if plans is not None:
                wrong = plans.pop("unsettled")
                _refuse(noted, good[wrong], "its plan did not settle; give a smaller capacity, or a discount")
                plans = {name: None if x is None else x[~wrong] for name, x in plans.items()}
                _note_orders(job, part, look, noted, preset, good[~wrong], plans["action"])
        except ValueError as error:
            if not shape:  # it is not about some of the items
                raise
            _refuse(noted, good, " ".join(str(error).split()))
            plans = None
        tables.append(_rows_of(job, part, past, look, noted, preset, items, plans))
        order.append(items)
    if len(tables) == 1:  # of all items, in their order
        return tables[0]
    return pa.concat_tables(tables).take(pa.array(np.argsort(np.concatenate(order))))


def split(rows: Rows, n_steps: int) -> tuple[Rows, Floats | None]:
    """Rows with an amount, and [n, H] the forecasts of the first days after them, each at its step."""
    if rows.forecast is None:
        return rows, None
    item, known = rows.item, np.isfinite(rows.amount)
    counts = np.bincount(item, known, len(rows.names)).astype(np.int64)
    last = np.maximum.reduceat(np.where(known, np.arange(len(item)), -1), rows.begins[:-1])
    after = np.flatnonzero(np.arange(len(item)) > last[item])
    after = after[after - last[item[after]] <= n_steps] if len(after) else after
    coming = np.full((len(rows.names), n_steps), np.nan)
    coming[item[after], (rows.day[after] - MONDAY) % n_steps] = rows.forecast[after]
    coming[counts == 0] = np.nan
    begins = np.concatenate([[0], np.cumsum(counts)])
    return Rows(rows.names, begins, rows.day[known], rows.amount[known], rows.forecast[known]), coming


# -- shapes --------------------------------------------------------------------------------------------


def _shapes(
    job: Job, part: Part, past: Rows, odd: Bools, noted: list[str | None]
) -> Iterator[tuple[dict[str, float], NDArray[np.int64]]]:
    """Parameters that make a shape, and the items that have it."""
    if not part.shape and not job.fitted:
        yield {}, np.arange(len(noted))
        return
    found: dict[tuple[tuple[str, float], ...], list[int]] = {}
    for i in range(len(noted)):
        shape = {name: float(values[i]) for name, values in part.shape.items() if np.isfinite(values[i])}
        names = tuple(name for name in job.fitted if name not in shape)
        if names and not _refused(noted[i]):
            here = slice(past.begins[i], past.begins[i + 1])
            place = partial(_day_after, past, int(past.begins[i]))
            own = {name: float(values[i]) for name, values in part.costs.items() if np.isfinite(values[i])}
            stated = {**job.preset.parameters(), **own, **shape}
            try:
                shape |= fitted_sizes(type(job.preset), stated, past.amount[here], names, odd[here], place)
            except (UserError, ValueError, TypeError) as error:
                noted[i] = REFUSED + " ".join(str(error).split())
        found.setdefault(tuple(sorted(shape.items())), []).append(i)
    for shape_of_all, items in found.items():
        yield dict(shape_of_all), np.array(items)


def _day_after(rows: Rows, first: int, k: int) -> str:
    """The day of the k-th row after the first."""
    return day_of(rows, first + k)


def fitted_sizes(
    kind: type[Preset],
    stated: dict[str, Any],
    amounts: Floats,
    names: tuple[str, ...],
    odd: Bools,
    place: Callable[[int], str],
) -> dict[str, float]:
    """Sizes of these names that suit the amounts of an item, rounded up so that many items share them.

    stated: its other parameters; odd: which of the amounts are outliers; place: where one stands
    """
    known = {name: value for name, value in stated.items() if name not in names}
    found = suggested_parameters(kind, amounts, known, odd, place)
    unit = float(found["unit"])
    sizes = {name: float(found[name]) for name in names if name in found}
    return {name: unit if name == "unit" else _rounded_up(x / unit) * unit for name, x in sizes.items()}


def _rounded_up(x: float) -> int:
    """The first of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is not below x."""
    power = 1
    while True:
        for step in (power, power + power // 2):
            if step >= x - 1e-9:
                return step
        power *= 2


def _preset(preset: Preset, shape: dict[str, float]) -> Preset:
    """The preset with the parameters of a shape; those that were used before are ready, with their systems."""
    if not shape:
        return preset
    whole = {name: int(x) if x.is_integer() else x for name, x in shape.items()}
    key = json.dumps([type(preset).__name__, {**preset.parameters(), **whole}], sort_keys=True, default=str)
    ready = _ready.get(key)
    if ready is None:
        if len(_ready) >= SHAPES:
            _ready.clear()
        ready = _ready[key] = preset.replace(**whole)
    return ready


# -- plans ---------------------------------------------------------------------------------------------


def _rows_of(
    job: Job,
    part: Part,
    past: Rows,
    look: Description,
    noted: list[str | None],
    preset: Preset,
    items: NDArray[np.int64],
    plans: dict[str, Any] | None,
) -> pa.Table:
    """The rows of the table of items of one shape; plans: of those that are not refused."""
    usable = np.array([not _refused(noted[i]) for i in items])
    rows = np.diff(part.rows.begins)[items]
    first, end = past.begins[items], past.begins[items + 1]
    days = past.day if len(past.day) else np.zeros(1, np.int32)
    columns = {
        "item": pa.array([part.rows.names[i] for i in items]),
        "rows": pa.array(rows),
        "first": pa.array(days[np.minimum(first, len(days) - 1)]).cast(pa.date32()),
        "last": pa.array(days[np.maximum(end - 1, 0)]).cast(pa.date32()),
        "mean": pa.array(look.mean[items]),
        **{name: pa.array(values[items]) for name, values in part.costs.items()},
        **{name: pa.array([getattr(preset, name)] * len(items), pa.float64()) for name in _shown(job, part)},
    }
    H, S = preset.n_steps, preset.system.n_states

    def spread(name: str, kind: pa.DataType) -> Any:
        """A column with nothing for items that cannot be used."""
        if plans is None or plans[name] is None:
            return pa.nulls(len(items), kind)
        of_usable = pa.array(plans[name]).cast(kind)
        return of_usable if usable.all() else of_usable.take(pa.array(np.cumsum(usable) - 1, mask=~usable))

    columns |= {name: spread(name, pa.float64()) for name in ("expected", "gain", "half_life", "lost_at_most")}
    columns |= {
        "value": _lists(None if plans is None else plans["value"], usable, S),
        "action": _lists(None if plans is None else plans["action"], usable, H * S),
        "note": pa.array([noted[i] for i in items], pa.string()),
    }
    return pa.table(columns)


def _shown(job: Job, part: Part) -> list[str]:
    """The parameters of shapes that are columns of the table."""
    return sorted({*part.shape, *job.fitted})


def _plans(
    job: Job, part: Part, past: Rows, coming: Floats | None, preset: Preset, items: NDArray[np.int64]
) -> dict[str, Any]:
    """What is learned of some items of one shape."""
    costs = {name: values[items] for name, values in part.costs.items()}
    fleet = Fleet(preset, costs, len(items), law=job.law_of_its_own(), forecasts=coming is not None, workers=1)
    for first in range(0, len(items), AT_ONCE):
        some = np.arange(first, min(first + AT_ONCE, len(items)))
        expected = None if past.forecast is None else _placed(fleet, preset, past, past.forecast, items, some)[2]
        fleet.add_indices(*_placed(fleet, preset, past, past.amount, items, some), expected)
    if coming is not None:
        low, high = preset.amount_range
        fleet.expect(preset.sign * preset.to_units(np.clip(coming[items], low, high)))
    start = fleet.places([preset.system.nearest_to_zero], np.arange(1))[0]
    gain = None
    if job.gains and preset.is_line:
        gain = gains_over_mean_plans(fleet, int(start))
    lost = None
    if job.certificate is not None:
        lost = np.array([fleet.certificate(i, job.certificate, "bernstein").gap[start] for i in range(len(items))])
    average = preset.horizon is None and preset.discount == 1
    return {
        "unsettled": fleet.unsettled,
        "expected": fleet.gains if average else fleet.values[:, start],
        "gain": gain,
        "half_life": fleet.half_lives,
        "lost_at_most": lost,
        "value": fleet.values,
        "action": preset.action_quantities.astype(np.float64)[fleet.policies.reshape(len(items), -1)],
    }


def _note_orders(
    job: Job,
    part: Part,
    look: Description,
    noted: list[str | None],
    preset: Preset,
    items: NDArray[np.int64],
    action: Floats,
) -> None:
    """Say of items of one shape where nothing is ever ordered, and where a capacity that was chosen is used up."""
    if not isinstance(preset, Inventory) or preset.beyond_a_line:
        return
    names = "price", "unit_cost"
    price, cost = (part.costs.get(name, np.full(len(noted), getattr(preset, name))) for name in names)
    given = np.isfinite(part.shape.get("capacity", np.full(len(noted), np.nan)))
    chosen = ~given if "capacity" in job.fitted else np.zeros(len(noted), np.bool_)
    orders = action.reshape(len(items), preset.n_steps, -1)
    none, full = ~orders.any(axis=(1, 2)) & (look.mean[items] > 0), preset.filled_by(orders) & chosen[items]
    for i, never in zip(items[none | full], none[none | full], strict=True):
        said = f"its capacity of {preset.capacity:g}, which was chosen, is used up: a larger one may earn more"
        if never:
            said = nothing_ordered(float(price[i]), float(cost[i]))
        noted[i] = "; ".join(filter(None, (said, noted[i])))


def _placed(
    fleet: Fleet, preset: Preset, past: Rows, amounts: Floats, items: NDArray[np.int64], some: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """[n] which of the items each row of some of them is of, its step, and the index of W that its amount is."""
    n = int((past.begins[items[some] + 1] - past.begins[items[some]]).sum())
    which, step, j = (np.empty(n, np.int64) for _ in range(3))
    units = preset.to_units(preset.amount_range)
    w = np.zeros((2, 1 if preset.is_line else preset.system.raw_space.n_axes), np.int64)
    w[:, 0] = preset.sign * units  # of rows, the amount moves the first
    first, last = fleet.indices(w[:, 0] if preset.is_line else w)
    slope = 0 if units[0] == units[1] else (last - first) // (units[1] - units[0])
    ends = np.array(preset.amount_range, np.float64)
    place_rows(past.begins, items, some, past.day, amounts, MONDAY, preset.n_steps, ends, float(preset.unit),
               int(first), int(slope), which, step, j)  # fmt: skip
    return which, step, j


def _lists(table: Floats | None, usable: Bools, width: int) -> Any:
    """[m, width] rows of the usable items as lists, none for the others."""
    flat = pa.array(np.zeros(0) if table is None else table.ravel())
    ends = np.concatenate([[0], np.cumsum(usable) * width])
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), flat, mask=pa.array(~usable))


# -- refusals ------------------------------------------------------------------------------------------


def _refused(note: str | None) -> bool:
    return note is not None and note.startswith(REFUSED)


def _refuse(noted: list[str | None], items: Iterable[int], why: str) -> None:
    """Refuse items, unless they are refused for something else."""
    for i in items:
        if not _refused(noted[i]):
            noted[i] = REFUSED + why


def _unpriced(part: Part) -> Bools:
    found = np.zeros(len(part.rows.names), np.bool_)
    for values in part.costs.values():
        found |= ~np.isfinite(values)
    return found

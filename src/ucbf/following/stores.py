"""A store whose orders take time, every morning: demands, orders and arrivals in a journal; what to order now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ucbf.checks import real
from ucbf.errors import UserError
from ucbf.files import write_whole
from ucbf.fitted_orders import FittedOrders
from ucbf.following.calendar import Calendar
from ucbf.following.entries import removal_of
from ucbf.following.model import sealed, unsealed
from ucbf.following.store_steps import StoreStep, Told, under_way_after
from ucbf.journal import Journal
from ucbf.kernels.shelves import sized
from ucbf.rolling import Rolling, terms_of
from ucbf.suppliers import Supplier
from ucbf.systems.inventory import Inventory

SAME = "already there"
FAR = 3.0  # times the largest demand that was seen: a slip of the pen
NAME, FORMAT, VERSION = "store.json", "ucbf store", 2
FITTED = "fitted.npz"  # orders by fitted values, where these are followed
Pairs = list[tuple[float, int]]  # quantity and age of orders under way


@dataclass(frozen=True)
class StoreFile:
    """What ``ucbf learn`` leaves behind of a store whose orders take time."""

    parameters: dict[str, Any]
    season: tuple[float, ...] | None
    calendar: Calendar
    demands: tuple[float, ...]  # of the series, from the first episode on
    source: str
    service: float = 0.0  # the share of the sampled steps in which the stock is to last; 0: what earns most is ordered
    by_values: bool = False  # whether orders are by fitted values, in a file of their own


@dataclass(frozen=True)
class Ordered:
    """What to order now."""

    when: str
    order: float
    stock: float
    under_way: Pairs
    expected: float  # the demand until an order of the next review comes
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        coming = sum(q for q, _ in self.under_way)
        why = f"{self.stock:g} in stock, {coming:g} under way, {self.expected:.4g} expected until the next order comes"
        return "\n".join([f"{self.when}: order {self.order:g} ({why})", *self.notes])


def write_store(folder: Path, store: StoreFile) -> None:
    """Write it, whole or not at all."""
    write_whole(folder / NAME, sealed({"format": FORMAT, "version": VERSION, **asdict(store)}))


def read_store(folder: Path) -> StoreFile:
    """What stands in a folder that ``ucbf learn`` wrote."""
    path = folder / NAME
    try:
        content = unsealed(json.loads(path.read_text(encoding="utf-8")))
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise ValueError("another format")
        told: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content["calendar"].items()}
        season = None if content["season"] is None else tuple(content["season"])
        demands = tuple(map(float, content["demands"]))
        calendar, service, by_values = Calendar(**told), float(content["service"]), bool(content["by_values"])
        return StoreFile(content["parameters"], season, calendar, demands, content["source"], service, by_values)
    except FileNotFoundError:
        raise UserError(f"{folder} holds no store (no {NAME}); give the folder that ucbf learn wrote") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f"{path} was changed or damaged; learn again into this folder, which keeps the journal"
        ) from None


class StoreFollower:
    """A folder of a store: what was learned of it, and its journal."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, read_store(folder)
        self.shop, self.calendar = Inventory(**self.store.parameters), self.store.calendar
        self.fitted = FittedOrders.loaded(folder / FITTED) if self.store.by_values else None
        self.journal = Journal(folder / "journal.jsonl", {"preset": "store"})

    # -- what happened ----------------------------------------------------------------------------

    def observe(
        self,
        happened: StoreStep,
        date: str | None = None,
        step: int | None = None,
        correct: bool = False,
        unusual: bool = False,
    ) -> str:
        """Take in a step; what was done, in a line. The same again changes nothing.

        unusual: whether a demand far above all that were seen, or a date far from the last, is right
        """
        return self.observe_all([Told(happened, date, step)], correct, unusual)

    def observe_all(self, told: Sequence[Told], correct: bool = False, unusual: bool = False) -> str:
        """Take in many steps, all or none if one is refused; what was done, a line for each."""
        said = []
        with self.journal.writing() as writing:
            steps, records = self._steps(writing.contents.records), []
            for each in told:
                try:
                    number = self._number(each.date, each.step, max(steps, default=0) + 1)
                    doing = self._checked(number, each.date, each.happened, steps, correct, unusual)
                except ValueError as error:
                    raise each.error(error) from None
                said.append((number, doing, each))
                if doing != SAME:
                    steps[number] = each.happened
                    records.append({**self.calendar.key(number), **asdict(each.happened)})
            notes = self._replayed(dict(sorted(steps.items())))[2]  # an error if it cannot be
            if records:
                writing.append(records)
        return "\n".join(line for number, doing, each in said for line in self._lines(number, doing, each, notes))

    def _checked(
        self, number: int, date: Any, happened: StoreStep, steps: dict[int, StoreStep], correct: bool, unusual: bool
    ) -> str:
        """What is done with a step; an error if it cannot be taken in."""
        before = max((n for n in steps if n < number), default=0)
        what = f"step {number}" if date is None else f"date {date}"
        self.calendar.check_number(what, number, before)
        if steps.get(number) == happened:
            return SAME
        when = self.calendar.when(number)
        if number in steps and not correct:
            raise UserError(f"{when} was taken in with {steps[number]}; if that is wrong, replace it (--correct)")
        if number not in steps and correct:
            raise UserError(
                f"{when} is not in the journal, so that there is nothing to correct; check the date, or leave out "
                "--correct to take it in"
            )
        if number not in steps and not unusual:
            self.calendar.check_is_likely(what, number, before)
        most = max((*self.store.demands, *(each.demand for each in steps.values())))
        if happened.demand > FAR * most and not unusual:
            raise UserError(
                f"demand is {happened.demand:g}, and the largest so far {most:g}; correct it, or say that it is right "
                "(--unusual)"
            )
        return "corrected" if number in steps else "taken in"

    def _lines(self, number: int, doing: str, told: Told, notes: Sequence[str]) -> list[str]:
        """What is said of a step that was taken in."""
        when, happened = self.calendar.when(number), told.happened
        if doing == SAME:
            return [f"{when}: {SAME}"]
        said = [f"{when}: {doing}, {happened}"]
        if happened.order != sized(terms_of(self.shop), happened.order):
            said.append(f"order {happened.order:g} is none that this store has (pack, min_order); it counts as given")
        if told.note:
            said.append(f"{when}: {told.note}")
        return [*said, *(note for note in notes if note.startswith(f"{when}: "))]

    def remove(self, date: str | None = None, step: int | None = None) -> str:
        """Take out a step that was taken in by mistake: a line of the journal says so, and it counts no more."""
        if date is None and step is None:
            raise UserError("no step is given; say which is to be taken out (--date, or --step)")
        with self.journal.writing() as writing:
            steps, number = self._steps(writing.contents.records), self._number(date, step, 0)
            if number not in steps:
                raise UserError(
                    f"{self.calendar.when(number)} is not in the journal, so that there is nothing to take out"
                )
            writing.append([removal_of(self.calendar, number)])
        return f"{self.calendar.when(number)}: taken out"

    def _number(self, date: str | None, step: int | None, following: int) -> int:
        if date is not None:
            return self.calendar.number_of(date)
        return following if step is None else step

    def _steps(self, records: Sequence[dict[str, Any]]) -> dict[int, StoreStep]:
        """By the number of the step: what happened; what was corrected counts as it was corrected."""
        found: dict[int, StoreStep] = {}
        for i, record in enumerate(records):
            try:
                number = self.calendar.number_of_key(record)
                if record.get("removed"):
                    found.pop(number, None)
                    continue
                given = {name: record[name] for name in ("demand", "order", "received", "sold_out", "cancelled")}
                found[number] = StoreStep(**given)
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(f"{self.journal.path}, line {i + 2} cannot be used: {error}") from None
        return dict(sorted(found.items()))

    def _replayed(self, steps: dict[int, StoreStep]) -> tuple[Rolling, Pairs, list[str]]:
        """Rolling orders that have seen the series and these steps, the orders under way after them, and notes."""
        supplier = Supplier(self.shop.lead_time)
        rolling = Rolling(self.shop, season=self.store.season, supplier=supplier, service=self.store.service)
        for demand in self.store.demands:
            rolling.observe(demand)
        waiting: list[tuple[float, int, int | None]] = []
        notes, last = [], 0
        for number, happened in steps.items():
            when = self.calendar.when(number)
            for missing in range(last + 1, number):
                notes.append(f"{self.calendar.when(missing)} is missing; nothing is assumed of its demand")
                rolling.skip()
            lags, came, cancelled = under_way_after(waiting, number, happened)
            if came:
                notes.append(f"{when}: {came:g} came that were not under way; they count as stock")
            if cancelled:
                notes.append(f"{when}: {cancelled:g} were cancelled that were not under way; they count for nothing")
            rolling.observe(happened.demand, lags, happened.sold_out)
            last = number
        return rolling, [(quantity, last + 1 - placed) for quantity, placed, _ in waiting], notes

    # -- what to do -------------------------------------------------------------------------------

    def act(self, stock: float, date: str | None = None, step: int | None = None) -> Ordered:
        """What to order now."""
        steps = self._steps(self.journal.read().records)
        following = max(steps, default=0) + 1
        number = self._number(date, step, following)
        self.calendar.check_number("the step", number, following - 1)
        if stock < 0 and not self.shop.backlog:
            raise UserError(f"stock is {stock:g}, and customers do not wait (--backlog); give 0 or more")
        if number < following:
            raise UserError(f"{self.calendar.when(number)} is in the journal already; the next is "
                            f"{self.calendar.when(following)}")  # fmt: skip
        rolling, under_way, notes = self._replayed(steps)
        for missing in range(following, number):
            notes.append(f"{self.calendar.when(missing)} is missing: take in what happened (ucbf observe)")
            rolling.skip()
            under_way = [(quantity, age + 1) for quantity, age in under_way]
        real("stock", stock, -1e12)
        if self.fitted is None:
            order, relied = rolling.order(stock, under_way).quantity, "relied upon less and less"
        else:
            order, relied = sized(terms_of(self.shop), self.fitted.order(stock, under_way)), "taken to come next"
        late = [f"{q:g} ordered {age} steps ago" for q, age in under_way if age > self.shop.lead_time]
        if late:
            notes.append(
                f"overdue: {', '.join(late)}; they are {relied}. What will not come is taken out by "
                "ucbf observe --cancelled, with the next step"
            )
        ahead = float(rolling.forecast(self.shop.lead_time + self.shop.review).mean(axis=0).sum())
        return Ordered(self.calendar.full_name(number), order, stock, under_way, ahead, tuple(notes[-5:]))

    def status(self) -> dict[str, Any]:
        """How things stand: steps taken in, demand against what was learned, service, orders under way, lead times."""
        steps = self._steps(self.journal.read().records)
        rolling, under_way, notes = self._replayed(steps)
        demands = [each.demand for each in steps.values()]
        recent = self.store.demands[-4 * self.calendar.horizon :]
        return {
            "steps": len(steps),
            "last": self.calendar.when(max(steps)) if steps else None,
            "mean demand": sum(demands) / len(demands) if demands else None,
            "mean demand learned": sum(recent) / len(recent),
            "steps sold out": sum(each.sold_out for each in steps.values()),
            "under way": sum(quantity for quantity, _ in under_way),
            "overdue": sum(quantity for quantity, age in under_way if age > self.shop.lead_time),
            "lead times seen": {str(lag): rolling.lags.count(lag) for lag in sorted(set(rolling.lags))},
            "notes": notes[-5:],
        }

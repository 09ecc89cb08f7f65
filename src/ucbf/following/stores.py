"""A store whose orders take time, every morning: demands, orders and arrivals in a journal; what to order now."""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ucbf.checks import real
from ucbf.errors import UserError
from ucbf.files import write_whole
from ucbf.fitted_orders import FittedOrders
from ucbf.following.calendar import Calendar, named
from ucbf.following.entries import NEW, SAME, by_number, check_alike, decided, last_before, removal_of
from ucbf.following.model import Stored, path_of, read_stored, sealed, unsealed
from ucbf.following.store_steps import StoreStep, Told, under_way_after
from ucbf.journal import Contents, Journal, Record
from ucbf.kernels.shelves import sized
from ucbf.rolling import Rolling, terms_of
from ucbf.suppliers import Supplier
from ucbf.systems.inventory import Inventory

FAR = 3.0  # times the largest demand that was seen: a slip of the pen
ODD = 1.5  # times the largest demand that was seen: it is taken in, and said
NAME, FORMAT, VERSION = "store.json", "ucbf store", 3
FITTED = "fitted.npz"  # orders by fitted values, where these are followed
FIELDS = ("demand", "order", "received", "sold_out", "cancelled")  # of a line of the journal
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
    fitted: Stored | None = None  # orders by fitted values, where these are followed


@dataclass(frozen=True)
class Ordered:
    """What to order now."""

    when: str
    order: float
    stock: float
    under_way: Pairs
    expected: float  # the demand until the order of the next review after it comes
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
        calendar, service = Calendar(**told), float(content["service"])
        fitted = None if content["fitted"] is None else read_stored(content["fitted"])
        return StoreFile(content["parameters"], season, calendar, demands, content["source"], service, fitted)
    except FileNotFoundError:
        raise UserError(f"{folder} holds no store (no {NAME}); give the folder that ucbf learn wrote") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f"{path} was changed or damaged; learn again into this folder, which keeps the journal"
        ) from None


class Steps(dict[int, StoreStep]):
    """The steps of a journal by their numbers, in their order; those that are part of the series are below 1."""

    removed: frozenset[int] = frozenset()  # the numbers of steps that were removed, and not taken in since

    @property
    def last(self) -> int:
        """The number of the last step after the series; 0 if there is none."""
        return max(max(self, default=0), 0)

    @property
    def after_the_series(self) -> list[StoreStep]:
        """Those that are not part of it."""
        return [happened for number, happened in self.items() if number > 0]


class StoreFollower:
    """A folder of a store: what was learned of it, and its journal."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, read_store(folder)
        self.shop, self.calendar = Inventory(**self.store.parameters), self.store.calendar
        fitted = self.store.fitted
        self.fitted = None if fitted is None else FittedOrders.loaded(path_of(folder, fitted))
        begun: dict[str, Any] = {"spacing": self.calendar.spacing}
        if not self.calendar.is_dated:
            begun["rows"] = len(self.store.demands)
        self.journal = Journal(folder / "journal.jsonl", {"preset": "store", **begun})

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
            steps, records = self._steps(writing.contents), []
            here = sorted(steps)
            most = max((*self.store.demands, *(each.demand for each in steps.values())))
            now: dict[int, StoreStep] = {}
            for each in self.calendar.in_order(told):
                try:
                    number = self.calendar.number_meant(each.date, each.step, max([0, *here[-1:]]) + 1)
                    what, before = named(each.date, number), last_before(here, number)
                    self.calendar.check_number(what, number, before)
                    when, there = self.calendar.when(number), steps.get(number)
                    check_alike(when, now.setdefault(number, each.happened) == each.happened)
                    doing = decided(there, there == each.happened, correct, when)
                    if doing == NEW and not unusual:
                        self.calendar.check_is_likely(what, number, before)
                    if doing != SAME and each.happened.demand > FAR * most and not unusual:
                        raise UserError(
                            f"demand is {each.happened.demand:g}, and the largest so far {most:g}; correct it, or say "
                            "that it is right (--unusual)"
                        )
                except ValueError as error:
                    raise each.error(error) from None
                odd = ""
                if doing != SAME and not unusual and each.happened.demand > ODD * most > 0:
                    times = each.happened.demand / most
                    odd = (
                        f"{when}: demand {each.happened.demand:g} is {times:.2g} times the largest so far ({most:g}); "
                        "if that is not right, give the step again with --correct"
                    )
                said.append((number, doing, each, odd))
                if doing == NEW:
                    insort(here, number)
                if doing != SAME:
                    steps[number], most = each.happened, max(most, each.happened.demand)
                    records.append({**self.calendar.key(number), **asdict(each.happened)})
            notes = self._replayed(Steps(sorted(steps.items())))[2]  # an error if it cannot be
            if records:
                writing.append(records)
        return "\n".join(
            line
            for number, doing, each, odd in said
            for line in (*self._lines(number, doing, each, notes), *([odd] if odd else []))
        )

    def _lines(self, number: int, doing: str, told: Told, notes: Sequence[str]) -> list[str]:
        """What is said of a step that was taken in."""
        when, name, happened = self.calendar.when(number), self.calendar.full_name(number), told.happened
        if doing == SAME:
            return [f"{name}: {SAME}"]
        said = [f"{name}: {doing}, {happened}"]
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
            steps, number = self._steps(writing.contents), self.calendar.number_meant(date, step, None)
            removal = removal_of(self.calendar, named(date, number), number, steps, steps.removed)
            if removal is not None:
                writing.append([removal])
        return f"{self.calendar.full_name(number)}: {'was taken out before' if removal is None else 'taken out'}"

    def _steps(self, contents: Contents) -> Steps:
        """By the number of the step: what happened."""

        def step_of(number: int, record: Record) -> StoreStep:
            return StoreStep(**{name: record[name] for name in FIELDS})

        found, removed = by_number(self.journal.path, contents, self.calendar, step_of)
        steps = Steps(found)
        steps.removed = removed
        return steps

    def _replayed(self, steps: Steps) -> tuple[Rolling, Pairs, list[str]]:
        """Rolling orders that have seen the series and these steps, the orders under way after them, and notes.

        Of a step that is part of the series by now its orders count, and what came in it; its demand is in the series.
        """
        supplier = Supplier(self.shop.lead_time)
        rolling = Rolling(self.shop, season=self.store.season, supplier=supplier, service=self.store.service)
        for demand in self.store.demands:
            rolling.observe(demand)
        waiting: list[tuple[float, int, int | None]] = []
        notes, last = self._between(steps), 0
        for number, happened in steps.items():
            lags, came, cancelled = under_way_after(waiting, number, happened)
            if number < 1:
                rolling.lags.extend(lags)
                continue
            when = self.calendar.when(number)
            for missing in range(last + 1, number):
                notes.append(f"{self.calendar.when(missing)} is missing; nothing is assumed of its demand")
                rolling.skip()
            if came:
                notes.append(f"{when}: {came:g} came that were not under way; they count as stock")
            if cancelled:
                notes.append(f"{when}: {cancelled:g} were cancelled that were not under way; they count for nothing")
            rolling.observe(happened.demand, lags, happened.sold_out)
            last = number
        return rolling, [(quantity, last + 1 - placed) for quantity, placed, _ in waiting], notes

    def _between(self, steps: Steps) -> list[str]:
        """That there are steps of the series after the last one of it that the journal has."""
        begin = max((number for number in steps if number < 1), default=0) + 1
        if begin > 0:
            return []
        return [
            f"{self.calendar.listed(range(begin, 1))} in the series and not in the journal: what was ordered then, and "
            "what came, is not known"
        ]

    # -- what to do -------------------------------------------------------------------------------

    def act(self, stock: float, date: str | None = None, step: int | None = None) -> Ordered:
        """What to order now."""
        steps = self._steps(self.journal.read())
        following = steps.last + 1
        number = self.calendar.number_meant(date, step, following)
        self.calendar.check_number(named(date, number), number, steps.last)
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
        if rolling.wait:
            notes.append(
                f"no order can be placed in this step; the next can be {self.calendar.full_name(number + rolling.wait)}"
            )
        ahead = float(rolling.forecast(rolling.steps_until_next).mean(axis=0).sum())
        return Ordered(self.calendar.full_name(number), order, stock, under_way, ahead, tuple(notes[-5:]))

    def status(self) -> dict[str, Any]:
        """How things stand: steps taken in, demand against what was learned, service, orders under way, lead times."""
        steps = self._steps(self.journal.read())
        rolling, under_way, notes = self._replayed(steps)
        after = steps.after_the_series
        demands = [each.demand for each in after]
        recent = self.store.demands[-4 * self.calendar.horizon :]
        return {
            "steps": len(after),
            "steps now in the series": len(steps) - len(after),
            "last": self.calendar.when(steps.last) if after else None,
            "mean demand": sum(demands) / len(demands) if demands else None,
            "mean demand learned": sum(recent) / len(recent),
            "steps sold out": sum(each.sold_out for each in after),
            "under way": sum(quantity for quantity, _ in under_way),
            "overdue": sum(quantity for quantity, age in under_way if age > self.shop.lead_time),
            "lead times seen": {str(lag): rolling.lags.count(lag) for lag in sorted(set(rolling.lags))},
            "notes": notes[-5:],
        }

"""The steps in a journal, and the lines that say them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ucbf.errors import UserError
from ucbf.following.calendar import MANY, Calendar
from ucbf.following.happened import Happened, of_record, words_of
from ucbf.following.known import CALLED, Ahead, as_record
from ucbf.following.known import of_record as known_of_record
from ucbf.following.model import Model
from ucbf.journal import Contents, Record
from ucbf.systems import Preset

NOTHING = "nothing is assumed of"
Step = TypeVar("Step")
NEW, CORRECTED, SAME = "taken in", "corrected", "already there"  # what is done with a step


@dataclass(frozen=True)
class Entry:
    """A step in the journal."""

    number: int
    happened: Happened
    advised: float | None  # what was advised, with what was known before it
    ahead: Ahead | None  # what was known of it and the rest of its episode; None where that is not what is needed now


class Entries(dict[int, Entry]):
    """The steps of a journal by their numbers, in their order; those that are part of the series are counted."""

    in_series = 0
    removed: frozenset[int] = frozenset()  # the numbers of steps that were removed, and not taken in since

    @property
    def last(self) -> int:
        """The number of the last step; 0 if there is none."""
        return max(self, default=0)

    def before(self, number: int) -> int:
        """The number of the last step before another; 0 if there is none."""
        return last_before(sorted(self), number)

    @property
    def usable(self) -> list[Entry]:
        """Those of which everything is known that is needed to learn from them."""
        return [entry for entry in self.values() if entry.ahead is not None]


def entries_of(path: object, contents: Contents, model: Model, preset: Preset) -> Entries:
    """The steps that the lines of a journal say; path: of the journal."""

    def entry_of(number: int, record: Record) -> Entry:
        advised, step = record["advised"], of_record(record, words_of(preset))
        ahead = known_of_record(model, number, record.get("known")) if number > 0 else {}
        return Entry(number, step, None if advised is None else float(advised), ahead)

    found, removed = by_number(path, contents, model.calendar, entry_of)
    entries = Entries((number, entry) for number, entry in found.items() if number > 0)
    entries.in_series, entries.removed = len(found) - len(entries), removed
    return entries


def by_number(
    path: object, contents: Contents, calendar: Calendar, read: Callable[[int, Record], Step]
) -> tuple[dict[int, Step], frozenset[int]]:
    """What the lines of a journal say of every step, in the order of the steps; and which of them were removed.

    What was corrected counts as it was corrected. read: a step, given its number and its line
    """
    found, gone = dict[int, Step](), set[int]()
    for i, record in enumerate(contents.records):
        try:
            number = calendar.number_of_key(record)
            if record.get("removed"):
                found.pop(number, None)
                gone.add(number)
            else:
                found[number] = read(number, record)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}, line {i + 2} cannot be used: {error}; move the journal away") from None
    return dict(sorted(found.items())), frozenset(gone - set(found))


def record_of(calendar: Calendar, entry: Entry) -> Record:
    """The line of a journal that says a step."""
    known = {"known": as_record(entry.ahead)} if entry.ahead else {}
    return {**calendar.key(entry.number), **entry.happened.record(), "advised": entry.advised, **known}


# -- what is done with a step -------------------------------------------------------------------------------


def last_before(numbers: Sequence[int], number: int) -> int:
    """The last of numbers in their order that is below another; 0 if none of them is above 0."""
    i = bisect_left(numbers, number)
    return max(numbers[i - 1], 0) if i else 0


def check_alike(when: str, alike: bool) -> None:
    """An error for a step that is told twice at once, with other numbers."""
    if not alike:
        raise UserError(f"{when} comes twice, with other numbers; leave one of them out")


def decided(there: object, same: bool, correct: bool, when: str) -> str:
    """What is done with a step that is told; an error if nothing may be.

    there: what was taken in for it before, as it is shown; None: nothing was; same: whether that says the same
    """
    if there is None and correct:
        raise UserError(
            f"{when} is not in the journal, so that there is nothing to correct; check the date, or leave out "
            "--correct to take it in"
        )
    if there is None or same:
        return NEW if there is None else SAME
    if not correct:
        raise UserError(f"{when} was taken in with {there}; if that is wrong, replace it (--correct)")
    return CORRECTED


def removal_of(
    calendar: Calendar, what: str, number: int, here: Collection[int], removed: Collection[int]
) -> Record | None:
    """The line that takes a step out; None if it was taken out before.

    what: the step as it was named; here: the numbers of the steps in the journal; removed: and of those taken out
    """
    if number in here:
        return {**calendar.key(number), "removed": True}
    if number in removed:
        return None
    last = max(here, default=0)
    calendar.check_number(what, number, max(last, 0))
    raise UserError(
        f"{calendar.when(number)} is not in the journal, so that there is nothing to take out"
        + (f"; the last step in it is {calendar.when(last)}" if here else "")
    )


# -- what is to be said of them -----------------------------------------------------------------------------


def on_contents(path: object, contents: Contents) -> list[str]:
    """What is to be said of a journal that was read."""
    if not contents.unfinished:
        return []
    return [
        f"the last line of {path} is unfinished and is ignored; if its step was not taken in again since, take it in"
    ]


def on_unusable(entries: Entries, model: Model) -> list[str]:
    """Steps that were taken in without what is needed to learn from them."""
    numbers = [number for number, entry in entries.items() if entry.ahead is None]
    if not numbers:
        return []
    missing = " and ".join(dict.fromkeys(CALLED.get(name, name) for name in model.varies))
    return [
        f"{model.calendar.listed(numbers)} in the journal without the {missing} that what is learned now needs, and "
        "not learned from; take them in again with them"
    ]


def on_gaps(calendar: Calendar, here: Iterable[int], new: Iterable[int]) -> list[str]:
    """Steps that are missing before new ones."""
    here, notes = sorted({*here, *new}), []
    for number in sorted(new):
        missing = range(last_before(here, number) + 1, number)
        if missing:
            them = "it" if len(missing) == 1 else "them"
            notes.append(f"before {calendar.when(number)} {calendar.listed(missing)} missing; {NOTHING} {them}")
    return notes if len(notes) <= MANY else [*notes[:MANY], f"and {len(notes) - MANY} more gaps"]


def on_breaks(calendar: Calendar, entries: Entries, numbers: Iterable[int], name: str) -> list[str]:
    """Steps that do not begin where the one before ended; name: of the state."""
    notes = []
    for number in sorted({n for each in numbers for n in (each, each + 1)}):
        if number - 1 in entries and number in entries:
            ended, begins = entries[number - 1].happened.next_state, entries[number].happened.state
            if ended is not None and abs(ended - begins) > 1e-9 * max(abs(ended), 1):
                before, now = (calendar.when(n) for n in (number - 1, number))
                notes.append(
                    f"{now} begins with {name} {begins:g}, and {before} ended with {ended:g}; both count as given"
                )
    return _few(notes)


def on_rounded(calendar: Calendar, entries: Entries, numbers: Iterable[int], preset: Preset) -> list[str]:
    """Actions that there are not, and that count as the nearest."""
    notes = []
    for number in sorted(numbers):
        done = entries[number].happened.action
        counted = float(preset.action_quantities[preset.action_of(done)])
        if abs(done - counted) > 1e-9 * max(abs(done), 1):
            when, name = calendar.when(number), preset.action_name
            notes.append(f"{when}: {name} {done:g} counts as {counted:g}, the nearest that was learned of")
    return _few(notes)


def on_last(calendar: Calendar, entries: Entries) -> list[str]:
    """A last step that is far from the one before it: its date may be wrong, and what is advised next with it."""
    last = entries.last
    before = entries.before(last)
    missing = last - before - 1
    if not entries or missing <= calendar.likely_gap:
        return []
    key = f"--date {calendar.when(last)}" if calendar.is_dated else f"--step {last}"
    return [
        f"the last step in the journal, {calendar.when(last)}, is far from the one before it, {calendar.when(before)}: "
        f"{missing} {calendar.step_word}s are missing. If its date is wrong, take it out (ucbf observe --remove {key})"
    ]


def _few(notes: Sequence[str]) -> list[str]:
    return [*notes] if len(notes) <= MANY else [*notes[:MANY], f"and {len(notes) - MANY} more like this"]

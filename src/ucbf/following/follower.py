"""Following advice day by day: take in what happened, say what to do, say how it goes."""

from __future__ import annotations

import os
import warnings
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ucbf.checks import real
from ucbf.errors import UserError
from ucbf.following import entries as said_of
from ucbf.following.accounts import Reading, with_next_state
from ucbf.following.advised import Advised, Taken, why
from ucbf.following.calendar import Calendar, named
from ucbf.following.entries import (
    CORRECTED,
    NEW,
    SAME,
    Entries,
    Entry,
    check_alike,
    decided,
    entries_of,
    last_before,
    record_of,
    removal_of,
)
from ucbf.following.happened import Happened, checked, words_of
from ucbf.following.knowledge import Knowledge
from ucbf.following.known import FLAGS, PROMOTED, Ahead, Known, ahead_of
from ucbf.following.learned import read_knowledge
from ucbf.following.model import Model, read_model
from ucbf.journal import Contents, Journal

if TYPE_CHECKING:
    from ucbf.following.standing import Status


class Follower:
    """Follows the advice in a folder that ``ucbf learn`` wrote, step by step.

    What is known at any time is what was learned and what stands in the journal, ``journal.jsonl``. The files of what
    was learned are never changed.

    Parameters
    ----------
    folder
        What ``ucbf learn`` was given as ``--out``.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.model: Model = read_model(self.folder)
        self.calendar: Calendar = self.model.calendar
        begun: dict[str, Any] = {"spacing": self.calendar.spacing}
        if not self.calendar.is_dated:
            begun["rows"] = self.model.rows
        self.journal = Journal(self.folder / "journal.jsonl", {"preset": self.model.preset, **begun})
        self._first: Knowledge | None = self.learned()
        self.preset = self._first.preset

    def __repr__(self) -> str:
        return f"Follower({self.model.preset} in {self.folder})"

    def learned(self) -> Knowledge:
        """What was learned, with nothing of the journal shown to it."""
        return read_knowledge(self.folder, self.model)

    def fresh(self) -> Knowledge:
        """The same, which the caller may let learn; read once only."""
        given, self._first = self._first, None
        return self.learned() if given is None else given

    # -- what stands in the journal ---------------------------------------------------------------

    def entries(self, contents: Contents | None = None) -> Entries:
        """The steps of the journal by their numbers, in their order. Those that are now part of the series are not."""
        contents = self.journal.read() if contents is None else contents
        return entries_of(self.journal.path, contents, self.model, self.preset)

    def notes_on(self, contents: Contents, entries: Entries) -> list[str]:
        """What is to be said of a journal that was read."""
        return [*said_of.on_contents(self.journal.path, contents), *said_of.on_unusable(entries, self.model)]

    def number_of(self, date: Any = None, step: int | None = None, default: int | None = None) -> int:
        """The number of the step that is meant."""
        return self.calendar.number_meant(date, step, default)

    def read(self, knowledge: Knowledge, entry: Entry) -> Reading:
        """A step of the journal as its system sees it."""
        assert entry.ahead is not None
        try:
            return knowledge.read(entry.number, entry.happened, entry.ahead)
        except ValueError as error:
            raise UserError(
                f"{self.journal.path}, {self.calendar.when(entry.number)}: {error}. It was taken in before and does "
                "not fit what is learned now; learn with wider sizes, or correct it (--correct)"
            ) from None

    def replay(self, knowledge: Knowledge, entries: Iterable[Entry]) -> dict[int, Reading]:
        """Show steps to what is known; the steps as their systems see them, by number."""
        found = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model check tells it
            for entry in entries:
                if entry.ahead is not None:
                    found[entry.number] = self.read(knowledge, entry)
                    knowledge.show(entry.number, found[entry.number], entry.ahead)
        return found

    # -- taking in --------------------------------------------------------------------------------

    def observe(
        self,
        state: float,
        action: float,
        next_state: float | None = None,
        amount: float | None = None,
        date: Any = None,
        step: int | None = None,
        correct: bool = False,
        known: Known | None = None,
        unusual: bool = False,
    ) -> Taken:
        """Take in what happened in a step, in the user's units.

        Parameters
        ----------
        state, next_state
            Before and after it. What was there after it may be left out where the amount is given.
        action
            What was done, whoever decided it.
        amount
            What was asked for, flowed in, arrived. It may be left out: the next state tells it, or that it was at
            least so much.
        date
            The date of the step; needed where the series has dates.
        step
            Its number since the end of the series, from 1 on, where the series has no dates; the next one if None.
        correct
            Replace what was taken in for this step before.
        known
            As :meth:`act` has it: what was known of this step, and of the rest of its episode, when it began.
        unusual
            Whether a date is right that is far from the last, or still to come.
        """
        told = checked(words_of(self.preset), state, action, next_state, amount, date, step)
        return self.observe_all([told], correct, known, unusual)

    def observe_all(
        self, steps: Sequence[Happened], correct: bool = False, known: Known | None = None, unusual: bool = False
    ) -> Taken:
        """Take in many steps; all, or none if one is refused. correct, known, unusual: as of :meth:`observe`."""
        knowledge = self.fresh()
        with self.journal.writing() as writing:
            entries = self.entries(writing.contents)
            notes = self.notes_on(writing.contents, entries)
            asked = self._checked(steps, knowledge, entries, known, unusual)
            done: dict[str, list[int]] = {NEW: [], CORRECTED: [], SAME: []}
            for number, entry in asked.items():
                done[self._decided(entries.get(number), entry, correct)].append(number)
            written = sorted(done[NEW] + done[CORRECTED])
            writing.append(self._records(knowledge, entries, {number: asked[number] for number in written}))
            after = self.entries(writing.contents)
        notes += said_of.on_gaps(self.calendar, entries, done[NEW])
        notes += said_of.on_breaks(self.calendar, after, written, self.preset.state_name)
        notes += said_of.on_rounded(self.calendar, after, written, self.preset)
        if written:
            notes += self._assumed(known)
        return Taken(self._names(done[NEW]), self._names(done[CORRECTED]), self._names(done[SAME]), tuple(notes))

    def _decided(self, there: Entry | None, asked: Entry, correct: bool) -> str:
        """What is done with a step that is told."""
        if there is None:
            told, same = None, False
        else:
            told = _in_words(there.happened, words_of(self.preset))
            same = there.happened.is_same(asked.happened) and (_as_known(there, asked) or not correct)
        try:
            doing = decided(told, same, correct, self.calendar.when(asked.number))
        except UserError as error:
            raise asked.happened.error(str(error)) from None
        unusable = doing == SAME and there is not None and there.ahead is None
        return CORRECTED if unusable else doing

    def remove(self, date: Any = None, step: int | None = None) -> Taken:
        """Take out a step that was taken in by mistake: a line of the journal says so, and it counts no more."""
        number = self.number_of(date, step)
        with self.journal.writing() as writing:
            entries = self.entries(writing.contents)
            removal = removal_of(self.calendar, named(date, number), number, entries, entries.removed)
            if removal is None:
                return Taken((), (), (), (f"{self.calendar.full_name(number)}: was taken out before",))
            writing.append([removal])
        return Taken((), (), (), (), self._names([number]))

    def _names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.calendar.full_name(number) for number in sorted(numbers))

    def _assumed(self, known: Known | None) -> list[str]:
        """What is taken to be so where nothing is said of it."""
        if PROMOTED not in self.model.varies or (known or {}).get(PROMOTED) is not None:
            return []
        return [f"nothing is promoted, as none was given ({FLAGS[PROMOTED]})"]

    def _checked(
        self, steps: Sequence[Happened], knowledge: Knowledge, entries: Entries, known: Known | None, unusual: bool
    ) -> dict[int, Entry]:
        """The steps by their numbers; an error for the first that cannot be."""
        found: dict[int, Entry] = {}
        here = sorted(entries)  # and those of the steps that are told
        for step in self.calendar.in_order(steps):
            try:
                default = None if self.calendar.is_dated else max([0, *here[-1:]]) + 1
                number = self.number_of(step.date, step.step, default)
                what, before = named(step.date, number), last_before(here, number)
                self.calendar.check_number(what, number, before)
                if not unusual and number not in entries:
                    self.calendar.check_is_likely(what, number, before)
                preset = knowledge.controller_of(number).preset
                ahead = ahead_of(self.folder, self.model, number, known)
                step = with_next_state(preset, self.calendar.place_of(number), step)
                knowledge.read(number, step, ahead)
                check_alike(self.calendar.when(number), number not in found or found[number].happened.is_same(step))
            except UserError as error:
                raise step.error(str(error)) from None
            except ValueError as error:
                remedy = "" if "correct" in str(error) else ": correct it, or learn with other sizes"
                raise step.error(f"{error}{remedy}") from None
            if number not in found and number not in entries:
                insort(here, number)
            found[number] = Entry(number, step, None, ahead)
        return found

    def _records(self, knowledge: Knowledge, entries: Entries, asked: dict[int, Entry]) -> list[dict[str, Any]]:
        """The lines of the journal, each with what was advised by what was known before its step."""
        records = []
        waiting = [entry for entry in entries.values() if entry.number not in asked]
        for number, entry in asked.items():
            self.replay(knowledge, [each for each in waiting if each.number < number])
            waiting = [each for each in waiting if each.number > number]
            assert entry.ahead is not None
            plan, h = knowledge.plan(number, entry.ahead), self.calendar.place_of(number)
            policy = plan.policy(knowledge.context(number))
            advised = float(policy.quantities[h, self._place(knowledge, number, entry.happened.state)])
            told = Entry(number, entry.happened, advised, entry.ahead)
            records.append(record_of(self.calendar, told))
            self.replay(knowledge, [told])
        return records

    # -- how it goes ------------------------------------------------------------------------------

    def status(self) -> Status:
        """What came of the advice so far, and whether what was learned still holds."""
        from ucbf.following.standing import status

        return status(self)

    # -- acting -----------------------------------------------------------------------------------

    def act(self, state: float, date: Any = None, step: int | None = None, known: Known | None = None) -> Advised:
        """What to do in a step, with all that is known.

        Parameters
        ----------
        state
            In the user's units.
        date, step
            When; the first step that is not in the journal if None.
        known
            Where it was learned with what differs from episode to episode and is known beforehand, by name: "profile"
            for a forecast, "quantiles" for one by quantiles, "prices", "promoted". Each is a
            :class:`ucbf.data.Series` with dates, or numbers, of the steps from this one to the end of its episode or of
            all its steps; quantiles are a table with a row for each step, or by their shares. "promoted" may be left
            out: then nothing is.
        """
        return self.act_all([(state, date, step)], known)[0]

    def act_all(
        self, states: Sequence[tuple[float, Any, int | None]], known: Mapping[str, Any] | None = None
    ) -> list[Advised]:
        """What to do in many steps: state and date or step of each. known: as :meth:`act` has it."""
        from ucbf.following.standing import alarms

        contents = self.journal.read()
        entries, knowledge = self.entries(contents), self.fresh()
        asked = []
        for state, date, step in states:
            number = self.number_of(date, step, entries.last + 1)
            self.calendar.check_number(named(date, number), number, entries.last)
            knowledge.controller_of(number)
            ahead = ahead_of(self.folder, self.model, number, known)
            state = real(self.preset.state_name, state, -np.inf)
            self._place(knowledge, number, state)  # an error before anything is computed
            asked.append((number, ahead, state))
        said = [
            *self.notes_on(contents, entries),
            *alarms(self, knowledge, entries),
            *said_of.on_last(self.calendar, entries),
        ]
        return [
            self._advised(
                knowledge, number, ahead, state, [*said, *self._behind(number, entries)], self._assumed(known)
            )
            for number, ahead, state in asked
        ]

    def _place(self, knowledge: Knowledge, number: int, state: float) -> int:
        """The index of a state."""
        system, preset = knowledge.controller_of(number).agent.system, self.preset
        s = int(preset.to_units(state))
        if s not in system.states:
            low, high = (system.states[i] * preset.unit for i in (0, -1))
            raise UserError(
                f"{preset.state_name} is {state:g}; it must be {low:g} to {high:g}, in the unit of {self.model.source}"
                ": correct it, or learn with other sizes"
            )
        return s - system.state_offset

    def _advised(
        self, knowledge: Knowledge, number: int, ahead: Ahead, state: float, said: list[str], notes: list[str]
    ) -> Advised:
        calendar, preset, h = self.calendar, self.preset, self.calendar.place_of(number)
        s, context, level = self._place(knowledge, number, state), knowledge.context(number), knowledge.level(number)
        plan = knowledge.plan(number, ahead)
        policy = plan.policy(context, calendar.names, calendar.spacing)
        counted = float((s + plan.system.state_offset) * preset.unit)
        said = [*said, *knowledge.beyond(number, ahead)]
        if abs(counted - state) > 1e-9 * max(1, abs(state)):
            said.append(f"{preset.state_name} {state:g} counts as {counted:g}, a multiple of {preset.unit:g}")
        name = policy.step_names[h] if policy.words.steps else f"{policy.words.step} {h + 1}"
        at = name if level is None else f"{name}, at a {level.name} level of the last steps"
        return Advised(
            when=calendar.full_name(number),
            date=str(calendar.date_of(number)) if calendar.is_dated else None,
            step=number,
            place=policy.step_names[h],
            kind=calendar.kind_of(number),
            state_name=preset.state_name,
            state=state,
            action_name=preset.action_name,
            action=float(policy.quantities[h, s]),
            why=f"{at}: {why(plan, context, policy, h, s)}",
            level=None if level is None else level.name,
            notes=(*notes, *(() if level is None else (level.why,))),
            warnings=tuple(said),
        )

    def _behind(self, number: int, entries: Entries) -> list[str]:
        """Steps before this one that the journal lacks; or that this one is there already."""
        missing = range(entries.before(number) + 1, number)
        said = []
        if missing:
            said.append(f"{self.calendar.listed(missing)} not in the journal: take in what happened (ucbf observe)")
        if number in entries:
            said.append(f"{self.calendar.when(number)} is in the journal already: this is what would be done now")
        return said


def _as_known(there: Entry, asked: Entry) -> bool:
    """Whether the same was known of a step both times."""
    if there.ahead is None or asked.ahead is None or there.ahead.keys() != asked.ahead.keys():
        return False
    return all(np.array_equal(values, there.ahead[name]) for name, values in asked.ahead.items())


def _in_words(step: Happened, words: dict[str, str]) -> str:
    parts = [(words[name], value) for name, value in step.record().items() if value is not None]
    return ", ".join(f"{name} {value:g}" for name, value in parts)


def follow(folder: str | os.PathLike[str]) -> Follower:
    """Follow the advice in a folder that ``ucbf learn`` wrote: take in what happened, and say what to do next."""
    return Follower(folder)

"""Following advice day by day: take in what happened, say what to do, say how it goes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ucbf.checks import real, whole
from ucbf.controller import Controller, load
from ucbf.errors import UserError
from ucbf.files import digest
from ucbf.following.accounts import Reading, learn_from, read_step
from ucbf.following.calendar import Calendar
from ucbf.following.happened import Happened, of_record, words_of
from ucbf.following.known import check_known, controller_with, learned_with
from ucbf.following.model import Model, read_model
from ucbf.journal import Contents, Journal
from ucbf.policies import Policy
from ucbf.rule_reading import SEE_THE_TABLE
from ucbf.wording import show_count, show_number

if TYPE_CHECKING:
    from ucbf.following.standing import Status

Controllers = dict[str, Controller]  # by the kind of an episode
MANY = 3  # dates that are named one by one


@dataclass(frozen=True)
class Entry:
    """A step in the journal."""

    number: int
    happened: Happened
    advised: float | None  # what was advised, with what was known before it


@dataclass(frozen=True)
class Taken:
    """What became of steps that were to be taken in."""

    new: tuple[str, ...]  # when they were
    corrected: tuple[str, ...]
    known: tuple[str, ...]  # those that were there already, the same
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {"taken_in": self.new, "corrected": self.corrected, "known": self.known, "notes": self.notes}

    def __str__(self) -> str:
        lines = []
        for names, what in (
            (self.new, "taken in"),
            (self.corrected, "corrected"),
            (self.known, "already there, the same"),
        ):
            if names:
                many = f"{names[0]} to {names[-1]}, {len(names)} steps"
                lines.append(f"{many if len(names) > MANY else ', '.join(names)}: {what}")
        return "\n".join([*lines, *self.notes])


@dataclass(frozen=True)
class Advised:
    """What to do in a step, in the user's units."""

    when: str  # its date, else its number
    date: str | None
    step: int  # its number since the end of the series
    place: str  # its name in the episode, else its number, from 1 on
    kind: str  # of the episode: "weekday", "weekend" or ""
    state_name: str
    state: float
    action_name: str
    action: float
    why: str
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        at = f"{self.when}, {self.state_name} {self.state:g}: {self.action_name} {self.action:g}"
        return "\n".join([at, f"why: {self.why}", *(f"warning: {text}" for text in self.warnings)])


class Follower:
    """Follows the advice in a folder that ``ucbf learn`` wrote, step by step.

    What is known at any time is what was learned and what stands in the journal, ``journal.jsonl``. The files of the
    agents are never changed.

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
        self._first: Controllers | None = self.learned()
        self.preset = next(iter(self._first.values())).preset

    def __repr__(self) -> str:
        return f"Follower({self.model.preset} in {self.folder})"

    def learned(self) -> Controllers:
        """The controllers as they were learned, in their files, by the kind of an episode."""
        found = {}
        for kind, about in self.model.kinds.items():
            path = self.folder / about.agent
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                raise UserError(f"{path} is missing; learn again into this folder, which keeps the journal") from None
            if digest(content) != about.digest:
                raise UserError(
                    f"{path} is not the agent that was learned: it was changed, or learning was cut short; learn again "
                    "into this folder, which keeps the journal"
                )
            controller = load(path)
            if not isinstance(controller, Controller):
                raise UserError(f"{path} is an agent without units; learn again into this folder")
            found[kind] = controller
        return found

    def fresh(self) -> Controllers:
        """The same, which the caller may let learn."""
        given, self._first = self._first, None
        return self.learned() if given is None else given

    def check_nothing_varies(self) -> None:
        """An error where the journal would need what was known of every episode."""
        if self.model.varies:
            raise UserError(
                f"{learned_with(self.folder, self.model)}: ucbf act takes those of an episode, and nothing is taken in "
                "day by day; learn again with the new days"
            )

    # -- what stands in the journal ---------------------------------------------------------------

    def entries(self, contents: Contents | None = None) -> dict[int, Entry]:
        """The steps of the journal by their numbers, in their order. Those that are now part of the series are not."""
        contents = self.journal.read() if contents is None else contents
        found: dict[int, Entry] = {}
        for i, record in enumerate(contents.records):
            try:
                number = self.calendar.number_of_key(record)
                advised = record["advised"]
                step = of_record(record, words_of(self.preset))
            except (KeyError, TypeError, ValueError) as error:
                where = f"{self.journal.path}, line {i + 2}"
                raise UserError(f"{where} cannot be used: {error}; move the journal away") from None
            if number > 0:
                found[number] = Entry(number, step, None if advised is None else float(advised))
        return dict(sorted(found.items()))

    def notes_on(self, contents: Contents) -> list[str]:
        """What is to be said of a journal that was read."""
        if not contents.unfinished:
            return []
        return [
            f"the last line of {self.journal.path} is unfinished and is ignored; if its step was not taken in again "
            "since, take it in"
        ]

    def number_of(self, date: Any = None, step: int | None = None, default: int | None = None) -> int:
        """The number of the step that is meant."""
        if date is not None and step is not None:
            raise UserError(f"date is {date} and step {step}; give one of them")
        if date is not None:
            return self.calendar.number_of(date)
        if step is not None:
            return whole("step", step, 1)
        if default is None:
            raise UserError("no date is given, and the series has dates; give it (--date, or a column of dates)")
        return default

    def controller_of(self, controllers: Controllers, number: int) -> Controller:
        """The controller of a step."""
        kind = self.calendar.kind_of(number)
        if kind not in controllers:
            raise UserError(
                f"{self.calendar.when(number)} is a {kind}, of which the series has none; learn from a series that has"
            )
        return controllers[kind]

    def replay(self, controllers: Controllers, entries: Iterable[Entry]) -> dict[int, Reading]:
        """Let controllers learn from steps; the steps as their systems see them, by number."""
        found = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model check tells it
            for entry in entries:
                controller, h = self.controller_of(controllers, entry.number), self.calendar.place_of(entry.number)
                try:
                    found[entry.number] = read_step(controller, h, entry.happened)
                except ValueError as error:
                    raise UserError(
                        f"{self.journal.path}, {self.calendar.when(entry.number)}: {error}. It was taken in before "
                        "and does not fit what is learned now; learn with wider sizes, or correct it (--correct)"
                    ) from None
                learn_from(controller, found[entry.number])
        return found

    def policy_of(self, controller: Controller) -> Policy:
        """What a controller would do now, in the words of the series."""
        return controller.preset.policy(controller.agent, self.calendar.names, self.calendar.spacing)

    # -- taking in --------------------------------------------------------------------------------

    def observe(
        self,
        state: float,
        action: float,
        next_state: float,
        amount: float | None = None,
        date: Any = None,
        step: int | None = None,
        correct: bool = False,
    ) -> Taken:
        """Take in what happened in a step, in the user's units.

        Parameters
        ----------
        state, next_state
            Before and after it.
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
        """
        words = words_of(self.preset)
        given = {"state": state, "action": action, "next_state": next_state}
        state, action, next_state = (real(words[name], value, -np.inf) for name, value in given.items())
        amount = None if amount is None else real(words["amount"], amount, -np.inf)
        return self.observe_all([Happened(state, action, next_state, amount, date, step)], correct)

    def observe_all(self, steps: Sequence[Happened], correct: bool = False) -> Taken:
        """Take in many steps; all of them, or none if one is refused."""
        self.check_nothing_varies()
        controllers = self.fresh()
        with self.journal.writing() as writing:
            entries, notes = self.entries(writing.contents), self.notes_on(writing.contents)
            asked = self._checked(steps, controllers, entries)
            new, corrected, known = [], [], []
            for number, step in asked.items():
                if number not in entries:
                    new.append(number)
                elif entries[number].happened.is_same(step):
                    known.append(number)
                elif correct:
                    corrected.append(number)
                else:
                    there = _in_words(entries[number].happened, words_of(self.preset))
                    when = self.calendar.when(number)
                    raise step.error(f"{when} was taken in with {there}; if that is wrong, replace it (--correct)")
            records = self._records(controllers, entries, {n: asked[n] for n in sorted((*new, *corrected))})
            writing.append(records)
            after = self.entries(writing.contents)
        written = [*new, *corrected]
        notes += self._gaps(entries, new) + self._breaks(after, written) + self._rounded(after, written)
        return Taken(self._names(new), self._names(corrected), self._names(known), tuple(notes))

    def _names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.calendar.full_name(number) for number in sorted(numbers))

    def _checked(
        self, steps: Sequence[Happened], controllers: Controllers, entries: dict[int, Entry]
    ) -> dict[int, Happened]:
        """The steps by their numbers; an error for the first that cannot be."""
        last, found = max(entries, default=0), dict[int, Happened]()
        for step in steps:
            try:
                default = None if self.calendar.is_dated else max([last, *found]) + 1
                number = self.number_of(step.date, step.step, default)
                what = f"date {step.date}" if step.date is not None else f"step {number}"
                self.calendar.check_number(what, number, max([n for n in (*entries, *found) if n < number], default=0))
                controller = self.controller_of(controllers, number)
                read_step(controller, self.calendar.place_of(number), step)
            except UserError as error:
                raise step.error(str(error)) from None
            except ValueError as error:
                remedy = "" if "correct" in str(error) else ": correct it, or learn with other sizes"
                raise step.error(f"{error}{remedy}") from None
            if number in found and not found[number].is_same(step):
                raise step.error(f"{self.calendar.when(number)} comes twice, with other numbers; leave one of them out")
            found[number] = step
        return found

    def _records(
        self, controllers: Controllers, entries: dict[int, Entry], asked: dict[int, Happened]
    ) -> list[dict[str, Any]]:
        """The lines of the journal, each with what was advised by what was known before its step."""
        records = []
        waiting = [entry for entry in entries.values() if entry.number not in asked]
        for number, step in asked.items():
            self.replay(controllers, [entry for entry in waiting if entry.number < number])
            waiting = [entry for entry in waiting if entry.number > number]
            controller, h = self.controller_of(controllers, number), self.calendar.place_of(number)
            advised = float(self.policy_of(controller).quantities[h, self._place(controller, step.state)])
            records.append({**self.calendar.key(number), **step.record(), "advised": advised})
            self.replay(controllers, [Entry(number, step, advised)])
        return records

    def _gaps(self, entries: dict[int, Entry], new: Sequence[int]) -> list[str]:
        """Steps that are missing before new ones."""
        here, notes = sorted({*entries, *new}), []
        for number in sorted(new):
            before = max((n for n in here if n < number), default=0)
            missing = range(before + 1, number)
            if missing:
                notes.append(
                    f"before {self.calendar.when(number)} {self._listed(missing)} missing; nothing is assumed of "
                    f"{'it' if len(missing) == 1 else 'them'}"
                )
        return notes if len(notes) <= MANY else [*notes[:MANY], f"and {len(notes) - MANY} more gaps"]

    def _listed(self, numbers: Sequence[int]) -> str:
        names = [self.calendar.when(n) for n in numbers]
        if len(names) > MANY:
            return f"{show_count(len(names), self.calendar.step_word)}, {names[0]} to {names[-1]}, are"
        return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"

    def _breaks(self, entries: dict[int, Entry], numbers: Iterable[int]) -> list[str]:
        """Steps that do not begin where the one before ended."""
        notes, name = [], self.preset.state_name
        for number in sorted({n for each in numbers for n in (each, each + 1)}):
            if number - 1 in entries and number in entries:
                ended, begins = entries[number - 1].happened.next_state, entries[number].happened.state
                if abs(ended - begins) > 1e-9 * max(abs(ended), 1):
                    before, now = (self.calendar.when(n) for n in (number - 1, number))
                    notes.append(
                        f"{now} begins with {name} {begins:g}, and {before} ended with {ended:g}; both count as given"
                    )
        return notes if len(notes) <= MANY else [*notes[:MANY], f"and {len(notes) - MANY} more like this"]

    def _rounded(self, entries: dict[int, Entry], numbers: Iterable[int]) -> list[str]:
        """Actions that there are not, and that count as the nearest."""
        notes, preset = [], self.preset
        for number in sorted(numbers):
            done = entries[number].happened.action
            counted = float(preset.action_quantities[preset.action_of(done)])
            if abs(done - counted) > 1e-9 * max(abs(done), 1):
                when, name = self.calendar.when(number), preset.action_name
                notes.append(f"{when}: {name} {done:g} counts as {counted:g}, the nearest that was learned of")
        return notes if len(notes) <= MANY else [*notes[:MANY], f"and {len(notes) - MANY} more like this"]

    # -- how it goes ------------------------------------------------------------------------------

    def status(self) -> Status:
        """What came of the advice so far, and whether what was learned still holds."""
        from ucbf.following.standing import status

        self.check_nothing_varies()
        return status(self)

    # -- acting -----------------------------------------------------------------------------------

    def act(
        self, state: float, date: Any = None, step: int | None = None, known: Mapping[str, Any] | None = None
    ) -> Advised:
        """What to do in a step, with all that is known.

        Parameters
        ----------
        state
            In the user's units.
        date, step
            When; the first step that is not in the journal if None.
        known
            Where it was learned with parameters that differ from episode to episode: those of the episode of this step,
            by name ("profile" for a forecast, "prices"). Each is [H], or a :class:`ucbf.data.Series` with dates.
        """
        return self.act_all([(state, date, step)], known)[0]

    def act_all(
        self, states: Sequence[tuple[float, Any, int | None]], known: Mapping[str, Any] | None = None
    ) -> list[Advised]:
        """What to do in many steps: state and date or step of each. known: as :meth:`act` has it."""
        from ucbf.following.standing import alarms

        contents = self.journal.read()
        entries, controllers = self.entries(contents), self.fresh()
        last = max(entries, default=0)
        numbers = [self.number_of(date, step, last + 1) for _, date, step in states]
        asked = []
        for (state, date, _), number in zip(states, numbers, strict=True):
            self.calendar.check_number(f"date {date}" if date else f"step {number}", number, max(last, 0))
            controller = self.controller_of(controllers, number)
            if self.model.varies or known:
                check_known(self.folder, self.model, known or {})
                controller = controller_with(controller, self.model, number, known or {})
            state = real(self.preset.state_name, state, -np.inf)
            asked.append((number, controller, state, self._place(controller, state)))
        said = [*self.notes_on(contents), *alarms(self, controllers, entries)]
        policies = {id(controller): self.policy_of(controller) for _, controller, _, _ in asked}
        return [
            self._advised(
                number, controller, policies[id(controller)], state, s, [*said, *self._behind(number, entries)]
            )
            for number, controller, state, s in asked
        ]

    def _place(self, controller: Controller, state: float) -> int:
        """The index of a state."""
        system, preset = controller.agent.system, self.preset
        s = int(preset.to_units(state))
        if s not in system.states:
            low, high = (system.states[i] * preset.unit for i in (0, -1))
            raise UserError(
                f"{preset.state_name} is {state:g}; it must be {low:g} to {high:g}, in the unit of {self.model.source}"
                ": correct it, or learn with other sizes"
            )
        return s - system.state_offset

    def _advised(
        self, number: int, controller: Controller, policy: Policy, state: float, s: int, said: list[str]
    ) -> Advised:
        calendar, preset, h = self.calendar, self.preset, self.calendar.place_of(number)
        counted = float((s + controller.agent.system.state_offset) * preset.unit)
        if abs(counted - state) > 1e-9 * max(1, abs(state)):
            said = [*said, f"{preset.state_name} {state:g} counts as {counted:g}, a multiple of {preset.unit:g}"]
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
            why=_why(controller, policy, h, s),
            warnings=tuple(said),
        )

    def _behind(self, number: int, entries: dict[int, Entry]) -> list[str]:
        """Steps before this one that the journal lacks; or that this one is there already."""
        missing = range(max((n for n in entries if n < number), default=0) + 1, number)
        said = []
        if missing:
            said.append(f"{self._listed(missing)} not in the journal: take in what happened (ucbf observe)")
        if number in entries:
            said.append(f"{self.calendar.when(number)} is in the journal already: this is what would be done now")
        return said


def _why(controller: Controller, policy: Policy, h: int, s: int) -> str:
    """The rule that the policy follows at this step, else what the action is ahead of."""
    rule, name = policy.rules()[h], controller.preset.action_name
    if rule.text != SEE_THE_TABLE:
        return f"{policy.step_names[h] if policy.words.steps else f'{policy.words.step} {h + 1}'}: {rule.text}"
    q, quantities = controller.agent.q[h, s], policy.choices
    order = [int(a) for a in np.argsort(-q, kind="stable") if np.isfinite(q[a])]
    best = int(policy.actions[h, s])
    others = [a for a in order if a != best]
    if not others:
        return f"it is the only {name} that is possible"
    ahead = float(q[best] - q[others[0]])
    return f"by expectation, {show_number(ahead)} ahead of {name} {quantities[others[0]]:g}, the next best"


def _in_words(step: Happened, words: dict[str, str]) -> str:
    parts = [(words[name], value) for name, value in step.record().items() if value is not None]
    return ", ".join(f"{name} {value:g}" for name, value in parts)


def follow(folder: str | os.PathLike[str]) -> Follower:
    """Follow the advice in a folder that ``ucbf learn`` wrote: take in what happened, and say what to do next."""
    return Follower(folder)

"""How things stand: what came of the advice, and whether what was learned still holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ucbf.following.accounts import Account, Reading, account
from ucbf.following.changes import FEWEST, SIGNIFICANT, Change, change, half_interval
from ucbf.following.entries import Entries
from ucbf.following.follower import Follower
from ucbf.following.knowledge import Knowledge
from ucbf.systems import Inventory
from ucbf.wording import a_step, show_count, show_number

LEARN_AGAIN = 0.5  # once so many steps were taken in, as a share of those that were learned from


@dataclass(frozen=True)
class Service:
    """How the demand was met."""

    met: float  # share of the demand that found stock; at most so much where some was not counted
    without_stock_out: int  # steps
    steps: int
    counted: bool  # whether all demand was counted


@dataclass(frozen=True)
class Status:
    """What came of the advice so far, in the user's units and in money a step."""

    preset: str
    step_word: str
    steps: int  # taken in
    first: str | None
    last: str | None
    next: str  # the step after the last
    missing: int  # steps before the last that are not in the journal
    in_series: int  # steps of the journal that are part of the series now
    reward: float | None  # a step
    expected: float | None  # of the advice, from the same states, the change of the state counted
    low: float | None  # 95 % interval of reward - expected
    high: float | None
    is_as_planned: bool | None  # whether chance explains the difference to what the plan expected of what was done
    expected_of_an_episode: float  # when it was learned
    unfollowed: float | None  # what doing something else than advised was expected to cost, a step
    followed: int  # steps at which the advice was followed
    advised: int  # steps at which it is known
    hidden: int  # steps at which an edge hid the amount
    level: Change | None  # of the amounts, less their forecasts where they have any
    level_now: str | None  # how high the last steps were, where what to do depends on it
    expected_by: str  # what amounts are measured from: "its forecast", "what its level let expect"; "" for nothing
    amount_name: str
    state_name: str
    service: Service | None
    contradictions: tuple[str, ...]
    learn_again: str
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON: nan is None."""
        found = asdict(self)
        found["level"] = None if self.level is None else {**self.level._asdict(), "has_changed": self.level.has_changed}
        plain: dict[str, Any] = _plain(found)
        return plain

    def __str__(self) -> str:
        return "\n".join([*self._lines(), *(f"note: {text}" for text in self.notes)])

    def _lines(self) -> Iterable[str]:
        word, per, n = self.step_word, a_step(self.step_word), self.steps
        if not n:
            yield f"{self.preset}: nothing taken in yet; the next {word} is {self.next}"
        else:
            missing = f"; {show_count(self.missing, word)} before the last missing" if self.missing else ""
            yield f"{self.preset}: {show_count(n, word)} taken in, {self.first} to {self.last}{missing}"
        yield from self._money()
        if self.advised:
            cost = ""
            if self.unfollowed is not None and self.unfollowed < -1e-9:
                cost = f"; doing otherwise was expected to cost {show_number(-self.unfollowed)} {per}, over all of them"
            yield f"advice followed: at {self.followed} of {show_count(self.advised, word)}{cost}"
        if self.level is not None:
            yield from self._amounts(self.level)
        if self.level_now is not None:
            yield f"level: {self.level_now}"
        if self.service is not None:
            most = "" if self.service.counted else " at most (not all demand was counted)"
            yield (
                f"service: {self.service.met:.1%} of the demand met{most}; {self.service.without_stock_out} of "
                f"{show_count(self.service.steps, word)} without a stock-out"
            )
        for text in self.contradictions:
            yield f"the model is contradicted: {text}"
        yield f"learn again: {self.learn_again}"

    def _money(self) -> Iterable[str]:
        if self.reward is None or self.expected is None:
            return
        word, per, difference = self.step_word, a_step(self.step_word), self.reward - self.expected
        yield (
            f"reward: {self.reward:.4g} {per}; the advice was expected to earn {self.expected:.4g} {per} from the same "
            f"{self.state_name} (both count what was left at its worth)"
        )
        verdict = f"too few {word}s to tell"
        if self.low is not None and self.high is not None and self.steps >= FEWEST:
            why = "that is more than chance"
            if self.low <= 0 <= self.high:
                why = "chance explains it"
            elif self.is_as_planned:
                why = "that the advice was not followed explains it"
            verdict = f"with 95 % confidence {self.low:+.3g} to {self.high:+.3g}; {why}"
        yield f"  is it what was expected? {_more(difference)} {per}: {verdict}"

    def _amounts(self, found: Change) -> Iterable[str]:
        word, per = self.step_word, a_step(self.step_word)
        what = f"{self.amount_name} above {self.expected_by}" if self.expected_by else self.amount_name
        yield f"{what}: {found.mean:.4g} {per}; {found.learned:.4g} {per} in what was learned from"
        by_chance = f"chance brings as large a difference in {100 * found.p:.2g} % of cases"
        if np.isnan(found.p):
            verdict = "not tested, as an edge hid some" if self.hidden else f"too few {word}s to tell"
        elif found.has_changed:
            verdict = f"it has changed; {by_chance}"
        else:
            verdict = f"no change is shown; {by_chance} (a change is reported below {100 * SIGNIFICANT:g} %)"
        share = "" if np.isnan(found.share) or self.expected_by else f" ({found.share:+.0%})"
        yield f"  is it what was learned? {_more(found.mean - found.learned)} {per}{share}: {verdict}"


def _more(difference: float) -> str:
    return f"{show_number(abs(difference))} {'more' if difference >= 0 else 'less'}"


def status(follower: Follower) -> Status:
    """How things stand."""
    contents = follower.journal.read()
    entries, calendar, now, learned = (
        follower.entries(contents),
        follower.calendar,
        follower.fresh(),
        follower.learned(),
    )
    readings: dict[int, Reading] = {}
    accounts = []
    for entry in entries.usable:
        number, ahead = entry.number, entry.ahead or {}
        before = now.context(number)
        readings |= follower.replay(now, [entry])
        contexts = before, now.context(number + 1)
        accounts.append(account(learned.plan(number, ahead), calendar.place_of(number), readings[number], contexts))
    found, hidden = changed_amounts(follower, now, entries, readings)
    contradictions = now.contradictions()
    advised = [(entry.happened.action, entry.advised) for entry in entries.values() if entry.advised is not None]
    changed = bool(contradictions) or (found is not None and found.has_changed)
    return Status(
        preset=follower.model.preset,
        step_word=calendar.step_word,
        steps=len(entries),
        first=calendar.when(min(entries)) if entries else None,
        last=calendar.when(entries.last) if entries else None,
        next=calendar.when(entries.last + 1),
        missing=entries.last - len(entries),
        in_series=entries.in_series,
        **_money(accounts),
        expected_of_an_episode=follower.model.expected,
        followed=sum(abs(done - said) <= follower.preset.unit / 2 for done, said in advised),
        advised=len(advised),
        hidden=hidden,
        level=found,
        level_now=None if (level := now.level(entries.last + 1)) is None else level.why,
        expected_by=_expected_by(follower, now),
        amount_name=follower.preset.amount_name,
        state_name=follower.preset.state_name,
        service=_service(follower, entries, readings),
        contradictions=tuple(contradictions),
        learn_again=_learn_again(follower, len(entries), entries.last, changed),
        notes=tuple(follower.notes_on(contents, entries)),
    )


def alarms(follower: Follower, knowledge: Knowledge, entries: Entries) -> list[str]:
    """What speaks against following the advice today. What is known learns from the journal."""
    readings = follower.replay(knowledge, entries.usable)
    found, _ = changed_amounts(follower, knowledge, entries, readings)
    said = []
    if found is not None and found.has_changed:
        way, by = "higher" if found.mean > found.learned else "lower", _expected_by(follower, knowledge)
        what = follower.preset.amount_name + (f", less {by}," if by else "")
        per = a_step(follower.calendar.step_word)
        said.append(
            f"the {what} is {way} than what was learned from: {found.mean:.4g} {per} against {found.learned:.4g}; "
            "learn again from recent data"
        )
    return [*said, *(f"the model is contradicted: {text}" for text in knowledge.contradictions())]


def _expected_by(follower: Follower, knowledge: Knowledge) -> str:
    if follower.model.has_forecast:
        return "its forecast"
    return "" if knowledge.level(1) is None else "what its level let expect"


def changed_amounts(
    follower: Follower, knowledge: Knowledge, entries: Entries, readings: dict[int, Reading]
) -> tuple[Change | None, int]:
    """Whether the amounts have changed, and how many of them an edge hid; it is not tested where any was."""
    calendar = follower.calendar
    steps = [
        (calendar.kind_of(n), calendar.place_of(n), reading.amount - knowledge.expected(n, entries[n].ahead or {}))
        for n, reading in readings.items()
    ]
    found, hidden = change(follower.model, steps), sum(reading.hidden for reading in readings.values())
    if found is not None and hidden:
        found = found._replace(p=np.nan)
    return found, hidden


def _money(accounts: list[Account]) -> dict[str, Any]:
    """Rewards a step, and by how much they differ from what was expected."""
    if not accounts:
        return dict.fromkeys(("reward", "expected", "low", "high", "is_as_planned", "unfollowed"))
    paid, better, unfollowed = (np.array(column) for column in zip(*accounts, strict=True))
    reach, luck = half_interval(better), better - unfollowed
    difference = float(better.mean())
    return {
        "reward": float(paid.mean()),
        "expected": float(paid.mean()) - difference,
        "low": difference - reach if np.isfinite(reach) else None,
        "high": difference + reach if np.isfinite(reach) else None,
        "is_as_planned": bool(abs(luck.mean()) <= half_interval(luck)),
        "unfollowed": float(unfollowed.mean()),
    }


def _service(follower: Follower, entries: Entries, readings: dict[int, Reading]) -> Service | None:
    if not isinstance(follower.preset, Inventory) or not readings:
        return None
    happened = [entries[n].happened for n in readings]
    there = np.array([max(step.state + step.action, 0.0) for step in happened])
    demand = np.array([reading.amount for reading in readings.values()])
    hidden = np.array([reading.hidden for reading in readings.values()])
    met = np.minimum(demand, there).sum() / demand.sum() if demand.sum() else 1.0
    enough = (demand <= there + 1e-9) & ~hidden
    return Service(float(met), int(enough.sum()), len(readings), not hidden.any())


def _learn_again(follower: Follower, steps: int, last: int, changed: bool) -> str:
    """When to learn again, and why."""
    if changed:
        return "now, from recent data: what happens is not what was learned"
    learned = follower.model.episodes * follower.calendar.horizon
    enough = int(np.ceil(LEARN_AGAIN * learned))
    due, share = enough - steps, f"{show_count(enough, follower.calendar.step_word)}, half of what was learned from"
    if due <= 0:
        return f"now, with a series that includes the journal's steps: it holds at least {share}"
    return f"about {follower.calendar.when(last + due)}, when the journal holds {share}; sooner if something changes"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value

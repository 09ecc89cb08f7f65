"""What to do, as the page says it: rules for each kind of episode, and for each level of the last steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ucbf.advice.judging import BY_LEVEL
from ucbf.advice.planner import EpisodeAdvice
from ucbf.advice.result import Advice
from ucbf.following.known import CALLED, FLAGS, PROMOTED, QUANTILES


@dataclass(frozen=True)
class Line:
    """A line of text, and what it is about."""

    about: str  # set before the text, with a colon; nothing is if it is empty
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.about else self.text


@dataclass(frozen=True)
class Rules:
    """What to do in one kind of episode."""

    kind: str  # the key of ``Advice.by_kind``, where there is one: its picture stands beside
    heading: str  # empty where there is one kind only
    lines: tuple[Line, ...]


def rules_of(advice: Advice) -> tuple[Rules, ...]:
    """What to do in each kind of episode; where every episode differs, in the one that comes, if it is known."""
    known = advice.varies
    plain = [
        Rules(
            kind,
            _heading(advice, each, known),
            (*map(_rule_line, each.policy.lines(first=each.begins)), *_for_others(advice, known)),
        )
        for kind, each in advice.by_kind.items()
    ]
    return (*plain, *_rules_by_level(advice))


def _heading(advice: Advice, each: EpisodeAdvice, known: tuple[str, ...]) -> str:
    """Which episodes this is for."""
    if not known:
        followed = advice.follows_level
        return f"{each.name}, whatever the level of the last steps".strip(", ").capitalize() if followed else each.name
    told = " and ".join(CALLED.get(name, name) for name in known if name not in (PROMOTED, QUANTILES))
    if not advice.is_coming:
        return f"With the {told or CALLED[PROMOTED]} of the last episode, which is past (from {_date(each.name)} on)"
    parts = [f"with the {told} given for it"] if told else []
    parts += ["where nothing is promoted"] if PROMOTED in known else []
    return f"The episode that comes, from {_date(each.name)} on, {' and '.join(parts)}"


def _for_others(advice: Advice, known: tuple[str, ...]) -> Iterator[Line]:
    """How to learn what to do in other episodes, where each is planned with what is known of it."""
    if not known:
        return
    flags = " ".join(dict.fromkeys(f"{FLAGS.get(name, name)} FILE" for name in known))
    state = f"--{advice.preset.state_name.replace(' ', '-')}"
    called = " and ".join(CALLED.get(name, name) for name in known if name != QUANTILES)
    command = f"`ucbf act FOLDER {state} {state[2:].upper()} {flags}`"
    yield Line("Each step", f"what to do follows from the {called} of it and of those to come: {command}.")


def _rules_by_level(advice: Advice) -> Iterator[Rules]:
    """What to do by the level of the last steps, where that predicts better."""
    if advice.by_level is None:
        return
    names, now = advice.by_level.regimes.names, advice.by_level.regimes.names[advice.by_level.now]
    what = "this is what ucbf act follows" if advice.follows_level else "ucbf act does not follow it: it did worse"
    for kind, policy in advice.by_level.policies.items():
        lines = str(policy).splitlines()
        for e, name in enumerate(names):
            lines = [line.replace(f"context {e}, ", f"{name}, ", 1) for line in lines]
        about = f"{kind}, by" if kind else "By"
        heading = f"{about} the level of the last steps, which is {now} now ({what})"
        yield Rules(BY_LEVEL + kind, heading, tuple(map(_rule_line, lines)))


def _rule_line(line: str) -> Line:
    """A line of a policy: the steps, and what to do in them."""
    steps, _, rule = line.partition(": ")
    return Line(steps, rule)


def _date(text: str) -> str:
    return text.removesuffix(" 00:00:00")

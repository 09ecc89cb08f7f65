"""What is said in the morning: what to do and why, and what became of steps that were taken in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ucbf.following.accounts import Plan
from ucbf.following.calendar import MANY
from ucbf.policies import Policy
from ucbf.rule_reading import SEE_THE_TABLE
from ucbf.wording import show_number


@dataclass(frozen=True)
class Taken:
    """What became of steps that were to be taken in, or out."""

    new: tuple[str, ...]  # when they were
    corrected: tuple[str, ...]
    known: tuple[str, ...]  # those that were there already, the same
    notes: tuple[str, ...]
    removed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "taken_in": self.new,
            "corrected": self.corrected,
            "known": self.known,
            "removed": self.removed,
            "notes": self.notes,
        }

    def __str__(self) -> str:
        lines = []
        for names, what in (
            (self.new, "taken in"),
            (self.corrected, "corrected"),
            (self.known, "already there, the same"),
            (self.removed, "taken out"),
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
    level: str | None  # that of the last steps, where what to do depends on it: "high"
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        at = f"{self.when}, {self.state_name} {self.state:g}: {self.action_name} {self.action:g}"
        said = [*(f"note: {text}" for text in self.notes), *(f"warning: {text}" for text in self.warnings)]
        return "\n".join([at, f"why: {self.why}", *said])


def why(plan: Plan, context: int, policy: Policy, h: int, s: int) -> str:
    """The rule that a policy follows at this step, else what the action is ahead of."""
    rule, name = policy.rules()[h], plan.preset.action_name
    if rule.text != SEE_THE_TABLE:
        return rule.text
    q, quantities = plan.q[h, context, s], policy.choices
    order = [int(a) for a in np.argsort(-q, kind="stable") if np.isfinite(q[a])]
    best = int(policy.actions[h, s])
    others = [a for a in order if a != best]
    if not others:
        return f"it is the only {name} that is possible"
    ahead = float(q[best] - q[others[0]])
    return f"by expectation, {show_number(ahead)} ahead of {name} {quantities[others[0]]:g}, the next best"

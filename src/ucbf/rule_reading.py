"""The rule that a policy follows, read off its table and said in a line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_PIECES = 4  # of a rule that can still be read
MOST_ROWS = 12  # of a table that stands for a rule
SEE_THE_TABLE = "no simple rule; see the table"


class Words(NamedTuple):
    """What things are called, and what an index means.

    state, action, step: their names, in tables and pictures; unit: how much one state is; action_quantities: [A] how
    much each action orders, releases, ..., else its number; verb: of an action that raises the state, as "order" in
    "order up to 23"; steps: [H] names of the steps, else they are numbered from 1
    """

    state: str = "state"
    action: str = "action"
    step: str = "step"
    unit: float = 1.0  # of the states
    action_quantities: NDArray[np.float64] | None = None  # [A] what each action means; its number if None
    verb: str | None = None  # of an action that raises the state: "order"
    steps: tuple[str, ...] | None = None  # [H] names of the steps; numbered from 1 if None
    total: str | None = None  # of a box whose axes add up to something, what that is: "stock and orders under way"


class Rule(NamedTuple):
    """What a policy does at one step.

    kind: "up to" (raise the state to ``level`` when it is below ``threshold``, as far as actions that exist come
    without passing it), "down to" (lower it to ``level`` when
    it is above ``threshold``), "amount" (lower it by ``threshold``, or to the end, and to ``level`` where that is
    more), "between" (raise it to ``threshold`` from low states, lower it to ``level`` from high ones), "pieces" (one
    action for each range of states) or "none"
    """

    kind: str
    text: str
    threshold: float | None = None
    level: float | None = None


class StepOfPolicy(NamedTuple):
    """What a policy does at one step, in the user's units."""

    states: NDArray[np.float64]  # [S], or [S, d] in a box
    quantities: NDArray[np.float64]  # [S] what is done
    words: Words
    choices: NDArray[np.float64]  # [A] the quantities that actions mean

    @property
    def most(self) -> float:
        """The largest quantity that an action means."""
        return float(self.choices.max())

    @property
    def least(self) -> float:
        """The smallest; below zero, the most by which an action lowers the state."""
        return float(self.choices.min())


def read_rule(step: StepOfPolicy) -> Rule:
    """The rule that a step of a policy follows, where it can be said in a line."""
    amounts, states, u = step.quantities, step.states, step.words.unit
    if states.ndim > 1:
        return _in_a_box(step)
    acts = np.abs(amounts) > 1e-9
    if not acts.any():
        return Rule("pieces", _do(step, 0.0))
    if (amounts > 0).any() and (amounts < 0).any():
        rule = _between(step)
        if rule is not None:
            return rule
    elif step.words.verb is not None:
        rule = _up_to(step, acts)
        if rule is not None:
            return rule
    else:
        rule = _as_there_is(step) or _down_to(step, acts)
        if rule is not None:
            return rule
    cuts = np.flatnonzero(np.diff(amounts)) + 1
    if len(cuts) >= MOST_PIECES:
        return Rule("none", SEE_THE_TABLE)
    starts = [0, *cuts]
    pieces = []
    for start, stop in zip(starts, [*cuts, len(states)], strict=True):
        low, high = states[start], states[stop - 1]
        where = "always" if stop - start == len(states) else (
            f"up to {high:g}" if start == 0 else f"from {low:g} on" if stop == len(states) else
            f"at {low:g}" if stop == start + 1 else f"from {low:g} to {high:g}"
        )  # fmt: skip
        pieces.append(f"{_do(step, amounts[start])} {where}")
    return Rule("pieces", ", ".join(pieces), threshold=float(states[cuts[0]] - u / 2) if len(cuts) == 1 else None)


def _in_a_box(step: StepOfPolicy) -> Rule:
    """A rule for what the axes add up to, or the table itself, if it is short."""
    amounts, states = step.quantities, step.states
    if np.ptp(amounts) <= 1e-9:
        return Rule("pieces", f"{_do(step, amounts[0])} always")
    totals, first, which = np.unique(
        np.rint(states.sum(axis=1) / step.words.unit), return_index=True, return_inverse=True
    )
    if step.words.total is not None and (np.abs(amounts - amounts[first][which]) <= 1e-9).all():
        used = step.choices[step.choices <= amounts.max() + 1e-9]  # a smaller largest order is part of the rule
        rule = read_rule(step._replace(states=totals * step.words.unit, quantities=amounts[first], choices=used))
        if rule.kind != "none":
            return rule._replace(text=f"{rule.text} ({step.words.total})")
    if len(states) <= MOST_ROWS:
        named = (f"{_do(step, q)} at {', '.join(f'{x:g}' for x in s)}" for s, q in zip(states, amounts, strict=True))
        return Rule("none", "; ".join(named))
    return Rule("none", SEE_THE_TABLE)


def _up_to(step: StepOfPolicy, acts: NDArray[np.bool_]) -> Rule | None:
    """Raise to one level from every state below a threshold, as far as the actions that exist allow."""
    amounts, states = step.quantities, step.states
    n = int(acts.sum())
    if not acts[:n].all() or (amounts[acts] < 0).any():
        return None
    reached = states[:n] + amounts[:n]
    level, most = float(reached.max()), step.most
    missing, pack = level - states[:n], _pack(step)
    fits = missing if pack is None else np.floor(missing / pack + 1e-9) * pack
    if (np.abs(amounts[:n] - np.minimum(fits, most)) > 1e-9).any():
        return None
    threshold = float(states[n]) if n < len(states) else float(states[-1]) + step.words.unit
    if len(set(amounts[:n])) == 1 and n > 1:
        return Rule("pieces", f"{step.words.verb} {amounts[0]:g} when below {threshold:g}", threshold)
    text = f"{step.words.verb} up to {level:g}" + (f", at most {most:g}" if (fits > most + 1e-9).any() else "")
    if n < len(states) and threshold < level - 1e-9:
        text += f" when below {threshold:g}"
    if pack is not None:
        text += f", in multiples of {pack:g}"
    return Rule("up to", text, threshold, level)


def _pack(step: StepOfPolicy) -> float | None:
    """The largest amount of which all actions are multiples; None if they are not multiples of more than a unit."""
    counts = step.choices / step.words.unit
    if not np.allclose(counts, np.rint(counts), rtol=0, atol=1e-9):
        return None
    units = int(np.gcd.reduce(np.rint(counts).astype(np.int64)))
    return units * step.words.unit if units > 1 else None


def _down_to(step: StepOfPolicy, acts: NDArray[np.bool_]) -> Rule | None:
    """Lower to one level from every state above a threshold, as far as a single action reaches."""
    amounts, states = step.quantities, step.states
    n = int(acts.sum())
    if n < 2 or not acts[len(states) - n :].all() or (amounts[acts] <= 0).any():
        return None
    left = states[-n:] - amounts[-n:]
    level, most = float(left.min()), step.most
    beyond = np.abs(left - level) > 1e-9
    if (np.abs(amounts[-n:][beyond] - most) > 1e-9).any() or beyond.all() or len(np.unique(amounts[-n:])) < 2:
        return None
    threshold = float(states[-n - 1]) if n < len(states) else float(states[0])
    limit = f", at most {most:g}" if beyond.any() else ""
    when = f" when above {threshold:g}" if threshold > level + 1e-9 else ""
    return Rule("down to", f"{step.words.action} down to {level:g}{limit}{when}", threshold, level)


def _between(step: StepOfPolicy) -> Rule | None:
    """Raise to one level from low states and lower to another from high ones, as far as a single action reaches."""
    amounts, states = step.quantities, step.states
    up, down = int((amounts > 0).sum()), int((amounts < 0).sum())
    if not (amounts[:up] > 0).all() or not (amounts[-down:] < 0).all():
        return None
    least = step.least
    reached = states + amounts
    low, high = float(reached[:up].max()), float(reached[-down:].min())
    if not np.allclose(amounts[:up], np.minimum(low - states[:up], step.most)):
        return None
    if not np.allclose(amounts[-down:], np.maximum(high - states[-down:], least)):
        return None
    verb = step.words.verb or step.words.action
    above, below = float(states[up]), float(states[-down - 1])
    when_low = f" when below {above:g}" if above < low - 1e-9 else ""
    when_high = f" when above {below:g}" if below > high + 1e-9 else ""
    limits = []
    if reached[0] < low - 1e-9:
        limits.append(f"{step.most:g} up")
    if reached[-1] > high + 1e-9:
        limits.append(f"{-least:g} down")
    limit = f" (at most {' and '.join(limits)} at once)" if limits else ""
    return Rule("between", f"{verb} up to {low:g}{when_low}, down to {high:g}{when_high}{limit}", low, high)


def _as_there_is(step: StepOfPolicy) -> Rule | None:
    """Lower the state by one amount, or as far as it goes, and from higher states down to a level."""
    amounts, states = step.quantities, step.states
    most, action = step.most, step.words.action
    for usual in np.unique(amounts[amounts > 0])[::-1]:
        plain = np.minimum(states, usual)
        beyond = amounts > plain + 1e-9
        level = float((states - amounts)[beyond].min()) if beyond.any() else np.inf
        if np.allclose(np.maximum(plain, np.minimum(states - level, most)), amounts):
            more = f", and all beyond {level + usual:g}" if beyond.any() else ""
            limit = f", at most {most:g}" if beyond.any() and states[-1] - level > most else ""
            text = f"{action} {usual:g}, or what there is{more}{limit}"
            return Rule("amount", text, float(usual), None if np.isinf(level) else level)
    return None


def _do(step: StepOfPolicy, amount: float) -> str:
    nothing = abs(amount) <= 1e-9 and step.words.action_quantities is not None
    return f"no {step.words.action}" if nothing else f"{step.words.action} {amount:g}"

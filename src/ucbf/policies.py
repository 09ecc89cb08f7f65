"""A policy in the user's words: as a table, and as the rule it follows where there is one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, whole
from ucbf.files import write_whole
from ucbf.planning import checked_policy
from ucbf.system import System

MOST_PIECES = 4  # of a rule that can still be read
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


class Rule(NamedTuple):
    """What a policy does at one step.

    kind: "up to" (raise the state to ``level`` when it is below ``threshold``), "down to" (lower it to ``level`` when
    it is above ``threshold``), "amount" (lower it by ``threshold``, or to the end, and to ``level`` where that is
    more), "between" (raise it to ``threshold`` from low states, lower it to ``level`` from high ones), "pieces" (one
    action for each range of states) or "none"
    """

    kind: str
    text: str
    threshold: float | None = None
    level: float | None = None


@dataclass(frozen=True, init=False, eq=False)
class Policy:
    """The actions of a policy, and how to read them.

    Parameters
    ----------
    system
        The system it is for.
    actions
        [H, S], or [S] for the same at every step: ``agent.policy``, ``plan.policy``.
    words
        What states, actions and steps are called.

    Examples
    --------
    >>> import ucbf
    >>> shop = ucbf.systems.Inventory(capacity=6, max_demand=3, horizon=2, order_cost=2, salvage=0)
    >>> policy = shop.policy(ucbf.optimal(shop.world()))
    >>> print(policy)
    day 1: order up to 2 when below 1
    day 2: order up to 1
    >>> policy.rows()[0]
    {'day': 1, 'stock': 0.0, 'order': 2.0}
    """

    system: System
    actions: NDArray[np.int64]  # [H, S]
    words: Words

    def __init__(self, system: System, actions: ArrayLike, words: Words | None = None) -> None:
        if not isinstance(system, System):
            raise TypeError(f"system is {system!r:.60}; give a ucbf.System")
        if words is not None and words.steps is not None and len(words.steps) != system.horizon:
            raise ValueError(f"steps has {len(words.steps)} names; give one for each of the {system.horizon} steps")
        object.__setattr__(self, "system", system)
        object.__setattr__(self, "actions", frozen(checked_policy(system, actions)))
        object.__setattr__(self, "words", words or Words())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.actions, dtype=dtype)

    # -- as an agent that stays as it is ------------------------------------------------------------

    def act(self, h: int, s: Any) -> int:
        """The action for state s at step h; between points of a continuous axis, that of the nearest."""
        space = self.system.space
        step = whole("step h", h, 0, self.system.horizon - 1)
        return int(self.actions[step, space.index(space.place("state", s))])

    def observe(self, h: int, s: Any, a: int, next_s: Any, disturbance: Any = None) -> None:
        """Learn nothing."""

    # -- as numbers -------------------------------------------------------------------------------

    @property
    def states(self) -> NDArray[np.float64]:
        """[S] the states, in the user's units; [S, d] in a box."""
        return np.asarray(self.system.states) * self.words.unit

    @property
    def quantities(self) -> NDArray[np.float64]:
        """[H, S] what is done, in the user's units."""
        meaning = self.words.action_quantities
        if meaning is None and self.system.actions.ndim == 1:
            meaning = self.system.actions
        return self.actions.astype(np.float64) if meaning is None else meaning[self.actions].astype(np.float64)

    @property
    def step_names(self) -> Sequence[str]:
        """[H] what the steps are called."""
        return self.words.steps or [str(h + 1) for h in range(self.system.horizon)]

    def rows(self) -> list[dict[str, Any]]:
        """A row for every step and state."""
        words, amounts, states = self.words, self.quantities, self.states.reshape(self.system.n_states, -1)
        axes = [words.state] if states.shape[1] == 1 else [f"{words.state} {k + 1}" for k in range(states.shape[1])]
        return [
            {
                words.step: step,
                **dict(zip(axes, state.astype(float).tolist(), strict=True)),
                words.action: float(amounts[h, s]),
            }
            for h, step in enumerate(words.steps or range(1, len(amounts) + 1))
            for s, state in enumerate(states)
        ]

    def table(self) -> Any:
        """The rows as a pandas table; as one of pyarrow's where pandas is not installed."""
        import pyarrow

        rows = self.rows()
        try:
            import pandas
        except ImportError:
            return pyarrow.Table.from_pylist(rows)
        return pandas.DataFrame(rows)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a file, whole or not at all."""
        rows = self.rows()
        lines = [",".join(rows[0]), *(",".join(_plain(value) for value in row.values()) for row in rows)]
        write_whole(Path(path), ("\n".join(lines) + "\n").encode())

    # -- as a rule --------------------------------------------------------------------------------

    def rules(self) -> list[Rule]:
        """[H] what it does at each step, where that can be said in a line."""
        return [self._rule(h) for h in range(self.system.horizon)]

    def __str__(self) -> str:
        """A line for each run of steps with the same rule."""
        rules, names, lines, h = self.rules(), self.step_names, [], 0
        while h < len(rules):
            end = h
            while end + 1 < len(rules) and rules[end + 1].text == rules[h].text:
                end += 1
            name = self.words.step if self.words.steps is None else ""
            span = names[h] if end == h else f"{names[h]} to {names[end]}"
            lines.append(f"{name} {span}: {rules[h].text}".strip())
            h = end + 1
        return "\n".join(lines)

    def _rule(self, h: int) -> Rule:
        amounts, states, u = self.quantities[h], self.states, self.words.unit
        if states.ndim > 1:
            same = np.ptp(amounts) <= 1e-9
            return Rule("pieces", f"{self._do(amounts[0])} always") if same else Rule("none", SEE_THE_TABLE)
        acts = np.abs(amounts) > 1e-9
        if not acts.any():
            return Rule("pieces", self._do(0.0))
        if (amounts > 0).any() and (amounts < 0).any():
            rule = self._between(amounts, states)
            if rule is not None:
                return rule
        elif self.words.verb is not None:
            rule = self._up_to(amounts, states, acts)
            if rule is not None:
                return rule
        else:
            rule = self._as_there_is(amounts, states) or self._down_to(amounts, states, acts)
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
            pieces.append(f"{self._do(amounts[start])} {where}")
        return Rule("pieces", ", ".join(pieces), threshold=float(states[cuts[0]] - u / 2) if len(cuts) == 1 else None)

    def _up_to(self, amounts: NDArray[np.float64], states: NDArray[np.float64], acts: NDArray[np.bool_]) -> Rule | None:
        """Raise to one level from every state below a threshold, as far as a single action reaches."""
        n = int(acts.sum())
        if not acts[:n].all() or (amounts[acts] < 0).any():
            return None
        reached = states[:n] + amounts[:n]
        level, most = float(reached.max()), self._most
        short = np.abs(reached - level) > 1e-9
        if (np.abs(amounts[:n][short] - most) > 1e-9).any():
            return None
        threshold = float(states[n]) if n < len(states) else float(states[-1]) + self.words.unit
        if len(set(amounts[:n])) == 1 and n > 1:
            return Rule("pieces", f"{self.words.verb} {amounts[0]:g} when below {threshold:g}", threshold)
        text = f"{self.words.verb} up to {level:g}" + (f", at most {most:g}" if short.any() else "")
        if n < len(states) and threshold < level - 1e-9:
            text += f" when below {threshold:g}"
        return Rule("up to", text, threshold, level)

    def _down_to(
        self, amounts: NDArray[np.float64], states: NDArray[np.float64], acts: NDArray[np.bool_]
    ) -> Rule | None:
        """Lower to one level from every state above a threshold, as far as a single action reaches."""
        n = int(acts.sum())
        if n < 2 or not acts[len(states) - n :].all() or (amounts[acts] <= 0).any():
            return None
        left = states[-n:] - amounts[-n:]
        level, most = float(left.min()), self._most
        beyond = np.abs(left - level) > 1e-9
        if (np.abs(amounts[-n:][beyond] - most) > 1e-9).any() or beyond.all() or len(np.unique(amounts[-n:])) < 2:
            return None
        threshold = float(states[-n - 1]) if n < len(states) else float(states[0])
        limit = f", at most {most:g}" if beyond.any() else ""
        when = f" when above {threshold:g}" if threshold > level + 1e-9 else ""
        return Rule("down to", f"{self.words.action} down to {level:g}{limit}{when}", threshold, level)

    def _between(self, amounts: NDArray[np.float64], states: NDArray[np.float64]) -> Rule | None:
        """Raise to one level from low states and lower to another from high ones, as far as a single action reaches."""
        up, down = int((amounts > 0).sum()), int((amounts < 0).sum())
        if not (amounts[:up] > 0).all() or not (amounts[-down:] < 0).all():
            return None
        least = float(0 if self.words.action_quantities is None else self.words.action_quantities.min())
        reached = states + amounts
        low, high = float(reached[:up].max()), float(reached[-down:].min())
        if not np.allclose(amounts[:up], np.minimum(low - states[:up], self._most)):
            return None
        if not np.allclose(amounts[-down:], np.maximum(high - states[-down:], least)):
            return None
        verb = self.words.verb or self.words.action
        above, below = float(states[up]), float(states[-down - 1])
        when_low = f" when below {above:g}" if above < low - 1e-9 else ""
        when_high = f" when above {below:g}" if below > high + 1e-9 else ""
        limits = [
            f"{x:g}"
            for x, short in ((self._most, reached[0] < low - 1e-9), (least, reached[-1] > high + 1e-9))
            if short
        ]
        limit = f" (at most {' or '.join(limits)} at once)" if limits else ""
        return Rule("between", f"{verb} up to {low:g}{when_low}, down to {high:g}{when_high}{limit}", low, high)

    def _as_there_is(self, amounts: NDArray[np.float64], states: NDArray[np.float64]) -> Rule | None:
        """Lower the state by one amount, or as far as it goes, and from higher states down to a level."""
        most, action = self._most, self.words.action
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

    @property
    def _most(self) -> float:
        """The largest amount that an action can mean."""
        quantities = self.words.action_quantities
        return float(self.system.n_actions - 1 if quantities is None else quantities.max())

    def _do(self, amount: float) -> str:
        nothing = abs(amount) <= 1e-9 and self.words.action_quantities is not None
        return f"no {self.words.action}" if nothing else f"{self.words.action} {amount:g}"


def _plain(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)

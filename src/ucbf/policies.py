"""A policy in the user's words: as a table, and as the rule it follows where there is one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen
from ucbf.files import write_whole
from ucbf.planning import checked_policy
from ucbf.rule_reading import Rule, StepOfPolicy, Words, read_rule
from ucbf.system import System


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
        if words is not None and words.steps is not None and len(words.steps) != system.n_steps:
            raise ValueError(f"steps has {len(words.steps)} names; give one for each of the {system.n_steps} steps")
        object.__setattr__(self, "system", system)
        object.__setattr__(self, "actions", frozen(checked_policy(system, actions)))
        object.__setattr__(self, "words", words or Words())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.actions, dtype=dtype)

    # -- as an agent that stays as it is ------------------------------------------------------------

    def act(self, h: int, s: Any, context: int | None = None) -> int:
        """The action for state s at step h; between points of a continuous axis, that of the nearest."""
        step = self.system.step(h)
        return self.system.nearest_allowed(step, self.system.place("state", s, context), self.actions[step])

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
        return self.choices[self.actions]

    @property
    def choices(self) -> NDArray[np.float64]:
        """[A] what each action means, in the user's units; its number, where that is not known."""
        if self.words.action_quantities is not None:
            return self.words.action_quantities.astype(np.float64)
        actions = self.system.actions
        return (actions if actions.ndim == 1 else np.arange(len(actions))).astype(np.float64)

    @property
    def step_names(self) -> Sequence[str]:
        """[H] what the steps are called."""
        return self.words.steps or [str(h + 1) for h in range(self.system.n_steps)]

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
        return [read_rule(StepOfPolicy(self.states, done, self.words, self.choices)) for done in self.quantities]

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


def _plain(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)

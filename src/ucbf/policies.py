"""A policy in the user's words: as a table, and as the rule it follows where there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, whole
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
        [H, S], or [S] for the same at every step: ``agent.policy``, ``plan.policy``. Without an end [P, S], for the
        steps of a period; with contexts E times as many states, context by context.
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
        """The action for state s at step h; between points of a continuous axis, that of the nearest.

        context: where the system has them
        """
        step, place = self.system.step(h), self.system.place("state", s, context)
        return self.system.nearest_allowed(step, place, self.actions[step])

    def observe(
        self,
        h: int,
        s: Any,
        a: int,
        next_s: Any,
        disturbance: Any = None,
        context: int | None = None,
        next_context: int | None = None,
    ) -> None:
        """Learn nothing."""

    # -- as numbers -------------------------------------------------------------------------------

    @property
    def states(self) -> NDArray[np.float64]:
        """[S] the states, in the user's units; [S, d] in a box; whatever the context."""
        return np.asarray(self.system.states) * self.words.unit

    @property
    def quantities(self) -> NDArray[np.float64]:
        """[H, S] what is done, in the user's units; with contexts as ``actions``."""
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
        """[H] what the steps are called; without an end, those of a period."""
        return self.words.steps or [str(h + 1) for h in range(self.system.n_steps)]

    def quantities_in(self, context: int | None = None) -> NDArray[np.float64]:
        """[H, S] what is done in a context, in the user's units; it must be said where the system has contexts."""
        E, S = self.system.n_contexts, self.system.space.n_states
        if context is None and E > 1:
            raise TypeError(f"the system has {E} contexts; say in which: context=")
        e = 0 if context is None else whole("context", context, 0, E - 1)
        return self.quantities[:, e * S : (e + 1) * S]

    def rows(self) -> list[dict[str, Any]]:
        """A row for every step and state, and for every context, where there are any; without an end, of one period."""
        words, E, states = self.words, self.system.n_contexts, self.states.reshape(self.system.space.n_states, -1)
        amounts = [self.quantities_in(e) for e in range(E)]
        axes = [words.state] if states.shape[1] == 1 else [f"{words.state} {k + 1}" for k in range(states.shape[1])]
        return [
            {
                words.step: step,
                **({"context": e} if E > 1 else {}),
                **dict(zip(axes, map(_tidy, state), strict=True)),
                words.action: _tidy(amounts[e][h, s]),
            }
            for h, step in enumerate(words.steps or range(1, self.system.n_steps + 1))
            for e in range(E)
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

    def rules(self, context: int | None = None) -> list[Rule]:
        """[H] what it does at each step, where that can be said in a line. context: where the system has them."""
        done = self.quantities_in(context)
        return [read_rule(StepOfPolicy(self.states, step, self.words, self.choices)) for step in done]

    def __str__(self) -> str:
        """A line for each run of steps with the same rule, context by context."""
        E = self.system.n_contexts
        return "\n".join((f"context {e}, " if E > 1 else "") + line for e in range(E) for line in self.lines(e))

    def lines(self, context: int | None = None, first: int = 0) -> Iterator[str]:
        """A line for each run of steps with the same rule. context: where there are any; first: the step to begin with.

        The same in all steps is said once, where there is no end.
        """
        names, h, words, rules = self.step_names, first, self.words, self.rules(context)
        if self.system.horizon is None and words.steps is None and len({rule.text for rule in rules}) == 1:
            yield f"every {words.step}: {rules[0].text}"
            return
        while h < len(rules):
            end = h
            while end + 1 < len(rules) and rules[end + 1].text == rules[h].text:
                end += 1
            name = words.step if words.steps is None else ""
            span = names[h] if end == h else f"{names[h]} to {names[end]}"
            yield f"{name} {span}: {rules[h].text}".strip()
            h = end + 1


def _tidy(x: Any) -> float:
    """1.7 where multiples of a unit of 0.1 make it 1.7000000000000002."""
    return float(f"{x:.12g}")


def _plain(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)

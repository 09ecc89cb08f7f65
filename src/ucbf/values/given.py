"""What users pass to fits and searches, checked before any work is done."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucbf.checks import integers, numbers
from ucbf.large import LargeSystem, Rows
from ucbf.values.paths import Outcomes, Rule, middle

TRIED_PATHS, TRIED_STEPS = 8, 20  # on which a rule of the user's is asked


def the_states(name: str, system: LargeSystem, states: Any) -> Rows:
    """[N, d] states of the system."""
    rows = numbers(name, states)
    if rows.ndim != 2 or rows.shape[1] != system.n_axes or not len(rows):
        raise ValueError(f"{name} has shape {rows.shape}; give [N, {system.n_axes}]: a row for each state")
    outside = ((rows < system.low) | (rows > system.high)).any(axis=1)
    if outside.any():
        raise ValueError(
            f"{name} has {rows[int(outside.argmax())]}, outside {system.low}..{system.high}; give states of the system"
        )
    return integers(name, rows) if system.whole_states else rows


def the_state(name: str, system: LargeSystem, s: Any) -> Rows:
    """[d] a state of the system."""
    state = np.atleast_1d(numbers(name, s))
    if state.shape != (system.n_axes,):
        raise ValueError(f"{name} has shape {state.shape}; give one state: [{system.n_axes}]")
    return the_states(name, system, state[None]).reshape(-1)


def the_first(system: LargeSystem, start: Any) -> Rows:
    """[d] the first state: the one nearest to zero, unless another is given."""
    return middle(system, 1)[0] if start is None else the_state("start", system, start)


def the_rule(name: str, system: LargeSystem, outcomes: Outcomes, rule: Any, first: Rows) -> Rule:
    """A rule of the user's, which was asked along a few short paths: it gives actions that exist."""
    if not callable(rule):
        raise TypeError(f"{name} is {rule!r:.60}; give a rule: a function of the step and states [N, d], for actions")
    rng, s = np.random.default_rng(0), np.repeat(first[None], TRIED_PATHS, axis=0)
    shape = (TRIED_PATHS, system.n_parts)
    for t in range(min(system.horizon or TRIED_STEPS, TRIED_STEPS)):
        h = t if system.horizon is not None else 0
        try:
            a = np.asarray(rule(h, np.array(s)))
        except Exception as error:
            raise TypeError(
                f"{name} failed when it was called with step {h} and states of shape {s.shape}: "
                f"{type(error).__name__}: {error}; write it so that it answers for all rows at once"
            ) from error
        if a.shape != shape:
            raise ValueError(
                f"{name} gives shape {a.shape} for {TRIED_PATHS} states; it must be {shape}, a row for each state"
                + (": a[:, None]" if a.shape == shape[:1] else "")
            )
        exist = system.has(h, s, a)
        if not exist.all():
            i = int((~exist).argmax())
            raise ValueError(
                f"{name} takes action {a[i]} in state {s[i]}, which does not exist there; correct the rule "
                "(system.existing(h, s, a) gives the nearest that does)"
            )
        s = system.step(h, s, a, outcomes.draw(rng, TRIED_PATHS))[1]
    return rule  # type: ignore[no-any-return]

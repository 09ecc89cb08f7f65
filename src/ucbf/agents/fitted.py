"""UCBVI-f where a table would not fit: the law of W is learned, and values are fitted anew when that is due."""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, one_of, whole
from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem, Rows, require_large
from ucbf.saving import plain, read_arrays, write_arrays
from ucbf.values import Backward, Fitted, backward_induction, policy_iteration
from ucbf.values.given import the_state

FIRST = 20  # disturbances that are seen before values are fitted for the second time
GROWTH = 1.6  # by which those seen have grown when they are fitted again
TIMES = 200  # that hidden disturbances are shared out anew, at most


class FittedUCBVIf:
    """Counts the disturbances and fits values with them; what ``UCBVIf(system, values=...)`` makes.

    Every transition is a sample of W for every pair, as in :class:`ucbf.UCBVIf`. Fitting takes seconds, so that it is
    done anew only when the samples have grown by the factor 1.6. Where a boundary hides W, the transition says which
    values it may have been, and they are shared out by expectation and maximisation.

    Parameters
    ----------
    system
        A :class:`ucbf.LargeSystem` that says its ``disturbance_range``.
    values
        "fitted", or the options of :func:`ucbf.values.policy_iteration` (no end) or
        :func:`ucbf.values.backward_induction` (an end), as a dictionary.
    """

    name = "UCBVI-f, fitted"

    def __init__(self, system: LargeSystem, *, values: str | dict[str, Any] = "fitted") -> None:
        if values != "fitted" and not isinstance(values, dict):
            raise TypeError(f"values is {values!r:.60}; give 'fitted', or a dictionary of options of the fit")
        self.system, self.options = require_large(system), {} if isinstance(values, str) else dict(values)
        known = [name for name in inspect.signature(self._fits).parameters if name not in ("system", "law")]
        for option in self.options:
            one_of("option of values", option, known)
        self.possible: Rows = system.disturbances
        self.sets: dict[bytes, int] = {}  # which disturbances a transition may have shown, and how often
        self.steps, self.due = 0, 0
        self._rule: Fitted | Backward | None = None
        self._told: NDArray[np.float64] = np.zeros(0)  # [n] the law that the rule was fitted with

    def __repr__(self) -> str:
        return f"FittedUCBVIf({self.system!r}, {self.steps} disturbances seen)"

    # -- learning ---------------------------------------------------------------------------------

    def observe(self, h: int, s: ArrayLike, a: Any, next_s: ArrayLike, disturbance: ArrayLike | None = None) -> None:
        """Learn from one transition; disturbance: W, where it was measured."""
        if disturbance is not None:
            given = self._disturbances("disturbance", disturbance, 1)
            may_be = (self.possible == given).all(axis=1)
        else:
            state = self._state("s", s)
            act = self._action(h, state, a)
            then = self.system.met(self.system.after(h, state, act) + self.possible)
            may_be = (then == self._state("next_s", next_s)).all(axis=1)
        self._add(may_be, "this transition" if disturbance is None else f"disturbance {given[0]}")

    def warm_start(self, disturbances: ArrayLike) -> None:
        """Learn from disturbances [K, k] alone."""
        for w in self._disturbances("disturbances", disturbances):
            self._add((self.possible == w).all(axis=1), f"disturbance {w}")

    def _disturbances(self, name: str, given: ArrayLike, n: int | None = None) -> Rows:
        """[K, k] disturbances; numbers are rows of one coordinate."""
        rows, k = numbers(name, given), self.system.n_raw
        shaped = rows.reshape(-1, 1) if k == 1 else np.atleast_2d(rows)
        if shaped.ndim != 2 or shaped.shape[1] != k or n not in (None, len(shaped)):
            raise ValueError(
                f"{name} has shape {rows.shape}; give {[k] if n else f'[K, {k}]'}, a number for each one of f"
            )
        return shaped

    def _state(self, name: str, s: ArrayLike) -> Rows:
        return the_state(name, self.system, s)[None]

    def _action(self, h: int, state: Rows, a: Any) -> Rows:
        """[1, m] an action that exists in a state [1, d]."""
        system, act = self.system, np.atleast_1d(numbers("a", a))[None]
        if act.shape != (1, system.n_parts) or not system.has(self._step(h), state, act)[0]:
            raise ValueError(f"a is {a!r:.60} in state {state[0]}; give an action that exists there")
        return act if system.continuous else system.actions[system.at_most(act)]

    def _step(self, h: int) -> int:
        return whole("h", h, 0, None if self.system.horizon is None else self.system.horizon - 1)

    def _add(self, may_be: NDArray[np.bool_], what: str) -> None:
        if not may_be.any():
            raise ValueError(
                f"no disturbance of the declared range {self.possible[0]}..{self.possible[-1]} explains {what}; "
                "correct it, or f, or declare a wider disturbance_range"
            )
        key = np.packbits(may_be).tobytes()
        self.sets[key] = self.sets.get(key, 0) + 1
        self.steps += 1

    @property
    def law(self) -> Disturbance:
        """The distribution of W as it is believed now: samples, and one more that is spread evenly."""
        n = len(self.possible)
        sets = np.array([np.unpackbits(np.frombuffer(key, np.uint8), count=n) for key in self.sets], float)
        counts, p = np.array(list(self.sets.values()), float), np.full(n, 1 / n)
        sets = sets.reshape(-1, n)
        for _ in range(TIMES):
            shown = sets * p
            shared: NDArray[np.float64] = (shown / np.maximum(shown.sum(axis=1, keepdims=True), 1e-300)).T @ counts
            new = (shared + 1 / n) / (self.steps + 1)
            if np.abs(new - p).max() < 1e-10:
                break
            p = new
        return Disturbance(p / p.sum(), values=self.possible)

    # -- acting -----------------------------------------------------------------------------------

    def renew(self) -> None:
        """Fit anew, if that is due."""
        if self._rule is not None and self.steps < self.due:
            return
        self._fit(self.law.pmf[0])
        self.due = max(FIRST, int(np.ceil(GROWTH * self.steps)))

    def _fit(self, pmf: NDArray[np.float64]) -> None:
        self._rule, self._told = self._fits(self.system, Disturbance(pmf, values=self.possible), **self.options), pmf

    @property
    def _fits(self) -> Any:
        """What fits values."""
        return policy_iteration if self.system.horizon is None else backward_induction

    @property
    def rule(self) -> Any:
        """The rule that is acted by now, and how it was judged with the law that was believed then."""
        self.renew()
        return self._rule

    def act(self, h: int, s: ArrayLike) -> Any:
        """The action in a state [d]: a number, or a row."""
        step, state = self._step(h), self._state("s", s)
        a = self.rule(step, state)[0]
        return a[0] if self.system.plain_actions else a

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was seen of W; functions are not saved, and :func:`ucbf.load` fits the same values again."""
        options = {name: plain(f"{name} of values", option) for name, option in self.options.items()}
        arrays: dict[str, NDArray[Any]] = {
            **{f"said.{name}": answers for name, answers in self.system.sampled().items()},
            "sets": np.frombuffer(b"".join(self.sets), np.uint8),
            "counts": np.array(list(self.sets.values()), np.int64),
            "possible": self.possible,
            "told": self._told,
        }
        write_arrays(path, {"agent": self.name, "options": options, "due": self.due}, arrays)

    @classmethod
    def loaded(cls, path: str | os.PathLike[str], system: LargeSystem, largest: int) -> FittedUCBVIf:
        """The agent of a file, in the system that was stated again."""
        about, arrays = read_arrays(path, largest)
        if about.get("agent") != cls.name:
            raise ValueError(f"{path} holds a {about.get('agent')!r}, not a {cls.name!r}; leave out system=")
        made = cls(system, values=dict(about["options"]))
        if not np.array_equal(arrays["possible"], made.possible):
            raise ValueError(f"{path} was saved with another disturbance_range; state the system as it was")
        told = {name.removeprefix("said."): rows for name, rows in arrays.items() if name.startswith("said.")}
        said = made.system.sampled()
        for name in said:
            mine, theirs = said[name], told.get(name, np.zeros(0))
            if mine.shape != theirs.shape or not np.allclose(mine, theirs, 1e-9, 1e-9):
                raise ValueError(f"{path} was saved with another {name}; state the system as it was")
        width, counts = -(-len(made.possible) // 8), arrays["counts"]
        if arrays["sets"].shape != (width * len(counts),) or (counts < 1).any():
            raise ValueError(f"{path} does not hold this agent: its counts do not fit; save it again")
        content = arrays["sets"].tobytes()
        made.sets = {content[i * width : (i + 1) * width]: whole("counts", int(n), 1) for i, n in enumerate(counts)}
        made.steps, made.due = int(counts.sum()), whole("due", about["due"], 0)
        if len(arrays["told"]):
            made._fit(arrays["told"])
        return made

"""UCBVI-f where a table would not fit: the law of W is learned, and values are fitted anew when that is due."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, whole
from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem, Rows
from ucbf.saving import read_arrays, write_arrays
from ucbf.values import Backward, Fitted, backward_induction, policy_iteration

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
        if not isinstance(system, LargeSystem):
            raise TypeError(
                f"system is {system!r:.60}; values are fitted of a ucbf.LargeSystem (a preset has one: .large)"
            )
        if values != "fitted" and not isinstance(values, dict):
            raise TypeError(f"values is {values!r:.60}; give 'fitted', or a dictionary of options of the fit")
        self.system, self.options = system, {} if isinstance(values, str) else dict(values)
        self.possible: Rows = system.disturbances
        self.sets: dict[bytes, int] = {}  # which disturbances a transition may have shown, and how often
        self.steps, self.due = 0, 0
        self._rule: Fitted | Backward | None = None
        self._told: NDArray[np.float64] = np.zeros(0)  # [n] the law that the rule was fitted with

    # -- learning ---------------------------------------------------------------------------------

    def observe(self, h: int, s: ArrayLike, a: Any, next_s: ArrayLike, disturbance: ArrayLike | None = None) -> None:
        """Learn from one transition; disturbance: W, where it was measured."""
        if disturbance is not None:
            may_be = (self.possible == numbers("disturbance", disturbance)).all(axis=1)
        else:
            state, act = np.atleast_2d(np.asarray(s)), np.asarray(a).reshape(1, -1)
            then = self.system.met(self.system.after(h, state, act) + self.possible)
            may_be = (then == np.asarray(next_s)).all(axis=1)
        self._add(may_be)

    def warm_start(self, disturbances: ArrayLike) -> None:
        """Learn from disturbances [K, k] alone."""
        for w in np.atleast_2d(numbers("disturbances", disturbances)):
            self._add((self.possible == w).all(axis=1))

    def _add(self, may_be: NDArray[np.bool_]) -> None:
        if not may_be.any():
            raise ValueError(
                "no disturbance of the declared range explains this transition; correct f, or declare a wider "
                "disturbance_range"
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
        fit: Any = policy_iteration if self.system.horizon is None else backward_induction
        self._rule, self._told = fit(self.system, Disturbance(pmf, values=self.possible), **self.options), pmf

    @property
    def rule(self) -> Any:
        """The rule that is acted by now, and how it was judged with the law that was believed then."""
        self.renew()
        return self._rule

    def act(self, h: int, s: ArrayLike) -> Any:
        """The action in a state [d]: a number, or a row."""
        self.renew()
        a = self.rule(h, np.atleast_2d(np.asarray(s)))[0]
        return a[0] if self.system.plain_actions else a

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was seen of W; functions are not saved, and :func:`ucbf.load` fits the same values again."""
        arrays: dict[str, NDArray[Any]] = {
            "sets": np.frombuffer(b"".join(self.sets), np.uint8),
            "counts": np.array(list(self.sets.values()), np.int64),
            "possible": self.possible,
            "told": self._told,
        }
        write_arrays(path, {"agent": self.name, "options": self.options, "due": self.due}, arrays)

    @classmethod
    def loaded(cls, path: str | os.PathLike[str], system: LargeSystem, largest: int) -> FittedUCBVIf:
        """The agent of a file, in the system that was stated again."""
        about, arrays = read_arrays(path, largest)
        if about.get("agent") != cls.name:
            raise ValueError(f"{path} holds a {about.get('agent')!r}, not a {cls.name!r}; leave out system=")
        made = cls(system, values=dict(about["options"]))
        if not np.array_equal(arrays["possible"], made.possible):
            raise ValueError(f"{path} was saved with another disturbance_range; state the system as it was")
        width, counts = -(-len(made.possible) // 8), arrays["counts"]
        if arrays["sets"].shape != (width * len(counts),) or (counts < 1).any():
            raise ValueError(f"{path} does not hold this agent: its counts do not fit; save it again")
        content = arrays["sets"].tobytes()
        made.sets = {content[i * width : (i + 1) * width]: whole("counts", int(n), 1) for i, n in enumerate(counts)}
        made.steps, made.due = int(counts.sum()), whole("due", about["due"], 0)
        if len(arrays["told"]):
            made._fit(arrays["told"])
        return made

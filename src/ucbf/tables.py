"""From what a user wrote to arrays: functions and tables, checked once."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import LARGEST_RETURN, array_of, numbers, whole, within

Table = ArrayLike | Callable[..., Any]

Asked = Callable[[slice], tuple[NDArray[Any], ...]]  # the arrays of a part of the first axis

LARGEST_TABLE = 2**28
AT_ONCE = 2**21  # numbers that a function is asked for
SMALL = 2**30
PART = 2**16  # numbers of a larger table that it is asked for at a time: they stay in the cache
STEP_NAMES = {"h", "step", "t", "stage"}


class Function:
    """A function of the user's, of states and actions or of raw next states, perhaps with the step before them.

    Parameters
    ----------
    name
        What it is called, in errors.
    arguments
        How many it takes beside the step.
    rows
        Whether it is asked for rows [N, d], one state each; else for arrays of numbers.
    """

    def __init__(self, name: str, function: Any, arguments: int, rows: bool) -> None:
        if not callable(function):
            what = "states [N, d] and actions" if arguments == 2 else "states [N, d]"
            raise TypeError(f"{name} is {function!r:.60}; give a function of {what}")
        self.name, self.function, self.rows = name, function, rows
        self.per_step = takes_the_step(name, function, arguments)

    def __call__(self, h: int, shape: tuple[int, ...], *arrays: NDArray[Any]) -> NDArray[Any]:
        """Its answer at step h, of that shape; an error for one of another shape."""
        return self._answer(h, shape, *(np.array(array) for array in arrays))  # it may work in place

    def asked(self, h: int, *arrays: NDArray[Any]) -> Any:
        """What it returns at step h, of whatever shape."""
        try:
            return self.function(h, *arrays) if self.per_step else self.function(*arrays)
        except Exception as error:
            shapes = " and ".join(str(array.shape) for array in (arrays if self.rows else arrays[:1]))
            hint = "rows at once; s[:, 0] is the first coordinate" if self.rows else "at once"
            raise TypeError(
                f"{self.name} failed when it was called with arrays of shape {shapes}: {type(error).__name__}: "
                f"{error}; write it so that it answers for all {hint} (np.maximum, np.where, & and |, not max, if, "
                "and, or)"
            ) from error

    def _answer(self, h: int, shape: tuple[int, ...], *arrays: NDArray[Any]) -> NDArray[Any]:
        """The same, asked for arrays that nobody else has."""
        answer = self.asked(h, *arrays)
        given = array_of(self.name, answer)
        if self.rows and (given.shape == (*shape, 1) or (given.shape == shape[:1] and shape[1:] == (1,))):
            given = given.reshape(shape)
        if given.shape not in {shape, ()}:
            raise ValueError(
                f"{self.name}, called with arrays of shape {arrays[0].shape}, returned shape {given.shape}; it must be "
                f"{shape}: write it with numpy functions, so that it answers for all at once"
            )
        return np.broadcast_to(given, shape)

    def steps(self, horizon: int, shape: tuple[int, ...], asked: Asked) -> NDArray[Any]:
        """[1, ...] of its answers where all steps are alike, else [H, ...]; each entry is answered by itself.

        asked: the arrays that it is asked for, of a part of the first axis of ``shape``
        """
        if self.per_step and horizon * math.prod(shape) > LARGEST_TABLE:
            raise ValueError(
                f"{self.name} depends on the step: {horizon} tables of shape {shape} have more than {LARGEST_TABLE} "
                "numbers; state a shorter horizon, or take a coarser unit"
            )
        tables = [self._table(0, shape, asked)]
        self._check_alone(tables[0], asked)
        for h in range(1, horizon if self.per_step else 1):
            table = self._table(h, shape, asked)
            if len(tables) > 1 or not np.array_equal(table, tables[0]):
                tables += [tables[0]] * (h - len(tables)) + [table]
        return tables[0][None] if len(tables) == 1 else np.stack(tables)

    def _table(self, h: int, shape: tuple[int, ...], asked: Asked) -> NDArray[Any]:
        """Its answers at step h, in an array of their own; of large tables some rows at a time."""
        if math.prod(shape) > AT_ONCE:
            try:
                return self._in_parts(h, shape, asked)
            except (TypeError, ValueError):  # one that knows the sizes answers for all or none
                pass
        return np.array(self(h, shape, *asked(slice(0, shape[0]))))

    def _in_parts(self, h: int, shape: tuple[int, ...], asked: Asked) -> NDArray[Any]:
        """Its answers at step h, asked for some rows at a time: as quick, and in little memory."""
        rows, table = max(1, PART // math.prod(shape[1:])), None
        for i in range(0, shape[0], rows):
            part = slice(i, min(i + rows, shape[0]))
            answer = narrowed(self._answer(h, (part.stop - i, *shape[1:]), *asked(part)))
            if table is None:
                table = np.empty(shape, answer.dtype)
            elif not np.can_cast(answer.dtype, table.dtype):
                table = table.astype(np.result_type(answer.dtype, table.dtype))
            table[part] = answer
        assert table is not None
        return table

    def _check_alone(self, table: NDArray[Any], asked: Asked) -> None:
        """An error if it answers otherwise for a state alone than among others: it sums over them."""
        n = len(table)
        for i in {0, n // 2, n - 1} if self.rows else {n - 1}:
            part = slice(i, i + 1)
            one = list(asked(part)) if self.rows else [array[..., -1:] for array in asked(part)]
            shape = (1, *table.shape[1:]) if self.rows else (1,) * table.ndim
            try:
                alone = self(0, shape, *one).astype(np.float64)
            except (TypeError, ValueError):  # one that knows the sizes answers for all states or none
                return
            among = (table[part] if self.rows else table[part][..., -1:]).astype(np.float64)
            if not np.allclose(alone, among, rtol=1e-9, atol=1e-12, equal_nan=True):
                where = ", ".join(str(array.item() if array.size == 1 else array[0]) for array in one)
                raise ValueError(
                    f"{self.name} is {_short(alone)} for {where} alone and {_short(among)} among others; write it so "
                    "that every entry is answered by itself, without sums over states: s[:, 0], np.sum(..., axis=1)"
                )


def narrowed(table: NDArray[Any]) -> NDArray[Any]:
    """Integers in half the memory, where they are small."""
    small = table.dtype.kind == "i" and within(table, SMALL)
    return table.astype(np.int32, copy=False) if small else table


def is_large_table(table: NDArray[Any]) -> bool:
    """Whether a table is so large that its integers are narrowed."""
    return table.size > AT_ONCE


class AtAnyState:
    """The functions of a box, asked at any state, also between points. Actions are given by index."""

    def __init__(self, actions: NDArray[Any], functions: dict[str, Function], is_whole: NDArray[np.bool_]) -> None:
        self.actions, self.functions, self.is_whole = actions, functions, is_whole

    def after(self, h: int, states: NDArray[Any], actions: NDArray[np.int64]) -> NDArray[Any]:
        """[N, d] where actions [N] lead from states [N, d] before the disturbance."""
        f = self._asked("f", h, states.shape, states, self.actions[actions])
        uneven = np.argwhere(self.is_whole & (f != np.rint(f)))
        if len(uneven):
            i, k = uneven[0]
            raise ValueError(
                f"f sends state {states[i]}, action {self.actions[actions[i]]} at step {h} to {f[i]}; along axis {k}, "
                "which is whole, it must be a whole number"
            )
        return f

    def reward(self, h: int, states: NDArray[Any], actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """[N] what actions [N] pay in states [N, d]."""
        return self._asked("reward", h, (len(states),), states, self.actions[actions])

    def allowed(self, h: int, states: NDArray[Any], actions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[N] whether actions [N] exist in states [N, d]."""
        if "allowed" not in self.functions:
            return np.ones(len(states), np.bool_)
        return self.functions["allowed"](h, (len(states),), states, self.actions[actions]).astype(bool)

    def landing(self, h: int, raw: NDArray[Any]) -> NDArray[np.float64]:
        """[N] what raw next states [N, d] pay."""
        return self._asked("landing", h, (len(raw),), raw)

    def terminal(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """[N] what last states [N, d] pay."""
        return self._asked("terminal", 0, (len(states),), states)

    def _asked(self, name: str, h: int, shape: tuple[int, ...], *arrays: NDArray[Any]) -> NDArray[np.float64]:
        """Its answer, of finite numbers; zeros, where there is no such function."""
        if name not in self.functions:
            return np.zeros(shape)
        return numbers(name, self.functions[name](h, shape, *arrays), most=LARGEST_RETURN)


def _short(answer: NDArray[Any]) -> str:
    return f"{answer.item():g}" if answer.size == 1 else str(answer[0])


def takes_the_step(name: str, function: Callable[..., Any], arguments: int) -> bool:
    """Whether a function has one required argument more than told; that argument is the step."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin or ufunc that does not say
        return False
    if any(p.name == "context" and p.default is p.empty for p in parameters):
        raise TypeError(
            f"{name} takes a context; only f, reward and allowed do, in a system with contexts= (how many there are)"
        )
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    required = [p.name for p in parameters if p.kind in positional and p.default is p.empty]
    late = [p.name for p in parameters if p.name in STEP_NAMES and p.name not in required[:1]]
    if late:
        raise TypeError(f"{name} takes {late[0]!r} where it is not filled in; make the step its first argument")
    return len(required) > arguments


def sizes_of(tables: dict[str, Any], n_states: int | None, n_actions: int | None) -> tuple[int, int]:
    """S and A, from the arguments or else from the first array that shows them."""
    shapes: list[tuple[int, ...]] = [
        array_of(name, t).shape for name, t in tables.items() if t is not None and not callable(t)
    ]
    sizes = {
        "n_states": [n_states, *(shape[-2:][0] for shape in shapes if shape)],
        "n_actions": [n_actions, *(shape[-1] for shape in shapes if len(shape) >= 2)],
    }
    for name, known in sizes.items():
        if known == [None]:
            raise TypeError(f"{name} cannot be read off functions alone; pass {name}=")
    S, A = (whole(name, next(n for n in known if n is not None), 1) for name, known in sizes.items())
    return S, A


def distinct_steps(table: NDArray[Any]) -> NDArray[Any]:
    """[1, ...] where a [H, ...] table repeats one step without storing it again, else the table."""
    return table[:1] if table.strides[0] == 0 or len(table) == 1 else table

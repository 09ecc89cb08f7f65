"""What a user states of a system, read into arrays and checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.boundaries import given_boundary, with_given_boundary
from ucbf.checks import LARGEST_INTEGER, LARGEST_RETURN, array_of, frozen, integers, numbers, one_of, sealed, whole
from ucbf.spaces import BOUNDARIES, GIVEN, Space, axes
from ucbf.tables import LARGEST_TABLE, Function, Table, distinct_steps, is_large_table, narrowed

if TYPE_CHECKING:
    from ucbf.system import System


def read_length(horizon: int | None, period: int, terminal: Any) -> dict[str, Any]:
    """How many steps there are, and how many of them tables have."""
    steps = whole("period", period, 1)
    if horizon is not None:
        if steps != 1:
            raise ValueError(
                f"period is {steps}, and horizon {horizon!r:.40}; a period is of systems without an end: pass "
                "horizon=None, or leave it out"
            )
        steps = whole("horizon", horizon, 1)
    elif terminal is not None:
        raise ValueError("terminal is given, and horizon is None: without an end nothing is paid there; leave it out")
    return {"horizon": None if horizon is None else steps, "n_steps": steps}


def read_line(boundary: Any, first: int, n: int, disturbance_range: Any) -> Space:
    """The states of a line."""
    if callable(boundary):
        return Space.line(
            first, n, GIVEN, given_boundary(boundary, rows=False, n_axes=1, disturbance_range=disturbance_range)
        )
    return Space.line(first, n, one_of("boundary", "wrap" if boundary is None else boundary, BOUNDARIES))


def read_box(boundary: Any, low: Any, high: Any, points: Any, disturbance_range: Any) -> Space:
    """The states of a box."""
    if low is None or high is None:
        raise TypeError(f"low is {low!r:.40} and high {high!r:.40}; a box needs both, one number for each axis")
    if boundary is None:
        raise TypeError(
            "boundary is not given; say what happens to f + W outside the box: 'clip' (the nearest state), 'wrap' "
            "or 'strict' (it cannot happen), or one for each axis"
        )
    first, last, counts = axes(low, high, points)
    if callable(boundary):
        return with_given_boundary(read_box("clip", low, high, points, None), boundary, counts, disturbance_range)
    if not isinstance(boundary, str | list | tuple):
        raise TypeError(f"boundary is {boundary!r:.60}; give 'clip', 'wrap' or 'strict', or one for each axis")
    rules = (boundary,) * len(first) if isinstance(boundary, str) else tuple(boundary)
    if len(rules) != len(first):
        raise ValueError(f"boundary has {len(rules)} entries; give one, or one for each of the {len(first)} axes")
    rules = tuple(one_of("boundary", rule, BOUNDARIES) for rule in rules)
    is_whole = np.array([n is None for n in counts])
    uneven = np.flatnonzero(is_whole & ((first != np.rint(first)) | (last != np.rint(last))))
    if len(uneven):
        k = uneven[0]
        raise ValueError(
            f"axis {k} goes from {first[k]:g} to {last[k]:g}; a whole axis begins and ends at whole numbers: say "
            "how many points it has, if it is continuous"
        )
    n = np.array([int(b - a + 1) if n is None else n for a, b, n in zip(first, last, counts, strict=True)])
    if float(np.prod(n.astype(float))) > LARGEST_TABLE:
        raise ValueError(
            f"a lattice of {' x '.join(map(str, n))} points is too large; take a coarser one, or fit values without a "
            "table: ucbf.LargeSystem, or a preset's .large"
        )
    wraps = np.array([rule == "wrap" for rule in rules])
    spacing = np.where(is_whole, 1.0, (last - first) / np.where(wraps | (n == 1), n, n - 1))
    if is_whole.all():
        ends: list[NDArray[Any]] = [x.astype(np.int64) for x in (first, last, spacing)]
    else:
        ends = [first, last, spacing]
    return Space(frozen(ends[0]), frozen(ends[1]), frozen(ends[2]), frozen(n), rules, is_whole, False)


def read_actions(actions: Any, n_actions: int | None) -> NDArray[Any]:
    """[A] or [A, m] the actions of a box."""
    if actions is None:
        if n_actions is None:
            raise TypeError("actions is not given; give [A] or [A, m], or n_actions=")
        actions = np.arange(whole("n_actions", n_actions, 1, LARGEST_TABLE))
    choices = array_of("actions", actions)
    if n_actions is not None and choices.shape[:1] != (n_actions,):
        raise ValueError(f"n_actions is {n_actions!r:.40}, and actions has shape {choices.shape}; leave n_actions out")
    numbers("actions", choices)
    if choices.ndim not in (1, 2) or not choices.size:
        raise ValueError(f"actions has shape {choices.shape}; give [A] or [A, m]")
    return frozen(choices)


def read_table(
    system: System, name: str, given: Table, read: Callable[..., NDArray[Any]], trailing: tuple[int, ...] = ()
) -> NDArray[Any]:
    """[H, S, A, ...], a read-only view of the one step where all are alike; 0 where the action does not exist."""
    if system.n_contexts > 1:
        table = _by_context(system, name, given, read, trailing)
    else:
        table = _read_table(system, name, given, trailing)
    H, S, A = system.n_steps, system.n_states, system.n_actions
    if name != "allowed":
        exists = distinct_steps(system.allowed)
        if len(exists) > 1 and len(table) < H:
            exists = np.any(exists, axis=0, keepdims=True)
        if not exists.all():
            exists = exists.reshape(*exists.shape, *(1 for _ in trailing))
            if callable(given) and len(exists) <= len(table):
                np.copyto(array_of(name, table), 0, where=~exists)
            else:
                table = np.where(exists, array_of(name, table), 0)
    state = system.state_name
    checked = read(system, name, table, lambda h, s, a, *_: f"{name} at step {h}, state {state(s)}, action {a}")
    made = callable(given) or not np.may_share_memory(checked, np.asarray(given))
    return np.broadcast_to(sealed(checked) if made else frozen(checked), (H, S, A, *trailing))


def _by_context(
    system: System, name: str, given: Table, read: Callable[..., NDArray[Any]], trailing: tuple[int, ...]
) -> NDArray[Any]:
    """[1 or H, S, A, ...] with a block of states for every context."""
    E, shape = system.n_contexts, (system.space.n_states, system.n_actions, *trailing)
    if not system.space.all_whole:
        raise ValueError(f"contexts is {E}; contexts need whole axes: state the axes in whole units (points=None)")
    if callable(given) and "context" in inspect.signature(given).parameters:
        tables = [_read_table(system, name, partial(given, context=e), trailing) for e in range(E)]
    elif not callable(given) and np.ndim(given) == 2 + len(shape):
        table = array_of(name, given)
        if table.shape[1:] != (E, *shape):
            raise ValueError(f"{name} has shape {table.shape}; by context it must be [1 or H, E, S, A] = (1 or H, {E}, "
                             f"{', '.join(map(str, shape))})")  # fmt: skip
        tables = [_read_table(system, name, table[:, e], trailing) for e in range(E)]
    else:
        tables = [_read_table(system, name, given, trailing)] * E
    system.functions.pop(name, None)  # it is asked for no other states than these
    steps = max(len(table) for table in tables)
    return np.concatenate([np.broadcast_to(table, (steps, *table.shape[1:])) for table in tables], axis=1)


def _read_table(system: System, name: str, given: Table, trailing: tuple[int, ...]) -> NDArray[Any]:
    """[1 or H, S, A, ...] of one context."""
    space = system.space
    H, S, A = system.n_steps, space.n_states, system.n_actions
    if callable(given) and space.is_line:
        table = Function(name, given, 2, rows=False).steps(H, (S, A), partial(_pairs_of_a_line, system))
    elif callable(given):
        system.functions[name] = function = Function(name, given, 2, rows=True)
        corners = 2 ** int((~space.is_whole).sum())
        if (H if function.per_step else 1) * S * A * max(corners, *trailing, 1) > LARGEST_TABLE:
            raise ValueError(f"{S} points and {A} actions are too many; take a coarser lattice, or fewer actions")
        table = function.steps(H, (S * A, *trailing), partial(_pairs, system)).reshape(-1, S, A, *trailing)
    elif not space.all_whole and given is not True:
        raise TypeError(f"{name} is {given!r:.60}; on continuous axes it must be a function of states and actions")
    else:
        table = array_of(name, given)
        if table.shape == (S,) and name == "reward":
            table = table[:, None]
        elif table.shape not in {(), (S, A, *trailing), (1, S, A, *trailing), (H, S, A, *trailing)}:
            also, more = "[S], " if name == "reward" else "", ", d" if trailing else ""
            raise ValueError(
                f"{name} has shape {table.shape}; with H={H}, S={S}, A={A} it must be {also}[S, A{more}] = "
                f"{(S, A, *trailing)} or [H, S, A{more}] = {(H, S, A, *trailing)}, or a function"
            )
        steps = len(table) if table.ndim == 3 + len(trailing) else 1
        table = np.broadcast_to(table, (steps, S, A, *trailing))
    return table


def _pairs_of_a_line(system: System, part: slice) -> tuple[NDArray[Any], ...]:
    """States and actions [n, A] of a part of the states of a line."""
    return tuple(np.meshgrid(_numbers(system.states[part]), np.arange(system.n_actions), indexing="ij"))


def _numbers(names: range) -> NDArray[np.int64]:
    """The numbers of a range; quicker than from one by one."""
    return np.arange(names.start, names.stop)


def _pairs(system: System, part: slice) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of states [n, d] and of actions of a part of all pairs in a box."""
    state, action = np.divmod(np.arange(part.start, part.stop), system.n_actions)
    return system.space.points[state], system.actions[action]


def places(system: System, name: str, given: ArrayLike, place: Callable[..., str] | None = None) -> NDArray[Any]:
    """After-states: whole along whole axes."""
    if system.space.all_whole:
        stated = array_of(name, given)
        if not is_large_table(stated):
            return integers(name, stated, place)
        return stated if stated.dtype == np.int32 else narrowed(integers(name, stated, place))
    table = numbers(name, given, place, LARGEST_INTEGER)
    integers(name, table[..., system.space.is_whole], place)
    return table


def payments(
    system: System, name: str, given: ArrayLike, place: Callable[..., str] | None = None
) -> NDArray[np.float64]:
    """Rewards of any kind, of which an episode may add up H."""
    return numbers(name, given, place, LARGEST_RETURN / system.n_steps)


def read_landing(system: System, given: Table) -> NDArray[np.float64]:
    """[H, Z] over the raw states."""
    wraps, Z = system.space.wraps, system.n_raw
    if wraps.any() and system.disturbance_range is None:
        raise ValueError(
            "landing under boundary 'wrap' needs disturbance_range=(low, high): modulo S, W could be any; or pass "
            "another boundary, such as 'clip'"
        )
    if not system.space.all_whole and system.disturbance_range is None:
        raise ValueError("landing needs disturbance_range=(low, high): how far beyond the box f + W may go")
    if (
        system.space.is_whole[wraps].any()
        and (system.bins.count > system.space.shape)[wraps & system.space.is_whole].any()
    ):
        raise ValueError(
            f"landing under boundary 'wrap' needs the disturbance to be recoverable, but {system.bins.n} "
            f"disturbances wrap onto {system.n_states} states; narrow disturbance_range, or add states"
        )
    low, high = system.bins.range()
    space = system.raw_space
    around = space.wraps & ~space.is_whole & (high - low >= space.high - space.low)
    if around.any():
        raise ValueError(
            f"landing under boundary 'wrap' needs the disturbance to be recoverable, but along axis "
            f"{int(around.argmax())} W may go all the way round; narrow disturbance_range"
        )
    if callable(given):
        function = Function("landing", given, 1, rows=not system.space.is_line)
        if not system.space.is_line:
            system.functions["landing"] = function
        table = payments(system, "landing", function.steps(system.n_steps, (Z,), lambda part: (system.raw_part(part),)))
    elif not system.space.all_whole:
        raise TypeError(f"landing is {given!r:.60}; on continuous axes it must be a function of raw next states")
    else:
        table = payments(system, "landing", given)
        if table.shape not in {(Z,), (1, Z), (system.n_steps, Z)}:
            raise ValueError(
                f"landing has shape {table.shape}; over the raw states {system.raw_part(slice(0, 1))[0]}.."
                f"{system.raw_part(slice(Z - 1, Z))[0]} it must be {(Z,)} or "
                f"{(system.n_steps, Z)}, or a function of z, which also follows where a change of f, ζ or W moves "
                "the raw states"
            )
    keep = sealed if callable(given) else frozen
    return np.broadcast_to(keep(np.atleast_2d(table)), (system.n_steps, Z))


def read_lag(system: System, lag: int, given: Callable[..., Any] | None) -> dict[str, Any]:
    """The late landing reward, over all that a raw next state may become."""
    lag = whole("lag", lag, 0, LARGEST_TABLE)
    if (lag > 0) != (given is not None):
        raise ValueError(f"lag is {lag}, and late_landing {given!r:.40}; give both, or neither")
    late = np.zeros(0)
    if given is not None:
        space, bins = system.space, system.bins
        if not (space.is_line and space.boundary is None and not space.wraps[0]) or system.n_contexts > 1:
            raise ValueError("lag needs states on a line that is clipped or strict, without contexts")
        if system.disturbance_range is None:
            raise ValueError("lag needs disturbance_range=(low, high): how far W may go until then")
        first, R = system.raw_states[0] + lag * system.residuals[0], bins.n
        n = len(system.raw_states) + lag * (R - 1)
        check_length(system, "late landing rewards", n)
        function = Function("late_landing", given, 1, rows=False)
        if function.per_step:
            raise TypeError("late_landing takes more than the raw next states; it must be the same at every step")
        late = payments(system, "late_landing", function(0, (n,), np.arange(first, first + n)))
    return {"lag": lag, "late": late, "_late_given": given}


def read_terminal(system: System, given: Table | None) -> NDArray[np.float64]:
    """[E S] the terminal reward; the same in every context unless a table [E, S] is given."""
    table = _read_terminal(system, given)
    return frozen(np.tile(table, system.n_contexts) if table.ndim == 1 else table.ravel())


def _read_terminal(system: System, given: Table | None) -> NDArray[np.float64]:
    if given is None:
        return np.zeros(system.space.n_states)
    if callable(given):
        function = Function("terminal", given, 1, rows=not system.space.is_line)
        if function.per_step:
            raise TypeError("terminal takes more than the states; it is paid once, after the last step")
        if not system.space.is_line:
            system.functions["terminal"] = function
        table = payments(
            system,
            "terminal",
            function.steps(1, (system.space.n_states,), lambda part: (np.array(system.states[part]),))[0],
        )
    elif not system.space.all_whole:
        raise TypeError(f"terminal is {given!r:.60}; on continuous axes it must be a function of states")
    else:
        table = payments(system, "terminal", given)
    S, E = system.space.n_states, system.n_contexts
    if table.shape != (S,) and (E == 1 or table.shape != (E, S)):
        by_context = f", or [E, S] = {(E, S)}" if E > 1 else ""
        raise ValueError(f"terminal has shape {table.shape}; it must be [S] = {(S,)}{by_context}")
    return table


def check_length(system: System, what: str, n: int) -> None:
    """An error where even one number for every step and state would be too many."""
    if system.n_steps * n > LARGEST_TABLE:
        raise ValueError(
            f"{system.n_steps} steps of {n} {what} are more than {LARGEST_TABLE} together; state a shorter horizon, "
            "or take a coarser unit"
        )


def check_actions(system: System) -> None:
    """An error for a state in which nothing can be done."""
    stuck = np.argwhere(~distinct_steps(system.allowed).any(axis=2))
    if len(stuck):
        h, s = stuck[0]
        raise ValueError(
            f"state {system.state_name(s)} has no allowed action at step {h}; "
            "allow one in every state, even if it does nothing"
        )


def truths(system: System, name: str, given: ArrayLike, place: Callable[..., str] | None = None) -> NDArray[np.bool_]:
    """Booleans."""
    array = np.asarray(given)
    if array.dtype != np.bool_:
        raise TypeError(f"{name} holds {array.dtype}; give booleans")
    return array


def refuse_line_arguments(system: System, n_states: int | None) -> None:
    """An error for what only a line has."""
    if n_states is not None or system.state_offset:
        raise TypeError("a box has its states from low to high; leave out n_states and state_offset")
    if system.model_error:
        raise ValueError(
            f"model_error (ζ) is {system.model_error:g}; in a box f must be exact: what ζ means is a number of "
            "states on a line. State the system with n_states, or leave out model_error"
        )

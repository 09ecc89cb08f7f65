"""What the learner is told: mechanics, rewards, boundary, and how far f may be wrong.

The state moves by ``S' = boundary(f_h(S, A) + W_h)``. Two names recur:

- the *after-state* x = f(s, a): where the action leads before the disturbance;
- the *raw next state* z = x + w, before the boundary rule brings it back to the states.

Everything that happens after the action depends on (s, a) only through x, and on (x, w) only
through z. :class:`Mechanics` holds the system as arrays over x and z; planners, worlds and
learners all read the boundary rule from there.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import LARGEST_INTEGER, LARGEST_RETURN, array_of, frozen, integers, numbers, one_of, real, whole
from ucbf.kernels.types import BOUNDARIES, Mechanics

Table = ArrayLike | Callable[..., Any]

LARGEST_TABLE = 2**28
STEP_NAMES = {"h", "step", "t", "stage"}


@dataclass(frozen=True, init=False, eq=False)
class System:
    """Everything except the law of W.

    States are state_offset .. state_offset + S - 1 wherever a state is named (values of f, arguments
    of functions); arrays are indexed by state - state_offset. "Once or per step" means an array without
    or with a leading axis H, or a function without or with a first argument h.

    Parameters
    ----------
    f
        [S, A] or [H, S, A] integers, or a function of (states, actions) or (h, states, actions),
        vectorised: the next state before the disturbance.
    reward
        As f, in any units, costs as negative rewards; also [S].
    horizon
        Number of steps of an episode, H.
    boundary
        What happens to f + W outside the states. "wrap": modulo S. "clip": the nearest state.
        "strict": it cannot happen, and a world in which it could is refused. None: "wrap", as in the paper,
        unless that may not be what is meant: with ``landing``, or where f + W leaves the states for the declared
        ``disturbance_range``, it must be said.
    model_error
        ζ: the f given here is within ζ/2 of the truth. 0 if it is exact.
    lipschitz
        L: ``|V*(s1) - V*(s2)| <= L |s1 - s2|``; used only where ζ > 0. A bound is derived if None.
    landing
        Reward of the raw next state z = f + W: holding, shortage, overflow. A function of z, or of
        (h, z), vectorised; or an array [Z] or [H, Z] over ``raw_states``.
    discount
        γ in (0, 1].
    terminal
        [S], or a function of the states: reward for the state in which the episode ends; zero if None.
    allowed
        [S, A] or [H, S, A] booleans, or a function like f: the actions that exist in a state.
    disturbance_range
        (low, high) of W where it is known. A residual outside it (by more than ζ/2) contradicts the model: agents
        told f report it and leave it out. Needed with ``landing`` if states wrap, or if W can exceed what two states
        can be apart.
    state_offset
        The first state; it may be negative.
    n_states, n_actions
        Needed only where no array says them.

    Examples
    --------
    >>> stock = System(lambda s, a: s + a, lambda s, a: -2.0 * a, horizon=3, boundary="clip",
    ...                landing=lambda z: -1.0 * np.maximum(z, 0), n_states=4, n_actions=3,
    ...                allowed=lambda s, a: s + a <= 3, disturbance_range=(-2, 0))
    >>> stock.f[0, :, 0]
    array([0, 1, 2, 3])
    >>> stock.raw_states
    range(-2, 4)
    """

    f: NDArray[np.int64]  # [H, S, A]
    reward: NDArray[np.float64]  # [H, S, A]
    horizon: int
    boundary: str
    model_error: float
    lipschitz: float | None
    landing: NDArray[np.float64] | None  # [H, Z]
    discount: float
    terminal: NDArray[np.float64]  # [S]
    allowed: NDArray[np.bool_]  # [H, S, A]
    disturbance_range: tuple[int, int] | None
    state_offset: int
    n_states: int
    n_actions: int
    _landing_function: Callable[..., Any] | None = field(repr=False)
    _boundary_given: str | None = field(repr=False)  # None where nobody stated it

    def __init__(
        self,
        f: Table,
        reward: Table,
        horizon: int,
        boundary: str | None = None,
        model_error: float = 0,
        lipschitz: float | None = None,
        landing: Table | None = None,
        discount: float = 1.0,
        terminal: Table | None = None,
        allowed: Table | None = None,
        disturbance_range: tuple[int, int] | None = None,
        state_offset: int = 0,
        n_states: int | None = None,
        n_actions: int | None = None,
    ) -> None:
        def put(**values: Any) -> None:
            self.__dict__.update(values)

        put(
            horizon=whole("horizon", horizon, 1),
            boundary=one_of("boundary", "wrap" if boundary is None else boundary, BOUNDARIES),
            model_error=real("model_error (ζ)", model_error, 0, LARGEST_TABLE),
            lipschitz=None if lipschitz is None else real("lipschitz", lipschitz, 0, LARGEST_RETURN),
            discount=real("discount", discount, 0, 1, open_low=True),
            disturbance_range=_checked_range(disturbance_range),
            state_offset=whole("state_offset", state_offset, -LARGEST_INTEGER, LARGEST_INTEGER),
        )
        sizes = _sizes({"f": f, "reward": reward, "allowed": allowed}, n_states, n_actions)
        put(n_states=sizes[0], n_actions=sizes[1])
        if sizes[0] * sizes[1] > LARGEST_TABLE:
            raise ValueError(f"{sizes[0]} states and {sizes[1]} actions are too many; take a coarser unit")
        self._check_length("states", sizes[0])
        put(allowed=self._table("allowed", True if allowed is None else allowed, _truths))
        self._check_actions()
        put(f=self._table("f", f, integers))
        put(reward=self._table("reward", reward, self._payments))
        put(terminal=self._terminal(terminal))
        if boundary == "strict":
            self._check_inside()
        put(landing=landing)  # raw states depend on whether there is one
        span = self.raw_states.stop - self.raw_states.start
        if span > LARGEST_TABLE:
            raise ValueError(f"f + W spans {span} raw states; at most {LARGEST_TABLE} are supported: check f and W")
        self._check_length("raw states (f + W)", span)
        put(landing=None if landing is None else self._landing(landing))
        put(_landing_function=landing if callable(landing) else None, _boundary_given=boundary)
        if boundary is None:
            self._check_wraps_unsaid()

    # -- what is told, in other words -------------------------------------------------------------

    @property
    def states(self) -> range:
        """The names of the states."""
        return range(self.state_offset, self.state_offset + self.n_states)

    @property
    def home(self) -> int:
        """The state nearest to 0: where an empty store begins."""
        return min(max(0, self.states[0]), self.states[-1])

    @property
    def slack(self) -> int:
        """ζ/2: how far f may be off, in whole states."""
        return int(self.model_error // 2)

    @cached_property
    def after_states(self) -> range:
        """Where an action that exists may lead, ζ/2 either way; the states, where only what it wraps to matters."""
        if self._wraps_freely:
            return self.states
        f, exists = self._f_and_allowed
        reached = f[exists]
        return range(int(reached.min()) - self.slack, int(reached.max()) + self.slack + 1)

    @cached_property
    def residuals(self) -> range:
        """The disturbances told apart: the declared range widened by ζ/2 each way, else what the states can show."""
        first, last = self.states[0], self.states[-1]
        if self.disturbance_range is not None:
            low, high = self.declared_residuals[0], self.declared_residuals[-1]
        elif self.boundary == "wrap":
            low, high = 0, self.n_states - 1
        else:
            low, high = first - self.after_states[-1], last - self.after_states[0]
        if self._wraps_freely:
            high = low + self.n_states - 1
        return range(low, high + 1)

    @property
    def declared_residuals(self) -> range:
        """The residuals that the declared range and ζ allow; all, where none is declared."""
        if self.disturbance_range is None:
            return self.residuals
        return range(self.disturbance_range[0] - self.slack, self.disturbance_range[1] + self.slack + 1)

    @property
    def n_possible(self) -> int:
        """How many residuals, the first ones, may occur."""
        return min(len(self.declared_residuals), len(self.residuals))

    @property
    def raw_states(self) -> range:
        """Every z = after-state + residual: the axis of ``landing``."""
        return range(self.after_states[0] + self.residuals[0], self.after_states[-1] + self.residuals[-1] + 1)

    @property
    def last_step_is_known(self) -> bool:
        """Whether nothing that follows the last action depends on the disturbance."""
        paid = self.landing is not None and bool(np.ptp(self.landing[-1]))
        return not paid and not np.ptp(self.terminal)

    def fold(self, disturbances: ArrayLike) -> NDArray[np.int64]:
        """Indices into ``residuals`` of measured disturbances; an error for one that the system excludes."""
        w = integers("disturbance", disturbances)
        if self.disturbance_range is not None:
            low, high = self.disturbance_range
            wrong = w[(w < low) | (w > high)]
            if wrong.size:
                raise ValueError(
                    f"disturbance {wrong.flat[0]} is outside the disturbance_range {low}..{high}; correct it (a demand "
                    "is a negative disturbance), or declare a wider range"
                )
        index = w - self.residuals[0]
        if self._wraps_freely:
            return index % self.n_states
        wrong = w[(index < 0) | (index >= len(self.residuals))]
        if wrong.size and (self.landing is not None or self.boundary != "clip"):
            raise ValueError(
                f"disturbance {wrong.flat[0]} is outside {self.residuals[0]}..{self.residuals[-1]}, the range "
                "assumed because none was declared; pass disturbance_range=(low, high) to System"
            )
        # Beyond what the states can show every after-state is clipped to the same edge.
        return np.clip(index, 0, len(self.residuals) - 1)

    @cached_property
    def mechanics(self) -> Mechanics:
        """The system as arrays for the compiled functions."""
        exists, f, reward = once(self.allowed), once(self.f), once(self.reward)
        x = self.after_states
        origin = self.state_offset
        after = np.where(exists, (f - origin) % self.n_states + origin if self._wraps_freely else f, x[0])
        z = np.arange(self.raw_states[0], self.raw_states[-1] + 1)
        landing = np.zeros((1, len(z))) if self.landing is None else once(self.landing)
        return Mechanics(
            after=frozen((after - x[0]).astype(np.int32)),
            share=frozen(np.ones((0, 0, 0, 1))),
            corners=frozen(np.zeros(1, np.int64)),
            reward=frozen(np.where(exists, reward, -np.inf)),
            landing=frozen(landing),
            next_state=frozen(self.meet_boundary(z).astype(np.int32)),
            rows=frozen(np.zeros(1, np.int64)),
            offsets=frozen(np.arange(len(self.residuals))),
            terminal=self.terminal,
            discount=self.discount,
            horizon=self.horizon,
            n_after=len(x),
            n_residuals=len(self.residuals),
            shift=origin - x[0] - self.residuals[0],
            hides=frozen(self.hiding),
            wraps=self.boundary == "wrap",
            modular=self._wraps_freely,
        )

    def meet_boundary(self, z: NDArray[np.int64]) -> NDArray[np.int64]:
        """State indices of raw next states: the one place where the boundary rule stands.

        Under "strict" only a wrong f can lead outside; the nearest state is the least wrong answer.
        """
        index = z - self.state_offset
        if self.boundary == "wrap":
            return index % self.n_states
        return np.minimum(np.maximum(index, 0), self.n_states - 1)  # for a single state much quicker than np.clip

    @cached_property
    def hiding(self) -> NDArray[np.bool_]:
        """[S] which states may hide the disturbance that led to them: the ends of a clipped space."""
        ends = np.isin(np.arange(self.n_states), (0, self.n_states - 1))
        return ends & (self.boundary == "clip")

    def hides(self, s: int) -> bool:
        """Whether state s may hide the disturbance that led to it."""
        return s in self.states and bool(self.hiding[s - self.state_offset])

    def step(self, h: Any, s: Any, a: Any, w: Any) -> tuple[Any, Any]:
        """State indices after a step from indices s, and what it pays, landing included; numbers or arrays of them."""
        raw, paid = self.f[h, s, a] + w, self.reward[h, s, a]
        if self.landing is not None:
            paid = paid + self.landing[h, raw - self.raw_states[0]]
        return self.meet_boundary(raw), paid

    def replace(self, **changes: Any) -> System:
        """The same system with some arguments changed. A landing function is read again, over the new raw states."""
        arguments = {**self.arguments(), "boundary": self._boundary_given}
        if self._landing_function is not None:
            arguments["landing"] = self._landing_function
        return System(**{**arguments, **changes})

    def arguments(self) -> dict[str, Any]:
        """The arguments that build this system again, tables without a step axis that says nothing."""
        return {
            "f": once(self.f),
            "reward": once(self.reward),
            "horizon": self.horizon,
            "boundary": self.boundary,
            "model_error": self.model_error,
            "lipschitz": self.lipschitz,
            "landing": None if self.landing is None else once(self.landing),
            "discount": self.discount,
            "terminal": self.terminal,
            "allowed": once(self.allowed),
            "disturbance_range": self.disturbance_range,
            "state_offset": self.state_offset,
        }

    def __repr__(self) -> str:
        return (
            f"System({self.n_states} states {self.states[0]}..{self.states[-1]}, {self.n_actions} actions, "
            f"horizon {self.horizon}, boundary {self.boundary!r}, model_error {self.model_error:g})"
        )

    # -- from what the user wrote to tables -------------------------------------------------------

    @property
    def _wraps_freely(self) -> bool:
        return self.boundary == "wrap" and getattr(self, "landing", None) is None

    def _table(self, name: str, given: Table, read: Callable[..., NDArray[Any]]) -> NDArray[Any]:
        """[H, S, A], a read-only view of the one step where all are alike; 0 where the action does not exist."""
        H, S, A = self.horizon, self.n_states, self.n_actions
        if callable(given):
            states, actions = np.meshgrid(np.array(self.states), np.arange(A), indexing="ij")
            table = _evaluated(name, given, H, (S, A), states, actions)
        else:
            table = array_of(name, given)
            if table.shape == (S,) and name == "reward":
                table = table[:, None]
            elif table.shape not in {(), (S, A), (1, S, A), (H, S, A)}:
                also = "[S], " if name == "reward" else ""
                raise ValueError(
                    f"{name} has shape {table.shape}; with H={H}, S={S}, A={A} it must be "
                    f"{also}[S, A] = {(S, A)} or [H, S, A] = {(H, S, A)}, or a function"
                )
            table = np.broadcast_to(table, (len(table) if table.ndim == 3 else 1, S, A))
        if name != "allowed":
            exists = self.allowed if len(table) == H else once(self.allowed).any(axis=0)
            table = np.where(exists, array_of(name, table), 0)
        checked = read(name, table, lambda h, s, a: f"{name} at step {h}, state {s + self.state_offset}, action {a}")
        return np.broadcast_to(frozen(checked), (H, S, A))

    def _payments(self, name: str, given: ArrayLike, place: Callable[..., str] | None = None) -> NDArray[np.float64]:
        """Rewards of any kind, of which an episode may add up H."""
        return numbers(name, given, place, LARGEST_RETURN / self.horizon)

    @property
    def _f_and_allowed(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """[1 or H, S, A] both; one step, where all are alike."""
        f, exists = np.broadcast_arrays(once(self.f), once(self.allowed))
        return f, exists

    def _check_length(self, what: str, n: int) -> None:
        """An error where even one number for every step and state would be too many."""
        if self.horizon * n > LARGEST_TABLE:
            raise ValueError(
                f"{self.horizon} steps of {n} {what} are more than {LARGEST_TABLE} together; state a shorter horizon, "
                "or take a coarser unit"
            )

    def _landing(self, given: Table) -> NDArray[np.float64]:
        Z = len(self.raw_states)
        if self.boundary == "wrap" and self.disturbance_range is None:
            raise ValueError(
                "landing under boundary 'wrap' needs disturbance_range=(low, high): modulo S, W could be any; or pass "
                "another boundary, such as 'clip'"
            )
        if self.boundary == "wrap" and len(self.residuals) > self.n_states:
            raise ValueError(
                f"landing under boundary 'wrap' needs the disturbance to be recoverable, but {len(self.residuals)} "
                f"disturbances wrap onto {self.n_states} states; narrow disturbance_range, or add states"
            )
        if callable(given):
            z = np.arange(self.raw_states[0], self.raw_states[-1] + 1)
            table = self._payments("landing", _evaluated("landing", given, self.horizon, (Z,), z))
        else:
            table = self._payments("landing", given)
            if table.shape not in {(Z,), (1, Z), (self.horizon, Z)}:
                raise ValueError(
                    f"landing has shape {table.shape}; over the raw states {self.raw_states[0]}.."
                    f"{self.raw_states[-1]} it must be {(Z,)} or {(self.horizon, Z)}, or a function of z, "
                    "which also follows where a change of f, ζ or W moves the raw states"
                )
        return np.broadcast_to(frozen(np.atleast_2d(table)), (self.horizon, Z))

    def _terminal(self, given: Table | None) -> NDArray[np.float64]:
        if given is None:
            return frozen(np.zeros(self.n_states))
        if callable(given):
            if takes_the_step("terminal", given, 1):
                raise TypeError("terminal takes more than the states; it is paid once, after the last step")
            values = _evaluated("terminal", given, 1, (self.n_states,), np.array(self.states))[0]
            table = self._payments("terminal", values)
        else:
            table = self._payments("terminal", given)
        if table.shape != (self.n_states,):
            raise ValueError(f"terminal has shape {table.shape}; it must be [S] = {(self.n_states,)}")
        return frozen(table)

    def _check_actions(self) -> None:
        stuck = np.argwhere(~once(self.allowed).any(axis=2))
        if len(stuck):
            h, s = stuck[0]
            raise ValueError(
                f"state {s + self.state_offset} has no allowed action at step {h}; "
                "allow one in every state, even if it does nothing"
            )

    def _check_wraps_unsaid(self) -> None:
        """An error where a boundary that nobody stated would matter: a shop does not wrap."""
        if self.disturbance_range is None:
            return
        choices = "pass boundary='clip' (the nearest state), 'wrap' (modulo S) or 'strict' (it cannot happen)"
        if self.landing is not None:
            raise ValueError(f"landing is given, but not where f + W outside the states leads; {choices}")
        (low, high), first, last = self.disturbance_range, self.states[0], self.states[-1]
        f, exists = self._f_and_allowed
        wrong = np.argwhere(exists & ((f + low < first) | (f + high > last)))
        if len(wrong):
            h, s, a = wrong[0]
            x = self.f[h, s, a]
            raise ValueError(
                f"from state {s + first}, action {a} at step {h} (f = {x}) W in {low}..{high} leads to {x + low}.."
                f"{x + high}, outside the states {first}..{last}, and boundary is not given; {choices}"
            )

    def _check_inside(self) -> None:
        first, last = self.states[0], self.states[-1]
        f, exists = self._f_and_allowed
        wrong = np.argwhere(exists & ((f < first) | (f > last)))
        if len(wrong):
            h, s, a = wrong[0]
            raise ValueError(
                f"f sends state {s + self.state_offset}, action {a} at step {h} to {self.f[h, s, a]}, "
                f"outside {first}..{last}; pass boundary='clip' or 'wrap', or correct f"
            )


def once(table: NDArray[Any]) -> NDArray[Any]:
    """[1, ...] where a [H, ...] table repeats one step without storing it again, else the table."""
    return table[:1] if table.strides[0] == 0 or len(table) == 1 else table


def _checked_range(given: tuple[int, int] | None) -> tuple[int, int] | None:
    if given is None:
        return None
    try:
        low, high = given
    except (TypeError, ValueError):
        raise TypeError(f"disturbance_range is {given!r}; give (low, high)") from None
    pair = tuple(
        whole(f"disturbance_range[{i}]", w, -LARGEST_INTEGER, LARGEST_INTEGER) for i, w in enumerate((low, high))
    )
    if pair[0] > pair[1]:
        raise ValueError(f"disturbance_range is {pair}; low must not exceed high")
    return pair[0], pair[1]


def _sizes(tables: dict[str, Any], n_states: int | None, n_actions: int | None) -> tuple[int, int]:
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


def _evaluated(
    name: str, function: Callable[..., Any], horizon: int, shape: tuple[int, ...], *grids: NDArray[np.int64]
) -> NDArray[Any]:
    """[1, ...] of function(*grids), or [H, ...] of function(h, *grids) if it has one more argument."""
    per_step = takes_the_step(name, function, len(grids))
    if per_step and horizon * math.prod(shape) > LARGEST_TABLE:
        raise ValueError(
            f"{name} depends on the step: {horizon} tables of shape {shape} have more than {LARGEST_TABLE} numbers; "
            "state a shorter horizon, or take a coarser unit"
        )
    try:
        tables = [function(h, *grids) for h in range(horizon)] if per_step else [function(*grids)]
    except Exception as error:
        raise TypeError(
            f"{name} failed when it was called with arrays of shape {shape}: {type(error).__name__}: {error}; "
            "write it so that it answers for all at once (np.maximum, np.where, & and |, not max, if, and, or)"
        ) from error
    for table in tables:
        if np.shape(table) not in {(), shape}:
            raise ValueError(
                f"{name}, called with arrays of shape {shape}, returned shape {np.shape(table)}; "
                "write it with numpy functions, so that it answers for all at once"
            )
    _check_entries(name, function, tables[0], shape, grids, per_step)
    if all(np.array_equal(table, tables[0]) for table in tables[1:]):
        tables = tables[:1]
    return np.stack([np.broadcast_to(array_of(name, table), shape) for table in tables])


def _check_entries(
    name: str, function: Callable[..., Any], table: Any, shape: tuple[int, ...], grids: Any, per_step: bool
) -> None:
    """An error for a function that answers otherwise for a state alone than among others: one that sums them."""
    whole_table = np.broadcast_to(table, shape)
    last = tuple(n - 1 for n in shape)
    one = [grid[tuple(slice(n, n + 1) for n in last)] for grid in grids]
    try:
        alone = np.asarray(function(0, *one) if per_step else function(*one))
    except Exception:  # one that knows the sizes answers for all states or none
        return
    if alone.size == 1 and alone.dtype.kind in "biuf" and not np.isclose(float(alone.item()), float(whole_table[last])):
        raise ValueError(
            f"{name} is {alone.item():g} for {', '.join(str(g.item()) for g in one)} alone and {whole_table[last]:g} "
            "among others; write it so that every entry is answered by itself, without sums over states"
        )


def takes_the_step(name: str, function: Callable[..., Any], grids: int) -> bool:
    """Whether a function has one required argument more than there are grids; that argument is the step."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin or ufunc that does not say
        return False
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    required = [p.name for p in parameters if p.kind in positional and p.default is p.empty]
    late = [p.name for p in parameters if p.name in STEP_NAMES and p.name not in required[:1]]
    if late:
        raise TypeError(f"{name} takes {late[0]!r} where it is not filled in; make the step its first argument")
    return len(required) > grids


def _truths(name: str, values: ArrayLike, place: Callable[..., str]) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.dtype != np.bool_:
        raise TypeError(f"{name} holds {array.dtype}; give booleans")
    return array

"""What the learner is told: mechanics, rewards, boundary, and how far f may be wrong.

The state moves by ``S' = boundary(f_h(S, A) + W_h)``. Two names recur:

- the *after-state* x = f(s, a): where the action leads before the disturbance;
- the *raw next state* z = x + w, before the boundary rule brings it back to the states.

Everything that happens after the action depends on (s, a) only through x, and on (x, w) only
through z. :class:`Mechanics` holds the system as arrays over x and z; planners, worlds and
learners all read the boundary rule from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.boundaries import check_boundary_given, check_boundary_unsaid, check_inside
from ucbf.checks import LARGEST_INTEGER, LARGEST_RETURN, real, sealed, whole
from ucbf.hidden import HiddenSets, hidden_sets, tells_bounds
from ucbf.kernels.types import Mechanics
from ucbf.mechanics import (
    Reach,
    box_bins,
    box_range,
    box_reach,
    ends_of,
    line_range,
    look_ahead,
    mechanics_of,
    positions,
    raw_index,
    within_reach,
)
from ucbf.spaces import GIVEN, Bins, Space, indices, strides
from ucbf.statement import (
    check_actions,
    check_length,
    payments,
    places,
    read_actions,
    read_box,
    read_lag,
    read_landing,
    read_length,
    read_line,
    read_table,
    read_terminal,
    refuse_line_arguments,
    truths,
)
from ucbf.tables import LARGEST_TABLE, AtAnyState, Function, Table, distinct_steps, sizes_of

AT_ONCE = 2**16  # raw next states that a boundary is asked for, after-states that are counted


@dataclass(frozen=True, init=False, eq=False)
class System:
    """Everything except the law of W.

    States are whole numbers, state_offset .. state_offset + S - 1, or, if ``low`` and ``high`` are given, the points of
    a box: rows [d]. They go by these names wherever a state is named (values of f, arguments of functions); arrays are
    indexed from 0, the last axis of a box running fastest. "Once or per step" means an array without or with a leading
    axis H, or a function without or with a first argument h.

    Parameters
    ----------
    f
        [S, A] or [H, S, A] integers, or a function of (states, actions) or (h, states, actions),
        vectorised: the next state before the disturbance. In a box, a function of rows: states [N, d] and actions
        [N] or [N, m] in, [N, d] out; or an array [S, A, d] or [H, S, A, d], if all axes are whole.
    reward
        As f, in any units, costs as negative rewards; also [S].
    horizon
        Number of steps of an episode, H. None: there is no end, and what counts is the discounted sum of rewards or, if
        ``discount`` is 1, their average in the long run.
    boundary
        What happens to f + W outside the states. "wrap": modulo S. "clip": the nearest state.
        "strict": it cannot happen, and a world in which it could is refused. None: "wrap", as in the paper,
        unless that may not be what is meant: with ``landing``, or where f + W leaves the states for the declared
        ``disturbance_range``, it must be said. So it must be for a box: one rule, or one for each axis.
        Or any function g from raw next states f + W to states, vectorised, all axes being whole: rows [N, k] in, [N, d]
        out. In a box f may then have k parts, more or fewer than a state has: as many as ``disturbance_range`` has.
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
    low, high
        [d] the first and the last state of a box, along each axis.
    points
        Along each axis of a box: None for whole numbers, else how many points a continuous axis has. Values are
        interpolated between them. One for all axes, or one for each.
    actions
        [A] or [A, m] what the actions of a box are; functions are given these. 0 .. n_actions - 1 if None.
    lag, late_landing
        What the raw next state z pays later: late_landing(z + W + ... + W), discounted, when ``lag`` further
        disturbances have come; a function, vectorised. For orders that take ``lag`` steps and demand that waits: the
        state is the stock with all that is under way, and what it costs is settled when the last of it has come. On a
        line, and not cut off by the boundary on the way. Played, it is paid as expected then.
    period
        Where there is no end: after how many steps f, rewards and W come round again (7 for weekdays). "Per step" then
        means for each of these.
    contexts
        E: how many values an observed context e has, 0 .. E - 1, that moves by itself (a regime, the weather), and
        that the distribution of W depends on. f, reward and allowed may take it, as an argument named ``context``.

    Examples
    --------
    >>> stock = System(lambda s, a: s + a, lambda s, a: -2.0 * a, horizon=3, boundary="clip",
    ...                landing=lambda z: -1.0 * np.maximum(z, 0), n_states=4, n_actions=3,
    ...                allowed=lambda s, a: s + a <= 3, disturbance_range=(-2, 0))
    >>> stock.f[0, :, 0]
    array([0, 1, 2, 3])
    >>> stock.raw_states
    range(-2, 4)

    A plant with a continuous state, on 81 points:

    >>> plant = System(lambda x, u: x + u[:, None], lambda x, u: -(x[:, 0]**2 + u**2), horizon=3, boundary="clip",
    ...                low=[-2], high=[2], points=81, actions=np.linspace(-2, 2, 81), disturbance_range=(-0.3, 0.3))
    >>> plant.n_states, plant.space.spacing
    (81, array([0.05]))
    """

    f: NDArray[Any]  # [H, S, A]; in a box [H, S, A, d]
    reward: NDArray[np.float64]  # [H, S, A]
    horizon: int | None
    n_steps: int  # H, or where there is no end the period: how many steps tables have
    n_contexts: int  # E
    boundary: Any  # the rule, or one for each axis
    model_error: float
    lipschitz: float | None
    landing: NDArray[np.float64] | None  # [H, Z]
    discount: float
    terminal: NDArray[np.float64]  # [S]
    allowed: NDArray[np.bool_]  # [H, S, A]
    disturbance_range: Any  # (low, high), numbers or [d]
    lag: int
    late: NDArray[np.float64]  # [Z + lag (R - 1)] the late landing reward
    state_offset: int
    n_states: int
    n_actions: int
    actions: NDArray[Any]  # [A] or [A, m]
    space: Space
    functions: dict[str, Function] = field(repr=False)  # of a box, by name
    _boundary_given: Any = field(repr=False)  # None where nobody stated it
    _landing_given: Any = field(repr=False)
    _late_given: Any = field(repr=False)

    def __init__(
        self,
        f: Table,
        reward: Table,
        horizon: int | None,
        boundary: str | Sequence[str] | Callable[..., Any] | None = None,
        model_error: float = 0,
        lipschitz: float | None = None,
        landing: Table | None = None,
        discount: float = 1.0,
        terminal: Table | None = None,
        allowed: Table | None = None,
        disturbance_range: Any = None,
        state_offset: int = 0,
        n_states: int | None = None,
        n_actions: int | None = None,
        *,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        points: Any = None,
        actions: ArrayLike | None = None,
        period: int = 1,
        contexts: int = 1,
        lag: int = 0,
        late_landing: Callable[..., Any] | None = None,
    ) -> None:
        self._put(
            **read_length(horizon, period, terminal),
            n_contexts=whole("contexts", contexts, 1, LARGEST_TABLE),
            model_error=real("model_error (ζ)", model_error, 0, LARGEST_TABLE),
            lipschitz=None if lipschitz is None else real("lipschitz", lipschitz, 0, LARGEST_RETURN),
            discount=real("discount", discount, 0, 1, open_low=True),
            state_offset=whole("state_offset", state_offset, -LARGEST_INTEGER, LARGEST_INTEGER),
            functions={},
            _boundary_given=boundary,
            _landing_given=landing,
        )
        if low is None and high is None and points is None and actions is None:
            self._put(disturbance_range=line_range(disturbance_range))
            S, A = sizes_of({"f": f, "reward": reward, "allowed": allowed}, n_states, n_actions)
            space = read_line(boundary, self.state_offset, S, self.disturbance_range)
            self._put(space=space, actions=np.arange(A), boundary=boundary if callable(boundary) else space.rules[0])
        else:
            refuse_line_arguments(self, n_states)
            self._put(actions=read_actions(actions, n_actions))
            self._put(space=read_box(boundary, low, high, points, disturbance_range))
            self._put(boundary=boundary if callable(boundary) or isinstance(boundary, str) else self.space.rules)
            self._put(disturbance_range=box_range(self.raw_space, disturbance_range))
        S, A = self.space.n_states * self.n_contexts, len(self.actions)
        self._put(n_states=S, n_actions=A)
        if S * A > LARGEST_TABLE:
            raise ValueError(f"{S} states and {A} actions are too many; take a coarser unit")
        check_length(self, "states" if self.space.all_whole else "points", S)
        self._put(allowed=read_table(self, "allowed", True if allowed is None else allowed, truths))
        check_actions(self)
        self._put(f=read_table(self, "f", f, places, trailing=() if self.space.is_line else (self.raw_space.n_axes,)))
        self._put(reward=read_table(self, "reward", reward, payments))
        self._put(terminal=read_terminal(self, terminal))
        check_inside(self)
        raw = float(np.prod(self.reach.raw_shape(self.bins).astype(float)))
        if raw > LARGEST_TABLE:
            raise ValueError(f"f + W spans {raw:.0f} raw states; at most {LARGEST_TABLE} are supported: check f and W")
        check_length(self, "raw states (f + W)", int(raw))
        check_boundary_given(self)
        self._put(landing=None if landing is None else read_landing(self, landing))
        self._put(**read_lag(self, lag, late_landing))
        if boundary is None:
            check_boundary_unsaid(self)

    def _put(self, **values: Any) -> None:
        self.__dict__.update(values)

    # -- what is told, in other words -------------------------------------------------------------

    @property
    def states(self) -> Any:
        """The names of the states: a range of numbers, or rows [S, d]."""
        return self.space.names

    @property
    def raw_space(self) -> Space:
        """The lattice of after-states and raw next states: that of the states, or one of a given boundary's own."""
        return self.space.raw or self.space

    @property
    def nearest_to_zero(self) -> Any:
        """The state nearest to 0, where an empty store begins: a number, or a row [d]."""
        nearest = np.clip(np.zeros_like(self.space.low), self.space.low, self.space.high)
        return int(nearest[0]) if self.space.is_line else nearest

    @cached_property
    def slack(self) -> int:
        """ζ/2: how far f may be off, in whole states."""
        return int(self.model_error // 2)

    @cached_property
    def after_states(self) -> Any:
        """Where an action that exists may lead, ζ/2 either way; the states, where only what it wraps to matters.

        A range of numbers, or rows [X, d].
        """
        if not self.space.is_line:
            return self.raw_space.low + (self.reach.origin + indices(self.reach.shape)) * self.raw_space.spacing
        if self._wraps_freely:
            return self.states
        low, high = self.reached_ends
        return range(int(low[0]) + self.state_offset - self.slack, int(high[0]) + self.state_offset + self.slack + 1)

    @cached_property
    def residuals(self) -> Any:
        """The disturbances told apart: the declared range widened by ζ/2 each way, else what the states can show.

        A range of numbers, or rows [R, d]. Where states wrap and landing pays nothing there is one for each state, of
        which the first ``bins.n_possible`` may occur.
        """
        if not self.space.is_line:
            return self.bins.values
        first, last = self.states[0], self.states[-1]
        if self.disturbance_range is not None:
            low, high = self.declared_residuals[0], self.declared_residuals[-1]
        elif self.boundary == "wrap":
            low, high = 0, self.space.n_states - 1
        else:
            low, high = first - self.after_states[-1], last - self.after_states[0]
        if self._wraps_freely:
            high = low + self.space.n_states - 1
        return range(low, high + 1)

    @cached_property
    def declared_residuals(self) -> range:
        """On a line: the residuals that the declared range and ζ allow; all, where none is declared."""
        if self.disturbance_range is None:
            return self.residuals  # type: ignore[no-any-return]
        return range(self.disturbance_range[0] - self.slack, self.disturbance_range[1] + self.slack + 1)

    @property
    def raw_states(self) -> Any:
        """Every z = after-state + residual: the axis of ``landing``. A range of numbers, or rows [Z, d]."""
        if not self.space.is_line:
            return self.raw_part(slice(0, self.n_raw))
        return range(self.after_states[0] + self.residuals[0], self.after_states[-1] + self.residuals[-1] + 1)

    @property
    def n_raw(self) -> int:
        """Z: how many raw next states there are."""
        return int(self.reach.raw_shape(self.bins).prod())

    def raw_part(self, part: slice) -> NDArray[Any]:
        """[n] or [n, d] a part of ``raw_states``."""
        if self.space.is_line:
            return np.arange(self.raw_states[part].start, self.raw_states[part].stop)
        rows: NDArray[Any] = self.raw_space.low + self.reach.raw(self.bins, part) * self.raw_space.spacing
        return rows

    @cached_property
    def bins(self) -> Bins:
        """The disturbances told apart, and how a measured one is found among them."""
        if not self.space.is_line:
            return box_bins(self.raw_space, *self.reached_ends, self.disturbance_range)
        low, high = self.disturbance_range or (0, 0)
        return Bins(
            first=np.array([self.residuals[0]]),
            count=np.array([len(self.residuals)]),
            spacing=self.space.spacing,
            is_whole=self.space.is_whole,
            is_line=True,
            declared=None if self.disturbance_range is None else (np.array([low]), np.array([high])),
            around=self.space.n_states if self._wraps_freely else 0,
            saturates=self._landing_given is None and self.boundary == "clip",
            n_possible=min(len(self.declared_residuals), len(self.residuals)),
        )

    @cached_property
    def reach(self) -> Reach:
        """The lattice of after-states."""
        if self.space.is_line:
            x = self.after_states
            return Reach(np.array([x[0] - self.state_offset]), np.array([len(x)]))
        return box_reach(self.raw_space, self.bins, *ends_of(map(self._cut, self._from_all())), self.n_steps)

    @cached_property
    def next_of_raw(self) -> NDArray[np.int32]:
        """[Z] the index of the state that a raw next state leads to; -1 where a given boundary leads outside."""
        found = np.empty(self.n_raw, np.int32)
        for i in range(0, len(found), AT_ONCE):
            part = slice(i, min(i + AT_ONCE, len(found)))
            found[part] = self.space.index_of_raw(self.reach.raw(self.bins, part))
        return sealed(found)

    @cached_property
    def at_any_state(self) -> AtAnyState:
        """The functions of a box, asked also between points."""
        return AtAnyState(self.actions, self.functions, self.space.is_whole)

    @property
    def last_step_is_known(self) -> bool:
        """Whether nothing that follows the last action depends on the disturbance."""
        paid = self.landing is not None and bool(np.ptp(self.landing[-1]))
        return self.horizon is not None and not paid and not np.ptp(self.terminal)

    @cached_property
    def mechanics(self) -> Mechanics:
        """The system as arrays for the compiled functions."""
        exists, reward = distinct_steps(self.allowed), distinct_steps(self.reward)
        return mechanics_of(
            self.space,
            self.bins,
            self.reach,
            self.next_of_raw,
            (len(self._f_and_allowed[0]), self.n_states, self.n_actions),
            (
                (h, part, self._cut(at) if e.all() else np.where(e[..., None], self._cut(at), self.reach.origin))
                for h, part, at, e in self._parts()
            ),
            reward if exists.all() else self._paid(reward, exists),
            None if self.landing is None else distinct_steps(self.landing),
            self.terminal,
            self.discount,
            self.n_steps,
            self.horizon is None,
            self.n_contexts,
            self.lag,
            self.late,
        )

    @staticmethod
    def _paid(reward: NDArray[np.float64], exists: NDArray[np.bool_]) -> NDArray[np.float64]:
        """[P, S, A] the reward, -inf where the action does not exist."""
        paid = np.broadcast_to(reward, (max(len(reward), len(exists)), *reward.shape[1:])).copy()
        np.copyto(paid, -np.inf, where=~exists)  # quicker than np.where
        return paid

    def same_disturbances(self, other: System) -> bool:
        """Whether the same disturbances are told apart over the same steps, so that what is known of W serves both."""
        mine, theirs = self.bins, other.bins
        lengths = [(one.horizon, one.n_steps, one.n_contexts) for one in (self, other)]
        return lengths[0] == lengths[1] and all(
            np.array_equal(getattr(mine, name), getattr(theirs, name)) for name in ("first", "count", "spacing")
        )

    @cached_property
    def tells_bounds(self) -> bool:
        """Whether a transition that hides W says that it was at most, or at least, something.

        So where W is whole and acts on one axis, and the boundary leads no other disturbances to one state than the
        smallest or the largest.
        """
        if not self.space.all_whole or int((self.bins.count > 1).sum()) > 1 or self.n_contexts > 1:
            return False
        return self.space.boundary is None or tells_bounds(self.mechanics)

    @cached_property
    def hidden_sets(self) -> HiddenSets | None:
        """The disturbances that a next state does not tell apart, where what it says of W is no bound.

        None where it is, on continuous axes, where a boundary is strict, and where there are too many to list.
        """
        if not self.space.all_whole or self.tells_bounds or "strict" in self.space.rules:
            return None
        return hidden_sets(self.mechanics)

    @property
    def says_of_hidden(self) -> bool:
        """Whether use can be made of what a transition says of a W that it hides: a bound, or a set."""
        return self.tells_bounds or self.hidden_sets is not None

    def indices_of(self, law: Any) -> NDArray[np.int64]:
        """[n] indices of the values of a distribution among the disturbances told apart; 0 for what never occurs."""
        index, occurs = np.zeros(len(law.values), np.int64), (law.pmf > 0).any(axis=0)
        index[occurs] = self.bins.index(law.values[occurs])
        index += self.bins.n * law.next_context
        return index

    def place(self, what: str, s: Any, context: Any = None) -> Any:
        """Where a state is: its index, context included, where all axes are whole; else the state itself, [d]."""
        place = self.space.place(what, s)
        if self.n_contexts == 1 and context is None:
            return place
        if context is None:
            raise TypeError(f"the system has {self.n_contexts} contexts; say in which the {what} is: context=")
        e = whole("context", context, 0, self.n_contexts - 1)
        return place + e * self.space.n_states if self.space.all_whole else place

    def step(self, h: Any) -> int:
        """A step, checked; where there is no end, its place in the period."""
        if type(h) is int and 0 <= h < self.n_steps:
            return h
        return whole("step h", h, 0, None if self.horizon is None else self.n_steps - 1) % self.n_steps

    def state_name(self, i: int) -> str:
        """The name of the state with index i, in a message, with its context."""
        e, s = divmod(i, self.space.n_states)
        return self.space.name(s) + (f" in context {e}" if self.n_contexts > 1 else "")

    def first_allowed(self) -> NDArray[np.int64]:
        """[H, S] the lowest action that exists."""
        lowest = distinct_steps(self.allowed).argmax(axis=2)
        return np.broadcast_to(lowest, (self.n_steps, self.n_states)).copy()

    def is_allowed(self, h: int, place: Any, a: int) -> bool:
        """Whether action a exists at a place (:meth:`ucbf.spaces.Space.place`)."""
        if self.space.all_whole:
            return bool(self.allowed[h, place, a])
        return bool(self.at_any_state.allowed(h, place[None], np.array([a]))[0])

    def nearest_allowed(self, h: int, place: Any, actions: NDArray[np.int64]) -> int:
        """What actions [S] say at a place; between points, at the nearest point whose action exists there."""
        if self.space.all_whole:
            return int(actions[place])
        action = int(actions[self.space.index(place)])
        if self.is_allowed(h, place, action):
            return action
        away = np.abs((self.space.points - place) / self.space.spacing).sum(axis=1)
        for i in np.argsort(away, kind="stable"):
            if self.is_allowed(h, place, int(actions[i])):
                return int(actions[i])
        raise ValueError(f"no action of the policy is allowed in state {place} at step {h}; allow one of them there")

    def hides(self, s: Any) -> bool:
        """Whether a state may hide the disturbance that led to it: at the end of a clipped axis."""
        place = self.space.place("state", s)
        if self.space.boundary is not None:
            return True
        if self.space.all_whole:
            return bool(self.space.hiding[place])
        return bool(np.logical_or(*self.space.ends(place)).any())

    # -- at any state -----------------------------------------------------------------------------

    def q_at(self, h: int, states: ArrayLike, ahead: NDArray[np.float64], weight: float = 1.0) -> NDArray[np.float64]:
        """[N, A] for states [N, d] of a box: the reward at the very state, times ``weight``, and what follows f.

        ahead: [X] what follows the after-states of the lattice; interpolated. -inf where an action does not exist
        """
        s = self.space.rows("state", states)
        if self.space.all_whole:
            i = (s - self.space.low) @ strides(self.space.shape)
            m = self.mechanics
            return weight * m.reward[h % len(m.reward)][i] + ahead[m.after[h % len(m.after)][i]]  # type: ignore[no-any-return]
        N, A = len(s), self.n_actions
        each, actions = np.repeat(s, A, axis=0), np.tile(np.arange(A), N)
        at = positions(self.space, self.at_any_state.after(h, each, actions))
        if self._landing_given is None:
            at = np.where(self.space.wraps, at % self.space.shape, at)
        q = weight * self.at_any_state.reward(h, each, actions) + look_ahead(self.space, self.reach, ahead, at)
        exists = self.at_any_state.allowed(h, each, actions).reshape(N, A)
        stuck = np.flatnonzero(~exists.any(axis=1))
        if len(stuck):
            raise ValueError(f"state {s[stuck[0]]} has no allowed action at step {h}; allow one in every state")
        return np.where(exists, q.reshape(N, A), -np.inf)

    def advance(self, h: Any, places: Any, actions: Any, w: Any) -> tuple[Any, Any]:
        """Where steps end, and what they pay, landing included.

        Parameters
        ----------
        h
            The step: a number, or [N] where all axes are whole.
        places
            State indices, a number or [N], where all axes are whole; else states [N, d].
        actions
            By index, a number or [N].
        w
            The disturbances: on a line a number or [N], in a box [N, d].
        """
        if not self.space.all_whole:
            ask = self.at_any_state
            raw = ask.after(h, places, actions) + w
            return self.space.meet_boundary(raw), ask.reward(h, places, actions) + ask.landing(h, raw)
        raw, paid = self.f[h, places, actions] + w, self.reward[h, places, actions]
        rows = raw[..., None] if self.space.is_line else raw
        if self.landing is not None:
            paid = paid + self.landing[h, raw_index(self.raw_space, self.bins, self.reach, rows)]
        return self.space.index_of_raw(rows - self.raw_space.low), paid

    # -- the same system with changes -------------------------------------------------------------

    def replace(self, **changes: Any) -> System:
        """The same system with some arguments changed. A landing function is read again, over the new raw states."""
        given: dict[str, Any] = self._tables() if self.space.all_whole else {}
        given |= {name: function.function for name, function in self.functions.items()}
        if callable(self._landing_given):
            given["landing"] = self._landing_given
        if self.lag:
            given |= {"lag": self.lag, "late_landing": self._late_given}
        if changes.get("horizon") is not None:
            given["period"] = 1
        elif "horizon" in changes:
            given["terminal"] = None
        return System(**{**self.arguments(), **given, "boundary": self._boundary_given, **changes})

    def arguments(self) -> dict[str, Any]:
        """The arguments that build this system again, tables without a step axis that says nothing.

        Of functions on continuous axes, which are asked between points too, and of a given boundary there is no table:
        such a system has to be stated again, and its tables are left out.
        """
        tables = self._tables()
        if not self.space.all_whole or self.space.boundary is not None or self.lag:
            tables = {"landing": None, "terminal": None, "allowed": None}
        arguments = tables | {
            "horizon": self.horizon,
            "period": self.n_steps if self.horizon is None else 1,
            "contexts": self.n_contexts,
            "boundary": GIVEN if self.space.boundary is not None else self.boundary,
            "model_error": self.model_error,
            "lipschitz": self.lipschitz,
            "discount": self.discount,
            "disturbance_range": self.disturbance_range,
        }
        if self.space.is_line:
            return arguments | {"state_offset": self.state_offset}
        points = [None if whole else int(n) for whole, n in zip(self.space.is_whole, self.space.shape, strict=True)]
        return arguments | {
            "low": self.space.low,
            "high": self.space.high,
            "points": points,
            "actions": self.actions,
        }

    def _tables(self) -> dict[str, Any]:
        """What is told as tables, without a step axis that says nothing."""
        return {
            "f": self._with_contexts(distinct_steps(self.f)),
            "reward": self._with_contexts(distinct_steps(self.reward)),
            "landing": None if self.landing is None else distinct_steps(self.landing),
            "terminal": None if self.horizon is None else self._with_contexts(self.terminal[None])[0],
            "allowed": self._with_contexts(distinct_steps(self.allowed)),
        }

    def _with_contexts(self, table: NDArray[Any]) -> NDArray[Any]:
        """A table [F, S, ...] as it is stated: with an axis for the contexts, where there are any."""
        if self.n_contexts == 1:
            return table
        return table.reshape(len(table), self.n_contexts, self.space.n_states, *table.shape[2:])

    def __repr__(self) -> str:
        space = self.space
        if space.is_line:
            states = f"{space.n_states} states {self.states[0]}..{self.states[-1]}"
        else:
            sides = " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(space.low, space.high, strict=True))
            states = f"{' x '.join(map(str, space.shape))} {'states' if space.all_whole else 'points'} of {sides}"
        length = f"horizon {self.horizon}" if self.horizon else f"no end, period {self.n_steps}"
        also = f", {self.n_contexts} contexts" if self.n_contexts > 1 else ""
        return (
            f"System({states}, {self.n_actions} actions, {length}{also}, boundary {self.boundary!r:.40}, "
            f"model_error {self.model_error:g})"
        )

    # -- where actions lead ------------------------------------------------------------------------

    @property
    def _wraps_freely(self) -> bool:
        """Whether only what f + W wraps to matters."""
        return self.space.is_line and self.boundary == "wrap" and self._landing_given is None

    @property
    def _cut_short(self) -> bool:
        """Whether after-states further out than makes a difference are left out: where landing pays nothing."""
        return self._landing_given is None and self.space.boundary is None

    @property
    def _f_and_allowed(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """[1 or H, S, A] both, f with its axes; one step, where all are alike."""
        f, exists = distinct_steps(self.f), distinct_steps(self.allowed)
        steps = max(len(f), len(exists))
        return np.broadcast_to(f, (steps, *f.shape[1:])), np.broadcast_to(exists, (steps, *exists.shape[1:]))

    def _parts(self) -> Iterator[tuple[int, slice, NDArray[Any], NDArray[np.bool_]]]:
        """Steps and some states: [n, A, d] where actions lead, counted in points from the first; [n, A] which exist."""
        f, exists = self._f_and_allowed
        rows = max(1, AT_ONCE // self.n_actions)
        for h, i in np.ndindex(len(f), -(-self.n_states // rows)):
            part = slice(i * rows, min((i + 1) * rows, self.n_states))
            x = f[h, part]
            yield h, part, positions(self.raw_space, x[..., None] if self.space.is_line else x), exists[h, part]

    def _reached(self) -> Iterator[NDArray[Any]]:
        """[n, d] where actions that exist lead, counted in points from the first, some at a time."""
        return (at.reshape(-1, at.shape[2]) if e.all() else at[e] for _, _, at, e in self._parts())

    @cached_property
    def reached_ends(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """[d] twice: the first and the last point, along each axis, that an action leads to."""
        return ends_of(self._reached())

    def _cut(self, at: NDArray[Any]) -> NDArray[Any]:
        """[..., d] after-states, without those further out than makes a difference."""
        cut = self.bins.around if self.space.is_line else self._cut_short
        return within_reach(self.space, self.bins, at) if cut else at

    def _from_all(self) -> Iterator[NDArray[Any]]:
        """[n, d] where actions lead, some at a time, the far ends of continuous axes that wrap included."""
        yield from self._reached()
        if (self.space.wraps & ~self.space.is_whole).any():
            yield self._from_the_end()

    def _from_the_end(self) -> NDArray[Any]:
        """[N, d] where actions lead from the far end of continuous axes that wrap, which no point is at."""
        space, A = self.space, self.n_actions
        turned = space.wraps & ~space.is_whole
        ends = np.where(turned & np.isclose(space.points, space.low), space.high, space.points)
        states, actions = np.repeat(ends, A, axis=0), np.tile(np.arange(A), len(ends))
        steps = range(self.n_steps if self.functions["f"].per_step else 1)
        return np.concatenate([positions(space, self.at_any_state.after(h, states, actions)) for h in steps])

"""Fleet: many items of one shape, each with its own costs and its own W, learned side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.agents import UCBVIf
from ucbf.certificates import Certificate
from ucbf.checks import integers, whole
from ucbf.disturbance import Disturbance
from ucbf.fleet.knowledge import AroundForecasts, Counted, Knowledge, Recalled, knowledge_of
from ucbf.fleet.parts import checked_costs, checked_system, parts_of
from ucbf.fleet.sharing import Shared, share
from ucbf.kernels import fleet as kernels
from ucbf.kernels.models import as_told
from ucbf.laws import Law, make_law
from ucbf.planning import tolerance
from ucbf.run import Progress
from ucbf.system import System
from ucbf.systems.base import Preset

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 512  # items that are planned in one call


class Fleet:
    """What UCBVI-f does, for many items at once: count each item's W, and plan for each with its own costs.

    All items have the states, actions and mechanics of one preset; items of another size belong into a fleet of their
    own. They differ in costs that a step's reward is linear in (prices, costs a unit, penalties), and in W. The results
    of an item are those of an agent that sees this item alone.

    Parameters
    ----------
    preset
        What all have in common: a preset of :mod:`ucbf.systems`, or a :class:`ucbf.System`.
    costs
        By the name of a parameter of the preset, [N] its value for each item. The others are as the preset has them.
    n_items
        N, where no costs are given.
    law
        How the distribution of W is learned: :class:`ucbf.laws.Counts` or :class:`ucbf.laws.Recent`, as of
        :class:`ucbf.UCBVIf`. None: by counting, with the three parameters that follow.
    stationary, prior, prior_weight
        As of :class:`ucbf.laws.Counts`; the same for all items.
    forecasts
        Whether W is learned around forecasts: :meth:`add` is told what had been expected, and :meth:`expect` what is
        expected of the coming episode.
    workers
        Threads that plan; one for each core if None. The results do not depend on it.

    Examples
    --------
    >>> import ucbf
    >>> shop = ucbf.systems.Inventory(capacity=10, max_demand=6, horizon=5)
    >>> fleet = ucbf.Fleet(shop, {"price": [9, 9, 5], "holding": [0.1, 3, 0.1]}, stationary=True)
    >>> fleet.add(items=[0, 1, 2, 2], steps=[0, 0, 0, 1], disturbances=[-4, -4, -4, -6])
    >>> fleet.act(0, [2, 2, 2]).tolist()
    [2, 2, 4]
    """

    def __init__(
        self,
        preset: Preset | System,
        costs: Mapping[str, ArrayLike] | None = None,
        n_items: int | None = None,
        *,
        law: Law | str | dict[str, Any] | None = None,
        stationary: bool = False,
        prior: Disturbance | None = None,
        prior_weight: float = 1.0,
        forecasts: bool = False,
        workers: int | None = None,
    ) -> None:
        self.preset = preset if isinstance(preset, Preset) else None
        self.system = system = checked_system(preset)
        self.names, self.costs = checked_costs(self.preset, costs, n_items)
        self.workers = (os.cpu_count() or 1) if workers is None else whole("workers", workers, 1, 4096)
        self.parts = parts_of(system, self.preset, self.names, self.costs)
        N, (H, S) = len(self.costs), (system.n_steps, system.n_states)
        learned = make_law(
            {"name": "Counts", "stationary": stationary, "prior": prior, "prior_weight": prior_weight}
            if law is None
            else law
        )
        self.knowledge: Knowledge = knowledge_of(learned, system.bins, H, N, forecasts)
        self._values, self._gains = np.zeros((N, S)), np.zeros(N)
        self._policies = np.zeros((N, H, S), np.int16)
        self._extra = np.broadcast_to(0.0, self.costs.shape)  # on top of costs, for something scarce that all share
        self._stale = np.ones(N, np.bool_)

    def __len__(self) -> int:
        return len(self.costs)

    def __repr__(self) -> str:
        return f"Fleet({len(self)} items, {self.system!r})"

    # -- what happened ------------------------------------------------------------------------------

    def add(
        self, items: ArrayLike, steps: ArrayLike, disturbances: ArrayLike, expected: ArrayLike | None = None
    ) -> None:
        """Count measured disturbances, in multiples of ``unit``: of these items at these steps, [n] each.

        Where states are rows, so are disturbances: [n, d]. What is recent counts more under :class:`ucbf.laws.Recent`:
        give them in order of time. expected: [n] what had been forecast, where the fleet learns around forecasts
        """
        i, h, w = self._items(items), integers("steps", steps), integers("disturbances", disturbances)
        if not len(i) == len(h) == len(w):
            raise ValueError(
                f"there are {len(i)} items, {len(h)} steps and {len(w)} disturbances; give as many of each"
            )
        if len(h) and not (h.min() >= 0 and h.max() < self.system.n_steps):
            raise ValueError(f"steps go from {h.min()} to {h.max()}; they must be 0 to {self.system.n_steps - 1}")
        self.add_indices(
            i, h, self.indices(w), None if expected is None else self.indices(integers("expected", expected))
        )

    def add_indices(self, items: Ints, steps: Ints, j: Ints, expected: Ints | None = None) -> None:
        """The same for what was checked before: indices of W."""
        if expected is None:
            self.knowledge.add(items, steps, j)
        else:
            self._around.add_around(items, steps, j, expected)
        if not self._stale.all():
            self._stale[items] = True

    def expect(self, expected: ArrayLike, items: ArrayLike | None = None) -> None:
        """Plan for forecasts [N, H] of the disturbances of the coming episode, of every item or of some."""
        i = self._items(np.arange(len(self)) if items is None else items)
        w = integers("expected", expected)
        if w.shape != (len(i), self.system.n_steps):
            raise ValueError(f"expected has shape {w.shape}; give [N, H] = {(len(i), self.system.n_steps)}")
        self._around.expected[i] = self.indices(w.ravel()).reshape(w.shape)
        self._stale[i] = True

    @property
    def _around(self) -> AroundForecasts:
        if not isinstance(self.knowledge, AroundForecasts):
            raise ValueError("expected is given, and this fleet does not learn around forecasts; pass forecasts=True")
        return self.knowledge

    def observe(
        self,
        h: int,
        states: ArrayLike,
        actions: ArrayLike,
        next_states: ArrayLike,
        disturbances: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> None:
        """Learn from one transition of every item, or of some: [n] each.

        disturbances: where they were measured; else what the next state says of them counts, a bound where a boundary
        hides them
        """
        i, h = self._items(np.arange(len(self)) if items is None else items), self.system.step(h)
        if len(np.unique(i)) < len(i):
            raise ValueError("an item stands twice among items; show its transitions one after the other")
        s, a, s_next = self.places(states, i), integers("actions", actions), self.places(next_states, i)
        if a.shape != i.shape or not self.system.allowed[h % len(self.system.allowed), s, a].all():
            raise ValueError("actions must be one for each item, and one that exists in its state")
        known = np.full(len(i), disturbances is not None)
        measured = np.zeros(len(i), np.int64) if disturbances is None else self.indices(
            integers("disturbances", disturbances)
        )  # fmt: skip
        m, law = self.system.mechanics, self.knowledge
        if isinstance(law, Counted):
            kernels.observe_items(m, law.law, law.rows, i, h, s, a, s_next, measured, known)
        else:
            low, high = np.zeros(len(i), np.int64), np.zeros(len(i), np.int64)
            kernels.explain_items(m, h, s, a, s_next, measured, known, low, high)
            if (low < high).any():
                raise ValueError(
                    "a boundary hides a disturbance, and only counts know what to make of it; measure it "
                    "(disturbances), or use law=None without forecasts"
                )
            law.add(i, np.full(len(i), h), np.clip(low, 0, m.n_residuals - 1))
        self._stale[i] = True

    # -- what follows from it -----------------------------------------------------------------------

    def act(self, h: int, states: ArrayLike) -> Ints:
        """[N] the best action of every item at step h, in these states [N]."""
        self.renew()
        everything = np.arange(len(self))
        chosen: Ints = self._policies[everything, self.system.step(h), self.places(states, everything)].astype(np.int64)
        return chosen

    @property
    def policies(self) -> NDArray[np.int16]:
        """[N, H, S] the best action of every item at every step and state."""
        self.renew()
        return self._policies

    @property
    def values(self) -> Floats:
        """[N, S] the value of every first state of every item, in the user's units."""
        self.renew()
        return self._values

    @property
    def gains(self) -> Floats:
        """[N] the best average reward of a step in the long run, where there is no end and no discount.

        Not a number where the plan of an item did not settle: then its policy and values are not to be relied on.
        """
        if self.system.horizon is not None or self.system.discount < 1:
            raise AttributeError("gains are of systems with horizon=None and discount=1; use values")
        self.renew()
        return self._gains

    @property
    def unsettled(self) -> NDArray[np.bool_]:
        """[N] whose plan without an end did not settle: policy and values are then not to be relied on."""
        self.renew()
        return np.isnan(self._gains)

    def renew(self, progress: Progress | None = None) -> None:
        """Plan for the items of which something new was seen.

        progress: called with (items planned, items to plan)
        """
        due = np.flatnonzero(self._stale)
        if not len(due):
            return
        done = 0
        for block in self.in_blocks(self._plan, due):
            self._stale[block] = False
            done += len(block)
            if progress is not None:
                progress(done, len(due))

    def in_blocks(self, work: Callable[[Ints], Ints], items: Ints) -> Iterator[Ints]:
        """Do some work on blocks of items, several at once; give them back in their order as they are done."""
        blocks = [items[k : k + BLOCK] for k in range(0, len(items), BLOCK)]
        with ThreadPoolExecutor(min(self.workers, len(blocks))) as pool:
            yield from pool.map(work, blocks)

    def _plan(self, items: Ints) -> Ints:
        """Plan for some items, with room of its own."""
        value, costs = self._values[items], self.costs[items] + self._extra[items]
        found = self.plans(items, self.believed(items, True), costs, value)
        self._values[items], (self._policies[items], self._gains[items]) = value, found
        return items

    def plans(self, items: Ints, law: Floats, costs: Floats, value: Floats) -> tuple[NDArray[np.int16], Floats]:
        """[n, H, S] the best actions of some items and [n] their gains, if W follows law [n, L, R], at costs [n, C].

        value: [n, S] filled; without an end, where plans begin
        """
        (n, S), (m, model, v, ahead, actions, raw) = value.shape, self.room()
        policy, gain = np.zeros((n, len(ahead), S), np.int16), np.zeros(n)
        if self._runs is None:
            given = costs, law, self.settled(items), value, policy, gain
            kernels.plan_items(m, model, self.parts, *given, v, ahead, actions, raw)
        else:
            parts, best, chosen = self._by_action, np.zeros(S), np.zeros(S, np.int16)
            m = m._replace(reward=np.zeros(parts.reward.shape[1:]))
            kernels.plan_by_action(m, self._runs, parts, costs, law, value, policy, v, ahead, raw, best, chosen)
        return policy, gain

    @cached_property
    def _runs(self) -> Ints | None:
        """Where actions lead, if plans can be made for one action after the other."""
        return None if self.system.horizon is None else kernels.runs_of(self.system.mechanics)

    @cached_property
    def _by_action(self) -> kernels.Parts:
        """The parts, with rewards [1 + C, P, A, S]."""
        return self.parts._replace(reward=np.ascontiguousarray(self.parts.reward.swapaxes(2, 3)))

    def believed(self, items: Ints, curious: bool) -> Floats:
        """[n, L, R] the distributions of some items; curious: with the doubts that a plan adds where W was censored."""
        return self.knowledge.believed(items, curious)

    # -- something scarce that all share ------------------------------------------------------------

    def share(
        self,
        cost: str,
        most: float,
        start: ArrayLike | None = None,
        tolerance: float = 1e-6,
        *,
        weight: ArrayLike | None = None,
    ) -> Shared:
        """Plan so that, together and on average, the items use no more of something scarce than there is.

        What is scarce is what ``cost`` is paid for. With a multiplier on top of every item's cost the items plan for
        themselves again (Lagrangian relaxation); the smallest multiplier that leaves enough is found by bisection. The
        policies stay those of that multiplier until :meth:`unshare`.

        Parameters
        ----------
        cost
            One of the costs that were given: "unit_cost" limits the units ordered in an episode (less those that
            are left at its end, where salvage is not given), "order_cost" the number of orders, "holding" the units
            that are left, added up over the steps.
        most
            How much there is, of all items together, in an episode.
        start
            [N] the first states; the one nearest to 0 for all if None.
        tolerance
            How closely the multiplier is found, as a share of itself.
        weight
            [N] how much of what is scarce a unit of that takes: for a budget in money the unit cost of each item, for a
            common store the room that a unit needs; 1 for all if None.

        Examples
        --------
        >>> import ucbf
        >>> shop = ucbf.systems.Inventory(capacity=10, max_demand=6, horizon=5, salvage=0)
        >>> fleet = ucbf.Fleet(shop, {"price": [9, 5], "unit_cost": [2, 2]}, stationary=True)
        >>> fleet.add(items=[0, 1], steps=[0, 0], disturbances=[-4, -4])
        >>> plans = fleet.share("unit_cost", 30)
        >>> round(plans.used, 6), round(plans.multiplier, 3)
        (20.0, 3.0)
        """
        return share(self, cost, most, start, tolerance, weight)

    def unshare(self) -> None:
        """Plan for every item by itself again."""
        self.charge(None, 0.0)

    def take(self, items: NDArray[np.bool_], values: Floats, policies: NDArray[np.int16]) -> None:
        """Let some items follow other plans, until something new is seen of them."""
        self._values[items], self._policies[items] = values[items], policies[items]

    def charge(self, cost: str | None, extra: ArrayLike) -> None:
        """Plan with so much, [N] or for all alike, on top of one of the costs of every item, and of no other."""
        added = np.zeros(self.costs.shape)
        if cost is not None:
            added[:, self.names.index(cost)] = extra
        self._extra = added
        self._stale[:] = True

    def room(self) -> tuple[Any, ...]:
        """The shared mechanics with room for what one item pays, f as told, and room for a plan."""
        m, H, S = self.system.mechanics, self.system.n_steps, self.system.n_states
        m = m._replace(**{name: np.zeros_like(getattr(m, name)) for name in ("reward", "landing", "terminal")})
        v, ahead = np.zeros((H + 1, S)), np.zeros((H, m.n_after))
        return m, as_told(m), v, ahead, np.zeros((H, S), np.int64), np.zeros(len(m.next_state))

    def settled(self, items: Ints) -> Floats:
        """[n] how far bounds on what a period of an item pays may be apart, where there is no end."""
        if self.system.horizon is not None:
            return np.zeros(len(items))
        most: Floats = self._largest[0] + np.abs(self.costs[items]) @ self._largest[1:]
        return np.maximum(tolerance(self.system), 1e-12 * most)

    @cached_property
    def _largest(self) -> Floats:
        """[1 + C] the largest amount in each of the parts."""
        finite = np.where(np.isfinite(self.parts.reward), self.parts.reward, 0)
        largest: Floats = np.abs(finite).max(axis=(1, 2, 3)) + np.abs(self.parts.landing).max(axis=(1, 2))
        return largest

    # -- one item ---------------------------------------------------------------------------------

    def system_of(self, item: int) -> System:
        """The system of one item, with what it pays."""
        m = self.room()[0]
        kernels.weigh(self.parts, self.costs, whole("item", item, 0, len(self) - 1), m)
        return self.system.replace(reward=np.where(np.isfinite(m.reward), m.reward, 0), landing=m.landing,
                                   **({} if self.system.horizon is None else {"terminal": m.terminal}))  # fmt: skip

    def distribution_of(self, item: int) -> Disturbance:
        """The distribution of W of one item, as it is believed now."""
        law = self.believed(np.array([whole("item", item, 0, len(self) - 1)]), False)[0]
        return Disturbance.over(self.system.bins, law / law.sum(axis=1, keepdims=True), 1)

    @property
    def half_lives(self) -> Floats | None:
        """[N] the half-life that is used for each item, where what is recent counts more; else None."""
        known = self.knowledge.errors if isinstance(self.knowledge, AroundForecasts) else self.knowledge
        return known.chosen(np.arange(len(self))) if isinstance(known, Recalled) else None

    def agent_of(self, item: int) -> UCBVIf:
        """UCBVI-f in the system of one item, with what was counted of it: to go on with it alone, or to save it."""
        i, known = whole("item", item, 0, len(self) - 1), self.knowledge
        if not isinstance(known, Counted):
            raise ValueError("an agent is made of counts, and this fleet knows W in another way; use law=None")
        rows = slice(i * known.rows, (i + 1) * known.rows)
        agent = UCBVIf(self.system_of(i), law=known.origin.fresh())
        for name in ("counts", "below", "above"):
            getattr(agent.learner.law, name)[...] = getattr(known.law, name)[rows]
        hidden = (known.law.below + known.law.above)[rows].sum(axis=1)
        agent.learner.watch.unused[1] = hidden.sum()
        seen = agent.knowledge.counted().sum(axis=1) + hidden
        agent.learner.visits[...] = seen[:, None] // (self.system.n_steps // known.rows)
        return agent

    def certificate(self, item: int, p: float = 0.05, form: str = "best") -> Certificate:
        """How far from optimal the plan of one item can be: :meth:`ucbf.UCBVIf.certificate`."""
        return self.agent_of(item).certificate(p, form)

    # -- files --------------------------------------------------------------------------------------

    def write(self, path: str | Path, names: Sequence[str] | None = None) -> None:
        """Write policies and values as Parquet: a row an item, lists over steps and states.

        names: [N] what the items are called; their numbers if None
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.renew()
        N, H, S = self._policies.shape
        called = pa.array(range(N) if names is None else list(names))
        if len(called) != N:
            raise ValueError(f"names has {len(called)} entries; give one for each of the {N} items")
        columns = {
            "item": called,
            **{name: pa.array(self.costs[:, k]) for k, name in enumerate(self.names)},
            "value": pa.FixedSizeListArray.from_arrays(pa.array(self._values.ravel()), S),
            "action": pa.FixedSizeListArray.from_arrays(pa.array(self._policies.ravel()), H * S),
        }
        pq.write_table(pa.table(columns), path)

    # -- checks -------------------------------------------------------------------------------------

    def _items(self, items: ArrayLike) -> Ints:
        i = np.atleast_1d(integers("items", items))
        if len(i) and not (i.min() >= 0 and i.max() < len(self)):
            raise ValueError(f"items go from {i.min()} to {i.max()}; they must be 0 to {len(self) - 1}")
        return i

    def places(self, states: ArrayLike, items: Ints) -> Ints:
        """[n] the indices of states."""
        space = self.system.space
        if space.is_line:
            s: Ints = integers("states", states) - self.system.states[0]
            if s.shape != items.shape or (len(s) and not (s.min() >= 0 and s.max() < self.system.n_states)):
                raise ValueError(
                    f"states must be {len(items)} numbers from {self.system.states[0]} to {self.system.states[-1]}, "
                    "one for each item"
                )
            return s
        rows = np.asarray(states)
        return np.array([space.place("state", row) for row in rows], np.int64)

    def indices(self, w: Ints) -> Ints:
        """[n] disturbances as indices."""
        if not self.system.space.is_line:
            j, _ = self.system.bins.spread(w)
            return np.ascontiguousarray(j[:, 0])
        low, n = int(self.system.residuals[0]), self.system.bins.n
        j = w - low
        if len(j) and not (j.min() >= 0 and j.max() < n):
            raise ValueError(
                f"disturbances go from {w.min()} to {w.max()}, and W from {low} to {low + n - 1}; widen the range that "
                "the preset declares"
            )
        return j

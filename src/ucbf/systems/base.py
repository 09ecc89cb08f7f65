"""What all presets have in common: the user's units on one side, a :class:`ucbf.System` of integers on the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, real
from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem
from ucbf.planning import lowest_best, worths
from ucbf.policies import Policy
from ucbf.rule_reading import Words
from ucbf.rules import certainty_equivalent, myopic
from ucbf.system import System
from ucbf.systems.distributions import at_values, binomial, empirical
from ucbf.systems.parameters import Parameters
from ucbf.world import World


def _on_first_axis(amount: Any, axes: int) -> list[Any]:
    """A disturbance of the first axis of so many."""
    return [amount, *[0] * (axes - 1)]


def best_policy(world: World, policies: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The policy [H, S] with the highest value, averaged over the first state."""
    return policies[int(np.argmax(worths(world, policies)))]


@dataclass(frozen=True, kw_only=True)
class Preset(Parameters):
    """A system that is met often. It builds a :class:`ucbf.System` and, given a distribution, a :class:`ucbf.World`.

    All parameters are in the user's units. States and actions of the system are whole multiples of ``unit``.

    The *amount* is what is not known beforehand, in the user's units: a demand, an inflow, arrivals. The *profile* is
    the amount expected at each step. The disturbance is W = sign (amount - profile), in multiples of ``unit``. A
    subclass says what an amount does to the state.
    """

    kind: ClassVar[str]  # the name of the preset in commands
    amount_name: ClassVar[str]
    state_name: ClassVar[str]
    action_name: ClassVar[str]
    step_name: ClassVar[str]
    sign: ClassVar[int]  # 1 if the amount adds to the state, -1 if it is taken from the state
    range_parameters: ClassVar[tuple[str, ...]] = ("amount_range",)  # the parameters that set amount_range
    total_name: ClassVar[str | None] = None  # what the axes of a state with several add up to
    raising_verb: ClassVar[str | None] = None  # for actions that raise the state: "order", as in "order up to 23"

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.amount_range
        if low > high:
            raise ValueError(
                f"the {self.amount_name} is from {low:g} to {high:g}; the first must not exceed the second"
            )
        expected = self.per_step("profile")
        if self.has_profile and (expected.min() < low or expected.max() > high):
            raise ValueError(
                f"profile goes from {expected.min():g} to {expected.max():g}, but the {self.amount_name} only from "
                f"{low:g} to {high:g}; widen its range ({', '.join(self.range_parameters)})"
            )

    # -- what a subclass supplies, besides check() --------------------------------------------------

    @property
    @abstractmethod
    def amount_range(self) -> tuple[float, float]:
        """The smallest and the largest amount."""

    @property
    @abstractmethod
    def action_quantities(self) -> NDArray[Any]:
        """[A] how much each action orders, releases, serves, ..., in the user's units."""

    @abstractmethod
    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System that differ from preset to preset: f, reward, sizes, ..."""

    @classmethod
    def suggested_sizes(cls, least: float, mean: float, most: float, **given: Any) -> dict[str, Any]:
        """Parameters that suit amounts with this minimum, mean and maximum; the caller rounds them up to units.

        given: parameters that are known; the others are as the preset has them
        """
        return {}

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Policies [H, S] by name: the rules that practitioners use for this preset only."""
        return {}

    def with_defaults_fixed(self, training_changes: Sequence[dict[str, Any]]) -> Self:
        """A copy in which defaults that follow from changing parameters are fixed, from the training episodes.

        A battery values its rest at the mean price of the day, unless told otherwise. Where prices change from day to
        day, the mean price of the training days takes its place.

        training_changes: for each training episode, the parameters that differ in it
        """
        return self

    @property
    def beyond_a_line(self) -> bool:
        """Whether its system is more than a line that pays at once: rows for states, or rewards that come late."""
        return False

    # -- the system, and a world of it ------------------------------------------------------------

    @cached_property
    def system(self) -> System:
        """What a learner is told."""
        ends = self._disturbance_ends
        arguments = {"boundary": "clip", **self.mechanics()}
        arguments.pop("compiled", None)  # of what is too large for a table
        axes = arguments.pop("raw_axes", None)  # of a box: the amount acts on the first
        if self.horizon is None:
            arguments.pop("terminal", None)
        return System(
            **arguments,
            horizon=self.horizon,
            period=self.period,
            discount=self.discount,
            disturbance_range=tuple(end if axes is None else _on_first_axis(end, axes) for end in ends),
        )

    @property
    def _disturbance_ends(self) -> tuple[int, int]:
        """The least and the largest W."""
        low, high = (int(x) for x in self.to_units(self.amount_range))
        if self.has_profile:  # the same for every profile, so that what is known of W around one serves another
            return low - high, high - low
        return min(self.sign * low, self.sign * high), max(self.sign * low, self.sign * high)

    @cached_property
    def large(self) -> LargeSystem:
        """What a learner is told, without listing the states: for pipelines and ages that no table can hold."""
        arguments = self.mechanics()
        axes = arguments.pop("raw_axes", None)
        if axes is None:
            raise ValueError(
                f"the states of this {type(self).__name__} are on a line, and a table holds them: use its .system"
            )
        if self.period != 1 or self.has_profile:
            raise ValueError(
                f"period is {self.period}, profile {self.profile!r:.40}; values are fitted where all steps are alike: "
                "leave both out"
            )
        if self.horizon is None:
            arguments.pop("terminal", None)
        ends = tuple(_on_first_axis(end, axes) for end in self._disturbance_ends)
        return LargeSystem(**arguments, horizon=self.horizon, discount=self.discount, disturbance_range=ends)

    def large_law(self, law: Disturbance) -> Disturbance:
        """The distribution of W, as rows, given that of the amount in multiples of ``unit``: for ``large``."""
        law = self.disturbance_distribution(law)
        return Disturbance(law.pmf, values=[_on_first_axis(w, self.large.n_raw) for w in law.values])

    @property
    def is_line(self) -> bool:
        """Whether states and disturbances are numbers; else rows, of which the amount moves the first."""
        return self.system.space.is_line

    def _rows(self, law: Disturbance) -> Disturbance:
        """A distribution of W as the system has it: of numbers, or of rows."""
        if self.is_line:
            return law
        return Disturbance(law.pmf, values=[_on_first_axis(w, self.system.raw_space.n_axes) for w in law.values])

    def world(self, law: Disturbance | None = None, start: float | ArrayLike | None = None) -> World:
        """A world in which the amount has this distribution.

        law: the distribution of the amount in multiples of ``unit``; :meth:`example_distribution` if None
        start: the first state in the user's units, or probabilities [S]; uniform if None
        """
        if start is not None and (np.ndim(start) == 0 or (not self.is_line and np.ndim(start) == 1)):
            start = self.to_units(start) if np.ndim(start) else int(self.to_units(start))
        law = self.example_distribution() if law is None else law
        return World(self.system, self._rows(self.disturbance_distribution(law)), start)

    # -- from the amount to W and back ------------------------------------------------------------

    def example_distribution(self) -> Disturbance:
        """A distribution of the amount to try the preset with: binomial, a third of the way from least to most."""
        low, high = (int(x) for x in self.to_units(self.amount_range))
        return binomial(low, high)

    def empirical_distribution(self, measured: ArrayLike, pooled: bool = False) -> Disturbance:
        """The distribution of measured amounts [K, H], in multiples of ``unit``: for every step, or one if pooled."""
        return empirical(self._measured_units(measured), pooled)

    def distribution_of(
        self, amounts: Sequence[NDArray[np.float64]], weights: Sequence[NDArray[np.float64]]
    ) -> Disturbance:
        """The distribution of W where these amounts [n], for each step, are as likely as their weights [n] say.

        An amount beyond ``amount_range`` counts as the end of it.
        """
        bins, rows = self.system.bins, []
        for h, (amount, weight) in enumerate(zip(amounts, weights, strict=True)):
            w = self.sign * (self.to_units(np.clip(amount, *self.amount_range)) - self.expected_amount[h])
            rows.append(np.bincount(bins.index(w), weight, minlength=len(self.system.residuals)))
        pmf = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
        return Disturbance(pmf / pmf.sum(axis=1, keepdims=True), low=self.system.residuals[0])

    def disturbances(self, measured: ArrayLike) -> NDArray[np.int64]:
        """[K, H] W of measured amounts [K, H], which are rounded to multiples of ``unit``."""
        w: NDArray[np.int64] = self.sign * (self._measured_units(measured) - self.expected_amount)
        return w

    def disturbance_distribution(self, law: Disturbance) -> Disturbance:
        """The distribution of W, given that of the amount in multiples of ``unit``."""
        if not isinstance(law, Disturbance):
            raise TypeError(f"law is {law!r:.60}; give a ucbf.Disturbance of the {self.amount_name}")
        occurs = law.values[(law.pmf > 0).any(axis=0)]
        low, high = self.to_units(self.amount_range)
        if occurs[0] < low or occurs[-1] > high:
            found, declared = (
                f"{a * self.unit:g} to {b * self.unit:g}" for a, b in ((occurs[0], occurs[-1]), (low, high))
            )
            raise ValueError(
                f"law gives a {self.amount_name} from {found}, but it is declared from {declared}; widen that range "
                f"({', '.join(self.range_parameters)})"
            )
        if self.has_profile and len(law.pmf) not in (1, self.n_steps):
            raise ValueError(
                f"law has {len(law.pmf)} steps and the system {self.n_steps}; give one row, or one for each step"
            )
        return at_values(law, self.sign * (law.values - self._expected_column))

    def amount_distribution(self, law: Disturbance) -> Disturbance:
        """The distribution of the amount in multiples of ``unit``, given that of W."""
        return at_values(law, self.sign * law.values + self._expected_column)

    def clipped_to_amount_range(self, law: Disturbance) -> Disturbance:
        """A distribution of W in which impossible amounts (below zero, say) are moved to the nearest possible one.

        Needed where W was measured around one profile and is used around another.
        """
        return at_values(law, self.nearest_possible(law.values, self._expected_column)) if self.has_profile else law

    def nearest_possible(self, w: NDArray[np.int64], expected: NDArray[np.int64]) -> NDArray[np.int64]:
        """W, moved to where its amount is possible. expected: the profile of its step, in multiples of ``unit``."""
        low, high = self.to_units(self.amount_range)
        moved: NDArray[np.int64] = self.sign * (np.clip(self.sign * w + expected, low, high) - expected)
        return moved

    @property
    def expected_amount(self) -> NDArray[np.int64]:
        """[H] the profile in multiples of ``unit``."""
        return self.to_units(self.per_step("profile"))

    @property
    def has_profile(self) -> bool:
        """Whether a profile is given."""
        return bool(np.ndim(self.profile)) or self.profile != 0

    @property
    def _expected_column(self) -> NDArray[np.int64]:
        """[H, 1] the expected amounts; [1, 1] without a profile, so that one distribution for all steps stays one."""
        return self.expected_amount[:, None] if self.has_profile else np.zeros((1, 1), np.int64)

    def _measured_units(self, measured: ArrayLike) -> NDArray[np.int64]:
        """[K, H] measured amounts in multiples of ``unit``."""
        table = numbers(self.amount_name, measured)
        if table.ndim != 2 or table.shape[1] != self.n_steps or not len(table):
            raise ValueError(f"{self.amount_name} has shape {table.shape}; give [K, H] with H = {self.n_steps}")
        return self.to_units(table)

    # -- actions and policies -----------------------------------------------------------------------

    def action_of(self, quantity: float) -> int:
        """The number of the action that orders, releases, serves, ... so much, or within one ``unit`` of it."""
        known = self.action_quantities
        away = np.abs(known - real(self.action_name, quantity, -np.inf))
        if away.min() <= self.unit:
            return int(away.argmin())
        if not known.min() < quantity < known.max():
            raise ValueError(f"{self.action_name} is {quantity:g}; it must be {known.min():g} to {known.max():g}")
        below, above = known[known < quantity].max(), known[known > quantity].min()
        raise ValueError(
            f"{self.action_name} is {quantity:g}, which is none that {type(self).__name__} has: give {below:g} or "
            f"{above:g}, or change the parameters"
        )

    def policy(self, given: Any, steps: tuple[str, ...] | None = None, step: str | None = None) -> Policy:
        """A policy in the words of this preset.

        given: an agent, a plan, or actions [H, S]
        steps: names of the steps, such as the days of the week
        step: what a step is, such as "year"
        """
        step = step or self.step_name
        quantities = self.action_quantities if self.action_quantities.ndim == 1 else None
        words = Words(
            self.state_name, self.action_name, step, self.unit, quantities, self.raising_verb, steps, self.total_name
        )
        if hasattr(given, "q"):  # of actions that differ by rounding only, the lowest: rounding must not hide a rule
            given = lowest_best(given.q)
        return Policy(self.system, getattr(given, "policy", given), words)

    def rules(self, law: Disturbance, system: System | None = None) -> dict[str, NDArray[np.int64]]:
        """Policies [H, S] by name: the rules that practitioners use, given the distribution of W.

        system: the one to use instead of this preset's; it may differ in its terminal reward (:func:`ucbf.endless`)
        """
        system = self.system if system is None else system
        law = self._rows(law) if law.is_line else law
        simple = {"myopic": myopic(self.system, law)}
        if self.is_line:
            simple["certainty-equivalent"] = certainty_equivalent(system, law)
        return {**simple, **self.own_rules(World(system, law))}

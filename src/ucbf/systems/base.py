"""What the ready systems have in common: natural units on one side, a :class:`ucbf.System` of integers on the other."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, real, whole
from ucbf.disturbance import Disturbance
from ucbf.planning import evaluate, lowest_best
from ucbf.policies import Policy, Words
from ucbf.rules import certainty_equivalent, myopic
from ucbf.system import System
from ucbf.world import World

PerStep = float | tuple[float, ...]
MOST_UNITS = 100_000  # that anything may have
MOST_STEPS = 1_000_000  # of an episode: more than a year of minutes


def _shown(value: Any) -> str:
    """A parameter in a few characters."""
    if np.ndim(value) == 0:
        return f"{value:g}"
    return " ".join(f"{x:g}" for x in value) if len(value) <= 12 else f"{min(value):g} to {max(value):g}"


def _placed(law: Disturbance, values: NDArray[np.int64]) -> Disturbance:
    """The law with its masses at other values, [1 or H, n]; what comes to the same place adds up."""
    rows = np.broadcast_to(values, (max(len(values), len(law.pmf)), values.shape[1]))
    pmf = np.zeros((len(rows), int(np.ptp(values)) + 1))
    for h, row in enumerate(rows):
        np.add.at(pmf[h], row - values.min(), law.pmf[h % len(law.pmf)])
    return Disturbance(pmf, low=int(values.min()))


def best_of(world: World, choices: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The policy with the highest value, averaged over the first state."""
    return max(choices, key=lambda policy: float(world.start @ evaluate(world, policy)[0]))


@dataclass(frozen=True, kw_only=True)
class Ready(ABC):
    """A kind of system that is met often: a builder of a :class:`ucbf.System` and, given a law, of a World.

    Amounts are in the user's units, costs too; states and actions of the system are whole multiples of ``unit``. The
    *amount* is what is not known beforehand, in the user's words: a demand, an inflow, arrivals. Subclasses say what
    it does: W = sign (amount - profile).
    """

    kind: ClassVar[str]  # the name of the system in commands
    amount_name: ClassVar[str]
    state_name: ClassVar[str]
    action_name: ClassVar[str]
    step_name: ClassVar[str]
    sign: ClassVar[int]  # whether the amount adds to the state (1) or is taken from it (-1)
    limits: ClassVar[str] = "amount_range"  # the parameters that say how far the amount goes
    multiples: ClassVar[tuple[str, ...]] = ()  # the parameters that must be multiples of the unit
    raises: ClassVar[str | None] = None  # the verb of an action that raises the state, as in "order up to 23"

    horizon: int
    unit: float = 1.0
    profile: PerStep = 0.0
    discount: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                numbers(field.name, value)
        whole("horizon", self.horizon, 1, MOST_STEPS)
        real("unit", self.unit, 0, open_low=True)
        real("discount", self.discount, 0, 1, open_low=True)
        self.check()
        for name in self.multiples:
            self._check_multiple(name)
        low, high = self.amount_range
        if low > high:
            raise ValueError(
                f"the {self.amount_name} is from {low:g} to {high:g}; the first must not exceed the second"
            )
        expected = self.per_step("profile")
        if self.profiled and (expected.min() < low or expected.max() > high):
            raise ValueError(
                f"profile goes from {expected.min():g} to {expected.max():g}, but the {self.amount_name} only from "
                f"{low:g} to {high:g}; widen its range"
            )

    # -- what a kind of system supplies -----------------------------------------------------------

    @abstractmethod
    def check(self) -> None:
        """An error for a parameter that makes no sense."""

    @property
    @abstractmethod
    def amount_range(self) -> tuple[float, float]:
        """The smallest and the largest amount."""

    @property
    @abstractmethod
    def action_amounts(self) -> NDArray[Any]:
        """[A] what each action means, in the user's units."""

    @classmethod
    def sizes(cls, least: float, mean: float, most: float) -> dict[str, Any]:
        """Sizes that suit amounts of this least, mean and most; rounded up to whole units by the caller."""
        return {}

    @abstractmethod
    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System, but for what all kinds share."""

    # -- the system, and a world of it ------------------------------------------------------------

    @cached_property
    def system(self) -> System:
        """What a learner is told."""
        low, high = (int(x) for x in self.units(self.amount_range))
        # With a profile W's range is the same for every one, so that what is known of W serves another.
        ends = (low - high, high - low) if self.profiled else sorted((self.sign * low, self.sign * high))
        return System(
            **self.mechanics(),
            horizon=self.horizon,
            boundary="clip",
            discount=self.discount,
            disturbance_range=(ends[0], ends[1]),
        )

    def world(self, law: Disturbance | None = None, start: float | ArrayLike | None = None) -> World:
        """A world with this law of the amount, in multiples of ``unit``; a bell-shaped one, to try it, if None.

        start: the first state in the user's units, or probabilities [S]; uniform if None
        """
        if start is not None and np.ndim(start) == 0:
            start = int(self.units(start))
        return World(self.system, self.disturbance(self.bell() if law is None else law), start)

    def bell(self) -> Disturbance:
        """A law of the amount to try the system with: binomial, a third of the way from the least to the most."""
        low, high = (int(x) for x in self.units(self.amount_range))
        n = high - low
        ways = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)]
        pmf = np.array([math.exp(ways[i] + i * math.log(1 / 3) + (n - i) * math.log(2 / 3)) for i in range(n + 1)])
        return Disturbance(pmf / pmf.sum(), low=low)

    def law(self, amounts: ArrayLike, pooled: bool = False) -> Disturbance:
        """The empirical law of measured amounts [K, H], in multiples of ``unit``: of every step, or one for all."""
        table = self._measured(amounts)
        low = int(table.min())
        rows = [table.ravel()] if pooled else list(table.T)
        counts = np.stack([np.bincount(row - low, minlength=int(np.ptp(table)) + 1) for row in rows])
        return Disturbance(counts / counts.sum(axis=1, keepdims=True), low=low)

    def disturbance(self, law: Disturbance) -> Disturbance:
        """The law of W, from that of the amount in multiples of ``unit``."""
        if not isinstance(law, Disturbance):
            raise TypeError(f"law is {law!r:.60}; give a ucbf.Disturbance of the {self.amount_name}")
        occurs = law.values[(law.pmf > 0).any(axis=0)]
        low, high = self.units(self.amount_range)
        if occurs[0] < low or occurs[-1] > high:
            said, declared = (
                f"{a * self.unit:g} to {b * self.unit:g}" for a, b in ((occurs[0], occurs[-1]), (low, high))
            )
            raise ValueError(
                f"the law gives a {self.amount_name} from {said}, but it is declared from {declared}; widen that range"
            )
        if self.profiled and len(law.pmf) not in (1, self.horizon):
            raise ValueError(
                f"the law has {len(law.pmf)} steps and the system {self.horizon}; give one row, or one each"
            )
        return _placed(law, self.sign * (law.values - self._moved))

    def anchored(self, changes: Sequence[dict[str, Any]]) -> Self:
        """The same with what must not follow the changes of an episode fixed by those of the past."""
        return self

    def within_range(self, law: Disturbance) -> Disturbance:
        """A law of W, around the profile, without amounts that cannot be: those are brought to the nearest that can."""
        if not self.profiled:
            return law
        low, high = self.units(self.amount_range)
        amounts = np.clip(self.sign * law.values + self._moved, low, high)
        return _placed(law, self.sign * (amounts - self._moved))

    def amounts(self, law: Disturbance) -> Disturbance:
        """The law of the amount, in multiples of ``unit``, from that of W: the inverse of :meth:`disturbance`."""
        return _placed(law, self.sign * law.values + self._moved)

    @property
    def _moved(self) -> NDArray[np.int64]:
        """[H, 1] what is expected at each step; [1, 1] where no profile is given, so that one law stays one."""
        return self.expected[:, None] if self.profiled else np.zeros((1, 1), np.int64)

    def disturbances(self, amounts: ArrayLike) -> NDArray[np.int64]:
        """[K, H] W of measured amounts [K, H], rounded to whole multiples of ``unit``."""
        w: NDArray[np.int64] = self.sign * (self._measured(amounts) - self.expected)
        return w

    def _measured(self, amounts: ArrayLike) -> NDArray[np.int64]:
        """[K, H] amounts in multiples of ``unit``."""
        table = numbers(self.amount_name, amounts)
        if table.ndim != 2 or table.shape[1] != self.horizon or not len(table):
            raise ValueError(f"{self.amount_name} has shape {table.shape}; give [K, H] with H = {self.horizon}")
        return self.units(table)

    # -- policies ---------------------------------------------------------------------------------

    def policy(self, given: Any, steps: tuple[str, ...] | None = None, step: str | None = None) -> Policy:
        """A policy in the words of this system: of an agent, of a plan, or its actions [H, S].

        steps: names of the steps, such as the days of the week; step: what a step is, such as "year"
        """
        step = step or self.step_name
        words = Words(self.state_name, self.action_name, step, self.unit, self.action_amounts, self.raises, steps)
        if hasattr(given, "q"):  # rounding must not hide a rule
            given = lowest_best(given.q)
        return Policy(self.system, getattr(given, "policy", given), words)

    def rules(self, law: Disturbance, system: System | None = None) -> dict[str, NDArray[np.int64]]:
        """What practitioners would do, given a law of W: policies [H, S] by name.

        system: this one, perhaps with another terminal reward (:func:`ucbf.endless`)
        """
        system = self.system if system is None else system
        return {
            "myopic": myopic(self.system, law),
            "certainty-equivalent": certainty_equivalent(system, law),
            **self.own_rules(World(system, law)),
        }

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Rules that are used for this kind of system only."""
        return {}

    def replace(self, **changes: Any) -> Self:
        """The same with some parameters changed."""
        return replace(self, **changes)

    # -- units ------------------------------------------------------------------------------------

    def units(self, amounts: ArrayLike) -> NDArray[np.int64]:
        """Amounts as whole multiples of ``unit``, rounded."""
        return np.rint(np.asarray(amounts, dtype=np.float64) / self.unit).astype(np.int64)

    @property
    def expected(self) -> NDArray[np.int64]:
        """[H] the profile in multiples of ``unit``."""
        return self.units(self.per_step("profile"))

    def per_step(self, name: str) -> NDArray[np.float64]:
        """[H] a parameter that is one number or one for each step."""
        value = numbers(name, getattr(self, name))
        if value.shape not in {(), (self.horizon,)}:
            raise ValueError(f"{name} has {value.size} numbers; give one, or one for each of the {self.horizon} steps")
        return np.broadcast_to(value, (self.horizon,))

    def at_least(self, low: float, *names: str, open_low: bool = False) -> None:
        """An error for a parameter below ``low``."""
        for name in names:
            for value in np.atleast_1d(getattr(self, name)):
                real(name, value, low, open_low=open_low)

    def multiple(self, name: str) -> int:
        """One of ``multiples``, in units."""
        return round(float(getattr(self, name)) / self.unit)

    def _check_multiple(self, name: str) -> None:
        given = getattr(self, name)
        for value in () if given is None else np.ravel(given):
            if abs(value / self.unit - round(value / self.unit)) > 1e-9:
                raise ValueError(
                    f"{name} {'has' if np.ndim(given) else 'is'} {value:g}, which is not a multiple of unit "
                    f"{self.unit:g}; change one of them"
                )
            if abs(value) / self.unit > MOST_UNITS:
                raise ValueError(
                    f"{name} is {value:g}, more than {MOST_UNITS} times unit {self.unit:g}; take a coarser unit"
                )

    @property
    def profiled(self) -> bool:
        """Whether a profile is given."""
        return bool(np.ndim(self.profile)) or self.profile != 0

    def parameters(self) -> dict[str, Any]:
        """All parameters, as the constructor takes them."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def described(self, name: str | None = None) -> Any:
        """A parameter and its value in words; without a name, the names of all that have one, but for the profile."""
        if name is not None:
            return f"{name} {_shown(getattr(self, name))}"
        return [f.name for f in fields(self) if f.name != "profile" and getattr(self, f.name) is not None]

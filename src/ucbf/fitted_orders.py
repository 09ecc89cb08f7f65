"""Orders by fitted values, where demand stays as it was and no table holds all that is under way."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import integers, numbers
from ucbf.disturbance import Disturbance
from ucbf.errors import UserError
from ucbf.run import Progress
from ucbf.saving import Arrays, read_arrays, write_arrays
from ucbf.systems.inventory import Inventory
from ucbf.tables import LARGEST_TABLE
from ucbf.values import Fitted, FitWarning, UpTo, policy_iteration
from ucbf.values.ahead import Ahead
from ucbf.values.pairs import Greedy, Q, Terms
from ucbf.values.paths import Outcomes, Rule

FEWEST = 50  # demands, for their distribution to be counted
MOST_COUNTED = 100  # the largest demand in multiples of what everything is counted in, at most
ROOM = 4  # times the largest demand, or order, on the shelf: more is thrown away
LARGEST = 1e9  # of the numbers of a file
MOST_PATHS = 100_000
NAME = "fitted orders"
OF_LEVELS = ("level", "weights", "most", "gap")


def store_to_fit(shop: Inventory, demands: ArrayLike) -> Inventory | None:
    """The store in sizes that suit its demands, all steps alike, without an end; None where no values are fitted.

    They are fitted where orders take time, customers do not wait, stock does not age, there is one supplier and orders
    are possible at every step, and only where a table would not hold all pairs of states and orders.
    """
    amounts = numbers("demands", demands)
    plain = not (shop.backlog or shop.shelf_life or shop.storage or shop.price_breaks) and shop.fast_cost is None
    if not plain or not shop.lead_time or shop.review > 1 or len(amounts) < FEWEST or not amounts.max() > 0:
        return None
    times = int(max(np.ceil(amounts.max() / shop.unit / MOST_COUNTED), 1))
    if times > 1 and (shop.pack is not None or shop.min_order):
        return None  # packs and the least order may be no multiples of it
    unit = shop.unit * times
    batch = np.sqrt(2 * shop.order_cost * amounts.mean() / shop.holding) if shop.holding > 0 else 0.0
    demand = unit * float(np.ceil(amounts.max() / unit))
    wanted = max(demand, unit * float(np.ceil(2 * batch / unit)), shop.pack or 0, shop.min_order)
    most = wanted if shop.max_order is None else min(wanted, unit * float(np.floor(shop.max_order / unit + 1e-9)))
    if most < unit:
        return None
    made = shop.replace(
        horizon=None, period=1, profile=0, discount=1.0, unit=unit, max_demand=demand, max_order=most,
        capacity=ROOM * max(demand, wanted),
    )  # fmt: skip
    return made if pairs(made) > LARGEST_TABLE else None


def pairs(shop: Inventory) -> float:
    """How many pairs of states and orders a table would have to hold."""
    system = shop.large
    return float(np.prod(system.high - system.low + 1.0)) * len(system.actions)


class FittedOrders:
    """What to order by values that were fitted to the demands so far, which are taken to be those to come.

    Make it with :meth:`fitted`; ``rule`` is what was found, over states in multiples of the unit of ``shop``.
    """

    def __init__(self, shop: Inventory, pmf: NDArray[np.float64], rule: Rule) -> None:
        self.shop, self.pmf, self.rule = shop, pmf, rule

    @classmethod
    def fitted(
        cls, shop: Inventory, demands: ArrayLike, seed: int = 0, progress: Progress | None = None
    ) -> FittedOrders:
        """Values fitted to demands [T]. shop: from :func:`store_to_fit`; progress: as of values.policy_iteration."""
        counts = np.bincount(
            np.minimum(np.rint(numbers("demands", demands) / shop.unit).astype(int), shop.units_of("max_demand")),
            minlength=shop.units_of("max_demand") + 1,
        )
        pmf = counts / counts.sum()
        with warnings.catch_warnings():  # a simple rule, where it is returned, is tried as well as any
            warnings.simplefilter("ignore", FitWarning)
            found: Fitted = policy_iteration(shop.large, shop.large_law(Disturbance(pmf)), seed=seed, progress=progress)
        return cls(shop, pmf, found.rule)

    def order(self, stock: float, under_way: Sequence[tuple[float, int]] = ()) -> float:
        """What to order now.

        stock: on the shelf, before what comes today
        under_way: (quantity, age) of every order that has not come; age 1 was placed the step before. One that is
        overdue is taken to come in the next step.
        """
        system, L = self.shop.large, self.shop.lead_time
        s = np.zeros((1, L))
        s[0, 0] = stock
        for quantity, age in under_way:
            s[0, L - age if age <= L else min(1, L - 1)] += quantity
        s = np.clip(np.rint(s / self.shop.unit), system.low, system.high).astype(np.int64)
        return float(self.rule(0, s)[0, 0] * self.shop.unit)

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rule and the store."""
        base = self.rule.q.ahead.rule if isinstance(self.rule, Greedy) else self.rule
        assert isinstance(base, UpTo)  # orders of a store are amounts
        arrays: Arrays = {name: getattr(base, name) for name in OF_LEVELS} | {"pmf": self.pmf}
        if isinstance(self.rule, Greedy):
            q, terms = self.rule.q, self.rule.q.terms
            named = ("axes", "mean", "scale", "centre", "spread")
            arrays |= {"paths": q.ahead.paths[:, :, 0], "theta": q.theta, "products": np.array(terms.products)}
            arrays |= {name: getattr(terms, name) for name in named}
        write_arrays(path, {"agent": NAME, "shop": self.shop.parameters()}, arrays)

    @classmethod
    def loaded(cls, path: str | os.PathLike[str]) -> FittedOrders:
        """The orders of a file."""
        try:
            about, arrays = read_arrays(path)
            if about.get("agent") != NAME:
                raise ValueError(f"it holds {about.get('agent')!r}")
            shop = Inventory(**about["shop"])
            return cls(shop, numbers("pmf", arrays["pmf"]), _rule(shop, arrays))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise UserError(f"{path} cannot be used ({error}); learn again into this folder") from None


def _rule(shop: Inventory, arrays: dict[str, Any]) -> Rule:
    """The rule of a file, each array of a size that the kernels can read."""
    system, sizes = shop.large, {"level": (2,), "weights": (2, shop.lead_time), "most": (2,), "gap": (2,)}
    base = UpTo(system, **{name: _sized(name, arrays[name], shape) for name, shape in sizes.items()})
    if "theta" not in arrays:
        return base
    paths = integers("paths", arrays["paths"])
    most = shop.units_of("max_demand")
    if paths.ndim != 2 or not 0 < paths.size <= MOST_PATHS or paths.min() < -most or paths.max() > 0:
        raise ValueError(f"paths are none of a store with demands up to {most}")
    rows = np.zeros((*paths.shape, system.n_raw), np.int64)
    rows[:, :, 0] = paths
    ahead = Ahead(system, base, Outcomes(system, shop.large_law(Disturbance(arrays["pmf"]))), rows)
    axes, products = integers("axes", arrays["axes"]), integers("products", arrays["products"])
    n, k = len(arrays["theta"]), len(axes)
    if products.shape != (2, n - k - ahead.steps) or not _below(k, products) or not _below(system.n_raw, axes):
        raise ValueError("its terms do not fit")
    shapes = {"mean": (k,), "scale": (k,), "centre": (n,), "spread": (n,)}
    told = {name: _sized(name, arrays[name], shape) for name, shape in shapes.items() if name != "spread"}
    spread = np.asarray(arrays["spread"], float)  # infinite where a term does not vary
    if spread.shape != (n,) or not (spread > 0).all():
        raise ValueError("its terms do not fit")
    terms = Terms(axes=axes, products=(products[0], products[1]), spread=spread, **told)
    return Greedy(Q(ahead, terms, _sized("theta", arrays["theta"], (n,))))


def _below(n: int, indices: NDArray[np.int64]) -> bool:
    return bool(((indices >= 0) & (indices < n)).all())


def _sized(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = numbers(name, values, most=LARGEST)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, not {shape}")
    return array

"""What it is worth to plan with the distribution of W: against plans that believe its mean comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels import fleet as kernels

if TYPE_CHECKING:
    from ucbf.fleet.items import Fleet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def values_of_mean_plans(fleet: Fleet) -> Floats:
    """[N, S] what every first state is worth under the plan that is best if W is always its mean, with an end."""
    if fleet.system.horizon is None or not fleet.system.space.is_line:
        raise ValueError("plans for the mean are of systems on a line, with an end")
    N, H, S = fleet.policies.shape
    value = np.zeros((N, S))

    def compare(items: Ints) -> Ints:
        law, (m, model, *room) = fleet.believed(items, True), fleet.room()
        mean = np.rint(law @ np.arange(law.shape[2]) / law.sum(axis=2)).astype(np.int64)
        certain = np.zeros_like(law)
        np.put_along_axis(certain, mean[:, :, None], 1.0, axis=2)
        costs, n = fleet.costs[items], len(items)
        found, policy = np.zeros((n, S)), np.zeros((n, H, S), np.int16)
        kernels.plan_items(m, model, fleet.parts, costs, certain, np.zeros(n), found, policy, np.zeros(n), *room)
        kernels.follow_items(m, model, fleet.parts, costs, law, policy, found, *room)
        value[items] = found
        return items

    for _ in fleet.in_blocks(compare, np.arange(N)):
        pass
    return value

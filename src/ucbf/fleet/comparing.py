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


def gains_over_mean_plans(fleet: Fleet, start: int) -> Floats:
    """[N] how much more each item gets than under the plan that is best if W is always its mean.

    In an episode from state index ``start`` on; without an end and a discount in a step, in the long run.
    """
    if not fleet.system.space.is_line:
        raise ValueError("plans for the mean are of systems on a line")
    N, S = fleet.values.shape
    endless, found = fleet.system.horizon is None, np.zeros(N)

    def compare(items: Ints) -> Ints:
        law, costs, value = fleet.believed(items, True), fleet.costs[items], np.zeros((len(items), S))
        mean = np.rint(law @ np.arange(law.shape[2]) / law.sum(axis=2)).astype(np.int64)
        certain = np.zeros_like(law)
        np.put_along_axis(certain, mean[:, :, None], 1.0, axis=2)
        policy, gain = fleet.plans(items, certain, costs, value)
        settled, (m, model, *room) = fleet.settled(items), fleet.room()
        kernels.follow_items(m, model, fleet.parts, costs, law, policy, settled, value, gain, *room)
        found[items] = gain if endless and fleet.system.discount == 1 else value[:, start]
        return items

    for _ in fleet.in_blocks(compare, np.arange(N)):
        pass
    ours = fleet.gains if endless and fleet.system.discount == 1 else fleet.values[:, start]
    return np.asarray(ours - found)

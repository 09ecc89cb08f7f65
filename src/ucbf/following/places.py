"""Where forecasts are quantiles: what is known is where amounts stood among them (:mod:`ucbf.data.quantiles`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.data.quantiles import Quantiles, distribution_by_places
from ucbf.disturbance import Disturbance
from ucbf.following.accounts import Reading
from ucbf.following.knowledge import Controllers, Knowledge
from ucbf.following.known import QUANTILES, Ahead
from ucbf.following.model import Model
from ucbf.saving import Arrays, write_arrays
from ucbf.systems import Preset

ABOUT = "places"  # what files of these say that they are of


class Places(NamedTuple):
    """Where the amounts of episodes stood among the quantiles that were forecast for them."""

    places: NDArray[np.float64]  # [n, H]; nan where it is not known
    kinds: tuple[str, ...]  # [n] of the episodes
    gap: float  # as of :class:`ucbf.data.Quantiles`
    half_life: float  # in episodes
    pooled: bool  # whether those of all steps and kinds count at every step


def write_places(path: Path, given: Places) -> None:
    """Write them to a file."""
    about = {"about": ABOUT, "gap": given.gap, "pooled": given.pooled, "kinds": given.kinds}
    write_arrays(path, about, {"places": given.places, "half_life": np.array([given.half_life])})


def read_places(header: dict[str, Any], arrays: Arrays) -> Places:
    """Those of a file."""
    places, kinds = arrays["places"].astype(np.float64), tuple(map(str, header["kinds"]))
    if places.ndim != 2 or len(places) != len(kinds):
        raise ValueError("as many kinds as episodes are needed")
    return Places(places, kinds, float(header["gap"]), float(arrays["half_life"][0]), bool(header["pooled"]))


class QuantileKnowledge(Knowledge):
    """What is known of W by the places of amounts among their quantiles."""

    def __init__(self, model: Model, controllers: Controllers, places: Places) -> None:
        super().__init__(model, controllers)
        self._given = places
        n = len(places.kinds)
        self._rows = [*places.places]
        self._kinds, self._episodes = [*places.kinds], [*range(-n, 0)]

    def law(self, number: int, preset: Preset, ahead: Ahead) -> Disturbance:
        """The distribution of W by the quantiles of the episode."""
        which = self._counted(number)
        places, ages = np.array(self._rows)[which], self._episodes[-1] - np.array(self._episodes)[which]
        weights = 0.5 ** (ages / self._given.half_life)
        quantiles = self._quantiles(ahead[QUANTILES], number)
        return distribution_by_places(preset, quantiles, 0, places, weights, self._given.pooled)

    def show(self, number: int, reading: Reading, ahead: Ahead) -> None:
        """Add the place of the amount; of one that is hidden, the mean of the places that it may have."""
        super().show(number, reading, ahead)
        h, episode = self.calendar.place_of(number), self.calendar.episode_of(number)
        quantiles = self._quantiles(ahead[QUANTILES], number)
        place = quantiles.place(0, h, np.clip(reading.amount, *self.preset.amount_range))
        if reading.hidden:
            least, most = (quantiles.place(0, h, end) for end in (reading.least, reading.most))
            which = self._counted(number)
            known = np.array(self._rows)[which]
            known = known.ravel() if self._given.pooled else known[:, h]
            inside = known[(known >= least) & (known <= most)]
            place = float(inside.mean()) if len(inside) else place
        if episode not in self._episodes:
            self._rows.append(np.full(self.calendar.horizon, np.nan))
            self._kinds.append(self.calendar.kind_of(number))
            self._episodes.append(episode)
        self._rows[self._episodes.index(episode)][h] = place

    def _counted(self, number: int) -> list[int]:
        """The episodes whose places count for a step."""
        kind = self.calendar.kind_of(number)
        alike = [i for i, each in enumerate(self._kinds) if self._given.pooled or each == kind]
        return alike or list(range(len(self._kinds)))

    def _quantiles(self, ahead: NDArray[np.float64], number: int) -> Quantiles:
        """The quantiles of the episode of a step; of the steps before it, as of itself."""
        values = np.concatenate([np.repeat(ahead[:1], self.calendar.place_of(number), axis=0), ahead])
        return Quantiles(np.array(self.model.shares), values[None], self._given.gap)

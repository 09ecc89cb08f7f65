"""What is learned from the first episodes of a series: the mean of every step, and the distribution of W."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.recency import Recency, chosen_recency, given_recency
from ucbf.data import Episodes, Quantiles
from ucbf.data.quantiles import distribution_by_places
from ucbf.disturbance import Disturbance
from ucbf.system import System
from ucbf.systems.base import Preset

POOLED_BELOW = 20  # training episodes of a kind: with fewer, all steps share one distribution around their means
FEWEST_OF_A_KIND = 5  # with fewer, the means of a kind of episode are those of all episodes
MOST_JUDGED = 50_000  # steps of the test episodes: more would settle no more
Numbers = NDArray[np.int64]
Profiles = dict[str, tuple[float, ...]]  # by kind of episode: [H] the mean of every step


class Training:
    """The episodes of a series, each with its preset, and what the first of them teach.

    Attributes
    ----------
    episodes, training_episodes, test_episodes
        All that are used; those that are learned from; those after them, by which policies are judged.
    changes
        [K] the parameters that differ from episode to episode; None if none do.
    forecast
        [K, H] the profiles among them; None unless every episode has one.
    pooled
        Whether all steps share one distribution of W.
    profiles
        The means of the training episodes, where W is measured around them; else empty.
    quantiles
        Of every episode, where the distribution of each is made from them; else None.
    recency, weights
        How much of the past counts, and [n] what each training episode does.
    presets, preset_numbers
        The different presets of the episodes, and [K] the number of each episode's among them.
    """

    def __init__(
        self,
        preset: Preset,
        episodes: Episodes,
        train: float,
        pooled: bool | None,
        changes: Sequence[dict[str, Any]] | None,
        half_life: float | None = np.inf,
        quantiles: Quantiles | None = None,
    ) -> None:
        self._given = preset, episodes, train, pooled, changes
        self.training_episodes, after = episodes.split(train)
        self.test_episodes = after.part(0, min(len(after), max(MOST_JUDGED // preset.n_steps, 1)))
        n, kinds = len(self.training_episodes), self.training_episodes.kinds
        self.episodes = episodes.part(0, n + len(self.test_episodes))
        self.changes, self.quantiles = changes, quantiles
        self.preset = preset if changes is None else preset.with_defaults_fixed(changes[:n])
        self.forecast = _profiles_in(changes)
        profile_given = preset.has_profile or any("profile" in change for change in changes or ())
        self.recency = given_recency(half_life) if half_life is not None else self._chosen_recency(pooled)
        self.weights = self.recency.weights(n)
        fewest = min(self.weights[[each == kind for each in kinds]].sum() for kind in set(kinds))
        self.pooled = bool(fewest < POOLED_BELOW) if pooled is None else pooled
        self.profiles = self.profiles_of(np.arange(n)) if self.pooled and not profile_given else {}
        self.presets, self.preset_numbers = self._presets()

    def with_half_life(self, half_life: float) -> Training:
        """The same, where an episode counts half as much as one so many later."""
        return self if half_life == self.recency.half_life else Training(*self._given, half_life, self.quantiles)

    # -- the preset of each episode ---------------------------------------------------------------

    def _chosen_recency(self, pooled: bool | None) -> Recency:
        """The half-life that the training episodes speak for."""
        training = self.errors_of(self.training_episodes, 0)
        return chosen_recency(np.where(training.outliers, np.nan, training.values), training.kinds, pooled)

    def errors_of(self, episodes: Episodes, first: int) -> Episodes:
        """Episodes, from number ``first`` on, less their forecasts; as they are where there are none."""
        if self.forecast is None:
            return episodes
        return replace(episodes, values=episodes.values - self.forecast[first : first + len(episodes)])

    def profiles_of(self, which: Numbers) -> Profiles:
        """The mean of every step over these training episodes, by kind of episode, outliers left out.

        The i-th counts what training episode i does.
        """
        outliers, values = self.training_episodes.outliers[which], self.training_episodes.values[which]
        values, kinds = np.where(outliers, np.nan, values), np.array(self.training_episodes.kinds)[which]
        weights = self.weights[: len(which), None]
        found = {}
        for kind in dict.fromkeys((*self.training_episodes.kinds, *self.test_episodes.kinds)):
            members = kinds == kind if (kinds == kind).sum() >= FEWEST_OF_A_KIND else np.full(len(kinds), True)
            table, w = values[members], weights[members]
            n = (np.isfinite(table) * w).sum(axis=0)
            found[kind] = tuple((np.nansum(table * w, axis=0) / np.where(n > 0, n, 1)).tolist())
        return found

    def _presets(self) -> tuple[list[Preset], Numbers]:
        """The different presets, and [K] the number of each episode's among them."""
        presets: list[Preset] = []
        known: dict[Any, int] = {}  # the number of a preset, by what is changed in it
        numbers = np.empty(len(self.episodes), np.int64)
        for k, kind in enumerate(self.episodes.kinds):
            change = {} if self.changes is None else dict(self.changes[k])
            profile = self.profiles.get(kind)
            key = profile, *((name, tuple(np.ravel(value).tolist())) for name, value in change.items())
            if key not in known:
                known[key] = len(presets)
                change |= {} if profile is None else {"profile": profile}
                presets.append(self.preset.replace(**change) if change else self.preset)
            numbers[k] = known[key]
        return presets, numbers

    def preset_of(self, k: int) -> Preset:
        """The preset of episode k."""
        return self.presets[int(self.preset_numbers[k])]

    # -- kinds of episodes ------------------------------------------------------------------------

    def last_of_each_kind(self) -> list[int]:
        """The last episode of each kind, such as weekdays; only the very last where every episode differs."""
        if self.changes is not None:
            return [len(self.episodes) - 1]
        last = {kind: k for k, kind in enumerate(self.episodes.kinds)}
        return [last[kind] for kind in sorted(last)]

    def kind_transitions(self) -> NDArray[np.float64]:
        """[n, n] how often one kind of episode came after another, as shares; in the order of last_of_each_kind."""
        names = sorted(set(self.episodes.kinds))
        counts = np.full((len(names), len(names)), 1e-9)
        for before, after in itertools.pairwise(self.episodes.kinds):
            counts[names.index(before), names.index(after)] += 1
        transitions: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        return transitions

    # -- W ----------------------------------------------------------------------------------------

    def measured(self, which: Numbers) -> NDArray[np.float64]:
        """[n, H] the amounts of these episodes; one that is beyond its range, by less than half a unit, is clipped."""
        return np.clip(self.episodes.values[which], *self.preset.amount_range)

    @cached_property
    def disturbances(self) -> Numbers:
        """[K, H] W of every episode, around its own profile."""
        w = np.empty(self.episodes.values.shape, np.int64)
        for number, preset in enumerate(self.presets):
            which = np.flatnonzero(self.preset_numbers == number)
            w[which] = preset.disturbances(self.measured(which))
        return w

    @cached_property
    def expected_amounts(self) -> Numbers:
        """[K, H] the profile of every episode, in multiples of the unit."""
        return np.stack([preset.expected_amount for preset in self.presets])[self.preset_numbers]

    def counted_episodes(self, kind: str, n: int | None = None) -> Numbers:
        """The training episodes from which the distribution of W is counted, for episodes of a kind.

        All of them if pooled, or if none is of that kind; else those of that kind. n: of the first n only
        """
        kinds = self.training_episodes.kinds[:n]
        all_count = self.pooled or kind not in kinds
        return np.array([k for k, each in enumerate(kinds) if all_count or each == kind])

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """[K, H] where the amounts stand among their quantiles."""
        assert self.quantiles is not None
        return self.quantiles.places(self.measured(np.arange(len(self.episodes))))

    def quantile_distribution(self, k: int, counted: Numbers, weights: NDArray[np.float64]) -> Disturbance:
        """The distribution of W in episode k, by the places that the amounts of other episodes had.

        counted: [n] these episodes; weights: [n] what each counts
        """
        assert self.quantiles is not None
        places = self.places[counted]
        return distribution_by_places(self.preset_of(k), self.quantiles, k, places, weights, self.pooled)

    def distribution_by_quantiles(self, preset: Preset, quantiles: Quantiles, k: int, kind: str) -> Disturbance:
        """The same by these quantiles, of their episode k, and the places of all training episodes like it."""
        counted = self.counted_episodes(kind)
        return distribution_by_places(preset, quantiles, k, self.places[counted], self.weights[counted], self.pooled)

    def distribution(self, kind: str) -> Disturbance:
        """The distribution of W in episodes of a kind, as counted in the training episodes."""
        counted = self.counted_episodes(kind)
        system = self.preset_of(counted[-1]).system
        return empirical_shares(self.disturbances[counted], system, self.pooled, self.weights[counted])


def _profiles_in(changes: Sequence[dict[str, Any]] | None) -> NDArray[np.float64] | None:
    """[K, H] the profile of every episode; None unless every episode has one, of so many steps."""
    given = [change.get("profile") for change in changes or ()]
    if not given or any(profile is None or np.ndim(profile) != 1 for profile in given):
        return None
    table: NDArray[np.float64] = np.array(given, dtype=np.float64)
    return table


def empirical_shares(w: Numbers, system: System, pooled: bool, weights: NDArray[np.float64]) -> Disturbance:
    """The share of each possible W among those measured [n, H]: for every step, or one for all steps if pooled.

    weights: [n] what each episode counts
    """
    index, R = system.bins.index(w), len(system.residuals)
    rows, H = 1 if pooled else system.n_steps, system.n_steps
    place = (index + R * (np.arange(H) % rows)).ravel()
    counts = np.bincount(place, np.repeat(weights, H), minlength=rows * R).reshape(rows, R)
    pmf = counts / counts.sum(axis=1, keepdims=True)
    return Disturbance(pmf / pmf.sum(axis=1, keepdims=True), low=system.residuals[0])

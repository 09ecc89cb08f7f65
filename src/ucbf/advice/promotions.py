"""What a promotion does to the amounts: one uplift, learned from the steps of the past that were promoted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ucbf.data import Episodes
from ucbf.errors import UserError

DOUBT = 5.0  # steps: an uplift that was seen in so many is believed by half
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Promotions:
    """What is expected of each episode, and what that rests on."""

    profiles: Floats  # [K, H] the amount expected of every step
    uplift: float  # by which a promotion multiplies the mean of a step: the ratio that was seen, shrunk towards 1
    seen: float  # that ratio
    steps: int  # promoted ones that it rests on
    means: dict[str, tuple[float, ...]]  # by the kind of an episode: [H] the mean of every step without promotions
    column: str = "promoted"  # which marked them


def promotions(
    episodes: Episodes, promoted: NDArray[np.bool_], train: float = 0.7, column: str = "promoted"
) -> Promotions:
    """What is expected of each episode: the mean of each step without promotions, times the uplift where promoted.

    The uplift is the ratio of what was promoted in the training episodes to the means of the same steps without a
    promotion. With n promoted steps it is 1 + (ratio - 1) n / (n + 5).

    promoted: [K, H]; train: the share of the episodes that is learned from; column: which marked them
    """
    n = len(episodes.split(train)[0])
    values = np.where(episodes.part(0, n).outliers, np.nan, episodes.values[:n])
    on, seen = promoted[:n] & np.isfinite(values), np.isfinite(values)
    off = seen & ~on
    if not on.any() or not off.any():
        what = "no step is promoted" if not on.any() else "every step is promoted"
        raise UserError(
            f"in the {n} episodes to learn from {what}; the uplift of a promotion needs both kinds: give a longer "
            "series, learn from more of it (train, --train), or leave the promotions out"
        )
    kinds = np.array(episodes.kinds)
    base = np.full(episodes.values.shape, np.nan)  # [K, H] the mean of the step without a promotion
    for kind in set(episodes.kinds):
        base[kinds == kind] = _means(values[kinds[:n] == kind], off[kinds[:n] == kind])
    both = on & np.isfinite(base[:n])
    usual = float(base[:n][both].sum()) if both.any() else float(values[off].mean()) * int(on.sum())
    ratio = float(values[both if both.any() else on].sum()) / usual if usual > 0 else 1.0
    steps = int(both.sum() if both.any() else on.sum())
    uplift = 1 + (ratio - 1) * steps / (steps + DOUBT)
    never_off = np.isnan(base)  # a step of a kind of episode that was always promoted
    if never_off.any():
        fallback = np.where(np.isnan(_means(values, on)), np.nanmean(values), _means(values, on)) / max(uplift, 1e-9)
        base = np.where(never_off, fallback, base)
    means = {kind: tuple(base[episodes.kinds.index(kind)].tolist()) for kind in dict.fromkeys(episodes.kinds)}
    return Promotions(np.where(promoted, uplift * base, base), uplift, ratio, steps, means, column)


def _means(values: Floats, which: NDArray[np.bool_]) -> Floats:
    """[H] the mean of every step over some episodes [n, H]; nan where there are none."""
    count = which.sum(axis=0)
    total = np.where(which, values, 0.0).sum(axis=0)
    means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means

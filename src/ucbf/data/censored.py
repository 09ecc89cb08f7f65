"""Amounts that are hidden: where the shelf was empty sales say only that it was at least that much.

Of days that are missing they say nothing.

The distribution of the demand is the product-limit estimate (Kaplan, Meier 1958), as in :mod:`ucbf.laws`. What was
hidden is replaced by a draw from it, given that it is at least what was sold. Where nothing larger was ever seen, that
estimate says nothing: the draw is from a bell curve, fitted to roots of the amounts (Tobin 1958).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ucbf.data.cutting import Episodes
from ucbf.errors import UserError

FEWEST = 5  # uncensored values of a step: with fewer, all steps count
ROUNDS, TINY = 200, 1e-6  # of the fit of a bell curve; a spread that is none
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Uncensored:
    """Episodes in which hidden demand was replaced by draws, and what was done."""

    episodes: Episodes
    sold: Floats  # [K, H] the amounts before
    sold_out: Bools  # [K, H]
    unknown: Bools  # [K, H] which steps are missing, and were drawn from what others show
    unresolved: Bools  # [K, H] of which nothing larger was ever seen, so that they are guesses
    sold_out_after: Bools  # [M] of the steps after the last episode, which were drawn, too
    unknown_after: Bools  # [M]


def product_limit(values: Floats, exact: Bools) -> tuple[Floats, Floats]:
    """The distribution of values [n] of which some are known only from below: its support [m], and probabilities [m].

    exact: [n] which values are what they are; the others stand for "at least so much". Each value takes its share of
    those at risk: seen there or above, or hidden from above it. What is left is put at the largest value.
    """
    support, at = np.unique(values, return_inverse=True)
    seen = np.bincount(at[exact], minlength=len(support)).astype(np.float64)
    hidden = np.bincount(at[~exact], minlength=len(support))
    from_here = np.cumsum((seen + hidden)[::-1])[::-1]
    at_risk = from_here - hidden  # one hidden from here on may be this very one
    share = np.where(seen > 0, seen / np.maximum(at_risk, 1), 0.0)
    left = np.concatenate([[1.0], np.cumprod(1 - share)])
    pmf: Floats = left[:-1] * share
    pmf[-1] += left[-1]
    return support, pmf


def uncensored(
    episodes: Episodes, in_stock: Bools | None = None, seed: int = 0, learned_from: int | None = None
) -> Uncensored:
    """Episodes in which the demand of each step that was sold out is a draw, given that it was at least what was sold.

    Steps that are not known (``gaps="unknown"``) are drawn, too, without such a bound. Each is drawn from the
    distribution of that step, in episodes of that kind; of all steps, where fewer than five amounts of the step are
    known. So are those after the last whole episode, by what all episodes show.

    in_stock: [N] whether the stock lasted for the whole step, of the series, or [K, H] of the episodes, and then it
    lasted after them; it always did, if None
    learned_from: how many episodes are learned from; these are drawn by what they show themselves, the others by all
    """
    n = len(episodes) if learned_from is None else learned_from
    rng, found = np.random.default_rng(seed), episodes.values.copy()
    missing = np.zeros(len(episodes.series), bool) if episodes.series.unknown is None else episodes.series.unknown
    gone = _gone(episodes, in_stock) & ~missing
    unknown, sold_out = episodes.of_steps(missing), episodes.of_steps(gone)
    in_stock, amounts = ~sold_out & ~unknown, np.where(unknown, -np.inf, episodes.values)
    if not np.isfinite(amounts[:n]).any():
        raise UserError(f"{episodes.series.source}: no step of the episodes to learn from is known; give more rows")
    unresolved, kinds = np.zeros(amounts.shape, bool), np.array(episodes.kinds)
    for first, stop in ((0, n), (n, len(episodes))):
        for kind in sorted(set(episodes.kinds[first:stop])):
            alike = np.flatnonzero(kinds[:stop] == kind)
            for h in range(amounts.shape[1]):
                values, exact = amounts[alike, h], in_stock[alike, h]
                if exact.sum() < FEWEST:
                    values, exact = amounts[:stop].ravel(), in_stock[:stop].ravel()
                surest = exact if exact.any() else np.isfinite(values)
                for hidden, shown in ((sold_out, exact), (unknown, surest)):
                    rows = alike[(alike >= first) & hidden[alike, h]]
                    found[rows, h], unresolved[rows, h] = _draw(amounts[rows, h], values, shown, rng)
    gone_after, missing_after = gone[episodes.end :], missing[episodes.end :]
    series = replace(episodes.series, values=episodes.series.values.copy(), unknown=None)
    drawn = replace(episodes, values=found, series=series, drawn=int((sold_out | unknown).sum()))
    _draw_rest(drawn, gone_after, missing_after, rng)
    return Uncensored(drawn, episodes.values, sold_out, unknown, unresolved, gone_after, missing_after)


def _draw_rest(episodes: Episodes, gone: Bools, missing: Bools, rng: np.random.Generator) -> None:
    """Draw those after the last whole episode, in place, from what episodes of that kind have at that step by now.

    gone, missing: [M] which were sold out, and are drawn from what is at least as much, and which are not known
    """
    kinds, rest, H = np.array(episodes.kinds), episodes.rest, episodes.values.shape[1]
    for i, kind in enumerate(episodes.kinds_of_rest):
        if gone[i] or missing[i]:
            alike = kinds == kind
            amounts = (episodes.values[alike] if alike.any() else episodes.values)[:, i % H]
            possible = amounts if missing[i] else amounts[amounts >= rest[i]]
            rest[i] = rng.choice(possible) if len(possible) else rest[i]


def _gone(episodes: Episodes, in_stock: Bools | None) -> Bools:
    """[N] which steps of the series were sold out, as it is told of all of them or of those of the episodes."""
    found, N = np.zeros(len(episodes.series), bool), len(episodes.series)
    if in_stock is None:
        return found
    told = np.asarray(in_stock, bool)
    if told.shape == (N,):
        return ~told
    if told.shape != episodes.values.shape:
        raise ValueError(
            f"in_stock has shape {told.shape}; give {(N,)}, one for each step of the series, or "
            f"{episodes.values.shape}, of the episodes"
        )
    found[episodes.begin : episodes.end] = ~told.ravel()
    return found


def _draw(sold: Floats, values: Floats, exact: Bools, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """[m] demand of at least what was sold [m], by the product limit of values [n]; [m] where that says nothing."""
    support, pmf = product_limit(values, exact)
    largest = values[exact].max(initial=-np.inf)
    unknown: Bools = sold >= largest
    before = np.concatenate([[0.0], np.cumsum(pmf)])
    below = before[np.searchsorted(support, sold)]  # the probability of less than what was sold
    u = below + rng.random(len(sold)) * (1 - below)
    drawn = support[np.minimum(np.searchsorted(before[1:], u, side="right"), len(support) - 1)]
    drawn = np.maximum(drawn, sold)
    if unknown.any() and np.isfinite(largest):
        drawn[unknown] = _guesses(sold[unknown], values[np.isfinite(values)], exact[np.isfinite(values)], rng)
    return drawn, unknown


def _guesses(sold: Floats, values: Floats, exact: Bools, rng: np.random.Generator) -> Floats:
    """[m] demand of at least what was sold [m], of which nothing larger was ever seen; at most twice the largest value.

    Roots of amounts are about as widely spread whatever the mean. Their mean and spread are those of the greatest
    likelihood, given values [n] of which some stand for "at least so much" (expectation and maximisation).
    """
    from scipy.stats import norm

    whole = bool((values == np.rint(values)).all())

    def root(x: Floats) -> Floats:
        """The root of an amount, or where the cell of a whole number begins."""
        return np.sqrt(x + 3 / 8)

    y, least = root(values), root(np.maximum(values - 0.5 * whole, 0))[~exact]
    mean, spread = float(y.mean()), max(float(y.std()), TINY)
    for _ in range(ROUNDS):
        z = (least - mean) / spread
        rate = np.exp(norm.logpdf(z) - norm.logsf(z))
        hidden, variance = mean + spread * rate, spread**2 * (1 + z * rate - rate**2)
        mean = float((y[exact].sum() + hidden.sum()) / len(y))
        squares = ((y[exact] - mean) ** 2).sum() + ((hidden - mean) ** 2 + variance).sum()
        spread = max(float(np.sqrt(squares / len(y))), TINY)
    above = norm.logsf((root(np.maximum(sold - 0.5 * whole, 0)) - mean) / spread)
    found = (mean + spread * norm.isf(np.exp(above) * (1 - rng.random(len(sold))))) ** 2 - 3 / 8
    found = np.where(np.isfinite(found), found, sold)
    guesses: Floats = np.clip(np.rint(found) if whole else found, sold, 2 * max(float(values.max()), float(sold.max())))
    return guesses

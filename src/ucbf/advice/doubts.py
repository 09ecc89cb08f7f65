"""What speaks against a piece of advice: what its page says first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.advise import LEAST, Advice, half_interval
from ucbf.advice.field import LEARNED, LEARNING
from ucbf.advice.sizes import rounding
from ucbf.data import Episodes
from ucbf.data.outliers import outliers

SIGNIFICANT = 0.001  # of a change and a trend
VERY_SURE = 0.99  # of what is expected and what came
SHOWN = 5  # outliers that are named one by one


class Change(NamedTuple):
    """How the amounts of some episodes differ from those of others."""

    share: float  # of the mean; nan where that is 0
    p: float  # how likely chance alone makes it as large

    @property
    def found(self) -> bool:
        """Whether it is more than chance."""
        return bool(self.p < SIGNIFICANT)


def doubts(advice: Advice) -> list[str]:
    """Sentences, the gravest first."""
    found = [
        _better_rule(advice),
        _unexpected(advice),
        _changed(advice),
        _trend(advice),
        _dependent(advice),
        _outliers(advice),
        _rounded(advice),
        _uneven(advice),
        _few(advice),
    ]
    return [text for text in found if text]


def number(x: float) -> str:
    """A number as a page shows it."""
    return "0" if abs(x) < 1e-9 else f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def count(n: int, what: str) -> str:
    """So many of something."""
    return f"{n} {what}" + ("" if n == 1 else "s")


def _better_rule(advice: Advice) -> str:
    """Rules that earned more in the episodes that followed, by more than chance."""
    if len(advice.test) < LEAST:
        return ""
    rows = {row["policy"]: row for row in advice.comparison()}
    ours = rows[LEARNED]["reward"]
    better = [row for name, row in rows.items() if name not in (LEARNED, LEARNING) and row["high"] < 0]
    if better:
        rule = better[0]
        others = f" So did {', '.join(row['policy'] for row in better[1:])}." if better[1:] else ""
        return (
            f"A simple rule did better: in the {count(len(advice.test), 'episode')} that followed, {rule['policy']} "
            f"got {number(rule['reward'])} an episode and the learned policy {number(ours)}, "
            f"{number(-rule['ahead'])} less (95 %: {number(-rule['high'])} to {number(-rule['low'])}).{others} Use the "
            "rule unless you know why."
        )
    going_on = rows[LEARNING]
    if going_on["high"] < 0:
        return (
            f"A policy that went on learning did better in the episodes that followed: {number(going_on['reward'])} an "
            f"episode, against {number(ours)} (95 %: {number(-going_on['high'])} to {number(-going_on['low'])} more). "
            "Learn again often."
        )
    return ""


def _unexpected(advice: Advice) -> str:
    """What was expected of an episode, and what came, where chance does not explain the difference."""
    if len(advice.test) < 2:
        return ""
    came = advice.rewards[LEARNED]
    reach = half_interval(came, others=len(advice.training), sure=VERY_SURE)
    if abs(float(came.mean()) - advice.value) <= reach:
        return ""
    reasons = [
        text
        for text, true in (
            (f"the {advice.ready.amount_name} changed", change(advice.training, advice.test).found),
            ("it had been moving before", trend(advice.training).found),
            ("one step says something of the next", advice.independence.ok is False),
        )
        if true
    ]
    why = ", and ".join(reasons) or "nothing that was tested explains it; is the series what was asked for?"
    return (
        f"Expected were {number(advice.value)} an episode; {number(float(came.mean()))} came of it in the "
        f"{count(len(came), 'episode')} that followed. Chance explains a difference of {number(reach)}. Why: {why}."
    )


def _changed(advice: Advice) -> str:
    found = change(advice.training, advice.test)
    if not found.found:
        return ""
    way = "higher" if found.share > 0 else "lower"
    by = "" if np.isnan(found.share) else f"{abs(found.share):.0%} "
    return (
        f"The {advice.ready.amount_name} was {by}{way} in the episodes that followed than in those that were learned "
        "from: what was learned is of the past. Learn from recent data, or give a forecast."
    )


def _trend(advice: Advice) -> str:
    found = trend(advice.training)
    if not found.found:
        return ""
    way = "rises" if found.share > 0 else "falls"
    by = "" if np.isnan(found.share) else f", from the first to the last by {abs(found.share):.0%} of its mean"
    return f"The {advice.ready.amount_name} {way} in the episodes that were learned from{by}; all of them count alike."


def _dependent(advice: Advice) -> str:
    if advice.independence.ok is not False:
        return ""
    return (
        f"What is assumed does not hold: {advice.independence}. Nothing is proved then, and what one step says of the "
        f"next is not used. A forecast of the {advice.ready.amount_name} would use it: W is then its error."
    )


def _outliers(advice: Advice) -> str:
    ready = advice.ready
    amounts = np.concatenate([advice.training.amounts, advice.test.amounts])
    odd = outliers(amounts)
    if not odd.any():
        return ""
    named = [f"{amounts[k, h]:g} in {advice.training.place(k, h)}" for k, h in np.argwhere(odd)]
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return (
        f"Far from all others: {ready.amount_name} {', '.join(named[:SHOWN])}{more}; the others go from "
        f"{amounts[~odd].min():g} to {amounts[~odd].max():g}. They were learned from as they are, but do not count for "
        "sizes and profiles. Correct what is a mistake."
    )


def _rounded(advice: Advice) -> str:
    ready = advice.ready
    done = rounding(np.concatenate([advice.training.amounts, advice.test.amounts]), ready.unit)
    if done.unnoticed:
        return ""
    return (
        f"The {ready.amount_name} was rounded: {done}. A finer unit rounds less; a unit is what everything is counted "
        "in, not the size of a pack."
    )


def _uneven(advice: Advice) -> str:
    """Pooling takes the spread of all steps for the same."""
    spread = spreads(advice)
    few = len(advice.training) < LEAST
    if not advice.pooled or few or spread.max() <= 2 * max(float(spread.min()), advice.ready.unit / 4):
        return ""
    return (
        f"One law serves all steps, as if their spread were the same; it is from {spread.min():.3g} to "
        f"{spread.max():.3g}: that is NOT the same. Try a law for every step (pooled=False, --no-pool)."
    )


def spreads(advice: Advice) -> NDArray[np.float64]:
    """[H] the spread of every step, of days like the last, outliers aside."""
    kind, amounts = advice.last.kind, advice.training.amounts
    table = np.where(advice.training.outliers, np.nan, amounts)[[k == kind for k in advice.training.kinds]]
    found: NDArray[np.float64] = np.nanstd(table, axis=0)
    return found


def _few(advice: Advice) -> str:
    if len(advice.training) >= LEAST:
        return ""
    return f"Learned from {count(len(advice.training), 'episode')}: take it as a first guess."


# -- whether a series stays as it is -----------------------------------------------------------------------------


def change(before: Episodes, after: Episodes) -> Change:
    """How the amounts after differ from those before, by Welch's test of what is left after the means of each step."""
    from scipy.stats import ttest_ind

    one, other = _levels(before, before), _levels(after, before)
    if min(len(one), len(other)) < 3 or not max(one.std(), other.std()):
        return Change(np.nan, 1.0)
    p = float(ttest_ind(one, other, equal_var=False).pvalue)
    return Change(_share(float(other.mean() - one.mean()), before), p)


def trend(episodes: Episodes) -> Change:
    """How the amounts move from the first episode to the last, by a line through what is left after the means."""
    from scipy.stats import linregress

    levels = _levels(episodes, episodes)
    if len(levels) < LEAST or not levels.std():
        return Change(np.nan, 1.0)
    line = linregress(np.arange(len(levels)), levels)
    return Change(_share(float(line.slope) * (len(levels) - 1), episodes), float(line.pvalue))


def _share(moved: float, episodes: Episodes) -> float:
    mean = abs(float(episodes.amounts[~episodes.outliers].mean()))
    return moved / mean if mean else np.nan


def _levels(episodes: Episodes, usual: Episodes) -> NDArray[np.float64]:
    """[K] the mean over the steps of every episode of what is left after the usual mean of its step, outliers aside."""
    if not len(episodes):
        return np.empty(0)
    table = np.where(usual.outliers, np.nan, usual.amounts)
    left = np.where(episodes.outliers, np.nan, episodes.amounts)
    for kind in dict.fromkeys(episodes.kinds):
        like = table[[k == kind for k in usual.kinds]]
        like = like if len(like) else table
        n = np.maximum(np.isfinite(like).sum(axis=0), 1)
        left[[k == kind for k in episodes.kinds]] -= np.nansum(like, axis=0) / n
    levels: NDArray[np.float64] = np.nansum(left, axis=1) / np.maximum(np.isfinite(left).sum(axis=1), 1)
    return levels

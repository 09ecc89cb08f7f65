"""What speaks against a piece of advice: the sentences that its page begins with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.drift import Drift, change, trend
from ucbf.advice.judging import BY_LEVEL, FEWEST_EPISODES, LEARNED, NOT_RULES, STILL_LEARNING, half_interval
from ucbf.advice.result import Advice
from ucbf.data import Episodes
from ucbf.data.outliers import outliers
from ucbf.data.sizes import rounding_effect
from ucbf.wording import show_count, show_number

VERY_SURE = 0.99  # confidence of the interval around the expected reward
SHOWN = 5  # outliers that are named one by one
MATTERS = 0.05  # of the standard deviation of the rewards of episodes: a smaller difference is not worth a caveat


def find_caveats(advice: Advice) -> list[str]:
    """A text for each thing that speaks against the advice, the gravest first.

    Each function below gives the text for one thing, or an empty one where nothing is wrong.
    """
    found = [
        _better_rule(advice),
        _better_by_level(advice),
        _unexpected_reward(advice),
        _changed_amounts(advice),
        _trend(advice),
        _dependent_steps(advice),
        _outliers(advice),
        _rounding(advice),
        _unequal_spread(advice),
        few_episodes(advice.learned),
    ]
    return [text for text in found if text]


def _better_rule(advice: Advice) -> str:
    """Rules, or a policy that went on learning, that got more in the test episodes, by more than chance."""
    if len(advice.test) < FEWEST_EPISODES:
        return ""
    rows = {row["policy"]: row for row in advice.comparison()}
    ours = rows[LEARNED]["reward"]
    better = [row for name, row in rows.items() if name not in NOT_RULES and row["high"] < 0]
    if better:
        row = next((row for row in better if row["policy"] in advice.variants), better[0])
        name, when = row["policy"], f"in the {show_count(len(advice.test), 'episode')} that followed"
        got = (
            f"{show_number(row['reward'])} an episode and the learned policy {show_number(ours)}, "
            f"{show_number(-row['ahead'])} less (95 %: {show_number(-row['high'])} to {show_number(-row['low'])})."
        )
        if name in advice.variants:
            return f"It did better {name}: {when}, what was learned {name} got {got} Learn {name} unless you know why."
        others = f" So did {', '.join(row['policy'] for row in better[1:])}." if better[1:] else ""
        return f"A simple rule did better: {when}, {name} got {got}{others} Use the rule unless you know why."
    going_on = rows[STILL_LEARNING]
    if going_on["high"] < 0 and -going_on["ahead"] > MATTERS * advice.rewards[LEARNED].std():
        return (
            "A policy that went on learning did better in the episodes that followed: "
            f"{show_number(going_on['reward'])} an episode, against {show_number(ours)} "
            f"(95 %: {show_number(-going_on['high'])} to {show_number(-going_on['low'])} more). Learn again often."
        )
    return ""


def _better_by_level(advice: Advice) -> str:
    """A policy that looks at the level of the last steps got more, by more than chance."""
    found = [row for row in advice.comparison() if row["policy"] == BY_LEVEL and row["high"] < 0]
    if not found or len(advice.test) < FEWEST_EPISODES:
        return ""
    return (
        f"What to do depends on how high the {advice.preset.amount_name} was in the last steps: a policy that looks at "
        f"it got {show_number(-found[0]['ahead'])} an episode more in those that followed (95 %: "
        f"{show_number(-found[0]['high'])} to {show_number(-found[0]['low'])}). It is below, and in "
        "policy_by_level.csv; ucbf act follows it, and observe tells it the level."
    )


def _unexpected_reward(advice: Advice) -> str:
    """The expected reward of an episode and the mean of the test episodes, where chance does not explain both."""
    if len(advice.test) < 2:
        return ""
    came = advice.rewards[LEARNED]
    reach = half_interval(came, others=len(advice.training), confidence=VERY_SURE)
    if abs(float(came.mean()) - advice.value_judged) <= reach:
        return ""
    reasons = [
        text
        for text, true in (
            (f"the {advice.preset.amount_name} changed", change(*advice.errors).significant),
            ("it had been moving before", trend(advice.errors[0]).significant),
            ("one step says something of the next", advice.independence.ok is False),
        )
        if true
    ]
    why = ", and ".join(reasons) or "nothing that was tested explains it; is the series what was asked for?"
    return (
        f"The policy earned {show_number(float(came.mean()))} an episode in the {show_count(len(came), 'episode')} "
        f"that followed, and {show_number(advice.value_judged)} was expected. Chance explains a difference of "
        f"{show_number(reach)} at most. Why: {why}."
    )


def _changed_amounts(advice: Advice) -> str:
    """Amounts that were higher or lower in the test episodes than in the training episodes."""
    before, after = advice.errors
    found, name = change(before, after), advice.preset.amount_name
    if not found.significant:
        return ""
    if advice.has_forecast:
        spread = float(before.values.std())
        then, now = (_beside_expected(float(part.values.mean()), spread) for part in (before, after))
        return (
            f"On average the {name} was {then} in the episodes that were learned from, and {now} in those that "
            "followed: that is more than chance. Correct the forecast, or learn again often."
        )
    return f"{changed(name, found)} The advice was learned " + (
        "from both, as if nothing had changed. Learn from recent data, or give a forecast."
        if advice.recency.counts_alike
        else "from both, what is recent counting more. Learn again often."
    )


def changed(name: str, found: Drift) -> str:
    """Says that amounts were higher or lower in the test episodes. name: of the amounts."""
    by = "" if np.isnan(found.share) else f"{abs(found.share):.0%} "
    way = "higher" if found.share > 0 else "lower"
    return f"The {name} was {by}{way} in the episodes that followed than in those before them."


def _beside_expected(more: float, spread: float) -> str:
    """How far a mean is from what was expected; next to nothing, beside the spread, is called so."""
    if abs(more) < 0.005 * spread:
        return "as expected"
    return f"{show_number(abs(more))} {'above' if more > 0 else 'below'} what was expected"


def _trend(advice: Advice) -> str:
    """Amounts that rise or fall during the training episodes."""
    found = trend(advice.errors[0])
    if not found.significant:
        return ""
    if advice.has_forecast:
        name = advice.preset.amount_name
        return f"How far the {name} was above what was expected moves in the episodes that were learned from."
    alike = "all of them count alike" if advice.recency.counts_alike else "what is recent counts more"
    return f"{moved(advice.preset.amount_name, found)}; {alike}."


def moved(name: str, found: Drift) -> str:
    """Says that amounts rise or fall during the training episodes, without a full stop. name: of the amounts."""
    way, by = "rises" if found.share > 0 else "falls", ""
    if abs(found.share) < 2:
        by = f", along a line from {1 - found.share / 2:.2g} to {1 + found.share / 2:.2g} times its mean"
    return f"The {name} {way} in the episodes that were learned from{by}"


def _dependent_steps(advice: Advice) -> str:
    """Steps that are not independent, as everything here assumes."""
    if advice.independence.ok is not False:
        return ""
    by_level = "" if advice.by_level is None else ", but by the level of the last steps"
    forecast = "A better forecast" if advice.has_forecast else "A forecast"
    return (
        f"What is assumed does not hold: {advice.independence}. Nothing is proved then, and what one step says of the "
        f"next is not used{by_level}. {forecast} of the {advice.preset.amount_name} would use it: W is then its error."
    )


def _outliers(advice: Advice) -> str:
    """Amounts that are far from all others, and may be mistakes."""
    preset = advice.preset
    amounts = advice.learned.values
    odd = outliers(amounts)
    if not odd.any():
        return ""
    named = [f"{amounts[k, h]:g} in {advice.learned.place(k, h)}" for k, h in np.argwhere(odd)]
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return (
        f"Far from all others: {preset.amount_name} {', '.join(named[:SHOWN])}{more}; the others go from "
        f"{amounts[~odd].min():g} to {amounts[~odd].max():g}. They were learned from as they are, but do not count for "
        "sizes and profiles. Correct what is a mistake."
    )


def _rounding(advice: Advice) -> str:
    """A unit so coarse that rounding changes the amounts noticeably."""
    preset = advice.preset
    effect = rounding_effect(advice.learned.values, preset.unit)
    if effect.negligible:
        return ""
    return (
        f"The {preset.amount_name} was rounded: {effect}. A finer unit rounds less; a unit is what everything is "
        "counted in, not the size of a pack."
    )


def _unequal_spread(advice: Advice) -> str:
    """Steps whose amounts spread differently, although they share one distribution around their means."""
    spread = spreads(advice)
    few = len(advice.learned) < FEWEST_EPISODES
    if not advice.pooled or few or spread.max() <= 2 * max(float(spread.min()), advice.preset.unit / 4):
        return ""
    return (
        f"One law serves all steps, as if their spread were the same; it is from {spread.min():.3g} to "
        f"{spread.max():.3g}: that is NOT the same. Try a law for every step (pooled=False, --no-pool)."
    )


def spreads(advice: Advice) -> NDArray[np.float64]:
    """[H] the standard deviation of every step, over the episodes of the last kind, outliers left out."""
    kind, errors = advice.last.kind, advice.learned_errors
    table = np.where(errors.outliers, np.nan, errors.values)[[k == kind for k in errors.kinds]]
    found: NDArray[np.float64] = np.nanstd(table, axis=0)
    return found


def few_episodes(learned: Episodes) -> str:
    """Too few episodes to learn from."""
    if len(learned) >= FEWEST_EPISODES:
        return ""
    return f"Learned from {show_count(len(learned), 'episode')}: take it as a first guess."

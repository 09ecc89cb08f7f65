"""What is said of orders that are decided anew at every step, as plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from ucbf.advice.caveats import changed, few_episodes, moved
from ucbf.advice.drift import change, trend
from ucbf.advice.judging import FEWEST_EPISODES, LEARNED, ROLLING
from ucbf.advice.ordering import OrderAdvice
from ucbf.advice.remarks import Remark, assumed_costs, losing_sales, with_caveats
from ucbf.advice.sections import (
    Sections,
    check_lines,
    data_lines,
    judgement_on,
    parameter_lines,
    source_line,
    verdict_on,
)
from ucbf.advice.what_to_do import Line, Rules
from ucbf.data.outliers import outliers
from ucbf.wording import show_count, show_number

NOT_USED = ("capacity", "max_demand", "discount", "salvage", "storage")  # of the parameters of a store


def order_sections(
    advice: OrderAdvice, given: Collection[str] | None = None, remarks: Iterable[Remark] = ()
) -> Sections:
    """What is said of orders. given: the parameters that the user chose; remarks: what is said besides."""
    assumed = assumed_costs(advice.shop, given, NOT_USED)
    remarks = (*losing_sales(advice.shop), *remarks, *assumed)
    caveats = with_caveats(_caveats(advice, given), remarks)
    return Sections(
        title=f"{advice.shop.kind.capitalize()}: orders from {advice.training.series.source}",
        verdict=verdict_on(advice, len(caveats)),
        caveats=caveats,
        rules=(Rules("", "", _now(advice)),),
        worth=_worth(advice),
        judgement=judgement_on(advice),
        parameters=parameter_lines(advice, given, NOT_USED),
        assumptions=_assumptions(advice),
        source=source_line(advice),
        data=(*data_lines(advice, given), *(remark.text for remark in remarks if not remark.first)),
        checks=check_lines(advice),
        assumed=tuple(remark.text for remark in assumed),
    )


def _caveats(advice: OrderAdvice, given: Collection[str] | None) -> tuple[str, ...]:
    """What speaks against it, the gravest first."""
    found, rows = [], {row["policy"]: row for row in advice.comparison()}
    better = [row for name, row in rows.items() if name != LEARNED and row["high"] < 0]
    if better and len(advice.test) >= FEWEST_EPISODES:
        rule = better[0]
        kind = "What adapts" if rule["policy"] == ROLLING else "A simple rule"
        found.append(
            f"{kind} did better: {rule['policy']} got {show_number(rule['reward'])} an episode and the learned "
            f"orders {show_number(rows[LEARNED]['reward'])}. Use the rule unless you know why."
        )
    name = advice.shop.amount_name
    if (drift := change(advice.training, advice.test)).significant:
        found.append(
            f"{changed(name, drift)} Orders follow a {name} that changes, step by step, and are late where it jumps."
        )
    if (drift := trend(advice.training)).significant:
        found.append(f"{moved(name, drift)}; the forecast follows it.")
    unused = [name for name in NOT_USED if given is not None and name in given]
    if unused:
        found.append(f"Given, and not used where orders take time: {', '.join(unused)}.")
    if advice.shop.review > 1:
        found.append(
            f"Orders are placed at every {advice.shop.review} steps, counted from the first whole episode. The next "
            f"can be placed: {_when(advice, advice.order_step)}."
        )
    amounts = advice.learned.values
    odd = outliers(amounts)
    if odd.any():
        named = [f"{amounts[k, h]:g} in {advice.learned.place(k, h)}" for k, h in np.argwhere(odd)[:5]]
        found.append(f"Far from all others: demand {', '.join(named)}. Correct what is a mistake.")
    found.append(few_episodes(advice.learned))
    return tuple(text for text in found if text)


def _now(advice: OrderAdvice) -> tuple[Line, ...]:
    """What to order in the step after the series, and what the steps after it may ask for."""
    shop, step, ahead = advice.shop, advice.order_step, advice.forecast(advice.rolling.steps_until_next)
    last = f" ({advice.calendar.full_name(len(ahead))})" if advice.calendar.is_dated and len(ahead) > 1 else ""
    mean = sum(row["mean"] for row in ahead)
    covered = sum(row["mean"] for row in advice.forecast(step - 1 + shop.lead_time + shop.review)[step - 1 :])
    stocks = sorted({float(shop.to_units(share * covered) * shop.unit) for share in (0, 0.25, 0.5, 0.75, 1.0, 1.25)})
    listed = ", ".join(f"{advice.order(stock, step=step):g} if {stock:g} are in stock" for stock in stocks)
    first = _when(advice, step)
    said = [
        Line(
            first[0].upper() + first[1:],
            f"with nothing under way, order {listed}. What is under way counts too: ask every morning."
            + (" No order can be placed before." if step > 1 else ""),
        ),
        Line(
            "Expected demand",
            f"{show_number(mean)} in the {show_count(len(ahead), 'step')} until what is ordered next comes{last}; "
            f"the first of them {show_number(ahead[0]['mean'])} (80 %: {show_number(ahead[0]['low'])} to "
            f"{show_number(ahead[0]['high'])}).",
        ),
    ]
    return tuple(said)


def _when(advice: OrderAdvice, step: int) -> str:
    """A step after the series, as it is called in a sentence."""
    if advice.calendar.is_dated:
        return advice.calendar.full_name(step)
    return "after the last row" if step == 1 else f"{step} steps after the last row"


def _worth(advice: OrderAdvice) -> tuple[Line, ...]:
    if LEARNED not in advice.played:
        return (Line("", "Not judged: all episodes were learned from."),)
    ours = advice.played[LEARNED]
    return (
        Line(
            "Came of it",
            f"{show_number(advice.value)} an episode in those that followed. What is in stock and under way at the end "
            "of an episode counts at its cost.",
        ),
        Line("Service", str(ours.service)),
        Line("On the shelf", f"{show_number(float(ours.left.mean()))} at the end of a step, on average."),
        Line("Proved", "nothing: demand may drift, and orders are found by simulation."),
    )


def _assumptions(advice: OrderAdvice) -> tuple[Line, ...]:
    without, with_season = advice.season_scores
    said = [
        *_of_values(advice),
        Line(
            "Forecast",
            "a mixture of levels that forget at different rates, weighed by what they predicted; made anew at every "
            "step from the demands before it.",
        ),
    ]
    if np.isfinite(without):
        used = (
            "Steps of an episode differ" if advice.season is not None else "Steps of an episode are taken to be alike"
        )
        said.append(
            Line(
                "",
                f"{used}: the mean error of a step, predicted from the episodes before it, is {with_season:.4g} with "
                f"factors for the steps and {without:.4g} without.",
            )
        )
    if advice.closed:
        said.append(Line("", f"Nothing is expected on {', '.join(advice.closed)}: nothing was ever asked for then."))
    if advice.asked:
        judged, now = (f"{aim:.1%}" for aim in advice.aims)
        said.append(
            Line(
                "Service level",
                f"each order is one with which the stock lasts in {now} of the sampled steps until the next one comes: "
                f"aimed at so, it lasted in {advice.asked:.1%} of the steps of the series."
                + (f" What was judged aimed at {judged}, by the episodes before." if advice.played else ""),
            )
        )
    promise = show_count(advice.shop.lead_time, "step")
    said.append(
        Line(
            "Assumed",
            f"orders come after {promise}, as promised, where it is judged; what to order now reckons with late ones.",
        )
    )
    return tuple(said)


def _of_values(advice: OrderAdvice) -> tuple[Line, ...]:
    """Whether orders are by fitted values, and why."""
    trial = advice.trial
    if trial is None:
        return ()
    demands = show_count(trial.n_demands, "demand")
    tried = (
        f"no table holds {trial.n_pairs:.1g} pairs of states and orders, and values were fitted to {demands}. In the "
        f"last of the training episodes they got {show_number(trial.ahead)} an episode more than rolling orders (95 %: "
        f"{show_number(trial.low)} to {show_number(trial.high)})"
    )
    if advice.fitted is None:
        return (Line("Orders", f"decided anew at every step: {tried}."),)
    again = (
        "are fitted again to all demands, and"
        if advice.refitted
        else ("stay as they were tried, as none are fitted in sizes that suit all demands. They")
    )
    kept = "take demand to stay as it was: learn again now and then."
    return (Line("Orders", f"by fitted values: {tried}. They {again} {kept}"),)

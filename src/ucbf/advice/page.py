"""A piece of advice in words: one page in Markdown."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ucbf.advice.advise import LEAST, Advice
from ucbf.advice.doubts import count, doubts, number, spreads
from ucbf.advice.field import LEARNED
from ucbf.reports import markdown_table


def summary(advice: Advice, given: Collection[str] | None = None) -> str:
    """One page in Markdown. given: the parameters that the user chose; the others are said to be assumed."""
    parts = [
        _of_the_data(advice),
        _of_what_to_mind(advice),
        _of_the_parameters(advice, given),
        _of_the_policy(advice),
        _of_its_worth(advice),
        _of_the_comparison(advice),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _of_the_data(advice: Advice) -> str:
    ready, training, test, series = advice.ready, advice.training, advice.test, advice.training.series
    last = (test if len(test) else training).starts[-1]
    dropped = f" {count(training.dropped, 'row')} at the ends left out." if training.dropped else ""
    later = (len(series) - training.dropped) // ready.horizon - len(training) - len(test)
    unused = f" The {later} after them settle no more, and were left out." if later else ""
    amounts = np.concatenate([training.amounts, test.amounts])
    rounded = int((np.abs(amounts / ready.unit - np.rint(amounts / ready.unit)) > 1e-9).sum())
    note = f" {count(rounded, 'value')} rounded to multiples of {ready.unit:g}." if rounded else ""
    return (
        f"# {ready.kind.capitalize()}: a policy from {series.source}\n\n"
        f"Column {series.name!r}, {count(len(series), 'row')}; episodes of {count(ready.horizon, 'step')}, the first "
        f"from {_date(training.starts[0])}, the last from {_date(last)}: {len(training)} to learn from, {len(test)} to "
        f"judge by.{unused}{dropped}{note}" + "".join(f" {done}" for done in series.notes)
    )


def _of_what_to_mind(advice: Advice) -> str:
    found = doubts(advice)
    return "## Read this first\n\n" + "\n".join(f"- {text}" for text in found) if found else ""


def _of_the_parameters(advice: Advice, given: Collection[str] | None) -> str:
    ready = advice.ready
    chosen = {name: name in given if given is not None else True for name in ready.described()}
    said = [f"With {', '.join(ready.described(name) for name, mine in chosen.items() if mine) or 'nothing given'}."]
    if not all(chosen.values()):
        said.append(
            f"Not given, and assumed: {', '.join(ready.described(n) for n, mine in chosen.items() if not mine)}."
        )
    return "\n\n".join(said)


def _date(text: str) -> str:
    return text.removesuffix(" 00:00:00")


def _of_the_policy(advice: Advice) -> str:
    parts = []
    for day in advice.days.values():
        title = f"### {_date(day.name)}\n\n" if day.name else ""
        parts.append(title + "\n".join(f"- {line}" for line in str(day.policy).splitlines()))
    return "## What to do\n\n" + "\n\n".join(parts)


def _of_its_worth(advice: Advice) -> str:
    amount, certificate = advice.ready.amount_name, advice.certificate
    bound = float(certificate.gap[round(advice.start / advice.ready.unit) - advice.ready.system.state_offset])
    lost = (
        f"{number(advice.loss)} an episode at most, in 95 % of resampled histories."
        if np.isfinite(advice.loss)
        else f"not to be told from {count(len(advice.training), 'episode')}."
    )
    lines = [
        f"Expected: {advice.value:.5g} an episode, if the future is like the past."
        + ("" if advice.ongoing else " The rest at the end of an episode is valued as stated, and no further."),
        f"Estimated loss from not knowing the law of the {amount} any better: {lost}",
        f"Proved, for independent steps: with {1 - certificate.p:.0%} probability no policy gets more than "
        f"{number(bound)} an episode above it"
        + ("." if bound < abs(advice.value) else "; so few episodes prove next to nothing."),
        f"Assumed: {advice.independence}.",
        _of_the_spread(advice),
    ]
    return "## What it is worth\n\n" + "\n".join(f"- {line}" for line in lines)


def _of_the_spread(advice: Advice) -> str:
    """What pooling takes for granted."""
    if not advice.pooled:
        return "Every step has a law of its own."
    spread = spreads(advice)
    return (
        f"One law serves all steps, around the profile of the {advice.ready.amount_name}: the spread is taken to be "
        f"the same. In the data it is from {spread.min():.3g} to {spread.max():.3g}."
    )


def _of_the_comparison(advice: Advice) -> str:
    rows, n = advice.comparison(), len(advice.test)
    if not rows:
        return "## Judged by\n\nNothing: all episodes were learned from."
    others = [row for row in rows if row["policy"] != LEARNED]
    groups = {
        "Better than the learned policy": [row["policy"] for row in others if row["high"] < 0],
        "not to be told apart from it": [row["policy"] for row in others if row["low"] <= 0 <= row["high"]],
        "worse": [row["policy"] for row in others if row["low"] > 0],
    }
    verdict = "; ".join(f"{what}: {', '.join(names) or 'none'}" for what, names in groups.items())
    if n < LEAST:
        verdict = f"So few episodes ({n}) do not settle who is better"

    def ahead(row: dict[str, Any]) -> str:
        if row["policy"] == LEARNED:
            return ""
        bounds = f"({row['low']:+.4g}, {row['high']:+.4g})" if np.isfinite(row["low"]) else "(unknown)"
        return f"{row['ahead']:+.4g} {bounds}"

    cells = [[row["policy"], f"{row['reward']:.5g}", ahead(row)] for row in rows]
    table = markdown_table(["policy", "reward an episode", "learned is ahead by (95 %)"], cells)
    return f"## In the {count(n, 'episode')} that followed\n\n{verdict}.\n\n{table.strip()}"

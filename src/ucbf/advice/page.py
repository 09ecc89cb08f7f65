"""The page on a piece of advice, in Markdown."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ucbf.advice.caveats import find_caveats, spreads
from ucbf.advice.judging import FEWEST_EPISODES, LEARNED
from ucbf.advice.result import Advice
from ucbf.reports import markdown_table
from ucbf.wording import show_count, show_number


def summary(advice: Advice, given: Collection[str] | None = None) -> str:
    """One page in Markdown: the data, caveats, the parameters, the policy, its value, and how it did.

    given: the parameters that the user chose; the page lists the others as assumed. None: all were chosen
    """
    parts = [
        _data_section(advice),
        _caveats_section(advice),
        _parameters_section(advice, given),
        _policy_section(advice),
        _value_section(advice),
        _comparison_section(advice),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _data_section(advice: Advice) -> str:
    preset, training, test, series = advice.preset, advice.training, advice.test, advice.training.series
    last = (test if len(test) else training).starts[-1]
    dropped = f" {show_count(training.dropped, 'row')} at the ends left out." if training.dropped else ""
    later = (len(series) - training.dropped) // preset.n_steps - len(training) - len(test)
    unused = f" The {later} after them settle no more, and were left out." if later else ""
    amounts = np.concatenate([training.values, test.values])
    rounded = int((np.abs(amounts / preset.unit - np.rint(amounts / preset.unit)) > 1e-9).sum())
    note = f" {show_count(rounded, 'value')} rounded to multiples of {preset.unit:g}." if rounded else ""
    return (
        f"# {preset.kind.capitalize()}: a policy from {series.source}\n\n"
        f"Column {series.name!r}, {show_count(len(series), 'row')}; episodes of {show_count(preset.n_steps, 'step')}, "
        f"the first from {_date(training.starts[0])}, the last from {_date(last)}: {len(training)} to learn from, "
        f"{len(test)} to judge by.{unused}{dropped}{note}" + "".join(f" {done}" for done in series.notes)
    )


def _caveats_section(advice: Advice) -> str:
    found = find_caveats(advice)
    return "## Read this first\n\n" + "\n".join(f"- {text}" for text in found) if found else ""


def _parameters_section(advice: Advice, given: Collection[str] | None) -> str:
    preset = advice.preset
    chosen = {name: name in given if given is not None else True for name in preset.stated_parameters()}
    said = [f"With {', '.join(preset.describe(name) for name, mine in chosen.items() if mine) or 'nothing given'}."]
    if not all(chosen.values()):
        said.append(
            f"Not given, and assumed: {', '.join(preset.describe(n) for n, mine in chosen.items() if not mine)}."
        )
    return "\n\n".join(said)


def _date(text: str) -> str:
    return text.removesuffix(" 00:00:00")


def _policy_section(advice: Advice) -> str:
    parts = []
    for each in advice.by_kind.values():
        title = f"### {_date(each.name)}\n\n" if each.name else ""
        parts.append(title + "\n".join(f"- {line}" for line in str(each.policy).splitlines()))
    return "## What to do\n\n" + "\n\n".join(parts)


def _value_section(advice: Advice) -> str:
    amount, certificate = advice.preset.amount_name, advice.certificate
    bound = float(certificate.gap[round(advice.start / advice.preset.unit) - advice.preset.system.state_offset])
    lost = (
        f"{show_number(advice.loss)} an episode at most, in 95 % of resampled histories."
        if np.isfinite(advice.loss)
        else f"not to be told from {show_count(len(advice.training), 'episode')}."
    )
    lines = [
        f"Expected: {advice.value:.5g} an episode, if the future is like the past."
        + ("" if advice.ongoing else " The rest at the end of an episode is valued as stated, and no further."),
        f"Estimated loss from not knowing the law of the {amount} any better: {lost}",
        f"Proved, for independent steps: with {1 - certificate.p:.0%} probability no policy gets more than "
        f"{show_number(bound)} an episode above it"
        + ("." if bound < abs(advice.value) else "; so few episodes prove next to nothing."),
        f"Assumed: {advice.independence}.",
        _spread_line(advice),
    ]
    return "## What it is worth\n\n" + "\n".join(f"- {line}" for line in lines)


def _spread_line(advice: Advice) -> str:
    """Whether the steps share a distribution of W, which takes their spread to be the same."""
    if not advice.pooled:
        return "Every step has a law of its own."
    spread = spreads(advice)
    return (
        f"One law serves all steps, around the profile of the {advice.preset.amount_name}: the spread is taken to be "
        f"the same. In the data it is from {spread.min():.3g} to {spread.max():.3g}."
    )


def _comparison_section(advice: Advice) -> str:
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
    if n < FEWEST_EPISODES:
        verdict = f"So few episodes ({n}) do not settle who is better"

    def ahead(row: dict[str, Any]) -> str:
        if row["policy"] == LEARNED:
            return ""
        bounds = f"({row['low']:+.4g}, {row['high']:+.4g})" if np.isfinite(row["low"]) else "(unknown)"
        return f"{row['ahead']:+.4g} {bounds}"

    cells = [[row["policy"], f"{row['reward']:.5g}", ahead(row)] for row in rows]
    table = markdown_table(["policy", "reward an episode", "learned is ahead by (95 %)"], cells)
    return f"## In the {show_count(n, 'episode')} that followed\n\n{verdict}.\n\n{table.strip()}"

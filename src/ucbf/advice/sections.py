"""What is said of a piece of advice, as plain text: Markdown and HTML are two renderings of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ucbf.advice.caveats import find_caveats, spreads
from ucbf.advice.judging import FEWEST_EPISODES, LEARNED, NOT_RULES
from ucbf.advice.remarks import Remark, assumed_costs, binding_capacity, losing_sales, nothing_ordered, with_caveats
from ucbf.advice.result import Advice
from ucbf.advice.what_to_do import Line, Rules, rules_of
from ucbf.data import Episodes
from ucbf.data.outliers import outliers
from ucbf.systems.base import Preset
from ucbf.wording import show_count, show_number

CAVEATS, NO_CAVEATS = "Read this first", "Nothing that was checked speaks against this advice."
COLUMNS = ("policy", "reward an episode", "learned is ahead by (95 %)")


class Compared(NamedTuple):
    """A row of the comparison, in the order of COLUMNS; the last column has both the difference and its interval."""

    policy: str
    reward: str
    ahead: str  # empty for the learned policy itself, as is its interval
    interval: str


@dataclass(frozen=True)
class Judgement:
    """How the policy did in the episodes that followed."""

    heading: str
    sentence: str
    rows: tuple[Compared, ...] = ()  # the best policy first


@dataclass(frozen=True)
class Sections:
    """What is said of a piece of advice, each sentence once."""

    title: str
    verdict: str
    caveats: tuple[str, ...]  # the gravest first
    rules: tuple[Rules, ...]
    worth: tuple[Line, ...]
    judgement: Judgement
    parameters: tuple[Line, ...]  # given and assumed
    assumptions: tuple[Line, ...]
    source: str  # what was read
    data: tuple[str, ...]  # what was made of it
    checks: tuple[str, ...]  # what was filled in, and what is far from all others
    assumed: tuple[str, ...] = ()  # those of the caveats that say what was not given: the same for many items

    @property
    def own_caveats(self) -> tuple[str, ...]:
        """The other caveats: on the series, and on what was learned from it."""
        return tuple(text for text in self.caveats if text not in self.assumed)


class Judged(Protocol):
    """What all advice has: judged by the last episodes of a series, then learned again from all of them."""

    @property
    def preset(self) -> Preset:
        """The system."""

    @property
    def rounded(self) -> int:
        """How many amounts were rounded to multiples of the unit."""

    @property
    def training(self) -> Episodes:
        """From which that was learned that was judged."""

    @property
    def test(self) -> Episodes:
        """Judged by."""

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of policies that were learned from less."""

    @property
    def learned(self) -> Episodes:
        """From which the advice was learned: all."""

    def comparison(self) -> list[dict[str, Any]]:
        """A row for each policy."""


def sections_of(advice: Advice, given: Collection[str] | None = None, remarks: Iterable[Remark] = ()) -> Sections:
    """What is said of a piece of advice.

    given: the parameters that the user chose; the others are listed as assumed. None: all were chosen
    remarks: what is said besides, with the caveats or with the data
    """
    assumed = assumed_costs(advice.preset, given)
    remarks = (
        *losing_sales(advice.preset),
        *nothing_ordered(advice),
        *remarks,
        *binding_capacity(advice, given),
        *assumed,
    )
    caveats = with_caveats(find_caveats(advice), remarks)
    return Sections(
        title=f"{advice.preset.kind.capitalize()}: a policy from {advice.training.series.source}",
        verdict=verdict_on(advice, len(caveats)),
        caveats=caveats,
        rules=rules_of(advice),
        worth=_worth(advice),
        judgement=judgement_on(advice),
        parameters=parameter_lines(advice, given),
        assumptions=_assumptions(advice),
        source=source_line(advice),
        data=(*data_lines(advice, given), *(remark.text for remark in remarks if not remark.first)),
        checks=check_lines(advice),
        assumed=tuple(remark.text for remark in assumed),
    )


def verdict_on(advice: Judged, caveats: int) -> str:
    """How it compares with simple rules, and whether something speaks against it, in a line."""
    rows, n = [row for row in advice.comparison() if row["policy"] not in NOT_RULES], len(advice.test)
    rules = [row for row in rows if row["policy"] not in advice.variants]
    without = [row["policy"] for row in rows if row["policy"] in advice.variants and row["high"] < 0]
    better = [row["policy"] for row in rules if row["high"] < 0]
    worse = [row["policy"] for row in rules if row["low"] > 0]
    alike = [row["policy"] for row in rules if row["low"] == row["high"] == 0]
    if not rules:
        said = "Not judged: all episodes were learned from."
    elif n < FEWEST_EPISODES:
        said = f"Not settled: {show_count(n, 'episode')} followed, too few to judge by."
    elif better:
        said = f"Do not use it as it is: {better[0]}, a simple rule, did better in the {n} episodes that followed."
    elif without:
        said = f"Do not use it as it is: {without[0]} it did better in the {n} episodes that followed."
    else:
        said = (
            f"No simple rule did better than this policy in the {n} episodes that followed, beyond chance; it was "
            f"ahead of {len(worse) or 'none'} of {show_count(len(rules), 'rule')}."
        )
        said += f" {alike[0].capitalize()} is simpler and earned just as much in every one." if alike else ""
    return said + (f" {show_count(caveats, 'thing')} to read first." if caveats else "")


def data_lines(advice: Judged, given: Collection[str] | None) -> tuple[str, ...]:
    """The rows, how they were cut into episodes, and what was left out or rounded. given: what the user chose."""
    preset, training, test, series = advice.preset, advice.training, advice.test, advice.training.series
    last = advice.learned.starts[-1]
    said = [
        f"Column {series.name!r}, {show_count(len(series), 'row')}; episodes of {show_count(preset.n_steps, 'step')}, "
        f"the first from {_date(training.starts[0])}, the last from {_date(last)}: {len(training)} to learn from, "
        f"{len(test)} to judge by."
    ]
    later = len(advice.learned) - len(training) - len(test)
    if later:
        said.append(f"The {later} after them settle no more, and did not judge.")
    if training.dropped:
        said.append(f"{show_count(training.dropped, 'row')} at the ends left out.")
    if advice.rounded:
        was_chosen = given is not None and "unit" not in given
        finer = ", which was chosen to be quick: a smaller one (unit=, --unit) rounds less." if was_chosen else "."
        said.append(f"{show_count(advice.rounded, 'value')} rounded to multiples of {preset.unit:g}{finer}")
    return (*said, *series.notes)


def source_line(advice: Judged) -> str:
    """Where the series comes from, and when it was."""
    series = advice.training.series
    if series.times is None:
        return f"Read from {series.source}."
    first, last = (_date(str(series.times[i]).replace("T", " ")) for i in (0, -1))
    return f"Read from {series.source}: rows from {first} to {last}."


def check_lines(advice: Judged) -> tuple[str, ...]:
    """How many values were filled in, or are far from all others."""
    series = advice.training.series
    filled = 0 if series.filled is None else int(series.filled.sum())
    odd = int(outliers(advice.learned.values).sum())
    return (
        f"{show_count(filled, 'value') if filled else 'No value'} filled in.",
        f"{show_count(odd, 'value') if odd else 'No value'} far from all others.",
    )


def parameter_lines(advice: Judged, given: Collection[str] | None, unused: Collection[str] = ()) -> tuple[Line, ...]:
    """The parameters that were given, and those that were assumed. unused: those that do not count."""
    preset = advice.preset
    chosen = {name: name in given if given is not None else True for name in preset.stated_parameters()}
    chosen = {name: mine for name, mine in chosen.items() if mine or name not in unused}
    said = [Line("", f"With {', '.join(preset.describe(n) for n, mine in chosen.items() if mine) or 'nothing given'}.")]
    if not all(chosen.values()):
        assumed = ", ".join(preset.describe(n) for n, mine in chosen.items() if not mine)
        said.append(Line("All that was not given", f"{assumed}."))
    return tuple(said)


def _date(text: str) -> str:
    return text.removesuffix(" 00:00:00")


def _worth(advice: Advice) -> tuple[Line, ...]:
    amount = advice.preset.amount_name
    lost = (
        f"{show_number(advice.loss)} an episode at most, in 95 % of resampled histories."
        if np.isfinite(advice.loss)
        else f"not to be told from {show_count(len(advice.learned), 'episode')}."
    )
    return (
        Line(
            "Expected",
            f"{advice.value:.5g} an episode, if the future is like the past."
            + ("" if advice.ongoing else " The rest at the end of an episode is valued as stated, and no further."),
        ),
        *(() if advice.service is None else (Line("Service in the episodes that followed", str(advice.service)),)),
        Line(f"Estimated loss from not knowing the law of the {amount} any better", lost),
        _proved(advice),
    )


def _proved(advice: Advice) -> Line:
    """The certificate, where there is one."""
    certificate = advice.certificate
    if certificate is None:
        why = "what is recent counts more, so that the past is not taken for one law."
        if advice.recency.counts_alike:
            why = f"a proof needs one law, and the {advice.preset.amount_name} did not keep to one."
        if advice.learned.drawn:
            why = f"{advice.learned.drawn} of the amounts were not seen, and are draws."
        if advice.planner.training.quantiles is not None:
            why = "every episode has a law of its own, from the quantiles that were forecast."
        return Line("Proved", f"nothing: {why}")
    if advice.independence.ok is False:
        return Line("Proved", "nothing: a proof needs steps that do not depend on each other, and these do.")
    bound = float(certificate.gap[round(advice.start / advice.preset.unit) - advice.preset.system.state_offset])
    if bound >= abs(advice.value):
        few = show_count(len(advice.learned), "episode")
        return Line("Proved", f"nothing worth reading: {few} are too few for a bound below what is expected itself.")
    return Line(
        "Proved, for independent steps",
        f"with {1 - certificate.p:.0%} probability no policy gets more than {show_number(bound)} an episode above it.",
    )


def _recency(advice: Advice) -> Iterator[Line]:
    """How much of the past counts, and by what score that was chosen; what was judged, if that was another."""
    recency, judged = advice.recency, advice.judged.training.recency
    if not recency.scores:
        if not recency.counts_alike:
            yield Line("", f"An episode counts half as much as one {recency.half_life:g} later, as was chosen.")
        return
    best, alike = recency.scores[recency.half_life], recency.scores[np.inf]
    score = (
        f"the score is the mean logarithm of the probability density of {show_count(recency.predicted, 'step')}, each "
        "predicted from the episodes before it"
    )
    if recency.counts_alike:
        others = max(value for half_life, value in recency.scores.items() if np.isfinite(half_life))
        yield Line(
            "",
            f"All episodes count alike: that scores {alike:.3f}, and the best of six half-lives {others:.3f}, which is "
            f"not enough to forget for; {score}.",
        )
    else:
        yield Line(
            "",
            f"What is recent counts more: an episode half as much as one {recency.half_life:g} later. That scores "
            f"{best:.3f}, and {alike:.3f} if all count alike; {score}.",
        )
    if judged.half_life != recency.half_life:
        yield Line(
            "",
            "The policy that was judged had "
            + ("all episodes count alike" if judged.counts_alike else f"a half-life of {judged.half_life:g} episodes")
            + ", as the episodes that it was learned from asked for.",
        )


def _assumptions(advice: Advice) -> tuple[Line, ...]:
    """Independence, and whether the steps share a distribution of W, which takes their spread to be the same."""
    independent = Line("Assumed", f"{advice.independence}.")
    if not advice.pooled:
        return independent, Line("", "Every step has a law of its own."), *_recency(advice), *_levels(advice)
    spread = spreads(advice)
    shared = Line(
        "",
        f"One law serves all steps, around the profile of the {advice.preset.amount_name}: the spread is taken to be "
        f"the same. In the data it is from {spread.min():.3g} to {spread.max():.3g}.",
    )
    return independent, shared, *_recency(advice), *_levels(advice)


def _levels(advice: Advice) -> tuple[Line, ...]:
    """How the level of the last steps is counted, and by what score it was taken."""
    if advice.by_level is None:
        return ()
    found, unit = advice.by_level.regimes, advice.preset.unit
    how = (
        "what the last step differed from its mean by"
        if found.memory == 0
        else f"a mean of what the last steps differed from theirs by, {found.memory:g} of which stays at each step"
    )
    cuts = " and ".join(f"{cut:.3g}" for cut in found.cuts)
    return (
        Line(
            "The level of the last steps",
            f"{how}; {', '.join(found.names)}, cut at {cuts} (unit {unit:g}). It predicts: {found.score:.3f}, against "
            f"{found.score_without:.3f} without; the mean logarithm of the likelihood of "
            f"{show_count(found.predicted, 'step')}, each predicted from those before it.",
        ),
    )


def judgement_on(advice: Judged) -> Judgement:
    """Who did better, and who worse, in the episodes that followed."""
    rows, n = advice.comparison(), len(advice.test)
    if not rows:
        return Judgement("Judged by", "Nothing: all episodes were learned from.")
    others = [row for row in rows if row["policy"] != LEARNED]
    groups = {
        "Better than the learned policy": [row["policy"] for row in others if row["high"] < 0],
        "not to be told apart from it": [row["policy"] for row in others if row["low"] <= 0 <= row["high"]],
        "worse": [row["policy"] for row in others if row["low"] > 0],
    }
    who = "; ".join(f"{what}: {', '.join(names) or 'none'}" for what, names in groups.items())
    if n < FEWEST_EPISODES:
        who = f"So few episodes ({n}) do not settle who is better"
    said = f"{who}. {relearned(advice)}"
    return Judgement(f"In the {show_count(n, 'episode')} that followed", said, tuple(map(_compared, rows)))


def relearned(advice: Judged) -> str:
    """What was judged, and what the advice was learned from."""
    before, n = len(advice.training), len(advice.test)
    return (
        f"Judged on {show_count(n, 'episode')}, with what the {before} before "
        f"{'it' if n == 1 else 'them'} taught; then learned again from all {len(advice.learned)} episodes."
    )


def _compared(row: dict[str, Any]) -> Compared:
    policy, reward = row["policy"], f"{row['reward']:.5g}"
    if policy == LEARNED:
        return Compared(policy, reward, "", "")
    interval = f"({row['low']:+.4g}, {row['high']:+.4g})" if np.isfinite(row["low"]) else "(unknown)"
    return Compared(policy, reward, f"{row['ahead']:+.4g}", interval)

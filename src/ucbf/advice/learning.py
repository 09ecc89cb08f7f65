"""``ucbf.learn``: learn from the first part of a series, judge by the rest, and learn again from all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ucbf.advice.judging import BY_LEVEL, LEARNED, judge, judged_policies, learned_rewards, rewards_by_level
from ucbf.advice.planner import Planner
from ucbf.advice.promotions import Promotions
from ucbf.advice.quantiles import QuantileScores, scores
from ucbf.advice.regimes import advise_by_level, chosen_regimes
from ucbf.advice.resampling import estimated_loss, resampled_histories
from ucbf.advice.result import Advice
from ucbf.advice.service import service_in
from ucbf.advice.training import Training
from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.certificates import Certificate
from ucbf.checks import real
from ucbf.data import Episodes, Quantiles, independence
from ucbf.data.cutting import require_known
from ucbf.data.sizes import rounding_effect
from ucbf.errors import UserError
from ucbf.following.calendar import calendar_of
from ucbf.run import Progress
from ucbf.systems.base import Preset

MEDIAN_ONLY = "with the median only"  # in comparisons: what is learned without the other quantiles


def learn(
    preset: Preset,
    episodes: Episodes,
    train: float = 0.7,
    pooled: bool | None = None,
    changes: Sequence[dict[str, Any]] | None = None,
    ongoing: bool | None = None,
    start: float | None = None,
    p: float = 0.05,
    half_life: float | None = None,
    without: str | None = None,
    quantiles: Quantiles | None = None,
    relearned: Sequence[dict[str, Any]] | None = None,
    promotions: Promotions | None = None,
    coming: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Learn a policy from the first episodes of a series, judge it by the others, and learn again from all of them.

    What is judged knows nothing of the episodes that it is judged by. What is advised, and the agents to go on with,
    are learned in the same way from every episode.

    Parameters
    ----------
    preset
        The system: one of :mod:`ucbf.systems`, or a subclass of :class:`ucbf.systems.Preset` of your own.
    episodes
        The measured amounts, cut into episodes (:func:`ucbf.data.episodes`).
    train
        The share of the episodes from which the policy is learned that is judged. The others judge, up to 50,000 steps
        of them; none do if 1.
    pooled
        Whether all steps share one distribution of W, the difference to the profile; else every step has its own. The
        profile is that of ``preset`` or ``changes`` if they give one, else the mean of every step. Where an episode is
        a day, the means of weekdays and weekends are kept apart, and without pooling their distributions too. None:
        pooled if there are fewer than 20 training episodes of a kind.
    changes
        [K] for each episode, the parameters of the preset that differ in it and are known before it: the day's
        ``prices``, or a forecast as its ``profile``.
    ongoing
        Whether episodes follow each other, so that none has an end to plan for (:func:`ucbf.endless`). With changes,
        the episodes to come are taken to be like those of the past. None: ongoing unless there are changes.
    start
        The first state, in the user's units; the one nearest to 0 if None.
    p
        The probability with which the certificate may fail.
    half_life
        After how many episodes one counts half as much as the last. None: chosen by what it would have predicted, out
        of sample, in what is learned from; all count alike unless another is clearly better. ``math.inf``: all alike.
    without
        If given, the policy that is learned without the profiles of ``changes`` is compared too, under this name.
    quantiles
        Of each of the K episodes, known before it, where ``changes`` has the forecast in the middle as the profile.
        They are used if they would have predicted the training episodes better, out of sample, than the errors of that
        one forecast; "with the median only" is compared then. ``Advice.quantile_scores`` has both scores.
    relearned
        ``changes`` as they are known after all episodes, for what is learned again from all of them: where they were
        learned themselves, as what promotions do. The same, if None.
    promotions
        What :func:`ucbf.advice.promotions` found, where the profiles of the changes are those of promotions: ``act``
        can then be told what is promoted.
    coming
        What is known of the episode that comes, as one of ``changes`` has it, and its "quantiles" [H, m] where there
        are any: ``Advice.by_kind`` then says what to do in it. None, or of a kind that was never measured: where
        every episode differs, what to do in the last one.
    progress
        Called with (steps of work done, steps of work).
    """
    _check_arguments(preset, episodes, train, changes, half_life)
    if relearned is not None and (changes is None or len(relearned) != len(changes)):
        raise ValueError(f"relearned has {len(relearned)} entries; give one for each of those of changes")
    _check_range_and_unit(preset, episodes)
    training = Training(preset, episodes, train, pooled, changes, half_life)
    found = None if quantiles is None else _quantile_scores(training, quantiles, len(episodes))
    used = quantiles if found is not None and found.are_better else None
    plain, training = training, Training(preset, episodes, train, pooled, changes, half_life, used)
    judged = Planner(training, changes is None if ongoing is None else ongoing)
    begin = _first_state(training.preset_of(0), start)
    whole = training
    if len(training.test_episodes):
        whole = Training(preset, episodes, 1.0, pooled, changes if relearned is None else relearned, half_life, used)
    planner = Planner(whole, judged.ongoing) if whole is not training else judged
    work = _Work(progress, resampled_histories(whole))
    if len(training.test_episodes):
        work.total += len(judged_policies(judged))
    runs = judge(judged, begin, work.done)
    rewards = {name: run.reward for name, run in runs.items()}
    if without is not None and rewards:
        told = [{name: x for name, x in change.items() if name != "profile"} for change in changes or ()]
        blind = Training(preset, episodes, train, pooled, told if any(told) else None, half_life)
        rewards[without] = learned_rewards(Planner(blind, judged.ongoing), begin)
    if used is not None and rewards:
        rewards[MEDIAN_ONLY] = learned_rewards(Planner(plain, judged.ongoing), begin)
    regimes = chosen_regimes(training) if changes is None and judged.ongoing else None
    if regimes is not None and rewards:
        rewards[BY_LEVEL] = rewards_by_level(advise_by_level(judged, regimes), begin)
    if regimes is not None:
        regimes = chosen_regimes(whole) or regimes
    last = len(whole.episodes) - 1
    shown = [planner.episode(k) for k in whole.last_of_each_kind()]
    calendar = calendar_of(episodes)
    if coming is not None and calendar.kind_of(1) not in episodes.kinds:
        coming = None  # a weekend, and all that was measured are weekdays
    if coming is not None:
        shown = [planner.coming(coming, calendar)]
    return Advice(
        by_kind={each.name: each for each in shown},
        training=training.training_episodes,
        test=training.test_episodes,
        rewards=rewards,
        service=service_in(runs[LEARNED], training) if runs else None,
        independence=independence(whole.disturbances, whole.episodes.kinds),
        pooled=whole.pooled,
        recency=whole.recency,
        ongoing=planner.ongoing,
        value=planner.expected_value(begin),
        value_judged=judged.expected_value(begin),
        certificate=_certificate(planner, last, p),
        loss=estimated_loss(planner, last, begin, work.done),
        start=begin * preset.unit,
        agents={each.name: planner.agent_for(each) for each in shown},
        planner=planner,
        judged=judged,
        quantile_scores=found,
        by_level=None if regimes is None else advise_by_level(planner, regimes),
        promotions=promotions,
        variants=tuple(name for name in (without, MEDIAN_ONLY) if name in rewards),
        is_coming=coming is not None,
    )


class _Work:
    """Counts steps of work."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.count = progress, total, 0

    def done(self) -> None:
        self.count += 1
        if self.progress is not None:
            self.progress(self.count, self.total)


def _certificate(planner: Planner, k: int, p: float) -> Certificate | None:
    """How far from optimal the policy of episode k can be, given what was counted in the training episodes.

    None where they are not taken for draws of one distribution, so that nothing is proved: where they do not count
    alike, or each has a distribution of its own, or they are seen to drift, or some were hidden or missing.
    """
    training = planner.training
    if training.episodes.drawn or not training.recency.counts_alike or training.quantiles is not None:
        return None
    agent = UCBVIf(planner.episode(k).system, stationary=training.pooled)
    agent.warm_start(training.disturbances[training.counted_episodes(training.episodes.kinds[k])])
    if not agent.model_check().ok:
        return None
    return agent.certificate(p, "coupled")  # the system was stated in view of the data: sizes, profiles


def _quantile_scores(training: Training, quantiles: Quantiles, K: int) -> QuantileScores | None:
    """How well the quantiles, and the forecast in the middle, predict the training episodes; None if too few."""
    n, H = training.training_episodes.values.shape
    if quantiles.values.shape[:2] != (K, H):
        raise ValueError(f"quantiles are of {quantiles.values.shape[:2]} steps; give those of all episodes, {(K, H)}")
    if training.forecast is None:
        raise ValueError(
            "quantiles are given without a profile in each of the changes; give the forecast in the middle"
        )
    return scores(quantiles, training.forecast[:n], training.measured(np.arange(n))) if n > 1 else None


# -- checks ---------------------------------------------------------------------------------------------


def _check_arguments(
    preset: Preset,
    episodes: Episodes,
    train: float,
    changes: Sequence[dict[str, Any]] | None,
    half_life: float | None,
) -> None:
    if not isinstance(preset, Preset):
        raise TypeError(f"preset is {preset!r:.60}; give one of ucbf.systems, or a subclass of ucbf.systems.Preset")
    if preset.horizon is None or preset.beyond_a_line:
        raise ValueError(
            f"learn needs a preset with a horizon, whose state is one number and whose costs come at once, and this "
            f"{type(preset).__name__} is more: give a horizon (ongoing=True plans as if there were no end), and leave "
            "out lead times, shelf lives, limits of charging and costs of starting and stopping; simulate takes them"
        )
    require_known(episodes)
    real("train", train, 0, 1, open_low=True)
    if half_life is not None and half_life != np.inf:
        real("half_life", half_life, 0, 1e6, open_low=True)
    if changes is not None and len(changes) != len(episodes):
        raise ValueError(f"changes has {len(changes)} entries; give one for each of the {len(episodes)} episodes")
    if episodes.values.shape[1] != preset.n_steps:
        raise ValueError(
            f"episodes have {episodes.values.shape[1]} steps and the preset has {preset.n_steps}; give both the same "
            "horizon"
        )
    if len(episodes) < 2:
        raise ValueError(f"there is {len(episodes)} episode; at least 2 are needed, to learn from and to judge by")


def _check_range_and_unit(preset: Preset, episodes: Episodes) -> None:
    """An error for the first amount outside the range of the preset, or for a unit that is too coarse."""
    low, high = preset.amount_range
    series = episodes.series
    where = f"{series.source}, column {series.name!r}"
    outside = np.argwhere((episodes.values < low - preset.unit / 2) | (episodes.values > high + preset.unit / 2))
    if len(outside):
        k, h = outside[0]
        raise UserError(
            f"{where}: {preset.amount_name} {episodes.values[k, h]:g} ({episodes.place(k, h)}) is outside "
            f"{low:g}..{high:g}; declare a wider range ({', '.join(preset.range_parameters)})"
        )
    usual = episodes.values[~episodes.outliers]
    if np.ptp(usual) > 0 and not np.ptp(preset.to_units(usual)):
        raise UserError(
            f"{where}: a unit of {preset.unit:g} rounds every {preset.amount_name} to "
            f"{float(preset.to_units(usual).flat[0] * preset.unit):g}; choose a smaller one"
        )
    effect = rounding_effect(episodes.values, preset.unit)
    if effect.too_large:
        raise UserError(
            f"{where}: a unit of {preset.unit:g} is too coarse for the {preset.amount_name}: {effect}. Choose a "
            "smaller one; a unit is what everything is counted in, not the size of a pack"
        )


def _first_state(preset: Preset, start: float | None) -> int:
    """The first state, in multiples of the unit."""
    states = preset.system.states
    begin = preset.system.nearest_to_zero if start is None else int(preset.to_units(start))
    if begin not in states:
        low, high = states[0] * preset.unit, states[-1] * preset.unit
        raise UserError(f"start is {start}; give a state, from {low:g} to {high:g}")
    return begin

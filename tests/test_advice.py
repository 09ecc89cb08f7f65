"""What a series suggests, and what the page must say first."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commands
import ucbf
from ucbf import advice, data
from ucbf.advice import find_caveats, nice_ceiling, rounding_effect, suggested_parameters
from ucbf.advice.caveats import _unequal_spread, few_episodes
from ucbf.advice.drift import FEWEST_FOR_TREND, _levels, change, trend
from ucbf.advice.judging import FEWEST_EPISODES, half_interval
from ucbf.advice.page import summary
from ucbf.advice.recency import _log_probability, chosen_recency, given_recency
from ucbf.advice.resampling import resampled_distribution
from ucbf.advice.sections import data_lines, judgement_on, parameter_lines
from ucbf.advice.service import service_in, service_of
from ucbf.advice.training import Training, empirical_shares
from ucbf.data.outliers import outliers, outliers_of_each
from ucbf.laws.recent import best_half_life
from ucbf.systems import Inventory, Queue, Reservoir
from ucbf.wording import show_number


def weeks(values, horizon=7):
    return data.episodes(data.Series(np.asarray(values, float).ravel(), None, "units", "memory"), horizon)


def poisson(mean=8, K=60, seed=0):
    return np.random.default_rng(seed).poisson(mean, (K, 7)).astype(float)


# -- outliers ---------------------------------------------------------------------------------------------


def test_an_outlier_is_three_times_as_far_as_all_others():
    amounts = np.tile([4.0, 6.0], (10, 4))
    amounts[3, 2] = 4 + 3 * 1.0  # the middle of its step is 4, all others are there: any distance is far
    assert np.argwhere(outliers(amounts)).tolist() == [[3, 2]]
    spread = np.arange(20.0).reshape(20, 1)
    assert not outliers(spread).any()
    # With the fifth of them above all others the middle is 10.5, and the next furthest, 0, is 10.5 from it.
    spread[4] = 10.5 + 3 * 10.5 - 0.1
    assert not outliers(spread).any()
    spread[4] = 10.5 + 3 * 10.5 + 0.1
    assert np.argwhere(outliers(spread)).tolist() == [[4, 0]]


def test_two_cells_above_one_gap_are_both_outliers():
    amounts = poisson(K=100)
    amounts[3, 1], amounts[50, 6] = 900, 450
    assert np.argwhere(outliers(amounts)).tolist() == [[3, 1], [50, 6]]
    below = poisson(500, K=100)
    below[9, 0] = -8000
    assert np.argwhere(outliers(below)).tolist() == [[9, 0]]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.5, 3, 8, 200]))
def test_counts_have_hardly_ever_an_outlier(seed, mean):
    rng = np.random.default_rng(seed)
    found = outliers(rng.poisson(mean, (60, 7)).astype(float))
    assert found.sum() <= 4
    if mean >= 3:
        assert not found.any()


def test_few_numbers_have_no_outliers():
    assert not outliers(np.array([1.0, 1, 1, 900])).any()


def test_amounts_in_a_row_are_those_of_one_step():
    assert np.flatnonzero(outliers(np.r_[np.arange(20.0), 99999])).tolist() == [20]


def test_the_outliers_of_many_items_are_those_of_each():
    rng = np.random.default_rng(3)
    tables = rng.poisson(rng.choice([0.1, 4, 30], (40, 7, 1)), (40, 7, 30)).astype(float)
    tables[rng.random(tables.shape) < 0.002] *= 50
    tables[7:9, :, 10:], tables[11, :, 1:] = np.nan, np.nan  # shorter ones
    found = outliers_of_each(tables)
    assert found.any(axis=(1, 2)).sum() > 5
    for table, odd in zip(tables, found, strict=True):
        days = np.isfinite(table[0])
        np.testing.assert_array_equal(odd[:, days], outliers(table[:, days].T).T)
        assert not odd[:, ~days].any()


# -- units ------------------------------------------------------------------------------------------------


def test_rounding_by_hand():
    # 1, 5, 1, 5 become 0, 4, 0, 4 in multiples of 4: the mean falls from 3 to 2, the spread stays 2.
    done = rounding_effect(np.array([1.0, 5, 1, 5]), 4)
    assert done.mean == (3, 2)
    assert done.spread == (2, 2)
    assert not done.negligible
    assert done.too_large
    # By steps: the first is always 3, which becomes 4; the second 8 or 12, which stay.
    done = rounding_effect(np.array([[3.0, 8], [3, 12], [3, 8], [3, 12]]), 4)
    assert done.mean == (6.5, 7)
    assert done.spread == pytest.approx((np.sqrt(2), np.sqrt(2)))
    assert done.step == pytest.approx(1 / 3)
    assert str(done) == "multiples of 4 turn a mean of 6.5 into 7 and a spread of 1.41 into 1.41"


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 2, 8, 50, 700, 1e5]), st.booleans(), st.floats(5, 1e6))
def test_a_unit_that_is_chosen_hides_nothing(seed, mean, broken, outlier):
    rng = np.random.default_rng(seed)
    amounts = rng.poisson(mean, (60, 7)) * 1.0 + (rng.random((60, 7)) if broken else 0)
    if not amounts.any():
        return
    odd = amounts.copy()
    odd[7, 3] = np.rint(outlier * max(mean, 1))
    for table in (amounts, odd):
        unit = suggested_parameters(Inventory, table, {"max_demand": 1e9})["unit"]
        rounded = np.rint(amounts / unit) * unit
        assert abs(rounded.mean() / amounts.mean() - 1) < 0.03
        assert abs(rounded.std() / amounts.std() - 1) < 0.06


def test_sizes_fit_the_bulk_and_the_range_takes_in_all():
    amounts = poisson()
    amounts[5, 2] = 900
    usual = suggested_parameters(Inventory, np.delete(amounts, 5, axis=0), {})
    found = suggested_parameters(Inventory, amounts, {})
    assert found["unit"] == 1
    assert found["capacity"] == usual["capacity"]
    assert found["max_demand"] == 900
    amounts[5, 2] = 1e9
    with pytest.raises(ucbf.data.UserError, match=r"one demand is 1e\+09, the largest of the others 18"):
        suggested_parameters(Inventory, amounts, {})
    assert suggested_parameters(Inventory, amounts, {"max_demand": 50})["max_demand"] == 50
    amounts[5, 2] = 99_999  # no table is made for it
    with pytest.raises(ucbf.data.UserError, match=r"one demand is 99999 at row 37, the largest of the others 18"):
        suggested_parameters(Inventory, amounts, {}, place=lambda i: f"row {i}")


def test_a_hundred_is_counted_in_ones():
    amounts = poisson(70).clip(0, 100)
    amounts[3, 3] = 100
    assert suggested_parameters(Queue, amounts, {})["unit"] == 1
    amounts[3, 3] = 101
    assert suggested_parameters(Queue, amounts, {})["unit"] == 5
    assert suggested_parameters(Queue, amounts / 10, {})["unit"] == 0.5  # measured, not counted


def test_a_unit_that_nobody_gave_suits_the_sizes_that_were_given():
    amounts = poisson(140)  # by itself the unit would be 5
    assert suggested_parameters(Queue, amounts, {})["unit"] == 5
    assert suggested_parameters(Queue, amounts, {"service": (0.0, 5, 10)})["unit"] == 5
    assert suggested_parameters(Queue, amounts, {"service": (0.0, 6, 10)})["unit"] == 2
    assert suggested_parameters(Queue, amounts, {"service": (0.0, 5, 11)})["unit"] == 1


def test_a_store_of_slow_items_has_room_for_two_of_the_smallest_order():
    slow = np.array([[0, 1, 0, 2, 0, 0, 1.0]] * 3)
    assert suggested_parameters(Inventory, slow, {})["capacity"] == 4  # twice the largest demand
    for orders, room in (
        ({"pack": 24}, 2 + 48),  # the largest demand, and two orders
        ({"min_order": 30}, 2 + 60),
        ({"pack": 24, "min_order": 30}, 2 + 96),
        ({"pack": 1}, 4),
    ):
        found = suggested_parameters(Inventory, slow, orders)
        assert found["capacity"] == room
        assert Inventory(**found).action_quantities[-1] > 0
    with pytest.raises(ValueError, match="no order is possible: the smallest is 24"):
        Inventory(**suggested_parameters(Inventory, slow, {"pack": 24, "capacity": 20}))


def test_a_unit_divides_packs_that_are_no_multiple_of_a_round_one():
    many = np.random.default_rng(0).poisson(20_000, (4, 7)).astype(float)  # a unit of 20 to 1000 is quick enough
    found = suggested_parameters(Inventory, many, {"pack": 48})
    assert found["unit"] == 48
    assert Inventory(**found).pack == 48
    assert suggested_parameters(Inventory, many, {"pack": 48, "min_order": 120})["unit"] == 24
    assert suggested_parameters(Inventory, many, {"pack": 7})["unit"] == 20  # and 7 is refused by the store


def test_a_unit_that_is_too_fine_is_named():
    with pytest.raises(
        ucbf.data.UserError, match="unit is 1e-09, and one demand is 9, more than 100000 times as much; take a"
    ):
        suggested_parameters(Inventory, np.arange(10.0).reshape(2, 5), {"unit": 1e-9})

    flows = np.random.default_rng(0).gamma(9.0, 1.0, (40, 12))
    assert suggested_parameters(Reservoir, flows, {"capacity": 40.3})["unit"] == pytest.approx(0.1)


def test_nice_numbers():
    assert [nice_ceiling(x) for x in (0.03, 1, 1.1, 6, 20.1)] == [0.05, 1, 2, 10, 50]


def test_a_unit_that_changes_the_demand_too_much_is_refused():
    for unit, fine in ((1, True), (2, True), (6, False)):
        shop = Inventory(unit=unit, capacity=36, max_demand=24)
        if fine:
            ucbf.learn(shop, weeks(poisson()))
            continue
        with pytest.raises(
            ucbf.data.UserError, match="a unit of 6 is too coarse for the demand: .* not the size of a pack"
        ):
            ucbf.learn(shop, weeks(poisson()))


def test_one_mistyped_cell_changes_the_policy_by_nothing(tmp_path):
    demand, pages, policies = poisson(8, 156).ravel(), {}, {}
    for name, cell in {"clean": None, "o900": 900, "o450": 450}.items():
        values = demand.copy()
        if cell is not None:
            values[500] = cell
        days = np.datetime64("2022-01-03") + np.arange(len(values))
        lines = "\n".join(f"{day},{x:g}" for day, x in zip(days, values, strict=True))
        (tmp_path / f"{name}.csv").write_text(f"date,demand\n{lines}\n")
        prices = ["--price", 9, "--unit-cost", 4]
        commands.ucbf("learn", "inventory", "--demand", f"{name}.csv", *prices, "--out", name, cwd=tmp_path)
        pages[name] = (tmp_path / name / "summary.md").read_text()
        policies[name] = (tmp_path / name / "policy.csv").read_text()
    assert policies["o900"] == policies["o450"] == policies["clean"]
    assert "Far from all others: demand 900 in row 502 (2023-05-18); the others go from 1 to 18" in pages["o900"]
    assert pages["o900"].index("Far from") < pages["o900"].index("What to do")
    assert "Far from" not in pages["clean"]


# -- intervals --------------------------------------------------------------------------------------------


def test_an_interval_by_students_t():
    # Of 1, 2, 3: the mean has a standard error of 1/sqrt(3), and 97.5 % of Student's t with 2 degrees are below 4.3027.
    assert half_interval(np.array([1.0, 2, 3])) == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)
    # Against the mean of 6 others that are spread alike: sqrt(1/3 + 1/6) = sqrt(1/2).
    assert half_interval(np.array([1.0, 2, 3]), others=6) == pytest.approx(4.3027 * np.sqrt(0.5), rel=1e-4)
    assert half_interval(np.array([7.0])) == np.inf
    numbers = np.arange(31.0)  # 30 degrees: 2.0423
    assert half_interval(numbers) == pytest.approx(2.0423 * numbers.std(ddof=1) / np.sqrt(31), rel=1e-4)


# -- what is said first -----------------------------------------------------------------------------------


def test_nothing_is_said_against_a_series_that_is_as_assumed():
    for seed in range(4):
        assert find_caveats(ucbf.learn(Inventory(capacity=40, max_demand=30), weeks(poisson(seed=seed)))) == []


def test_a_rule_that_did_better_is_the_headline():
    # Demand falls to a fifth just where judging begins: the plan for the mean orders less, and loses less.
    fallen = np.concatenate([poisson(20, 42), poisson(4, 18, seed=1)])
    found = ucbf.learn(Inventory(capacity=60, max_demand=50, price=9, unit_cost=4, holding=2), weeks(fallen))
    said = find_caveats(found)
    row = next(row for row in found.comparison() if row["policy"] == "certainty-equivalent")
    assert row["high"] < 0
    assert said[0].startswith("A simple rule did better: in the 18 episodes that followed, certainty-equivalent got ")
    assert f"{row['reward']:.3g} an episode" in said[0]
    assert said[1].startswith("The policy earned ")
    assert "Why: the demand changed" in said[1]
    assert said[2].startswith("The demand was 81% lower in the episodes that followed")
    page = advice.summary(found)
    assert page.index("## Read this first") < page.index("A simple rule") < page.index("## What to do")


def test_what_is_expected_and_what_came_must_agree():
    found = ucbf.learn(Inventory(capacity=60, max_demand=50), weeks(np.concatenate([poisson(6, 42), poisson(9, 18)])))
    came = found.rewards["learned"]
    assert abs(came.mean() - found.value_judged) > half_interval(came, others=42)
    assert found.value_judged < found.value  # the advice has learned from both
    assert any(text.startswith("The policy earned") for text in find_caveats(found))


def test_a_trend_is_named():
    rising = np.random.default_rng(0).poisson(np.linspace(4, 12, 60)[:, None], (60, 7))
    found = ucbf.learn(Inventory(capacity=60, max_demand=50), weeks(rising))
    assert any("The demand rises in the episodes that were learned from" in text for text in find_caveats(found))
    # Ten episodes of 1 and 3, 2 and 4, ..., 10 and 12: they rise by 9, of a mean of 6.5.
    line = trend(weeks([[k + 1.0, k + 3] for k in range(10)], 2))
    assert line.share == pytest.approx(9 / 6.5)
    assert line.significant
    assert not trend(weeks(poisson())).significant


def test_a_change_by_hand():
    before, after = weeks([[1.0, 5], [3, 7], [2, 6]], 2), weeks([[4.0, 8], [2, 6], [6, 10], [4, 8]], 2)
    # Steps average 2 and 6 before; episodes are then -1, 1, 0 and 2, 0, 4, 2 off. Welch: 2 / sqrt(1/3 + (8/3)/4) = 2,
    # with (1/3 + 2/3)² / ((1/3)²/2 + (2/3)²/3) = 4.91 degrees of freedom: p = 0.103.
    found = change(before, after)
    assert found.share == pytest.approx(2 / 4)
    assert found.p == pytest.approx(0.103, abs=0.001)
    assert not found.significant


def test_dependence_and_rounding_are_said_first_too():
    rng = np.random.default_rng(0)
    level = 10 + 6 * np.sin(np.arange(420) / 11)
    found = ucbf.learn(Inventory(capacity=60, max_demand=50, unit=5), weeks(rng.poisson(level)))
    text = "\n".join(find_caveats(found))
    assert "What is assumed does not hold: the steps are NOT independent" in text
    assert "The demand was rounded: multiples of 5 turn a mean of" in text


# -- changes that are known beforehand ---------------------------------------------------------------------


def alternating(K=60):
    rng = np.random.default_rng(0)
    profile = np.where(np.arange(K) % 2, 10, 2)[:, None] * np.ones(7)
    return profile, (profile + rng.integers(-2, 3, (K, 7))).clip(0)


def test_weeks_to_come_are_like_those_of_the_past_not_like_the_last():
    profile, demand = alternating()
    changes = [{"profile": list(p)} for p in profile]
    found = ucbf.learn(
        Inventory(capacity=60, max_demand=20, order_cost=10), weeks(demand), changes=changes, ongoing=True
    )
    assert found.value == pytest.approx(found.rewards["learned"].mean(), rel=0.05)
    again = found.policy_for(profile=list(profile[-1]))
    np.testing.assert_array_equal(again.actions, found.policy.actions)
    quiet = found.policy_for(profile=list(profile[-2]))
    np.testing.assert_array_equal(quiet.actions, found.planner.episode(len(profile) - 2).policy.actions)
    assert (quiet.actions != again.actions).any()


def test_a_law_moves_with_the_profile_of_the_day_that_is_asked_for():
    # Around 10 the demand is 8 to 12, around 2 it is 0 to 4, and what would be below 0 is 0: of a day with 1, also 0 to
    # 3.
    profile, demand = alternating()
    found = ucbf.learn(
        Inventory(capacity=60, max_demand=20), weeks(demand), changes=[{"profile": list(p)} for p in profile]
    )
    day = found.planner.advice_for(found.preset.replace(profile=[1.0] * 7), "")
    law = day.amount_distribution
    occurs = law.values[law.pmf[0] > 0]
    assert (occurs.min(), occurs.max()) == (0, 3)
    np.testing.assert_array_equal(found.policy_for(profile=[1.0] * 7).actions, day.policy.actions)


# -- the page and the work ------------------------------------------------------------------------------------


def test_eight_episodes_are_no_first_guess():
    assert few_episodes(range(FEWEST_EPISODES)) == ""
    said = few_episodes(range(FEWEST_EPISODES - 1))
    assert said == f"Learned from {FEWEST_EPISODES - 1} episodes: take it as a first guess."


def test_what_is_proved_is_said_of_the_state_it_starts_in():
    preset = Inventory(capacity=12, backlog=6, max_demand=6, order_cost=1, horizon=7)
    found = ucbf.learn(preset, weeks(poisson(2, K=30).clip(0, 6)), start=3)
    gap = found.certificate.gap
    assert preset.system.state_offset < 0
    assert gap[3 - preset.system.state_offset] != gap[3 + preset.system.state_offset]
    proved = f"no policy gets more than {show_number(float(gap[3 - preset.system.state_offset]))} an episode above it"
    bound = float(gap[3 - preset.system.state_offset])
    good = replace(found, value=bound + 1.0)
    assert proved in " ".join(summary(good).split())
    # A bound above what is expected itself says nothing.
    poor = replace(found, value=bound - 0.1)
    said = "Proved: nothing worth reading: 30 episodes are too few for a bound below what is expected itself."
    assert said in " ".join(summary(poor).split())


def test_progress_ends_when_the_work_does():
    told = []
    shop = Inventory(capacity=20, max_demand=9)
    ucbf.learn(shop, weeks(poisson(3, K=30).clip(0, 9)), progress=lambda *n: told.append(n))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert {total for _, total in told} == {len(told)}


@pytest.mark.parametrize(
    ("pooled", "K", "uneven"), [(True, 30, True), (False, 30, False), (True, FEWEST_EPISODES - 1, False)]
)
def test_an_uneven_spread_is_said_where_one_law_serves_all_steps(pooled, K, uneven):
    rng = np.random.default_rng(0)
    amounts = np.stack([rng.integers(0, high, K) for high in (2, 2, 20)], axis=1)
    episodes = weeks(amounts, 3)
    advice = SimpleNamespace(
        pooled=pooled,
        learned=episodes,
        learned_errors=episodes,
        last=SimpleNamespace(kind=episodes.kinds[-1]),
        preset=SimpleNamespace(unit=1),
    )
    assert ("NOT the same" in _unequal_spread(advice)) == uneven


def test_a_trend_needs_eight_episodes_and_something_that_moves():
    def rising(K):
        return weeks(np.arange(K)[:, None] + np.tile([0, 1, 0], (K, 1)), 3)

    assert trend(rising(FEWEST_FOR_TREND)).p < 1e-6
    assert trend(rising(FEWEST_FOR_TREND - 1)).p == 1
    assert trend(weeks(np.ones((20, 3)), 3)).p == 1


def rows_of(*rules):
    """A comparison: the learned policy, and rules with the ends of their intervals."""
    rows = [{"policy": "learned", "reward": 5.0}]
    return [*rows, *({"policy": n, "reward": 4.0, "ahead": 1.0, "low": low, "high": high} for n, low, high in rules)]


def test_who_is_better_is_said_of_eight_episodes_and_more():
    rules = rows_of(("ahead", -3, -1), ("touching", 0, 2), ("even", -2, 0), ("behind", 1, 2))

    def judged(n):
        return SimpleNamespace(comparison=lambda: rules, training=range(20), test=range(n), learned=range(20 + n))

    said = judgement_on(judged(FEWEST_EPISODES)).sentence
    assert "Better than the learned policy: ahead; not to be told apart from it: touching, even; worse: behind." in said
    assert said.endswith(
        "Judged on 8 episodes, with what the 20 before them taught; then learned again from all 28 episodes."
    )
    few = judgement_on(judged(FEWEST_EPISODES - 1)).sentence
    assert f"So few episodes ({FEWEST_EPISODES - 1}) do not settle who is better." in few


def test_what_was_rounded_is_counted_on_the_page():
    episodes = weeks([[2, 4, 5], [6, 7, 8]], 3)
    first, rest = episodes.split(0.5)
    found = SimpleNamespace(preset=SimpleNamespace(unit=2, kind="shop", n_steps=3), training=first, test=rest)
    found.learned = episodes
    found.rounded = ucbf.Advice.rounded.fget(found)
    assert found.rounded == 2
    assert "2 values rounded to multiples of 2." in data_lines(found, None)
    assert "multiples of 2, which was chosen to be quick: a smaller one" in str(data_lines(found, {"price"}))
    found.preset.unit = 1
    found.rounded = ucbf.Advice.rounded.fget(found)
    assert "rounded" not in str(data_lines(found, None))


def test_parameters_are_told_from_what_is_assumed():
    shop = Inventory(capacity=20, max_demand=9)
    (said,) = parameter_lines(SimpleNamespace(preset=shop), None)
    assert "assumed" not in str(said)
    said, assumed = map(str, parameter_lines(SimpleNamespace(preset=shop), {"capacity"}))
    assert said == "With capacity 20."
    assert assumed.startswith("All that was not given: ")


def test_means_of_the_steps_are_taken_unless_they_were_given():
    episodes = weeks(poisson(3, K=30).clip(0, 9))
    shop, profile = Inventory(capacity=20, max_demand=9), (3.0,) * 7
    changes = [{"profile": list(profile)}] * 30
    assert Training(shop, episodes, 0.7, True, None).profiles
    assert not Training(shop, episodes, 0.7, False, None).profiles
    assert not Training(shop.replace(profile=profile), episodes, 0.7, True, None).profiles
    assert not Training(shop, episodes, 0.7, True, changes).profiles
    assert Training(shop, episodes, 0.7, True, [{"price": 9.0}] * 30).profiles


def test_a_spread_below_the_unit_is_no_spread():
    # Steps with a spread of 0.1 and of 0.4 where all is counted in units of 1: no more than counting makes of them.
    amounts = np.array([[5 + 0.1 * (-1) ** k, 5 + 0.4 * (-1) ** k] for k in range(20)])
    episodes = weeks(amounts, 2)
    advice = SimpleNamespace(
        pooled=True,
        learned=episodes,
        learned_errors=episodes,
        last=SimpleNamespace(kind=episodes.kinds[-1]),
        preset=SimpleNamespace(unit=1),
    )
    assert _unequal_spread(advice) == ""
    advice.preset.unit = 0.1
    assert "NOT the same" in _unequal_spread(advice)


def test_all_that_happened_may_be_learned_from():
    shop = Inventory(capacity=20, max_demand=9)
    found = ucbf.learn(shop, weeks(poisson(3, K=4).clip(0, 9)), train=1.0)
    assert found.comparison() == []
    assert "Nothing: all episodes were learned from." in summary(found)


def test_a_resampled_history_has_means_of_its_own():
    # Weeks of 2 a day and of 8 a day in turn. Around the means of the quiet weeks alone nothing is left: W is 0.
    episodes = weeks(np.tile([[2.0], [8.0]], (10, 7)))
    training = Training(Inventory(capacity=20, max_demand=9), episodes, 1.0, True, None)
    drawn = np.repeat(np.arange(0, 20, 2), 2)
    law = resampled_distribution(training, episodes.kinds[0], drawn, training.profiles_of(drawn))
    assert law.pmf[0, -law.low] == 1


@pytest.mark.parametrize("pooled", [False, True])
def test_shares_are_what_an_agent_believes_that_counted_the_same(pooled):
    shop = Inventory(capacity=20, max_demand=15)
    w = shop.disturbances(poisson(6).clip(0, 15))
    agent = ucbf.UCBVIf(shop.system, stationary=pooled, prior_weight=0)
    agent.warm_start(w)
    found = empirical_shares(w, shop.system, pooled, np.ones(len(w)))
    assert found.low == agent.law.low
    np.testing.assert_array_equal(found.pmf, agent.law.pmf)


@pytest.mark.parametrize("pooled", [False, True])
def test_resampling_builds_no_agents_and_no_systems(pooled, monkeypatch):
    built = []
    for kind in (ucbf.UCBVIf, ucbf.System):

        def init(self, *given, kind=kind, build=kind.__init__, **named):
            built.append(kind)
            build(self, *given, **named)

        monkeypatch.setattr(kind, "__init__", init)
    ucbf.learn(Inventory(capacity=20, max_demand=15), weeks(poisson(6)), pooled=pooled, ongoing=False)
    # One agent certifies, one goes on learning in the test episodes, one is for the user. Around means there are two
    # systems: those of the training episodes are judged, those of all are advised.
    assert (built.count(ucbf.UCBVIf), built.count(ucbf.System)) == (3, 1 + pooled)


# -- how much of the past counts -----------------------------------------------------------------------------------


def weeks_of(levels, spread=1, seed=0):
    """A week a level, of seven days around it."""
    rng = np.random.default_rng(seed)
    days = np.repeat(levels, 7) + rng.integers(-spread, spread + 1, 7 * len(levels))
    return weeks(np.maximum(days, 0))


def test_weights_halve_by_hand():
    assert given_recency(2.0).weights(5).tolist() == [0.25, 0.5**1.5, 0.5, 0.5**0.5, 1.0]
    assert given_recency(np.inf).weights(3).tolist() == [1.0, 1.0, 1.0]


def test_means_and_shares_are_weighted_by_hand():
    episodes = weeks_of([2, 4, 8], spread=0)
    shop = Inventory(capacity=20, max_demand=15)
    training = Training(shop, episodes, 1.0, True, None, 1.0)
    # weights 1/4, 1/2, 1: (2/4 + 4/2 + 8) / (7/4) = 6
    assert training.profiles[""] == pytest.approx([6.0] * 7)
    law = training.distribution("")  # W = -(demand - 6): 4, 2, -2 with 1/7, 2/7, 4/7
    assert dict(zip(law.values[law.pmf[0] > 0].tolist(), law.pmf[0][law.pmf[0] > 0], strict=True)) == pytest.approx(
        {-2: 4 / 7, 2: 2 / 7, 4: 1 / 7}
    )


def test_a_level_that_fell_makes_the_past_count_less_and_a_steady_one_does_not():
    fell, steady = weeks_of([40] * 10 + [10] * 16), weeks_of([20] * 26, spread=6)
    assert chosen_recency(fell.values, fell.kinds, True).half_life <= 8
    assert chosen_recency(steady.values, steady.kinds, True).counts_alike
    assert chosen_recency(steady.values, steady.kinds, False).counts_alike
    assert chosen_recency(steady.values[:7], steady.kinds[:7], None).scores == {}
    shop = Inventory(capacity=60, max_demand=45)
    found, alike = (ucbf.learn(shop, fell, half_life=given) for given in (None, np.inf))
    assert found.rewards["learned"].mean() > 1.4 * alike.rewards["learned"].mean()
    assert found.certificate is None
    page = ucbf.advice.summary(found)
    assert "What is recent counts more: an episode half as much as one" in page
    assert "Proved: nothing" in page
    assert "All episodes count alike" in ucbf.advice.summary(ucbf.learn(shop, steady))
    assert alike.certificate is not None
    with pytest.raises(ValueError, match="half_life is -1"):
        ucbf.learn(shop, fell, half_life=-1)


def test_forgetting_has_to_be_worth_it_by_hand():
    lives = np.array([np.inf, 8.0, 4.0])
    # Few predictions: 3 nats are needed. 500: 0.02 for each, which is 10.
    for predictions, ahead, taken in ((50, 2.9, 0), (50, 3.1, 1), (500, 9.9, 0), (500, 10.1, 1)):
        assert best_half_life(lives, np.array([-100.0, -100 + ahead, -101]), predictions) == taken
    assert best_half_life(lives[1:], np.array([-5.0, -4.9]), 50) == 1  # where nothing is kept for ever
    scores = np.array([[-9.0, -5, -8], [-9, -9, -1]])
    assert best_half_life(lives, scores, [10, 10]).tolist() == [1, 2]


def test_what_was_judged_is_said_where_it_is_not_what_is_advised():
    found = ucbf.learn(Inventory(capacity=60, max_demand=45), weeks_of([40] * 10 + [10] * 16))
    assert "The policy that was judged had" not in ucbf.advice.summary(found)
    found.judged.training.recency = given_recency(np.inf)
    assert "The policy that was judged had all episodes count alike" in ucbf.advice.summary(found)
    found.judged.training.recency = given_recency(16.0)
    assert "The policy that was judged had a half-life of 16 episodes" in ucbf.advice.summary(found)


def test_the_service_of_what_was_judged_by_hand():
    # Two weeks of two days are learned from, two judge: 3, 1 and 5, 0 were asked for; it orders up to 4 every day.
    episodes = weeks([[2, 2], [2, 2], [3, 1], [5, 0]], 2)
    shop = Inventory(horizon=2, capacity=8, max_demand=6, unit=1)
    training = Training(shop, episodes, 0.5, False, None)
    policy = ucbf.Policy(shop.system, np.tile(np.maximum(4 - np.arange(9), 0), (2, 1)))
    run = ucbf.replay(policy, training.disturbances[2:], start=0)
    service = service_in(run, training)
    assert service.met == pytest.approx(8 / 9)  # 3 + 1 + 4 + 0 of 9
    assert service.without_stock_out == 3 / 4
    assert str(service) == "88.9% of the demand was met at once; in 75.0% of the steps all of it."
    assert service_of(np.zeros(3), np.zeros(3)).met == 1


def test_the_score_is_that_of_student_by_hand():
    # Three episodes of one step, 1, 2, 3, all alike: mean 2, variance 2/3, 2 degrees of freedom; 4 comes.
    from scipy.stats import t

    scale = np.sqrt(2 / 3 * (1 + 1 / 3))
    expected = t.logpdf(2 / scale, 2) - np.log(scale)
    score = _log_probability(np.array([[1.0], [2.0], [3.0]]), np.ones(3), np.array([4.0]), False)
    assert score == pytest.approx(expected)
    missing = _log_probability(np.array([[1.0], [2.0], [np.nan], [3.0]]), np.ones(4), np.array([np.nan]), False)
    assert missing == 0


def test_the_agent_to_go_on_with_forgets_too():
    found = ucbf.learn(Inventory(capacity=60, max_demand=45), weeks_of([40] * 10 + [10] * 16))
    assert found.agent.knowledge.name == "Recent"
    assert found.agent.knowledge.half_life == found.recency.half_life


def test_drift_and_trend_are_what_scipy_says_of_them():
    from scipy import stats

    rng = np.random.default_rng(5)
    episodes = data.episodes(data.read_series(rng.poisson(9 + np.arange(140) / 40).astype(float)), 7)
    before, after = episodes.split(0.6)
    welch = stats.ttest_ind(_levels(before, before), _levels(after, before), equal_var=False)
    line = stats.linregress(np.arange(len(episodes)), _levels(episodes, episodes))
    assert change(before, after).p == pytest.approx(welch.pvalue, rel=1e-9)
    assert trend(episodes).p == pytest.approx(line.pvalue, rel=1e-9)
    share = line.slope * (len(episodes) - 1) / episodes.values.mean()
    assert trend(episodes).share == pytest.approx(share, rel=1e-9)

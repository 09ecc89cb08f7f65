"""Every morning after ``ucbf learn``: take in what happened, say what to do, say how it goes."""

import json
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import commands
import ucbf
from ucbf import data, locks
from ucbf.errors import UserError
from ucbf.following import Happened, calendar, follow
from ucbf.following.calendar import Calendar
from ucbf.following.changes import change
from ucbf.systems import Inventory, Queue, Reservoir

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from attack.kills import Disk, calls_of, in_child, killed

SHOP = Inventory(
    horizon=7, capacity=20, max_demand=10, price=9, unit_cost=4, order_cost=5, holding=0.5, storage=0.25, penalty=2,
    salvage=3, discount=0.95,
)  # fmt: skip
NEXT = "2024-10-07"  # a Monday: the first day after the series


def daily(K=40, seed=0, mean=4, more=0):
    """Demand of K weeks from Monday 2024-01-01 on, and of a few days more."""
    n = 7 * K + more
    times = np.datetime64("2024-01-01") + np.arange(n)
    values = np.minimum(np.random.default_rng(seed).poisson(mean, n), 10).astype(float)
    return data.Series(values, times, "units", "sales.csv")


@pytest.fixture(autouse=True)
def later(monkeypatch):
    """The clock of this process, long after all dates here."""
    monkeypatch.setattr(calendar, "now", lambda: datetime(2030, 1, 1))


def learned(folder, preset=SHOP, series=None, **more):
    folder.mkdir(exist_ok=True)
    found = ucbf.learn(preset, data.episodes(daily() if series is None else series, preset.horizon), **more)
    found.save(folder)
    return found


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned") / "shop"
    return folder, learned(folder)


@pytest.fixture
def shop(original, tmp_path):
    """A folder of its own: no journal yet."""
    folder = tmp_path / "shop"
    folder.mkdir()
    for path in original[0].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def date(i):
    return f"{np.datetime64(NEXT) + i}"


def happened(n, seed=5, mean=4.0, left_out=()):
    """n days that follow each other: date, stock, order, demand, left; demand None where it is left out."""
    rng, stock, rows = np.random.default_rng(seed), 3, []
    for i in range(n):
        order = int(rng.integers(0, 20 - stock + 1))
        demand = int(min(rng.poisson(mean), 10))
        left = max(stock + order - demand, 0)
        rows.append((date(i), float(stock), float(order), None if i in left_out else float(demand), float(left)))
        stock = left
    return rows


def take_in(follower, rows, **more):
    return follower.observe_all(
        [Happened(stock, order, left, demand, date=day) for day, stock, order, demand, left in rows], **more
    )


def run(*arguments, cwd="."):
    return commands.ucbf(*arguments, cwd=cwd, check=False)


# -- days worked by hand --------------------------------------------------------------------------------------


def test_two_days_by_hand(original, shop):
    # Monday: 3 in stock, 5 ordered, 6 asked for, 2 left: 6 * 9 - 8 * 0.25 - (5 * 4 + 5) - 2 * 0.5          = 26
    # Tuesday: 2 in stock, 4 ordered, 9 asked for: 6 * 9 - 6 * 0.25 - (4 * 4 + 5) - 3 missing * 2           = 25.5
    follower = follow(shop)
    follower.observe(3, 5, 2, 6, date=date(0))
    follower.observe(2, 4, 0, 9, date=date(1))
    now = follow(shop).status()
    assert (now.steps, now.first, now.last, now.missing) == (2, "2024-10-07", "2024-10-08", 0)
    assert now.reward == pytest.approx((26 + 25.5) / 2)
    # What the plan expected: the value of the stock in the morning, less 0.95 times that of what was left.
    plan = original[1].plan
    expected = [plan.v[0, 3] - 0.95 * plan.v[1, 2], plan.v[1, 2] - 0.95 * plan.v[2, 0]]
    assert now.expected == pytest.approx(np.mean(expected))
    lost = [plan.q[0, 3, 5] - plan.v[0, 3], plan.q[1, 2, 4] - plan.v[1, 2]]
    assert now.unfollowed == pytest.approx(np.mean(lost))
    better = np.array([26, 25.5]) - expected
    reach = 12.7062 * better.std(ddof=1) / np.sqrt(2)  # Student's t with one degree of freedom
    assert now.low == pytest.approx(better.mean() - reach, rel=1e-4)
    assert now.high == pytest.approx(better.mean() + reach, rel=1e-4)
    # 6 of 6 and 6 of 9 were met; nothing was missing on Monday only
    assert now.service.met == pytest.approx(12 / 15)
    assert (now.service.without_stock_out, now.service.counted) == (1, True)
    assert now.level.mean == 7.5
    assert now.level.learned == pytest.approx(original[1].learned.values[:, :2].mean())
    assert now.expected_of_an_episode == original[1].value


def test_the_advice_is_what_the_learned_policy_does_and_says(original, shop):
    policy = original[1].policy
    for day, name in enumerate(("Mon", "Tue", "Wed")):
        for stock in (0, 3, 20):
            told = follow(shop).act(stock, date=date(day))
            assert told.action == policy.quantities[day, stock]
            assert told.why == f"{name}: {policy.rules()[day].text}"
            assert (told.date, told.step, told.place, told.kind) == (f"{date(day)} 00:00:00", day + 1, name, "")


@pytest.mark.parametrize("half_life", [np.inf, 8.0])
def test_the_page_and_the_first_morning_say_the_same_and_know_the_whole_series(tmp_path, half_life):
    series = daily(mean=2)
    series.values[7 * 28 :] += 4  # just where judging begins
    episodes = data.episodes(series, 7)
    found = learned(tmp_path / "shop", series=series, pooled=False, half_life=half_life)
    follower = follow(tmp_path / "shop")
    for stock in range(21):
        assert follower.act(stock).action == found.policy.quantities[0, stock]
    agent = follower.learned().controllers[""].policy
    np.testing.assert_array_equal(agent.actions, found.policy.actions)
    everything, before = (
        ucbf.learn(SHOP, each, train=1.0, pooled=False, half_life=half_life)
        for each in (episodes, episodes.part(0, 28))
    )
    np.testing.assert_array_equal(found.policy.actions, everything.policy.actions)
    assert (found.policy.actions != before.policy.actions).any()
    # What is judged has seen none of the episodes that it is judged by.
    w = SHOP.disturbances(episodes.values[28:])
    np.testing.assert_array_equal(found.rewards["learned"], ucbf.replay(before.policy, w).reward)
    page = ucbf.advice.summary(found)
    assert "Judged on 12 episodes, with what the 28 before them taught; then learned again from all 40" in page
    assert all(str(line) in page for line in str(found.policy).splitlines()[:1])


def test_how_often_the_advice_was_followed(shop):
    follower = follow(shop)
    first = follower.act(3).action
    follower.observe(3, first, 3 + first, 0, date=date(0))
    second = follow(shop).act(3 + first).action
    follower.observe(3 + first, second + 1, 2 + first, second + 2, date=date(1))
    now = follow(shop).status()
    assert (now.followed, now.advised) == (1, 2)
    assert now.unfollowed < 0
    records = follower.journal.read().records
    assert [record["advised"] for record in records] == [first, second]


def test_what_comes_of_not_following_is_told_from_chance(shop):
    rows = happened(60)  # orders at random, demand as it was learned
    take_in(follow(shop), rows)
    now = follow(shop).status()
    assert now.high < 0
    assert now.is_as_planned
    assert "that the advice was not followed explains it" in str(now)


def test_an_interval_covers_the_difference_as_often_as_it_says(original):
    """Where days are as they were learned, the plan is right, and the advice is followed, only chance is left."""
    from ucbf.following.accounts import account, read_step
    from ucbf.following.changes import half_interval

    follower = follow(original[0])
    knowledge = follower.learned()
    (controller,) = knowledge.controllers.values()
    plan, rng, covered = knowledge.plan(1, {}), np.random.default_rng(0), 0
    law = original[1].last.amount_distribution
    actions = plan.policy(0).quantities
    for _ in range(200):
        stock, better = 5, []
        for day in range(28):
            h = day % 7
            order = actions[h, stock]
            demand = float(rng.choice(law.values, p=law.pmf[h]))
            left = max(stock + order - demand, 0)
            reading = read_step(controller, h, Happened(stock, order, left, demand))
            better.append(account(plan, h, reading).better)
            stock = int(left)
        covered += abs(np.mean(better)) <= half_interval(np.array(better))
    assert 180 <= covered <= 199  # 95 % of 200 are 190, give or take 9


# -- what is known is what was learned, and the journal ------------------------------------------------------------


def test_replaying_the_journal_is_an_agent_that_saw_the_same_days_bit_for_bit(original, shop):
    rows = happened(40, left_out=(3, 8, 20))
    for row in rows[:10]:
        take_in(follow(shop), [row])  # a process each
    take_in(follow(shop), rows[10:])
    controller = ucbf.load(original[0] / "agent.npz")
    for i, (_, stock, order, demand, left) in enumerate(rows):
        controller.observe(i % 7, stock, order, left, amount=demand)
    follower = follow(shop)
    knowledge = follower.learned()
    follower.replay(knowledge, follower.entries().values())
    (mine,) = knowledge.controllers.values()
    for agent in (mine.agent, controller.agent):
        agent.renew()
    assert mine.agent.learner.visits.sum() == 40
    for name, array in controller.agent.state.items():
        np.testing.assert_array_equal(array, mine.agent.state[name], err_msg=name)
    for stock in range(21):
        assert follow(shop).act(stock, date=date(42)).action == controller.act(0, stock)


def test_the_order_in_which_days_are_taken_in_does_not_matter(shop, original, tmp_path):
    rows = happened(20)
    take_in(follow(shop), rows)
    other = tmp_path / "other"
    other.mkdir()
    for path in original[0].iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    for row in [*rows[10:], *rows[:10]]:
        take_in(follow(other), [row])
    one, two = (follow(folder).status().as_dict() for folder in (shop, other))
    for status in (one, two):  # what was advised depends on what was known then
        status.pop("followed")
    assert one == two
    assert follow(shop).act(5) == follow(other).act(5)
    known = []
    for folder in (shop, other):
        follower = follow(folder)
        knowledge = follower.learned()
        follower.replay(knowledge, follower.entries().values())
        (controller,) = knowledge.controllers.values()
        known.append(controller.agent.state)
    for name, array in known[0].items():
        np.testing.assert_array_equal(array, known[1][name], err_msg=name)


def test_what_was_advised_for_a_day_follows_from_the_days_before_it(original, shop):
    rows = happened(400, mean=9.0)
    take_in(follow(shop), rows[1:])
    take_in(follow(shop), [(rows[0][0], 0.0, 9.0, 4.0, 5.0)])  # late
    entries = follow(shop).entries()
    assert entries[1].advised == original[1].policy.quantities[0, 0]
    assert follow(shop).act(0, date=date(406)).action > entries[1].advised


def test_files_of_agents_are_never_changed(shop):
    before = {path.name: path.read_bytes() for path in shop.iterdir()}
    take_in(follow(shop), happened(10))
    follow(shop).act(5)
    follow(shop).status()
    after = {path.name: path.read_bytes() for path in shop.iterdir()}
    assert after.pop("journal.jsonl")
    assert after == before


def test_learning_goes_on(shop):
    """Two years of a demand of 9 where 4 was learned."""
    before = follow(shop).act(0, date=date(700)).action
    take_in(follow(shop), happened(700, mean=9.0))
    told = follow(shop).act(0)
    assert told.action > before
    assert any("the demand is higher than what was learned from" in text for text in told.warnings)


# -- the same again, corrections, gaps, what is refused ---------------------------------------------------------------


def test_the_same_again_changes_nothing(shop):
    (row,) = happened(1)
    assert take_in(follow(shop), [row]).new == ("2024-10-07 (Mon)",)
    before = (shop / "journal.jsonl").read_bytes()
    again = take_in(follow(shop), [row])
    assert (again.new, again.known) == ((), ("2024-10-07 (Mon)",))
    assert str(again) == "2024-10-07 (Mon): already there, the same"
    assert (shop / "journal.jsonl").read_bytes() == before
    twice = take_in(follow(shop), [*happened(2), *happened(2)])  # within a file too
    assert (twice.new, twice.known) == (("2024-10-08 (Tue)",), ("2024-10-07 (Mon)",))


def test_another_observation_of_a_day_is_refused_and_a_correction_wins(shop):
    follow(shop).observe(3, 5, 2, 6, date=date(0))
    with pytest.raises(
        UserError, match=r"2024-10-07 was taken in with stock 3, order 5, demand 6, next stock 2; if .*--correct"
    ):
        follow(shop).observe(3, 5, 3, 5, date=date(0))
    assert follow(shop).observe(3, 5, 3, 5, date=date(0), correct=True).corrected == ("2024-10-07 (Mon)",)
    now = follow(shop).status()
    # 5 * 9 - 8 * 0.25 - 25 - 3 * 0.5
    assert (now.steps, now.reward) == (1, pytest.approx(16.5))
    assert len((shop / "journal.jsonl").read_text().splitlines()) == 3  # nothing is removed
    assert follow(shop).observe(3, 5, 3, 5, date=date(0), correct=True).known == ("2024-10-07 (Mon)",)
    with pytest.raises(UserError, match="demand 5"):
        follow(shop).observe(3, 5, 2, 6, date=date(0))


def test_a_correction_of_a_day_that_is_not_there_is_refused(shop):
    follow(shop).observe(3, 5, 2, 6, date=date(0))
    with pytest.raises(
        UserError, match=r"2024-10-09 is not in the journal, so that there is nothing to correct; check"
    ):
        follow(shop).observe(3, 5, 2, 6, date=date(2), correct=True)
    assert len(follow(shop).entries()) == 1


def test_a_date_far_from_the_last_is_refused_unless_it_is_said_to_be_right(shop, monkeypatch):
    follow(shop).observe(3, 5, 2, 6, date=date(0))
    with pytest.raises(
        UserError,
        match=r"2024-10-23 is far from the last that is known, 2024-10-07: 15 days would be missing .*--unusual",
    ):
        follow(shop).observe(3, 5, 2, 6, date=date(16))
    assert follow(shop).observe(3, 5, 2, 6, date=date(15)).new == ("2024-10-22 (Tue)",)  # two weeks may be missing
    assert not follow(shop).act(3).warnings
    assert follow(shop).observe(3, 5, 2, 6, date=date(40), unusual=True).new == ("2024-11-16 (Sat)",)
    (warning,) = follow(shop).act(3).warnings
    assert warning == (
        "the last step in the journal, 2024-11-16, is far from the one before it, 2024-10-22: 24 days are missing. If "
        "its date is wrong, take it out (ucbf observe --remove --date 2024-11-16)"
    )
    # The same again, and what corrects it, is not asked twice.
    assert follow(shop).observe(3, 5, 2, 6, date=date(40)).known == ("2024-11-16 (Sat)",)
    assert follow(shop).observe(3, 5, 3, 5, date=date(40), correct=True).corrected == ("2024-11-16 (Sat)",)


def test_a_date_that_is_still_to_come_is_refused_where_the_series_is_of_the_past(shop, monkeypatch):
    monkeypatch.setattr(calendar, "now", lambda: datetime(2024, 10, 8, 9))
    assert follow(shop).observe(3, 5, 2, 6, date=date(2)).new == ("2024-10-09 (Wed)",)  # somewhere it is that late
    with pytest.raises(
        UserError, match=r"2024-10-10 is still to come, and what happened in it cannot be known; .*--un"
    ):
        follow(shop).observe(3, 5, 2, 6, date=date(3))
    assert follow(shop).observe(3, 5, 2, 6, date=date(3), unusual=True).new
    monkeypatch.setattr(calendar, "now", lambda: datetime(2024, 1, 1))  # the series itself is of the future: made up
    assert follow(shop).observe(3, 5, 2, 6, date=date(4)).new


def test_a_day_that_was_taken_in_by_mistake_is_taken_out(shop):
    rows = happened(3)
    take_in(follow(shop), rows)
    without = follow(shop).status()
    follow(shop).observe(3, 5, 2, 6, date=date(12))
    assert follow(shop).act(3).when == "2024-10-20 (Sun)"
    taken = follow(shop).remove(date(12))
    assert (taken.removed, str(taken)) == (("2024-10-19 (Sat)",), "2024-10-19 (Sat): taken out")
    assert follow(shop).act(3).when == "2024-10-10 (Thu)"
    assert follow(shop).status() == without
    assert len((shop / "journal.jsonl").read_text().splitlines()) == 6  # it only grows
    again = follow(shop).remove(date(12))
    assert (again.removed, again.notes) == ((), ("2024-10-19 (Sat): was taken out before",))
    with pytest.raises(
        UserError, match="2024-10-12 is not in the journal, .* to take out; the last step in it is 2024"
    ):
        follow(shop).remove(date(5))
    with pytest.raises(UserError, match="step 99999999 is .* days after 2024-10-09, the last that is known"):
        follow(shop).remove(step=99_999_999)
    assert follow(shop).observe(3, 5, 2, 6, date=date(12)).new == ("2024-10-19 (Sat)",)
    assert follow(shop).status().steps == 4
    follow(shop).remove(date(1))
    learned(shop, SHOP, daily(42))  # all days are in the series now, but for the one that was taken out
    assert follow(shop).status().in_series == 3


def test_a_kill_while_a_day_is_taken_out_leaves_it_there_or_not(shop):
    rows = happened(3)
    take_in(follow(shop), rows)
    content = (shop / "journal.jsonl").read_bytes()

    def remove():
        follow(shop).remove(date(1))

    calls = calls_of(remove)
    assert calls >= 4
    for chosen in range(1, calls + 1):
        (shop / "journal.jsonl").write_bytes(content)
        ended = in_child(remove, Disk(chosen, killed))
        assert ended in (0, 9)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(locks, "UNSIGNED", 0.0)
            there = list(follow(shop).entries())
            assert there == [1, 3] if ended == 0 else there in ([1, 2, 3], [1, 3])
            remove()
            assert list(follow(shop).entries()) == [1, 3]


def test_what_is_left_may_be_left_out_where_the_demand_says_it(shop, tmp_path):
    assert follow(shop).observe(3, 5, amount=6, date=date(0)).new  # 3 + 5 - 6
    assert follow(shop).observe(2, 4, amount=9, date=date(1)).new  # 6 in all, 9 asked for
    assert [entry.happened.next_state for entry in follow(shop).entries().values()] == [2.0, 0.0]
    assert follow(shop).observe(3, 5, 2, 6, date=date(0)).known
    with pytest.raises(ValueError, match="neither the demand nor the next stock is given; give one of them"):
        follow(shop).observe(3, 5, date=date(2))
    learned(tmp_path / "two", SHOP.replace(unit=2.0))
    follow(tmp_path / "two").observe(3, 8, amount=7.5, date=date(0))  # between multiples of the unit
    assert follow(tmp_path / "two").entries()[1].happened.next_state == 3.5
    with pytest.raises(ValueError, match="the next stock does not follow from what is given; give it"):
        follow(tmp_path / "two").observe(3, 8, amount=np.pi, date=date(1))
    dam = Reservoir(horizon=12, capacity=12, max_release=6, max_inflow=8)
    values = np.random.default_rng(0).integers(0, 6, 144).astype(float)
    learned(tmp_path / "dam", dam, data.Series(values, None, "inflow", "dam.csv"))
    for step, (storage, release, inflow, after) in enumerate([(5, 2, 3, 6), (10, 1, 8, 12), (3, 3, 0, 0)]):
        follow(tmp_path / "dam").observe(storage, release, amount=inflow, step=step + 1)
        assert follow(tmp_path / "dam").entries()[step + 1].happened.next_state == after


def test_a_gap_is_said_and_not_filled(shop):
    follow(shop).observe(3, 5, 2, 6, date=date(0))
    taken = follow(shop).observe(2, 4, 0, 9, date=date(2))
    assert taken.notes == ("before 2024-10-09 2024-10-08 is missing; nothing is assumed of it",)
    assert follow(shop).status().missing == 1
    later = follow(shop).observe(2, 4, 0, 9, date=date(9))
    assert later.notes == (
        "before 2024-10-16 6 days, 2024-10-10 to 2024-10-15, are missing; nothing is assumed of them",
    )
    follower = follow(shop)
    knowledge = follower.learned()
    follower.replay(knowledge, follower.entries().values())
    (controller,) = knowledge.controllers.values()
    assert controller.agent.learner.visits[:, 0].tolist() == [1, 0, 2, 0, 0, 0, 0]  # Mon, Wed, Wed
    told = follow(shop).act(3, date=date(11))
    assert told.warnings == ("2024-10-17 is not in the journal: take in what happened (ucbf observe)",)
    assert follow(shop).act(3, date=date(9)).warnings[-1].startswith("2024-10-16 is in the journal already")


def test_a_day_that_begins_with_another_stock_than_the_one_before_left_is_said(shop):
    follow(shop).observe(3, 5, 2, 6, date=date(0))
    taken = follow(shop).observe(4, 4, 0, 9, date=date(1))
    assert taken.notes == ("2024-10-08 begins with stock 4, and 2024-10-07 ended with 2; both count as given",)


def test_an_order_that_counts_as_the_nearest_is_said(shop):
    taken = follow(shop).observe(3, 5.4, 2, 6, date=date(0))
    assert taken.notes == ("2024-10-07: order 5.4 counts as 5, the nearest that was learned of",)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((300, 5, 2, 6, NEXT), r"state \(stock\) is 300; it must be 0 to 20: correct it, or learn with other sizes"),
        ((3, 50, 2, 6, NEXT), "order is 50; it must be 0 to 20"),
        ((3, 18, 2, 6, NEXT), "order is 18; at step 0 with stock 3 it must be 0 to 17"),
        ((3, 5, 2, 60, NEXT), r"demand is 60; it must be 0 to 10 \(max_demand\)"),
        ((3, 5, 7, 6, NEXT), "from stock 3 with order 5 and demand 6 comes 2, not 7; correct one of them"),
        ((3, 5, 12, None, NEXT), r"to 12 the demand would be -4, and it is 0 to 10 \(max_demand\); correct one"),
        ((20, 0, 0, None, NEXT), "to 0 the demand would be 20, and it is 0 to 10"),
        ((float("nan"), 5, 2, 6, NEXT), "stock is nan; give a finite number"),
        ((3, 5, 2, 6, "2024-10-06"), r"is in the series that was learned from, which ends 2024-10-06; .* 2024-10-07"),
        (
            (3, 5, 2, 6, "2042-10-08"),
            "is 6576 days after 2024-10-06, the last that is known; at most 731 may be missing",
        ),
        ((3, 5, 2, 6, "2024-10-08 12:00"), "is not a whole day after 2024-10-06, the end of the series"),
        (
            (3, 5, 2, 6, "08/10/2024"),
            r"may mean 2024-10-08 \(%d/%m/%Y\) or 2024-08-10 \(%m/%d/%Y\); write it as 2024-10-08, or say",
        ),
        ((3, 5, 2, 6, "Tuesday"), "is not a date that is understood; write it as 2024-03-05"),
        ((3, 5, 2, 6, None), "no date is given, and the series has dates"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(shop, given, message):
    stock, order, left, demand, day = given
    with pytest.raises(ValueError, match=message):
        follow(shop).observe(stock, order, left, demand, date=day)
    assert not (shop / "journal.jsonl").exists()
    assert not (shop / "journal.jsonl.lock").exists()


def test_amounts_are_not_tested_where_some_were_hidden(shop):
    take_in(follow(shop), [(day, 5.0, 0.0, 0.0, 5.0) for day in map(date, range(1, 30))])
    assert follow(shop).status().level.has_changed
    follow(shop).observe(3, 5, 0, date=date(0))
    now = follow(shop).status()
    assert np.isnan(now.level.p)
    assert "not tested, as an edge hid some" in str(now)


def test_a_demand_that_nobody_counted_is_at_least_what_was_there(shop):
    follower = follow(shop)
    follower.observe(3, 5, 0, date=date(0))
    now = follow(shop).status()
    assert now.hidden == 1
    assert not now.service.counted
    assert now.service.without_stock_out == 0
    assert "at most (not all demand was counted)" in str(now)
    # all 8 sold, nobody known to be missing: 8 * 9 - 8 * 0.25 - 25
    assert now.reward == pytest.approx(45)
    knowledge = follower.learned()
    follower.replay(knowledge, follower.entries().values())
    (controller,) = knowledge.controllers.values()
    plain = ucbf.load(shop / "agent.npz")
    plain.observe(0, 3, 5, 0)
    np.testing.assert_array_equal(plain.agent.law.pmf, controller.agent.law.pmf)


# -- several units, hours, kinds of days, months, no dates -------------------------------------------------------------


def test_units_that_are_counted_in_more_than_one(tmp_path):
    preset = SHOP.replace(unit=2)
    learned(tmp_path / "shop", preset)
    told = follow(tmp_path / "shop").act(5)
    assert "stock 5 counts as 4, a multiple of 2" in told.warnings
    assert told.action % 2 == 0
    follow(tmp_path / "shop").observe(5, 4, 6, 3, date=date(0))
    # 5 counts as 4 and 3 as 4 where it is learned from, but money is what it was: 3 * 9 - 9 * 0.25 - 21 - 6 * 0.5
    assert follow(tmp_path / "shop").status().reward == pytest.approx(0.75)


HOURS = Queue(horizon=24, capacity=30, max_arrivals=12)


def hourly(weeks=6, seed=0):
    """Arrivals of 2 an hour on weekdays, 6 at weekends, from Monday 2024-01-01 00:00 on."""
    n = 168 * weeks
    times = np.datetime64("2024-01-01T00", "h") + np.arange(n)
    mean = np.where((np.arange(n) // 24) % 7 >= 5, 6, 2)
    return data.Series(np.minimum(np.random.default_rng(seed).poisson(mean), 12).astype(float), times, "calls", "calls")


def test_money_is_counted_in_what_was_told_not_in_rounded_units(tmp_path):
    learned(tmp_path / "shop", SHOP.replace(unit=2.0))
    follower = follow(tmp_path / "shop")
    follower.observe(state=3, action=8, next_state=4, amount=7, date=date(0))
    # 7 sold at 9, 8 bought at 4, an order 5, 4 kept at 0.5, 11 stored at 0.25: 63 - 32 - 5 - 2 - 2.75
    assert follow(tmp_path / "shop").status().reward == pytest.approx(21.25)
    follower.observe(state=4, action=0, next_state=1.5, date=date(1))  # 2.5 sold, 1.5 kept: 22.5 - 0.75 - 1
    assert follow(tmp_path / "shop").status().reward == pytest.approx((21.25 + 20.75) / 2)
    follower.observe(state=1.5, action=0, next_state=0, amount=4, date=date(2))  # 13.5 - 0.375 - 2 * 2.5
    now = follow(tmp_path / "shop").status()
    assert now.reward == pytest.approx((21.25 + 20.75 + 8.125) / 3)
    # What was expected: between those of the states around it.
    plan = follow(tmp_path / "shop").learned().plan(1, {})
    at = [
        np.interp(x, np.arange(11) * 2.0, plan.v[h, 0]) for h, x in ((0, 3), (1, 4), (1, 4), (2, 1.5), (2, 1.5), (3, 0))
    ]
    better = [21.25 + 0.95 * at[1] - at[0], 20.75 + 0.95 * at[3] - at[2], 8.125 + 0.95 * at[5] - at[4]]
    assert now.reward - now.expected == pytest.approx(np.mean(better))


def test_weekdays_and_weekends_have_agents_of_their_own(tmp_path):
    folder = tmp_path / "calls"
    found = learned(folder, HOURS, hourly())
    assert sorted(path.name for path in folder.glob("agent*")) == ["agent-weekday.npz", "agent-weekend.npz"]
    # The series ends on Sunday 2024-02-11 at 23:00.
    follower = follow(folder)
    for when, kind, h in [("2024-02-12 00:00", "weekday", 0), ("2024-02-16 23:00", "weekday", 23),
                          ("2024-02-17 05:00", "weekend", 5), ("2024-02-18 23:00", "weekend", 23)]:  # fmt: skip
        told = follower.act(4, date=when)
        assert (told.kind, told.place) == (kind, f"{h:02d}:00")
        assert told.action == found.by_kind[kind].policy.quantities[h, 4]
    rate = float(HOURS.action_quantities[0])
    for when in ("2024-02-16 23:00", "2024-02-17 00:00"):  # from a weekday into the weekend
        follow(folder).observe(4, rate, max(4 - rate, 0) + 3, 3, date=when, unusual=True)
    follower = follow(folder)
    knowledge = follower.learned()
    follower.replay(knowledge, follower.entries().values())
    visits = {kind: controller.agent.learner.visits[:, 0] for kind, controller in knowledge.controllers.items()}
    assert np.flatnonzero(visits["weekday"]).tolist() == [23]
    assert np.flatnonzero(visits["weekend"]).tolist() == [0]
    with pytest.raises(UserError, match="not a whole hour after 2024-02-11 23:00"):
        follower.act(4, date="2024-02-12 00:30")
    now = follower.status()
    assert (now.first, now.last, now.missing, now.service) == ("2024-02-16 23:00", "2024-02-17", 119, None)


def test_a_kind_of_day_that_was_never_seen_is_refused(tmp_path):
    learned(tmp_path / "calls", HOURS, hourly().part(0, 120))
    assert follow(tmp_path / "calls").calendar.weekday_kinds is not None
    with pytest.raises(
        UserError, match="2024-01-06 is a weekend, of which the series has none; learn from a series that"
    ):
        follow(tmp_path / "calls").act(4)


def test_months_and_their_names(tmp_path):
    values = np.random.default_rng(0).integers(0, 6, 12 * 12).astype(float)
    times = (np.datetime64("2010-03", "M") + np.arange(len(values))).astype("datetime64[s]")
    series = data.Series(values, times, "inflow", "dam.csv")
    learned(tmp_path / "dam", Reservoir(horizon=12, capacity=12, max_release=6, max_inflow=8), series)
    follower = follow(tmp_path / "dam")
    told = follower.act(5)
    assert (told.when, told.place) == ("2022-03-01 (Mar)", "Mar")
    assert follower.act(5, date="2023-01").place == "Jan"
    assert follower.act(5, date="2023-12-17").step == 22


def test_a_series_that_ends_in_the_middle_of_a_week_goes_on_there(tmp_path):
    learned(tmp_path / "shop", SHOP, daily(20, more=3))  # until Wednesday 2024-05-22
    assert follow(tmp_path / "shop").act(3).when == "2024-05-23 (Thu)"


def test_without_dates_steps_are_counted(tmp_path):
    series = daily(20, more=3)
    learned(tmp_path / "shop", SHOP, data.Series(series.values, None, "units", "sales.csv"))
    follower = follow(tmp_path / "shop")
    assert (follower.act(3).when, follower.act(3).place) == ("step 1", "4")
    assert follower.observe(3, 5, 2, 6).new == ("step 1",)
    assert follower.observe(2, 4, 0, 9, step=2).new == ("step 2",)
    assert follower.observe(2, 4, 0, 9, step=2).known == ("step 2",)
    assert follow(tmp_path / "shop").act(3).place == "6"
    with pytest.raises(UserError, match="the series that was learned from has no dates; give --step"):
        follower.act(3, date=NEXT)
    learned(tmp_path / "shop", SHOP, data.Series(daily(21).values, None, "units", "sales.csv"))
    with pytest.raises(UserError, match="is of rows 143, and what was learned is of 147; move the journal away"):
        follow(tmp_path / "shop").act(3)


def test_dates_of_other_zones_and_with_hours():
    here = Calendar(7, 0, "2024-03-04 06:00:00", "day", 86_400, "Europe/Berlin")
    assert here.number_of("2024-03-05") == here.number_of("2024-03-05T05:00Z") == 1
    assert here.number_of("05.03.2024") == 1
    assert here.when(1) == "2024-03-05 06:00"
    hours = Calendar(24, 0, "2024-03-30 23:00:00", "hour", 3600, "Europe/Berlin")
    assert hours.number_of("2024-03-31T00:30+00:30") == 2  # 01:00 in Berlin
    assert hours.number_of("2024-03-31 03:00") == 4  # every day has 24 hours, as in the series
    years = Calendar(10, 3, "2020-01-01 00:00:00", "year")
    assert [years.number_of(text) for text in ("2021", "2023-05-01")] == [1, 3]
    assert years.place_of(8) == 0


# -- learning again -------------------------------------------------------------------------------------------------


def test_learning_again_keeps_the_journal_and_counts_no_day_twice(shop):
    rows = happened(10)
    take_in(follow(shop), rows)
    learned(shop, SHOP, daily(41))  # one week more: 7 of the 10 days are in the series now
    follower = follow(shop)
    now = follower.status()
    assert (now.steps, now.in_series, now.first) == (3, 7, "2024-10-14")
    assert list(follower.entries()) == [1, 2, 3]
    with pytest.raises(UserError, match="is in the series that was learned from, which ends 2024-10-13"):
        take_in(follower, rows[:1])


def test_a_journal_that_does_not_fit_what_is_learned_now_is_named(shop):
    take_in(follow(shop), [(date(0), 18.0, 0.0, 4.0, 14.0)])
    learned(shop, SHOP.replace(capacity=15))
    for use in (lambda: follow(shop).act(3), lambda: follow(shop).status()):
        with pytest.raises(UserError, match=r"2024-10-07: state \(stock\) is 18; it must be 0 to 15. It was taken in"):
            use()


def test_agents_that_are_not_those_of_the_model_are_refused(shop):
    agent = shop / "agent.npz"
    content = agent.read_bytes()
    agent.write_bytes(content[:-1])
    with pytest.raises(UserError, match="agent.npz is not what was learned.*learn again into this folder"):
        follow(shop)
    agent.unlink()
    with pytest.raises(UserError, match="agent.npz is missing; learn again"):
        follow(shop)


def test_a_damaged_model_is_refused(shop):
    path = shop / "model.json"
    content = path.read_text()
    for damaged in (content.replace('"next_step": 0', '"next_step": 3'), content[:-5], "[]", "", "{}", "[" * 10**5):
        path.write_text(damaged)
        with pytest.raises(UserError, match="damaged.*learn again"):
            follow(shop)
    path.write_text(content.replace('"version": 2', '"version": 7'))
    with pytest.raises(UserError, match=r"another version of ucbf \(format version 7, this one knows 2\); learn"):
        follow(shop)
    path.unlink()
    with pytest.raises(UserError, match="holds nothing that was learned .*ucbf learn wrote"):
        follow(shop)


def test_prices_of_the_day_are_not_guessed(tmp_path):
    store = ucbf.systems.Battery(horizon=2, capacity=6, max_buy=6, max_demand=4)
    series = data.Series(np.full(40, 3.0), None, "kw", "memory")
    found = ucbf.learn(store, data.episodes(series, 2), changes=[{"prices": (9.0, 1.0)}] * 20, pooled=False)
    found.save(tmp_path)
    follower = follow(tmp_path)
    with pytest.raises(UserError, match=r"with prices that differ .*: give prices \(--price-file\) from the step on"):
        follower.act(0)
    with pytest.raises(UserError, match=r"give prices \(--price-file\) from the step on, to the end of its episode"):
        follower.observe(0, 3, 0, amount=3)
    with pytest.raises(UserError, match="prices: 3 rows without dates; give 2, from step 1 to the end of its episode"):
        follower.act(0, known={"prices": [1, 2, 3]})
    wanted = found.policy_for(prices=[1.0, 9.0])
    for state in range(7):
        assert follower.act(state, known={"prices": [1.0, 9.0]}).action == wanted.quantities[0, state]
    assert follower.act(3, known={"prices": [9.0, 1.0]}).action != follower.act(3, known={"prices": [1.0, 9.0]}).action


def test_a_forecast_of_the_days_to_come_is_planned_with(tmp_path):
    rng, days = np.random.default_rng(0), np.datetime64("2024-01-01") + np.arange(7 * 60)
    told = np.where(np.arange(420) // 7 % 2, 10, 2)
    demand = (told + rng.integers(-2, 3, 420)).clip(0)

    def written(name, column, dates, values):
        lines = "".join(f"{d},{x}\n" for d, x in zip(dates, values, strict=True))
        (tmp_path / name).write_text(f"date,{column}\n{lines}")

    written("demand.csv", "units", days, demand)
    written("forecast.csv", "forecast", days, told)
    shop = ["--demand", "demand.csv", "--forecast", "forecast.csv", "--price", 9, "--unit-cost", 4, "--no-pictures"]
    commands.ucbf("learn", "inventory", *shop, "--order-cost", 10, "--out", "shop", cwd=tmp_path)
    after = days[-1] + np.arange(1, 8)
    acted = []
    for name, x in (("quiet.csv", 2), ("busy.csv", 10)):
        written(name, "forecast", after, np.full(7, x))
        said = commands.ucbf("act", "shop", "--stock", 0, "--forecast", name, "--json", cwd=tmp_path)
        acted.append(json.loads(said.stdout)["action"])
    preset = ucbf.load(tmp_path / "shop/agent.npz").preset
    episodes = data.episodes(data.read_series(tmp_path / "demand.csv"), 7)
    changes = [{"profile": tuple(week)} for week in told.reshape(-1, 7).astype(float)]
    found = ucbf.learn(preset.replace(profile=0), episodes, changes=changes, ongoing=True)
    assert acted == [found.policy_for(profile=[float(x)] * 7).quantities[0, 0] for x in (2, 10)]
    assert acted[0] < acted[1]
    written("short.csv", "forecast", after[:5], np.full(5, 2))
    refused = commands.ucbf("act", "shop", "--stock", 0, "--forecast", "short.csv", cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert (
        "short.csv, column 'forecast': nothing for 2025-03-01; give the forecasts from 2025-02-24 to" in refused.stderr
    )
    late = commands.ucbf("act", "shop", "--stock", 5, "--date", after[4], "--forecast", "quiet.csv", cwd=tmp_path)
    assert late.stdout.startswith(f"{after[4]} (Fri), stock 5: order")
    refused = commands.ucbf("act", "shop", "--stock", 0, cwd=tmp_path, check=False)
    assert "give forecasts (--forecast) from the step on, to the end of its episode" in refused.stderr


def test_what_does_not_differ_is_not_asked_for(shop):
    with pytest.raises(UserError, match="learned without forecasts; leave out --forecast"):
        follow(shop).act(0, known={"profile": [1.0] * 7})


# -- changes ------------------------------------------------------------------------------------------------------


def test_a_level_by_hand(original):
    # Ten Mondays, all one standard deviation above the mean but for a spread of 0.5 deviations either way.
    model = follow(original[0]).model
    kind = model.kinds[""]
    z = np.array([0.5, 1.5] * 5)
    found = change(model, [("", 0, kind.mean[0] + x * kind.spread[0]) for x in z])
    # The error: 0.5270 / sqrt(10) of the ten, 1 / sqrt(40) of the learned mean: sqrt(0.02778 + 0.02500) = 0.22973
    from scipy.stats import t

    assert found.p == pytest.approx(2 * t.sf(1 / 0.22973, 9), rel=1e-3)
    assert found.mean == pytest.approx(kind.mean[0] + kind.spread[0])
    assert change(model, []) is None
    assert np.isnan(change(model, [("", 0, 3.0)] * 7).p)


def test_a_change_is_reported_and_chance_is_not(original, shop):
    take_in(follow(shop), happened(28, mean=8.0))
    now = follow(shop).status()
    assert now.level.has_changed
    assert "it has changed; chance brings as large a difference in" in str(now)
    assert now.learn_again.startswith("now, from recent data")
    assert any("demand is higher" in text for text in follow(shop).act(3).warnings)
    model, alarms = follow(original[0]).model, 0
    for seed in range(100):  # of demand as it was, looked at every day from the eighth to the hundredth
        steps = [("", i % 7, min(float(n), 10.0)) for i, n in enumerate(np.random.default_rng(seed).poisson(4, 100))]
        alarms += any(change(model, steps[:n]).has_changed for n in range(8, 101))
    assert alarms <= 3


def test_when_to_learn_again(shop):
    assert "about 2025-02-23, when the journal holds 140 days, half" in follow(shop).status().learn_again
    take_in(follow(shop), happened(140))
    assert follow(shop).status().learn_again.startswith("now, with a series that includes the journal's steps")


# -- kills, and several at once ---------------------------------------------------------------------------------------


def test_a_kill_at_any_call_loses_and_doubles_nothing(shop, tmp_path):
    rows = happened(3)
    follow(shop).act(3)  # compiled before processes are forked

    def observe(row):
        take_in(follow(shop), [row])

    calls = calls_of(lambda: observe(rows[0]))
    assert calls >= 6
    (shop / "journal.jsonl").unlink()
    for chosen in range(1, calls + 1):
        observe(rows[0])
        ended = in_child(lambda: observe(rows[1]), Disk(chosen, killed))
        assert ended in (0, 9)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(locks, "UNSIGNED", 0.0)
            steps = follow(shop).status().steps
            assert steps == 2 if ended == 0 else steps in (1, 2)
            for row in rows[1:]:
                observe(row)
        follower = follow(shop)
        knowledge = follower.learned()
        follower.replay(knowledge, follower.entries().values())
        (controller,) = knowledge.controllers.values()
        assert controller.agent.learner.visits[:, 0].tolist() == [1, 1, 1, 0, 0, 0, 0]
        (shop / "journal.jsonl").unlink()


OBSERVER = """
import sys
from ucbf.following import follow
for i in range(3):
    day = 7 + 3 * int(sys.argv[2]) + i
    follow(sys.argv[1]).observe(5, 3, 4, 4, date=f"2024-10-{day:02d}")
"""


def test_several_who_observe_at_once(shop):
    them = [subprocess.Popen([sys.executable, "-c", OBSERVER, str(shop), str(who)]) for who in range(3)]
    assert [one.wait() for one in them] == [0] * 3
    now = follow(shop).status()
    assert (now.steps, now.missing, now.last) == (9, 0, "2024-10-15")


def test_a_torn_line_is_said(shop):
    take_in(follow(shop), happened(2))
    path = shop / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert "is unfinished and is ignored" in follow(shop).act(3).warnings[0]
    assert "is unfinished and is ignored" in str(follow(shop).status())
    taken = take_in(follow(shop), happened(2))
    assert (taken.new, taken.known) == (("2024-10-08 (Tue)",), ("2024-10-07 (Mon)",))
    assert "is unfinished" in taken.notes[0]
    assert not follow(shop).status().notes


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_file_of_days(shop, tmp_path):
    text = "Date,Stock,Order,Demand,Left\n07.10.2024,3,5,6,2\n08.10.2024,2,4,,0\n"
    (tmp_path / "happened.csv").write_text(text)
    done = run("observe", "shop", "--file", "happened.csv", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("2024-10-07 (Mon), 2024-10-08 (Tue): taken in\n", "")
    assert [entry.happened.amount for entry in follow(shop).entries().values()] == [6.0, None]
    general = {"state": [3.0, 2.0], "action": [5.0, 4.0], "amount": [6.0, None], "next_state": [2.0, 0.0]}
    days = pa.array(["2024-10-07", "2024-10-08"]).cast(pa.date32())
    pq.write_table(pa.table({"day": days, **general}), tmp_path / "happened.parquet")
    done = run("observe", "shop", "--file", "happened.parquet", cwd=tmp_path)
    assert done.stdout == "2024-10-07 (Mon), 2024-10-08 (Tue): already there, the same\n"


def test_a_file_may_have_the_newest_day_first(shop, tmp_path):
    days = [Happened(state, order, left, demand, date=day) for day, state, order, demand, left in happened(30)]
    taken = follow(shop).observe_all(days[::-1])
    assert taken.new[0] == "2024-10-07 (Mon)"
    assert (len(taken.new), taken.notes) == (30, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "date,stock,order,left\n2024-10-07,3,5,2\n2024-10-08,2,4,30\n",
            r"happened.csv, row 3: next state \(stock\) is 30",
        ),
        ("date,stock,order,left\n2024-10-07,3,5,2\n2024-10-07,3,5,3\n", "row 3: 2024-10-07 comes twice, with other"),
        ("date,stock,order,left\n2024-10-07,3,five,2\n", "row 2, column 'order': 'five' is not a number"),
        (
            "date,stock,order\n2024-10-07,3,5\n",
            "has no column 'demand' or 'next_stock'; it has 'date'",
        ),
        ("date,stock,order,left,next_stock\n2024-10-07,3,5,2,2\n", "has 'next_stock' and 'left', which mean the same"),
        ("stock,order,left\n3,5,2\n", "no date is given, and the series has dates"),
    ],
)
def test_a_file_is_taken_in_whole_or_not_at_all(shop, tmp_path, text, message):
    (tmp_path / "happened.csv").write_text(text)
    done = run("observe", "shop", "--file", "happened.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    import re

    assert re.search(message, done.stderr), done.stderr
    assert not (shop / "journal.jsonl").exists()


def test_a_file_of_stocks(shop, tmp_path):
    (tmp_path / "stock.csv").write_text("date,stock\n2024-10-07,3\n2024-10-08,15\n")
    done = run("act", "shop", "--stock-file", "stock.csv", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)["advice"]
    assert [(each["when"], each["state"]) for each in told] == [("2024-10-07 (Mon)", 3.0), ("2024-10-08 (Tue)", 15.0)]
    assert told[0]["action"] == follow(shop).act(3).action
    (tmp_path / "stock.csv").write_text("stock\n3\n")
    assert run("act", "shop", "--stock-file", "stock.csv", cwd=tmp_path).stdout.startswith(
        "2024-10-07 (Mon), stock 3: "
    )
    (tmp_path / "stock.csv").write_text("stock\n3\n4\n")
    assert "has 2 rows without dates" in run("act", "shop", "--stock-file", "stock.csv", cwd=tmp_path).stderr


# -- the commands ------------------------------------------------------------------------------------------------


def test_the_morning_from_the_shell(tmp_path):
    lines = [f"{day},{int(n)}" for day, n in zip(daily().times.astype("datetime64[D]"), daily().values, strict=True)]
    (tmp_path / "sales.csv").write_text("date,units\n" + "\n".join(lines) + "\n")
    done = run(
        "learn",
        "inventory",
        "--demand",
        "sales.csv",
        "--order-cost",
        5,
        "--price",
        9,
        "--unit-cost",
        4,
        "--out",
        "shop",
        cwd=tmp_path,
    )
    assert "agent.npz, model.json" in done.stdout
    told = run("act", "shop", "--stock", 3, cwd=tmp_path).stdout.splitlines()
    assert told[0].startswith("2024-10-07 (Mon), stock 3: order ")
    assert told[1].startswith("why: Mon: order up to ")
    step = ["--date", NEXT, "--stock", 12, "--action", 5, "--amount", 7, "--next-stock", 10]
    assert run("observe", "shop", *step, cwd=tmp_path).stdout == "2024-10-07 (Mon): taken in\n"
    own = ["--date", NEXT, "--state", 12, "--order", 5, "--demand", 7, "--left", 10]
    assert run("observe", "shop", *own, cwd=tmp_path).stdout == "2024-10-07 (Mon): already there, the same\n"
    other = run("observe", "shop", *own[:-1], 11, cwd=tmp_path)
    assert other.returncode == 2
    assert "comes 10, not 11" not in other.stderr  # one unit may be rounding
    assert "replace it (--correct)" in other.stderr
    corrected = run("observe", "shop", *own[:-1], 11, "--correct", "--json", cwd=tmp_path)
    assert json.loads(corrected.stdout)["corrected"] == ["2024-10-07 (Mon)"]
    early = run("act", "shop", "--stock", 3, "--date", "8/10/2024", "--date-format", "%d/%m/%Y", cwd=tmp_path).stdout
    assert early.startswith("2024-10-08 (Tue), stock 3: ")
    more = ["--date", "10/9/2024", "--date-format", "%m/%d/%Y", "--stock", 10, "--order", 0, "--demand", 4]
    assert run("observe", "shop", *more, cwd=tmp_path).stdout.startswith("2024-10-09 (Wed): taken in\nbefore ")
    out = run("observe", "shop", "--remove", "--date", "2024-10-09", cwd=tmp_path).stdout
    assert out == "2024-10-09 (Wed): taken out\n"
    said = run("status", "shop", cwd=tmp_path).stdout
    assert said.startswith("inventory: 1 day taken in, 2024-10-07 to 2024-10-07\nreward: ")
    assert json.loads(run("status", "shop", "--json", cwd=tmp_path).stdout)["steps"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["act", "shop"], "give what is there now (--stock), or a file of it (--stock-file)"),
        (["act", "shop", "--stock", "300"], "stock is 300; it must be 0 to 20, in the unit of sales.csv: correct it"),
        (["act", "shop", "--stock", "3", "--date", "2024-10-01"], "is in the series that was learned from"),
        (["act", "nowhere", "--stock", "3"], "nowhere does not exist; give the folder that ucbf learn wrote (--out)"),
        (["observe", "shop", "--stock", "3"], "--order, --left or --demand not given; give the step by flags"),
        (["observe", "shop", "--stock", "3", "--order", "2"], "--left or --demand not given; give the step by flags"),
        (["observe", "shop", "--remove"], "no date is given, and the series has dates; give it (--date"),
        (["observe", "shop", "--remove", "--date", "2024-10-08"], "2024-10-08 is not in the journal, so that there is"),
        (["observe", "shop", "--remove", "--date", "2024-10-08", "--stock", "3"], "give only that (--date, or --step)"),
        (["act", "shop", "--stock", "3", "--date", "2/11/2026"], "may mean 2026-11-02 (%d/%m/%Y) or 2026-02-11 (%m/%d"),
        (
            ["act", "shop", "--stock", "3", "--date", "2024-10-08", "--date-format", "%d/%m/%Y"],
            "date is '2024-10-08', which is not written as %d/%m/%Y; write it as 2024-03-05",
        ),
        (["observe", "shop", "--stock", "3", "--file", "x.csv"], "give one or the other"),
        (["observe", "shop", "--file", "x.csv"], "there is no file 'x.csv'"),
        (
            ["status", "nowhere"],
            "nowhere does not exist; give the folder that ucbf learn wrote (--out), or the folder of a study",
        ),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(shop, arguments, message):
    done = run(*arguments, cwd=shop.parent)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_thousand_days_are_replayed_in_a_moment(shop):
    take_in(follow(shop), happened(1000))
    begun = time.process_time()
    follow(shop).act(5)
    assert time.process_time() - begun < 2

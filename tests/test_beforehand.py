"""Every morning where something is known beforehand: forecasts, quantiles, prices, promotions; or where a level counts.

What is known is compared with slow transcriptions: the distribution as a table of amounts with weights, and backward
induction in loops.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

import commands
import ucbf
from ucbf import advice, data
from ucbf.controller import Controller
from ucbf.data import Quantiles
from ucbf.errors import UserError
from ucbf.following import Happened, follow
from ucbf.following.levels import BORROWED, LevelKnowledge
from ucbf.systems import Battery, Inventory

SHOP = Inventory(horizon=2, capacity=6, max_demand=4, price=5, unit_cost=2, order_cost=1, holding=0.5, penalty=1)
K = 30


def two_days(values, first="2024-01-01"):
    values = np.asarray(values, float).ravel()
    return data.Series(values, np.datetime64(first) + np.arange(len(values)), "units", "made")


def date(i, episodes=K):
    """The i-th day after the series."""
    return str(np.datetime64("2024-01-01") + 2 * episodes + i)


def slow_plan(laws, pay, terminal, states, actions, allowed):
    """Values [H+1][S] and [H][S][A] of actions, by loops. laws: for each step pairs (amount, probability)."""
    v, q = [list(terminal)], []
    for h in reversed(range(len(laws))):
        rows = np.full((len(states), len(actions)), -np.inf)
        for s in states:
            for a in actions:
                if allowed(s, a):
                    ends = [(p, *pay(h, s, a, d)) for d, p in laws[h]]
                    rows[s, a] = sum(p * (paid + v[0][int(left)]) for p, paid, left in ends)
        q.insert(0, rows)
        v.insert(0, rows.max(axis=1))
    return np.array(v), np.array(q)


def shop_pays(h, stock, order, demand):
    """A day of SHOP: what it pays, and what is left."""
    there, left = stock + order, max(stock + order - demand, 0)
    sold = there - left
    return 5 * sold - 2 * order - (order > 0) - 0.5 * left - max(demand - there, 0), left


def best_orders(laws, terminal):
    v, q = slow_plan(laws, shop_pays, terminal, range(7), range(7), lambda s, a: s + a <= 6)
    return v, q


# -- a forecast -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forecasts():
    """[K, 2] forecasts of 1 or 3, and demand that is at most one off."""
    rng = np.random.default_rng(3)
    told = np.where(rng.random((K, 2)) < 0.5, 1.0, 3.0)
    return told, told + rng.choice([-1, 0, 1], (K, 2), p=[0.2, 0.5, 0.3])


@pytest.fixture
def with_forecast(forecasts, tmp_path):
    told, demand = forecasts
    changes = [{"profile": tuple(row)} for row in told]
    found = ucbf.learn(
        SHOP, data.episodes(two_days(demand), 2), changes=changes, ongoing=True, pooled=False, half_life=np.inf
    )
    found.save(tmp_path)
    return tmp_path, found


def law_around(errors, weights, forecast):
    """Pairs of demand and probability, around a forecast: errors beyond 0..4 count as the end."""
    found = {}
    for e, w in zip(errors, weights, strict=True):
        demand = min(max(forecast + e, 0), 4)
        found[demand] = found.get(demand, 0) + w / sum(weights)
    return list(found.items())


def test_a_day_with_a_forecast_by_hand(with_forecast, forecasts):
    folder, found = with_forecast
    follower = follow(folder)
    # 1 in stock, 3 ordered, 3 asked for, 1 left: 3 * 5 - 3 * 2 - 1 - 1 * 0.5 = 7.5
    taken = follower.observe(1, 3, 1, 3, date=date(0), known={"profile": [3, 1]})
    assert taken.new == (date(0),)
    record = json.loads((folder / "journal.jsonl").read_text().splitlines()[1])
    assert record["known"] == {"profile": [3.0, 1.0]}
    now = follow(folder).status()
    assert now.reward == pytest.approx(7.5)
    # What the plan of that episode expected: the value of 1 in the morning, less that of 1 in the evening.
    told, demand = forecasts
    errors = (demand - told).T
    laws = [law_around(errors[h], np.ones(K), forecast) for h, forecast in ((0, 3), (1, 1))]
    v, q = best_orders(laws, found.planner.episode(0).system.terminal)
    assert now.expected == pytest.approx(v[0, 1] - v[1, 1])
    assert now.unfollowed == pytest.approx(q[0, 1, 3] - v[0, 1])
    assert record["advised"] == float(q[0, 1].argmax())
    # The error of the forecast was 0.
    assert (now.level.mean, now.expected_by) == (0.0, "its forecast")
    assert now.level.learned == pytest.approx(errors[0].mean())


def test_every_forecast_is_planned_with_what_was_learned_and_shown(with_forecast, forecasts):
    folder, found = with_forecast
    told, demand = forecasts
    errors = [list(row) for row in (demand - told).T]
    weights = [[1.0] * K, [1.0] * K]
    terminal = found.planner.episode(0).system.terminal

    def check(day):
        for forecast in ((1, 3), (3, 1), (0, 4), (2.4, 2.6)):
            rounded = [round(x) for x in forecast]
            laws = [law_around(errors[h], weights[h], rounded[h]) for h in (0, 1)]
            _, q = best_orders(laws, terminal)
            for stock in range(7):
                told = follow(folder).act(stock, date=date(day), known={"profile": forecast})
                assert told.action == q[0, stock].argmax()

    check(0)
    assert [follow(folder).act(s, known={"profile": [3, 1]}).action for s in range(7)] == [
        found.policy_for(profile=[3.0, 1.0]).quantities[0, s] for s in range(7)
    ]
    # Twenty days on which the forecast is one too low: what was learned counts as the K episodes it comes from.
    follower, stock = follow(folder), 3
    for day in range(20):
        h, forecast = day % 2, (1, 3, 2)[day % 3]
        left = max(stock - forecast - 1, 0)
        known = {"profile": [forecast, 1][: 2 - h]}
        follower.observe(stock, 0, left, forecast + 1, date=date(day), known=known)
        errors[h].append(1)
        weights[h].append(1.0)
        stock = left or 6
    check(20)


def test_replaying_forecasts_is_an_agent_that_saw_the_same_days(with_forecast):
    folder, found = with_forecast
    rng, stock, follower = np.random.default_rng(1), 2, follow(folder)
    preset, agent = found.planner.agent_of_kind("")
    for day in range(12):
        if day == 5:
            continue  # a gap
        h, profile = day % 2, tuple(rng.integers(0, 4, 2).astype(float).tolist())
        order, demand = int(rng.integers(0, 7 - stock)), int(rng.integers(0, 5))
        left = max(stock + order - demand, 0)
        hidden = day in (3, 8)
        amount = None if hidden else demand
        follower.observe(stock, order, left, amount, date=date(day), known={"profile": profile})
        preset = preset.replace(profile=profile)
        agent = agent.moved_to(preset.system)
        Controller(preset, agent).observe(h, stock, order, left, amount=amount)
        stock = left
    again = follow(folder)
    knowledge = again.learned()
    again.replay(knowledge, again.entries().values())
    mine = knowledge.controllers[""].agent
    np.testing.assert_array_equal(mine.knowledge.believed(), agent.knowledge.believed())
    for name, array in agent.learner.law._asdict().items():
        if isinstance(array, np.ndarray) and name != "law":
            np.testing.assert_array_equal(getattr(mine.learner.law, name), array, err_msg=name)
    for name in ("steps", "tally", "unused"):
        np.testing.assert_array_equal(getattr(mine.learner.watch, name), getattr(agent.learner.watch, name))
    assert (mine.learner.visits == agent.learner.visits).all()


def test_a_change_is_one_of_the_errors_of_the_forecast(with_forecast):
    folder, _ = with_forecast
    follower, other = follow(folder), [3, 1]
    for day in range(16):  # busy days, as they were forecast
        follower.observe(4, 0, 1, 3, date=date(day), known={"profile": [3, 3]})
    assert not follow(folder).status().level.has_changed
    for day in range(16, 60):
        follower.observe(4, 0, 1, 3, date=date(day), known={"profile": [1, 1]})
    now = follow(folder).status()
    assert now.level.has_changed
    assert "demand above its forecast: " in str(now)
    told = follow(folder).act(3, known={"profile": other})
    assert any("the demand, less its forecast, is higher than what was learned from" in t for t in told.warnings)


def test_what_is_known_must_be_what_was_learned_with(with_forecast):
    folder, _ = with_forecast
    follower = follow(folder)
    with pytest.raises(UserError, match=r"give forecasts \(--forecast\) from the step on, to the end of its episode"):
        follower.observe(1, 3, 1, 3, date=date(0))
    with pytest.raises(UserError, match="was learned without prices and promotions; leave out --price-file and --prom"):
        follower.act(1, known={"profile": [1, 2], "prices": [1, 2], "promoted": [0, 1]})
    with pytest.raises(
        UserError, match=r"forecasts: 3 rows without dates; give 2, from 2024-03-01 to the end of its e"
    ):
        follower.act(1, known={"profile": [1, 2, 3]})
    with pytest.raises(UserError, match=r"give 1, from 2024-03-02 to the end of its episode, or 2, one for each step"):
        follower.act(1, date=date(1), known={"profile": [1, 2, 3]})
    assert follower.act(1, date=date(1), known={"profile": [2]}) == follower.act(
        1, date=date(1), known={"profile": [9, 2]}
    )
    assert not (folder / "journal.jsonl").exists()
    far = follower.act(1, known={"profile": [50, 2]})
    assert far.warnings == (f"1 forecast outside 0..4, the range of the demand, clipped to it: {date(0)} (50)",)
    assert far.action == follower.act(1, known={"profile": [4, 2]}).action


def test_a_step_taken_in_without_what_is_needed_now_is_said_and_does_not_count(forecasts, tmp_path):
    told, demand = forecasts
    episodes = data.episodes(two_days(demand), 2)
    ucbf.learn(SHOP, episodes).save(tmp_path)
    follow(tmp_path).observe(1, 3, 1, 3, date=date(0))
    ucbf.learn(SHOP, episodes, changes=[{"profile": tuple(row)} for row in told], ongoing=True).save(tmp_path)
    act = follow(tmp_path).act(3, known={"profile": [2, 2]})
    assert act.warnings[0].startswith(f"{date(0)} is in the journal without the forecasts that what is learned now")
    now = follow(tmp_path).status()
    assert (now.steps, now.reward, now.advised) == (1, None, 1)
    taken = follow(tmp_path).observe(1, 3, 1, 3, date=date(0), known={"profile": [2, 2]})
    assert taken.corrected == (date(0),)
    assert follow(tmp_path).status().reward == pytest.approx(7.5)
    assert not follow(tmp_path).act(3, known={"profile": [2]}).warnings
    # And the other way round: what is not needed is left alone.
    ucbf.learn(SHOP, episodes).save(tmp_path)
    assert follow(tmp_path).status().reward == pytest.approx(7.5)


def test_a_journal_with_a_forecast_that_cannot_be_is_refused(with_forecast):
    folder, _ = with_forecast
    follow(folder).observe(1, 3, 1, 3, date=date(0), known={"profile": [3, 1]})
    from ucbf.journal import Journal

    for wrong in ({"profile": ["x", 1]}, {"profile": [None, 1]}, [1], "x"):
        path = folder / "journal.jsonl"
        path.unlink()
        journal = Journal(path, follow(folder).journal.about)
        with journal.writing() as writing:
            record = {"date": f"{date(0)} 00:00:00", "state": 1, "action": 3, "amount": 3, "next_state": 1}
            writing.append([{**record, "advised": 3, "known": wrong}])
        with pytest.raises(UserError, match="journal.jsonl, line 2 cannot be used: .*; move the journal away"):
            follow(folder).status()


def test_a_forecast_that_is_revised_every_day_counts_as_it_was(with_forecast):
    folder, found = with_forecast
    follower = follow(folder)
    follower.observe(1, 3, 1, 3, date=date(0), known={"profile": [3, 1]})
    follower.observe(1, 2, 0, 3, date=date(1), known={"profile": [3]})  # more than was thought the day before
    now = follow(folder).status()
    plans = [found.planner.advice_for(SHOP.replace(profile=(3.0, x)), "").plan for x in (1.0, 3.0)]
    expected = [plans[0].v[0, 1] - plans[0].v[1, 1], plans[1].v[1, 1] - plans[1].v[2, 0]]
    assert now.expected == pytest.approx(np.mean(expected))
    assert [follow(folder).entries()[n].ahead["profile"].tolist() for n in (1, 2)] == [[3, 1], [3]]


# -- prices ---------------------------------------------------------------------------------------------------------


def test_days_with_prices(tmp_path):
    store = Battery(horizon=2, capacity=3, max_buy=3, max_demand=2, shortage_price=7, end_value=1)
    rng = np.random.default_rng(0)
    demand = rng.choice([0, 1, 2], (K, 2), p=[0.2, 0.5, 0.3])
    prices = rng.choice([1.0, 3.0], (K, 2))
    found = ucbf.learn(
        store,
        data.episodes(two_days(demand), 2),
        changes=[{"prices": tuple(row)} for row in prices.tolist()],
        pooled=False,
        half_life=np.inf,
    )
    found.save(tmp_path)
    counts = [{d: float((demand[:, h] == d).sum()) for d in (0, 1, 2)} for h in (0, 1)]

    def best(of_day):
        def pay(h, charge, bought, asked):
            z = charge + bought - asked
            return -of_day[h] * bought - 7 * max(-z, 0), min(max(z, 0), 3)

        laws = [[(d, n / sum(of.values())) for d, n in of.items()] for of in counts]
        return slow_plan(laws, pay, [0, 1, 2, 3], range(4), range(4), lambda s, a: True)

    follower = follow(tmp_path)
    # 1 in store, 1 bought at 3, 2 asked for: -3; the next day 0, 2 bought at 1, 1 asked for, 1 left: -2
    follower.observe(1, 1, 0, 2, date=date(0), known={"prices": [3, 1]})
    follower.observe(0, 2, 1, date=date(1), known={"prices": [1]})
    now = follow(tmp_path).status()
    assert now.reward == pytest.approx(-2.5)
    v, q = best([3, 1])
    assert now.expected == pytest.approx((v[0, 1] - v[1, 0] + v[1, 0] - v[2, 1]) / 2)
    assert now.unfollowed == pytest.approx((q[0, 1, 1] - v[0, 1] + q[1, 0, 2] - v[1, 0]) / 2)
    assert now.expected_by == ""
    counts[0][2] += 1
    counts[1][1] += 1
    for of_day in ([1, 3], [3, 1], [2, 9]):
        _, q = best(of_day)
        for charge in range(4):
            assert follow(tmp_path).act(charge, known={"prices": of_day}).action == q[0, charge].argmax()


# -- quantiles ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spreads():
    """Weeks that are calm or wild, which quantiles know; they are half as wide as they should be."""
    rng = np.random.default_rng(0)
    spread = np.repeat(rng.choice([1, 6], 60), 7).reshape(60, 7)
    demand = 12 + np.rint(spread * rng.uniform(-1, 1, (60, 7)))
    values = 12 + np.stack([-0.2 * spread, 0.2 * spread], axis=2)
    return demand, values


WEEKLY = Inventory(capacity=30, max_demand=20, price=9, unit_cost=4, holding=2)
SHARES = np.array([0.25, 0.75])


def learn_quantiles(folder, spreads, weeks, pooled, half_life=np.inf):
    demand, values = (each[:weeks] for each in spreads)
    found = ucbf.learn(
        WEEKLY,
        data.episodes(two_days(demand), 7),
        changes=[{"profile": [12.0] * 7}] * weeks,
        ongoing=True,
        quantiles=Quantiles(SHARES, values, 0.01),
        pooled=pooled,
        half_life=half_life,
    )
    folder.mkdir(exist_ok=True)
    found.save(folder)
    assert found.planner.training.quantiles is not None
    return found


@pytest.mark.parametrize("half_life", [np.inf, 6.0])
@pytest.mark.parametrize("pooled", [True, False])
def test_weeks_shown_with_their_quantiles_are_weeks_learned_from(spreads, tmp_path, pooled, half_life):
    """The law of the next week is that of learning again, with those weeks in the series."""
    learn_quantiles(tmp_path / "less", spreads, 56, pooled, half_life)
    more = learn_quantiles(tmp_path / "more", spreads, 60, pooled, half_life)
    demand, values = spreads
    follower = follow(tmp_path / "less")
    for day in range(28):
        k, h = 56 + day // 7, day % 7
        asked = float(demand[k, h])
        known = {"quantiles": values[k], "profile": [12.0] * 7}
        when = str(np.datetime64("2024-01-01") + 7 * 56 + day)
        follower.observe(25, 0, 25 - asked, asked, date=when, known=known)
    knowledge, again = follow(tmp_path / "less").learned(), follow(tmp_path / "more").learned()
    follower.replay(knowledge, follower.entries().values())
    ahead = {"profile": np.full(7, 12.0), "quantiles": values[3]}
    preset = knowledge.preset_for(29, ahead)
    mine, theirs = knowledge.law(29, preset, ahead), again.law(1, preset, ahead)
    np.testing.assert_allclose(mine.pmf, theirs.pmf, atol=1e-12)
    occurs = theirs.pmf[0] > 0
    assert np.ptp(theirs.values[occurs]) == (12 if (values[3, 0, 0] < 11.5) else 2)
    # What was learned is the law that the page plans with.
    of_page = more.planner.training.distribution_by_quantiles(
        preset, more.planner.training.quantiles.of_one(values[3]), 0, ""
    )
    np.testing.assert_allclose(theirs.pmf, of_page.pmf, atol=1e-12)


def test_a_step_may_be_shown_with_more_known_than_before(spreads, tmp_path):
    """Quantiles first, and later the forecast beside them."""
    learn_quantiles(tmp_path, spreads, 40, True)
    quantiles = {"quantiles": spreads[1][40]}
    both = quantiles | {"profile": [12.0] * 7}
    follow(tmp_path).observe(20, 0, 8, 12, date=date(0, 140), known=quantiles)
    assert follow(tmp_path).observe(20, 0, 8, 12, date=date(0, 140), known=both, correct=True).corrected
    rest = {name: values[1:] for name, values in both.items()}
    follow(tmp_path).observe(8, 12, 8, 12, date=date(1, 140), known=rest)
    follow(tmp_path).observe(8, 12, 8, 12, date=date(2, 140), known={"quantiles": spreads[1][40][2:]})
    assert follow(tmp_path).status().steps == 3


def test_what_comes_may_be_of_a_kind_that_was_never_measured():
    """A file of weekdays by the hour, and a forecast of Saturday: the page shows the last day."""
    hours = np.datetime64("2024-01-01T00") + np.arange(120)
    series = data.Series(np.arange(120) % 3 + 1.0, hours.astype("datetime64[s]"), "units", "made")
    episodes, week = data.episodes(series, 24), [{"profile": [2.0] * 24}] * 5
    for coming in ({"profile": [2.0] * 24}, None):
        found = ucbf.learn(SHOP.replace(horizon=24), episodes, changes=week, coming=coming)
        assert not found.is_coming
        assert list(found.by_kind) == ["2024-01-05 00:00:00"]


def test_act_by_quantiles_is_what_the_page_advises(spreads, tmp_path):
    found = learn_quantiles(tmp_path, spreads, 60, False)
    follower = follow(tmp_path)
    for values in (spreads[1][0], spreads[1][1], spreads[1][2]):
        wanted = found.planner.coming({"profile": (12.0,) * 7, "quantiles": values}, follower.calendar).policy
        for stock in (0, 5, 12):
            by_shares = {share: values[:, i] for i, share in enumerate(SHARES.tolist())}
            for known in ({"quantiles": values}, {"quantiles": by_shares, "profile": [12.0] * 7}):
                assert follower.act(stock, known=known).action == wanted.quantities[0, stock]
    with pytest.raises(UserError, match=r"the forecast has the quantiles q10, and it was learned with q25, q75"):
        follower.act(3, known={"quantiles": {0.1: [1.0] * 7}})
    with pytest.raises(UserError, match=r"quantiles has shape \(7, 3\); give a row for each step, with 2 each"):
        follower.act(3, known={"quantiles": np.ones((7, 3))})


def test_an_amount_that_is_hidden_has_the_mean_of_the_places_that_it_may_have(spreads, tmp_path):
    found = learn_quantiles(tmp_path, spreads, 60, False)
    follower = follow(tmp_path)
    values = spreads[1][0]
    when = str(np.datetime64("2024-01-01") + 420)
    follower.observe(5, 7, 0, date=when, known={"quantiles": values})  # at least 12 were asked for
    knowledge = follower.learned()
    follower.replay(knowledge, follower.entries().values())
    places = found.planner.training.places[:, 0]
    at_least = found.planner.training.quantiles.of_one(values).place(0, 0, 12.0)
    assert knowledge._rows[-1][0] == pytest.approx(places[places >= at_least].mean())
    assert np.isnan(knowledge._rows[-1][1:]).all()


# -- promotions -----------------------------------------------------------------------------------------------------


def test_promotions_of_the_days_to_come(tmp_path):
    rng = np.random.default_rng(0)
    marks = rng.random((K, 2)) < 0.3
    demand = np.clip(np.where(marks, 3, 1) + rng.choice([-1, 0, 1], (K, 2)), 0, 4)
    weeks = data.episodes(two_days(demand), 2)
    what = advice.promotions(weeks, marks, 1.0)
    changes = [{"profile": tuple(row)} for row in np.clip(what.profiles, 0, 4).tolist()]
    found = ucbf.learn(SHOP, weeks, changes=changes, ongoing=True, promotions=what)
    found.save(tmp_path)
    follower = follow(tmp_path)
    assert follower.model.varies == ("promoted",)
    (usual,) = what.means.values()
    for promoted in ([0, 0], [1, 0], [0, 1], [1, 1]):
        profile = [min(x * (what.uplift if on else 1), 4) for x, on in zip(usual, promoted, strict=True)]
        wanted = found.policy_for(profile=profile)
        for stock in range(7):
            told = follower.act(stock, known={"promoted": promoted})
            assert (told.action, told.notes) == (wanted.quantities[0, stock], ())
    none = follower.act(0)
    assert none.action == follower.act(0, known={"promoted": [0, 0]}).action
    assert none.notes == ("nothing is promoted, as none was given (--promotions)",)
    assert follower.act(0, known={"promoted": [1, 0]}).action > none.action
    taken = follower.observe(0, 3, 0, 3, date=date(0), known={"promoted": [1, 0]})
    assert taken.notes == ()
    taken = follower.observe(0, 2, 1, 1, date=date(1))
    assert taken.notes == none.notes
    now = follow(tmp_path).status()
    errors = [3 - min(usual[0] * what.uplift, 4), 1 - usual[1]]
    assert now.level.mean == pytest.approx(np.mean(errors))
    # Journals of before say nothing of promotions: then there were none.
    with follower.journal.writing() as writing:
        record = {"date": f"{date(2)} 00:00:00", "state": 1, "action": 0, "amount": 1, "next_state": 0}
        writing.append([{**record, "advised": None}])
    assert follow(tmp_path).entries()[3].ahead["promoted"].tolist() == [0, 0]


# -- the level of the last steps ---------------------------------------------------------------------------------------


def regimes_of_demand(n, seed=0):
    """[n] demand of 1 or 4 a day, give or take one; it changes once in ten days."""
    rng, busy, found = np.random.default_rng(seed), False, []
    for _ in range(n):
        busy = busy ^ (rng.random() < 0.1)
        found.append(np.clip((4 if busy else 1) + rng.integers(-1, 2), 0, 4))
    return np.array(found, float)


@pytest.fixture(scope="module")
def by_level(tmp_path_factory):
    folder = tmp_path_factory.mktemp("level")
    series = two_days(regimes_of_demand(601))  # one day after the last whole episode
    found = ucbf.learn(SHOP.replace(holding=2), data.episodes(series, 2), half_life=np.inf, pooled=False)
    assert found.by_level is not None
    assert found.follows_level
    found.save(folder)
    return folder, found, series.values


def copied(folder, to):
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def test_the_level_by_hand(by_level, tmp_path):
    source, found, values = by_level
    folder = copied(source, tmp_path)
    regimes, means = found.by_level.regimes, np.array(found.by_level.training.profiles_of(np.arange(300))[""])
    z = 0.0
    for t, amount in enumerate(values):  # all days of the series, that after the last whole episode too
        z = regimes.memory * z + (1 - regimes.memory) * (amount - means[t % 2])
    follower, knowledge = follow(folder), follow(folder).learned()
    assert knowledge._level(1) == pytest.approx(z)
    names = regimes.names
    policy = found.by_level.policies[""]
    now = follower.calendar.place_of(1)
    assert now == 1
    for day, (stock, order, asked) in enumerate([(2, 3, 4), (1, 3, 4), (0, 2, 0), (2, 0, 1)]):
        e = int(np.searchsorted(regimes.cuts, z))
        told = follow(folder).act(stock)
        if day == 0:  # nothing shown yet: as the page says
            assert told.action == policy.quantities_in(e)[now, stock]
            assert found.by_level.now == e
        assert told.level == names[e]
        assert f"at a {names[e]} level of the last steps: " in told.why
        assert f"{z:+.3g} from its mean" in told.notes[-1]
        when = str(np.datetime64("2024-01-01") + 601 + day)
        follow(folder).observe(stock, order, max(stock + order - asked, 0), asked, date=when)
        h = (1 + day) % 2
        z = regimes.memory * z + (1 - regimes.memory) * (asked - means[h])
    late = follow(folder)
    knowledge = late.learned()
    late.replay(knowledge, late.entries().values())
    note = late.act(2, date=str(np.datetime64("2024-01-01") + 601 + 7)).notes[-1]
    assert f"{z:+.3g} from its mean; 2025-08-28, 2025-08-29, 2025-08-30 are not in the journal" in note
    assert f"the mean counts there, which makes it {z * regimes.memory**3:+.3g}, and " in note
    assert knowledge._level(5) == pytest.approx(z)
    assert knowledge._level(8) == pytest.approx(z * regimes.memory**3)  # three days are missing: their means count
    assert knowledge._level(1) == pytest.approx(follow(folder).learned()._level(1))


def slow_counts(found, values, regimes, means):
    """[H][E][E][5] of demands in each context, and the context that followed, from the whole episodes."""
    E, z, counts = len(regimes.names), 0.0, np.zeros((2, 3, 3, 5))
    for t, amount in enumerate(values[: len(values) // 2 * 2]):
        e = int(np.searchsorted(regimes.cuts, z))
        z = regimes.memory * z + (1 - regimes.memory) * (amount - means[t % 2])
        counts[t % 2, e, int(np.searchsorted(regimes.cuts, z)), int(amount)] += 1
    return counts[:, :E, :E]


def test_days_add_to_what_is_counted_in_their_context(by_level, tmp_path):
    source, found, values = by_level
    folder = copied(source, tmp_path)
    regimes, means = found.by_level.regimes, np.array(found.by_level.training.profiles_of(np.arange(300))[""])
    counts = slow_counts(found, values, regimes, means)
    knowledge = follow(folder).learned()
    terminal = knowledge._given.kinds[""].terminal
    E, z = len(regimes.names), knowledge._level(1)
    days = regimes_of_demand(60, seed=5)
    follower = follow(folder)
    for day, asked in enumerate(days):
        when = str(np.datetime64("2024-01-01") + 601 + day)
        follower.observe(6, 0, 6 - asked, asked, date=when)
        h, e = (1 + day) % 2, int(np.searchsorted(regimes.cuts, z))
        z = regimes.memory * z + (1 - regimes.memory) * (asked - means[h])
        counts[h, e, int(np.searchsorted(regimes.cuts, z)), int(asked)] += 1
    follower.replay(knowledge, follower.entries().values())
    # Backward induction by hand, in every context, with a little of what all contexts show.
    laws = np.zeros_like(counts)
    for h in (0, 1):
        shared = counts[h].sum(axis=0) / counts[h].sum()
        for e in range(E):
            laws[h, e] = (counts[h, e] + BORROWED * shared) / (counts[h, e].sum() + BORROWED)
    v = terminal
    for h in (1, 0):
        q = np.full((E, 7, 7), -np.inf)
        for e, s, a in np.ndindex(E, 7, 7):
            if s + a <= 6:
                paid = [[held_longer(s, a, d) for d in range(5)] for _ in range(E)]
                q[e, s, a] = sum(
                    laws[h, e, e2, d] * (paid[e2][d] + v[e2, max(s + a - d, 0)]) for e2 in range(E) for d in range(5)
                )
        v = q.max(axis=2)
        plan = knowledge.plan(62, {})
        np.testing.assert_allclose(plan.v[h], v, atol=1e-8)
        np.testing.assert_allclose(plan.q[h], q, atol=1e-8)


def test_what_was_counted_by_level_fades_by_the_half_life_in_episodes(by_level, tmp_path):
    follower = follow(copied(by_level[0], tmp_path))
    for pooled in (False, True):
        given = follower.learned()
        levels = replace(given._given, half_life=3.0, pooled=pooled)
        knowledge = LevelKnowledge(follower.model, given.controllers, levels)
        before = levels.kinds[""].counts.sum(axis=(1, 2))
        for number in (1, 2):  # an episode has two steps
            knowledge.show(number, knowledge.read(number, Happened(6.0, 0.0, 4.0, 2.0), {}), {})
        twice = (before * 0.5 ** (1 / 6) + 1) * 0.5 ** (1 / 6) + 1  # pooled, a step counts for both
        expected = twice if pooled else before * 0.5 ** (1 / 3) + 1
        np.testing.assert_allclose(knowledge._counted[""].counts.sum(axis=(1, 2)), expected)


def held_longer(stock, order, demand):
    """A day of SHOP with a holding cost of 2."""
    there, left = stock + order, max(stock + order - demand, 0)
    return 5 * (there - left) - 2 * order - (order > 0) - 2 * left - max(demand - there, 0)


def test_a_hidden_amount_moves_the_level_no_further_than_it_must_and_is_shared_out(by_level, tmp_path):
    folder = copied(by_level[0], tmp_path)
    follower = follow(folder)
    before = follower.learned()
    mean, z, m = before._mean(1), before._level(1), before.scale.memory
    when = str(np.datetime64("2024-01-01") + 601)
    follower.observe(1, 2, 0, date=when)  # 3 or 4 were asked for
    knowledge = follower.learned()
    follower.replay(knowledge, follower.entries().values())
    assert mean < 3
    assert knowledge._level(2) == pytest.approx(m * z + (1 - m) * (3 - mean))
    e = before.context(1)
    added = knowledge._counted[""].counts[1, e] - before._counted[""].counts[1, e]
    shares = added.reshape(len(before.scale.names), -1).sum(axis=0)
    law = before.new_plan(1, {}).system.bins
    believed = {-3: 0.0, -4: 0.0}
    counts = before._counted[""].counts[1]
    shared = counts.sum(axis=0) / counts.sum()
    pmf = ((counts[e] + BORROWED * shared) / (counts[e].sum() + BORROWED)).reshape(len(before.scale.names), -1)
    for w in believed:
        believed[w] = pmf[:, list(law.values).index(w)].sum()
    for i, w in enumerate(law.values):
        assert shares[i] == pytest.approx(believed.get(int(w), 0.0) / sum(believed.values()))


def test_steps_that_depend_on_each_other_do_not_look_like_a_change(by_level, tmp_path):
    folder, alarms = copied(by_level[0], tmp_path), 0
    for seed in range(8):
        (folder / "journal.jsonl").unlink(missing_ok=True)
        days = regimes_of_demand(80, seed=100 + seed)
        steps = [
            Happened(6, 0, 6 - x, x, date=str(np.datetime64("2024-01-01") + 601 + i))
            for i, x in enumerate(days.tolist())
        ]
        follow(folder).observe_all(steps)
        now = follow(folder).status()
        alarms += now.level.has_changed or bool(now.contradictions)
    assert alarms <= 1
    assert now.expected_by == "what its level let expect"
    assert now.level_now in str(now)


def test_a_level_that_did_worse_is_not_followed(by_level, tmp_path):
    from ucbf.advice.judging import BY_LEVEL, LEARNED

    _, found, _ = by_level
    rewards = {**found.rewards, BY_LEVEL: found.rewards[LEARNED] - 1}
    worse = replace(found, rewards=rewards)
    assert not worse.follows_level
    worse.save(tmp_path)
    told = follow(tmp_path).act(2)
    assert told.level is None
    assert told.action == found.policy.quantities[1, 2]
    assert "(ucbf act does not follow it: it did worse)" in advice.summary(worse)
    page = advice.summary(found)
    assert "(this is what ucbf act follows)" in page
    assert "### Whatever the level of the last steps" in page
    assert "ucbf act follows it" in page.split("## What to do")[0]


# -- files of what is known --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_damaged_files_of_what_is_known_are_refused(by_level, tmp_path, damage):
    folder = copied(by_level[0], tmp_path)
    path = folder / "knowledge.npz"
    path.unlink() if damage is None else path.write_bytes(damage)
    with pytest.raises(UserError, match="knowledge.npz is .*learn again into this folder, which keeps the journal"):
        follow(folder)


def run(*arguments, cwd):
    return commands.ucbf(*arguments, cwd=cwd, check=False)


def test_the_morning_with_a_forecast_from_the_shell(tmp_path):
    rng, days = np.random.default_rng(0), np.datetime64("2024-01-01") + np.arange(7 * 30 + 2)
    told = np.where(np.arange(len(days)) // 7 % 2, 10, 2)
    demand = (told + rng.integers(-2, 3, len(days))).clip(0)

    def written(name, header, *columns):
        lines = (",".join(map(str, row)) for row in zip(*columns, strict=True))
        (tmp_path / name).write_text("\n".join([header, *lines, ""]))

    written("demand.csv", "date,units", days, demand)
    written("forecast.csv", "date,forecast,q10,q90", days, told, told - 2, told + 2)
    shop = ["--demand", "demand.csv", "--forecast", "forecast.csv", "--price", 9, "--unit-cost", 4, "--no-pictures"]
    done = run("learn", "inventory", *shop, "--order-cost", 10, "--out", "shop", cwd=tmp_path)
    assert "### With the forecasts of the last episode, which is past (from 2024-07-22 on)" in done.stdout
    assert "of those to come: `ucbf act FOLDER --stock STOCK --forecast FILE`." in done.stdout
    after = days[-1] + np.arange(1, 6)  # Wednesday to Sunday
    written("next.csv", "date,forecast,q10,q90", after, [10] * 5, [8] * 5, [12] * 5)
    act = run("act", "shop", "--stock", 0, "--forecast", "next.csv", "--json", cwd=tmp_path)
    assert act.returncode == 0, act.stderr
    written("last.csv", "date,forecast,q10,q90", after[-1:], [10], [8], [12])
    sunday = run("act", "shop", "--stock", 0, "--forecast", "last.csv", "--date", after[-1], cwd=tmp_path)
    assert sunday.stdout.startswith(f"{after[-1]} (Sun), stock 0: order ")
    step = ["--date", after[0], "--stock", 3, "--order", 9, "--demand", 8]
    refused = run("observe", "shop", *step, cwd=tmp_path)
    assert "give forecasts (--forecast) from the step on" in refused.stderr
    assert run("observe", "shop", *step, "--forecast", "next.csv", cwd=tmp_path).stdout == (
        f"{after[0]} (Wed): taken in\n"
    )
    (tmp_path / "next.csv").rename(tmp_path / "gone.csv")
    assert "1 day taken in" in run("status", "shop", cwd=tmp_path).stdout  # the journal needs no file
    column = run("act", "shop", "--stock", 0, "--forecast", "gone.csv", "--forecast-column", "guess", cwd=tmp_path)
    assert "gone.csv has no column 'guess'" in column.stderr
    written("two.csv", "date,a,b", after, [10] * 5, [8] * 5)
    two = run("act", "shop", "--stock", 0, "--forecast", "two.csv", cwd=tmp_path)
    assert "which column? Those with numbers are 'a', 'b'; say which (--forecast-column)" in two.stderr
    alone = run("act", "shop", "--stock", 0, "--forecast-column", "a", cwd=tmp_path)
    assert "--forecast-column is 'a' without a file; give it (--forecast)" in alone.stderr
    # Where the file goes on beyond the series, the page says what to do in the days to come.
    written("longer.csv", "date,forecast", np.concatenate([days, after]), np.concatenate([told, [10] * 5]))
    shop[3] = "longer.csv"
    done = run("learn", "inventory", *shop, "--order-cost", 10, "--out", "longer", cwd=tmp_path)
    rules = done.stdout.split("## What to do")[1].split("## What it is worth")[0]
    assert "### The episode that comes, from 2024-07-31 on, with the forecasts given for it" in rules
    assert "Wed" in rules
    assert "Mon" not in rules
    table = (tmp_path / "longer/policy.csv").read_text().splitlines()
    assert table[1].startswith("Wed,0.0,")
    told = json.loads(run("act", "longer", "--stock", 0, "--forecast", "longer.csv", "--json", cwd=tmp_path).stdout)
    assert float(table[1].split(",")[2]) == told["action"]


def test_the_morning_with_promotions_from_the_shell(tmp_path):
    rng, days = np.random.default_rng(0), np.datetime64("2024-01-01") + np.arange(7 * 30)
    promo = rng.random(len(days)) < 0.2
    units = rng.poisson(np.where(promo, 12, 4))
    lines = "".join(f"{d},{u},{p:d}\n" for d, u, p in zip(days, units, promo, strict=True))
    (tmp_path / "demand.csv").write_text("date,units,promo\n" + lines)
    shop = ["--demand", "demand.csv", "--column", "units", "--promotions", "promo", "--price", 9, "--unit-cost", 4]
    done = run("learn", "inventory", *shop, "--no-pictures", "--out", "shop", cwd=tmp_path)
    assert "### The episode that comes, from 2024-07-29 on, where nothing is promoted" in done.stdout
    assert "`ucbf act FOLDER --stock STOCK --promotions FILE`" in done.stdout
    (tmp_path / "promo.csv").write_text("date,promo\n2024-08-01,x\n2024-07-29,1\n")  # in any order, and not all days
    plain = run("act", "shop", "--stock", 0, cwd=tmp_path).stdout
    assert plain.splitlines()[2] == "note: nothing is promoted, as none was given (--promotions)"
    raised = run("act", "shop", "--stock", 0, "--promotions", "promo.csv", "--json", cwd=tmp_path)
    assert (
        json.loads(raised.stdout)["action"]
        > json.loads(run("act", "shop", "--stock", 0, "--json", cwd=tmp_path).stdout)["action"]
    )
    step = ["--date", "29.07.2024", "--stock", 0, "--order", 15, "--demand", 11]
    taken = run("observe", "shop", *step, "--promotions", "promo.csv", cwd=tmp_path)
    assert taken.stdout == "2024-07-29 (Mon): taken in\n"
    record = (tmp_path / "shop/journal.jsonl").read_text().splitlines()[1]
    assert json.loads(record)["known"] == {"promoted": [1, 0, 0, 1, 0, 0, 0]}
    assert json.loads(record)["next_state"] == 4

"""``ucbf learn`` with what is known beforehand: a forecast, promotions."""

import re

import numpy as np
import pytest

import commands
import ucbf
from ucbf import advice, data
from ucbf.advice.quantiles import SHARES, pinball
from ucbf.data import Quantiles
from ucbf.systems import Inventory

SHOP = ["--price", 9, "--unit-cost", 4, "--order-cost", 0, "--holding", 0.5, "--storage", 0, "--penalty", 0]
N = 7 * 40


def run(*arguments, cwd):
    return commands.ucbf("learn", "inventory", "--demand", "demand.csv", *SHOP, *arguments, cwd=cwd, check=False)


def dates(n=N):
    return np.datetime64("2024-01-01") + np.arange(n)


def write(path, header, *columns):
    path.write_text(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True)))


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    """Weeks whose level is drawn anew, and which a forecast knows."""
    here, rng = tmp_path_factory.mktemp("levels"), np.random.default_rng(0)
    level = np.repeat(rng.integers(4, 20, N // 7), 7)
    write(here / "demand.csv", "date,units", dates(), level + rng.integers(-1, 2, N))
    longer = np.concatenate([level, np.full(14, 9)])
    write(here / "good.csv", "day,forecast,stock", dates(N + 14), longer, longer)
    write(here / "bad.csv", "date,forecast", dates(), 24 - level)
    write(here / "quantiles.csv", "date,q10,q50,q90", dates(N + 14), longer - 3, longer, longer + 3)
    wild = level.copy()
    wild[[3, 200]] = 999
    write(here / "wild.csv", "date,forecast", dates(), wild)
    write(here / "short.csv", "date,forecast", dates(N - 3), level[:-3])
    write(here / "late.csv", "date,forecast", dates()[2:], level[2:])
    holed = np.arange(N) != 17
    write(here / "holed.csv", "date,forecast", dates()[holed], level[holed])
    return here


def test_a_forecast_of_the_users_own_is_planned_with_and_judged(levels):
    done = run("--forecast", "good.csv", "--out", "good", cwd=levels)
    assert done.returncode == 0, done.stderr
    series = data.read_series(levels / "demand.csv")
    forecast = data.read_series(levels / "good.csv", "forecast").values[:N].reshape(-1, 7)
    came = series.values.reshape(-1, 7)
    off = np.abs(came[28:] - forecast[28:]).mean()
    usual = np.abs(came[28:] - came[:28].mean(axis=0)).mean()
    said = (
        "The forecast is better than the mean of each step: "
        f"in the 12 episodes that followed the forecast was off by {off:.3g} a step, on average, and the mean of each"
    )
    assert f"{said} step of the past by {usual:.3g}." in done.stdout
    assert "without the forecast" in done.stdout
    assert "Read this first" not in done.stdout
    found = ucbf.learn(
        Inventory(capacity=42, max_demand=30),
        data.episodes(series, 7),
        changes=[{"profile": tuple(week)} for week in forecast],
        ongoing=True,
        without="blind",
    )
    blind = ucbf.learn(Inventory(capacity=42, max_demand=30), data.episodes(series, 7))
    np.testing.assert_allclose(found.rewards["blind"], blind.rewards[advice.LEARNED])
    assert found.rewards[advice.LEARNED].mean() > found.rewards["blind"].mean() + 5
    assert advice.mean_absolute_errors(found) == pytest.approx((off, usual))


def test_a_forecast_that_is_worse_than_the_mean_is_read_first(levels):
    done = run("--forecast", "bad.csv", "--out", "bad", cwd=levels)
    first = done.stdout.split("## Read this first")[1].split("##")[0]
    said = r"- It did better without the forecast: in the 12 episodes .* Learn without the forecast unless you know why"
    assert re.search(said, first)
    assert "simple rule" not in first
    assert "- The forecast is worse than the mean of each step: in the 12 episodes that followed" in first


def test_the_median_of_quantiles_is_the_forecast(levels):
    done = run("--forecast", "quantiles.csv", "--out", "median", cwd=levels)
    assert "The quantiles of the forecast (q10, q50, q90)" in done.stdout  # always as wide: they say no more
    assert "were not used, the median only: they would have lost" in done.stdout
    plain = run("--forecast", "good.csv", "--out", "good", cwd=levels)
    first, second = (each.stdout.split("## What to do")[1].split("written")[0] for each in (done, plain))
    assert first == second


@pytest.mark.parametrize(
    ("header", "shares"),
    [
        ("q025,q5,q50,q975", {0.025: "q025", 0.05: "q5", 0.5: "q50", 0.975: "q975"}),
        ("p05,P_50,p95", {0.05: "p05", 0.5: "P_50", 0.95: "p95"}),
        ("q2.5,median,q97.5", {0.025: "q2.5", 0.5: "median", 0.975: "q97.5"}),
        ("q0.005,q500,q999", {0.005: "q0.005", 0.5: "q500", 0.999: "q999"}),
    ],
)
def test_quantiles_by_their_names(tmp_path, header, shares):
    (tmp_path / "f.csv").write_text(f"date,{header}\n2024-01-01,{','.join('1' * len(shares))}\n")
    assert data.forecast_columns(tmp_path / "f.csv") == (shares[0.5], shares)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("q10,q50,q100", "column 'q100' is no quantile between 0 and 100 %; leave it out, or name the column with"),
        ("q0,q50,q90", "column 'q0' is no quantile between"),
        ("q10,p10,q90", "columns 'q10' and 'p10' are the same quantile, 10 %; leave one out, or"),
        ("q90,forecast", "column 'q90' is the only quantile, 90 %; give another, or name the column with one number"),
    ],
)
def test_no_column_of_quantiles_is_dropped_silently(tmp_path, header, message):
    path = tmp_path / "f.csv"
    path.write_text(f"date,{header}\n2024-01-01{',1' * (header.count(',') + 1)}\n")
    with pytest.raises(data.UserError, match=message):
        data.forecast_columns(path)
    assert data.forecast_columns(path, "q90" if "q90" in header else "q50").quantiles == {}


@pytest.fixture(scope="module")
def widths(tmp_path_factory):
    """Days of which a forecast knows how uncertain they are: calm weeks and wild ones, and quantiles half as wide."""
    here, rng = tmp_path_factory.mktemp("widths"), np.random.default_rng(1)
    spread = np.repeat(rng.choice([1, 8], N // 7), 7)
    demand = 20 + np.rint(spread * rng.uniform(-1, 1, N)).astype(int)
    write(here / "demand.csv", "date,units", dates(), demand)
    low, high = 20 - 0.4 * spread, 20 + 0.4 * spread  # should be 0.8, of 10 and 90 %
    write(here / "narrow.csv", "date,q10,q50,q90", dates(), low, np.full(N, 20), high)
    write(here / "ends.csv", "date,p0.1,p0.9", dates(), low, high)
    crossed = np.where(np.arange(N) == 40, low, high)
    write(
        here / "crossed.csv",
        "date,q10,q50,q90",
        dates(),
        np.where(np.arange(N) == 40, high, low),
        20 + 0 * low,
        crossed,
    )
    return here


def test_all_quantiles_are_used_where_they_predict_better(widths):
    done = run("--forecast", "narrow.csv", "--no-pool", "--out", "narrow", cwd=widths)
    assert done.returncode == 0, done.stderr
    assert "stood among them before, were used: they would have lost" in done.stdout
    assert "with the median only" in done.stdout
    assert "Proved: nothing: every episode has a law of its own" in done.stdout
    ends = run("--forecast", "ends.csv", "--no-pool", "--out", "ends", cwd=widths)  # the median lies between them
    first, second = (each.stdout.split("## What to do")[1].split("## What it")[0] for each in (done, ends))
    assert first == second
    crossed = run("--forecast", "crossed.csv", "--out", "crossed", cwd=widths)
    assert "Quantiles that cross, in 1 step, were put in order." in crossed.stdout


def test_places_and_amounts_by_hand():
    # Quantiles 10, 50 and 90 % at 8, 10 and 14. 9 is half way from 10 to 50 %; 16 is 2 beyond 14, at 0.1 a unit; 7 is
    # 1 below 8, at 0.2 a unit.
    found = Quantiles(np.array([0.1, 0.5, 0.9]), np.array([[[8.0, 10, 14], [20, 20, 20]]]), 0.5)
    np.testing.assert_allclose(found.places([[9, 20]])[0], [0.3, 0.1])
    assert found.places([[16, 20.5]])[0] == pytest.approx([1.1, 0.5])  # the others are half a unit apart
    assert found.places([[7, 21.0]])[0] == pytest.approx([-0.1, 0.9])
    np.testing.assert_allclose(found.amounts(0, 0, np.array([0.3, 1.1, -0.1])), [9, 16, 7])
    with pytest.raises(ValueError, match="at least two that increase"):
        Quantiles(np.array([0.5]), np.zeros((1, 1, 1)))
    with pytest.raises(ValueError, match="none below the one before"):
        Quantiles(np.array([0.1, 0.9]), np.array([[[3.0, 2.0]]]))


def test_pinball_by_hand():
    # 19 quantiles at 10, 13 came: the mean of 3 q is 1.5; where 7 came, of 3 (1 - q), the same.
    assert pinball(np.full(19, 10.0), 13) == pytest.approx(1.5)
    assert pinball(np.full(19, 10.0), 7) == pytest.approx(1.5)
    assert pinball(np.linspace(0.05, 0.95, 19), 0.0) == pytest.approx(np.mean([(1 - q) * q for q in SHARES]))


def test_quantiles_that_know_the_spread_are_corrected_planned_with_and_judged():
    rng, K = np.random.default_rng(0), 60
    spread = np.repeat(rng.choice([1, 6], K), 7).reshape(K, 7)
    demand = 12 + np.rint(spread * rng.uniform(-1, 1, (K, 7)))
    weeks = data.episodes(data.Series(demand.ravel(), None, "units", "memory"), 7)
    shares = np.array([0.25, 0.75])
    told = Quantiles(shares, 12 + np.stack([-0.2 * spread, 0.2 * spread], axis=2), 0.01)  # should be 0.5 either way
    changes = [{"profile": [12.0] * 7}] * K
    shop = Inventory(capacity=30, max_demand=20, price=9, unit_cost=4, holding=2)
    found = ucbf.learn(shop, weeks, changes=changes, ongoing=True, quantiles=told, pooled=True)
    assert found.quantile_scores.are_better
    for k in (int(np.flatnonzero(spread[:, 0] == 1)[-1]), int(np.flatnonzero(spread[:, 0] == 6)[-1])):
        law = found.planner.episode(k).amount_distribution
        occurs = law.values[law.pmf[0] > 0]
        assert (occurs.min(), occurs.max()) == (12 - spread[k, 0], 12 + spread[k, 0])
    rows = {row["policy"]: row for row in found.comparison()}
    assert "with the median only" in rows
    assert found.certificate is None
    # The law of a wild week is every distance of the past from 12, as a multiple of the spread of its own week.
    expected = np.bincount(np.rint(12 + 6 * (demand - 12) / spread).astype(int).ravel(), minlength=21) / demand.size
    inside = (law.values >= 0) & (law.values <= 20)
    np.testing.assert_allclose(law.pmf[0, inside], expected, atol=1e-12)
    plain = ucbf.learn(shop, weeks, changes=changes, ongoing=True)
    assert plain.quantile_scores is None


def test_forecasts_beyond_the_range_are_clipped_and_counted(levels):
    done = run("--forecast", "wild.csv", "--max-demand", 30, "--out", "wild", cwd=levels)
    assert "2 forecasts outside 0..30 clipped to it." in done.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["short.csv"], "the forecasts end at 2024-10-03 00:00:00, the demand at 2024-10-06 00:00:00; the first "
                        "without is 2024-10-04 00:00:00: give a forecast for every step of the demand"),
        (["late.csv"], "no forecast for 2024-01-01 00:00:00, where the first episode begins; give a forecast for"),
        (["holed.csv"], "2024-01-18 00:00:00 is missing before 2024-01-19 00:00:00; fill it in\n"),
        (["none.csv"], "there is no file 'none.csv'"),
        (["good.csv", "--forecast-column", "guess"], "good.csv has no column 'guess'; it has 'day', 'forecast'"),
    ],
)  # fmt: skip
def test_a_forecast_that_does_not_cover_the_series_is_refused(levels, given, message):
    done = run("--forecast", *given, cwd=levels)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_column_without_a_forecast_is_refused(levels):
    done = run("--forecast-column", "units", cwd=levels)
    said = "ucbf: forecast_column is 'units' without a forecast; give its file (--forecast)\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_the_uplift_of_promotions_by_hand():
    # Two steps, five weeks, four to learn from. Means without promotions: (2 + 4 + 3) / 3 = 3 and (10 + 10) / 2 = 10.
    # Promoted: 9 where 3 is usual, 20 and 25 where 10 is: 54 / 23 from three steps; 1 + (54/23 - 1) 3/8.
    amounts = np.array([[2, 10], [4, 20], [9, 10], [3, 25], [5, 5.0]])
    promoted = np.array([[0, 0], [0, 1], [1, 0], [0, 1], [1, 1]], bool)
    weeks = data.episodes(data.Series(amounts.ravel(), None, "u", "m"), 2)
    found = advice.promotions(weeks, promoted, train=0.8)
    uplift = 1 + (54 / 23 - 1) * 3 / 8
    assert (found.steps, found.seen, found.uplift) == (3, pytest.approx(54 / 23), pytest.approx(uplift))
    np.testing.assert_allclose(found.profiles[:4], np.where(promoted[:4], uplift, 1) * [3, 10])
    np.testing.assert_allclose(found.profiles[4], [3 * uplift, 10 * uplift])


def test_a_step_that_is_always_promoted_gets_its_own_mean():
    # Step 1 is always promoted: the uplift, from step 0, is 1 + (6/2 - 1) 1/6 = 4/3; its mean stays what it is, 12.
    amounts, promoted = np.array([[2, 12], [2, 12], [6, 12.0]]), np.array([[0, 1], [0, 1], [1, 1]], bool)
    weeks = data.episodes(data.Series(amounts.ravel(), None, "u", "m"), 2)
    found = advice.promotions(weeks, promoted, train=1)
    assert found.uplift == pytest.approx(4 / 3)
    np.testing.assert_allclose(found.profiles[:, 1], 12)


def test_promotions_are_learned_again_from_the_whole_series(tmp_path):
    # A promotion does nothing in the first part of the series, which is judged, and trebles the demand after it.
    marks, later = np.arange(N) % 5 == 0, np.arange(N) >= 0.7 * N
    units = np.where(marks & later, 30, 10) + np.arange(N) % 2
    write(tmp_path / "demand.csv", "date,units,promo", dates(), units, marks * 1)
    done = run("--column", "units", "--promotions", "promo", "--no-pictures", "--unit", 1, cwd=tmp_path)
    assert "The policy that was judged had 1, from" in done.stdout
    # 56 promoted steps, 17 of them later: (39 * 10.5 + 17 * 30.5) / (56 * 10.5) = 1.58, of which 56 / 61 are believed
    seen = (units[marks].sum()) / sum(units[~marks & (np.arange(N) % 7 == h)].mean() for h in np.flatnonzero(marks) % 7)
    assert f"{seen:.3g} was seen in 56 steps" in done.stdout
    assert f"multiplies the demand by {1 + (seen - 1) * 56 / 61:.3g}" in done.stdout
    episodes = data.episodes(data.read_series(tmp_path / "demand.csv", "units"), 7)
    plain, lifted = ([{"profile": (x,) * 7}] * 40 for x in (10.0, 20.0))
    shop = Inventory(capacity=42, max_demand=31)
    found = ucbf.learn(shop, episodes, changes=plain, relearned=lifted, ongoing=True)
    same, final = (ucbf.learn(shop, episodes, changes=each, ongoing=True) for each in (plain, lifted))
    np.testing.assert_array_equal(found.rewards["learned"], same.rewards["learned"])
    np.testing.assert_array_equal(found.policy.actions, final.policy.actions)
    with pytest.raises(ValueError, match="relearned has 3 entries"):
        ucbf.learn(shop, episodes, changes=plain, relearned=plain[:3])


def test_a_column_that_is_the_other_way_round_is_asked_about_first(tmp_path):
    demand = np.random.default_rng(0).poisson(6, N)
    sold_out = demand > 9
    for name, cells in (("other", sold_out * 1), ("blank", np.where(np.arange(N) == 5, "", (~sold_out) * 1))):
        write(tmp_path / f"{name}.csv", "date,units,in_stock", dates(), np.minimum(demand, 9), cells)
    flags = ["--column", "units", "--in-stock", "in_stock", "--no-pictures", *SHOP]
    done = commands.ucbf("learn", "inventory", "--demand", "other.csv", *flags, cwd=tmp_path)
    first = done.stdout.split("## Read this first\n\n- ")[1]
    assert first.startswith(
        f"{1 - sold_out.mean():.0%} of the steps were sold out, by column 'in_stock': is it the other"
    )
    refused = commands.ucbf("learn", "inventory", "--demand", "blank.csv", *flags, cwd=tmp_path, check=False)
    assert "row 7, column 'in_stock': the cell is empty, and others say 0 or no" in refused.stderr


def test_marks_are_read_in_many_ways_and_gaps_have_none(tmp_path):
    days = dates(6)[[0, 1, 2, 4, 5]]
    for i, cells in enumerate((["1", "", "1", "0", "0"], ["x", "", "X", "", ""], ["True", "no", "yes", "false", "n"])):
        write(tmp_path / f"{i}.csv", "date,units,promo", days, range(5), cells)
        series = data.read_series(tmp_path / f"{i}.csv", "units", gaps="zero")
        assert data.read_marks(tmp_path / f"{i}.csv", "promo", series).tolist() == [True, False, True, *[False] * 3]
    write(tmp_path / "bad.csv", "date,units,promo", days, range(5), ["0", "0", "maybe", "1", "1"])
    series = data.read_series(tmp_path / "bad.csv", "units", gaps="zero")
    with pytest.raises(data.UserError, match=r"bad.csv, row 4, column 'promo': 'maybe' is neither yes nor no; write 1"):
        data.read_marks(tmp_path / "bad.csv", "promo", series)


@pytest.fixture(scope="module")
def promoted(tmp_path_factory):
    here, rng = tmp_path_factory.mktemp("promoted"), np.random.default_rng(0)
    marks = rng.random(N) < 0.2
    write(
        here / "demand.csv",
        "date,units,promo,never",
        dates(),
        rng.poisson(np.where(marks, 15, 5)),
        marks * 1,
        0 * marks,
    )
    write(here / "forecast.csv", "date,forecast", dates(), np.full(N, 5))
    return here


def test_promotions_are_planned_for(promoted):
    done = run("--column", "units", "--promotions", "promo", cwd=promoted)
    assert done.returncode == 0, done.stderr
    assert "A promotion multiplies the demand by 2." in done.stdout
    assert "Read this first" not in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("| without promotions"))
    assert float(row.split("|")[3].split()[0]) > 10  # what ignoring them costs a week


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--promotions", "never"], "in the 28 episodes to learn from no step is promoted; the uplift"),
        (["--promotions", "sale"], "demand.csv has no column 'sale'"),
        (["--promotions", "units"], "column 'units': '9' is neither yes nor no"),
        (["--promotions", "promo", "--forecast", "forecast.csv"], "and a forecast (forecast.csv) are both given"),
    ],
)
def test_promotions_that_say_nothing_are_refused(promoted, given, message):
    done = run("--column", "units", *given, cwd=promoted)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_what_is_given_without_dates_is_for_the_rows_of_the_file_not_of_the_first_whole_week(tmp_path):
    from ucbf.cli.matching import matched
    from ucbf.errors import UserError

    n = 5 + 7 * 4  # from a Wednesday on: the first episode begins with the sixth row
    write(tmp_path / "demand.csv", "date,units", np.datetime64("2024-01-03") + np.arange(n), np.arange(n) % 4)
    episodes = data.episodes(data.read_series(tmp_path / "demand.csv"), 7)
    rows = data.read_series(np.arange(float(n)))
    assert matched(rows, episodes, "forecast", "demand").ravel().tolist() == list(range(5, n))
    longer = data.read_series(np.arange(n + 2.0))
    with pytest.raises(UserError, match="35 rows without dates, and the demand has 33 steps with dates; give the fore"):
        matched(longer, episodes, "forecast", "demand")

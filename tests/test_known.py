"""``ucbf learn`` with what is known beforehand: a forecast, promotions."""

import numpy as np
import pytest

import commands
import ucbf
from ucbf import advice, data
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
    write(here / "quantiles.csv", "date,q10,q50,q90", dates(), level - 3, level, level + 3)
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
        f"In the 12 episodes that followed the forecast was off by {off:.3g} a step, on average, and the mean of each"
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
    assert "- The forecast is worse than the mean of each step: in the 12 episodes that followed" in first


def test_the_median_of_quantiles_is_the_forecast(levels):
    done = run("--forecast", "quantiles.csv", "--out", "median", cwd=levels)
    assert "The forecast is the median, column 'q50'; other quantiles were not used." in done.stdout
    plain = run("--forecast", "good.csv", "--out", "good", cwd=levels)
    first, second = (each.stdout.split("## What to do")[1].split("written")[0] for each in (done, plain))
    assert first == second


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

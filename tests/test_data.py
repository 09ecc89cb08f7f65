"""Series from files: what is read, how it is cut, and what every bad file is told."""

from datetime import datetime

import numpy as np
import pandas
import pytest

import ucbf
from ucbf import data
from ucbf.errors import UserError


def write(tmp_path, text, name="demand.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


DAYS = "\n".join(f"2024-01-{d:02d},{d}" for d in range(1, 29))


def test_a_file_with_dates_is_read_and_cut_into_weeks(tmp_path):
    series = data.read_series(write(tmp_path, f"date,units\n{DAYS}\n"), least=0)
    assert (len(series), series.name, series.spacing, series.times[0]) == (28, "units", "day", datetime(2024, 1, 1))
    weeks = data.episodes(series, 7)
    assert weeks.names == ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    np.testing.assert_array_equal(weeks.values[1], range(8, 15))
    first, rest = weeks.split(0.5)
    assert (len(first), len(rest), rest.starts[0]) == (2, 2, "2024-01-15 00:00:00")
    np.testing.assert_array_equal(weeks.profile, weeks.values.mean(axis=0))


def test_weeks_begin_on_monday(tmp_path):
    series = data.read_series(write(tmp_path, f"date,units\n{DAYS}\n")).part(2, 28)
    weeks = data.episodes(series, 7)
    assert (weeks.starts[0], len(weeks), weeks.dropped) == ("2024-01-08 00:00:00", 3, 5)


@pytest.mark.parametrize("line", ["date;units;price", "date\tunits\tprice"])
def test_semicolons_and_tabs_separate_too(tmp_path, line):
    mark = line[4]
    text = line + "\n" + "\n".join(mark.join(row) for row in [("01.02.2024", "3", "9"), ("02.02.2024", "4", "9")])
    series = data.read_series(write(tmp_path, text), "units")
    assert series.values.tolist() == [3, 4]
    assert series.times[1] == datetime(2024, 2, 2)


def test_hours_months_years_and_rows_without_dates(tmp_path):
    hours = "\n".join(f"2024-03-01 {h:02d}:00,{h}" for h in range(24))
    series = data.read_series(write(tmp_path, f"time,kw\n{hours}"))
    assert series.spacing == "hour"
    assert data.episodes(series, 24, least=1).names[13] == "13:00"
    months = "\n".join(f"2020-{m:02d},{m}" for m in range(1, 13))
    assert data.episodes(data.read_series(write(tmp_path, f"month,q\n{months}")), 12, least=1).names[0] == "Jan"
    nile = data.read_series(write(tmp_path, "year,volume\n1871,1120\n1872,1160\n1873,963\n"))
    assert (nile.spacing, nile.name) == ("year", "volume")
    plain = data.read_series(write(tmp_path, "units\n3\n4\n5\n"))
    assert (plain.times, plain.values.tolist()) == (None, [3, 4, 5])
    assert data.read_series(np.array([1.0, 2.0])).values.tolist() == [1, 2]


def test_parquet_and_tables(tmp_path):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"date": [datetime(2024, 1, 1), datetime(2024, 1, 2)], "units": [3, 4]})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert data.read_series(tmp_path / "x.parquet").values.tolist() == [3, 4]

    frame = pandas.DataFrame(
        {"units": [1.0, 2.0]}, index=pandas.date_range("2024-01-01", periods=2, tz="Europe/Berlin")
    )
    assert data.read_series(frame).spacing == data.read_series(frame["units"]).spacing == "day"
    assert data.read_series(frame).times[0] == datetime(2024, 1, 1)  # the local clock
    frame.iloc[1, 0] = None
    with pytest.raises(UserError, match="the table, row 1, column 'units': no value"):
        data.read_series(frame)


def test_ends_of_months_leap_days_and_time_zones(tmp_path):
    ends = write(tmp_path, "month,q\n2024-01-31,1\n2024-02-29,2\n2024-03-31,3\n")
    assert data.read_series(ends).spacing == "month"
    years = write(tmp_path, "date,q\n2020-02-29,1\n2021-02-28,2\n2022-02-28,3\n")
    assert data.read_series(years).spacing == "year"
    zoned = write(tmp_path, "time,q\n2024-03-31T01:00:00+01:00,1\n2024-03-31T03:00:00+02:00,2\n")
    assert data.read_series(zoned).times.tolist() == [datetime(2024, 3, 31, h) for h in (1, 2, 3)]


def test_rows_are_counted_as_an_editor_counts_them(tmp_path):
    path = write(tmp_path, 'note,units\n"two\nlines",3\nplain,four\n')
    with pytest.raises(UserError, match="row 4, column 'units': 'four' is not a number"):
        data.read_series(path, "units")


def test_days_that_are_not_written_down_may_mean_zero(tmp_path):
    path = write(tmp_path, "date,units\n2024-01-01,3\n2024-01-02,1\n2024-01-03,2\n2024-01-06,4\n")
    with pytest.raises(UserError, match=r"demand.csv, row 5, column 'date': 2024-01-04 00:00:00 is missing before"):
        data.read_series(path)
    assert data.read_series(path, gaps="zero").values.tolist() == [3, 1, 2, 0, 0, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date,units\n2024-01-01,3\n2024-01-02,\n", "row 3, column 'units': no value"),
        ("date,units\n2024-01-01,3\n2024-01-02,NA\n", "row 3, column 'units': no value"),
        ("date,units\n2024-01-01,3\n2024-01-02,-4\n", "row 3, column 'units': -4 is below 0"),
        ("date,units\n2024-01-01,3\n2024-01-02,four\n", "row 3, column 'units': 'four' is not a number"),
        (
            "date;units\n2024-01-01;3,5\n2024-01-02;4.5\n",
            "row 2, column 'units': '3,5' is not a number; write numbers with a decimal point",
        ),
        ("date,units\n2024-01-01,3\n02/01/2024,4\n", "row 3, column 'date': '02/01/2024' is not a date like the first"),
        ("date,units\n01/02/2024,3\n02/02/2024,4\n", "row 2, column 'date': '01/02/2024' may mean %d/%m/%Y or %m/%d"),
        ("date,units\n2024-01-02,3\n2024-01-01,4\n", "row 3, column 'date': 2024-01-01 00:00:00: before the row above"),
        ("date,units\n01-02-2024,3\n02-02-2024,4\n", "row 2, column 'date': '01-02-2024' may mean %d-%m-%Y or %m-%d"),
        ("date,units\n2024-01-01,3\n2024-01-01,4\n", "row 3, column 'date': 2024-01-01 00:00:00: the same time again"),
        ("date,units\n2024-01-01,3\n2024-01-02,4,5\n", "row 3: 3 cells, but the header has 2"),
        ("date,units\n2024-01-01,3\n", "column 'units': 1 rows; at least 2 are needed"),
        (
            "date,units\n2024-01-01,1\n2024-01-02,-2e50\n",
            "row 3, column 'units': -2e\\+50 is beyond 1e\\+50, the largest",
        ),
        ("date,units\n2024-01-01,inf\n2024-01-02,1\n", "row 2, column 'units': inf is not a finite number"),
        ("date,units\n", "row 1: a header and no rows below it"),
        ("2024-01-01,3\n2024-01-02,4\n", "row 1: values instead of the names"),
        ("date,units,units\n2024-01-01,3,4\n2024-01-02,4,4\n", "row 1: two columns are named 'units'"),
        ("date,units\nw1 2024,3\nw2 2024,4\n", "row 2, column 'date': 'w1 2024' is not a date"),
        ("when,units\n1st of May,3\n2nd of May,4\n", "row 2, column 'when': '1st of May' is not a date that is"),
        ("3\n4\n", "row 1: numbers instead of the names of columns"),
        ("", "row 1: empty"),
        ("date,store,units\n2024-01-01,7,n/a\n2024-01-02,7,3\n", "which column\\? .* are 'store', 'units'"),
        ("date,store,units\n2024-01-01,7,\n2024-01-02,7,3\n", "which column\\? .* are 'store', 'units'"),
        ("date,store,units\n2024-01-01,A,nan\n2024-01-02,B,3\n", "row 2, column 'units': no value"),
        ("date,store,units\n2024-01-01,A,nan\n2024-01-02,B,-\n", "no column holds numbers; there are 'store', 'units'"),
        ("date;use;count\n2024-01-01;1,5;1\n2024-01-02;2,5;2\n", "which column\\? .* are 'use', 'count'"),
        ("date;use;count\n2024-01-01;5%;1\n2024-01-02;-;2\n", "which column\\? .* are 'use', 'count'"),
        ("date;use;count\n2024-01-01;;1\n2024-01-02;1 000;2\n", "which column\\? .* are 'use', 'count'"),
        ("date;use;shop\n2024-01-01;1,5;A\n2024-01-02;2,5e1;B\n", "row 2, column 'use': '1,5' is not a number; write"),
        ("a,b\n1,2\n3,4\n", "which column\\? Those with numbers are 'a', 'b'"),
        ("date,name,where\n2024-01-01,x,y\n2024-01-02,y,z\n", "no column holds numbers; there are 'name', 'where'"),
        ("date,units\n2024-01-01 00:00,3\n2024-01-01 00:07,4\n", "rows are 0:07:00 apart"),
    ],
)
def test_a_bad_file_is_told_where_and_why(tmp_path, text, message):
    with pytest.raises(UserError, match=f"demand.csv.*{message}"):
        data.read_series(write(tmp_path, text), least=0)


def test_other_ways_to_write_a_date(tmp_path):
    for text in (
        "05-Jan-2024,1\n06-Jan-2024,2",
        '"January 5, 2024",1\n"January 6, 2024",2',
        "2024-01-05 00:00:00.000,1\n2024-01-06,2",
    ):
        series = data.read_series(write(tmp_path, f"date,units\n{text}\n"))
        assert series.times[0] == datetime(2024, 1, 5), text
        assert series.spacing == "day"


def test_wrong_columns_missing_files_and_too_few_rows(tmp_path):
    path = write(tmp_path, f"date,units\n{DAYS}\n")
    with pytest.raises(UserError, match="has no column 'unit'; it has 'date', 'units'"):
        data.read_series(path, "unit")
    with pytest.raises(UserError, match="has no column 'when'"):
        data.read_series(path, time="when")
    with pytest.raises(UserError, match="there is no file"):
        data.read_series(tmp_path / "none.csv")
    with pytest.raises(UserError, match="28 rows make 1 whole episode of 24 steps; at least 2 are needed"):
        data.episodes(data.read_series(path), 24)
    broken = tmp_path / "x.parquet"
    broken.write_bytes(b"PAR1 not really")
    with pytest.raises(UserError, match="is not a Parquet file"):
        data.read_series(broken)


def test_independence_is_accepted_where_it_holds_and_refused_where_not():
    rng = np.random.default_rng(0)
    profile = np.array([5, 9, 2, 7, 7, 20, 15])
    free = profile + rng.normal(0, 2, (60, 7))
    found = data.independence(free)
    assert found.ok
    assert "nothing speaks against independence" in str(found)
    left = np.zeros(420)
    for t in range(1, 420):
        left[t] = 0.5 * left[t - 1] + rng.normal()
    found = data.independence(profile + left.reshape(60, 7))
    assert not found.ok
    assert found.lag_one == pytest.approx(0.5, abs=0.1)
    assert "NOT independent" in str(found)


def test_kinds_of_days_are_not_taken_for_dependence():
    rng = np.random.default_rng(0)
    kinds = (["weekday"] * 5 + ["weekend"] * 2) * 8
    days = rng.normal(0, 1, (56, 12)) + 5 * (np.array(kinds) == "weekend")[:, None]
    assert not data.independence(days).ok
    assert data.independence(days, kinds).ok


def test_one_episode_tells_nothing_of_independence():
    found = data.independence(np.arange(7.0)[None])
    assert found.ok is None
    assert "cannot be tested" in str(found)


@pytest.mark.parametrize("shape", [(30, 7), (3, 12), (2, 5)])
def test_independent_series_are_seldom_accused(shape):
    accused = sum(not data.independence(np.random.default_rng(s).gamma(2, size=shape)).ok for s in range(40))
    assert accused <= 2  # each with a chance of 1 %


def test_replay_by_hand():
    # Order 2 whenever empty. Day 1: demand 1 of 2 -> 1 left. Day 2: no order, demand 2 of 1 -> empty, one lost.
    shop = ucbf.systems.Inventory(capacity=2, max_demand=3, horizon=2, price=9, unit_cost=4, holding=1, salvage=4)
    policy = shop.policy(np.array([[2, 0, 0], [2, 0, 0]]))
    seen = ucbf.replay(policy, shop.disturbances([[1, 2], [3, 0]]))
    assert seen.states.tolist() == [[0, 1, 0], [0, 0, 2]]
    assert seen.actions.tolist() == [[2, 0], [2, 2]]
    # First: -8 + 9 - 1, then + 9. Second: -8 + 18, -8 - 2 and the two left are worth 8.
    assert seen.reward.tolist() == [9.0, 10.0 - 10.0 + 8.0]
    # Carried over, what an episode found is charged to it: the same days again begin with 2 worth 8.
    again = ucbf.replay(policy, shop.disturbances([[3, 0], [1, 2]]), start=0)
    assert again.states.tolist() == [[0, 0, 2], [2, 1, 0]]
    assert again.reward[1] == -8 + (9 - 1) + 9
    apart = ucbf.replay(policy, shop.disturbances([[3, 0], [1, 2]]), start=0, carry=False)
    assert apart.states[1].tolist() == [0, 1, 0]


def test_replay_teaches_an_agent_what_observing_does():
    shop = ucbf.systems.Inventory(horizon=3)
    w = shop.disturbances(np.random.default_rng(1).integers(0, 15, (30, 3)))
    learner, books = ucbf.UCBVIf(shop.system), ucbf.UCBVIf(shop.system)
    ucbf.replay(learner, w)
    books.warm_start(w)
    np.testing.assert_array_equal(learner.law.pmf, books.law.pmf)
    hidden = ucbf.UCBVIf(shop.system)
    ucbf.replay(hidden, w, censored=True)
    assert hidden.learner.law.below.sum() > 0
    with pytest.raises(TypeError, match="give an agent, or a ucbf.Policy"):
        ucbf.replay(np.zeros((3, 21), int), w)
    with pytest.raises(ValueError, match="disturbances has shape"):
        ucbf.replay(learner, w[:, :2])


def test_a_part_knows_where_in_the_series_it_stands():
    episodes = data.episodes(data.Series(np.arange(21.0), None, "demand", "memory"), horizon=7)
    rest = episodes.split(0.34)[1]
    assert rest.begin == 7
    assert rest.part(1, 2).begin == 14
    assert rest.part(1, 2).values.tolist() == [[14, 15, 16, 17, 18, 19, 20]]
    assert rest.part(1, 2).place(0, 3) == episodes.place(2, 3) == episodes.series.place(17)


def test_the_only_column_with_numbers_is_taken(tmp_path):
    (tmp_path / "sales.csv").write_text("shop,demand\nMain Street,4\nMain Street,6\n")
    assert data.read_series(tmp_path / "sales.csv").values.tolist() == [4, 6]


def test_a_second_column_of_dates_is_not_taken_for_numbers(tmp_path):
    text = "begin,end,units\n2024-01-01,2024-01-02,3\n2024-01-02,2024-01-03,4\n"
    assert data.read_series(write(tmp_path, text)).name == "units"


@pytest.mark.parametrize(
    ("name", "cell"), [("month", "202401"), ("Date", "240101"), ("day", "45292"), ("time", "1704067200")]
)
def test_numbers_under_the_name_of_a_date_are_not_passed_over(tmp_path, name, cell):
    path = write(tmp_path, f"{name},units\n{cell},3\n{int(cell) + 5},4\n")
    with pytest.raises(UserError, match=f"row 2, column '{name}': '{cell}' is not a date that is understood; say how"):
        data.read_series(path, "units")


def test_a_column_that_counts_is_no_date_and_a_format_makes_numbers_dates(tmp_path):
    counted = data.read_series(write(tmp_path, "day,units\n1,3\n2,4\n"), "units")
    assert (counted.times, counted.values.tolist()) == (None, [3, 4])
    months = write(tmp_path, "month,units\n202401,3\n202402,4\n")
    assert data.read_series(months, date_format="%Y%m").times[1] == datetime(2024, 2, 1)


def test_the_only_column_is_not_said_to_hold_dates(tmp_path):
    with pytest.raises(UserError, match="row 2, column 'units': '3 kg' is not a number"):
        data.read_series(write(tmp_path, "units\n3 kg\n4 kg\n"))


def test_a_list_is_a_series():
    assert data.read_series([1.0, 2.0]).values.tolist() == [1, 2]


def test_a_series_keeps_its_numbers_when_their_source_changes():
    array, frame = np.array([1.0, 2.0]), pandas.DataFrame({"x": [1.0, 2.0]})
    series = [data.read_series(source) for source in (array, frame, frame["x"])]
    array[:] = 9
    frame.loc[:, "x"] = 9.0
    assert [each.values.tolist() for each in series] == [[1, 2]] * 3


def test_of_a_long_series_the_last_steps_are_tested(monkeypatch):
    rng = np.random.default_rng(0)
    table = np.concatenate([np.repeat(rng.normal(size=(300, 1)), 5, axis=1), rng.normal(size=(60, 5))])
    assert not data.independence(table).ok
    monkeypatch.setattr("ucbf.data.dependence.MOST_TESTED", 300)
    table[-30:] += 5  # of another kind
    found = data.independence(table, ["a"] * 330 + ["b"] * 30)
    assert (found.ok, found.n) == (True, 300)

"""Times of series: local clocks, time zones, daylight saving, gaps."""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas
import pytest

from ucbf import data
from ucbf.cli.known import with_prices
from ucbf.errors import UserError

BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = datetime(2024, 3, 31), datetime(2024, 10, 27)  # days of 23 and of 25 hours


def write(tmp_path, lines, name="demand.csv"):
    path = tmp_path / name
    path.write_text("\n".join(["time,units", *lines]) + "\n", encoding="utf-8")
    return path


def hours(day, n, style, step=60):
    """n steps of a clock in Berlin from midnight on, written as local time with offset, without, or as UTC."""
    begin = day.replace(tzinfo=BERLIN).astimezone(ZoneInfo("UTC"))
    forms = {"offset": "%Y-%m-%dT%H:%M:%S%z", "naive": "%Y-%m-%d %H:%M", "utc": "%Y-%m-%dT%H:%M:%SZ"}
    times = [begin + timedelta(minutes=i * step) for i in range(n)]
    return [(t if style == "utc" else t.astimezone(BERLIN)).strftime(forms[style]) for t in times]


STYLES = [("offset", None), ("naive", "Europe/Berlin"), ("utc", "Europe/Berlin")]


def test_a_monday_is_the_monday_of_the_clock_it_was_written_by(tmp_path):
    days = [f"2023-01-{d:02d}T00:00:00+01:00,{9 if d % 7 == 2 else 0}" for d in range(2, 30)]  # the 2nd is a Monday
    weeks = data.episodes(data.read_series(write(tmp_path, days)), 7)
    assert weeks.starts[0] == "2023-01-02 00:00:00"
    assert weeks.profile.tolist() == [9, 0, 0, 0, 0, 0, 0]
    assert weeks.series.offsets.tolist() == [3600] * 28


def test_days_follow_the_clock_when_it_is_set(tmp_path):
    days = ["2024-03-30T00:00+01:00,1", "2024-03-31T00:00+01:00,2", "2024-04-01T00:00+02:00,3"]
    series = data.read_series(write(tmp_path, days))
    assert (series.spacing, series.values.tolist(), series.notes) == ("day", [1, 2, 3], ())
    at_23 = ["2024-03-29T23:00Z,1", "2024-03-30T23:00Z,2", "2024-03-31T22:00Z,3"]
    series = data.read_series(write(tmp_path, at_23), time_zone="Europe/Berlin")
    assert series.times.tolist() == [datetime(2024, 3, 30), datetime(2024, 3, 31), datetime(2024, 4, 1)]


@pytest.mark.parametrize(
    "dates", [["2024-01-01", "2024-01-02"], ["2024-01-01", "2024-02-01"], ["2024-01-01", "2025-01-01"]]
)
def test_days_months_and_years_are_not_moved_to_the_day_before(tmp_path, dates):
    path = write(tmp_path, [f"{date}T00:00Z,1" for date in dates])
    assert data.read_series(path).times[0] == datetime(2024, 1, 1)
    assert data.read_series(path, time_zone="UTC").times[0] == datetime(2024, 1, 1)
    with pytest.raises(
        UserError,
        match=r"row 2, .*: all rows are at midnight, which is 2023-12-31 19:00:00 in America/New_Y.*;"
        " leave out the time zone",
    ):
        data.read_series(path, time_zone="America/New_York")


@pytest.mark.parametrize(("style", "zone"), STYLES)
def test_an_hour_that_the_clock_skips_is_the_mean_of_its_neighbours(tmp_path, style, zone):
    lines = [f"{t},{2 * i}" for i, t in enumerate(hours(SPRING, 47, style))]
    series = data.read_series(write(tmp_path, lines), time_zone=zone)
    assert series.times.tolist() == [SPRING + timedelta(hours=i) for i in range(48)]
    # 00:00 is 0, 01:00 is 2, 03:00 is 4; 02:00 is not there
    assert series.values[:5].tolist() == [0, 2, 3, 4, 6]
    assert series.notes == (
        "The clock was set forward once, on 2024-03-31: the hour that it skips is taken as the mean of its two "
        "neighbours.",
    )
    assert [series.place(i) for i in (1, 2, 3)] == [
        "row 3 (2024-03-31 01:00:00)",
        "2024-03-31 02:00:00",
        "row 4 (2024-03-31 03:00:00)",
    ]
    assert data.episodes(series, 24).values[1].tolist() == [2.0 * i for i in range(23, 47)]


@pytest.mark.parametrize(("style", "zone"), STYLES)
def test_an_hour_that_comes_twice_is_the_mean_of_its_values(tmp_path, style, zone):
    lines = [f"{t},{2 * i}" for i, t in enumerate(hours(AUTUMN, 49, style))]
    series = data.read_series(write(tmp_path, lines), time_zone=zone)
    assert series.times.tolist() == [AUTUMN + timedelta(hours=i) for i in range(48)]
    # 02:00 is 4 and then 6
    assert series.values[:5].tolist() == [0, 2, 5, 8, 10]
    assert series.notes == (
        "The clock was set back once, on 2024-10-27: the hour that comes twice is taken as the mean of its values.",
    )
    assert [series.place(i) for i in (2, 3)] == ["row 4 (2024-10-27 02:00:00)", "row 6 (2024-10-27 03:00:00)"]


@pytest.mark.parametrize(("style", "zone"), STYLES)
def test_half_hours_are_set_as_hours_are(tmp_path, style, zone):
    spring = [f"{t},{i / 2}" for i, t in enumerate(hours(SPRING, 46, style, 30))]
    series = data.read_series(write(tmp_path, spring), time_zone=zone)
    # 01:00 is 1, 01:30 is 1.5, 03:00 is 2: both of the half-hours between are 1.75
    assert series.values[2:7].tolist() == [1, 1.5, 1.75, 1.75, 2]
    autumn = [f"{t},{i / 2}" for i, t in enumerate(hours(AUTUMN, 50, style, 30))]
    series = data.read_series(write(tmp_path, autumn), time_zone=zone)
    # 02:00 is 2 and 3, 02:30 is 2.5 and 3.5
    assert series.values[3:7].tolist() == [1.5, 2.5, 3, 4]
    assert len(series) == 48


@pytest.mark.parametrize("step", [60, 30])
@pytest.mark.parametrize("gaps", ["refuse", "zero"])
def test_an_hour_that_comes_twice_may_be_written_once_where_rows_have_no_offsets(tmp_path, step, gaps):
    times = [AUTUMN + timedelta(minutes=step * i) for i in range(48)]
    path = write(tmp_path, [f"{t:%Y-%m-%d %H:%M},{i}" for i, t in enumerate(times)])
    series = data.read_series(path, gaps=gaps, time_zone="Europe/Berlin")
    assert series.times.tolist() == times
    assert series.values.tolist() == list(range(48))
    assert series.notes == ()
    assert series.place(40).startswith("row 42 (")
    assert series.offsets[[2 * 60 // step, 3 * 60 // step]].tolist() == [7200, 3600]


def test_gaps_around_an_hour_that_is_written_once_are_gaps(tmp_path):
    times = [AUTUMN + timedelta(hours=i) for i in range(24)]
    lines = [f"{t:%Y-%m-%d %H:%M},8" for t in times if t.hour not in (3, 4)]
    path = write(tmp_path, lines)
    with pytest.raises(UserError, match=r"row 5, .*: 2024-10-27 03:00:00\+01:00 is missing before .* 05:00:00\+01:00;"):
        data.read_series(path, time_zone="Europe/Berlin")
    series = data.read_series(path, gaps="zero", time_zone="Europe/Berlin")
    assert series.values[:7].tolist() == [8, 8, 8, 0, 0, 8, 8]
    assert series.notes == ("2 hours are missing and count as 0, the first 2024-10-27 03:00:00.",)
    later = write(tmp_path, [f"{t:%Y-%m-%d %H:%M},8" for t in times if t.hour != 10])
    with pytest.raises(UserError, match=r"row 12, .*: 2024-10-27 10:00:00\+01:00 is missing before"):
        data.read_series(later, time_zone="Europe/Berlin")


def test_whole_numbers_stay_whole(tmp_path):
    lines = [f"{t},{i}" for i, t in enumerate(hours(SPRING, 23, "offset"))]
    assert data.read_series(write(tmp_path, lines)).values[1:4].tolist() == [1, 2, 2]  # not 1.5


def test_years_of_hours_stay_in_step_with_the_day(tmp_path):
    lines = [f"{t},{int(t[11:13]) / 2}" for t in hours(datetime(2023, 1, 1), 24 * 366 * 2, "offset")]
    series = data.read_series(write(tmp_path, lines))
    days = data.episodes(series, 24)
    inner = [k for k in range(len(days)) if days.starts[k][5:7] not in ("03", "10")]
    assert (days.values[inner] == np.arange(24) / 2).all()
    assert series.notes[0].startswith("The clock was set forward 2 times, first on 2023-03-26: ")
    assert series.notes[1].startswith("The clock was set back 2 times, first on 2023-10-29: ")


def test_without_a_zone_a_change_of_the_clock_is_refused_and_the_remedy_named(tmp_path):
    for day, n, message in (
        (
            SPRING,
            23,
            "row 4, column 'time': 2024-03-31 02:00:00 is missing before .* 03:00:00; .* name its zone",
        ),
        (AUTUMN, 25, "row 5, column 'time': 2024-10-27 02:00:00: the same time again; .* name its zone"),
    ):
        path = write(tmp_path, [f"{t},1" for t in hours(day, n, "naive")])
        with pytest.raises(UserError, match=message):
            data.read_series(path)


def test_a_time_that_the_clock_of_the_zone_skips_is_refused(tmp_path):
    path = write(tmp_path, [f"2024-03-31 {h:02d}:00,1" for h in range(24)])
    assert len(data.read_series(path)) == 24
    with pytest.raises(UserError, match=r"row 5, .*03:00:00\+02:00: the same time as the row above \(.*02:00:00"):
        data.read_series(path, time_zone="Europe/Berlin")


def test_rows_with_and_without_an_offset_are_not_mixed(tmp_path):
    path = write(tmp_path, ["2024-01-01T00:00+01:00,1", "2024-01-01T01:00,2"])
    with pytest.raises(UserError, match=r"row 3, column 'time': no offset from universal time, which the first row"):
        data.read_series(path)
    path = write(tmp_path, ["2024-01-01T00:00,1", "2024-01-01T01:00Z,2"])
    with pytest.raises(UserError, match=r"row 3, column 'time': '2024-01-01T01:00Z' has an offset .* none"):
        data.read_series(path)


def test_clocks_that_differ_too_much_need_a_zone(tmp_path):
    path = write(tmp_path, ["2024-01-01T00:00+01:00,1", "2024-01-01T05:00+05:00,2", "2024-01-01T06:00+05:00,3"])
    with pytest.raises(UserError, match=r"row 3, .* differs by 4:00:00 from that of 2024-01-01 00:00:00\+01:00; give"):
        data.read_series(path)
    assert data.read_series(path, time_zone="UTC").times.tolist() == [
        datetime(2023, 12, 31, 23),
        datetime(2024, 1, 1, 0),
        datetime(2024, 1, 1, 1),
    ]


def test_who_named_the_zone_is_not_told_to(tmp_path):
    begin = datetime(2024, 4, 6, 12)  # on Lord Howe Island the clock is set by half an hour
    path = write(tmp_path, [f"{begin + timedelta(hours=i):%Y-%m-%dT%H:%M}Z,1" for i in range(6)])
    with pytest.raises(UserError, match=r"differs by 0:30:00 from that of .*; a clock is set by whole steps") as caught:
        data.read_series(path, time_zone="Australia/Lord_Howe")
    assert "--time-zone" not in str(caught.value)


@pytest.mark.parametrize("zone", ["Z", "utc", "UTC", "+00:00"])
def test_universal_time_has_several_names(tmp_path, zone):
    path = write(tmp_path, ["2024-01-01 00:00,1", "2024-01-01 01:00,2"])
    assert data.read_series(path, time_zone=zone).offsets.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("zone", "hint"),
    [("Europe/Berlim", "did you mean 'Europe/Berlin'"), ("Nowhere/Land", "give one"), ("", "give"), ("+01:99", "give")],
)
def test_an_unknown_zone_is_named(tmp_path, zone, hint):
    path = write(tmp_path, ["2024-01-01,1", "2024-01-02,2"])
    with pytest.raises(UserError, match=f"time_zone: unknown time zone '{re.escape(zone)}'; .*{hint}"):
        data.read_series(path, time_zone=zone)


@pytest.mark.parametrize("zone", ["+01:00", "-11:30", "Z", "+0545", "-03"])
@pytest.mark.parametrize("year", ["0001-01-0", "9999-12-3"])
def test_the_first_and_the_last_year_may_have_an_offset(tmp_path, zone, year):
    path = write(tmp_path, [f"{year}0T00:01:00{zone},1", f"{year}1T00:01:00{zone},2"] if year[0] == "9" else
                 [f"{year}1T00:01:00{zone},1", f"{year}2T00:01:00{zone},2"])  # fmt: skip
    for brought in (None, "Europe/Berlin", "+14:00"):
        try:
            assert len(data.read_series(path, time_zone=brought)) == 2
        except UserError as error:
            assert "row 3, column 'time'" in str(error)  # noqa: PT017


@pytest.mark.parametrize("zone", ["+99:00", "-17:00", "+14:30"])
def test_offsets_of_more_than_14_hours_are_refused(tmp_path, zone):
    path = write(tmp_path, [f"2024-01-01 08:00{zone},1", f"2024-01-01 09:00{zone},2"])
    with pytest.raises(UserError, match="row 2, column 'time': an offset .* of more than 14 hours; .*range of hours"):
        data.read_series(path)


def test_an_offset_has_fewer_than_60_minutes(tmp_path):
    path = write(tmp_path, ["2024-01-01 08:00+01:99,1", "2024-01-01 09:00+01:99,2"])
    with pytest.raises(UserError, match=r"row 2, column 'time': '2024-01-01 08:00\+01:99' is not a date"):
        data.read_series(path)


def test_ranges_of_hours_are_not_read_as_offsets(tmp_path):
    ranges = ["2024-01-01 00:00-00:30,1", "2024-01-01 00:30-01:00,2", "2024-01-01 01:00-01:30,3"]
    with pytest.raises(UserError, match=r"row 3, column 'time': an offset .* differs from those .*range of hours\?"):
        data.read_series(write(tmp_path, ranges))
    seldom = [
        "2024-01-01T00:00+01:00,1",
        "2024-01-02T00:00+01:00,1",
        "2024-07-01T00:00+02:00,2",
        "2024-12-01T00:00+01:00,3",
    ]
    assert data.read_series(write(tmp_path, seldom), gaps="zero").values.sum() == 7


def test_a_table_of_pandas_has_the_clock_of_its_zone():
    hourly = pandas.date_range("2024-03-31", periods=23, freq="h", tz="Europe/Berlin")
    series = data.read_series(pandas.Series(np.arange(23) / 2, index=hourly))
    assert (len(series), series.times[0], series.offsets[3]) == (24, np.datetime64("2024-03-31T00:00:00"), 7200)
    each = pandas.DataFrame({"t": pandas.Series([t.to_pydatetime() for t in hourly], dtype=object), "x": 1.5})
    assert len(data.read_series(each, "x")) == 24


# -- prices beside a demand -------------------------------------------------------------------------------------


def prices_of(tmp_path, demand, prices, zone=None):
    demand, prices = (
        data.read_series(write(tmp_path, [f"{t},{x}" for t, x in lines], name), time_zone=zone)
        for lines, name in ((demand, "demand.csv"), (prices, "prices.csv"))
    )
    return [change["prices"] for change in with_prices(prices, data.episodes(demand, 24, least=1))]


def test_prices_are_matched_by_instant_where_offsets_are_known(tmp_path):
    local, utc = (hours(SPRING, 47, style) for style in ("offset", "utc"))
    demand = [(t, 1.5) for t in local]
    two = prices_of(tmp_path, demand, [(t, i) for i, t in enumerate(utc)])
    # 00:00, 01:00, then the skipped 02:00, which is the instant of 03:00
    assert two[0][:5] == (0, 1, 2, 2, 3)
    assert two[1] == tuple(range(23, 47))
    same = prices_of(tmp_path, demand, [(t, i / 2) for i, t in enumerate(local)])
    assert same[1] == tuple(i / 2 for i in range(23, 47))


def test_prices_with_an_offset_are_not_matched_with_a_demand_without(tmp_path):
    plain, zoned = ([(f"2024-01-01T{h:02d}:00{zone}", h) for h in range(24)] for zone in ("", "+01:00"))
    with pytest.raises(UserError, match=r"prices.csv says how far .*, .*demand.csv does not; .*--time-zone"):
        prices_of(tmp_path, plain, zoned)
    with pytest.raises(UserError, match=r"demand.csv says how far .*, .*prices.csv does not; name the zone"):
        prices_of(tmp_path, zoned, plain)
    assert prices_of(tmp_path, plain, zoned, "Europe/Berlin") == [tuple(range(24))]
    assert prices_of(tmp_path, plain, plain) == [tuple(range(24))]


def test_a_price_that_is_not_there_is_named(tmp_path):
    demand = [(t, 1.5) for t in hours(AUTUMN, 49, "utc")]
    prices = [(t, 1.5) for t in hours(AUTUMN - timedelta(days=1), 97, "offset")]  # one for both of the hours
    with pytest.raises(UserError, match=r"no price for 2024-10-27 01:00:00\+00:00; bring both to one clock"):
        prices_of(tmp_path, demand, prices)


def test_prices_that_end_too_early_are_not_shifted_by_an_hour_that_was_made_up(tmp_path):
    utc, local = (hours(datetime(2024, 3, 29), 145, style)[1:] for style in ("utc", "offset"))
    demand, prices = [(t, 1.5) for t in utc], [(t, i) for i, t in enumerate(local)]
    assert prices_of(tmp_path, demand, prices)[5] == tuple(range(120, 144))
    with pytest.raises(
        UserError, match=r"prices end at 2024-04-04 00:00:00\+02:00, the demand at 2024-04-03 23:00:00\+"
    ):
        prices_of(tmp_path, demand, prices[:-1])  # the hour that the clock skips is a row too


# -- gaps ---------------------------------------------------------------------------------------------------------


def test_a_mistyped_year_does_not_fill_the_memory(tmp_path):
    path = write(tmp_path, ["2024-01-01 00:00,1", "2024-01-01 01:00,2", "2924-01-01 02:00,3"])
    with pytest.raises(UserError, match=r"row 4, .*: \d+ hours are missing before 2924-01-01 02:.*; .* at most 17544"):
        data.read_series(path, gaps="zero")


@pytest.mark.parametrize(
    ("dates", "longest"),
    [
        (["2020-01-01", "2020-01-02", "2022-01-03", "2024-01-06"], 731),
        (["2020-01", "2020-02", "2022-03", "2024-05"], 24),
        (["1900", "1901", "1922", "1944"], 20),
    ],
)
def test_zeros_fill_two_years_and_no_more(tmp_path, dates, longest):
    lines = [f"{date},1" for date in dates]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["year,units", *lines[:3]]))
    series = data.read_series(path, gaps="zero")
    assert (len(series), series.values.sum()) == (longest + 3, 3)
    first = str(series.times[2]).replace("T", " ")
    assert series.notes == (f"{longest} {series.spacing}s are missing and count as 0, the first {first}.",)
    assert series.place(2) == first.removesuffix(" 00:00:00")
    assert series.place(longest + 2).startswith("row 4 (")
    path.write_text("\n".join(["year,units", *lines]))
    longest_gap = f"row 5, column 'year': {longest + 1} .*s are missing .* at most {longest} is filled:"
    with pytest.raises(UserError, match=longest_gap):
        data.read_series(path, gaps="zero")


def test_all_that_zeros_fill_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("ucbf.data.calendar.MOST_FILLED", 5)
    path = write(tmp_path, ["2024-01-01,1", "2024-01-02,1", "2024-01-06,1", "2024-01-10,1"])
    with pytest.raises(UserError, match="row 4, .* 6 days are missing from here on; at most 5"):
        data.read_series(path, gaps="zero")


def test_zeros_in_an_hour_that_comes_twice_count_in_its_mean(tmp_path):
    lines = [f"{t},{8}" for t in hours(AUTUMN, 25, "offset")]
    del lines[3]  # the second 02:00
    series = data.read_series(write(tmp_path, lines), gaps="zero", time_zone="Europe/Berlin")
    assert series.values[1:5].tolist() == [8, 4, 8, 8]
    assert len(series) == 24


@pytest.mark.parametrize(
    ("day", "n", "gone", "values", "unknown"),
    [
        (AUTUMN, 25, [2], [8, 8, 8, 8], []),  # of 02:00, which comes twice, one is known
        (AUTUMN, 25, [3], [8, 8, 8, 8], []),
        (AUTUMN, 25, [2, 3], [8, 8, 0, 8], [2]),
        (SPRING, 23, [1], [8, 0, 8, 8], [1]),  # 02:00 is skipped, and of its neighbours one is known
        (SPRING, 23, [2], [8, 8, 8, 0], [3]),
        (SPRING, 23, [1, 2], [8, 0, 0, 0], [1, 2, 3]),
    ],
)
def test_what_is_not_known_counts_in_no_mean(tmp_path, day, n, gone, values, unknown):
    lines = [f"{t},8" for i, t in enumerate(hours(day, n, "offset")) if i not in gone]
    series = data.read_series(write(tmp_path, lines), gaps="unknown", time_zone="Europe/Berlin")
    assert series.values[:4].tolist() == values
    assert np.flatnonzero(series.unknown).tolist() == unknown


def test_a_clock_that_was_set_within_a_gap_needs_its_zone(tmp_path):
    lines = [f"{t},8" for t in hours(AUTUMN, 25, "offset")]
    path = write(tmp_path, lines[:2] + lines[6:])  # from 02:00+02:00 until 04:00+01:00
    with pytest.raises(
        UserError, match=r"row 4, .* 05:00:00\+01:00: the clock was set in the gap after .*; name its zone"
    ):
        data.read_series(path, gaps="zero")
    series = data.read_series(path, gaps="zero", time_zone="Europe/Berlin")
    assert series.values[:7].tolist() == [8, 8, 0, 0, 0, 8, 8]  # no 4, the mean of a row and a zero

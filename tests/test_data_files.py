"""Files of series: every kind of column, odd lines, and what is written reads back."""

import re
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ucbf import data
from ucbf.data import tables
from ucbf.errors import UserError

DAYS = [date(2024, 1, 1), date(2024, 1, 2)]


def parquet(tmp_path, **columns):
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, 4], pa.int8()),
        pa.array([3, 4], pa.uint64()),
        pa.array([3, 4], pa.float32()),
        pa.array([Decimal("3.00"), Decimal("4.00")], pa.decimal128(9, 2)),
        pa.array(["3", " 4 "]),
        pa.array(["3", "4"]).dictionary_encode(),
        pa.array([3, 4]).dictionary_encode(),
        pa.array([b"3", b"4"], pa.binary()),
        pa.array(["3", "4"], pa.large_string()),
    ],
    ids=lambda values: str(values.type),
)
def test_every_column_of_numbers_is_read(tmp_path, values):
    assert data.read_series(parquet(tmp_path, date=DAYS, units=values), "units").values.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([True, False]), "row 0, column 'units': 'True' is not a number"),
        (pa.array([[1], [2]]), r"row 0, column 'units': '\[1\]' is not a number"),
        (pa.array([None, None]), "row 0, column 'units': no value"),
        (pa.array([1, None]), "row 1, column 'units': no value"),
        (pa.array([1.0, np.nan]), "row 1, column 'units': no value"),
        (pa.array([b"\xff", b"4"], pa.binary()), "row 0, column 'units': .* is not a number"),
        (pa.array([2**62, 2**62], pa.timestamp("us")), r"row 0, column 'units': a timestamp\[.*\] is not a number"),
        (pa.array(DAYS), "row 0, column 'units': '2024-01-01' is not a number"),
    ],
    ids=lambda x: str(getattr(x, "type", "")),
)
def test_a_column_without_numbers_is_refused_in_a_line(tmp_path, values, message):
    with pytest.raises(UserError, match=message) as caught:
        data.read_series(parquet(tmp_path, when=DAYS, units=values), "units")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "dates",
    [
        pa.array(DAYS, pa.date32()),
        pa.array(DAYS, pa.date64()),
        *(
            pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2)], pa.timestamp(unit))
            for unit in ("s", "ms", "us", "ns")
        ),
        pa.array(["2024-01-01", "2024-01-02"]).dictionary_encode(),
        pa.array([20240101, 20240102]),
    ],
    ids=lambda dates: str(dates.type),
)
def test_every_column_of_dates_is_read(tmp_path, dates):
    series = data.read_series(parquet(tmp_path, date=dates, units=[3, 4]), "units")
    assert series.times.tolist() == [datetime(2024, 1, 1), datetime(2024, 1, 2)]


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        (pa.array([0, 2**52], pa.timestamp("s")), "row 1, column 'date': a time outside of the years 1 to 9999"),
        (pa.array([0, -(2**62)], pa.timestamp("us")), "row 1, column 'date': a time outside of the years 1 to 9999"),
        (pa.array([0, 2**62], pa.timestamp("ms", "UTC")), "row 1, column 'date': a time outside of the years"),
        (pa.array([0, 2**31 - 1], pa.date32()), "row 1, column 'date': a time outside of the years 1 to 9999"),
        (pa.array([0, 1], pa.timestamp("ns")), "row 1, column 'date': a part of a second"),
        (pa.array([0, 1], pa.timestamp("us", "Nowhere/Land")), "column 'date': unknown time zone 'Nowhere/Land'"),
        (pa.array([0, None], pa.timestamp("us")), "row 1, column 'date': no date"),
        (pa.array([2.5, 3.5]), "row 0, column 'date': '2.5' is not a date"),
        (pa.array([[1], [2]]), r"row 0, column 'date': '\[1\]' is not a date"),
        (pa.array([None, None]), "row 0, column 'date': no date"),
    ],
    ids=lambda x: str(getattr(x, "type", "")),
)
def test_dates_that_are_none_are_refused_in_a_line(tmp_path, dates, message):
    with pytest.raises(UserError, match=message) as caught:
        data.read_series(parquet(tmp_path, date=dates, units=[3, 4]), "units", "date")
    assert "\n" not in str(caught.value)


def test_times_of_a_zone_are_of_its_clock(tmp_path):
    instants = [datetime(2024, 3, 30, 23, tzinfo=UTC), datetime(2024, 3, 31, 22, tzinfo=UTC)]  # midnight in Berlin
    dates = pa.array(instants, pa.timestamp("us", "Europe/Berlin"))
    series = data.read_series(parquet(tmp_path, date=dates, units=[3, 4]))
    assert series.times.tolist() == [datetime(2024, 3, 31), datetime(2024, 4, 1)]
    assert series.offsets.tolist() == [3600, 7200]


def test_two_columns_of_one_name_are_refused(tmp_path):
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["x", "x"]), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="x.parquet: two columns are named 'x'"):
        data.read_series(tmp_path / "x.parquet")


# -- lines of text ------------------------------------------------------------------------------------------------


def read(tmp_path, text, **how):
    (tmp_path / "x.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return data.read_series(tmp_path / "x.csv", **how)


@pytest.mark.parametrize(
    "text",
    [
        "t,x\n2024-01-01,3\n2024-01-02,4\n",
        "t,x\n2024-01-01,3\n2024-01-02,4",
        "t,x\r\n2024-01-01,3\r\n2024-01-02,4\r\n",
        "t,x\r2024-01-01,3\r2024-01-02,4\r",
        "\ufefft,x\n2024-01-01,3\n2024-01-02,4\n",
        "\n\nt,x\n\n2024-01-01,3\n , \n2024-01-02,4\n\n\n",
        't,x\n"2024-01-01","3"\n"2024-01-02","4"\n',
        " t , x \n 2024-01-01 ,\t3\n2024-01-02, +4.\u00a0\n",
        "t;x\n2024-01-01;3\n2024-01-02;.4e1\n",
        "t\tx\n2024-01-01\t3\n2024-01-02\t4\n",
        "t,x\n2024-1-1,3\n2024-1-2,4\n",
        "t,x\n1.1.2024 00:00,3\n2.1.2024 0:00,4\n",
        "t,x\nJan 1,3\n".replace("Jan 1", '"Jan 1, 2024"') + '"Jan 2, 2024",4\n',
        "t,x\n01/01/2024 12:00 AM,3\n01/02/2024 12:00 am,4\n",
        "t,x\n2024-01-01T00:00:00.000,3\n2024-01-02T00:00:00,4\n",
    ],
)
def test_files_that_say_the_same_read_the_same(tmp_path, text):
    series = read(tmp_path, text)
    assert (series.name, series.values.tolist()) == ("x", [3, 4])
    assert series.times.tolist() == [datetime(2024, 1, 1), datetime(2024, 1, 2)]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("t,x\n2024-01-01,3\n2024-01-02,bad\n", 3),
        ("t,x\n\n2024-01-01,3\n\n2024-01-02,bad\n", 5),
        ("\nt,x\n2024-01-01,3\n2024-01-02,bad\n", 4),
        ('t,x,note\n2024-01-01,3,"a\nb\nc"\n2024-01-02,bad,\n', 5),
        ("t,x\r\n2024-01-01,3\r\n\r\n2024-01-02,bad\r\n", 4),
        ("t,x\n2024-01-01,3\n,\n2024-01-02,bad\n", 4),
    ],
)
def test_rows_are_counted_by_the_lines_of_the_file(tmp_path, text, row):
    with pytest.raises(UserError, match=f"x.csv, row {row}, column 'x': 'bad' is not a number"):
        read(tmp_path, text, column="x")
    series = read(tmp_path, text.replace("bad", "4"), column="x")
    assert series.place(1) == f"row {row} (2024-01-02)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,x\n2024-01-01,3\n2024-01-02,1_000\n", "row 3, column 'x': '1_000' is not a number; write numbers with"),
        ("t,x\n2024-01-01,3\n2024-01-02,0x10\n", "row 3, column 'x': '0x10' is not a number"),
        ("t,x\n2024-01-01,3\n2024-01-02,1e400\n", "row 3, column 'x': inf is not a finite number"),
        ("t,x\n2024-01-01,3\n2024-01-02,4\x00\n", r"row 3, column 'x': '4\\x00' is not a number"),
        ("t,x\n2024-01-01,3\n2024-02-30,4\n", "row 3, column 't': '2024-02-30' is not a date like the first"),
        ("t,x\n30.01.2024,3\n30.02.2024,4\n", "row 3, column 't': '30.02.2024' is not a date like the first"),
        ("t,x\n0000-01-01,3\n0000-01-02,4\n", "row 2, column 't': '0000-01-01' is not a date"),
        ("t,x\n2024-01-01,3\n2024-01-02 00:00:00.5,4\n", "row 3, column 't': '2024-01-02 00:00:00.5' is not a date"),
        ("t,x\n2024-01-01 24:00,3\n2024-01-02 24:00,4\n", "row 2, column 't': '2024-01-01 24:00' is not a date"),
        ("t,x\n2024-01-01,3\n\n2024-01-02\n", r"row 4: 1 cells, but the header has 2; does ',' separate them\?"),
        ("Sales\nt,x\n2024-01-01,3\n", r"row 2: 2 cells, but the header has 1; .* is row 1 a title, to be taken out\?"),
        ('t,x\n2024-01-01,"3\n2024-01-02,4\n', "row 2: a quote that is not closed"),
        (b"t,x\n2024-01-01,3\n2024-01-02,\x81\n", "is not text in UTF-8"),
    ],
)
def test_odd_cells_are_refused_by_row(tmp_path, text, message):
    with pytest.raises(UserError, match=f"x.csv.*{message}"):
        read(tmp_path, text)


@pytest.mark.parametrize("quoted", ['"', '"a\nb"', ' "'])
def test_a_quote_that_is_not_closed_does_not_swallow_the_rows_below(tmp_path, quoted):
    # the first one swallows all rows below it, the second is closed, and the third begins no cell
    text = f"t,x,note\n2024-01-01,3,\n2024-01-02,4,{quoted}\n2024-01-03,5,\n"
    if quoted == '"':
        with pytest.raises(UserError, match=r"x.csv, row 3: a quote that is not closed; close it, or take it out"):
            read(tmp_path, text)
    else:
        assert read(tmp_path, text).values.tolist() == [3, 4, 5]


@pytest.mark.parametrize(("begin", "between"), [("sep=;\n", ";"), ("\ufeffsep=,\r\n", ","), ("\nSEP=|\n\n", "|")])
def test_a_first_line_may_say_what_separates_the_cells(tmp_path, begin, between):
    series = read(tmp_path, begin + f"t{between}x\n2024-01-01{between}3\n2024-01-02{between}4\n")
    assert (series.name, series.values.tolist(), str(series.times[1])) == ("x", [3, 4], "2024-01-02T00:00:00")
    assert series.rows.tolist() == [n + 3 + 2 * begin.startswith("\n") for n in (0, 1)]


def test_which_column_has_the_dates_is_said_where_several_do(tmp_path):
    text = "ordered,shipped,x\n2024-01-01,2024-01-03,3\n2024-01-02,2024-01-05,4\n"
    assert read(tmp_path, text).notes == (
        "Dates are those of column 'ordered'; 'shipped' has dates too (time, --time).",
    )
    (tmp_path / "x.csv").write_text(text)
    asked = data.read_series(tmp_path / "x.csv", time="ordered")
    assert asked.notes == ()


def test_a_table_with_a_column_for_each_day_is_refused_in_a_line_that_can_be_read(tmp_path):
    names = ",".join(f"day {i}" for i in range(500))
    with pytest.raises(UserError, match="which column.*'day 19' and 480 more; say which") as refused:
        read(tmp_path, f"{names}\n{','.join('5' * 500)}\n{','.join('6' * 500)}\n")
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("order", [(0, 1, 2, 0, 1, 2), (0, 0, 1, 1, 2, 2)])
def test_dates_that_come_for_every_item_ask_for_the_column_of_items(tmp_path, order):
    rows = "".join(f"2024-01-0{day + 1},a,3\n" for day in order)
    with pytest.raises(UserError, match=r"sort the rows, one for each time; many items in one file\? .*\(--item\)"):
        read(tmp_path, "t,sku,x\n" + rows)


@pytest.mark.parametrize("between", [";", "\t"])
@pytest.mark.parametrize("cells", [("950", "1.500", "999"), ("1.500", "2.300", "-1.000"), ("12000", "12.000", "1")])
def test_points_that_may_separate_thousands_are_refused_beside_semicolons_and_tabs(tmp_path, cells, between):
    row, cell = next((i + 2, cell) for i, cell in enumerate(cells) if "." in cell)
    with pytest.raises(
        UserError, match=f"row {row}, column 'x': {cell} may mean {cell.replace('.', '')}, .*as {cell}0"
    ):
        read(tmp_path, f"x{between}y\n" + "".join(f"{each}{between}a\n" for each in cells))
    assert read(tmp_path, "x,y\n" + "".join(f"{each},a\n" for each in cells)).values.tolist() == list(map(float, cells))


@pytest.mark.parametrize(
    "cells", [("950", "999"), ("1.500", "0.999"), ("1.500", "2.5"), ("1.500", "1234.567"), ("1.5000", "9")]
)
def test_points_that_are_plainly_decimal_are_read_beside_semicolons(tmp_path, cells):
    assert read(tmp_path, "x;y\n" + "".join(f"{each};a\n" for each in cells)).values.tolist() == list(map(float, cells))


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("21,5", "7", "-0,25"), [21.5, 7, -0.25]),
        (("1.234,5", "1.500", "2,25"), [1234.5, 1500, 2.25]),
        (("1.234,500", "2.000.000", "3"), [1234.5, 2e6, 3]),
        (("0,125", "1,250", "3"), [0.125, 1.25, 3]),
    ],
)
@pytest.mark.parametrize("between", [";", "\t"])
def test_decimal_commas_are_read_where_no_comma_separates_cells_and_it_is_said(tmp_path, cells, values, between):
    series = read(tmp_path, f"x{between}y\n" + "".join(f"{each}{between}a\n" for each in cells))
    assert series.values.tolist() == values
    assert series.notes == ("Commas were read as decimal points.",)


def test_commas_that_may_separate_thousands_are_refused(tmp_path):
    with pytest.raises(UserError, match="row 3, column 'x': 1,500 may mean 1500, .* as 1,5000"):
        read(tmp_path, "x;y\n950;a\n1,500;a\n12;a\n")
    for cells in (("1,5", "1.5"), ("1,234,567", "3"), ("1,5", "2,5e3"), ("12.34,5", "1")):
        with pytest.raises(UserError, match="is not a number; write numbers with a decimal point"):
            read(tmp_path, "x;y\n" + "".join(f"{each};a\n" for each in cells), column="x")


@pytest.mark.parametrize("odd", ["34.", "1.5", "k.A.", "1.2.3", "2e3"])
def test_among_decimal_commas_the_cell_without_one_is_named(tmp_path, odd):
    with pytest.raises(UserError, match=f"row 4, column 'x': '{re.escape(odd)}' is not a number like the others"):
        read(tmp_path, f"x;y\n12,5;a\n7;a\n{odd};a\n0,25;a\n", column="x")
    with pytest.raises(UserError, match=r"row 4, column 'x': no value"):
        read(tmp_path, "x;y\n12,5;a\n7;a\n.;a\n0,25;a\n", column="x")


def test_a_point_that_may_separate_thousands_among_whole_numbers_is_said(tmp_path):
    said = read(tmp_path, "x,y\n950,a\n1.400,a\n870,a\n").notes
    assert said == ("1.400 in row 3 was read as 1.4; if the point separates thousands, write 1400.",)
    assert read(tmp_path, "x,y\n9.125,a\n1.400,a\n870,a\n").notes == ()  # most have a point
    assert read(tmp_path, "x;y\n950;a\n1.400;a\n870;a\n2.5;a\n").notes == said


@pytest.mark.parametrize("quoted", [False, True])
def test_windows_text_is_read_and_it_is_said(tmp_path, quoted):
    text = "Verkäufe;Größe\n3;€\n4;b\n"
    (tmp_path / "x.csv").write_bytes((text + ('5;"a\nb"\n' if quoted else "5;c\n")).encode("cp1252"))
    series = data.read_series(tmp_path / "x.csv", "Verkäufe")
    assert series.values.tolist() == [3, 4, 5]
    assert series.notes == ("The file is not UTF-8 and was read as Windows text (cp1252, or latin-1).",)
    (tmp_path / "x.csv").write_bytes(text.encode("utf-16"))
    with pytest.raises(UserError, match="is not text in UTF-8; save it"):
        data.read_series(tmp_path / "x.csv")


def test_a_file_that_memory_may_not_hold_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 3)
    monkeypatch.setattr(tables, "MOST_BYTES", 12)
    pq.write_table(pa.table({"x": [1.0, 2, 3, 4]}), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="x.parquet has 4 rows; up to 3 are read at once. .*--items FILE"):
        data.read_series(tmp_path / "x.parquet")
    with pytest.raises(UserError, match=r"x.csv has 0.0 GB of text; up to 0.0 GB are read at once"):
        read(tmp_path, "x;y\n1;a\n2;a\n3;b\n")


def test_a_format_of_ones_own_may_have_a_zone_and_names(tmp_path):
    lines = "t;x\nMon 01-Jan-24 00h;3\nMon 01-Jan-24 01h;4\n"
    assert read(tmp_path, lines, date_format="%a %d-%b-%y %Hh").times[1] == datetime(2024, 1, 1, 1)
    series = read(tmp_path, "t;x\n1.1.2024 00:00 +0100;3\n1.1.2024 01:00 +0100;4\n", date_format="%d.%m.%Y %H:%M %z")
    assert (series.times[1], series.offsets[1]) == (datetime(2024, 1, 1, 1), 3600)


FORMS = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p"]


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40),
    begin=st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    step=st.sampled_from(["half-hour", "hour", "day", "week"]),
    form=st.sampled_from(FORMS),
    zone=st.sampled_from(["", "Z", "+01:00", "-0330", "+14"]),
    mark=st.sampled_from([",", ";", "\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
    quote=st.booleans(),
)
def test_what_is_written_reads_back(tmp_path_factory, values, begin, step, form, zone, mark, end, quote):
    apart = {"half-hour": 30, "hour": 60, "day": 1440, "week": 7 * 1440}[step]
    times = np.datetime64(begin.replace(minute=0, second=0, microsecond=0), "s") + np.arange(len(values)) * (60 * apart)
    cell = '"{}"' if quote else "{}"
    lines = [cell.format(t.strftime(form) + zone) + mark + repr(v) for t, v in zip(times.tolist(), values, strict=True)]
    if form == FORMS[4]:
        lines = [line.replace("AM" + zone, "AM").replace("PM" + zone, "PM") for line in lines]
    path = tmp_path_factory.mktemp("x") / "x.csv"
    path.write_bytes(end.join([f"time{mark}x", *lines, ""]).encode())
    series = data.read_series(path, date_format=form if form.startswith("%d/") else None)
    assert series.values.tolist() == values
    assert (series.times == times).all()
    known = {"Z": 0, "+01:00": 3600, "-0330": -12600, "+14": 50400}.get(zone) if form != FORMS[4] else None
    assert (series.offsets is None) if known is None else (series.offsets == known).all()
    assert series.place(1).startswith("row 3 (")


@pytest.mark.slow
def test_a_million_rows_are_read_in_little_memory(tmp_path):
    n = 1_000_000
    times = np.datetime_as_string(np.datetime64("1900-01-01T00:00") + 60 * np.arange(n), unit="m").tolist()
    (tmp_path / "x.csv").write_text("time,units\n" + "".join(f"{t},{i % 7}\n" for i, t in enumerate(times)))
    script = (
        "import resource; from ucbf import data\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"assert len(data.read_series({str(tmp_path / 'x.csv')!r})) == {n}\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 400e6  # Python's own dates and numbers took more than that


def test_names_of_columns_that_are_no_text_are_refused(tmp_path):
    path = parquet(tmp_path, units=[3.0, 4.0])
    path.write_bytes(path.read_bytes().replace(b"units", b"un\xe1ts"))
    with pytest.raises(UserError, match=r"x.parquet is not a Parquet file that can be read: .*utf-8"):
        data.read_series(path)

"""Tables and studies as people and programs spoil them: a clear refusal, or numbers."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attack.case import Case, refused_or
from attack.damage import AMOUNTS, DAYS
from attack.kills import STUDY
from ucbf import data
from ucbf.errors import UserError
from ucbf.studies.reading import read_study

MANY = 4000  # of each kind
CELLS = (
    "", " ", "n/a", "NaN", "inf", "-inf", "1e308", "1e999", "-0", "0x10", "1_000", "1,5", "1.000,5", "12 000", "½", "٣",
    "\x00", '"', '""', "'", "=1+1", "#REF!", "TRUE", "None", "9" * 400, "\ufeff", "\u202e1", "\n", "\r", "now", "24:00",
    "2023-02-30", "2023-13-01", "0001-01-01", "9999-12-31", "2023-01-01 25:00", "2023-W01-1", "01.02.2023", "2/3/2023",
    "20230101", "1672531200", "0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00", "2023-01-01T00:00:00Z",
    "2023-03-26T02:30:00+01:00",
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "utf-7")
LINES = ("", ",", ",,,,", "date,demand", "# remark", '"open quote', "\x00\x00", "a" * 100_000)


def spoiled_csv(draw: random.Random) -> bytes:
    """A table with one to four things wrong with it."""
    rows = [["date", "demand"], *([day, f"{amount:g}"] for day, amount in zip(DAYS, AMOUNTS, strict=True))]
    separator, ending, encoding = ",", "\n", "utf-8"
    for _ in range(draw.randint(1, 4)):
        row = draw.randrange(len(rows))
        match draw.randrange(10):
            case 0 | 1 | 2:
                rows[row][draw.randrange(len(rows[row]))] = draw.choice(CELLS)
            case 3:
                rows.insert(row, [draw.choice(LINES)])
            case 4:
                rows.append(list(rows[row]))
            case 5:
                del rows[row]
                rows = rows or [[""]]
            case 6:
                rows[row].append(draw.choice(CELLS))
            case 7:
                rows = [[*cells, draw.choice(CELLS)] for cells in rows]
            case 8:
                separator, ending = draw.choice(",;\t| "), draw.choice(("\n", "\r\n", "\r", "\n\n"))
            case _:
                encoding = draw.choice(ENCODINGS)
    return ending.join(separator.join(cells) for cells in rows).encode(encoding, "replace")


def spoiled_parquet(draw: random.Random) -> pa.Table:
    """A table whose columns are of odd types, or hold odd values."""
    n = draw.choice((0, 1, 2, 27, 28, 300))
    wild = np.random.default_rng(draw.randrange(2**32)).integers(-(2**63), 2**63 - 1, n)
    unit, zone = (
        draw.choice(("s", "ms", "us", "ns")),
        draw.choice((None, "UTC", "Europe/Berlin", "+01:00", "Nowhere/Land")),
    )
    days = np.arange(n) + draw.choice((0, 19000, -719163, 2932896 - n // 2, 10**8))
    per_day = {"s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}[unit]
    with np.errstate(over="ignore"):
        stamps = [days * per_day, wild, np.full(n, 2**63 - 1), np.full(n, -(2**63))]
    dates: list[Callable[[], pa.Array]] = [
        lambda: pa.array(draw.choice(stamps)).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone)),
        lambda: pa.array(days % 2**31, pa.int32()).cast(pa.date32()),
        lambda: pa.array(wild % 2**32 - 2**31, pa.int64()).cast(pa.int32()).cast(pa.date32()),
        lambda: pa.array((days % 2**20) * 86_400_000).cast(pa.date64()),
        lambda: pa.array([draw.choice(DAYS) for _ in range(n)]).dictionary_encode(),
        lambda: pa.array([draw.choice(CELLS) for _ in range(n)]),
    ]
    values: list[Callable[[], pa.Array]] = [
        lambda: pa.array([float(i % 7) for i in range(n)]),
        lambda: pa.array([float(draw.choice(("1", "nan", "inf", "1e308"))) for _ in range(n)]),
        lambda: pa.array([None] * n),
        lambda: pa.array([draw.choice((True, False, None)) for _ in range(n)]),
        lambda: pa.array([[1.0]] * n, pa.list_(pa.float64())),
        lambda: pa.array([{"a": 1}] * n, pa.struct([("a", pa.int64())])),
        lambda: pa.array(np.arange(n) % 7, pa.int64()).cast(pa.decimal128(20, 3)),
        lambda: pa.array(wild.astype(np.uint64)),
        lambda: pa.array(np.arange(n) % 7).cast(pa.duration("s")),
        lambda: pa.array([draw.choice(CELLS) for _ in range(n)]),
        lambda: pa.array([b"\xff"] * n),
    ]
    return pa.table(
        [draw.choice(dates)(), draw.choice(values)()], names=draw.choice((["date", "demand"], ["a", "a"], ["", "b"]))
    )


def spoiled_toml(draw: random.Random) -> bytes:
    """A study with something wrong with it."""
    text = STUDY.to_toml()
    values = (
        "0", "-1", "1e99", "nan", "inf", '""', "[]", "[[]]", "{}", "true", "2023-01-01", "9223372036854775807",
        "99999999999999999999", "[" * 3000, "[1, 1]", "[1, 'a']", '{name="x"}', '"\\u0000"', '"logging:basicConfig"',
        '"os:remove"',
    )  # fmt: skip
    lines = text.splitlines()
    for _ in range(draw.randint(1, 3)):
        i = draw.randrange(len(lines))
        match draw.randrange(5):
            case 0 | 1 if "=" in lines[i]:
                lines[i] = f"{lines[i].split('=')[0]}= {draw.choice(values)}"
            case 2:
                lines.insert(i, draw.choice(lines))
            case 3:
                del lines[i]
                lines = lines or [""]
            case _:
                lines.insert(i, f"{draw.choice(('c', 'name', 'kind', 'worlds', 'x', 'seed'))} = {draw.choice(values)}")
    return "\n".join(lines).encode()


def read_table(path: Path, gaps: str) -> str:
    """Numbers that are finite, one for each time."""
    series = data.read_series(path, gaps=gaps)
    assert len(series) >= 2
    assert np.isfinite(series.values).all()
    assert series.times is None or len(series.times) == len(series)
    assert series.place(len(series) - 1)
    repr(series)
    return "read"


def cases(seed: int) -> Iterator[Case]:
    """Tables and studies in turn."""
    room = Path(tempfile.mkdtemp(prefix="ucbf-attack-"))

    def csv(i: int) -> str:
        path = room / "table.csv"
        path.write_bytes(spoiled_csv(random.Random(f"{seed} csv {i}")))
        return refused_or(lambda: read_table(path, ("refuse", "zero")[i % 2]), UserError)

    def parquet(i: int) -> str:
        path = room / "table.parquet"
        try:
            pq.write_table(spoiled_parquet(random.Random(f"{seed} parquet {i}")), path)
        except (pa.ArrowException, ValueError, OverflowError):
            return "cannot be written"
        return refused_or(lambda: read_table(path, ("refuse", "zero")[i % 2]), UserError)

    def study(i: int) -> str:
        path = room / "study.toml"
        path.write_bytes(spoiled_toml(random.Random(f"{seed} toml {i}")))
        return refused_or(lambda: "read" if read_study(path) else "", UserError)

    for i in range(MANY):
        for kind in (csv, parquet, study):
            yield Case(f"{kind.__name__} {i} of seed {seed}", partial(kind, i))
    shutil.rmtree(room)

"""Files of demand, marks, forecasts, items, stock and steps as people spoil them, through the commands.

What keeps the meaning of a file (byte order mark, separator, line ends, quotes, how dates are written) must keep the
answer; anything else ends in one clear line, or in an answer that the file bears out.
"""

from __future__ import annotations

import datetime as dt
import io
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np

from attack.case import Case
from attack.mutated import CELLS, LINES

MANY = 40  # files of each kind and flag
N = 12 * 7  # days
DAYS = [dt.date(2023, 1, 2) + dt.timedelta(i) for i in range(N)]
COSTS = ("--price", "9", "--unit-cost", "4")
QUOTED = ' "'
PROGRESS = re.compile(r"\d+ of \d+ (steps|items) ")
Rows = list[list[str]]


def rows_of(names: str) -> Rows:
    """A table with the columns that are named."""
    rng = np.random.default_rng(3)
    demand, sold_out, promoted = rng.poisson(9, N), rng.random(N) < 0.1, rng.random(N) < 0.15
    columns = {
        "date": [str(day) for day in DAYS],
        "demand": [str(d) for d in demand],
        "in_stock": [str(int(not s)) for s in sold_out],
        "promo": [str(int(p)) for p in promoted],
        "forecast": [f"{9 + 3 * p + i % 3 / 2:g}" for i, p in enumerate(promoted)],
        "item": ["ab"[2 * i // N] for i in range(N)],
        "q10": ["5"] * N,
        "q50": ["9"] * N,
    }
    wanted = names.split()
    return [wanted, *([columns[name][i] for name in wanted] for i in range(N))]


def same(rows: Rows, draw: random.Random) -> bytes:
    """The same table, written in another way."""
    separator, ending, encoding = ",", "\n", "utf-8"
    rows = [list(row) for row in rows]
    for _ in range(draw.randint(1, 3)):
        match draw.randrange(8):
            case 0:
                encoding = "utf-8-sig"
            case 1:
                separator = draw.choice(";\t")
            case 2:
                ending = draw.choice(("\r\n", "\r", "\n\n"))
            case 3 | 4:
                rows = [[cell if '"' in cell else f" {cell} " for cell in row] for row in rows]
            case 5:
                rows = [rows[0], *([f'"{cell.strip(QUOTED)}"' for cell in row] for row in rows[1:])]
            case 6 if "date" in rows[0]:
                at = rows[0].index("date")
                for row in rows[1:]:
                    y, m, d = row[at].strip(QUOTED).split("-") if "-" in row[at] else (row[at], "", "")
                    row[at] = f"{d}.{m}.{y}" if m else y
            case _:
                rows = [*rows, *([[""] * len(rows[0])] if draw.random() < 0.5 else [])]
    return (ending.join(separator.join(row) for row in rows) + draw.choice(("", ending))).encode(encoding)


def spoiled(rows: Rows, draw: random.Random) -> bytes:
    """A table with one to three things wrong with it."""
    rows, separator, encoding = [list(row) for row in rows], ",", "utf-8"
    for _ in range(draw.randint(1, 3)):
        i = draw.randrange(len(rows))
        match draw.randrange(9):
            case 0 | 1 | 2 if rows[i]:
                rows[i][draw.randrange(len(rows[i]))] = draw.choice(CELLS)
            case 3:
                rows.insert(i, [draw.choice(LINES)])
            case 4:
                rows.insert(i, list(rows[i]))
            case 5 if len(rows) > 2:
                del rows[i]
            case 6:
                at = draw.randrange(len(rows[0])) if rows[0] else 0
                for row in rows[1:]:
                    if at < len(row):
                        row[at] = draw.choice(("1,5", "x", "1e300", "", row[at]))
            case 7:
                encoding = draw.choice(("utf-16", "utf-16-le", "latin-1", "utf-7"))
            case _:
                at = draw.randrange(len(rows[0])) if rows[0] else 0
                rows = [row[:at] + row[at + 1 :] for row in rows]
    text = separator.join(rows[0]) + "\n" + "\n".join(separator.join(row) for row in rows[1:])
    content = text.encode(encoding, "replace")
    if draw.random() < 0.15:
        at = draw.randrange(len(content) + 1)
        content = content[:at] + draw.choice((b"\x00" * 9, b"\xff\xfe", b"\x80", b"\n" * 50)) + content[at:]
    return content


def command(*words: str) -> tuple[int, str, str]:
    """The exit code of a command, and what it prints."""
    from ucbf.cli import main

    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["ucbf", *words]
    code = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


def refusal(code: int, err: str) -> str:
    """One line that says something."""
    last = [line for line in err.splitlines() if line and not PROGRESS.match(line)]
    assert code == 2, f"exit code {code}: {err}"
    assert len(last) == 1, err[-2000:]
    assert last[0].startswith("ucbf: "), err[-2000:]
    assert len(last[0]) > 30, f"a refusal that says nothing: {last[0]!r}"
    return "refused"


def learned(folder: Path) -> str:
    """All numbers of what was learned."""
    names = ("policy.csv", "law.csv", "orders.csv", "forecast.csv", "comparison.csv", "items.csv")
    return "\n".join((folder / name).read_text() for name in names if (folder / name).is_file())


# The flags, and the columns of the file that they need.
LEARNS = {
    "plain": ("date demand", ()),
    "lead time": ("date demand", ("--lead-time", "2")),
    "packs": ("date demand", ("--lead-time", "1", "--pack", "6", "--min-order", "12")),
    "in stock": ("date demand in_stock", ("--in-stock", "in_stock", "--column", "demand")),
    "promotions": ("date demand promo", ("--promotions", "promo", "--column", "demand")),
    "items": ("date demand item", ("--item", "item", "--gaps", "zero", "--column", "demand")),
    "service level": ("date demand", ("--service-level", "0.9")),
}


def learn(room: Path, content: bytes, flags: tuple[str, ...], forecast: bytes | None = None) -> tuple[int, str, str]:
    """Learn from a file."""
    shutil.rmtree(room / "out", ignore_errors=True)
    (room / "table.csv").write_bytes(content)
    if forecast is not None:
        (room / "forecast.csv").write_bytes(forecast)
        flags = (*flags, "--forecast", str(room / "forecast.csv"))
    costs = () if "--service-level" in flags else COSTS
    return command("learn", "inventory", "--demand", str(room / "table.csv"), *costs, "--no-pictures",
                   "--out", str(room / "out"), *flags)  # fmt: skip


def plainly(rows: Rows) -> bytes:
    """A table as it should be."""
    return "\n".join(",".join(row) for row in rows).encode()


def cases(seed: int) -> Iterator[Case]:
    """Every flag with files that keep their meaning, and with files that are spoiled."""
    room = Path(tempfile.mkdtemp(prefix="ucbf-attack-"))
    usual: dict[str, str] = {}

    def right(kind: str, i: int) -> str:
        names, flags = LEARNS[kind]
        rows = rows_of(names)
        if kind not in usual:
            code, _, err = learn(room, plainly(rows), flags)
            assert code == 0, err
            usual[kind] = learned(room / "out")
        code, _, err = learn(room, same(rows, random.Random(f"{seed} same {kind} {i}")), flags)
        assert code == 0, err[-500:]
        assert learned(room / "out") == usual[kind], "another answer from the same numbers"
        return "the same"

    def wrong(kind: str, i: int) -> str:
        names, flags = LEARNS[kind]
        code, _, err = learn(room, spoiled(rows_of(names), random.Random(f"{seed} spoiled {kind} {i}")), flags)
        return "learned" if code == 0 else refusal(code, err)

    def right_forecast(i: int) -> str:
        table = plainly(rows_of("date demand"))
        names = ("date forecast", "date q10 q50")[i % 2]
        if names not in usual:
            code, _, err = learn(room, table, (), plainly(rows_of(names)))
            assert code == 0, err
            usual[names] = learned(room / "out")
        code, _, err = learn(room, table, (), same(rows_of(names), random.Random(f"{seed} forecast {i}")))
        assert code == 0, err[-500:]
        assert learned(room / "out") == usual[names], "another answer from the same forecast"
        return "the same"

    def wrong_forecast(i: int) -> str:
        names = ("date forecast", "date q10 q50")[i % 2]
        content = spoiled(rows_of(names), random.Random(f"{seed} bad forecast {i}"))
        code, _, err = learn(room, plainly(rows_of("date demand")), (), content)
        return "learned" if code == 0 else refusal(code, err)

    for i in range(MANY):
        for kind in LEARNS:
            yield Case(f"{kind}, the same file, {i} of seed {seed}", partial(right, kind, i))
            yield Case(f"{kind}, spoiled, {i} of seed {seed}", partial(wrong, kind, i))
        yield Case(f"forecast, the same file, {i} of seed {seed}", partial(right_forecast, i))
        yield Case(f"forecast, spoiled, {i} of seed {seed}", partial(wrong_forecast, i))
        for name, attempt in mornings(room, seed):
            yield Case(f"{name}, {i} of seed {seed}", partial(attempt, i))
    shutil.rmtree(room)


def mornings(room: Path, seed: int) -> Iterator[tuple[str, Callable[[int], str]]]:
    """Files for ``act --stock-file`` and ``observe --file``, and odd flags for a store."""
    folder, store = room / "followed", room / "store"

    def prepared() -> None:
        if not folder.exists():
            learn(room, plainly(rows_of("date demand")), ())
            shutil.copytree(room / "out", folder)
            learn(room, plainly(rows_of("date demand")), ("--lead-time", "2"))
            shutil.copytree(room / "out", store)

    first = DAYS[-1] + dt.timedelta(1)
    stocks: Rows = [["date", "stock"], *([str(first + dt.timedelta(i)), str(3 + i)] for i in range(5))]
    steps: Rows = [
        ["date", "stock", "order", "demand", "left"],
        *([str(first + dt.timedelta(i)), "5", "10", str(7 + i), str(8 - i)] for i in range(5)),
    ]

    def acts(content: bytes) -> tuple[int, str, str]:
        prepared()
        (room / "stock.csv").write_bytes(content)
        return command("act", str(folder), "--stock-file", str(room / "stock.csv"))

    def observes(content: bytes) -> tuple[int, str, str]:
        prepared()
        shutil.rmtree(room / "copy", ignore_errors=True)
        shutil.copytree(folder, room / "copy")
        (room / "steps.csv").write_bytes(content)
        return command("observe", str(room / "copy"), "--file", str(room / "steps.csv"))

    def right(do: Callable[[bytes], tuple[int, str, str]], rows: Rows, i: int) -> str:
        code, out, err = do(plainly(rows))
        assert code == 0, err
        draw = random.Random(f"{seed} right morning {i}")
        again, same_out, err = do(same(rows, draw))
        assert again == 0, err
        assert sorted(out.splitlines()) == sorted(same_out.splitlines()), (out, same_out)
        return "the same"

    def wrong(do: Callable[[bytes], tuple[int, str, str]], rows: Rows, i: int) -> str:
        code, _, err = do(spoiled(rows, random.Random(f"{seed} wrong morning {i}")))
        return "taken in" if code == 0 else refusal(code, err)

    def odd(i: int) -> str:
        prepared()
        draw = random.Random(f"{seed} odd {i}")
        shutil.rmtree(room / "copy", ignore_errors=True)
        shutil.copytree(draw.choice((folder, store)), room / "copy")
        number = draw.choice(("-1", "1e308", "1e999", "nan", "inf", "x", "", "0", "5", "3.7", "1,5", "9" * 400))
        date = draw.choice((str(first), "2023-02-30", "9999-12-31", "0001-01-01", "", "x", str(DAYS[3])))
        if draw.random() < 0.5:
            code, _, err = command("act", str(room / "copy"), f"--stock={number}", "--date", date)
        else:
            flags = draw.choice((("--stock=5", "--order=10", "--left=8"), ("--order=4",), ("--received=3",)))
            code, _, err = command("observe", str(room / "copy"), f"--demand={number}", *flags, "--date", date)
        return "taken in" if code == 0 else refusal(code, err)

    yield "act, the same file", partial(right, acts, stocks)
    yield "act, spoiled", partial(wrong, acts, stocks)
    yield "observe, the same file", partial(right, observes, steps)
    yield "observe, spoiled", partial(wrong, observes, steps)
    yield "odd flags", odd

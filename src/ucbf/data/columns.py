"""Which column of a table holds the series, and its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ucbf.data.date_formats import is_date
from ucbf.data.tables import Column, Table
from ucbf.data.text import BEGINNING, MISSING, NUMBER, WITH_COMMA, any_match, floats
from ucbf.errors import UserError

WHICH = "column, --column"  # the argument and the flag that name a column
EMPTY = "no value; fill it in, or leave the row out and say what a gap means (--gaps zero, --gaps unknown)"
LARGEST = 1e50  # so that squares and sums of millions of numbers are finite
MOST_NAMES, MOST_LETTERS = 20, 60  # of columns that an error lists, and of each

THOUSANDS = r"^[+-]?[1-9]\d{0,2}\.\d{3}$"  # 1.500: the point may separate thousands, or decimals
GROUPED = r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$"  # 1.234, where other cells have decimal commas
COMMA_OF_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # 1,500: the comma may separate thousands, or decimals


def value_column(table: Table, column: str | None, dates: str | None) -> str:
    """The name of the column that was asked for; else of the only one with a number in any of its rows."""
    if column is not None:
        return required_column(table, column)
    names = [name for name in table.columns if name != dates]
    if len(names) == 1:
        return names[0]
    numeric = [name for name in names if _may_hold_numbers(table.columns[name])]
    if len(numeric) == 1:
        return numeric[0]
    found = listed(numeric or names)
    if not numeric:
        raise UserError(f"{table.source}: no column holds numbers; there are {found}")
    raise UserError(f"{table.source}: which column? Those with numbers are {found}; say which ({WHICH})")


def required_column(table: Table, name: str) -> str:
    """The name, or an error if the table has no such column."""
    if name not in table.columns:
        raise UserError(f"{table.source} has no column {name!r}; it has {listed(table.columns)}")
    return name


def listed(names: Iterable[str]) -> str:
    """Names of columns, as many as can be read in a line."""
    quoted = [repr(name[:MOST_LETTERS]) for name in names]
    more = f" and {len(quoted) - MOST_NAMES} more" if len(quoted) > MOST_NAMES else ""
    return (", ".join(quoted[:MOST_NAMES]) or "none") + more


def _is_numeric(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _may_hold_numbers(column: Column) -> bool:
    """Whether any cell is a number, or looks like one (1,5 or 5%) in a column that does not begin with a date."""
    if pa.types.is_string(column.type):
        if any_match(column, NUMBER):
            return True
        return any_match(column, BEGINNING) and not is_date(column[0].as_py() or "")
    return _is_numeric(column.type) and bool(pc.any(pc.is_finite(column.cast(pa.float64(), safe=False))).as_py())


def values_of(table: Table, name: str, least: float | None) -> NDArray[np.float64]:
    """[N] the numbers of a column, all finite and none below ``least``."""
    column, bad = table.columns[name], None
    if pa.types.is_string(column.type):
        if has_decimal_commas(table, name):
            column = _with_points(table, name)
        elif table.delimiter in (";", "\t"):
            _refuse_ambiguous_points(table, name)
        column, bad = floats(column)
    elif _is_numeric(column.type):
        column = column.cast(pa.float64(), safe=False)
    else:
        column, bad = pa.chunked_array([], pa.float64()), 0 if len(column) else None
    values: NDArray[np.float64] = column.to_numpy()  # nan for a cell without a value
    values = values if values.flags.writeable else values.copy()  # else it is the memory of the source
    wrong = ~(np.abs(values) <= LARGEST)  # nan is not
    if least is not None:
        wrong |= values < least
    if wrong.any():
        bad = int(wrong.argmax())
    if bad is not None:
        raise table.error(bad, name, _what_is_wrong(table, name, bad, values[bad : bad + 1], least))
    return values


def optional_values(table: Table, name: str, least: float | None = None) -> NDArray[np.float64]:
    """[N] the numbers of a column, nan for cells without a value."""
    column = table.columns[name]
    missing = pc.is_null(column)
    if pa.types.is_string(column.type):
        missing = pc.or_(missing, pc.is_in(pc.utf8_lower(pc.fill_null(column, "")), pa.array(sorted(MISSING))))
    there = np.flatnonzero(~np.asarray(missing))
    values = np.full(len(column), np.nan)
    if len(there):
        part = replace(table, columns={name: column.take(pa.array(there))}, rows=np.asarray(table.rows)[there])
        values[there] = values_of(part, name, least)
    return values


def has_decimal_commas(table: Table, name: str) -> bool:
    """Whether commas are decimal points in a column: where no comma separates cells, and no number says otherwise.

    Where more numbers have a decimal comma than a point, those with a point are odd, and not the commas. An error if
    1,500 may mean 1500, because all numbers with a comma have three decimals.
    """
    column = table.columns[name]
    if table.delimiter not in (";", "\t") or not pa.types.is_string(column.type):
        return False
    with_comma = pc.match_substring(column, ",")
    if not pc.any(with_comma).as_py():
        return False
    maybe, pointed, decimal = (
        pc.match_substring_regex(column, pattern) for pattern in (COMMA_OF_THOUSANDS, "[.eE]", WITH_COMMA)
    )
    odd = _with_a_decimal_point(column)
    if pc.sum(decimal).as_py() != pc.sum(with_comma).as_py() or pc.sum(odd).as_py() >= pc.sum(decimal).as_py():
        return False
    if maybe.equals(with_comma) and not pc.any(pointed).as_py():
        i = int(pc.index(maybe, True).as_py())
        text = column[i].as_py()
        raise table.error(i, name, f"{text} may mean {text.replace(',', '')}, as all numbers with a comma have three "
                          f"decimals; write thousands without a comma, or decimals as {text}0")  # fmt: skip
    return True


def _with_a_decimal_point(column: Column) -> Column:
    """Which cells are numbers with a point or an exponent, and not with points between thousands."""
    number, grouped, pointed = (pc.match_substring_regex(column, pattern) for pattern in (NUMBER, GROUPED, "[.eE]"))
    return pc.and_(pc.and_(number, pointed), pc.invert(grouped))


def _with_points(table: Table, name: str) -> Column:
    """A column with decimal commas, written with points; an error for what has a point that separates no thousands."""
    column = table.columns[name]
    pointed, decimal, grouped = (
        pc.match_substring_regex(column, pattern) for pattern in ("[.eE]", WITH_COMMA, GROUPED)
    )
    i = int(pc.index(pc.and_not(pointed, pc.or_(decimal, grouped)), True).as_py())
    if i >= 0:
        wrong = f"{table.shown(i, name)} is not a number like the others, which have decimal commas; correct it"
        raise table.error(i, name, EMPTY if column[i].as_py() in MISSING else wrong)
    return pc.replace_substring(pc.replace_substring(column, ".", ""), ",", ".")


def point_remark(table: Table, name: str) -> tuple[str, ...]:
    """Says of a number such as 1.400, among whole ones, how it was read: the point may separate thousands."""
    column = table.columns[name]
    if not pa.types.is_string(column.type) or has_decimal_commas(table, name):
        return ()
    maybe = pc.match_substring_regex(column, THOUSANDS)
    n = int(pc.sum(maybe).as_py() or 0)
    if not n or 2 * n > len(column):
        return ()
    i = int(pc.index(maybe, True).as_py())
    text = column[i].as_py()
    return (
        f"{text} in row {table.rows[i]} was read as {float(text):g}; if the point separates thousands, write "
        f"{text.replace('.', '')}.",
    )


def _refuse_ambiguous_points(table: Table, name: str) -> None:
    """An error if 1.500 may mean 1500: where no comma separates cells, a point often separates thousands."""
    cells = table.columns[name]
    maybe, pointed = (pc.match_substring_regex(cells, pattern) for pattern in (THOUSANDS, "[.eE]"))
    if pc.any(maybe).as_py() and maybe.equals(pointed):
        i = int(pc.index(maybe, True).as_py())
        text = cells[i].as_py()
        raise table.error(i, name, f"{text} may mean {text.replace('.', '')}, as all numbers with a point have three "
                          f"decimals; write thousands without a point, or decimals as {text}0")  # fmt: skip


def _what_is_wrong(table: Table, name: str, i: int, value: NDArray[np.float64], least: float | None) -> str:
    """What is wrong with cell i; value: [1], or [0] where it is no number."""
    cell, shown = table.columns[name][i], table.shown(i, name)
    text = cell.as_py() if pa.types.is_string(cell.type) and cell.is_valid else None
    if not cell.is_valid or (text is not None and text.lower() in MISSING) or np.isnan(value).any():
        return EMPTY
    if not len(value):
        hint = "; write numbers with a decimal point and without separators of thousands"
        return f"{shown} is not a number{hint if ',' in shown or '_' in shown else ''}"
    if np.isinf(value[0]):
        return f"{value[0]} is not a finite number"
    if abs(value[0]) > LARGEST:
        return f"{value[0]:g} is beyond {LARGEST:g}, the largest number that is taken; correct it"
    return f"{value[0]:g} is below {least:g}, the least that makes sense here; correct it"

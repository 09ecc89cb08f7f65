"""Numbers that are written as text."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "."}
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
WITH_COMMA = r"^[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+),\d+$"  # a decimal comma: 21,5 and 1.234,5
BEGINNING = r"^[+-]?[.,]?\d"  # what looks like a number at first, such as 1,5 or 5%


def is_number(cell: str) -> bool:
    """Whether a cell is a number, finite or not; 1_000, which Python would read, is not."""
    try:
        return not math.isnan(float(cell)) and "_" not in cell
    except ValueError:
        return False


def any_match(text: Any, pattern: str) -> bool:
    """Whether any cell of a column of text matches a regular expression."""
    return any(pc.any(pc.match_substring_regex(chunk, pattern)).as_py() for chunk in text.chunks)


def floats(text: Any) -> tuple[Any, int | None]:
    """A column of text as numbers, up to the first cell that is not a number; the index of that cell, or None."""
    parts, done = [], 0
    for chunk in text.chunks:
        try:
            parts.append(pc.cast(chunk, pa.float64()))
        except pa.ArrowInvalid:
            bad = next(i for i, cell in enumerate(chunk.to_pylist()) if not _can_be_read(cell))
            parts.append(pc.cast(chunk[:bad], pa.float64()))
            return pa.chunked_array(parts, pa.float64()), done + bad
        done += len(chunk)
    return pa.chunked_array(parts, pa.float64()), None


def _can_be_read(cell: str | None) -> bool:
    try:
        pc.cast(pa.scalar(cell, pa.string()), pa.float64())
    except pa.ArrowInvalid:
        return False
    return True

"""Tables and pictures: what commands print and write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from ucbf.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")


def show(text: object, plain: dict[str, Any], json: bool) -> None:
    """Print what is said, or the same as a JSON object."""
    if json:
        from json import dumps

        print(dumps(plain, ensure_ascii=False, allow_nan=False))
    else:
        print(text)


def refused(done: Callable[[], T]) -> T:
    """What comes of it; an error of a value is one of the user."""
    try:
        return done()
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, UserError) else UserError(str(error)) from None


def publish(
    folder: Path,
    name: str,
    columns: list[str],
    shown: list[list[str]],
    rows: list[dict[str, Any]],
    title: str,
    pictures: list[str],
) -> None:
    """Write a table as Markdown, as shown, and as CSV, every number in full; print it, and what was written."""
    from ucbf import reports

    write(folder / f"{name}.md", reports.markdown_table(columns, shown).encode())
    write(folder / f"{name}.csv", reports.comma_separated(rows).encode())
    _print_table(columns, shown, title)
    print(f"written to {folder}: {', '.join([f'{name}.md', f'{name}.csv', *pictures])}")


def _print_table(columns: list[str], rows: list[list[str]], title: str) -> None:
    """A table on the terminal; a first cell that repeats is left out."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*columns, box=None, title=title)
    last = ""
    for row in rows:
        table.add_row("" if row[0] == last else escape(row[0]), *map(escape, row[1:]))
        last = row[0]
    Console(width=None if sys.stdout.isatty() else 150).print(table)


KINDS: dict[str, dict[str, None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}  # what leaves out the date


def can_draw() -> bool:
    """Whether matplotlib is there."""
    return find_spec("matplotlib") is not None


def check_can_draw() -> None:
    """An error where pictures are asked for, and cannot be drawn: before any work is done."""
    if not can_draw():
        raise UserError("pictures need matplotlib; install it: pip install 'ucbf[plot]'")


def save(
    folder: Path, name: str, draw: Callable[[ModuleType], Figure], kinds: Iterable[str] = tuple(KINDS)
) -> list[str]:
    """Draw a figure and write it as PNG, SVG and PDF, or as some of them; the names of the files."""
    import io

    check_can_draw()
    from ucbf import figures

    figure = draw(figures)
    names = []
    for kind in kinds:
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=160, metadata=KINDS[kind])
        figure.set_layout_engine("none")  # laid out once, for all: that takes as long as drawing
        names.append(f"{name}.{kind}")
        write(folder / names[-1], content.getvalue())
    return names


def write(path: Path, content: bytes) -> None:
    """Write a table or a picture."""
    from ucbf.files import write_whole

    try:
        write_whole(path, content)
    except OSError as error:
        raise UserError(
            f"{path} could not be written: {error.strerror or error}; make room, or mend what is wrong there, and give "
            "the command again; all that was written before is kept"
        ) from None

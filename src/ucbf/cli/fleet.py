"""``ucbf learn inventory --item COLUMN --items FILE``: a plan for each item of a long file, each with its own costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from ucbf.cli.output import write
from ucbf.cli.progress import progress_bar
from ucbf.cli.reading import Reading
from ucbf.errors import UserError
from ucbf.fleet import Columns, learn_fleet
from ucbf.reports import markdown_table
from ucbf.systems import Inventory

SUMMARY = "summary.md"
SHOWN = 20  # items in a table of the page
NEEDED = ("capacity", "max_demand")
UNUSED = ("forecast", "promotions", "in_stock", "available", "half_life", "time_zone", "date_format", "pictures")


def learn_with_costs_of_items(given: dict[str, Any], reading: Reading, demand: Path, items: Path) -> None:
    """Learn a plan for each item; write the plans and a page over all."""
    if reading.item is None:
        raise UserError(f"items is {items} without a column of items; name it (--item)")
    missing = [name for name in NEEDED if name not in given]
    if missing:
        raise UserError(
            f"{' and '.join(missing)} not given; all items of one run have the same sizes: give "
            f"{' and '.join('--' + name.replace('_', '-') for name in missing)}, and other sizes in another run"
        )
    unused = [name for name in UNUSED if getattr(reading, name) is not None]
    if unused:
        raise UserError(f"--{unused[0].replace('_', '-')} does not go with --items; leave it out, or leave out --items")
    folder = reading.out or Path("results") / "items"
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; give a folder (--out)")
    try:
        preset = Inventory(**given)
        with progress_bar("rows") as progress:
            columns = Columns(reading.item, reading.time or Columns.time, reading.column or Columns.amount)
            counted = learn_fleet(
                preset, demand, folder, items, columns=columns, stationary=bool(reading.pool), progress=progress
            )
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    page = _page(demand, folder, counted)
    write(folder / SUMMARY, page.encode())
    print(page)
    print(
        f"written to {folder}: {SUMMARY}, and the plans of all items, one table in {len(_parts(folder))} Parquet files"
    )


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("plans-*.parquet"))


def _page(source: Path, folder: Path, counted: dict[str, int]) -> str:
    """All items in Markdown: what looks wrong first, then those that bring most."""
    table = pq.read_table(_parts(folder), columns=["item", "rows", "mean", "expected", "note"])
    refused = pc.starts_with(pc.fill_null(table["note"], ""), "refused")
    n, wrong = len(table), int(pc.sum(refused).as_py() or 0)
    odd = table.filter(pc.is_valid(table["note"]))
    kinds = Counter(_kind(note) for note in odd["note"].to_pylist())
    said = [
        f"# Items of {source}",
        f"{n} items: {n - wrong} with a plan, {wrong} refused; {len(odd)} with a note. "
        f"{counted['kept']} were done before.",
        *([f"## Read this first\n\n{_counted(kinds)}", _rows(odd)] if len(odd) else []),
        "## Those that bring most",
        _rows(table.filter(pc.is_valid(table["expected"])).sort_by([("expected", "descending")])),
        "`expected` is the reward that is expected of an episode that begins with no stock, if demand stays as it was. "
        "How the plans would have done on days that they were not learned from was not tried: learn one item with "
        "`ucbf learn inventory` for that.",
    ]
    return "\n\n".join(said) + "\n"


def _kind(note: str) -> str:
    """A note without what differs from item to item."""
    for kind in ("refused: no costs", "refused: its days", "refused: a demand outside", "rose", "fell", "learned from"):
        if kind in note:
            return {"rose": "demand rose", "fell": "demand fell", "learned from": "few days"}.get(kind, kind)
    return "days are missing"


def _counted(kinds: Counter[str]) -> str:
    return markdown_table(["what", "items"], [[kind, str(n)] for kind, n in kinds.most_common()])


def _rows(table: Any) -> str:
    cells = [
        [
            str(row["item"]).replace("|", "/"),
            str(row["rows"]),
            f"{row['mean']:.4g}",
            "" if row["expected"] is None else f"{row['expected']:.5g}",
            row["note"] or "",
        ]
        for row in table.slice(0, SHOWN).to_pylist()
    ]
    more = f"\n\nand {len(table) - SHOWN} more, in the Parquet files" if len(table) > SHOWN else ""
    return markdown_table(["item", "days", "mean demand", "expected reward an episode", "note"], cells) + more

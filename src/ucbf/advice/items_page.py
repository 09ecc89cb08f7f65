"""The page over many items: who looks wrong, who gains most, who brings most; in Markdown and in HTML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ucbf.advice.page import rendered
from ucbf.reports import markdown_table
from ucbf.systems.base import Preset
from ucbf.wording import show_count

SHOWN = 20  # items in a table of the page
COLUMNS = ("item", "rows", "mean", "expected", "gain", "note")  # of the table of plans, that the page is made from
FIRST = "Read this first"
SUMMARY, PAGE = "summary.md", "page.html"  # of all items, and of one in its folder
KINDS = {  # what stands in a note, and what it is called where notes are counted
    "refused: ": "",
    "far from all others": "demand far from all others",
    "nothing is ever ordered": "nothing is ever ordered",
    "is used up": "the capacity is used up",
    " rose ": "demand rose",
    " fell ": "demand fell",
    "learned from": "few days",
    "missing: ": "days are missing",
}
GRAVEST = ("far from all others", "nothing is ever ordered")  # what comes first on the page, after what is refused


@dataclass(frozen=True)
class Rows:
    """A table as it is shown."""

    columns: tuple[str, ...]
    rows: list[list[str]]
    more: str = ""  # where the rest is
    folders: tuple[str, ...] = ()  # [n] those of the items of the rows, where they have pages of their own, or ""


@dataclass(frozen=True)
class Section:
    """A table with what is to be said of it."""

    heading: str
    said: str
    table: Rows


@dataclass(frozen=True)
class ItemsPage:
    """All that is said of many items."""

    title: str
    verdict: str
    kinds: Rows  # what looks wrong, and how often
    odd: Rows  # the items with it
    sections: tuple[Section, ...]
    done: tuple[str, ...] = ()  # what was done, in sentences
    nothing: str = "Nothing looks wrong with the rows of any item."


def fleet_page(source: str, plans: Any, done: Sequence[str], preset: Preset) -> ItemsPage:
    """What is said of a table of plans, of which it needs ``COLUMNS``.

    done: sentences on what was done; preset: what all items have in common
    """
    average = preset.horizon is None and preset.discount == 1
    span = f"a {preset.step_name}" if average else "an episode"
    begins = "in the long run" if average else "from no stock on"
    notes = pc.fill_null(plans["note"], "")
    noted, bad = pc.is_valid(plans["note"]), pc.starts_with(notes, "refused")
    rank = np.argmax([bad, *(pc.match_substring(notes, part) for part in GRAVEST), noted], axis=0)
    at = np.flatnonzero(noted)
    odd = plans.take(pa.array(at[np.argsort(rank[at], kind="stable")]))
    refused, n = int(pc.sum(bad).as_py() or 0), len(plans)
    kinds = Counter(_kind(note) for note in odd["note"].to_pylist())
    gained = int(pc.sum(pc.greater(pc.fill_null(plans["gain"], 0.0), 0.0)).as_py() or 0)
    total = pc.sum(plans["gain"]).as_py()
    return ItemsPage(
        f"Items of {source}",
        f"{show_count(n, 'item')}: {n - refused} with a plan, {refused} refused; {len(odd)} with a note.",
        Rows(("what", "items"), [[kind, str(number)] for kind, number in kinds.most_common()]),
        _shown(odd),
        (
            Section(
                "Those that gain most",
                f"Gain is how much more is expected of {span} than under a plan that believes that the mean comes "
                f"every day: {0.0 if total is None else total:,.5g} in all, of {show_count(gained, 'item')}.",
                _shown(_largest(plans, "gain")),
            ),
            Section(
                "Those that bring most",
                f"Expected is the reward that is expected of {span}, {begins}, if demand stays as it was.",
                _shown(_largest(plans, "expected")),
            ),
        ),
        tuple(done),
    )


def items_markdown(told: ItemsPage) -> str:
    """The page in Markdown."""
    said = [f"# {told.title}", told.verdict]
    if told.kinds.rows:
        said += [f"## {FIRST}", _markdown(told.kinds), _markdown(told.odd)]
    for section in told.sections:
        said += [f"## {section.heading}", *([section.said] if section.said else []), _markdown(section.table)]
    if told.done:
        said += ["## What was done", "\n".join(f"- {line}" for line in told.done)]
    return "\n\n".join(said) + "\n"


def items_html(told: ItemsPage) -> str:
    """The page in HTML: one file that opens anywhere without a network. Pages of the items open from it."""
    return rendered("items.html.jinja", told=told, first=FIRST, page=PAGE)


def _markdown(table: Rows) -> str:
    rows = [[_plain(cell) for cell in row] for row in table.rows]
    for row, folder in zip(rows, table.folders, strict=False):
        row[0] = f"[{row[0]}]({folder}/{SUMMARY})" if folder else row[0]
    return markdown_table(list(table.columns), rows).strip() + (f"\n\n{table.more}" if table.more else "")


def _plain(text: str) -> str:
    """Text that may stand in a cell of a table, and in a link."""
    return text.replace("|", "/").replace("[", "(").replace("]", ")")


def _largest(plans: Any, column: str) -> Any:
    """The items with the largest entries of a column."""
    known = plans.filter(pc.is_valid(plans[column]))
    return known.take(pc.select_k_unstable(known, SHOWN, [(column, "descending")])) if len(known) else known


def _shown(plans: pa.Table) -> Rows:
    rows = [
        [
            str(row["item"]),
            str(row["rows"]),
            "" if row["mean"] != row["mean"] else f"{row['mean']:.4g}",
            "" if row["expected"] is None else f"{row['expected']:.5g}",
            "" if row["gain"] is None else f"{row['gain']:.4g}",
            row["note"] or "",
        ]
        for row in plans.slice(0, SHOWN).to_pylist()
    ]
    more = f"and {len(plans) - SHOWN} more, in the Parquet files" if len(plans) > SHOWN else ""
    return Rows(("item", "days", "mean demand", "expected", "gain", "note"), rows, more)


def _kind(note: str) -> str:
    """A note without what differs from item to item."""
    for part, kind in KINDS.items():
        if part in note:
            return kind or re.sub(r"-?\d[\d.,e+-]*\d|-?\d", "...", note.split(";")[0])
    return note

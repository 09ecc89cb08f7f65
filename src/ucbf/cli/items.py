"""``ucbf learn --item COLUMN``: a folder of results for each item of a long file, and one table over all.

An item is done when its summary.md is there, which is written last. It is done again only if its rows, the parameters
or the version have changed, which inputs.json tells. An item whose rows cannot be used does not stop the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ucbf import __version__, data
from ucbf.advice.items_page import PAGE, SUMMARY, ItemsPage, Rows, Section, items_html, items_markdown
from ucbf.advice.judging import NOT_RULES
from ucbf.cli.learn_files import write_files
from ucbf.cli.learning import Learned, Task
from ucbf.cli.output import write
from ucbf.cli.progress import progress_bar
from ucbf.cli.reading import Reading
from ucbf.cli.results import WRITTEN, refuse_inputs, remove_results, results_in
from ucbf.data.tables import Table
from ucbf.errors import UserError
from ucbf.files import ITEMS, digest
from ucbf.following.model import NAME as MODEL
from ucbf.following.stores import NAME as STORE
from ucbf.reports import comma_separated
from ucbf.wording import show_count

DONE, REFUSED = "done", "refused"
INPUTS, TABLE = "inputs.json", ITEMS
LONGEST = 100  # characters of the name of a folder
IRRELEVANT = ("out", "forecast", "config")  # flags that say where something is; what is there counts
Row = dict[str, Any]


def learn_items(
    reading: Reading, task_of: Callable[[str], Task], source: Path, folder: Path, others: Sequence[Path] = ()
) -> None:
    """Learn from the rows of each item of a file; write a folder for each, and a table over all.

    task_of: what is learned of an item, by its name; a UserError where that cannot be; others: inputs besides
    """
    column = reading.item
    assert column is not None
    inputs = (source, *reading.files, *others)
    refuse_inputs(inputs, folder, (TABLE, PAGE, SUMMARY))
    refuse_inputs(inputs, folder, (*WRITTEN, INPUTS), below=1)
    parts = data.split_items(source, column)
    forecasts = {} if reading.forecast is None else data.split_items(reading.forecast, column)
    folders = {name: folder / safe for name, safe in folder_names(list(parts)).items()}
    rows = []
    with progress_bar("items") as progress:
        for name, part in parts.items():
            rows.append(_row(task_of, name, part, forecasts, folders[name]))
            progress(len(rows), len(parts))
    rows.sort(key=_standing_out)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / TABLE, comma_separated(rows).encode())
    told = _page(source, rows, folders)
    text = items_markdown(told)
    write(folder / PAGE, items_html(told).encode())
    write(folder / SUMMARY, text.encode())
    refused = [row for row in rows if row["status"] != DONE]
    if len(refused) == len(rows):
        raise UserError(
            f"none of the {len(rows)} items could be learned from; item {rows[0]['item']!r}: {rows[0]['status']}"
        )
    print(text)
    print(f"written to {folder}: {PAGE}, {SUMMARY}, {TABLE}, and a folder for each item")


def folder_names(items: list[str]) -> dict[str, str]:
    """For each item, a name that a folder may have anywhere; a UserError if two items get the same."""
    found: dict[str, str] = {}
    taken = {name: f"the file {name}" for name in (PAGE, SUMMARY, TABLE)}  # by the name in small letters
    for item in items:
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in item).strip(".")[:LONGEST] or "-"
        if safe.lower() in taken:
            raise UserError(
                f"item {item!r} and {taken[safe.lower()]} would have the same folder {safe!r}; rename one of them"
            )
        taken[safe.lower()] = f"item {item!r}"
        found[item] = safe
    return found


def _row(task_of: Callable[[str], Task], name: str, part: Table, forecasts: dict[str, Table], folder: Path) -> Row:
    """Learn from one item unless that is done; its row of the table."""
    n = len(part.rows)
    try:
        task = task_of(name)
        key = _digest(task, part, forecasts.get(name))
        known = _finished(folder, key)
        if known is not None:
            return known
        remove_results(folder, results_in(folder))  # so that nothing old is followed
        for stale in (SUMMARY, INPUTS, MODEL, STORE):
            (folder / stale).unlink(missing_ok=True)
        if task.reading.forecast is not None and name not in forecasts:
            raise UserError(f"{task.reading.forecast} has no forecast of item {name!r}; add its rows")
        learned = task.learn_from(part, forecasts.get(name))
    except UserError as error:
        return _cells(name, n, f"{REFUSED}: {' '.join(str(error).split())}")
    row = _learned_row(name, n, learned)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / INPUTS, json.dumps({"digest": key, "row": row}, indent=1).encode())
    write_files(folder, *learned, task.reading.time_zone, task.reading.draws(usually=False))
    return row


def _finished(folder: Path, key: str) -> Row | None:
    """The row of an item that was done with the same inputs."""
    try:
        stored = json.loads((folder / INPUTS).read_text(encoding="utf-8"))
        if (
            (folder / SUMMARY).is_file()
            and stored["digest"] == key
            and stored["row"].keys() == _cells("", 0, "").keys()
        ):
            row: Row = stored["row"]
            return row
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # not there, or not ours: it is done again
    return None


def _digest(task: Task, part: Table, forecast: Table | None) -> str:
    """Of all that the results of an item follow from."""
    settings = {name: str(value) for name, value in vars(task.reading).items() if name not in IRRELEVANT}
    prices = None if task.prices is None else [task.prices.values.tolist(), str(task.prices.times)]
    tables = [None if table is None else {name: cells.to_pylist() for name, cells in table.columns.items()}
              for table in (part, forecast)]  # fmt: skip
    stated = [
        __version__,
        task.kind.kind,
        [remark.text for remark in task.remarks],
        task.given,
        settings,
        prices,
        tables,
    ]
    return digest(json.dumps(stated, default=str, sort_keys=True).encode())


def _cells(name: str, rows: int, status: str) -> Row:
    """The row of an item of which nothing is known but its status."""
    return {"item": name, "rows": rows, "policy": "", "expected_reward": "", "best_rule": "", "learned_ahead": "",
            "caveats": 0, "gravest_caveat": "", "assumed": "", "status": status}  # fmt: skip


def _learned_row(name: str, rows: int, learned: Learned) -> Row:
    found, told = learned
    rules = [row for row in found.comparison() if row["policy"] not in NOT_RULES]
    best = {"best_rule": rules[0]["policy"], "learned_ahead": rules[0]["ahead"]} if rules else {}
    return {
        **_cells(name, rows, DONE),
        "policy": "; ".join(str(line) for rules in told.rules[-1:] for line in rules.lines),
        "expected_reward": found.value if math.isfinite(found.value) else "",
        **best,
        "caveats": len(told.own_caveats),
        "gravest_caveat": told.own_caveats[0] if told.own_caveats else "",
        "assumed": " ".join(told.assumed),
    }


def _standing_out(row: Row) -> tuple[bool, int]:
    """The order of the items: refused ones first, then by the number of caveats; else as in the file."""
    return row["status"] == DONE, -row["caveats"]


def _page(source: Path, rows: list[Row], folders: dict[str, Path]) -> ItemsPage:
    """All items, those that stand out first."""
    done = [row for row in rows if row["status"] == DONE]
    told = [row for row in done if row["caveats"]]
    refused = [row for row in rows if row["status"] != DONE]
    assumed = dict.fromkeys(row["assumed"] for row in done if row["assumed"])
    counts = [["refused", str(len(refused))]] if refused else []
    counts += [["with something to read first", str(len(told))]] if told else []
    said = (
        f"{show_count(len(rows), 'item')}: {len(done)} done, {len(told)} of them with things to read first; "
        f"{len(refused)} refused."
    )
    return ItemsPage(
        f"Items of {source}",
        " ".join([said, *list(assumed)[:1]]),
        Rows(("what", "items"), counts),
        _table(
            ("item", "note"),
            [*refused, *told],
            folders,
            lambda row: [row["gravest_caveat"] if row["status"] == DONE else row["status"]],
        ),
        (
            Section(
                "What to expect",
                "Expected is the reward that is expected of an episode; where orders take time, it is what an episode "
                "got, of those that followed. Ahead is how much more the learned policy earned than the best simple "
                "rule, in the episodes that it was not learned from.",
                _table(("item", "rows", "expected", "ahead", "best simple rule"), done, folders, _cells_of),
            ),
        ),
        nothing="Nothing looks wrong with any item.",
    )


def _table(
    columns: tuple[str, ...], rows: list[Row], folders: dict[str, Path], cells: Callable[[Row], list[str]]
) -> Rows:
    """A table with a row for each item, and its folder where it has pages."""
    there = tuple(folders[row["item"]].name if row["status"] == DONE else "" for row in rows)
    return Rows(columns, [[row["item"], *cells(row)] for row in rows], folders=there)


def _cells_of(row: Row) -> list[str]:
    expected, ahead = (row[name] for name in ("expected_reward", "learned_ahead"))
    return [
        str(row["rows"]),
        "" if expected == "" else f"{expected:.5g}",
        "" if ahead == "" else f"{ahead:+.4g}",
        row["best_rule"],
    ]

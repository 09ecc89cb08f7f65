"""The page over many items."""

import pyarrow as pa

from ucbf.advice.items_page import fleet_page, items_html, items_markdown
from ucbf.systems import Inventory


def plans(n=25):
    notes = [None] * n
    notes[3] = "its demand rose from 1 to 9 a day; all of the past counts alike here"
    notes[1] = "nothing is ever ordered: its price (3) is not above its unit cost (4)"
    notes[6] = "far from all others: 99 on 2024-01-09; the others go from 0 to 9; missing: 1 day"
    notes[4] = "refused: no costs; add a row to the file of costs"
    gain = [float(i) for i in range(n)]
    gain[4] = None
    names = [f"sku{i}" for i in range(n)]
    names[24] = "a|b<c>"
    return pa.table(
        {"item": names, "rows": [84] * n, "mean": [2.5] * n, "expected": pa.array(gain).cast(pa.float64()),
         "gain": gain, "note": pa.array(notes, pa.string())}
    )  # fmt: skip


def test_those_that_are_refused_come_first_and_those_that_gain_most_next():
    told = fleet_page("demand.parquet", plans(), ["all of it"], Inventory())
    assert told.verdict == "25 items: 24 with a plan, 1 refused; 4 with a note."
    assert [row[0] for row in told.odd.rows] == ["sku4", "sku6", "sku1", "sku3"]
    assert sorted(told.kinds.rows) == [
        ["demand far from all others", "1"], ["demand rose", "1"], ["nothing is ever ordered", "1"],
        ["refused: no costs", "1"],
    ]  # fmt: skip
    most = told.sections[0].table
    assert [row[0] for row in most.rows][:3] == ["a|b<c>", "sku23", "sku22"]
    assert len(most.rows) == 20
    assert "296 in all, of 23 items" in told.sections[0].said  # 0 + 1 + ... + 24 - 4; one gains nothing


def test_markdown_and_html_say_the_same():
    told = fleet_page("demand.parquet", plans(), ["all of it"], Inventory())
    text, page = items_markdown(told), items_html(told)
    assert "| a/b<c> | 84 |" in text
    assert "a|b&lt;c&gt;" in page
    for said in (told.verdict, "Those that gain most", "refused: no costs", "all of it"):
        assert said in text
        assert said in page
    assert "http" not in page


def test_a_fleet_without_notes():
    told = fleet_page("x", plans().slice(8, 3), [], Inventory())
    assert "Read this first" not in items_markdown(told)
    assert "Nothing looks wrong" in items_html(told)

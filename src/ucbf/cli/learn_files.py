"""The files that ``ucbf learn`` writes: pages, tables, pictures, and agents that go on learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ucbf import advice
from ucbf.cli.learn_orders import write_order_files
from ucbf.cli.output import save
from ucbf.cli.results import BY_LEVEL, refuse_foreign_store, remove_results, results_in
from ucbf.files import write_whole
from ucbf.reports import comma_separated


def write_files(
    folder: Path,
    found: advice.Advice | advice.OrderAdvice,
    told: advice.Sections,
    time_zone: str | None = None,
    pictures: bool = True,
) -> list[str]:
    """Write all files into the folder, summary.md last; their names. time_zone: of the series, where it was named."""
    if isinstance(found, advice.OrderAdvice):
        return write_order_files(folder, found, told, time_zone, pictures)
    folder.mkdir(parents=True, exist_ok=True)
    refuse_foreign_store(folder)
    old = results_in(folder)
    tables = {"policy.csv": _policy_rows(found), "law.csv": _law_rows(found)}
    if found.by_level is not None:
        tables[BY_LEVEL] = _rows_by_level(found.by_level)
    if found.rewards:
        tables["comparison.csv"] = found.comparison()
    drawn = save(folder, "policy", lambda figures: figures.advice_figure(found), ["png"]) if pictures else []
    for name, rows in tables.items():
        write_whole(folder / name, comma_separated(rows).encode())
    names = [*tables, *found.save(folder, time_zone), *drawn]
    remove_results(folder, old.difference(names))
    pages = {"page.html": advice.html(told, _page_pictures(found) if pictures else None)}
    pages["summary.md"] = advice.markdown(told)
    for name, text in pages.items():
        write_whole(folder / name, text.encode())
    return [*reversed(pages), *names]


def _page_pictures(found: advice.Advice) -> advice.Pictures:
    from ucbf.figures import page_pictures  # after save(), which says how to get matplotlib

    return page_pictures(found)


def _policy_rows(found: advice.Advice) -> list[dict[str, Any]]:
    """What to do, a row for each kind of day, step and state."""
    named = len(found.by_kind) > 1
    return [
        ({"kind": day.name} if named else {}) | row
        for day in found.by_kind.values()
        for row in day.policy.rows()[day.begins * day.policy.system.n_states :]
    ]


def _rows_by_level(advised: advice.RegimeAdvice) -> list[dict[str, Any]]:
    """What to do by the level of the last steps, a row for each kind of day, step, level and state."""
    names, named = advised.regimes.names, len(advised.policies) > 1
    return [
        ({"kind": kind} if named else {}) | {"level": names[row.pop("context")]} | row
        for kind, policy in advised.policies.items()
        for row in policy.rows()
    ]


def _law_rows(found: advice.Advice) -> list[dict[str, Any]]:
    """The learned law of the amount, a row for each kind of day, step and value that may occur."""
    rows = []
    for day in found.by_kind.values():
        law, preset, words = day.amount_distribution, day.preset, day.policy.words
        for h, step in [*enumerate(words.steps or range(1, preset.n_steps + 1))][day.begins :]:
            for value, p in zip(law.values, law.pmf[h % len(law.pmf)], strict=True):
                if p > 0:
                    kind = {"kind": day.name} if len(found.by_kind) > 1 else {}
                    amount = {preset.amount_name: float(f"{value * preset.unit:.12g}"), "probability": float(p)}
                    rows.append({**kind, words.step: step, **amount})
    return rows

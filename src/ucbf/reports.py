"""Stored results as numbers: curves as arrays, and the table of regrets and gaps."""

from __future__ import annotations

import csv
import io
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.studies.spec import CHECKPOINTS, Study
from ucbf.studies.store import Results

DRAWS = 2000  # of the bootstrap


class Curve(NamedTuple):
    """One agent's gaps in one panel, over the worlds that are finished."""

    panel: int
    label: str
    episodes: NDArray[np.int64]  # [P]
    gap: NDArray[np.float64]  # [worlds, P]
    greedy: NDArray[np.float64]  # [worlds]
    runs: list[dict[str, Any]]  # rows of the table of runs


def panel_title(study: Study, panel: int) -> str:
    """What distinguishes a panel: its values of the parameters that vary."""
    letters = {"n_states": "S", "n_actions": "A", "horizon": "H", "max_disturbance": "W", "lipschitz": "L"}
    chosen = study.panels()[panel]
    return ", ".join(f"{letters.get(k, k)} = {chosen[k]}" for k in study.world.varied()) or study.name


def curves_of(results: Results) -> list[Curve]:
    """Panel by panel, agent by agent, in the order of the study."""
    rows = results.runs.to_pylist()
    episode, gap = (results.curves[name].to_numpy() for name in ("episode", "gap"))
    points = len(gap) // len(rows)  # every run of a study keeps the same episodes
    gaps = gap.reshape(len(rows), points)
    groups: dict[tuple[int, str], list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault((row["panel"], row["label"]), []).append(i)
    return [
        Curve(
            panel,
            label,
            episode[:points].astype(np.int64),
            gaps[members],
            np.array([rows[i]["greedy_gap"] for i in members]),
            [rows[i] for i in members],
        )
        for (panel, label), members in groups.items()
    ]


def interval(values: NDArray[np.float64], seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A 95 % bootstrap interval of the mean over the first axis."""
    rng = np.random.default_rng(seed)
    n = len(values)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS) / n  # [DRAWS, n]
    low, high = np.quantile(weights @ values, [0.025, 0.975], axis=0)
    return low, high


def summary(results: Results) -> list[dict[str, Any]]:
    """A row for each panel and agent."""
    rows = []
    for curve in curves_of(results):
        regret = np.array([run["regret"] for run in curve.runs])
        low, high = interval(regret)
        settled = [run["settled"] for run in curve.runs]
        times = sorted(np.inf if k is None else k for k in settled)
        median = float(np.median(times))
        rows.append(
            {
                "panel": panel_title(results.study, curve.panel),
                "agent": curve.label,
                "worlds": len(regret),
                "regret": float(regret.mean()),
                "regret_low": float(low),
                "regret_high": float(high),
                "greedy_gap": float(curve.greedy.mean()),
                **{
                    f"gap_{k}": float(np.mean([run[f"gap_{k}"] for run in curve.runs]))
                    for k in CHECKPOINTS
                    if k <= results.study.episodes
                },
                "settled": None if np.isinf(median) else median,
                "settled_share": float(np.mean([k is not None for k in settled])),
            }
        )
    return rows


def heading(results: Results) -> dict[str, str]:
    """The columns of the summary and how people read them."""
    gaps = {f"gap_{k}": f"gap at {k}" for k in CHECKPOINTS if k <= results.study.episodes}
    return {
        "panel": "panel",
        "agent": "agent",
        "worlds": "worlds",
        "regret": "regret (95 %)",
        **gaps,
        "settled": "settles",
    }


def cells(row: dict[str, Any], columns: dict[str, str]) -> list[str]:
    """A row of the summary as text."""
    out = []
    for column in columns:
        value = row[column]
        if column == "regret":
            value = f"{value:.4g} ({row['regret_low']:.4g}, {row['regret_high']:.4g})"
        elif column == "settled":
            value = "never" if value is None else f"{value:.0f}"
        elif column.startswith("gap_"):
            value = f"{value:.4f}"
        out.append(str(value))
    return out


def markdown(results: Results) -> str:
    """The summary as a Markdown table."""
    columns = heading(results)
    return markdown_table(list(columns.values()), [cells(row, columns) for row in summary(results)])


def markdown_table(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def comma_separated(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV, every number in full."""
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()

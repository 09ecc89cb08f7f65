"""Stored results as numbers: curves as arrays, and the table of regrets and gaps."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ucbf.studies.spec import Study
    from ucbf.studies.store import Results

DRAWS = 2000  # of the bootstrap
SAME = 1e-9  # regrets that differ by less, as a share, are the same


class Curve(NamedTuple):
    """One agent's gaps in one panel, over the worlds that are finished."""

    panel: int
    label: str
    episodes: NDArray[np.int64]  # [P] or steps, where there is no end
    gap: NDArray[np.float64]  # [worlds, P]
    regret: NDArray[np.float64]  # [worlds, P] cumulative
    greedy: NDArray[np.float64]  # [worlds]
    runs: list[dict[str, Any]]  # rows of the table of runs

    @property
    def family(self) -> str:
        """The algorithm, and whether it repairs f; without its other parameters."""
        run = self.runs[0]
        return str(run["agent"]) + (" repaired" if json.loads(run["agent_params"]).get("estimator") else "")

    @property
    def total(self) -> NDArray[np.float64]:
        """[worlds] the regret after the last episode."""
        return np.array([run["regret"] for run in self.runs])


def compared_names(curves: list[Curve]) -> list[str]:
    """The name of every curve among those of its panel and ζ: its algorithm, or its label if several share that."""
    keys = [(curve.panel, curve.runs[0]["model_error"], curve.family) for curve in curves]
    shared = Counter(keys)
    return [
        curve.family
        if shared[key] == 1
        else ", ".join(part for part in curve.label.split(", ") if not part.startswith(("ζ = ", "told ζ = ")))
        for curve, key in zip(curves, keys, strict=True)
    ]


def panel_title(study: Study, panel: int) -> str:
    """The title of a panel: its values of the parameters that vary."""
    letters = {
        "n_states": "S",
        "n_actions": "A",
        "horizon": "H",
        "max_disturbance": "W",
        "lipschitz": "L",
        "period": "P",
        "discount": "γ",
    }
    chosen = study.panels()[panel]
    return ", ".join(f"{letters.get(k, k)} = {chosen[k]}" for k in study.world.varied()) or study.name


def length_of(study: Study) -> str:
    """How long its runs are, in words."""
    return f"{study.length} {study.counted}s"


def gap_name(study: Study) -> str:
    """What the gap of a study is the gap of; of worlds of the user's own a study does not say whether they discount."""
    if not study.by_step:
        return "gap to the optimal value"
    gain, discounted = "gain gap", "V* - V^π"
    if study.world.kind == "endless":
        discounts = [panel.get("discount", 1) for panel in study.panels()]
        if all(discount == 1 for discount in discounts):
            return gain
        if all(discount < 1 for discount in discounts):
            return discounted
    return f"{gain}; {discounted} where discounted"


def curves_of(results: Results) -> list[Curve]:
    """The curves, panel by panel and agent by agent, in the order of the study."""
    rows = results.runs.to_pylist()
    episode, gap, regret = (results.curves[name].to_numpy() for name in ("episode", "gap", "regret"))
    points = len(gap) // len(rows)  # every run of a study keeps the same episodes
    gaps, regrets = (values.reshape(len(rows), points) for values in (gap, regret))
    groups: dict[tuple[int, str], list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault((row["panel"], row["label"]), []).append(i)
    return [
        Curve(
            panel,
            label,
            episode[:points].astype(np.int64),
            gaps[members],
            regrets[members],
            np.array([rows[i]["greedy_gap"] for i in members]),
            [rows[i] for i in members],
        )
        for (panel, label), members in groups.items()
    ]


def smallest(panels: Iterable[dict[str, float]]) -> str:
    """The finding of a figure in one sentence: whose regret is the smallest, in how many panels. "" for one agent.

    panels: the regret of every agent, by its label, for each panel
    """
    compared = [sorted(regrets.items(), key=lambda each: each[1]) for regrets in panels if len(regrets) > 1]
    winners = [first[0] for first, second, *_ in compared if second[1] - first[1] > SAME * abs(second[1])]
    if not winners:
        return ""
    name, wins = Counter(winners).most_common(1)[0]
    if len(compared) == 1:
        return f"{name} has the smallest regret"
    where = f"{wins} of {len(compared)}" if wins < len(compared) else "both" if wins == 2 else f"all {wins}"
    return f"{name} has the smallest regret in {where} panels"


def interval(values: NDArray[np.float64], seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A 95 % bootstrap interval of the mean over the first axis."""
    rng = np.random.default_rng(seed)
    n = len(values)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS) / n  # [DRAWS, n]
    low, high = np.quantile(weights @ values, [0.025, 0.975], axis=0)
    return low, high


def summary(results: Results) -> list[dict[str, Any]]:
    """The table of regrets and gaps: a row for each panel and agent."""
    rows = []
    for curve in curves_of(results):
        regret = curve.total
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
                **{f"gap_{k}": float(np.mean([run[f"gap_{k}"] for run in curve.runs])) for k in _checkpoints(results)},
                "settled": None if np.isinf(median) else median,
                "settled_share": float(np.mean([k is not None for k in settled])),
            }
        )
    return rows


def paired(results: Results) -> list[dict[str, Any]]:
    """Every agent compared, world by world, with the first agent of its panel that has the same model error.

    The interval is of the ratio of mean regrets: the bootstrap draws the same worlds for both. ``slope`` is the mean
    gap over the last fifth of the episodes, or steps.
    """
    rows: list[dict[str, Any]] = []
    first: dict[tuple[int, float], Curve] = {}
    curves = curves_of(results)
    names = compared_names(curves)
    for curve, name in sorted(
        zip(curves, names, strict=True), key=lambda each: (each[0].panel, each[0].runs[0]["model_error"])
    ):
        key = (curve.panel, curve.runs[0]["model_error"])
        base = first.setdefault(key, curve)
        shared = {run["world"]: run["regret"] for run in base.runs}
        mine = [(run["regret"], shared[run["world"]]) for run in curve.runs if run["world"] in shared]
        low, high = ratio_interval(np.array(mine))
        late = curve.episodes >= 0.8 * curve.episodes[-1]
        slope = (curve.regret[:, -1] - curve.regret[:, late][:, 0]) / (curve.episodes[-1] - curve.episodes[late][0])
        rows.append(
            {
                "panel": f"{panel_title(results.study, curve.panel)}, ζ = {key[1]:g}",
                "agent": name,
                "label": curve.label,
                "worlds": len(curve.runs),
                "regret": float(curve.total.mean()),
                "worst_regret": float(curve.total.max()),
                "ratio": float(np.sum(mine, axis=0)[0] / np.sum(mine, axis=0)[1]),
                "ratio_low": low,
                "ratio_high": high,
                "last_gap": float(curve.gap[:, -1].mean()),
                "worst_last_gap": float(curve.gap[:, -1].max()),
                "slope": float(slope.mean()),
                "switches": float(np.mean([run["switches"] for run in curve.runs])),
            }
        )
    return rows


def paired_heading(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The columns of the paired table that are printed, and their titles. rows: from :func:`paired`."""
    bases = {row["panel"]: row["agent"] for row in reversed(rows)}  # the first of each panel
    base = bases.popitem()[1] if len(set(bases.values())) == 1 else "the first"
    return {
        "panel": "panel",
        "agent": "agent",
        "regret": "regret",
        "worst_regret": "worst world",
        "ratio": f"of {base}'s (95 %, paired)",
        "last_gap": "last gap",
        "worst_last_gap": "worst world",
        "slope": "slope",
        "switches": "switches",
    }


def ratio_interval(pairs: NDArray[np.float64], seed: int = 0) -> tuple[float, float]:
    """A 95 % bootstrap interval of the ratio of the means of two columns [n, 2], whose rows are drawn together."""
    n = len(pairs)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=DRAWS) @ pairs
    low, high = np.quantile(weights[:, 0] / weights[:, 1], [0.025, 0.975])
    return float(low), float(high)


def _checkpoints(results: Results) -> list[int]:
    """The episodes, or steps, whose gap is told."""
    from ucbf.studies.runs import CHECKPOINTS  # here: tables of ucbf learn need no studies

    return [k for k in CHECKPOINTS if k <= results.study.length]


def heading(results: Results) -> dict[str, str]:
    """The columns of the summary that are printed, and their titles."""
    gaps = {f"gap_{k}": f"gap at {k}" for k in _checkpoints(results)}
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
        if column == "regret" and "regret_low" in row:
            value = f"{value:.4g} ({row['regret_low']:.4g}, {row['regret_high']:.4g})"
        elif column == "settled":
            value = "never" if value is None else f"{value:.0f}"
        elif column.startswith("gap_"):
            value = f"{value:.4f}"
        elif column == "ratio":
            value = f"{value:.3f} ({row['ratio_low']:.3f}, {row['ratio_high']:.3f})"
        elif isinstance(value, float):
            value = f"{value:.3g}"
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

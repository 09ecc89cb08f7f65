from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from ucbf import figures, reports
from ucbf.studies.reading import make_study
from ucbf.studies.runner import run_study
from ucbf.studies.store import read_results


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    study = make_study(
        {
            "episodes": 150,
            "worlds": 6,
            "record": 30,
            "world": {"n_states": 6, "n_actions": [2, 3], "horizon": 3, "max_disturbance": 2},
            "agents": [{"name": "UCB-f"}, {"name": "greedy"}],
        }
    )
    folder = tmp_path_factory.mktemp("reports")
    run_study(study, folder)
    return read_results(folder)


def test_curves_are_gathered_by_panel_and_agent(results):
    curves = reports.curves_of(results)
    assert [(c.panel, c.label, c.gap.shape[0]) for c in curves] == [
        (0, "UCB-f", 6), (0, "greedy", 6), (1, "UCB-f", 6), (1, "greedy", 6),
    ]  # fmt: skip
    greedy = curves[1]
    np.testing.assert_allclose(greedy.gap, np.tile(greedy.greedy[:, None], greedy.gap.shape[1]), atol=1e-12)
    assert (greedy.episodes[0], greedy.episodes[-1]) == (1, 150)


def test_the_summary_is_the_mean_over_worlds(results):
    rows = reports.summary(results)
    runs = [r for r in results.runs.to_pylist() if r["panel"] == 1 and r["label"] == "UCB-f"]
    row = next(r for r in rows if r["panel"] == "A = 3" and r["agent"] == "UCB-f")
    assert row["worlds"] == 6
    assert row["regret"] == pytest.approx(np.mean([r["regret"] for r in runs]))
    assert row["gap_100"] == pytest.approx(np.mean([r["gap_100"] for r in runs]))
    assert row["regret_low"] < row["regret"] < row["regret_high"]
    assert "gap_1000" not in row
    greedy = next(r for r in rows if r["agent"] == "greedy")
    assert (greedy["settled"], greedy["settled_share"]) == (None, 0)


def test_the_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        low, high = reports.interval(rng.normal(3, 2, size=40))
        covered.append(low <= 3 <= high)
    assert 0.9 <= np.mean(covered) <= 0.98


def test_tables_read_alike(results):
    text, table = reports.comma_separated(reports.summary(results)), reports.markdown(results)
    assert text.count("\n") == 1 + 4
    assert table.splitlines()[2].startswith("| A = 2 | UCB-f | 6 | ")
    assert "| never |" in table


def test_agents_are_compared_world_by_world(tmp_path):
    study = make_study(
        {
            "episodes": 120,
            "worlds": 5,
            "record": 30,
            "world": {"n_states": 8, "n_actions": 2, "horizon": 3, "max_disturbance": 2},
            "agents": [
                {"name": "UCB-f", "model_error": [0, 2]},
                {"name": "UCBVI-f", "estimator": "OffsetPosterior", "model_error": 2},
                {"name": "UCBVI-f", "estimator": {"name": "OffsetPosterior", "threshold": 0.1}, "told_error": 2,
                 "label": "in doubt"},
            ],
        }
    )  # fmt: skip
    run_study(study, tmp_path)
    results = read_results(tmp_path)
    rows = reports.paired(results)
    assert [(row["panel"][-5:], row["agent"]) for row in rows] == [
        ("ζ = 0", "UCB-f"), ("ζ = 0", "UCBVI-f repaired"), ("ζ = 2", "UCB-f"), ("ζ = 2", "UCBVI-f repaired"),
    ]  # fmt: skip
    base, repaired = rows[2], rows[3]
    assert (base["ratio"], base["ratio_low"], base["ratio_high"]) == (1, 1, 1)
    runs = {(r["label"], r["world"]): r["regret"] for r in results.runs.to_pylist()}
    sums = [sum(runs[label, i] for i in range(5)) for label in ("UCBVI-f", "UCB-f, ζ = 2")]
    assert repaired["ratio"] == pytest.approx(sums[0] / sums[1])
    assert repaired["ratio_low"] <= repaired["ratio"] <= repaired["ratio_high"]
    assert repaired["worst_regret"] == pytest.approx(max(runs["UCBVI-f", i] for i in range(5)))
    assert reports.cells(repaired, reports.paired_heading([repaired]))[1] == "UCBVI-f repaired"


def test_the_interval_of_a_ratio_by_hand():
    # Two worlds, drawn together: the ratio of sums is 1/2, 3/2 or, one of each, (1 + 3) / (2 + 2) = 1.
    assert reports.ratio_interval(np.array([[1.0, 2.0], [3.0, 2.0]])) == (0.5, 1.5)


def test_the_last_fifth_of_a_curve_by_hand(results):
    # What an episode still adds: from the first kept episode of the last fifth to the last.
    curves = sorted(reports.curves_of(results), key=lambda curve: curve.panel)
    for row, curve in zip(reports.paired(results), curves, strict=True):
        late = int(np.flatnonzero(curve.episodes >= 0.8 * 150)[0])
        added = (curve.regret[:, -1] - curve.regret[:, late]).mean()
        assert row["slope"] == pytest.approx(added / (150 - curve.episodes[late]))
        assert row["last_gap"] == pytest.approx(curve.gap[:, -1].mean())
        assert row["worst_last_gap"] == curve.gap[:, -1].max()


def test_the_finding_names_the_smallest_regret_and_counts_its_panels():
    first, second, third = {"a": 1.0, "b": 2.0}, {"a": 1.5, "b": 9.0}, {"a": 3.0, "b": 0.5}
    assert reports.smallest([first, second]) == "a has the smallest regret in both panels"
    assert reports.smallest([first, second, third]) == "a has the smallest regret in 2 of 3 panels"
    assert reports.smallest([third]) == "b has the smallest regret"
    assert reports.smallest([{"a": 1.0}]) == ""  # nothing to compare
    assert reports.smallest([{"a": 1.0, "b": 1.0, "c": 2.0}]) == ""  # nobody has the smallest
    assert reports.smallest([third, {"a": 1.0, "b": 1.0}]) == "b has the smallest regret in 1 of 2 panels"


def test_agents_that_share_an_algorithm_are_told_apart(tmp_path):
    study = make_study(
        {
            "name": "same", "episodes": 6, "worlds": 2,
            "world": {"n_states": 5, "n_actions": [2, 3], "horizon": [2, 3, 4]},
            "agents": [{"name": "UCBVI-f"}, {"name": "UCB-f", "c": [0.05, 0.5]}],
        }
    )  # fmt: skip
    run_study(study, tmp_path)
    results = read_results(tmp_path)
    rows = reports.paired(results)
    assert [row["agent"] for row in rows[:3]] == ["UCBVI-f", "UCB-f, c = 0.05", "UCB-f, c = 0.5"]
    assert reports.paired_heading(rows)["ratio"] == "of UCBVI-f's (95 %, paired)"
    assert reports.paired_heading([*rows, {"panel": "another", "agent": "UCB-H"}])["ratio"].startswith("of the first's")
    figure = figures.regret_figure(results)
    drawn = {line.get_label(): (line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(drawn) == len(set(drawn.values())) == 3
    titles = [ax.get_title() for ax in figures.gap_figure(results).axes]
    assert titles == [f"A = {a}, H = {h}" for a in (2, 3) for h in (2, 3, 4)]  # a row for each A


def test_figures_say_what_they_show(results):
    gaps = figures.gap_figure(results)
    assert gaps.legends[0].get_title().get_text() == "UCB-f has the smallest regret in both panels"
    assert figures.regret_figure(results).legends[0].get_title().get_text().startswith("UCB-f has")


def luminance(colour):
    """How bright a colour is, by the rule of the Web Content Accessibility Guidelines."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_line_stands_out_on_white_and_is_told_apart_in_grey():
    assert all(1.05 / (luminance(colour) + 0.05) > 2 for colour, _ in figures.STYLES)
    assert len(set(map(str, figures.STYLES))) == len(figures.STYLES)
    for (_, dashes), (_, following) in pairwise(figures.STYLES):
        assert dashes != following

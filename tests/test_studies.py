import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import ucbf
from ucbf.engines.running import executor_of
from ucbf.engines.shared import SharedFolder
from ucbf.errors import FailedError, UserError
from ucbf.files import digest
from ucbf.studies import reading, runner, store, worker
from ucbf.studies.paper import figure1, figure2, figure3
from ucbf.studies.reading import make_study, read_study
from ucbf.studies.runner import run_study, tasks_of
from ucbf.studies.runs import build_agent, build_world, runs_of
from ucbf.studies.store import Store, read_results
from ucbf.studies.worker import StoppedError, execute, recorded, row_of

SMALL = {
    "name": "small",
    "episodes": 40,
    "worlds": 4,
    "world": {"n_states": 6, "n_actions": [2, 3], "horizon": 3, "max_disturbance": 2},
    "agents": [{"name": "UCB-f", "model_error": [0, 2]}, {"name": "UCB-H"}, {"name": "optimal"}],
}


@pytest.fixture
def small():
    return make_study(SMALL)


@pytest.fixture
def one_world_a_shard(monkeypatch):
    monkeypatch.setattr(runner, "MOST_WORLDS_PER_SHARD", 1)


def assert_equal_results(one, other):
    assert one.runs.equals(other.runs)
    assert one.curves.equals(other.curves)


# -- what a study says ------------------------------------------------------------------------------


def test_the_papers_figure_is_a_study_with_the_papers_defaults():
    study = figure1()
    assert (study.episodes, study.worlds, study.world.kind) == (5000, 50, "random")
    runs = runs_of(study)
    assert len(runs) == 1500
    assert {(r.world_params["n_actions"], r.world_params["horizon"]) for r in runs} == {
        (a, h) for a in (2, 4, 8) for h in (5, 10)
    }
    assert {r.label for r in runs} == {"UCB-f, ζ = 0", "UCB-f, ζ = 2", "UCB-f, ζ = 4", "UCB-H", "UCBVI"}
    assert len({r.id for r in runs}) == 1500
    assert len(runs_of(figure1(quick=True))) == 150


def test_a_study_survives_its_file(tmp_path, small):
    path = tmp_path / "study.toml"
    path.write_text(small.to_toml())
    assert read_study(path) == small


def test_all_agents_of_a_world_have_the_same_seeds_and_other_worlds_have_others(small):
    seeds = {}
    for run in runs_of(small):
        seeds.setdefault(run.world, set()).add((run.world_seed, run.error_seed, run.draw_seed))
    assert all(len(of_world) == 1 for of_world in seeds.values())
    assert len(set.union(*seeds.values())) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"episodes": 41},
        {"seed": 1},
        {"record": 10},
        {"world": {**SMALL["world"], "n_states": 7}},
        {"agents": [{"name": "UCB-f", "model_error": 4}]},
        {"agents": [{"name": "UCB-f", "clock": "episode"}]},
    ],
)
def test_an_id_says_all_that_determines_a_result(small, change):
    changed = make_study({**SMALL, **change})
    assert not {r.id for r in runs_of(small)} & {r.id for r in runs_of(changed)}


def test_an_id_does_not_depend_on_what_else_is_in_the_study(small):
    fewer = make_study({**SMALL, "name": "other", "worlds": 2, "agents": SMALL["agents"][1:2]})
    assert {r.id for r in runs_of(fewer)} < {r.id for r in runs_of(small)}


FILE = """name = "mine"
episodes = 40

[world]
n_states = 6
n_actions = [2, 3]

[[agents]]
name = "UCB-f"

[[agents]]
name = "UCB-H"
c = 0.1
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "episodes = 40",
            "episodes = 0",
            r"study.toml:2: episodes: input should be greater than or equal to 1 \(it is 0\)",
        ),
        ("episodes = 40", "episodes = true", r"study.toml:2: episodes: input should be a valid integer \(it is True\)"),
        ("episodes = 40", "episodes = 4.5", "study.toml:2: episodes: input should be a valid integer"),
        ('name = "mine"', 'name = "a/b"', "study.toml:1: name: string should match pattern"),
        ("[2, 3]", "[]", "study.toml:6: world.n_actions: .*at least 1 item"),
        ("[2, 3]", "{a = 1}", "study.toml:6: world.n_actions: give a value, or a list of values"),
        ("episodes = 40", "episode = 40", "study.toml:2: episode: unknown key; a study has name, episodes, worlds"),
        (
            "n_states = 6",
            "n_state = 6",
            "study.toml:5: world.n_state: unknown parameter 'n_state'; did you mean 'n_states'",
        ),
        ("n_states = 6", "n_states = 0", "study.toml:4: world: n_states is 0; it must be 1 or more"),
        ("n_states = 6", 'kind = "randon"', "study.toml:5: world.kind: unknown world 'randon'; did you mean 'random'"),
        ('"UCB-H"', '"UCBH"', r"study.toml:12: agents\[1\].name: unknown agent 'UCBH'; did you mean 'UCB-H'"),
        ("c = 0.1", "d = 0.1", r"study.toml:13: agents\[1\].d: unknown parameter 'd'"),
        ("c = 0.1", "c = -1", r"study.toml:11: agents\[1\]: c is -1; it must be 0 or more"),
        ("c = 0.1", "model_error = -2", r"study.toml:13: agents\[1\].model_error: input should be greater"),
        ('"UCB-H"\nc = 0.1', '"UCB-f"', r"study.toml:8: agents\[0\]: two agents are called 'UCB-f'; give one a label"),
        ("[[agents]]", "[[agents", "study.toml is not TOML: .*line 8"),
        pytest.param("[2, 3]", "[" * 10_000, "study.toml is not TOML: maximum recursion depth exceeded", id="deep"),
        ('"UCB-H"', '"nowhere:Agent"', r"study.toml:12: agents\[1\].name: 'nowhere:Agent' is code: .* pass --trust"),
        (FILE[FILE.index("[[agents]]") :], "", "study.toml: agents: it is missing"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(tmp_path, old, new, message):
    path = tmp_path / "study.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        read_study(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("episodes = 40", "worlds = 9223372036854775807", "the study has 36893488147419103228 runs .*; it may"),
        ("n_states = 6", f"n_states = {list(range(6, 10_006))}", "study.toml: .* 40000 curves .*10000.*; give fewer"),
        ("c = 0.1", f"c = {[0.1] * 6000}", "study.toml: the study has 12002 curves "),
        ("episodes = 40", "episodes = 100000001", "study.toml:2: episodes: input should be less than"),
        ("episodes = 40", "record = 9223372036854775808", "study.toml:2: record: input should be less"),
    ],
)  # fmt: skip
def test_what_would_never_end_is_refused_before_anything_is_built(tmp_path, monkeypatch, old, new, message):
    monkeypatch.setattr(reading, "build_world", None)
    path = tmp_path / "study.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        read_study(path)


def test_a_million_runs_are_not_too_many():
    assert make_study({**SMALL, "worlds": 125_000}).worlds == 125_000
    with pytest.raises(UserError, match="the study has 1000008 runs .8 curves in 125001 worlds.; it may have 1000000"):
        make_study({**SMALL, "worlds": 125_001})


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="none.toml does not exist; name a TOML file"):
        read_study(tmp_path / "none.toml")


# -- what it gives ----------------------------------------------------------------------------------


def test_a_stored_run_is_what_simulate_gives(tmp_path, small):
    run_study(small, tmp_path, jobs=1)
    results = read_results(tmp_path)
    row = results.runs.to_pylist()[1]
    assert (row["label"], row["n_actions"], row["world"]) == ("UCB-f, ζ = 2", 2, 0)
    world = ucbf.random_world(n_states=6, n_actions=2, horizon=3, max_disturbance=2, seed=row["world_seed"])
    told = ucbf.corrupt(world.system, 2, seed=runs_of(small)[1].error_seed)
    run = ucbf.simulate(ucbf.UCBf(told), world, 40, seed=row["draw_seed"])
    curve = results.curves.filter(np.array(results.curves["run"].to_pylist()) == row["run"])
    np.testing.assert_array_equal(curve["gap"].to_numpy(), run.gap)
    np.testing.assert_array_equal(curve["episode"].to_numpy(), np.arange(1, 41))
    assert row["regret"] == run.gap.sum()
    assert row["gap_100"] is None
    greedy = ucbf.simulate(ucbf.Greedy(world.system), world, 1).gap[0]
    assert row["greedy_gap"] == pytest.approx(greedy, abs=1e-12)


def test_settled_is_the_first_episode_from_which_the_gap_stays_small(small):
    run = runs_of(small)[0]
    gaps = np.array([0.5, 0.05, 0.5, 0.09, 0.01])
    assert row_of(run, gaps, 7, 1.0, 2.0)["settled"] == 4
    assert row_of(run, gaps, 7, 100.0, 2.0)["settled"] == 1
    assert row_of(run, gaps[::-1], 7, 1.0, 2.0)["settled"] is None
    assert row_of(run, np.zeros(5), 7, 0.0, 2.0)["settled"] == 1  # greedy is optimal, and so is the agent


def test_recorded_episodes_begin_with_the_first_and_end_with_the_last():
    np.testing.assert_array_equal(recorded(30, 400), np.arange(1, 31))
    kept = recorded(5000, 400)
    assert (kept[0], kept[-1]) == (1, 5000)
    assert 300 < len(kept) <= 400
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(recorded(100, 2), [1, 100])


def test_the_results_are_the_same_for_every_number_of_jobs_and_split(tmp_path, small, one_world_a_shard):
    run_study(small, tmp_path / "one", jobs=1)
    run_study(small, tmp_path / "two", jobs=2)
    for part in ("3/3", "1/3", "2/3"):
        run_study(small, tmp_path / "shared", shard=part)
        run_study(small, tmp_path / f"part{part[0]}", shard=part)
    results = read_results(tmp_path / "one")
    assert results.runs.num_rows == 32
    for folders in (["two"], ["shared"], ["part2", "part1", "part3"]):
        assert_equal_results(results, read_results(*(tmp_path / name for name in folders)))
    files = [sorted(p.name for p in (tmp_path / f / "curves").iterdir()) for f in ("one", "two", "shared")]
    assert files[0] == files[1] == files[2]


def test_tables_open_without_ucbf(tmp_path, small):
    run_study(small, tmp_path)
    runs = pq.read_table(tmp_path / "runs")
    curves = pq.read_table(tmp_path / "curves")
    assert runs.num_rows == 32
    assert curves.column_names == ["run", "episode", "gap", "regret"]
    assert {"run", "label", "agent", "model_error", "n_actions", "regret", "settled"} <= set(runs.column_names)
    about = json.loads((tmp_path / "manifest.json").read_text())
    assert about["study"]["name"] == "small"
    assert about["versions"]["ucbf"] == ucbf.__version__
    assert {"started", "machine"} <= about.keys()


def test_a_rerun_computes_only_what_is_missing(tmp_path, small, one_world_a_shard):
    seen = []
    assert run_study(small, tmp_path, shard="1/2").computed == 16
    assert run_study(small, tmp_path, progress=lambda done, of: seen.append((done, of))).computed == 16
    assert seen[0] == (16, 32)
    assert seen[-1] == (32, 32)
    assert run_study(small, tmp_path) == (0, 32, [])


def test_how_large_shards_are_by_hand():
    # A world's runs: UCB-f 1,000 episodes of 3 us + 2 ns for each of 4 · 10 · 5 entries, 3.4 ms; repaired 50 ns for
    # each, 13 ms; in Python 50 us for each of 4 steps, 200 ms. Of 0.216 s: six worlds make 1.3 s, and seven 1.51.
    world = {"n_states": 10, "n_actions": 5, "horizon": 4}
    told = {"name": "UCB-f", "model_error": 2}
    repaired = {**told, "estimator": "OffsetPosterior", "label": "repaired"}
    content = {"episodes": 1000, "worlds": 15, "world": world, "agents": [told, repaired, {"name": "random"}]}
    tasks = tasks_of(make_study(content))
    assert [sorted({run.world for run in task.runs}) for task in tasks] == [
        list(range(6)),
        list(range(6, 12)),
        list(range(12, 15)),
    ]
    # Ten times as long: 2.16 s a world, of which what is in Python takes 2 s and stays alone.
    tasks = tasks_of(make_study({**content, "episodes": 10_000, "worlds": 2}))
    assert [[(run.world, run.agent, "estimator" in run.agent_params) for run in task.runs] for task in tasks] == [
        [(0, "UCB-f", False), (0, "UCB-f", True)],
        [(0, "random", False)],
        [(1, "UCB-f", False), (1, "UCB-f", True)],
        [(1, "random", False)],
    ]


def test_a_folder_with_shards_of_another_size_is_gone_on_with_and_read(tmp_path, small, monkeypatch):
    run_study(small, tmp_path / "now")
    monkeypatch.setattr(runner, "MOST_WORLDS_PER_SHARD", 3)  # of two panels of four worlds: 3 and 1
    run_study(small, tmp_path / "old", shard="1/4")
    run_study(small, tmp_path / "part", shard="1/4")
    monkeypatch.setattr(runner, "MOST_WORLDS_PER_SHARD", 2)
    assert run_study(small, tmp_path / "old").computed == 32 - 12
    run_study(small, tmp_path / "new")
    assert run_study(small, tmp_path / "old") == (0, 32, [])
    for folders in (["old"], ["part", "new"], ["new", "part"]):
        assert_equal_results(read_results(tmp_path / "now"), read_results(*(tmp_path / name for name in folders)))


def test_runs_of_one_world_in_several_shards_give_the_same_results(tmp_path, small, monkeypatch):
    run_study(small, tmp_path / "one")
    monkeypatch.setattr(runner, "SECONDS_PER_SHARD", 1e-9)  # each run by itself
    assert len(tasks_of(small)) == 32
    run_study(small, tmp_path / "each", shard="1/2", jobs=1)
    run_study(small, tmp_path / "each", jobs=2)
    run_study(small, tmp_path / "undisturbed", jobs=1)
    assert_equal_results(read_results(tmp_path / "one"), read_results(tmp_path / "each"))
    one, other = (
        {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in (tmp_path / name).glob("*/*.parquet")}
        for name in ("each", "undisturbed")
    )
    assert one == other


def test_another_study_in_the_same_folder_is_refused_with_the_difference(tmp_path, small):
    run_study(small, tmp_path)
    with pytest.raises(UserError, match=r"holds another study \(episodes: 40 there, 50 here\); pass another --out"):
        run_study(make_study({**SMALL, "episodes": 50}), tmp_path)


@pytest.mark.parametrize("table", ["runs", "curves"])
def test_a_damaged_shard_is_named_and_computed_again(tmp_path, small, one_world_a_shard, table):
    run_study(small, tmp_path)
    whole = read_results(tmp_path)
    files = sorted((tmp_path / table).iterdir())
    files[0].write_bytes(files[0].read_bytes()[:-7])
    content = bytearray(files[1].read_bytes())
    content[len(content) // 2] ^= 1
    files[1].write_bytes(bytes(content))
    with pytest.raises(UserError, match=rf"{files[0]} and 1 more are damaged; run the study again, which"):
        read_results(tmp_path)
    outcome = run_study(small, tmp_path)
    assert outcome.computed == 8
    assert outcome.damaged == files[:2]
    assert_equal_results(whole, read_results(tmp_path))


def test_results_that_are_not_there_are_named(tmp_path, small):
    with pytest.raises(UserError, match=r"holds no results \(no manifest.json\)"):
        read_results(tmp_path)
    Store.create(tmp_path, small)
    with pytest.raises(UserError, match="holds no finished runs yet"):
        read_results(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UserError, match="manifest.json is not the manifest of a study, or is damaged"):
        read_results(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path, small):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file/results cannot be written: .*; pass another --out"):
        run_study(small, tmp_path / "file" / "results")


def test_an_error_of_an_agent_keeps_what_was_finished(tmp_path, small, one_world_a_shard, monkeypatch):
    real, calls = worker.execute, []

    def fails_late(task, stop=None):
        calls.append(task)
        if len(calls) == 4:
            raise RuntimeError("boom")
        if len(calls) > 4:
            stop.wait()
            raise StoppedError
        return real(task, stop)

    monkeypatch.setattr(worker, "execute", fails_late)
    with pytest.raises(RuntimeError, match="boom"):
        run_study(small, tmp_path, jobs=1)
    assert len(Store.open(tmp_path).shards()[0]) == 3
    monkeypatch.setattr(worker, "execute", real)
    run_study(small, tmp_path)
    assert read_results(tmp_path).runs.num_rows == 32


# -- an algorithm of one's own ----------------------------------------------------------------------

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_an_algorithm_in_a_file_of_ones_own_takes_part(tmp_path):
    study = read_study(EXAMPLES / "study.toml", trust=True)
    short = study.model_copy(update={"episodes": 60, "worlds": 2})
    run_study(short, tmp_path)
    rows = read_results(tmp_path).runs.to_pylist()
    labels = {row["label"] for row in rows}
    assert labels == {"UCB-f, clock = episode", "UCB-f, clock = update", "UCB-f, f wrong by 1", "Newest"}
    newest = [row for row in rows if row["label"] == "Newest"]
    assert all(0 < row["regret"] < 60 * row["greedy_gap"] for row in newest)


def test_gaps_at_checkpoints_are_those_of_their_episodes(small):
    run = next(iter(runs_of(small)))
    row = row_of(run, np.arange(1.0, 1001), 7, 1.0, 2.0)
    assert (row["gap_100"], row["gap_1000"], row["gap_5000"]) == (100, 1000, None)
    np.testing.assert_array_equal(recorded(9, 9), np.arange(1, 10))


def test_figure3_is_about_the_horizon_alone():
    study = figure3(quick=True)
    assert study.world.varied() == ["horizon"]
    assert [panel["horizon"] for panel in study.panels()] == [5, 10, 20, 40]
    told = {run.label: run.agent_params for run in runs_of(study)}
    assert told["UCB-f-Reference"] == told["UCB-f-Bernstein"] == {"clock": "episode", "c": 0.05}
    assert told["UCB-f"] == {"clock": "episode", "c": 0.05, "bonus": "theorem"}


def test_figure2_repairs_what_is_wrong_by_2_and_by_4():
    told = {(run.label, run.model_error) for run in runs_of(figure2(quick=True)) if run.label.startswith("UCB-f")}
    assert {error for label, error in told if label.startswith("UCB-f repaired")} == {0, 2, 4}


def test_figure2_tells_an_exact_f_to_be_wrong_by_as_much_as_4():
    told = [run for run in runs_of(figure2(quick=True)) if "told" in run.label]
    assert {run.label for run in told} == {"UCB-f repaired, told ζ = 4", "UCBVI-f repaired, told ζ = 4"}
    for run in told[:2]:
        world = build_world(run)
        agent = build_agent(run, world)
        assert agent.system.model_error == 4
        np.testing.assert_array_equal(agent.system.f, world.system.f)


def test_what_a_killed_process_left_is_cleared_after_an_hour(tmp_path, small):
    run_study(small, tmp_path)
    old, new = (tmp_path / "runs" / f".{name}.part" for name in ("old", "new"))
    for part, age in ((old, 3700), (new, 3500)):
        part.write_bytes(b"half")
        os.utime(part, (time.time() - age, time.time() - age))
    run_study(small, tmp_path)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_shard_that_is_written_again_replaces_the_one_of_its_name(tmp_path, small):
    run_study(small, tmp_path)
    stored = Store.open(tmp_path)
    ((shard, paths),) = list(stored.shards()[0].items())[:1]
    paths["runs"].unlink()
    curves = parquet(pq.read_table(paths["curves"]))  # whole, in other bytes, as another version would write it
    paths["curves"].unlink()
    other = tmp_path / "curves" / f"{shard}-{digest(curves)}.parquet"
    other.write_bytes(curves)
    assert other != paths["curves"]
    run_study(small, tmp_path)
    assert not other.exists()
    assert stored.shards()[0][shard] == paths


def test_a_worker_that_does_not_see_the_folder_says_so_and_computes_nothing(tmp_path, small):
    run_study(small, tmp_path / "one")
    known = SharedFolder.of(tmp_path / "one", "manifest.json")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "manifest.json").write_text("of another study")
    for folder in ("two", "none"):
        place = known._replace(folder=str(tmp_path / folder))
        with pytest.raises(FailedError, match=f"does not see the results in .*{folder}; .* that all machines share"):
            worker.compute_shard(place, (), tasks_of(small)[0])


def test_a_folder_is_not_listed_when_a_shard_is_written(tmp_path, small, monkeypatch):
    stored = Store.create(tmp_path, small)
    task = tasks_of(small)[0]
    tables = execute(task)
    monkeypatch.setattr(os, "scandir", None)
    monkeypatch.setattr(os, "listdir", None)
    names = store.write_shard(tmp_path, task.shard, tables)
    monkeypatch.undo()
    assert {path.name for path in stored.shards()[0][task.shard].values()} == names


def test_results_of_two_studies_are_not_read_together(tmp_path, small):
    run_study(small, tmp_path / "one")
    run_study(make_study({**SMALL, "episodes": 50}), tmp_path / "two")
    with pytest.raises(UserError, match=r"two holds another study \(episodes: 40 there, 50 here\)"):
        read_results(tmp_path / "one", tmp_path / "two")


def test_threads_are_as_many_as_jobs():
    assert executor_of("local", 3, None)._max_workers == 3
    assert executor_of("local", None, None)._max_workers == os.cpu_count()


def test_an_error_that_is_no_number_is_refused():
    with pytest.raises(UserError, match="should be a finite number .it is inf."):
        make_study({**SMALL, "agents": [{"name": "UCB-f", "model_error": math.inf}]})


# -- killed at any moment ---------------------------------------------------------------------------

SCRIPT = """
import json, sys
from ucbf.studies import runner
from ucbf.studies.reading import make_study
runner.MOST_WORLDS_PER_SHARD = 1

def led(done, total):
    print(done, flush=True)
    sys.stdin.readline()

outcome = runner.run_study(make_study(json.loads(sys.argv[2])), sys.argv[1], jobs=2, progress=led)
print(outcome.computed, flush=True)
"""
BUSY = {**SMALL, "episodes": 3000, "worlds": 20, "record": 20}


def start(folder, study=BUSY, led=False):
    """A study in a process of its own; if ``led``, it waits for a line after each shard that it has stored."""
    command = [sys.executable, "-c", SCRIPT, str(folder), json.dumps(study)]
    stdin = subprocess.PIPE if led else subprocess.DEVNULL
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True, bufsize=1)


def ended(process):
    """The runs it computed, by its last line."""
    said = process.communicate()[0].split()
    assert process.returncode == 0
    return int(said[-1])


def test_killed_at_random_moments_it_goes_on_and_ends_the_same(tmp_path):
    undisturbed = tmp_path / "undisturbed"
    assert ended(start(undisturbed)) == 160
    moments, folder = random.Random(0), tmp_path / "killed"
    stored: dict[Path, int] = {}
    for _ in range(4):
        process = start(folder, led=True)
        for _ in range(moments.randrange(1, 5)):  # of 40 shards
            process.stdout.readline()
            process.stdin.write("go on\n")
        time.sleep(moments.uniform(0, 0.02))  # it computes or writes the next one, and waits then
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        for path, when in stored.items():
            assert path.stat().st_mtime_ns == when, "a stored shard was written again"
        whole = Store.open(folder).shards()[0].values()
        stored = {path: path.stat().st_mtime_ns for paths in whole for path in paths.values()}
    kept = len(Store.open(folder).shards()[0])
    assert 4 <= kept < 40
    assert ended(start(folder)) == 160 - 4 * kept
    assert_equal_results(read_results(undisturbed), read_results(folder))


def test_two_processes_in_one_folder_do_no_harm(tmp_path):
    study = {**BUSY, "episodes": 300}
    both = [start(tmp_path / "both", study) for _ in range(2)]
    assert all(process.wait() == 0 for process in both)
    for process in both:
        process.stdout.close()
    run_study(make_study(study), tmp_path / "alone")
    both_results, alone = read_results(tmp_path / "both"), read_results(tmp_path / "alone")
    assert_equal_results(alone, both_results)


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_tables(tmp_path, small):
    study = read_study(EXAMPLES / "study.toml", trust=True).model_copy(update={"episodes": 50, "worlds": 3})
    run_study(study, tmp_path / "local")
    code = f"""
import sys
from pathlib import Path
from ucbf.studies.runner import run_study
from ucbf.studies.reading import read_study
study = read_study(Path({str(EXAMPLES / "study.toml")!r}), trust=True)
run_study(study.model_copy(update={{"episodes": 50, "worlds": 3}}), sys.argv[1], jobs=2, engine="ray")
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "ray")], check=True, capture_output=True)
    assert_equal_results(read_results(tmp_path / "local"), read_results(tmp_path / "ray"))


def test_execute_depends_on_nothing_but_its_task(small):
    task = tasks_of(small)[0]
    one, other = execute(task), execute(task)
    assert one["runs"].equals(other["runs"])
    assert one["curves"].equals(other["curves"])


def test_the_order_of_keys_does_not_matter(tmp_path, small, one_world_a_shard):
    world = {"n_states": 6, "horizon": [2, 3], "n_actions": [2, 3], "max_disturbance": 2}
    agents = [{"name": "UCB-f", "c": [0.1, 1], "clock": ["update", "episode"]}]
    one = make_study({**SMALL, "world": world, "agents": agents})
    turned = [dict(reversed(agents[0].items()))]
    other = make_study({**SMALL, "world": dict(reversed(world.items())), "agents": turned})
    run_study(one, tmp_path / "both", shard="1/2")
    run_study(other, tmp_path / "both", shard="2/2")
    run_study(one, tmp_path / "alone")
    assert_equal_results(read_results(tmp_path / "alone"), read_results(tmp_path / "both"))


def test_files_of_others_are_left_alone(tmp_path, small):
    run_study(small, tmp_path)
    mine = tmp_path / "runs" / "merged.parquet"
    mine.write_bytes(b"mine")
    (tmp_path / "curves" / "folder.parquet").mkdir()
    assert run_study(small, tmp_path) == (0, 32, [])
    assert mine.read_bytes() == b"mine"


def test_a_repeated_value_and_too_many_parts_are_refused(tmp_path, small):
    with pytest.raises(UserError, match="a list repeats a value"):
        make_study({**SMALL, "world": {**SMALL["world"], "n_actions": [2, 2]}})
    with pytest.raises(UserError, match="this study can be divided into 2 parts at most"):
        run_study(small, tmp_path, shard="3/3")
    with pytest.raises(UserError, match="--ray-address is 'x', but the engine is 'local'"):
        run_study(small, tmp_path, ray_address="x")


def test_the_difference_between_studies_is_named_to_the_leaf(tmp_path):
    run_study(figure1(quick=True).model_copy(update={"episodes": 2, "worlds": 1}), tmp_path)
    other = figure1(quick=True).model_copy(update={"episodes": 2, "worlds": 1})
    agents = (*other.agents[:2], other.agents[2].model_copy(update={"c": 0.5}))
    with pytest.raises(UserError, match=r"\(agents\[2\].c: None there, 0.5 here\)"):
        run_study(other.model_copy(update={"agents": agents}), tmp_path)


def test_a_full_disk_keeps_what_was_stored(tmp_path, small, one_world_a_shard, monkeypatch):
    real, calls = store.os.fsync, []

    def fills_up(handle):
        calls.append(handle)
        if len(calls) > 6:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(store.os, "fsync", fills_up)
    with pytest.raises(OSError, match="No space left"):
        run_study(small, tmp_path, jobs=1)
    monkeypatch.undo()
    assert len(Store.open(tmp_path).shards()[0]) == 2  # the manifest, and two files for each of two shards
    assert not list(tmp_path.rglob("*.part"))


def test_estimators_are_named_in_studies_with_their_parameters(tmp_path):
    agents = [
        {
            "name": "UCB-f",
            "model_error": 2,
            "estimator": ["OffsetPosterior", {"name": "OffsetPosterior", "threshold": 0.2}],
        },
        {"name": "UCBVI-f", "told_error": [2, 4], "estimator": "OffsetPosterior"},
    ]
    study = make_study({"episodes": 20, "worlds": 2, "world": {"n_states": 6, "horizon": 2}, "agents": agents})
    labels = [variant["label"] for _, variant in study.variants()]
    assert labels == [
        "UCB-f, estimator = OffsetPosterior", "UCB-f, estimator = OffsetPosterior threshold=0.2",
        "UCBVI-f, told ζ = 2", "UCBVI-f, told ζ = 4",
    ]  # fmt: skip
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml())
    assert read_study(path) == study
    first = runs_of(study)[0]
    assert build_agent(first, build_world(first)).params["estimator"]["threshold"] == 0.01
    told = runs_of(study)[3]
    assert build_agent(told, build_world(told)).system.model_error == 4
    run_study(study, tmp_path / "out")
    assert ucbf.read_results(tmp_path / "out").runs["switches"].null_count == 0


@pytest.mark.parametrize(("agent", "message"), [
    ({"name": "UCB-f", "estimator": "OffsetPosterior"}, "model_error .* is 0"),
    ({"name": "UCB-f", "model_error": 2, "estimator": "Offset"}, "unknown estimator 'Offset'"),
    ({"name": "UCB-f", "model_error": 2, "estimator": {"name": "OffsetPosterior", "tau": 1}}, "tau"),
    ({"name": "UCB-H", "estimator": "OffsetPosterior"}, "unknown parameter 'estimator'"),
    ({"name": "UCB-f", "told_error": -1}, "greater than or equal to 0"),
])  # fmt: skip
def test_a_wrong_estimator_in_a_study_is_refused_before_any_work(agent, message):
    with pytest.raises(UserError, match=message):
        make_study({"world": {"n_states": 6, "horizon": 2}, "agents": [agent]})


# -- files that are not what their names say --------------------------------------------------------


def disguised(path, content):
    """The bytes of ``content`` in place of a stored file, under a name that their digest fits."""
    path.unlink()
    other = path.with_name(f"{path.stem[:16]}-{digest(content)}.parquet")
    other.write_bytes(content)
    return other


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


JUNK = {
    "not Parquet": lambda table: b"junk",
    "another column": lambda table: parquet(table.append_column("more", table["run"])),
    "a column less": lambda table: parquet(table.drop_columns(["run"])),
    "another type": lambda table: parquet(table.set_column(1, table.column_names[1], table["run"])),
    "other runs": lambda table: parquet(table.set_column(0, "run", pa.array(["x"] * len(table)))),
    "a run less": lambda table: parquet(table.filter(pc.not_equal(table["run"], table["run"][0]))),
}


@pytest.mark.parametrize("table", ["runs", "curves"])
@pytest.mark.parametrize("kind", JUNK)
def test_a_file_that_is_not_what_its_name_says_counts_as_damaged(tmp_path, small, table, kind):
    run_study(small, tmp_path)
    whole = read_results(tmp_path)
    path = sorted((tmp_path / table).iterdir())[0]
    junk = disguised(path, JUNK[kind](pq.read_table(path)))
    with pytest.raises(UserError, match=f"{junk} is damaged; run the study again, which computes what is missing"):
        read_results(tmp_path)
    outcome = run_study(small, tmp_path)
    assert (outcome.computed, outcome.damaged) == (16, [junk])
    assert_equal_results(whole, read_results(tmp_path))
    assert not junk.exists()


def test_a_row_that_is_there_twice_counts_as_damage(tmp_path, small):
    run_study(small, tmp_path)
    path = sorted((tmp_path / "runs").iterdir())[0]
    table = pq.read_table(path)
    junk = disguised(path, parquet(pa.concat_tables([table, table.slice(15)])))
    assert Store.open(tmp_path).shards()[1] == [junk]


def test_a_damaged_file_of_another_study_does_no_harm_where_nothing_is_missing(tmp_path, small):
    run_study(small, tmp_path)
    foreign = tmp_path / "runs" / f"{'0' * 16}-{'0' * 16}.parquet"
    foreign.write_bytes(b"junk")
    assert run_study(small, tmp_path) == (0, 32, [])
    assert foreign.exists()
    assert read_results(tmp_path).runs.num_rows == 32


def test_a_folder_in_place_of_a_shard_is_damage(tmp_path, small):
    run_study(small, tmp_path)
    folder = tmp_path / "runs" / f"{'0' * 16}-{'0' * 16}.parquet"
    folder.mkdir()
    assert Store.open(tmp_path).shards()[1] == [folder]


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, '{"study": ' + '{"a":' * 100_000, '{"study": {"agents": [{"name": "UCB-f"}]}, "sources": 7}'],
)
def test_a_manifest_that_is_none_is_named(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UserError, match="manifest.json is not the manifest of a study, or is damaged; pass another"):
        read_results(tmp_path)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are listed there")
def test_results_are_read_without_threads_that_could_outlive_the_program():
    code = """
import os, io, pyarrow as pa, pyarrow.parquet as pq
from ucbf.studies.store import read_parquet
sink = io.BytesIO(); pq.write_table(pa.table({"a": range(9), "b": range(9)}), sink)
before = len(os.listdir("/proc/self/task"))
assert read_parquet(sink.getvalue())["a"].to_pylist() == list(range(9))
print(len(os.listdir("/proc/self/task")) - before)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "0\n"


# -- worlds without an end --------------------------------------------------------------------------

ENDLESS = {
    "name": "endless",
    "steps": 60,
    "worlds": 2,
    "world": {
        "kind": "endless",
        "n_states": 6,
        "n_actions": 2,
        "period": 2,
        "max_disturbance": 2,
        "discount": [0.9, 1],
    },
    "agents": [{"name": "UCBVI-f", "model_error": [0, 2]}, {"name": "greedy"}],
}


def test_the_ids_of_studies_with_episodes_stay():
    ids = [run.id for run in runs_of(figure1())]
    assert (ids[0], ids[-1]) == ("dde9698959ca4f3b", "ad1a95bd5cc40317")


def test_a_run_without_an_end_is_what_simulate_gives(tmp_path):
    study = make_study(ENDLESS)
    assert study.episodes is None
    run_study(study, tmp_path, jobs=1)
    results = read_results(tmp_path)
    assert results.curves.column_names == ["run", "episode", "gap", "regret"]
    rows = results.runs.to_pylist()
    assert len(rows) == 2 * 2 * 3
    for i in (1, 7):  # UCBVI-f told a wrong f, with a discount and without
        row = rows[i]
        assert (row["label"], row["episodes"]) == ("UCBVI-f, ζ = 2", 60)
        world = ucbf.random_endless_world(6, 2, 2, 2, row["discount"], seed=row["world_seed"])
        told = ucbf.corrupt(world.system, 2, seed=runs_of(study)[i].error_seed)
        run = ucbf.simulate(ucbf.UCBVIf(told), world, steps=60, seed=row["draw_seed"])
        curve = results.curves.filter(np.array(results.curves["run"].to_pylist()) == row["run"])
        np.testing.assert_array_equal(curve["gap"].to_numpy(), run.gap)
        np.testing.assert_array_equal(curve["episode"].to_numpy(), np.arange(1, 61))
        assert row["optimum"] == world.best
    for row in rows[2::3]:  # greedy is compared with itself
        assert row["regret"] == pytest.approx(60 * row["greedy_gap"], abs=1e-6)
    assert {row["discount"] for row in rows} == {0.9, 1}
    assert run_study(study, tmp_path) == (0, 12, [])


def test_a_study_without_an_end_survives_its_file_and_goes_on(tmp_path, one_world_a_shard):
    path = tmp_path / "study.toml"
    study = make_study(ENDLESS)
    path.write_text(study.to_toml())
    assert "episodes" not in path.read_text()
    assert read_study(path) == study
    assert run_study(study, tmp_path / "out", shard="1/2").computed == 6
    assert run_study(study, tmp_path / "out").computed == 6


def test_an_id_says_whether_there_is_an_end():
    one = runs_of(make_study(ENDLESS))[0]
    assert one.by_step
    assert one.id != one._replace(by_step=False).id


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"episodes": 5}, "episodes is 5 and steps 60; give only episodes, or, for worlds without an end, only steps"),
        ({"steps": None, "episodes": 5}, "the world 'endless' has no end; give the study steps, not episodes"),
        ({"steps": None}, "the world 'endless' has no end; give the study steps, not episodes"),
        ({"world": {"kind": "random"}}, "the world 'random' has episodes; give the study episodes, not steps"),
        ({"steps": 0}, r"input should be greater than or equal to 1 \(it is 0\)"),
        ({"world": {"kind": "endless", "horizon": 3}}, "unknown parameter 'horizon'"),
        ({"world": {"kind": "endless", "discount": 2}}, "discount is 2; it must be above 0 and at most 1"),
    ],
)
def test_a_study_says_how_long_its_worlds_are_played(change, message):
    with pytest.raises(UserError, match=message):
        make_study({**ENDLESS, **change})


def test_tables_and_figures_of_a_study_without_an_end_say_so(tmp_path):
    from ucbf import reports
    from ucbf.figures import gap_figure, regret_figure

    study = make_study({**ENDLESS, "steps": 120})
    run_study(study, tmp_path)
    results = read_results(tmp_path)
    assert reports.length_of(study) == "120 steps"
    rows = reports.summary(results)
    assert [row["panel"] for row in rows[::3]] == ["γ = 0.9", "γ = 1"]
    assert "gap_100" in rows[0]
    figure = gap_figure(results)
    assert figure.get_supxlabel().startswith("step   (2 worlds")
    assert figure.get_supylabel() == "gain gap; V* - V^π where discounted"
    assert figure.axes[0].get_xlim() == (0, 120)
    assert regret_figure(results).get_supxlabel().startswith("step   (")
    for discount, name in ((0.9, "V* - V^π"), (1, "gain gap"), (1.0, "gain gap")):
        one = make_study({**ENDLESS, "world": {**ENDLESS["world"], "discount": discount}})
        assert reports.gap_name(one) == name
    assert reports.gap_name(make_study(SMALL)) == "gap to the optimal value"


def test_an_agent_that_draws_has_a_seed_of_its_own_in_every_world():
    study = make_study({"worlds": 3, "episodes": 5, "agents": [{"name": "random"}, {"name": "UCB-f"}]})
    runs = runs_of(study)
    agents = [build_agent(run, build_world(run)) for run in runs]
    seeds = {agent.params["seed"] for agent in agents if agent.name == "random"}
    assert len(seeds) == 3
    assert not seeds & {seed for run in runs for seed in (run.world_seed, run.error_seed, run.draw_seed)}
    assert [build_agent(run, build_world(run)).params for run in runs] == [agent.params for agent in agents]

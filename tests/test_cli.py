import os
import resource
import signal
import socket
import subprocess
import sys
import threading

import matplotlib.image
import pytest

from commands import UCBF, ucbf
from ucbf.cli import interrupts

STUDY = """name = "tiny"
episodes = 120
worlds = 3
[world]
n_states = 6
n_actions = 2
horizon = 3
max_disturbance = 2
[[agents]]
name = "UCB-f"
model_error = [0, 2]
[[agents]]
name = "UCB-H"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study run by the command."""
    here = tmp_path_factory.mktemp("cli")
    (here / "study.toml").write_text(STUDY)
    done = ucbf("run", "study.toml", cwd=here)
    assert done.stdout == "9 runs computed, 0 were there: results/tiny\n"
    assert done.stderr.splitlines()[0] == "0 of 9 runs (0 %)"
    assert done.stderr.splitlines()[-1] == "9 of 9 runs (100 %)"
    return here


def test_a_rerun_says_that_all_was_there(folder):
    assert ucbf("run", "study.toml", cwd=folder).stdout == "0 runs computed, 9 were there: results/tiny\n"


def test_status_counts_what_is_stored_and_names_what_is_damaged(folder, tmp_path):
    assert ucbf("status", "results/tiny", cwd=folder).stdout == "tiny: 9 of 9 runs are stored in results/tiny\n"
    ucbf("run", folder / "study.toml", "--out", tmp_path)
    damaged = next((tmp_path / "curves").iterdir())
    damaged.write_bytes(b"x")
    said = ucbf("status", tmp_path).stdout
    assert "tiny: 0 of 9 runs are stored" in said
    assert f"damaged: {damaged}; the next run computes what is missing" in said
    drawn = ucbf("plot", tmp_path, check=False)
    assert drawn.returncode == 2
    assert drawn.stderr.startswith(f"ucbf: {damaged} is damaged; run the study again")
    assert (
        f"{damaged} was damaged; its runs were computed again"
        in ucbf("run", folder / "study.toml", "--out", tmp_path).stderr
    )


def test_status_promises_nothing_about_a_damaged_file_that_no_run_needs(folder, tmp_path):
    ucbf("run", folder / "study.toml", "--out", tmp_path)
    foreign = tmp_path / "runs" / f"{'0' * 16}-{'0' * 16}.parquet"
    foreign.write_bytes(b"junk")
    said = ucbf("status", tmp_path).stdout
    assert said.splitlines()[1] == f"damaged: {foreign}; no run is missing, so that it can be deleted"
    assert "UCB-f" in ucbf("plot", tmp_path).stdout


@pytest.mark.parametrize("options", [[], ["--band", "ci", "--scale", "log"], ["--scale", "loglog"]])
def test_plot_draws_and_prints_from_stored_results(folder, options):
    said = ucbf("plot", "results/tiny", *options, cwd=folder).stdout
    assert "UCB-f, ζ = 2" in said
    assert "gap at 100" in said
    results = folder / "results" / "tiny"
    assert matplotlib.image.imread(results / "figure.png")[..., :3].std() > 0.05
    assert (results / "figure.svg").read_text().lstrip().startswith("<?xml")
    assert (results / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert (results / "summary.md").read_text().count("\n") == 2 + 3
    assert (results / "summary.csv").read_text().startswith("panel,agent,worlds,regret,")


def test_the_same_results_give_the_same_files(folder):
    names = [f"figure.{kind}" for kind in ("png", "svg", "pdf")] + ["summary.md", "summary.csv"]
    drawn = []
    for _ in range(2):
        ucbf("plot", "results/tiny", cwd=folder)
        drawn.append([(folder / "results" / "tiny" / name).read_bytes() for name in names])
    assert drawn[0] == drawn[1]


def test_figure1_quick_is_one_command(tmp_path):
    said = ucbf("figure1", "--quick", "--out", tmp_path).stdout
    assert "150 runs computed, 0 were there" in said
    assert "H = 10, A = 8" in said
    pictures = "figure.png, figure.svg, figure.pdf"
    assert f"written to {tmp_path}: summary.md, summary.csv, {pictures}" in " ".join(said.split())
    assert (tmp_path / "figure.png").exists()


@pytest.mark.slow
def test_figure2_quick_is_one_command(tmp_path):
    said = ucbf("figure2", "--quick", "--out", tmp_path).stdout
    assert "360 runs computed, 0 were there" in said
    assert "of UCB-f's (95 %, paired)" in said
    for name in ("paired.md", "paired.csv", "regret.png", "regret.svg", "regret.pdf"):
        assert (tmp_path / name).stat().st_size > 500
    assert ucbf("plot", tmp_path, "--paired").stdout.endswith(said.splitlines()[-1] + "\n")


@pytest.mark.slow
def test_figure3_quick_is_one_command(tmp_path):
    said = ucbf("figure3", "--quick", "--out", tmp_path).stdout
    assert "100 runs computed, 0 were there" in said
    assert "regret ~ H^" in said
    assert "3.5: sqrt(H⁶T)" in said
    for name in ("growth.md", "growth.csv", "growth.png", "growth.svg", "growth.pdf"):
        assert (tmp_path / name).stat().st_size > 500
    assert ucbf("plot", tmp_path, "--growth").stdout.endswith(said.splitlines()[-1] + "\n")


@pytest.mark.slow
def test_table1_quick_prints_the_table_and_draws_a_picture(tmp_path):
    said = ucbf("table1", "--quick", "--out", tmp_path).stdout
    assert "Q-EarlySettled-Advantage" in said
    assert "regret ~ (SA)^" in said
    for name in ("table1.md", "table1.csv", "table1.png", "table1.svg", "table1.pdf"):
        assert (tmp_path / name).stat().st_size > 500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.toml"], "ucbf: none.toml does not exist; name a TOML file"),
        (["run", "bad.toml"], "ucbf: bad.toml is not TOML: "),
        (["run", "wrong.toml"], "ucbf: wrong.toml:10: agents[0].name: unknown agent 'UCB-g'; did you mean"),
        (["run", "study.toml", "--out", "/proc/nowhere"], "ucbf: /proc/nowhere cannot be written"),
        (["run", "study.toml", "--shard", "3/2"], "ucbf: --shard is '3/2'; i must be 1 to N"),
        (["run", "study.toml", "--shard", "half"], "ucbf: --shard is 'half'; give i/N"),
        (["run", "study.toml", "--jobs", "0"], "ucbf: --jobs is 0; it must be 1 or more"),
        (
            ["status", "."],
            "ucbf: . holds nothing that was learned (no model.json); give the folder that ucbf learn wrote (--out), or",
        ),
        (["figure1", "--seed", "-1"], "ucbf: seed: input should be greater than or equal to 0 (it is -1)"),
        (["figure1", "--seed", "1.5"], "ucbf: Invalid value "),
        (["figure1", "--engine", "rai"], "ucbf: Invalid value "),
        (["figure9"], "ucbf: Unknown command "),
        (["run", "negative.toml"], "ucbf: negative.toml:9: agents[0]: c is -1; it must be 0 or more"),
    ],
)
def test_a_users_mistake_ends_with_exit_code_2_and_one_line(folder, arguments, message):
    (folder / "bad.toml").write_text("name = ")
    (folder / "wrong.toml").write_text(STUDY.replace("UCB-f", "UCB-g"))
    (folder / "negative.toml").write_text(STUDY.replace("model_error = [0, 2]", "c = -1"))
    done = ucbf(*arguments, cwd=folder, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_a_full_disk_ends_with_exit_code_2_and_one_line(folder):
    code = """
import os, errno, sys
from ucbf.studies import store
def full(fd): raise OSError(errno.ENOSPC, "No space left on device")
store.os.fsync = full
from ucbf.cli import main
main()
"""
    command = [sys.executable, "-c", code, "run", "study.toml", "--out", "full"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 2
    assert done.stderr == "ucbf: full cannot be written: No space left on device; pass another --out\n"


def test_a_study_that_fails_says_what_failed_and_how_to_go_on(folder, tmp_path):
    # Files may hold 5 KiB: the first shard of results cannot be written.
    command = [*UCBF, "run", str(folder / "study.toml"), "--out", "small"]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5120, 5120))  # noqa: E731
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, preexec_fn=limit)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ucbf: a result could not be written: File too large; finished runs are kept in small: ")
    assert last.endswith("and the same command goes on")
    assert ucbf("run", folder / "study.toml", "--out", "small", cwd=tmp_path).stdout == (
        "9 runs computed, 0 were there: small\n"
    )


OWN = """
import sys, ucbf; print("imported")
class Fails(ucbf.UCBH):
    def renew(self):
        raise RuntimeError("it broke")
class Exits(ucbf.UCBH):
    def renew(self):
        sys.exit(7)
class Tells(ucbf.UCBH):
    def renew(self):
        print("told")
        super().renew()
class Dies(ucbf.UCBH):
    def renew(self):
        import os
        os._exit(3)
first = []
def world(seed) -> ucbf.World:
    first.append(seed)
    if seed != first[0]:
        raise RuntimeError("no such place")
    return ucbf.random_world(n_states=6, n_actions=2, horizon=3, max_disturbance=2, seed=seed)
"""


def own_study(folder, agent="UCB-H", world=""):
    """A study that names code: some of it fails."""
    (folder / "own.py").write_text(OWN)
    agents = f'[[agents]]\nname = "UCB-f"\n[[agents]]\nname = "{agent}"\n'
    world = world or "n_states = 6\nn_actions = 2\nhorizon = 3\nmax_disturbance = 2"
    (folder / "study.toml").write_text(f'name = "own"\nepisodes = 20\nworlds = 3\n[world]\n{world}\n{agents}')


FAILURES = [
    ("own:Fails", "", "'Fails' failed in world 0 with {'n_states': 6, 'n_actions': 2, ", "RuntimeError: it broke", 5),
    ("own:Exits", "", "'Exits' failed in world 0 with {'n_states': 6, 'n_actions': 2, ", "SystemExit: 7", 8),
    ("UCB-H", 'kind = "own:world"', "world 1 with {} failed: ", "RuntimeError: no such place", 21),
]


@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("agent", "world", "what", "error", "line"), FAILURES)
def test_code_that_fails_is_named_with_its_place_and_what_is_kept(tmp_path, engine, agent, world, what, error, line):
    own_study(tmp_path, agent, world)
    options = ["--trust", "--engine", engine, "--jobs", 1]
    done = ucbf("run", "study.toml", *options, cwd=tmp_path, check=False, alone=True)
    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ucbf: {what}")
    kept = "finished runs are kept in results/own: code that is changed needs another --out"
    assert last.endswith(f"{error}; {kept}")
    assert f'own.py", line {line}, in ' in done.stderr


def test_code_is_not_run_unless_it_is_trusted(tmp_path):
    own_study(tmp_path, "own:Fails")
    done = ucbf("run", "study.toml", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("ucbf: study.toml:12: agents[1].name: 'own:Fails' is code: the module 'own' would ")
    assert not (tmp_path / "results").exists()


def test_what_agents_print_is_not_taken_for_a_result(tmp_path):
    own_study(tmp_path, "own:Tells")
    done = ucbf("run", "study.toml", "--trust", cwd=tmp_path, alone=True)
    assert done.stdout == "6 runs computed, 0 were there: results/own\n"
    assert "imported\n" in done.stderr
    assert "told\n" in done.stderr


@pytest.mark.slow
def test_a_ray_worker_that_always_dies_ends_the_study(tmp_path):
    own_study(tmp_path, "own:Dies")
    options = ["--trust", "--engine", "ray", "--jobs", 1]
    done = ucbf("run", "study.toml", *options, cwd=tmp_path, check=False, alone=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "ucbf: a worker of the Ray cluster died 4 times over the same runs; finished runs are kept in results/own: "
        "mend it, and the same command goes on"
    )


def test_an_address_without_a_cluster_is_refused(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ["--engine", "ray", "--ray-address", address, "--out", "nowhere"]
        done = ucbf("run", "study.toml", *options, cwd=folder, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ucbf: no Ray cluster answers at {address} (")
    assert last.endswith("finished runs are kept in nowhere: mend it, and the same command goes on")


def test_any_other_failure_is_one_line_too(folder):
    code = """
import pyarrow as pa
from ucbf.studies import store
def broken(*given, **named): raise pa.ArrowInvalid("no such codec")
store.pq.write_table = broken
from ucbf.cli import main
main()
"""
    command = [sys.executable, "-c", code, "run", "study.toml", "--out", "arrow"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == [
        "ucbf: the study failed: pyarrow.lib.ArrowInvalid: no such codec; finished runs are kept in arrow: the same "
        "command goes on from there"
    ]


@pytest.mark.parametrize("name", ["summary.md", "figure.svg"])
def test_a_table_or_picture_that_cannot_be_written_is_named(folder, tmp_path, name):
    ucbf("run", folder / "study.toml", "--out", tmp_path)
    (tmp_path / name).mkdir()
    done = ucbf("plot", tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"ucbf: {tmp_path / name} could not be written: Is a directory; make room, or mend")
    assert done.stderr.count("\n") == 1


def interrupted(cwd, until=lambda: True, **env):
    """Exit code and words of a long study that gets Ctrl-C once its first line is there and ``until`` holds."""
    long = STUDY.replace("episodes = 120", "episodes = 2000000").replace("worlds = 3", "worlds = 500")
    (cwd / "study.toml").write_text(long)
    command = [*UCBF, "run", "study.toml"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd, env={**os.environ, **env}) as process:
        assert process.stderr.readline() == "0 of 1500 runs (0 %)\n"
        while not until():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    return process.returncode, said


def test_interrupted_it_stops_soon_and_says_how_to_go_on(tmp_path, folder):
    code, said = interrupted(tmp_path)
    assert code == 130
    assert "stopped; finished runs are kept in results/tiny: the same command goes on from there" in said
    assert "Traceback" not in said


def test_interrupted_while_it_compiles_it_stops_too(tmp_path):
    def compiles():
        return any((tmp_path / "cold").rglob("*.nbi"))  # one function is kept, the next is being compiled

    assert interrupted(tmp_path, compiles, NUMBA_CACHE_DIR=str(tmp_path / "cold"))[0] == 130


def test_ctrl_c_a_second_time_ends_it_at_once(monkeypatch):
    codes = []
    monkeypatch.setattr(interrupts.os, "_exit", codes.append)
    monkeypatch.setattr(interrupts, "INTERRUPTED", threading.Event())
    monkeypatch.setattr(interrupts, "PATIENCE", 1e6)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            interrupts.interrupt(signal.SIGINT, None)
    assert codes == [130]


def test_labels_are_shown_as_they_are(tmp_path):
    odd = "UCB [ours] | $x$"
    (tmp_path / "study.toml").write_text(STUDY.replace('name = "UCB-H"', f'name = "UCB-H"\nlabel = "{odd}"'))
    ucbf("run", "study.toml", cwd=tmp_path)
    assert odd in ucbf("plot", "results/tiny", cwd=tmp_path).stdout
    assert "UCB [ours] \\| $x$" in (tmp_path / "results" / "tiny" / "summary.md").read_text()


def test_shards_in_several_folders_are_drawn_together(folder, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.replace("n_actions = 2", "n_actions = [2, 3]"))
    for part in "12":
        ucbf("run", "study.toml", "--shard", f"{part}/2", "--out", f"part{part}", cwd=tmp_path)
    assert "9 of 18 runs" in ucbf("status", "part1", cwd=tmp_path).stdout
    assert "A = 3" in ucbf("plot", "part1", "part2", cwd=tmp_path).stdout


def test_help_names_every_command():
    said = ucbf("--help").stdout
    assert all(command in said for command in ("figure1", "figure2", "figure3", "table1", "run", "status", "plot"))
    assert "--ray-address" in ucbf("figure1", "--help").stdout


def test_help_imports_nothing_heavy():
    code = """
import sys
sys.argv = ["ucbf", "--help"]
from ucbf.cli import main
try:
    main()
except SystemExit:
    pass
print([m for m in "numpy numba scipy matplotlib pyarrow ray gymnasium jinja2".split() if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

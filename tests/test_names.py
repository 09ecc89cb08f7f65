"""The names in a study, and the code that stands behind them."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import ucbf
from ucbf.errors import UserError
from ucbf.studies import names
from ucbf.studies.names import agent_class, world_maker
from ucbf.studies.reading import make_study, read_study
from ucbf.studies.runner import run_study
from ucbf.studies.store import read_results

OWN = """
import ucbf
class Own(ucbf.Greedy):
    name = "own"
def world(seed, n_actions=2) -> ucbf.World:
    return ucbf.random_world(n_states=5, n_actions=n_actions, horizon=2, max_disturbance=1, lipschitz=None, seed=seed)
"""


def own_study(folder, module, more=""):
    (folder / f"{module}.py").write_text(OWN + more)
    (folder / "study.toml").write_text(
        f'name = "own"\nepisodes = 20\nworlds = 2\n[world]\nkind = "{module}:world"\n'
        f'[[agents]]\nname = "{module}:Own"\n'
    )
    return folder / "study.toml"


def test_results_of_an_algorithm_that_has_changed_are_refused(tmp_path):
    path = own_study(tmp_path, "own_changed")
    run_study(read_study(path, trust=True), tmp_path / "results")
    own_study(tmp_path, "own_changed", more="# another version\n")
    with pytest.raises(UserError, match="own_changed:world has changed since the results .* pass another --out"):
        run_study(read_study(path, trust=True), tmp_path / "results")


def test_a_module_that_fails_is_named(tmp_path):
    for module, more, message in [
        ("own_broken", "def (", "'own_broken:world' cannot be imported .SyntaxError"),
        ("own_exits", "import sys; sys.exit(3)", "'own_exits:world' cannot be imported .SystemExit: 3"),
        ("own_number", "world = 7", "own_number:world is 7; it must be a function that declares that it returns"),
        ("own_silent", "def world(seed): 1 / 0", "world is <function .*; it must .*: def world.*, seed. -> ucbf.World"),
        ("own_typo", "del world", "'own_typo:world' does not exist: .* 'own_typo' .*own_typo.py. has no 'world'"),
        (
            "own_none",
            "def world(seed) -> ucbf.World: return None",
            "own_none:world returned None; it must return a ucbf.World",
        ),
        ("own_key", "class Own(ucbf.Greedy):\n    def __init__(self, system): raise KeyError('x')", "KeyError: 'x'"),
        (
            "own_exit",
            "class Own(ucbf.Greedy):\n    def __init__(self, system): raise SystemExit",
            "agents.*: SystemExit",
        ),
    ]:
        with pytest.raises(UserError, match=message):
            read_study(own_study(tmp_path, module, more), trust=True)


def test_an_agent_that_fails_at_run_time_is_named(tmp_path):
    more = "\n    def renew(self): raise RuntimeError('boom')\n"
    (tmp_path / "own_fails.py").write_text(OWN.replace('    name = "own"', '    name = "own"' + more))
    path = own_study(tmp_path, "own_fails_toml")
    path.write_text(path.read_text().replace("own_fails_toml:Own", "own_fails:Own"))
    with pytest.raises(UserError, match="'Own' failed in world 0 with {}: RuntimeError: boom"):
        run_study(read_study(path, trust=True), tmp_path / "results")


# -- a file is data until somebody trusts it --------------------------------------------------------


@pytest.mark.parametrize("place", ["world.kind", r"agents\[0\].name"])
def test_a_file_that_names_code_is_refused_before_any_of_it_runs(tmp_path, place):
    path = own_study(tmp_path, "own_untrusted", more="raise SystemExit('it ran')\n")
    text = path.read_text()
    if place != "world.kind":
        path.write_text(text.replace('kind = "own_untrusted:world"', ""))
    with pytest.raises(UserError, match=rf"{place}: 'own_untrusted:\w+' is code: the module 'own_untrusted' .*--trust"):
        read_study(path)


def test_a_trusted_file_finds_its_code_and_what_that_imports(tmp_path):
    (tmp_path / "own_helper.py").write_text("NUMBER = 3\n")
    path = own_study(tmp_path, "own_trusted", more="import own_helper\nassert own_helper.NUMBER == 3\n")
    run_study(read_study(path, trust=True), tmp_path / "results")
    assert read_results(tmp_path / "results").runs.num_rows == 2


def python(code, *arguments, cwd):
    command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


RUN = """
import sys
from pathlib import Path
from ucbf.studies.reading import read_study
before = list(sys.path)
read_study(Path(sys.argv[1]), trust=sys.argv[2] == "trust")
assert sys.path == before
import wave, queue  # of the standard library, not imported until now
"""


@pytest.mark.parametrize("trusted", [False, True])
def test_a_module_beside_the_file_never_takes_an_installed_ones_place(tmp_path, trusted):
    path = own_study(tmp_path, "own_beside")
    for name in ("pyarrow", "json", "wave", "queue", "numpy", "own_bystander"):
        (tmp_path / f"{name}.py").write_text(f"print('{name} ran')\n")
    if not trusted:
        path.write_text('[[agents]]\nname = "UCB-f"\n')
    done = python(RUN, path, "trust" if trusted else "", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_reading_results_imports_nothing_that_their_study_names(tmp_path):
    path = own_study(tmp_path, "own_results")
    run_study(read_study(path, trust=True), tmp_path / "results")
    (tmp_path / "own_results.py").write_text("print('it ran')\n")
    code = "import sys; from ucbf.cli import main; main()"
    for command in ("status", "plot"):
        done = python(code, command, "results", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "it ran" not in done.stdout


def test_a_name_that_an_installed_module_has_is_explained(tmp_path):
    with pytest.raises(UserError, match=r"'wave:world' does not exist: .*wave.py. has no 'world'; .* rename it"):
        read_study(own_study(tmp_path, "wave"), trust=True)


# -- only what is declared to be an agent or a world is called ---------------------------------------


def test_what_does_not_declare_to_make_worlds_is_not_called(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    world = {"kind": "logging:basicConfig", "filename": str(victim), "filemode": "w", "force": True}
    with pytest.raises(UserError, match="logging:basicConfig is <function .* must be a function that declares"):
        make_study({"world": world, "agents": [{"name": "UCB-f"}]})
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["json:dumps", "json:JSONDecoder", "ucbf.studies.names:AGENTS", "ucbf:World"])
def test_what_is_no_agent_is_not_called(name):
    with pytest.raises(UserError, match=rf"{name} is .*; it must be a subclass of ucbf.Agent"):
        make_study({"agents": [{"name": name}]})


class OwnWorld(ucbf.World):
    pass


def test_names_of_code_are_found(monkeypatch):
    assert world_maker("ucbf.world:random_world") is ucbf.random_world  # its annotations are text
    assert world_maker(f"{__name__}:OwnWorld") is OwnWorld
    assert agent_class("ucbf.agents:UCBf") is ucbf.UCBf
    with pytest.raises(ValueError, match="'nowhere:Agent' cannot be imported .ModuleNotFoundError"):
        agent_class("nowhere:Agent")


def test_an_entry_point_is_found_by_its_name_and_named_if_it_fails(monkeypatch):
    points = [EntryPoint(name, value, "ucbf.agents") for name, value in [("H", "ucbf:UCBH"), ("gone", "nowhere:X")]]
    monkeypatch.setattr(names, "entry_points", lambda group: points if group == "ucbf.agents" else [])
    assert agent_class("H") is ucbf.UCBH
    with pytest.raises(ValueError, match="'nowhere:X' cannot be imported"):
        agent_class("gone")
    with pytest.raises(ValueError, match="unknown agent 'gon'; did you mean 'gone'"):
        agent_class("gon")


def test_a_second_study_is_not_given_the_code_of_the_first(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    read_study(own_study(tmp_path / "one", "own_twice"), trust=True)
    with pytest.raises(UserError, match="'own_twice' was imported from .*one.* for an earlier study, and this one has"):
        read_study(own_study(tmp_path / "two", "own_twice"), trust=True)

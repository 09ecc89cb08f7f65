"""What is released works away from the checkout, in an environment of its own, and says its version everywhere."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

import ucbf
from pages import ROOT

AS_A_TEST = "import doctest, sys; f = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE; "
AS_A_TEST += "sys.exit(doctest.testfile('README.md', module_relative=False, optionflags=f).failed)"


def test_every_file_says_the_same_version_and_day():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {ucbf.__version__}\n" in citation
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    day = re.search(r"^date-released: (\d{4}-\d\d-\d\d)$", citation, flags=re.MULTILINE)[1]
    assert next(heading for heading in headings if heading != "Unreleased") == f"{ucbf.__version__} - {day}"


def test_the_oldest_version_of_everything_that_is_needed_is_known(capsys):
    runpy.run_path(str(ROOT / "benchmarks" / "lowest.py"), run_name="__main__")
    oldest = dict(line.split("==") for line in capsys.readouterr().out.splitlines())
    assert {"numpy", "numba", "hatchling", "pytest", "ray", "sphinx"} <= set(oldest)


def run(*command, cwd):
    """Run a command as a user would: nothing of the checkout is on the path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment_away_from_the_checkout(tmp_path):
    sources, away = tmp_path / "sources", tmp_path / "away"
    kept = shutil.ignore_patterns(".*", "build", "dist", "results", "__pycache__", "*.png")
    shutil.copytree(ROOT, sources, ignore=kept)
    away.mkdir()
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    run(sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, sources, cwd=tmp_path)
    (wheel,) = tmp_path.glob("ucbf-*.whl")
    assert wheel.name == f"ucbf-{ucbf.__version__}-py3-none-any.whl"
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {"ucbf/__init__.pyi", "ucbf/py.typed", "ucbf/advice/page.html.jinja"} <= inside

    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, *pip, "install", "--constraint", ROOT / "constraints.txt", f"{wheel}[plot]", cwd=away)
    assert str(tmp_path / "env") in run(python, "-c", "import ucbf; print(ucbf.__file__)", cwd=away)

    shutil.copy(ROOT / "README.md", away)
    shutil.copytree(ROOT / "examples" / "data", away / "examples" / "data")
    run(python, "-c", AS_A_TEST, cwd=away)
    command = python.parent / "ucbf"
    assert ucbf.__version__ in run(command, "--version", cwd=away)
    run(command, "figure1", "--quick", cwd=away)
    assert (away / "results" / "figure1-quick" / "figure.png").stat().st_size > 10_000
    text = (ROOT / "README.md").read_text().replace("\\\n", "")
    learn = re.search(r"^\$ ucbf (learn .*)$", text, flags=re.MULTILINE)
    assert "order up to" in run(command, *learn[1].split(), cwd=away)
    assert (away / "shop" / "page.html").exists()

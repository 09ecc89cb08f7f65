"""The README and the manual: every example runs, every public name is explained, every link leads somewhere."""

import json
import re
import runpy

import matplotlib.image
import numpy as np
import pytest

import ucbf
from pages import ROOT, run_page, sessions
from ucbf.cli.app import app

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_SESSIONS = [page for page in PAGES if "```console" in page.read_text()]
GALLERY = ROOT / "docs" / "gallery"
NOTEBOOKS = runpy.run_path(str(ROOT / "docs" / "notebooks.py"))
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_SESSIONS, ids=name_of)
def test_a_session_prints_what_its_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)


def test_a_page_that_promises_something_else_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ cat a.csv\nx\n1\n$ ucbf status nowhere\nucbf: there is something\n```\n")
    with pytest.raises(AssertionError, match="status nowhere"):
        run_page(page, tmp_path)
    assert (tmp_path / "a.csv").read_text() == "x\n1\n"


def test_a_page_that_shows_what_was_never_printed_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ ucbf --version\n...\n```\n\n```text\n" + ucbf.__version__ + "\n...\nnever\n```\n")
    with pytest.raises(AssertionError, match="nothing printed\nnever"):
        run_page(page, tmp_path)


def test_commands_are_split_from_what_they_print():
    text = "$ ucbf learn \\\n  --out x   # comment\n# Title\n\nmore\n$ ucbf act x\n"
    assert list(sessions(text)) == [("ucbf learn   --out x", "# Title\n\nmore\n"), ("ucbf act x", "")]


def test_the_readme_is_short_and_shows_how_to_begin():
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= 150
    for needed in ("$ make figure1", "$ make test", "$ pip install ucbf"):
        assert needed in text


def test_links_to_nowhere_and_what_is_loaded_from_elsewhere_are_found_in_the_built_manual(tmp_path):
    page = '<h1 id="top">A</h1><a href="#top">x</a><a href="b.html#here">x</a><a href="https://example.org">x</a>'
    (tmp_path / "a.html").write_text(page + '<img src="data:,"><link href="b.html">')
    (tmp_path / "b.html").write_text('<p id="here">B</p>')
    faults = runpy.run_path(str(ROOT / "docs" / "links.py"))["faults"]
    assert list(faults(tmp_path)) == []
    links = '<a href="a.html#end">x</a><a href="c.html">x</a>'
    (tmp_path / "b.html").write_text(links + '<script src="//example.org/x.js">')
    assert [fault.split(" links ")[-1].split(";")[0] for fault in faults(tmp_path)] == [
        "to b.html#here", "to a.html#end", "to c.html, which is not there", "b.html loads //example.org/x.js",
    ]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_to_files(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target, _ in LINK.findall(text):
        assert not target or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_reference_has_every_public_name():
    text = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    explained = set(re.findall(r"(?:auto\w+|py:data):: ucbf\.(\w+)$", text, flags=re.MULTILINE))
    modules = set(re.findall(r"automodule:: ucbf\.(\w+)$|:: ucbf\.(\w+)\.\w+$", text, flags=re.MULTILINE))
    modules = {name for pair in modules for name in pair}
    assert set(ucbf.__all__) - explained - modules - {"__version__", "policies"} == set()


def test_the_reference_has_every_command():
    shown = set(re.findall(r"^```\{help\} (\w+)", (ROOT / "docs/reference/command.md").read_text(), flags=re.MULTILINE))
    assert {name for name in app if not name.startswith("-")} == shown


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS["NAMES"])
def test_a_page_of_the_gallery_prints_and_draws_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(GALLERY / f"{name}.md", tmp_path)
    made, shown = (matplotlib.image.imread(folder / f"{name}.png") for folder in (tmp_path, GALLERY))
    assert made.shape == shown.shape
    assert np.abs(made - shown).mean() < 0.01  # shades of letters differ by version


@pytest.mark.parametrize("name", NOTEBOOKS["NAMES"])
def test_a_notebook_is_its_page(name):
    text = (GALLERY / f"{name}.ipynb").read_text()
    assert text == NOTEBOOKS["notebook"]((GALLERY / f"{name}.md").read_text()), "run python docs/notebooks.py"
    assert all(cell["outputs"] == [] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS["NAMES"])
def test_a_notebook_runs_from_top_to_bottom(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = {}
    for cell in json.loads((GALLERY / f"{name}.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), names)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_text_becomes_text_and_examples_become_code():
    page = "# A\n\n```python\n>>> for i in (1, 2):\n...     print(i)\n1\n2\n>>> i\n2\n\n```\n\nB\n"
    cells = [("".join(c["source"]), c["cell_type"]) for c in json.loads(NOTEBOOKS["notebook"](page))["cells"]]
    assert cells == [("# A", "markdown"), ("for i in (1, 2):\n    print(i)\ni", "code"), ("B", "markdown")]

"""What ``ucbf learn`` writes and removes: never an input, never what is not its own."""

import json

import numpy as np
import pytest

import commands
from ucbf.advice.model_file import KNOWLEDGE
from ucbf.cli.results import WRITTEN, refuse_inputs, results_in
from ucbf.errors import UserError
from ucbf.following.stores import FITTED

PRICES = ["--price", 9, "--unit-cost", 4]
ITEMS = ["--item", "sku", "--items", "items.csv"]
DAYS = np.datetime64("2024-01-01") + np.arange(84)


def learn(here, *flags, check=False):
    pictures = [] if "--items" in flags else ["--no-pictures"]
    return commands.ucbf("learn", "inventory", *flags, *PRICES, *pictures, cwd=here, check=check)


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def here(tmp_path):
    demand = np.random.default_rng(0).poisson(5, 84)
    rows = [f"{day},{d},a" for day, d in zip(DAYS, demand, strict=True)]
    for name in ("demand", "orders"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["date,units,sku", *rows]) + "\n")
    (tmp_path / "forecast.csv").write_text("date,forecast\n" + "".join(f"{day},5\n" for day in DAYS))
    (tmp_path / "items.csv").write_text("sku,holding\na,0.5\n")
    (tmp_path / "plans-2024.parquet").symlink_to(tmp_path / "demand.csv")
    room = tmp_path / "out" / "a"
    room.mkdir(parents=True)
    (room / "policy.csv").write_bytes((tmp_path / "demand.csv").read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (["--demand", "demand.csv", "--forecast", "forecast.csv", "--column", "units", "--out", "."], "forecast.csv"),
        (["--demand", "orders.csv", "--column", "units", "--lead-time", 2, "--out", "../{here}"], "orders.csv"),
        (["--demand", "demand.csv", *ITEMS, "--lead-time", 1, "--out", "."], "items.csv"),
        (["--demand", "plans-2024.parquet", *ITEMS, "--out", "."], "plans-*.parquet"),
        (["--demand", "out/a/policy.csv", "--item", "sku", "--out", "out"], "policy.csv"),
        (["--demand", "demand.csv", "--item", "sku", "--config", "summary.md", "--out", "."], "summary.md"),
    ],
)  # fmt: skip
def test_an_input_among_the_results_is_refused_before_any_work(here, flags, kept):
    (here / "summary.md").write_text("holding = 1\n")
    before = files(here)
    done = learn(here, *[str(flag).format(here=here.name) for flag in flags])
    assert done.returncode == 2
    assert f"is an input, and stands where {kept} of the results is written or removed; give another" in done.stderr
    assert files(here) == before


def test_inputs_elsewhere_are_read(here):
    refuse_inputs([here / "forecast.csv", None], here / "out", WRITTEN)
    refuse_inputs([here / "demand.csv"], here, WRITTEN)
    refuse_inputs([here / "forecast.csv"], here, WRITTEN, below=1)
    with pytest.raises(UserError, match="is an input"):
        refuse_inputs([here / "out" / "a" / "policy.csv"], here / "out", WRITTEN, below=1)


def test_what_is_not_ours_stays_when_a_folder_is_learned_into(here):
    out, given = here / "shop", ["--demand", "demand.csv", "--column", "units", "--out", "shop"]
    foreign = ("policy.notes", "agents.npz", "agent-mine.npz", FITTED, KNOWLEDGE, "policy.pdf", "law.csv")
    out.mkdir()
    for name in foreign:
        (out / name).write_text("mine")
    learn(here, *given, "--lead-time", 2, check=True)
    assert {name: (out / name).read_text() for name in foreign} == dict.fromkeys(foreign, "mine")
    (out / "law.csv").unlink()
    learn(here, *given, check=True)
    assert not (out / "store.json").exists()
    assert not (out / "orders.csv").exists()
    kept = [name for name in foreign if name != "law.csv"]
    assert {name: (out / name).read_text() for name in kept} == dict.fromkeys(kept, "mine")
    learn(here, *given, "--lead-time", 2, check=True)
    assert not {"model.json", "agent.npz", "policy.csv", "law.csv"} & {path.name for path in out.iterdir()}
    assert {name: (out / name).read_text() for name in kept} == dict.fromkeys(kept, "mine")


def test_a_store_that_is_not_ours_is_neither_removed_nor_followed(here):
    (here / "shop").mkdir()
    (here / "shop" / "store.json").write_text('{"format": "of another program"}')
    assert results_in(here / "shop") == set()
    done = learn(here, "--demand", "demand.csv", "--column", "units", "--out", "shop")
    assert (
        "store.json is damaged, or was not written by ucbf learn; move it away, or give another folder" in done.stderr
    )
    assert [path.name for path in (here / "shop").iterdir()] == ["store.json"]


@pytest.mark.parametrize("told", [[], {"kinds": 3, "knowledge": "x"}, {"kinds": {"a": {"agent": {"name": "../x"}}}}])
def test_names_that_a_damaged_file_tells_lead_nowhere_else(tmp_path, told):
    content = {"format": "ucbf model", **told} if told else told
    (tmp_path / "model.json").write_text(json.dumps(content))
    assert all("/" not in name for name in results_in(tmp_path))

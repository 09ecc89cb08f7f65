"""Mistakes that a user can make at any door: each is refused at once, by its value, the rule and the remedy."""

import math
import sys
from datetime import datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

import ucbf
from ucbf import data
from ucbf.advice import suggested_parameters
from ucbf.advice.model_file import _slug
from ucbf.checks import integers
from ucbf.cli.known import with_prices
from ucbf.cli.parameters import given_parameters
from ucbf.engines.running import executor_of
from ucbf.errors import UserError, in_a_line
from ucbf.policies import Policy
from ucbf.spaces import lattice
from ucbf.studies.reading import make_study, read_study
from ucbf.studies.store import read_results
from ucbf.systems import Battery, Inventory

SHOP = Inventory(capacity=10, max_demand=5, horizon=2)
RING = ucbf.System(np.zeros((4, 1)), 0.0, 2)
STUDY = {
    "name": "small",
    "episodes": 4,
    "worlds": 1,
    "world": {"n_states": 6, "n_actions": 2, "horizon": 3},
    "agents": [{"name": "UCB-f"}],
}


def series(n, spacing=None, begin=datetime(2024, 1, 1)):
    times = None if spacing is None else [begin + i * spacing for i in range(n)]
    return data.Series(np.arange(n) % 5 * 1.0, times, "demand", "memory")


def box(**given):
    usual = {"low": [0], "high": [1], "points": 3, "actions": [0.0], "horizon": 2, "boundary": "clip"}
    return ucbf.System(lambda s, a: s, lambda s, a: s[:, 0], **{**usual, **given})


FOUR = data.episodes(series(8), horizon=2)

MISTAKES = {
    "a wrong f of no system": (lambda: ucbf.corrupt(SHOP, 2), "system is Inventory.*; give a ucbf.System"),
    "an error beyond all states": (lambda: ucbf.corrupt(RING, 1e300), "model_error .* is 1e.300; it must be 0 or more"),
    "a world of too many pairs": (lambda: ucbf.random_world(2**20, 2**20), "1048576 states x 1048576 actions"),
    "a world of too many steps": (lambda: ucbf.random_world(horizon=10**9), "1000000000 steps x 6 disturbances"),
    "episodes without number": (
        lambda: ucbf.simulate(ucbf.UCBVIf(SHOP.system), SHOP.world(), 10**9),
        "1000000000 episodes of 2 steps are more than 268435456 draws at a time; simulate fewer, and again",
    ),
    "a preset without end": (lambda: SHOP.replace(horizon=10**9), "horizon is 1000000000; it must be 1 to 1000000"),
    "a policy from bare numbers": (lambda: ucbf.learn(SHOP, [1.0, 2.0]), "episodes is .1.0, 2.0.; give what ucbf.data"),
    "episodes of no series": (lambda: data.episodes([1.0, 2.0], 1), "series is .1.0, 2.0.; read one with"),
    "a step that there is not": (
        lambda: ucbf.Controller(SHOP, ucbf.UCBVIf(SHOP.system)).observe(2, 1, 0, 1, amount=0),
        "step h is 2; it must be 0 to 1",
    ),
    "an amount that is a list": (
        lambda: ucbf.Controller(SHOP, ucbf.UCBVIf(SHOP.system)).observe(0, 1, 0, 1, amount=[0]),
        r"demand is \[0\]; give a number",
    ),
    "a truth value for a number": (lambda: ucbf.UCBf(RING, p=True), "p is True; give a number, not a truth value"),
    "an endless number": (lambda: ucbf.UCBf(RING, c=math.inf), "c is inf; give a finite number"),
    "uniforms beyond 1": (lambda: ucbf.Disturbance([0.5, 0.5]).draw([[1.0]]), r"give \[K, H\] numbers in \[0, 1\)"),
    "uniforms below 0": (lambda: ucbf.Disturbance([0.5, 0.5]).draw([[-0.1]]), r"give \[K, H\] numbers in \[0, 1\)"),
    "a row of uniforms": (lambda: ucbf.Disturbance([0.5, 0.5]).draw([0.1]), r"uniforms has shape \(1,\)"),
    "a prior by steps for one law": (
        lambda: ucbf.UCBVIf(RING, stationary=True, prior=ucbf.Disturbance([[0.5, 0.5], [1, 0]])),
        "prior has 2 steps, but the law is declared stationary; give one row",
    ),
    "moved to no system": (lambda: ucbf.UCBVIf(RING).moved_to(SHOP), "system is Inventory.*; give a ucbf.System"),
    "a policy of no system": (lambda: Policy(SHOP, [[0]]), "system is Inventory.*; give a ucbf.System"),
    "advice on no system": (lambda: ucbf.learn(RING, FOUR), "preset is System.*; give one of ucbf.systems"),
    "advice on other steps": (
        lambda: ucbf.learn(SHOP.replace(horizon=3), FOUR),
        "episodes have 2 steps and the preset has 3; give both the same horizon",
    ),
    "advice on one episode": (lambda: ucbf.learn(SHOP, FOUR.part(0, 1)), "there is 1 episode; at least 2 are needed"),
    "advice from nowhere": (
        lambda: ucbf.learn(SHOP, FOUR, start=11),
        "start is 11; give a state, from 0 to 10",
    ),
    "changes for some": (
        lambda: ucbf.learn(SHOP, FOUR, changes=[{}]),
        "changes has 1 entries; give one for each",
    ),
    "a series of nothing": (lambda: suggested_parameters(Inventory, np.zeros((3, 2)), {}), "all amounts are 0"),
    "a profile beyond the range": (
        lambda: SHOP.replace(profile=(1, 6)),
        "profile goes from 1 to 6, but the demand only from 0 to 5; widen its range",
    ),
    "a law of other steps": (
        lambda: Inventory(capacity=9, max_demand=2, horizon=3, profile=(1, 1, 1)).world(
            ucbf.Disturbance([[0.5, 0.5, 0], [0, 1, 0]])
        ),
        "law has 2 steps and the system 3; give one row, or one for each step",
    ),
    "a table as a series": (lambda: data.read_series(np.zeros((2, 2))), r"series has shape \(2, 2\); give \[N\]"),
    "a box without sides": (lambda: lattice([0, 0], [1], 3), r"low has shape \(2,\) and high \(1,\)"),
    "an end that depends on the step": (
        lambda: box(terminal=lambda h, s: s[:, 0]),
        "terminal takes more than the states; it is paid once",
    ),
    "a state of other axes": (
        lambda: box().space.rows("s", np.zeros((2, 2))),
        r"s has shape \(2, 2\); give \[d\] or \[N, d\] with d = 1",
    ),
    "a range without ends": (lambda: box(disturbance_range=3), "disturbance_range is 3; give .low, high."),
    "a range upside down": (lambda: box(disturbance_range=(1, 0)), "low must not exceed high"),
    "samples of other axes": (
        lambda: ucbf.World(box(), ucbf.Disturbance(values=np.zeros((2, 2)))),
        r"the law does not fit the system: disturbances has shape \(2, 2\); give \[n, d\] with d = 1",
    ),
    "samples of other steps": (
        lambda: ucbf.World(box(), ucbf.Disturbance(np.full((3, 2), 0.5), values=[[0.0], [0.1]])),
        "the law has 3 steps and the system 2",
    ),
    "weights for some": (
        lambda: ucbf.Disturbance([1.0], values=[[0.0], [0.1]]),
        "pmf has 1 probabilities for 2 values; give one for each",
    ),
    "values that are no rows": (lambda: ucbf.Disturbance(values=[0.0, 0.1]), r"values has shape \(2,\); give \[n, d\]"),
    "a proof of what is hidden": (
        lambda: ucbf.simulate(ucbf.UCBVIf(SHOP.system), SHOP.world(), 9, censored=True, stop_when=1.0),
        "nothing can be certified of what an edge hides",
    ),
    "residuals that wrap": (
        lambda: ucbf.UCBf(
            ucbf.System(np.zeros((4, 1)), 0.0, 1, "wrap", disturbance_range=(0, 3), model_error=2),
            estimator=ucbf.estimators.LinearFeatures("affine"),
        ),
        "LinearFeatures cannot tell 6 residuals apart where 4 states wrap",
    ),
    "a parameter that is a column": (
        lambda: make_study({**STUDY, "world": {"kind": "test_refusals:odd", "regret": 1}}),
        "'regret' is a column of the results; give the parameter another name",
    ),
    "one agent in single brackets": (
        lambda: make_study({**STUDY, "agents": {"name": "UCB-f"}}),
        r"write \[\[agents\]\]",
    ),
    "results of nowhere": (lambda: read_results(), r"read_results\(\) needs a folder of results"),
}


def odd(regret=1, seed=0) -> ucbf.World:
    """A world with an odd parameter."""
    return ucbf.random_world(n_states=6, n_actions=2, horizon=3, seed=seed)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused(name):
    make, message = MISTAKES[name]
    with pytest.raises((TypeError, ValueError, UserError), match=message):
        make()


def test_files_that_are_no_tables_are_refused(tmp_path):
    (tmp_path / "book.csv").write_bytes(b"PK\x03\x04")
    (tmp_path / "latin.csv").write_bytes("date,demand\n2024-01-01,5é\n".encode("latin-1"))
    (tmp_path / "quotes.csv").write_text('a\n"' + "x" * 200_000 + "\n")
    for name, message in [
        (".", "is a folder; give a file"),
        ("book.csv", "is a workbook, not a CSV file; save it as CSV in UTF-8"),
        ("latin.csv", "'5é' is not a number"),
        ("quotes.csv", r"row \d+: .*; is it a CSV file"),
    ]:
        with pytest.raises(UserError, match=message):
            data.read_series(tmp_path / name)


def test_a_study_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "study.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(UserError, match=r"study.toml cannot be read: "):
        read_study(tmp_path / "study.toml")


def test_flags_and_prices_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"there is no file '.*shop.toml' \(--config\)"):
        given_parameters(Battery, SimpleNamespace(), tmp_path / "shop.toml")
    day, hour = timedelta(days=1), timedelta(hours=1)
    episodes = data.episodes(series(48, hour), horizon=24)
    with pytest.raises(UserError, match="a price every day, a demand every hour; make them alike"):
        with_prices(series(48, day), episodes)
    with pytest.raises(UserError, match="no price for 2024-01-01 00:00:00, where the first episode begins"):
        with_prices(series(48, hour, datetime(2024, 1, 1, 1)), episodes)
    with pytest.raises(
        UserError, match="the prices end at 2024-01-02 15:00:00, the demand at 2024-01-02 23:00:00; the first"
    ):
        with_prices(series(40, hour), episodes)
    with pytest.raises(UserError, match="40 rows without dates, and the demand has 48 steps with dates; give the"):
        with_prices(data.read_series([3.0] * 40), episodes)
    with pytest.raises(UserError, match="40 rows, but the demand needs 48 of them"):
        with_prices(data.read_series([3.0] * 40), data.episodes(data.read_series([1.0] * 48), horizon=24))
    prices = series(58, hour, datetime(2023, 12, 31, 14))  # ten hours before the demand
    assert [change["prices"][:2] for change in with_prices(prices, episodes)] == [(0, 1), (4, 0)]
    assert _slug("Sat, Sun") == "Sat--Sun"


def test_things_say_what_they_are():
    assert repr(series(2)) == "Series(2 values of 'demand' from memory)"
    assert repr(series(2, timedelta(days=1))).endswith("from memory, 2024-01-01 00:00:00 to 2024-01-02 00:00:00)")
    assert series(2).place(1) == "value 2"
    assert series(2, timedelta(days=1)).place(1) == "2024-01-02"
    assert repr(FOUR).startswith("Episodes(4 of 2 steps, from ")
    assert repr(FOUR.part(0, 0)) == "Episodes(0 of 2 steps, from none)"
    said = "System(3 points of [0, 1], 1 actions, horizon 2, boundary 'clip', model_error 0)"
    assert repr(box()) == said
    assert repr(ucbf.Controller(SHOP, ucbf.UCBVIf(SHOP.system))) == "Controller(inventory, unit 1, UCBVI-f)"


def test_integers_are_those_that_floats_can_tell_apart():
    for whole in (2**53, -(2**53), 0):
        assert integers("f", [whole]).tolist() == [whole]
    for large in (2**53 + 1, -(2**53) - 1, -(2**63), 2.0**60):
        with pytest.raises(ValueError, match=r"f\[0\] is .*; entries must stay within ±2\*\*53"):
            integers("f", [large])


def test_what_lies_at_the_end_of_a_range_is_within():
    assert SHOP.replace(profile=(1, 5)).profile == (1, 5)
    assert ucbf.UCBf(RING, d=0.5).params["d"] == 0.5
    ucbf.UCBVIf(RING, prior=ucbf.Disturbance([0.5, 0.5]), prior_weight=0.5)


def test_the_first_probability_that_is_wrong_is_named():
    with pytest.raises(ValueError, match=r"pmf\[1, 1\] is -0.2; probabilities must not be negative"):
        ucbf.Disturbance([[0.5, 0.5], [1.2, -0.2]])


def test_a_disturbance_of_other_axes_is_refused():
    agent = ucbf.UCBVIf(box())
    with pytest.raises(ValueError, match=r"disturbance has shape \(2,\); give \[d\] with d = 1"):
        agent.observe(0, [0.5], 0, [0.5], disturbance=[0.0, 0.0])


def test_a_cluster_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ucbf.engines.ray_engine", None)
    with pytest.raises(UserError, match=r"--engine ray needs Ray; install it: pip install 'ucbf\[ray\]'"):
        executor_of("ray", 1, None)


def test_an_error_in_one_line():
    assert in_a_line(ValueError("first\nsecond")) == "ValueError: first"
    assert in_a_line(KeyError("x")) == "KeyError: 'x'"
    assert in_a_line(SystemExit()) == "SystemExit"
    assert in_a_line(np.linalg.LinAlgError("singular")) == "numpy.linalg.LinAlgError: singular"

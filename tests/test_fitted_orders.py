"""Orders by fitted values: for which stores, the state by hand, files, and the choice that learn makes."""

import warnings
from functools import partial

import numpy as np
import pytest

import commands
import ucbf
from ucbf.advice import learn_orders, markdown, order_sections
from ucbf.cli.learn_orders import write_order_files
from ucbf.data import Series, episodes
from ucbf.errors import UserError
from ucbf.fitted_orders import FittedOrders, pairs, store_to_fit
from ucbf.following.stores import FITTED, StoreFollower, StoreStep
from ucbf.saving import read_arrays, write_arrays
from ucbf.values import FitWarning, policy_iteration
from ucbf.values.pairs import Greedy

SHOP = ucbf.systems.Inventory(price=0, unit_cost=0, holding=1, penalty=9, lead_time=7)
DEMANDS = np.random.default_rng(0).poisson(4, 280)


def weeks(values):
    return episodes(
        Series(np.asarray(values, float), np.datetime64("2024-01-01") + np.arange(len(values)), "u", "x"), 7
    )


@pytest.fixture
def quick(monkeypatch):
    """Fits that take a second."""
    fit = partial(policy_iteration, samples=100, rounds=1, paths=16)
    monkeypatch.setattr("ucbf.fitted_orders.policy_iteration", fit)


def test_sizes_suit_the_demands_by_hand():
    # the largest demand is 10: orders up to 10; up to 40 on the shelf; 41 · 11^6 states, 11 orders
    found = store_to_fit(SHOP, [3, 10, 0, 4] * 20)
    assert (found.max_demand, found.max_order, found.capacity, found.horizon) == (10, 10, 40, None)
    assert pairs(found) == 41 * 11**6 * 11
    # 1,000 is counted in tens; dear orders are larger: twice the root of 2 · 60 · 500 / 1 = 245, to the next ten
    found = store_to_fit(SHOP, [0, 1000] * 40)
    assert (found.unit, found.max_demand, found.max_order) == (10, 1000, 1000)
    assert store_to_fit(SHOP.replace(order_cost=1000), [0, 10] * 40).max_order == 2 * 100
    assert store_to_fit(SHOP.replace(max_order=305, capacity=999), [0, 1000] * 40).max_order == 300
    assert store_to_fit(SHOP.replace(pack=20), [0, 10] * 40).large.actions[:, 0].tolist() == [0, 20]


@pytest.mark.parametrize(
    "how",
    [{"backlog": 5}, {"shelf_life": 4}, {"review": 2}, {"lead_time": 1}, {"fast_cost": 9.0}, {"storage": 0.1}],
)
def test_values_are_fitted_only_where_they_serve(how):
    assert store_to_fit(SHOP, DEMANDS) is not None
    assert store_to_fit(SHOP.replace(**how), DEMANDS) is None


def test_values_are_not_fitted_to_few_demands_or_to_packs_that_cannot_be_counted():
    assert store_to_fit(SHOP, DEMANDS[:40]) is None
    assert store_to_fit(SHOP, np.zeros(100)) is None
    assert store_to_fit(SHOP.replace(pack=7), [0, 1000] * 40) is None


def test_the_state_is_what_comes_in_each_step():
    asked = []

    def rule(h, s):
        asked.append(s.tolist())
        return np.array([[3, 0]])

    shop = store_to_fit(SHOP.replace(unit=2), np.repeat([2.0, 20, 10], 20))
    orders = FittedOrders(shop, np.zeros(11), rule)
    # in twos: 5 on the shelf and 2 that come today; 1 in 2 steps (ordered 5 ago), 4 in 6; 3 are overdue: the next step
    assert orders.order(10, [(4, 7), (2, 5), (8, 1), (6, 9)]) == 6
    assert asked == [[[7, 3, 1, 0, 0, 0, 4]]]
    orders.order(-5, [(1000, 1)])
    assert asked[1] == [[0, 0, 0, 0, 0, 0, 10]]  # at most what one order may be


@pytest.fixture(scope="module")
def orders():
    """By fitted values, even if they are worth less than their base."""
    shop, pmf = store_to_fit(SHOP, DEMANDS), np.bincount(DEMANDS) / len(DEMANDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        found = policy_iteration(shop.large, shop.large_law(ucbf.Disturbance(pmf)), samples=200, rounds=1, paths=16)
    return FittedOrders(shop, pmf, Greedy(found.q))


def test_what_is_saved_orders_the_same(tmp_path, orders):
    orders.save(tmp_path / "fitted.npz")
    again = FittedOrders.loaded(tmp_path / "fitted.npz")
    s = np.random.default_rng(1).integers(0, 8, (300, 7))
    assert np.array_equal(orders.rule(0, s), again.rule(0, s))
    assert again.shop == orders.shop
    assert len(np.unique(again.rule(0, s)[:, 0])) > 2


def test_a_simple_rule_is_saved_too(tmp_path, orders):
    base = orders.rule.q.ahead.rule
    FittedOrders(orders.shop, orders.pmf, base).save(tmp_path / "fitted.npz")
    again = FittedOrders.loaded(tmp_path / "fitted.npz")
    s = np.random.default_rng(1).integers(0, 8, (300, 7))
    assert np.array_equal(base(0, s), again.rule(0, s))


def test_a_file_that_cannot_be_used_is_refused(tmp_path, orders):
    path = tmp_path / "fitted.npz"
    orders.save(path)
    about, arrays = read_arrays(path)
    about = {name: about[name] for name in ("agent", "shop")}
    for name, wrong in {
        "level": np.array([np.nan, 0]), "weights": np.full((2, 7), 1e300), "paths": arrays["paths"] + 50,
        "axes": arrays["axes"] + 90, "products": arrays["products"] - 1, "theta": arrays["theta"][1:],
        "spread": -arrays["spread"], "pmf": arrays["pmf"][:3], "most": np.zeros(5),
    }.items():  # fmt: skip
        write_arrays(path, about, {**arrays, name: wrong})
        with pytest.raises(UserError, match="learn again"):
            FittedOrders.loaded(path)
    write_arrays(path, {**about, "agent": "UCBVI-f"}, arrays)
    with pytest.raises(UserError, match="UCBVI-f"):
        FittedOrders.loaded(path)
    with pytest.raises(UserError, match="learn again"):
        FittedOrders.loaded(tmp_path / "none.npz")


class Never:
    """Orders nothing."""

    def __init__(self, told):
        self.order = lambda stock, under_way: 0.0

    def __call__(self, t, shelf, under_way):
        return 0.0

    def seen(self, demand):
        pass


def test_learn_chooses_fitted_values_where_they_did_better_and_every_morning_follows(tmp_path, quick, monkeypatch):
    monkeypatch.setattr("ucbf.advice.ordering.Adapting", Never)
    told = []
    demands = weeks(np.random.default_rng(0).poisson(4, 700))
    found = learn_orders(SHOP, demands, progress=lambda *done: told.append(done))
    assert found.trial.won
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    assert len({total for _, total in told}) == 1
    assert 3 * told[0][0] < told[-1][1]  # also while values are fitted
    rows = {row["policy"]: row for row in found.comparison()}
    assert rows["learned"]["reward"] > rows["rolling orders"]["reward"]
    page = markdown(order_sections(found))
    assert (
        "by fitted values: no table holds 2e+09 pairs of states and orders, and values were fitted to 343 dem" in page
    )
    assert "They are fitted again to all demands, and take demand to stay as it was: learn again now and then" in page
    names = write_order_files(tmp_path, found, order_sections(found), None, False)
    assert FITTED in names
    store = StoreFollower(tmp_path)
    assert store.act(11).order == found.order(11)
    store.observe(StoreStep(demand=4, order=6), step=1)
    assert store.act(9).order == found.fitted.order(9, [(6, 1)])
    other = FittedOrders.fitted(store_to_fit(SHOP, DEMANDS), DEMANDS)
    other.save(tmp_path / FITTED)  # learned again, and stopped before the store was written
    with pytest.raises(UserError, match="is not what was learned: .* or learning was cut short; learn again into this"):
        StoreFollower(tmp_path)
    (tmp_path / FITTED).unlink()
    with pytest.raises(UserError, match=r"fitted\.npz is missing; learn again into this folder"):
        StoreFollower(tmp_path)


def test_values_that_cannot_be_fitted_to_all_demands_stay_as_they_were_tried(quick, monkeypatch):
    monkeypatch.setattr("ucbf.advice.ordering.Adapting", Never)
    demands = np.random.default_rng(0).poisson(4, 700)
    demands[-3] = 140  # more than is counted in packs
    found = learn_orders(SHOP.replace(pack=2, capacity=200, max_demand=150), weeks(demands))
    assert found.trial.won
    assert (found.fitted is None, found.refitted) == (False, False)
    page = markdown(order_sections(found)).replace("*", "")
    assert "They stay as they were tried, as none are fitted in sizes that suit all demands." in page
    assert "fitted again" not in page


def test_learn_keeps_rolling_orders_where_they_did_better(tmp_path, monkeypatch):
    monkeypatch.setattr("ucbf.fitted_orders.FittedOrders.fitted", lambda shop, demands, **_: Never(shop))
    found = learn_orders(SHOP, weeks(DEMANDS))
    assert not found.trial.won
    assert found.fitted is None
    assert "rolling orders" not in found.played
    assert "Orders: decided anew at every step: no table holds" in markdown(order_sections(found)).replace("*", "")
    assert FITTED not in write_order_files(tmp_path, found, order_sections(found), None, False)
    assert StoreFollower(tmp_path).fitted is None


@pytest.mark.slow
def test_one_command_where_no_table_fits(tmp_path):
    days = np.datetime64("2023-01-01") + np.arange(len(DEMANDS) * 2)
    demand = np.random.default_rng(0).poisson(4, len(days))
    rows = "".join(f"{day},{d}\n" for day, d in zip(days, demand, strict=True))
    (tmp_path / "demand.csv").write_text("date,units\n" + rows)
    flags = ["--lead-time", "7", "--price", "0", "--unit-cost", "0", "--holding", "1", "--penalty", "9"]
    commands.ucbf("learn", "inventory", "--demand", "demand.csv", *flags, "--no-pictures", "--out", "o", cwd=tmp_path)
    assert "and values were fitted to" in (tmp_path / "o" / "summary.md").read_text()
    assert "order" in commands.ucbf("act", "o", "--stock", "20", cwd=tmp_path).stdout

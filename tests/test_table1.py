import numpy as np
import pytest

from ucbf import table1
from ucbf.table1 import Sizes, fit, measure, rows

TINY = Sizes((16, 64), (4, 16), (6, 48), 2, 600, 12, 0.002)


def test_a_power_law_is_recovered_with_its_uncertainty():
    x = np.array([1, 2, 4, 8, 16])
    exact = fit(x, 3 * x**1.5)
    assert exact.exponent == pytest.approx(1.5)
    assert exact.half_width == pytest.approx(0, abs=1e-9)
    rng = np.random.default_rng(0)
    noisy = [fit(x, x**0.5 * np.exp(rng.normal(0, 0.2, 5))) for _ in range(200)]
    assert np.mean([abs(f.exponent - 0.5) <= f.half_width for f in noisy]) > 0.8
    assert str(table1.Fit(0.5, 0.125)) == "0.50 ± 0.12"


@pytest.fixture(scope="module")
def measured():
    return {name: measure(name, TINY) for name in ("UCB-f", "UCB-H", "UCBVI", "UBEV")}


def test_memory_grows_as_the_table_says(measured):
    exponents = {name: (m.fits["memory, S"].exponent, m.fits["memory, A"].exponent) for name, m in measured.items()}
    assert exponents["UCB-f"] == pytest.approx((1, 0), abs=0.1)
    assert exponents["UCB-H"] == pytest.approx((1, 1), abs=0.2)
    for name in ("UCBVI", "UBEV"):
        assert exponents[name] == pytest.approx((2, 1), abs=0.2)


def test_only_the_agent_that_is_told_f_does_not_suffer_from_more_pairs(measured):
    growth = {name: m.regret[-1].mean() / m.regret[0].mean() for name, m in measured.items()}
    # Eight times the pairs: sqrt(8) = 2.8 for a regret like sqrt(SA), 1 for one that does not depend on them.
    assert growth["UCB-f"] < 1.7 < 2 < min(growth["UCB-H"], growth["UCBVI"], growth["UBEV"])


def test_the_table_has_a_row_for_every_algorithm_of_the_papers(measured):
    assert {"UCBVI", "UBEV", "UCB-H", "Q-EarlySettled-Advantage", "UCB-f"} <= set(table1.PAPER)
    table = rows(list(measured.values()))
    assert [row["algorithm"] for row in table] == list(measured)
    assert "±" in table[0]["regret ~ (SA)^"]
    numbers = table1.numbers(list(measured.values()), TINY)
    assert len(numbers) == 4 * (2 + 2 + 2 + 2 + 2)
    assert all(row["value"] > 0 for row in numbers)


def test_every_algorithm_is_measured_in_the_papers_order(monkeypatch):
    monkeypatch.setattr(table1, "measure", lambda name, sizes, seed: (name, sizes, seed))
    told = []
    assert table1.measure_all(TINY, 7, lambda *n: told.append(n)) == [(name, TINY, 7) for name in table1.PAPER]
    assert told == [(i + 1, len(table1.PAPER)) for i in range(len(table1.PAPER))]


def test_an_interval_of_a_fit_by_hand():
    # Logarithms 0, 1, 2 and 0, 1, 1: the slope is (-1 · -2/3 + 1 · 1/3) / 2 = 1/2, residuals -1/6, 1/3, -1/6, with
    # sum of squares 1/6 over 1 degree of freedom and 2 in x: a standard error of sqrt(1/12), twice that to each side.
    found = fit(np.exp([0, 1, 2]), np.exp([0, 1, 1]))
    assert found == pytest.approx((0.5, 2 * np.sqrt(1 / 12)))

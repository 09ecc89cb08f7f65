import numpy as np
import pytest

from ucbf.suppliers import Belief, Supplier, believe


def test_the_prior_by_hand():
    # promised 1: lags 0..4, halves around 1: 0.5 1 0.5 0.25 0.125, sum 2.375; prior 4.75 doubles them; lost 0.3
    assert Supplier(1, prior=4.75).dirichlet() == pytest.approx([1, 2, 1, 0.5, 0.25, 0.3])


def test_arrivals_are_counted():
    belief = believe(Supplier(1, prior=4.75), lags=[1, 2, 2, 9], ages=[])
    # 1 3 3 0.5 1.25 0.3, sum 9.05: a lag of 9 counts as the longest told apart
    assert belief.lags == pytest.approx(np.array([1, 3, 3, 0.5, 1.25, 0.3]) / 9.05)
    assert belief.kept == 0


def test_an_open_order_is_shared_out_among_the_lags_its_age_leaves():
    belief = believe(Supplier(1, prior=4.75), lags=[], ages=[4])
    # lags 4 and lost are left. Shared in proportion, their ratio stays 0.25 : 0.3; together they have 0.55 + 1
    assert belief.lags[4:] == pytest.approx(np.array([0.25, 0.3]) / 0.55 * 1.55 / 6.05)
    assert belief.lags[:4] == pytest.approx(np.array([1, 2, 1, 0.5]) / 6.05)


def test_belief_in_the_promise_follows_bayes_rule():
    # odds 1; two orders came as promised: the Dirichlet gives them 2 / 5.05 and 3 / 6.05
    belief = believe(Supplier(1, trust=0.5, prior=4.75), lags=[1, 1], ages=[])
    other = 2 / 5.05 * 3 / 6.05
    assert belief.kept == pytest.approx(1 / (1 + other))


def test_a_supplier_that_keeps_its_promise_is_believed_and_one_that_breaks_it_once_is_not():
    assert believe(Supplier(4), lags=[4] * 10, ages=[0, 1, 2, 3, 4]).kept > 0.99
    assert believe(Supplier(4), lags=[4] * 10 + [3], ages=[]).kept == 0
    assert believe(Supplier(4), lags=[4] * 10, ages=[5]).kept == 0


def test_an_order_overdue_beyond_what_was_ever_seen_is_given_up():
    belief = believe(Supplier(2), lags=[1, 2, 3] * 8, ages=[4, 7, 9])
    come = belief.arrivals()[0]
    assert come[1].sum() > 0.8
    assert come[4].sum() < 0.2
    assert come[7].sum() == 0  # beyond the longest lag told apart


def test_what_comes_and_what_is_lost_sum_to_one():
    belief = believe(Supplier(2), lags=[1, 3, 2, 2], ages=[1, 5])
    assert belief.lags.sum() == pytest.approx(1)
    come, m = belief.arrivals(), len(belief.lags) - 1
    for age in range(m):
        lost = belief.lags[m] / belief.lags[age:].sum()
        assert come[0, age].sum() + lost == pytest.approx(1)
    assert come[1, :3].sum(axis=1) == pytest.approx([1, 1, 1])


def test_fates_by_hand():
    belief = Belief(1, 0.25, np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.4]))
    # paths 0 and 1; path 0 keeps the promise: the open order of age 1 comes at once, those placed in steps 0, 1 at 1, 2
    # path 1: age 1 leaves 0.2 0.3 | 0.4 of 0.9; 0.5 of it is lag 2, in step 1; then 0.25 is lag 1; 0.65 never
    draws = np.array([[0.5, 0.25, 0.65], [0.5, 0.25, 0.65]])
    assert belief.fates([1], 2, np.array([0.2, 0.3]), draws).tolist() == [[0, 1, 2], [1, 1, -1]]


def test_fates_have_the_frequencies_of_the_belief():
    belief = believe(Supplier(2), lags=[1, 3, 2, 2], ages=[1])
    rng = np.random.default_rng(0)
    fates = belief.fates([1], 1, rng.random(40000), rng.random((40000, 2)))
    come = belief.arrivals()[0]
    assert belief.kept == 0
    for step in range(4):
        assert (fates[:, 0] == step).mean() == pytest.approx(come[1, step], abs=0.01)
        assert (fates[:, 1] == step).mean() == pytest.approx(come[0, step], abs=0.01)


def test_the_expected_lag_leaves_out_the_lost():
    belief = Belief(2, 0.5, np.array([0.1, 0.2, 0.3, 0.4]))
    # 0.5 * 2 + 0.5 * (0.2 + 0.6) / 0.6
    assert belief.expected_lag() == pytest.approx(1 + 0.5 * 0.8 / 0.6)


def test_refusals():
    with pytest.raises(ValueError, match="promised is -1"):
        Supplier(-1)
    with pytest.raises(ValueError, match="trust"):
        Supplier(1, trust=1.5)

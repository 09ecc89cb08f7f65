"""Repair of a wrong f by estimators in Python: least squares, regressors, the contract."""

import math

import numpy as np
import pytest

import forging
import ucbf
from ucbf.estimators import Estimate, Estimator, LinearFeatures, OffsetPosterior, PartialFit, make_estimator
from ucbf.models.features import table_of


def test_least_squares_are_what_numpy_says():
    world = ucbf.random_world(n_states=12, n_actions=3, horizon=2, max_disturbance=2, lipschitz=None, seed=1)
    system = world.system.replace(model_error=4, disturbance_range=(0, 2))
    estimator = LinearFeatures("affine", ridge=0.5)
    estimator.start(system)
    rng = np.random.default_rng(0)
    rows, targets = [], []
    for _ in range(60):
        h, s, a, residual = rng.integers([2, 12, 3, 7])
        estimator.observe(h, s, a, residual - 2)
        rows.append([s, a, h == 0, h == 1])
        targets.append(residual - 2)
    x, y = np.array(rows, float), np.array(targets, float)
    design = x.T @ x + np.diag([0.5, 0.5, 1e-6, 1e-6])
    theta = np.linalg.solve(design, x.T @ y)
    np.testing.assert_allclose(estimator.theta, theta[:2], rtol=1e-6)
    estimate = estimator.estimate()
    np.testing.assert_allclose(estimate.correction[0, 7, 2], 7 * theta[0] + 2 * theta[1], rtol=1e-6)
    around = np.array([7 - 5.5, 2 - 1.0])
    left = np.sum((y - x @ theta) ** 2) + theta**2 @ [0.5, 0.5, 1e-6, 1e-6]
    beta = math.sqrt(left / 56) * math.sqrt(2 * math.log(2 * 36 / 0.01)) + math.sqrt(0.5)
    expected = beta * math.sqrt(around @ np.linalg.inv(design)[:2, :2] @ around)
    np.testing.assert_allclose(estimate.error[0, 7, 2], expected, rtol=1e-5)
    assert estimator.estimate() is None


def tank(gain, zeta):
    return ucbf.System(
        lambda s, a: s + gain * a - 2 * gain, lambda s, a: 1 - np.abs(s - 15) / 31, 4, "clip", model_error=zeta,
        n_states=31, n_actions=5, disturbance_range=(-2, 2),
    )  # fmt: skip


class Ridge:
    """A regressor with scikit-learn's methods: least squares on all it was shown."""

    def partial_fit(self, X, y):
        self.X = np.vstack([self.X, X]) if hasattr(self, "X") else X
        self.y = np.append(getattr(self, "y", []), y)
        self.w = np.linalg.solve(self.X.T @ self.X + 1e-3 * np.eye(X.shape[1]), self.X.T @ self.y)

    def predict(self, X):
        return X @ self.w


ESTIMATORS = {
    "linear": lambda: LinearFeatures("actions"),
    "function": lambda: LinearFeatures(lambda s, a: [a]),
    "regressor": lambda: PartialFit(Ridge(), "actions", d=20),
}


@pytest.mark.parametrize("kind", [ucbf.UCBf, ucbf.UCBVIf])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_in_python_repair_a_gain(kind, name):
    world = ucbf.World(tank(3, 0), ucbf.Disturbance([0.1, 0.2, 0.4, 0.2, 0.1], low=-2))
    told = tank(1, 8)
    repaired = ucbf.simulate(kind(told, estimator=ESTIMATORS[name]()), world, 800).gap
    assert repaired[-50:].mean() <= 0.3 * ucbf.simulate(kind(told), world, 800).gap[-50:].mean()


def test_an_edge_does_not_make_an_exact_f_seem_wrong():
    system = ucbf.System(
        lambda s, a: s + a - 1, lambda s, a: s / 20, 3, "clip", model_error=4, n_states=20, n_actions=3,
        disturbance_range=(-3, 3),
    )  # fmt: skip
    world = ucbf.World(system.replace(model_error=0), ucbf.Disturbance(np.full(7, 1 / 7), low=-3))
    agent = ucbf.UCBVIf(system, estimator=LinearFeatures("affine"))
    ucbf.simulate(agent, world, 600)
    model = agent.learner.model
    fits = [((model.low <= model.first + c) & (model.first + c <= model.high)).all() for c in (-1, 0, 1)]
    assert any(fits)  # the truth is within the bound, but for a constant
    assert np.abs(agent.estimator.theta).max() < 0.15


@pytest.mark.parametrize("name", ESTIMATORS)
def test_agents_with_an_estimator_in_python_save_and_go_on(name, tmp_path):
    world = ucbf.World(tank(2, 0), ucbf.Disturbance([0.2, 0.6, 0.2], low=-1))
    straight, stopped = (ucbf.UCBVIf(tank(1, 4), estimator=ESTIMATORS[name]()) for _ in range(2))
    for part in range(3):
        one, other = (ucbf.simulate(agent, world, 15, seed=part) for agent in (straight, stopped))
        np.testing.assert_array_equal(one.gap, other.gap)
        stopped.observe(0, 15, 1, 13)
        straight.observe(0, 15, 1, 13)
        stopped.save(tmp_path / "agent")
        again = {"estimator": ESTIMATORS[name]()} if name == "regressor" else {}
        stopped = ucbf.load(tmp_path / "agent", **again)
    np.testing.assert_array_equal(straight.q, stopped.q)
    if name == "regressor":
        with pytest.raises((TypeError, ValueError), match="give one with partial_fit"):
            ucbf.load(tmp_path / "agent")
        with pytest.raises(ValueError, match="pass one with the same parameters"):
            ucbf.load(tmp_path / "agent", estimator=PartialFit(Ridge(), "affine", d=20))


class Half(Estimator):
    """Believes that the first action leads one state further than was said."""

    name = "half"

    def observe(self, h, s, a, residual):
        self.last = residual

    def estimate(self):
        correction = np.zeros((1, 31, 5))
        correction[:, :, 0] = 1.2
        return Estimate(correction, np.full(correction.shape, 0.4))


def test_an_estimator_of_ones_own():
    agent = ucbf.UCBVIf(tank(1, 4), estimator=Half())
    agent.observe(0, 15, 2, 16)
    assert agent.estimator.last == 1
    np.testing.assert_array_equal((agent.f - agent.system.f)[0, 10], [1, 0, 0, 0, 0])
    model = agent.learner.model
    # 1.2 ± 0.4, and 0.5 more until it is near enough to a whole number; in doubt by one state at least
    np.testing.assert_array_equal((model.low - model.first)[0, 10], [1, -1, -1, -1, -1])
    np.testing.assert_array_equal((model.high - model.first)[0, 10], [2, 0, 0, 0, 0])


def test_what_cannot_be_estimated_is_refused_with_the_remedy():
    exact, wrong = tank(1, 0), tank(1, 4)
    for make, error, message in [
        (lambda: ucbf.UCBf(exact, estimator="OffsetPosterior"), ValueError, "model_error .* is 0, so that OffsetPost"),
        (lambda: ucbf.UCBf(wrong, estimator="Offsets"), ValueError, "unknown estimator 'Offsets'"),
        (lambda: ucbf.UCBf(wrong, estimator=3), TypeError, "estimator is 3; give one of ucbf.estimators"),
        (lambda: PartialFit(None), TypeError, "give one with partial_fit and predict"),
        (lambda: OffsetPosterior(threshold=0), ValueError, "threshold is 0"),
        (lambda: ucbf.UCBf(wrong, estimator=LinearFeatures(np.zeros((2, 2)))), ValueError, "features has shape"),
        (lambda: ucbf.UCBf(wrong, estimator=LinearFeatures("cubic")), ValueError, "unknown features 'cubic'"),
        (
            lambda: ucbf.UCBf(ucbf.random_world().system.replace(model_error=2), estimator="LinearFeatures"),
            ValueError,
            "needs to know W's range where states wrap",
        ),
        (
            lambda: ucbf.UCBf(wrong.replace(disturbance_range=None), estimator="LinearFeatures"),
            ValueError,
            "needs to know W's range where states are clipped",
        ),
    ]:
        with pytest.raises(error, match=message):
            make()
    used = LinearFeatures()
    ucbf.UCBf(wrong, estimator=used)
    with pytest.raises(ValueError, match="already belongs to an agent"):
        ucbf.UCBf(wrong, estimator=used)
    assert make_estimator({"name": "OffsetPosterior", "threshold": 0.2}).params["threshold"] == 0.2


def test_named_features_by_hand():
    # Two states, 0 and 1, and two actions: what f may depend on, for (0, 0), (0, 1), (1, 0), (1, 1).
    system = ucbf.System(np.zeros((2, 2)), 0.0, 1, disturbance_range=(0, 0))

    def columns(name):
        return table_of(name, system).reshape(4, -1).tolist()

    assert columns("affine") == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert columns("quadratic") == [[0, 0, 0, 0, 0], [0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert columns("actions") == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_an_estimator_serves_one_agent():
    system = ucbf.System(np.zeros((6, 2)), 0.0, 1, "clip", disturbance_range=(0, 0), model_error=2)
    estimator = LinearFeatures("affine")
    ucbf.UCBf(system, estimator=estimator)
    with pytest.raises(ValueError, match="already belongs to an agent"):
        ucbf.UCBf(system, estimator=estimator)
    for p in (0, 1.5):
        with pytest.raises(ValueError, match=f"p is {p}; it must be above 0 and at most 1"):
            LinearFeatures("affine", p=p)


def test_pairs_from_which_an_edge_may_hide_w_are_left_out():
    # States 0 to 9, f wrong by 1 at most and W from -1 to 2: f - 2 is above 0 from 3 on, f + 3 below 9 up to 5.
    system = ucbf.System(np.arange(10).reshape(10, 1), 0.0, 1, "clip", model_error=2, disturbance_range=(-1, 2))
    agent = ucbf.UCBVIf(system, estimator=LinearFeatures("affine"))
    assert np.flatnonzero(agent.model._shows_all[0, :, 0]).tolist() == [3, 4, 5]


def test_a_new_f_begins_a_new_comparison_of_residuals_whatever_the_prior():
    """What a prior was worth was taken from what was seen since, and residuals dated to before the first period."""
    prior = ucbf.Disturbance([0.2, 0.6, 0.2], low=-1)
    agent = ucbf.UCBVIf(tank(1, 4), estimator="LinearFeatures", prior=prior, prior_weight=500)
    watch = agent.learner.watch
    ucbf.simulate(agent, ucbf.World(tank(2, 0), prior), 40)
    begun = watch.steps[0, :, 0] - watch.periods[0, 0, :, 0]
    assert (begun >= 0).all()
    np.testing.assert_array_equal(watch.periods[0, 1:, :, 0].sum(axis=0), begun)
    assert agent.model_check().residuals >= 0


def test_what_a_regressor_was_shown_is_checked(tmp_path):
    path = tmp_path / "agent"
    agent = ucbf.UCBVIf(tank(1, 4), estimator=ESTIMATORS["regressor"]())
    ucbf.simulate(agent, ucbf.World(tank(2, 0), ucbf.Disturbance([0.2, 0.6, 0.2], low=-1)), 15)
    agent.save(path)
    header, arrays = forging.contents(path)
    for name, value, message in [
        ("shown", 99, r"its shown\[0, 0\] is 99; it must be 0 to"),
        ("shown", -1, r"its shown\[0, 0\] is -1; it must be 0 to"),
        ("batches", 2, "its batches are .*; they must grow from 0 to at most"),
        ("shown", None, "it does not hold what the regressor was shown"),
    ]:
        key = f"state.estimator.{name}"
        forged = {k: v for k, v in arrays.items() if k != key or value is not None}
        if value is not None:
            forged[key] = np.full_like(arrays[key], value)
        path.write_bytes(forging.sealed(header, forged))
        with pytest.raises(ValueError, match=message):
            ucbf.load(path, estimator=ESTIMATORS["regressor"]())

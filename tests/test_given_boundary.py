"""Boundaries that are functions of the user's."""

import numpy as np

import ucbf


def test_a_boundary_on_a_line_may_be_a_function():
    # States 0, 1, 2; f = s + a, W is -1, 0 or 1; g reflects at both ends: -1 -> 1, 3 -> 1, 4 -> 0.
    # Two steps, each pays its state. From 0 without moving: W = -1, 0, 1 lead to 1, 0, 1: 0 + 0.2 + 0.5 = 0.7.
    # Moving by one: to 0, 1, 2: 0.3 + 2 * 0.5 = 1.3. From 2 moving by one: raw 2, 3, 4 lead to 2, 1, 0.
    led = np.array([1, 0, 1, 2, 1, 0])
    system = ucbf.System(
        lambda s, a: s + a, lambda s, a: 1.0 * s, 2, lambda z: led[z + 1], n_states=3, n_actions=2,
        disturbance_range=(-1, 1),
    )  # fmt: skip
    plan = ucbf.optimal(ucbf.World(system, ucbf.Disturbance([0.2, 0.3, 0.5], low=-1)))
    np.testing.assert_allclose(plan.q[0, 0], [0.7, 1.3], atol=1e-12)
    np.testing.assert_allclose(plan.q[0, 2], [2 + 0.2 * 1 + 0.3 * 2 + 0.5 * 1, 2 + 0.2 * 2 + 0.3 * 1], atol=1e-12)

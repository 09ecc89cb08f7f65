"""Worlds that tests share: textbook problems with known answers, and arbitrary ones for hypothesis."""

import numpy as np
from hypothesis import strategies as st

import ucbf


def puterman_inventory():
    """Puterman, Markov Decision Processes, 3.2.2 and 4.6.1: lost sales, capacity 3.

    Revenue 8 min(x, d) = 8x - 8 max(z, 0) with x = s + a, z = x - d: the second part is the landing reward.
    """

    def reward(s, a):
        order = np.where(a > 0, 4 + 2 * a, 0)
        return 8 * (s + a) - order - (s + a)

    system = ucbf.System(
        lambda s, a: s + a,
        reward,
        horizon=3,
        boundary="clip",
        landing=lambda z: -8 * np.maximum(z, 0),
        allowed=lambda s, a: s + a <= 3,
        disturbance_range=(-2, 0),
        n_states=4,
        n_actions=4,
    )
    return ucbf.World(system, ucbf.Disturbance([0.25, 0.5, 0.25], low=-2))


def bertsekas_inventory():
    """Bertsekas, Dynamic Programming and Optimal Control I, Example 1.3.2: cost u + (x+u-w)², x+u <= 2."""
    system = ucbf.System(
        lambda s, a: s + a,
        lambda s, a: -a,
        horizon=3,
        boundary="clip",
        landing=lambda z: -(z**2),
        allowed=lambda s, a: s + a <= 2,
        n_states=3,
        n_actions=3,
    )
    return ucbf.World(system, ucbf.Disturbance([0.2, 0.7, 0.1], low=-2))


def weather(mixed=False, **more):
    """Two contexts and no end: four states that wrap, two actions, a period of two; doing nothing pays 10 e + s.

    Context 1 follows both, and W is 1 at the first step of a period and 0 at the second, or, if ``mixed``, both are
    drawn: W = 1 in 3/4 and 1/2, context 1 in 1/5 and 9/10 of the cases.
    """
    system = ucbf.System(
        lambda s, a: s + a,
        lambda s, a, context: 10.0 * context + s - 2 * a,
        horizon=None,
        period=2,
        contexts=2,
        discount=0.9,
        n_states=4,
        n_actions=2,
        boundary="wrap",
        **more,
    )
    turns, both = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.25, 0.75], [0.5, 0.5]])
    pmf = np.stack([both, both]) if mixed else np.stack([turns[[0, 0]], turns[[1, 1]]])
    return ucbf.World(system, ucbf.Disturbance(pmf, contexts=[[0.8, 0.2], [0.1, 0.9]] if mixed else [[0, 1], [0, 1]]))


def forked():
    """A machine in states 0..3 whose f + W has two parts, how far and whether it holds: if not, it falls to 0."""
    system = ucbf.System(
        lambda s, a: np.stack([s[:, 0] + a, np.zeros_like(a)], axis=1),
        lambda s, a: s[:, 0] - 0.5 * a,
        horizon=None,
        discount=0.8,
        low=[0],
        high=[3],
        actions=[0, 1],
        boundary=lambda z: np.where(z[:, 1:] > 0, np.minimum(z[:, :1], 3), 0),
        disturbance_range=([0, 0], [1, 1]),
    )
    return ucbf.World(system, ucbf.Disturbance([0.1, 0.1, 0.4, 0.4], values=[[0, 0], [1, 0], [0, 1], [1, 1]]))


@st.composite
def any_world(draw, largest_states=6):
    """A small world with any of the features a system can have."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    boundary = draw(st.sampled_from(["wrap", "clip", "strict"]))
    S = draw(st.integers(3 if boundary == "strict" else 1, largest_states))
    A, H = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    offset = draw(st.integers(-5, 5))
    low, high = draw(st.sampled_from([(0, 0), (0, 2), (-2, 0), (-1, 1), (1, 2)]))
    if boundary == "strict":
        low, high = max(low, -1), min(high, 1)  # with three states or more some f leaves room for both
        reach = (offset + max(0, -low), offset + S - 1 - max(0, high))
    else:
        reach = (offset - 2, offset + S + 1) if boundary == "clip" else (offset, offset + S - 1)
    if boundary == "wrap" and high - low >= S:
        low, high = 0, 0

    def table(values):
        """[H, S, A], or the same at every step."""
        return values if draw(st.booleans()) else values[0]

    allowed = rng.random((H, S, A)) < 0.7
    allowed[:, np.arange(S), rng.integers(0, A, S)] = True
    plain = draw(st.booleans())  # rewards in [0, 1] and nothing at the end, as in the paper
    scale, shift = (0.4, 0.0) if plain else (draw(st.sampled_from([0.01, 1.0, 250.0])), rng.normal())
    heights = rng.random((H, 50))
    landing = draw(
        st.sampled_from([None, lambda z: scale * heights[0, z % 50], lambda h, z: scale * heights[h, z % 50]])
    )
    system = ucbf.System(
        table(rng.integers(reach[0], reach[1] + 1, size=(H, S, A))),
        table(scale * (rng.random((H, S, A)) + shift)),
        horizon=H,
        boundary=boundary,
        landing=landing,
        discount=draw(st.sampled_from([1.0, 0.9])),
        terminal=None if plain else scale * rng.normal(size=S),
        allowed=table(allowed) if draw(st.booleans()) else None,
        disturbance_range=(low, high) if landing or draw(st.booleans()) else None,
        state_offset=offset,
        lipschitz=0.3,
    )
    pmf = rng.random((H, high - low + 1)) + 0.05
    return ucbf.World(system, ucbf.Disturbance(pmf / pmf.sum(axis=1, keepdims=True), low=low))


@st.composite
def any_told(draw, world):
    """What a learner might be told of a world: its system, or one with a wrong f."""
    zeta = draw(st.sampled_from([0, 0, 2, 4]))
    system = world.system
    if (
        system.boundary == "wrap"
        and system.landing is not None
        and len(system.declared_residuals) + zeta > system.n_states
    ):
        zeta = 0  # more residuals than states to tell them apart by
    return ucbf.corrupt(world.system, zeta, seed=draw(st.integers(0, 99))) if zeta else world.system


# What agents that are told f can be asked for besides, by a name for the test.
VARIANTS = {
    "UCB-f, few": ("UCB-f", {"renewal": "few", "eta": 0.4}),
    "UCBVI-f, few": ("UCBVI-f", {"renewal": "few"}),
    "UCBVI-f, stationary": ("UCBVI-f", {"stationary": True}),
    "UCB-f, offsets": ("UCB-f", {"estimator": "OffsetPosterior"}),
    "UCBVI-f, offsets": ("UCBVI-f", {"estimator": {"name": "OffsetPosterior", "threshold": 0.05}}),
    "UCBVI-f, offsets, few": ("UCBVI-f", {"estimator": "OffsetPosterior", "renewal": "few", "stationary": True}),
    "UCB-f, linear": ("UCB-f", {"estimator": "LinearFeatures"}),
    "UCBVI-f, linear": ("UCBVI-f", {"estimator": {"name": "LinearFeatures", "features": "actions"}}),
}


def make_variant(name, told):
    """The agent, told a ζ if it is to repair f; None where the system does not go with it."""
    agent, params = VARIANTS.get(name, (name, {}))
    linear = "linear" in name
    if "estimator" in params and told.slack == 0:
        try:
            told = told.replace(model_error=2)
        except ValueError:
            return None
    if linear and told.boundary != "strict" and told.disturbance_range is None:
        return None
    if linear and told.boundary == "wrap" and len(told.declared_residuals) > told.n_states:
        return None
    return ucbf.make_agent(agent, told, **params)

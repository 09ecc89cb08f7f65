"""The authors' program, replayed (tests/data/README.md)."""

from pathlib import Path

import numpy as np
import pytest

import ucbf

FILES = sorted((Path(__file__).parent / "data" / "recordings").glob("*.npz"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def recording(request):
    with np.load(request.param, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def world_of(recording):
    H, L = int(recording["H"]), float(recording["L"])
    system = ucbf.System(recording["f"], recording["reward"], horizon=H, lipschitz=L)
    return ucbf.World(system, ucbf.Disturbance(recording["disturbance"]))


def agent_of(recording, world):
    told = world.system.replace(f=recording["f_hat"], model_error=2 * int(recording["epsilon"]))
    constants = {"c": float(recording["c"]), "p": float(recording["p"]), "bonus": "published"}
    if str(recording["algorithm"]) == "UCB_f":
        return ucbf.UCBf(told, clock="update", **constants)
    return ucbf.UCBH(told, **constants)


def test_there_are_recordings_of_both_algorithms_and_of_three_model_errors():
    assert len([p for p in FILES if p.stem.startswith("ucb_f")]) == 9
    assert len([p for p in FILES if p.stem.startswith("ucb_h")]) == 3


def test_optimal_and_greedy_values_are_theirs(recording):
    world = world_of(recording)
    plan = ucbf.optimal(world)
    np.testing.assert_allclose(plan.q, recording["Q_star"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(plan.v[:-1], recording["V_star"], rtol=0, atol=1e-12)
    greedy = ucbf.evaluate(world, ucbf.greedy(world.system))
    np.testing.assert_allclose(greedy[:-1], recording["V_greedy"], rtol=0, atol=1e-12)


def test_replaying_gives_the_same_actions_q_and_gaps(recording):
    world = world_of(recording)
    agent = agent_of(recording, world)
    best = ucbf.optimal(world).v[0]
    snapshots = dict(zip(recording["snapshot_episodes"].tolist(), recording["Q"], strict=True))
    K, H = recording["state"].shape
    # Their UCB-H breaks the ties of the last step, where no action matters, by rounding.
    compared = H - 1 if agent.name == "UCB-H" else H
    gaps = np.empty(K)
    for k in range(K):
        gaps[k] = (best - ucbf.evaluate(world, agent.policy)[0]).mean()
        steps = list(zip(*(recording[name][k].tolist() for name in ("state", "action", "next_state")), strict=True))
        for h, (s, a, s_next) in enumerate(steps):
            if h < compared:
                assert agent.act(h, s) == a, (k, h)
            agent.observe(h, s, a, s_next)
        if k + 1 in snapshots:
            np.testing.assert_allclose(agent.q, snapshots.pop(k + 1), rtol=0, atol=1e-10)
    assert not snapshots
    np.testing.assert_allclose(gaps, recording["gap"], rtol=0, atol=1e-10)

"""The same problems, solved by this package and by others: ``python benchmarks/others.py``; any may be missing.

``pip install "ucbf[bench]"`` brings them. Processor time of the solver alone, after one run to compile or warm up; what
each needs as input is made beforehand. Values must agree to 1e-6; where others are not told the same, it is said.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from scipy.sparse import csr_matrix

import ucbf

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # instances.py is there, and needs hypothesis

DISCOUNT, REPEAT = 0.95, 3
SIZES = ((100, 10, 10), (400, 20, 20))  # states, actions, disturbances
HORIZON = 20
Solution = tuple[str, Callable[[], Any]]  # who, and a function that gives V [S]


def found(name: str) -> Any:
    """A module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def problem(S: int, A: int, n: int, horizon: int | None) -> tuple[ucbf.World, Any, Any]:
    """A stock that is clipped at both ends, as a world and as P [A, S, S], R [S, A]."""
    rng = np.random.default_rng(0)
    stock, order = np.arange(S)[:, None], np.arange(A)
    reward = 3 * np.sqrt(stock) - 0.1 * stock - 0.5 * order
    system = ucbf.System(stock + order, reward, horizon, "clip", discount=DISCOUNT, disturbance_range=(1 - n, 0))
    pmf = rng.dirichlet(np.ones(n))
    world = ucbf.World(system, ucbf.Disturbance(pmf, low=1 - n))
    P = np.zeros((A, S, S))
    for i, p in enumerate(pmf):
        after = np.clip(stock + order + 1 - n + i, 0, S - 1)
        for a in range(A):
            P[a, np.arange(S), after[:, a]] += p
    return world, P, np.array(np.broadcast_to(reward, (S, A)))


def dense(quantecon: Any, P: Any, R: Any) -> Any:
    """QuantEcon's problem with a table of all transitions."""
    return quantecon.markov.DiscreteDP(R, P.transpose(1, 0, 2), DISCOUNT)


def sparse(quantecon: Any, P: Any, R: Any) -> Any:
    """The same with those that are possible, pair by pair."""
    S, A = R.shape
    pairs = np.divmod(np.arange(S * A), A)
    return quantecon.markov.DiscreteDP(R.ravel(), csr_matrix(P.transpose(1, 0, 2).reshape(S * A, S)), DISCOUNT, *pairs)


def solved(ddp: Any, **how: Any) -> Any:
    """V without an end."""
    return ddp.solve(**how).v


def inducted(quantecon: Any, ddp: Any) -> Any:
    """V of the first step."""
    return quantecon.markov.backward_induction(ddp, HORIZON)[0][0]


def discounted(S: int, A: int, n: int) -> Iterator[Solution]:
    """Without an end."""
    world, P, R = problem(S, A, n, None)
    yield "ucbf.optimal", lambda: ucbf.optimal(ucbf.World(world.system, world.law)).v[0]
    if quantecon := found("quantecon"):
        for kind, ddp in (("dense", dense(quantecon, P, R)), ("sparse", sparse(quantecon, P, R))):
            yield f"quantecon, {kind}, policy iteration", partial(solved, ddp, method="policy_iteration")
            modified = partial(solved, ddp, method="modified_policy_iteration", epsilon=1e-9)
            yield f"quantecon, {kind}, modified policy iteration", modified
    if mdp := found("mdptoolbox.mdp"):

        def toolbox() -> Any:
            solver = mdp.PolicyIterationModified(P, R, DISCOUNT, epsilon=1e-9, max_iter=1000)
            solver.run()
            return np.array(solver.V)

        yield "mdptoolbox PolicyIterationModified", toolbox


def finite(S: int, A: int, n: int) -> Iterator[Solution]:
    """With an end."""
    world, P, R = problem(S, A, n, HORIZON)
    yield "ucbf.optimal", lambda: ucbf.optimal(ucbf.World(world.system, world.law)).v[0]
    if quantecon := found("quantecon"):
        for kind, ddp in (("dense", dense(quantecon, P, R)), ("sparse", sparse(quantecon, P, R))):
            yield f"quantecon, {kind}, backward_induction", partial(inducted, quantecon, ddp)
    if mdp := found("mdptoolbox.mdp"):

        def toolbox() -> Any:
            solver = mdp.FiniteHorizon(P, R, DISCOUNT, HORIZON)
            solver.run()
            return solver.V[:, 0]

        yield "mdptoolbox FiniteHorizon", toolbox


def textbook() -> Iterator[Solution]:
    """Snyder and Shen, Problem 4.29: ten periods, backlog, demand normal and rounded."""
    instances = found("instances")
    if instances is None:
        return
    world, _ = instances.snyder_shen()
    yield "ucbf.optimal", lambda: -ucbf.optimal(ucbf.World(world.system, world.law)).v[0][60]  # nothing in stock
    if stockpyl := found("stockpyl.finite_horizon"):
        told = {"num_periods": 10, "holding_cost": 1, "stockout_cost": 25, "terminal_holding_cost": 1}
        told |= {"terminal_stockout_cost": 25, "purchase_cost": 1, "fixed_cost": 0, "demand_mean": 18, "demand_sd": 3}
        yield (
            "stockpyl finite_horizon_dp (cuts off 6e-5 of the demand)",
            lambda: stockpyl.finite_horizon_dp(**told, discount_factor=0.98)[2],
        )


class Shop(gymnasium.Env[Any, Any]):
    """Five days of a shop, for agents that are told nothing: day and stock in, an order out."""

    def __init__(self, world: ucbf.World) -> None:
        self.env = gymnasium.make("ucbf.envs:ucbf/World-v0", world=world)
        H, S = world.system.n_steps, world.system.n_states
        self.n_steps, self.width = H, H + S
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (self.width,), np.float32)  # one of each is 1
        self.action_space = self.env.action_space

    def seen(self, stock: int, info: dict[str, Any]) -> Any:
        """Day and stock."""
        both = np.zeros(self.width, np.float32)
        both[min(int(info["h"]), self.n_steps - 1)], both[self.n_steps + int(stock)] = 1, 1
        return both

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin a week."""
        stock, info = self.env.reset(seed=seed)
        return self.seen(stock, info), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A day; rewards are about 1."""
        stock, reward, ended, cut, info = self.env.step(int(action))
        return self.seen(stock, info), float(reward) / 20, ended, cut, {}


def shop() -> ucbf.World:
    """The shop of the README; what does not fit is thrown away, so that every order is possible."""
    system = ucbf.System(
        lambda stock, order: stock + order, lambda stock, order: -2.0 * order - 3.0 * (order > 0), 5, "clip",
        landing=lambda z: -1.0 * np.maximum(z, 0) - 9.0 * np.maximum(-z, 0), disturbance_range=(-6, 0),
        n_states=11, n_actions=11,
    )  # fmt: skip
    return ucbf.World(system, ucbf.Disturbance([0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05], low=-6), start=0)


def learned(seed: int = 0) -> None:
    """Print how far from optimal policies are that were learned in so many days."""
    world = shop()
    best = float(ucbf.optimal(world).v[0, 0])
    ucbf.simulate(ucbf.UCBVIf(world.system), world, 1)  # to compile
    print(f"\nlearning to order, five days a week; the optimal cost of a week is {-best:.2f}")
    print(f"{'':50}{'days':>10}{'above':>10}{'seconds':>10}")
    for weeks in (10, 100, 1000):
        agent = ucbf.UCBVIf(world.system)
        begin = time.process_time()
        ucbf.simulate(agent, world, weeks, seed=seed)
        took = time.process_time() - begin
        above = best - float(ucbf.evaluate(world, agent.policy)[0, 0])
        print(f"{'ucbf.UCBVIf, told the mechanics':50}{5 * weeks:10}{above / -best:10.1%}{took:10.2f}")
    sb3 = found("stable_baselines3")
    if torch := found("torch"):
        torch.set_num_threads(1)  # for networks as small as these, more only wait for each other
    for name in ("PPO", "DQN") if sb3 else ():
        for days in (5_000, 50_000):
            env = Shop(world)
            begin = time.process_time()
            model = getattr(sb3, name)("MlpPolicy", env, seed=seed, device="cpu").learn(days)
            took = time.process_time() - begin
            policy = np.array([[_choice(model, env, h, s) for s in range(11)] for h in range(5)])
            above = best - float(ucbf.evaluate(world, policy)[0, 0])
            print(f"{f'stable-baselines3 {name}, told nothing':50}{days:10}{above / -best:10.1%}{took:10.1f}")


def _choice(model: Any, env: Shop, h: int, s: int) -> int:
    return int(model.predict(env.seen(s, {"h": h}), deterministic=True)[0])


def compare(title: str, solutions: Iterator[Solution]) -> None:
    """Print what each takes, and how far its values are from the first one's."""
    print(f"\n{title}\n{'':50}{'ms':>10}{'difference':>13}")
    first = None
    for who, solve in solutions:
        v, times = np.asarray(solve()), list[float]()
        for _ in range(REPEAT):
            begin = time.process_time()
            solve()
            times.append(time.process_time() - begin)
        first = v if first is None else first
        print(f"{who:50}{min(times) * 1e3:10.2f}{np.abs(v - first).max():13.1e}")


def main() -> None:
    """Measure and print."""
    missing = [name for name in ("quantecon", "mdptoolbox", "stockpyl", "stable_baselines3") if not found(name)]
    if missing:
        print(f"not installed, and left out: {', '.join(missing)}")
    for S, A, n in SIZES:
        compare(f"discounted, {S} states, {A} actions, {n} disturbances", discounted(S, A, n))
        compare(f"{HORIZON} steps, {S} states, {A} actions, {n} disturbances", finite(S, A, n))
    compare("Snyder and Shen, Problem 4.29: ten periods", textbook())
    learned()


if __name__ == "__main__":
    main()

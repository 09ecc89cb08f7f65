"""The same problems, solved by this package and by others: ``python benchmarks/others.py``; any may be missing.

``pip install "ucbf[bench]"`` brings them. Processor time of the solver alone, after one run to compile or warm up; what
each needs as input is made beforehand. Values must agree to 1e-6.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import ucbf

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


def compare(title: str, solutions: Iterator[Solution]) -> None:
    """Print what each takes, and how far its values are from the first one's."""
    print(f"\n{title}\n{'':50}{'ms':>10}{'difference':>13}")
    first = None
    for who, solve in solutions:
        v, times = np.asarray(solve()), []
        for _ in range(REPEAT):
            begin = time.process_time()
            solve()
            times.append(time.process_time() - begin)
        first = v if first is None else first
        print(f"{who:50}{min(times) * 1e3:10.2f}{np.abs(v - first).max():13.1e}")


def main() -> None:
    """Measure and print."""
    missing = [name for name in ("quantecon", "mdptoolbox") if not found(name)]
    if missing:
        print(f"not installed, and left out: {', '.join(missing)}")
    for S, A, n in SIZES:
        compare(f"discounted, {S} states, {A} actions, {n} disturbances", discounted(S, A, n))
        compare(f"{HORIZON} steps, {S} states, {A} actions, {n} disturbances", finite(S, A, n))


if __name__ == "__main__":
    main()

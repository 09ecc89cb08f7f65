"""Searches for simple rules: a base for values that are fitted, and a yardstick."""

from __future__ import annotations

from ucbf.checks import one_of, whole
from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem, Rows, require_large
from ucbf.values.scores import Scores, imitated_scores, search_scores
from ucbf.values.trials import Trial
from ucbf.values.up_to import UpTo, imitated_up_to, search_up_to

KINDS = ("constant", "base-stock", "capped", "(s, S)", "weighted", "scores")


def search(
    system: LargeSystem, law: Disturbance, *, kind: str = "capped", chains: int = 100, steps: int = 250, seed: int = 0
) -> tuple[UpTo | Scores, float]:
    """The best rule of a kind that was found, and what it earned on common random numbers.

    kind: "constant", "base-stock", "capped" (base-stock with a largest order), "(s, S)", "weighted" (each coordinate
    of the state has a weight of its own); "scores", for actions that are kinds (each has a score that is linear in the
    state, and the largest acts)
    chains, steps: how many paths the rules are compared on, and, without an end, how long these are
    """
    one_of("kind", kind, KINDS)
    chains, steps, seed = whole("chains", chains, 1), whole("steps", steps, 1), whole("seed", seed, 0)
    if kind == "scores" and require_large(system).continuous:
        raise ValueError("kind is 'scores', and actions are continuous; give another kind, or list some actions")
    if kind == "scores":
        return search_scores(system, law, chains, steps, seed)
    return search_up_to(Trial.drawn(require_large(system), law, chains, steps, seed), kind)


def simple_rule(system: LargeSystem, law: Disturbance, seed: int = 0) -> UpTo | Scores:
    """The best of the best capped rule, the best (s, S) rule and, where actions may be kinds, the best by scores."""
    kinds = ["capped", "(s, S)", *(["scores"] if system.may_be_kinds else [])]
    return max((search(system, law, kind=kind, seed=seed) for kind in kinds), key=lambda one: one[1])[0]


def imitated(system: LargeSystem, s: Rows, a: Rows) -> UpTo | Scores:
    """The simple rule that does the same as actions [N, m] in states [N, d] most often."""
    rules: list[UpTo | Scores] = [imitated_up_to(system, s, a)]
    if system.may_be_kinds:
        rules.append(imitated_scores(system, s, a))
    return max(rules, key=lambda rule: float((rule(0, s) == a).all(axis=1).mean()))

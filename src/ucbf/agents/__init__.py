"""The algorithms, one file each, and the names by which studies know them."""

from __future__ import annotations

import os
from typing import Any

from ucbf.agents.base import Agent, CensoredWarning
from ucbf.agents.early_settled import EarlySettled
from ucbf.agents.fixed import Greedy, Optimal, Random
from ucbf.agents.ubev import UBEV
from ucbf.agents.ucb_b import UCBB
from ucbf.agents.ucb_f import UCBf
from ucbf.agents.ucb_f_bernstein import UCBfBernstein
from ucbf.agents.ucb_f_reference import UCBfReference
from ucbf.agents.ucb_h import UCBH
from ucbf.agents.ucbvi import UCBVI
from ucbf.agents.ucbvi_bf import UCBVIBF
from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.checks import one_of
from ucbf.laws import Law
from ucbf.models import Model
from ucbf.planning import checked_policy
from ucbf.saving import Saved, said
from ucbf.system import System

TOLD_F = (UCBf, UCBfBernstein, UCBfReference, UCBVIf)
KINDS = (*TOLD_F, UCBH, UCBB, EarlySettled, UCBVI, UCBVIBF, UBEV, Greedy, Random, Optimal)
AGENTS: dict[str, type[Agent]] = {kind.name: kind for kind in KINDS}


def make_agent(name: str, system: System, **params: Any) -> Agent:
    """The agent called ``name`` in ``AGENTS``."""
    return AGENTS[one_of("agent", name, AGENTS)](system, **params)


def restored(
    path: str | os.PathLike[str],
    saved: Saved,
    agent: type[Agent] | None = None,
    estimator: Model | None = None,
    law: Law | None = None,
) -> Agent:
    """The agent that a file at ``path`` says: :func:`ucbf.load`."""
    if agent is None and saved.agent not in AGENTS:
        raise ValueError(
            f"{path} holds a {saved.agent!r}, none of ucbf's agents; pass its class: load(path, agent=...)"
        )
    kind = AGENTS[saved.agent] if agent is None else agent
    if kind.name != saved.agent:
        raise ValueError(f"{path} holds a {saved.agent!r}, not a {kind.name!r}; pass the class it was saved from")
    parts = {name: part for name, part in (("estimator", estimator), ("law", law)) if part is not None}
    described = {name: saved.params.get(name) for name in ("estimator", "law")}
    params = {**saved.params, **parts}
    sizes = dict(zip("HSA", saved.system.allowed.shape, strict=True))
    try:
        for name, axes in kind.tables.items():  # before an agent is built for sizes that the file only claims
            shape = tuple(sizes[axis] for axis in axes)
            if name not in saved.state or saved.state[name].shape != shape:
                raise ValueError(f"it holds no {name} of shape {shape}")
        made = kind(saved.system, **params)
        other = [name for name, said_ in described.items() if made.params.get(name) != said_]
        if not other:
            made.restore(saved.state)
            if "policy" in made.state:
                checked_policy(made.system, made.state["policy"])
    except Exception as error:  # a forged file may make anything go wrong
        raise ValueError(f"{path} does not hold this agent: {said(error)}; save the agent again") from None
    if other:
        name = other[0]
        raise ValueError(f"{path} was saved with the {name} {described[name]!r:.80}; pass one with the same parameters")
    return made


__all__ = [
    "AGENTS",
    "UBEV",
    "UCBB",
    "UCBH",
    "UCBVI",
    "UCBVIBF",
    "Agent",
    "CensoredWarning",
    "EarlySettled",
    "Greedy",
    "Optimal",
    "Random",
    "UCBVIf",
    "UCBf",
    "UCBfBernstein",
    "UCBfReference",
    "make_agent",
    "restored",
]

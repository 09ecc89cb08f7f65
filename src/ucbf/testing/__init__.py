"""Contract checks for agents, estimators of f and presets of one's own: one call each.

A check tries one rule after another. The first that is broken ends it with a :class:`ContractError`, an AssertionError
whose text gives the rule, what was seen, and what to do. No test framework is needed.
"""

from __future__ import annotations

from ucbf.testing.agents import AGENT_RULES, check_agent
from ucbf.testing.contract import ContractError
from ucbf.testing.estimators import ESTIMATOR_RULES, check_estimator
from ucbf.testing.presets import PRESET_RULES, check_preset
from ucbf.testing.worlds import leaning_worlds, small_worlds

__all__ = [
    "AGENT_RULES",
    "ESTIMATOR_RULES",
    "PRESET_RULES",
    "ContractError",
    "check_agent",
    "check_estimator",
    "check_preset",
    "leaning_worlds",
    "small_worlds",
]

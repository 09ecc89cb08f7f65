"""What ``ucbf learn`` left in a folder: agents, and what else is known of W."""

from __future__ import annotations

from pathlib import Path

from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.controller import Controller, load
from ucbf.errors import UserError
from ucbf.following.knowledge import Controllers, Knowledge
from ucbf.following.model import AGAIN, Model, Stored, path_of
from ucbf.saving import read_arrays


def read_knowledge(folder: Path, model: Model) -> Knowledge:
    """What was learned, with nothing shown to it yet."""
    controllers = {kind: _controller(folder, about.agent) for kind, about in model.kinds.items()}
    return Knowledge(model, controllers) if model.knowledge is None else _beyond(folder, model, controllers)


def _beyond(folder: Path, model: Model, controllers: Controllers) -> Knowledge:
    """What is known besides what the agents counted."""
    from ucbf.following import levels, places

    assert model.knowledge is not None
    path = path_of(folder, model.knowledge)
    try:
        header, arrays = read_arrays(path)
        if header["about"] == places.ABOUT:
            return places.QuantileKnowledge(model, controllers, places.read_places(header, arrays))
        return levels.LevelKnowledge(model, controllers, levels.read_levels(header, arrays))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UserError(f"{path} does not hold what is known ({error}); {AGAIN}") from None


def _controller(folder: Path, stored: Stored) -> Controller:
    """The controller in a file."""
    path = path_of(folder, stored)
    found = load(path)
    if not isinstance(found, Controller) or not isinstance(found.agent, UCBVIf):
        raise UserError(f"{path} is not an agent of a preset that ucbf learn wrote; {AGAIN}")
    return found

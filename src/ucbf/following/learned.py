"""What ``ucbf learn`` left in a folder: agents, and what else is known of W."""

from __future__ import annotations

from pathlib import Path

from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.controller import Controller, load
from ucbf.errors import UserError
from ucbf.files import digest
from ucbf.following.knowledge import Controllers, Knowledge
from ucbf.following.model import Model, Stored
from ucbf.saving import read_arrays

AGAIN = "learn again into this folder, which keeps the journal"


def read_knowledge(folder: Path, model: Model) -> Knowledge:
    """What was learned, with nothing shown to it yet."""
    controllers = {kind: _controller(folder, about.agent) for kind, about in model.kinds.items()}
    return Knowledge(model, controllers) if model.knowledge is None else _beyond(folder, model, controllers)


def _beyond(folder: Path, model: Model, controllers: Controllers) -> Knowledge:
    """What is known besides what the agents counted."""
    from ucbf.following import levels, places

    assert model.knowledge is not None
    path = _checked(folder, model.knowledge)
    try:
        header, arrays = read_arrays(path)
        if header["about"] == places.ABOUT:
            return places.QuantileKnowledge(model, controllers, places.read_places(header, arrays))
        return levels.LevelKnowledge(model, controllers, levels.read_levels(header, arrays))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UserError(f"{path} does not hold what is known ({error}); {AGAIN}") from None


def _controller(folder: Path, stored: Stored) -> Controller:
    """The controller in a file."""
    path = _checked(folder, stored)
    found = load(path)
    if not isinstance(found, Controller) or not isinstance(found.agent, UCBVIf):
        raise UserError(f"{path} is not an agent of a preset that ucbf learn wrote; {AGAIN}")
    return found


def _checked(folder: Path, stored: Stored) -> Path:
    """The path of a file, if it is the one that was written."""
    path = folder / stored.name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} is missing; {AGAIN}") from None
    if digest(content) != stored.digest:
        raise UserError(f"{path} is not what was learned: it was changed, or learning was cut short; {AGAIN}")
    return path

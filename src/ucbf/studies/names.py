"""What the names in a study stand for: ucbf's own agents and worlds, those of installed packages, or code of one's own.

A name such as ``module:Class`` imports the module, which runs it, so that a file with such a name needs to be trusted.
What was imported is called only if it declares itself to be what is expected.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module, invalidate_caches
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from ucbf.agents import AGENTS, Agent
from ucbf.checks import one_of
from ucbf.errors import in_a_line
from ucbf.world import World, random_world

WORLDS: dict[str, Callable[..., World]] = {"random": random_world}


class _Beside(MetaPathFinder):
    """Finds modules in the folders of trusted studies, where nothing that is installed has their name."""

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module that stands in one of the folders; packages find what is inside them by themselves."""
        return PathFinder.find_spec(fullname, self.folders, target) if path is None else None


BESIDE = _Beside()


def search(folders: Iterable[str]) -> None:
    """Let modules in ``folders`` be imported, after everything else: none can take an installed module's place."""
    BESIDE.folders += [folder for folder in folders if folder not in BESIDE.folders]
    if BESIDE not in sys.meta_path:
        sys.meta_path.append(BESIDE)
    invalidate_caches()


def agent_class(name: str) -> type[Agent]:
    """The class of that name: ucbf's own, of an entry point in the group "ucbf.agents", or "module:Class"."""
    if name in AGENTS:
        return AGENTS[name]
    if ":" in name:
        found = _imported(name)
    else:
        installed = {point.name: point for point in entry_points(group="ucbf.agents")}
        point = installed[one_of("agent", name, [*AGENTS, *installed])]
        found = _imported(f"{point.module}:{point.attr}")
    if not (isinstance(found, type) and issubclass(found, Agent)):
        raise ValueError(f"{name} is {found!r:.60}; it must be a subclass of ucbf.Agent")
    return found


def world_maker(kind: str) -> Callable[..., World]:
    """The function of that name: in ``WORLDS``, or "module:function", which must say that it returns a World."""
    if ":" not in kind:
        return WORLDS[one_of("world", kind, WORLDS)]
    maker: Callable[..., World] = _imported(kind)
    try:
        made = maker if isinstance(maker, type) else typing.get_type_hints(maker).get("return")
    except Exception:  # no function, or a name in its annotations that is not there
        made = None
    if not (isinstance(made, type) and issubclass(made, World)):
        raise ValueError(
            f"{kind} is {maker!r:.60}; it must be a function that says that it returns a ucbf.World: "
            f"def {kind.partition(':')[2]}(..., seed) -> ucbf.World"
        )
    return maker


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found = import_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{name!r} cannot be imported ({in_a_line(error)}); write module:Class, with the module "
            "installed or beside the file"
        ) from None
    _refuse_another(module, found)
    try:
        return attrgetter(attribute)(found)
    except AttributeError:
        where = getattr(found, "__file__", None) or "built into Python"
        raise ValueError(
            f"{name!r} is not there: the module {module!r} ({where}) has no {attribute!r}; if you mean another module "
            "of that name, rename it: what is installed comes first"
        ) from None


def _refuse_another(name: str, found: ModuleType) -> None:
    """An error if a module beside an earlier study was found, and one of that name stands beside this one."""
    file, earlier = getattr(found, "__file__", None) or "", BESIDE.folders[:-1]
    if any(Path(file).is_relative_to(folder) for folder in earlier):
        here = PathFinder.find_spec(name.partition(".")[0], BESIDE.folders[-1:])
        if here is not None and not Path(file).is_relative_to(BESIDE.folders[-1]):
            raise ValueError(
                f"the module {name!r} was imported from {file} for an earlier study, and this one has its own in "
                f"{BESIDE.folders[-1]}; rename one of them, or run the studies one by one"
            )

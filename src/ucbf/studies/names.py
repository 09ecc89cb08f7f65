"""What the names in a study stand for: agents and worlds of ucbf, of installed packages, or of the user's own modules.

A name such as ``module:Class`` imports the module, which runs it: a file with such a name needs to be trusted. A class
that is imported must be a subclass of ``Agent``, and a function must declare that it returns a ``World``.
"""

from __future__ import annotations

import inspect
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
from ucbf.errors import Place, in_a_line
from ucbf.files import digest
from ucbf.studies.spec import Study
from ucbf.world import World, random_endless_world, random_world

WORLDS: dict[str, Callable[..., World]] = {"random": random_world, "endless": random_endless_world}


class _StudyFolders(MetaPathFinder):
    """Finds modules in the folders of trusted studies, if no installed module has their name."""

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module in one of the folders; packages find their own modules."""
        return PathFinder.find_spec(fullname, self.folders, target) if path is None else None


STUDY_FOLDERS = _StudyFolders()


def search_in(folders: Iterable[str]) -> None:
    """Let modules in ``folders`` be imported. They come last: none can take the place of an installed module."""
    STUDY_FOLDERS.folders += [folder for folder in folders if folder not in STUDY_FOLDERS.folders]
    if STUDY_FOLDERS not in sys.meta_path:
        sys.meta_path.append(STUDY_FOLDERS)
    invalidate_caches()


def agent_class(name: str) -> type[Agent]:
    """The class of that name: in ``AGENTS``, of an entry point in the group "ucbf.agents", or "module:Class"."""
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
    except Exception:  # not a function, or its annotations have a name that does not exist
        made = None
    if not (isinstance(made, type) and issubclass(made, World)):
        raise ValueError(
            f"{kind} is {maker!r:.60}; it must be a function that declares that it returns a ucbf.World: "
            f"def {kind.partition(':')[2]}(..., seed) -> ucbf.World"
        )
    return maker


def code_of(study: Study) -> dict[Place, str]:
    """The names that import code, such as "module:Class", by their places in the study."""
    names: dict[Place, str] = {("world", "kind"): study.world.kind}
    names |= {("agents", i, "name"): spec.name for i, spec in enumerate(study.agents)}
    return {place: name for place, name in names.items() if ":" in name}


def sources_of(study: Study) -> dict[str, str]:
    """A digest of the file of every class or function that is imported: results are valid for that text only."""
    found = {}
    for place, name in code_of(study).items():
        path = inspect.getsourcefile(world_maker(name) if place[0] == "world" else agent_class(name))
        found[name] = digest(Path(path).read_bytes()) if path else ""
    return found


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found = import_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{name!r} cannot be imported ({in_a_line(error)}); write module:Class, with the module "
            "installed or beside the file"
        ) from None
    _refuse_other_module(module, found)
    try:
        return attrgetter(attribute)(found)
    except AttributeError:
        where = getattr(found, "__file__", None) or "built into Python"
        raise ValueError(
            f"{name!r} does not exist: the module {module!r} ({where}) has no {attribute!r}; if you mean another "
            "module of that name, rename it: installed modules come first"
        ) from None


def _refuse_other_module(name: str, found: ModuleType) -> None:
    """An error if the module found is from the folder of an earlier study, and this study's folder has one, too."""
    file, earlier = getattr(found, "__file__", None) or "", STUDY_FOLDERS.folders[:-1]
    if any(Path(file).is_relative_to(folder) for folder in earlier):
        here = PathFinder.find_spec(name.partition(".")[0], STUDY_FOLDERS.folders[-1:])
        if here is not None and not Path(file).is_relative_to(STUDY_FOLDERS.folders[-1]):
            raise ValueError(
                f"the module {name!r} was imported from {file} for an earlier study, and this one has its own in "
                f"{STUDY_FOLDERS.folders[-1]}; rename one of them, or run the studies one by one"
            )

"""Read a study from a file or a table, and check it whole before anything is computed."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ucbf.checks import one_of
from ucbf.errors import Place, UserError, in_a_line, place_name
from ucbf.studies.names import agent_class, code_of, search_in, world_maker
from ucbf.studies.runs import COLUMNS, build_agent, build_world, runs_of
from ucbf.studies.spec import Study


def make_study(content: dict[str, Any]) -> Study:
    """The study that ``content`` describes, checked. It imports, and so runs, the modules that ``content`` names."""
    study = _validated(content)
    check(study)
    return study


def read_study(path: Path, *, trust: bool = False) -> Study:
    """The study in a TOML file.

    Parameters
    ----------
    path
        The file.
    trust
        Whether modules that the file names, installed or beside it, may be imported, which runs them. If not, such
        names are an error.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; name a TOML file, such as examples/study.toml") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    try:
        study = _validated(content)
        code = code_of(study)
        if code and not trust:
            place, name = next(iter(code.items()))
            raise UserError(
                f"{name!r} is code: the module {name.partition(':')[0]!r} would be imported, which runs it; if you "
                "trust it, pass --trust (in Python: read_study(path, trust=True))",
                place,
            )
        if code:
            search_in([str(path.resolve().parent)])
        check(study)
    except UserError as error:
        raise UserError(f"{_where(path, text, error.place)}: {error}") from error.__cause__
    return study


def _validated(content: dict[str, Any]) -> Study:
    """The study, or an error in one line."""
    try:
        return Study.model_validate(content)
    except ValidationError as error:
        raise UserError(*_explained(error)) from None


def check(study: Study) -> None:
    """Build the first world of every panel and every agent in it, so that errors show before anything is computed."""
    known = _parameters(("world", "kind"), world_maker, study.world.kind)
    _check_names(("world",), study.world.extra(), known)
    for key in study.world.extra():
        if key in (*COLUMNS[0], *COLUMNS[1]):
            raise UserError(f"{key!r} is a column of the results; give the parameter another name", ("world", key))
    for i, spec in enumerate(study.agents):
        known = _parameters(("agents", i, "name"), agent_class, spec.name)
        asked = {} if spec.estimator is None else {"estimator": spec.estimator}
        _check_names(("agents", i), {**spec.extra(), **asked}, known)
    places = [i for i, _ in study.variants()]
    labels = [str(variant["label"]) for _, variant in study.variants()]
    counts = Counter(labels)
    for i, label in zip(places, labels, strict=True):
        if counts[label] > 1:
            raise UserError(f"two agents are called {label!r}; give one a label of its own", ("agents", i))
    first = runs_of(study.model_copy(update={"worlds": 1}))
    if len({run.id for run in first}) < len(first):
        raise UserError("a list repeats a value, so that the same run would be done twice; remove the repetition")
    for position, run in enumerate(first):
        place: Place = ("world",)
        try:
            if position % len(places) == 0:
                world = build_world(run)
            place = ("agents", places[position % len(places)])
            build_agent(run, world)
        except (TypeError, ValueError) as error:
            raise UserError(str(error), place) from None
        except (Exception, SystemExit) as error:
            raise UserError(in_a_line(error), place) from error


def _parameters(place: Place, find: Callable[[str], Any], name: str) -> set[str] | None:
    """The parameters that a study may give to a class or function, or None if it takes any."""
    try:
        found = find(name)  # of a class what it is built with, also where its __new__ takes anything
        parameters = inspect.signature(getattr(found, "__init__") if isinstance(found, type) else found).parameters  # noqa: B009
    except ValueError as error:
        raise UserError(str(error), place) from None
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return None if takes_any else set(parameters) - {"self", "system", "law", "seed"}


def _check_names(place: Place, given: dict[str, Any], known: set[str] | None) -> None:
    for key in given if known is not None else ():
        try:
            one_of("parameter", key, sorted(known or ()))
        except ValueError as error:
            raise UserError(str(error), (*place, key)) from None


def _explained(error: ValidationError) -> tuple[str, Place]:
    """The first error that pydantic found, in plain words, and its place."""
    first = error.errors()[0]
    place = _plain_place(first["loc"])
    given = first["input"]
    if isinstance(given, list):  # of a value or a list of values: the error about the list comes last
        first = [e for e in error.errors() if _plain_place(e["loc"]) == place][-1]
    if first["type"] == "missing":
        return "it is missing", place
    if first["type"] == "extra_forbidden":
        return f"unknown key; a study has {', '.join(Study.model_fields)}", place
    if place == ("agents",) and isinstance(given, dict):
        return "write [[agents]], in two brackets: a study has a list of agents", place
    if isinstance(given, dict) and len(place) > 1:
        return f"give a value, or a list of values (it is {given!r:.60})", place
    if first["type"] == "value_error":  # raised by the study itself
        return str(first["ctx"]["error"]), place
    return f"{first['msg'][0].lower()}{first['msg'][1:]} (it is {given!r:.60})", place


def _plain_place(place: tuple[int | str, ...]) -> Place:
    """The place in the file: without pydantic's names for the alternatives of a type."""
    types = ("bool", "int", "float", "str")
    return tuple(p for p in place if isinstance(p, int) or (p not in types and not re.search(r"\[|constrained", p)))


def _where(path: Path, text: str, place: Place) -> str:
    """The place as file:line: agents[0].c; the line is found by going through the tables of the file."""
    name = place_name(place)
    wanted = [str(part) for part in place if not isinstance(part, int)]
    number = next((part for part in place if isinstance(part, int)), 0)
    table, count, best = "", -1, 0
    for line_number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([\w.-]+)\s*\]+", line)
        if header:
            count = count + 1 if header[1] == table and line.lstrip().startswith("[[") else 0
            table = header[1]
            if wanted[:1] == [table] and count == number:
                best = line_number
        key = re.match(r"\s*([\w-]+)\s*=", line)
        inside = wanted[:1] == [table] and count == number
        if key and ((len(wanted) == 1 and not table and key[1] == wanted[0]) or (inside and wanted[1:] == [key[1]])):
            best = line_number
            break
    return f"{path}{f':{best}' if best else ''}{f': {name}' if name else ''}"

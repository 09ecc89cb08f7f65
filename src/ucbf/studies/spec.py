"""A study is data: which worlds, which agents, how long, from which seed, and what to keep of it.

Read from and written to TOML. A list in place of a value means one of each: the lists of ``world`` are crossed into
panels, the lists of an agent into variants of it.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ucbf.agents import AGENTS, Agent
from ucbf.checks import one_of
from ucbf.errors import Place, UserError, in_a_line, place_name
from ucbf.files import digest
from ucbf.studies.names import agent_class, search, world_maker
from ucbf.world import World, corrupt

Value = bool | int | float | str
Several = Annotated[list[Value], Field(min_length=1)]
CHECKPOINTS = (100, 1000, 5000)  # episodes whose gap the table of runs gives
COLUMNS = (  # of the table of runs, before and after the parameters of the world
    ("run", "panel", "world", "label", "agent", "model_error", "agent_params", "kind"),
    (
        "world_seed",
        "draw_seed",
        "episodes",
        "optimum",
        "greedy_gap",
        "regret",
        *(f"gap_{k}" for k in CHECKPOINTS),
        "settled",
        "switches",
    ),
)
MOST_RUNS = 1_000_000  # half a minute and 600 MB of bookkeeping
MOST_CURVES = 10_000  # each is built once, to check it
FEWER = "give fewer, or divide it into several studies"
RESULT_VERSION = 3  # part of every run's id: a change of what a run computes makes old results foreign


class Part(BaseModel):
    """A named thing and its parameters, as they stand in a table of the file. A list means one of each."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Value | Several]

    def extra(self) -> dict[str, Value | Several]:
        """The parameters that are not ours."""
        return self.__pydantic_extra__

    def variants(self) -> list[dict[str, Any]]:
        """Every combination of the listed parameters, the last varying fastest."""
        given = self.model_dump(exclude_none=True)
        lists = [v if isinstance(v, list) else [v] for v in given.values()]
        return [dict(zip(given, chosen, strict=True)) for chosen in itertools.product(*lists)]

    def number_of_variants(self) -> int:
        """How many they are."""
        given = self.model_dump(exclude_none=True).values()
        return math.prod(len(value) for value in given if isinstance(value, list))

    def varied(self) -> list[str]:
        """The parameters that are lists."""
        return [k for k, v in self.model_dump(exclude_none=True).items() if isinstance(v, list)]


Error = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Estimator = str | dict[str, Value]


class WorldSpec(Part):
    """Where worlds come from: a name in ``WORLDS`` or "module:function", and its parameters (but the seed)."""

    kind: str = "random"


class AgentSpec(Part):
    """An agent: a name in ``AGENTS``, of an entry point, or "module:Class"; ζ of the f it is told; its parameters.

    told_error: the ζ that the agent is told, where it is not the true one. estimator: its name, or a table of its name
    and parameters.
    """

    name: str
    model_error: Error | Annotated[list[Error], Field(min_length=1)] = 0.0
    told_error: Error | Annotated[list[Error], Field(min_length=1)] | None = None
    estimator: Estimator | Annotated[list[Estimator], Field(min_length=1)] | None = None
    label: str | None = None


class Study(BaseModel):
    """Everything that determines the results."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[\w][\w.-]*$")] = "study"  # also of its folder
    episodes: Annotated[int, Field(strict=True, ge=1, le=100_000_000)] = 5000  # a run holds some numbers for each
    worlds: Annotated[int, Field(strict=True, ge=1)] = 50
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32)] = 0
    record: Annotated[int, Field(strict=True, ge=2, le=1_000_000)] = 400  # how many episodes of each curve are kept
    world: WorldSpec = Field(default_factory=lambda: WorldSpec.model_validate({}))
    agents: Annotated[tuple[AgentSpec, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _not_endless(self) -> Self:
        curves = self.world.number_of_variants() * sum(spec.number_of_variants() for spec in self.agents)
        if curves > MOST_CURVES:
            raise ValueError(f"the study has {curves} curves (an agent in a panel); it may have {MOST_CURVES}; {FEWER}")
        if self.worlds * curves > MOST_RUNS:
            asked = f"{self.worlds * curves} runs ({curves} curves in {self.worlds} worlds)"
            raise ValueError(f"the study has {asked}; it may have {MOST_RUNS}; {FEWER}")
        return self

    def panels(self) -> list[dict[str, Any]]:
        """The combinations of world parameters."""
        return self.world.variants()

    def variants(self) -> list[tuple[int, dict[str, Any]]]:
        """Every agent with its parameters and the label of its curve, and its place in the list of agents."""
        found = []
        for i, spec in enumerate(self.agents):
            for variant in spec.variants():
                words = [spec.label or spec.name.split(":")[-1]]
                for key in spec.varied():
                    words.append(f"{LETTERS.get(key, key)} = {_shown(variant[key])}")
                found.append((i, {**variant, "label": ", ".join(words)}))
        return found

    def to_toml(self) -> str:
        """The study as a file that :func:`read_study` reads."""
        import tomli_w

        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


LETTERS = {"model_error": "ζ", "told_error": "told ζ"}


def _shown(value: Any) -> str:
    """A parameter in the label of a curve."""
    if isinstance(value, dict):
        return " ".join([str(value.get("name")), *(f"{k}={_shown(v)}" for k, v in value.items() if k != "name")])
    return f"{value:g}" if isinstance(value, float) else str(value)


class Run(NamedTuple):
    """One agent in one world."""

    panel: int
    world: int
    label: str
    kind: str
    world_params: dict[str, Value]
    agent: str
    agent_params: dict[str, Any]
    model_error: float
    told_error: float
    world_seed: int
    error_seed: int
    draw_seed: int
    episodes: int
    record: int

    @property
    def id(self) -> str:
        """A digest of all that determines the result."""
        said = json.dumps([RESULT_VERSION, *self[3:]], sort_keys=True)
        return digest(said.encode())


NOT_PARAMETERS = ("name", "label", "model_error", "told_error")  # of an agent's constructor


def runs_of(study: Study) -> list[Run]:
    """Every run: panel by panel, world by world, agent by agent. World i has the same seeds whatever the agents."""
    runs, variants = [], study.variants()
    for p, panel in enumerate(study.panels()):
        world_params = {k: v for k, v in panel.items() if k != "kind"}
        for i in range(study.worlds):
            seeds = [int(s) >> 1 for s in np.random.SeedSequence([study.seed, i]).generate_state(3, np.uint64)]
            for _, variant in variants:
                params = {k: v for k, v in variant.items() if k not in NOT_PARAMETERS}
                error = float(variant["model_error"])
                told = float(variant.get("told_error", error))
                runs.append(
                    Run(
                        p, i, str(variant["label"]), str(panel["kind"]), world_params, str(variant["name"]), params,
                        error, told, seeds[0], seeds[1], seeds[2], study.episodes, study.record,
                    )
                )  # fmt: skip
    return runs


def build_world(run: Run) -> World:
    """The world of a run."""
    world = world_maker(run.kind)(**run.world_params, seed=run.world_seed)
    if not isinstance(world, World):
        raise TypeError(f"{run.kind} returned {world!r:.60}; it must return a ucbf.World")
    return world


def build_agent(run: Run, world: World) -> Agent:
    """The agent of a run, told as much as the run says."""
    told = corrupt(world.system, run.model_error, run.error_seed) if run.model_error else world.system
    if run.told_error != run.model_error:
        told = told.replace(model_error=run.told_error)
    kind = agent_class(run.agent)
    law = {"law": world.law} if kind is AGENTS["optimal"] else {}
    return kind(told, **run.agent_params, **law)


def code_of(study: Study) -> dict[Place, str]:
    """The names that ask for code to be imported, by their place: "module:Class"."""
    names: dict[Place, str] = {("world", "kind"): study.world.kind}
    names |= {("agents", i, "name"): spec.name for i, spec in enumerate(study.agents)}
    return {place: name for place, name in names.items() if ":" in name}


def sources_of(study: Study) -> dict[str, str]:
    """A digest of the file of every class or function that is not ucbf's own: results hold only for it."""
    found = {}
    for place, name in code_of(study).items():
        path = inspect.getsourcefile(world_maker(name) if place[0] == "world" else agent_class(name))
        found[name] = digest(Path(path).read_bytes()) if path else ""
    return found


# -- reading and checking -----------------------------------------------------------------------------


def check(study: Study) -> None:
    """Build the first world of every panel, and every agent in it, so that nothing is refused after work was done."""
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


def make_study(content: dict[str, Any]) -> Study:
    """The study that ``content`` describes, checked whole. Whoever calls it trusts the code that it names."""
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
        Import the modules that it names, installed or beside the file, which runs them; without, such names are
        refused.
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
            search([str(path.resolve().parent)])
        check(study)
    except UserError as error:
        raise UserError(f"{_where(path, text, error.place)}: {error}") from error.__cause__
    return study


def _validated(content: dict[str, Any]) -> Study:
    try:
        return Study.model_validate(content)
    except ValidationError as error:
        raise UserError(*_explained(error)) from None


def _parameters(place: Place, find: Callable[[str], Any], name: str) -> set[str] | None:
    """The names of the parameters, or None if any will do."""
    try:
        parameters = inspect.signature(find(name)).parameters
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
    """The first thing that pydantic found, in our words, and its place."""
    first = error.errors()[0]
    place = _plain_place(first["loc"])
    given = first["input"]
    if isinstance(given, list):  # what is wrong with a list is said by the branch for lists
        first = [e for e in error.errors() if _plain_place(e["loc"]) == place][-1]
    if first["type"] == "missing":
        return "it is missing", place
    if first["type"] == "extra_forbidden":
        return f"unknown key; a study has {', '.join(Study.model_fields)}", place
    if place == ("agents",) and isinstance(given, dict):
        return "write [[agents]], in two brackets: a study has a list of agents", place
    if isinstance(given, dict) and len(place) > 1:
        return f"give a value, or a list of values (it is {given!r:.60})", place
    if first["type"] == "value_error":  # in our words
        return str(first["ctx"]["error"]), place
    return f"{first['msg'][0].lower()}{first['msg'][1:]} (it is {given!r:.60})", place


def _plain_place(place: tuple[int | str, ...]) -> Place:
    """Without pydantic's names for the branches of a union."""
    branches = ("bool", "int", "float", "str")
    return tuple(p for p in place if isinstance(p, int) or (p not in branches and not re.search(r"\[|constrained", p)))


def _where(path: Path, text: str, place: Place) -> str:
    """file:line: a.b[0].c, the line found by walking the tables of the file."""
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

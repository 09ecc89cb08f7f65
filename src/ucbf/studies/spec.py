"""A study is data: which worlds, which agents, how long, from which seed, and what to keep of it.

It is read from and written to TOML. A list in place of a value means one of each: the lists of ``world`` are crossed
into panels, the lists of an agent into variants of it.
"""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Value = bool | int | float | str
Values = Annotated[list[Value], Field(min_length=1)]
MOST_RUNS = 1_000_000  # half a minute and 600 MB of bookkeeping
MOST_CURVES = 10_000  # each is built once, to check it
EPISODES = 5000  # the paper's
Length = Annotated[int, Field(strict=True, ge=1, le=100_000_000)]  # a run holds some numbers for each
FEWER = "give fewer, or divide it into several studies"


class Part(BaseModel):
    """A world or an agent: a table of the file with a name and parameters. A list means one of each."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Value | Values]

    def extra(self) -> dict[str, Value | Values]:
        """The parameters that are passed on as they are, to the function or class that is named."""
        return self.__pydantic_extra__

    def variants(self) -> list[dict[str, Any]]:
        """Every combination of the listed parameters, the last varying fastest."""
        given = self.model_dump(exclude_none=True)
        lists = [v if isinstance(v, list) else [v] for v in given.values()]
        return [dict(zip(given, chosen, strict=True)) for chosen in itertools.product(*lists)]

    def number_of_variants(self) -> int:
        """How many combinations there are, without making them."""
        given = self.model_dump(exclude_none=True).values()
        return math.prod(len(value) for value in given if isinstance(value, list))

    def varied(self) -> list[str]:
        """The parameters that are lists."""
        return [k for k, v in self.model_dump(exclude_none=True).items() if isinstance(v, list)]


Error = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Estimator = str | dict[str, Value]


class WorldSpec(Part):
    """Where worlds come from: a name in ``WORLDS`` or "module:function", and its parameters (without the seed)."""

    kind: str = "random"


class AgentSpec(Part):
    """An agent and its parameters.

    name: in ``AGENTS``, of an entry point, or "module:Class"
    model_error: ζ, the error of the f that the agent is told
    told_error: the ζ that the agent is told, where it is not the true one
    estimator: its name, or a table of its name and parameters
    """

    name: str
    model_error: Error | Annotated[list[Error], Field(min_length=1)] = 0.0
    told_error: Error | Annotated[list[Error], Field(min_length=1)] | None = None
    estimator: Estimator | Annotated[list[Estimator], Field(min_length=1)] | None = None
    label: str | None = None


class Study(BaseModel):
    """Everything that determines the results.

    Worlds that have an end are played for ``episodes``, those without one for ``steps``; exactly one of the two is set.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[\w][\w.-]*$")] = "study"  # and of its folder
    episodes: Length | None = None  # 5000, if neither is given
    worlds: Annotated[int, Field(strict=True, ge=1)] = 50
    steps: Length | None = None
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32)] = 0
    record: Annotated[int, Field(strict=True, ge=2, le=1_000_000)] = 400  # how many points of each curve are kept
    world: WorldSpec = Field(default_factory=lambda: WorldSpec.model_validate({}))
    agents: Annotated[tuple[AgentSpec, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _choose_length(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        episodes, steps = given.get("episodes"), given.get("steps")
        if episodes is not None and steps is not None:
            raise ValueError(
                f"episodes is {episodes!r:.40} and steps {steps!r:.40}; give only episodes, or, for worlds without an "
                "end, only steps"
            )
        return given if steps is not None or episodes is not None else {**given, "episodes": EPISODES}

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        curves = self.world.number_of_variants() * sum(spec.number_of_variants() for spec in self.agents)
        if curves > MOST_CURVES:
            asked = f"{curves} curves (an agent in a panel)"
            raise ValueError(f"the study has {asked}; it may have {MOST_CURVES} at most; {FEWER}")
        if self.worlds * curves > MOST_RUNS:
            asked = f"{self.worlds * curves} runs ({curves} curves in {self.worlds} worlds)"
            raise ValueError(f"the study has {asked}; it may have {MOST_RUNS} at most; {FEWER}")
        return self

    @property
    def by_step(self) -> bool:
        """Whether the worlds have no end."""
        return self.steps is not None

    @property
    def length(self) -> int:
        """How many episodes, or steps, a run has."""
        return self.steps or self.episodes or EPISODES

    @property
    def counted(self) -> str:
        """What a run is counted in."""
        return "step" if self.by_step else "episode"

    def panels(self) -> list[dict[str, Any]]:
        """The combinations of world parameters."""
        return self.world.variants()

    def variants(self) -> list[tuple[int, dict[str, Any]]]:
        """The index in ``agents`` of every curve; the agent's parameters, one of each, with the label of the curve."""
        found = []
        for i, spec in enumerate(self.agents):
            for variant in spec.variants():
                words = [spec.label or spec.name.split(":")[-1]]
                for key in spec.varied():
                    words.append(f"{LETTERS.get(key, key)} = {_in_label(variant[key])}")
                found.append((i, {**variant, "label": ", ".join(words)}))
        return found

    def to_toml(self) -> str:
        """The study as the text of a file that :func:`ucbf.read_study` reads."""
        import tomli_w

        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


LETTERS = {"model_error": "ζ", "told_error": "told ζ"}


def _in_label(value: Any) -> str:
    """The value of a parameter as it stands in the label of a curve."""
    if isinstance(value, dict):
        return " ".join([str(value.get("name")), *(f"{k}={_in_label(v)}" for k, v in value.items() if k != "name")])
    return f"{value:g}" if isinstance(value, float) else str(value)

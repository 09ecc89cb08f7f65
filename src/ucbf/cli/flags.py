"""Flags that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, Token


def read_whole(_: object, tokens: Sequence[Token]) -> int:
    """The value of a flag as a whole number; a ValueError where it is none, such as 2.5."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value} is not a whole number") from None


Out = Annotated[Path | None, Parameter(help="Folder of the results; results/NAME if not given.")]
Seed = Annotated[int, Parameter(converter=read_whole, help="Seed of all random numbers.")]
Quick = Annotated[bool, Parameter(negative=(), help="Fewer worlds and episodes: done in seconds.")]
Band = Annotated[
    Literal["sd", "ci"],
    Parameter(help="Band around a curve: ±0.5 standard deviation, as in the paper, or a 95 % interval of the mean."),
]
Scale = Annotated[
    Literal["linear", "log", "loglog"],
    Parameter(help="Axes: linear, logarithmic for the episodes, or logarithmic for the episodes and the gap."),
]


Jobs = Annotated[
    int | None, Parameter(converter=read_whole, help="Number of workers; the number of cores if not given.")
]
Engine = Annotated[
    Literal["local", "ray"],
    Parameter(
        help="Run in threads of this process (local) or on a Ray cluster (ray), whose machines share the folder of "
        "results."
    ),
]
RayAddress = Annotated[
    str | None, Parameter(help="Address of a running Ray cluster; if not given, one is started on this machine.")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Workers:
    """Who computes."""

    jobs: Jobs = None
    engine: Engine = "local"
    ray_address: RayAddress = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Running(Workers):
    """How and where a study is run."""

    out: Out = None
    shard: Annotated[str, Parameter(help="i/N: run only the i-th of N parts, for batch queues.")] = "1/1"


HERE = Running()
THIS_MACHINE = Workers()

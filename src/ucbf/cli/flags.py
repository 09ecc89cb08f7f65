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
Seed = Annotated[int, Parameter(converter=read_whole, help="Everything random follows from it.")]
Quick = Annotated[bool, Parameter(negative=(), help="Few worlds and episodes, in seconds.")]
Band = Annotated[Literal["sd", "ci"], Parameter(help="±0.5 standard deviation, as in the paper, or a 95 % interval.")]
Scale = Annotated[Literal["linear", "log", "loglog"], Parameter(help="Of the episodes, or of the gap as well.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Running:
    """How and where a study is run.

    Parameters
    ----------
    out
        Folder of the results; results/NAME if not given.
    jobs
        Workers; as many as there are cores if not given.
    engine
        Threads of this process, or a Ray cluster.
    ray_address
        Of a running cluster; one is started here if not given.
    shard
        i/N: do the i-th of N parts, for batch queues.
    """

    out: Path | None = None
    jobs: Annotated[int | None, Parameter(converter=read_whole)] = None
    engine: Literal["local", "ray"] = "local"
    ray_address: str | None = None
    shard: str = "1/1"


HERE = Running()

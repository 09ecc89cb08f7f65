"""Costs and sizes of a preset for ``ucbf learn``: its parameters as flags, and as a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ucbf.cli.flags import read_whole
from ucbf.errors import UserError
from ucbf.systems import Preset

Whole = Annotated[int | None, Parameter(converter=read_whole)]
Many = Annotated[tuple[float, ...] | None, Parameter(consume_multiple=True, negative=())]
PER_STEP = {"prices", "value", "target", "shortage_cost"}  # one value for all steps, or one for each


def flags_of(kind: type[Preset]) -> Any:
    """A dataclass with a flag for each parameter of a preset; None: not given, so that the series suggests it."""

    def flag(name: str, default: Any) -> Any:
        several = isinstance(default, tuple) or name in PER_STEP
        return Whole if name == "horizon" else Many if several else float | None

    made = [(f.name, flag(f.name, f.default), None) for f in fields(kind) if f.name != "profile"]
    flags = make_dataclass(f"{kind.__name__}Flags", made, frozen=True, kw_only=True)
    flags.__module__, flags.__doc__ = __name__, kind.__doc__
    return Parameter(name="*", group="Costs and sizes")(flags)


def given_parameters(kind: type[Preset], flags: Any, config: Path | None) -> dict[str, Any]:
    """The parameters that the user gave, in the file or by flags; a flag overrides the file."""
    given = {} if config is None else _read_config(kind, config)
    for name, value in vars(flags).items():
        if value is not None:
            given[name] = value[0] if name in PER_STEP and len(value) == 1 else value
    return given


def _read_config(kind: type[Preset], config: Path) -> dict[str, Any]:
    """The parameters in a TOML file; a UserError where one is unknown or not a number."""
    if not config.is_file():
        raise UserError(f"there is no file {str(config)!r} (--config)")
    try:
        given = tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{config} is not TOML in UTF-8: {error}") from None
    types = {f.name: isinstance(f.default, tuple) or f.name in PER_STEP for f in fields(kind)}
    for name, value in given.items():
        if name not in types:
            near = name.replace("-", "_")
            hint = f"did you mean {near!r}? " if near in types else ""
            known = ", ".join(sorted(types))
            raise UserError(f"{config}: {kind.kind} has no parameter {name!r}; {hint}it has {known}")
        many = isinstance(value, list) and types[name]
        for x in value if many else [value]:
            if not isinstance(x, int | float) or isinstance(x, bool):
                what = "a number or a list of them" if types[name] else "a number"
                raise UserError(f"{config}: {name} is {x!r}; it must be {what}")
        given[name] = tuple(value) if many else value
    return given

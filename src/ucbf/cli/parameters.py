"""Costs and sizes of a preset for ``ucbf learn``: its parameters as flags, and as a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import Field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ucbf.cli.flags import read_whole
from ucbf.errors import UserError
from ucbf.systems import Preset

Whole = Annotated[int | None, Parameter(converter=read_whole)]
Many = Annotated[tuple[float, ...] | None, Parameter(consume_multiple=True, negative=())]
Pairs = Annotated[tuple[tuple[float, float], ...] | None, Parameter(consume_multiple=True, negative=())]
PAIRS = {"price_breaks"}  # pairs of numbers
NO_FLAGS = {"profile", "period"}  # the series says the one, and a series is cut into episodes, which end
PER_STEP = {"prices", "value", "target", "shortage_cost"}  # one value for all steps, or one for each


def flags_of(kind: type[Preset]) -> Any:
    """A dataclass with a flag for each parameter of a preset; None: not given, so that the series suggests it."""

    def flag(field: Field[Any]) -> Any:
        if str(field.type) == "str":
            return str | None
        return Whole if str(field.type).startswith("int") else (float | None, Many, Pairs)[_depth(field)]

    made = [(f.name, flag(f), None) for f in fields(kind) if f.name not in NO_FLAGS]
    flags = make_dataclass(f"{kind.__name__}Flags", made, frozen=True, kw_only=True)
    flags.__module__, flags.__doc__ = __name__, kind.__doc__
    return Parameter(name="*", group="Costs and sizes")(flags)


def given_parameters(kind: type[Preset], flags: Any, config: Path | None, also: tuple[str, ...] = ()) -> dict[str, Any]:
    """The parameters that the user gave, in the file or by flags; a flag overrides the file.

    also: numbers that the file may have besides
    """
    given = {} if config is None else _read_config(kind, config, also)
    for name, value in vars(flags).items():
        if value is not None:
            given[name] = value[0] if name in PER_STEP and len(value) == 1 else value
    return given


def _read_config(kind: type[Preset], config: Path, also: tuple[str, ...]) -> dict[str, Any]:
    """The parameters in a TOML file; a UserError where one is unknown or not a number."""
    if not config.is_file():
        raise UserError(f"there is no file {str(config)!r} (--config)")
    try:
        given = tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{config} is not TOML in UTF-8: {error}") from None
    depths = {f.name: _depth(f) for f in fields(kind)} | dict.fromkeys(also, 0)
    words = {f.name for f in fields(kind) if str(f.type) == "str"}
    for name, value in given.items():
        if name not in depths:
            near = name.replace("-", "_")
            hint = f"did you mean {near!r}? " if near in depths else ""
            known = ", ".join(sorted(depths))
            raise UserError(f"{config}: {kind.kind} has no parameter {name!r}; {hint}it has {known}")
        if isinstance(value, str) and name in words:
            continue
        rule = ("a number", "a number or a list of them", "a list of pairs of numbers")[depths[name]]
        given[name] = _numbers(value, depths[name], f"{config}: {name}", rule)
    return given


def _depth(field: Field[Any]) -> int:
    """How deep lists may be in the value of a parameter: 0 for a number, 1 for several, 2 for pairs."""
    return 2 if field.name in PAIRS else int(isinstance(field.default, tuple) or field.name in PER_STEP)


def _numbers(value: Any, depth: int, what: str, rule: str) -> Any:
    """A number, or lists of numbers as tuples; a UserError for anything else."""
    if depth and isinstance(value, list):
        return tuple(_numbers(part, depth - 1, what, rule) for part in value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UserError(f"{what} is {value!r}; it must be {rule}")
    return value

"""``model.json``: what ``ucbf learn`` leaves behind for those who follow its advice, besides the agents themselves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ucbf.errors import UserError
from ucbf.files import digest, write_whole
from ucbf.following.calendar import Calendar

NAME, FORMAT, VERSION = "model.json", "ucbf model", 1


@dataclass(frozen=True)
class Kind:
    """One kind of episode: its agent, and the amounts that were learned from."""

    agent: str  # the name of its file
    digest: str  # of that file
    mean: tuple[float, ...]  # [H] of the amounts of every step, outliers left out
    spread: tuple[float, ...]  # [H] their standard deviations
    counts: tuple[int, ...]  # [H] how many there were
    pmf: tuple[tuple[float, ...], ...] = ()  # [1 or H, n] the distribution of W, where parameters differ by episode
    low: int = 0  # the smallest W that it is of


@dataclass(frozen=True)
class Model:
    """What was learned, in the user's units."""

    preset: str
    parameters: dict[str, Any]
    source: str  # the file of the series
    column: str
    rows: int  # of the series
    episodes: int  # that were learned from
    expected: float  # the reward of an episode
    varies: tuple[str, ...]  # parameters that differ from episode to episode
    calendar: Calendar
    kinds: dict[str, Kind]


def write_model(folder: Path, model: Model) -> None:
    """Write it, whole or not at all."""
    write_whole(folder / NAME, sealed({"format": FORMAT, "version": VERSION, **asdict(model)}))


def sealed(content: dict[str, Any]) -> bytes:
    """Contents as JSON that ends with a checksum."""
    return json.dumps({**content, "check": _check(content)}, indent=1, ensure_ascii=False).encode()


def unsealed(content: dict[str, Any]) -> dict[str, Any]:
    """The contents without their checksum; a ValueError if it does not match, a KeyError if there is none."""
    rest = {name: value for name, value in content.items() if name != "check"}
    if content["check"] != _check(rest):
        raise ValueError("its checksum does not match")
    return rest


def _check(content: dict[str, Any]) -> str:
    return digest(json.dumps(content, ensure_ascii=False, allow_nan=False).encode())


def read_model(folder: Path) -> Model:
    """What stands in a folder that ``ucbf learn`` wrote."""
    path = folder / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != FORMAT:
            raise ValueError
    except (FileNotFoundError, NotADirectoryError):
        raise nothing_learned(folder) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path} is damaged, or was not written by ucbf learn; learn again into this folder") from None
    version = content.get("version")
    if version != VERSION:
        raise UserError(f"{path} has format version {version!r:.20}, this ucbf knows {VERSION}; learn again with it")
    try:
        return _model({"format": FORMAT, **content})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError):
        raise UserError(
            f"{path} was changed or damaged after it was written; learn again into this folder, which keeps the journal"
        ) from None


def nothing_learned(folder: Path, also: str = "") -> UserError:
    """The error for a folder that ``ucbf learn`` did not write; also: what else might be given."""
    remedy = f"give the folder that ucbf learn wrote (--out){also}"
    if not folder.exists():
        return UserError(f"{folder} does not exist; {remedy}")
    if not folder.is_dir():
        return UserError(f"{folder} is a file; {remedy}")
    items = sorted(path.parent for name in (NAME, "store.json") for path in folder.glob(f"*/{name}"))
    if items:
        return UserError(f"{folder} holds folders of {len(items)} items; give that of one, such as {items[0]}")
    return UserError(f"{folder} holds nothing that was learned (no {NAME}); {remedy}")


def _model(content: dict[str, Any]) -> Model:
    content = unsealed(content)
    given = {field.name: _tuples(content[field.name]) for field in fields(Model)}
    calendar = {name: _tuples(value) for name, value in content["calendar"].items()}
    kinds = {
        name: Kind(**{key: _tuples(value) for key, value in kind.items()}) for name, kind in content["kinds"].items()
    }
    for kind in kinds.values():
        if Path(kind.agent).name != kind.agent:
            raise ValueError("an agent outside of the folder")
    return Model(**{**given, "calendar": Calendar(**calendar), "kinds": kinds})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value

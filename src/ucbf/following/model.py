"""``model.json``: what ``ucbf learn`` leaves behind for those who follow its advice, besides the agents themselves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ucbf.errors import UserError
from ucbf.files import FLEET, digest, write_whole
from ucbf.following.calendar import Calendar

NAME, FORMAT, VERSION = "model.json", "ucbf model", 2
AGAIN = "learn again into this folder, which keeps the journal"


@dataclass(frozen=True)
class Stored:
    """A file beside ``model.json``, or ``store.json``."""

    name: str
    digest: str  # of the whole file


@dataclass(frozen=True)
class Kind:
    """One kind of episode: its agent, and the amounts that were learned from, less what was expected of each."""

    agent: Stored
    mean: tuple[float, ...]  # [H] of every step, outliers left out
    spread: tuple[float, ...]  # [H] their standard deviations
    counts: tuple[int, ...]  # [H] how many there were


@dataclass(frozen=True)
class Promoted:
    """What promotions do."""

    column: str  # which marked them
    uplift: float  # by which a promotion multiplies the mean of a step
    means: dict[str, tuple[float, ...]]  # by the kind of an episode: [H] without promotions


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
    varies: tuple[str, ...]  # what differs from episode to episode: profile, quantiles, promoted; prices, ...
    shares: tuple[float, ...]  # of the quantiles that are forecast
    promotions: Promoted | None
    knowledge: Stored | None  # what is known of W besides what the agents counted
    dependence: float  # by how much neighbours that depend on each other widen the variance of a mean; 1: not at all
    calendar: Calendar
    kinds: dict[str, Kind]

    @property
    def has_forecast(self) -> bool:
        """Whether something is forecast of every step."""
        return bool({"profile", "quantiles", "promoted"} & set(self.varies))


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
        age = "an earlier" if isinstance(version, int) and version < VERSION else "another"
        raise UserError(
            f"{path} was written by {age} version of ucbf (format version {version!r:.20}, this one knows {VERSION}); "
            "learn again into this folder, which keeps the journal"
        )
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
    if (folder / FLEET).is_file():
        return UserError(
            f"{folder} holds plans of many items, which keep no journal: ucbf act {folder} --stock-file FILE says what "
            "to order; for what happened since, add rows to the demand file and give the same ucbf learn command again"
        )
    items = sorted(path.parent for name in (NAME, "store.json") for path in folder.glob(f"*/{name}"))
    if items:
        return UserError(
            f"{folder} holds folders of {len(items)} items; give that of one, such as {items[0]}, or a file with a "
            "column of items: ucbf act --stock-file, ucbf observe --file"
        )
    return UserError(f"{folder} holds nothing that was learned (no {NAME}); {remedy}")


def _model(content: dict[str, Any]) -> Model:
    content = unsealed(content)
    given = {field.name: _tuples(content[field.name]) for field in fields(Model)}
    promotions, knowledge = content["promotions"], content["knowledge"]
    return Model(
        **{
            **given,
            "promotions": None if promotions is None else Promoted(**_of_tuples(promotions)),
            "knowledge": None if knowledge is None else read_stored(knowledge),
            "calendar": Calendar(**_of_tuples(content["calendar"])),
            "kinds": {
                name: Kind(**{**_of_tuples(kind), "agent": read_stored(kind["agent"])})
                for name, kind in content["kinds"].items()
            },
        }
    )


def stored_as(folder: Path, name: str) -> Stored:
    """A file of a folder as it is now."""
    return Stored(name, digest((folder / name).read_bytes()))


def path_of(folder: Path, stored: Stored) -> Path:
    """The path of a file, if it is the one that was written."""
    path = folder / stored.name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} is missing; {AGAIN}") from None
    if digest(content) != stored.digest:
        raise UserError(f"{path} is not what was learned: it was changed, or learning was cut short; {AGAIN}")
    return path


def read_stored(given: dict[str, Any]) -> Stored:
    """What was said of a file."""
    found = Stored(**given)
    if Path(found.name).name != found.name:
        raise ValueError("a file outside of the folder")
    return found


def _of_tuples(given: dict[str, Any]) -> dict[str, Any]:
    return {name: _tuples(value) for name, value in given.items()}


def _tuples(value: Any) -> Any:
    """With tuples for JSON's lists."""
    if isinstance(value, dict):
        return _of_tuples(value)
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value

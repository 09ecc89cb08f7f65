"""One file an agent: a zip of plain arrays with a header and a digest, written whole or not at all.

Nothing in it is executed on loading: no pickle, no names of modules to import.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance
from ucbf.files import write_whole
from ucbf.system import System

FORMAT, VERSION = "ucbf agent", 2
Arrays = dict[str, NDArray[Any]]
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


class Preset(NamedTuple):
    """One of ``ucbf.systems``: its kind and its parameters."""

    kind: str
    parameters: dict[str, Any]


class Saved(NamedTuple):
    """What a file says of an agent, and of the system in whose units it acts, if any."""

    agent: str
    params: dict[str, Any]
    system: System
    state: Arrays
    preset: Preset | None = None


def write(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write to ``path``; an earlier file there stays whole until the new one is."""
    arguments = saved.system.arguments()
    arrays: Arrays = {f"system.{k}": v for k, v in arguments.items() if isinstance(v, np.ndarray)}
    arrays |= {f"state.{name}": array for name, array in saved.state.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects, which are not saved; use arrays of numbers")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "agent": saved.agent,
        "params": {name: _plain(name, value) for name, value in saved.params.items()},
        "system": {k: v for k, v in arguments.items() if not isinstance(v, np.ndarray)},
        "preset": None if saved.preset is None else [saved.preset.kind, _plain("preset", saved.preset.parameters)],
    }
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    arrays["digest"] = _digest(arrays)
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is no folder; create it before saving to {target}")
    content = io.BytesIO()
    np.savez_compressed(content, **cast(Any, arrays))
    write_whole(target, content.getvalue())


def read(path: str | os.PathLike[str]) -> Saved:
    """What was written to ``path``, or an error that says why it cannot be trusted."""
    arrays, header = _contents(Path(path))
    try:
        told: dict[str, Any] = {k.removeprefix("system."): v for k, v in arrays.items() if k.startswith("system.")}
        told |= header["system"]
        if told["disturbance_range"] is not None:
            told["disturbance_range"] = tuple(told["disturbance_range"])
        params = {k: Disturbance(**v) if _is_law(v) else v for k, v in header["params"].items()}
        state = {k.removeprefix("state."): v for k, v in arrays.items() if k.startswith("state.")}
        return Saved(header["agent"], params, System(**told), state, _preset(header.get("preset")))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} does not describe an agent: {error}; save the agent again") from None


def _preset(given: Any) -> Preset | None:
    if given is None:
        return None
    kind, parameters = given
    return Preset(str(kind), {k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()})


def _contents(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the header of a file that is whole, ours and of a version that we know."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; save an agent there first: agent.save(path)")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays: Arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays["header"].tobytes())
        ours, version = header["format"] == FORMAT, int(header["version"])
    except UNREADABLE:
        ours = False
    if not ours:
        raise ValueError(
            f"{path} is not a saved ucbf agent, or is damaged; give a file that agent.save wrote (that of a "
            "GridAgent is read by GridAgent.load(path, grid))"
        )
    if version > VERSION:
        raise ValueError(f"{path} has format version {version}, newer than {VERSION}; upgrade ucbf to read it")
    if not np.array_equal(arrays.pop("digest", np.empty(0)), _digest(arrays)):
        raise ValueError(f"{path} was changed after it was written: its digest does not match; save the agent again")
    return arrays, header


def _digest(arrays: Arrays) -> NDArray[np.uint8]:
    """[32] SHA-256 of names, types, shapes and contents."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(array.tobytes())
    return np.frombuffer(sha.digest(), dtype=np.uint8)


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON can say it; floats survive exactly."""
    if isinstance(value, Disturbance):
        return {"pmf": value.pmf.tolist(), "low": value.low}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {key: _plain(f"{name}.{key}", part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(name, part) for part in value]
    raise TypeError(
        f"parameter {name} is {value!r:.60}, which cannot be saved; use numbers, text, a Disturbance, or lists and "
        "tables of those"
    )


def _is_law(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"pmf", "low"}

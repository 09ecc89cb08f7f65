"""One file an agent: a zip of plain arrays with a header and a digest, written whole or not at all.

Nothing in it is executed on loading: no pickle, no names of modules to import. What a file says of its own size is read
before anything is made room for, and no more is unpacked than it said.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance
from ucbf.files import write_whole
from ucbf.system import System

FORMAT, VERSION = "ucbf agent", 4
LARGEST_FILE = 2**30  # bytes of arrays, unless the caller allows more
LARGEST_HEADER = 2**24  # bytes
TABLES = 8  # that an agent keeps over raw next states or disturbances, about
SAMPLED = 1000  # points at which functions are compared that are stated again
AT_A_TIME = 2**20  # bytes read; a zip's list of contents must be shorter
Arrays = dict[str, NDArray[Any]]


class SavedPreset(NamedTuple):
    """One of ``ucbf.systems``: its kind and its parameters."""

    kind: str
    parameters: dict[str, Any]


class Saved(NamedTuple):
    """What a file says of an agent, and of the system in whose units it acts, if any."""

    agent: str
    params: dict[str, Any]
    system: System
    state: Arrays
    preset: SavedPreset | None = None


def write(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write an agent to ``path``; an earlier file there stays whole until the new one is."""
    arguments = saved.system.arguments()
    arrays: Arrays = {f"system.{k}": v for k, v in arguments.items() if isinstance(v, np.ndarray)}
    arrays |= {f"state.{name}": array for name, array in saved.state.items()}
    if "f" not in arguments:
        arrays |= {f"sample.{name}": array for name, array in _sample(saved.system).items()}
    about = {
        "agent": saved.agent,
        "params": {name: plain(name, value) for name, value in saved.params.items()},
        "system": {k: plain(k, v) for k, v in arguments.items() if not isinstance(v, np.ndarray)},
        "preset": None if saved.preset is None else [saved.preset.kind, plain("preset", saved.preset.parameters)],
    }
    write_arrays(path, about, arrays)


def read(path: str | os.PathLike[str], largest: int = LARGEST_FILE, system: System | None = None) -> Saved:
    """What was written to ``path``, or an error that says why it cannot be trusted.

    system: the one that was saved, stated again, where its functions could not be
    """
    header, arrays = read_arrays(path, largest)
    if "possible" in arrays:  # of an agent that fits values
        raise ValueError(
            f"{path} is of a LargeSystem, whose functions are not saved; state it again: load(path, system=...)"
        )
    try:
        told: dict[str, Any] = {k.removeprefix("system."): v for k, v in arrays.items() if k.startswith("system.")}
        told |= header["system"]
        params = {k: _revived(v) for k, v in header["params"].items()}
        state = {k.removeprefix("state."): v for k, v in arrays.items() if k.startswith("state.")}
        sample = {k.removeprefix("sample."): v for k, v in arrays.items() if k.startswith("sample.")}
        described = _stated_again(told, system, sample) if "f" not in told else _stated(told)
        saved = Saved(str(header["agent"]), params, described, state, _preset(header.get("preset")))
    except NotStatedError as error:
        raise ValueError(f"{path}: {error}") from None
    except Exception as error:  # a forged header may make anything go wrong
        raise ValueError(f"{path} does not describe an agent: {said(error)}; save the agent again") from None
    (H, S, A), Z = saved.system.allowed.shape, int(saved.system.reach.raw_shape(saved.system.bins).prod())
    refuse_large(path, 8 * H * max(S * A, TABLES * Z), largest)
    return saved


def _stated(told: dict[str, Any]) -> System:
    """The system that was saved, functions included."""
    if told["disturbance_range"] is not None and "low" not in told:
        told["disturbance_range"] = tuple(told["disturbance_range"])
    return System(**told)


class NotStatedError(ValueError):
    """The system of a file has to be stated again, and was not, or another one was."""


def _sample(system: System) -> Arrays:
    """What the functions of a system said, at some points."""
    m = system.mechanics
    tables = {"f": system.f, "reward": m.reward, "landing": m.landing, "boundary": m.next_state, "late_landing": m.late}
    return {
        name: np.ravel(table)[np.linspace(0, table.size - 1, min(table.size, SAMPLED)).astype(np.int64)]
        for name, table in tables.items()
        if table.size
    }


def _stated_again(told: dict[str, Any], system: System | None, sample: Arrays) -> System:
    """The system that the user stated again, if it is the one that was saved. sample: of what its functions said."""
    if system is None:
        raise NotStatedError(
            "its system has continuous axes, a boundary of its own or a late_landing, whose functions are not saved: "
            "state it again, load(path, system=...)"
        )
    if not isinstance(system, System):
        raise TypeError(f"system is {system!r:.60}; give a ucbf.System")
    for name, mine in system.arguments().items():
        theirs = told.get(name)
        said = plain(name, mine.tolist() if isinstance(mine, np.ndarray) else mine)
        if said != (theirs.tolist() if isinstance(theirs, np.ndarray) else theirs):
            raise NotStatedError(f"its {name} is {theirs!r:.60}, that of the system given is {mine!r:.60}")
    given = _sample(system) if sample else {}
    for name, values in sample.items():
        if name not in given or values.shape != given[name].shape or not np.allclose(values, given[name], 1e-9, 1e-9):
            raise NotStatedError(f"its {name} is not that of the system given; state the system as it was")
    return system


def write_arrays(path: str | os.PathLike[str], about: dict[str, Any], arrays: Arrays) -> None:
    """Write arrays to ``path``, with what is said about them."""
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects, which are not saved; use arrays of numbers")
    header = json.dumps({"format": FORMAT, "version": VERSION, **about}).encode()
    if len(header) > LARGEST_HEADER:
        raise ValueError(f"the parameters take {len(header)} bytes, more than {LARGEST_HEADER}; shorten them")
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    arrays["header"] = np.frombuffer(header, dtype=np.uint8)
    arrays["digest"] = _digest(arrays)
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is no folder; create it before saving to {target}")
    content = io.BytesIO()
    np.savez_compressed(content, **cast(Any, arrays))
    write_whole(target, content.getvalue())


def read_arrays(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a file that is whole, ours and of a version that we know."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist; save an agent there first: agent.save(path)")
    header: Any = None
    size = 0
    if Path(path).is_file():
        with _Bounded(io.FileIO(path)) as file:
            try:
                size, header, arrays = _unpacked(file, largest)
            except Exception:  # zipfile, zlib, numpy and json fail in a dozen ways
                header = None
    refuse_large(path, size, largest)
    if not isinstance(header, dict) or header.get("format") != FORMAT or type(header.get("version")) is not int:
        raise ValueError(f"{path} is not a saved ucbf agent, or is damaged; give a file that agent.save wrote")
    if header["version"] < VERSION:
        raise ValueError(
            f"{path} has format version {header['version']}, older than {VERSION}, and is not read any more: let the "
            "agent learn again, and save it"
        )
    if header["version"] > VERSION:
        raise ValueError(
            f"{path} has format version {header['version']}, newer than {VERSION}; upgrade ucbf to read it"
        )
    if not np.array_equal(arrays.pop("digest", np.empty(0)), _digest(arrays)):
        raise ValueError(f"{path} was changed after it was written: its digest does not match; save the agent again")
    del arrays["header"]
    return header, arrays


def refuse_large(path: str | os.PathLike[str], size: int, largest: int) -> None:
    """An error where a file needs more room than it may take."""
    if size > largest:
        raise ValueError(
            f"{path} asks for {size} bytes, more than {largest}; if you trust it, load it with largest={size}"
        )


def said(error: Exception) -> str:
    """What went wrong, in words; some errors have none."""
    return str(error) or type(error).__name__


# -- reading what somebody else may have written ---------------------------------------------------------


class _Bounded(io.BufferedReader):
    """A file of which little is read at a time, whatever it says of itself."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > AT_A_TIME:
            raise ValueError(f"{size} bytes at a time")
        return super().read(size)


def _unpacked(file: _Bounded, largest: int) -> tuple[int, Any, Arrays]:
    """The bytes of all arrays as declared; if those are not too many, the header and the arrays."""
    with zipfile.ZipFile(file) as stored:
        entries = {entry.filename.removesuffix(".npy"): entry for entry in stored.infolist()}
        size = sum(entry.file_size for entry in stored.infolist())
        if size > largest:
            return size, None, {}
        if len(entries) != len(stored.infolist()) or entries["header"].file_size > LARGEST_HEADER + 1000:
            raise ValueError("names twice, or a header that is too long")
        header = json.loads(_array(stored, entries["header"]).tobytes())
        return size, header, {name: _array(stored, entry) for name, entry in entries.items()}


def _array(stored: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """One array of plain numbers, of the size that the zip and its own header agree on."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("packed in a way that does not say how much is unpacked")
    with stored.open(entry) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("another format of arrays")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        size = math.prod(shape) * dtype.itemsize
        if dtype.kind not in "biuf" or fortran or min(shape, default=0) < 0 or stream.tell() + size != entry.file_size:
            raise ValueError("not an array of numbers, or of another size")
        content = bytearray()
        while len(content) < size:
            chunk = stream.read(min(AT_A_TIME, size - len(content)))
            if not chunk:
                raise EOFError("less than was declared")
            content += chunk
        return np.frombuffer(content, dtype).reshape(shape)


def _preset(given: Any) -> SavedPreset | None:
    if given is None:
        return None
    kind, parameters = given
    return SavedPreset(str(kind), {name: _tuples(value) for name, value in parameters.items()})


def _tuples(value: Any) -> Any:
    """A parameter of a preset, with tuples for JSON's lists."""
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


def _digest(arrays: Arrays) -> NDArray[np.uint8]:
    """[32] SHA-256 of names, types, shapes and contents."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(array.tobytes())
    return np.frombuffer(sha.digest(), dtype=np.uint8)


def plain(name: str, value: Any) -> Any:
    """A parameter as JSON can say it; floats survive exactly."""
    if isinstance(value, Disturbance):
        return {
            "pmf": value.pmf.tolist(),
            **({"low": value.low} if value.is_line else {"values": value.values.tolist()}),
        }
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {key: plain(f"{name}.{key}", part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(name, part) for part in value]
    raise TypeError(
        f"parameter {name} is {value!r:.60}, which cannot be saved; use numbers, text, a Disturbance, or lists and "
        "tables of those"
    )


def _is_law(value: Any) -> bool:
    return isinstance(value, dict) and set(value) in ({"pmf", "low"}, {"pmf", "values"})


def _revived(value: Any) -> Any:
    """A parameter from what JSON says of it."""
    if _is_law(value):
        return Disturbance(**value)
    return {key: _revived(part) for key, part in value.items()} if isinstance(value, dict) else value

"""How files are written and named by their contents: one rule for agents, results and pictures."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import time
import uuid
from pathlib import Path

FLEET = "fleet.json"  # by which a folder of plans of many items is known
ITEMS = "items.csv"  # by which a folder with one for each of many items is known
ABANDONED = 3600.0  # seconds after which an unfinished file was left by a process that was killed


def digest(content: bytes) -> str:
    """Sixteen hexadecimal digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def write_whole(path: Path, content: bytes, keep: bool = False) -> None:
    """Write a file under another name, read it back and rename it: nobody ever sees an unfinished or damaged file.

    Unfinished ones of the same name, which writers that were killed left behind, are removed.

    keep: leave a file that is already there as it is
    """
    write_among_many(path, content, keep)
    remove_parts(path.parent, path.name)


def write_among_many(path: Path, content: bytes, keep: bool = False) -> None:
    """The same in a folder of many files, which is not listed here: :func:`remove_parts` is called once for all."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if part.read_bytes() != content:
            raise OSError(f"{path} does not read back as it was written; an earlier file is kept: check the disk")
        if keep:
            with contextlib.suppress(FileExistsError):
                os.link(part, path)
        else:
            os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def remove_parts(folder: Path, name: str | None = None) -> None:
    """Remove unfinished files, of ``name`` or of any file in a folder, unless a process may still be writing them."""
    for part in folder.glob(f".{'*' if name is None else glob.escape(name) + '.*'}.part"):
        with contextlib.suppress(OSError):  # another process removed it, or we may not
            if time.time() - part.stat().st_mtime > ABANDONED:
                part.unlink()

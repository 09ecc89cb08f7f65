"""How files are written and named by their contents: one rule for agents, results and pictures."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import time
import uuid
from pathlib import Path

LEFT_BEHIND = 3600.0  # seconds after which what is half written is taken to be a killed writer's


def digest(content: bytes) -> str:
    """Sixteen hexadecimal digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def write_whole(path: Path, content: bytes, keep: bool = False) -> None:
    """Write a file under another name, read it back and rename it: nobody ever sees half of it, or a damaged one.

    keep: an earlier file stays
    """
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if part.read_bytes() != content:
            raise OSError(f"{path} was not written as it should be, and an earlier one is kept; check the disk")
        if keep:
            with contextlib.suppress(FileExistsError):
                os.link(part, path)
        else:
            os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    remove_parts(path.parent, path.name)


def remove_parts(folder: Path, name: str | None = None) -> None:
    """Remove what killed writers of ``name``, or of any file, left in a folder; not what somebody may be writing."""
    for part in folder.glob(f".{'*' if name is None else glob.escape(name) + '.*'}.part"):
        with contextlib.suppress(OSError):  # another writer was faster, or it is not ours to remove
            if time.time() - part.stat().st_mtime > LEFT_BEHIND:
                part.unlink()

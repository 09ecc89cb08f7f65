"""How files are written and named by their contents: one rule for agents, results and pictures."""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from pathlib import Path


def digest(content: bytes) -> str:
    """Sixteen hexadecimal digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def write_whole(path: Path, content: bytes, keep: bool = False) -> None:
    """Write a file under another name and rename it: nobody ever sees half of it. ``keep``: an earlier one stays."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if keep:
            with contextlib.suppress(FileExistsError):
                os.link(part, path)
        else:
            os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)

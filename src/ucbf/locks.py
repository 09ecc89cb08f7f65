"""A file that says who is writing, so that two processes do not write at once."""

from __future__ import annotations

import contextlib
import os
import platform
import time
import uuid
from pathlib import Path

from ucbf.errors import UserError

PATIENCE = 30.0  # seconds that a process waits for another
UNSIGNED = 2.0  # seconds after which a lock without a name was left by a process that was killed
FORGOTTEN = 300.0  # seconds after which a lock is taken over, whoever holds it: a journal is written in far less
PAUSE = 0.02  # seconds between two looks
_held: set[str] = set()  # the signatures of locks that this process holds


class LockFile:
    """Held by one process at a time, on any file system, and free again when its holder was killed.

    Who finds it takes it over if its holder no longer lives on this machine, or has held it for longer than anybody
    does. Who took so long must look (:meth:`check`) before it writes.
    """

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.path, self.patience, self.signature = path, patience, ""

    def __enter__(self) -> LockFile:
        self.signature = f"{os.getpid()} {platform.node()} {uuid.uuid4().hex}"
        until = time.monotonic() + self.patience
        while not self._created():
            self._remove_if_left()
            if time.monotonic() > until:
                raise UserError(
                    f"{self.path} is held by another process ({self._content() or 'without a name'}) for more than "
                    f"{self.patience:g} seconds; wait for it, or delete the file if no such process is there"
                )
            time.sleep(PAUSE)
        _held.add(self.signature)
        return self

    def __exit__(self, *_: object) -> None:
        _held.discard(self.signature)
        if self._content() == self.signature:
            self.path.unlink(missing_ok=True)

    def check(self) -> None:
        """An error if another process took it over."""
        if self._content() != self.signature:
            raise UserError(
                f"{self.path} was taken over by another process; nothing was written: give the command again"
            )

    def _created(self) -> bool:
        try:
            file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except (FileExistsError, PermissionError):  # Windows denies what is just being deleted
            if not self.path.exists() and not os.access(self.path.parent, os.W_OK):
                raise
            return False
        try:
            os.write(file, self.signature.encode())
        finally:
            os.close(file)
        return True

    def _content(self) -> str | None:
        """The signature of its holder; None if there is no lock."""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def _remove_if_left(self) -> None:
        """Remove the lock if its holder is gone.

        It is moved aside first: of several processes that see it, one moves it. One that comes late moves the lock of
        the first, sees that, and puts it back.
        """
        found = self._content()
        if found is None or not self._is_left(found):
            return
        aside = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}.part")
        with contextlib.suppress(OSError):
            os.rename(self.path, aside)
            if aside.read_text(encoding="utf-8", errors="replace") == found:
                aside.unlink()
            else:
                os.replace(aside, self.path)

    def _is_left(self, content: str) -> bool:
        try:
            age = time.time() - self.path.stat().st_mtime
        except OSError:
            return False
        who = content.split()
        if len(who) != 3 or not who[0].isdigit():
            return age > UNSIGNED
        if who[1] == platform.node() and os.name == "posix" and content not in _held:
            return int(who[0]) == os.getpid() or not _lives(int(who[0])) or age > FORGOTTEN
        return age > FORGOTTEN


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True

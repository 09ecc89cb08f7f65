"""A journal: a file of JSON lines to which lines are added, and in which none is ever changed.

Every line ends with a checksum of itself and of the line above, so that a line that was changed, removed or moved is
noticed. A line counts when it is on the disk with its checksum; what a killed process left unfinished at the end is
ignored, and removed before the next line is written. The first line says what the journal is about.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ucbf.errors import UserError
from ucbf.files import digest
from ucbf.locks import LockFile

FORMAT, VERSION = "ucbf journal", 1
CHECK = re.compile(rb',"check":"([0-9a-f]{16})"\}$')
Record = dict[str, Any]


class Contents(NamedTuple):
    """What a journal holds."""

    about: Record | None  # what its first line says of it; None where there is no journal yet
    records: tuple[Record, ...]  # those of the lines after it; record i stands in line i + 2
    whole: int  # bytes of whole lines
    unfinished: int  # bytes after them, of a line that nobody finished
    closed: bool  # whether the last whole line has its end of line
    check: str  # that of the last whole line


class Journal:
    """A file of JSON lines.

    Parameters
    ----------
    path
        Where it is, or will be.
    about
        What it is about: the first line of a new journal. One that is about something else is refused.
    """

    def __init__(self, path: Path, about: Record) -> None:
        self.path, self.about = path, about

    def read(self) -> Contents:
        """All whole lines; an error that names the first that is damaged."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            content = b""
        found = _parsed(self.path, content)
        if found.about is not None:
            self._check_about(found.about)
        return found

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Hold the journal against other processes while it is read and added to."""
        with LockFile(self.path.with_name(f"{self.path.name}.lock")) as lock:
            yield Writing(self, lock)

    def _check_about(self, about: Record) -> None:
        if about.get("format") != FORMAT:
            raise UserError(f"{self.path} is not a journal of ucbf; move it away")
        if about.get("version") != VERSION:
            raise UserError(
                f"{self.path} has format version {about.get('version')!r:.20}, this ucbf knows {VERSION}; use the "
                "version of ucbf that wrote it, or move it away"
            )
        for name, expected in self.about.items():
            if about.get(name) != expected:
                raise UserError(
                    f"{self.path} is of {name} {about.get(name)!r:.60}, and what was learned is of {expected!r:.60}; "
                    "move the journal away to begin a new one, or learn as before"
                )


class Writing:
    """A journal that no other process writes to."""

    def __init__(self, journal: Journal, lock: LockFile) -> None:
        self.journal, self.lock = journal, lock
        self.contents = journal.read()

    def append(self, records: Sequence[Record]) -> None:
        """Add lines. When this returns they are on the disk; if it fails, none of them counts."""
        if not records:
            return
        now, path = self.contents, self.journal.path
        fresh = now.about is None
        about = {"format": FORMAT, "version": VERSION, **self.journal.about}
        lines = b"" if now.closed else b"\n"
        check = now.check
        for record in [about, *records] if fresh else records:
            line, check = _line(record, check)
            lines += line
        self.lock.check()
        try:
            if not path.exists():
                with open(path, "xb"):
                    pass
                _settle(path.parent)
            with open(path, "r+b") as file:
                _write_at(file, now.whole, lines)
        except OSError as error:
            raise UserError(
                f"{path} could not be written: {error.strerror or error}; nothing was taken in: make room, or mend "
                "what is wrong there, and give the same command again"
            ) from None
        self.contents = self.journal.read()


def _write_at(file: Any, end: int, lines: bytes) -> None:
    """Put lines after the first ``end`` bytes, in place of what is there, onto the disk; or leave those bytes alone."""
    try:
        file.truncate(end)
        file.seek(end)
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(OSError):  # else what was written counts as unfinished, or as given and not taken in
            os.ftruncate(file.fileno(), end)
        raise


def _settle(folder: Path) -> None:
    """See to it that the name of a new file is on the disk."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _line(record: Record, above: str) -> tuple[bytes, str]:
    """A record as a line, and its checksum. above: the checksum of the line above."""
    body = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    check = digest(above.encode() + body)
    return body[:-1] + b',"check":"' + check.encode() + b'"}\n', check


def _parsed(path: Path, content: bytes) -> Contents:
    records: list[Record] = []
    whole, check, closed = 0, "", True
    for number, line in enumerate(content.split(b"\n"), start=1):
        end = whole + len(line) + 1
        closed = end <= len(content)
        if not closed and not line:  # what follows the end of the last line
            closed = True
            break
        found = _record(line, check)
        if found is None and not closed:
            return _contents(records, whole, len(line), True, check)
        if found is None:
            raise UserError(
                f"{path}, line {number} is damaged: its checksum does not match. Put the file back from a copy; or "
                f"keep its first {number - 1} lines only, and take in again what happened after them"
            )
        record, check = found
        records.append(record)
        whole = min(end, len(content))
    return _contents(records, whole, 0, closed, check)


def _contents(records: list[Record], whole: int, unfinished: int, closed: bool, check: str) -> Contents:
    return Contents(records[0] if records else None, tuple(records[1:]), whole, unfinished, closed, check)


def _record(line: bytes, above: str) -> tuple[Record, str] | None:
    """A line's record and checksum; None if it is damaged."""
    sealed = CHECK.search(line)
    if sealed is None:
        return None
    body, check = line[: sealed.start()] + b"}", sealed[1].decode()
    if digest(above.encode() + body) != check:
        return None
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return (record, check) if isinstance(record, dict) else None

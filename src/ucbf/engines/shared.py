"""The folder that all workers write to."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import NamedTuple

from ucbf.errors import FailedError
from ucbf.files import digest


class SharedFolder(NamedTuple):
    """A folder that workers write to, and a file in it by which they know that it is the driver's."""

    folder: str
    name: str  # of the file
    content: str  # digest of what is in it

    @classmethod
    def of(cls, folder: Path, name: str) -> SharedFolder:
        """A folder as the driver sees it."""
        return cls(str(folder.absolute()), name, digest((folder / name).read_bytes()))

    def check(self) -> None:
        """An error if this machine does not see it."""
        try:
            found = digest((Path(self.folder) / self.name).read_bytes())
        except OSError:
            found = ""
        if found != self.content:
            raise FailedError(
                f"the worker on {platform.node()} does not see the results in {self.folder}; workers write them "
                "there themselves: give a folder that all machines share (--out)"
            )

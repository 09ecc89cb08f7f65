"""The oldest versions that pyproject.toml allows, as ``name==version``, for pip's ``--constraint``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

if __name__ == "__main__":
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    project = declared["project"]
    groups = [declared["build-system"]["requires"], project["dependencies"], *project["optional-dependencies"].values()]
    for requirement in sorted({requirement for group in groups for requirement in group}):
        if requirement.startswith("ucbf["):  # our own extras, which are among the groups
            continue
        if not re.fullmatch(r"[\w-]+>=[\d.]+(b\d+)?", requirement):
            raise SystemExit(f"{requirement!r} states no lower bound; write it as name>=version")
        print(requirement.replace(">=", "=="))

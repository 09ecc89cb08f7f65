"""Which files of a folder ``ucbf learn`` writes: no input is one of them, and nothing that is not ours is removed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ucbf.advice.model_file import KNOWLEDGE
from ucbf.errors import UserError
from ucbf.following import model, stores
from ucbf.following.model import NAME as MODEL
from ucbf.following.stores import FITTED
from ucbf.following.stores import NAME as STORE

BY_LEVEL = "policy_by_level.csv"
OF_BOTH = ("comparison.csv",)
OF_ORDERS = (*OF_BOTH, "orders.csv", "forecast.csv", STORE)
OF_POLICIES = (*OF_BOTH, "policy.csv", "policy.png", BY_LEVEL, "law.csv", MODEL)
PAGES = ("page.html", "summary.md")
WRITTEN = (*PAGES, *OF_ORDERS, FITTED, *OF_POLICIES, KNOWLEDGE, "agent.npz", "agent-*.npz")


def refuse_inputs(inputs: Iterable[Path | None], folder: Path, names: Collection[str], below: int = 0) -> None:
    """A UserError where an input is one of the files that are written to a folder, or removed there.

    names: of these files; below: how many folders stand between, such as 1 where each item has a folder of its own
    """
    for given in inputs:
        if given is None:
            continue
        for path in (given.resolve(), given.parent.resolve() / given.name):  # a link, and where it leads
            found = next((name for name in names if fnmatchcase(path.name.lower(), name.lower())), None)
            if found is not None and len(path.parents) > below and _is(path.parents[below], folder):
                raise UserError(
                    f"{given} is an input, and stands where {found} of the results is written or removed; give another "
                    "folder (--out), or move the input away"
                )


def _is(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def results_in(folder: Path) -> set[str]:
    """The names of the files that an earlier ``ucbf learn`` left in a folder, by what it says of itself."""
    store, policies, found = _told(folder / STORE, stores.FORMAT), _told(folder / MODEL, model.FORMAT), set[str]()
    if store is not None:
        found |= {*OF_ORDERS, *([FITTED] if store.get("fitted") else [])}
    if policies is not None:
        kinds = policies.get("kinds")
        stored = (
            [each.get("agent") for each in kinds.values() if isinstance(each, dict)] if isinstance(kinds, dict) else []
        )
        names = [each.get("name") for each in (*stored, policies.get("knowledge")) if isinstance(each, dict)]
        found |= {*OF_POLICIES, *(name for name in names if isinstance(name, str) and Path(name).name == name)}
    return found


def _told(path: Path, form: str) -> dict[str, Any] | None:
    """What a file of ours says; None if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and content.get("format") == form else None


def remove_results(folder: Path, names: Collection[str]) -> None:
    """Remove results of earlier learning, which would be followed or read in place of what is new."""
    for name in sorted(names, key=lambda name: name in (MODEL, STORE)):  # which tell of the others
        (folder / name).unlink(missing_ok=True)


def refuse_foreign_store(folder: Path) -> None:
    """A UserError where a file that is not ours would be followed in place of the policies to be written."""
    path = folder / STORE
    if path.is_file() and _told(path, stores.FORMAT) is None:
        raise UserError(
            f"{path} is damaged, or was not written by ucbf learn; move it away, or give another folder (--out)"
        )

"""Control of systems whose mechanics are known and whose disturbances are not: S' = f(S, A) + W.

``System`` is what a learner is told, ``World`` what is really out there; an agent such as ``UCBf`` learns in it and
``simulate`` measures how well. The public names stand once, in ``__init__.pyi``; each is imported on first use, so
that ``import ucbf`` is quick.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
import sys
from typing import Any

__version__ = "0.2.0"

_STUB = (pkgutil.get_data("ucbf", "__init__.pyi") or b"").decode()  # from a zip file too
_HOMES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", _STUB, flags=re.MULTILINE)}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        near = difflib.get_close_matches(name, _HOMES, n=1)
        raise AttributeError(
            f"module 'ucbf' has no attribute {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
        )
    if _HOMES[name] == "ucbf":
        return importlib.import_module(f"ucbf.{name}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__


if "gymnasium" in sys.modules:  # else ucbf.envs registers the environments
    importlib.import_module("ucbf.registration")

"""Make ucbf's environments known to Gymnasium as soon as it is imported, without importing it.

``import ucbf`` and ``ucbf --help`` stay quick for those who do not use it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

READY = ("Inventory", "Battery", "Reservoir", "Queue", "Shower")  # of ucbf.systems


def register_when_imported() -> None:
    """Register now if Gymnasium is there, else when it comes."""
    if "gymnasium" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _Waiting())


def _register() -> None:
    import gymnasium

    ready = [(name, "system", {"kind": name.lower()}) for name in READY]
    for name, build, fixed in [("Random", "random", {}), ("World", "given", {}), *ready]:
        gymnasium.register(
            id=f"ucbf/{name}-v0",
            entry_point=f"ucbf.envs:{build}_env",
            vector_entry_point=f"ucbf.envs:{build}_vector_env",
            kwargs=fixed,
        )


class _Waiting(MetaPathFinder):
    """Lets the import of Gymnasium run its course, and registers at its end."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The ordinary spec of Gymnasium, with registration after it."""
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                _register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec

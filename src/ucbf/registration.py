"""Registers the environments with Gymnasium, when this module is imported.

``import ucbf.envs`` imports it, and so does ``gymnasium.make("ucbf.envs:ucbf/Random-v0")``. ``import ucbf`` imports it
only where Gymnasium has been imported before, so that it stays quick for those who do not use Gymnasium. An entry point
in the package's metadata would not do: Gymnasium reads none since version 1.0.
"""

from __future__ import annotations

import gymnasium

PRESETS = ("Inventory", "Battery", "Reservoir", "Queue", "Shower")  # of ucbf.systems


def _register(name: str, builder: str, **fixed: str) -> None:
    gymnasium.register(
        id=f"ucbf/{name}-v0",
        entry_point=f"ucbf.envs:{builder}_env",
        vector_entry_point=f"ucbf.envs:{builder}_vector_env",
        kwargs=fixed,
    )


_register("Random", "random")
_register("World", "given")
for _name in PRESETS:
    _register(_name, "system", kind=_name.lower())

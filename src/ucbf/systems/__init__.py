"""Presets: systems that are met often, in the user's units. Each builds a System and, given a distribution, a World."""

from __future__ import annotations

from ucbf.systems.base import Preset
from ucbf.systems.battery import Battery
from ucbf.systems.inventory import Inventory
from ucbf.systems.queue import Queue
from ucbf.systems.reservoir import Reservoir
from ucbf.systems.shower import Shower

PRESETS: dict[str, type[Preset]] = {kind.kind: kind for kind in (Inventory, Battery, Reservoir, Queue, Shower)}

__all__ = ["PRESETS", "Battery", "Inventory", "Preset", "Queue", "Reservoir", "Shower"]

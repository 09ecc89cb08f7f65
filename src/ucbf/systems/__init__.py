"""Systems that are met often, in natural units: each a builder of a System and, given a law, of a World."""

from __future__ import annotations

from ucbf.systems.base import Ready
from ucbf.systems.battery import Battery
from ucbf.systems.inventory import Inventory
from ucbf.systems.queue import Queue
from ucbf.systems.reservoir import Reservoir
from ucbf.systems.shower import Shower

SYSTEMS: dict[str, type[Ready]] = {kind.kind: kind for kind in (Inventory, Battery, Reservoir, Queue, Shower)}

__all__ = ["SYSTEMS", "Battery", "Inventory", "Queue", "Ready", "Reservoir", "Shower"]

"""Many items of one shape.

items.py learns and plans, parts.py says what each item pays, sharing.py shares what is scarce, files.py goes from a
file to plans.
"""

from ucbf.fleet.files import Columns, learn_fleet
from ucbf.fleet.items import Fleet
from ucbf.fleet.sharing import Shared

__all__ = ["Columns", "Fleet", "Shared", "learn_fleet"]

"""Many items.

items.py learns and plans for items of one shape, knowledge.py keeps what is known of W, parts.py says what each item
pays, sharing.py shares what is scarce, comparing.py says what planning with a distribution is worth. files.py goes from
a file to plans: reading.py reads (text.py what is text, rows.py what is
handed on), notes.py says what looks wrong, learning.py groups items by shape.
"""

from ucbf.fleet.files import learn_fleet
from ucbf.fleet.items import Fleet
from ucbf.fleet.rows import Columns
from ucbf.fleet.sharing import Shared

__all__ = ["Columns", "Fleet", "Shared", "learn_fleet"]

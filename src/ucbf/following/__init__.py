"""After ``ucbf learn``: every morning, take in what happened, and say what to do.

A folder that ``ucbf learn`` wrote holds the agents as they were learned, and ``model.json`` about them. What happens
after that stands in a journal beside them, which only grows. What is known now is the agents and a replay of the
journal; so nothing that was acknowledged is lost, and nothing counts twice, whenever a process is killed.

``knowledge.py`` is what is known of W at a time; ``places.py`` where forecasts are quantiles, ``levels.py`` where what
to do depends on the level of the last steps.
"""

from __future__ import annotations

from ucbf.following.advised import Advised, Taken
from ucbf.following.follower import Follower, follow
from ucbf.following.happened import Happened, read_happened, read_states
from ucbf.following.standing import Service, Status

__all__ = [
    "Advised",
    "Follower",
    "Happened",
    "Service",
    "Status",
    "Taken",
    "follow",
    "read_happened",
    "read_states",
]

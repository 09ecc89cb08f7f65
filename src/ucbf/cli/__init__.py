"""The ``ucbf`` command: one file for each group of commands, and files for what several of them share.

app.py puts the commands together. What is heavy (numpy, matplotlib, ...) is imported within the command that needs it,
so that ``ucbf --help`` is quick.
"""

from __future__ import annotations

from ucbf.cli.app import main

__all__ = ["main"]

"""Pages of the gallery as Jupyter notebooks: ``python docs/notebooks.py`` writes them beside the pages.

A page is the source. Its examples in Python become cells of code, without prompts and output; the text between them
becomes cells of text.
"""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

GALLERY = Path(__file__).parent / "gallery"
NAMES = ("operations", "research", "gymnasium")
FENCED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def notebook(page: str) -> str:
    """The text of a notebook with the same code and the same words as a page."""
    parts = FENCED.split(page)
    cells = [_cell(i, "code", _code(part)) if i % 2 else _cell(i, "markdown", part) for i, part in enumerate(parts)]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    whole = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _code(examples: str) -> str:
    """Examples without their prompts and without what they print."""
    return "".join(example.source for example in doctest.DocTestParser().get_examples(examples))


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    lines = text.strip("\n").splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


if __name__ == "__main__":
    for name in NAMES:
        (GALLERY / f"{name}.ipynb").write_text(notebook((GALLERY / f"{name}.md").read_text()))

"""Do the links of the built manual lead somewhere, and is it read without a network? ``docs/links.py build/docs``.

Links to files, to headings of the same page and of others, and all that a browser would load by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """What a page is linked by, what it links to, and what is loaded with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the names and addresses of an element."""
        given = {name: value for name, value in attrs if value}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if LOADED.get(tag) in given:
            self.loaded.append(given[LOADED[tag]])


def faults(folder: Path) -> Iterator[str]:
    """What is wrong, a line for each."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.resolve().rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for address in page.links + page.loaded:
            url = urlsplit(address)
            if url.scheme or url.netloc:
                if address in page.loaded and url.scheme != "data":
                    yield f"{name} loads {address}"
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not target.exists():
                yield f"{name} links to {address}, which is not there"
            elif name.parts[0] == "_modules":  # where Sphinx takes the heading by the name of one module for all
                continue
            elif url.fragment and target in pages and unquote(url.fragment) not in pages[target].names:
                yield f"{name} links to {address}; {target.name} has no such heading"


if __name__ == "__main__":
    sys.exit("\n".join(faults(Path(sys.argv[1]))) or 0)

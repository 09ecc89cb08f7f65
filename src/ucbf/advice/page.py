"""The page on a piece of advice, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from ucbf.advice.judging import LEARNED
from ucbf.advice.result import Advice
from ucbf.advice.sections import CAVEATS, COLUMNS, NO_CAVEATS, Sections, sections_of
from ucbf.reports import markdown_table


@dataclass(frozen=True)
class Picture:
    """A picture that stands in a page of HTML."""

    svg: str  # an <svg> element that needs no other file
    caption: str
    alt: str  # what it shows, for those who do not see it


@dataclass(frozen=True)
class Pictures:
    """The pictures of a page."""

    policies: Mapping[str, Picture]  # by the keys of ``Advice.by_kind``
    value: Picture | None
    law: Picture | None
    comparison: Picture | None  # None where nothing followed


def summary(advice: Advice, given: Collection[str] | None = None) -> str:
    """One page in Markdown: the data, caveats, the parameters, the policy, its value, and how it did.

    given: the parameters that the user chose; the page lists the others as assumed. None: all were chosen
    """
    return markdown(sections_of(advice, given))


def markdown(told: Sections) -> str:
    """The page in Markdown."""
    parts = [f"# {told.title}", " ".join(told.data)]
    if told.caveats:
        parts += [f"## {CAVEATS}", _bullets(told.caveats)]
    parts += [*map(str, told.parameters), "## What to do"]
    for each in told.rules:
        parts += [f"### {each.heading}", _bullets(each.lines)] if each.heading else [_bullets(each.lines)]
    parts += ["## What it is worth", _bullets([*told.worth, *told.assumptions])]
    parts += [f"## {told.judgement.heading}", told.judgement.sentence]
    if told.judgement.rows:
        rows = [[row.policy, row.reward, f"{row.ahead} {row.interval}".strip()] for row in told.judgement.rows]
        parts.append(markdown_table(list(COLUMNS), rows).strip())
    return "\n\n".join(parts) + "\n"


def _bullets(lines: Iterable[object]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def html(told: Sections, pictures: Pictures | None = None) -> str:
    """The page in HTML: one file, with its styles and pictures, that opens anywhere without a network.

    pictures: what :func:`ucbf.figures.page_pictures` gives; None: a page without pictures
    """
    return rendered(
        "page.html.jinja",
        told=told,
        pictures=pictures,
        caveats=CAVEATS,
        no_caveats=NO_CAVEATS,
        columns=COLUMNS,
        learned=LEARNED,
    )


def rendered(template: str, **given: Any) -> str:
    """A page of HTML from one of the templates here, in the style that all pages share."""
    from jinja2 import Environment, StrictUndefined

    folder = resources.files("ucbf.advice")
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style = (folder / "page.css").read_text(encoding="utf-8")
    return made.from_string((folder / template).read_text(encoding="utf-8")).render(style=style, **given)

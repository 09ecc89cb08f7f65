"""Numbers and counts as a page shows them."""

from __future__ import annotations


def show_number(x: float) -> str:
    """A number with three digits, or with all of those before the point."""
    return "0" if abs(x) < 1e-9 else f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def show_count(n: int, noun: str) -> str:
    """A count with its noun: "1 row", "2 rows"."""
    return f"{n} {noun}" + ("" if n == 1 else "s")


def a_step(noun: str) -> str:
    """How often, of something that is so each time: "a day", "an hour"."""
    return f"an {noun}" if noun == "hour" else f"a {noun}"

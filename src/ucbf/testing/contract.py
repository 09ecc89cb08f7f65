"""How a contract is enforced: a rule is a function that returns if the rule holds, and says what it saw if not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ucbf.checks import one_of
from ucbf.errors import in_a_line

Rule = Callable[..., None]


class ContractError(AssertionError):
    """A rule of a contract is broken; ``rule`` is its name."""

    def __init__(self, message: str, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


class BrokenError(AssertionError):
    """What a rule saw, and the remedy; :func:`enforce` adds which rule it was."""


def require(holds: Any, seen: str, remedy: str) -> None:
    """An error with what was seen and what to do about it, unless the rule holds."""
    if not holds:
        raise BrokenError(f"{seen}; {remedy}")


def require_equal(one: Any, other: Any, seen: str, remedy: str) -> None:
    """The same for two arrays that must be equal, bit for bit; the first place where they differ is named."""
    one, other = np.asarray(one), np.asarray(other)
    require(one.shape == other.shape, f"{seen}: their shapes are {one.shape} and {other.shape}", remedy)
    apart = np.argwhere(one != other)
    if len(apart):
        at = tuple(int(i) for i in apart[0])
        require(False, f"{seen}: at {list(at)} they are {one[at]} and {other[at]}", remedy)


def require_refusal(call: Callable[[], Any], errors: tuple[type[Exception], ...], what: str, remedy: str) -> None:
    """An error unless the call ends with one of ``errors``."""
    try:
        call()
    except errors as error:
        require(str(error), f"{what} was refused without a word", "say the value, what was required, and the remedy")
        return
    except Exception as error:
        raise BrokenError(f"{what} raised {in_a_line(error)}; {remedy}") from error
    require(False, f"{what} was accepted", remedy)


def chosen(rules: Sequence[Rule], skip: Collection[str]) -> list[Rule]:
    """The rules but for those to be skipped, by name."""
    names = {one_of("rule", name, [rule.__name__ for rule in rules]) for name in skip}
    return [rule for rule in rules if rule.__name__ not in names]


def enforce(rule: Rule, who: str, *given: Any, place: str = "") -> None:
    """Try a rule; if it is broken, or anything fails, a :class:`ContractError` says so.

    who: what is checked; place: where, such as the world that it was in
    """
    name = rule.__name__
    title, within = (rule.__doc__ or "").partition("\n")[0], f" in {place}" if place else ""
    try:
        rule(*given)
    except BrokenError as broken:
        raise ContractError(f"{who} breaks the rule {name}{within}: {broken}. The rule: {title}", name) from (
            broken.__cause__
        )
    except Exception as error:
        raise ContractError(
            f"{who} breaks the rule {name}{within}: it raised {in_a_line(error)}; see the traceback above. "
            f"The rule: {title}",
            name,
        ) from error


def name_of(make: Any, otherwise: str) -> str:
    """The name of a class or function, also of one with some arguments given; ``otherwise`` for one without a name."""
    name = str(getattr(getattr(make, "func", make), "__name__", "<none>"))
    return otherwise if name.startswith("<") else name


@contextmanager
def a_file() -> Iterator[Path]:
    """A path to save to, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "saved"

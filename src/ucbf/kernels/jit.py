"""How functions are compiled, and kept on disk.

numba's own cache notices an edit only in the file of the function that it loads. A kernel is compiled into its callers,
which stand in other files: so what is kept is valid for one text of this whole package, and for no other.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numba
from numba.core import config, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import CPUDispatcher
from numba.extending import lower_builtin, overload, type_callable

from ucbf.kernels.parts import PartCompiler, WholeCompiler

Function = TypeVar("Function", bound=Callable[..., Any])

# What all functions are compiled with: IEEE arithmetic, so that interpreted means the same.
ALL: Any = {"nopython": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
UNCOUNTED: Any = {"_nrt": False}
MERGED: Any = {"forceinline": True} | UNCOUNTED
AS_PART: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler}


def compiled(function: Function) -> Function:
    """For a function that Python calls: compile on first use, keep on disk, run without the GIL."""
    return _jit(function)


def inner(function: Function) -> Function:
    """For a function that compiled functions call. Where Python calls it too, it is compiled once more, by itself."""
    return _part(function)


def inlined(function: Function) -> Function:
    """The same, merged into the functions that call it, and without counting references to arrays.

    Passing and counting two dozen arrays costs more than a loop. Such a function must not make or slice an array, nor
    call a method of one.
    """
    return _part(function, **MERGED)


def apart(function: Function) -> Function:
    """The same without counting references, as :func:`inlined`, but not merged into its callers: for long functions."""
    return _part(function, **UNCOUNTED)


class ByType(Protocol):
    """A function that is another one for each type of one of its arguments."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the one for the type of that argument."""

    def state(self, kind: type, function: Callable[..., Any]) -> None:
        """State the function for arguments of this kind."""


def by_type(position: int, merged: bool = True) -> ByType:
    """A function that is chosen by the type of the argument at ``position``, a NamedTuple of arrays.

    The choice is made when numba compiles, or when Python runs. ``function.state(kind, kernel)`` states one.

    Parameters
    ----------
    merged
        Whether the chosen one is merged into its callers: not if it is long.
    """
    kernels: dict[type, Any] = {}

    def chosen(*arguments: Any) -> Any:
        return kernels[type(arguments[position])](*arguments)

    @overload(chosen, strict=False, jit_options=(MERGED if merged else UNCOUNTED) | AS_PART)
    def compiled_choice(*types: Any) -> Any:
        return source(kernels[types[position].instance_class])

    cast(Any, chosen).state = kernels.__setitem__
    return cast(ByType, chosen)


def unsigned(i: int) -> int:
    """i, which is not negative: compiled loops over indices that cannot be counted from the end are twice as quick."""
    return i


def signed(i: int) -> int:
    """The same the other way: an index as it is kept."""
    return i


def _cast_to(kind: Any, function: Any) -> None:
    """Compile a function of an integer that leaves it as it is to a change of its type."""
    type_callable(function)(lambda context: lambda i: kind if isinstance(i, types.Integer) else None)

    @lower_builtin(function, types.Integer)
    def compiled_cast(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.cast(builder, args[0], sig.args[0], sig.return_type)


_cast_to(types.uint64, unsigned)
_cast_to(types.int64, signed)


def entry(kernel: Any, *arguments: Any) -> Any:
    """A compiled function for arguments of these types only: calling it finds no types of dozens of arrays."""
    return kernel.compile(tuple(map(numba.typeof, arguments))) if hasattr(kernel, "compile") else kernel


def source(kernel: Any) -> Any:
    """What a kernel was compiled from: to compile it into its caller, or to run it interpreted."""
    return getattr(kernel, "py_func", kernel)


def _jit(function: Function) -> Function:
    kernel: Any = cast(Any, numba.jit)(**ALL, pipeline_class=WholeCompiler)(function)
    if hasattr(kernel, "_cache"):  # not where numba is told to compile nothing
        with contextlib.suppress(RuntimeError):  # nowhere to keep it: a read-only installation without a home
            kernel._cache = _Cache(function)
    return cast(Function, kernel)


def _part(function: Function, **options: bool) -> Function:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    options = ALL | {"no_cpython_wrapper": True} | options
    return cast(Function, Part(function, targetoptions=options, pipeline_class=PartCompiler))


class Part(CPUDispatcher):
    """A function for compiled functions to call. Where Python calls it, it is compiled once more, by itself."""

    @cached_property
    def alone(self) -> Any:
        """The function for Python."""
        return _jit(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        """Call it from Python."""
        return self.alone(*arguments)


@cache
def stamp() -> str:
    """A digest of every file of this package."""
    texts = sorted((file.name, file.read_bytes()) for file in files(__package__).iterdir() if file.name.endswith(".py"))
    return hashlib.sha256(repr(texts).encode()).hexdigest()


class _Cache(FunctionCache):
    """numba's cache of one function, for one text of the package. A damaged file counts as one that is not there."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        try:
            of_the_file = self._cache_file._source_stamp
            self._cache_file = _SealedFiles(self._cache_path, self._impl.filename_base, (stamp(), of_the_file))
        except AttributeError:
            raise RuntimeError("this numba keeps files in another way, and could take old ones for new") from None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was kept; None if there is nothing, or nothing that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever numba makes of a damaged file
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it, if there is room."""
        with contextlib.suppress(Exception):  # a full disk, or a damaged list that cannot be written anew
            super().save_overload(sig, data)


class _SealedFiles(IndexDataCacheFile):
    """Files of compiled code that end with a digest of the rest: damaged code would crash the process.

    numba numbers them, so that two processes that compile a function for different arguments may give their files one
    name, and a third may run the wrong code. Here text and arguments name the file, which is written before it is
    listed.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep the code for the arguments in ``key``."""
        named = hashlib.sha256(repr((self._source_stamp, key)).encode()).hexdigest()
        name = self._data_name_pattern.format(number=int(named[:15], 16))
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def _dump(self, content: Any) -> bytes:
        written: bytes = super()._dump(content)
        return written + hashlib.sha256(written).digest()

    def _load_data(self, name: str) -> Any:
        written = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(written[:-32]).digest() != written[-32:]:
            raise ValueError(f"{name} is damaged")
        return super()._load_data(name)

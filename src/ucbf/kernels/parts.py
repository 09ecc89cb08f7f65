"""How functions are compiled: those that compiled functions call are optimised inside their callers, and only there.

numba would optimise every such function by itself, and make machine code of it and of a way in from Python, and do all
of that once more in each caller. Two thirds of the time of compiling went there. This leans on private parts of numba.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel.models import TupleModel
from numba.core.typed_passes import NativeLowering
from numba.extending import register_model, typeof_impl

Kind = TypeVar("Kind", bound=type)


class Part(JITCodeLibrary):
    """The code of one function, neither optimised nor turned to machine code."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Nothing is linked in: callers get the parts of this one beside it."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def with_its_own(self) -> list[Any]:
        """Itself, and all parts that it calls."""
        return list(dict.fromkeys([self, *self._linking_libraries]))


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """From typed code to a :class:`Part`."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """As that of numba, up to machine code."""
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        library, (fndesc, call_helper, _, env) = state.library, state["cr"]
        library._ensure_finalized()
        # numba knows a function by its way in from Python; this one leads nowhere.
        named = _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "", 0, env, (library,))
        state.targetctx.insert_user_function(named, fndesc, library.with_its_own())
        state["cr"] = type(state["cr"])(fndesc, call_helper, cfunc=named, env=env)
        return True


class Whole(JITCodeLibrary):
    """The code of a function that Python calls, with all its parts. It is optimised once.

    numba does it twice, to find counts of references that cancel out, of which there are few here.
    """

    def _optimize_final_module(self) -> None:
        made = self._codegen._module_pass_manager()
        passes, *builder = made if isinstance(made, tuple) else (made,)  # newer numbas hand over what made them, too
        passes.run(self._final_module, *builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class WholeLowering(NativeLowering):
    """From typed code to a :class:`Whole`."""

    _name = "whole_lowering"

    def run_pass(self, state: Any) -> bool:
        """As that of numba."""
        state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        done: bool = super().run_pass(state)
        return done


class _Compiler(CompilerBase):
    """numba's own, with another way of lowering."""

    lowering: type[NativeLowering]

    def define_pipelines(self) -> list[Any]:
        """One, for compiled code."""
        manager, own = DefaultPassBuilder.define_nopython_pipeline(self.state), self.lowering
        manager.passes = [(own if kind is NativeLowering else kind, why) for kind, why in manager.passes]
        manager.finalize()
        return [manager]


class PartCompiler(_Compiler):
    """Of parts."""

    lowering = PartLowering


class WholeCompiler(_Compiler):
    """Of what Python calls."""

    lowering = WholeLowering


class Packed(types.NamedTuple):
    """A NamedTuple that compiled functions hand on whole, not as hundreds of numbers and addresses."""


@register_model(Packed)
class PackedModel(TupleModel):
    """One argument of a function."""

    def get_argument_type(self) -> Any:
        """As a variable."""
        return self.get_value_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        """The same."""
        return value

    def from_argument(self, builder: Any, value: Any) -> Any:
        """The same."""
        return value


def packed(kind: Kind) -> Kind:
    """Decorate a NamedTuple of many arrays: it is quicker to compile what it is handed to."""
    typeof_impl.register(kind)(lambda value, c: Packed([typeof_impl(part, c) for part in value], kind))
    return kind

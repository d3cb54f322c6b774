# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function on its way to an executable, step by step: what `trace` and `lower` of `shlo_disc.jit` give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax

from shlo_disc.errors import ProgramError
from shlo_disc.importer.program import read
from shlo_disc.importer.programs import JaxProgram, Program
from shlo_disc.importer.size_equalities import checked_sizes
from shlo_disc.importer.trace_notes import noted_traces
from shlo_disc.runtime.described import some_text, type_text
from shlo_disc.shape_dialect.dtypes import BY_NUMPY

if TYPE_CHECKING:
    from shlo_disc.driver.executable import Executable

Finish = Callable[[Program], "Executable"]
"""Compiles a program that has been read."""


@dataclass(frozen=True)
class Traced:
    """A function that JAX has traced for arguments of some types, whose sizes may be symbolic.

    args_info, out_info: the pytrees of the arguments, (args, kwargs), and of the results, with a
    `jax.ShapeDtypeStruct` at each leaf. jaxpr: the function as JAX has it.
    """

    _function: Callable[..., Any]
    _finish: Finish
    args_info: Any

    def __repr__(self) -> str:
        return f"<Traced {_called(self._function, self.args_info)}>"

    @property
    def jaxpr(self) -> Any:
        """A `jax.core.ClosedJaxpr`. Raises what the function raises when it is traced."""
        return self._traced().jaxpr

    @property
    def out_info(self) -> Any:
        """The types of the results."""
        return self._traced().out_info

    def lower(self) -> Lowered:
        """The function as StableHLO. Raises what `shlo_disc.compile` raises of it."""
        args, kwargs = self.args_info
        source = read(self._function, args, kwargs)
        if not isinstance(source, JaxProgram):
            raise ProgramError(f"{self._function} is no function of JAX's")
        return Lowered(source, self._finish, self.args_info)

    def _traced(self) -> Any:
        args, kwargs = self.args_info
        with noted_traces(), checked_sizes():
            return jax.jit(self._function).trace(*args, **kwargs)


@dataclass(frozen=True)
class Lowered:
    """A function as StableHLO. args_info, out_info: as in `Traced`."""

    _program: JaxProgram
    _finish: Finish
    args_info: Any

    def __repr__(self) -> str:
        return f"<Lowered {_called(self.exported.fun_name, self.args_info)}>"

    @property
    def exported(self) -> Any:
        """The `jax.export.Exported`."""
        return self._program.exported

    @property
    def out_info(self) -> Any:
        """The types of the results."""
        avals = self.exported.out_avals
        leaves = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
        return jax.tree.unflatten(self.exported.out_tree, leaves)

    def as_text(self) -> str:
        """The StableHLO."""
        return str(self.exported.mlir_module())

    def compile(self) -> Executable:
        """The program, compiled once for all sizes. Raises what `shlo_disc.compile` raises."""
        return self._finish(self._program)


def _called(function: Any, args_info: Any) -> str:
    """A function and the types of its arguments: `f(f32[b, 8], f32[8])`."""
    name = function if isinstance(function, str) else getattr(function, "__name__", repr(function))
    leaves = [type_text({"dtype": _dtype_name(leaf.dtype), "shape": leaf.shape}) for leaf in jax.tree.leaves(args_info)]
    return f"{name}({some_text(leaves)})"


def _dtype_name(dtype: Any) -> str:
    found = BY_NUMPY.get(str(dtype))
    return found.name if found else str(dtype)


__all__ = ["Finish", "Lowered", "Traced"]

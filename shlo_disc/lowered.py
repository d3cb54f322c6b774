# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function on its way to an executable, step by step: what `trace` and `lower` of `shlo_disc.jit` give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax

from shlo_disc import importing
from shlo_disc.errors import ProgramError
from shlo_disc.programs import JaxProgram, Program

if TYPE_CHECKING:
    from shlo_disc.executable import Executable

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
        read = importing.read(self._function, args, kwargs)
        if not isinstance(read, JaxProgram):
            raise ProgramError(f"{self._function} is no function of JAX's")
        return Lowered(read, self._finish, self.args_info)

    def _traced(self) -> Any:
        args, kwargs = self.args_info
        return jax.jit(self._function).trace(*args, **kwargs)


@dataclass(frozen=True)
class Lowered:
    """A function as StableHLO. args_info, out_info: as in `Traced`."""

    _program: JaxProgram
    _finish: Finish
    args_info: Any

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


__all__ = ["Finish", "Lowered", "Traced"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Portable artifacts in JAX's own MLIR bindings, which know Shardy; the compiler's do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from shlo_disc.errors import ProgramError

from .formats import BYTECODE_MAGIC

STABLEHLO_VERSION = "1.17.0"
"""The newest that the plugin reads, as its attributes say (`runtime/native/pjrt/api.cpp`)."""


def rewritten(program: bytes, rewrite: Callable[[Any], None], *, keeps_shardy: bool = False) -> bytes:
    """A program, as text or as a portable artifact, after `rewrite` has changed its module; a portable artifact.

    keeps_shardy: ops of Shardy may be left in it, as in what JAX sends. Raises ProgramError.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy as shardy_dialect
    from jaxlib.mlir.dialects import stablehlo as stablehlo_dialect

    sdy, stablehlo = cast(Any, shardy_dialect), cast(Any, stablehlo_dialect)
    with ir.Context() as context, ir.Location.unknown():
        sdy.register_dialect(context)
        stablehlo.register_dialect(context)
        try:
            if not program.startswith(BYTECODE_MAGIC):
                program = stablehlo.serialize_portable_artifact_str(program.decode(), STABLEHLO_VERSION)
            module = stablehlo.deserialize_portable_artifact(context, program)
        except ValueError as error:
            raise ProgramError(f"the program cannot be read: {error}") from None
        rewrite(module)
        version = stablehlo.get_smaller_version(stablehlo.get_current_version(), STABLEHLO_VERSION)
        serialized: bytes = stablehlo.serialize_portable_artifact(module, version, keeps_shardy)
        return serialized


def without_sharding_rules(program: bytes) -> bytes:
    """A portable artifact without the sharding rules of custom calls, and without what constrains shardings.

    Raises ProgramError.
    """
    return program if b"sdy" not in program else rewritten(program, _remove_rules)


def _remove_rules(module: Any) -> None:
    from jaxlib.mlir.ir import WalkResult

    found: list[Any] = []

    def remove(op: Any) -> Any:
        for name in [name for name in op.attributes if name.startswith("sdy.")]:
            del op.attributes[name]
        if op.name in ("sdy.sharding_constraint", "sdy.mesh"):
            found.append(op)
        return WalkResult.ADVANCE

    module.operation.walk(remove)
    for op in found:
        if op.results:
            op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()


__all__ = ["STABLEHLO_VERSION", "rewritten", "without_sharding_rules"]

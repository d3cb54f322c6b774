# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CHLO ops in a program's text, rewritten into StableHLO.

Our MLIR bindings have no CHLO dialect, jaxlib's have. The two share no objects, so the program crosses as text.
"""

from __future__ import annotations

import re

from shlo_disc.errors import ProgramError

_OP = re.compile(r'^[^"\n]*=\s*"?chlo\.\w+', re.MULTILINE)
_PIPELINE = "builtin.module(func.func(chlo-legalize-to-stablehlo,shape-legalize-to-stablehlo))"


def has_chlo(text: str) -> bool:
    """Whether an op of the program is CHLO's; a composite that bears a CHLO name is none."""
    return _OP.search(text) is not None


def legalise_chlo(text: str, what: str) -> str:
    """The program with its CHLO ops as StableHLO. Raises ProgramError when that fails or jaxlib is absent."""
    try:
        from jaxlib.mlir import ir, passmanager
        from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _stablehlo
    except ImportError as error:
        raise ProgramError(f"{what} has CHLO ops, which need jaxlib: {error}") from None
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    _chlo.register_dialect(context)
    _stablehlo.register_dialect(context)
    _stablehlo.register_stablehlo_passes()
    with context, ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            passmanager.PassManager.parse(_PIPELINE).run(module.operation)
        except ir.MLIRError as error:
            found = "; ".join(d.message.strip() for d in error.error_diagnostics)
            raise ProgramError(f"{what} has CHLO ops that cannot be rewritten: {found or error}") from None
        return str(module.operation.get_asm(enable_debug_info=True))


__all__ = ["has_chlo", "legalise_chlo"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The MLIR bindings, named in this one place.

The rest of the project imports `ir`, `passmanager` and the dialect builders from here, so that another build of the
bindings can be swapped in by editing one file.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from torch_mlir import ir, passmanager, rewrite
from torch_mlir._mlir_libs import _mlirDialectsLLVM as llvm
from torch_mlir._mlir_libs import _stablehlo as stablehlo
from torch_mlir._mlir_libs import _torchMlir as _passes_with_chlo  # noqa: F401 - importing it registers them
from torch_mlir.dialects import arith, ext, func, math, memref, quant, scf, vector

if TYPE_CHECKING:
    from torch_mlir.dialects import gpu, nvvm

__all__ = [
    "arith", "ext", "func", "gpu", "has_chlo", "ir", "llvm", "load_chlo", "math", "memref", "nvvm", "passmanager",
    "quant", "rewrite", "scf", "stablehlo", "vector",
]  # fmt: skip

stablehlo.register_stablehlo_passes()

# For every op they wrap, the bindings import the Python module of its dialect until they find one. That of the LLVM
# dialect takes longer to import than all others together, and nobody needs its classes: its ops are parsed, or come of
# conversions. Our own dialect registers its classes itself, so that any module will do.
sys.modules.setdefault("torch_mlir.dialects.stablehlo", stablehlo)
sys.modules.setdefault("torch_mlir.dialects.llvm", llvm)
sys.modules.setdefault("torch_mlir.dialects.disc", sys.modules[__name__])


def __getattr__(name: str) -> Any:
    """The dialects of GPUs, which most programs do without."""
    if name not in ("gpu", "nvvm"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"torch_mlir.dialects.{name}")


def load_chlo(context: ir.Context) -> None:
    """Load the CHLO dialect, which the bindings do not register: it comes with a pass that makes ops of it."""
    with context, ir.Location.unknown():
        passmanager.PassManager.parse("builtin.module(func.func(convert-torch-to-stablehlo))").run(
            ir.Module.create().operation
        )


def has_chlo(context: ir.Context) -> bool:
    """Whether `load_chlo` was called."""
    return bool(context.is_dialect_loaded("chlo"))

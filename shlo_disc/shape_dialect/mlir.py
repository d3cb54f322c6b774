# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The MLIR bindings, named in this one place.

The rest of the project imports `ir`, `passmanager` and the dialect builders from here, so that another build of the
bindings can be swapped in by editing one file.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torch_mlir import ir, passmanager, rewrite
from torch_mlir._mlir_libs import _mlirDialectsLLVM as llvm
from torch_mlir._mlir_libs import _stablehlo as stablehlo
from torch_mlir._mlir_libs import _torchMlir as _passes_with_chlo  # noqa: F401 - importing it registers them
from torch_mlir.dialects import arith as _arith
from torch_mlir.dialects import ext, func, math, memref, quant, scf, vector

if TYPE_CHECKING:
    from torch_mlir.dialects import arith, gpu, nvvm
else:
    arith = ModuleType("arith", _arith.__doc__)
    """The dialect, with quicker builders of the ops that most of a kernel consists of: nothing is to be inferred."""

__all__ = [
    "BUILT", "arith", "ext", "func", "gpu", "has_chlo", "ir", "llvm", "load_chlo", "math", "memref", "nvvm",
    "passmanager", "quant", "rewrite", "scf", "stablehlo", "to_llvm_ir_text", "vector",
]  # fmt: skip

BUILT = ("arith", "func", "irdl", "llvm", "math", "memref", "quant", "scf", "vector")
"""Dialects whose ops, types and attributes are built in Python. What is parsed, or comes of a pass, loads its own."""

stablehlo.register_stablehlo_passes()

# For every op they wrap, the bindings import the Python module of its dialect until they find one. That of the LLVM
# dialect takes longer to import than all others together, and nobody needs its classes: its ops are built by name, or
# come of conversions. Our own dialect registers its classes itself, so that any module will do.
sys.modules.setdefault("torch_mlir.dialects.stablehlo", stablehlo)
sys.modules.setdefault("torch_mlir.dialects.llvm", llvm)
for _dialect in ("disc", "disc_host"):
    sys.modules.setdefault(f"torch_mlir.dialects.{_dialect}", sys.modules[__name__])


def _of_one_type(name: str) -> Callable[..., ir.Value]:
    op, general = f"arith.{name}", getattr(_arith, name)

    def build(left: ir.Value, right: ir.Value, **more: Any) -> ir.Value:
        if more:
            return general(left, right, **more)
        return ir.Operation.create(op, [left.type], [left, right]).results[0]

    return build


def _select(condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
    return ir.Operation.create("arith.select", [yes.type], [condition, yes, no]).results[0]


def _constant(type_: ir.Type, value: Any) -> ir.Value:
    if not isinstance(value, ir.Attribute):
        return _arith.constant(type_, value)
    return ir.Operation.create("arith.constant", [type_], [], {"value": value}).results[0]


arith.__dict__.update(_arith.__dict__)
_BINARY = ("addf", "addi", "andi", "divf", "divui", "maximumf", "maxsi", "maxui", "minimumf", "minsi", "minui", "mulf",
           "muli", "ori", "remui", "shli", "shrsi", "shrui", "subf", "subi", "xori")  # fmt: skip
arith.__dict__.update({name: _of_one_type(name) for name in _BINARY}, select=_select, constant=_constant)


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
    """Tells whether `load_chlo` was called."""
    return bool(context.is_dialect_loaded("chlo"))


def to_llvm_ir_text(module: ir.Module) -> str:
    """LLVM IR of a module of the LLVM dialect; "" when an op has no translation.

    By MLIR's C functions where the bindings have their library beside them: their own never frees what LLVM prints.
    """
    api = _c_api()
    if api is None:
        return str(llvm.translate_module_to_llvmir(module.operation))
    context = api.LLVMContextCreate()
    try:
        translated = api.mlirTranslateModuleToLLVMIR(_operation(module), context)
        if not translated:
            return ""
        try:
            text = api.LLVMPrintModuleToString(translated)
            try:
                return (ctypes.string_at(text) if text else b"").decode()
            finally:
                api.LLVMDisposeMessage(text)
        finally:
            api.LLVMDisposeModule(translated)
    finally:
        api.LLVMContextDispose(context)


class _Operation(ctypes.Structure):
    """MlirOperation."""

    _fields_ = (("ptr", ctypes.c_void_p),)


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _operation(module: ir.Module) -> _Operation:
    capsule = module.operation._CAPIPtr
    return _Operation(_capsule_pointer(capsule, _capsule_name(capsule)))


@functools.cache
def _c_api() -> Any:
    """The library that the bindings stand on, called with Python's lock held; None where it is not beside them."""
    found = list(Path(llvm.__file__).parent.glob("lib*AggregateCAPI.so"))
    if len(found) != 1:
        return None
    api = ctypes.PyDLL(str(found[0]))
    for name, result, *arguments in (
        ("LLVMContextCreate", ctypes.c_void_p),
        ("LLVMContextDispose", None, ctypes.c_void_p),
        ("LLVMDisposeMessage", None, ctypes.c_void_p),
        ("LLVMDisposeModule", None, ctypes.c_void_p),
        ("LLVMPrintModuleToString", ctypes.c_void_p, ctypes.c_void_p),
        ("mlirTranslateModuleToLLVMIR", ctypes.c_void_p, _Operation, ctypes.c_void_p),
    ):
        if not hasattr(api, name):
            return None
        getattr(api, name).restype, getattr(api, name).argtypes = result, arguments
    return api

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of every element type as NumPy arrays.

The bindings give no access to the elements of many types, and end the process on some; the printed form has them all.
MLIR prints few elements as literals that read back exactly, and many as one string of bytes.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.dtypes import BY_MLIR, numpy_dtype
from shlo_disc.shape_dialect.mlir import ir

_LITERAL = re.compile(r"[^\s,()\[\]]+")


def array_of(constant: ir.OpView | ir.Operation) -> np.ndarray:
    """The elements of a `stablehlo.constant`. Raises ProgramError on an element type that NumPy lacks."""
    return _array(ir.RankedTensorType(constant.results[0].type), text_alone(constant))


def text_alone(op: ir.OpView | ir.Operation) -> str:
    """The text of an op, which is printed as a copy: the printer numbers all values of the function around an op."""
    return str(op.operation.clone(ip=False).get_asm(use_local_scope=True))


def array_of_dense(elements: ir.DenseElementsAttr) -> np.ndarray:
    """The elements of an attribute. Raises ProgramError on an element type that NumPy lacks."""
    return _array(ir.RankedTensorType(elements.type), str(elements))


def _array(tensor: ir.RankedTensorType, text: str) -> np.ndarray:
    """The elements in the text of a dense attribute."""
    known = BY_MLIR.get(str(tensor.element_type))
    if known is None:
        raise ProgramError(f"no arrays hold elements of the type {tensor.element_type}")
    dtype = numpy_dtype(known)
    start = text.index("dense<") + len("dense<")
    elements = text[start : text.index(">", start)]
    if elements.startswith('"0x'):
        values = np.frombuffer(bytes.fromhex(elements[3:-1]), dtype)
    else:
        values = _from_literals(_LITERAL.findall(elements), dtype)
    shape = tuple(tensor.shape)
    return np.full(shape, values[0], dtype) if values.size == 1 else values.reshape(shape).copy()


def _from_literals(literals: list[str], dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind == "c":
        parts = _from_literals(literals, np.dtype(f"f{dtype.itemsize // 2}"))
        return parts.view(dtype)
    if dtype == np.bool_:
        return np.array([literal == "true" for literal in literals], dtype)
    return np.array([_number(literal, dtype) for literal in literals], dtype)


def _number(literal: str, dtype: np.dtype[Any]) -> Any:
    """One literal: a number, or the bits of a float that has no decimal form."""
    if is_float(dtype):
        if literal.startswith("0x"):
            return np.array(int(literal, 16), f"u{dtype.itemsize}").view(dtype)[()]
        return np.array(float(literal)).astype(dtype)[()]
    return int(literal)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Any floating-point type, those of `ml_dtypes` included; complex types are not."""
    if dtype.kind == "f":
        return True
    return dtype.kind == "V" and not dtype.name.startswith(("int", "uint"))


__all__ = ["array_of", "array_of_dense", "is_float", "text_alone"]

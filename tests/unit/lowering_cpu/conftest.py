# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile a function over lanes into a loop over arrays, and load it into this process; for tests only."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from shlo_disc.lowering.codegen import CpuTarget, compile_to_object, lower_to_llvm, to_llvm_ir
from shlo_disc.lowering_cpu.vector_math import FUNCTIONS
from shlo_disc.runtime._native import ObjectCode
from shlo_disc.shape_dialect.mlir import arith, func, ir, memref, scf, vector

DTYPES = {"f32": np.float32, "f64": np.float64}


class LaneKernel:
    """`kernel(*arrays)` applies one function of `vector_math` to equally long NumPy arrays."""

    def __init__(self, name: str, dtype: str, lanes: int, target: CpuTarget | None = None):
        self.dtype, self.lanes = DTYPES[dtype], max(lanes, 1)
        self.arity = 2 if name in ("power", "atan2") else 1
        with ir.Context(), ir.Location.unknown():
            text = to_llvm_ir(lower_to_llvm(_build(name, dtype, lanes, self.arity)))
        self.data = compile_to_object(text, target or CpuTarget.host())
        self._code = ObjectCode(self.data)
        words = [ctypes.c_int64] * (5 * (self.arity + 1) + 1)
        self._function = ctypes.CFUNCTYPE(None, *words)(self._code.function("kernel"))

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        size = arrays[0].size
        padded = [np.concatenate([a.astype(self.dtype), np.ones(-size % self.lanes, self.dtype)]) for a in arrays]
        out = np.empty_like(padded[0])
        words = [w for a in (*padded, out) for w in (a.ctypes.data, a.ctypes.data, 0, a.size, 1)]
        self._function(*words, out.size)
        return out[:size]


def _build(name: str, dtype: str, lanes: int, arity: int) -> ir.Module:
    """A loop in steps of `lanes`; scalars when `lanes` is 0."""
    element = ir.F32Type.get() if dtype == "f32" else ir.F64Type.get()
    array, index = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], element), ir.IndexType.get()
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("kernel", ir.FunctionType.get([array] * (arity + 1) + [index], []))
    with ir.InsertionPoint(function.add_entry_block()):
        *arrays, out, size = function.entry_block.arguments
        loop = scf.ForOp(arith.constant(index, 0), size, arith.constant(index, max(lanes, 1)))
        with ir.InsertionPoint(loop.body):
            at = [loop.induction_variable]
            if lanes == 0:
                memref.store(FUNCTIONS[name](*(memref.load(a, at) for a in arrays)), out, at)
            else:
                kind = ir.VectorType.get([lanes], element)
                vector.store(FUNCTIONS[name](*(vector.load(kind, a, at) for a in arrays)), out, at)
            scf.YieldOp([])
        func.ReturnOp([])
    assert module.operation.verify()
    return module


@pytest.fixture(scope="session")
def lane_kernel() -> Callable[..., LaneKernel]:
    """lane_kernel(name, dtype, lanes=32, target=None), compiled once a session."""
    return cache(lambda name, dtype, lanes=32, target=None: LaneKernel(name, dtype, lanes, target))

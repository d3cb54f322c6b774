# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors in the emulator: the vector of every thread is a row of one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shlo_disc.shape_dialect.mlir import ir

Lanes = np.ndarray
Env = dict[ir.Value, Any]


def of_each(threads: Lanes, like: Lanes) -> Lanes:
    """Broadcasts a value of each thread to every element of their vectors where `like` has those."""
    return threads.reshape(threads.shape + (1,) * (like.ndim - threads.ndim))


class VectorOps:
    """The ops of the dialect `vector`, and addresses. `_touch` reads or writes one element a thread."""

    threads: int
    shared: dict[str, Any]
    _touch: Callable[..., Lanes]
    _dtype_of: Callable[[ir.Type], np.dtype]

    def _vector_load(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        buffer, *indices = op.operands
        (width,) = ir.VectorType(op.results[0].type).shape
        return [np.stack(self._neighbours(op, env[buffer], [env[i] for i in indices], active, [None] * width), 1)]

    def _vector_store(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        value, buffer, *indices = op.operands
        self._neighbours(op, env[buffer], [env[i] for i in indices], active, list(env[value].T))
        return []

    def _neighbours(self, op: ir.OpView, view: Any, indices: list[Lanes], active: Lanes, values: list) -> list[Lanes]:
        """One access of neighbouring elements. A GPU refuses one that is not aligned as its instruction says."""
        alignment = ir.IntegerAttr(op.attributes["alignment"]).value if "alignment" in op.attributes else 1
        first = view.addresses(view.offsets(indices, active))[active]
        if self._is_shared(view):
            first = first - view.data.__array_interface__["data"][0]
        assert not (first % alignment).any(), f"an access of {alignment} bytes is not aligned"
        return [self._touch(view, [*indices[:-1], indices[-1] + i], active, value) for i, value in enumerate(values)]

    def _memref_extract_aligned_pointer_as_index(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        view = env[op.operands[0]]
        return [view.addresses(np.full(self.threads, view.start, np.int64))]

    def _vector_broadcast(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        source = env[op.operands[0]]
        (width,) = ir.VectorType(op.results[0].type).shape
        return [np.repeat(source.reshape(self.threads, -1)[:, :1], width, 1)]

    def _vector_extract(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        place = tuple(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
        assert len(op.operands) == 1
        return [env[op.operands[0]][(slice(None), *place)]]

    def _vector_extract_strided_slice(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        parts = (ir.ArrayAttr(op.attributes[name]) for name in ("offsets", "sizes", "strides"))
        (first,), (length,), (step,) = ([ir.IntegerAttr(number).value for number in part] for part in parts)
        assert step == 1
        return [env[op.operands[0]][:, first : first + length]]

    def _vector_from_elements(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        shape = ir.VectorType(op.results[0].type).shape
        return [np.stack([env[v] for v in op.operands], 1).reshape(self.threads, *shape)]

    def _vector_bitcast(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        dtype = self._dtype_of(op.results[0].type)
        return [np.ascontiguousarray(env[op.operands[0]]).view(dtype)]

    def _vector_step(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        (width,) = ir.VectorType(op.results[0].type).shape
        return [np.repeat(np.arange(width, dtype=np.int64)[None], self.threads, 0)]

    def _vector_reduction(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        assert "or" in str(op.attributes["kind"])
        return [env[op.operands[0]].any(1)]


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """math.fma: of f32, rounded once. An f64 that is no exact sum is made odd, and so rounds to f32 as the sum does."""
    if a.dtype != np.float32:
        return a.astype(np.longdouble) * b + c
    product, added = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + added
    back = total - product
    lost = (product - (total - back)) + (added - back)
    bits = total.view(np.int64)
    is_odd = np.isfinite(lost) & (lost != 0) & (bits % 2 == 0)
    return (bits + np.where(is_odd, np.where((lost > 0) == (total > 0), 1, -1), 0)).view(np.float64)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Emulation of tensor cores: asynchronous copies, matrices of shared memory, products of fragments.

A copy lands as late as it may, at the wait for its group; until then there is something else in its place, and its
writes count from its beginning. Fragments are laid out as in NVIDIA's PTX manual for `ldmatrix`, `mma.m16n8k16`,
`mma.m16n8k32` of bytes, and `mma.m16n8k8` of TF32, of which the instruction reads no lower bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_order import BlockOrder

WARP = 32
_CHUNK_BYTES = 16
_POISON = 113

Lanes = np.ndarray
Env = dict[ir.Value, Any]


class TensorCores:
    """The part of a block for tensor cores."""

    threads: int
    since_barrier: Any
    order: BlockOrder
    lane: Lanes
    roles: Any

    def begin_copies(self) -> None:
        """There are none."""
        self.copies: list[tuple[Lanes, Lanes, Lanes, Lanes]] = []
        self.groups: list[list[tuple[Lanes, Lanes, Lanes, Lanes]]] = []

    def _whole_warps(self, active: Lanes) -> None:
        """All threads are there, or those of a warpgroup that goes its own way."""
        warps = active.reshape(-1, WARP)
        assert (warps.all(1) == warps.any(1)).all() and (self.roles is not None or active.all()), (
            "not all threads do what warps do together"
        )

    # ---- copies ---------------------------------------------------------------------------------------------------

    def _nvgpu_device_async_copy(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        target, place, source, at, present = (env[v] for v in op.operands)
        length = ir.IntegerAttr(op.attributes["dstElements"]).value
        size = source.data.itemsize
        whole = length * size
        assert whole in (4, 8, _CHUNK_BYTES) and (active & (present > length)).sum() == 0
        assert ("bypassL1" in op.attributes) == (whole == _CHUNK_BYTES), "only 16 bytes go around the first cache"
        wanted = np.arange(length)[None, :]
        inside = active[:, None] & (wanted < present[:, None])
        from_ = source.offsets([at[:, None] + wanted], inside)
        assert not (source.addresses(at)[active] % whole).any(), f"a copy from no multiple of {whole} bytes"
        assert not (place[active] * size % whole).any(), f"a copy to no multiple of {whole} bytes"
        to = target.offsets([place[:, None] + wanted], np.broadcast_to(active[:, None], inside.shape))
        self.order.add(source.addresses(from_)[inside], False)
        self._claim(target, to[active], active)
        values = np.zeros(inside.shape, source.data.dtype)
        values[inside] = source.data[from_[inside]]
        target.data[to[active]] = np.array(_POISON, target.data.dtype)
        self.copies.append((target.data, to[active], values[active], active))
        return [np.zeros(self.threads, np.int32)]

    def _claim(self, target: Any, to: Lanes, active: Lanes) -> None:
        owners = np.repeat(self.lane[active], to.shape[1])
        self.since_barrier.add(target.addresses(to).reshape(-1), owners, True)

    def _nvvm_cp_async_commit_group(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        assert active.all(), "not all threads close a group of copies"
        self.groups.append(self.copies)
        self.copies = []
        return []

    def _nvvm_cp_async_wait_group(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        assert active.all(), "not all threads wait for copies"
        pending = ir.IntegerAttr(op.attributes["n"]).value
        while len(self.groups) > pending:
            for data, to, values, owners in self.groups.pop(0):
                data[to] = values
                lanes = np.repeat(self.lane[owners], to.shape[1])
                addresses = data.__array_interface__["data"][0] + to.reshape(-1) * data.itemsize
                self.since_barrier.add(addresses, lanes, True)
        return []

    # ---- fragments ------------------------------------------------------------------------------------------------

    def _nvgpu_ldmatrix(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        assert active.all(), "not all threads reach ldmatrix"
        buffer, row = (env[v] for v in op.operands)
        size = buffer.data.itemsize
        assert ir.IntegerAttr(op.attributes["numTiles"]).value == 4
        assert not (row * size % _CHUNK_BYTES).any(), "a row of a matrix at no multiple of 16 bytes"
        rows = row.reshape(-1, 4, 8)[..., None] + np.arange(_CHUNK_BYTES // size)
        everywhere = np.ones(rows.shape, bool)
        offsets = buffer.offsets([rows], everywhere)
        self.since_barrier.add(buffer.addresses(offsets).reshape(-1), np.repeat(self.lane, rows.shape[-1]), False)
        matrices = buffer.data[offsets]
        if ir.BoolAttr(op.attributes["transpose"]).value:
            assert size == 2, "elements of other than two bytes are not turned"
            matrices = matrices.swapaxes(-1, -2)
        return [matrices.reshape(-1, 4, WARP, 4 // size).swapaxes(1, 2).reshape(-1, 4, 4 // size)]

    def _nvgpu_mma_sync(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        self._whole_warps(active)
        a, b, c = (env[v] for v in op.operands)
        depth = [ir.IntegerAttr(n).value for n in ir.ArrayAttr(op.attributes["mmaShape"])]
        if a.dtype == np.float32:
            assert depth == [16, 8, 8] and "tf32Enabled" in op.attributes
            a, b = ((one.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for one in (a, b))
        else:
            assert depth == [16, 8, 16]
        return [(c + _product(a, b, np.float32)).astype(np.float32)]

    def _nvvm_mma_sync(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        assert active.all(), "not all threads reach mma.sync"
        texts = {name: str(op.attributes[name]) for name in op.attributes}
        assert (
            "wrapped" in texts["intOverflowBehavior"]
            and texts["shape"].replace(" ", "") == "#nvvm.shape<m=16,n=8,k=32>"
        )
        assert "row" in texts["layoutA"] and "col" in texts["layoutB"]
        assert texts["multiplicandAPtxType"] == texts["multiplicandBPtxType"]
        element = np.int8 if "s8" in texts["multiplicandAPtxType"] else np.uint8
        words = [env[v] for v in op.operands]
        a, b = (np.stack(some, 1)[..., None].view(element) for some in (words[:4], words[4:6]))
        sums = _product(a, b, np.int64).reshape(self.threads, 4) + np.stack(words[6:], 1)
        return [sums.astype(np.int32)]

    def _llvm_extractvalue(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        (number,) = ir.DenseI64ArrayAttr(op.attributes["position"])
        return [env[op.operands[0]][:, number]]


def _product(a: Lanes, b: Lanes, sum_type: type) -> Lanes:
    """A B of fragments: lane 4 g + t of a warp holds row g, and the t-th part of the columns, of each matrix."""
    size = a.shape[-1]
    quarters = a.reshape(-1, 8, 4, 2, 2, size).transpose(0, 4, 1, 3, 2, 5).reshape(-1, 16, 8 * size)
    columns = b.reshape(-1, 8, 4, 2, size).transpose(0, 1, 3, 2, 4).reshape(-1, 8, 8 * size)
    product = np.einsum("wik,wjk->wij", quarters.astype(sum_type), columns.astype(sum_type))
    return product.reshape(-1, 2, 8, 4, 2).transpose(0, 2, 3, 1, 4).reshape(-1, 2, 2)
